//! Compaction on request: of a range of keys, or of files by their numbers.
//!
//! The caller picks, claims, submits and waits; the jobs are ordinary compaction jobs.

use super::Db;
use super::candidate::{Candidate, Choice, Report, is_busy, running_of};
use super::compaction_job::{CompactionJob, aborted};
use super::core::{Core, State};
use super::job::JobShell;
use super::schedule::pick_input;
use crate::column_family::Family;
use ashlar_base::{Error, FamilyId, FileNumber, Level, Order, Result};
use ashlar_compaction::picker::{ManualPick, ManualRange, Shape, Style, pick_chosen, pick_refit};
use ashlar_compaction::{Action, Compaction, Running};
use ashlar_env::JobKind;
use ashlar_options::{CompactFilesOptions, CompactRangeOptions, CompactionEvent};
use std::sync::Arc;

impl Db {
    /// Compacts the user keys `begin..=end` (`None`: unbounded) down to the deepest level that has any of them. A universal
    /// tree is merged whole; a FIFO tree deletes the tables that are due.
    /// Rewrites tables of that level that no compaction reached, so that no deleted entry is left. A compaction of the family that
    /// becomes due meanwhile lets the request go first. While writers are stopped and the request is blocked, one after the other may go
    /// before, and the request looks for its tables in between. Waits for all of it, and for the removal of the files that it
    /// replaced. Files that readers use are removed later; so are the others if background work is paused meanwhile, or a file
    /// cannot be removed.
    ///
    /// # Errors
    /// `Io`, `Corruption`: a table could not be read or written. `Aborted`: compactions were aborted, or background
    /// work is paused. `InvalidArgument`: the family was dropped, or belongs to another database. `Shutdown`.
    pub fn compact_range(&self, family: &Family, begin: Option<&[u8]>, end: Option<&[u8]>) -> Result<()> {
        self.compact_range_with(family, begin, end, CompactRangeOptions::default())
    }

    /// [`Db::compact_range`] with options.
    ///
    /// # Errors
    /// As there; `InvalidArgument`: the target level does not exist, or levels on the way to it are not empty. `NotSupported`:
    /// the tree has no levels below level 0.
    pub fn compact_range_with(
        &self,
        family: &Family,
        begin: Option<&[u8]>,
        end: Option<&[u8]>,
        options: CompactRangeOptions,
    ) -> Result<()> {
        let core = self.core();
        core.check_open()?;
        core.check_outside("compact_range()")?;
        core.check_live(family)?;
        core.health.check_working()?;
        core.flush(&[family.id()])?;
        let asks = if options.target_level.is_some() { Asks::Target } else { Asks::Range };
        check_style(family, asks)?;
        let filtered = options.rewrite_deepest_if_filtered && family.options().has_filter();
        let range = ManualRange::new(begin, end, options.rewrite_deepest || filtered);
        if !options.exclusive {
            return core.compact_range(family, range, options);
        }
        core.state().exclusive += 1;
        let done = core
            .wait_until(|state| state.compactors == 0)
            .and_then(|()| core.compact_range(family, range, options));
        core.state().exclusive -= 1;
        core.schedule();
        done
    }

    /// Compacts tables by their numbers into the level `output`, and waits as [`Db::compact_range`] does. Includes
    /// further tables where an older version would otherwise end above a newer one. If a listed table is gone when the
    /// compaction begins, the call fails; retry with current numbers. Returns what the compaction did; `None`: there was nothing
    /// to do.
    ///
    /// # Errors
    /// `InvalidArgument`: a table that is not in the tree or is deeper than `output`, no such level. Else as
    /// [`Db::compact_range`].
    pub fn compact_files(
        &self,
        family: &Family,
        numbers: &[FileNumber],
        output: Level,
        how: CompactFilesOptions,
    ) -> Result<Option<CompactionEvent>> {
        let core = self.core();
        core.check_open()?;
        core.check_outside("compact_files()")?;
        core.check_live(family)?;
        core.health.check_working()?;
        check_style(family, Asks::Target)?;
        let report = Report::default();
        core.compact_one(family, Some(&report), |from| {
            let options = from.family.options();
            let shape = Shape::within(&from.version, &options.compaction);
            let picked = pick_chosen(&shape, &options.compaction, &from.running, numbers, output)?;
            Ok(picked.map(|plan| Compaction {
                parts_max: how.max_subcompactions,
                target_file_bytes: how.file_bytes.unwrap_or(plan.target_file_bytes),
                compression: how.compression,
                ..plan
            }))
        })?;
        Ok(report.get().cloned())
    }
}

/// What a request asks of the style of a tree.
#[derive(Clone, Copy)]
enum Asks {
    /// The compaction of a range.
    Range,
    /// Tables or a level that the caller names.
    Target,
}

/// Refuses what the style of the tree does not do. RocksDB would not open a tree that it keeps in level 0 with a table in
/// another level.
fn check_style(family: &Family, asks: Asks) -> Result<()> {
    let options = family.options();
    let compaction = &options.compaction;
    let style = Style::of(compaction);
    let allowed = match asks {
        Asks::Range => style.allows_requests(),
        Asks::Target => style.allows_targets() && !compaction.single_level,
    };
    if allowed {
        return Ok(());
    }
    let stored = |name: &str, default: &str| options.kept.get(name).unwrap_or_else(|| default.to_owned());
    let refused =
        if style == Style::Level0Only { "is not compacted" } else { "has no level to compact into" };
    Err(Error::not_supported(format!(
        "family {:?} has compaction_style={} and num_levels={} and {refused}: its tables stay in level 0",
        family.name(),
        compaction.style,
        stored("num_levels", "7"),
    ))
    .hint(
        "To make it a leveled tree for good, open it with compaction_style=kCompactionStyleLevel and num_levels=7",
    ))
}

/// The error when no compaction can be chosen because the tables' ranges contradict each other, and no running
/// compaction can change that.
fn no_order(family: &str, order: &Order) -> Error {
    let what = format!(
        "no compaction of family {family:?} can be chosen: its comparator, {}, contradicts itself",
        order.name()
    );
    Error::invalid(what).hint("Correct the comparator: of two keys one is less, or both are equal, whatever their order in the call")
}

/// What a request does next.
enum Next {
    /// With the claim to list while it runs, if it has one.
    Run(Box<CompactionJob>, Option<Running>),
    Blocked,
    Over,
}

/// The turn of a request among the compactions of its family.
struct Turn<'a> {
    core: &'a Arc<Core>,
    family: FamilyId,
    /// The claim of the last piece.
    own: Option<Running>,
    /// Whether the family counts the request as waiting.
    waits: bool,
}

impl Turn<'_> {
    /// Whether a compaction has gone before the request, and has ended. Asked before the request looks for its tables.
    fn passer_has_ended(&self) -> bool {
        let state = self.core.state();
        let passed = state.families.get(self.family).and_then(|live| live.passed_request.as_ref());
        passed.is_some_and(|claim| !running_of(&state.running, self.family).contains(claim))
    }

    /// Counts the request as waiting if it is blocked, and not by its own piece. At the end of a wait, schedules the compactions that
    /// have let the request go first. If the request is still blocked when `passer_has_ended`, some other compaction has its tables, so
    /// the next one may pass.
    fn waits_if(&mut self, is_blocked: bool, passer_has_ended: bool) {
        let mut state = self.core.state();
        let is_own = |own: &Running| running_of(&state.running, self.family).contains(own);
        let waits = is_blocked && !self.own.as_ref().is_some_and(is_own);
        let waited = std::mem::replace(&mut self.waits, waits);
        let has_looked = waited && passer_has_ended;
        if waits == waited && !has_looked {
            return;
        }
        if let Some(live) = state.families.get_mut(self.family) {
            match (waited, waits) {
                (false, true) => live.waiting_requests += 1,
                (true, false) => live.waiting_requests = live.waiting_requests.saturating_sub(1),
                (true, true) | (false, false) => {}
            }
            if waited && !waits || has_looked {
                live.passed_request = None;
            }
        }
        drop(state);
        if waited {
            self.core.schedule();
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.waits_if(false, false);
    }
}

impl Core {
    /// Runs the pieces of a manual compaction one after the other.
    fn compact_range(
        self: &Arc<Self>,
        family: &Family,
        mut range: ManualRange,
        options: CompactRangeOptions,
    ) -> Result<()> {
        self.run_pieces(family, &mut range, None, |range, from| {
            let settings = from.family.options();
            let input = pick_input(from, &settings, &self.look(self.health.severity()));
            let style = Style::of(&settings.compaction);
            Ok(match style.pick_requested(range, &input, self.versions.next_file_number()) {
                ManualPick::Run(plan) => {
                    // A request has each entry filtered, so no table moves unread.
                    let action = match plan.action {
                        Action::Move if settings.has_filter() => Action::Rewrite,
                        planned => planned,
                    };
                    let parts_max = options.max_subcompactions;
                    ManualPick::Run(Box::new(Compaction { parts_max, action, ..*plan }))
                }
                ManualPick::Done if !from.running.is_empty() => ManualPick::Blocked,
                other => other,
            })
        })?;
        match options.target_level {
            Some(target) => self.compact_one(family, None, |from| {
                let settings = from.family.options();
                let shape = Shape::within(&from.version, &settings.compaction);
                pick_refit(&shape, &settings.compaction, &from.running, target)
            }),
            None => Ok(()),
        }
    }

    /// Runs the one compaction that `pick` finds (`None`: not possible now), to its end. `report` gets what it did.
    fn compact_one(
        self: &Arc<Self>,
        family: &Family,
        report: Option<&Report>,
        pick: impl Fn(&Candidate) -> Result<Option<Compaction>>,
    ) -> Result<()> {
        let mut started: Option<Running> = None;
        self.run_pieces(family, &mut started, report, |started, from| {
            if let Some(claim) = started {
                let runs = from.running.contains(claim);
                return Ok(if runs { ManualPick::Blocked } else { ManualPick::Done });
            }
            Ok(match pick(from)? {
                None => ManualPick::Blocked,
                // Nothing to compact.
                Some(plan) if plan.inputs.is_empty() => ManualPick::Done,
                Some(plan) => {
                    *started = plan.running(&from.version.order);
                    ManualPick::Run(Box::new(plan))
                }
            })
        })
    }

    /// Picks the next piece, runs it, and waits while it is blocked, until all pieces are done and a purge has removed what
    /// they replaced. `pick` writes its choices into `progress`; a choice that was not claimed is taken out again.
    fn run_pieces<P: Clone>(
        self: &Arc<Self>,
        family: &Family,
        progress: &mut P,
        report: Option<&Report>,
        pick: impl Fn(&mut P, &Candidate) -> Result<ManualPick>,
    ) -> Result<()> {
        let work = (family.id(), JobKind::Compaction);
        let before = self.state().failures(work);
        let mut turn = Turn { core: self, family: family.id(), own: None, waits: false };
        let mut replaced = false;
        loop {
            let mut next = Ok(Next::Blocked);
            let waited = self.contained("choosing a compaction", || {
                self.wait_outside(|| {
                    let failure = self.state().failed_since(work, before);
                    let passer_has_ended = turn.passer_has_ended();
                    next = failure.map_or_else(|| self.next_piece(family, progress, report, &pick), Err);
                    let is_blocked = matches!(next, Ok(Next::Blocked));
                    turn.waits_if(is_blocked, passer_has_ended);
                    !is_blocked
                })
            });
            // After a panic the health state has the cause.
            waited.unwrap_or_else(|| self.health.check_writable())?;
            match next? {
                Next::Over => {
                    if replaced {
                        self.await_purge();
                    }
                    return Ok(());
                }
                Next::Blocked => {}
                Next::Run(job, own) => {
                    (replaced, turn.own) = (true, own);
                    self.submit(JobShell::due(self, *job));
                }
            }
        }
    }

    fn next_piece<P: Clone>(
        self: &Arc<Self>,
        family: &Family,
        progress: &mut P,
        report: Option<&Report>,
        pick: &impl Fn(&mut P, &Candidate) -> Result<ManualPick>,
    ) -> Result<Next> {
        loop {
            let (from, was_busy) = {
                let state = self.state();
                if !self.may_choose(&state)? {
                    return Ok(Next::Blocked);
                }
                let Some(live) = state.families.get(family.id()) else {
                    return self.check_live(family).map(|()| Next::Over);
                };
                (Candidate::of(live, &state.running, None), is_busy(&live.version))
            };
            let mut noted = progress.clone();
            let picked = pick(&mut noted, &from)?;
            let choice = match picked {
                ManualPick::Run(plan) => {
                    Some(Choice { report: report.cloned(), ..Choice::new(*plan, &from) })
                }
                ManualPick::Blocked => None,
                ManualPick::Done => return Ok(Next::Over),
            };
            let mut state = self.state();
            if !self.may_choose(&state)? {
                return Ok(Next::Blocked);
            }
            if !from.is_current(&state) {
                continue;
            }
            match choice {
                Some(choice) if choice.is_taken() => return Ok(Next::Blocked),
                Some(choice) => {
                    *progress = noted;
                    let own = choice.claim.clone();
                    let job = CompactionJob::claim(self, &mut state, &from, choice);
                    return Ok(Next::Run(Box::new(job), own));
                }
                None if !from.running.is_empty() || is_busy(&from.version) => {
                    *progress = noted;
                    return Ok(Next::Blocked);
                }
                // The job that had the tables has ended since.
                None if was_busy => {}
                None => return Err(no_order(from.family.name(), &from.version.order)),
            }
        }
    }

    /// Whether a request may choose a compaction now: no as long as the database closes.
    ///
    /// # Errors
    /// `Aborted`: background work is paused, or compactions are aborted. The background error.
    fn may_choose(&self, state: &State) -> Result<bool> {
        if self.is_closed() {
            return Ok(false);
        }
        if self.compactions_aborted() {
            return Err(aborted());
        }
        Self::check_unpaused(state.pauses)?;
        // A compaction that panicked ends the request, because the next one could panic too.
        self.health.check_dropping()?;
        Ok(true)
    }
}

#[cfg(test)]
#[path = "manual_tests.rs"]
mod tests;
