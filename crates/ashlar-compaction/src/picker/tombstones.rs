//! Compactions that remove tombstones. They are not urgent and run when every level is within its limits.
//!
//! 1. A table goes down if at least half of its entries are deletions, because scans are slow until the deletions meet
//!    the deleted entries. So does a table whose range tombstones cover more bytes below than its own size.
//! 2. A table with nothing beneath it that still holds tombstones or hidden versions was written while a snapshot
//!    needed them. When no snapshot needs them, it is rewritten in its level.
//! 3. Each such compaction takes a table one level down, or leaves a table that is *spent*, so this ends.
//!
//! Only tables whose entries were counted are considered: those that were written or read since the open.
//!
//! Source: RocksDB `db/version_set.cc` (`ComputeBottommostFilesMarkedForCompaction`),
//! `utilities/table_properties_collectors/compact_on_deletion_collector.cc`; Pebble `compaction_picker.go` (tombstone
//! density, elision-only compactions). The thresholds are this engine's own.

use super::finish::{complete, from_level};
use super::shape::{Shape, any_busy, bytes};
use crate::plan::{Compaction, Reason, Running, UserRange};
use ashlar_base::SeqNum;
use ashlar_options::CompactionOptions;
use ashlar_tree::version::{FileMeta, TableCounts};
use std::cmp::Reverse;

/// A bottommost table is rewritten if one entry in this many is garbage.
const GARBAGE_SHARE: u64 = 16;

/// The next tombstone compaction, if one is due and can start now; `oldest` is the oldest live snapshot. Cost: a walk
/// over all tables, with a search below for each that holds range tombstones.
pub fn pick_tombstones(
    shape: &Shape<'_>,
    options: &CompactionOptions,
    running: &[Running],
    oldest: Option<SeqNum>,
) -> Option<Compaction> {
    go_down(shape, options, running).or_else(|| rewrite_bottom(shape, options, running, oldest))
}

/// The smallest sequence at which the rewrite of a bottommost table becomes worthwhile, once every snapshot is at or
/// above that sequence.
pub fn awaited_snapshot(shape: &Shape<'_>, oldest: Option<SeqNum>) -> Option<SeqNum> {
    let oldest = oldest.filter(|_| !shape.behind)?;
    let at_bottom = (1..shape.levels.len()).flat_map(|level| {
        let garbage = shape.level(level).iter().filter(|f| has_garbage(shape, f));
        garbage.filter(move |f| lies_lowest(shape, level, f))
    });
    at_bottom.map(|f| f.file.largest_seq).filter(|seq| *seq > oldest).min()
}

fn go_down(shape: &Shape<'_>, options: &CompactionOptions, running: &[Running]) -> Option<Compaction> {
    (1..shape.last_level()).find_map(|level| {
        let mut heavy: Vec<(Reverse<u64>, usize)> = (0..)
            .zip(shape.level(level))
            .filter(|(_, f)| !f.is_compacting())
            .filter_map(|(at, f)| Some((Reverse(weight(shape, level, f)?), at)))
            .collect();
        heavy.sort_unstable();
        heavy.into_iter().find_map(|(_, at)| {
            let inputs = shape.clean_cut(level, at..at + 1);
            from_level(shape, options, running, level, inputs, Reason::Tombstones)
        })
    })
}

/// The benefit of taking a table down, in 1024ths; `None` if it is not worth a compaction.
fn weight(shape: &Shape<'_>, level: usize, file: &FileMeta) -> Option<u64> {
    let c = file.counts.get()?;
    if c.deletions == 0 || lies_lowest(shape, level, file) {
        return None;
    }
    let density = c.deletions.saturating_mul(1024) / c.entries.max(1);
    let covered = if c.range_deletions > 0 { covered_below(shape, level, file) } else { 0 };
    let freed = covered.saturating_mul(1024) / file.size().max(1);
    (is_dense(c) || freed >= 1024).then_some(density.max(freed))
}

/// At least half of the entries are deletions.
pub(super) fn is_dense(c: &TableCounts) -> bool {
    c.deletions > 0 && c.deletions >= c.entries.div_ceil(2)
}

/// Bytes of the files of the next level that lie wholly within a range tombstone of the table. Known only if the table
/// is open.
fn covered_below(shape: &Shape<'_>, level: usize, file: &FileMeta) -> u64 {
    let Some(table) = file.open_table() else { return 0 };
    let within = |t: ashlar_base::range_del::FragmentRef<'_>| {
        let range = UserRange { smallest: t.begin, largest: t.end, exclusive: true };
        let files = shape.slice(level + 1, shape.overlap(level + 1, &range));
        let inside = |f: &&std::sync::Arc<FileMeta>| {
            shape.order.compare(t.begin, f.smallest().user_key()).is_le() && f.ends_before(shape.order, t.end)
        };
        files.iter().filter(inside).map(|f| f.size()).fold(0, u64::saturating_add)
    };
    table.range_tombstones().fragments().map(within).fold(0, u64::saturating_add)
}

fn rewrite_bottom(
    shape: &Shape<'_>,
    options: &CompactionOptions,
    running: &[Running],
    oldest: Option<SeqNum>,
) -> Option<Compaction> {
    if shape.behind {
        // Every tombstone stays.
        return None;
    }
    (1..shape.levels.len()).find_map(|level| {
        (0..).zip(shape.level(level)).find_map(|(at, file)| {
            if !has_garbage(shape, file) || !lies_lowest(shape, level, file) {
                return None;
            }
            let files = shape.slice(level, shape.clean_cut(level, at..at + 1));
            // All files of the cut: otherwise the output would not be spent.
            let unneeded = oldest.is_none_or(|oldest| files.iter().all(|f| f.file.largest_seq <= oldest));
            if !unneeded || any_busy(files) || bytes(files) > options.compaction_bytes() {
                return None;
            }
            complete(shape, options, running, (level, files.to_vec()), (level, 0..0), Reason::Bottommost)
        })
    })
}

/// Whether a rewrite in the bottommost level would shrink the file noticeably.
fn has_garbage(shape: &Shape<'_>, file: &FileMeta) -> bool {
    // Tombstones with timestamps are never dropped.
    let Some(c) = file.counts.get().filter(|c| !c.spent && shape.order.timestamp_len() == 0) else {
        return false;
    };
    let garbage = c.deletions.saturating_add(c.older);
    garbage > 0 && (c.range_deletions > 0 || garbage >= c.entries / GARBAGE_SHARE)
}

/// Whether no deeper level has a file in the range of the table.
fn lies_lowest(shape: &Shape<'_>, level: usize, file: &FileMeta) -> bool {
    let range = UserRange::of(file);
    (level + 1..shape.levels.len()).all(|below| shape.overlap(below, &range).is_empty())
}
