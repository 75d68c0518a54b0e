//! The memory budget: when memtables are switched early, when writers wait, and when writes are refused.
//!
//! ```text
//! cap ── a quarter of it: memtables, all families and all their generations together (db_write_buffer_size or a shared limit, if set)
//!    └── the rest, less other charges: blocks of tables
//! ```
//! 1. Blocks are evicted first: other uses of memory take their space from the blocks (`FramePool`). When blocks have
//!    less than a quarter of the cap, unused tables are closed, with their indexes and filters (`OpenTables`).
//! 2. The memtables that take writes are switched, the [`largest`] first, when together they fill half of the memtables' share.
//!    If less memory is available, the limit is a third of the cap that everything except live memtables leaves.
//!    With a [`WriteBuffers`], the limit is at most half of what other databases leave of that.
//! 3. When all memtables together fill the share and some wait for a flush, writers wait for that flush.
//! 4. When readers hold so many old memtables that not even small new ones fit, writes fail with `Busy(Memory)` until
//!    the readers release them.

use crate::Resources;
use ashlar_base::error::BusyKind;
use ashlar_base::memory::{MemoryBudget, MemoryCharge, MemoryUse, WriteBuffers};
use ashlar_base::{Error, ErrorKind, FamilyId, Result};
use ashlar_options::DbOptions;
use ashlar_sync::atomic::{AtomicBool, Ordering};
use std::cmp::Reverse;
use std::sync::Arc;

/// The charge for the WAL's write buffer; the records that `manual_wal_flush` buffers are included. A longer batch is charged
/// by itself.
const LOG_BUFFER_BYTES: usize = 2 << 20;
/// A lack of memory never makes memtables smaller than this.
const ACTIVE_MIN: usize = 1 << 20;

/// The limit of all memtables that take writes together.
#[derive(Clone, Debug)]
pub struct ActiveLimit {
    /// By the memory of the database, when the limit was computed.
    pub bytes: usize,
    shared: Option<SharedLimit>,
}

impl ActiveLimit {
    /// Whether memtables with so many bytes are at the limit.
    #[inline]
    pub fn is_reached(&self, together: usize) -> bool {
        together >= self.bytes || self.shared.as_ref().is_some_and(|shared| together >= shared.left() / 2)
    }
}

/// A limit that several databases share, and the account of one of them.
#[derive(Clone, Debug)]
struct SharedLimit {
    buffers: Arc<WriteBuffers>,
    account: Arc<MemoryBudget>,
}

impl SharedLimit {
    /// What the other databases leave.
    fn left(&self) -> usize {
        self.buffers.left_for(self.account.held(MemoryUse::Memtables))
    }
}

/// The largest of these memtables, which together have `bytes` or more: one, or many if all are small. A switch begins a WAL file, so
/// one memtable alone would make almost each write to thousands of families begin one.
pub fn largest(mut sizes: Vec<(usize, FamilyId)>, bytes: usize) -> Vec<FamilyId> {
    sizes.sort_unstable_by_key(|(size, family)| (Reverse(*size), *family));
    let mut taken = 0;
    let due = sizes.into_iter().take_while(|(size, _)| {
        let is_due = taken == 0 || taken < bytes;
        taken += size;
        is_due
    });
    due.map(|(_, family)| family).collect()
}

/// The memory budget of a database, which may be one of several under a cap.
#[derive(Debug)]
pub struct Memory {
    resources: Resources,
    /// The limit on memtables that other databases share, with or without the resources.
    shared: Option<SharedLimit>,
    /// What this database's memtables and WAL are charged to.
    account: Arc<MemoryBudget>,
    /// The most that memtables of this database may have.
    ceiling: usize,
    log: MemoryCharge,
    left: AtomicBool,
}

impl Memory {
    /// The memory of a database that is opened with these resources.
    ///
    /// # Errors
    /// `InvalidArgument`, `Busy(Memory)`: the cap has no room for the database.
    pub fn new(resources: &Resources, options: &DbOptions) -> Result<Memory> {
        resources.enter()?;
        let account = resources.budget().account(options.write_buffers.clone());
        let shared = options
            .write_buffers
            .clone()
            .map(|buffers| SharedLimit { buffers, account: Arc::clone(&account) });
        let ceiling = match usize::try_from(options.db_write_buffer_bytes) {
            Ok(bytes) if bytes > 0 => bytes,
            _ => usize::MAX,
        };
        let log = account.charge(MemoryUse::Wal, LOG_BUFFER_BYTES);
        Ok(Memory {
            resources: resources.clone(),
            shared,
            account,
            ceiling,
            log,
            left: AtomicBool::new(false),
        })
    }

    /// Ends the database's use of the resources. What readers still hold stays charged.
    pub fn leave(&self) {
        if !self.left.swap(true, Ordering::Relaxed) {
            self.log.set(0);
            self.resources.leave();
        }
    }

    /// What the database may share with others.
    pub fn resources(&self) -> &Resources {
        &self.resources
    }

    /// The account of the database's memtables.
    pub fn account(&self) -> &Arc<MemoryBudget> {
        &self.account
    }

    /// The budget with the cap, of all databases together.
    pub fn budget(&self) -> &Arc<MemoryBudget> {
        self.resources.budget()
    }

    /// The limit of all memtables that take writes together. `live` is the size of memtables that take writes or wait
    /// for a flush; memtables that only readers hold are not in it.
    pub fn active_limit(&self, live: usize) -> ActiveLimit {
        ActiveLimit { bytes: self.active_max(live), shared: self.shared.clone() }
    }

    fn active_max(&self, live: usize) -> usize {
        let half = self.memtables_max() / 2;
        let room = self.room_beside_readers(live).saturating_sub(self.resources.blocks_beyond_cache());
        (room / 3).clamp(ACTIVE_MIN.min(half), half)
    }

    /// The part of the cap that everything except live memtables leaves, the values of cursors included. Blocks are not in it.
    fn room_beside_readers(&self, live: usize) -> usize {
        self.budget().cap().saturating_sub(self.budget().total().saturating_sub(live))
    }

    /// The same if cursors held no values, no write waited, and no transaction was prepared. Like blocks, these make memtables smaller
    /// and refuse no write.
    fn room(&self, live: usize) -> usize {
        let passing = [MemoryUse::Values, MemoryUse::Batches, MemoryUse::Prepared];
        let passing: usize = passing.map(|what| self.budget().held(what)).iter().sum();
        self.room_beside_readers(live.saturating_add(passing))
    }

    /// The limit of all memtables of the database together: its part of the share, or what others leave of the share if that is
    /// more.
    pub fn memtables_max(&self) -> usize {
        let all = self.resources.memtables_max();
        let part = all / self.resources.databases().max(1);
        let held = |budget: &MemoryBudget| budget.held(MemoryUse::Memtables);
        let others = held(self.budget()).saturating_sub(held(&self.account));
        let shared = self.shared.as_ref().map_or(usize::MAX, SharedLimit::left);
        part.max(all.saturating_sub(others)).min(self.ceiling).min(shared)
    }

    /// Whether all memtables together fill their limit.
    pub fn memtables_full(&self) -> bool {
        self.account.held(MemoryUse::Memtables) >= self.memtables_max()
    }

    /// Whether all memtables together leave half of their limit.
    pub fn memtables_half_empty(&self) -> bool {
        self.account.held(MemoryUse::Memtables) <= self.memtables_max() / 2
    }

    /// True if flushed memtables that readers still hold fill half of the memtables' share and less than 3 MiB of the cap is free.
    /// `live` is the size of the other memtables. Call only while no memtable waits for a flush.
    pub fn is_scarce(&self, live: usize) -> bool {
        let others = self.account.held(MemoryUse::Memtables).saturating_sub(live);
        others >= self.memtables_max() / 2 && self.room(live) < 3 * ACTIVE_MIN
    }

    /// The error for a write while memory [is scarce](Memory::is_scarce) and `readers` cursors and views hold `held` bytes of old
    /// memtables; `None` if they are not the reason.
    pub fn refusal(&self, held: usize, readers: usize) -> Option<Error> {
        if readers == 0 || held < self.memtables_max() / 2 {
            return None;
        }
        let text = format!(
            "{readers} cursors and views hold {held} bytes of old memtables; the cap on memory is {} bytes",
            self.budget().cap()
        );
        let error = Error::new(ErrorKind::Busy(BusyKind::Memory), text);
        Some(error.hint("Close iterators that were opened long ago, or give the database more memory"))
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests;
