//! A family's memtables: the current one, which takes writes, and the immutable ones, which wait for their flush.
//!
//! 1. Immutable memtables are flushed oldest first, and leave the list in that order.
//! 2. An empty memtable is never sealed. If failed writes have used memory in it, a switch replaces it.
//! 3. Each memtable knows the WAL file that was current when it was created: no older WAL file holds any of its data.

use crate::MemtableRep;
use ashlar_base::planted::{Bug, planted};
use ashlar_base::{FileNumber, SeqNum};
use std::collections::VecDeque;
use std::sync::Arc;

/// The memory of an empty memtable before the first write is below this size.
const FRESH_BYTES: usize = 4 << 10;

/// A memtable and the first WAL file that holds its data.
#[derive(Clone)]
pub struct Memtable {
    /// Its entries.
    pub rep: Arc<dyn MemtableRep>,
    /// The WAL file that was current when it was created.
    pub first_wal: FileNumber,
    /// Every entry is newer than this.
    since: SeqNum,
}

impl Memtable {
    /// Whether a switch has entries to seal, or memory of failed writes to free.
    pub fn is_used(&self) -> bool {
        !self.rep.is_empty() || self.rep.memory() > FRESH_BYTES
    }
}

/// The memtables of one family.
pub struct MemtableList {
    current: Memtable,
    /// Oldest first.
    immutable: VecDeque<Memtable>,
}

impl MemtableList {
    /// A list of one memtable, whose entries are newer than `since`.
    pub fn new(rep: Arc<dyn MemtableRep>, first_wal: FileNumber, since: SeqNum) -> Self {
        MemtableList { current: Memtable { rep, first_wal, since }, immutable: VecDeque::new() }
    }

    /// Every entry of every memtable is newer than this; `None`: there is no entry.
    pub fn unflushed_since(&self) -> Option<SeqNum> {
        let used = self.immutable.iter().chain([&self.current]).find(|memtable| !memtable.rep.is_empty());
        used.map(|oldest| oldest.since)
    }

    /// The memtable that takes writes.
    pub fn current(&self) -> &Memtable {
        &self.current
    }

    /// Seals the current memtable at `last`, if it has entries, and replaces it with `rep`, whose data starts in
    /// `first_wal`. No write is in progress.
    pub fn switch(&mut self, rep: Arc<dyn MemtableRep>, first_wal: FileNumber, last: SeqNum) {
        rep.gap().take_over(self.current.rep.gap());
        let before = std::mem::replace(&mut self.current, Memtable { rep, first_wal, since: last });
        if !before.rep.is_empty() {
            before.rep.seal(last);
            self.immutable.push_back(before);
        }
    }

    /// An empty current memtable has no data in the WAL files before `wal`, the current one.
    pub fn advance_empty(&mut self, wal: FileNumber) {
        if self.current.rep.is_empty() {
            self.current.first_wal = wal;
        }
    }

    /// Every immutable memtable, newest first, for readers.
    pub fn immutable_newest_first(&self) -> Box<[Arc<dyn MemtableRep>]> {
        self.immutable.iter().rev().map(|m| Arc::clone(&m.rep)).collect()
    }

    /// The bytes that all memtables of the family take from the budget.
    pub fn held(&self) -> usize {
        self.immutable.iter().chain([&self.current]).map(|m| m.rep.held()).sum()
    }

    /// The part of [`held`](Self::held) that is in use.
    pub fn used(&self) -> usize {
        self.immutable.iter().chain([&self.current]).map(|m| m.rep.memory()).sum()
    }

    /// The number of immutable memtables.
    pub fn immutable_len(&self) -> usize {
        self.immutable.len()
    }

    /// Removes the oldest `count` immutable memtables, whose data is in tables.
    pub fn flushed(&mut self, count: usize) {
        self.immutable.drain(..count.min(self.immutable.len()));
    }

    /// The first WAL file that is needed once the oldest `count` immutable memtables are flushed.
    pub fn first_wal_after(&self, count: usize) -> FileNumber {
        let next = self.immutable.get(count).filter(|_| !planted(Bug::LogNumberTooHigh));
        next.unwrap_or(&self.current).first_wal
    }
}
