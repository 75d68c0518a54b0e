//! Installing: readers get to see what a commit made durable.

use super::core::Core;
use crate::health::Severity;
use crate::version::FamilyState;
use ashlar_base::{Error, FamilyId};
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

    /// Takes in an error of background work.
    pub(super) fn background_failed(&self, cause: &Error) {
        let severity = if self.versions.fatal().is_some() { Severity::Hard } else { Severity::Soft };
        self.health.report(severity, cause);
    }
}
