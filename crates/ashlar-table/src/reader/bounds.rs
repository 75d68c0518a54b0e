//! The first and the last key of a table.

use super::TableReader;
use crate::read_how::ReadHow;
use ashlar_base::{InternalIterator, InternalKey, InternalKeyBuf, Result, Trailer, ValueType};
use std::sync::Arc;

/// The smallest and the largest key of a table.
type Bounds = (InternalKeyBuf, InternalKeyBuf);

impl TableReader {
    /// The first and the last key of the table, range deletions included, with the sequence numbers that readers see. The end of
    /// a range deletion is a bound that excludes its key. `None`: the table has no entry. `check` sees the first and the last entry.
    ///
    /// # Errors
    /// `Corruption`, `Io`: the first or the last block cannot be read. The errors of `check`.
    pub fn bounds(self: &Arc<Self>, check: &dyn Fn(InternalKey<'_>) -> Result<()>) -> Result<Option<Bounds>> {
        let mut entries = self.iter(ReadHow { fill_cache: false, ..ReadHow::default() });
        entries.first()?;
        let first = entries.key().map(InternalKey::to_buf);
        entries.last()?;
        let mut bounds = first.zip(entries.key().map(InternalKey::to_buf));
        if let Some((first, last)) = &bounds {
            check(first.as_key())?;
            check(last.as_key())?;
        }
        for tombstone in self.range_tombstones().fragments() {
            let newest = tombstone.seqs().into_iter().max().unwrap_or_default();
            let begin = InternalKeyBuf::new(tombstone.begin, Trailer::new(newest, ValueType::RangeDelete));
            let end = InternalKeyBuf::new(tombstone.end, Trailer::RANGE_END);
            bounds = Some(match bounds {
                None => (begin, end),
                Some((first, last)) => {
                    let below = self.order.compare_internal(begin.as_key(), first.as_key()).is_lt();
                    let above = self.order.compare_internal(end.as_key(), last.as_key()).is_gt();
                    (if below { begin } else { first }, if above { end } else { last })
                }
            });
        }
        Ok(bounds)
    }
}
