//! The scores of the levels, and the amount of pending compaction work.
//!
//! A score of 1 means "at its limit". The score of a level over its target is reduced by the bytes that the levels
//! above it are about to bring down, so that upper levels are compacted first.
//!
//! Source: RocksDB `db/version_set.cc` (`ComputeCompactionScore`, `EstimateCompactionBytesNeeded`).

use super::shape::{Shape, bytes};
use super::targets::Targets;
use super::tombstones::is_dense;
use ashlar_options::CompactionOptions;
use ashlar_tree::version::FileMeta;
use std::sync::Arc;

/// The score of one level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Score {
    /// The level.
    pub level: usize,
    /// A compaction of the level is due from 1.0 on.
    pub score: f64,
}

/// Scores above 1 are multiplied by this factor, so that a level over its limit precedes any level that is only close
/// to its limit.
const SCALE: f64 = 10.0;

/// The scores of all levels except the last, highest first. Files of running compactions do not count.
pub fn scores(shape: &Shape<'_>, targets: &Targets, options: &CompactionOptions) -> Vec<Score> {
    let mut scores = vec![Score { level: 0, score: level0_score(shape, targets, options) }];
    let mut coming_down = shape.bytes(0);
    for level in 1..shape.last_level() {
        let target = targets.of(level);
        let total = shape.bytes(level);
        let idle = idle_bytes(shape, level);
        let score = if idle < target {
            idle as f64 / target as f64
        } else {
            idle as f64 / (target as f64 + coming_down as f64) * SCALE
        };
        coming_down = coming_down.saturating_add(total.saturating_sub(target));
        scores.push(Score { level, score });
    }
    scores.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.level.cmp(&b.level)));
    scores
}

/// Bytes of a level's files that no compaction has claimed.
fn idle_bytes(shape: &Shape<'_>, level: usize) -> u64 {
    let idle = shape.level(level).iter().filter(|f| !f.is_compacting());
    idle.map(|f| f.size()).fold(0, u64::saturating_add)
}

/// The score of level 0.
pub(super) fn level0_score(shape: &Shape<'_>, targets: &Targets, options: &CompactionOptions) -> f64 {
    // A table that consists mostly of tombstones counts twice: it slows every scan over the deleted range.
    let weight = |f: &Arc<FileMeta>| if f.counts.get().is_some_and(is_dense) { 2 } else { 1 };
    let idle: u32 = shape.level(0).iter().filter(|f| !f.is_compacting()).map(weight).sum();
    let total = idle_bytes(shape, 0);
    let mut score = f64::from(idle) / options.l0_trigger.max(1) as f64;
    if total >= options.base_level_bytes {
        score = score.max(1.01);
    }
    let target = targets.of(targets.base);
    if total > target {
        score = score.max(total as f64 / shape.bytes(targets.base).max(target) as f64);
    }
    if score > 1.0 { score * SCALE } else { score }
}

/// Estimated bytes that compactions must rewrite until every level is within its limit. Write admission uses this
/// number.
pub fn debt(shape: &Shape<'_>, targets: &Targets, options: &CompactionOptions) -> u64 {
    let level0 = shape.level(0);
    let mut coming_down = 0;
    let mut pending = 0u64;
    if level0.len() >= options.l0_trigger || bytes(level0) >= options.base_level_bytes {
        coming_down = bytes(level0);
        pending = coming_down.saturating_add(shape.bytes(targets.base));
    }
    for level in targets.base..shape.last_level() {
        let size = shape.bytes(level).saturating_add(coming_down);
        let target = targets.of(level);
        coming_down = size.saturating_sub(target);
        if coming_down > 0 {
            let next = shape.bytes(level + 1);
            let per_byte = 1 + next / size.max(1);
            pending = pending.saturating_add(coming_down.saturating_mul(per_byte));
        }
    }
    pending
}
