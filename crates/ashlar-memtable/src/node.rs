//! Nodes of the skiplist in the arena, and the only ways to walk over them.
//!
//! ```text
//! | link[height-1] … link[0]: u64 each | key len: u32, value len: u32 | user key | trailer: u64 LE | value | padding |
//!                                      ^ the address of a node
//! link: | difference: 32 bits | address of the next node: 32 bits, 0 = none |
//! ```
//! 1. Everything but the links is written before a node is linked and never changes afterwards. A node is linked by a
//!    Release store of its address, and reached through an Acquire load of it.
//! 2. A node of height h has links 0 … h-1, and only links of a level below h ever lead to it. A [`Spot`] therefore
//!    carries its level, and is only made by following a link of that level or by going down.
//! 3. Addresses come out of one arena and are resolved in the same one: a [`SkipList`](crate::skiplist::SkipList)
//!    keeps its own; what leaves it (prepared entries, hints) carries the memtable's id and is checked on return.

use crate::arena::{Address, Arena, UNIT, unit_of};
use crate::difference::Difference;
use crate::entry::{MemoryLimit, Op};
use ashlar_base::{InternalKey, Trailer};
#[cfg(not(shuttle))]
use ashlar_sync::atomic::AtomicU64;
use ashlar_sync::atomic::Ordering;
use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::slice;
// Shuttle's atomics are not plain words, and there are enough steps around a link without them.
#[cfg(shuttle)]
use std::sync::atomic::AtomicU64;

/// The most links of a node. Half of the nodes of a level are on the next level, so this suits four million entries.
pub(crate) const HEIGHT_MAX: usize = 22;

/// The address of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offset(Address);

/// A link's value: the address of its target, and the difference of the target's key from the key of the link's owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Link(u64);

impl Link {
    pub(crate) const NONE: Link = Link(0);

    #[inline]
    pub(crate) fn new(difference: Difference, to: Offset) -> Link {
        Link(u64::from(difference.word()) << 32 | u64::from(to.0.0))
    }

    #[inline]
    pub(crate) fn difference(self) -> Difference {
        Difference::from_word((self.0 >> 32) as u32)
    }

    #[inline]
    pub(crate) fn target(self) -> Option<Offset> {
        let low = (self.0 & 0xffff_ffff) as u32;
        (low != 0).then_some(Offset(Address(low)))
    }
}

/// A node of the list, at one of its levels.
#[derive(Clone, Copy)]
pub(crate) struct Spot<'a> {
    arena: &'a Arena,
    node: NonNull<u64>,
    offset: Offset,
    level: usize,
}

impl<'a> Spot<'a> {
    #[inline]
    fn at(arena: &'a Arena, offset: Offset, level: usize) -> Spot<'a> {
        Spot { arena, node: arena.resolve(offset.0), offset, level }
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
        Anchor { offset: self.offset, level: self.level }
    }

    #[inline]
    pub(crate) fn offset(self) -> Offset {
        self.offset
    }

    /// The same node, one level lower; `None` on the lowest.
    #[inline]
    pub(crate) fn down(self) -> Option<Spot<'a>> {
        Some(Spot { level: self.level.checked_sub(1)?, ..self })
    }

    #[inline]
    fn link_cell(self) -> LinkCell<'a> {
        link_cell(self.node, self.level)
    }

    /// The link to the next node of this level.
    #[inline]
    pub(crate) fn link(self) -> Link {
        // Acquire pairs with the Release in `replace`: the target's bytes were written before it was linked.
        Link(self.link_cell().load(Ordering::Acquire))
    }

    /// The node to which a link of this spot leads.
    #[inline]
    pub(crate) fn follow(self, link: Link) -> Option<Spot<'a>> {
        Some(self.to(link.target()?))
    }

    /// The node at an address that a link of this spot has.
    #[inline]
    pub(crate) fn to(self, target: Offset) -> Spot<'a> {
        Spot::at(self.arena, target, self.level)
    }

    /// The next node of this level.
    #[inline]
    pub(crate) fn next(self) -> Option<Spot<'a>> {
        self.follow(self.link())
    }

    /// Links `fresh` behind this node if the link is still `old`; the fresh node's own link must be set.
    #[inline]
    pub(crate) fn replace(self, old: Link, new: Link) -> bool {
        // Release publishes the fresh node (see `link`); on failure the caller loads again.
        self.link_cell().compare_exchange(old.0, new.0, Ordering::Release, Ordering::Relaxed).is_ok()
    }

    /// The user key.
    #[inline]
    pub(crate) fn user_key(self) -> &'a [u8] {
        let (key, _) = lengths(self.node);
        bytes(self.node, 0, key)
    }

    /// User key, trailer.
    #[inline]
    pub(crate) fn key(self) -> (&'a [u8], Trailer) {
        self.encoded_key().split()
    }

    /// The internal key as stored.
    #[inline]
    pub(crate) fn encoded_key(self) -> InternalKey<'a> {
        let (key, _) = lengths(self.node);
        match InternalKey::decode(bytes(self.node, 0, key + UNIT)) {
            Ok(key) => key,
            Err(_) => unreachable!("eight bytes at least"),
        }
    }

    /// The value as stored.
    #[inline]
    pub(crate) fn value(self) -> &'a [u8] {
        let (key, value) = lengths(self.node);
        bytes(self.node, key + UNIT, value)
    }
}

impl fmt::Debug for Spot<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.anchor().fmt(f)
    }
}

/// A spot without the borrow. Only valid for the arena it was taken from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Anchor {
    offset: Offset,
    level: usize,
}

/// The head of a list: a node of full height with an empty key, before all other nodes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head(Offset);

impl Head {
    pub(crate) fn new(arena: &Arena) -> Result<Head, MemoryLimit> {
        let nothing = Op { key: &[], value: &[], value_type: ashlar_base::ValueType::Put, seq_delta: 0 };
        let head = Fresh::alloc(arena, HEIGHT_MAX, &nothing)?;
        head.set_link(0, Link::NONE);
        Ok(Head(head.offset))
    }

    /// Whether a node is this head.
    #[inline]
    pub(crate) fn is(self, offset: Offset) -> bool {
        self.0 == offset
    }
}

/// A node that only its writer knows: allocated and filled, but not linked. Prepared nodes form a chain: until a node
/// is linked, its lowest link holds its height and the next node of the chain.
pub(crate) struct Fresh<'a> {
    arena: PhantomData<&'a Arena>,
    node: NonNull<u64>,
    offset: Offset,
    height: usize,
    chained: Option<Offset>,
}

impl<'a> Fresh<'a> {
    /// Copies an entry into a new node. Its trailer holds the sequence delta until [`Fresh::number`].
    pub(crate) fn alloc(arena: &'a Arena, height: usize, op: &Op<'_>) -> Result<Fresh<'a>, MemoryLimit> {
        assert!((1..=HEIGHT_MAX).contains(&height));
        let key_len = u32::try_from(op.key.len()).map_err(|_| MemoryLimit)?;
        let value_len = u32::try_from(op.value.len()).map_err(|_| MemoryLimit)?;
        let body = (u64::from(key_len) + u64::from(value_len)).div_ceil(UNIT as u64) + 2;
        let (at, base) = arena.alloc(height as u64 + body)?;
        // `height + body` units were allocated at `base`: these are inside.
        let node = unit_of(base, height);
        // The header's address stays within 19 bits: heights are small, and chunks end with bodies.
        let offset = Offset(at.behind(u32::try_from(height).unwrap_or(0)));
        for level in 0..height {
            let link = unit_of(base, level);
            // SAFETY: bounds, alignment: one of the units before the header. Aliasing: the memory is ours alone until
            // linked. Checked by: miri `conformance`.
            unsafe { link.as_ptr().write(0) };
        }
        #[cfg(loom)]
        crate::shadow::begins(node, height);
        let trailer = Trailer::from_raw(u64::from(op.seq_delta) << 8 | op.value_type as u64);
        // SAFETY: bounds, alignment: the header unit. Aliasing: ours alone until linked. Checked by: miri `conformance`.
        unsafe { node.as_ptr().write(u64::from(key_len) << 32 | u64::from(value_len)) };
        put(node, 0, op.key);
        put(node, op.key.len(), &trailer.raw().to_le_bytes());
        put(node, op.key.len() + UNIT, op.value);
        Ok(Fresh { arena: PhantomData, node, offset, height, chained: None })
    }

    /// Appends `next` to the chain of prepared nodes.
    pub(crate) fn chain(&self, next: Option<Offset>) {
        let next = next.map_or(0, |o| o.0.0);
        let word = (self.height as u64) << 32 | u64::from(next);
        link_cell(self.node, 0).store(word, Ordering::Relaxed);
    }

    /// The node at `offset` of a chain. The caller owns the chain: no other thread reads or links the node.
    pub(crate) fn unchain(arena: &'a Arena, offset: Offset) -> Fresh<'a> {
        let node = arena.resolve(offset.0);
        let word = link_cell(node, 0).load(Ordering::Relaxed);
        let next = Link(word).target();
        Fresh { arena: PhantomData, node, offset, height: (word >> 32) as usize, chained: next }
    }

    /// The node that follows in the chain.
    pub(crate) fn chained(&self) -> Option<Offset> {
        self.chained
    }

    /// Adds `first` (a sequence number) to the delta in the trailer. Once per node.
    pub(crate) fn number(&mut self, first: u64) -> Trailer {
        let (key, _) = lengths(self.node);
        let delta = Trailer::from_raw(match bytes(self.node, key, UNIT).first_chunk::<8>() {
            Some(raw) => u64::from_le_bytes(*raw),
            None => 0,
        });
        let seq = first + delta.seq().get();
        assert!(seq < 1 << 56, "out of sequence numbers");
        let trailer = Trailer::from_raw(seq << 8 | u64::from(delta.type_byte()));
        put(self.node, key, &trailer.raw().to_le_bytes());
        trailer
    }

    pub(crate) fn user_key(&self) -> &'a [u8] {
        let (key, _) = lengths(self.node);
        bytes(self.node, 0, key)
    }

    pub(crate) fn height(&self) -> usize {
        self.height
    }

    pub(crate) fn offset(&self) -> Offset {
        self.offset
    }

    /// Sets the node's link of `level`, before the node is linked there.
    pub(crate) fn set_link(&self, level: usize, link: Link) {
        assert!(level < self.height);
        // Relaxed: the Release that links the node on this level publishes it.
        link_cell(self.node, level).store(link.0, Ordering::Relaxed);
    }

    /// The node as an anchor on `level`. Valid only once it is linked there.
    pub(crate) fn anchor(&self, level: usize) -> Anchor {
        assert!(level < self.height);
        Anchor { offset: self.offset, level }
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
    // SAFETY: bounds: every caller's level is below the node's height (invariant 2; `Fresh` asserts), and the links
    // stand right before the header. Checked by: miri `conformance`.
    let cell = unsafe { node.sub(level + 1) };
    // SAFETY: alignment: units are aligned. Initialised: zeroed by `Fresh::alloc`. Aliasing: link units are only ever
    // accessed as atomics once the node left `alloc`. Lifetime: callers tie 'a to the borrow of the arena they
    // resolved the node in. Checked by: miri `conformance`.
    unsafe { AtomicU64::from_ptr(cell.as_ptr()) }
}

/// Key and value length.
#[inline]
fn lengths(node: NonNull<u64>) -> (usize, usize) {
    #[cfg(loom)]
    crate::shadow::reads(node);
    // SAFETY: initialised by `Fresh::alloc`, never written again; the address was received through an Acquire (or is
    // our own). Checked by: miri `conformance`.
    let word = unsafe { node.as_ptr().read() };
    ((word >> 32) as usize, (word & 0xffff_ffff) as usize)
}

/// The pointer `at` bytes after the header.
#[inline]
fn body(node: NonNull<u64>, at: usize) -> NonNull<u8> {
    // SAFETY: bounds: at most key length + 8 + value length, which were allocated behind the header (or one past).
    // Checked by: miri `conformance`.
    unsafe { node.cast::<u8>().add(UNIT + at) }
}

/// `len` bytes of the body, `at` bytes behind the header.
#[inline]
fn bytes<'a>(node: NonNull<u64>, at: usize, len: usize) -> &'a [u8] {
    let start = body(node, at);
    // SAFETY: bounds: callers stay within key length + 8 + value length. Initialised: `Fresh::alloc` filled all of it.
    // Aliasing: nothing writes to the body of a linked node, and `Fresh::number` holds no slice when it writes its own.
    // Lifetime: callers tie 'a to the borrow of the arena. Checked by: miri `conformance`.
    unsafe { slice::from_raw_parts(start.as_ptr(), len) }
}

/// Writes bytes to the body of a node that is not linked yet.
#[inline]
fn put(node: NonNull<u64>, at: usize, from: &[u8]) {
    #[cfg(loom)]
    crate::shadow::writes(node);
    let start = body(node, at);
    // SAFETY: bounds: callers stay within what they allocated behind the header; `from` is outside the arena or elsewhere in
    // it: the target is fresh memory that no other thread can name. Checked by: miri `conformance`.
    unsafe { start.as_ptr().copy_from_nonoverlapping(from.as_ptr(), from.len()) };
}
