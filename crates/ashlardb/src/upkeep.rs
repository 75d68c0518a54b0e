//! Requests for background work and copies: compactions, pauses, aborts, quarantine, checkpoints, updates.

use crate::range::{KeyRange, Keys};
use crate::{CompactionEvent, Db, Family, RepairReport, Result, WalFile};
use ashlar_backup::BackupSource;
pub use ashlar_backup::{Change, Checkpoint, CheckpointOptions, Copied, Update, Updates};
use ashlar_base::{FileNumber, Level, SeqNum};
pub use ashlar_engine::{HeldTables, LiveFile};
pub use ashlar_format::table::Properties as StoredProperties;
pub use ashlar_options::{CompactFilesOptions, CompactRangeOptions};
pub use ashlar_tree::version::TableProperties;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

impl Db {
    /// [`Family::compact_range`] of the family `default`.
    ///
    /// # Errors
    /// Those of [`Family::compact_range`].
    pub fn compact_range(&self, range: impl KeyRange, options: CompactRangeOptions) -> Result<()> {
        self.default_family().compact_range(range, options)
    }

    /// Pauses background work: waits until running jobs have ended, and starts no new ones. Calls add up; each needs its own
    /// [`Db::continue_background_work`].
    ///
    /// During the pause, writers continue until the memtables are full. [`Db::flush`], requests for a compaction, and
    /// [`Db::wait_for_background`] with work due answer `Aborted`. So do [`Db::create_family`] and [`Db::drop_family`] while a
    /// writer waits.
    ///
    /// # Errors
    /// The background error that keeps running work from ending. Nothing is paused then.
    pub fn pause_background_work(&self) -> Result<()> {
        self.engine().pause_background_work()
    }

    /// Ends one [`Db::pause_background_work`].
    ///
    /// # Errors
    /// `InvalidArgument`: background work is not paused.
    pub fn continue_background_work(&self) -> Result<()> {
        self.engine().continue_background_work()
    }

    /// Aborts running compactions, waits for their end, and starts no new ones; flushes continue. The engine removes the
    /// outputs of aborted compactions and keeps their inputs. Calls add up; each needs its own [`Db::resume_compactions`].
    ///
    /// # Errors
    /// The background error, when the database is in an error state.
    pub fn abort_compactions(&self) -> Result<()> {
        self.engine().abort_compactions()
    }

    /// Ends one [`Db::abort_compactions`].
    ///
    /// # Errors
    /// `InvalidArgument`: compactions are not aborted.
    pub fn resume_compactions(&self) -> Result<()> {
        self.engine().resume_compactions()
    }

    /// Removes a damaged table or blob file from the open database. `file` is the name in the report or error that named the
    /// damage: `000012.sst`, `000013.blob`.
    ///
    /// A new file with the readable entries takes its place. The original moves to `lost/` as soon as no reader holds it. The
    /// report names the keys whose newest versions are lost. Compactions that the damage had stopped start again, and writes
    /// resume.
    ///
    /// # Errors
    /// `InvalidArgument`: there is no such file, or it is not damaged. `Busy`: a compaction reads the file, or a table that may
    /// point into it. `Io`: the file could not be read or replaced; the call gave nothing up.
    /// # Cost
    /// Reads the whole file. For a blob file, also rewrites each table that points into it.
    pub fn quarantine(&self, file: &str) -> Result<RepairReport> {
        ashlar_repair::quarantine(self.engine(), file)
    }

    /// Makes the directory `into` a database with the present state, over all families. Writers go on meanwhile, and their
    /// later writes are not in the copy. Call it for a backup, or to look at a state without stopping the program.
    ///
    /// Tables and blob files become hard links where `into` is on the same file system, so a checkpoint of a large database
    /// takes milliseconds and little room. Neither database ever changes a file of the other. RocksDB opens the checkpoint too.
    ///
    /// ```
    /// # use ashlardb::prelude::*;
    /// # fn main() -> ashlardb::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let (path, copy) = (dir.path().join("db"), dir.path().join("monday"));
    /// let db = Db::open(&path)?;
    /// db.put("balance", "10")?;
    /// db.checkpoint(&copy)?;
    /// db.put("balance", "20")?;
    /// let monday = Db::open(&copy)?;
    /// assert_eq!(monday.get("balance")?.as_deref(), Some(&b"10"[..]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument`: something is in `into`, `into` lies in the directory of the database, or a callback of the database
    /// makes the call. `NotSupported`: the database is open for reading only, or its tables are in several directories.
    /// `Aborted`: background work is paused, and a flush is needed because writes skipped the WAL. `Busy(Locked)`: another
    /// checkpoint to `into` is being made. `Io`, `Corruption`: a file could not be copied, or is missing. After an error there
    /// is nothing in `into`.
    /// # Cost
    /// A link or a copy for each table and blob file, a copy of the WAL files, one fsync per copied file. A close waits for
    /// the end of the call.
    pub fn checkpoint(&self, into: impl AsRef<Path>) -> Result<Checkpoint> {
        self.checkpoint_with(into, CheckpointOptions::new(), |_| ())
    }

    /// [`Db::checkpoint`] with options. `progress` is called after each file.
    ///
    /// # Errors
    /// Those of [`Db::checkpoint`].
    pub fn checkpoint_with(
        &self,
        into: impl AsRef<Path>,
        options: CheckpointOptions,
        mut progress: impl FnMut(&Copied),
    ) -> Result<Checkpoint> {
        ashlar_backup::checkpoint(self.engine(), into.as_ref(), options, &mut progress)
    }

    /// The batches that have a change at or after the sequence number `since`, up to the newest write, in order: for a copy that
    /// follows, or a feed of changes. Ask again with the number after the last batch for what was written meanwhile. The number
    /// of a checkpoint is [`Checkpoint::sequence`].
    ///
    /// The batches come from the WAL files. Those that the database no longer needs are removed, unless `WAL_ttl_seconds` or
    /// `WAL_size_limit_MB` keeps them in the directory `archive`. Ingested files, and writes that skipped the WAL, are not among
    /// the batches. (RocksDB: `GetUpdatesSince`.)
    ///
    /// ```
    /// # use ashlardb::prelude::*;
    /// use ashlardb::{Change, SeqNum};
    /// # fn main() -> ashlardb::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// let db = Db::builder(dir.path().join("db")).options("WAL_ttl_seconds=86400").open()?;
    /// db.put("k", "v")?;
    /// db.flush()?;
    /// for update in db.updates_since(SeqNum::new(1).unwrap())? {
    ///     for change in update?.changes()? {
    ///         assert!(matches!(change, Change::Put { key: b"k", value: b"v", .. }));
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Io(NotFound)`: the WAL files with the first of these writes are gone. `InvalidArgument`: `since` is beyond the number
    /// after the newest write, or a callback of the database makes the call. `NotSupported`: the database is open for reading
    /// only. `Corruption`, `Io`: a WAL file could not be read. `Shutdown`; the error that refuses writes.
    /// # Cost
    /// Opens the WAL files from the one with `since` on, and reads the beginning of each. The items read the rest.
    pub fn updates_since(&self, since: SeqNum) -> Result<Updates> {
        ashlar_backup::updates_since(self.engine(), since)
    }

    /// [`Db::updates_since`], without the batches whose WAL files are gone: a copy that needs all of them must not use it.
    ///
    /// # Errors
    /// Those of [`Db::updates_since`], but for `Io(NotFound)`.
    /// # Cost
    /// That of [`Db::updates_since`].
    pub fn updates_left(&self, since: SeqNum) -> Result<Updates> {
        ashlar_backup::updates_left(self.engine(), since)
    }

    /// The WAL files at this moment, those of the archive included, in the order of their writes. The last one takes the next
    /// write. A file that a purge has yet to move to the archive is listed where it is. (RocksDB: `GetSortedWalFiles`,
    /// `GetCurrentWalFile`.)
    ///
    /// ```
    /// # use ashlardb::prelude::*;
    /// # fn main() -> ashlardb::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// let db = Db::open(dir.path().join("db"))?;
    /// db.put("k", "v")?;
    /// let files = db.wal_files()?;
    /// assert_eq!(files.last().and_then(|file| file.first), ashlardb::SeqNum::new(1));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `NotSupported`: the database is open for reading only. `InvalidArgument`: a callback of the database makes the call.
    /// `Corruption`, `Io`: a WAL file could not be read. `Shutdown`; the error that refuses writes.
    /// # Cost
    /// Reads the first record of each WAL file.
    pub fn wal_files(&self) -> Result<Vec<WalFile>> {
        ashlar_backup::wal_files(self.engine())
    }

    /// Waits until no background work is running or due, and replaced files are removed. While a cursor reads replaced
    /// files, these files stay, and the call takes 63 ms longer. Returns at once after a close.
    ///
    /// While other threads write without a pause, work is always due, and the call may not return before they end. On a full
    /// disk the call returns the error within about ten seconds.
    ///
    /// # Errors
    /// The background error that keeps work from succeeding. `Aborted`: work is due, and background work is paused.
    pub fn wait_for_background(&self) -> Result<()> {
        self.engine().wait_for_background()
    }
}

impl BackupSource for Db {
    fn source(&self) -> &ashlar_engine::Db {
        self.engine()
    }
}

impl Family {
    /// Flushes the family's memtables to a table, and waits for it. With `atomic_flush`, flushes all families in one step.
    ///
    /// # Errors
    /// Those of [`Db::flush`].
    pub fn flush(&self) -> Result<()> {
        self.db.engine().flush(std::slice::from_ref(&self.inner))
    }

    /// Compacts the keys of `range` into the deepest level that has any of them, and waits for it. Beyond the range it rewrites
    /// only the tables at its ends.
    ///
    /// ```
    /// # use ashlardb::prelude::*;
    /// # use ashlardb::CompactRangeOptions;
    /// # fn main() -> ashlardb::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = Db::open(dir.path().join("db"))?;
    /// let log = db.create_family("log")?;
    /// log.delete_range("2024", "2025")?;
    /// log.compact_range("2024".."2025", CompactRangeOptions::default())?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Io`, `Corruption`: a table could not be read or written. `Aborted`: by [`Db::abort_compactions`], or because
    /// background work is paused. `InvalidArgument`: the family was dropped, the range begins after its end, the target level
    /// does not exist, or levels on the way to it are not empty.
    pub fn compact_range(&self, range: impl KeyRange, options: CompactRangeOptions) -> Result<()> {
        let keys = Keys::of(&range);
        keys.check(&self.inner.options().order)?;
        let (begin, end) = (keys.0.lower.as_deref(), keys.0.upper.as_deref());
        self.db.engine().compact_range_with(&self.inner, begin, end, options)
    }

    /// Compacts the tables with these file numbers into level `output`, and waits for it. Tables that overlap them take part
    /// as far as the order of the levels requires.
    ///
    /// # Errors
    /// `InvalidArgument`: a table does not exist or is deeper than `output`, or the level does not exist. Others as
    /// [`Family::compact_range`].
    pub fn compact_files(&self, numbers: &[FileNumber], output: Level) -> Result<()> {
        self.compact_files_with(numbers, output, CompactFilesOptions::new()).map(drop)
    }

    /// [`Family::compact_files`] with options. Returns what the compaction did; `None`: there was nothing to do.
    ///
    /// # Errors
    /// Those of [`Family::compact_files`].
    pub fn compact_files_with(
        &self,
        numbers: &[FileNumber],
        output: Level,
        how: CompactFilesOptions,
    ) -> Result<Option<CompactionEvent>> {
        self.db.engine().compact_files(&self.inner, numbers, output, how)
    }

    /// The family's live tables, by level. Tables of level 0 come newest first, those of deeper levels in key order.
    ///
    /// # Errors
    /// `Shutdown`.
    pub fn live_files(&self) -> Result<Vec<LiveFile>> {
        self.db.engine().live_files(&self.inner)
    }

    /// The properties of all live tables of the family, those of its collectors included. The order is that of
    /// [`Family::live_files`]. (RocksDB: `GetPropertiesOfAllTables`.)
    ///
    /// # Errors
    /// `Corruption`, `Io`: a table cannot be opened. `Shutdown`.
    /// # Cost
    /// Opens the tables that nothing has opened yet.
    pub fn properties_of_all_tables(&self) -> Result<Vec<TableProperties>> {
        self.properties_of_tables_in_range(..)
    }

    /// The properties of the family's live table with that number; `None`: the family has no such table now.
    ///
    /// # Errors
    /// Those of [`Family::properties_of_all_tables`].
    pub fn properties_of_table(&self, number: FileNumber) -> Result<Option<TableProperties>> {
        self.db.engine().properties_of_table(&self.inner, number)
    }

    /// The path of the family's live table with that number; `None`: the family has no such table now. If the directory was renamed
    /// since the open, the path has the former name.
    ///
    /// # Errors
    /// `Shutdown`.
    pub fn path_of_table(&self, number: FileNumber) -> Result<Option<PathBuf>> {
        self.db.engine().path_of_table(&self.inner, number)
    }

    /// The paths of all live tables of the family at this moment, as [`Family::path_of_table`] has them.
    ///
    /// # Errors
    /// `Shutdown`.
    pub fn paths_of_tables(&self) -> Result<BTreeMap<FileNumber, PathBuf>> {
        self.db.engine().paths_of_tables(&self.inner)
    }

    /// The tables of the family at this moment. While the database is open, their files stay as long as the answer, also after a
    /// compaction has replaced them. The answer does not keep the database open, and the next open removes what is obsolete.
    ///
    /// # Errors
    /// `Shutdown`.
    pub fn hold_tables(&self) -> Result<HeldTables> {
        self.db.engine().hold_tables(&self.inner)
    }

    /// [`Family::properties_of_all_tables`] for the tables whose first or last key is in `range`, or that reach over it.
    /// (RocksDB: `GetPropertiesOfTablesInRange`.)
    ///
    /// # Errors
    /// Those of [`Family::properties_of_all_tables`]; `InvalidArgument`: the range begins after its end.
    pub fn properties_of_tables_in_range(&self, range: impl KeyRange) -> Result<Vec<TableProperties>> {
        let keys = Keys::of(&range);
        keys.check(&self.inner.options().order)?;
        self.db.engine().table_properties(&self.inner, &keys.0)
    }
}
