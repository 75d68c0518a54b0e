//! The space of the tables of several databases.

use crate::database::{Database, WeakDatabase};
use ashlardb::{Error, Result};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Databases that were opened with one manager.
#[derive(Debug, Default)]
pub struct Space {
    limit: AtomicU64,
    databases: Mutex<Vec<WeakDatabase>>,
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
        let mut databases = self.databases();
        databases.retain(|known| known.upgrade().is_some());
        databases.push(db.downgrade());
    }

    /// The bytes of all live tables.
    pub fn total(&self) -> u64 {
        let open: Vec<Database> = self.databases().iter().filter_map(WeakDatabase::upgrade).collect();
        open.iter()
            .flat_map(|db| db.db().families())
            .filter_map(|family| {
                let files = family.live_files().ok()?;
                Some(files.iter().map(|file| file.bytes).sum::<u64>())
            })
            .sum()
    }

    /// Whether the tables have as many bytes as the limit.
    pub fn is_reached(&self) -> bool {
        let limit = self.limit.load(Ordering::Relaxed);
        limit > 0 && self.total() >= limit
    }

    fn databases(&self) -> MutexGuard<'_, Vec<WeakDatabase>> {
        self.databases.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
