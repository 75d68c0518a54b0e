//! Opening with settings.
//!
//! A builder records what the caller sets. The settings are made when it opens: see `adopt`.

use crate::adopt::{Adopted, Recorded, SetFamily};
use crate::{Db, Env, Error, EventListener, FormatLevel, RepairReport, Result, Statistics, Verified};
use ashlar_base::{Comparator, MergeOperator, Order};
use ashlar_engine::Salvage;
use ashlar_options::{DbOptions, DbPath, FamilyOptions};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use ashlar_format::compress::Compression;
pub use ashlar_log::RecoveryMode;

/// How a database is opened. Everything has a default.
///
/// A database that exists is opened with the settings of its newest OPTIONS file, RocksDB's or ours; what is set here wins,
/// in whatever order it is set. What of the file is not followed [`Db::recovery`] says, and it is kept for RocksDB.
/// [`Builder::fresh_options`] starts from our defaults instead.
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

    /// The cap on everything the database keeps in memory: up to three quarters for blocks, a quarter for write buffers,
    /// and what indexes, filters and buffers take goes off the blocks. At least 16 MiB.
    pub fn memory(mut self, bytes: u64) -> Self {
        self.recorded.memory = Some(bytes);
        self
    }

    /// Starts from our defaults instead of the settings that the directory's OPTIONS file holds. The number of levels is
    /// never below what the tables need, and merge operators come back by their names all the same.
    pub fn fresh_options(mut self) -> Self {
        self.recorded.fresh = true;
        self
    }

    /// Settings of the family `default`, which are those of every family that is not named. A family that exists keeps its
    /// own comparator and merge operator.
    pub fn default_family(mut self, set: impl FnOnce(FamilyBuilder) -> FamilyBuilder) -> Self {
        self.recorded.default_family(set(FamilyBuilder::default()).sets);
        self
    }

    /// Opens a family, making it if it does not exist. Its settings start from those set for `default`, before or behind
    /// this call.
    pub fn family(mut self, name: &str, set: impl FnOnce(FamilyBuilder) -> FamilyBuilder) -> Self {
        self.recorded.family(name, set(FamilyBuilder::default()).sets);
        self
    }

    /// Make the database when there is none (on by default).
    pub fn create(self, yes: bool) -> Self {
        self.database(move |db| db.create_if_missing = yes)
    }

    /// Refuse a directory that holds a database already.
    pub fn must_be_new(self) -> Self {
        self.database(move |db| db.error_if_exists = true)
    }

    /// Only read: see [`Db::open_read_only`].
    pub fn read_only(mut self, yes: bool) -> Self {
        self.read_only = yes;
        self
    }

    /// The RocksDB release that must be able to open the directory after `close`.
    pub fn format_level(self, level: FormatLevel) -> Self {
        self.database(move |db| db.format_level = level)
    }

    /// What replay does with a damaged log.
    pub fn recovery_mode(self, mode: RecoveryMode) -> Self {
        self.database(move |db| db.recovery_mode = mode)
    }

    /// How records of the log are compressed: not at all, or with zstd. Saves writing where values shrink, costs a
    /// compressor's time per batch.
    pub fn wal_compression(self, compression: Compression) -> Self {
        self.database(move |db| db.wal_compression = compression)
    }

    /// The directory of the logs (RocksDB's `wal_dir`). Without this call it is the one of the newest OPTIONS file, or the
    /// database directory. Logs that the database needs and that are in the directory of before are read there.
    pub fn wal_dir(mut self, dir: impl AsRef<Path>) -> Self {
        let dir = dir.as_ref().to_path_buf();
        self.recorded.both(Arc::new(move |db, _| {
            db.wal_dir = text_of(&dir)?;
            Ok(())
        }));
        self
    }

    /// One more directory of tables, and how many bytes of them it is meant to hold (RocksDB's `db_paths`, in this order,
    /// four at most): upper levels go to the first ones, the last one takes the rest. Without this call the directories
    /// are those that an earlier open by this engine was given, or the database directory. RocksDB does not store them:
    /// give them once for a database that it made with `db_paths`.
    pub fn db_path(self, dir: impl AsRef<Path>, target_bytes: u64) -> Self {
        let path = DbPath::new(dir.as_ref(), target_bytes);
        self.database(move |db| db.db_paths.push(path.clone()))
    }

    /// Keep records of the log in the process until [`Db::flush_wal`], a sync, a full memtable or the close.
    pub fn manual_wal_flush(self, yes: bool) -> Self {
        self.database(move |db| db.manual_wal_flush = yes)
    }

    /// Bytes per second that the scrubber reads of tables and blob files, round after round, to find damage before somebody
    /// needs what it hit. A round takes an hour at least. 0, the default: no scrubber. See [`Db::scrubbed`].
    pub fn scrub(self, bytes_per_second: u64) -> Self {
        self.database(move |db| db.scrub_bytes_per_second = bytes_per_second)
    }

    /// Where files, time, threads and randomness come from.
    pub fn env(mut self, env: Env) -> Self {
        self.env = Some(env);
        self
    }

    /// Tells `listener` of flushes, compactions, files, stalls and errors, behind those added before it.
    pub fn listener(self, listener: Arc<dyn EventListener>) -> Self {
        self.database(move |db| db.listeners.add(Arc::clone(&listener)))
    }

    /// What the database counts into, instead of statistics of its own; several databases may share it.
    pub fn statistics(self, statistics: Arc<Statistics>) -> Self {
        self.database(move |db| db.statistics = Some(Arc::clone(&statistics)))
    }

    /// Settings by RocksDB's names, as in `write_buffer_size=64M;compression=kZSTD`, of the database and of the family
    /// `default`. `ashlar options explain NAME` says what becomes of a name. What is wrong with the string, the open says:
    /// `InvalidArgument` for no such name or no value of it, `NotSupported` for what is not there.
    pub fn options(mut self, text: &str) -> Self {
        self.recorded.text(text);
        self
    }

    /// The engine's own settings, for what has no method here. `set` may be called more than once: for the database with the
    /// family `default`, and for each other family that exists.
    pub fn tune(mut self, set: impl Fn(&mut DbOptions, &mut FamilyOptions) + Send + Sync + 'static) -> Self {
        self.recorded.both(Arc::new(move |db, family| {
            set(db, family);
            Ok(())
        }));
        self
    }

    /// Makes a database that opens of what is left in the directory, with these settings, and says what is lost. The
    /// settings of the OPTIONS file there are taken as in an open. No process may have the database open. Damaged files are moved to `lost/` in it; `progress` is called after each table.
    ///
    /// # Errors
    /// `Busy(Locked)`. `InvalidArgument`: no directory, or a family whose comparator is not known. `NotSupported`: its logs
    /// hold what cannot be carried along. `Io`: a read that failed is no proof of damage; nothing was given up.
    pub fn repair(self, mut progress: impl FnMut(&Verified)) -> Result<RepairReport> {
        let Opening { env, path, adopted, .. } = self.for_repair()?;
        let Adopted { db, families, others, notices } = adopted;
        let mut report = ashlar_engine::Db::repair(env, &path, db, families, others, &mut progress)?;
        report.remarks.extend(notices);
        Ok(report)
    }

    /// [`Builder::repair`] that leaves the directory as it is, byte for byte: what it makes is in the directory `into`, which
    /// is made. Tables and blob files are shared by hard links where the file system can. What is interrupted leaves an
    /// `into` of no use, to be removed.
    ///
    /// # Errors
    /// Those of [`Builder::repair`]; `InvalidArgument` too when `into` holds something, or lies in the directory.
    pub fn salvage(self, into: impl AsRef<Path>, progress: impl FnMut(&Verified)) -> Result<RepairReport> {
        self.copied(into.as_ref(), false, progress)
    }

    /// [`Builder::salvage`] of a directory on a device that cannot read all of it. Every file is copied; what cannot be read,
    /// 4 KiB at a time, is zeros in the copy, and one of the losses that are told.
    ///
    /// # Errors
    /// Those of [`Builder::salvage`], but for reads of files that fail.
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
        let Adopted { db, families, others, notices } = adopted;
        let salvage = Salvage { dir: &path, into, around_unreadable };
        let mut report = ashlar_engine::Db::salvage(env, salvage, db, families, others, &mut progress)?;
        report.remarks.extend(notices);
        Ok(report)
    }

    /// The stored settings are taken whatever else is left of the database.
    fn for_repair(self) -> Result<Opening> {
        let env = self.env.map_or_else(Env::os, Ok)?;
        let adopted = self.recorded.over_any(&env, &self.path, true)?;
        Ok(Opening { env, path: self.path, adopted })
    }

    /// Opens.
    ///
    /// # Errors
    /// As [`Db::open`]; `InvalidArgument` for a setting out of range, or above the format level; see [`Builder::options`].
    pub fn open(self) -> Result<Db> {
        let env = self.env.map_or_else(Env::os, Ok)?;
        let Adopted { db, families, others, .. } = self.recorded.over_database(&env, &self.path)?;
        let open = if self.read_only { ashlar_engine::Db::open_read_only } else { ashlar_engine::Db::open };
        Db::wrap(open(env, &self.path, db, families, others)?)
    }
}

/// What a repair begins with.
struct Opening {
    env: Env,
    path: PathBuf,
    adopted: Adopted,
}

/// A path as the option strings and OPTIONS files hold it.
fn text_of(path: &Path) -> Result<String> {
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| Error::invalid("wal_dir is no UTF-8, which an OPTIONS file cannot hold").at_path(path))
}

/// How one family is opened.
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
    fn set(mut self, set: impl Fn(&mut FamilyOptions) + Send + Sync + 'static) -> Self {
        self.sets.push(Arc::new(move |options| {
            set(options);
            Ok(())
        }));
        self
    }

    /// A memtable of this many bytes is sealed and flushed.
    pub fn write_buffer(self, bytes: usize) -> Self {
        self.set(move |options| options.write_buffer_bytes = bytes)
    }

    /// How blocks are compressed.
    pub fn compression(self, compression: Compression) -> Self {
        self.set(move |options| options.table.compression = compression)
    }

    /// Another order of keys. Remembered by name: a database opens with the same one only.
    pub fn comparator(self, comparator: Arc<dyn Comparator>) -> Self {
        self.set(move |options| options.order = Order::Custom(Arc::clone(&comparator)))
    }

    /// How merge operands become values. Without it a family refuses merges, and reading a key that has operands fails.
    pub fn merge_operator(self, operator: Arc<dyn MergeOperator>) -> Self {
        self.set(move |options| options.merge_operator = Some(Arc::clone(&operator)))
    }

    /// Keys in descending byte order, as RocksDB's reverse comparator.
    pub fn reverse_order(self) -> Self {
        self.set(|options| options.order = Order::ReverseBytewise)
    }

    /// Settings by RocksDB's names; see [`Builder::options`].
    pub fn options(mut self, text: &str) -> Self {
        let text = text.to_owned();
        self.sets.push(Arc::new(move |options| options.apply(&text).map(drop)));
        self
    }

    /// Values of at least this many bytes go to blob files beside the tables, so that compactions do not copy them again and
    /// again; old blob files are emptied as they fill with garbage.
    pub fn blob_files(self, min_bytes: u64) -> Self {
        self.set(move |options| {
            let blob = &mut options.blob;
            (blob.enabled, blob.min_blob_bytes, blob.collect_garbage) = (true, min_bytes, true);
        })
    }

    /// One more directory of the family's tables (RocksDB's `cf_paths`), in place of those of the database; see
    /// [`Builder::db_path`]. What is given for `default` holds for that family alone.
    pub fn cf_path(self, dir: impl AsRef<Path>, target_bytes: u64) -> Self {
        let path = DbPath::new(dir.as_ref(), target_bytes);
        self.set(move |options| options.cf_paths.push(path.clone()))
    }

    /// The engine's own settings, for what has no method here. `set` may be called more than once.
    pub fn tune(self, set: impl Fn(&mut FamilyOptions) + Send + Sync + 'static) -> Self {
        self.set(set)
    }
}
