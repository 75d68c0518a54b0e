//! What memtables have in the ranges of files.

use ashlar_base::planted::{Bug, planted};
use ashlar_base::{Order, Result};
use ashlar_memtable::MemtableRep;
use ashlar_tree::external::Span;
use std::sync::Arc;

/// Whether one of the memtables has an entry, or a range deletion, in one of the ranges.
///
/// # Errors
/// `Corruption`: an entry of a memtable with checksums has changed in memory.
/// # Cost
/// A search in each memtable for each range.
pub fn memtables_overlap<'s>(
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
