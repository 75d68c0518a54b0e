//! Compaction on request: of a range of keys, or of files by their numbers.
//!
//! The caller picks, claims, submits and waits; the jobs are ordinary compaction jobs.

use super::Db;
use super::compaction_job::{CompactionJob, aborted};
use super::core::{Core, State};
use super::job::JobShell;
use crate::column_family::{Family, LiveFamily};
use ashlar_base::{Error, FamilyId, FileNumber, Level, Order, Result};
use ashlar_compaction::picker::{ManualPick, ManualRange, Shape, pick_chosen, pick_refit};
use ashlar_compaction::{Compaction, Running};
use ashlar_env::JobKind;
use ashlar_options::CompactRangeOptions;
use std::sync::Arc;

impl Db {
    /// Compacts the user keys `begin..=end` (`None`: unbounded) down to the deepest level that has any of them.
    /// Rewrites tables of that level that no compaction reached, so that no deleted entry is left. Waits for all of it.
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
    /// As there; `InvalidArgument`: the target level does not exist, or levels on the way to it are not empty.
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
        refuse_level0_only(family)?;
        let range = ManualRange::new(begin, end, options.rewrite_deepest);
        if !options.exclusive {
            return core.compact_range(family.id(), range, options);
        }
        core.state().exclusive += 1;
        let done = core
            .wait_until(|state| state.compactors == 0)
            .and_then(|()| core.compact_range(family.id(), range, options));
        core.state().exclusive -= 1;
        core.schedule();
        done
    }

    /// Compacts tables by their numbers into the level `output`, and waits. Further tables are included where an older
    /// version would otherwise end above a newer one. If a listed table is gone when the compaction begins, the call
    /// fails; retry with current numbers.
    ///
    /// # Errors
    /// `InvalidArgument`: a table that is not in the tree or is deeper than `output`, no such level. Else as
    /// [`Db::compact_range`].
    pub fn compact_files(
        &self,
        family: &Family,
        numbers: &[FileNumber],
        output: Level,
        max_subcompactions: usize,
    ) -> Result<()> {
        let core = self.core();
        core.check_open()?;
        core.check_outside("compact_files()")?;
        core.check_live(family)?;
        core.health.check_working()?;
        refuse_level0_only(family)?;
        core.compact_one(family.id(), |live, claims| {
            let options = live.family.options();
            let picked =
                pick_chosen(&Shape::of(&live.version), &options.compaction, claims, numbers, output)?;
            Ok(picked.map(|plan| Compaction { parts_max: max_subcompactions, ..plan }))
        })
    }
}

/// Refuses to compact a tree that RocksDB keeps in level 0: RocksDB would not open such a tree with a table in another
/// level.
fn refuse_level0_only(family: &Family) -> Result<()> {
    let options = family.options();
    if !options.compaction.level0_only {
        return Ok(());
    }
    let stored = |name: &str, default: &str| options.kept.get(name).unwrap_or_else(|| default.to_owned());
    Err(Error::not_supported(format!(
        "family {:?} has compaction_style={} and num_levels={} and is not compacted: RocksDB keeps its tables in level 0",
        family.name(),
        stored("compaction_style", "kCompactionStyleLevel"),
        stored("num_levels", "7"),
    ))
    .hint(
        "To make it a leveled tree for good, open it with compaction_style=kCompactionStyleLevel and num_levels=7",
    ))
}

/// Whether a compaction has claimed files of the family.
fn is_busy(live: &LiveFamily) -> bool {
    live.version.levels.iter().flatten().any(|file| file.is_compacting())
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
    Run(Box<CompactionJob>),
    Blocked,
    Over,
}

impl Core {
    /// Runs the pieces of a manual compaction one after the other.
    fn compact_range(
        self: &Arc<Self>,
        family: FamilyId,
        mut range: ManualRange,
        options: CompactRangeOptions,
    ) -> Result<()> {
        self.run_pieces(family, |live, claims| {
            let settings = live.family.options();
            let next_file = self.versions.next_file_number();
            Ok(match range.pick(&Shape::of(&live.version), &settings.compaction, claims, next_file) {
                ManualPick::Run(plan) => {
                    ManualPick::Run(Box::new(Compaction { parts_max: options.max_subcompactions, ..*plan }))
                }
                ManualPick::Done if !claims.is_empty() => ManualPick::Blocked,
                other => other,
            })
        })?;
        match options.target_level {
            Some(target) => self.compact_one(family, |live, claims| {
                let settings = live.family.options();
                pick_refit(&Shape::of(&live.version), &settings.compaction, claims, target)
            }),
            None => Ok(()),
        }
    }

    /// Runs the one compaction that `pick` finds (`None`: not possible now), to its end.
    fn compact_one(
        self: &Arc<Self>,
        family: FamilyId,
        pick: impl Fn(&LiveFamily, &[Running]) -> Result<Option<Compaction>>,
    ) -> Result<()> {
        let mut started: Option<Running> = None;
        self.run_pieces(family, |live, claims| {
            if let Some(claim) = &started {
                return Ok(if claims.contains(claim) { ManualPick::Blocked } else { ManualPick::Done });
            }
            Ok(match pick(live, claims)? {
                None => ManualPick::Blocked,
                // Nothing to compact.
                Some(plan) if plan.inputs.is_empty() => ManualPick::Done,
                Some(plan) => {
                    started = plan.running(&live.version.order);
                    ManualPick::Run(Box::new(plan))
                }
            })
        })
    }

    /// Picks the next piece, runs it, and waits while it is blocked, until all pieces are done.
    fn run_pieces(
        self: &Arc<Self>,
        family: FamilyId,
        mut pick: impl FnMut(&LiveFamily, &[Running]) -> Result<ManualPick>,
    ) -> Result<()> {
        let work = (family, JobKind::Compaction);
        let before = self.state().failures(work);
        loop {
            let mut next = Ok(Next::Blocked);
            let waited = self.contained("choosing a compaction", || {
                self.wait_until(|state| {
                    next = match state.failed_since(work, before) {
                        Some(failure) => Err(failure),
                        None => self.next_piece(state, family, &mut pick),
                    };
                    !matches!(next, Ok(Next::Blocked))
                })
            });
            // After a panic the health state has the cause.
            waited.unwrap_or_else(|| self.health.check_writable())?;
            match next? {
                Next::Over => return Ok(()),
                Next::Blocked => {}
                Next::Run(job) => self.submit(JobShell::due(self, *job)),
            }
        }
    }

    fn next_piece(
        self: &Arc<Self>,
        state: &mut State,
        family: FamilyId,
        pick: &mut impl FnMut(&LiveFamily, &[Running]) -> Result<ManualPick>,
    ) -> Result<Next> {
        if self.is_closed() {
            return Ok(Next::Blocked);
        }
        if self.compactions_aborted() {
            return Err(aborted());
        }
        Self::check_unpaused(state.pauses)?;
        // A compaction that panicked ends the request, because the next one could panic too.
        self.health.check_dropping()?;
        let State { families, running, jobs, compactors, .. } = state;
        let Some(live) = families.get(family) else { return Ok(Next::Over) };
        let claims = running.get(&family).map_or(&[][..], Vec::as_slice);
        Ok(match pick(live, claims)? {
            ManualPick::Done => Next::Over,
            ManualPick::Blocked if claims.is_empty() && !is_busy(live) => {
                return Err(no_order(live.family.name(), &live.version.order));
            }
            ManualPick::Blocked => Next::Blocked,
            ManualPick::Run(plan) => {
                // A comparator may panic before the job exists, so the job is counted only once it exists.
                let job = CompactionJob::claim(self, running, live, *plan);
                *jobs += 1;
                *compactors += 1;
                Next::Run(Box::new(job))
            }
        })
    }
}
