//! The target of the leader's writes: one WAL file, one memtable per family.
//!
//! A group looks at the memtables that it has written to, so that the question whether some memtable is full costs the same for
//! one family and for ten thousand. Only the leader looks, so the sums need no atomic addition.

use crate::pressure::ActiveLimit;
use crate::wal::Wal;
use ashlar_base::FamilyId;
use ashlar_memtable::MemtableRep;
use ashlar_sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Arc;

/// A family's entry in a [`WriteSet`].
pub(crate) struct FamilySlot {
    family: FamilyId,
    pub(crate) mem: Arc<dyn MemtableRep>,
    /// The memtable is full from this many bytes on. Changes with the family's settings.
    limit_bytes: Arc<AtomicUsize>,
    /// The bytes that the memtable held at the last look.
    held: AtomicUsize,
}

impl FamilySlot {
    pub(crate) fn new(family: FamilyId, mem: Arc<dyn MemtableRep>, limit_bytes: Arc<AtomicUsize>) -> Self {
        let held = AtomicUsize::new(mem.held());
        FamilySlot { family, mem, limit_bytes, held }
    }

    fn is_full(&self) -> bool {
        self.mem.filled() >= self.limit_bytes.load(Ordering::Relaxed)
    }
}

/// The WAL file and the memtables that take writes. A switch replaces the whole set.
pub(crate) struct WriteSet {
    pub(crate) wal: Arc<Wal>,
    /// By family id, ascending.
    pub(crate) families: Vec<FamilySlot>,
    /// When all memtables together are full.
    pub(crate) limit: ActiveLimit,
    /// The bytes that all memtables held at the last looks.
    held: AtomicUsize,
    /// Some memtable was full at the last look at it, or a limit has changed since.
    some_full: AtomicBool,
}

impl WriteSet {
    /// `families` by id, ascending.
    pub(crate) fn new(wal: Arc<Wal>, families: Vec<FamilySlot>, limit: ActiveLimit) -> WriteSet {
        let held = families.iter().map(|slot| slot.held.load(Ordering::Relaxed)).sum();
        let set = WriteSet {
            wal,
            families,
            limit,
            held: AtomicUsize::new(held),
            some_full: AtomicBool::new(false),
        };
        set.look_again();
        set
    }

    /// The index of a family; `None` when the set does not have it.
    pub(crate) fn find(&self, family: FamilyId) -> Option<usize> {
        match self.families.first() {
            Some(first) if first.family == family => Some(0),
            _ => self.families.binary_search_by_key(&family, |f| f.family).ok(),
        }
    }

    /// Looks at the memtable of the family with this index. Only for the leader.
    #[inline]
    pub(crate) fn look(&self, at: usize) {
        let Some(slot) = self.families.get(at) else { return };
        let now = slot.mem.held();
        let before = slot.held.load(Ordering::Relaxed);
        if now != before {
            slot.held.store(now, Ordering::Relaxed);
            let all = self.held.load(Ordering::Relaxed);
            self.held.store(all.wrapping_sub(before).wrapping_add(now), Ordering::Relaxed);
        }
        if slot.is_full() {
            self.some_full.store(true, Ordering::Relaxed);
        }
    }

    /// Looks at the limits of all memtables. Only for the leader, and before the set is installed.
    pub(crate) fn look_again(&self) {
        self.some_full.store(self.families.iter().any(FamilySlot::is_full), Ordering::Relaxed);
    }

    /// Asks the next leader to look at all memtables, because a limit has changed. Any thread may call it.
    pub(crate) fn doubt(&self) {
        self.some_full.store(true, Ordering::Relaxed);
    }

    /// True when some memtable is full, or all of them together, as far as the looks have shown.
    #[inline]
    pub(crate) fn any_full(&self) -> bool {
        self.some_full.load(Ordering::Relaxed) || self.limit.is_reached(self.held.load(Ordering::Relaxed))
    }
}
