//! The key range within which a cursor shows entries.

use ashlar_base::{Order, SeqNum, Trailer};
use std::cmp::Ordering;
use std::ops::Bound;

/// The keys that a cursor shows, in the order of the family. The default is all keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyBounds {
    /// The lower end; the key itself is included unless `lower_open`.
    pub lower: Option<Vec<u8>>,
    /// Excludes the key `lower`.
    pub lower_open: bool,
    /// The upper end; the key itself is excluded unless `upper_closed`.
    pub upper: Option<Vec<u8>>,
    /// Includes the key `upper`.
    pub upper_closed: bool,
}

impl KeyBounds {
    /// The keys at both ends.
    pub(crate) fn keys(&self) -> (Option<&[u8]>, Option<&[u8]>) {
        (self.lower.as_deref(), self.upper.as_deref())
    }

    /// The lower end as a bound.
    pub fn lower_end(&self) -> Bound<&[u8]> {
        match &self.lower {
            None => Bound::Unbounded,
            Some(key) if self.lower_open => Bound::Excluded(key),
            Some(key) => Bound::Included(key),
        }
    }

    /// The upper end as a bound.
    pub fn upper_end(&self) -> Bound<&[u8]> {
        match &self.upper {
            None => Bound::Unbounded,
            Some(key) if self.upper_closed => Bound::Included(key),
            Some(key) => Bound::Excluded(key),
        }
    }

    /// Whether a cursor that goes backward ends at `key`.
    #[inline]
    pub fn is_before(&self, order: &Order, key: &[u8]) -> bool {
        self.lower.as_ref().is_some_and(|lower| match order.compare(key, lower) {
            Ordering::Less => true,
            Ordering::Equal => self.lower_open,
            Ordering::Greater => false,
        })
    }

    /// Whether a cursor that goes forward ends at `key`.
    #[inline]
    pub fn is_behind(&self, order: &Order, key: &[u8]) -> bool {
        self.upper.as_ref().is_some_and(|upper| match order.compare(key, upper) {
            Ordering::Less => false,
            Ordering::Equal => !self.upper_closed,
            Ordering::Greater => true,
        })
    }

    /// The internal key at which a cursor that reads at `seq` finds the first entry.
    pub(crate) fn begin(&self, seq: SeqNum) -> Option<(&[u8], Trailer)> {
        let trailer = if self.lower_open { Trailer::LAST } else { Trailer::seek(seq) };
        self.lower.as_deref().map(|lower| (lower, trailer))
    }

    /// The internal key at which a cursor going backward finds the last entry.
    pub(crate) fn end(&self) -> Option<(&[u8], Trailer)> {
        let trailer = if self.upper_closed { Trailer::LAST } else { Trailer::FIRST };
        self.upper.as_deref().map(|upper| (upper, trailer))
    }

    /// Whether a file with these smallest and largest user keys may hold a key of the range.
    pub(crate) fn meets(&self, order: &Order, smallest: &[u8], largest: &[u8]) -> bool {
        !self.is_before(order, largest) && !self.is_behind(order, smallest)
    }
}
