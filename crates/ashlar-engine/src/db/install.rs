//! Installing: readers get to see what a commit made durable.

use super::core::{Core, Failed, State};
use crate::health::Severity;
use crate::version::FamilyState;
use ashlar_base::{Error, FamilyId};
use ashlar_env::JobKind;
use std::sync::Arc;

impl Core {
    /// Shows the new trees of `changed`; `flushed` names a family whose oldest memtables are in tables now. Runs inside
    /// the commit, in commit order, with no lock held.
    pub(super) fn install(&self, changed: &[Arc<FamilyState>], flushed: Option<(FamilyId, usize)>) {
        let mut state = self.state();
        for family in changed {
            let Some(live) = state.families.get_mut(family.id) else { continue };
            live.version = Arc::clone(&family.version);
            if let Some((_, count)) = flushed.filter(|(id, _)| *id == family.id) {
                live.memtables.flushed(count);
            }
            self.publish(&mut state, family.id);
        }
        state.purge_wanted = true;
    }

    /// Takes in an error of a family's background work, and tells those who wait for it.
    pub(super) fn background_failed(&self, family: FamilyId, kind: JobKind, cause: &Error) {
        let severity = if self.versions.fatal().is_some() { Severity::Hard } else { Severity::Soft };
        self.health.report(severity, cause);
        {
            let mut state = self.state();
            let times = state.failures((family, kind)) + 1;
            state.failed.insert((family, kind), Failed { times, last: cause.clone() });
        }
        self.progress.notify();
    }
}

impl State {
    /// How often that work has failed since the open.
    pub(super) fn failures(&self, work: (FamilyId, JobKind)) -> u64 {
        self.failed.get(&work).map_or(0, |f| f.times)
    }

    /// The last failure of that work if it is newer than `before`.
    pub(super) fn failed_since(&self, work: (FamilyId, JobKind), before: u64) -> Option<Error> {
        self.failed.get(&work).filter(|f| f.times > before).map(|f| f.last.clone())
    }
}
