//! From chosen files to a plan: the overlapping files below, whether the files can be moved unchanged, and whether
//! another compaction conflicts. Every picker ends here.

use super::shape::{Shape, any_busy, as_level, bytes};
use crate::plan::{Action, Compaction, Reason, Running, UserRange, user_range};
use ashlar_base::Level;
use ashlar_options::CompactionOptions;
use ashlar_tree::version::FileMeta;
use std::ops::Range;
use std::sync::Arc;

/// A compaction of a range of files of a level below 0 into the next level: [`into_level`].
pub(super) fn from_level(
    shape: &Shape<'_>,
    options: &CompactionOptions,
    running: &[Running],
    level: usize,
    inputs: Range<usize>,
    reason: Reason,
) -> Option<Compaction> {
    into_level(shape, options, running, (level, inputs), level + 1, reason)
}

/// A compaction of a range of files of a level below 0 into the level `output`, with no data between them. Adds further files
/// if that adds no input below.
pub(super) fn into_level(
    shape: &Shape<'_>,
    options: &CompactionOptions,
    running: &[Running],
    (level, inputs): (usize, Range<usize>),
    output: usize,
    reason: Reason,
) -> Option<Compaction> {
    let files = shape.slice(level, inputs.clone());
    if files.is_empty() || any_busy(files) {
        return None;
    }
    let below = shape.meeting(output, files);
    let inputs = grown(shape, options, (level, inputs), (output, &below));
    let files = shape.slice(level, inputs).to_vec();
    complete(shape, options, running, (level, files), (output, below), reason)
}

/// Adds files of the upper level that lie within the range of both inputs and overlap no further file below.
fn grown(
    shape: &Shape<'_>,
    options: &CompactionOptions,
    (level, inputs): (usize, Range<usize>),
    (output, below): (usize, &Range<usize>),
) -> Range<usize> {
    let lower = shape.slice(output, below.clone());
    let upper = shape.slice(level, inputs.clone());
    let Some(range) = user_range(shape.order, upper.iter().chain(lower)) else { return inputs };
    let wider = shape.clean_cut(level, shape.overlap(level, &range));
    let files = shape.slice(level, wider.clone());
    let fits = bytes(files).saturating_add(bytes(lower)) < options.compaction_bytes();
    let same_below = shape.meeting(output, files) == *below;
    let gains = wider.len() > inputs.len() && !lower.is_empty();
    if gains && fits && same_below && !any_busy(files) { wider } else { inputs }
}

/// Completes the plan. Returns `None` when a file below is claimed or another compaction writes there. The files are moved
/// when four things hold. The inputs are disjoint and overlap nothing below. No file overlaps too much of the level after
/// that. The codec there is the same. The user's partitioner cuts no file.
pub(super) fn complete(
    shape: &Shape<'_>,
    options: &CompactionOptions,
    running: &[Running],
    (level, files): (usize, Vec<Arc<FileMeta>>),
    (output, below): (usize, Range<usize>),
    reason: Reason,
) -> Option<Compaction> {
    let lower = shape.slice(output, below);
    if any_busy(lower) {
        return None;
    }
    let most = options.compaction_bytes();
    let bounded = |f: &Arc<FileMeta>| bytes(shape.grandparents(output, &UserRange::of(f))) <= most;
    let disjoint = level > 0 || files.len() == 1;
    let movable = disjoint && output != level && lower.is_empty() && files.iter().all(bounded);
    let movable = movable && shape.keeps_partitions(&files, output, reason.is_manual());
    let mut inputs = vec![(as_level(level), files)];
    if !lower.is_empty() {
        inputs.push((as_level(output), lower.to_vec()));
    }
    let mut plan = planned(shape, options, running, inputs, output, reason)?;
    if movable && shape.keeps_codec(level, output, plan.is_bottommost()) {
        plan.action = Action::Move;
    }
    Some(plan)
}

/// A plan that rewrites these inputs into `output`; `None` when another compaction writes there.
pub(super) fn planned(
    shape: &Shape<'_>,
    options: &CompactionOptions,
    running: &[Running],
    inputs: Vec<(Level, Vec<Arc<FileMeta>>)>,
    output: usize,
    reason: Reason,
) -> Option<Compaction> {
    let files = || inputs.iter().flat_map(|(_, files)| files);
    if shape.claimed(running, output, files()) {
        return None;
    }
    let range = user_range(shape.order, files())?;
    let (grandparents, beneath) =
        (shape.grandparents(output, &range).to_vec(), shape.beneath(output, &range));
    Some(Compaction {
        inputs,
        output_level: as_level(output),
        grandparents,
        beneath,
        action: Action::Rewrite,
        reason,
        target_file_bytes: options.target_file_bytes,
        overlap_bytes_max: options.compaction_bytes(),
        parts_max: 0,
        compression: None,
    })
}
