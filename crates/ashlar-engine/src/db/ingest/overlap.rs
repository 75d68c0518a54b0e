//! Ranges of keys, and what has entries in them: memtables and levels.

use ashlar_base::planted::{Bug, planted};
use ashlar_base::{InternalIterator, InternalKeyBuf, Level, Order, Result, Trailer};
use ashlar_memtable::MemtableRep;
use ashlar_table::ReadHow;
use ashlar_tree::version::{FileMeta, Version};
use std::cmp::Ordering;
use std::sync::Arc;

/// The range of user keys of a file.
#[derive(Clone, Debug)]
pub(super) struct Span {
    pub(super) smallest: Vec<u8>,
    pub(super) largest: Vec<u8>,
    /// The largest key is the end of a range deletion, and outside.
    pub(super) exclusive: bool,
}

impl Span {
    /// Whether all of this range is before `key`.
    fn ends_before(&self, order: &Order, key: &[u8]) -> bool {
        match order.compare(&self.largest, key) {
            Ordering::Less => true,
            Ordering::Equal => self.exclusive,
            Ordering::Greater => false,
        }
    }

    /// Whether both ranges have a key in common.
    pub(super) fn overlaps(&self, order: &Order, other: &Span) -> bool {
        !self.ends_before(order, &other.smallest) && !other.ends_before(order, &self.smallest)
    }

    /// Whether the range has a key in `begin..end`.
    fn overlaps_range(&self, order: &Order, begin: &[u8], end: &[u8]) -> bool {
        !self.ends_before(order, begin) && order.compare(&self.smallest, end).is_lt()
    }

    /// Whether the range has a key in common with the bounds of `file`.
    fn overlaps_file(&self, order: &Order, file: &FileMeta) -> bool {
        !self.ends_before(order, file.smallest().user_key()) && !file.ends_before(order, &self.smallest)
    }

    /// Whether the run has an entry in the range.
    fn holds_entry(&self, order: &Order, entries: &mut dyn InternalIterator) -> Result<bool> {
        entries.seek(InternalKeyBuf::new(&self.smallest, Trailer::FIRST).as_key())?;
        Ok(entries.key().is_some_and(|key| !self.ends_before(order, key.user_key())))
    }
}

/// Whether one of the memtables has an entry, or a range deletion, in one of the ranges.
///
/// # Errors
/// `Corruption`: an entry of a memtable with checksums has changed in memory.
/// # Cost
/// A search in each memtable for each range.
pub(super) fn memtables_overlap<'s>(
    order: &Order,
    memtables: &[Arc<dyn MemtableRep>],
    spans: impl Iterator<Item = &'s Span>,
) -> Result<bool> {
    let used: Vec<_> = memtables.iter().filter(|memtable| !memtable.is_empty()).collect();
    if used.is_empty() || planted(Bug::IngestedBelowMemtables) {
        return Ok(false);
    }
    let tombstones: Vec<_> = used.iter().filter_map(|memtable| memtable.range_tombstones()).collect();
    for span in spans {
        for memtable in &used {
            if span.holds_entry(order, &mut *Arc::clone(memtable).iter())? {
                return Ok(true);
            }
        }
        let mut fragments =
            tombstones.iter().flat_map(|parts| parts.iter()).flat_map(|part| part.fragments());
        if fragments.any(|piece| span.overlaps_range(order, piece.begin, piece.end)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether the bounds of no table of the level overlap the range.
pub(super) fn fits(version: &Version, level: Level, span: &Span) -> bool {
    let tables = version.overlapping(level, &span.smallest, &span.largest);
    !tables.iter().any(|file| span.overlaps_file(&version.order, file))
}

/// Whether a table of the level has an entry, or a range deletion, in the range. A table that cannot be read counts as if it
/// had one.
///
/// # Cost
/// Reads a block of each table whose bounds overlap the range.
pub(super) fn level_overlaps(version: &Version, level: Level, span: &Span) -> bool {
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
