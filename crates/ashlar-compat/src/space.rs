//! The space of the tables of several databases.
//!
//! A limit is the quota of disk space of the one database of a manager. The engine has no quota over several databases: a second
//! one is refused while there is a limit. If a limit comes while several databases are open, each of them gets an equal part.

use crate::database::Database;
use crate::users::Users;
use ashlardb::{DiskLimits, Error, Result, Severity};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Databases that were opened for writing with one manager.
#[derive(Debug, Default)]
pub struct Space {
    /// Held while a database joins and while the limit changes, so that each database gets the newest limit.
    limit: Mutex<u64>,
    databases: Users,
}

impl Space {
    /// The most bytes of all databases together; 0: no limit. The parts of several databases stay when one of them is closed.
    pub fn set_limit(&self, bytes: u64) {
        let mut limit = self.lock();
        *limit = bytes;
        let open = self.databases.open();
        let part = bytes.div_ceil(open.len().max(1) as u64);
        for database in &open {
            // A database that refuses changes takes no writes either.
            let _ = database.db().limit_disk(DiskLimits { quota: part, reserve: 0 });
        }
    }

    /// The limit for a database that is about to be opened for writing; 0: no limit.
    ///
    /// # Errors
    /// `NotSupported`: there is a limit, and another database is open.
    pub(crate) fn quota(&self) -> Result<u64> {
        let limit = *self.lock();
        self.check_alone(limit)?;
        Ok(limit)
    }

    /// A database was opened for writing, with the quota that [`quota`](Self::quota) returned. If the limit has changed since, the
    /// database gets the new one.
    ///
    /// # Errors
    /// `NotSupported`: there is a limit, and another database was opened meanwhile. Those of [`ashlardb::Db::limit_disk`].
    pub(crate) fn opened(&self, db: &Database, quota: u64) -> Result<()> {
        let limit = self.lock();
        self.check_alone(*limit)?;
        if *limit != quota {
            db.db().limit_disk(DiskLimits { quota: *limit, reserve: 0 })?;
        }
        self.databases.add(db);
        Ok(())
    }

    /// # Errors
    /// `NotSupported`: there is a limit, and a database is open.
    fn check_alone(&self, limit: u64) -> Result<()> {
        if limit == 0 || self.databases.open().is_empty() {
            return Ok(());
        }
        let e = Error::not_supported("max_allowed_space_usage of an SstFileManager over several databases");
        Err(e.hint("Give each database a manager of its own: the limit is of one database"))
    }

    fn lock(&self) -> MutexGuard<'_, u64> {
        self.limit.lock().unwrap_or_else(PoisonError::into_inner)
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
        let limit = *self.lock();
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
        let read = Mode::Read { refuse_wal: false };
        let reader = Database::open(&options, &dir.path().join("two"), read, &[]).unwrap();
        space.set_limit(300_000);
        assert_eq!(database.db().disk_use().quota, 300_000, "readers do not count");
        drop(reader);
        // A closed database, of which a handle is left, is not open.
        database.db().close().unwrap();
        drop(open("three").unwrap());
    }

    /// A limit that changes during an open, and a second open that began before the first one ended.
    #[test]
    fn a_database_gets_the_limit_of_the_moment_when_it_joins() {
        let dir = tempfile::tempdir().unwrap();
        let mut options = Options::default();
        options.texts.set("create_if_missing", true);
        let open = |name| Database::open(&options, &dir.path().join(name), Mode::Write, &[]).unwrap().0;
        let (one, two, space) = (open("one"), open("two"), Space::default());
        let quota = |database: &Database| database.db().disk_use().quota;
        let at_open = space.quota().unwrap();
        space.set_limit(400_000);
        space.opened(&one, at_open).unwrap();
        assert_eq!(quota(&one), 400_000);
        assert_eq!(space.opened(&two, 400_000).unwrap_err().kind(), ErrorKind::NotSupported);
        space.set_limit(0);
        two.db().limit_disk(DiskLimits { quota: 500_000, reserve: 0 }).unwrap();
        space.opened(&two, 0).unwrap();
        space.set_limit(0);
        assert_eq!([&one, &two].map(quota), [0, 0]);
        space.set_limit(400_001);
        assert_eq!([&one, &two].map(quota), [200_001, 200_001], "each has a part");
    }
}
