//! Opening: lock, recover, replay, flush what was replayed, begin a new log, report.
//!
//! Until recovery has succeeded the directory is only read (but for `LOCK`, and tables of a long replay, which go again
//! if it fails). Then one commit names the new tables and the new log for all families, and only after that anything
//! is removed.

use super::core::{Core, Hold, State};
use super::counters::Counters;
use super::output::Writer;
use super::purge_job::purge_at_open;
use super::read_only::open_locked;
use super::replay::Replayer;
use super::schedule::widen;
use super::scrub_job::Scrubbed;
use super::session::new_session_id;
use super::tell::log_header;
use super::unused_logs::UnusedLogs;
use super::writes::Host;
use crate::column_family::{DEFAULT_FAMILY, DatabaseId, LiveFamily};
use crate::events::{Events, InfoLog};
use crate::files::{PendingOutputs, Places, check_lost, hold_directory, lost_is_usable};
use crate::health::Health;
use crate::memtable::{MemtableList, new_memtable};
use crate::open::{
    DirState, Entered, Families, FamilySpec, Others, PlaceSettings, Purpose, Recovered, RecoveryReport,
    create_database, enter, make_directory, recover_in, replay_wals, settle_identity, survey,
};
use crate::options::{
    DbOptions, DbPath, Facts, FamilyOptions, Finding, Options, StoredFamily, lint, load_latest_options,
    note_lines, options_file, write_options_file,
};
use crate::pressure::{Memory, Pressure, RateLimiter};
use crate::snapshot::SnapshotList;
use crate::version::{FamilyState, OpenTables, VersionSet};
use crate::wal::{Wal, WalShape};
use crate::write::{GroupCommitter, WriteTally};
use ashlar_base::stats::{Statistics, StatsLevel};
use ashlar_base::{Error, FamilyId, FileNumber, Order, Result};
use ashlar_cache::FramePool;
use ashlar_env::{Env, FileLock};
use ashlar_format::compress::Compression;
use ashlar_format::filename::FileKind;
use ashlar_format::version_edit::VersionEdit;
use ashlar_log::LogWriter;
use ashlar_memtable::MemtableRep;
use ashlar_sync::atomic::{AtomicBool, AtomicUsize};
use ashlar_sync::{EpochCell, Mutex, Rank};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

/// A family to open, and how.
#[derive(Clone, Debug)]
pub struct OpenFamily {
    /// Its name.
    pub name: String,
    /// Its settings.
    pub options: FamilyOptions,
}

/// What to tell where a tree is opened with another number of levels than asked for, or than it was stored with.
fn levels_told(
    name: &str,
    given: &FamilyOptions,
    levels: usize,
    stored: Option<&FamilyOptions>,
) -> Option<String> {
    let given = given.compaction.num_levels;
    if levels > given {
        return Some(format!(
            "family {name:?}: num_levels={given}: there are tables in level {}, so {levels} levels are used",
            levels - 1
        ));
    }
    let stored = stored.map(|stored| stored.compaction.num_levels).filter(|stored| *stored < levels)?;
    Some(format!(
        "family {name:?}: num_levels={stored}: opened with {levels}; RocksDB with {stored} levels does not open \
         tables that a compaction brings below level {}",
        stored - 1
    ))
}

/// The settings of every family: those that were listed, and the rest.
pub(super) struct Settings {
    listed: BTreeMap<String, FamilyOptions>,
    others: FamilyOptions,
    /// Those of families that are there, with what the OPTIONS file says of them.
    recalled: BTreeMap<String, FamilyOptions>,
    /// Directories of the families' tables that the OPTIONS file names.
    cf_paths: BTreeMap<String, Vec<DbPath>>,
}

impl Settings {
    pub(super) fn new(
        options: &DbOptions,
        families: Vec<OpenFamily>,
        others: FamilyOptions,
    ) -> Result<Settings> {
        options.validate()?;
        let level = options.format_level;
        others.validate(level)?;
        let mut listed = BTreeMap::new();
        for mut family in families {
            family.options.validate(level).map_err(|e| e.hint(format!("In family {:?}", family.name)))?;
            family.options.forget_stored();
            if listed.insert(family.name.clone(), family.options.at_level(level)).is_some() {
                return Err(Error::invalid(format!("family {:?} is listed twice", family.name)));
            }
        }
        let mut others = others.at_level(level);
        others.forget_stored();
        Ok(Settings { listed, others, recalled: BTreeMap::new(), cf_paths: BTreeMap::new() })
    }

    /// The settings of a family whose keys the database has in `order`. A listed family without a comparator of its own
    /// takes that order over.
    pub(super) fn of(&self, name: &str, order: &Order) -> FamilyOptions {
        let given = self.recalled.get(name).or(self.listed.get(name));
        let mut options = given.unwrap_or(&self.others).clone();
        if given.is_none() || matches!(options.order, Order::Bytewise) {
            options.order = order.clone();
            options.table.order = order.clone();
        }
        if let Some(paths) = self.cf_paths.get(name) {
            options.cf_paths.clone_from(paths);
        }
        options
    }

    /// The places that the caller gave. A family that is not listed has none of its own.
    pub(super) fn places(&self, options: &DbOptions) -> PlaceSettings {
        let own = self.listed.iter().map(|(name, o)| (name.clone(), o.cf_paths.clone()));
        let default = (DEFAULT_FAMILY.to_owned(), self.others.cf_paths.clone());
        let cf_paths = [default].into_iter().chain(own).filter(|(_, paths)| !paths.is_empty()).collect();
        PlaceSettings { wal_dir: options.wal_dir.clone(), db_paths: options.db_paths.clone(), cf_paths }
    }

    /// Takes over where the files are.
    pub(super) fn settle(&mut self, options: &mut DbOptions, entered: &Entered) {
        self.others.cf_paths.clear();
        self.cf_paths.clone_from(&entered.settings.cf_paths);
        options.wal_dir.clone_from(&entered.settings.wal_dir);
        options.db_paths.clone_from(&entered.settings.db_paths);
        if let (true, Some(dir)) = (options.info_log.dir.is_empty(), &entered.db_log_dir) {
            options.info_log.dir.clone_from(dir);
        }
    }

    /// Holds the settings against the newest OPTIONS file and the levels there are: merge operators are found by name, and
    /// what the file holds besides is kept for the next one. A file that cannot be read is a line of the report.
    ///
    /// # Errors
    /// `InvalidArgument`: a family had another merge operator.
    pub(super) fn recall(
        &mut self,
        env: &Env,
        dir: &Path,
        options: &mut DbOptions,
        versions: &VersionSet,
        report: &mut RecoveryReport,
    ) -> Result<()> {
        let loaded = match load_latest_options(&*env.fs, dir, options.format_level) {
            Ok(found) => found,
            Err(e) => {
                report.foreign.push(format!("the OPTIONS file was not read: {e}"));
                None
            }
        };
        let stored: HashMap<&str, &FamilyOptions> =
            loaded.iter().flat_map(|l| &l.families).map(|(name, stored)| (&**name, stored)).collect();
        for family in versions.families() {
            let (name, order) = (&*family.name, &family.version.order);
            let mut own = self.of(name, order);
            if let Some(stored) = stored.get(name) {
                self.recall_operator(name, &mut own, stored.stored_merge_operator.as_deref())?;
                own.kept_over(stored);
            }
            let levels = family.version.levels.len();
            report.unserved.extend(levels_told(name, &own, levels, stored.get(name).copied()));
            (own.compaction.num_levels, own.only_if_there) = (levels, false);
            self.recalled.insert(name.to_owned(), own);
        }
        if let Some(loaded) = &loaded {
            options.kept = options.kept.over(&loaded.db.kept);
            options.stored_release.clone_from(&loaded.release);
            report.unserved.extend(self.unserved(options, versions));
        }
        Ok(())
    }

    /// What of the OPTIONS file is not acted on and would change what RocksDB does, a line for each.
    fn unserved(&self, options: &DbOptions, versions: &VersionSet) -> Vec<String> {
        let db = Options { db: options.clone(), ..Options::default() };
        let mut groups: Vec<(Vec<&str>, Vec<String>)> = vec![(Vec::new(), db.database_notes())];
        let mut before: Option<&FamilyOptions> = None;
        let families = versions.families();
        for family in &families {
            let Some(own) = self.recalled.get(&*family.name) else { continue };
            match groups.last_mut().filter(|_| before.is_some_and(|b| b.shares_kept_with(own))) {
                Some((names, _)) => names.push(&family.name),
                None => groups.push((vec![&family.name], own.notes(options.format_level))),
            }
            before = Some(own);
        }
        note_lines(&groups)
    }

    /// Holds the settings of families that are there against the merge operators they had.
    ///
    /// # Errors
    /// `InvalidArgument`: a family had another one.
    pub(super) fn recall_operators<'f>(
        &mut self,
        stored: &[StoredFamily],
        there: impl Iterator<Item = (&'f str, &'f Order)>,
    ) -> Result<()> {
        let stored: BTreeMap<&str, &StoredFamily> =
            stored.iter().map(|family| (&*family.name, family)).collect();
        for (name, order) in there {
            let Some(family) = stored.get(name) else { continue };
            let mut options = self.of(name, order);
            self.recall_operator(name, &mut options, family.merge_operator.as_deref())?;
            self.recalled.insert(name.to_owned(), options);
        }
        Ok(())
    }

    /// Gives a family that is there the merge operator it had. One that is not listed takes the operator of `default` only
    /// where it had the same.
    fn recall_operator(&self, name: &str, options: &mut FamilyOptions, stored: Option<&str>) -> Result<()> {
        let listed = name == DEFAULT_FAMILY || self.listed.contains_key(name);
        if !listed && !options.has_operator(stored) {
            (options.merge_operator, options.stored_merge_operator) = (None, None);
            options.table.merge_operator = None;
        }
        stored.map_or(Ok(()), |stored| options.recall_operator(name, stored))
    }

    fn default_order(&self) -> Order {
        self.listed.get(DEFAULT_FAMILY).unwrap_or(&self.others).order.clone()
    }

    pub(super) fn families(&self) -> Families {
        let spec = |(name, o): (&String, &FamilyOptions)| FamilySpec {
            name: name.clone(),
            order: o.order.clone(),
            levels: o.compaction.num_levels,
            only_if_there: o.only_if_there,
        };
        let mut listed: Vec<FamilySpec> = self.listed.iter().map(spec).collect();
        if !self.listed.contains_key(DEFAULT_FAMILY) {
            let default = DEFAULT_FAMILY.to_owned();
            listed.push(spec((&default, &self.others)));
        }
        Families { listed, others: Others::Open { levels: self.others.compaction.num_levels } }
    }

    /// What the linter says of these settings and the data there is.
    fn advice(&self, options: &DbOptions, versions: &VersionSet) -> Vec<String> {
        let families = versions.families();
        let settings: Vec<_> = families.iter().map(|f| self.of(&f.name, &f.version.order)).collect();
        let named: Vec<_> = families.iter().map(|f| f.name.as_str()).zip(&settings).collect();
        let bytes = |f: &FamilyState| f.version.files().map(|(_, f)| f.file.size).sum::<u64>();
        let facts = Facts::of(families.iter().map(|f| (f.name.clone(), bytes(f))));
        lint(&options_file(options, &named), &facts).iter().map(Finding::to_string).collect()
    }

    /// For an open that only reads: what is not listed and not known stays closed.
    pub(super) fn families_to_read(&self) -> Families {
        let mut families = self.families();
        // A default family of another built-in order is none that the caller spoke of.
        if matches!(self.others.order, Order::Bytewise) {
            families.listed.retain(|f| self.listed.contains_key(&f.name));
        }
        Families { others: Others::OpenKnown { levels: self.others.compaction.num_levels }, ..families }
    }
}

pub(super) fn open(
    env: Env,
    dir: &Path,
    mut options: DbOptions,
    families: Vec<OpenFamily>,
    others: FamilyOptions,
) -> Result<Arc<Core>> {
    let mut settings = Settings::new(&options, families, others)?;
    widen(&env, options.max_background_jobs);
    let (entered, lock) = occupy(&env, dir, &mut options, &mut settings)?;
    let env = entered.env.clone();
    let created = create_if_empty(&env, dir, &settings)?;
    let memory = Arc::new(Memory::new(&options, ashlar_env::memory_limit()));
    let tables = limited_tables(&options, &memory);
    let recovered = recover_in(&entered, dir, options.format_level, &tables, &settings.families())?;
    let (session_id, pending) = (new_session_id(&*env.rand), PendingOutputs::new());
    let Recovered { versions, missing, mut report, out_of_numbers, .. } = recovered;
    if !report.read_only.is_empty() {
        return open_locked(entered, dir, options, settings, lock);
    }
    out_of_numbers.map_or(Ok(()), Err)?;
    settings.recall(&env, dir, &mut options, &versions, &mut report)?;
    let versions = Arc::new(versions);
    let statistics = statistics(&env, &options);
    versions.families().iter().for_each(|family| family.version.tables().count_into(&statistics));
    report.created = created;
    let options_of = |name: &str, order: &Order| settings.of(name, order);
    let mut replayer = Replayer::new(&env, dir, &versions, &pending, &session_id, &options_of)
        .with_file_checksums(options.file_checksums)
        .with_paths(&options.db_paths);
    let outcome = replay_wals(&env, dir, &versions, options.recovery_mode, &mut replayer, &mut report)?;
    if !report.read_only.is_empty() {
        drop(replayer);
        return open_locked(entered, dir, options, settings, lock);
    }
    check_lost_at_open(&env, dir, &mut report)?;
    let (edits, replayed) = replayer.finish()?;
    let unused = UnusedLogs::keep(&*env.fs, dir, &report)?;
    let wal = begin_session(&entered, &versions, &options, edits, outcome.cut)?;
    drop(replayed);
    create_missing(&versions, &options, &missing, wal.number())?;
    settle_identity(&env, &versions, &mut report)?;
    let quarantined = purge_at_open(&env, dir, &versions, &pending, &mut report, &unused)?;
    report.advice = settings.advice(&options, &versions);
    let env = InfoLog::hold_elsewhere(env, &options.info_log);
    let info_log = InfoLog::open(&env, dir, &options.info_log, &log_header(&report));
    let parts = Parts {
        env,
        places: entered.places,
        dir: dir.to_path_buf(),
        options,
        hold: Hold::new(Some(lock)),
        tables,
        memory,
        statistics,
        versions,
        report,
        pending,
        session_id,
        wal,
        memtables: BTreeMap::new(),
        health: Health::new(None),
        info_log,
    };
    let core = parts.assemble(&settings);
    core.state().quarantined = quarantined;
    core.write_options()?;
    begin_background(&core);
    Ok(core)
}

/// Files behind a tail that was dropped go to `lost`. Where that is not a directory, nothing is written yet.
///
/// # Errors
/// `InvalidArgument`: files would have to be moved, and cannot.
fn check_lost_at_open(env: &Env, dir: &Path, report: &mut RecoveryReport) -> Result<()> {
    if report.tail_dropped() {
        return check_lost(&*env.fs, dir);
    }
    if !lost_is_usable(&*env.fs, dir)? {
        report.foreign.push("lost is not a directory: this open removes no file that is obsolete".to_owned());
    }
    Ok(())
}

/// Whatever works by itself begins.
fn begin_background(core: &Arc<Core>) {
    schedule_on_release(core);
    core.update_pressure();
    core.schedule();
    core.arm_timer();
    core.start_scrub();
}

/// A snapshot that ends may let tombstones go.
fn schedule_on_release(core: &Arc<Core>) {
    let scheduler = Arc::downgrade(core);
    core.snapshots.on_release(Box::new(move || {
        if let Some(core) = scheduler.upgrade() {
            core.schedule();
        }
    }));
}

/// Creates the families that were asked for and are not there, if the options allow it.
fn create_missing(
    versions: &VersionSet,
    options: &DbOptions,
    missing: &[FamilySpec],
    log: FileNumber,
) -> Result<()> {
    for spec in missing {
        if !options.create_missing_families {
            return Err(Error::invalid(format!("column family {:?} does not exist", spec.name)));
        }
        refuse_timestamps(&spec.order)?;
        versions.create_family(&spec.name, spec.order.clone(), spec.levels, log)?;
    }
    Ok(())
}

/// No open tables yet, and the pool of their blocks, within the budget.
pub(super) fn open_tables(options: &DbOptions, memory: &Memory) -> Arc<OpenTables> {
    let blocks = usize::try_from(options.block_cache_bytes).unwrap_or(usize::MAX);
    OpenTables::new(FramePool::within(blocks, memory.budget()))
}

/// [`open_tables`] for a database that is written: as many stay open as the options say, fewer where descriptors are short.
fn limited_tables(options: &DbOptions, memory: &Memory) -> Arc<OpenTables> {
    let tables = open_tables(options, memory);
    tables.set_limit(options.max_open_files);
    tables.heed_shortage();
    tables
}

/// What the options name to count into, or the database's own.
pub(super) fn statistics(env: &Env, options: &DbOptions) -> Arc<Statistics> {
    let own = || Arc::new(Statistics::at_level(StatsLevel::ExceptHistogramOrTimers));
    let statistics = options.statistics.clone().unwrap_or_else(own);
    statistics.attach(env.ticks());
    statistics
}

/// A family that would be made must be one that can be written.
pub(super) fn refuse_timestamps(order: &Order) -> Result<()> {
    match order.timestamp_len() {
        0 => Ok(()),
        _ => Err(Error::not_supported(format!("families with user-defined timestamps ({})", order.name()))),
    }
}

/// The LOCK of the database directory, and those of the directories beside it.
#[derive(Debug)]
struct Locks(
    #[expect(dead_code, reason = "held")] Box<dyn FileLock>,
    #[expect(dead_code, reason = "held")] Vec<Box<dyn FileLock>>,
);

impl FileLock for Locks {}

/// Locks the directory and those beside it, and takes over where the files are.
fn occupy(
    env: &Env,
    dir: &Path,
    options: &mut DbOptions,
    settings: &mut Settings,
) -> Result<(Entered, Box<dyn FileLock>)> {
    let mut env = hold_directory(env, dir)?;
    let lock = lock_directory(&mut env, dir, options)?;
    let mut entered = enter(&env, dir, &settings.places(options), Purpose::Write)?;
    let lock = Box::new(Locks(lock, entered.occupy(&*env.fs)?));
    settings.settle(options, &entered);
    Ok((entered, lock))
}

/// Locks the directory, which is made if it is missing and the options say so.
fn lock_directory(env: &mut Env, dir: &Path, options: &DbOptions) -> Result<Box<dyn FileLock>> {
    match survey(&*env.fs, dir)? {
        DirState::Database(_) if options.error_if_exists => {
            return Err(Error::invalid("there is a database already (error_if_exists is set)").at_path(dir));
        }
        DirState::Absent | DirState::Empty if !options.create_if_missing => {
            return Err(Error::invalid("there is no database (create_if_missing is off)").at_path(dir));
        }
        DirState::Absent => {
            make_directory(&*env.fs, dir)?;
            *env = hold_directory(env, dir)?;
        }
        _ => {}
    }
    env.fs.lock(&dir.join(FileKind::Lock.name()))
}

/// Makes a database in a locked directory that holds none. False: there is one, perhaps made by another process between
/// the first look and the lock.
fn create_if_empty(env: &Env, dir: &Path, settings: &Settings) -> Result<bool> {
    if let DirState::Database(_) = survey(&*env.fs, dir)? {
        return Ok(false);
    }
    refuse_timestamps(&settings.default_order())?;
    create_database(env, dir, &settings.default_order())?;
    Ok(true)
}

/// Begins the log of this session, and commits what replay flushed: from here on older logs are not needed.
fn begin_session(
    entered: &Entered,
    versions: &VersionSet,
    options: &DbOptions,
    edits: Vec<VersionEdit>,
    cut: bool,
) -> Result<Arc<Wal>> {
    entered.announce(|| versions.new_file_number())?;
    let wal = begin_log(&entered.env, versions.dir(), versions, options, cut)?;
    commit(versions, edits, wal.number())?;
    entered.places.leave_former();
    Ok(wal)
}

/// Begins the log of this session. After a cut it starts with an empty batch, synced, whose sequence tells a later
/// recovery that nothing is missing behind the damage.
fn begin_log(
    env: &Env,
    dir: &Path,
    versions: &VersionSet,
    options: &DbOptions,
    cut: bool,
) -> Result<Arc<Wal>> {
    let compressed = options.wal_compression != Compression::None;
    let shape = WalShape { compressed, buffered: options.manual_wal_flush };
    let wal = Wal::create(env, dir, versions.new_file_number(), shape)?;
    if cut {
        let next = versions.last_sequence().checked_add(1).unwrap_or(versions.last_sequence());
        wal.begin_at(next, None)?;
        wal.sync_to(wal.log().position())?;
    }
    Ok(Arc::new(wal))
}

/// One commit for all families: what replay flushed, and that older logs are not needed any more.
pub(super) fn commit(versions: &VersionSet, mut edits: Vec<VersionEdit>, wal: FileNumber) -> Result<()> {
    for family in versions.families() {
        match edits.iter_mut().find(|e| e.family == family.id) {
            Some(edit) => edit.log_number = Some(wal),
            None => edits.push(VersionEdit { log_number: Some(wal), ..VersionEdit::of(family.id) }),
        }
    }
    if let Some(first) = edits.first_mut() {
        first.min_log_to_keep = Some(wal);
        first.prev_log_number = Some(FileNumber(0));
    }
    versions.commit(edits)
}

/// What an open has made, ready to be put together.
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
    /// What replay left in memory; families that are not named begin empty.
    pub(super) memtables: BTreeMap<FamilyId, Arc<dyn MemtableRep>>,
    pub(super) health: Health,
    /// `None` where nothing may be written.
    pub(super) info_log: Option<InfoLog>,
}

impl Parts {
    pub(super) fn assemble(mut self, settings: &Settings) -> Arc<Core> {
        let (mut state, database) = (State::default(), DatabaseId::fresh());
        for family in self.versions.families() {
            let order = &family.version.order;
            let replayed = self.memtables.remove(&family.id);
            let options = settings.of(&family.name, order);
            let current = replayed.unwrap_or_else(|| new_memtable(&options, self.memory.budget()));
            let memtables = MemtableList::new(current, self.wal.number());
            let version = Arc::clone(&family.version);
            version.tables().count_into(&self.statistics);
            let ids = (database, family.id);
            state.families.insert(LiveFamily::new(ids, &family.name, options, memtables, version));
        }
        let set = Arc::new(Core::write_set(&state, &self.memory, self.wal));
        let tally = WriteTally::new(Arc::clone(&self.statistics));
        let committer =
            GroupCommitter::new((self.env.clone(), database), set, self.versions.last_sequence(), tally);
        let writer = Writer {
            file_checksums: self.options.file_checksums,
            db_paths: self.options.db_paths.clone(),
            statistics: Some(Arc::clone(&self.statistics)),
            ..Writer::new(&self.env, &self.versions, &self.session_id)
        };
        let (now, snapshots) = (self.env.clock.now(), SnapshotList::with_clock(Arc::clone(&self.env.clock)));
        let events = Events::new(&self.env, self.options.listeners.clone(), self.info_log, database);
        Arc::new_cyclic(|weak: &Weak<Core>| {
            committer.attach(Box::new(Host(weak.clone())));
            Core {
                database,
                progress: self.env.jobs.signal(),
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
                pressure: Pressure::new(),
                limiter: RateLimiter::new(),
                scrubbed: Mutex::new(Rank::Statistics, Scrubbed::default()),
                counters: Counters::new(now),
                recovery: self.report,
                writer,
                aborts: AtomicUsize::new(0),
                closed: AtomicBool::new(false),
                state: Mutex::new(Rank::State, state),
                hold: Mutex::new(Rank::Lifecycle, Some(self.hold)),
            }
        })
    }
}

impl Core {
    /// Writes the OPTIONS file of the present families.
    pub(super) fn write_options(&self) -> Result<()> {
        // The number first: of two files that are written at once, the one that counts has seen the later settings.
        let temp = self.pending.reserve(|| self.versions.new_file_number());
        let number = self.versions.new_file_number();
        let families: Vec<_> =
            self.state().families.iter().map(|f| (Arc::clone(&f.family), f.family.options())).collect();
        let listed: Vec<_> = families.iter().map(|(f, options)| (f.name(), &**options)).collect();
        let file = options_file(&self.options(), &listed);
        write_options_file(&self.env, &self.dir, &file, temp.number(), number)
    }
}
