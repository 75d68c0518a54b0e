//! Compactions of marked tables: a collector of table properties asked for a compaction when the table was written.
//!
//! 1. A marked table goes down, to the next level of a leveled tree, or to the next level with data of a universal one.
//! 2. A table in the deepest level that has data stays: nothing lies below it that its deletions could remove. The mark stays
//!    too, so that the table is considered again once a deeper level has data.
//! 3. In a universal tree with one level, all runs from the first marked one to the oldest are merged; a marked oldest run
//!    stays.
//! 4. Each such compaction takes entries further down, so this ends.
//!
//! Source: RocksDB `db/version_set.cc` (`ComputeFilesMarkedForCompaction`), `db/compaction/compaction_picker_universal.cc`
//! (`PickDeleteTriggeredCompaction`): behaviour.

use super::finish::into_level;
use super::level0::take_group;
use super::shape::Shape;
use crate::plan::{Action, Compaction, Reason, Running};
use ashlar_options::CompactionOptions;

/// The next compaction of a marked table of a leveled tree, if one can start. Cost: a walk over all tables.
pub(super) fn pick_marked(
    shape: &Shape<'_>,
    options: &CompactionOptions,
    running: &[Running],
) -> Option<Compaction> {
    let base = shape.targets(options).base;
    pick(shape, options, running, |level| if level == 0 { Some(base) } else { Some(level + 1) })
}

/// The next compaction of a marked table of a universal tree with several levels. The table is rewritten: the aim is to drop
/// what its deletions cover.
pub(super) fn pick_marked_run(
    shape: &Shape<'_>,
    options: &CompactionOptions,
    running: &[Running],
) -> Option<Compaction> {
    let next = |level: usize| {
        let with_data = (level + 1..shape.levels.len()).find(|below| !shape.level(*below).is_empty());
        with_data.or((level == 0).then(|| shape.last_level()))
    };
    let plan = pick(shape, options, running, next)?;
    Some(Compaction { action: Action::Rewrite, ..plan })
}

fn pick(
    shape: &Shape<'_>,
    options: &CompactionOptions,
    running: &[Running],
    next: impl Fn(usize) -> Option<usize>,
) -> Option<Compaction> {
    let deepest = (1..shape.levels.len()).rev().find(|level| !shape.level(*level).is_empty()).unwrap_or(1);
    (0..deepest.min(shape.last_level())).find_map(|level| {
        let output = next(level)?;
        let marked = shape.level(level).iter().enumerate();
        let mut marked = marked.filter(|(_, file)| file.file.need_compaction && !file.is_compacting());
        marked.find_map(|(at, file)| match level {
            0 => take_group(shape, options, running, file, output, Reason::Marked),
            _ => {
                let inputs = shape.clean_cut(level, at..at + 1);
                into_level(shape, options, running, (level, inputs), output, Reason::Marked)
            }
        })
    })
}
