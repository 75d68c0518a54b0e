//! A skiplist: the index for custom comparators, which have no words for the tree.
//!
//! 1. A node is linked from its lowest level upwards. It is in the list once the lowest link leads to it; higher links
//!    are shortcuts.
//! 2. Comparisons are a user's code and may be slow. A search remembers the last node that it found at or after its
//!    target, because lower levels often lead to that node again.
//! 3. One writer at a time changes links, under the arena's turn.
//!
//! Source: RocksDB `memtable/inlineskiplist.h` (heights before links, hints).

use crate::arena::{Arena, Turn};
use crate::entry::{MemoryLimit, Op};
use crate::index::{Index, Target};
use crate::node::{Anchor, HEIGHT_MAX, Head, Spot, Unlinked};
use crate::rep::{Hint, WriterSlot};
use crate::stored::{Fresh, Stored};
use ashlar_base::Trailer;
use ashlar_base::ext::comparator::KeyOrder;
use ashlar_base::memory::MemoryCharge;
use ashlar_base::splitmix;
use ashlar_sync::atomic::{AtomicUsize, Ordering};
use std::alloc::{Layout, handle_alloc_error};
use std::cmp::Ordering as Order;

/// The most steps that an insert takes on a level from this writer's last insert.
const HINT_STEPS: u32 = 2;

/// A rank is estimated from about this many nodes, as a power of two.
const RANK_NODES_LOG2: u32 = 10;

/// The list. Entries are in the arena; this is the head.
pub(crate) struct SkipList<C> {
    order: C,
    arena: Arena,
    head: Head,
    /// Levels in use; a hint, may lag behind.
    height: AtomicUsize,
}

impl<C: KeyOrder + 'static> SkipList<C> {
    /// An empty list; its memory is charged to `charge`.
    pub(crate) fn new(order: C, charge: MemoryCharge) -> Self {
        let arena = Arena::new(charge);
        let head = match Head::new(&arena.turn()) {
            Ok(head) => head,
            // A small allocation: with so little memory left the process cannot go on.
            Err(MemoryLimit) => handle_alloc_error(Layout::new::<Self>()),
        };
        SkipList { order, arena, head, height: AtomicUsize::new(1) }
    }

    fn spot(&self, at: Anchor) -> Spot<'_> {
        Spot::resume(&self.arena, at)
    }

    fn anchor(&self, spot: Spot<'_>) -> Option<Anchor> {
        (!self.head.is(spot.offset())).then(|| spot.anchor())
    }

    fn levels(&self) -> usize {
        self.height.load(Ordering::Relaxed)
    }

    fn walk<'a, 'k>(&'a self, target: &'k Target<'k>, top: usize) -> Walk<'a, 'k, C> {
        let spot = Spot::head(&self.arena, self.head, top);
        Walk { order: &self.order, target, spot, bound: None }
    }

    /// The last node before the target, or the head, and the first node that is not before it. The link between the two
    /// may lead to a node that was inserted meanwhile, and is before the target.
    fn search(&self, target: &Target<'_>) -> (Spot<'_>, Option<Spot<'_>>) {
        let mut walk = self.walk(target, self.levels() - 1);
        loop {
            walk.along();
            if !walk.down() {
                return (walk.spot, walk.bound);
            }
        }
    }

    /// Per level in use and below `height`, the last node before the target.
    fn search_path<'a>(&'a self, target: &Target<'_>, height: usize, path: &mut Path<'a>) {
        let top = self.levels().max(height) - 1;
        let mut walk = self.walk(target, top);
        loop {
            walk.along();
            path.set(walk.spot);
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
        if hint.anchors.len() < height {
            return false;
        }
        let mut known = None;
        for anchor in hint.anchors.iter().take(height) {
            let mut walk = Walk { spot: self.spot(*anchor), ..self.walk(target, 0) };
            let offset = walk.spot.offset();
            if known != Some(offset) && !self.head.is(offset) && !walk.is_before(walk.spot.entry()) {
                return false;
            }
            known = Some(offset);
            if !walk.along_some(HINT_STEPS) {
                return false;
            }
            path.set(walk.spot);
        }
        true
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

impl<C: KeyOrder + 'static> Index for SkipList<C> {
    type At = Anchor;

    fn arena(&self) -> &Arena {
        &self.arena
    }

    fn store<'a>(
        &'a self,
        turn: &Turn<'a>,
        writer: &mut WriterSlot,
        op: &Op<'_>,
    ) -> Result<Fresh<'a>, MemoryLimit> {
        Unlinked::alloc(turn, self.random_height(writer), op)
    }

    fn insert<'a>(&'a self, turn: &Turn<'a>, writer: &mut WriterSlot, memtable: u64, entry: Stored<'a>) {
        let (node, target) = (Unlinked::of(entry), Target::of(entry));
        let height = node.height();
        let hint = &mut writer.hint;
        let mut path = Path([None; HEIGHT_MAX]);
        let hinted = hint.memtable == memtable && self.search_hint(hint, &target, height, &mut path);
        if !hinted {
            self.search_path(&target, height, &mut path);
            hint.memtable = memtable;
            hint.anchors.clear();
            hint.anchors.extend(path.0.iter().map_while(|spot| spot.map(Spot::anchor)));
        }
        for (level, before) in path.0.iter().take(height).enumerate() {
            if let Some(before) = before {
                node.set_link(level, before.link());
                before.link_to(turn, &node);
            }
        }
        // Relaxed: a search that starts on a too low level is slower, not wrong.
        if height > self.levels() {
            self.height.store(height, Ordering::Relaxed);
        }
        for (level, anchor) in hint.anchors.iter_mut().take(height).enumerate() {
            *anchor = node.anchor(level);
        }
    }

    fn entry(&self, at: Anchor) -> Stored<'_> {
        self.spot(at).entry()
    }

    fn place_of(&self, entry: Stored<'_>) -> Anchor {
        Anchor::lowest(entry)
    }

    fn get(&self, target: &Target<'_>) -> Option<Stored<'_>> {
        let entry = self.search(target).1?.entry();
        (entry.user_key() == target.user_key).then_some(entry)
    }

    fn at_or_after(&self, target: &Target<'_>) -> Option<Anchor> {
        Some(self.search(target).1?.anchor())
    }

    fn at_or_before(&self, target: &Target<'_>) -> Option<Anchor> {
        let (before, next) = self.search(target);
        let equal = |next: &Spot<'_>| next.entry().key() == (target.user_key, target.trailer);
        match next.filter(equal) {
            Some(next) => Some(next.anchor()),
            None => self.anchor(before),
        }
    }

    fn first(&self) -> Option<Anchor> {
        Some(Spot::head(&self.arena, self.head, 0).next()?.anchor())
    }

    fn last(&self) -> Option<Anchor> {
        let mut spot = Spot::head(&self.arena, self.head, self.levels() - 1);
        loop {
            match spot.next().or_else(|| spot.down()) {
                Some(further) => spot = further,
                None => return self.anchor(spot),
            }
        }
    }

    fn next(&self, at: Anchor) -> Option<Anchor> {
        Some(self.spot(at).next()?.anchor())
    }

    fn prev(&self, at: Anchor) -> Option<Anchor> {
        self.anchor(self.search(&Target::of(self.entry(at))).0)
    }

    /// Counts nodes from the level that should have a few hundred, and multiplies them by the entries that each stands
    /// for.
    fn rank(&self, user_key: &[u8], all: u64) -> u64 {
        let target = Target { user_key, trailer: Trailer::FIRST };
        let sparse = all.checked_ilog2().unwrap_or(0).saturating_sub(RANK_NODES_LOG2);
        let mut level = (sparse as usize).min(self.levels() - 1);
        let mut walk = self.walk(&target, level);
        let mut rank = 0;
        loop {
            while let Some(next) = walk.spot.next().filter(|next| walk.is_before(next.entry())) {
                (walk.spot, rank) = (next, rank + (1 << level));
            }
            if !walk.down() {
                return rank;
            }
            level -= 1;
        }
    }

    /// An entry has two links on average.
    fn overhead(&self, all: u64) -> usize {
        usize::try_from(all).unwrap_or(0) * size_of::<u64>()
    }
}

/// Per level from the lowest on, the last node before the target of a search.
struct Path<'a>([Option<Spot<'a>>; HEIGHT_MAX]);

impl<'a> Path<'a> {
    fn set(&mut self, spot: Spot<'a>) {
        if let Some(at) = self.0.get_mut(spot.level()) {
            *at = Some(spot);
        }
    }
}

/// A search on its way along the levels.
struct Walk<'a, 'k, C> {
    order: &'a C,
    target: &'k Target<'k>,
    /// A place before the target.
    spot: Spot<'a>,
    /// The node that was last compared and is not before the target.
    bound: Option<Spot<'a>>,
}

impl<C: KeyOrder> Walk<'_, '_, C> {
    fn is_before(&self, entry: Stored<'_>) -> bool {
        let (key, trailer) = entry.key();
        self.order.cmp(key, self.target.user_key).then_with(|| self.target.trailer.cmp(&trailer))
            == Order::Less
    }

    /// Goes one level down. False on the lowest.
    fn down(&mut self) -> bool {
        self.spot.down().map(|down| self.spot = down).is_some()
    }

    /// Goes to the last node of its level before the target.
    fn along(&mut self) {
        while !self.along_some(u32::MAX) {}
    }

    /// [`Walk::along`] over at most `steps` nodes; false when more are needed.
    fn along_some(&mut self, steps: u32) -> bool {
        for _ in 0..=steps {
            let Some(next) = self.spot.next() else { return true };
            let known = self.bound.is_some_and(|bound| bound.offset() == next.offset());
            if known || !self.is_before(next.entry()) {
                // On this level, which is at most the bound's.
                self.bound = Some(next);
                return true;
            }
            self.spot = next;
        }
        false
    }
}
