//! One limit on the memtables of several databases.
//!
//! 1. Each database counts its memtables here: those that take writes, those that wait for a flush, and those that readers hold.
//! 2. A database may have what the others leave of the limit, and [`LEAST`] at least. It switches its memtables at half of that. Its
//!    writers wait for a flush at all of it.
//! 3. A database without writes keeps its memtables. So all together exceed the limit by at most `LEAST` for each database, by the
//!    group of writes that reaches the limit, and by flushed memtables that readers hold.
//!
//! Source: RocksDB `include/rocksdb/write_buffer_manager.h` (behaviour).

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The bytes of memtables that a database may have, whatever the others hold. With less, each write would end in a flush.
const LEAST: usize = 512 << 10;

/// Memory whose other users give way to memtables.
pub trait Room: Send + Sync {
    /// Memtables have grown by so many bytes. The thread that has grown them makes the call, with no ranked lock held.
    fn take(&self, bytes: usize);

    /// They have freed so many.
    fn give_back(&self, bytes: usize);
}

/// A limit on the bytes of the memtables of all databases that are opened with this value.
pub struct WriteBuffers {
    limit: AtomicUsize,
    held: AtomicUsize,
    room: Option<Arc<dyn Room>>,
}

impl WriteBuffers {
    /// A limit of so many bytes; 0: no limit.
    pub fn new(limit: usize) -> Arc<WriteBuffers> {
        WriteBuffers::make(limit, None)
    }

    /// A limit of so many bytes; 0: no limit. The memtables take what they hold from `room`.
    pub fn within(limit: usize, room: Arc<dyn Room>) -> Arc<WriteBuffers> {
        WriteBuffers::make(limit, Some(room))
    }

    fn make(limit: usize, room: Option<Arc<dyn Room>>) -> Arc<WriteBuffers> {
        let (limit, held) = (AtomicUsize::new(limit), AtomicUsize::new(0));
        Arc::new(WriteBuffers { limit, held, room })
    }

    /// The limit in bytes; 0: none.
    pub fn limit(&self) -> usize {
        self.limit.load(Ordering::Relaxed)
    }

    /// Changes the limit, also for open databases. They keep to a lower one from their next write on. A database that was opened under
    /// a lower limit keeps to that one.
    pub fn set_limit(&self, bytes: usize) {
        self.limit.store(bytes, Ordering::Relaxed);
    }

    /// The bytes of the memtables of all databases.
    pub fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// The most bytes of memtables that a database may have now, which has `own` bytes of them.
    pub fn left_for(&self, own: usize) -> usize {
        let others = self.held().saturating_sub(own);
        self.most().map_or(usize::MAX, |most| most.saturating_sub(others).max(LEAST))
    }

    /// The most bytes that a database may have without the others; `None`: there is no limit.
    pub fn most(&self) -> Option<usize> {
        Some(self.limit()).filter(|limit| *limit > 0).map(|limit| limit.max(LEAST))
    }

    pub(super) fn add(&self, bytes: usize) {
        self.held.fetch_add(bytes, Ordering::Relaxed);
        if let Some(room) = self.room.as_ref().filter(|_| bytes > 0) {
            room.take(bytes);
        }
    }

    pub(super) fn sub(&self, bytes: usize) {
        self.held.fetch_sub(bytes, Ordering::Relaxed);
        if let Some(room) = &self.room {
            room.give_back(bytes);
        }
    }
}

impl fmt::Debug for WriteBuffers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WriteBuffers").field("limit", &self.limit()).field("held", &self.held()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{MemoryBudget, MemoryUse};

    #[test]
    fn databases_leave_each_other_what_they_do_not_hold() {
        let common = WriteBuffers::new(32 << 20);
        let of = || MemoryBudget::new(1 << 30).account(Some(Arc::clone(&common)));
        let (one, other) = (of(), of());
        let first = one.charge(MemoryUse::Memtables, 24 << 20);
        one.charge(MemoryUse::Wal, 1 << 20);
        assert_eq!((common.held(), one.held(MemoryUse::Memtables)), (24 << 20, 24 << 20));
        assert_eq!((common.left_for(24 << 20), common.left_for(0)), (32 << 20, 8 << 20));
        let second = other.charge(MemoryUse::Memtables, 9 << 20);
        assert_eq!((common.left_for(9 << 20), common.left_for(0)), (8 << 20, LEAST));
        common.set_limit(0);
        assert_eq!(common.left_for(0), usize::MAX);
        drop((first, second));
        assert_eq!(common.held(), 0);
    }
}
