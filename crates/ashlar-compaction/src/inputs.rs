//! The inputs of a compaction: runs, their range tombstones, and the keys where the compaction may be cut into parts.
//!
//! The tables of level 0 are all open at once, because each is a run. Of each deeper level one table is open at a time;
//! before, the others are opened one after the other to read their range tombstones only.

use crate::level_run::LevelRun;
use crate::plan::Compaction;
use crate::split::{KeyRange, Stretch, split};
use ashlar_base::{InternalKey, Level, LookupKey, Result, RunCursor, SeqNum};
use ashlar_read::range_del::{Bounds, CutTombstones};
use ashlar_tree::version::Version;
use std::sync::Arc;

/// The largest and the smallest number of bytes that a compaction reads from a table at a time.
const READAHEAD_BYTES: usize = 2 << 20;
const READAHEAD_BYTES_MIN: usize = 64 << 10;

/// An output is not cut because of an index with fewer bytes of keys.
const INDEX_BYTES_MIN: usize = 256 << 10;

/// Bytes that each of `runs` inputs reads at a time: together a sixteenth of the database's part of the
/// memory cap, within the limits above.
fn readahead(cap: Option<usize>, runs: usize) -> usize {
    let share = cap.map_or(usize::MAX, |cap| cap / 16 / runs.max(1));
    share.clamp(READAHEAD_BYTES_MIN, READAHEAD_BYTES)
}

/// The most bytes of keys in the index of an output. An output that must be the only one has no limit.
pub(super) fn index_limit(version: &Version, plan: &Compaction) -> usize {
    match version.tables().large_indexes() {
        Some(large) if plan.target_file_bytes < u64::MAX => large.max(INDEX_BYTES_MIN),
        _ => usize::MAX,
    }
}

/// The number of candidate cuts in one table.
const ANCHORS: u32 = 64;

/// The runs of all inputs within `range`, newest first, positioned before their first entries. `range` is one of
/// `parts` parts.
pub(super) fn runs(
    version: &Arc<Version>,
    plan: &Compaction,
    range: &KeyRange,
    parts: usize,
) -> Result<Vec<Box<dyn RunCursor>>> {
    let mut runs: Vec<Box<dyn RunCursor>> = Vec::new();
    let count: usize =
        plan.inputs.iter().map(|(l, files)| if *l == Level::ZERO { files.len() } else { 1 }).sum();
    let readahead = readahead(version.tables().memory_share(), count * parts);
    let mut push = |files| -> Result<()> {
        let mut run = LevelRun::new(Arc::clone(version), files, range.clone(), readahead);
        run.seek(range.begin.as_deref().map(|begin| LookupKey::new(begin, SeqNum::MAX)).as_ref())?;
        runs.push(Box::new(run));
        Ok(())
    };
    for (level, files) in &plan.inputs {
        if *level == Level::ZERO {
            files.iter().try_for_each(|f| push(vec![Arc::clone(f)]))?;
        } else {
            push(files.clone())?;
        }
    }
    Ok(runs)
}

/// The range tombstones of all inputs, cut to the bounds of their tables.
pub(super) fn tombstones(version: &Version, plan: &Compaction) -> Result<Vec<CutTombstones>> {
    let mut all = Vec::new();
    for (level, file) in plan.files() {
        let bounds = Bounds::new(file.smallest(), file.largest());
        let open = if level == Level::ZERO { Some(version.table(file)?) } else { file.table.get() };
        match open {
            Some(table) if table.range_tombstones().is_empty() => {}
            Some(table) => all.push(bounds.cut(&version.order, Arc::clone(table.range_tombstones()))),
            None => {
                let found = version.survey(file)?;
                if !found.is_empty() {
                    all.push(bounds.cut(&version.order, Arc::new(found)));
                }
            }
        }
    }
    Ok(all)
}

/// Cuts a compaction into at most `parts` parts, by the indexes of the level-0 tables and the bounds of the other
/// tables.
pub(super) fn parts(version: &Version, plan: &Compaction, parts: usize) -> Result<Vec<KeyRange>> {
    // Versions of one key that differ in their timestamps must stay in one part; a compaction within level 0 makes one
    // table.
    if parts < 2 || version.order.timestamp_len() > 0 || plan.output_level == Level::ZERO {
        return Ok(vec![KeyRange::default()]);
    }
    let mut stretches = Vec::new();
    for (level, file) in plan.files() {
        if level == Level::ZERO {
            let anchors = version.table(file)?.anchors(ANCHORS);
            stretches.extend(anchors.into_iter().map(|(upto, bytes)| Stretch { upto, bytes }));
        } else {
            // The index is not read: half of the table's size counts at either end.
            let ends = [file.smallest(), file.largest()];
            let half =
                |end: InternalKey<'_>| Stretch { upto: end.user_key().to_vec(), bytes: file.size() / 2 };
            stretches.extend(ends.map(half));
        }
    }
    Ok(split(&version.order, stretches, parts))
}
