//! The space of the tables of several databases.
//!
//! A limit is the quota of disk space of the one database of a manager. The engine has no quota over several databases: a second
//! one is refused while there is a limit. For a limit that comes while several databases are open, the manager only says whether it is
//! reached.

use crate::database::Database;
use crate::users::Users;
use ashlardb::{DiskLimits, Error, Result, Severity};
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
        if let [database] = self.databases.open().as_slice() {
            // A database that is open for reading only has no use for it.
            let _ = database.db().limit_disk(DiskLimits { quota: bytes, reserve: 0 });
        }
    }

    /// The limit for a database that is about to be opened; 0: no limit.
    ///
    /// # Errors
    /// `NotSupported`: there is a limit, and another database is open.
    pub(crate) fn quota(&self) -> Result<u64> {
        let limit = self.limit.load(Ordering::Relaxed);
        if limit > 0 && !self.databases.open().is_empty() {
            let e =
                Error::not_supported("max_allowed_space_usage of an SstFileManager over several databases");
            return Err(e.hint("Give each database a manager of its own: the limit is of one database"));
        }
        Ok(limit)
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

    /// Whether the tables have as many bytes as the limit, or writes are refused for it.
    pub fn is_reached(&self) -> bool {
        let limit = self.limit.load(Ordering::Relaxed);
        let refuses = |db: &Database| db.db().health().severity == Severity::Full;
        limit > 0 && (self.total() >= limit || self.databases.open().iter().any(refuses))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::Mode;
    use crate::options::Options;
    use ashlardb::{ErrorKind, IoKind, Write};
    use std::sync::Arc;

    #[test]
    fn a_limit_is_the_quota_of_the_one_database_of_a_manager() {
        let dir = tempfile::tempdir().unwrap();
        let space = Arc::new(Space::default());
        space.set_limit(200_000);
        let mut options = Options { space: Some(Arc::clone(&space)), ..Options::default() };
        options.texts.set("create_if_missing", true);
        let open = |name| Database::open(&options, &dir.path().join(name), Mode::Write, &[]);
        let (database, _) = open("one").unwrap();
        let put = |n: u32| database.db().put(n.to_be_bytes(), [7; 10_000]);
        let refused = (0..100).find_map(|n| put(n).err()).unwrap();
        assert_eq!(refused.kind(), ErrorKind::Io(IoKind::NoSpace), "{refused}");
        assert!(space.is_reached());
        assert_eq!(open("two").err().map(|e| e.kind()), Some(ErrorKind::NotSupported));
        space.set_limit(0);
        put(200).unwrap();
        assert!(!space.is_reached());
        drop(open("two").unwrap());
    }
}
