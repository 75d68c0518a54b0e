//! One family copied from a database to another, and the list of files for programs that copy.

use crate::options::FamilyOptions;
use crate::{Db, Family, FamilyBuilder, FamilyExport, ImportOptions, LiveFiles, Result};
use ashlar_base::Order;
use std::path::Path;

impl Family {
    /// Exports the family: makes the directory `into` a database that has this one family, and returns its description. Tables
    /// become hard links where `into` is on the same file system. [`Db::import_family`] makes a family of it in another
    /// database, or under another name in this one. (RocksDB: `Checkpoint::ExportColumnFamily`.)
    ///
    /// The family is flushed first. The export has the writes up to some moment during the call.
    ///
    /// ```
    /// # use ashlardb::prelude::*;
    /// # use ashlardb::FamilyExport;
    /// # fn main() -> ashlardb::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let (from, to, out) = (dir.path().join("from"), dir.path().join("to"), dir.path().join("events"));
    /// let db = Db::builder(&from).family("events", |f| f).open()?;
    /// db.family("events")?.put("k", "v")?;
    /// let export = db.family("events")?.export(&out)?;
    /// assert_eq!((export.files.len(), export.comparator.as_str()), (1, "leveldb.BytewiseComparator"));
    ///
    /// // In another program, later:
    /// let other = Db::open(&to)?;
    /// let events = other.import_family("events", &FamilyExport::read(&out)?)?;
    /// assert_eq!(events.get("k")?.as_deref(), Some(&b"v"[..]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument`: something is in `into`, `into` lies in the directory of the database, a callback of the database makes
    /// the call, or the family was dropped. `NotSupported`: values of the family are in blob files, its tables are in several
    /// directories, or the database is open for reading only. `Aborted`: background work is paused. `Busy(Locked)`: another copy
    /// to `into` is being made. `Io`, `Corruption`: a file could not be copied, or is missing. After an error there is nothing
    /// in `into`.
    /// # Cost
    /// A flush, a link or a copy for each table, three small files. A close waits for the end of the call.
    pub fn export(&self, into: impl AsRef<Path>) -> Result<FamilyExport> {
        ashlar_backup::export_family(self.db.engine(), &self.inner, into.as_ref())
    }
}

impl Db {
    /// Makes the family `name` of an export, with hard links to its tables where they are on the same file system. The tables keep
    /// their levels and sequence numbers. The family and all its tables are durable when the call returns; a crash before leaves
    /// no family. (RocksDB: `CreateColumnFamilyWithImport`.)
    ///
    /// Comparator and merge operator are those of the export, if they are built in. Other settings are as in `default`, as
    /// [`Db::create_family`] has it. Later writes are newer than all imported ones. Snapshots from before the import
    /// show no entry of the family.
    ///
    /// # Errors
    /// Those of [`Db::import_family_with`].
    pub fn import_family(&self, name: &str, export: &FamilyExport) -> Result<Family> {
        self.import_family_with(name, export, ImportOptions::new(), |family| family)
    }

    /// [`Db::import_family`] with options, and settings of the new family's own.
    ///
    /// ```
    /// # use ashlardb::prelude::*;
    /// # use ashlardb::{ImportOptions, IngestMode, StringAppend};
    /// # use std::sync::Arc;
    /// # fn main() -> ashlardb::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = Db::open(dir.path().join("db"))?;
    /// let tags = db.create_family_with("tags", |f| f.merge_operator(Arc::new(StringAppend::new(","))))?;
    /// tags.merge("post:1", "rust")?;
    /// let export = tags.export(dir.path().join("out"))?;
    /// let moved = ImportOptions::new().mode(IngestMode::Move);
    /// let copy = db.import_family_with("copy", &export, moved, |f| f.compression(ashlardb::Compression::Zstd))?;
    /// copy.merge("post:1", "storage")?;
    /// assert_eq!(copy.get("post:1")?.as_deref(), Some(&b"rust,storage"[..]));
    /// assert_eq!(tags.get("post:1")?.as_deref(), Some(&b"rust"[..]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument`: there is a family `name`, or a setting is out of range. Another comparator or merge operator than that
    /// of the export, or none where the tables have merges. Values with write times for a family without a time to live, or the
    /// reverse. A table that is named twice, lies in a directory of the database, or is in a deeper level than the family has. A
    /// table with a newer format than the format level allows. `Corruption`: a table is damaged, is not the described one, or overlaps
    /// another one of its level. `NotSupported`: values in blob files; the database is open for reading only. `Io`: a table is
    /// missing, or cannot be linked or copied. `Shutdown`. After an error there is no such family, and the export is as before.
    /// # Cost
    /// A link or a copy of each table, one pass over its bytes unless [`ImportOptions::verify`] is off, a sync of each table and of
    /// the WAL. Writers wait during one commit.
    pub fn import_family_with(
        &self,
        name: &str,
        export: &FamilyExport,
        options: ImportOptions,
        set: impl FnOnce(FamilyBuilder) -> FamilyBuilder,
    ) -> Result<Family> {
        let mut family = self.options_of_new();
        forget_order(&mut family);
        set(FamilyBuilder::default()).apply(&mut family)?;
        let inner = ashlar_backup::import_family(self.engine(), name, export, family, options)?;
        Ok(Family { db: self.clone(), inner })
    }
}

/// Leaves comparator and merge operator to the export.
fn forget_order(family: &mut FamilyOptions) {
    (family.order, family.merge_operator, family.stored_merge_operator) = (Order::Bytewise, None, None);
}

impl Db {
    /// The files of the present moment, for a program that copies them itself: with their bytes, checksums, and for tables the
    /// family, level, keys and sequence numbers. No file of the list is removed while the list lives. (RocksDB:
    /// `GetLiveFilesStorageInfo` with `DisableFileDeletions`.)
    ///
    /// Copied up to the listed bytes into one directory, the files are a database with the writes up to
    /// [`LiveFiles::sequence`]. [`Db::checkpoint`] and [`crate::BackupEngine`] do that, and more safely: use the list for a place
    /// that only another program reaches. For the tables of one family alone there is [`Family::live_files`].
    ///
    /// ```
    /// # use ashlardb::prelude::*;
    /// # fn main() -> ashlardb::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let (path, copy) = (dir.path().join("db"), dir.path().join("copy"));
    /// use std::io::{Read as _, Write as _};
    ///
    /// let db = Db::open(&path)?;
    /// db.put("k", "v")?;
    /// let live = db.live_files()?;
    /// std::fs::create_dir(&copy).unwrap();
    /// for file in live.iter() {
    ///     let mut bytes = Vec::new();
    ///     match &file.content {
    ///         Some(content) => bytes.extend_from_slice(content),
    ///         // A WAL file or MANIFEST may grow meanwhile.
    ///         None => {
    ///             let source = std::fs::File::open(file.path()).unwrap();
    ///             source.take(file.bytes).read_to_end(&mut bytes).unwrap();
    ///         }
    ///     }
    ///     std::fs::File::create(copy.join(&file.name)).unwrap().write_all(&bytes).unwrap();
    /// }
    /// drop(live);
    /// assert_eq!(Db::open(&copy)?.get("k")?.as_deref(), Some(&b"v"[..]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `NotSupported`: the database is open for reading only, or its tables are in several directories. `InvalidArgument`: a
    /// callback of the database makes the call. `Aborted`: background work is paused, and a flush is needed because writes
    /// skipped the WAL. `Corruption`, `Io`: the MANIFEST cannot be read, or a file is missing. `Shutdown`.
    /// # Cost
    /// Reads the MANIFEST. A flush if writes skipped the WAL. Files that become obsolete take their room until the list is dropped.
    pub fn live_files(&self) -> Result<LiveFiles> {
        ashlar_backup::live_files(self.engine())
    }
}
