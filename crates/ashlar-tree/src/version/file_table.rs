//! A lease on an open table: the table stays open as long as the lease, and no longer.

use super::{FileMeta, Tables};
use ashlar_base::stats::perf::{self, Metric};
use ashlar_base::{Order, Result};
use ashlar_sync::Lease;
use ashlar_table::{TableReader, TableSource};
use std::ops::Deref;
use std::path::PathBuf;
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
    /// Returns the table of `file`, and opens it if necessary.
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

/// The table of a file, for a cursor. The table cache may close it whenever the cursor is not moving from one block to
/// another.
pub struct FileTable {
    tables: Arc<Tables>,
    file: Arc<FileMeta>,
}

impl FileTable {
    /// The table of `file`, which belongs to a version of `tables`.
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
