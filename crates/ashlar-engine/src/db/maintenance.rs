//! Flush and compaction on request, and waiting for background work.

use super::Db;
use super::compaction_job::CompactionJob;
use super::core::{Core, State};
use super::schedule::shape;
use crate::column_family::Family;
use crate::compaction::picker::{ManualPick, ManualRange};
use ashlar_base::{FamilyId, Result};
use ashlar_env::{JobKind, Lane};
use std::sync::Arc;

impl Db {
    /// Writes the memtables of `families` to tables and waits for it.
    ///
    /// # Errors
    /// `Io`: a table could not be written. `Shutdown`.
    pub fn flush(&self, families: &[Arc<Family>]) -> Result<()> {
        self.core().check_open()?;
        self.core().health.check_writable()?;
        self.core().flush(&families.iter().map(|f| f.id()).collect::<Vec<_>>())
    }

    /// Compacts the user keys `begin..=end` (`None`: without bound) down to the deepest level that has some, and
    /// rewrites that one, so that nothing deleted is left. Waits for it.
    ///
    /// # Errors
    /// `Io`, `Corruption`: a table could not be read or written. `Shutdown`.
    pub fn compact_range(&self, family: &Family, begin: Option<&[u8]>, end: Option<&[u8]>) -> Result<()> {
        self.core().check_open()?;
        self.core().health.check_writable()?;
        self.core().flush(&[family.id()])?;
        self.core().compact_range(family.id(), ManualRange::new(begin, end, true))
    }

    /// Waits until no background work is under way or due.
    ///
    /// # Errors
    /// The cause, when background work cannot go on. `Shutdown`.
    pub fn wait_for_background(&self) -> Result<()> {
        self.core().schedule();
        self.core().wait_patiently(|state| !Core::busy(state))
    }
}

impl Core {
    pub(super) fn flush(self: &Arc<Self>, families: &[FamilyId]) -> Result<()> {
        self.committer.lead_alone(|| self.seal(families))?;
        self.flush_sealed(families)
    }

    /// Seals the memtables of `families` that hold something. To be called by a leader.
    pub(super) fn seal(self: &Arc<Self>, families: &[FamilyId]) -> Result<()> {
        let filled = {
            let state = self.state();
            let holds = |id: &FamilyId| {
                state.families.get(*id).is_some_and(|f| !f.memtables.current().rep.is_empty())
            };
            families.iter().copied().filter(holds).collect::<Vec<_>>()
        };
        if filled.is_empty() { Ok(()) } else { self.switch(&filled) }
    }

    /// Waits until no sealed memtable of `families` is left.
    pub(super) fn flush_sealed(self: &Arc<Self>, families: &[FamilyId]) -> Result<()> {
        self.schedule();
        let before = self.failures_of(families, JobKind::Flush);
        let mut failure = None;
        self.wait_until(|state| {
            let waits = |id: &FamilyId| state.families.get(*id).is_some_and(|f| f.memtables.sealed_len() > 0);
            if !families.iter().any(waits) {
                return true;
            }
            failure = before.iter().find_map(|(id, n)| state.failed_since((*id, JobKind::Flush), *n));
            failure.is_some()
        })?;
        failure.map_or(Ok(()), Err)
    }

    fn failures_of(&self, families: &[FamilyId], kind: JobKind) -> Vec<(FamilyId, u64)> {
        let state = self.state();
        families.iter().map(|id| (*id, state.failures((*id, kind)))).collect()
    }

    /// Runs the pieces of a manual compaction one after the other.
    fn compact_range(self: &Arc<Self>, family: FamilyId, mut range: ManualRange) -> Result<()> {
        let work = (family, JobKind::Compaction);
        let before = self.state().failures(work);
        loop {
            let mut next = Next::Over;
            let mut failure = None;
            self.wait_until(|state| {
                failure = state.failed_since(work, before);
                if failure.is_none() {
                    next = self.next_piece(state, family, &mut range);
                }
                !matches!(next, Next::Blocked) || failure.is_some()
            })?;
            if let Some(failure) = failure {
                return Err(failure);
            }
            match next {
                Next::Over => return Ok(()),
                Next::Blocked => {}
                Next::Run(job) => {
                    self.submit(job, Lane::Low);
                }
            }
        }
    }

    fn next_piece(self: &Arc<Self>, state: &mut State, family: FamilyId, range: &mut ManualRange) -> Next {
        if self.is_closed() {
            return Next::Blocked;
        }
        let State { families, running, jobs, compactors, .. } = state;
        let Some(live) = families.get(family) else { return Next::Over };
        let claims = running.get(&family).map_or(&[][..], Vec::as_slice);
        let options = live.family.options();
        match range.pick(&shape(live), &options.compaction, claims) {
            ManualPick::Done if claims.is_empty() => Next::Over,
            ManualPick::Done | ManualPick::Blocked => Next::Blocked,
            ManualPick::Run(plan) => {
                *jobs += 1;
                *compactors += 1;
                Next::Run(Box::new(CompactionJob::claim(self, running, live, *plan)))
            }
        }
    }
}

/// What a manual compaction does next.
enum Next {
    Run(Box<CompactionJob>),
    Blocked,
    Over,
}
