//! The universal style: few sorted runs, which are merged when their sizes are alike.
//!
//! A *run* is a table of level 0, or all tables of a deeper level. Runs are ordered from the newest to the oldest, and every
//! entry of a run is newer than the entries of the same key in the runs behind it.
//!
//! 1. A compaction merges consecutive runs. So the order of the runs stays the order of their entries.
//! 2. The result goes to the deepest level above the run that follows: to the last level if no run follows, to level 0 if a
//!    table of level 0 follows. In level 0 the result is one table.
//! 3. As soon as there are `level0_file_num_compaction_trigger` runs, three questions are asked in turn. Are the newer runs
//!    together too large in proportion to the oldest? Then all runs are merged. Are runs, from some run on, alike in size?
//!    Then these are merged. Are there more runs than the trigger? Then the newest are merged.
//!    With `incremental`, a merge of all runs for the first reason takes a part of the two oldest runs; see `incremental`.
//! 4. When a table is older than the periodic limit or the ttl, all runs are merged.
//! 5. A result that stays in level 0 reaches with its sequence numbers among those of no other table and of no memtable; see
//!    [`Shape::stays_in_order`]. If that forbids a merge for the number of runs, all of level 0 goes to a deeper level.
//! 6. A marked table is compacted when nothing else is due; see `marked`.
//! 7. Tables of level 0 with one epoch number are one run, because they came into the tree together and do not overlap.
//!
//! Source: RocksDB `db/compaction/compaction_picker_universal.cc` (behaviour).

use super::aged::{made, seconds_left};
use super::finish::planned;
use super::incremental::pick_window;
use super::marked::pick_marked_run;
use super::pick_input::PickInput;
use super::shape::{Shape, any_busy, as_level, bytes};
use crate::plan::{Action, Compaction, Reason, Running, user_range};
use ashlar_base::Level;
use ashlar_options::{CompactionOptions, StopStyle};
use ashlar_tree::version::FileMeta;
use std::ops::Range;
use std::sync::Arc;

/// A sorted run.
struct Run<'a> {
    level: usize,
    files: &'a [Arc<FileMeta>],
    bytes: u64,
    busy: bool,
}

impl Run<'_> {
    /// Whether the run waits for a flush.
    fn waits(&self, shape: &Shape<'_>) -> bool {
        self.files.iter().any(|file| shape.is_among_unflushed(file))
    }
}

/// The runs of the tree, newest first.
fn runs<'a>(shape: &Shape<'a>) -> Vec<Run<'a>> {
    let of_one_flush =
        |a: &Arc<FileMeta>, b: &Arc<FileMeta>| a.file.epoch != 0 && a.file.epoch == b.file.epoch;
    let level0 = shape.level(0).chunk_by(of_one_flush).map(|files| (0, files));
    let deeper = (1..shape.levels.len()).map(|level| (level, shape.level(level)));
    let run = |(level, files): (usize, &'a [Arc<FileMeta>])| Run {
        level,
        files,
        bytes: bytes(files),
        busy: any_busy(files),
    };
    level0.chain(deeper.filter(|(_, files)| !files.is_empty())).map(run).collect()
}

/// The number of runs. Those that wait for a flush do not count: only further writes bring that flush.
pub(super) fn run_count(shape: &Shape<'_>) -> usize {
    runs(shape).iter().filter(|run| !run.waits(shape)).count()
}

/// Whether the tree is one run, where a merge of all runs would put it.
pub(super) fn is_one_run(shape: &Shape<'_>, options: &CompactionOptions) -> bool {
    matches!(&*runs(shape), [run] if run.level == deepest(shape, options))
}

/// The level of a merge of all runs.
fn deepest(shape: &Shape<'_>, options: &CompactionOptions) -> usize {
    if options.single_level { 0 } else { shape.last_level() }
}

/// The next compaction of a universal tree.
pub(super) fn pick(input: &PickInput<'_>) -> Option<Compaction> {
    let PickInput { shape, options, running, .. } = input;
    let runs = runs(shape);
    let merge = |range: Range<usize>, reason| merged(shape, options, running, (&runs, range), reason);
    if is_old(&runs, options, input.now)
        && let Some(plan) = movable_end(&runs).and_then(|start| merge(start..runs.len(), Reason::Periodic))
    {
        // A table that is moved keeps its age.
        return Some(Compaction { action: Action::Rewrite, ..plan });
    }
    let marked = || match options.single_level {
        true => marked_to_oldest(&runs).and_then(|range| merge(range, Reason::Marked)),
        false => pick_marked_run(shape, options, running),
    };
    if runs.len() < options.l0_trigger {
        return marked();
    }
    let wasteful = wasteful(&runs, options).and_then(|range| {
        let part = options.universal.incremental.then(|| part_of_oldest(input, &runs)).flatten();
        part.or_else(|| merge(range, Reason::SpaceAmplification))
    });
    let alike = || alike(&runs, options).and_then(|range| merge(range, Reason::SizeRatio));
    let too_many = too_many(&runs, options);
    let all_of_level0 =
        || whole_level0(shape, options, &runs).and_then(|range| merge(range, Reason::RunCount));
    wasteful
        .or_else(alike)
        .or_else(|| too_many.clone().and_then(|range| merge(range, Reason::RunCount)))
        .or_else(|| too_many.is_some().then(all_of_level0).flatten())
        .or_else(marked)
}

/// The merge of all runs; `None` while a compaction has claimed one of them, or if the tree has no table.
pub(super) fn pick_all(
    shape: &Shape<'_>,
    options: &CompactionOptions,
    running: &[Running],
) -> Option<Compaction> {
    let runs = runs(shape);
    let plan = merged(shape, options, running, (&runs, 0..runs.len()), Reason::Manual)?;
    Some(Compaction { action: Action::Rewrite, ..plan })
}

/// Bytes of the newest runs that must be merged until the tree has no more runs than the trigger.
pub(super) fn debt(shape: &Shape<'_>, options: &CompactionOptions) -> u64 {
    let runs = runs(shape);
    match (runs.len() + 1).checked_sub(options.l0_trigger.max(1)) {
        Some(most) if most > 1 => runs.iter().take(most).map(|run| run.bytes).fold(0, u64::saturating_add),
        _ => 0,
    }
}

/// The seconds until the oldest table reaches its age limit; `None` when no limit is set.
pub(super) fn next_age(shape: &Shape<'_>, options: &CompactionOptions, now: u64) -> Option<u64> {
    let limit = age_limit(options)?;
    let runs = runs(shape);
    let times = runs.iter().flat_map(|run| run.files).filter_map(|file| made(file));
    Some(seconds_left(times, limit, now))
}

/// Rule 4: both limits mean the same here.
fn age_limit(options: &CompactionOptions) -> Option<u64> {
    [options.periodic_secs, options.ttl_secs].into_iter().filter(|limit| *limit > 0).min()
}

fn is_old(runs: &[Run<'_>], options: &CompactionOptions, now: u64) -> bool {
    let Some(limit) = age_limit(options) else { return false };
    let files = runs.iter().filter(|run| !run.busy).flat_map(|run| run.files);
    files.filter_map(|file| made(file)).any(|made| made.saturating_add(limit) < now)
}

/// The first of the runs that lead to the oldest without a claimed one; `None` if the oldest is claimed.
fn movable_end(runs: &[Run<'_>]) -> Option<usize> {
    let free = runs.iter().rev().take_while(|run| !run.busy).count();
    (free > 0).then(|| runs.len() - free)
}

/// All runs that are free, if together they exceed the limit in proportion to the oldest.
fn wasteful(runs: &[Run<'_>], options: &CompactionOptions) -> Option<Range<usize>> {
    let start = movable_end(runs)?;
    let (oldest, newer) = runs.get(start..)?.split_last()?;
    let newer: u128 = newer.iter().map(|run| u128::from(run.bytes)).sum();
    let percent = u128::from(options.universal.max_size_amplification_percent);
    let due = newer > 0 && newer * 100 >= percent * u128::from(oldest.bytes);
    due.then_some(start..runs.len())
}

/// A part of the merge of the two oldest runs; `None` if the newer of them is in level 0.
fn part_of_oldest(input: &PickInput<'_>, runs: &[Run<'_>]) -> Option<Compaction> {
    let PickInput { shape, options, running, .. } = input;
    let [.., upper, oldest] = runs else { return None };
    let plan = pick_window(shape, options, running, (upper.level, oldest.level))?;
    let moves = options.universal.allow_trivial_move && may_move(shape, options, &plan);
    Some(Compaction { action: if moves { Action::Move } else { Action::Rewrite }, ..plan })
}

/// The runs from the first marked one to the oldest, up to one that is claimed; `None` if only the oldest is marked.
fn marked_to_oldest(runs: &[Run<'_>]) -> Option<Range<usize>> {
    let marked = |run: &Run<'_>| !run.busy && run.files.iter().any(|file| file.file.need_compaction);
    let start = runs.iter().position(marked)?;
    let count = runs.iter().skip(start).take_while(|run| !run.busy).count();
    (count >= 2).then_some(start..start + count)
}

/// The newest group of runs that are alike in size and enough to be merged.
fn alike(runs: &[Run<'_>], options: &CompactionOptions) -> Option<Range<usize>> {
    let universal = &options.universal;
    let least = usize::try_from(universal.min_merge_width).unwrap_or(usize::MAX).max(2);
    let most = usize::try_from(universal.max_merge_width).unwrap_or(usize::MAX).max(least);
    let larger = |bytes: u128| bytes * (100 + u128::from(universal.size_ratio)) / 100;
    (0..runs.len()).find_map(|start| {
        let free = runs.get(start..)?.iter().take_while(|run| !run.busy).take(most);
        let (mut count, mut size) = (0, 0u128);
        for run in free {
            let next = u128::from(run.bytes);
            let joins = match universal.stop_style {
                StopStyle::TotalSize => larger(size) >= next,
                StopStyle::SimilarSize => larger(size) >= next && larger(next) >= size,
            };
            if count > 0 && !joins {
                break;
            }
            size = if universal.stop_style == StopStyle::TotalSize { size + next } else { next };
            count += 1;
        }
        (count >= least).then_some(start..start + count)
    })
}

/// The newest free runs, as many as make the number of free runs the trigger.
fn too_many(runs: &[Run<'_>], options: &CompactionOptions) -> Option<Range<usize>> {
    let free = runs.iter().filter(|run| !run.busy).count();
    let count = free.checked_sub(options.l0_trigger).filter(|over| *over > 0)? + 1;
    let start = runs.iter().position(|run| !run.busy)?;
    let end = runs.iter().skip(start).take(count).take_while(|run| !run.busy).count() + start;
    (end - start >= 2).then_some(start..end)
}

/// What is merged when no smaller group may stay in level 0: all of level 0, into a deeper level. If level 1 is used, it comes
/// along. In a tree with one level, the runs that wait for a flush stay out.
fn whole_level0(shape: &Shape<'_>, options: &CompactionOptions, runs: &[Run<'_>]) -> Option<Range<usize>> {
    let level0 = runs.iter().take_while(|run| run.level == 0).count();
    let range = match runs.get(level0) {
        Some(next) if next.level == 1 => 0..level0 + 1,
        None if options.single_level => runs.iter().take_while(|run| run.waits(shape)).count()..level0,
        _ => 0..level0,
    };
    (range.len() >= 2).then_some(range)
}

/// Rule 2: the plan that merges these runs. `None` when a compaction has claimed one of them, or writes to their place.
fn merged(
    shape: &Shape<'_>,
    options: &CompactionOptions,
    running: &[Running],
    (runs, range): (&[Run<'_>], Range<usize>),
    reason: Reason,
) -> Option<Compaction> {
    let chosen = runs.get(range.clone())?;
    if chosen.iter().any(|run| run.busy) {
        return None;
    }
    let next = runs.get(range.end);
    let output = next.map_or_else(|| deepest(shape, options), |run| run.level.saturating_sub(1));
    let mut inputs: Vec<(Level, Vec<Arc<FileMeta>>)> = Vec::new();
    for run in chosen {
        match inputs.last_mut() {
            Some((level, files)) if level.index() == run.level => files.extend_from_slice(run.files),
            _ => inputs.push((as_level(run.level), run.files.to_vec())),
        }
    }
    let mut plan = planned(shape, options, running, inputs, output, reason)?;
    plan.grandparents.clear();
    plan.overlap_bytes_max = u64::MAX;
    if output == 0 {
        let files: Vec<_> = plan.files().map(|(_, file)| Arc::clone(file)).collect();
        if !shape.stays_in_order(&files) {
            return None;
        }
        plan.target_file_bytes = u64::MAX;
        if next.is_some_and(|run| run.level == 0) {
            let range = user_range(shape.order, chosen.iter().flat_map(|run| run.files))?;
            plan.beneath = vec![(range.smallest.to_vec(), range.largest.to_vec())];
        }
    } else if options.universal.allow_trivial_move && may_move(shape, options, &plan) {
        plan.action = Action::Move;
    }
    Some(plan)
}

/// Whether the tables may go to the output level as they are: they do not overlap, codec and directory stay, none is
/// there already, and the user's partitioner cuts none.
fn may_move(shape: &Shape<'_>, options: &CompactionOptions, plan: &Compaction) -> bool {
    let to = plan.output_level.index();
    if plan.inputs.iter().any(|(level, _)| *level == plan.output_level) {
        return false;
    }
    let files: Vec<_> = plan.files().map(|(_, file)| Arc::clone(file)).collect();
    shape.are_disjoint(&files)
        && shape.keeps_place(&files, to, options)
        && shape.keeps_partitions(&files, to, plan.reason.is_manual())
        && plan.inputs.iter().all(|(level, _)| shape.keeps_codec(level.index(), to, plan.is_bottommost()))
}
