//! A concurrent skiplist that compares most keys without reading them.
//!
//! Besides the target's address, a link has the *difference* of the target's key from the key of the link's owner: the
//! number of bytes both begin with (`lcp`) and the target's next one to three bytes, its digits. See `difference`.
//!
//! Both change in one CAS. A search knows that its key is greater than the key of the current node, and how many
//! bytes (`left`) the two share. So for a link with `lcp`:
//! - `lcp > left`: the target shares with the node the byte at which the search key is greater. Go on; `left` stays.
//! - `lcp < left`: the target is greater than the node at a byte that the search key shares with the node. Stop.
//! - `lcp = left`: the digits decide. Only when they are equal does the search read the target's key.
//!
//! Example: the node `user1`, the search key `user5` (`left` is 4). A link to `user19` has `lcp` 5: go on. A link to
//! `v` has `lcp` 0: stop. A link to `user7` has `lcp` 4: its digits `7` are greater than `5`, so stop.
//!
//! Unlike a plain prefix this works when all keys begin alike.
//! 1. A search knows `left` exactly. A link knows `lcp` up to 69,614; beyond, and for keys without a difference, the full
//!    comparison decides.
//! 2. The head shares no byte with any key: its links have `lcp` 0.
//! 3. The difference is a function of owner and target, so equal addresses mean equal links.
//! 4. Custom orders have no digits: their links carry zeros, and every comparison is a full one.
//! 5. A node is linked from its lowest level upwards. It is in the list once the lowest link leads to it; higher links
//!    are shortcuts.
//!
//! Source: RocksDB `memtable/inlineskiplist.h` (concurrent insert, hints); the differences are our own.

use crate::arena::Arena;
use crate::cursor::{ListCursor, ListIter};
use crate::difference::{ALL, Difference, shared_blocks};
use crate::entry::{MemoryLimit, Op, TombstoneParts};
use crate::gap::Gap;
use crate::node::{Anchor, Fresh, HEIGHT_MAX, Head, Link, Offset, Spot};
use crate::rep::{Found, Hint, MemtableRep, Prepared, Show, WriterSlot};
use crate::tombstones::{Pending, TombstoneList};
use ashlar_base::ext::comparator::KeyOrder;
use ashlar_base::memory::MemoryCharge;
use ashlar_base::range_del::FragmentedTombstones;
use ashlar_base::splitmix;
use ashlar_base::{
    InternalIterator, InternalKeyBuf, LookupKey, Result, RunCursor, SeqNum, Trailer, ValueType,
};
use ashlar_sync::ReadPin;
use ashlar_sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::alloc::{Layout, handle_alloc_error};
use std::cmp::Ordering as Order;
use std::sync::Arc;
use std::sync::atomic::AtomicU64 as StaticU64;

/// Not a sequence number: the memtable is not sealed.
const OPEN: u64 = u64::MAX;
/// The most steps that an insert takes on the lowest level from this writer's last insert.
const HINT_STEPS: u32 = 2;

/// A rank is estimated from about this many nodes, as a power of two.
const RANK_NODES_LOG2: u32 = 10;

// A counter of the process, so never one of loom's atomics.
static NEXT_ID: StaticU64 = StaticU64::new(1);

/// The list. Entries are in the arena; this is the head, a few counters, and the range tombstones.
pub(crate) struct SkipList<C> {
    order: C,
    tombstones: TombstoneList,
    gap: Gap,
    arena: Arena,
    head: Head,
    id: u64,
    /// Levels in use; a hint, may lag behind.
    height: AtomicUsize,
    count: AtomicU64,
    deletions: AtomicU64,
    sealed: AtomicU64,
}

/// The key of a search.
#[derive(Clone, Copy)]
struct Target<'k> {
    user_key: &'k [u8],
    trailer: Trailer,
}

/// The position of a search on one level: after `spot`, before the node to which `link` leads.
#[derive(Clone, Copy)]
struct Reach<'a> {
    spot: Spot<'a>,
    link: Link,
    /// Bytes the target shares with `spot`'s key.
    left: u32,
    /// The key to which `link` leads.
    end: End,
}

/// The relation of a target to the first key that is not before it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// The next key shares as many bytes with the target as with the link's owner. Also at the end of the list.
    AsOwner,
    /// The target shares so many bytes with it. Not known in a custom order.
    Shares(u32),
    /// They are equal, trailer included.
    Equal,
}

impl<C: KeyOrder + 'static> SkipList<C> {
    /// `order` and `same_order` are one order, as a type and as a value.
    /// Its memory is charged to `charge`.
    pub(crate) fn new(order: C, same_order: ashlar_base::Order, charge: MemoryCharge) -> Self {
        let arena = Arena::new(charge);
        let head = match Head::new(&arena) {
            Ok(head) => head,
            // A small allocation: with so little memory left the process cannot go on.
            Err(MemoryLimit) => handle_alloc_error(Layout::new::<Self>()),
        };
        SkipList {
            order,
            tombstones: TombstoneList::new(same_order.clone()),
            gap: Gap::new(same_order),
            arena,
            head,
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            height: AtomicUsize::new(1),
            count: AtomicU64::new(0),
            deletions: AtomicU64::new(0),
            sealed: AtomicU64::new(OPEN),
        }
    }

    /// The first entry at or after the key.
    pub(crate) fn lower_bound(&self, user_key: &[u8], trailer: Trailer) -> Option<Spot<'_>> {
        let reach = self.search(&Target { user_key, trailer });
        reach.spot.follow(reach.link)
    }

    /// The last entry at or before the key.
    pub(crate) fn upper_bound(&self, user_key: &[u8], trailer: Trailer) -> Option<Spot<'_>> {
        let reach = self.search(&Target { user_key, trailer });
        match reach.end {
            End::Equal => reach.spot.follow(reach.link),
            _ => self.unless_head(reach.spot),
        }
    }

    /// The last entry before the key.
    pub(crate) fn before(&self, user_key: &[u8], trailer: Trailer) -> Option<Spot<'_>> {
        self.unless_head(self.search(&Target { user_key, trailer }).spot)
    }

    /// The first entry.
    pub(crate) fn first(&self) -> Option<Spot<'_>> {
        Spot::head(&self.arena, self.head, 0).next()
    }

    /// The last entry.
    pub(crate) fn last(&self) -> Option<Spot<'_>> {
        let mut spot = Spot::head(&self.arena, self.head, self.levels() - 1);
        loop {
            match spot.next().or_else(|| spot.down()) {
                Some(further) => spot = further,
                None => return self.unless_head(spot),
            }
        }
    }

    /// The spot of an anchor that an iterator over this list holds.
    pub(crate) fn resume(&self, anchor: Anchor) -> Spot<'_> {
        Spot::resume(&self.arena, anchor)
    }

    fn unless_head<'a>(&self, spot: Spot<'a>) -> Option<Spot<'a>> {
        (!self.head.is(spot.offset())).then_some(spot)
    }

    fn levels(&self) -> usize {
        self.height.load(Ordering::Relaxed)
    }

    fn search(&self, target: &Target<'_>) -> Reach<'_> {
        let mut walk =
            Walk::new(&self.order, target, Spot::head(&self.arena, self.head, self.levels() - 1), 0);
        loop {
            let reach = walk.along();
            if !walk.down() {
                return reach;
            }
        }
    }

    /// Fills `path` for all levels in use and below `height`. `path` holds the lowest level last.
    fn search_path<'a>(&'a self, target: &Target<'_>, height: usize, path: &mut Path<'a>) {
        path.clear();
        let top = self.levels().max(height) - 1;
        let mut walk = Walk::new(&self.order, target, Spot::head(&self.arena, self.head, top), 0);
        loop {
            path.push(walk.along());
            if !walk.down() {
                return;
            }
        }
    }

    /// Tries to fill `path` for the levels below `height`, starting from the writer's last insert.
    fn search_hint<'a>(
        &'a self,
        hint: &Hint,
        target: &Target<'_>,
        height: usize,
        path: &mut Path<'a>,
    ) -> bool {
        path.clear();
        if hint.memtable != self.id || hint.anchors.len() < height {
            return false;
        }
        let mut known = None;
        for &anchor in hint.anchors.iter().take(height) {
            let spot = self.resume(anchor);
            let left = match known {
                Some((offset, left)) if offset == spot.offset() => left,
                _ if self.head.is(spot.offset()) => 0,
                _ => match compare(&self.order, spot.key(), target, 0) {
                    (Order::Less, lcp) => lcp,
                    _ => return false,
                },
            };
            known = Some((spot.offset(), left));
            match Walk::new(&self.order, target, spot, left).along_some(HINT_STEPS) {
                Some(reach) => path.insert(reach),
                None => return false,
            }
        }
        true
    }

    fn insert_one<'a>(&'a self, hint: &mut Hint, fresh: &Fresh<'a>, trailer: Trailer, path: &mut Path<'a>) {
        let target = Target { user_key: fresh.user_key(), trailer };
        let height = fresh.height();
        let hinted = self.search_hint(hint, &target, height, path);
        if !hinted {
            self.search_path(&target, height, path);
        }
        for level in 0..height {
            if let Some(reach) = path.level(level) {
                self.link_in(fresh, level, &target, reach);
            }
        }
        // Relaxed: a search that starts on a too low level is slower, not wrong.
        if height > self.levels() {
            self.height.fetch_max(height, Ordering::Relaxed);
        }
        hint.remember(self.id, fresh, path, hinted);
    }

    fn link_in<'a>(&'a self, fresh: &Fresh<'a>, level: usize, target: &Target<'_>, mut reach: Reach<'a>) {
        loop {
            fresh.set_link(level, self.onward(&reach));
            let difference = Difference::of(&self.order, target.user_key, reach.left);
            if reach.spot.replace(reach.link, Link::new(difference, fresh.offset())) {
                return;
            }
            // If another thread was faster, its node may come before this one.
            reach = Walk::new(&self.order, target, reach.spot, reach.left).along();
        }
    }

    /// The link from the target of a search to the next node.
    fn onward(&self, reach: &Reach<'_>) -> Link {
        let Some(node) = reach.spot.follow(reach.link) else { return Link::NONE };
        let shared = match reach.end {
            End::AsOwner => return Link::new(reach.link.difference(), node.offset()),
            End::Shares(shared) => shared,
            End::Equal => ALL,
        };
        Link::new(Difference::of(&self.order, node.user_key(), shared), node.offset())
    }

    /// An estimate of the number of entries before the first version of the key. It counts nodes from the level that
    /// should have a few hundred, and multiplies them by the entries that each stands for.
    fn approximate_rank(&self, user_key: &[u8]) -> u64 {
        let target = Target { user_key, trailer: Trailer::FIRST };
        let sparse =
            self.count.load(Ordering::Relaxed).checked_ilog2().unwrap_or(0).saturating_sub(RANK_NODES_LOG2);
        let mut level = (sparse as usize).min(self.levels() - 1);
        let mut spot = Spot::head(&self.arena, self.head, level);
        let mut rank = 0;
        loop {
            while let Some(next) = spot.next() {
                if compare(&self.order, next.key(), &target, 0).0 != Order::Less {
                    break;
                }
                (spot, rank) = (next, rank + (1 << level));
            }
            match spot.down() {
                Some(down) => (spot, level) = (down, level - 1),
                None => return rank,
            }
        }
    }

    /// A random height for a new node: each further level with a probability of one half. Passing a node costs a cache
    /// miss and stopping before one does not, so tall lists are fast.
    fn random_height(&self, writer: &mut WriterSlot) -> usize {
        if writer.random == 0 {
            // Computed only from the memtable's state, so that the same writes use the same memory in every run.
            writer.random = self.arena.position() | 1;
        }
        (1 + splitmix::next(&mut writer.random).trailing_zeros() as usize).min(HEIGHT_MAX)
    }
}

/// The positions of one search, per level.
struct Path<'a> {
    /// Highest level first.
    reaches: Vec<Reach<'a>>,
}

impl<'a> Path<'a> {
    fn clear(&mut self) {
        self.reaches.clear();
    }
    fn push(&mut self, lower: Reach<'a>) {
        self.reaches.push(lower);
    }
    fn insert(&mut self, higher: Reach<'a>) {
        self.reaches.insert(0, higher);
    }
    fn level(&self, level: usize) -> Option<Reach<'a>> {
        let at = self.reaches.len().checked_sub(level + 1)?;
        self.reaches.get(at).copied()
    }
}

impl Hint {
    fn remember(&mut self, memtable: u64, fresh: &Fresh<'_>, path: &Path<'_>, hinted: bool) {
        if !hinted {
            self.memtable = memtable;
            self.anchors.clear();
            self.anchors.extend(path.reaches.iter().rev().map(|r| r.spot.anchor()));
        }
        for (level, anchor) in self.anchors.iter_mut().take(fresh.height()).enumerate() {
            *anchor = fresh.anchor(level);
        }
    }
}

/// So many words are compared one by one; most keys differ in them.
const WORDS_FIRST: usize = 2;

/// Compares an entry with the target; both are known to share `from` bytes. Also returns how many they share.
fn compare<C: KeyOrder>(order: &C, entry: (&[u8], Trailer), target: &Target<'_>, from: u32) -> (Order, u32) {
    let (key, trailer) = entry;
    if C::WORDS {
        let mut at = from as usize;
        let far = at + 8 * WORDS_FIRST;
        while at < key.len().max(target.user_key.len()) {
            if at == far {
                at += shared_blocks(key, target.user_key, at);
            }
            let (a, b) = (order.word(key, at), order.word(target.user_key, at));
            if a != b {
                let lcp = at + (a ^ b).leading_zeros() as usize / 8;
                return (a.cmp(&b), u32::try_from(lcp).unwrap_or(ALL));
            }
            at += 8;
        }
        if key.len() == target.user_key.len() {
            return (target.trailer.cmp(&trailer), ALL);
        }
    }
    let by_key = order.cmp(key, target.user_key);
    (by_key.then_with(|| target.trailer.cmp(&trailer)), ALL)
}

/// Whether a link with an owner of `key` leads to a node with the same key.
#[inline]
fn same_key<C: KeyOrder>(link: Link, key: &[u8], next: &[u8]) -> bool {
    if !C::WORDS || key.len() > Difference::BEYOND as usize {
        return key == next;
    }
    // Keys without a difference may end with different numbers of zeros.
    link.difference() == Difference::UNTOLD && key.len() == next.len()
}

/// A search on its way along the levels.
struct Walk<'a, 'k, C> {
    order: &'k C,
    target: &'k Target<'k>,
    /// A place before the target.
    spot: Spot<'a>,
    /// Bytes the target shares with the key there.
    left: u32,
    /// The difference of the target from the key there.
    wanted: Difference,
    /// [`Difference::span`] of `wanted`.
    span: u32,
    /// The node that was last compared and is not before the target. Lower levels often lead to it again.
    bound: Option<(Offset, End)>,
}

impl<'a, 'k, C: KeyOrder> Walk<'a, 'k, C> {
    /// A walk from `spot`, which is before the target and shares `left` bytes with it.
    #[inline]
    fn new(order: &'k C, target: &'k Target<'k>, spot: Spot<'a>, left: u32) -> Self {
        let wanted = Difference::of(order, target.user_key, left);
        Walk { order, target, spot, left, wanted, span: wanted.span(), bound: None }
    }

    #[inline]
    fn shares(&mut self, left: u32) {
        self.left = left;
        self.wanted = Difference::of(self.order, self.target.user_key, left);
        self.span = self.wanted.span();
    }

    /// Goes one level down. False on the lowest.
    #[inline]
    fn down(&mut self) -> bool {
        match self.spot.down() {
            Some(down) => {
                self.spot = down;
                true
            }
            None => false,
        }
    }

    /// Goes to the last node of its level before the target.
    #[inline(always)]
    fn along(&mut self) -> Reach<'a> {
        match self.along_some(u32::MAX) {
            Some(reach) => reach,
            None => unreachable!("a level has fewer nodes than addresses"),
        }
    }

    /// [`Walk::along`] over at most `steps` nodes; `None` when more are needed.
    #[inline(always)]
    fn along_some(&mut self, steps: u32) -> Option<Reach<'a>> {
        for _ in 0..=steps {
            let (spot, left, link) = (self.spot, self.left, self.spot.link());
            let stop = |end| Some(Reach { spot, link, left, end });
            let Some(offset) = link.target() else { return stop(End::AsOwner) };
            let (seen, wanted) = (link.difference(), self.wanted);
            if seen == wanted {
                match self.meet(offset) {
                    Ok(left) => self.shares(left),
                    Err(end) => return stop(end),
                }
            } else if seen.unlike(wanted) >= self.span {
                // The lcp differs.
                if seen < wanted {
                    return stop(End::AsOwner);
                }
            } else {
                let shared = left + seen.same_digits(wanted);
                if seen > wanted {
                    return stop(if shared == left { End::AsOwner } else { End::Shares(shared) });
                }
                self.shares(shared);
            }
            self.spot = spot.to(offset);
        }
        None
    }

    /// Compares the target with the node at `offset`, when the link to it does not decide. Returns how many bytes they share
    /// if the node is before the target.
    #[inline]
    fn meet(&mut self, offset: Offset) -> Result<u32, End> {
        if let Some((known, end)) = self.bound
            && known == offset
        {
            return Err(end);
        }
        // The key shares `left` bytes with the target, or as many as a link can tell.
        let from = self.left.min(Difference::BEYOND);
        let end = match compare(self.order, self.spot.to(offset).key(), self.target, from) {
            (Order::Less, shared) => return Ok(shared),
            (Order::Equal, _) => End::Equal,
            (Order::Greater, shared) => End::Shares(shared),
        };
        self.bound = Some((offset, end));
        Err(end)
    }
}

impl<C: KeyOrder + 'static> MemtableRep for SkipList<C> {
    fn prepare(
        &self,
        writer: &mut WriterSlot,
        ops: &mut dyn Iterator<Item = Op<'_>>,
    ) -> Result<Prepared, MemoryLimit> {
        let mut prepared =
            Prepared { memtable: self.id, first: None, count: 0, deletions: 0, tombstones: Vec::new() };
        let mut last: Option<Fresh<'_>> = None;
        for op in ops {
            if op.value_type == ValueType::RangeDelete {
                if self.tombstones.covers_something(&op) {
                    prepared.tombstones.push(Pending::copy(&op)?);
                }
                continue;
            }
            let fresh = Fresh::alloc(&self.arena, self.random_height(writer), &op)?;
            fresh.chain(None);
            match &last {
                Some(last) => last.chain(Some(fresh.offset())),
                None => prepared.first = Some(fresh.offset()),
            }
            prepared.count = prepared.count.checked_add(1).ok_or(MemoryLimit)?;
            prepared.deletions += u32::from(op.value_type.deletes());
            last = Some(fresh);
        }
        Ok(prepared)
    }

    fn insert(&self, writer: &mut WriterSlot, prepared: Prepared, first: SeqNum) {
        assert_eq!(prepared.memtable, self.id, "prepared for another memtable");
        let mut path = Path { reaches: Vec::with_capacity(HEIGHT_MAX) };
        let in_gap = self.gap.is_noted();
        let (mut newest, mut values) = (None, None::<(&[u8], &[u8])>);
        let mut next = prepared.first;
        while let Some(offset) = next {
            let mut fresh = Fresh::unchain(&self.arena, offset);
            next = fresh.chained();
            let trailer = fresh.number(first.get());
            self.insert_one(&mut writer.hint, &fresh, trailer, &mut path);
            if !trailer.value_type().is_some_and(ValueType::deletes) {
                newest = newest.max(Some(trailer.seq()));
                if in_gap {
                    let key = fresh.user_key();
                    let (first, last) = values.unwrap_or((key, key));
                    let is_first = self.order.cmp(key, first) == Order::Less;
                    let is_last = self.order.cmp(key, last) == Order::Greater;
                    values = Some((if is_first { key } else { first }, if is_last { key } else { last }));
                }
            }
        }
        if let Some(newest) = newest {
            self.gap.written(newest, values);
        }
        self.count.fetch_add(u64::from(prepared.count), Ordering::Relaxed);
        if prepared.deletions > 0 {
            self.deletions.fetch_add(u64::from(prepared.deletions), Ordering::Relaxed);
        }
        if !prepared.tombstones.is_empty() {
            self.tombstones.insert(prepared.tombstones, first);
        }
    }

    fn get<'g>(&'g self, key: &LookupKey<'_>) -> Result<Option<Found<'g>>> {
        let reach = self.search(&Target { user_key: key.user_key, trailer: key.trailer() });
        let Some(node) = reach.spot.follow(reach.link) else { return Ok(None) };
        let same = if C::WORDS {
            // Keys without a difference may end with different numbers of zeros.
            matches!(reach.end, End::Equal | End::Shares(ALL)) && node.user_key().len() == key.user_key.len()
        } else {
            node.user_key() == key.user_key
        };
        Ok(same.then(|| Found { trailer: node.key().1, value: node.value(), at: node }))
    }

    fn older(&self, found: &Found<'_>, show: &mut Show<'_>) -> Result<()> {
        let (mut spot, key) = (found.at, found.at.user_key());
        loop {
            let link = spot.link();
            let Some(node) = spot.follow(link) else { return Ok(()) };
            if !same_key::<C>(link, key, node.user_key()) || !show(node.key().1, node.value())? {
                return Ok(());
            }
            spot = node;
        }
    }

    fn range_tombstones(&self) -> Option<TombstoneParts> {
        self.tombstones.parts()
    }

    fn cut_tombstones<'g>(&'g self, pin: &'g ReadPin) -> Option<&'g [Arc<FragmentedTombstones>]> {
        self.tombstones.cut_parts(pin)
    }

    fn range_tombstone_count(&self) -> u64 {
        self.tombstones.len()
    }

    fn gap(&self) -> &Gap {
        &self.gap
    }

    fn iter(self: Arc<Self>) -> Box<dyn InternalIterator> {
        Box::new(ListIter::new(self))
    }

    fn cursor(self: Arc<Self>) -> Box<dyn RunCursor> {
        Box::new(ListCursor::new(self))
    }

    fn memory(&self) -> usize {
        self.arena.used_bytes() + self.tombstones.memory()
    }

    fn held(&self) -> usize {
        self.arena.held_bytes() + self.tombstones.memory()
    }

    fn filled(&self) -> usize {
        // An entry has two links on average.
        let second = usize::try_from(self.count.load(Ordering::Relaxed)).unwrap_or(0) * size_of::<Link>();
        self.memory().saturating_sub(second)
    }

    fn len(&self) -> u64 {
        self.count.load(Ordering::Relaxed) + self.tombstones.len()
    }

    fn deletions(&self) -> u64 {
        self.deletions.load(Ordering::Relaxed)
    }

    fn approximate_count(&self, from: Option<&[u8]>, to: Option<&[u8]>) -> u64 {
        let all = self.count.load(Ordering::Relaxed);
        let before = |key: Option<&[u8]>| key.map(|key| self.approximate_rank(key));
        before(to).unwrap_or(all).min(all).saturating_sub(before(from).unwrap_or(0))
    }

    fn smallest_and_largest(&self) -> Option<(InternalKeyBuf, InternalKeyBuf)> {
        let (first, last) = (self.first()?, self.last()?);
        Some((first.encoded_key().to_buf(), last.encoded_key().to_buf()))
    }

    fn seal(&self, last: SeqNum) {
        // Release pairs with the Acquire in `sealed_at`: a thread that sees the seal sees the inserts before it.
        self.sealed.store(last.get(), Ordering::Release);
    }

    fn sealed_at(&self) -> Option<SeqNum> {
        SeqNum::new(self.sealed.load(Ordering::Acquire))
    }
}
