//! The sidecar of a data block in the block cache: a few words per entry, with which a search reads seven cache lines of a
//! block and not thirty.
//!
//! ```text
//! | prefix: u32 LE | word: u64 LE * N | place: u16 LE * N |
//! ```
//! 1. `prefix` is the number of bytes that all user keys of the block begin with. They are read from the first entry.
//! 2. A point stands for an entry, but never for the last one. Its word is the eight bytes of the entry's user key behind the
//!    prefix, big endian, padded with zeros. Its place is the offset of the next entry. Words ascend; with the reverse order
//!    they descend.
//! 3. The next entry shares no byte behind the word. So prefix and word give all the bytes that it shares, and a search can
//!    begin at the place.
//! 4. No two points have one word. From one place to the next are [`SPACING`] bytes at least, so that a sidecar takes a tenth
//!    of its block at most, and [`LONGEST_WALK`] entries at most.
//! 5. Only a block in which each entry decodes and the keys ascend has a sidecar. So a search with the sidecar has the same
//!    answer as one without.
//! 6. A sidecar is never stored. Any bytes are safe to search with; with bytes of another block, answers have no meaning.
//!
//! Source: the idea is that of poor man's normalized keys: G. Graefe and P. Larson, "B-tree indexes and CPU caches", ICDE 2001.

use super::DataBlock;
use super::entry::standard;
use super::index::offset32;
use ashlar_base::Order;
use ashlar_base::bytes::common_prefix;
use ashlar_base::ext::comparator::{BytewiseOrder, KeyOrder};
use ashlar_kernels::{LINE, prefetch};
use std::cmp::Ordering;

/// The bytes of a point.
const POINT: usize = size_of::<u64>() + size_of::<u16>();
/// The least number of bytes between two places.
const SPACING: usize = 96;
/// The largest number of entries between two places.
const LONGEST_WALK: usize = 32;

/// A sidecar, borrowed. See the module.
#[derive(Clone, Copy, Debug)]
pub struct Sidecar<'a> {
    prefix: usize,
    words: &'a [[u8; 8]],
    places: &'a [[u8; 2]],
}

/// Where the search for a user key begins in a block with a sidecar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start(pub(super) Place);

/// See [`Start`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// At the first entry.
    First,
    /// At `at`, behind an entry whose user key is before the wanted one. The two have `same` bytes in common. The key of that
    /// entry begins with `prefix` bytes of the first key and with `word`, as far as the entry at `at` shares bytes with it.
    Behind { at: usize, same: usize, prefix: usize, word: u64 },
    /// Nowhere: all user keys are before the wanted one.
    Past,
}

impl<'a> Sidecar<'a> {
    /// The most bytes that the sidecar of a block of this length has.
    pub const fn most(block: usize) -> usize {
        size_of::<u32>() + block / SPACING * POINT
    }

    /// The sidecar with these bytes; `None` if they are empty.
    #[inline]
    pub fn of(bytes: &'a [u8]) -> Option<Sidecar<'a>> {
        let (prefix, points) = bytes.split_first_chunk::<4>()?;
        let (words, places) = points.split_at_checked(points.len() / POINT * size_of::<u64>())?;
        Some(Sidecar {
            prefix: u32::from_le_bytes(*prefix) as usize,
            words: words.as_chunks::<8>().0,
            places: places.as_chunks::<2>().0,
        })
    }

    #[inline]
    fn place<const REVERSE: bool>(&self, entries: &[u8], user_key: &[u8]) -> Place {
        let prefix = standard(entries, 0).ok().and_then(|first| first.tail.get(..self.prefix));
        let Some(prefix) = prefix else { return Place::First };
        if user_key.get(..self.prefix) != Some(prefix) {
            let before = directed::<REVERSE>(user_key.cmp(prefix)).is_lt();
            return if before { Place::First } else { Place::Past };
        }
        let wanted = BytewiseOrder.word(user_key, self.prefix);
        let before = self.words.partition_point(|word| {
            let word = u64::from_le_bytes(*word);
            if REVERSE { word > wanted } else { word < wanted }
        });
        let Some(point) = before.checked_sub(1) else { return Place::First };
        let (Some(word), Some(at)) = (self.words.get(point), self.places.get(point)) else {
            return Place::First;
        };
        let word = u64::from_le_bytes(*word);
        // The zeros behind the end of the wanted key are none of its bytes, though the stored key may have zeros there.
        let same = self.prefix + ((word ^ wanted).leading_zeros() / 8) as usize;
        Place::Behind {
            at: usize::from(u16::from_le_bytes(*at)),
            same: same.min(user_key.len()),
            prefix: self.prefix,
            word,
        }
    }
}

#[inline]
fn directed<const REVERSE: bool>(order: Ordering) -> Ordering {
    if REVERSE { order.reverse() } else { order }
}

impl DataBlock<'_> {
    /// Where the search for `user_key` begins; `None`: the block has no sidecar.
    ///
    /// # Cost
    /// Reads the sidecar and the first key, not the entry where the search begins: [`Start::prefetch`] can prefetch it.
    #[inline]
    pub fn start(&self, order: &Order, user_key: &[u8]) -> Option<Start> {
        let sidecar = self.sidecar()?;
        match order {
            Order::Bytewise => Some(Start(sidecar.place::<false>(self.entries(), user_key))),
            Order::ReverseBytewise => Some(Start(sidecar.place::<true>(self.entries(), user_key))),
            Order::Custom(_) => None,
        }
    }
}

impl Start {
    /// Prefetches up to `lines` cache lines of the block from there on.
    #[inline]
    pub fn prefetch(self, block: &DataBlock<'_>, lines: usize) {
        if let Place::Behind { at, .. } = self.0 {
            let ahead = block.entries().get(at..).unwrap_or_default();
            prefetch(ahead.as_ptr(), lines.min(ahead.len().div_ceil(LINE)));
        }
    }
}

fn user_part(key: &[u8]) -> Option<&[u8]> {
    key.split_last_chunk::<8>().map(|(user, _)| user)
}

/// Builds sidecars, one after the other in the same memory.
#[derive(Debug, Default)]
pub struct SidecarBuilder {
    prefix: usize,
    words: Vec<[u8; 8]>,
    places: Vec<[u8; 2]>,
    key: Vec<u8>,
    out: Vec<u8>,
}

impl SidecarBuilder {
    /// The sidecar of `block`; empty if it has none: blocks of a custom order, of 64 KiB and more, of a single entry, with many
    /// versions of their keys, and damaged ones.
    ///
    /// # Cost
    /// Decodes all entries, about ten nanoseconds for each. Allocates while the memory is shorter than a sidecar.
    pub fn build(&mut self, block: &DataBlock<'_>, order: &Order) -> &[u8] {
        self.out.clear();
        let built = match order {
            Order::Bytewise => self.points::<false>(block),
            Order::ReverseBytewise => self.points::<true>(block),
            Order::Custom(_) => None,
        };
        if built.is_some() && !self.words.is_empty() {
            self.out.extend_from_slice(&offset32(self.prefix).to_le_bytes());
            self.out.extend_from_slice(self.words.as_flattened());
            self.out.extend_from_slice(self.places.as_flattened());
        }
        &self.out
    }

    /// Takes the points. `None`: the block has no sidecar.
    fn points<const REVERSE: bool>(&mut self, block: &DataBlock<'_>) -> Option<()> {
        let entries = block.entries();
        if entries.len() > usize::from(u16::MAX) {
            return None;
        }
        let first = user_part(standard(entries, 0).ok()?.tail)?;
        // Most often no key behind the last restart point has fewer bytes in common with the first key.
        let last = standard(entries, block.restart(block.restart_count() - 1)?).ok()?;
        self.prefix = common_prefix(first, user_part(last.tail)?);
        loop {
            self.walk::<REVERSE>(entries)?;
            let common = common_prefix(first, user_part(&self.key)?);
            if common >= self.prefix {
                return Some(());
            }
            self.prefix = common;
        }
    }

    /// Takes points from all entries. `key` is the last key afterwards.
    fn walk<const REVERSE: bool>(&mut self, entries: &[u8]) -> Option<()> {
        self.words.clear();
        self.places.clear();
        let (mut at, mut place, mut walked) = (0, 0, 0);
        while at < entries.len() {
            let entry = standard(entries, at).ok()?;
            if at == 0 {
                self.key.clear();
                self.key.extend_from_slice(entry.tail);
            } else {
                if at - place >= SPACING && self.take(entry.shared, at)? {
                    (place, walked) = (at, 0);
                }
                follow::<REVERSE>(&mut self.key, entry.shared, entry.tail)?;
            }
            walked += 1;
            if walked > LONGEST_WALK {
                return None;
            }
            at = entry.next;
        }
        Some(())
    }

    /// Takes the entry of `key` as a point, if rule 3 allows that. The entry after it is at `place` and shares `shared` bytes
    /// with it. Of two points with one word, the later one stays. True: the word is a new one.
    #[inline]
    fn take(&mut self, shared: usize, place: usize) -> Option<bool> {
        let user_key = user_part(&self.key)?;
        if shared > user_key.len().min(self.prefix + 8) {
            return Some(false);
        }
        let word = BytewiseOrder.word(user_key, self.prefix).to_le_bytes();
        let is_new = self.words.last() != Some(&word);
        if is_new {
            self.words.push(word);
        } else {
            self.places.pop();
        }
        self.places.push(u16::try_from(place).ok()?.to_le_bytes());
        Some(is_new)
    }
}

/// Makes the next key of `key`. `None`: the next key is not behind it, or shares bytes behind the user keys.
#[inline]
fn follow<const REVERSE: bool>(key: &mut Vec<u8>, shared: usize, tail: &[u8]) -> Option<()> {
    let (before, trailer_before) = key.split_last_chunk::<8>()?;
    let (user, trailer) = tail.split_last_chunk::<8>()?;
    let ascends = match directed::<REVERSE>(before.get(shared..)?.cmp(user)) {
        Ordering::Less => true,
        Ordering::Equal => u64::from_le_bytes(*trailer_before) > u64::from_le_bytes(*trailer),
        Ordering::Greater => false,
    };
    key.truncate(shared);
    key.extend_from_slice(tail);
    ascends.then_some(())
}

#[cfg(test)]
#[path = "sidecar_tests.rs"]
mod tests;
