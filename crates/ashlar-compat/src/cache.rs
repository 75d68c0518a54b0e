//! RocksDB's object for a block cache.
//!
//! 1. Each database that is opened with the object has a block cache of its own, of the object's size.
//! 2. What the object says of its contents is the sum over those databases.
//!
//! Source: RocksDB `include/rocksdb/advanced_cache.h`.

use crate::database::Database;
use crate::users::Users;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A block cache as RocksDB's programs have it. Two are equal if they are one object.
#[derive(Debug, Default)]
pub struct Cache {
    capacity: AtomicUsize,
    databases: Users,
}

impl PartialEq for Cache {
    fn eq(&self, other: &Cache) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Cache {
    /// A cache of so many bytes.
    pub fn new(capacity: usize) -> Cache {
        Cache { capacity: capacity.into(), databases: Users::default() }
    }

    /// The bytes of the cache of each database.
    pub fn capacity(&self) -> usize {
        self.capacity.load(Ordering::Relaxed)
    }

    /// Changes the size, for databases that are opened later.
    pub fn set_capacity(&self, bytes: usize) {
        self.capacity.store(bytes, Ordering::Relaxed);
    }

    /// The bytes in the caches of the open databases.
    pub fn usage(&self) -> u64 {
        self.sum("rocksdb.block-cache-usage")
    }

    /// The bytes among them that readers hold.
    pub fn pinned_usage(&self) -> u64 {
        self.sum("rocksdb.block-cache-pinned-usage")
    }

    fn sum(&self, property: &str) -> u64 {
        self.databases.open().iter().filter_map(|db| db.db().int_property(property)).sum()
    }

    /// A database was opened.
    pub(crate) fn opened(&self, db: &Database) {
        self.databases.add(db);
    }
}
