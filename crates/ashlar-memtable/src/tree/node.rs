//! Nodes of the tree in the arena.
//!
//! ```text
//! leaf:  | slots: u64 | skip: u32 | next: u32 | words: 14 × u32 | entries: 14 × u32 |          128 bytes
//! inner: | a leaf's fields                                      | children: 14 × u32 |         184 bytes
//! entry: | whole: 1 bit | address: 31 bits |
//! ```
//! 1. The entries and words of a node's slots are written once, before `slots` has them; see [`Slots`].
//! 2. `skip` is the number of bytes with which all keys of the node begin; a word is the four bytes after them. If the
//!    top bit of `skip` is set, the node is at an edge of the tree, and keys outside may reach it. The entry of slot 0
//!    tells the skipped bytes then.
//! 3. `next` of a leaf is the leaf to the right. Its top bit tells that one user key has versions on both sides.
//! 4. A separator of an inner node is the first entry of the child to its right. With the bit `whole`, it stands before
//!    all versions of its user key.
//! 5. Only the holder of the turn stores. Everything but `slots`, `next` and `children` is written before it is
//!    published.

use super::slots::{SLOTS_MAX, Slots};
use crate::arena::{Address, Arena, Turn};
use crate::stored::Stored;
use ashlar_base::ext::comparator::KeyOrder;
use std::ops::Range;
use std::ptr::NonNull;
// Shuttle's atomics are not plain words, and there are enough steps around a node without them.
#[cfg(not(shuttle))]
use ashlar_sync::atomic::{AtomicU32, AtomicU64, Ordering};
#[cfg(shuttle)]
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The top bit of an entry: before all versions of the user key. Of `skip`: at an edge. Of `next`: one key on both
/// sides.
pub(super) const FLAG: u32 = 1 << 31;

/// What leaves and inner nodes have.
#[repr(C)]
pub(super) struct Node<const N: usize> {
    slots: AtomicU64,
    skip: u32,
    next: AtomicU32,
    words: [AtomicU32; N],
    entries: [AtomicU32; N],
}

/// A node with children. The separator at position 0 is the node's lower bound, and no search compares it.
#[repr(C)]
pub(super) struct Inner<const N: usize> {
    pub(super) node: Node<N>,
    children: [AtomicU32; N],
}

/// An entry, and whether it stands before all versions of its user key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key(pub(super) u32);

impl Key {
    pub(super) fn of(entry: Stored<'_>) -> Key {
        Key(entry.address().0)
    }

    pub(super) fn whole(self) -> Key {
        Key(self.0 | FLAG)
    }

    #[inline]
    pub(super) fn is_whole(self) -> bool {
        self.0 & FLAG != 0
    }

    #[inline]
    pub(super) fn entry(self, arena: &Arena) -> Stored<'_> {
        Stored::at(arena, Address(self.0 & !FLAG))
    }
}

/// The bounds of the keys that belong to a node: from `low` up to `high`, not included.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bounds {
    pub(super) low: Option<Key>,
    pub(super) high: Option<Key>,
}

/// How the words of a new node are cut: `skip` of the node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Skip(u32);

impl Skip {
    /// For a node between two bounds: what they have in common. At an edge: what `like` has in common.
    pub(super) fn new(arena: &Arena, bounds: Bounds, like: (Key, Key)) -> Skip {
        let shared = |a: Key, b: Key| common(a.entry(arena).user_key(), b.entry(arena).user_key());
        match bounds {
            Bounds { low: Some(low), high: Some(high) } => Skip(shared(low, high)),
            _ => Skip(shared(like.0, like.1) | FLAG),
        }
    }
}

/// The number of bytes with which both keys begin.
fn common(a: &[u8], b: &[u8]) -> u32 {
    let bytes = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    u32::try_from(bytes).unwrap_or(u32::MAX) & !FLAG
}

impl<const N: usize> Node<N> {
    /// A node that holds `keys`, in order.
    pub(super) fn new<C: KeyOrder>(order: &C, arena: &Arena, skip: Skip, keys: &[Key]) -> Self {
        const { assert!(N <= SLOTS_MAX) };
        let bytes = (skip.0 & !FLAG) as usize;
        let word =
            |at| keys.get(at).map_or(0, |key: &Key| first_word(order, key.entry(arena).user_key(), bytes));
        Node {
            slots: AtomicU64::new(Slots::ascending(keys.len()).word()),
            skip: skip.0,
            next: AtomicU32::new(0),
            words: std::array::from_fn(|at| AtomicU32::new(word(at))),
            entries: std::array::from_fn(|at| AtomicU32::new(keys.get(at).map_or(0, |key| key.0))),
        }
    }

    #[inline]
    pub(super) fn slots(&self) -> Slots {
        // Acquire pairs with the Release of `publish`: the slots in it are written.
        Slots::of(self.slots.load(Ordering::Acquire))
    }

    /// Whether the node still has these slots, after an Acquire of what the writer stored after changing them.
    #[inline]
    fn has_still(&self, slots: Slots) -> bool {
        self.slots.load(Ordering::Relaxed) == slots.word()
    }

    /// The bytes that all keys of the node have in common.
    #[inline]
    pub(super) fn skip(&self) -> usize {
        (self.skip & !FLAG) as usize
    }

    /// Whether keys that begin with other bytes may reach the node.
    #[inline]
    pub(super) fn is_edge(&self) -> bool {
        self.skip & FLAG != 0
    }

    #[inline]
    pub(super) fn word(&self, slot: usize) -> u32 {
        self.words.get(slot).map_or(0, |word| word.load(Ordering::Relaxed))
    }

    #[inline]
    pub(super) fn key(&self, slot: usize) -> Key {
        Key(self.entries.get(slot).map_or(0, |entry| entry.load(Ordering::Relaxed)))
    }

    /// Prefetches the entries at some positions, as far as their first lines hold them.
    #[inline]
    pub(super) fn prefetch_entries(&self, arena: &Arena, slots: Slots, positions: Range<usize>) {
        for position in positions {
            arena.prefetch(Address(self.key(slots.at(position)).0 & !FLAG), ENTRY_LINES);
        }
    }

    /// The keys in order.
    pub(super) fn keys(&self, slots: Slots) -> impl Iterator<Item = Key> {
        (0..slots.count()).map(move |at| self.key(slots.at(at)))
    }

    /// Loads from the second cache line, so that it comes together with the first.
    #[inline]
    fn touch(&self) {
        self.key(N - 1);
    }

    /// Fills the next unused slot. Readers do not see it before [`Node::publish`].
    #[inline]
    pub(super) fn fill<C: KeyOrder>(
        &self,
        _: &Turn<'_>,
        order: &C,
        slot: usize,
        (key, user_key): (Key, &[u8]),
    ) {
        if let (Some(word), Some(entry)) = (self.words.get(slot), self.entries.get(slot)) {
            word.store(first_word(order, user_key, self.skip()), Ordering::Relaxed);
            entry.store(key.0, Ordering::Relaxed);
        }
    }

    #[inline]
    pub(super) fn publish(&self, _: &Turn<'_>, slots: Slots) {
        // Release publishes the slots; see `slots`.
        self.slots.store(slots.word(), Ordering::Release);
    }

    /// The leaf to the right, and whether one user key has versions on both sides.
    #[inline]
    pub(super) fn next(&self) -> Option<(LeafAt, bool)> {
        // Acquire pairs with the Release of `set_next`: the leaf is complete.
        let next = self.next.load(Ordering::Acquire);
        (next != 0).then_some((LeafAt(Address(next & !FLAG)), next & FLAG != 0))
    }

    pub(super) fn set_next(&self, _: &Turn<'_>, next: Option<(LeafAt, bool)>) {
        let word = next.map_or(0, |(at, straddles)| at.0.0 | if straddles { FLAG } else { 0 });
        self.next.store(word, Ordering::Release);
    }
}

impl<const N: usize> Inner<N> {
    /// A node with these separators and children, in order.
    pub(super) fn new<C: KeyOrder>(
        order: &C,
        arena: &Arena,
        skip: Skip,
        keys: &[Key],
        children: &[Child],
    ) -> Self {
        Inner {
            node: Node::new(order, arena, skip, keys),
            children: std::array::from_fn(|at| AtomicU32::new(children.get(at).map_or(0, |child| child.0.0))),
        }
    }

    /// The child at the position that `choose` finds among the slots.
    #[inline]
    pub(super) fn child(&self, choose: impl Fn(Slots) -> usize) -> (Slots, usize, Child) {
        self.children(|slots| {
            let position = choose(slots);
            (slots, position, self.child_in(slots.at(position)))
        })
    }

    /// What `read` finds among the slots and the children in them. It may be called several times.
    #[inline]
    pub(super) fn children<T>(&self, read: impl Fn(Slots) -> T) -> T {
        loop {
            let slots = self.node.slots();
            let found = read(slots);
            // The writer first adds the right half of a split child, and then replaces the child by its left half. A
            // reader that has the left half must also know of the right one.
            if self.node.has_still(slots) {
                return found;
            }
        }
    }

    #[inline]
    pub(super) fn child_in(&self, slot: usize) -> Child {
        // Acquire pairs with the Release of `set_child`, or with that of `publish` for a child that was never replaced.
        Child(Address(self.children.get(slot).map_or(0, |child| child.load(Ordering::Acquire))))
    }

    pub(super) fn set_child(&self, _: &Turn<'_>, slot: usize, child: Child) {
        if let Some(cell) = self.children.get(slot) {
            cell.store(child.0.0, Ordering::Release);
        }
    }

    #[inline]
    fn touch(&self) {
        self.node.touch();
        self.child_in(N - 1);
    }
}

/// The address of a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LeafAt(Address);

/// The address of an inner node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InnerAt(Address);

/// The address of a node of the level below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Child(Address);

impl Child {
    pub(super) fn raw(self) -> u32 {
        self.0.0
    }

    /// The child that [`Child::raw`] gave.
    pub(super) fn from_raw(raw: u32) -> Child {
        Child(Address(raw))
    }

    /// The child as what it is: children of the lowest inner nodes (level 1) are leaves.
    #[inline]
    pub(super) fn below(self, level: u32) -> Below {
        match level {
            1 => Below::Leaf(LeafAt(self.0)),
            _ => Below::Inner(InnerAt(self.0)),
        }
    }
}

/// A node of the level below.
#[derive(Clone, Copy)]
pub(super) enum Below {
    Leaf(LeafAt),
    Inner(InnerAt),
}

impl From<LeafAt> for Child {
    fn from(leaf: LeafAt) -> Child {
        Child(leaf.0)
    }
}

impl From<InnerAt> for Child {
    fn from(inner: InnerAt) -> Child {
        Child(inner.0)
    }
}

impl LeafAt {
    /// Prefetches the leaf.
    #[inline]
    pub(super) fn prefetch(self, arena: &Arena) {
        arena.prefetch(self.0, 2);
    }

    #[inline]
    pub(super) fn in_arena<const N: usize>(self, arena: &Arena) -> &Node<N> {
        let leaf: &Node<N> = node(arena, self.0);
        leaf.touch();
        leaf
    }
}

impl InnerAt {
    #[inline]
    pub(super) fn in_arena<const N: usize>(self, arena: &Arena) -> &Inner<N> {
        let inner: &Inner<N> = node(arena, self.0);
        inner.touch();
        inner
    }
}

/// The node that was written at an address.
#[inline]
fn node<T>(arena: &Arena, at: Address) -> &T {
    // SAFETY: initialised: `place` made the address and wrote a `T` there; a `LeafAt` is only made of a leaf's address,
    // an `InnerAt` of an inner node's (levels count down to the leaves), and both stay in the tree of this arena. The
    // reader got the address through an Acquire. Alignment: units have eight bytes, and `place` checks. Aliasing: after
    // `place`, all access is by shared references; what changes is atomic. Lifetime: that of the arena.
    // Checked by: miri `conformance`.
    unsafe { arena.resolve(at).cast::<T>().as_ref() }
}

/// Memory for nodes, a block of several at a time. Nodes that lie together need fewer pages than nodes among entries.
#[derive(Default)]
pub(super) struct Blocks {
    /// The first unused unit of the block.
    at: AtomicU32,
    /// The number of unused units in it.
    left: AtomicU32,
    /// The units of all blocks.
    units: AtomicU32,
}

impl Blocks {
    /// The bytes of all blocks.
    pub(super) fn bytes(&self) -> usize {
        self.units.load(Ordering::Relaxed) as usize * crate::arena::UNIT
    }

    pub(super) fn leaf<const N: usize>(&self, turn: &Turn<'_>, leaf: Node<N>) -> LeafAt {
        LeafAt(self.place(turn, leaf))
    }

    pub(super) fn inner<const N: usize>(&self, turn: &Turn<'_>, inner: Inner<N>) -> InnerAt {
        InnerAt(self.place(turn, inner))
    }

    /// Writes a node.
    fn place<T>(&self, turn: &Turn<'_>, new: T) -> Address {
        const { assert!(align_of::<T>() <= align_of::<u64>()) };
        let units = u32::try_from(size_of::<T>().div_ceil(LINE) * LINE).unwrap_or(u32::MAX) / UNIT;
        let (at, to) = self.take(turn, units);
        // SAFETY: bounds: `take` gave as many bytes. Alignment: asserted. Aliasing: the memory is ours alone until its
        // address is stored in the tree. The node is never dropped and owns nothing. Checked by: miri `conformance`.
        unsafe { to.cast::<T>().as_ptr().write(new) };
        at
    }

    fn take(&self, turn: &Turn<'_>, units: u32) -> (Address, NonNull<u64>) {
        if self.left.load(Ordering::Relaxed) < units {
            self.more(turn, units);
        }
        // Relaxed: only the holder of the turn is here.
        let at = Address(self.at.load(Ordering::Relaxed));
        self.at.store(at.0 + units, Ordering::Relaxed);
        self.left.store(self.left.load(Ordering::Relaxed) - units, Ordering::Relaxed);
        (at, turn.arena().resolve(at))
    }

    /// Begins a block of an eighth of all blocks; blocks of several nodes begin with a cache line.
    #[cold]
    fn more(&self, turn: &Turn<'_>, units: u32) {
        let before = self.units.load(Ordering::Relaxed);
        let line = LINE_UNITS;
        let block = (before / 8).clamp(units, BLOCK_UNITS) / line * line;
        let align = if block > units { line } else { 0 };
        let (at, pointer) = turn.alloc_node(u64::from(block + align));
        // Less than a line.
        let off = u32::try_from(pointer.addr().get() % LINE).unwrap_or(0) / UNIT;
        let skipped = if align > 0 { (line - off) % line } else { 0 };
        self.at.store(at.behind(skipped).0, Ordering::Relaxed);
        self.left.store(block, Ordering::Relaxed);
        self.units.store(before + block + align, Ordering::Relaxed);
    }
}

/// The cache lines of an entry that are prefetched: key and value of usual lengths.
const ENTRY_LINES: usize = 3;
const UNIT: u32 = 8;
/// A cache line in bytes.
const LINE: usize = 64;
const LINE_UNITS: u32 = 8;
/// The largest block: 32 KiB.
const BLOCK_UNITS: u32 = 1 << 12;

/// The first four bytes of a key after `skip`, as a number that orders keys.
#[inline]
pub(super) fn first_word<C: KeyOrder>(order: &C, user_key: &[u8], skip: usize) -> u32 {
    (order.word(user_key, skip) >> 32) as u32
}
