//! Ranges of keys of one family, as the locks compare them.
//!
//! The order may be a user's comparator, which may panic. Under the locks of the table that must not leave a request half-way: where
//! the comparator panics, the two count as meeting.

use super::LockKey;
use ashlar_base::panics::contained;
use ashlar_base::{FamilyId, Order};
use ashlar_read::iter::KeyBounds;
use std::cmp::Ordering;
use std::fmt;

/// A range of keys of a family, in the order of the family.
#[derive(Clone, Debug)]
pub struct Span {
    family: FamilyId,
    order: Order,
    bounds: KeyBounds,
}

/// What is locked: a key, or a range.
#[derive(Clone, Debug)]
pub(super) enum What {
    Key(LockKey),
    Range(Span),
}

impl Span {
    /// The keys within `bounds` in a family that sorts by `order`.
    pub fn new(family: FamilyId, order: Order, bounds: KeyBounds) -> Span {
        Span { family, order, bounds }
    }

    /// The bounds.
    pub fn bounds(&self) -> &KeyBounds {
        &self.bounds
    }

    /// Whether no key is in the range.
    pub fn is_empty(&self) -> bool {
        let KeyBounds { lower, lower_open, upper, upper_closed } = &self.bounds;
        let (Some(lower), Some(upper)) = (lower, upper) else { return false };
        match self.order.compare(lower, upper) {
            Ordering::Less => false,
            Ordering::Equal => *lower_open || !upper_closed,
            Ordering::Greater => true,
        }
    }

    /// Whether the key is in the range.
    pub(super) fn holds(&self, key: &LockKey) -> bool {
        let Some((family, user_key)) = key.split_first_chunk() else { return false };
        let within =
            || !self.bounds.is_before(&self.order, user_key) && !self.bounds.is_behind(&self.order, user_key);
        u32::from_le_bytes(*family) == self.family.0 && contained(within).unwrap_or(true)
    }

    /// Whether some key may be in both.
    pub(super) fn meets(&self, what: &What) -> bool {
        match what {
            What::Key(key) => self.holds(key),
            What::Range(other) => {
                let meets = || !self.ends_before(other) && !other.ends_before(self);
                self.family == other.family && contained(meets).unwrap_or(true)
            }
        }
    }

    /// Whether every key of `what` is in the range.
    pub(super) fn covers(&self, what: &What) -> bool {
        let other = match what {
            What::Key(key) => return self.holds(key),
            What::Range(other) => other,
        };
        self.family == other.family && contained(|| self.covers_range(other)).unwrap_or(false)
    }

    fn covers_range(&self, other: &Span) -> bool {
        let (own, of) = (&self.bounds, &other.bounds);
        let begins = match (&own.lower, &of.lower) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(own_key), Some(key)) => match self.order.compare(own_key, key) {
                Ordering::Less => true,
                Ordering::Equal => !own.lower_open || of.lower_open,
                Ordering::Greater => false,
            },
        };
        let ends = match (&own.upper, &of.upper) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(own_key), Some(key)) => match self.order.compare(key, own_key) {
                Ordering::Less => true,
                Ordering::Equal => own.upper_closed || !of.upper_closed,
                Ordering::Greater => false,
            },
        };
        begins && ends
    }

    fn ends_before(&self, other: &Span) -> bool {
        let (Some(end), Some(begin)) = (&self.bounds.upper, &other.bounds.lower) else { return false };
        match self.order.compare(end, begin) {
            Ordering::Less => true,
            Ordering::Equal => !self.bounds.upper_closed || other.bounds.lower_open,
            Ordering::Greater => false,
        }
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_bounds(f, &self.bounds)
    }
}

/// Writes a range as Rust does: `'a'..'c'`. A begin that does not belong to the range is `(behind 'a')`.
pub(super) fn write_bounds(f: &mut fmt::Formatter<'_>, bounds: &KeyBounds) -> fmt::Result {
    match &bounds.lower {
        None => {}
        Some(key) if bounds.lower_open => write!(f, "(behind '{}')", key.escape_ascii())?,
        Some(key) => write!(f, "'{}'", key.escape_ascii())?,
    }
    match &bounds.upper {
        None => f.write_str(".."),
        Some(key) if bounds.upper_closed => write!(f, "..='{}'", key.escape_ascii()),
        Some(key) => write!(f, "..'{}'", key.escape_ascii()),
    }
}
