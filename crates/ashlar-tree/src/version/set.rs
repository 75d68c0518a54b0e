//! The version set: the current tree of every family, and the counters. `commit` has what changes them.
//!
//! Source: RocksDB `db/version_set.cc`.

use super::plan::State;
use super::queue::{ManifestState, Queue};
use super::{DbFacts, FamilyState, OpenTables, Tables, Version};
use ashlar_base::{Error, FamilyId, FileNumber, SeqNum};
use ashlar_env::Env;
use ashlar_options::FormatLevel;
use ashlar_sync::atomic::{AtomicU64, Ordering};
use ashlar_sync::{Mutex, Rank, RwLock, Signal};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

/// A MANIFEST larger than this (and than four times its beginning) is replaced by a new one.
pub const MANIFEST_BOUND: u64 = 64 << 20;

/// The state that any thread may read at any time.
pub(super) struct Published {
    pub(super) state: State,
    pub manifest: FileNumber,
    /// The durable length of that MANIFEST; `None`: this version set has not written to it.
    pub manifest_bytes: Option<u64>,
    /// An append failed: until the next MANIFEST is durable, the state after a crash is not known.
    pub(super) doubtful: bool,
    pub(super) fatal: Option<Error>,
    /// All versions that a reader may still use.
    pub(super) versions: Vec<Weak<Version>>,
}

/// The state with which a recovery or a new database creates the set.
pub struct Beginning {
    /// The MANIFEST's data about the whole database.
    pub db: DbFacts,
    /// The families of the open.
    pub families: Vec<FamilyState>,
    /// The number of the next file.
    pub next_file: FileNumber,
    /// The newest sequence that the tables may hold.
    pub last_seq: SeqNum,
    /// The MANIFEST that `CURRENT` names.
    pub manifest: FileNumber,
}

/// See the module.
pub struct VersionSet {
    pub(super) env: Env,
    pub(super) dir: PathBuf,
    pub(super) level: FormatLevel,
    /// New MANIFESTs get the id of the database.
    pub(super) has_id: bool,
    tables: Arc<OpenTables>,
    next_file: AtomicU64,
    last_seq: AtomicU64,
    pub(super) queue: Mutex<Queue>,
    pub(super) signal: Signal,
    // A leaf lock, so that a thread with any state lock may read the current versions.
    pub(super) published: RwLock<Published>,
}

impl VersionSet {
    /// The versions of the database in `dir`, whose MANIFEST is written at `level`.
    pub fn new(
        env: Env,
        dir: PathBuf,
        level: FormatLevel,
        tables: Arc<OpenTables>,
        beginning: Beginning,
    ) -> VersionSet {
        let families: BTreeMap<_, _> = beginning.families.into_iter().map(|f| (f.id, Arc::new(f))).collect();
        let state = State { db: beginning.db, families };
        let versions = state.families.values().map(|f| Arc::downgrade(&f.version)).collect();
        let published = Published {
            state: state.clone(),
            manifest: beginning.manifest,
            manifest_bytes: None,
            doubtful: false,
            fatal: None,
            versions,
        };
        let manifest_state = ManifestState::new(state);
        let queue = Queue {
            manifest_state: Some(manifest_state),
            waiting: VecDeque::new(),
            answers: BTreeMap::new(),
            next_ticket: 0,
            bound: MANIFEST_BOUND,
        };
        VersionSet {
            signal: env.jobs.signal(),
            env,
            dir,
            level,
            has_id: true,
            tables,
            next_file: AtomicU64::new(beginning.next_file.0),
            last_seq: AtomicU64::new(beginning.last_seq.get()),
            queue: Mutex::new(Rank::Manifest, queue),
            published: RwLock::new(Rank::Leaf, published),
        }
    }

    /// The open tables.
    pub fn tables(&self) -> &Arc<OpenTables> {
        &self.tables
    }

    /// The database's directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Takes the next file number, which is never returned again. Takes no lock.
    pub fn new_file_number(&self) -> FileNumber {
        // Relaxed: the counter orders no other memory access.
        FileNumber(self.next_file.fetch_add(1, Ordering::Relaxed))
    }

    /// The smallest number that the next call of [`VersionSet::new_file_number`] may return.
    pub fn next_file_number(&self) -> FileNumber {
        FileNumber(self.next_file.load(Ordering::Relaxed))
    }

    /// Reserves the numbers up to `n`. A number above [`FileNumber::HIGHEST`] changes nothing: only a repair meets
    /// files with such a number, and it goes on with lower ones.
    pub fn mark_file_number_used(&self, n: FileNumber) {
        if n > FileNumber::HIGHEST {
            return;
        }
        self.next_file.fetch_max(n.0.saturating_add(1), Ordering::Relaxed);
    }

    /// The last sequence number that commits record.
    pub fn last_sequence(&self) -> SeqNum {
        SeqNum::new(self.last_seq.load(Ordering::Relaxed)).unwrap_or(SeqNum::MAX)
    }

    /// Raises the last sequence number that commits record; lower values change nothing. A commit itself raises it to
    /// the sequence numbers of its tables.
    pub fn raise_last_sequence(&self, seq: SeqNum) {
        self.last_seq.fetch_max(seq.get(), Ordering::Relaxed);
    }

    /// Sets the size in bytes above which a MANIFEST is replaced by a new one. Default: [`MANIFEST_BOUND`].
    pub fn set_manifest_bound(&self, bytes: u64) {
        self.queue.lock().bound = bytes;
    }

    /// From now on a new MANIFEST does not get the id of the database (RocksDB: `write_dbid_to_manifest=false`).
    pub fn keep_id_apart(&mut self) {
        self.has_id = false;
    }

    /// The MANIFEST's data about the whole database.
    pub fn db_facts(&self) -> DbFacts {
        self.published.read().state.db.clone()
    }

    /// The families in id order, as of the last durable commit.
    pub fn families(&self) -> Vec<Arc<FamilyState>> {
        self.published.read().state.families.values().map(Arc::clone).collect()
    }

    /// One family, as of the last durable commit.
    pub fn family(&self, id: FamilyId) -> Option<Arc<FamilyState>> {
        self.published.read().state.families.get(&id).map(Arc::clone)
    }

    /// The MANIFEST that `CURRENT` names.
    pub fn manifest_number(&self) -> FileNumber {
        self.published.read().manifest
    }

    /// The MANIFEST that `CURRENT` names, and its durable length; `None`: this version set has not written to it.
    pub fn manifest_durable(&self) -> (FileNumber, Option<u64>) {
        let published = self.published.read();
        (published.manifest, published.manifest_bytes)
    }

    /// False while it is unknown which of two MANIFESTs a crash would leave, and after a fatal failure. Then no file
    /// that either MANIFEST names may be unlinked.
    pub fn may_unlink(&self) -> bool {
        let published = self.published.read();
        !published.doubtful && published.fatal.is_none()
    }

    /// The failure after which only a new open helps.
    pub fn fatal(&self) -> Option<Error> {
        self.published.read().fatal.clone()
    }

    /// The smallest WAL that holds unflushed data, by the log numbers of the families.
    pub fn min_wal(&self) -> FileNumber {
        let published = self.published.read();
        let families = published.state.families.values().map(|f| f.log_number).min();
        published.state.db.min_log_to_keep.max(families.unwrap_or_default())
    }

    /// Tables and blob files of every version that a reader may still use.
    ///
    /// # Cost
    /// Proportional to the files of all live versions.
    pub fn live_files(&self) -> (BTreeSet<FileNumber>, BTreeSet<FileNumber>) {
        let mut published = self.published.write();
        published.versions.retain(|v| v.strong_count() != 0);
        let versions: Vec<_> = published.versions.iter().filter_map(Weak::upgrade).collect();
        drop(published);
        // The lock is released here: this may be the last reference to a version, and dropping a version closes files.
        let blobs = versions.iter().flat_map(|v| v.blobs().files().keys().copied()).collect();
        let tables = versions.iter().flat_map(|v| v.files().map(|(_, f)| f.number())).collect();
        (tables, blobs)
    }

    /// Whether the indexes and filters of all tables are [large](OpenTables::large_indexes). Then a table should be written such that
    /// a read needs only parts of them.
    ///
    /// # Cost
    /// Proportional to the files of all current versions.
    pub fn indexes_are_large(&self) -> bool {
        let Some(large) = self.tables.large_indexes() else { return false };
        let families = self.families();
        let files = families.iter().flat_map(|family| family.version.files());
        files.map(|(_, file)| file.index_bytes()).sum::<u64>() > large as u64
    }

    /// Whether something still holds a version that another one has replaced.
    pub fn holds_replaced(&self) -> bool {
        let published = self.published.read();
        let live = published.versions.iter().filter(|v| v.strong_count() != 0).count();
        live > published.state.families.len()
    }

    /// The versions of the family with these tables that a reader may still use.
    pub fn live_versions(&self, tables: &Arc<Tables>) -> Vec<Arc<Version>> {
        let versions: Vec<_> = {
            let published = self.published.read();
            published.versions.iter().filter_map(Weak::upgrade).collect()
        };
        versions.into_iter().filter(|v| Arc::ptr_eq(v.tables(), tables)).collect()
    }
}

impl fmt::Debug for VersionSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VersionSet")
            .field("dir", &self.dir)
            .field("manifest", &self.manifest_number())
            .field("next_file", &self.next_file_number())
            .field("last_sequence", &self.last_sequence())
            .finish_non_exhaustive()
    }
}
