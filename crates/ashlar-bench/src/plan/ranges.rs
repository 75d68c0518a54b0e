//! Range tombstones among the puts of a benchmark.
//!
//! Source: RocksDB `tools/db_bench_tool.cc` (the flags and when a tombstone is due).

use crate::flags::Flags;
use crate::keys::KeyShape;

/// When a thread writes a range tombstone after a put, and which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ranges {
    /// Puts before the first count.
    after: u64,
    /// Puts from one tombstone to the next.
    every: u64,
    /// Tombstones at most.
    most: u64,
    /// Numbers of keys that a tombstone covers.
    pub(crate) width: u64,
    /// Whether each covered key is deleted by itself instead.
    pub(crate) expanded: bool,
}

impl Ranges {
    /// What the flags ask for; `None`: no tombstones.
    ///
    /// # Errors
    /// The keys do not sort like their numbers.
    pub(super) fn of(flags: &Flags) -> Result<Option<Ranges>, String> {
        let ranges = Ranges {
            after: flags.writes_before_delete_range,
            every: flags.writes_per_range_tombstone,
            most: flags.max_num_range_tombstones,
            width: flags.range_tombstone_width,
            expanded: flags.expand_range_tombstones,
        };
        let wanted = ranges.every > 0 && ranges.most > 0 && ranges.width > 0;
        let sorted = !matches!(flags.key_shape, KeyShape::Uuid | KeyShape::Url) && flags.keys_per_prefix == 0;
        match (wanted, sorted) {
            (true, false) => Err("ERROR: range tombstones need keys that sort like their numbers: \
                                  --key_shape integer, be8, decimal or prefix:N, and no --keys_per_prefix"
                .into()),
            (wanted, _) => Ok(wanted.then_some(ranges)),
        }
    }

    /// Whether one is due after the first `written` puts of a thread.
    #[inline]
    pub(crate) fn due(&self, written: u64) -> bool {
        let since = written.saturating_sub(self.after);
        since > 0 && since.is_multiple_of(self.every) && since / self.every <= self.most
    }
}
