//! The databases that were opened with one object.

use crate::database::{Database, WeakDatabase};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Databases that were opened with one object. The list does not keep them open.
#[derive(Debug, Default)]
pub(crate) struct Users(Mutex<Vec<WeakDatabase>>);

impl Users {
    /// A database was opened with the object.
    pub(crate) fn add(&self, db: &Database) {
        let mut databases = self.lock();
        databases.retain(|known| known.upgrade().is_some());
        databases.push(db.downgrade());
    }

    /// Those that are open. Handles of a closed database may live on.
    pub(crate) fn open(&self) -> Vec<Database> {
        let known: Vec<_> = self.lock().iter().filter_map(WeakDatabase::upgrade).collect();
        known.into_iter().filter(|database| database.db().is_open()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<WeakDatabase>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
