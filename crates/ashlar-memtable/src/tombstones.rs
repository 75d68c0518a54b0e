//! The range tombstones of a memtable: a list beside the index. The first read after a change cuts them into
//! fragments.
//!
//! 1. In a memtable without range tombstones, a read costs one load of a counter and no memory.
//! 2. A writer adds tombstones to the list and then raises the counter. A thread that sees the new counter and takes
//!    the lock finds the tombstones.
//! 3. The fragments are kept in parts. A reader that finds a raised counter makes a part of the new tombstones. Then it
//!    joins the last parts as long as the one before is less than twice as large. So a caller that alternates deletions
//!    and reads pays for the logarithm of the list each time, not for the whole list. A part may hold tombstones that a
//!    reader must not see; the reader selects by sequence number.
//! 4. A thread that holds the lock does not touch the cell from which readers load: pinning the epoch or setting a cell
//!    may drop values of other threads, such as whole tables with their own locks.
//!
//! Source: RocksDB `db/memtable.cc` (the idea of a separate list, and of a cached fragmentation).

use crate::entry::{MemoryLimit, Op, TombstoneParts};
use ashlar_base::range_del::{FragmentedTombstones, ListedTombstones, RangeTombstone};
use ashlar_base::{Order, SeqNum};
use ashlar_sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use ashlar_sync::{EpochCell, Mutex, Rank, ReadPin};
use std::cmp::Ordering as KeyOrdering;
use std::sync::Arc;

/// Bytes of a tombstone in the fragments beside its keys, about: two pieces with their begins, ends and nodes, a span, and its
/// sequence number in two nodes.
const CUT: usize = 160;

/// A copied tombstone without a sequence number.
#[derive(Debug)]
pub(crate) struct Pending {
    begin: Vec<u8>,
    end: Vec<u8>,
    seq_delta: u32,
}

impl Pending {
    /// Copies the begin and end keys.
    pub(crate) fn copy(op: &Op<'_>) -> Result<Pending, MemoryLimit> {
        let copy = |bytes: &[u8]| {
            let mut copied = Vec::new();
            copied.try_reserve_exact(bytes.len()).map_err(|_| MemoryLimit)?;
            copied.extend_from_slice(bytes);
            Ok(copied)
        };
        Ok(Pending { begin: copy(op.key)?, end: copy(op.value)?, seq_delta: op.seq_delta })
    }
}

/// Fragments of the first tombstones of the list, in parts.
#[derive(Debug, Default)]
struct Cut {
    /// The end of each part in the list.
    ends: Vec<usize>,
    parts: TombstoneParts,
}

impl Cut {
    /// The number of tombstones in the parts.
    fn count(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    /// When a list of `len` tombstones is cut: the number of parts that stay, and the number of tombstones in them.
    fn kept(&self, len: usize) -> (usize, usize) {
        let (mut start, mut kept) = (self.count(), self.ends.len());
        while let Some(last) = kept.checked_sub(1) {
            let before = last.checked_sub(1).and_then(|at| self.ends.get(at)).copied().unwrap_or(0);
            if start - before > 2 * (len - start) {
                break;
            }
            (start, kept) = (before, last);
        }
        (kept, start)
    }

    /// The first `kept` parts, and one part of `tail`: the tombstones from `start` to the end of the list.
    fn extended(&self, order: &Order, (kept, start): (usize, usize), tail: &[RangeTombstone<&[u8]>]) -> Cut {
        let mut ends = self.ends.clone();
        ends.truncate(kept);
        ends.push(start + tail.len());
        let new = Arc::new(FragmentedTombstones::new(order, tail));
        Cut { ends, parts: self.parts.iter().take(kept).cloned().chain([new]).collect() }
    }
}

#[derive(Debug, Default)]
struct All {
    list: ListedTombstones,
    /// The newest parts, for threads that waited for the lock while another thread made them.
    newest: Arc<Cut>,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct TombstoneList {
    order: Order,
    count: AtomicU64,
    bytes: AtomicUsize,
    all: Mutex<All>,
    cut: EpochCell<Cut>,
}

impl TombstoneList {
    pub(crate) fn new(order: Order) -> Self {
        TombstoneList {
            order,
            count: AtomicU64::new(0),
            bytes: AtomicUsize::new(0),
            all: Mutex::new(Rank::Inner, All::default()),
            cut: EpochCell::new(Arc::default()),
        }
    }

    /// The number of tombstones.
    #[inline]
    pub(crate) fn len(&self) -> u64 {
        // Acquire pairs with the Release in `insert`: the list holds as many tombstones as the counter says.
        self.count.load(Ordering::Acquire)
    }

    /// An estimate of their memory in bytes.
    pub(crate) fn memory(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Makes prepared tombstones visible.
    ///
    /// # Panics
    /// When a sequence number would exceed [`SeqNum::MAX`].
    #[cold]
    pub(crate) fn insert(&self, pending: Vec<Pending>, first: SeqNum) {
        let (count, mut bytes) = (pending.len() as u64, 0);
        {
            let mut all = self.all.lock();
            for Pending { begin, end, seq_delta } in pending {
                let Some(seq) = first.checked_add(u64::from(seq_delta)) else {
                    panic!("a sequence number over 56 bits")
                };
                bytes += ListedTombstones::BYTES_EACH + CUT + 2 * (begin.len() + end.len());
                all.list.push(&begin, &end, seq);
            }
        }
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.count.fetch_add(count, Ordering::Release);
    }

    /// The parts of all tombstones inserted so far; `None` when there are none.
    #[inline]
    pub(crate) fn parts(&self) -> Option<TombstoneParts> {
        match self.len() {
            0 => None,
            count => Some(self.cut_at(count)),
        }
    }

    /// The same parts, borrowed; `None` when some tombstones are in no part yet.
    #[inline]
    pub(crate) fn cut_parts<'g>(&'g self, pin: &'g ReadPin) -> Option<&'g [Arc<FragmentedTombstones>]> {
        match self.len() {
            0 => Some(&[]),
            count => {
                Some(self.cut.load(pin)).filter(|cut| cut.count() as u64 >= count).map(|cut| &*cut.parts)
            }
        }
    }

    fn cut_at(&self, count: u64) -> TombstoneParts {
        if let Some(cut) = Some(self.cut.get()).filter(|cut| cut.count() as u64 >= count) {
            return Arc::clone(&cut.parts);
        }
        let newest = match self.order {
            Order::Custom(_) => self.cut_outside(),
            Order::Bytewise | Order::ReverseBytewise => self.cut_locked(),
        };
        let parts = Arc::clone(&newest.parts);
        self.cut.set(newest);
        parts
    }

    /// Cuts the whole list under the lock, so that other readers wait for the result instead of cutting it too.
    fn cut_locked(&self) -> Arc<Cut> {
        let mut all = self.all.lock();
        if all.newest.count() < all.list.len() {
            let kept = all.newest.kept(all.list.len());
            all.newest = Arc::new(all.newest.extended(&self.order, kept, &all.list.since(kept.1)));
        }
        Arc::clone(&all.newest)
    }

    /// Cuts a copy of the list's tail without the lock. Cutting may call a user's comparator, which may read the
    /// database or wait for a thread that does.
    fn cut_outside(&self) -> Arc<Cut> {
        let (newest, kept, tail) = {
            let all = self.all.lock();
            if all.newest.count() >= all.list.len() {
                return Arc::clone(&all.newest);
            }
            let kept = all.newest.kept(all.list.len());
            let tail: ListedTombstones = all.list.since(kept.1).into_iter().collect();
            (Arc::clone(&all.newest), kept, tail)
        };
        let cut = Arc::new(newest.extended(&self.order, kept, &tail.since(0)));
        let mut all = self.all.lock();
        if all.newest.count() < cut.count() {
            all.newest = Arc::clone(&cut);
        }
        cut
    }

    /// Whether the operation covers any key.
    pub(crate) fn covers_something(&self, op: &Op<'_>) -> bool {
        self.order.compare(op.key, op.value) == KeyOrdering::Less
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{WriterSlot, memtable};
    use ashlar_base::{LookupKey, ValueType};
    use std::thread;

    fn seq(n: u64) -> SeqNum {
        SeqNum::new(n).unwrap()
    }

    fn op<'a>(value_type: ValueType, key: &'a str, value: &'a str, seq_delta: u32) -> Op<'a> {
        Op { key: key.as_bytes(), value: value.as_bytes(), value_type, seq_delta }
    }

    fn newest(parts: &TombstoneParts, key: &[u8], at: u64) -> Option<SeqNum> {
        parts.iter().filter_map(|part| part.covering_seq(key, seq(at))).max()
    }

    #[test]
    fn few_parts_however_the_list_grew() {
        let list = TombstoneList::new(Order::Bytewise);
        let mut at = 0u64;
        for step in 0..if cfg!(miri) { 20 } else { 600usize } {
            for _ in 0..[1, 1, 3, 1, 40][step % 5] {
                let begin = at.to_be_bytes();
                let end = (at + 1).to_be_bytes();
                let op = Op { key: &begin, value: &end, value_type: ValueType::RangeDelete, seq_delta: 0 };
                list.insert(vec![Pending::copy(&op).unwrap()], seq(1 + at));
                at += 1;
            }
            let parts = list.parts().unwrap();
            assert!(1 << (parts.len() - 1) <= at, "{} parts of {at}", parts.len());
            assert_eq!(parts.iter().map(|p| p.len() as u64).sum::<u64>(), at);
            for key in [0, at / 2, at - 1] {
                assert_eq!(newest(&parts, &key.to_be_bytes(), u64::MAX >> 8), Some(seq(1 + key)));
            }
        }
    }

    #[test]
    fn a_batch_of_points_and_ranges_keeps_them_apart() {
        for (order, from, to) in [(Order::Bytewise, "b", "d"), (Order::ReverseBytewise, "d", "b")] {
            let mem = memtable(order);
            assert_eq!((mem.range_tombstone_count(), mem.range_tombstones().is_none()), (0, true));
            let (mut w, used) = (WriterSlot::default(), mem.memory());
            let ops = [
                op(ValueType::Put, "c", "1", 0),
                op(ValueType::RangeDelete, from, to, 1),
                op(ValueType::Put, "c", "2", 2),
                op(ValueType::RangeDelete, "c", "c", 3),
                op(ValueType::RangeDelete, to, from, 3),
            ];
            let prepared = mem.prepare(&mut w, &mut ops.into_iter()).unwrap();
            assert_eq!((prepared.len(), mem.range_tombstone_count()), (3, 0));
            mem.insert(&mut w, prepared, seq(10));
            assert_eq!((mem.len(), mem.range_tombstone_count()), (3, 1));
            assert!(mem.memory() > used);
            let cut = mem.range_tombstones().unwrap();
            let c = |at| newest(&cut, b"c", at);
            assert_eq!([c(10), c(11), c(99)], [None, Some(seq(11)), Some(seq(11))]);
            assert_eq!(newest(&cut, to.as_bytes(), 99), None);
            assert_eq!(mem.get(&LookupKey::new(b"c", seq(11))).unwrap().unwrap().value, b"1");
            assert!(mem.get(&LookupKey::new(b"b", seq(99))).unwrap().is_none());
        }
    }

    #[test]
    fn only_tombstones_are_something_too() {
        let mem = memtable(Order::Bytewise);
        let mut w = WriterSlot::default();
        let ops = [op(ValueType::RangeDelete, "a", "m", 0)];
        let prepared = mem.prepare(&mut w, &mut ops.into_iter()).unwrap();
        assert!(!prepared.is_empty());
        mem.insert(&mut w, prepared, seq(1));
        assert!(!mem.is_empty() && mem.smallest_and_largest().is_none());
        assert!(Arc::ptr_eq(&mem.range_tombstones().unwrap(), &mem.range_tombstones().unwrap()), "cut once");
    }

    #[test]
    fn readers_see_what_was_inserted_before_they_asked() {
        let mem = memtable(Order::Bytewise);
        let rounds: u64 = if cfg!(miri) { 8 } else { 200 };
        let turn = std::sync::Mutex::new(());
        thread::scope(|scope| {
            for writer in 0..2u64 {
                let (mem, turn) = (&mem, &turn);
                scope.spawn(move || {
                    let mut w = WriterSlot::default();
                    for i in 1..=rounds {
                        let at = 2 * i + writer;
                        let key = [b'a' + (writer & 0xff) as u8];
                        let end = [key[0] + 1];
                        let ops =
                            [Op { key: &key, value: &end, value_type: ValueType::RangeDelete, seq_delta: 0 }];
                        // The threads write in turn, and cut the list together.
                        let turn = turn.lock().unwrap();
                        let prepared = mem.prepare(&mut w, &mut ops.into_iter()).unwrap();
                        mem.insert(&mut w, prepared, seq(at));
                        drop(turn);
                        let cut = mem.range_tombstones().unwrap();
                        assert_eq!(newest(&cut, &key, at), Some(seq(at)));
                    }
                });
            }
        });
        assert_eq!(mem.range_tombstone_count(), 2 * rounds);
    }
}
