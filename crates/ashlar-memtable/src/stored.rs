//! Entries in the arena.
//!
//! ```text
//! | what the index puts before it | key len: u32, value len: u32 | user key | trailer: u64 LE | value | padding |
//!                                 ^ the address of an entry
//! ```
//! 1. An entry is written before an index publishes its address by a Release store, and never changes afterwards. Readers
//!    get the address through an Acquire load.
//! 2. Addresses come out of one arena and are resolved in the same one. Prepared entries and hints, which leave a
//!    memtable, carry its number, and the memtable checks it when they return.

use crate::arena::{Address, Arena, Turn, UNIT, unit_of};
use crate::entry::{MemoryLimit, Op};
use ashlar_base::{InternalKey, Trailer};
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::slice;

/// An entry that readers may see.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stored<'a> {
    node: NonNull<u64>,
    address: Address,
    arena: PhantomData<&'a Arena>,
}

impl<'a> Stored<'a> {
    /// The entry at an address that an index of this arena published.
    #[inline]
    pub(crate) fn at(arena: &'a Arena, address: Address) -> Stored<'a> {
        Stored { node: arena.resolve(address), address, arena: PhantomData }
    }

    /// The address.
    #[inline]
    pub(crate) fn address(self) -> Address {
        self.address
    }

    /// The header of the entry. The units that the index put before the entry end here.
    #[inline]
    pub(crate) fn header(self) -> NonNull<u64> {
        self.node
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

/// An entry that only its writer knows. Its trailer holds the difference of its sequence number from the first of its
/// insert, until [`Fresh::number`].
pub(crate) struct Fresh<'a>(Stored<'a>);

impl<'a> Fresh<'a> {
    /// Copies an entry into the arena, with `before` units before its header, which are zero.
    #[inline]
    pub(crate) fn alloc(turn: &Turn<'a>, before: usize, op: &Op<'_>) -> Result<Fresh<'a>, MemoryLimit> {
        let key_len = u32::try_from(op.key.len()).map_err(|_| MemoryLimit)?;
        let value_len = u32::try_from(op.value.len()).map_err(|_| MemoryLimit)?;
        let units = (u64::from(key_len) + u64::from(value_len)).div_ceil(UNIT as u64) + 2;
        let (at, base) = turn.alloc(before as u64 + units)?;
        // `before + units` units were allocated at `base`: these are inside.
        let node = unit_of(base, before);
        for unit in 0..before {
            // SAFETY: bounds, alignment: one of the units before the header. Aliasing: the memory is ours alone until
            // published. Checked by: miri `conformance`.
            unsafe { unit_of(base, unit).as_ptr().write(0) };
        }
        // The header's address stays within 19 bits: few units are before it, and chunks end with bodies.
        let address = at.behind(u32::try_from(before).unwrap_or(0));
        #[cfg(loom)]
        crate::shadow::begins(node, before);
        let trailer = Trailer::from_raw(u64::from(op.seq_delta) << 8 | op.value_type as u64);
        // SAFETY: bounds, alignment: the header unit. Aliasing: ours alone until published. Checked by: miri `conformance`.
        unsafe { node.as_ptr().write(u64::from(key_len) << 32 | u64::from(value_len)) };
        put(node, 0, op.key);
        put(node, op.key.len(), &trailer.raw().to_le_bytes());
        put(node, op.key.len() + UNIT, op.value);
        Ok(Fresh(Stored { node, address, arena: PhantomData }))
    }

    /// The prepared entry at an address. The caller owns the prepared entry: no other thread reads or publishes it.
    #[inline]
    pub(crate) fn at(turn: &Turn<'a>, address: Address) -> Fresh<'a> {
        Fresh(Stored::at(turn.arena(), address))
    }

    /// The address, for [`Fresh::at`].
    pub(crate) fn address(&self) -> Address {
        self.0.address
    }

    /// The header of the entry. The units that the index put before the entry end here.
    pub(crate) fn header(&self) -> NonNull<u64> {
        self.0.node
    }

    /// Adds `first` (a sequence number) to the difference in the trailer: the entry is ready for readers.
    ///
    /// # Panics
    /// When the sequence number has more than 56 bits.
    #[inline]
    pub(crate) fn number(self, first: u64) -> (Stored<'a>, Trailer) {
        let node = self.0.node;
        let (key, _) = lengths(node);
        let delta = Trailer::from_raw(match bytes(node, key, UNIT).first_chunk::<8>() {
            Some(raw) => u64::from_le_bytes(*raw),
            None => 0,
        });
        let seq = first + delta.seq().get();
        assert!(seq < 1 << 56, "out of sequence numbers");
        let trailer = Trailer::from_raw(seq << 8 | u64::from(delta.type_byte()));
        put(node, key, &trailer.raw().to_le_bytes());
        (self.0, trailer)
    }
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
    // Aliasing: nothing writes to the body of a published entry, and `Fresh::number` holds no slice when it writes its
    // own. Lifetime: callers tie 'a to the borrow of the arena. Checked by: miri `conformance`.
    unsafe { slice::from_raw_parts(start.as_ptr(), len) }
}

/// Writes bytes to the body of an entry that is not published yet.
#[inline]
fn put(node: NonNull<u64>, at: usize, from: &[u8]) {
    #[cfg(loom)]
    crate::shadow::writes(node);
    let start = body(node, at);
    // SAFETY: bounds: callers stay within what they allocated behind the header; `from` is outside the arena or elsewhere in
    // it: the target is fresh memory that no other thread can name. Checked by: miri `conformance`.
    unsafe { start.as_ptr().copy_from_nonoverlapping(from.as_ptr(), from.len()) };
}
