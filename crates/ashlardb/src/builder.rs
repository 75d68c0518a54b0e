//! Opening with settings.
//!
//! A builder records the caller's settings. The open combines them with the stored ones: see `adopt`.

use crate::adopt::{Adopted, Recorded, SetFamily};
use crate::{
    Db, Env, Error, EventListener, FormatLevel, RepairReport, Resources, Result, Secondary, Statistics,
    Verified,
};
use ashlar_base::ext::prefix_extractor::PrefixExtractor;
use ashlar_base::ext::sst_partitioner::SstPartitionerFactory;
use ashlar_base::ext::table_properties_collector::TablePropertiesCollectorFactory;
use ashlar_base::memory::WriteBuffers;
use ashlar_base::{
    CompactionFilter, CompactionFilterFactory, Comparator, FilterSource, MergeOperator, Order,
};
use ashlar_cache::BlockCache;
use ashlar_options::{CompactionStyle, DbOptions, DbPath, FamilyOptions};
use ashlar_repair::Salvage;
use ashlar_tree::version::read_identity;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

pub use ashlar_format::compress::Compression;
pub use ashlar_log::RecoveryMode;

/// Settings for opening, repairing or salvaging a database. Every setting has a default.
///
/// An existing database opens with the settings of its newest OPTIONS file, RocksDB's or AshlarDB's. Settings of the builder
/// win, in whatever order the calls stand. [`Db::recovery`] names the stored settings that the engine does not use; the next
/// OPTIONS file keeps them for RocksDB. [`Builder::fresh_options`] starts from the defaults instead.
///
/// ```
/// # use ashlardb::prelude::*;
/// # use ashlardb::Compression;
/// # fn main() -> ashlardb::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// let db = Db::builder(dir.path().join("db"))
///     .memory(512 << 20)
///     .family("events", |f| f.compression(Compression::Zstd))
///     .open()?;
/// db.family("events")?.put(b"k", b"v")?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing is opened before open()"]
pub struct Builder {
    path: PathBuf,
    env: Option<Env>,
    recorded: Recorded,
    read_only: bool,
}

impl Builder {
    pub(crate) fn new(path: impl AsRef<Path>) -> Self {
        Builder {
            path: path.as_ref().to_path_buf(),
            env: None,
            recorded: Recorded::default(),
            read_only: false,
        }
    }

    fn database(mut self, set: impl Fn(&mut DbOptions) + Send + Sync + 'static) -> Self {
        self.recorded.database(Arc::new(set));
        self
    }

    /// Caps the memory of the database, in bytes: blocks, memtables, indexes, filters and buffers. The least cap is 16 MiB; the
    /// open refuses a smaller one with `InvalidArgument`. 0 stands for the default.
    ///
    /// The block cache gets three quarters of the cap, less what indexes, filters and buffers take. Memtables get one quarter.
    /// Default: a quarter of the memory that the process may use, from 64 MiB to 1 GiB.
    pub fn memory(mut self, bytes: u64) -> Self {
        self.recorded.memory = Some(bytes);
        self
    }

    /// Limits the disk space of the database's files, in bytes; 0, the default: no limit.
    ///
    /// Tables, blob files, WAL files, the MANIFEST, OPTIONS files and info logs count, also those that only cursors still hold.
    /// Memtables and running compactions count as the tables that they will make. So flushes keep to the quota.
    ///
    /// A write other than a deletion fails with `Io(NoSpace)` before it would pass the quota. Deletions and reads go on, and so
    /// do compactions that fit. While writes are refused or stopped, one compaction at a time may go beyond the quota. Writes resume
    /// by themselves once a sixty-fourth of the quota, at most 64 MiB, is free. [`Db::limit_disk`] changes the quota of an open database.
    ///
    /// ```
    /// # use ashlardb::prelude::*;
    /// # fn main() -> ashlardb::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// let db = Db::builder(dir.path().join("db")).disk_quota(10 << 30).disk_reserve(1 << 20).open()?;
    /// db.put("k", "v")?;
    /// assert!(db.disk_use().room > Some(0));
    /// # Ok(())
    /// # }
    /// ```
    pub fn disk_quota(self, bytes: u64) -> Self {
        self.database(move |db| db.disk_quota_bytes = bytes)
    }

    /// Leaves so many bytes free on each file system with files of the database; 0, the default: none.
    ///
    /// As [`Builder::disk_quota`], but it looks at the free space of the file system, which other programs take too.
    pub fn disk_reserve(self, bytes: u64) -> Self {
        self.database(move |db| db.disk_reserve_bytes = bytes)
    }

    /// Opens the database with resources that it shares with other databases of the process: one memory cap with one block
    /// cache, one limit on background writing, and one pool of background threads.
    ///
    /// ```
    /// # use ashlardb::prelude::*;
    /// # use ashlardb::Resources;
    /// # fn main() -> ashlardb::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// let resources = Resources::new(256 << 20).threads(4);
    /// let users = Db::builder(dir.path().join("users")).resources(&resources).open()?;
    /// let events = Db::builder(dir.path().join("events")).resources(&resources).open()?;
    /// users.put("u", "1")?;
    /// events.put("e", "1")?;
    /// assert_eq!(resources.databases(), 2);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The memtables of all databases together get a quarter of the cap. Each database is guaranteed its part of this quarter,
    /// and may use what the others leave of it. Databases take turns on the threads, step by step, so many compactions of one
    /// database delay a flush or compaction of another one by a step each. Properties and statistics about the memory cap and
    /// the block cache show all databases together. A repair or a salvage does not use the resources.
    ///
    /// The first open decides the threads and the clock of the limit: all databases should have the same kind of [`Env`].
    /// A stored `memory` or block cache size has no effect meanwhile.
    ///
    /// # Errors
    /// The open answers `InvalidArgument` if the builder also sets [`Builder::memory`], the size of a block cache or
    /// `max_background_jobs`, or if the resources have less than 16 MiB. It answers `Busy(Memory)` if the cap has less than
    /// 16 MiB for each open database.
    pub fn resources(mut self, resources: &Resources) -> Self {
        self.recorded.resources = Some(resources.engine().clone());
        self
    }

    /// Opens the database with a block cache that it shares with other databases of the process. The cached blocks of all of them
    /// together never exceed its capacity. Each database also stays within its own cap on memory. The size of a block cache that
    /// is set or stored has no effect. Not together with [`Builder::resources`], whose databases share a cache already.
    ///
    /// ```
    /// # use ashlardb::prelude::*;
    /// # use ashlardb::BlockCache;
    /// # fn main() -> ashlardb::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// let cache = BlockCache::new(64 << 20);
    /// let users = Db::builder(dir.path().join("users")).block_cache(&cache).open()?;
    /// let events = Db::builder(dir.path().join("events")).block_cache(&cache).open()?;
    /// users.put("u", "1")?;
    /// events.put("e", "1")?;
    /// assert!(cache.used() <= cache.capacity());
    /// # Ok(())
    /// # }
    /// ```
    pub fn block_cache(self, cache: &Arc<BlockCache>) -> Self {
        let cache = Arc::clone(cache);
        self.database(move |db| db.block_cache = Some(Arc::clone(&cache)))
    }

    /// Opens the database with a limit on memtables that it shares with other databases of the process, besides its own. A database
    /// may have what the others leave of the limit, and 512 KiB at least. Flushed memtables that a reader holds count too. Not together with [`Builder::resources`], whose databases
    /// share such a limit already.
    ///
    /// ```
    /// # use ashlardb::prelude::*;
    /// # use ashlardb::WriteBuffers;
    /// # fn main() -> ashlardb::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// let limit = WriteBuffers::new(8 << 20);
    /// let users = Db::builder(dir.path().join("users")).write_buffers(&limit).open()?;
    /// let events = Db::builder(dir.path().join("events")).write_buffers(&limit).open()?;
    /// users.put("u", "1")?;
    /// events.put("e", "1")?;
    /// assert!(limit.held() <= limit.limit());
    /// # Ok(())
    /// # }
    /// ```
    pub fn write_buffers(self, limit: &Arc<WriteBuffers>) -> Self {
        let limit = Arc::clone(limit);
        self.database(move |db| db.write_buffers = Some(Arc::clone(&limit)))
    }

    /// Starts from the defaults instead of the settings in the directory's OPTIONS file. Two things still come from the
    /// directory: at least as many levels as its tables need, and the built-in merge operators, by their names.
    pub fn fresh_options(mut self) -> Self {
        self.recorded.fresh = true;
        self
    }

    /// Sets options of the family `default`, and of every family that no [`Builder::family`] names. An existing family
    /// keeps its own comparator and merge operator.
    pub fn default_family(mut self, set: impl FnOnce(FamilyBuilder) -> FamilyBuilder) -> Self {
        self.recorded.default_family(set(FamilyBuilder::default()).sets);
        self
    }

    /// Sets options of one family, and creates the family if it does not exist. Its settings start from those of
    /// [`Builder::default_family`], whether that call stands before or after this one.
    pub fn family(mut self, name: &str, set: impl FnOnce(FamilyBuilder) -> FamilyBuilder) -> Self {
        self.recorded.family(name, set(FamilyBuilder::default()).sets);
        self
    }

    /// Whether an open creates the database when the directory holds none. Default: true.
    pub fn create(self, yes: bool) -> Self {
        self.database(move |db| db.create_if_missing = yes)
    }

    /// Makes the open fail with `InvalidArgument` when the directory already holds a database. Default: off.
    pub fn must_be_new(self) -> Self {
        self.database(move |db| db.error_if_exists = true)
    }

    /// Opens for reading only; see [`Db::open_read_only`]. Default: false.
    pub fn read_only(mut self, yes: bool) -> Self {
        self.read_only = yes;
        self
    }

    /// The oldest RocksDB release that must be able to open the directory after `close`. Default: [`FormatLevel::V9_11`].
    ///
    /// Existing files keep their format until a compaction rewrites them; `ashlar db DIR rewrite` rewrites all of them.
    pub fn format_level(self, level: FormatLevel) -> Self {
        self.database(move |db| db.format_level = level)
    }

    /// How replay treats a damaged WAL file. Default: [`RecoveryMode::PointInTime`], which applies everything before the
    /// damage and nothing after it.
    pub fn recovery_mode(self, mode: RecoveryMode) -> Self {
        self.database(move |db| db.recovery_mode = mode)
    }

    /// The compression of WAL records: none, the default, or zstd. Zstd writes fewer bytes and takes processor time for
    /// each batch.
    pub fn wal_compression(self, compression: Compression) -> Self {
        self.database(move |db| db.wal_compression = compression)
    }

    /// The directory of the WAL files (RocksDB's `wal_dir`). Default: the one in the newest OPTIONS file, or else the
    /// database directory. The open reads needed WAL files from the previous directory, and leaves them there.
    pub fn wal_dir(mut self, dir: impl AsRef<Path>) -> Self {
        let dir = dir.as_ref().to_path_buf();
        self.recorded.both(Arc::new(move |db, _| {
            db.wal_dir = text_of(&dir)?;
            Ok(())
        }));
        self
    }

    /// Adds a directory for tables, with its target size in bytes (RocksDB's `db_paths`, in the same order, four at most).
    ///
    /// Upper levels go to the first directories as far as the target sizes allow; the last directory takes the rest. Default:
    /// the directories of the last open by AshlarDB, or else the database directory. RocksDB does not store `db_paths`: give
    /// them once for a database that RocksDB made with them.
    pub fn db_path(self, dir: impl AsRef<Path>, target_bytes: u64) -> Self {
        let path = DbPath::new(dir.as_ref(), target_bytes);
        self.database(move |db| db.db_paths.push(path.clone()))
    }

    /// Keeps WAL records in the process, up to 1 MiB, until [`Db::flush_wal`], a sync, a full memtable or the close. A killed
    /// process loses the records that it kept. Default: false.
    pub fn manual_wal_flush(self, yes: bool) -> Self {
        self.database(move |db| db.manual_wal_flush = yes)
    }

    /// Stores small WAL records into a mapping of the end of the WAL file, so that most unsynced writes cost no system call. A
    /// killed process loses no write that returned, with or without the mapping. Only on ext4 and XFS of Linux on x86-64, and
    /// not with [`RecoveryMode::Absolute`]. The process gets a handler for SIGBUS, which passes
    /// signals for other memory on; `false` leaves the process's handlers as they are. Default: true.
    pub fn mapped_wal(self, yes: bool) -> Self {
        self.database(move |db| db.mapped_wal = yes)
    }

    /// The rate, in bytes per second, at which the scrubber reads tables and blob files, round after round, to find damage
    /// before a read meets it. A round takes at least one hour. 0, the default: no scrubber. See [`Db::scrubbed`].
    pub fn scrub(self, bytes_per_second: u64) -> Self {
        self.database(move |db| db.scrub_bytes_per_second = bytes_per_second)
    }

    /// The source of files, time, threads and randomness. Default: the operating system.
    pub fn env(mut self, env: Env) -> Self {
        self.env = Some(env);
        self
    }

    /// Adds a listener for flushes, compactions, files, stalls and errors. Listeners are called in the order of these calls.
    pub fn listener(self, listener: Arc<dyn EventListener>) -> Self {
        self.database(move |db| db.listeners.add(Arc::clone(&listener)))
    }

    /// The statistics that the database counts into; several databases may share them. Default: its own, with tickers only.
    pub fn statistics(self, statistics: Arc<Statistics>) -> Self {
        self.database(move |db| db.statistics = Some(Arc::clone(&statistics)))
    }

    /// Sets options of the database and of the family `default` by RocksDB's names: `write_buffer_size=64M;compression=kZSTD`.
    /// `ashlar options explain NAME` says whether and how the engine uses a name.
    ///
    /// The open reports errors in the string: `InvalidArgument` for an unknown name, a wrong value or settings that RocksDB
    /// refuses together, `NotSupported` for an option that AshlarDB refuses.
    pub fn options(mut self, text: &str) -> Self {
        self.recorded.text(text);
        self
    }

    /// Gives the values of every family a time to live, in RocksDB's format (`DBWithTTL`): each put value and merge operand is
    /// stored with the time of its write. Reads hide what is over at once, and compactions remove it. A merge renews its key.
    /// Times are whole seconds, so a value may show for a second longer. Zero: nothing is ever over. The longest time is
    /// 2,147,483,647 seconds; longer ones count as that.
    ///
    /// Like RocksDB, the database needs this setting at each open; without it, the open is read-only, and values end in 4 bytes of
    /// time.
    ///
    /// An existing family must have been written with a time to live. It refuses entities and ingestion.
    pub fn ttl(self, ttl: Duration) -> Self {
        self.tune(move |_, family| family.value_ttl_secs = Some(seconds(ttl)))
    }

    /// Changes the engine's own settings, for those without a method here. The open may call `set` several times: once for
    /// the database with the family `default`, and once for each other family that exists.
    pub fn tune(mut self, set: impl Fn(&mut DbOptions, &mut FamilyOptions) + Send + Sync + 'static) -> Self {
        self.recorded.both(Arc::new(move |db, family| {
            set(db, family);
            Ok(())
        }));
        self
    }

    /// Turns a damaged directory into a database that opens, and reports every loss. No process may have it open.
    ///
    /// Settings come from the OPTIONS file and the builder, as in an open. Damaged files move to `lost/` in the directory.
    /// `progress` is called after each table. [`Builder::salvage`] leaves the directory unchanged.
    ///
    /// # Errors
    /// `Busy(Locked)`: a process has the database open. `InvalidArgument`: there is no directory, or the comparator of a family
    /// is not known. `NotSupported`: the WAL files hold entries that AshlarDB cannot write. `Io`: a read failed, which does
    /// not prove damage; the repair gave nothing up.
    /// # Cost
    /// Reads every byte of the database once, and rewrites each damaged table and each WAL file.
    pub fn repair(self, mut progress: impl FnMut(&Verified)) -> Result<RepairReport> {
        let Opening { env, path, adopted, .. } = self.for_repair()?;
        let Adopted { db, families, others, notices, .. } = adopted;
        let mut report = ashlar_repair::repair(env, &path, db, families, others, &mut progress)?;
        report.remarks.extend(notices);
        Ok(report)
    }

    /// Makes the database of a [`Builder::repair`] in a new directory `into`, and leaves every byte of the damaged one as it
    /// is. Both share tables and blob files by hard links where the file system can. After an interruption, remove `into`.
    ///
    /// # Errors
    /// Those of [`Builder::repair`]. `InvalidArgument` also when `into` is not empty, or is inside the damaged directory.
    pub fn salvage(self, into: impl AsRef<Path>, progress: impl FnMut(&Verified)) -> Result<RepairReport> {
        self.copied(into.as_ref(), false, progress)
    }

    /// [`Builder::salvage`] from a device that cannot read all of the directory. It copies every file, writes zeros for each
    /// 4 KiB that it cannot read, and reports the keys that this hits as losses.
    ///
    /// # Errors
    /// Those of [`Builder::salvage`], except failed reads of files.
    pub fn salvage_around_unreadable(
        self,
        into: impl AsRef<Path>,
        progress: impl FnMut(&Verified),
    ) -> Result<RepairReport> {
        self.copied(into.as_ref(), true, progress)
    }

    fn copied(
        self,
        into: &Path,
        around_unreadable: bool,
        mut progress: impl FnMut(&Verified),
    ) -> Result<RepairReport> {
        let Opening { env, path, adopted, .. } = self.for_repair()?;
        let Adopted { db, families, others, notices, .. } = adopted;
        let salvage = Salvage { dir: &path, into, around_unreadable };
        let mut report = ashlar_repair::salvage(env, salvage, db, families, others, &mut progress)?;
        report.remarks.extend(notices);
        Ok(report)
    }

    /// Removes the database: every file of the directory that is a database's, and the directory if nothing else is in it. The
    /// directories of its tables and WAL files are emptied too, if their file `OWNER` names this database. Without a directory
    /// there is nothing to do, and an empty directory is removed: an interrupted removal may have left it.
    ///
    /// # Errors
    /// `Busy(Locked)`: a process has the database open. `InvalidArgument`: there is no database in the directory, or another
    /// database keeps its tables or WAL files there. `NotSupported`:
    /// a directory beside it may be that of another database; nothing was removed. `Io`: a file could not be removed; call again.
    pub fn destroy(self) -> Result<()> {
        let env = self.env.map_or_else(Env::os, Ok)?;
        ashlar_repair::destroy(&env, &self.path)
    }

    /// Reads the stored settings, even when other files of the database are missing.
    fn for_repair(self) -> Result<Opening> {
        let env = self.env.map_or_else(Env::os, Ok)?;
        let adopted = self.recorded.over_any(&env, &self.path, true)?;
        Ok(Opening { env, path: self.path, adopted })
    }

    /// Opens the database.
    ///
    /// # Errors
    /// Those of [`Db::open`]. `InvalidArgument` also for a setting out of range or above the format level; see
    /// [`Builder::options`].
    pub fn open(self) -> Result<Db> {
        let env = self.env.map_or_else(Env::os, Ok)?;
        let Adopted { db, families, others, ttl_of_all, .. } =
            self.recorded.over_database(&env, &self.path)?;
        let resources = self.recorded.resources.as_ref();
        let open = match self.read_only {
            true => ashlar_engine::Db::open_read_only_within,
            false => ashlar_engine::Db::open_within,
        };
        Db::wrap(open(resources, env, &self.path, db, families, others)?, ttl_of_all)
    }

    /// The database id in the IDENTITY file; `None`: the file is missing or cannot be read.
    pub(crate) fn identity(&self) -> Option<String> {
        let env = self.env.clone().map_or_else(Env::os, Ok).ok()?;
        read_identity(&*env.fs, &self.path).ok()?
    }

    /// The builder for a later view of a directory: a family that it names may have been dropped.
    pub(crate) fn for_later_view(mut self) -> Self {
        self.recorded.only_if_there = true;
        self
    }

    /// Opens a view that follows the database; see [`Db::open_secondary`].
    ///
    /// # Errors
    /// Those of [`Db::open_read_only`].
    pub fn open_secondary(self) -> Result<Secondary> {
        Secondary::open(self)
    }
}

/// The settings and directories of a repair.
struct Opening {
    env: Env,
    path: PathBuf,
    adopted: Adopted,
}

/// Whole seconds, at least 1 unless it is zero.
fn seconds(ttl: Duration) -> i32 {
    let least = u64::from(!ttl.is_zero());
    i32::try_from(ttl.as_secs().max(least)).unwrap_or(i32::MAX)
}

/// A path as the option strings and OPTIONS files hold it.
fn text_of(path: &Path) -> Result<String> {
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| {
        Error::invalid("wal_dir is not UTF-8, and an OPTIONS file cannot store it").at_path(path)
    })
}

/// Settings of one family; see [`Builder::family`] and [`Builder::default_family`].
#[derive(Clone, Default)]
#[must_use = "settings hold in the builder that is returned"]
pub struct FamilyBuilder {
    sets: Vec<SetFamily>,
}

impl std::fmt::Debug for FamilyBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FamilyBuilder").field("settings", &self.sets.len()).finish()
    }
}

impl FamilyBuilder {
    /// Sets `options` as the calls of this builder say, in their order.
    pub(crate) fn apply(&self, options: &mut FamilyOptions) -> Result<()> {
        self.sets.iter().try_for_each(|set| set(options))
    }

    fn set(mut self, set: impl Fn(&mut FamilyOptions) + Send + Sync + 'static) -> Self {
        self.sets.push(Arc::new(move |options| {
            set(options);
            Ok(())
        }));
        self
    }

    /// The size of a memtable, in bytes, at which it is flushed: 64 KiB to 4 GiB. Default: 64 MiB, or less under a small
    /// [`Builder::memory`].
    pub fn write_buffer(self, bytes: usize) -> Self {
        self.set(move |options| options.write_buffer_bytes = bytes)
    }

    /// The compression of table blocks. Default: [`Compression::Lz4`].
    pub fn compression(self, compression: Compression) -> Self {
        self.set(move |options| options.table.compression = compression)
    }

    /// The order of the family's keys. Default: ascending byte order. The database stores the comparator's name, and opens
    /// only with a comparator of that name. One with the name of a built-in order must order keys as that one does, and the
    /// engine then uses the built-in order.
    pub fn comparator(self, comparator: Arc<dyn Comparator>) -> Self {
        self.set(move |options| options.order = Order::of(Arc::clone(&comparator)))
    }

    /// The operator that turns merge operands into a value. Default: none. Without one, a family refuses merges, and reading
    /// a key with operands fails with `InvalidArgument`.
    pub fn merge_operator(self, operator: Arc<dyn MergeOperator>) -> Self {
        self.set(move |options| options.merge_operator = Some(Arc::clone(&operator)))
    }

    /// The filter that decides in compactions which values stay. Default: none. It holds for this family only. The database
    /// stores its name. An open without the filter keeps all values and reports that.
    pub fn compaction_filter(self, filter: Arc<dyn CompactionFilter>) -> Self {
        self.set(move |options| options.compaction_filter = Some(FilterSource::Filter(Arc::clone(&filter))))
    }

    /// Makes a filter for each compaction, in place of [`FamilyBuilder::compaction_filter`].
    pub fn compaction_filter_factory(self, factory: Arc<dyn CompactionFilterFactory>) -> Self {
        self.set(move |options| options.compaction_filter = Some(FilterSource::Factory(Arc::clone(&factory))))
    }

    /// Decides where compactions begin new tables; see [`SstPartitionerFactory`]. Default: their size and their overlap with the
    /// next level do. The database stores the name. An open without the partitioner cuts as by default and reports that.
    /// (RocksDB: `sst_partitioner_factory`.)
    pub fn sst_partitioner(self, factory: Arc<dyn SstPartitionerFactory>) -> Self {
        self.set(move |options| options.sst_partitioner = Some(Arc::clone(&factory)))
    }

    /// Collects properties of each table that is written from now on; see [`TablePropertiesCollector`]. Several may be given; one
    /// takes the place of another with the same name. The database stores the name. An open without the factory collects
    /// nothing for it and reports that. (RocksDB: `table_properties_collector_factories`.)
    ///
    /// [`TablePropertiesCollector`]: crate::TablePropertiesCollector
    pub fn table_properties_collector(self, factory: Arc<dyn TablePropertiesCollectorFactory>) -> Self {
        self.set(move |options| options.table.add_collector(Arc::clone(&factory)))
    }

    /// [`Builder::ttl`] for this family.
    pub fn ttl(self, ttl: Duration) -> Self {
        self.set(move |options| options.value_ttl_secs = Some(seconds(ttl)))
    }

    /// Sorts keys in descending byte order, as RocksDB's `rocksdb.ReverseBytewiseComparator` does.
    pub fn reverse_order(self) -> Self {
        self.set(|options| options.order = Order::ReverseBytewise)
    }

    /// Sets options of the family by RocksDB's names; see [`Builder::options`].
    pub fn options(mut self, text: &str) -> Self {
        let text = text.to_owned();
        self.sets.push(Arc::new(move |options| options.apply(&text).map(drop)));
        self
    }

    /// Stores values of at least `min_bytes` bytes in blob files, which compactions do not rewrite. Garbage collection
    /// empties old blob files. Default: no blob files.
    pub fn blob_files(self, min_bytes: u64) -> Self {
        self.set(move |options| {
            let blob = &mut options.blob;
            (blob.enabled, blob.min_blob_bytes, blob.collect_garbage) = (true, min_bytes, true);
        })
    }

    /// How the family's tables are compacted. Default: [`CompactionStyle::Level`]. An existing family keeps its stored style;
    /// another one may be given at any open. A family of [`CompactionStyle::Fifo`] deletes its oldest tables, with their
    /// entries, once all tables exceed `max_table_files_size` of `compaction_options_fifo` (1 GiB). (RocksDB:
    /// `compaction_style`.)
    pub fn compaction_style(self, style: CompactionStyle) -> Self {
        self.set(move |options| options.compaction.style = style)
    }

    /// The prefixes that filters of new tables hold beside keys. Default: none. A scan whose keys all have one prefix, as those
    /// of [`crate::Read::prefix`] with a prefix at least that long, skips tables without it. The answers are the same. No effect
    /// with a [`Comparator`]. `PrefixExtractor::Custom` takes a rule of the user's own; without it a later open leaves the prefixes
    /// of its tables unused. In descending order tables get prefixes that only RocksDB asks for. (RocksDB:
    /// `prefix_extractor`.)
    pub fn prefix_extractor(self, extractor: PrefixExtractor) -> Self {
        self.set(move |options| options.table.prefix_extractor = Some(extractor.clone()))
    }

    /// Adds a directory for the family's tables (RocksDB's `cf_paths`), in place of those of the database; see
    /// [`Builder::db_path`]. A directory given for `default` holds for that family alone.
    pub fn cf_path(self, dir: impl AsRef<Path>, target_bytes: u64) -> Self {
        let path = DbPath::new(dir.as_ref(), target_bytes);
        self.set(move |options| options.cf_paths.push(path.clone()))
    }

    /// Changes the engine's own settings, for those without a method here. The open may call `set` several times.
    pub fn tune(self, set: impl Fn(&mut FamilyOptions) + Send + Sync + 'static) -> Self {
        self.set(set)
    }
}
