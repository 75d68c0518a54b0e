//! The target of the leader's writes: one WAL file, one memtable per family.

use crate::wal::Wal;
use ashlar_base::FamilyId;
use ashlar_memtable::MemtableRep;
use ashlar_sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

/// A family's entry in a [`WriteSet`].
#[derive(Clone)]
pub(crate) struct FamilySlot {
    pub(crate) family: FamilyId,
    pub(crate) mem: Arc<dyn MemtableRep>,
    /// The memtable is full from this many bytes on. Changes with the family's settings.
    pub(crate) limit_bytes: Arc<AtomicUsize>,
}

/// The WAL file and the memtables that take writes. A switch replaces the whole set.
pub(crate) struct WriteSet {
    pub(crate) wal: Arc<Wal>,
    /// By family id, ascending.
    pub(crate) families: Vec<FamilySlot>,
    /// All memtables together are full from this many bytes on.
    pub(crate) limit_bytes: usize,
}

impl WriteSet {
    /// The index of a family; `None` when the set does not have it.
    pub(crate) fn find(&self, family: FamilyId) -> Option<usize> {
        match self.families.first() {
            Some(first) if first.family == family => Some(0),
            _ => self.families.binary_search_by_key(&family, |f| f.family).ok(),
        }
    }

    /// True when some memtable is full, or all of them together.
    pub(crate) fn any_full(&self) -> bool {
        let mut all = 0;
        self.families.iter().any(|f| {
            all += f.mem.held();
            f.mem.filled() >= f.limit_bytes.load(Ordering::Relaxed) || all >= self.limit_bytes
        })
    }
}
