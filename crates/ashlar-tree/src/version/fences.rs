//! The bounds of a version's files as words: which file of a level can hold a key, for two cache lines instead of two
//! dependent misses per step of a search.
//!
//! All bounds of a level share a prefix. After the prefix, the next eight bytes of each bound are one word, and two
//! different words order their keys. Only a bound whose word equals the key's word is compared as a whole.
//!
//! ```text
//! prefix "user"   bounds user0012..user0477, user0481..user0655    key user0500
//! smallest  "0012" "0481"
//! largest   "0477" "0655"     first largest at or after "0500": file 1; its smallest "0481" is below
//! ```
//! Custom orders have no words: their bounds are compared as keys.

use super::FileMeta;
use ashlar_base::ext::comparator::{BytewiseOrder, KeyOrder, ReverseBytewiseOrder};
use ashlar_base::{LookupKey, Order, Trailer};
use std::cmp::Ordering;
use std::sync::Arc;

/// The words of one level.
#[derive(Debug)]
pub(super) struct Fences {
    prefix: Box<[u8]>,
    /// One per file.
    smallest: Box<[u64]>,
    /// One per file. In a deeper level they ascend, as the files do.
    largest: Box<[u64]>,
}

impl Fences {
    /// The words of each level; no level under a custom order.
    pub(super) fn of_levels(order: &Order, levels: &[Vec<Arc<FileMeta>>]) -> Box<[Fences]> {
        match order {
            Order::Bytewise => levels.iter().map(|files| Self::of(&BytewiseOrder, files)).collect(),
            Order::ReverseBytewise => {
                levels.iter().map(|files| Self::of(&ReverseBytewiseOrder, files)).collect()
            }
            Order::Custom(_) => Box::default(),
        }
    }

    fn of<C: KeyOrder>(order: &C, files: &[Arc<FileMeta>]) -> Fences {
        let bounds = || files.iter().flat_map(|f| [f.smallest().user_key(), f.largest().user_key()]);
        let first = bounds().next().unwrap_or_default();
        let shared = |key: &[u8]| first.iter().zip(key).take_while(|(a, b)| a == b).count();
        let prefix = bounds().map(shared).min().unwrap_or(0);
        Fences {
            prefix: first.get(..prefix).unwrap_or_default().into(),
            smallest: files.iter().map(|f| order.word(f.smallest().user_key(), prefix)).collect(),
            largest: files.iter().map(|f| order.word(f.largest().user_key(), prefix)).collect(),
        }
    }

    /// The word of a key; `None`: no file holds the key, because a key between two bounds shares their prefix.
    #[inline]
    fn word(&self, order: &Order, user_key: &[u8]) -> Option<u64> {
        if !user_key.starts_with(&self.prefix) {
            return None;
        }
        Some(match order {
            Order::ReverseBytewise => ReverseBytewiseOrder.word(user_key, self.prefix.len()),
            _ => BytewiseOrder.word(user_key, self.prefix.len()),
        })
    }

    /// Whether file `at` of level 0 holds `user_key`: the answer of [`FileMeta::holds`].
    #[inline]
    pub(super) fn holds(&self, order: &Order, at: usize, file: &FileMeta, user_key: &[u8]) -> bool {
        let Some(word) = self.word(order, user_key) else { return false };
        match (self.smallest.get(at), self.largest.get(at)) {
            (Some(smallest), Some(largest)) if *smallest != word && *largest != word => {
                *smallest < word && word < *largest
            }
            _ => file.holds(order, user_key),
        }
    }

    /// The file of a deeper level that can hold `key`: the answer of [`find_by_keys`].
    #[inline]
    pub(super) fn find<'f>(
        &self,
        order: &Order,
        files: &'f [Arc<FileMeta>],
        key: &LookupKey<'_>,
    ) -> Option<&'f Arc<FileMeta>> {
        let word = self.word(order, key.user_key)?;
        let mut at = self.largest.partition_point(|largest| *largest < word);
        if self.largest.get(at) == Some(&word) {
            // The words do not decide among these files.
            let tied =
                self.largest.get(at..).map_or(0, |rest| rest.partition_point(|largest| *largest == word));
            let files = files.get(at..at + tied).unwrap_or_default();
            at += files.partition_point(|file| ends_before(order, file, key));
        }
        let begins_after = match self.smallest.get(at)?.cmp(&word) {
            Ordering::Less => false,
            Ordering::Greater => true,
            Ordering::Equal => order.compare(files.get(at)?.smallest().user_key(), key.user_key).is_gt(),
        };
        if begins_after { None } else { files.get(at) }
    }
}

/// The file of a deeper level that can hold `key`, by whole keys.
pub(super) fn find_by_keys<'f>(
    order: &Order,
    files: &'f [Arc<FileMeta>],
    key: &LookupKey<'_>,
) -> Option<&'f Arc<FileMeta>> {
    let file = files.get(files.partition_point(|file| ends_before(order, file, key)))?;
    order.compare(file.smallest().user_key(), key.user_key).is_le().then_some(file)
}

/// Whether all entries of the file are before what `key` looks for.
fn ends_before(order: &Order, file: &FileMeta, key: &LookupKey<'_>) -> bool {
    let (user, trailer) = file.largest().split();
    match order.compare(user, key.user_key) {
        Ordering::Less => true,
        // Larger trailers come first; an end that is outside comes before them all.
        Ordering::Equal => trailer > key.trailer() || trailer == Trailer::RANGE_END,
        Ordering::Greater => false,
    }
}

#[cfg(test)]
#[path = "fences_tests.rs"]
mod tests;
