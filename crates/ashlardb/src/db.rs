//! The database handle.

use crate::Pins;
use crate::{
    Builder, CheckReport, Family, RecoveryReport, Result, Scrubbed, Snapshot, Verified, WriteBatch,
    WriteOptions, Writer,
};
use ashlar_base::{Error, SeqNum};
pub use ashlar_engine::health::Severity;
pub use ashlar_engine::pressure::Forecast;
use std::borrow::Borrow;
use std::path::Path;
use std::sync::Arc;

/// An open database. Clones share it; dropping the last one closes it.
///
/// Listeners, merge operators and comparators are called in the middle of the engine's work. There, calls that write, change
/// settings or families, wait for background work or close are refused with `InvalidArgument`. Dropping the last handle
/// there lets another thread close the database.
///
/// A handle serves the process that opened it. In a child that is forked off, every call answers `Shutdown(Forked)`, and
/// dropping the handle, its snapshots and cursors changes nothing: the database goes on in the parent. The child can open
/// databases of its own, and this one for reading only.
#[derive(Clone, Debug)]
pub struct Db {
    engine: ashlar_engine::Db,
    default: Arc<ashlar_engine::column_family::Family>,
}

impl Db {
    /// Opens the database in the directory `path`, or makes one. RocksDB's and LevelDB's directories open as they are.
    ///
    /// The handle stays with the directory that has this name now. A rename of it, another working directory, or another
    /// database under the old name change nothing; errors go on to print `path`. Below it no symbolic link is followed.
    ///
    /// # Errors
    /// `Busy(Locked)`: another handle or process has the directory open, or holds an `flock` on it. `Corruption`: damaged, with file and offset; nothing was changed.
    /// `NotSupported`: it holds what AshlarDB cannot serve, by name. `Io`: the operating system refused.
    pub fn open(path: impl AsRef<Path>) -> Result<Db> {
        Builder::new(path).open()
    }

    /// Opens the database in the directory `path` for reading only. Takes no lock and writes nothing, so that it works on
    /// a read-only mount, and beside a process, of AshlarDB or of RocksDB, that writes to the database meanwhile. It shows
    /// the state of one moment during the open. Writes, flushes and compactions are answered `NotSupported`.
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
    /// `InvalidArgument`: there is no database. `Corruption`, `Io`: damaged, or changed by others so fast that no moment
    /// of it could be seen.
    /// # Cost
    /// An open file for each table and blob file, and memory for all that the logs hold.
    pub fn open_read_only(path: impl AsRef<Path>) -> Result<Db> {
        Builder::new(path).read_only(true).open()
    }

    /// To open with settings.
    pub fn builder(path: impl AsRef<Path>) -> Builder {
        Builder::new(path)
    }

    pub(crate) fn wrap(engine: ashlar_engine::Db) -> Result<Db> {
        let default = engine
            .family(ashlar_engine::column_family::DEFAULT_FAMILY)
            .ok_or_else(|| Error::corruption("a database without the family default"))?;
        Ok(Db { engine, default })
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

    /// Writes a batch: all of it, or nothing. Takes the batch or a reference to it. After `Ok` the batch is empty and keeps
    /// its memory; after an error it is as it was.
    ///
    /// # Errors
    /// As [`crate::Write::put`]; `InvalidArgument` also when the batch has operations on a family of another database.
    pub fn write(&self, batch: impl Borrow<WriteBatch>) -> Result<()> {
        self.writing(WriteOptions::default()).write(batch)
    }

    /// Pins the present state until the guard is dropped.
    ///
    /// # Errors
    /// `Shutdown`.
    pub fn snapshot(&self) -> Result<Snapshot> {
        Ok(Snapshot { inner: self.engine.snapshot()?, db: self.clone() })
    }

    /// What cursors and snapshots keep alive together: the first thing to ask when memory or disk does not come free.
    ///
    /// # Errors
    /// `Shutdown`.
    pub fn pins(&self) -> Result<Pins> {
        self.engine.pins()
    }

    /// The family that always exists.
    pub fn default_family(&self) -> Family {
        Family { db: self.clone(), inner: Arc::clone(&self.default) }
    }

    /// The family of that name.
    ///
    /// # Errors
    /// `InvalidArgument` listing the families there are. `Shutdown(Forked)`.
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

    /// Makes a family with the settings of `default`, its order and merge operator included, but in the directories of the
    /// database. Durable when it returns.
    ///
    /// # Errors
    /// `InvalidArgument`: the name is taken.
    pub fn create_family(&self, name: &str) -> Result<Family> {
        let mut options = (*self.default.options()).clone();
        options.cf_paths.clear();
        let inner = self.engine.create_family(name, options)?;
        Ok(Family { db: self.clone(), inner })
    }

    /// Drops a family with all it holds. Durable when it returns. A handle of a dropped family still reads it as it was
    /// then, and so do scans and cursors; every change through the handle is refused with `InvalidArgument`, also after a
    /// new family was made under the same name.
    ///
    /// # Errors
    /// `InvalidArgument`: it is `default`, was dropped already, or belongs to another database.
    pub fn drop_family(&self, family: &Family) -> Result<()> {
        self.engine.drop_family(&family.inner)
    }

    /// Makes every write so far durable.
    ///
    /// # Errors
    /// `Io`, after which writes are refused.
    pub fn sync(&self) -> Result<()> {
        self.engine.sync_wal()
    }

    /// Hands what [`crate::Builder::manual_wal_flush`] holds back in the process to the operating system: every write so
    /// far survives the process then. With `sync`, a power cut too, as after [`Db::sync`].
    ///
    /// # Errors
    /// `Io`, after which writes are refused until the engine has resumed; nothing that was written is lost meanwhile.
    pub fn flush_wal(&self, sync: bool) -> Result<()> {
        self.engine.flush_wal(sync)
    }

    /// Writes the memtables of all families to tables and waits for it.
    ///
    /// # Errors
    /// `Io`: a table could not be written. `Aborted`: background work is paused, or compactions are aborted and a writer
    /// waits for one.
    pub fn flush(&self) -> Result<()> {
        self.engine.flush(&self.engine.families())
    }

    /// Reads every table and blob file and checks it; `progress` is called after each. Runs beside reads and writes.
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
    /// `Corruption` with file and offset, `Io`: of the first file that is not sound.
    pub fn verify_checksums(&self, progress: impl FnMut(&Verified)) -> Result<Verified> {
        self.engine.verify_checksums(progress)
    }

    /// Compares the files that have a checksum in the MANIFEST with it; `progress` is called after each. They have one when
    /// they were written with `file_checksum_gen_factory=FileChecksumGenCrc32cFactory`, here or by RocksDB.
    ///
    /// # Errors
    /// `Corruption`, `Io`: of the first file that is not sound.
    pub fn verify_file_checksums(&self, progress: impl FnMut(&Verified)) -> Result<Verified> {
        self.engine.verify_file_checksums(progress)
    }

    /// Reads the MANIFEST and all of every table and blob file, and goes on behind damages: the report names each, and the
    /// keys it puts at risk. The same of a database that nobody has open, its logs included: [`crate::check_database`].
    ///
    /// # Errors
    /// `Shutdown`. Damage is no error but in the report.
    pub fn verify_db(&self, progress: impl FnMut(&Verified)) -> Result<CheckReport> {
        self.engine.verify_db(progress)
    }

    /// What the scrubber ([`crate::Builder::scrub`]) has read and found since the open: its damages are those of
    /// [`Db::verify_db`].
    pub fn scrubbed(&self) -> Scrubbed {
        self.engine.scrubbed()
    }

    /// Compacts every family wholly and waits for it.
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

    /// Changes settings of the database while it is open; those of a family: [`Family::set_options`].
    ///
    /// # Errors
    /// As [`Family::set_options`].
    pub fn set_db_options(&self, changes: &[(&str, &str)]) -> Result<Vec<String>> {
        let notices = self.engine.set_db_options(changes)?;
        Ok(notices.iter().map(ToString::to_string).collect())
    }

    /// The newest sequence number that reads see.
    pub fn sequence(&self) -> SeqNum {
        self.engine.visible()
    }

    /// Sequence number of the last write that a power cut leaves: everything up to it is on the device.
    pub fn durable_sequence(&self) -> SeqNum {
        self.engine.durable()
    }

    /// What the open found, dropped or rebuilt.
    pub fn recovery(&self) -> &RecoveryReport {
        self.engine.recovery()
    }

    /// How well the database is, and the error that made it worse.
    pub fn health(&self) -> (Severity, Option<Error>) {
        self.engine.health()
    }

    /// How far background work is behind, what it carries, and when writers will have to wait at this rate.
    pub fn pressure(&self) -> Forecast {
        self.engine.pressure()
    }

    /// Tries to leave an error state now. The engine also tries by itself, after pauses of up to a minute.
    ///
    /// # Errors
    /// The cause, when writes are refused still. `Shutdown`.
    pub fn resume(&self) -> Result<()> {
        self.engine.resume()
    }

    /// Waits for background work to pause, and closes; every clone answers `Shutdown` from then on.
    ///
    /// A descriptor of the directory stays open until the last handle, snapshot and cursor is dropped.
    ///
    /// # Errors
    /// What went wrong on the way, and whether writes without the log may be lost; the database is closed all the same.
    /// `Io(NotFound)`: the directory, or a file that the next open needs, was removed while the database was open.
    /// `InvalidArgument`: one of the database's own callbacks makes the call; the database stays open.
    pub fn close(&self) -> Result<()> {
        self.engine.close()
    }
}
