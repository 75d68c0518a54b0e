//! A merge of the two oldest runs of a universal tree, in parts: a window of neighbouring files of the upper run and the files
//! of the oldest run that they overlap. A merge of all runs needs the size of the data once more; a window needs little.
//!
//! 1. A window takes at least one file of the upper run, so each compaction shrinks that run.
//! 2. Files that share a user key are in one window, in both runs.
//! 3. A window of several files has at most half of `max_compaction_bytes`, its files of the oldest run counted. `finish` may
//!    fill the other half with upper files that overlap no further file below.
//! 4. No file of the oldest run lies between two neighbours in a window: nothing would go into that file.
//! 5. Of the windows that can have no further file, the one with the fewest bytes of the oldest run per byte of the upper run
//!    is taken. Of equal ones the largest, then the first.
//! 6. Level 0 has no windows, because its runs overlap each other.
//!
//! RocksDB merges all runs where the best window costs much more per byte than that merge. Here the space comes first.
//! Source: RocksDB `db/compaction/compaction_picker_universal.cc` (`PickIncrementalForReduceSizeAmp`): behaviour.

use super::finish::into_level;
use super::shape::{Shape, Sums};
use crate::plan::{Compaction, Reason, Running};
use ashlar_options::CompactionOptions;
use std::cmp::Ordering;
use std::ops::Range;

/// Neighbouring files of the upper run, and the files of the oldest run that they overlap.
struct Group {
    files: Range<usize>,
    below: Range<usize>,
}

impl Group {
    /// The group of both, of which `next` follows.
    fn with(&self, next: &Group) -> Group {
        Group { files: self.files.start..next.files.end, below: self.below.start..next.below.end }
    }
}

/// A candidate.
struct Window {
    files: Range<usize>,
    upper_bytes: u64,
    lower_bytes: u64,
}

impl Window {
    fn bytes(&self) -> u64 {
        self.upper_bytes.saturating_add(self.lower_bytes)
    }

    /// Rule 5: the lesser window is the better one.
    fn compare(&self, other: &Window) -> Ordering {
        let cost = |a: &Window, b: &Window| u128::from(a.lower_bytes) * u128::from(b.upper_bytes);
        cost(self, other).cmp(&cost(other, self)).then(other.upper_bytes.cmp(&self.upper_bytes))
    }
}

/// The compaction of the best window of the run in level `upper` into the run in level `oldest`, with no data between them.
/// `None` if `upper` is 0, or another compaction has claimed the window. Cost: a few binary searches per file.
pub(super) fn pick_window(
    shape: &Shape<'_>,
    options: &CompactionOptions,
    running: &[Running],
    (upper, oldest): (usize, usize),
) -> Option<Compaction> {
    if upper == 0 {
        return None;
    }
    let windows = windows(shape, (upper, oldest), options.compaction_bytes() / 2);
    let best = windows.into_iter().min_by(Window::compare)?;
    into_level(shape, options, running, (upper, best.files), oldest, Reason::SpaceAmplification)
}

/// The windows of at most `most` bytes, or of one group, that have no further neighbour.
fn windows(shape: &Shape<'_>, (upper, oldest): (usize, usize), most: u64) -> Vec<Window> {
    let groups = groups(shape, upper, oldest);
    let (upper, oldest) = (Sums::of(shape.level(upper)), Sums::of(shape.level(oldest)));
    let window = |group: Group| Window {
        upper_bytes: upper.bytes(&group.files).max(1),
        lower_bytes: oldest.bytes(&group.below),
        files: group.files,
    };
    let mut windows = Vec::new();
    let mut end = 0;
    for (at, first) in groups.iter().enumerate() {
        let reached = end;
        end = end.max(at + 1);
        while let (Some(last), Some(next)) = (groups.get(end - 1), groups.get(end))
            && next.below.start <= last.below.end
            && window(first.with(next)).bytes() <= most
        {
            end += 1;
        }
        if end > reached
            && let Some(last) = groups.get(end - 1)
        {
            windows.push(window(first.with(last)));
        }
    }
    windows
}

/// Rule 2: the files of level `upper`, in groups that share no user key, and what each overlaps in level `oldest`.
fn groups(shape: &Shape<'_>, upper: usize, oldest: usize) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let mut at = 0;
    while at < shape.level(upper).len() {
        let files = shape.clean_cut(upper, at..at + 1);
        let below = shape.meeting(oldest, shape.slice(upper, files.clone()));
        at = files.end.max(at + 1);
        groups.push(Group { files, below });
    }
    groups
}
