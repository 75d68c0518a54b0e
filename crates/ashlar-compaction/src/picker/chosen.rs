//! Compaction of files that a caller names, into a level that the caller names; and the move of the deepest level to
//! another level.
//!
//! Further files are included where needed: from level 0 the older overlapping files, from every level down to the
//! output the files that overlap the inputs so far. Otherwise an older version would end above a newer one.
//!
//! Source: RocksDB `db/compaction/compaction_picker.cc` (`SanitizeAndConvertCompactionInputFiles`).

use super::finish::planned;
use super::shape::{Shape, any_busy, as_level};
use crate::plan::{Action, Compaction, Reason, Running, UserRange, user_range};
use ashlar_base::{Error, FileNumber, Level, Result};
use ashlar_options::CompactionOptions;
use ashlar_tree::version::FileMeta;
use std::sync::Arc;

/// The compaction of the tables `numbers` into level `output`; `None` while another compaction has claimed its inputs
/// or output range.
///
/// # Errors
/// `InvalidArgument`: no numbers, a table that does not exist (any more), or a table that is deeper than `output`.
pub fn pick_chosen(
    shape: &Shape<'_>,
    options: &CompactionOptions,
    running: &[Running],
    numbers: &[FileNumber],
    output: Level,
) -> Result<Option<Compaction>> {
    let output = output.index();
    if numbers.is_empty() || output == 0 || output >= shape.levels.len() {
        let text = format!("compaction of {} tables into L{output}", numbers.len());
        return Err(Error::invalid(text).hint("Name at least one table, and a level from 1 to the last"));
    }
    for number in numbers {
        let home = shape.levels.iter().position(|files| files.iter().any(|f| f.number() == *number));
        match home {
            None => return Err(Error::invalid(format!("table {number} is not in the tree"))),
            Some(home) if home > output => {
                let text = format!("table {number} is in L{home}, it cannot be compacted into L{output}");
                return Err(Error::invalid(text));
            }
            Some(_) => {}
        }
    }
    let inputs = widened(shape, numbers, output);
    if inputs.iter().any(|(_, files)| any_busy(files)) {
        return Ok(None);
    }
    Ok(planned(shape, options, running, inputs, output, Reason::Chosen))
}

/// The move of all tables of the deepest non-empty level to level `target`; without inputs if they are already there.
/// `None` while a compaction is running.
///
/// # Errors
/// `InvalidArgument`: no such level, or levels on the way that are not empty.
pub fn pick_refit(
    shape: &Shape<'_>,
    options: &CompactionOptions,
    running: &[Running],
    target: Level,
) -> Result<Option<Compaction>> {
    let to = target.index();
    if to == 0 || to >= shape.levels.len() {
        return Err(Error::invalid(format!("tables cannot be moved to {target}"))
            .hint("Choose a level from 1 to the last"));
    }
    if !running.is_empty() {
        return Ok(None);
    }
    let from = (1..shape.levels.len()).rev().find(|level| !shape.level(*level).is_empty());
    let from = from.filter(|from| *from != to);
    let on_the_way = from.map_or(0..0, |from| if from < to { from + 1..to + 1 } else { to..from });
    if let Some(level) = on_the_way.into_iter().find(|level| !shape.level(*level).is_empty()) {
        return Err(Error::invalid(format!("L{level} is on the way to {target} and not empty")));
    }
    let inputs = from.map(|from| (as_level(from), shape.level(from).to_vec()));
    let plan = Compaction {
        inputs: inputs.into_iter().collect(),
        output_level: target,
        grandparents: Vec::new(),
        beneath: match shape.behind {
            true => vec![(Vec::new(), Vec::new())],
            false => Vec::new(),
        },
        action: Action::Move,
        reason: Reason::Manual,
        target_file_bytes: options.target_file_bytes,
        overlap_bytes_max: options.compaction_bytes(),
        parts_max: 0,
        compression: None,
    };
    Ok(Some(plan))
}

/// The inputs by level, with the further files that are needed.
fn widened(shape: &Shape<'_>, numbers: &[FileNumber], output: usize) -> Vec<(Level, Vec<Arc<FileMeta>>)> {
    let named = |f: &Arc<FileMeta>| numbers.contains(&f.number());
    let mut inputs: Vec<(Level, Vec<Arc<FileMeta>>)> = Vec::new();
    let level0 = older_in_level0(shape, &named);
    if !level0.is_empty() {
        inputs.push((Level::ZERO, level0));
    }
    for level in 1..=output {
        let taken = inputs.iter().flat_map(|(_, files)| files);
        let files = shape.level(level);
        let met = user_range(shape.order, taken).map_or(0..0, |range| shape.overlap(level, &range));
        let of_name = (0..files.len()).filter(|at| files.get(*at).is_some_and(named));
        let all = of_name.chain(met);
        let (first, last) =
            all.fold((usize::MAX, 0), |(first, last), at| (first.min(at), last.max(at.saturating_add(1))));
        let cut = shape.clean_cut(level, first.min(last)..last);
        if !cut.is_empty() {
            inputs.push((as_level(level), shape.slice(level, cut).to_vec()));
        }
    }
    inputs
}

/// The named files of level 0 and the older files that overlap them, directly or through other files. Newest first.
fn older_in_level0(shape: &Shape<'_>, named: &dyn Fn(&Arc<FileMeta>) -> bool) -> Vec<Arc<FileMeta>> {
    let mut taken: Vec<Arc<FileMeta>> = Vec::new();
    for file in shape.level(0) {
        let range = UserRange::of(file);
        if named(file) || taken.iter().any(|t| range.meets(shape.order, &UserRange::of(t))) {
            taken.push(Arc::clone(file));
        }
    }
    taken
}
