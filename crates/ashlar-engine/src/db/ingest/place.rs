//! The levels of files that are ingested: as deep as the order of runs allows.
//!
//! From level 0 down, a file may go to each level where its range is free. The search ends at the first level that has an entry
//! in the range, or gets one from a running compaction or an earlier file of the call. Levels above the base have no tables
//! and are passed over. A tree of another style takes the file in level 0: its deeper levels have older entries throughout.
//!
//! The chosen places are claimed as the output of a compaction is: no compaction that begins before the commit writes into them.
//!
//! Source: RocksDB `db/external_sst_file_ingestion_job.cc` (`AssignLevelAndSeqnoForIngestedFile`), behaviour.

use super::{Core, Part};
use crate::column_family::Family;
use crate::db::candidate::Candidate;
use ashlar_base::planted::{Bug, planted};
use ashlar_base::{Error, FamilyId, Level, Result, SeqNum};
use ashlar_compaction::Running;
use ashlar_compaction::picker::{Shape, Style};
use ashlar_tree::external::{Span, fits, level_overlaps};
use ashlar_tree::version::FileMeta;
use std::sync::Arc;

/// The claimed places. Dropping the value ends the claims.
pub(super) struct LevelClaims {
    core: Arc<Core>,
    claims: Vec<(FamilyId, Running)>,
}

impl Drop for LevelClaims {
    fn drop(&mut self) {
        let mut state = self.core.state();
        for (family, claim) in &self.claims {
            let Some(running) = state.running.get_mut(family) else { continue };
            if let Some(at) = running.iter().position(|other| other == claim) {
                running.swap_remove(at);
            }
        }
    }
}

/// Chooses the level of each file, in the order of the call. The caller holds the lead.
///
/// # Errors
/// `InvalidArgument`: a family was dropped.
pub(super) fn choose(core: &Arc<Core>, parts: &[Part]) -> Result<(Vec<Level>, LevelClaims)> {
    loop {
        let candidates = {
            let state = core.state();
            let of = |part: &Part| {
                let live = state.families.get(part.family.id()).ok_or_else(|| dropped(&part.family))?;
                Ok(Candidate::of(live, &state.running, None))
            };
            parts.iter().map(of).collect::<Result<Vec<_>>>()?
        };
        // Without the state lock: this reads tables and calls comparators.
        let (mut levels, mut claims) = (Vec::new(), Vec::new());
        for (part, candidate) in parts.iter().zip(&candidates) {
            let mut placed: Vec<(Level, &Span)> = Vec::new();
            for file in &part.files {
                let span = &file.inspected.span;
                let level = level_of(candidate, &placed, span);
                placed.push((level, span));
                levels.push(level);
                if level > Level::ZERO {
                    claims.push((part.family.id(), claim_of(level, span)));
                }
            }
        }
        let mut state = core.state();
        if candidates.iter().all(|candidate| candidate.is_current(&state)) {
            for (family, claim) in &claims {
                state.running.entry(*family).or_default().push(claim.clone());
            }
            drop(state);
            return Ok((levels, LevelClaims { core: Arc::clone(core), claims }));
        }
        // A flush or a compaction was installed, or a compaction began.
        drop(state);
    }
}

/// The last level, for files that go behind all others. The caller holds the lead, and no compaction writes into that level.
///
/// # Errors
/// `InvalidArgument`: a file overlaps another one, or a table of the last level. Or a table above that level has entries with
/// sequence number 0, which the files have too.
pub(super) fn behind(core: &Arc<Core>, parts: &[Part]) -> Result<(Vec<Level>, LevelClaims)> {
    let mut levels = Vec::new();
    for part in parts {
        let live = core.state().families.get(part.family.id()).map(|live| Arc::clone(&live.version));
        let version = live.ok_or_else(|| dropped(&part.family))?;
        let last = version.levels.len().saturating_sub(1);
        let level = Level(u8::try_from(last).unwrap_or(u8::MAX));
        let zero = |file: &FileMeta| file.file.smallest_seq == SeqNum::ZERO;
        if let Some((at, file)) = version.files().find(|(at, file)| *at < level && zero(file)) {
            let (number, name) = (file.number(), part.family.name());
            let e = Error::invalid(format!(
                "table {number} in {at} of column family {name:?} has entries with sequence number 0, as files behind it have"
            ));
            return Err(e.hint("Set cf_allow_ingest_behind when the family is created"));
        }
        for (at, file) in part.files.iter().enumerate() {
            let (span, before) = (&file.inspected.span, part.files.get(..at).unwrap_or_default());
            let order = &version.order;
            if !fits(&version, level, span)
                || before.iter().any(|other| other.inspected.span.overlaps(order, span))
            {
                let e = Error::invalid(
                    "the file overlaps another one behind all data, where nothing is above the other",
                );
                return Err(e
                    .at_path(&file.source)
                    .hint("Write one file without those keys, or with all of them"));
            }
            levels.push(level);
        }
    }
    Ok((levels, LevelClaims { core: Arc::clone(core), claims: Vec::new() }))
}

fn claim_of(level: Level, span: &Span) -> Running {
    let (smallest, largest) = (span.smallest.clone(), span.largest.clone());
    Running { output_level: level, deepest: level, runs: 1, smallest, largest }
}

fn dropped(family: &Family) -> Error {
    Error::invalid(format!("column family {:?} was dropped", family.name()))
}

/// The deepest level that the file may go to.
fn level_of(candidate: &Candidate, placed: &[(Level, &Span)], span: &Span) -> Level {
    let (version, options) = (&candidate.version, candidate.family.options());
    let order = &version.order;
    if Style::of(&options.compaction) != Style::Leveled {
        return Level::ZERO;
    }
    let shape = Shape::within(version, &options.compaction);
    let base = shape.targets(&options.compaction).base;
    let mut deepest = Level::ZERO;
    for (n, _) in (0u8..).zip(shape.levels) {
        let level = Level(n);
        if n > 0 && level.index() < base {
            continue;
        }
        let gets_entries = |claim: &Running| {
            let written =
                Span { smallest: claim.smallest.clone(), largest: claim.largest.clone(), exclusive: false };
            claim.claims(level) && span.overlaps(order, &written)
        };
        let taken = |(at, other): &(Level, &Span)| *at == level && span.overlaps(order, other);
        if candidate.running.iter().any(gets_entries)
            || placed.iter().any(taken)
            || level_overlaps(version, level, span) && !planted(Bug::IngestedTooDeep)
        {
            break;
        }
        if level == Level::ZERO || fits(version, level, span) {
            deepest = level;
        }
    }
    deepest
}
