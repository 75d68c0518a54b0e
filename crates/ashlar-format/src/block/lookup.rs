//! The search of a point lookup in a data block. No stored key is joined.
//!
//! A stored key is the first `shared` bytes of the preceding key, and a tail. The search walks over the entries before
//! the target. It keeps `same`, the number of bytes that the preceding key has in common with the wanted key.
//! 1. `shared > same`: the entry repeats the byte in which the preceding key differs. So this entry is before the target
//!    too, and its tail is not compared.
//! 2. `shared <= same`: the entry begins as the wanted key does, and its tail decides.
//! 3. Rule 1 needs a byte that differs within both user keys. No byte differs when one user key begins with the other, as
//!    with two versions of a key. An entry that would need it ends the search as [`InBlock::Unsettled`], and the caller
//!    searches with a [`BlockCursor`](super::BlockCursor).
//!
//! The rules use no order among the stored keys, so the answer is the cursor's answer in a damaged block too.

use super::entry::standard;
use super::sidecar::{Place, Start};
use super::{Bucket, DataBlock, HashIndex, ValueRange};
use ashlar_base::bytes::common_prefix;
use ashlar_base::{Malformed, Order, Trailer};
use std::cmp::Ordering;

/// The answer of a block to a point lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InBlock {
    /// The newest entry of the user key at or below the wanted trailer.
    Found {
        /// Sequence number and type, as stored.
        trailer: Trailer,
        /// The place of the value in the block.
        value: ValueRange,
    },
    /// The block has no such entry, and an entry of a later key. So the following blocks have none either.
    Absent,
    /// All entries are before the target: the next block may hold it.
    Past,
    /// The search would need whole keys: to be asked of a cursor.
    Unsettled,
}

/// The wanted entry.
struct Wanted<'k> {
    user_key: &'k [u8],
    trailer: Trailer,
}

/// How far the search is. The preceding entry is before the target.
#[derive(Clone, Copy)]
struct Walk {
    /// Where the next entry starts.
    at: usize,
    /// The length of the preceding internal key.
    len: usize,
    /// How many bytes the preceding user key has in common with the wanted one.
    same: usize,
    /// The preceding user key has a byte at `same`.
    differs: bool,
}

impl Walk {
    /// Before a restart point.
    fn from(at: usize) -> Walk {
        Walk { at, len: 0, same: 0, differs: false }
    }
}

impl DataBlock<'_> {
    /// Looks for the newest entry of `user_key` at or below `trailer`. `index` is the block's hash index, if it has one.
    ///
    /// # Errors
    /// `Malformed`: an entry on the way does not decode.
    /// # Cost
    /// A bisection in the sidecar and some entries; without a sidecar, a bisection of the restart points or one step in the
    /// hash index, and half a restart interval. No allocation. Custom orders are always [`InBlock::Unsettled`].
    #[inline]
    pub fn look_up(
        &self,
        index: Option<HashIndex<'_>>,
        order: &Order,
        user_key: &[u8],
        trailer: Trailer,
    ) -> Result<InBlock, Malformed> {
        if let Some(start) = self.start(order, user_key) {
            return self.look_up_from(start, order, user_key, trailer);
        }
        let wanted = Wanted { user_key, trailer };
        match order {
            Order::Bytewise => self.find::<false>(index, &wanted),
            Order::ReverseBytewise => self.find::<true>(index, &wanted),
            Order::Custom(_) => Ok(InBlock::Unsettled),
        }
    }

    /// [`DataBlock::look_up`] from where [`DataBlock::start`] says that the search for this key begins.
    ///
    /// # Errors
    /// As [`DataBlock::look_up`].
    #[inline]
    pub fn look_up_from(
        &self,
        start: Start,
        order: &Order,
        user_key: &[u8],
        trailer: Trailer,
    ) -> Result<InBlock, Malformed> {
        let walk = match start.0 {
            Place::Past => return Ok(InBlock::Past),
            Place::First => Walk::from(0),
            // The entry there shares only bytes that the sidecar has proven: neither length nor end of the key before matters.
            Place::Behind { at, same, .. } => Walk { at, len: usize::MAX, same, differs: true },
        };
        let wanted = Wanted { user_key, trailer };
        match order {
            Order::Bytewise => self.walk::<false>(walk, &wanted),
            Order::ReverseBytewise => self.walk::<true>(walk, &wanted),
            Order::Custom(_) => Ok(InBlock::Unsettled),
        }
    }

    fn find<const REVERSE: bool>(
        &self,
        index: Option<HashIndex<'_>>,
        wanted: &Wanted<'_>,
    ) -> Result<InBlock, Malformed> {
        let interval = match index.map(|index| index.find(wanted.user_key)) {
            None | Some(Bucket::Collision) => {
                return self.walk::<REVERSE>(self.bisect::<REVERSE>(wanted)?, wanted);
            }
            // The next block may have further versions of this user key, so the end of this block must show that.
            Some(Bucket::Absent) => self.restart_count() - 1,
            Some(Bucket::Interval(interval)) => interval,
        };
        let missing = Malformed { field: "block.hash_index", at: interval, what: "no such restart point" };
        self.walk::<REVERSE>(Walk::from(self.restart(interval).ok_or(missing)?), wanted)
    }

    /// Behind the last restart point whose key is before the target; if there is no such point, before the first one.
    #[inline]
    fn bisect<const REVERSE: bool>(&self, wanted: &Wanted<'_>) -> Result<Walk, Malformed> {
        let mut found = Walk::from(0);
        let (mut low, mut high) = (1, self.restart_count());
        while low < high {
            let middle = low.midpoint(high);
            let at = self.restart(middle).unwrap_or(usize::MAX);
            let entry = standard(self.entries(), at)?;
            let (user, stored) = match entry.tail.split_last_chunk::<8>() {
                Some(parts) if entry.shared == 0 => parts,
                _ => return Err(Malformed { field: "block.restart", at, what: "not a whole key" }),
            };
            let (same, order) = compare::<REVERSE>(user, wanted.user_key);
            if order.then_with(|| by_trailer(wanted, stored)).is_lt() {
                found = Walk { at: entry.next, len: entry.tail.len(), same, differs: same < user.len() };
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(found)
    }

    #[inline]
    fn walk<const REVERSE: bool>(&self, mut walk: Walk, wanted: &Wanted<'_>) -> Result<InBlock, Malformed> {
        let entries = self.entries();
        while walk.at < entries.len() {
            let at = walk.at;
            let entry = standard(entries, at)?;
            if entry.shared > walk.len {
                return Err(Malformed { field: "entry.shared", at, what: "longer than the key before" });
            }
            let len = entry.shared + entry.tail.len();
            let Some(user_len) = len.checked_sub(8) else {
                return Err(Malformed { field: "entry.key", at, what: "shorter than eight bytes" });
            };
            (walk.at, walk.len) = (entry.next, len);
            if entry.shared > walk.same {
                if walk.differs && walk.same < user_len {
                    continue;
                }
                return Ok(InBlock::Unsettled);
            }
            let Some((user, stored)) = entry.tail.split_last_chunk::<8>() else {
                return Ok(InBlock::Unsettled);
            };
            let rest = wanted.user_key.get(entry.shared..).unwrap_or_default();
            let (same, order) = compare::<REVERSE>(user, rest);
            match order.then_with(|| by_trailer(wanted, stored)) {
                Ordering::Less => {
                    (walk.same, walk.differs) = (entry.shared + same, same < user.len());
                }
                _ if order.is_eq() => {
                    let trailer = Trailer::from_raw(u64::from_le_bytes(*stored));
                    return Ok(InBlock::Found { trailer, value: entry.value });
                }
                _ => return Ok(InBlock::Absent),
            }
        }
        Ok(InBlock::Past)
    }
}

/// How many bytes two keys have in common at their beginning, and their order.
#[inline]
fn compare<const REVERSE: bool>(stored: &[u8], wanted: &[u8]) -> (usize, Ordering) {
    if let (Some(a), Some(b)) = (stored.first_chunk::<8>(), wanted.first_chunk::<8>()) {
        let (a, b) = (u64::from_be_bytes(*a), u64::from_be_bytes(*b));
        if a != b {
            let order = if REVERSE { b.cmp(&a) } else { a.cmp(&b) };
            return (((a ^ b).leading_zeros() / 8) as usize, order);
        }
    }
    compare_further::<REVERSE>(stored, wanted)
}

/// [`compare`] for keys whose first eight bytes do not decide.
fn compare_further<const REVERSE: bool>(stored: &[u8], wanted: &[u8]) -> (usize, Ordering) {
    let same = common_prefix(stored, wanted);
    let order = stored.get(same).cmp(&wanted.get(same));
    (same, if REVERSE { order.reverse() } else { order })
}

/// The order of two entries of one user key: larger trailers come first.
#[inline]
fn by_trailer(wanted: &Wanted<'_>, stored: &[u8; 8]) -> Ordering {
    wanted.trailer.raw().cmp(&u64::from_le_bytes(*stored))
}

#[cfg(test)]
#[path = "lookup_tests.rs"]
pub(super) mod tests;
