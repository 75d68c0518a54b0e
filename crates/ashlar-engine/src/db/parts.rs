//! The parts of an open database, and the database that is assembled from them. Both kinds of open end here.

use super::core::{Core, Hold, State};
use super::disk::room_limit;
use super::settings::Settings;
use super::switch::Host;
use crate::column_family::{DatabaseId, LiveFamily, new_memtable};
use crate::health::HealthState;
use crate::pressure::{DiskSpace, Memory, Pressure, Resources};
use crate::wal::Wal;
use crate::write::Committer;
use ashlar_base::stats::{Statistics, StatsLevel};
use ashlar_base::{FamilyId, Result};
use ashlar_compaction::{RateLimiter, Writer};
use ashlar_env::Env;
use ashlar_memtable::{MemtableList, MemtableRep};
use ashlar_observe::{Counters, Events, InfoLog, Scrubbed, WriteTally};
use ashlar_options::DbOptions;
use ashlar_read::snapshot::SnapshotList;
use ashlar_recovery::{PreparedSet, RecoveryReport};
use ashlar_sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use ashlar_sync::{EpochCell, Mutex, Rank};
use ashlar_tree::files::{Archive, ArchiveLimits, PendingOutputs};
use ashlar_tree::places::Places;
use ashlar_tree::version::{OpenTables, VersionSet};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

/// The memory of a database, with the resources that it was given or with its own.
///
/// # Errors
/// `InvalidArgument`, `Busy(Memory)`: the resources have no room for the database.
pub(super) fn take_memory(options: &DbOptions, resources: Option<&Resources>) -> Result<Arc<Memory>> {
    let memory = match resources {
        Some(common) => Memory::new(common, options),
        None => Memory::new(&Resources::alone(options, ashlar_env::memory_limit()), options),
    };
    memory.map(Arc::new)
}

/// The statistics object that the options name, or one of the database's own.
pub(super) fn statistics(env: &Env, options: &DbOptions) -> Arc<Statistics> {
    let own = || Arc::new(Statistics::at_level(StatsLevel::ExceptHistogramOrTimers));
    let statistics = options.statistics.clone().unwrap_or_else(own);
    statistics.attach(env.ticks());
    statistics
}

/// The parts of an open database, ready to be assembled.
pub(super) struct Parts {
    pub(super) env: Env,
    pub(super) places: Arc<Places>,
    pub(super) dir: PathBuf,
    pub(super) options: DbOptions,
    pub(super) hold: Hold,
    pub(super) tables: Arc<OpenTables>,
    pub(super) memory: Arc<Memory>,
    pub(super) statistics: Arc<Statistics>,
    pub(super) versions: Arc<VersionSet>,
    pub(super) report: RecoveryReport,
    pub(super) pending: Arc<PendingOutputs>,
    pub(super) session_id: String,
    pub(super) wal: Arc<Wal>,
    /// The memtables that replay left; families without one begin empty.
    pub(super) memtables: BTreeMap<FamilyId, Arc<dyn MemtableRep>>,
    /// The transactions that are prepared and not decided on.
    pub(super) prepared: PreparedSet,
    pub(super) health: HealthState,
    /// `None` where nothing may be written.
    pub(super) info_log: Option<InfoLog>,
}

/// The directory of the WAL files of the database in `dir`.
pub(super) fn wal_dir_of<'a>(options: &'a DbOptions, dir: &'a Path) -> &'a Path {
    if options.wal_dir.is_empty() { dir } else { Path::new(&options.wal_dir) }
}

/// The archive of the WAL files, if the options ask for one.
pub(super) fn archive_of(options: &DbOptions, dir: &Path) -> Option<Archive> {
    let bytes = options.wal_archive_mib.saturating_mul(1 << 20);
    Archive::new(wal_dir_of(options, dir), ArchiveLimits { secs: options.wal_archive_secs, bytes })
}

fn disk_space(parts: &Parts) -> Arc<DiskSpace> {
    DiskSpace::new(&parts.env.fs, &parts.dir, &parts.options)
}

impl Parts {
    pub(super) fn assemble(mut self, settings: &Settings) -> Arc<Core> {
        let (mut state, database) = (State::default(), DatabaseId::fresh());
        let (pressure, disk) = (Arc::new(Pressure::new()), disk_space(&self));
        let last_sequence = self.versions.last_sequence();
        for family in self.versions.families() {
            let order = &family.version.order;
            let replayed = self.memtables.remove(&family.id);
            let mut options = settings.of(&family.name, order);
            options.reserve_last_level(self.options.ingest_behind);
            let current = replayed.unwrap_or_else(|| new_memtable(&options, Some(self.memory.account())));
            let memtables = MemtableList::new(current, self.wal.number(), last_sequence);
            let version = Arc::clone(&family.version);
            version.tables().count_into(&self.statistics);
            let ids = (database, family.id);
            state.families.insert(LiveFamily::new(ids, &family.name, options, memtables, version));
        }
        let some_disallow = state.families.iter().any(|live| live.family.options().disallow_memtable_writes);
        let some_expire = state.families.iter().any(|live| live.family.options().value_ttl_secs.is_some());
        let set = Arc::new(Core::write_set(&state, &self.memory, self.wal));
        let tally = WriteTally::new(Arc::clone(&self.statistics));
        let committer =
            Committer::new((self.env.clone(), database), set, self.versions.last_sequence(), tally);
        let writer = Writer {
            file_checksums: self.options.file_checksums,
            db_paths: self.options.db_paths.clone(),
            statistics: Some(Arc::clone(&self.statistics)),
            ..Writer::new(&self.env, &self.versions, &self.session_id)
        };
        let (now, snapshots) = (self.env.clock.now(), SnapshotList::with_clock(Arc::clone(&self.env.clock)));
        let events = Events::new(&self.env, self.options.listeners.clone(), self.info_log, database);
        Arc::new_cyclic(|weak: &Weak<Core>| {
            committer.current().wal.log().limit_room(room_limit(weak));
            committer.attach(Box::new(Host::new(weak.clone(), Arc::clone(&pressure), Arc::clone(&disk))));
            Core {
                archive: archive_of(&self.options, &self.dir),
                database,
                progress: self.env.jobs.signal(),
                disk,
                env: self.env,
                places: self.places,
                dir: self.dir,
                options: EpochCell::new(Arc::new(self.options)),
                changing: Mutex::new(Rank::Options, ()),
                tables: self.tables,
                memory: self.memory,
                statistics: self.statistics,
                events,
                versions: self.versions,
                committer,
                snapshots,
                pending: self.pending,
                health: self.health,
                pressure,
                limiter: Mutex::new(Rank::Leaf, RateLimiter::default()),
                scrubbed: Mutex::new(Rank::Leaf, Scrubbed::default()),
                counters: Counters::new(now),
                recovery: self.report,
                writer,
                aborts: AtomicUsize::new(0),
                some_disallow: AtomicBool::new(some_disallow),
                some_expire: AtomicBool::new(some_expire),
                jobs_begun: AtomicU64::new(0),
                closed: AtomicBool::new(false),
                state: Mutex::new(Rank::State, state),
                joined: Mutex::new(Rank::Leaf, Vec::new()),
                prepared: Mutex::new(Rank::Leaf, Arc::new(self.prepared)),
                hold: Mutex::new(Rank::Lifecycle, Some(self.hold)),
            }
        })
    }
}
