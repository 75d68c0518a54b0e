//! Taking files that were written outside the database into it.

use crate::{Db, Family, IngestOptions, Ingested, Result};
use std::path::{Path, PathBuf};
use std::sync::Arc;

impl Db {
    /// Takes files into the family `default`: [`Family::ingest`].
    ///
    /// # Errors
    /// Those of [`Family::ingest`].
    pub fn ingest(&self, files: &[impl AsRef<Path>], options: IngestOptions) -> Result<Vec<Ingested>> {
        self.default_family().ingest(files, options)
    }

    /// Takes files into several families: all of them or none, also over a crash. Readers of a snapshot that is taken after the
    /// call see all of them.
    ///
    /// ```
    /// # use ashlardb::prelude::*;
    /// # use ashlardb::IngestOptions;
    /// # fn main() -> ashlardb::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = Db::open(dir.path().join("db"))?;
    /// let (names, ages) = (db.create_family("names")?, db.create_family("ages")?);
    /// let files = [dir.path().join("names.sst"), dir.path().join("ages.sst")];
    /// for (family, file, value) in [(&names, &files[0], "Ada"), (&ages, &files[1], "36")] {
    ///     let mut writer = family.sst_writer(file)?;
    ///     writer.put("user:1", value)?;
    ///     writer.finish()?;
    /// }
    /// db.ingest_families(&[(&names, &files[..1]), (&ages, &files[1..])], IngestOptions::new())?;
    /// assert_eq!(ages.get("user:1")?.as_deref(), Some(&b"36"[..]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`Family::ingest`]; `InvalidArgument` also when a family is named twice.
    pub fn ingest_families<P: AsRef<Path>>(
        &self,
        parts: &[(&Family, &[P])],
        options: IngestOptions,
    ) -> Result<Vec<Ingested>> {
        let named =
            |files: &[P]| files.iter().map(|file| file.as_ref().to_path_buf()).collect::<Vec<PathBuf>>();
        let parts: Vec<_> =
            parts.iter().map(|(family, files)| (Arc::clone(&family.inner), named(files))).collect();
        self.engine().ingest(&parts, options)
    }
}

impl Family {
    /// Takes files that an [`crate::SstWriter`] or RocksDB's `SstFileWriter` wrote into the family, all of them or none. Their
    /// entries count as written now: they hide older entries of their keys, and snapshots and cursors from before the call do
    /// not see them. Of a key in several files, the last file in the list has the newest entry. The files are durable when the
    /// call returns, and so is every write before it.
    ///
    /// Each file goes to the deepest level where the order of the entries allows it. Memtables with keys in its range are flushed
    /// first. By default a file becomes a hard link: do not change its bytes afterwards.
    ///
    /// # Errors
    /// `InvalidArgument`: no file; a family of another database or one that was dropped. Also a file that is named twice, lies
    /// in a directory of the database, has another comparator or was written for another family. Also a newer table format
    /// than the format level allows, and merges for a family without a merge operator. `Corruption`: a file is damaged or not whole.
    /// `NotSupported`: a file that was not written to be ingested, or has entries that are not served; a database that is open for
    /// reading only. `Aborted`: the options rule out the flush or the level, or background work is paused and a flush is needed.
    /// `Io`: a file cannot be read, linked or copied. `Shutdown`. The text names the file. After an error the database and the
    /// sources are as before.
    /// # Cost
    /// A link or a copy of each file, one pass over its bytes unless [`IngestOptions::verify`] is off, a sync of each file and of
    /// the WAL. Writers wait during the last steps: a sync of the WAL, the search for levels, one commit. They also wait for the
    /// flush of writes in the files' range that came during the call.
    pub fn ingest(&self, files: &[impl AsRef<Path>], options: IngestOptions) -> Result<Vec<Ingested>> {
        self.db.ingest_families(&[(self, files)], options)
    }
}
