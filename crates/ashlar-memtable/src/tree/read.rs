//! Searches and steps: all that a reader does.

use super::insert::Writer;
use super::node::{Below, Child, Inner, InnerAt, LeafAt, Node};
use super::search::{Probe, Rank};
use super::slots::{SLOTS_MAX, Slots};
use super::weigh;
use crate::arena::{Arena, Turn};
use crate::entry::{MemoryLimit, Op};
use crate::index::{Index, Target};
use crate::rep::WriterSlot;
use crate::stored::{Fresh, Stored};
use ashlar_base::Trailer;
use ashlar_base::ext::comparator::KeyOrder;
use ashlar_base::memory::MemoryCharge;
use ashlar_sync::atomic::{AtomicU64, Ordering};
use std::cmp::Ordering as Order;

/// The tree. See the module.
pub(crate) struct Tree<C, const N: usize = SLOTS_MAX> {
    pub(super) order: C,
    pub(super) arena: Arena,
    /// `| level of the root: 32 bits | address of the root: 32 bits |`; zero for a tree without a leaf.
    root: AtomicU64,
    pub(super) writer: Writer,
}

/// The place of an entry: its slot, and the leaf as the cursor saw it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At {
    leaf: LeafAt,
    slots: Slots,
    position: usize,
}

/// The entries behind the target of a seek that are prefetched.
const SEEK_AHEAD: usize = 4;

impl<C: KeyOrder + 'static, const N: usize> Tree<C, N> {
    /// An empty tree, which has no memory; later memory is charged to `charge`.
    pub(crate) fn new(order: C, charge: MemoryCharge) -> Self {
        Tree { order, arena: Arena::new(charge), root: AtomicU64::new(0), writer: Writer::default() }
    }

    /// The root and its level; leaves have level 0.
    #[inline]
    pub(super) fn root(&self) -> Option<(u32, Child)> {
        // Acquire pairs with the Release of `set_root`: the node is complete.
        let word = self.root.load(Ordering::Acquire);
        (word != 0).then_some(((word >> 32) as u32, Child::from_raw((word & 0xffff_ffff) as u32)))
    }

    pub(super) fn set_root(&self, _: &Turn<'_>, level: u32, root: Child) {
        self.root.store(u64::from(level) << 32 | u64::from(root.raw()), Ordering::Release);
    }

    #[inline]
    pub(super) fn leaf(&self, at: LeafAt) -> &Node<N> {
        at.in_arena(&self.arena)
    }

    #[inline]
    pub(super) fn inner(&self, at: InnerAt) -> &Inner<N> {
        at.in_arena(&self.arena)
    }

    #[inline]
    pub(super) fn probe<'k>(&'k self, target: &'k Target<'k>) -> Probe<'k, C> {
        Probe { order: &self.order, arena: &self.arena, target }
    }

    /// The leaf that `choose` leads to; it answers the position of a child in an inner node with these slots.
    #[inline]
    pub(super) fn descend(&self, choose: impl Fn(&Node<N>, Slots) -> usize) -> Option<LeafAt> {
        let (level, root) = self.root()?;
        Some(self.descend_from(root, level, choose))
    }

    #[inline]
    fn descend_from(&self, from: Child, level: u32, choose: impl Fn(&Node<N>, Slots) -> usize) -> LeafAt {
        let (mut at, mut level) = (from, level);
        loop {
            match at.below(level + 1) {
                Below::Leaf(leaf) => return leaf,
                Below::Inner(inner) => {
                    let inner = self.inner(inner);
                    at = inner.child(|slots| choose(&inner.node, slots)).2;
                    level -= 1;
                }
            }
        }
    }

    /// The last leaf below a node.
    #[inline]
    pub(super) fn last_leaf(&self, from: Child, level: u32) -> LeafAt {
        self.descend_from(from, level, |_, slots| slots.count() - 1)
    }

    /// The leaf for a target, as it is, and the target's place in it.
    #[inline]
    fn search(&self, probe: &Probe<'_, C>) -> Option<(LeafAt, Slots, Rank)> {
        let at = self.descend(|node, slots| probe.child(node, slots))?;
        let leaf = self.leaf(at);
        let slots = leaf.slots();
        Some((at, slots, probe.entry(leaf, slots)))
    }

    /// The last entry before the target.
    ///
    /// If the target's leaf has none, the search goes on to the left of the path. A split may be under way there: beside
    /// the new right half stands the undivided node, which still has the target and what is behind it. So the search
    /// compares again on its way down.
    fn before(&self, target: &Target<'_>) -> Option<At> {
        let probe = self.probe(target);
        let (mut level, mut at) = self.root()?;
        let (mut left, mut aside) = (None, false);
        loop {
            match at.below(level + 1) {
                Below::Leaf(leaf) => {
                    let node = self.leaf(leaf);
                    let slots = node.slots();
                    let all = aside && probe.is_behind(node, slots);
                    let before = if all { slots.count() } else { probe.entry(node, slots).before };
                    if let Some(position) = before.checked_sub(1) {
                        return Some(At { leaf, slots, position });
                    }
                    ((at, level), aside) = (left.take()?, true);
                }
                Below::Inner(inner) => {
                    let inner = self.inner(inner);
                    level -= 1;
                    (at, left) = inner.children(|slots| {
                        let all = aside && probe.is_behind(&inner.node, slots);
                        let position = if all { slots.count() - 1 } else { probe.child(&inner.node, slots) };
                        let child = |position| inner.child_in(slots.at(position));
                        let beside = position.checked_sub(1).map(|position| (child(position), level));
                        (child(position), beside.or(left))
                    });
                }
            }
        }
    }

    /// The last entry of a leaf.
    fn last_of(&self, leaf: LeafAt) -> At {
        let slots = self.leaf(leaf).slots();
        At { leaf, slots, position: slots.count() - 1 }
    }

    fn entry_at(&self, leaf: &Node<N>, slots: Slots, position: usize) -> Stored<'_> {
        leaf.key(slots.at(position)).entry(&self.arena)
    }

    /// The first entry of a leaf, or the one that is first now if the leaf is dead.
    fn first_of(&self, mut leaf: LeafAt) -> At {
        loop {
            let slots = self.leaf(leaf).slots();
            let first = At { leaf, slots, position: 0 };
            if !slots.is_dead() {
                return first;
            }
            // The tree leads to the leaf in its place.
            let target = Target::of(self.entry(first));
            let probe = self.probe(&target);
            match self.descend(|node, slots| probe.child(node, slots)) {
                Some(replaced) if replaced != leaf => leaf = replaced,
                _ => return first,
            }
        }
    }

    /// The first entry at or after the target in the leaves to the right of `leaf`, the end of the search for it.
    ///
    /// Mostly this is the first entry of the next leaf. But the writer may begin a leaf behind a full one after the search
    /// has passed their parent. Then the target's place may be in the new leaf.
    fn right_of(&self, probe: &Probe<'_, C>, mut leaf: LeafAt) -> Option<At> {
        loop {
            let at = self.first_of(self.leaf(leaf).next()?.0);
            let (node, slots) = (self.leaf(at.leaf), at.slots);
            if probe.compare(node.key(slots.at(0)), 0) != Order::Less {
                return Some(at);
            }
            // Only between two of its keys is a target sure to begin as the leaf's keys do.
            if probe.compare(node.key(slots.at(slots.count() - 1)), 0) != Order::Less {
                return Some(At { position: probe.entry(node, slots).before, ..at });
            }
            leaf = at.leaf;
        }
    }

    /// Prefetches what steps beyond a leaf will read: the entries of the next leaf, and the leaf after that. Entries lie in
    /// the order in which they were written, so each one costs a cache miss.
    #[inline]
    fn prefetch_behind(&self, leaf: LeafAt) {
        let Some((next, _)) = self.leaf(leaf).next() else { return };
        let next = self.leaf(next);
        let slots = next.slots();
        next.prefetch_entries(&self.arena, slots, 0..slots.count());
        if let Some((behind, _)) = next.next() {
            behind.prefetch(&self.arena);
        }
    }

    /// The same entry in its leaf as it is now; `None` if the leaf is dead.
    #[inline]
    fn refreshed(&self, at: At) -> Option<At> {
        let leaf = self.leaf(at.leaf);
        let slots = leaf.slots();
        if slots == at.slots {
            return Some(at);
        }
        let position = slots.position(at.slots.at(at.position))?;
        (!slots.is_dead()).then_some(At { slots, position, ..at })
    }
}

impl<C: KeyOrder + 'static, const N: usize> Index for Tree<C, N> {
    type At = At;

    fn arena(&self) -> &Arena {
        &self.arena
    }

    fn store<'a>(
        &'a self,
        turn: &Turn<'a>,
        _: &mut WriterSlot,
        op: &Op<'_>,
    ) -> Result<Fresh<'a>, MemoryLimit> {
        Fresh::alloc(turn, 0, op)
    }

    fn insert<'a>(&'a self, turn: &Turn<'a>, _: &mut WriterSlot, _: u64, entry: Stored<'a>) {
        self.insert_entry(turn, entry);
    }

    #[inline]
    fn entry(&self, at: At) -> Stored<'_> {
        self.entry_at(self.leaf(at.leaf), at.slots, at.position)
    }

    fn place_of(&self, entry: Stored<'_>) -> At {
        match self.at_or_after(&Target::of(entry)) {
            Some(at) => at,
            None => unreachable!("an entry of another memtable"),
        }
    }

    fn get(&self, target: &Target<'_>) -> Option<Stored<'_>> {
        let probe = self.probe(target);
        let (at, slots, rank) = self.search(&probe)?;
        let leaf = self.leaf(at);
        let entry = if rank.same_word {
            self.entry_at(leaf, slots, rank.before)
        } else {
            // Only a full leaf gets a new one behind it.
            let (_, straddles) = leaf.next().filter(|_| rank.before == slots.count())?;
            if !straddles && slots.count() < N {
                return None;
            }
            self.entry(self.right_of(&probe, at)?)
        };
        (entry.user_key() == target.user_key).then_some(entry)
    }

    fn at_or_after(&self, target: &Target<'_>) -> Option<At> {
        let probe = self.probe(target);
        let (leaf, slots, rank) = self.search(&probe)?;
        if rank.before < slots.count() {
            let behind = rank.before + 1;
            let near = behind..slots.count().min(behind + SEEK_AHEAD);
            self.leaf(leaf).prefetch_entries(&self.arena, slots, near);
            return Some(At { leaf, slots, position: rank.before });
        }
        self.right_of(&probe, leaf)
    }

    fn at_or_before(&self, target: &Target<'_>) -> Option<At> {
        let equal = |at: &At| self.entry(*at).key() == (target.user_key, target.trailer);
        self.at_or_after(target).filter(equal).or_else(|| self.before(target))
    }

    fn first(&self) -> Option<At> {
        let first = self.first_of(self.descend(|_, _| 0)?);
        self.prefetch_behind(first.leaf);
        Some(first)
    }

    fn last(&self) -> Option<At> {
        let (level, root) = self.root()?;
        Some(self.last_of(self.last_leaf(root, level)))
    }

    fn next(&self, at: At) -> Option<At> {
        let at = self.refreshed(at).unwrap_or_else(|| self.place_of(self.entry(at)));
        if at.position + 1 < at.slots.count() {
            return Some(At { position: at.position + 1, ..at });
        }
        let first = self.first_of(self.leaf(at.leaf).next()?.0);
        self.prefetch_behind(first.leaf);
        Some(first)
    }

    fn prev(&self, at: At) -> Option<At> {
        // Refreshed once: the leaf may die at any moment.
        let now =
            self.refreshed(at).and_then(|now| Some(At { position: now.position.checked_sub(1)?, ..now }));
        now.or_else(|| {
            let before = self.before(&Target::of(self.entry(at)))?;
            self.leaf(before.leaf).prefetch_entries(&self.arena, before.slots, 0..before.position);
            Some(before)
        })
    }

    fn rank(&self, user_key: &[u8], all: u64) -> u64 {
        weigh::before(self, &self.probe(&Target { user_key, trailer: Trailer::FIRST }), all)
    }

    fn overhead(&self, all: u64) -> usize {
        let links = usize::try_from(all).unwrap_or(0) * size_of::<u64>();
        self.writer.blocks.bytes().saturating_sub(links)
    }
}
