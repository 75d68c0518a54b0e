//! The key ranges of scans.

use ashlar_base::{Error, Order, Result};
use ashlar_read::iter::KeyBounds;
use std::ops::{Bound, Range, RangeBounds, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

/// A range of keys, in the order of the family that is read: `..`, `a..b`, `a..=b`, `a..`, `..b`, `..=b`, and pairs of
/// [`Bound`]. Keys are anything that reads as bytes.
///
/// Both ends of `a..b` have one type. Byte string literals of different lengths have different types: write `"a".."ab"`,
/// `&b"a"[..]..&b"ab"[..]`, or a pair of bounds.
pub trait KeyRange {
    /// The lower and the upper end, as bounds.
    fn bounds(&self) -> (Bound<Vec<u8>>, Bound<Vec<u8>>);
}

fn owned<K: AsRef<[u8]>>(bound: Bound<&K>) -> Bound<Vec<u8>> {
    bound.map(|key| key.as_ref().to_vec())
}

fn bounds_of<K: AsRef<[u8]>>(range: &impl RangeBounds<K>) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
    (owned(range.start_bound()), owned(range.end_bound()))
}

impl KeyRange for RangeFull {
    fn bounds(&self) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
        (Bound::Unbounded, Bound::Unbounded)
    }
}

impl<K: AsRef<[u8]>> KeyRange for Range<K> {
    fn bounds(&self) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
        bounds_of(self)
    }
}

impl<K: AsRef<[u8]>> KeyRange for RangeInclusive<K> {
    fn bounds(&self) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
        bounds_of(self)
    }
}

impl<K: AsRef<[u8]>> KeyRange for RangeFrom<K> {
    fn bounds(&self) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
        bounds_of(self)
    }
}

impl<K: AsRef<[u8]>> KeyRange for RangeTo<K> {
    fn bounds(&self) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
        bounds_of(self)
    }
}

impl<K: AsRef<[u8]>> KeyRange for RangeToInclusive<K> {
    fn bounds(&self) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
        bounds_of(self)
    }
}

impl<A: AsRef<[u8]>, B: AsRef<[u8]>> KeyRange for (Bound<A>, Bound<B>) {
    fn bounds(&self) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
        (owned(self.0.as_ref()), owned(self.1.as_ref()))
    }
}

/// The keys of one scan.
#[derive(Clone, Debug)]
pub(crate) struct Keys(pub(crate) KeyBounds);

impl Keys {
    pub(crate) fn of(range: &impl KeyRange) -> Self {
        let (lower, upper) = range.bounds();
        let (lower, lower_open) = match lower {
            Bound::Unbounded => (None, false),
            Bound::Included(key) => (Some(key), false),
            Bound::Excluded(key) => (Some(key), true),
        };
        let (upper, upper_closed) = match upper {
            Bound::Unbounded => (None, false),
            Bound::Included(key) => (Some(key), true),
            Bound::Excluded(key) => (Some(key), false),
        };
        Keys(KeyBounds { lower, lower_open, upper, upper_closed })
    }

    /// The range without keys.
    pub(crate) fn none() -> Self {
        let end = || Some(Vec::new());
        Keys(KeyBounds { lower: end(), lower_open: false, upper: end(), upper_closed: false })
    }

    /// # Errors
    /// `InvalidArgument`: the range begins after its end in this order.
    pub(crate) fn check(&self, order: &Order) -> Result<()> {
        match (&self.0.lower, &self.0.upper) {
            (Some(lower), Some(upper)) if order.compare(lower, upper).is_gt() => {
                let (from, to) = (lower.escape_ascii(), upper.escape_ascii());
                let text =
                    format!("the range begins at '{from}', after its end '{to}' in the family's order");
                Err(Error::invalid(text).hint("Give the smaller key first; a scan goes backward with rev()"))
            }
            _ => Ok(()),
        }
    }

    /// The keys of this range that begin with `prefix`.
    ///
    /// # Errors
    /// `InvalidArgument`: the order is a [`crate::Comparator`], under which keys with one prefix need not be
    /// neighbours.
    pub(crate) fn narrowed(mut self, prefix: &[u8], order: &Order, family: &str) -> Result<Self> {
        let (behind, range) = (behind_prefix(prefix), &mut self.0);
        match order {
            Order::Bytewise => {
                if range.lower.as_deref().is_none_or(|lower| lower < prefix) {
                    (range.lower, range.lower_open) = (Some(prefix.to_vec()), false);
                }
                if let Some(behind) = behind
                    && range.upper.as_ref().is_none_or(|upper| *upper >= behind)
                {
                    (range.upper, range.upper_closed) = (Some(behind), false);
                }
            }
            // Larger keys come first.
            Order::ReverseBytewise => {
                if let Some(behind) = behind
                    && range.lower.as_ref().is_none_or(|lower| *lower >= behind)
                {
                    (range.lower, range.lower_open) = (Some(behind), true);
                }
                if range.upper.as_deref().is_none_or(|upper| upper < prefix) {
                    (range.upper, range.upper_closed) = (Some(prefix.to_vec()), true);
                }
            }
            Order::Custom(comparator) => {
                let name = comparator.name();
                let text = format!("prefix() in family {family:?}, whose order is the comparator {name:?}");
                return Err(Error::invalid(text).hint("Scan a range, and test each key for the prefix"));
            }
        }
        Ok(self)
    }
}

/// The first key in byte order after all keys that begin with `prefix`. A prefix of 0xff bytes only has none.
fn behind_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|&byte| byte != 0xff)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end)
}
