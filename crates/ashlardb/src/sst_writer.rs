//! Files for an ingestion, written without a database.

use crate::options::FamilyOptions;
use crate::{Env, Family, FamilyBuilder, FormatLevel, Result, ValueType};
use ashlar_engine::SstWriter as Inner;
use ashlar_engine::batch::encode_entity;
use std::path::Path;

pub use ashlar_engine::SstSummary;

/// Writes an SST file outside a database, for [`Family::ingest`] or RocksDB's `IngestExternalFile`.
///
/// Keys come in strictly ascending order, each once; range deletions may come at any time. The file gets its name at the end of
/// [`SstWriter::finish`], when it is whole and synced. Until then its bytes are in a file beside it whose name ends in
/// `.unfinished`. Dropping the writer removes that file; a killed process leaves it.
///
/// ```
/// # use ashlardb::prelude::*;
/// # use ashlardb::{IngestOptions, SstWriter};
/// # fn main() -> ashlardb::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = Db::open(dir.path().join("db"))?;
/// let file = dir.path().join("users.sst");
/// let mut writer = SstWriter::create(&file)?;
/// writer.put("user:1", "Ada")?;
/// writer.put("user:2", "Grace")?;
/// let written = writer.finish()?;
/// assert_eq!(written.entries, 2);
/// db.ingest(&[&file], IngestOptions::new())?;
/// assert_eq!(db.get("user:2")?.as_deref(), Some(&b"Grace"[..]));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "a writer that is dropped leaves no file"]
pub struct SstWriter {
    inner: Inner,
}

impl SstWriter {
    /// A writer for keys in ascending byte order, with the default format, which RocksDB 8.6 and later reads. The directory of
    /// `path` must exist. A file of that name stays as it is until [`SstWriter::finish`] replaces it.
    ///
    /// # Errors
    /// `InvalidArgument`: the path names no file. `Io`: the file cannot be created.
    pub fn create(path: impl AsRef<Path>) -> Result<SstWriter> {
        SstWriter::create_with(path, |family| family)
    }

    /// A writer for the comparator, compression, filter and table format that `set` chooses. Format version 5 writes files
    /// that RocksDB 6.6 and later reads.
    ///
    /// ```
    /// # use ashlardb::{Compression, SstWriter};
    /// # fn main() -> ashlardb::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// let path = dir.path().join("down.sst");
    /// let mut writer = SstWriter::create_with(&path, |f| {
    ///     f.reverse_order().compression(Compression::Zstd).tune(|family| family.table.format_version = 5)
    /// })?;
    /// writer.put("b", "2")?;
    /// writer.put("a", "1")?;
    /// writer.finish()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`SstWriter::create`]. `InvalidArgument` also for a setting out of range. `NotSupported`: a comparator whose keys
    /// have timestamps.
    pub fn create_with(
        path: impl AsRef<Path>,
        set: impl FnOnce(FamilyBuilder) -> FamilyBuilder,
    ) -> Result<SstWriter> {
        let mut options = FamilyOptions::default();
        set(FamilyBuilder::default()).apply(&mut options)?;
        options.validate(FormatLevel::V11)?;
        let inner = ashlar_engine::sst_writer(&Env::os()?, path.as_ref(), &options)?;
        Ok(SstWriter { inner })
    }

    /// Appends a value for `key`.
    ///
    /// # Errors
    /// `InvalidArgument`: the key is not above the last one, with both keys in the text; a key over 8 MiB; key and value over
    /// 2 GiB. The file is then as before the call. `Io`: writing failed, and the writer takes no more entries.
    pub fn put(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.inner.add(ValueType::Put, key.as_ref(), value.as_ref())
    }

    /// Appends a row of named columns for `key`, in any order. RocksDB reads them from 7.5 on.
    ///
    /// # Errors
    /// As [`SstWriter::put`]; `InvalidArgument` also when a name occurs twice.
    pub fn put_entity<N: AsRef<[u8]>, V: AsRef<[u8]>>(
        &mut self,
        key: impl AsRef<[u8]>,
        columns: &[(N, V)],
    ) -> Result<()> {
        let columns: Vec<_> = columns.iter().map(|(name, value)| (name.as_ref(), value.as_ref())).collect();
        let encoded = encode_entity(key.as_ref(), &columns)?;
        self.inner.add(ValueType::Entity, key.as_ref(), &encoded)
    }

    /// Appends a merge operand for `key`. The operator of the family that takes the file combines it with older values.
    ///
    /// # Errors
    /// As [`SstWriter::put`].
    pub fn merge(&mut self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        self.inner.add(ValueType::Merge, key.as_ref(), operand.as_ref())
    }

    /// Appends a deletion of `key`.
    ///
    /// # Errors
    /// As [`SstWriter::put`].
    pub fn delete(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        self.inner.add(ValueType::Delete, key.as_ref(), b"")
    }

    /// Adds a deletion of every key in `begin..end`, `end` excluded. It deletes what the database had before the ingestion, and
    /// no key of the file. The order of range deletions is free. They stay in memory until [`SstWriter::finish`].
    ///
    /// # Errors
    /// `InvalidArgument`: `begin` is after `end`, or a key is over 8 MiB.
    pub fn delete_range(&mut self, begin: impl AsRef<[u8]>, end: impl AsRef<[u8]>) -> Result<()> {
        self.inner.delete_range(begin.as_ref(), end.as_ref())
    }

    /// About the bytes that the file would have if it were finished now. Ask it to begin the next file in time.
    pub fn file_size(&self) -> u64 {
        self.inner.file_size()
    }

    /// Finishes the file, syncs it, and gives it its name durably.
    ///
    /// # Errors
    /// `InvalidArgument`: nothing was written, or an earlier call failed. `Io`: there is no new file; after a failed sync of the
    /// directory there is one, and a power cut may take its name.
    pub fn finish(self) -> Result<SstSummary> {
        self.inner.finish()
    }
}

impl Family {
    /// A writer of the file `path` for [`Family::ingest`], with the comparator, the merge operator and the table format of this
    /// family.
    ///
    /// # Errors
    /// Those of [`SstWriter::create`]. `InvalidArgument` also when `path` is in a directory of the database. `Shutdown`.
    pub fn sst_writer(&self, path: impl AsRef<Path>) -> Result<SstWriter> {
        Ok(SstWriter { inner: self.db.engine().sst_writer(&self.inner, path.as_ref())? })
    }
}
