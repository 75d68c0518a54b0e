//! RocksDB's object for a block cache.
//!
//! 1. The cached blocks of all databases that are opened with one object never exceed its capacity together.
//! 2. A database of the engine has one block cache. If its families have several objects, the largest serves all families, and the
//!    others stay empty.
//! 3. Memtables take room of the cache that their manager was made with, before blocks do.
//!
//! Source: RocksDB `include/rocksdb/advanced_cache.h`.

use ashlardb::{BlockCache, WriteBuffers};
use std::sync::Arc;

/// A block cache as RocksDB's programs have it. Two are equal if they are one object.
#[derive(Debug)]
pub struct Cache(Arc<BlockCache>);

impl PartialEq for Cache {
    fn eq(&self, other: &Cache) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Cache {
    /// A cache of so many bytes. With 0 it caches nothing.
    pub fn new(capacity: usize) -> Cache {
        Cache(BlockCache::new(capacity))
    }

    /// The most bytes of cached blocks.
    pub fn capacity(&self) -> usize {
        self.0.capacity()
    }

    /// Changes the capacity, also for open databases. A lower one evicts blocks at once.
    pub fn set_capacity(&self, bytes: usize) {
        self.0.set_capacity(bytes);
    }

    /// A limit on memtables; 0: none. With a cache, the memtables take room of the cache.
    pub fn limit_of_memtables(bytes: usize, cache: Option<&Cache>) -> Arc<WriteBuffers> {
        match cache {
            Some(cache) => WriteBuffers::within(bytes, Arc::<BlockCache>::clone(&cache.0)),
            None => WriteBuffers::new(bytes),
        }
    }

    /// The bytes of cached blocks, of all open databases.
    pub fn usage(&self) -> u64 {
        self.0.used() as u64
    }

    /// The bytes of blocks that readers hold. Blocks that do not fit into the cache are among them.
    pub fn pinned_usage(&self) -> u64 {
        self.0.held_in_cache() as u64
    }

    /// The number of cached blocks.
    pub fn blocks(&self) -> usize {
        self.0.blocks()
    }

    /// The engine's part.
    pub(crate) fn shared(&self) -> &Arc<BlockCache> {
        &self.0
    }
}
