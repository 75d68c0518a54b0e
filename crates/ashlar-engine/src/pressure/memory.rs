//! The memory budget: when memtables are switched early, when writers wait, and when writes are refused.
//!
//! ```text
//! cap ── a quarter of it: memtables, all families and all their generations together (db_write_buffer_size, if set)
//!    └── the rest, less other charges: blocks of tables
//! ```
//! 1. Blocks are evicted first: other uses of memory take their space from the blocks (`FramePool`). When blocks have
//!    less than a quarter of the cap, unused tables are closed, with their indexes and filters (`OpenTables`).
//! 2. The memtables that take writes are switched, largest first, when together they fill half of the memtables' share.
//!    If less memory is available, the limit is a third of the cap that everything except live memtables leaves.
//! 3. When all memtables together fill the share and some wait for a flush, writers wait for that flush.
//! 4. When readers hold so many old memtables that not even small new ones fit, writes fail with `Busy(Memory)` until
//!    the readers release them.

use ashlar_base::error::BusyKind;
use ashlar_base::memory::{MemoryBudget, MemoryCharge, MemoryUse};
use ashlar_base::{Error, ErrorKind};
use ashlar_options::DbOptions;
use std::sync::Arc;

/// The default cap on a machine with plenty of memory …
const CAP_MAX: u64 = 1 << 30;
/// … and on a small one.
const CAP_MIN: u64 = 64 << 20;
/// The charge for the WAL's write buffer; the records that `manual_wal_flush` buffers are included.
const LOG_BUFFER_BYTES: usize = 4 << 20;
/// A lack of memory never makes memtables smaller than this.
const ACTIVE_MIN: usize = 1 << 20;

/// The memory budget of a database.
#[derive(Debug)]
pub(crate) struct Memory {
    budget: Arc<MemoryBudget>,
    memtables_max: usize,
    _log: MemoryCharge,
}

impl Memory {
    /// `machine`: the bytes that the process may use.
    pub(crate) fn new(options: &DbOptions, machine: Option<u64>) -> Memory {
        let cap = match options.memory_bytes {
            0 => machine.map_or(CAP_MAX, |bytes| (bytes / 4).clamp(CAP_MIN, CAP_MAX)),
            bytes => bytes,
        };
        let cap = usize::try_from(cap).unwrap_or(usize::MAX);
        let memtables_max = match usize::try_from(options.db_write_buffer_bytes) {
            Ok(0) => cap / 4,
            Ok(bytes) => bytes.min(cap),
            Err(_) => cap,
        };
        let budget = MemoryBudget::new(cap);
        let log = budget.charge(MemoryUse::Buffers, LOG_BUFFER_BYTES);
        Memory { budget, memtables_max, _log: log }
    }

    pub(crate) fn budget(&self) -> &Arc<MemoryBudget> {
        &self.budget
    }

    /// The limit of all memtables that take writes together. `live` is the size of memtables that take writes or wait
    /// for a flush; memtables that only readers hold are not in it.
    pub(crate) fn active_max(&self, live: usize) -> usize {
        let half = self.memtables_max / 2;
        (self.room(live) / 3).clamp(ACTIVE_MIN.min(half), half)
    }

    /// The part of the cap that everything except live memtables and blocks leaves.
    fn room(&self, live: usize) -> usize {
        self.budget.cap().saturating_sub(self.budget.total().saturating_sub(live))
    }

    /// The limit of all memtables together.
    pub(crate) fn memtables_max(&self) -> usize {
        self.memtables_max
    }

    /// Whether all memtables together fill their share.
    pub(crate) fn memtables_full(&self) -> bool {
        self.budget.held(MemoryUse::Memtables) >= self.memtables_max
    }

    /// The error for a write when readers hold too much memory; `None` if writes fit. `live` is the size of the
    /// memtables that take writes; nothing waits for a flush.
    pub(crate) fn refusal(&self, live: usize) -> Option<Error> {
        let pinned = self.budget.held(MemoryUse::Memtables).saturating_sub(live);
        if pinned < self.memtables_max / 2 || self.room(live) >= 3 * ACTIVE_MIN {
            return None;
        }
        let text = format!(
            "iterators and snapshots hold {pinned} bytes of old memtables; the cap on memory is {} bytes",
            self.budget.cap()
        );
        let error = Error::new(ErrorKind::Busy(BusyKind::Memory), text);
        Some(error.hint("Close iterators that were opened long ago, or give the database more memory"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(memory_bytes: u64, db_write_buffer_bytes: u64, machine: Option<u64>) -> Memory {
        Memory::new(&DbOptions { memory_bytes, db_write_buffer_bytes, ..DbOptions::default() }, machine)
    }

    #[test]
    fn caps_follow_options_and_machine() {
        let cap = |bytes, machine| memory(bytes, 0, machine).budget.cap() as u64;
        assert_eq!(cap(0, None), 1 << 30);
        assert_eq!(cap(0, Some(64 << 30)), 1 << 30);
        assert_eq!(cap(0, Some(2 << 30)), 512 << 20);
        assert_eq!(cap(0, Some(1)), CAP_MIN);
        assert_eq!(cap(128 << 20, Some(1)), 128 << 20);
        assert_eq!(memory(128 << 20, 0, None).active_max(0), 16 << 20);
        assert_eq!(memory(128 << 20, 16 << 20, None).active_max(0), 8 << 20);
        let small = memory(64 << 20, 32 << 20, None);
        let _tables = small.budget.charge(MemoryUse::Tables, 40 << 20);
        assert_eq!(small.active_max(0), (20 << 20) / 3, "what tables and the log leave");
        let _more = small.budget.charge(MemoryUse::Tables, 40 << 20);
        assert_eq!(small.active_max(0), ACTIVE_MIN);
    }

    #[test]
    fn only_what_readers_hold_refuses_writers() {
        let memory = memory(128 << 20, 64 << 20, None);
        let active = memory.budget.charge(MemoryUse::Memtables, 32 << 20);
        assert!(!memory.memtables_full() && memory.refusal(32 << 20).is_none());
        let tables = memory.budget.charge(MemoryUse::Tables, 200 << 20);
        assert!(memory.refusal(32 << 20).is_none(), "large indexes do not stop writers");
        drop(tables);
        let held = memory.budget.charge(MemoryUse::Memtables, 80 << 20);
        assert!(memory.memtables_full() && memory.refusal(32 << 20).is_none(), "small ones still fit");
        held.grow(42 << 20);
        let refused = memory.refusal(32 << 20).map(|e| e.kind());
        assert_eq!(refused, Some(ErrorKind::Busy(BusyKind::Memory)));
        drop((active, held));
        assert!(memory.refusal(0).is_none());
    }
}
