//! The memory of blocks: pieces of a few lengths, cut from slabs that return to the system when they are empty.
//!
//! Blocks are mostly evicted for something larger, such as a memtable or an index. On the heap, the hole that a block
//! leaves would be too small for these and would stay resident. Here the cache collects freed pieces until whole slabs
//! are empty.
//!
//! ```text
//! region, 16 MiB of addresses: | slab | slab | slab | ...     mapped until the pool and its last block are gone
//! slab, 256 KiB:               | piece | piece | piece | ...  all of one class; no class: the system has its memory
//! ```
//! 1. A piece has one owner, a [`Piece`], from its allocation to the drop. Nothing else refers to its bytes.
//! 2. A class is a length. There are sixteen classes from one power of two to the next, so a piece is at most a
//!    sixteenth longer than its block.
//! 3. Slabs in use take at most a sixteenth more than their pieces, and [`SLACK`] slabs. When they take more, no new
//!    slab is begun, and blocks of the highest slabs move to lower ones ([`Slabs::to_empty`]).
//! 4. The regions after the first ask for huge pages: a read then misses the processor's address cache less often, which
//!    saves a tenth of its time. Slabs fill from the lowest on, so that at most one huge page is mostly empty. A small pool
//!    has one region, and takes the memory of its slabs only.
//!
//! Source: J. Bonwick, "The Slab Allocator", USENIX Summer 1994; the lowest slab with room first.

use crate::clock::Entry;
use ashlar_sync::{Mutex, Rank};
use memmap2::{MmapMut, MmapRaw};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::slice;
use std::sync::Arc;

const SLAB: usize = 256 << 10;
/// The number of slabs in a region.
const PER_REGION: usize = 64;
/// Blocks of 2 to 64 KiB go into pieces; others stay with the allocator.
const SHORTEST: usize = 2 << 10;
const LONGEST: usize = 64 << 10;
/// The number of slabs that may be in use beyond the sixteenth of rule 3.
pub(crate) const SLACK: usize = 4;

/// The length of the piece for `len` bytes, if they go into one.
pub(crate) fn class_of(len: usize) -> Option<usize> {
    let step = 1 << (len.max(SHORTEST).ilog2() - 4);
    (SHORTEST..=LONGEST).contains(&len).then(|| len.next_multiple_of(step))
}

/// The pieces of one slab.
#[derive(Default)]
struct Slab {
    /// The length of each piece; 0 without pieces.
    class: usize,
    /// One bit for each free piece.
    free: u128,
    /// The owner of the block in each piece.
    owners: Vec<Option<Entry>>,
}

impl Slab {
    fn pieces(&self) -> usize {
        SLAB.checked_div(self.class).unwrap_or(0)
    }

    fn taken(&self) -> usize {
        self.pieces() - self.free.count_ones() as usize
    }
}

#[derive(Default)]
struct State {
    regions: Vec<Arc<MmapRaw>>,
    slabs: Vec<Slab>,
    /// Slabs without a class; the system has their memory.
    vacant: BTreeSet<usize>,
    /// Per class, the slabs with a free piece.
    open: BTreeMap<usize, BTreeSet<usize>>,
    in_use: usize,
    /// Bytes of the pieces in use.
    taken: usize,
    /// From this slab on, an attempt to empty each slab was made.
    hand: usize,
}

impl State {
    fn is_crowded(&self, in_use: usize, slack: usize) -> bool {
        in_use.saturating_sub(slack) * SLAB > self.taken + self.taken / 16
    }

    fn region(&self, slab: usize) -> Option<(Arc<MmapRaw>, usize)> {
        let region = self.regions.get(slab / PER_REGION)?;
        Some((Arc::clone(region), slab % PER_REGION * SLAB))
    }

    /// A slab of this class with a free piece, other than `but`.
    fn with_room(&self, class: usize, but: Option<usize>) -> Option<usize> {
        self.open.get(&class)?.iter().find(|slab| Some(**slab) != but).copied()
    }

    /// Gives a vacant slab a class. `None`: the system has no addresses left.
    fn begin(&mut self, class: usize) -> Option<usize> {
        if self.vacant.is_empty() {
            let region = MmapMut::map_anon(SLAB * PER_REGION).ok()?;
            if !self.regions.is_empty() {
                ask_huge_pages(&region);
            }
            self.regions.push(Arc::new(region.into()));
            let first = self.slabs.len();
            self.slabs.resize_with(first + PER_REGION, Slab::default);
            self.vacant.extend(first..first + PER_REGION);
        }
        let at = self.vacant.pop_first()?;
        let slab = self.slabs.get_mut(at)?;
        slab.class = class;
        slab.owners.resize_with(SLAB / class, || None);
        slab.free = u128::MAX >> (128 - SLAB / class);
        self.open.entry(class).or_default().insert(at);
        self.in_use += 1;
        Some(at)
    }

    /// Allocates the first free piece.
    fn cut(&mut self, at: usize, owner: &Entry) -> Option<usize> {
        let slab = self.slabs.get_mut(at)?;
        let index = slab.free.trailing_zeros() as usize;
        *slab.owners.get_mut(index)? = Some(owner.clone());
        slab.free &= slab.free - 1;
        self.taken += slab.class;
        if slab.free == 0
            && let Some(open) = self.open.get_mut(&slab.class)
        {
            open.remove(&at);
        }
        Some(index)
    }

    /// Frees a piece. True when it was the slab's last: the slab then has no class, and is not vacant yet.
    fn join(&mut self, at: usize, index: usize) -> bool {
        let Some(slab) = self.slabs.get_mut(at) else { return false };
        slab.free |= 1 << index;
        slab.owners.get_mut(index).map(Option::take);
        self.taken -= slab.class;
        let open = self.open.entry(slab.class).or_default();
        if slab.taken() > 0 {
            open.insert(at);
            return false;
        }
        open.remove(&at);
        *slab = Slab::default();
        true
    }

    /// The next lower slab for whose blocks a slab below it has space.
    fn next_down(&mut self) -> Option<usize> {
        let has_room_below = |at: &usize| {
            let open = self.slabs.get(*at).and_then(|slab| self.open.get(&slab.class));
            open.and_then(BTreeSet::first).is_some_and(|lowest| lowest < at)
        };
        let below = (0..self.hand).rev().find(has_room_below);
        let found = below.or_else(|| (self.hand..self.slabs.len()).rev().find(has_room_below))?;
        self.hand = found;
        Some(found)
    }
}

/// The memory of a pool's blocks.
pub(crate) struct Slabs {
    state: Mutex<State>,
    slack: usize,
}

/// The reason why a block gets no piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoPiece {
    /// Blocks of this length do not go into pieces, or the system has no memory.
    Never,
    /// The slabs in use exceed rule 3.
    Crowded,
}

impl Slabs {
    /// Slabs without memory yet. `slack` slabs may be in use beyond the sixteenth of rule 3.
    pub(crate) fn new(slack: usize) -> Arc<Slabs> {
        Arc::new(Slabs { state: Mutex::new(Rank::Inner, State::default()), slack })
    }

    /// Copies `bytes`, and `more` behind them, into a piece, for the block whose place is `owner`. With `but`, does not use
    /// slab `but` and begins no new slab.
    pub(crate) fn put(
        self: &Arc<Self>,
        (bytes, more): (&[u8], &[u8]),
        owner: &Entry,
        but: Option<usize>,
    ) -> Result<Piece, NoPiece> {
        let len = bytes.len() + more.len();
        let class = class_of(len).ok_or(NoPiece::Never)?;
        let mut state = self.state.lock();
        let slab = match state.with_room(class, but) {
            Some(slab) => slab,
            None if but.is_some() || state.is_crowded(state.in_use + 1, self.slack) => {
                return Err(NoPiece::Crowded);
            }
            None => state.begin(class).ok_or(NoPiece::Never)?,
        };
        let (region, from) = state.region(slab).ok_or(NoPiece::Never)?;
        let index = state.cut(slab, owner).ok_or(NoPiece::Never)?;
        drop(state);
        // All of the class is inside the slab: `begin` counts the pieces that fit.
        let start = region.as_mut_ptr().wrapping_add(from + index * class);
        let piece = Piece { slabs: Arc::clone(self), start, len, slab, index };
        // SAFETY: `start` and the `class` bytes behind it, of which `bytes` and `more` have no more together, are inside a mapping that
        // lives as long as `piece.slabs` does; no alignment is asked of bytes. No other thread reads or writes them: the piece
        // was cut under the lock, for one owner, which has not shared it yet; the owner before dropped it under the same
        // lock. So it is no part of `bytes` or `more` either. Checked by: `slab::tests`, Miri.
        unsafe { bytes.as_ptr().copy_to_nonoverlapping(start, bytes.len()) };
        let behind = start.wrapping_add(bytes.len());
        // SAFETY: as above. Checked by: `slab::tests`, Miri.
        unsafe { more.as_ptr().copy_to_nonoverlapping(behind, more.len()) };
        Ok(piece)
    }

    fn take_back(&self, slab: usize, index: usize) {
        let mut state = self.state.lock();
        if !state.join(slab, index) {
            return;
        }
        let region = state.region(slab);
        drop(state);
        // No thread uses the slab before it is vacant, so other threads need not wait meanwhile.
        if let Some((region, from)) = region {
            release(&region, from);
        }
        let mut state = self.state.lock();
        state.vacant.insert(slab);
        state.in_use -= 1;
    }

    /// When the slabs in use exceed rule 3: a slab to empty, and the owners of its blocks. The highest slab comes
    /// first, then each in turn, because a pinned block does not move.
    pub(crate) fn to_empty(&self) -> Option<(usize, Vec<Entry>)> {
        let mut state = self.state.lock();
        if !state.is_crowded(state.in_use, self.slack) {
            state.hand = state.slabs.len();
            return None;
        }
        let at = state.next_down()?;
        let owners = state.slabs.get(at)?.owners.iter().flatten().cloned();
        Some((at, owners.collect()))
    }

    /// Slabs in use.
    pub(crate) fn in_use(&self) -> usize {
        self.state.lock().in_use
    }
}

/// Asks the system for pages of 2 MiB. If it has none, the region has small ones.
fn ask_huge_pages(region: &MmapMut) {
    // Miri does not support the call.
    #[cfg(all(target_os = "linux", not(miri)))]
    let _ = region.advise(memmap2::Advice::HugePage);
    #[cfg(not(all(target_os = "linux", not(miri))))]
    let _ = region;
}

/// Returns the memory of a slab to the system; its addresses stay reserved. If the system ignores the call, the memory
/// stays resident.
fn release(region: &MmapRaw, from: usize) {
    // Miri does not support the call.
    #[cfg(all(unix, not(miri)))]
    {
        let free = memmap2::UncheckedAdvice::DontNeed;
        // SAFETY: the bytes become zeros under any reader, and no reader exists: the last piece of the slab is back, and none
        // is cut before the slab is vacant. Checked by: `slab::tests::an_empty_slab_is_the_systems`.
        let _ = unsafe { region.unchecked_advise_range(free, from, SLAB) };
    }
    #[cfg(not(all(unix, not(miri))))]
    let _ = (region, from);
}

/// Bytes in a slab that have one owner.
pub(crate) struct Piece {
    slabs: Arc<Slabs>,
    start: *mut u8,
    len: usize,
    slab: usize,
    index: usize,
}

// SAFETY: a piece is the only way to its bytes, which are written before it is made, and then only read. What gives them
// back takes a lock. Checked by: `tests::concurrent_hits_inserts_and_closes`, the thread sanitizer.
unsafe impl Send for Piece {}
// SAFETY: as above; a shared piece is read only.
unsafe impl Sync for Piece {}

impl Piece {
    /// The slab it was cut from.
    pub(crate) fn slab(&self) -> usize {
        self.slab
    }
}

impl Deref for Piece {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: `put` has written `len` bytes from `start` on, inside a mapping that lives as long as `slabs`; no thread writes
        // them while the piece lives, and the slice lives no longer. Checked by: `slab::tests`, Miri.
        unsafe { slice::from_raw_parts(self.start, self.len) }
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        self.slabs.take_back(self.slab, self.index);
    }
}

#[cfg(test)]
mod tests;
