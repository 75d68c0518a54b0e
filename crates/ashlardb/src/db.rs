//! The database handle.

use crate::{
    Builder, CheckReport, Family, RecoveryReport, Result, Scrubbed, Snapshot, Verified, WriteBatch,
    WriteOptions, Writer,
};
use crate::{FamilyBuilder, Pins, Secondary};
use ashlar_base::{Error, SeqNum};
pub use ashlar_engine::health::{Health, Severity};
pub use ashlar_engine::pressure::{DiskLimits, DiskUse, WritePressure};
use ashlar_tree::version::read_identity;
use std::borrow::Borrow;
use std::path::Path;
use std::sync::Arc;

/// A handle of an open database. Clones share the database; dropping the last one closes it.
///
/// The engine calls listeners, merge operators and comparators in the middle of its work, and holds no lock meanwhile. What
/// a callback may call depends on the work:
/// * In a listener, and in a merge operator or comparator that a write or a background job calls, reads are served. Calls
///   that write, change settings or families, wait for background work or close answer `InvalidArgument`.
/// * In a merge operator or comparator that a read calls (such as `get` or `scan`), every call is served, as nothing waits
///   for the read.
///
/// If a callback drops the last handle, another thread closes the database.
///
/// A handle serves the process that opened it. In a forked child, every call answers `Shutdown(Forked)`, and dropping the
/// handle, its snapshots and cursors changes nothing: the database stays open in the parent. The child may open other
/// databases, and this one for reading only.
#[derive(Clone, Debug)]
pub struct Db {
    engine: ashlar_engine::Db,
    default: Arc<ashlar_engine::column_family::Family>,
    /// The time to live that the builder gave all families, in seconds: what a new family has.
    ttl_of_all: Option<i32>,
}

/// A [`Db`] that does not keep the database open, for a listener or a thread that lives longer than the other handles.
#[derive(Clone)]
pub struct WeakDb {
    engine: ashlar_engine::WeakDb,
    ttl_of_all: Option<i32>,
}

impl WeakDb {
    /// The database; `None`: the last handle is dropped.
    pub fn upgrade(&self) -> Option<Db> {
        // A family would keep the options of the database, and with them its listeners.
        Db::wrap(self.engine.upgrade()?, self.ttl_of_all).ok()
    }
}

impl std::fmt::Debug for WeakDb {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WeakDb").finish_non_exhaustive()
    }
}

impl Db {
    /// A handle that does not keep the database open.
    pub fn downgrade(&self) -> WeakDb {
        WeakDb { engine: self.engine.downgrade(), ttl_of_all: self.ttl_of_all }
    }

    /// Opens the database in the directory `path`, and creates it if it does not exist. Directories of RocksDB (4.6 to 11) and
    /// LevelDB open as they are.
    ///
    /// The handle stays with the directory that has this name at the open. A rename, another working directory, or another
    /// database under the old name do not affect it. Inside the directory the engine follows no symbolic link.
    ///
    /// # Errors
    /// `Busy(Locked)`: another handle or process has the directory open, or holds an `flock` on it. `Corruption`: a file is
    /// damaged, with file and offset; nothing was changed. `NotSupported`: the directory holds something that AshlarDB cannot
    /// serve, by name. `Io`: the operating system refused a call.
    /// # Cost
    /// Reads the MANIFEST and replays the WAL files; tables are opened when they are first read.
    pub fn open(path: impl AsRef<Path>) -> Result<Db> {
        Builder::new(path).open()
    }

    /// Opens the database in the directory `path` for reading only. It takes no lock and writes nothing, so it works on a
    /// read-only mount, and beside a process of AshlarDB or RocksDB that writes to the database.
    ///
    /// The handle shows the state of one moment during the open. To see later writes, open again. Writes, flushes and
    /// compactions answer `NotSupported`.
    ///
    /// ```
    /// # use ashlardb::prelude::*;
    /// # use ashlardb::ErrorKind;
    /// # fn main() -> ashlardb::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("db");
    /// let writer = Db::open(&path)?;
    /// writer.put(b"k", b"v")?;
    /// let reader = Db::open_read_only(&path)?;
    /// assert_eq!(reader.get(b"k")?.as_deref(), Some(&b"v"[..]));
    /// assert_eq!(reader.put(b"k", b"w").unwrap_err().kind(), ErrorKind::NotSupported);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument`: there is no database. `Corruption`, `Io`: a file is damaged, or other processes changed the
    /// directory faster than the open could read a consistent state. `Busy`: other processes deleted WAL files during each
    /// attempt.
    /// # Cost
    /// An open file for each table and blob file, and memory for all entries in the WAL files.
    pub fn open_read_only(path: impl AsRef<Path>) -> Result<Db> {
        Builder::new(path).read_only(true).open()
    }

    /// Opens a view of a database that another process writes, and follows it: [`Secondary::catch_up`]. (RocksDB:
    /// `OpenAsSecondary`, `TryCatchUpWithPrimary`.)
    ///
    /// ```
    /// # use ashlardb::prelude::*;
    /// # fn main() -> ashlardb::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("db");
    /// let writer = Db::open(&path)?;
    /// writer.put(b"k", b"1")?;
    /// let secondary = Db::open_secondary(&path)?;
    /// writer.put(b"k", b"2")?;
    /// assert_eq!(secondary.db().get(b"k")?.as_deref(), Some(&b"1"[..]));
    /// secondary.catch_up()?;
    /// assert_eq!(secondary.db().get(b"k")?.as_deref(), Some(&b"2"[..]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`Db::open_read_only`].
    pub fn open_secondary(path: impl AsRef<Path>) -> Result<Secondary> {
        Builder::new(path).open_secondary()
    }

    /// Settings for an open, a repair or a salvage of the directory `path`.
    pub fn builder(path: impl AsRef<Path>) -> Builder {
        Builder::new(path)
    }

    pub(crate) fn wrap(engine: ashlar_engine::Db, ttl_of_all: Option<i32>) -> Result<Db> {
        let default = engine
            .family(ashlar_engine::column_family::DEFAULT_FAMILY)
            .ok_or_else(|| Error::corruption("a database without the family default"))?;
        Ok(Db { engine, default, ttl_of_all })
    }

    pub(crate) fn default(&self) -> &Arc<ashlar_engine::column_family::Family> {
        &self.default
    }

    pub(crate) fn engine(&self) -> &ashlar_engine::Db {
        &self.engine
    }

    /// Writes with options: `db.writing(WriteOptions::synced()).put(k, v)?`. Costs nothing.
    pub fn writing(&self, options: WriteOptions) -> Writer<'_> {
        Writer::new(self, &self.default, options)
    }

    /// Writes all operations of a batch, or none. Takes the batch or a reference to it. After `Ok` the batch is empty and
    /// keeps its memory; after an error it is unchanged.
    ///
    /// # Errors
    /// Those of [`crate::Write::put`]. `InvalidArgument` also when the batch has operations on a family of another database.
    pub fn write(&self, batch: impl Borrow<WriteBatch>) -> Result<()> {
        self.writing(WriteOptions::default()).write(batch)
    }

    /// Takes a snapshot: a view of all families at this moment, for reads. Until it is dropped, compactions keep the versions
    /// that it shows.
    ///
    /// # Errors
    /// `Shutdown`.
    pub fn snapshot(&self) -> Result<Snapshot> {
        Ok(Snapshot { inner: self.engine.snapshot()?.into(), db: self.clone() })
    }

    /// The memory and disk space that cursors and snapshots keep alive. Ask it first when memory or disk space is not freed.
    ///
    /// # Errors
    /// `Shutdown`.
    pub fn pins(&self) -> Result<Pins> {
        self.engine.pins()
    }

    /// The memory under the cap, by class and with the owner of each class. If databases share the cap, this is the memory of
    /// all of them; memtables of the others count as held, and cursors of the others are left out.
    ///
    /// ```
    /// # use ashlardb::prelude::*;
    /// # use ashlardb::MemoryClass;
    /// # fn main() -> ashlardb::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = Db::open(dir.path().join("db"))?;
    /// db.put("k", "v")?;
    /// let memory = db.memory_report();
    /// assert!(memory.of(MemoryClass::WritableMemtables) > 0 && memory.total() < memory.cap);
    /// print!("{}", memory.text());                       // a line for each class
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Cost
    /// A look at every family, at every block in the cache, and at what the allocator keeps.
    pub fn memory_report(&self) -> crate::MemoryReport {
        self.engine.memory_report()
    }

    /// The disk space that the files of the database take, what memtables and running compactions will take, and the limits.
    /// The same is in [`Db::pressure`].
    ///
    /// # Cost
    /// A system call for each directory. A read-only open lists the directories.
    pub fn disk_use(&self) -> DiskUse {
        self.engine.disk_use()
    }

    /// Changes the quota of disk space and the reserve of free space while the database is open; 0: no limit. The database keeps
    /// them, as [`Builder::disk_quota`](crate::Builder::disk_quota) does. The WAL may still fill the piece that it has reserved,
    /// at most 1 MiB.
    ///
    /// # Errors
    /// `NotSupported`: the database is open for reading only. The error that refuses changes. `Shutdown`.
    pub fn limit_disk(&self, limits: DiskLimits) -> Result<()> {
        self.engine.limit_disk(limits)
    }

    /// The family `default`, which always exists.
    pub fn default_family(&self) -> Family {
        Family { db: self.clone(), inner: Arc::clone(&self.default) }
    }

    /// Whether no call has closed the database. A handle may live longer than the database is open.
    pub fn is_open(&self) -> bool {
        self.engine.check_open().is_ok()
    }

    /// The family with this name.
    ///
    /// # Errors
    /// `InvalidArgument`: no family has this name; the text lists the families. `Shutdown(Forked)`.
    pub fn family(&self, name: &str) -> Result<Family> {
        self.engine.check_process()?;
        match self.engine.family(name) {
            Some(inner) => Ok(Family { db: self.clone(), inner }),
            None => {
                let names: Vec<_> = self.engine.families().iter().map(|f| f.name().to_owned()).collect();
                Err(Error::invalid(format!("no column family {name:?}; there are: {}", names.join(", "))))
            }
        }
    }

    /// Every family, `default` first.
    pub fn families(&self) -> Vec<Family> {
        self.engine.families().into_iter().map(|inner| Family { db: self.clone(), inner }).collect()
    }

    /// Creates a family with the settings of `default`, its comparator and merge operator included, in the directories of the
    /// database. The family is durable when the call returns.
    ///
    /// # Errors
    /// `InvalidArgument`: the name is taken.
    pub fn create_family(&self, name: &str) -> Result<Family> {
        self.create_family_with(name, |family| family)
    }

    /// Creates a family with settings of its own. What `set` leaves out is as in `default`, except
    /// that the family has no compaction filter, and only a time to live that [`Builder::ttl`] gave all families.
    ///
    /// ```
    /// # use ashlardb::{Db, Read, StringAppend, Write};
    /// # use std::sync::Arc;
    /// # fn main() -> ashlardb::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = Db::open(dir.path().join("db"))?;
    /// let tags = db.create_family_with("tags", |f| f.merge_operator(Arc::new(StringAppend::new(","))))?;
    /// tags.merge("post:1", "rust")?;
    /// tags.merge("post:1", "storage")?;
    /// assert_eq!(tags.get("post:1")?.as_deref(), Some(&b"rust,storage"[..]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument`: the name is taken, or a setting is out of range.
    pub fn create_family_with(
        &self,
        name: &str,
        set: impl FnOnce(FamilyBuilder) -> FamilyBuilder,
    ) -> Result<Family> {
        let mut options = self.options_of_new();
        set(FamilyBuilder::default()).apply(&mut options)?;
        let inner = self.engine.create_family(name, options)?;
        Ok(Family { db: self.clone(), inner })
    }

    /// The options of a new family that the caller says nothing of.
    pub(crate) fn options_of_new(&self) -> crate::options::FamilyOptions {
        let mut options = (*self.default.options()).clone();
        options.cf_paths.clear();
        options.compaction_filter = None;
        options.value_ttl_secs = self.ttl_of_all;
        options.inherit_tree();
        options
    }

    /// Drops a family with all its entries. The drop is durable when the call returns.
    ///
    /// Handles, scans and cursors of a dropped family still read its state at the drop. Every change through such a handle
    /// answers `InvalidArgument`, also when a new family has the same name.
    ///
    /// # Errors
    /// `InvalidArgument`: it is `default`, was dropped already, or belongs to another database.
    pub fn drop_family(&self, family: &Family) -> Result<()> {
        self.engine.drop_family(&family.inner)
    }

    /// The id of the database, in its file IDENTITY; `None`: the file is missing. Copies have the id of what they are a copy of.
    ///
    /// # Errors
    /// `Io`: the file cannot be read.
    pub fn identity(&self) -> Result<Option<String>> {
        read_identity(&*self.engine.env().fs, self.engine.path())
    }

    /// The id of this open: twenty digits and letters, new at each open. The tables that it writes have the id in their properties.
    pub fn session_id(&self) -> &str {
        self.engine.session_id()
    }

    /// Syncs the WAL: every logged write so far survives a power cut.
    ///
    /// # Errors
    /// `Io`: the sync failed. The engine then refuses writes until it has resumed, which it tries by itself.
    pub fn sync(&self) -> Result<()> {
        self.engine.sync_wal()
    }

    /// Writes the WAL records that [`crate::Builder::manual_wal_flush`] keeps in the process to the WAL file. Every write so
    /// far then survives a killed process. With `sync`, also syncs the file as [`Db::sync`] does.
    ///
    /// # Errors
    /// `Io`: the engine refuses writes until it has resumed. No earlier write is lost meanwhile.
    pub fn flush_wal(&self, sync: bool) -> Result<()> {
        self.engine.flush_wal(sync)
    }

    /// Flushes the memtables of all families to tables, and waits for it.
    ///
    /// # Errors
    /// `Io`: a table could not be written. `Aborted`: background work is paused, or a writer waits for an aborted compaction.
    pub fn flush(&self) -> Result<()> {
        self.engine.flush(&self.engine.families())
    }

    /// Reads and checks every table and blob file: checksums, the order of keys, index and filter. Stops at the first damage.
    /// `progress` is called after each file. Reads and writes may run meanwhile.
    ///
    /// ```
    /// # use ashlardb::prelude::*;
    /// # fn main() -> ashlardb::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = Db::open(dir.path().join("db"))?;
    /// db.put(b"a", b"1")?;
    /// db.flush()?;
    /// let sound = db.verify_checksums(|done| println!("{} of {} files", done.files, done.files_total))?;
    /// assert_eq!((sound.files, sound.entries), (1, 1));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Corruption`: the first damage, with file and offset. `Io`: a file could not be read.
    pub fn verify_checksums(&self, progress: impl FnMut(&Verified)) -> Result<Verified> {
        self.engine.verify_checksums(progress)
    }

    /// Compares each file with its checksum in the MANIFEST; `progress` is called after each file. Only files that AshlarDB or
    /// RocksDB wrote with `file_checksum_gen_factory=FileChecksumGenCrc32cFactory` have such a checksum.
    ///
    /// # Errors
    /// `Corruption`: the first file that differs. `Io`: a file could not be read.
    pub fn verify_file_checksums(&self, progress: impl FnMut(&Verified)) -> Result<Verified> {
        self.engine.verify_file_checksums(progress)
    }

    /// Reads the MANIFEST and every byte of every table and blob file, and does not stop at damage. The report names each
    /// damage and the keys at risk. For a database that is not open, [`crate::check_database`] also reads the WAL files.
    ///
    /// # Errors
    /// `Shutdown`. Damage is not an error of the call; it is in the report.
    pub fn verify_db(&self, progress: impl FnMut(&Verified)) -> Result<CheckReport> {
        self.engine.verify_db(progress)
    }

    /// The progress of the scrubber ([`crate::Builder::scrub`]) since the open, and the damages it found, as in the report of
    /// [`Db::verify_db`].
    pub fn scrubbed(&self) -> Scrubbed {
        self.engine.scrubbed()
    }

    /// Compacts every family completely, and waits for it. Afterwards no deleted or overwritten entry is left, except those
    /// that snapshots need. The replaced files are gone, except those that cursors read.
    ///
    /// # Errors
    /// `Io`, `Corruption`: a table could not be read or written.
    pub fn compact(&self) -> Result<()> {
        self.engine.check_process()?;
        self.engine.families().iter().try_for_each(|f| match self.engine.compact_range(f, None, None) {
            // Another thread was faster.
            Err(_) if f.is_dropped() => Ok(()),
            compacted => compacted,
        })
    }

    /// Changes settings of the open database by RocksDB's names; [`Family::set_options`] changes those of a family. Returns a
    /// notice for each name that has no effect.
    ///
    /// # Errors
    /// Those of [`Family::set_options`]. `InvalidArgument`: `max_background_jobs`, of a database that shares `Resources`.
    pub fn set_db_options(&self, changes: &[(&str, &str)]) -> Result<Vec<String>> {
        let notices = self.engine.set_db_options(changes)?;
        Ok(notices.iter().map(ToString::to_string).collect())
    }

    /// The sequence number of the newest write that reads see.
    pub fn sequence(&self) -> SeqNum {
        self.engine.visible()
    }

    /// The sequence number up to which every logged write survives a power cut. Writes without the WAL survive once they are
    /// flushed.
    pub fn durable_sequence(&self) -> SeqNum {
        self.engine.durable()
    }

    /// The report of the open: what it found, dropped or rebuilt.
    pub fn recovery(&self) -> &RecoveryReport {
        self.engine.recovery()
    }

    /// The most severe background error that is not cleared, and its severity.
    pub fn health(&self) -> Health {
        self.engine.health()
    }

    /// How many bytes compaction is behind, its measured rates, the time until writers will have to wait, and the disk space.
    pub fn pressure(&self) -> WritePressure {
        self.engine.pressure()
    }

    /// Tries at once to leave an error state. The engine also tries by itself, after pauses of up to one minute.
    ///
    /// # Errors
    /// The background error, when writes are still refused. `Shutdown`.
    pub fn resume(&self) -> Result<()> {
        self.engine.resume()
    }

    /// Waits for running background work, flushes writes that skipped the WAL, and closes the database. From then on the
    /// reads and writes of every clone answer `Shutdown`, and so do transactions that wait for a lock. A descriptor of the
    /// directory stays open until the last handle, snapshot and cursor is dropped.
    ///
    /// # Errors
    /// The first failure, and whether writes without the WAL may be lost; the database is closed in any case.
    /// `Io(NotFound)`: the directory, or a file that the next open needs, was removed while the database was open.
    /// `InvalidArgument`: a callback of a write or of background work made the call; the database stays open.
    pub fn close(&self) -> Result<()> {
        let closed = self.engine.close();
        ashlar_txn::end_waits(&self.engine);
        closed
    }
}
