//! The memory budget: one cap for all memory of a database, and the bytes charged for each use.
//!
//! 1. Memory is charged to a [`MemoryUse`] as long as it lives. A [`MemoryCharge`] is kept beside the bytes, and
//!    releases the charge when it is dropped, on any thread.
//! 2. Charging never fails, because the bytes are allocated already. Table blocks get the memory that is left below the
//!    cap, and are evicted when another use grows ([`MemoryBudget::on_growth`]). When little is left for them, memory
//!    that can be loaded again from files is freed too ([`MemoryBudget::on_shortage`]). Writers wait before they would
//!    charge more.
//! 3. Only large pieces are charged (arena chunks, indexes, buffers), never single entries.

mod write_buffers;

pub use write_buffers::{Room, WriteBuffers};

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// What memory is held for, other than blocks of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MemoryUse {
    /// Memtables: those that take writes, those that wait for a flush, and those that readers still hold.
    Memtables,
    /// Indexes, filters, dictionaries, range tombstones and block slots of open tables.
    Tables,
    /// Buffers of flushes and compactions, the range tombstones that they write, and large blocks while they are read.
    Buffers,
    /// Buffers of the log.
    Wal,
    /// Batches on their way through the log into the memtables, and copies of long values that wait for their write.
    Batches,
    /// Merge operands that a flush, a compaction or a read folds.
    Operands,
    /// Long copies that readers hold: values of memtables and blob files, folded values, keys of cursors.
    Values,
    /// What versions know of each table: number, size, first and last key.
    Files,
    /// Operations of prepared transactions.
    Prepared,
}

impl MemoryUse {
    /// All of them.
    pub const ALL: [MemoryUse; 9] = [
        MemoryUse::Memtables,
        MemoryUse::Tables,
        MemoryUse::Buffers,
        MemoryUse::Wal,
        MemoryUse::Batches,
        MemoryUse::Operands,
        MemoryUse::Values,
        MemoryUse::Files,
        MemoryUse::Prepared,
    ];
}

type Relief = Box<dyn Fn() + Send + Sync>;

/// A cap and what is charged below it. All loads and stores are relaxed: the figures order nothing.
pub struct MemoryBudget {
    cap: usize,
    held: [AtomicUsize; MemoryUse::ALL.len()],
    total: AtomicUsize,
    relief: OnceLock<Relief>,
    shortage: OnceLock<Relief>,
    /// The budget that this one is an account of.
    of: Option<Arc<MemoryBudget>>,
    /// The limit on memtables that this account shares with others.
    shared: Option<Arc<WriteBuffers>>,
}

impl MemoryBudget {
    /// Nothing held yet.
    pub fn new(cap: usize) -> Arc<MemoryBudget> {
        Arc::new(MemoryBudget::make(cap, None, None))
    }

    /// An account of one user of this budget: it shows what is charged through it, which this budget holds, too. An account
    /// has no reliefs of its own. Its memtables count in `shared` too.
    pub fn account(self: &Arc<Self>, shared: Option<Arc<WriteBuffers>>) -> Arc<MemoryBudget> {
        Arc::new(MemoryBudget::make(self.cap, Some(Arc::clone(self)), shared))
    }

    fn make(cap: usize, of: Option<Arc<MemoryBudget>>, shared: Option<Arc<WriteBuffers>>) -> MemoryBudget {
        MemoryBudget {
            cap,
            held: Default::default(),
            total: AtomicUsize::new(0),
            relief: OnceLock::new(),
            shortage: OnceLock::new(),
            of,
            shared,
        }
    }

    /// The cap in bytes.
    pub fn cap(&self) -> usize {
        self.cap
    }

    /// Bytes held for `what`.
    pub fn held(&self, what: MemoryUse) -> usize {
        self.held.get(what as usize).map_or(0, |held| held.load(Ordering::Relaxed))
    }

    /// Bytes held for everything but blocks.
    pub fn total(&self) -> usize {
        self.total.load(Ordering::Relaxed)
    }

    /// What the cap leaves for blocks.
    #[inline]
    pub fn left(&self) -> usize {
        self.cap.saturating_sub(self.total())
    }

    /// Whether less than a quarter of the cap is left for blocks.
    #[inline]
    pub fn is_short(&self) -> bool {
        self.left() < self.cap / 4
    }

    /// Names what is done whenever something has grown and the budget [is short](MemoryBudget::is_short). As
    /// [`MemoryBudget::on_growth`], behind it.
    pub fn on_shortage(&self, relief: impl Fn() + Send + Sync + 'static) {
        let _ = self.shortage.set(Box::new(relief));
    }

    /// Names what is done whenever something has grown. The thread that charges makes the call, with no ranked lock held. Once.
    pub fn on_growth(&self, relief: impl Fn() + Send + Sync + 'static) {
        let _ = self.relief.set(Box::new(relief));
    }

    /// Charges `bytes`.
    pub fn charge(self: &Arc<Self>, what: MemoryUse, bytes: usize) -> MemoryCharge {
        let charge = MemoryCharge { budget: Some(Arc::clone(self)), what, bytes: AtomicUsize::new(0) };
        charge.grow(bytes);
        charge
    }

    fn add(&self, what: MemoryUse, bytes: usize) {
        if let Some(held) = self.held.get(what as usize) {
            held.fetch_add(bytes, Ordering::Relaxed);
        }
        self.total.fetch_add(bytes, Ordering::Relaxed);
        if let Some(shared) = self.shared.as_ref().filter(|_| what == MemoryUse::Memtables) {
            shared.add(bytes);
        }
        if let Some(of) = &self.of {
            return of.add(what, bytes);
        }
        if bytes == 0 {
            return;
        }
        if let Some(relief) = self.relief.get() {
            relief();
        }
        if let Some(relief) = self.shortage.get().filter(|_| self.is_short()) {
            relief();
        }
    }

    fn sub(&self, what: MemoryUse, bytes: usize) {
        if let Some(held) = self.held.get(what as usize) {
            held.fetch_sub(bytes, Ordering::Relaxed);
        }
        self.total.fetch_sub(bytes, Ordering::Relaxed);
        if let Some(shared) = self.shared.as_ref().filter(|_| what == MemoryUse::Memtables) {
            shared.sub(bytes);
        }
        if let Some(of) = &self.of {
            of.sub(what, bytes);
        }
    }
}

impl fmt::Debug for MemoryBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let held = MemoryUse::ALL.map(|what| (what, self.held(what)));
        f.debug_struct("MemoryBudget").field("cap", &self.cap).field("held", &held).finish()
    }
}

/// Bytes charged to a budget until this is dropped.
#[derive(Debug)]
pub struct MemoryCharge {
    budget: Option<Arc<MemoryBudget>>,
    what: MemoryUse,
    bytes: AtomicUsize,
}

impl MemoryCharge {
    /// Not charged.
    pub fn none() -> MemoryCharge {
        MemoryCharge { budget: None, what: MemoryUse::Buffers, bytes: AtomicUsize::new(0) }
    }

    /// The budget.
    pub fn budget(&self) -> Option<&Arc<MemoryBudget>> {
        self.budget.as_ref()
    }

    /// Charges `bytes` more.
    pub fn grow(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        if let Some(budget) = &self.budget {
            budget.add(self.what, bytes);
        }
    }

    /// Gives `bytes` of what was charged back.
    pub fn shrink(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        if let Some(budget) = &self.budget {
            budget.sub(self.what, bytes);
        }
    }

    /// Charges `bytes` in all from now on.
    pub fn set(&self, bytes: usize) {
        let before = self.bytes.load(Ordering::Relaxed);
        if bytes >= before { self.grow(bytes - before) } else { self.shrink(before - bytes) }
    }
}

impl Drop for MemoryCharge {
    fn drop(&mut self) {
        let bytes = *self.bytes.get_mut();
        if let Some(budget) = &self.budget {
            budget.sub(self.what, bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charges_come_and_go() {
        let budget = MemoryBudget::new(100);
        let grown = Arc::new(AtomicUsize::new(0));
        let seen = Arc::clone(&grown);
        budget.on_growth(move || {
            seen.fetch_add(1, Ordering::Relaxed);
        });
        let short = Arc::new(AtomicUsize::new(0));
        let seen = Arc::clone(&short);
        budget.on_shortage(move || {
            seen.fetch_add(1, Ordering::Relaxed);
        });
        let a = budget.charge(MemoryUse::Memtables, 30);
        assert_eq!((budget.is_short(), short.load(Ordering::Relaxed)), (false, 0));
        let b = budget.charge(MemoryUse::Tables, 80);
        assert_eq!((budget.held(MemoryUse::Memtables), budget.total(), budget.left()), (30, 110, 0));
        assert_eq!((budget.is_short(), short.load(Ordering::Relaxed)), (true, 1));
        b.set(20);
        b.set(25);
        assert_eq!((budget.held(MemoryUse::Tables), budget.left()), (25, 45));
        drop(a);
        assert_eq!((budget.total(), grown.load(Ordering::Relaxed)), (25, 3));
        drop(b);
        assert_eq!((budget.total(), budget.left()), (0, 100));
        MemoryCharge::none().grow(7);
    }

    #[test]
    fn what_an_account_shows_its_budget_holds() {
        let budget = MemoryBudget::new(100);
        let grown = Arc::new(AtomicUsize::new(0));
        let seen = Arc::clone(&grown);
        budget.on_growth(move || {
            seen.fetch_add(1, Ordering::Relaxed);
        });
        let (a, b) = (budget.account(None), budget.account(None));
        let (of_a, of_b) = (a.charge(MemoryUse::Memtables, 30), b.charge(MemoryUse::Memtables, 50));
        assert_eq!(
            (a.held(MemoryUse::Memtables), b.total(), budget.held(MemoryUse::Memtables)),
            (30, 50, 80)
        );
        assert_eq!((budget.left(), grown.load(Ordering::Relaxed)), (20, 2));
        of_a.shrink(10);
        drop((b, of_b));
        assert_eq!((a.total(), budget.total()), (20, 20));
        drop((a, of_a));
        assert_eq!(budget.total(), 0);
    }
}
