//! An open database and its families.

use crate::cache::Cache;
use crate::calls::ReadOptions;
use crate::iterator::{At, Iterator, Make};
use crate::listener::Telling;
use crate::options::{BLOCK_CACHE, Options, TableOptions};
use crate::status::paused;
use ashlardb::{
    Builder, Db, Env, Error, ErrorKind, Family, FamilyBuilder, FamilyExport, ImportOptions, IoKind,
    LiveFiles, PrefixExtractor, Result, Secondary, ShutdownKind, WeakDb, list_families,
};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

/// How a database is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// For reading and writing.
    Write,
    /// For reading; `refuse_wal`: not if there are WAL files, whose writes a flush has not put into tables.
    Read {
        /// RocksDB's `error_if_wal_file_exists`.
        refuse_wal: bool,
    },
    /// As a secondary of another process.
    Secondary,
}

/// A family that an open names: its name, its options, and the time to live of its values, in seconds.
#[derive(Clone, Copy, Debug)]
pub struct Named<'a> {
    /// The name.
    pub name: &'a str,
    /// The options.
    pub options: &'a Options,
    /// `Some`: values end in the time of their write, RocksDB's `DBWithTTL`; 0 or less: none is ever over.
    pub ttl: Option<i32>,
}

/// An open database. Clones are the same database.
#[derive(Clone, Debug)]
pub struct Database {
    db: Db,
    default: Family,
    path: PathBuf,
    /// Files and clock of the options; `None`: those of the machine.
    env: Option<Env>,
    said: Said,
    holds: Arc<Holds>,
    /// A secondary: its view is a database of its own after each catch-up, and families are found there by their names.
    secondary: Option<Secondary>,
}

/// What the options of the open said.
#[derive(Clone, Copy, Debug)]
struct Said {
    /// Opened as RocksDB's `DBWithTTL`: values of new families end in the time of their write too.
    has_times: bool,
    /// A `file_checksum_gen_factory` was set.
    has_file_checksums: bool,
}

/// What calls on a database hold back.
#[derive(Debug, Default)]
struct Holds {
    /// How often requests for a compaction were disabled, less how often they were enabled. As in RocksDB the number may be
    /// negative; then one more disabling changes nothing.
    requests: AtomicI64,
    /// One for each call that disabled the deletion of files.
    files: Mutex<Vec<LiveFiles>>,
    /// The number of running calls of [`Database::flush`].
    flushes: AtomicU32,
    /// All background work was cancelled.
    is_cancelled: AtomicBool,
}

/// A running call of [`Database::flush`], which is counted also while it panics.
struct Flushing<'a>(&'a AtomicU32);

impl Flushing<'_> {
    fn new(count: &AtomicU32) -> Flushing<'_> {
        count.fetch_add(1, Ordering::SeqCst);
        Flushing(count)
    }
}

impl Drop for Flushing<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A [`Database`] that does not keep it open.
#[derive(Clone, Debug)]
pub struct WeakDatabase {
    db: WeakDb,
    path: PathBuf,
    env: Option<Env>,
    said: Said,
    holds: Weak<Holds>,
}

impl WeakDatabase {
    /// The database; `None`: the last handle is gone.
    pub fn upgrade(&self) -> Option<Database> {
        let (db, holds) = (self.db.upgrade()?, self.holds.upgrade()?);
        let default = db.default_family();
        let (path, env) = (self.path.clone(), self.env.clone());
        Some(Database { db, default, path, env, said: self.said, holds, secondary: None })
    }
}

/// What the database holds, or what the present view of a secondary holds.
#[derive(Debug)]
pub enum Held<'a, T> {
    /// The database's.
    Own(&'a T),
    /// The view's.
    View(T),
}

impl<T> Deref for Held<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        match self {
            Held::Own(own) => own,
            Held::View(view) => view,
        }
    }
}

/// RocksDB's number of the level `INFO_LEVEL`.
const INFO: u32 = 1;

/// RocksDB's default family.
const DEFAULT: &str = "default";

impl Database {
    /// Opens the database in `path`. Families are in the order of `named`; without any, only `default` is opened.
    ///
    /// # Errors
    /// Those of [`Db::open`]. `InvalidArgument`: a family of the directory is not named, or one that is named does not exist and
    /// `create_missing_column_families` is off; an option that the engine refuses.
    pub fn open(
        options: &Options,
        path: &Path,
        mode: Mode,
        named: &[Named<'_>],
    ) -> Result<(Database, Vec<Family>)> {
        let alone = [Named { name: DEFAULT, options, ttl: None }];
        let named = if named.is_empty() { &alone } else { named };
        if !named.iter().any(|family| family.name == DEFAULT) {
            return Err(Error::invalid("Default column family not specified"));
        }
        check_families(options, path, mode, named)?;
        check_identity(options, mode)?;
        let space = options.space.as_ref().filter(|_| mode == Mode::Write);
        let quota = space.map_or(Ok(0), |space| space.quota())?;
        let telling =
            (!options.listeners.is_empty()).then(|| Arc::new(Telling::new(options.listeners.clone(), path)));
        let builder = builder(options, path, mode, named).disk_quota(quota);
        let builder =
            telling.iter().fold(builder, |builder, telling| builder.listener(Arc::<Telling>::clone(telling)));
        let (db, secondary) = match mode {
            Mode::Secondary => {
                let secondary = builder.open_secondary()?;
                (secondary.db(), Some(secondary))
            }
            Mode::Write | Mode::Read { .. } => (builder.open()?, None),
        };
        if mode == (Mode::Read { refuse_wal: true }) && has_logged_writes(&db) {
            return Err(Error::corruption("the database has WAL files with writes").at_path(path));
        }
        if let Some(logger) = &options.logger {
            let recovered = db.recovery().wal_bytes();
            logger.log(INFO, &format!("opened {}: {recovered} bytes of WAL files replayed", path.display()));
        }
        let families = named.iter().map(|family| db.family(family.name)).collect::<Result<_>>()?;
        let default = db.default_family();
        let path = path.to_owned();
        let said = Said {
            has_times: named.iter().any(|family| family.ttl.is_some()),
            has_file_checksums: options.texts.differs("file_checksum_gen_factory"),
        };
        let env = options.env.clone();
        let database = Database { db, default, path, env, said, holds: Arc::default(), secondary };
        if let Some(space) = space {
            space.opened(&database, quota)?;
        }
        if let Some(telling) = telling {
            telling.opened(&database);
        }
        Ok((database, families))
    }

    /// Compares the checksums of all files that have one.
    ///
    /// # Errors
    /// `InvalidArgument`: the options of the open have no `file_checksum_gen_factory`, as in RocksDB. `Corruption`: the first
    /// damage. `Io`.
    pub fn verify_file_checksums(&self) -> Result<()> {
        if !self.said.has_file_checksums {
            let e =
                Error::invalid("Cannot verify file checksum if options.file_checksum_gen_factory is null");
            return Err(e.hint("Open the database with a file_checksum_gen_factory"));
        }
        self.db().verify_file_checksums(|_| {}).map(drop)
    }

    /// Whether the options of the open have a `file_checksum_gen_factory`.
    pub fn has_file_checksums(&self) -> bool {
        self.said.has_file_checksums
    }

    /// A handle that does not keep the database open. That of a secondary stays with the view of the open.
    pub fn downgrade(&self) -> WeakDatabase {
        WeakDatabase {
            db: self.db.downgrade(),
            path: self.path.clone(),
            env: self.env.clone(),
            said: self.said,
            holds: Arc::downgrade(&self.holds),
        }
    }

    /// Files and clock.
    ///
    /// # Errors
    /// Those of [`Env::os`].
    pub fn env(&self) -> Result<Env> {
        static MACHINE: OnceLock<Env> = OnceLock::new();
        if let Some(env) = self.env.as_ref().or_else(|| MACHINE.get()) {
            return Ok(env.clone());
        }
        let env = Env::os()?;
        Ok(MACHINE.get_or_init(|| env).clone())
    }

    /// The engine's handle.
    #[inline]
    pub fn db(&self) -> Held<'_, Db> {
        self.secondary.as_ref().map_or(Held::Own(&self.db), |secondary| Held::View(secondary.db()))
    }

    /// The family `default` of the open.
    pub fn default_family(&self) -> &Family {
        &self.default
    }

    /// A family as it is now; `None`: the family `default`.
    ///
    /// # Errors
    /// `InvalidArgument`: the family belongs to another open database, or the view of a secondary has no such family.
    #[inline]
    pub fn family<'a>(&'a self, family: Option<&'a Family>) -> Result<Held<'a, Family>> {
        match &self.secondary {
            None => match family {
                Some(family) if !family.shares_database_with(&self.default) => Err(foreign(family)),
                family => Ok(Held::Own(family.unwrap_or(&self.default))),
            },
            Some(secondary) => secondary.db().family(family.map_or(DEFAULT, Family::name)).map(Held::View),
        }
    }

    /// The directory of the open, as the caller named it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Creates a family. `ttl`: the time to live of its values, in seconds, as in [`Named`]. Without one, in a database that was opened
    /// with times to live, no value of the new family is ever over.
    ///
    /// # Errors
    /// Those of [`Db::create_family_with`].
    pub fn create_family(&self, options: &Options, name: &str, ttl: Option<i32>) -> Result<Family> {
        let ttl = ttl.or(self.said.has_times.then_some(0));
        self.db.create_family_with(name, |family| with_ttl(options.on_other_family(family), ttl))
    }

    /// Makes a family of an export. In a database that was opened with times to live, the export must have values with write times,
    /// and none is ever over.
    ///
    /// # Errors
    /// Those of [`Db::import_family_with`].
    pub fn import_family(
        &self,
        options: &Options,
        name: &str,
        export: &FamilyExport,
        how: ImportOptions,
    ) -> Result<Family> {
        let ttl = self.said.has_times.then_some(0);
        self.db.import_family_with(name, export, how, |family| with_ttl(options.on_other_family(family), ttl))
    }

    /// An iterator over a family. As in RocksDB, a tailing one ignores the snapshot of the options.
    pub fn iterator(&self, family: Option<&Family>, options: &ReadOptions) -> Iterator {
        let tailing = options.flag("tailing");
        if tailing && self.secondary.is_some() {
            let refused = Err(Error::not_supported("a tailing iterator of a secondary"));
            return Iterator::once(refused);
        }
        let extractor = options.flag("prefix_same_as_start").then(|| self.extractor(family)).flatten();
        let make: Make = match self.family(family) {
            Err(e) => Box::new(move |_| Err(e.clone())),
            Ok(Held::Own(family)) => {
                let (family, options) = (family.clone(), options.clone());
                Box::new(move |at| {
                    let at = if tailing { &At::Newest } else { at };
                    let scan = options.scan(&family, at)?;
                    if tailing { scan.tailing() } else { scan.cursor() }
                })
            }
            // A later cursor is over a later view.
            Ok(Held::View(family)) => {
                let (secondary, options) = (self.secondary.clone(), options.clone());
                Box::new(move |at| {
                    let view = secondary.as_ref().map(Secondary::db);
                    let view =
                        view.ok_or_else(|| Error::invalid("the database was not opened as a secondary"))?;
                    options.scan(&view.family(family.name())?, at)?.cursor()
                })
            }
        };
        Iterator::new(make, tailing, extractor)
    }

    fn extractor(&self, family: Option<&Family>) -> Option<PrefixExtractor> {
        self.family(family).ok()?.options().table.prefix_extractor.clone()
    }

    /// Flushes families, and waits for it.
    ///
    /// # Errors
    /// Those of [`Family::flush`], [`Database::family`] and [`Database::check_cancelled`].
    pub fn flush(&self, families: &[Family]) -> Result<()> {
        self.check_cancelled()?;
        let _flushing = Flushing::new(&self.holds.flushes);
        families.iter().try_for_each(|family| self.family(Some(family))?.flush())
    }

    /// Whether a caller waits for a flush.
    pub(crate) fn has_requested_flush(&self) -> bool {
        self.holds.flushes.load(Ordering::SeqCst) > 0
    }

    /// Refuses requests for a compaction from now on. Running compactions end; the engine begins those again that no request began.
    pub fn disable_requests(&self) {
        self.holds.requests.fetch_add(1, Ordering::SeqCst);
        if self.db.abort_compactions().is_ok() {
            // `abort_compactions` is counted; undo it here, because only manual compactions stay disabled.
            drop(self.db.resume_compactions());
        }
    }

    /// Takes back one [`Database::disable_requests`].
    pub fn enable_requests(&self) {
        self.holds.requests.fetch_sub(1, Ordering::SeqCst);
    }

    /// Whether requests for a compaction are disabled.
    pub(crate) fn has_disabled_requests(&self) -> bool {
        self.holds.requests.load(Ordering::SeqCst) > 0
    }

    /// # Errors
    /// RocksDB's `Incomplete`: requests for a compaction are refused. Those of [`Database::check_cancelled`].
    pub fn check_requests(&self) -> Result<()> {
        self.check_cancelled()?;
        if self.has_disabled_requests() { Err(paused()) } else { Ok(()) }
    }

    /// Aborts running compactions, and waits for running flushes if `wait`. As in RocksDB, the database takes no more flushes and
    /// compactions on request, and no more calls that begin with a flush: checkpoints, exports, clips. Two things differ from RocksDB:
    /// the engine's own flushes and compactions go on, so that no writer waits for ever, and an ingestion that needs a flush gets it.
    pub fn cancel_background_work(&self, wait: bool) {
        self.holds.is_cancelled.store(true, Ordering::SeqCst);
        let own = self.db();
        // RocksDB answers no error here.
        let is_aborted = own.abort_compactions().is_ok();
        if wait {
            drop(own.wait_for_background());
        }
        if is_aborted {
            drop(own.resume_compactions());
        }
    }

    /// # Errors
    /// RocksDB's `ShutdownInProgress`: all background work was cancelled.
    pub fn check_cancelled(&self) -> Result<()> {
        if self.holds.is_cancelled.load(Ordering::SeqCst) {
            return Err(Error::new(
                ErrorKind::Shutdown(ShutdownKind::Closed),
                "all background work was cancelled",
            ));
        }
        Ok(())
    }

    /// Keeps all files from now on, also those that the engine needs no longer. Calls add up.
    ///
    /// # Errors
    /// Those of [`Db::live_files`].
    pub fn hold_files(&self) -> Result<()> {
        let files = self.db.live_files()?;
        self.held_files().push(files);
        Ok(())
    }

    /// Takes back one [`Database::hold_files`]. As in RocksDB one more changes nothing.
    pub fn release_files(&self) {
        let released = self.held_files().pop();
        // Outside the lock: the release removes files.
        drop(released);
    }

    /// Takes back every [`Database::hold_files`].
    pub fn release_all_files(&self) {
        let released = std::mem::take(&mut *self.held_files());
        drop(released);
    }

    fn held_files(&self) -> MutexGuard<'_, Vec<LiveFiles>> {
        self.holds.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the newest writes of the other process visible.
    ///
    /// # Errors
    /// `NotSupported`: the database is no secondary. Those of [`Secondary::catch_up`].
    pub fn catch_up(&self) -> Result<()> {
        let secondary = self.secondary.as_ref();
        let secondary =
            secondary.ok_or_else(|| Error::not_supported("the database was not opened as a secondary"))?;
        secondary.catch_up().map(drop)
    }
}

/// Whether WAL files have writes that no table has, or bytes that the open dropped.
fn has_logged_writes(db: &Db) -> bool {
    let report = db.recovery();
    let replayed = db.aggregated_int_property("rocksdb.num-entries-active-mem-table").unwrap_or(0);
    replayed > 0 || !report.undecided.is_empty() || !report.dropped.is_empty()
}

/// The families of a directory.
///
/// # Errors
/// Those of [`list_families`]. `Io(NotFound)`: there is no database.
pub fn families(options: &Options, path: &Path) -> Result<Vec<String>> {
    list_families(&env(options)?, path).map_err(|e| match e.kind() {
        ErrorKind::InvalidArgument => Error::new(ErrorKind::Io(IoKind::NotFound), e.message()).at_path(path),
        _ => e,
    })
}

/// Removes a database. As in RocksDB, a directory without a database is left as it is.
///
/// # Errors
/// Those of [`Builder::destroy`] but `InvalidArgument`.
pub fn destroy(options: &Options, path: &Path) -> Result<()> {
    let builder = options.env.iter().fold(Db::builder(path), |builder, env| builder.env(env.clone()));
    match builder.destroy() {
        Err(e) if e.kind() == ErrorKind::InvalidArgument => Ok(()),
        done => done,
    }
}

/// Repairs a damaged directory with these options.
///
/// # Errors
/// Those of [`Builder::repair`].
pub fn repair(options: &Options, path: &Path) -> Result<()> {
    let named = [Named { name: DEFAULT, options, ttl: None }];
    builder(options, path, Mode::Write, &named).repair(|_| {}).map(drop)
}

/// Creates a directory, if it is not there. As in RocksDB, the directory around it must exist.
///
/// # Errors
/// `Io`: the directory around it is missing, or a file has the name.
pub fn create_dir(env: &Env, path: &Path) -> Result<()> {
    check_around(env, path)?;
    env.fs.create_dir_all(path)
}

/// Checks that a directory may be made, as RocksDB makes it: without the directories around it.
///
/// # Errors
/// `Io`: the directory around it is missing.
pub fn check_around(env: &Env, path: &Path) -> Result<()> {
    let around = path.parent().filter(|around| !around.as_os_str().is_empty());
    if let Some(around) = around
        && env.fs.metadata(around)?.is_none()
    {
        return Err(Error::new(ErrorKind::Io(IoKind::NotFound), "no such directory").at_path(around));
    }
    Ok(())
}

fn env(options: &Options) -> Result<Env> {
    options.env.clone().map_or_else(Env::os, Ok)
}

/// # Errors
/// `InvalidArgument`: the families of the directory and those that the caller names are not the same. Those of [`families`], except
/// that there is no database.
fn check_families(options: &Options, path: &Path, mode: Mode, named: &[Named<'_>]) -> Result<()> {
    let there = match families(options, path) {
        Ok(there) => there,
        Err(e) if !e.is_not_found() => return Err(e),
        // A new database begins with this family.
        Err(_) if mode == Mode::Write && options.flag("create_if_missing") => vec![DEFAULT.to_owned()],
        // The open says that there is no database.
        Err(_) => return Ok(()),
    };
    let is_named = |name: &String| named.iter().any(|family| family.name == name);
    // RocksDB opens the family of its stored statistics by itself, if it writes them.
    let is_hidden =
        |name: &str| name == "___rocksdb_stats_history___" && options.flag("persist_stats_to_disk");
    let left: Vec<&String> = there.iter().filter(|name| !is_named(name) && !is_hidden(name)).collect();
    if mode == Mode::Write && !left.is_empty() {
        let left = left.into_iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        return Err(Error::invalid(format!("Column families not opened: {left}")));
    }
    let missing = named.iter().find(|family| !there.iter().any(|name| name == family.name));
    match missing {
        Some(family) if mode != Mode::Write || !options.flag("create_missing_column_families") => {
            let what = format!("Column family not found: {}", family.name);
            Err(Error::invalid(what).hint("Set create_missing_column_families to create it"))
        }
        _ => Ok(()),
    }
}

/// # Errors
/// `InvalidArgument`: the options store the id of the database nowhere. The engine would write IDENTITY, but RocksDB refuses to open
/// with such options.
fn check_identity(options: &Options, mode: Mode) -> Result<()> {
    let is_off = |name| !options.texts.get::<bool>(name);
    if mode == Mode::Write && is_off("write_dbid_to_manifest") && is_off("write_identity_file") {
        return Err(Error::invalid("write_dbid_to_manifest and write_identity_file cannot both be false"));
    }
    Ok(())
}

/// The builder with the block cache of the database, which all families share: the largest object that a family has, or else the sum
/// of the sizes that they were given. Without either the builder stays as it is.
fn with_cache<'a>(builder: Builder, tables: impl std::iter::Iterator<Item = &'a TableOptions>) -> Builder {
    let (mut largest, mut sum): (Option<&Cache>, Option<usize>) = (None, None);
    for table in tables {
        match &table.cache {
            Some(cache) if largest.is_none_or(|known| cache.capacity() > known.capacity()) => {
                largest = Some(cache);
            }
            Some(_) => {}
            None if table.texts.differs(BLOCK_CACHE) => {
                sum = Some(sum.unwrap_or(0).saturating_add(table.texts.get(BLOCK_CACHE)));
            }
            None => {}
        }
    }
    match (largest, sum) {
        (Some(cache), _) => builder.block_cache(cache.shared()),
        (None, Some(bytes)) => {
            builder.options(&format!("block_based_table_factory={{{BLOCK_CACHE}={bytes};}}"))
        }
        (None, None) => builder,
    }
}

/// A family whose values have this time to live, in seconds; 0 or less: they have times, and none is ever over.
fn with_ttl(family: FamilyBuilder, ttl: Option<i32>) -> FamilyBuilder {
    let since = |ttl: i32| Duration::from_secs(u64::try_from(ttl).unwrap_or_default());
    match ttl {
        Some(seconds) => family.ttl(since(seconds)),
        None => family,
    }
}

fn builder(options: &Options, path: &Path, mode: Mode, named: &[Named<'_>]) -> Builder {
    let builder = options.on_database(Db::builder(path)).read_only(matches!(mode, Mode::Read { .. }));
    let tables = named.iter().filter_map(|family| family.options.table.as_ref());
    let mut builder = with_cache(builder, tables);
    if let Some(limit) = &options.write_buffers {
        builder = builder.write_buffers(limit);
    }
    named.iter().fold(builder, |builder, family| {
        let set = |f| {
            let is_default = family.name == DEFAULT;
            let f = if is_default { family.options.on_family(f) } else { family.options.on_other_family(f) };
            with_ttl(f, family.ttl)
        };
        if family.name == DEFAULT { builder.default_family(set) } else { builder.family(family.name, set) }
    })
}

#[cold]
fn foreign(family: &Family) -> Error {
    let text = format!("column family {:?} belongs to another open database", family.name());
    Error::invalid(text).hint("Ask this database for the family of that name")
}

#[cfg(test)]
mod tests {
    use super::*;
    use ashlardb::Write;

    /// Regression: the WAL file of a flushed database refused the open, because it still held the flushed writes.
    #[test]
    fn an_open_without_wal_files_is_refused_while_they_have_writes() {
        let dir = tempfile::tempdir().unwrap();
        let mut options = Options::default();
        options.texts.set("create_if_missing", true);
        let open = |mode| Database::open(&options, dir.path(), mode, &[]).map(|(db, _)| db);
        let refuse_wal = || open(Mode::Read { refuse_wal: true });
        let db = open(Mode::Write).unwrap();
        db.db().put("a", "1").unwrap();
        db.flush(&[db.default_family().clone()]).unwrap();
        drop(db);
        assert_eq!(refuse_wal().unwrap().db().sequence().get(), 1);
        open(Mode::Write).unwrap().db().put("b", "2").unwrap();
        let refused = refuse_wal().unwrap_err();
        assert!(refused.to_string().contains("WAL files with writes"), "{refused}");
        open(Mode::Read { refuse_wal: false }).unwrap();
    }

    #[test]
    fn a_family_of_another_database_is_refused() {
        let mut options = Options::default();
        options.texts.set("create_if_missing", true);
        let dirs = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let [one, other] =
            [0, 1].map(|at| Database::open(&options, dirs[at].path(), Mode::Write, &[]).unwrap().0);
        let refused = one.family(Some(other.default_family())).map(drop).unwrap_err();
        assert!(refused.to_string().contains("belongs to another open database"), "{refused}");
        one.family(Some(one.default_family())).map(drop).unwrap();
    }

    /// Regression: flushes went on and compactions did not, so level 0 filled up, and a put waited for ever.
    #[test]
    fn writers_go_on_after_background_work_was_cancelled() {
        let dir = tempfile::tempdir().unwrap();
        let mut options = Options::default();
        options.texts.set("create_if_missing", true);
        options.texts.set("write_buffer_size", 64 << 10);
        let (db, _) = Database::open(&options, dir.path(), Mode::Write, &[]).unwrap();
        db.cancel_background_work(true);
        for key in 0..6000_u32 {
            Write::put(&*db.db(), key.to_be_bytes(), [7; 1000]).unwrap();
        }
        assert!(db.check_requests().is_err());
    }

    /// Regression: whatever error the look at the families had stood for a new database.
    #[test]
    fn a_directory_that_cannot_be_read_is_no_new_database() {
        let dir = tempfile::tempdir().unwrap();
        let mut options = Options::default();
        options.texts.set("create_if_missing", true);
        drop(Database::open(&options, dir.path(), Mode::Write, &[]).unwrap());
        let fs = Env::os().unwrap().fs;
        fs.remove(&dir.path().join("CURRENT")).unwrap();
        ashlar_tree::files::write_file(&*fs, &dir.path().join("CURRENT"), b"no name").unwrap();
        for mode in [Mode::Write, Mode::Read { refuse_wal: false }, Mode::Secondary] {
            let named = [Named { name: DEFAULT, options: &options, ttl: None }];
            let refused = check_families(&options, dir.path(), mode, &named).unwrap_err();
            assert!(refused.is_corruption(), "{refused}");
        }
    }

    /// Regression: the number of running flushes stayed too high, so that later flushes counted as requested.
    #[test]
    fn a_flush_that_panics_is_counted_no_longer() {
        let count = AtomicU32::new(0);
        let panicked = std::panic::catch_unwind(|| {
            let _flushing = Flushing::new(&count);
            panic!("on purpose");
        });
        assert!(panicked.is_err());
        assert_eq!(count.load(Ordering::SeqCst), 0);
    }

    #[test]
    fn a_new_database_has_no_other_family_unless_it_may_be_created() {
        let dir = tempfile::tempdir().unwrap();
        let mut options = Options::default();
        options.texts.set("create_if_missing", true);
        let plain = Options::default();
        let named = [DEFAULT, "other"].map(|name| Named { name, options: &plain, ttl: None });
        let refused = Database::open(&options, dir.path(), Mode::Write, &named).unwrap_err();
        assert!(refused.to_string().contains("Column family not found: other"), "{refused}");
        options.texts.set("create_missing_column_families", true);
        let (_, families) = Database::open(&options, dir.path(), Mode::Write, &named).unwrap();
        assert_eq!(families.len(), 2);
    }
}
