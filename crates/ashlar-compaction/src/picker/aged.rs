//! Compactions because of age: they run when nothing else is due.
//!
//! 1. *ttl*: a table above the last level whose data has reached the age moves one level down, and so on, until it
//!    meets the data that it deletes or hides. The age is that of the oldest table the data came from.
//! 2. *periodic*: a table that was written that long ago is rewritten: in its level, if nothing lies beneath it, else
//!    one level down. It is never moved without a rewrite. The new table has a new age, so this ends.
//! 3. A table without a creation time has no age.
//!
//! Source: RocksDB `db/version_set.cc` (`ComputeExpiredTtlFiles`, `ComputeFilesMarkedForPeriodicCompaction`:
//! behaviour).

use super::finish::{complete, from_level};
use super::level0::take_group;
use super::shape::{Shape, any_busy};
use crate::plan::{Action, Compaction, Reason, Running, UserRange};
use ashlar_options::CompactionOptions;
use ashlar_tree::version::FileMeta;
use std::sync::Arc;

/// The next compaction because of age, if one is due at `now` (seconds since 1970) and can start; the oldest table
/// first. Cost: a walk over all tables, nothing when neither option is set.
pub fn pick_aged(
    shape: &Shape<'_>,
    options: &CompactionOptions,
    running: &[Running],
    now: u64,
) -> Option<Compaction> {
    let expired = due(shape, options, now, Reason::Ttl);
    let old = due(shape, options, now, Reason::Periodic);
    expired.into_iter().chain(old).find_map(|aged| match aged.level {
        0 => {
            let base = shape.targets(options).base;
            take_group(shape, options, running, aged.file, base, aged.reason).map(rewritten)
        }
        _ => from_below(shape, options, running, &aged),
    })
}

/// The seconds until the next table reaches its age limit; `None` when no limit is set.
pub fn next_age(shape: &Shape<'_>, options: &CompactionOptions, now: u64) -> Option<u64> {
    let of = |reason: Reason| {
        let limit = limit(options, reason)?;
        Some(seconds_left(tables(shape, reason).map(|(_, _, made)| made), limit, now))
    };
    [of(Reason::Ttl), of(Reason::Periodic)].into_iter().flatten().min()
}

/// When a table was written, in seconds since 1970; `None`: unknown.
pub(super) fn made(file: &FileMeta) -> Option<u64> {
    file.file.file_creation_time.filter(|made| *made > 0)
}

/// The seconds until one of the tables `made` at these times is older than `limit`, or one that is made from now on.
pub(super) fn seconds_left(made: impl Iterator<Item = u64>, limit: u64, now: u64) -> u64 {
    let left = made.filter_map(|made| made.saturating_add(limit).checked_sub(now));
    left.fold(limit, u64::min).saturating_add(1)
}

/// A table that is due.
struct Aged<'a> {
    level: usize,
    at: usize,
    file: &'a Arc<FileMeta>,
    reason: Reason,
}

fn limit(options: &CompactionOptions, reason: Reason) -> Option<u64> {
    let limit = if reason == Reason::Ttl { options.ttl_secs } else { options.periodic_secs };
    (limit > 0).then_some(limit)
}

/// The tables whose age counts, with level, index, and creation time in seconds.
fn tables<'a>(
    shape: &Shape<'a>,
    reason: Reason,
) -> impl Iterator<Item = ((usize, usize), &'a Arc<FileMeta>, u64)> {
    let last = (0..shape.levels.len()).rev().find(|level| !shape.level(*level).is_empty()).unwrap_or(0);
    let upto = if reason == Reason::Ttl { last } else { shape.levels.len() };
    let files = shape.levels.iter().enumerate().take(upto);
    files
        .flat_map(|(level, files)| files.iter().enumerate().map(move |(at, file)| ((level, at), file)))
        .filter_map(move |(place, file)| {
            let since = match reason {
                Reason::Ttl => file.file.oldest_ancestor_time.filter(|time| *time > 0),
                _ => made(file),
            };
            Some((place, file, since?))
        })
}

fn due<'a>(shape: &Shape<'a>, options: &CompactionOptions, now: u64, reason: Reason) -> Vec<Aged<'a>> {
    let Some(limit) = limit(options, reason) else { return Vec::new() };
    let mut due: Vec<_> = tables(shape, reason)
        .filter(|(_, file, made)| !file.is_compacting() && made.saturating_add(limit) < now)
        .map(|((level, at), file, made)| (made, Aged { level, at, file, reason }))
        .collect();
    due.sort_by_key(|(made, aged)| (*made, aged.level, aged.at));
    due.into_iter().map(|(_, aged)| aged).collect()
}

fn from_below(
    shape: &Shape<'_>,
    options: &CompactionOptions,
    running: &[Running],
    aged: &Aged<'_>,
) -> Option<Compaction> {
    let inputs = shape.clean_cut(aged.level, aged.at..aged.at + 1);
    let range = UserRange::of(aged.file);
    let lowest = (aged.level + 1..shape.levels.len()).all(|below| shape.overlap(below, &range).is_empty());
    if aged.reason == Reason::Periodic && (lowest || aged.level == shape.last_level()) {
        let files = shape.slice(aged.level, inputs);
        if any_busy(files) {
            return None;
        }
        return complete(
            shape,
            options,
            running,
            (aged.level, files.to_vec()),
            (aged.level, 0..0),
            aged.reason,
        );
    }
    from_level(shape, options, running, aged.level, inputs, aged.reason).map(rewritten)
}

/// Rule 2: forbids a move without a rewrite.
fn rewritten(mut plan: Compaction) -> Compaction {
    if plan.reason == Reason::Periodic {
        plan.action = Action::Rewrite;
    }
    plan
}
