//! Levels over their limit: takes one file of the level with the highest score to the next level, or all overlapping
//! files of level 0.
//!
//! 1. One compaction at a time takes level 0 down; see `level0`.
//! 2. No file is in two compactions, and no two compactions write overlapping ranges into one level.
//! 3. Inputs are clean cuts in both levels.
//! 4. In a level that is too large, the picker takes the file that overlaps the fewest bytes below per own byte.
//!    Tombstones count as additional own bytes. That file costs least and frees most.
//!
//! Source: RocksDB `db/compaction/compaction_picker_level.cc` (min-overlapping-ratio).

use super::finish::from_level;
use super::level0::pick_level0;
use super::scores::scores;
use super::shape::{Shape, Sums};
use crate::plan::{Compaction, Reason, Running, UserRange};
use ashlar_options::CompactionOptions;
use ashlar_tree::version::FileMeta;

/// The next compaction of a level over its limit, if one can start now. Cost: a sum over all files, and for one level a
/// search per file.
pub fn pick_overfull(
    shape: &Shape<'_>,
    options: &CompactionOptions,
    running: &[Running],
) -> Option<Compaction> {
    let targets = shape.targets(options);
    let urgent = scores(shape, &targets, options).into_iter().take_while(|s| s.score >= 1.0);
    urgent.into_iter().find_map(|s| match s.level {
        0 => pick_level0(shape, options, running, targets.base),
        level => pick_from(shape, options, running, level),
    })
}

fn pick_from(
    shape: &Shape<'_>,
    options: &CompactionOptions,
    running: &[Running],
    level: usize,
) -> Option<Compaction> {
    by_overlap(shape, level).into_iter().find_map(|index| {
        let inputs = shape.clean_cut(level, index..index + 1);
        from_level(shape, options, running, level, inputs, Reason::LevelSize)
    })
}

/// The files of a level by the bytes they overlap below per own byte, lowest first.
fn by_overlap(shape: &Shape<'_>, level: usize) -> Vec<usize> {
    let below = Sums::of(shape.level(level + 1));
    let overlapped = |file: &FileMeta| below.bytes(&shape.overlap(level + 1, &UserRange::of(file)));
    let mut ratios: Vec<(u64, usize)> = (0..)
        .zip(shape.level(level))
        .filter(|(_, file)| !file.is_compacting())
        .map(|(index, file)| {
            let size = compensated_bytes(file).max(1);
            (overlapped(file).saturating_mul(1024) / size, index)
        })
        .collect();
    ratios.sort_unstable();
    ratios.into_iter().map(|(_, index)| index).collect()
}

/// A file's size, plus the bytes that its range tombstones free. If more than half of the entries are point tombstones,
/// adds twice the mean value size for each of the `2 * deletions - entries` in excess.
/// Tombstones are known only for files whose entries were counted.
fn compensated_bytes(file: &FileMeta) -> u64 {
    let size = file.size().saturating_add(file.file.range_deletion_size);
    let Some(c) = file.counts.get() else { return size };
    let excess = c.deletions.saturating_mul(2).saturating_sub(c.entries);
    let mean_value = c.value_bytes / c.entries.saturating_sub(c.deletions).max(1);
    size.saturating_add(excess.saturating_mul(mean_value).saturating_mul(2))
}
