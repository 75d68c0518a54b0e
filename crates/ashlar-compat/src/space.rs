//! The space of the tables of several databases.

use crate::database::Database;
use crate::users::Users;
use ashlardb::{Error, Result};
use std::sync::atomic::{AtomicU64, Ordering};

/// Databases that were opened with one manager.
#[derive(Debug, Default)]
pub struct Space {
    limit: AtomicU64,
    databases: Users,
}

impl Space {
    /// The most bytes; 0: no limit.
    pub fn set_limit(&self, bytes: u64) {
        self.limit.store(bytes, Ordering::Relaxed);
    }

    /// # Errors
    /// `NotSupported`: a limit, which the engine does not keep.
    pub(crate) fn check(&self) -> Result<()> {
        match self.limit.load(Ordering::Relaxed) {
            0 => Ok(()),
            _ => Err(Error::not_supported("max_allowed_space_usage of an SstFileManager")
                .hint("Open without the limit: AshlarDB keeps none on the bytes of tables")),
        }
    }

    /// A database was opened.
    pub(crate) fn opened(&self, db: &Database) {
        self.databases.add(db);
    }

    /// The live tables of all databases, with their bytes.
    pub fn files(&self) -> Vec<(String, u64)> {
        let open = self.databases.open();
        let of = |db: &Database| {
            let families = db.db().families();
            let files = families.iter().filter_map(|family| family.live_files().ok()).flatten();
            let named = files.map(|file| (file.path().to_string_lossy().into_owned(), file.bytes));
            named.collect::<Vec<_>>()
        };
        open.iter().flat_map(of).collect()
    }

    /// The bytes of all live tables.
    pub fn total(&self) -> u64 {
        self.files().iter().map(|(_, bytes)| bytes).sum()
    }

    /// Whether the tables have as many bytes as the limit.
    pub fn is_reached(&self) -> bool {
        let limit = self.limit.load(Ordering::Relaxed);
        limit > 0 && self.total() >= limit
    }
}
