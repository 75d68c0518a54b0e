//! The collector that marks tables with many deletions for a compaction, under RocksDB's name.
//!
//! 1. A table is marked if among some consecutive entries, as many as the window has, at least `trigger` are deletions; or if
//!    at least the share `ratio` of all its entries are.
//! 2. The size of the window is rounded up to a multiple of 128. The window moves in 128 steps of its size, so it has up to one
//!    step fewer entries.
//! 3. A table below `min_file_bytes` is not marked. What counts are the data blocks written before the entry that decides.
//! 4. Deletions and single deletions count. A range deletion counts as an entry, not as a deletion.
//!
//! Source: RocksDB `utilities/table_properties_collectors/compact_on_deletion_collector.cc` (behaviour, names).

use super::table_properties_collector::{
    CollectedEntry, CollectorContext, TablePropertiesCollector, TablePropertiesCollectorFactory,
    UserProperties,
};
use crate::error::Result;
use crate::key::ValueType;
use std::collections::VecDeque;

/// The steps in which the window passes its size.
const STEPS: usize = 128;

/// Marks tables with many deletions, as RocksDB's `CompactOnDeletionCollector` does.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct CompactOnDeletion {
    /// The number of consecutive entries that are looked at together; 0: only the ratio counts.
    pub window: usize,
    /// The number of deletions among them that marks a table.
    pub trigger: usize,
    /// The share of deletions among all entries that marks a table; outside of 0 to 1, or 0: only the window counts.
    pub ratio: f64,
    /// The bytes of data blocks that a table needs to be marked.
    pub min_file_bytes: u64,
}

impl CompactOnDeletion {
    /// The name, by which OPTIONS files and tables know the collector.
    pub const NAME: &'static str = "CompactOnDeletionCollector";

    /// Marks tables with `trigger` deletions among `window` consecutive entries.
    pub fn new(window: usize, trigger: usize) -> Self {
        CompactOnDeletion { window, trigger, ..Self::default() }
    }

    /// Sets [`CompactOnDeletion::ratio`].
    #[must_use]
    pub fn ratio(self, ratio: f64) -> Self {
        CompactOnDeletion { ratio, ..self }
    }

    /// Sets [`CompactOnDeletion::min_file_bytes`].
    #[must_use]
    pub fn min_file_bytes(self, min_file_bytes: u64) -> Self {
        CompactOnDeletion { min_file_bytes, ..self }
    }

    fn counts_ratio(&self) -> bool {
        self.ratio > 0.0 && self.ratio <= 1.0
    }
}

impl TablePropertiesCollectorFactory for CompactOnDeletion {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn create(&self, _: &CollectorContext<'_>) -> Option<Box<dyn TablePropertiesCollector>> {
        let acts = self.window > 0 || self.counts_ratio();
        acts.then(|| Box::new(Deletions::new(*self)) as _)
    }
}

/// The deletions of one table.
#[derive(Debug)]
struct Deletions {
    limits: CompactOnDeletion,
    /// The entries of a step.
    step: usize,
    /// Deletions of the window's steps, the newest step last.
    steps: VecDeque<usize>,
    /// Entries of the newest step.
    entries_of_step: usize,
    /// Deletions in the window.
    within: usize,
    /// The most deletions that the window has had.
    most: usize,
    entries: u64,
    deletions: u64,
    file_bytes: u64,
    marked: bool,
}

impl Deletions {
    fn new(limits: CompactOnDeletion) -> Self {
        Deletions {
            limits,
            step: limits.window.div_ceil(STEPS),
            steps: VecDeque::from([0]),
            entries_of_step: 0,
            within: 0,
            most: 0,
            entries: 0,
            deletions: 0,
            file_bytes: 0,
            marked: false,
        }
    }

    fn slide(&mut self, deletes: bool) {
        if self.entries_of_step == self.step {
            if self.steps.len() == STEPS {
                self.within -= self.steps.pop_front().unwrap_or(0);
            }
            self.steps.push_back(0);
            self.entries_of_step = 0;
        }
        self.entries_of_step += 1;
        if let Some(newest) = self.steps.back_mut().filter(|_| deletes) {
            *newest += 1;
            self.within += 1;
            self.most = self.most.max(self.within);
        }
    }
}

impl TablePropertiesCollector for Deletions {
    fn add(&mut self, entry: &CollectedEntry<'_>) -> Result<()> {
        if self.marked {
            return Ok(());
        }
        let deletes = matches!(
            entry.kind,
            ValueType::Delete | ValueType::SingleDelete | ValueType::DeleteWithTimestamp
        );
        self.entries += 1;
        self.deletions += u64::from(deletes);
        self.file_bytes = entry.file_bytes;
        if self.step > 0 {
            self.slide(deletes);
            self.marked = self.most >= self.limits.trigger && self.file_bytes >= self.limits.min_file_bytes;
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<UserProperties> {
        let is_large = self.entries > 0 && self.file_bytes >= self.limits.min_file_bytes;
        if self.limits.counts_ratio() && is_large {
            self.marked |= self.deletions as f64 / self.entries as f64 >= self.limits.ratio;
        }
        Ok(UserProperties::new())
    }

    fn needs_compaction(&self) -> bool {
        self.marked
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::SeqNum;
    use crate::splitmix;

    fn marks(limits: CompactOnDeletion, kinds: &[ValueType], bytes_per_entry: u64) -> bool {
        let context = CollectorContext::new(None, "", None);
        let Some(mut collector) = limits.create(&context) else { return false };
        for (at, kind) in (0..).zip(kinds) {
            let entry = CollectedEntry::new(b"k", b"", *kind, SeqNum::ZERO, at * bytes_per_entry);
            collector.add(&entry).unwrap();
        }
        assert!(collector.finish().unwrap().is_empty());
        collector.needs_compaction()
    }

    fn kinds(text: &str) -> Vec<ValueType> {
        let kind = |c| match c {
            'd' => ValueType::Delete,
            's' => ValueType::SingleDelete,
            't' => ValueType::DeleteWithTimestamp,
            'r' => ValueType::RangeDelete,
            'm' => ValueType::Merge,
            _ => ValueType::Put,
        };
        text.chars().map(kind).collect()
    }

    #[test]
    fn the_window_counts_neighbours() {
        let limits = CompactOnDeletion::new(128, 3);
        assert!(marks(limits, &kinds("pdpspt"), 0));
        assert!(!marks(limits, &kinds("pdpspm"), 0) && !marks(limits, &kinds("drrrrs"), 0));
        let apart = |gap: usize| format!("dd{}d", "p".repeat(gap));
        assert!(marks(limits, &kinds(&apart(125)), 0) && !marks(limits, &kinds(&apart(126)), 0));
        assert!(marks(CompactOnDeletion::new(1, 1), &kinds("pppd"), 0));
        // 1 to 128 entries are one window of 128; 129 are one of 256.
        assert!(marks(CompactOnDeletion::new(7, 3), &kinds(&apart(125)), 0));
        assert!(marks(CompactOnDeletion::new(129, 3), &kinds(&apart(250)), 0));
    }

    #[test]
    fn the_ratio_counts_all_entries() {
        let half = CompactOnDeletion::default().ratio(0.5);
        assert!(marks(half, &kinds("pdpd"), 0) && !marks(half, &kinds("pdpdp"), 0));
        assert!(marks(half, &kinds("drdr"), 0) && !marks(half, &kinds("drdrr"), 0));
        for off in [0.0, -1.0, 1.5, f64::NAN] {
            assert!(!marks(CompactOnDeletion::default().ratio(off), &kinds("dddd"), 0), "{off}");
        }
        assert!(marks(CompactOnDeletion::default().ratio(1.0), &kinds("dddd"), 0));
        assert!(!marks(CompactOnDeletion::default(), &kinds("dddd"), 0));
        assert!(!marks(half, &[], 0), "a table without entries");
    }

    #[test]
    fn small_tables_are_not_marked() {
        let limits = CompactOnDeletion::new(128, 2).min_file_bytes(100);
        assert!(!marks(limits, &kinds("dddddddddd"), 10), "90 bytes before the last entry");
        assert!(marks(limits, &kinds("ddppppppppp"), 10), "marked once the table is large enough");
        let ratio = CompactOnDeletion::default().ratio(0.1).min_file_bytes(100);
        assert!(!marks(ratio, &kinds("dddddddddd"), 10) && marks(ratio, &kinds("ddddddddddd"), 10));
    }

    /// Against the plain count over every window that begins at a step.
    #[test]
    fn random_tables_are_marked_as_a_plain_count_says() {
        let mut state = 7;
        let mut below = |n: u64| usize::try_from(splitmix::next(&mut state) % n).unwrap();
        let mut marked = 0;
        for round in 0..500 {
            let share = 1 + below(6) as u64;
            let table: Vec<_> = (0..below(1500)).map(|_| if below(share) == 0 { 'd' } else { 'p' }).collect();
            let (window, trigger) = (1 + below(400), 1 + below(200));
            let step = window.div_ceil(STEPS);
            let text: String = table.iter().collect();
            let steps: Vec<usize> =
                table.chunks(step).map(|s| s.iter().filter(|c| **c == 'd').count()).collect();
            let most = (0..steps.len()).map(|end| steps[end.saturating_sub(STEPS - 1)..=end].iter().sum());
            let expected = most.max().is_some_and(|most: usize| most >= trigger);
            assert_eq!(marks(CompactOnDeletion::new(window, trigger), &kinds(&text), 0), expected, "{round}");
            marked += usize::from(expected);
        }
        assert!((100..450).contains(&marked), "{marked}");
    }
}
