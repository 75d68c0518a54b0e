//! Opening with settings.

use crate::{Db, Env, Error, EventListener, FormatLevel, RepairReport, Result, Statistics, Verified};
use ashlar_base::{Comparator, MergeOperator, Order};
use ashlar_engine::column_family::DEFAULT_FAMILY;
use ashlar_engine::files::hold_directory;
use ashlar_engine::open::{DirState, list_families, survey};
use ashlar_engine::options::{DbOptions, FamilyOptions, Options, load_latest_options};
use ashlar_engine::{OpenFamily, Salvage};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use ashlar_format::compress::Compression;
pub use ashlar_log::RecoveryMode;

/// How a database is opened. Everything has a default.
///
/// ```
/// # use ashlardb::{Compression, Db};
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
    options: DbOptions,
    default: FamilyOptions,
    families: Vec<OpenFamily>,
    read_only: bool,
    /// The first option string that was none; told by [`Builder::open`].
    wrong: Option<Error>,
}

impl Builder {
    pub(crate) fn new(path: impl AsRef<Path>) -> Self {
        Builder {
            path: path.as_ref().to_path_buf(),
            env: None,
            options: DbOptions::default(),
            default: FamilyOptions::default(),
            families: Vec::new(),
            read_only: false,
            wrong: None,
        }
    }

    /// The cap on everything the database keeps in memory: up to three quarters for blocks, a quarter for write buffers,
    /// and what indexes, filters and buffers take goes off the blocks. At least 16 MiB.
    pub fn memory(mut self, bytes: u64) -> Self {
        self.options.memory_bytes = bytes;
        self.options.block_cache_bytes = (bytes / 4 * 3).max(1 << 20);
        let buffers = bytes / 4 / self.default.max_write_buffers as u64;
        self.default.write_buffer_bytes =
            usize::try_from(buffers.clamp(64 << 10, 64 << 20)).unwrap_or(64 << 20);
        self
    }

    /// Settings of the family `default`, which are those of every family that is not named.
    pub fn default_family(mut self, set: impl FnOnce(FamilyBuilder) -> FamilyBuilder) -> Self {
        let set = set(FamilyBuilder { options: self.default, wrong: None });
        self.default = set.options;
        self.wrong = self.wrong.or(set.wrong);
        self
    }

    /// Opens a family, making it if it does not exist, with settings that start from those of `default`.
    pub fn family(mut self, name: &str, set: impl FnOnce(FamilyBuilder) -> FamilyBuilder) -> Self {
        let FamilyBuilder { options, wrong } =
            set(FamilyBuilder { options: self.default.clone(), wrong: None });
        self.families.push(OpenFamily { name: name.to_owned(), options });
        self.wrong = self.wrong.or(wrong);
        self
    }

    /// Make the database when there is none (on by default).
    pub fn create(mut self, yes: bool) -> Self {
        self.options.create_if_missing = yes;
        self
    }

    /// Refuse a directory that holds a database already.
    pub fn must_be_new(mut self) -> Self {
        self.options.error_if_exists = true;
        self
    }

    /// Only read: see [`Db::open_read_only`].
    pub fn read_only(mut self, yes: bool) -> Self {
        self.read_only = yes;
        self
    }

    /// The RocksDB release that must be able to open the directory after `close`.
    pub fn format_level(mut self, level: FormatLevel) -> Self {
        self.options.format_level = level;
        self
    }

    /// What replay does with a damaged log.
    pub fn recovery_mode(mut self, mode: RecoveryMode) -> Self {
        self.options.recovery_mode = mode;
        self
    }

    /// How records of the log are compressed: not at all, or with zstd. Saves writing where values shrink, costs a
    /// compressor's time per batch.
    pub fn wal_compression(mut self, compression: Compression) -> Self {
        self.options.wal_compression = compression;
        self
    }

    /// Keep records of the log in the process until [`Db::flush_wal`], a sync, a full memtable or the close.
    pub fn manual_wal_flush(mut self, yes: bool) -> Self {
        self.options.manual_wal_flush = yes;
        self
    }

    /// Bytes per second that the scrubber reads of tables and blob files, round after round, to find damage before somebody
    /// needs what it hit. A round takes an hour at least. 0, the default: no scrubber. See [`Db::scrubbed`].
    pub fn scrub(mut self, bytes_per_second: u64) -> Self {
        self.options.scrub_bytes_per_second = bytes_per_second;
        self
    }

    /// Where files, time, threads and randomness come from.
    pub fn env(mut self, env: Env) -> Self {
        self.env = Some(env);
        self
    }

    /// Tells `listener` of flushes, compactions, files, stalls and errors, behind those added before it.
    pub fn listener(mut self, listener: Arc<dyn EventListener>) -> Self {
        self.options.listeners.add(listener);
        self
    }

    /// What the database counts into, instead of statistics of its own; several databases may share it.
    pub fn statistics(mut self, statistics: Arc<Statistics>) -> Self {
        self.options.statistics = Some(statistics);
        self
    }

    /// Settings by RocksDB's names, as in `write_buffer_size=64M;compression=kZSTD`, of the database and of the family
    /// `default`. `ashlar options explain NAME` says what becomes of a name. What is wrong with the string, the open says:
    /// `InvalidArgument` for no such name or no value of it, `NotSupported` for what is not there.
    pub fn options(mut self, text: &str) -> Self {
        let mut both = Options { db: self.options, family: self.default };
        self.wrong = self.wrong.or(both.apply(text).err());
        (self.options, self.default) = (both.db, both.family);
        self
    }

    /// The settings of the newest OPTIONS file in the directory, RocksDB's or ours, for the database and each family that
    /// is there; orders, merge operators, listeners and statistics handed over before stay. Also answers what of the file does
    /// not fit, and what is done instead. Without a database or an OPTIONS file nothing changes. Where no MANIFEST reads,
    /// which is for [`Builder::repair`], all families of the file are taken.
    ///
    /// # Errors
    /// `Corruption`: the file is no OPTIONS file. `Io`.
    pub fn stored_options(mut self) -> Result<(Self, Vec<String>)> {
        let env = hold_directory(&self.env.clone().map_or_else(Env::os, Ok)?, &self.path)?;
        let level = self.options.format_level;
        let manifest = survey(&*env.fs, &self.path).map(DirState::manifest);
        let there = match manifest.and_then(|m| m.map(|_| list_families(&env, &self.path)).transpose()) {
            Ok(None) => return Ok((self, Vec::new())),
            Ok(there) => there,
            // An open fails for it too, and a repair makes no family of this.
            Err(e) if e.is_corruption() => None,
            Err(e) => return Err(e),
        };
        let is_there = |name: &String| there.as_ref().is_none_or(|there| there.contains(name));
        let Some(stored) = load_latest_options(&*env.fs, &self.path, level)? else {
            return Ok((self, Vec::new()));
        };
        for (name, mut options) in stored.families.into_iter().filter(|(name, _)| is_there(name)) {
            let given = self.families.iter().position(|f| f.name == name);
            let before = given.map_or(&self.default, |at| &self.families[at].options);
            options.merge_operator = before.merge_operator.clone().or(options.merge_operator);
            if !matches!(before.order, Order::Bytewise) {
                options.order = before.order.clone();
            }
            match given {
                Some(at) => self.families[at].options = options,
                None if name == DEFAULT_FAMILY => self.default = options,
                None => self.families.push(OpenFamily { name, options }),
            }
        }
        let DbOptions { create_if_missing, listeners, statistics, .. } = self.options;
        self.options = DbOptions { create_if_missing, listeners, statistics, ..stored.db };
        Ok((self, stored.notices))
    }

    /// The engine's own settings, for what has no method here.
    pub fn tune(mut self, set: impl FnOnce(&mut DbOptions, &mut FamilyOptions)) -> Self {
        set(&mut self.options, &mut self.default);
        self
    }

    /// Makes a database that opens of what is left in the directory, with these settings, and says what is lost. The
    /// OPTIONS file there names merge operators, as in an open; [`Builder::stored_options`] takes all of it. Nobody may
    /// have it open. Damaged files are moved to `lost/` in it; `progress` is called after each table.
    ///
    /// # Errors
    /// `Busy(Locked)`. `InvalidArgument`: no directory, or a family whose comparator is not known. `NotSupported`: its logs
    /// hold what cannot be carried along. `Io`: a read that failed is no proof of damage; nothing was given up.
    pub fn repair(self, progress: impl FnMut(&Verified)) -> Result<RepairReport> {
        if let Some(wrong) = self.wrong {
            return Err(wrong);
        }
        let env = self.env.map_or_else(Env::os, Ok)?;
        let mut progress = progress;
        ashlar_engine::Db::repair(env, &self.path, self.options, self.families, self.default, &mut progress)
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
        if let Some(wrong) = self.wrong {
            return Err(wrong);
        }
        let env = self.env.map_or_else(Env::os, Ok)?;
        let salvage = Salvage { dir: &self.path, into, around_unreadable };
        ashlar_engine::Db::salvage(env, salvage, self.options, self.families, self.default, &mut progress)
    }

    /// Opens.
    ///
    /// # Errors
    /// As [`Db::open`]; `InvalidArgument` for a setting out of range, or above the format level; see [`Builder::options`].
    pub fn open(self) -> Result<Db> {
        if let Some(wrong) = self.wrong {
            return Err(wrong);
        }
        let env = match self.env {
            Some(env) => env,
            None => Env::os()?,
        };
        let open = if self.read_only { ashlar_engine::Db::open_read_only } else { ashlar_engine::Db::open };
        Db::wrap(open(env, &self.path, self.options, self.families, self.default)?)
    }
}

/// How one family is opened.
#[derive(Clone, Debug)]
#[must_use = "settings hold in the builder that is returned"]
pub struct FamilyBuilder {
    options: FamilyOptions,
    wrong: Option<Error>,
}

impl FamilyBuilder {
    /// A memtable of this many bytes is sealed and flushed.
    pub fn write_buffer(mut self, bytes: usize) -> Self {
        self.options.write_buffer_bytes = bytes;
        self
    }

    /// How blocks are compressed.
    pub fn compression(mut self, compression: Compression) -> Self {
        self.options.table.compression = compression;
        self
    }

    /// Another order of keys. Remembered by name: a database opens with the same one only.
    pub fn comparator(mut self, comparator: Arc<dyn Comparator>) -> Self {
        self.options.order = Order::Custom(comparator);
        self
    }

    /// How merge operands become values. Without it a family refuses merges, and reading a key that has operands fails.
    pub fn merge_operator(mut self, operator: Arc<dyn MergeOperator>) -> Self {
        self.options.merge_operator = Some(operator);
        self
    }

    /// Keys in descending byte order, as RocksDB's reverse comparator.
    pub fn reverse_order(mut self) -> Self {
        self.options.order = Order::ReverseBytewise;
        self
    }

    /// Settings by RocksDB's names; see [`Builder::options`].
    pub fn options(mut self, text: &str) -> Self {
        self.wrong = self.wrong.or(self.options.apply(text).err());
        self
    }

    /// Values of at least this many bytes go to blob files beside the tables, so that compactions do not copy them again and
    /// again; old blob files are emptied as they fill with garbage.
    pub fn blob_files(mut self, min_bytes: u64) -> Self {
        let blob = &mut self.options.blob;
        (blob.enabled, blob.min_blob_bytes, blob.collect_garbage) = (true, min_bytes, true);
        self
    }

    /// The engine's own settings, for what has no method here.
    pub fn tune(mut self, set: impl FnOnce(&mut FamilyOptions)) -> Self {
        set(&mut self.options);
        self
    }
}
