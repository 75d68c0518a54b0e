//! A lease on an open table: the table stays open as long as the lease, and no longer.

use super::{FileMeta, Tables};
use ashlar_base::Result;
use ashlar_base::stats::perf::{self, Metric};
use ashlar_format::filename::FileKind;
use ashlar_sync::Lease;
use ashlar_table::{ReadHow, TableReader};
use std::ops::Deref;
use std::sync::Arc;

/// An open table. It stays open until this lease is dropped.
pub enum OpenTable<'a> {
    /// The table is in the slot of its file.
    Leased(Lease<'a, TableReader>),
    /// This use opened the table; the next one finds it in the slot.
    Opened(Arc<TableReader>),
}

impl Deref for OpenTable<'_> {
    type Target = TableReader;

    #[inline]
    fn deref(&self) -> &TableReader {
        match self {
            OpenTable::Leased(table) => table,
            OpenTable::Opened(table) => table,
        }
    }
}

impl Tables {
    /// The table of `file`. If it is not open, it is opened now, which counts as one read of a file within the limits of `how`.
    ///
    /// # Errors
    /// As [`Tables::open`] and [`ReadHow::in_file`].
    #[inline]
    pub fn lease<'a>(&self, file: &'a FileMeta, how: &ReadHow) -> Result<OpenTable<'a>> {
        match file.open_table() {
            Some(open) => Ok(OpenTable::Leased(open)),
            None => self.open_for_use(file, how),
        }
    }

    #[cold]
    fn open_for_use<'a>(&self, file: &'a FileMeta, how: &ReadHow) -> Result<OpenTable<'a>> {
        let _step = perf::time(Metric::FindTableNanos);
        // Not `path_of`, which would ask the file system.
        let path = || self.dir().join(FileKind::Table(file.number()).name());
        how.in_file(path, || self.open_to_keep(file)).map(OpenTable::Opened)
    }
}
