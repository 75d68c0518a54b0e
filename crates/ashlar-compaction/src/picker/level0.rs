//! Level 0: compaction into the base level, and merging within level 0 while that is not possible.
//!
//! 1. One compaction at a time takes files down. It takes all files that overlap each other, so no older version stays
//!    above.
//! 2. While it runs, or while the base level is claimed, new files accumulate. The newest of them may then be merged
//!    into one that stays in level 0 (*within*). That frees no space, but reads have fewer files to search.
//! 3. A compaction down also rewrites overlapping bytes of the base level. So it waits for an expected table, because
//!    more input makes that rewrite cheaper per byte. With more than half of level 0's bytes in the base level, it
//!    waits up to twice the trigger. With more than four times as many, it waits up to three fifths of the slowdown
//!    threshold. The rest of the threshold is for tables that come while the compaction runs.
//! 4. A merge within level 0 takes an unbroken sequence of its newest files, so that the result has their position: its
//!    epoch number is the smallest of theirs. The result is one file, and any key may lie beneath it. Files that were
//!    ingested beside a memtable wait for its flush, and the sequence numbers of the result reach among no other's.
//!
//! Source: RocksDB `db/compaction/compaction_picker_level.cc` (`PickIntraL0Compaction`), `compaction_picker.cc`
//! (`FindIntraL0Compaction`).

use super::finish::{complete, planned};
use super::scores::level0_score;
use super::shape::{Shape, any_busy, as_level};
use crate::plan::{Action, Compaction, Reason, Running, UserRange, user_range};
use ashlar_options::CompactionOptions;
use ashlar_tree::version::FileMeta;
use std::sync::Arc;

/// The smallest number of files that are merged within level 0.
const WITHIN_MIN: usize = 4;

/// The due compaction of level 0: into the base level or, while that is not possible, within level 0.
pub(super) fn pick_level0(
    shape: &Shape<'_>,
    options: &CompactionOptions,
    running: &[Running],
    base: usize,
) -> Option<Compaction> {
    if waits_for_more(shape, options, base) {
        return None;
    }
    pick_down(shape, options, running, base).or_else(|| pick_within(shape, options, running))
}

/// Whether a compaction of level 0 is due and only waits for an expected table.
pub fn waits_for_table(shape: &Shape<'_>, options: &CompactionOptions) -> bool {
    if !shape.arriving || shape.level(0).is_empty() {
        return false;
    }
    let targets = shape.targets(options);
    level0_score(shape, &targets, options) >= 1.0 && waits_for_more(shape, options, targets.base)
}

/// Rule 3.
fn waits_for_more(shape: &Shape<'_>, options: &CompactionOptions, base: usize) -> bool {
    let (tables, level0_bytes) = (shape.level(0).len(), shape.bytes(0));
    let twice = options.l0_trigger.saturating_mul(2).min(options.l0_slowdown);
    let near_slowdown = options.l0_slowdown / 5 * 3;
    let costs_more_than = |bytes: u64| shape.bytes(base) > bytes;
    shape.arriving
        && ((tables < twice && costs_more_than(level0_bytes / 2))
            || (tables < near_slowdown && costs_more_than(level0_bytes.saturating_mul(4))))
}

fn pick_down(
    shape: &Shape<'_>,
    options: &CompactionOptions,
    running: &[Running],
    base: usize,
) -> Option<Compaction> {
    let files = shape.level(0);
    if any_busy(files) {
        return None;
    }
    let bottommost = base == shape.last_level() && !shape.behind;
    let movable =
        if shape.keeps_codec(0, base, bottommost) { movable_from_level0(shape, base) } else { Vec::new() };
    // Tables that go to another directory are copied, not moved. Copying several tables makes one, which may overlap
    // tables between them.
    let moved = !movable.is_empty()
        && (movable.len() == files.len() || !shape.level(base).is_empty())
        && shape.keeps_place(&movable, base, options)
        && shape.keeps_partitions(&movable, base, false);
    let inputs = if moved { movable } else { level0_group(shape, files.last()?) };
    // Moved files overlap nothing below, but the range from the first to the last of them may.
    let below = if moved { 0..0 } else { shape.meeting(base, &inputs) };
    let mut plan = complete(shape, options, running, (0, inputs), (base, below), Reason::Level0)?;
    if moved {
        plan.action = Action::Move;
    }
    Some(plan)
}

/// The oldest files of level 0 that overlap neither each other nor the base level: moving them keeps every newer
/// version above every older one. Newest first.
fn movable_from_level0(shape: &Shape<'_>, base: usize) -> Vec<Arc<FileMeta>> {
    let mut chosen: Vec<Arc<FileMeta>> = Vec::new();
    for file in shape.level(0).iter().rev() {
        let below = shape.overlap(base, &UserRange::of(file));
        if !below.is_empty() || chosen.iter().any(|c| shape.overlaps(c, file)) {
            break;
        }
        chosen.push(Arc::clone(file));
    }
    chosen.reverse();
    chosen
}

/// A compaction of a file of level 0, with all that overlap the group, into the level `output`.
pub(super) fn take_group(
    shape: &Shape<'_>,
    options: &CompactionOptions,
    running: &[Running],
    file: &Arc<FileMeta>,
    output: usize,
    reason: Reason,
) -> Option<Compaction> {
    if any_busy(shape.level(0)) {
        return None;
    }
    let inputs = level0_group(shape, file);
    let below = shape.meeting(output, &inputs);
    complete(shape, options, running, (0, inputs), (output, below), reason)
}

/// `seed` and every file of level 0 that overlaps the group, directly or through other files. Newest first.
pub(super) fn level0_group(shape: &Shape<'_>, seed: &Arc<FileMeta>) -> Vec<Arc<FileMeta>> {
    let mut within = UserRange::of(seed);
    let mut rounds = shape.level(0).len();
    loop {
        let level0 = shape.level(0).iter();
        let group: Vec<_> = level0.filter(|f| within.meets(shape.order, &UserRange::of(f))).collect();
        let Some(wider) = user_range(shape.order, group.iter().copied()) else { return Vec::new() };
        // Each round except the last adds a file, unless the comparator contradicts itself.
        if wider == within || rounds == 0 {
            return group.into_iter().cloned().collect();
        }
        within = wider;
        rounds -= 1;
    }
}

/// Merges the newest files of level 0 into one, as long as each further file lowers the bytes written per file that
/// disappears.
pub(super) fn pick_within(
    shape: &Shape<'_>,
    options: &CompactionOptions,
    running: &[Running],
) -> Option<Compaction> {
    let among = shape.level(0).iter().take_while(|f| shape.is_among_unflushed(f)).count();
    let files = shape.level(0).get(among..)?;
    if files.len() < options.l0_trigger.saturating_add(2) {
        return None;
    }
    let mut total = files.first()?.size();
    let mut per_file = u64::MAX;
    let mut count = 0;
    for (gone, file) in (1..).zip(files.iter().skip(1).take_while(|f| !f.is_compacting())) {
        total = total.saturating_add(file.size());
        if total / gone > per_file || total > options.compaction_bytes() {
            break;
        }
        per_file = total / gone;
        count = usize::try_from(gone).unwrap_or(usize::MAX).saturating_add(1);
    }
    // Files of one epoch number stay together: a file left behind would overlap the result in the same epoch.
    let splits = |count: usize| match (files.get(count.wrapping_sub(1)), files.get(count)) {
        (Some(a), Some(b)) => a.file.epoch == b.file.epoch && a.file.epoch != 0,
        _ => false,
    };
    while splits(count) {
        count -= 1;
    }
    let row = files.get(..count)?;
    if count < WITHIN_MIN || any_busy(row) || !shape.stays_in_order(row) {
        return None;
    }
    let inputs = vec![(as_level(0), row.to_vec())];
    let mut plan = planned(shape, options, running, inputs, 0, Reason::WithinLevel0)?;
    let range = user_range(shape.order, row.iter())?;
    plan.beneath = vec![(range.smallest.to_vec(), range.largest.to_vec())];
    (plan.target_file_bytes, plan.overlap_bytes_max) = (u64::MAX, u64::MAX);
    Some(plan)
}
