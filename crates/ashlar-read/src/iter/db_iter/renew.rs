//! Renewal: the cursor goes on over a newer state of its family.
//!
//! The cursors of memtables show entries that are inserted later. So while a family has the same memtables and tables, a newer
//! state is a larger sequence number. Two inserts need new runs although the memtables are the same: the first entry of an empty
//! memtable, which no run has, and a range tombstone, which the mask has not collected.

use super::{DbIter, Shown};
use crate::iter::{MergingIter, RunContext, runs};
use crate::super_version::SuperVersion;
use ashlar_base::{Result, SeqNum};
use ashlar_options::ReadTier;
use std::sync::Arc;

/// The part of the memtable that the runs were made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    empty: bool,
    range_tombstones: u64,
}

impl Seen {
    /// That of the memtable of `from`, before runs are made.
    pub(super) fn of(from: &SuperVersion) -> Seen {
        Seen { empty: from.mem.is_empty(), range_tombstones: from.mem.range_tombstone_count() }
    }
}

impl DbIter {
    /// Moves off the end.
    pub fn end(&mut self) {
        self.shown = Shown::Nothing;
    }

    /// Whether the cursor is on this key.
    pub fn is_on(&self, key: &[u8]) -> bool {
        self.key().is_some_and(|own| self.order.compare(own, key).is_eq())
    }

    /// Whether the cursor reads this state of the family already.
    pub fn reads(&self, from: &Arc<SuperVersion>, seq: SeqNum) -> bool {
        self.seq == seq && Arc::ptr_eq(&self.cx.state.from, from)
    }

    /// Reads `from`, a state of the same family, at `seq`. The cursor is off the end.
    ///
    /// # Errors
    /// `Shutdown(Forked)`: the cursor belongs to the parent of this forked process.
    /// # Cost
    /// A few loads while the family has the same memtables and tables, and no range tombstone was written. Else that of a new
    /// cursor.
    pub fn renew(&mut self, from: Arc<SuperVersion>, seq: SeqNum, tier: ReadTier) -> Result<()> {
        self.check_process()?;
        self.end();
        self.expiry = from.expiry.map(|expiry| expiry.now(&**from.version.tables().clock()));
        let seen = Seen::of(&from);
        if Arc::ptr_eq(&self.cx.state.from, &from) && self.seen == seen && self.tier == tier {
            self.seq = seq;
            self.cx.mask.read_at(seq);
            return Ok(());
        }
        let mut cx = RunContext::new(from, self.cx.state.how.clone(), seq);
        cx.state.filter = self.cx.state.filter.take();
        let whole = tier == ReadTier::All && cx.state.filter.is_none();
        // The runs borrow bytes of the state, so they are dropped before it.
        self.merge = MergingIter::new(self.order.clone(), runs(&mut cx, &self.range, tier));
        self.cx = cx;
        (self.seq, self.tier, self.seen, self.whole) = (seq, tier, seen, whole);
        Ok(())
    }
}
