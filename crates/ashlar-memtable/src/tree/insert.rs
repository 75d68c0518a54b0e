//! Inserts: what the one writer does.
//!
//! Each store publishes a tree that is complete for every reader, because what it replaces holds the same entries:
//! 1. A split builds both halves, links them to the leaf before them, adds the right half to the parent, and then
//!    replaces the child by the left half. Last, it marks the old leaf dead.
//! 2. If the new entry comes after all entries of a full leaf and ascends, the leaf stays, and a new leaf begins.
//! 3. The writer's last leaf is the next one's hint: it is checked against the leaf's bounds.

use super::node::{Below, Blocks, Bounds, Child, InnerAt, Key, LeafAt, Node};
use super::read::Tree;
use super::search::Probe;
use super::slots::{SLOTS_MAX, Slots};
use crate::arena::Turn;
use crate::index::Target;
use crate::stored::Stored;
use ashlar_base::ext::comparator::KeyOrder;
use ashlar_sync::atomic::{AtomicU32, Ordering};
use std::cmp::Ordering as Order;

/// The most inner nodes above a leaf. With half-full nodes of 14 slots, eleven levels take all addresses.
const LEVELS_MAX: usize = 16;

/// Inner nodes from the root on.
pub(super) type Steps<'s> = &'s [Option<Step>];

/// An inner node on the way, its bounds, and the position of the child that the way takes.
#[derive(Clone, Copy)]
pub(super) struct Step {
    pub(super) inner: InnerAt,
    pub(super) bounds: Bounds,
    pub(super) child: usize,
}

/// What the writer keeps from insert to insert. Only the holder of the turn uses it, so all of it is Relaxed.
#[derive(Default)]
#[repr(align(128))]
pub(super) struct Writer {
    pub(super) blocks: Blocks,
    /// The last entry that was inserted.
    last: AtomicU32,
    /// Its leaf; zero: unknown.
    leaf: AtomicU32,
    /// The leaf's bounds; zero: none.
    low: AtomicU32,
    high: AtomicU32,
}

impl Writer {
    pub(super) fn remember(&self, leaf: LeafAt, bounds: Bounds) {
        let raw = |key: Option<Key>| key.map_or(0, |key| key.0);
        self.leaf.store(Child::from(leaf).raw(), Ordering::Relaxed);
        self.low.store(raw(bounds.low), Ordering::Relaxed);
        self.high.store(raw(bounds.high), Ordering::Relaxed);
    }

    fn hint(&self) -> Option<(LeafAt, Bounds)> {
        let bound = |at: &AtomicU32| Some(Key(at.load(Ordering::Relaxed))).filter(|key| key.0 != 0);
        let leaf = self.leaf.load(Ordering::Relaxed);
        match Child::from_raw(leaf).below(1) {
            Below::Leaf(at) if leaf != 0 => {
                Some((at, Bounds { low: bound(&self.low), high: bound(&self.high) }))
            }
            _ => None,
        }
    }

    /// Whether an entry of this key was the last insert.
    pub(super) fn is_last(&self, key: Key) -> bool {
        self.last.load(Ordering::Relaxed) == key.0
    }
}

/// A list in place, of as many keys as a node and one more.
pub(super) struct Few<T> {
    items: [T; SLOTS_MAX + 1],
    count: usize,
}

impl<T: Copy> Few<T> {
    pub(super) fn new(filler: T) -> Self {
        Few { items: [filler; SLOTS_MAX + 1], count: 0 }
    }

    pub(super) fn push(&mut self, item: T) {
        if let Some(at) = self.items.get_mut(self.count) {
            *at = item;
            self.count += 1;
        }
    }

    pub(super) fn all(&self) -> &[T] {
        self.items.get(..self.count).unwrap_or(&[])
    }
}

impl<C: KeyOrder + 'static, const N: usize> Tree<C, N> {
    /// Publishes an entry.
    pub(super) fn insert_entry<'a>(&'a self, turn: &Turn<'a>, entry: Stored<'a>) {
        let target = Target::of(entry);
        let probe = self.probe(&target);
        if !self.insert_by_hint(turn, &probe, entry) {
            self.insert_by_search(turn, &probe, entry);
        }
        self.writer.last.store(Key::of(entry).0, Ordering::Relaxed);
    }

    /// Inserts into the leaf of the last insert, if the target belongs there and the leaf has room.
    fn insert_by_hint(&self, turn: &Turn<'_>, probe: &Probe<'_, C>, entry: Stored<'_>) -> bool {
        let Some((at, bounds)) = self.writer.hint() else { return false };
        let leaf = self.leaf(at);
        let slots = leaf.slots();
        slots.count() < N
            && bounds.low.is_none_or(|low| probe.compare(low, 0) != Order::Greater)
            && bounds.high.is_none_or(|high| probe.compare(high, 0) == Order::Greater)
            && self.insert_here(turn, probe, (leaf, slots), entry)
    }

    /// Inserts into a leaf if it has room and skips the right bytes.
    fn insert_here(
        &self,
        turn: &Turn<'_>,
        probe: &Probe<'_, C>,
        (leaf, slots): (&Node<N>, Slots),
        entry: Stored<'_>,
    ) -> bool {
        if slots.count() >= N {
            return false;
        }
        let rank = probe.entry(leaf, slots);
        if rank.fits {
            leaf.fill(turn, &self.order, slots.count(), (Key::of(entry), probe.target.user_key));
            leaf.publish(turn, slots.with(rank.before));
        }
        rank.fits
    }

    fn insert_by_search<'a>(&'a self, turn: &Turn<'a>, probe: &Probe<'_, C>, entry: Stored<'a>) {
        let Some((mut level, mut at)) = self.root() else { return self.begin(turn, entry) };
        let (mut path, mut depth, mut bounds) = ([None; LEVELS_MAX], 0, Bounds::default());
        loop {
            match at.below(level + 1) {
                Below::Leaf(leaf) => {
                    let node = self.leaf(leaf);
                    if self.insert_here(turn, probe, (node, node.slots()), entry) {
                        return self.writer.remember(leaf, bounds);
                    }
                    let steps = path.get(..depth).unwrap_or(&[]);
                    return self.make_room(turn, probe, (leaf, bounds), steps, entry);
                }
                Below::Inner(inner) => {
                    let node = self.inner(inner);
                    let (slots, child, to) = node.child(|slots| probe.child(&node.node, slots));
                    match path.get_mut(depth) {
                        Some(step) => *step = Some(Step { inner, bounds, child }),
                        None => unreachable!("more levels than a tree of all addresses has"),
                    }
                    depth += 1;
                    if child > 0 {
                        bounds.low = Some(node.node.key(slots.at(child)));
                    }
                    if child + 1 < slots.count() {
                        bounds.high = Some(node.node.key(slots.at(child + 1)));
                    }
                    (at, level) = (to, level - 1);
                }
            }
        }
    }

    /// The first leaf.
    fn begin(&self, turn: &Turn<'_>, entry: Stored<'_>) {
        let key = Key::of(entry);
        let leaf = self.new_leaf(turn, Bounds::default(), key, &[key]);
        self.set_root(turn, 0, leaf.into());
        self.writer.remember(leaf, Bounds::default());
    }
}
