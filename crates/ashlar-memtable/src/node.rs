//! Nodes of the skiplist, and the only ways to walk over them. A node is an entry with links before it.
//!
//! ```text
//! | link[height-1] … link[0]: u64 each | the entry: see `stored` |
//! link: the address of the next node, 0 = none
//! ```
//! 1. A node is linked by a Release store of its address, and reached through an Acquire load of it. After that only
//!    its links change.
//! 2. A node of height h has links 0 … h-1, and only links of a level below h ever lead to it. A [`Spot`] therefore
//!    carries its level, and is only made by following a link of that level or by going down.
//! 3. The writer that holds the arena's [`Turn`] changes links; between its load and its store no other thread does.

use crate::arena::{Address, Arena, Turn};
use crate::entry::{MemoryLimit, Op};
use crate::stored::{Fresh, Stored};
use ashlar_base::ValueType;
#[cfg(not(shuttle))]
use ashlar_sync::atomic::AtomicU64;
use ashlar_sync::atomic::Ordering;
use std::ptr::NonNull;
// Shuttle's atomics are not plain words, and there are enough steps around a link without them.
#[cfg(shuttle)]
use std::sync::atomic::AtomicU64;

/// The most links of a node. Half of the nodes of a level are on the next level, so this suits four million entries.
pub(crate) const HEIGHT_MAX: usize = 22;

/// The address of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offset(Address);

/// A node of the list, at one of its levels.
#[derive(Clone, Copy)]
pub(crate) struct Spot<'a> {
    arena: &'a Arena,
    entry: Stored<'a>,
    level: usize,
}

impl<'a> Spot<'a> {
    #[inline]
    fn at(arena: &'a Arena, offset: Offset, level: usize) -> Spot<'a> {
        Spot { arena, entry: Stored::at(arena, offset.0), level }
    }

    /// The head of a list at `level`.
    #[inline]
    pub(crate) fn head(arena: &'a Arena, head: Head, level: usize) -> Spot<'a> {
        assert!(level < HEIGHT_MAX);
        Spot::at(arena, head.0, level)
    }

    /// The spot of an [`Anchor`] of the same arena.
    #[inline]
    pub(crate) fn resume(arena: &'a Arena, anchor: Anchor) -> Spot<'a> {
        Spot::at(arena, anchor.offset, anchor.level)
    }

    /// The same place without a borrow of the arena.
    #[inline]
    pub(crate) fn anchor(self) -> Anchor {
        Anchor { offset: self.offset(), level: self.level }
    }

    #[inline]
    pub(crate) fn offset(self) -> Offset {
        Offset(self.entry.address())
    }

    #[inline]
    pub(crate) fn level(self) -> usize {
        self.level
    }

    /// The node's entry.
    #[inline]
    pub(crate) fn entry(self) -> Stored<'a> {
        self.entry
    }

    /// The same node, one level lower; `None` on the lowest.
    #[inline]
    pub(crate) fn down(self) -> Option<Spot<'a>> {
        Some(Spot { level: self.level.checked_sub(1)?, ..self })
    }

    #[inline]
    fn link_cell(self) -> LinkCell<'a> {
        link_cell(self.entry.header(), self.level)
    }

    /// The address of the next node of this level.
    #[inline]
    pub(crate) fn link(self) -> Option<Offset> {
        // Acquire pairs with the Release in `link_to`: the target's bytes were written before it was linked.
        let word = self.link_cell().load(Ordering::Acquire);
        (word != 0).then_some(Offset(Address((word & 0xffff_ffff) as u32)))
    }

    /// The next node of this level.
    #[inline]
    pub(crate) fn next(self) -> Option<Spot<'a>> {
        Some(Spot::at(self.arena, self.link()?, self.level))
    }

    /// Links a new node behind this node; the new node's own link must be set.
    #[inline]
    pub(crate) fn link_to(self, _: &Turn<'a>, node: &Unlinked<'a>) {
        // Release publishes the new node (see `link`).
        self.link_cell().store(u64::from(node.entry.address().0), Ordering::Release);
    }
}

/// A spot without the borrow. Only valid for the arena it was taken from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Anchor {
    offset: Offset,
    level: usize,
}

impl Anchor {
    /// The anchor of a linked entry on the lowest level.
    pub(crate) fn lowest(entry: Stored<'_>) -> Anchor {
        Anchor { offset: Offset(entry.address()), level: 0 }
    }
}

/// The head of a list: a node of full height with an empty key, before all other nodes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head(Offset);

impl Head {
    pub(crate) fn new(turn: &Turn<'_>) -> Result<Head, MemoryLimit> {
        let nothing = Op { key: &[], value: &[], value_type: ValueType::Put, seq_delta: 0 };
        let head = Fresh::alloc(turn, HEIGHT_MAX, &nothing)?;
        Ok(Head(Offset(head.address())))
    }

    /// Whether a node is this head.
    #[inline]
    pub(crate) fn is(self, offset: Offset) -> bool {
        self.0 == offset
    }
}

/// A node that is not linked on all of its levels yet.
pub(crate) struct Unlinked<'a> {
    entry: Stored<'a>,
    height: usize,
}

impl<'a> Unlinked<'a> {
    /// Copies an entry into a new node. Until the node is linked, its lowest link holds its height.
    pub(crate) fn alloc(turn: &Turn<'a>, height: usize, op: &Op<'_>) -> Result<Fresh<'a>, MemoryLimit> {
        assert!((1..=HEIGHT_MAX).contains(&height));
        let fresh = Fresh::alloc(turn, height, op)?;
        link_cell(fresh.header(), 0).store(height as u64, Ordering::Relaxed);
        Ok(fresh)
    }

    /// The node of an entry that [`Unlinked::alloc`] made and no insert has linked.
    pub(crate) fn of(entry: Stored<'a>) -> Unlinked<'a> {
        let word = link_cell(entry.header(), 0).load(Ordering::Relaxed);
        let height = usize::try_from(word).unwrap_or(0);
        assert!((1..=HEIGHT_MAX).contains(&height), "linked already");
        Unlinked { entry, height }
    }

    pub(crate) fn height(&self) -> usize {
        self.height
    }

    /// Sets the node's link of `level`, before the node is linked there.
    pub(crate) fn set_link(&self, level: usize, next: Option<Offset>) {
        assert!(level < self.height);
        // Relaxed: the Release that links the node on this level publishes it.
        let word = next.map_or(0, |next| u64::from(next.0.0));
        link_cell(self.entry.header(), level).store(word, Ordering::Relaxed);
    }

    /// The node as an anchor on `level`. Valid only once it is linked there.
    pub(crate) fn anchor(&self, level: usize) -> Anchor {
        assert!(level < self.height);
        Anchor { offset: Offset(self.entry.address()), level }
    }
}

/// The cell of a link.
#[cfg(not(loom))]
type LinkCell<'a> = &'a AtomicU64;
#[cfg(loom)]
type LinkCell<'a> = std::sync::Arc<AtomicU64>;

#[cfg(loom)]
fn link_cell<'a>(node: NonNull<u64>, level: usize) -> LinkCell<'a> {
    crate::shadow::link(node, level)
}

#[cfg(not(loom))]
#[inline]
fn link_cell<'a>(node: NonNull<u64>, level: usize) -> LinkCell<'a> {
    // SAFETY: bounds: every caller's level is below the node's height (invariant 2; `Unlinked` asserts), and the links
    // stand right before the header. Checked by: miri `conformance`.
    let cell = unsafe { node.sub(level + 1) };
    // SAFETY: alignment: units are aligned. Initialised: zeroed by `Fresh::alloc`. Aliasing: link units are only ever
    // accessed as atomics once the node left `alloc`. Lifetime: callers tie 'a to the borrow of the arena they
    // resolved the node in. Checked by: miri `conformance`.
    unsafe { AtomicU64::from_ptr(cell.as_ptr()) }
}
