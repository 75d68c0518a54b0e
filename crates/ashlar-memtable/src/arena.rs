//! The arena: it allocates memory for entries, and frees all of it at once with the memtable.
//!
//! Memory comes in chunks of 8-byte units. An address has 31 bits: the chunk, and the unit in it.
//! ```text
//! | 0 | chunk: 12 bits | unit: 19 bits |      4096 chunks of at most 4 MiB = 16 GiB
//! ```
//! 1. Unit 0 of a chunk holds its length in units and whether it is a mapping, so no returned address is zero.
//! 2. A chunk's pointer is stored before an address in the chunk is returned, and never changes.
//! 3. `tail` holds the current chunk and its fill level. One thread at a time writes to a memtable: it holds the
//!    [`Turn`], and only a `Turn` allocates. Taking the turn is one locked operation, an allocation has none.
//! 4. The first chunk has 1 KiB, the next ones 32 KiB and, as the arena grows, up to 4 MiB. The arena itself holds the
//!    pointers of the first chunks only, and allocates the list of the others when needed. So an empty memtable takes
//!    little more than 1 KiB, and a database may have thousands. An allocation larger than 1 MiB gets a chunk of its
//!    own size, because only its start needs an address.
//! 5. Chunks of 32 KiB and more are separate mappings, so their memory returns to the system with the memtable. On the heap, chunks of
//!    forty different lengths would leave holes. And the thread that leads allocates a chunk, while the flush frees it: an allocator with
//!    a heap for each thread keeps such memory for the first thread. Where the system gives no mapping, a chunk is on the heap.
//! 6. Entries leave an eighth of the chunks to nodes, because an insert of prepared entries must find room for its nodes.
//! 7. The arena requests no huge pages. In a measurement they saved 3 % of a random insert, and cost stalls of
//!    milliseconds when the kernel had to make them.

use crate::entry::MemoryLimit;
use ashlar_base::memory::MemoryCharge;
use ashlar_sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use ashlar_sync::{Mutex, Rank};
use memmap2::{MmapMut, MmapRaw};
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::cell::Cell;
use std::marker::PhantomData;
use std::ptr::{NonNull, null_mut};
use std::sync::OnceLock;

/// Size and alignment of everything in the arena.
pub(crate) const UNIT: usize = 8;
const UNIT_BITS: u32 = 19;
/// Under loom as few and as small as a growing arena needs. Under shuttle few, because dropping an arena visits each.
const CHUNKS: usize = match (cfg!(loom), cfg!(shuttle)) {
    (true, _) => 8,
    (_, true) => 12,
    _ => 4096,
};
/// The chunks that no entry begins.
const NODE_CHUNKS: usize = CHUNKS / 8;
/// The number of chunks whose pointers are in the arena itself.
const NEAR_CHUNKS: usize = match (cfg!(loom), cfg!(shuttle)) {
    (true, _) => 2,
    (_, true) => 4,
    _ => 8,
};
const FIRST_CHUNK_UNITS: u64 = if cfg!(loom) { 32 } else { 1 << 7 };
const CHUNK_UNITS_MIN: u64 = if cfg!(loom) { 256 } else { 1 << 12 };
const CHUNK_UNITS_MAX: u64 = 1 << UNIT_BITS;
const UNIT_MASK: usize = (1 << UNIT_BITS) - 1;
/// Above this an allocation gets its own chunk.
const OWN_CHUNK_UNITS: u64 = CHUNK_UNITS_MAX / 4;
/// From this size on a chunk is a mapping of whole pages.
const MAPPED_UNITS: u64 = 1 << 12;
/// The bit of unit 0 that a mapped chunk has.
const IS_MAPPED: u64 = 1 << 63;
const PAGE_UNITS: u64 = 1 << 9;

/// The current chunk and its fill level, packed in one word.
#[derive(Clone, Copy)]
struct Tail {
    chunk: u32,
    used: u64,
    capacity: u64,
}

impl Tail {
    const BITS: u32 = 24;
    const MASK: u64 = (1 << Self::BITS) - 1;

    fn unpack(word: u64) -> Tail {
        let chunk = (word >> (2 * Self::BITS)) & 0xffff;
        Tail {
            chunk: (chunk & 0xffff) as u32,
            used: word & Self::MASK,
            capacity: (word >> Self::BITS) & Self::MASK,
        }
    }

    fn pack(self) -> u64 {
        u64::from(self.chunk) << (2 * Self::BITS) | self.capacity << Self::BITS | self.used
    }
}

/// Chunked memory for one memtable.
pub(crate) struct Arena {
    /// The pointers of the first chunks.
    near: [AtomicPtr<u64>; NEAR_CHUNKS],
    /// The pointers of the other chunks, once there is one.
    far: OnceLock<Box<[AtomicPtr<u64>]>>,
    tail: AtomicU64,
    next_chunk: AtomicU32,
    /// A thread has the turn.
    taken: AtomicBool,
    retired_bytes: AtomicUsize,
    /// The mapped chunks.
    maps: Mutex<Vec<MmapRaw>>,
    /// The memory of all chunks.
    charge: MemoryCharge,
}

/// The address of a unit, small enough for a link. Only [`Turn::alloc`] makes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Address(pub(super) u32);

impl Address {
    /// The address of a later unit of the same allocation. Only the first units of an allocation have an address.
    pub(crate) fn behind(self, units: u32) -> Address {
        Address(self.0 + units)
    }
}

impl Arena {
    /// An arena without chunks. Later chunks are charged to `charge`.
    pub(crate) fn new(charge: MemoryCharge) -> Arena {
        Arena {
            near: std::array::from_fn(|_| AtomicPtr::new(null_mut())),
            far: OnceLock::new(),
            tail: AtomicU64::new(0),
            next_chunk: AtomicU32::new(0),
            taken: AtomicBool::new(false),
            retired_bytes: AtomicUsize::new(0),
            maps: Mutex::new(Rank::Inner, Vec::new()),
            charge,
        }
    }

    /// The allocated bytes, with the unusable ends of full chunks.
    pub(crate) fn used_bytes(&self) -> usize {
        let tail = Tail::unpack(self.tail.load(Ordering::Relaxed));
        self.retired_bytes.load(Ordering::Relaxed) + to_usize(tail.used) * UNIT
    }

    /// The bytes of all chunks.
    pub(crate) fn held_bytes(&self) -> usize {
        let tail = Tail::unpack(self.tail.load(Ordering::Relaxed));
        self.retired_bytes.load(Ordering::Relaxed) + to_usize(tail.capacity) * UNIT
    }

    /// A number that differs between any two allocations: seeds the heights of nodes.
    pub(crate) fn position(&self) -> u64 {
        self.tail.load(Ordering::Relaxed)
    }

    /// The turn to write.
    ///
    /// # Panics
    /// When another thread has it.
    pub(crate) fn turn(&self) -> Turn<'_> {
        // Acquire pairs with the Release of the drop: this thread sees all that the last writer did.
        assert!(!self.taken.swap(true, Ordering::Acquire), "two threads write to one memtable at a time");
        Turn { arena: self, one_thread: PhantomData }
    }

    /// Counts a chunk that takes no more.
    fn retire(&self, units: u64) {
        let bytes = self.retired_bytes.load(Ordering::Relaxed) + to_usize(units) * UNIT;
        self.retired_bytes.store(bytes, Ordering::Relaxed);
    }

    /// The place of a chunk's pointer. `None` for a chunk after the first ones while there is no list.
    #[inline]
    fn slot(&self, chunk: u32) -> Option<&AtomicPtr<u64>> {
        let chunk = chunk as usize;
        match self.near.get(chunk) {
            Some(slot) => Some(slot),
            None => self.far.get()?.get(chunk - NEAR_CHUNKS),
        }
    }

    /// The same; creates the list if it does not exist.
    fn slot_or_list(&self, chunk: u32) -> Result<&AtomicPtr<u64>, MemoryLimit> {
        if chunk as usize >= NEAR_CHUNKS && self.far.get().is_none() {
            let mut list = Vec::new();
            list.try_reserve_exact(CHUNKS - NEAR_CHUNKS).map_err(|_| MemoryLimit)?;
            list.extend((NEAR_CHUNKS..CHUNKS).map(|_| AtomicPtr::new(null_mut())));
            let _ = self.far.set(list.into_boxed_slice());
        }
        self.slot(chunk).ok_or(MemoryLimit)
    }

    /// Maps whole pages. They do not move while the mapping is in `maps`.
    fn map(&self, bytes: usize) -> Result<NonNull<u64>, MemoryLimit> {
        #[cfg(test)]
        if tests::NO_MAPPINGS.get() {
            return Err(MemoryLimit);
        }
        let map = MmapRaw::from(MmapMut::map_anon(bytes).map_err(|_| MemoryLimit)?);
        let base = NonNull::new(map.as_mut_ptr().cast::<u64>()).ok_or(MemoryLimit)?;
        self.maps.lock().push(map);
        Ok(base)
    }

    /// Prefetches `lines` cache lines from an address on.
    #[inline]
    pub(crate) fn prefetch(&self, at: Address, lines: usize) {
        ashlar_kernels::prefetch(self.resolve(at).as_ptr().cast(), lines);
    }

    /// The pointer of an address, valid up to the end of its allocation.
    #[inline]
    pub(crate) fn resolve(&self, at: Address) -> NonNull<u64> {
        // Relaxed: a thread that holds an address got it through an Acquire that follows the store of the pointer.
        let base = match self.slot(at.0 >> UNIT_BITS) {
            Some(slot) => slot.load(Ordering::Relaxed),
            None => null_mut(),
        };
        match NonNull::new(base) {
            Some(base) => unit_of(base, at.0 as usize & UNIT_MASK),
            None => unreachable_address(),
        }
    }
}

/// The right to write to a memtable, which one thread at a time has.
pub(crate) struct Turn<'a> {
    arena: &'a Arena,
    /// Not `Sync`.
    one_thread: PhantomData<Cell<()>>,
}

impl<'a> Turn<'a> {
    /// The arena.
    #[inline]
    pub(crate) fn arena(&self) -> &'a Arena {
        self.arena
    }

    /// Allocates `units` (at least one) adjoining units for an entry. They are uninitialised and belong to the caller,
    /// which may write through the pointer as long as the arena lives.
    #[inline]
    pub(crate) fn alloc(&self, units: u64) -> Result<(Address, NonNull<u64>), MemoryLimit> {
        self.alloc_among(units, CHUNKS - NODE_CHUNKS)
    }

    /// [`Turn::alloc`] for a node, which an insert cannot do without.
    pub(crate) fn alloc_node(&self, units: u64) -> (Address, NonNull<u64>) {
        match self.alloc_among(units, CHUNKS) {
            Ok(node) => node,
            // A small allocation: with so little memory left the process cannot go on.
            Err(MemoryLimit) => handle_alloc_error(Layout::new::<[u64; 64]>()),
        }
    }

    #[inline]
    fn alloc_among(&self, units: u64, chunks: usize) -> Result<(Address, NonNull<u64>), MemoryLimit> {
        debug_assert!(units > 0);
        if units > OWN_CHUNK_UNITS {
            let capacity = whole_pages(units.checked_add(PAGE_UNITS).ok_or(MemoryLimit)?);
            let (chunk, base) = self.new_chunk(capacity, chunks)?;
            self.arena.retire(capacity);
            return Ok((address(chunk, 1), unit_of(base, 1)));
        }
        let mut tail = Tail::unpack(self.arena.tail.load(Ordering::Relaxed));
        if tail.used + units > tail.capacity {
            tail = self.grow(tail, units, chunks)?;
        }
        // Relaxed: only the turn's holder allocates, and an address is published after its chunk.
        self.arena.tail.store(Tail { used: tail.used + units, ..tail }.pack(), Ordering::Relaxed);
        let at = address(tail.chunk, tail.used);
        Ok((at, self.arena.resolve(at)))
    }

    /// Begins a chunk after the full one, `old`.
    #[cold]
    fn grow(&self, old: Tail, units: u64, chunks: usize) -> Result<Tail, MemoryLimit> {
        // An eighth of the arena's size, so at most that part of a large arena is empty.
        let eighth = (self.arena.retired_bytes.load(Ordering::Relaxed) / UNIT / 8) as u64;
        let least = (4 * old.capacity).clamp(FIRST_CHUNK_UNITS, CHUNK_UNITS_MIN);
        let sized = eighth.clamp(least, CHUNK_UNITS_MAX);
        let capacity = whole_pages(sized.max((units + 1).next_power_of_two()));
        let (chunk, _) = self.new_chunk(capacity, chunks)?;
        self.arena.retire(old.capacity);
        Ok(Tail { chunk, used: 1, capacity })
    }

    /// The number and the pointer of a new chunk, one of the first `chunks`.
    fn new_chunk(&self, units: u64, chunks: usize) -> Result<(u32, NonNull<u64>), MemoryLimit> {
        let arena = self.arena;
        let chunk = arena.next_chunk.load(Ordering::Relaxed);
        if chunk as usize >= chunks {
            return Err(MemoryLimit);
        }
        let slot = arena.slot_or_list(chunk)?;
        let layout = chunk_layout(units).ok_or(MemoryLimit)?;
        let mapped = if units < MAPPED_UNITS { None } else { arena.map(layout.size()).ok() };
        let (base, mark) = match mapped {
            Some(base) => (base, IS_MAPPED),
            None => {
                // SAFETY: the layout's size is not zero, as a chunk has at least two units. Checked by: miri `arena_*`.
                let base = unsafe { alloc(layout) };
                (NonNull::new(base.cast::<u64>()).ok_or(MemoryLimit)?, 0)
            }
        };
        // SAFETY: bounds, alignment: `base` starts a fresh block of at least two aligned units. Aliasing: no other thread
        // has the pointer yet. Checked by: miri `arena_*`.
        unsafe { base.as_ptr().write(units | mark) };
        slot.store(base.as_ptr(), Ordering::Relaxed);
        arena.next_chunk.store(chunk + 1, Ordering::Relaxed);
        arena.charge.grow(layout.size());
        Ok((chunk, base))
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.arena.taken.store(false, Ordering::Release);
    }
}

#[cold]
fn unreachable_address() -> ! {
    unreachable!("an address of another arena")
}

/// These sizes were allocated or will be, so they are valid.
fn to_usize(units: u64) -> usize {
    usize::try_from(units).unwrap_or(usize::MAX / UNIT)
}

fn address(chunk: u32, unit: u64) -> Address {
    Address(chunk << UNIT_BITS | (unit & (CHUNK_UNITS_MAX - 1)) as u32)
}

/// The length of a chunk in whole pages, if it is to be mapped.
fn whole_pages(units: u64) -> u64 {
    if units < MAPPED_UNITS { units } else { units / PAGE_UNITS * PAGE_UNITS }
}

fn chunk_layout(units: u64) -> Option<Layout> {
    Layout::array::<u64>(usize::try_from(units).ok()?).ok()
}

#[inline]
pub(crate) fn unit_of(base: NonNull<u64>, unit: usize) -> NonNull<u64> {
    // SAFETY: bounds: callers pass a unit that `alloc` handed out of this chunk, so it lies inside the allocation.
    // Checked by: miri `arena_*`.
    unsafe { base.add(unit) }
}

/// Frees a chunk, unless it is mapped.
fn free_allocated(base: NonNull<u64>) {
    // SAFETY: initialised: `new_chunk` wrote the length and the mark into unit 0, and no address of unit 0 is ever handed out.
    // Checked by: miri `arena_*`.
    let units = unsafe { base.as_ptr().read() };
    if units & IS_MAPPED == 0
        && let Some(layout) = chunk_layout(units)
    {
        // SAFETY: allocated by `new_chunk` with this very layout; the drop of the arena owns the chunk alone.
        // Checked by: miri `arena_*`.
        unsafe { dealloc(base.as_ptr().cast::<u8>(), layout) };
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        for slot in self.near.iter().chain(self.far.get().into_iter().flatten()) {
            if let Some(base) = NonNull::new(slot.load(Ordering::Relaxed)) {
                free_allocated(base);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ashlar_base::error::BusyKind;
    use ashlar_base::{Error, ErrorKind};
    use std::cell::Cell;
    use std::collections::BTreeSet;

    thread_local! {
        /// True while the system gives this thread no mappings.
        pub(super) static NO_MAPPINGS: Cell<bool> = const { Cell::new(false) };
    }

    #[test]
    fn arena_takes_the_heap_where_the_system_gives_no_mapping() {
        let arena = Arena::new(MemoryCharge::none());
        let turn = arena.turn();
        let lengths = [OWN_CHUNK_UNITS + 1, MAPPED_UNITS - 2, OWN_CHUNK_UNITS + 2];
        for (refused, units) in [true, false, true].into_iter().zip(lengths) {
            NO_MAPPINGS.set(refused);
            let (at, base) = turn.alloc(units).unwrap();
            // SAFETY: the last unit of what we were given.
            unsafe { unit_of(base, to_usize(units) - 1).as_ptr().write(7) };
            assert_eq!(arena.resolve(at), base);
        }
        NO_MAPPINGS.set(false);
        assert_eq!(arena.maps.lock().len(), 1, "two of the three chunks are on the heap");
    }

    #[test]
    fn arena_hands_out_disjoint_memory_to_threads() {
        let arena = Arena::new(MemoryCharge::none());
        let (mut starts, count) = (BTreeSet::new(), if cfg!(miri) { 60 } else { 5000 });
        let size = |i: u64| 1 + i * 7919 % 97;
        let mut parts = Vec::new();
        for thread in 0..3 {
            let fill = || -> Vec<(Address, u64)> {
                let turn = arena.turn();
                let one = |i| {
                    let (at, base) = turn.alloc(size(i)).unwrap();
                    for unit in 0..size(i) {
                        // SAFETY: `alloc` gave us this many units, alone.
                        unsafe { unit_of(base, to_usize(unit)).as_ptr().write(i) };
                    }
                    (at, i)
                };
                (thread * count..(thread + 1) * count).map(one).collect()
            };
            parts.extend(std::thread::scope(|s| s.spawn(fill).join().unwrap()));
        }
        for (at, i) in parts {
            assert!(at.0 != 0 && starts.insert(at.0));
            for unit in 0..size(i) {
                // SAFETY: written by `fill`, whose threads are joined.
                assert_eq!(unsafe { unit_of(arena.resolve(at), to_usize(unit)).as_ptr().read() }, i);
            }
        }
    }

    #[test]
    #[should_panic(expected = "two threads")]
    fn arena_has_one_writer() {
        let arena = Arena::new(MemoryCharge::none());
        drop(arena.turn());
        let _first = arena.turn();
        let _second = arena.turn();
    }

    #[test]
    fn arena_gives_large_things_their_own_chunk_and_refuses_clearly() {
        let arena = Arena::new(MemoryCharge::none());
        let turn = arena.turn();
        let (small, _) = turn.alloc(1).unwrap();
        let (large, base) = turn.alloc(OWN_CHUNK_UNITS + 1).unwrap();
        let (next, _) = turn.alloc(1).unwrap();
        assert_eq!(next.0, small.0 + 1);
        assert_ne!(large.0 >> UNIT_BITS, small.0 >> UNIT_BITS);
        // SAFETY: the last unit of what we were given.
        unsafe { unit_of(base, to_usize(OWN_CHUNK_UNITS)).as_ptr().write(7) };
        assert!(arena.used_bytes() > 1 << 20);
        assert_eq!(turn.alloc(1 << 62), Err(MemoryLimit));
        let e = Error::from(MemoryLimit);
        assert_eq!(
            (e.kind(), e.message()),
            (ErrorKind::Busy(BusyKind::Memory), "the memtable cannot hold the entry")
        );
        arena.next_chunk.store(u32::try_from(CHUNKS - NODE_CHUNKS).unwrap(), Ordering::Relaxed);
        assert_eq!(turn.alloc(OWN_CHUNK_UNITS + 1), Err(MemoryLimit));
        assert!(turn.alloc(1).is_ok(), "the chunk in use still has room");
        turn.alloc_node(OWN_CHUNK_UNITS + 1);
    }
}
