//! The range of keys of an external file, and the tables of a version that overlap it.

use crate::version::{FileMeta, Version};
use ashlar_base::{InternalIterator, InternalKeyBuf, Level, Order, Result, Trailer};
use ashlar_table::ReadHow;
use std::cmp::Ordering;

/// The range of user keys of a file.
#[derive(Clone, Debug)]
pub struct Span {
    /// The first key.
    pub smallest: Vec<u8>,
    /// The last key.
    pub largest: Vec<u8>,
    /// The largest key is the end of a range deletion, and outside.
    pub exclusive: bool,
}

impl Span {
    /// Whether all of this range is before `key`.
    pub fn ends_before(&self, order: &Order, key: &[u8]) -> bool {
        match order.compare(&self.largest, key) {
            Ordering::Less => true,
            Ordering::Equal => self.exclusive,
            Ordering::Greater => false,
        }
    }

    /// Whether both ranges have a key in common.
    pub fn overlaps(&self, order: &Order, other: &Span) -> bool {
        !self.ends_before(order, &other.smallest) && !other.ends_before(order, &self.smallest)
    }

    /// Whether the range has a key in `begin..end`.
    pub fn overlaps_range(&self, order: &Order, begin: &[u8], end: &[u8]) -> bool {
        !self.ends_before(order, begin) && order.compare(&self.smallest, end).is_lt()
    }

    /// Whether the range has a key in common with the bounds of `file`.
    fn overlaps_file(&self, order: &Order, file: &FileMeta) -> bool {
        !self.ends_before(order, file.smallest().user_key()) && !file.ends_before(order, &self.smallest)
    }

    /// Whether the run has an entry in the range.
    ///
    /// # Errors
    /// Those of the run.
    pub fn holds_entry(&self, order: &Order, entries: &mut dyn InternalIterator) -> Result<bool> {
        entries.seek(InternalKeyBuf::new(&self.smallest, Trailer::FIRST).as_key())?;
        Ok(entries.key().is_some_and(|key| !self.ends_before(order, key.user_key())))
    }
}

/// Whether the bounds of no table of the level overlap the range.
pub fn fits(version: &Version, level: Level, span: &Span) -> bool {
    let tables = version.overlapping(level, &span.smallest, &span.largest);
    !tables.iter().any(|file| span.overlaps_file(&version.order, file))
}

/// Whether a table of the level has an entry, or a range deletion, in the range. A table that cannot be read counts as if it
/// had one.
///
/// # Cost
/// Reads a block of each table whose bounds overlap the range.
pub fn level_overlaps(version: &Version, level: Level, span: &Span) -> bool {
    let tables = version.overlapping(level, &span.smallest, &span.largest);
    let tables = tables.iter().filter(|file| span.overlaps_file(&version.order, file));
    tables.into_iter().any(|file| table_overlaps(version, file, span).unwrap_or(true))
}

fn table_overlaps(version: &Version, file: &FileMeta, span: &Span) -> Result<bool> {
    let (order, table) = (&version.order, version.table_for_pass(file)?);
    let mut fragments = table.range_tombstones().fragments();
    if fragments.any(|piece| span.overlaps_range(order, piece.begin, piece.end)) {
        return Ok(true);
    }
    span.holds_entry(order, &mut table.iter(ReadHow { fill_cache: false, ..ReadHow::default() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(smallest: &str, largest: &str, exclusive: bool) -> Span {
        Span { smallest: smallest.into(), largest: largest.into(), exclusive }
    }

    #[test]
    fn an_exclusive_end_is_outside() {
        let order = Order::Bytewise;
        let overlap = |a: &Span, b: &Span| {
            assert_eq!(a.overlaps(&order, b), b.overlaps(&order, a));
            a.overlaps(&order, b)
        };
        assert!(overlap(&span("a", "c", false), &span("c", "d", false)));
        assert!(!overlap(&span("a", "c", true), &span("c", "d", false)));
        assert!(overlap(&span("a", "c", true), &span("bz", "d", true)));
        assert!(!overlap(&span("a", "b", false), &span("c", "d", false)));
        assert!(span("b", "d", false).overlaps_range(&order, b"a", b"c"));
        assert!(!span("c", "d", false).overlaps_range(&order, b"a", b"c"));
        assert!(span("b", "c", false).overlaps_range(&order, b"c", b"d"));
        assert!(!span("b", "c", true).overlaps_range(&order, b"c", b"d"));
    }
}
