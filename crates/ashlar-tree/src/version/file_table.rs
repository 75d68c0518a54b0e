//! A lease on an open table: the table stays open as long as the lease, and no longer.

use super::{FileMeta, Tables};
use ashlar_base::stats::perf::{self, Metric};
use ashlar_base::{Order, Result};
use ashlar_sync::Lease;
use ashlar_table::{TableReader, TableSource};
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;

/// An open table; it stays so until this is dropped.
pub enum OpenTable<'a> {
    /// It stands in the slot of its file.
    Leased(Lease<'a, TableReader>),
    /// It was opened for this use; the next one finds it in the slot.
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
    /// The table of `file`, opened now if it is not.
    ///
    /// # Errors
    /// As [`Tables::open`].
    #[inline]
    pub fn lease<'a>(&self, file: &'a FileMeta) -> Result<OpenTable<'a>> {
        match file.open_table() {
            Some(open) => Ok(OpenTable::Leased(open)),
            None => self.open_for_use(file),
        }
    }

    #[cold]
    fn open_for_use<'a>(&self, file: &'a FileMeta) -> Result<OpenTable<'a>> {
        let _step = perf::time(Metric::FindTableNanos);
        self.open_to_keep(file).map(OpenTable::Opened)
    }
}

/// The table of a file, for a cursor: it may be closed whenever the cursor does not move from one block to another.
pub struct FileTable {
    tables: Arc<Tables>,
    file: Arc<FileMeta>,
}

impl FileTable {
    /// The table of `file`, one of a version that `tables` opens tables for.
    pub fn new(tables: &Arc<Tables>, file: &Arc<FileMeta>) -> FileTable {
        FileTable { tables: Arc::clone(tables), file: Arc::clone(file) }
    }

    /// The file's path.
    pub fn path(&self) -> PathBuf {
        self.tables.path_of(self.file.number())
    }
}

impl TableSource for FileTable {
    type Open<'a> = OpenTable<'a>;

    #[inline]
    fn open(&self) -> Result<OpenTable<'_>> {
        self.tables.lease(&self.file)
    }

    #[inline]
    fn order(&self) -> &Order {
        self.tables.order()
    }
}
