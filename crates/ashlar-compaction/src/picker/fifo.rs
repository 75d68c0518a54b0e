//! The FIFO style: all tables stay in level 0, and the oldest are deleted with everything in them.
//!
//! 1. Tables whose newest data has reached the ttl are deleted, the oldest first, if the others are within the limit of all
//!    bytes. Else the oldest tables are deleted until the others are. The age of a table is the time since it was written.
//! 2. A tree that had another style may have tables in deeper levels. For their keys these are older, and go first: from the
//!    deepest level up, and within a level in the order of the keys. A table that has reached the ttl waits for every table
//!    beneath it in a deeper level, whatever that one's age. So no older version of a key comes back.
//! 3. With `allow_compaction`, small tables are merged within level 0 when nothing is to be deleted.
//! 4. One compaction at a time. A deletion gives no thought to snapshots: cursors that are open keep their tables.
//!
//! Source: RocksDB `db/compaction/compaction_picker_fifo.cc` (behaviour).

use super::aged::{made, seconds_left};
use super::level0::pick_within;
use super::pick_input::PickInput;
use super::shape::{Shape, any_busy, as_level, bytes};
use crate::plan::{Action, Compaction, Reason, UserRange};
use ashlar_base::Level;
use ashlar_base::planted::{Bug, planted};
use ashlar_options::CompactionOptions;
use ashlar_tree::version::FileMeta;
use std::sync::Arc;

/// The next deletion or merge of a FIFO tree.
pub(super) fn pick(input: &PickInput<'_>) -> Option<Compaction> {
    let PickInput { shape, options, running, .. } = input;
    if !running.is_empty() || shape.levels.iter().any(|files| any_busy(files)) {
        return None;
    }
    let total = shape.levels.iter().map(|files| bytes(files)).fold(0, u64::saturating_add);
    // The planted limit is 32 KiB for the default of 1 GiB.
    let limit = options.fifo.max_table_files_size >> if planted(Bug::FifoDropsLive) { 15 } else { 0 };
    let (level, expired) = expired(shape, options, input.now);
    if !expired.is_empty() && total.saturating_sub(bytes(&expired)) <= limit {
        return Some(deletion(options, (level, expired), Reason::Ttl));
    }
    if total > limit {
        return oldest(shape, total - limit).map(|tables| deletion(options, tables, Reason::FifoSize));
    }
    if !options.fifo.allow_compaction {
        return None;
    }
    pick_within(shape, options, running)
}

/// The seconds until the oldest table reaches the ttl; `None` when there is no ttl.
pub(super) fn next_age(shape: &Shape<'_>, options: &CompactionOptions, now: u64) -> Option<u64> {
    let limit = Some(options.ttl_secs).filter(|ttl| *ttl > 0)?;
    let times = shape.levels.iter().flatten().filter_map(|file| made(file));
    Some(seconds_left(times, limit, now))
}

/// Tables of one level that have reached the ttl, and have nothing beneath them: of the deepest level with any, or else the
/// oldest ones of level 0, newest first.
fn expired(shape: &Shape<'_>, options: &CompactionOptions, now: u64) -> (usize, Vec<Arc<FileMeta>>) {
    let limit = options.ttl_secs;
    let may_go = |level: usize, file: &Arc<FileMeta>| {
        let has_reached = limit > 0 && made(file).is_some_and(|made| made.saturating_add(limit) < now);
        let range = UserRange::of(file);
        has_reached && (level + 1..shape.levels.len()).all(|below| shape.overlap(below, &range).is_empty())
    };
    for level in (1..shape.levels.len()).rev() {
        let files: Vec<_> = shape.level(level).iter().filter(|file| may_go(level, file)).cloned().collect();
        if !files.is_empty() {
            return (level, files);
        }
    }
    let mut files: Vec<_> = shape.level(0).iter().rev().take_while(|file| may_go(0, file)).cloned().collect();
    files.reverse();
    (0, files)
}

/// The oldest tables of the deepest level in use, with `over` bytes together, or all tables of the level.
fn oldest(shape: &Shape<'_>, over: u64) -> Option<(usize, Vec<Arc<FileMeta>>)> {
    let level = (0..shape.levels.len()).rev().find(|level| !shape.level(*level).is_empty())?;
    let files = shape.level(level);
    let mut freed = 0u64;
    let mut take = |file: &&Arc<FileMeta>| {
        let more = freed < over;
        freed = freed.saturating_add(file.size());
        more
    };
    let mut chosen: Vec<_> = match level {
        0 => files.iter().rev().take_while(&mut take).cloned().collect(),
        _ => return Some((level, files.iter().take_while(&mut take).cloned().collect())),
    };
    chosen.reverse();
    Some((level, chosen))
}

fn deletion(
    options: &CompactionOptions,
    (level, files): (usize, Vec<Arc<FileMeta>>),
    reason: Reason,
) -> Compaction {
    Compaction {
        inputs: vec![(as_level(level), files)],
        output_level: Level::ZERO,
        grandparents: Vec::new(),
        beneath: Vec::new(),
        action: Action::Drop,
        reason,
        target_file_bytes: options.target_file_bytes,
        overlap_bytes_max: u64::MAX,
        parts_max: 1,
        compression: None,
    }
}
