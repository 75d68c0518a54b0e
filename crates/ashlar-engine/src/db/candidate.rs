//! Choosing a compaction without the state lock.
//!
//! A choice compares keys, and the comparator may be the user's. A comparator that runs under the state lock may wait for a
//! thread that waits for the lock. So a choice is made from a copy of what the lock guards. The lock is taken again to claim
//! the files; if the family has changed meanwhile, the choice is made again.

use super::core::State;
use crate::column_family::{Family, LiveFamily};
use ashlar_base::{FamilyId, SeqNum};
use ashlar_compaction::{Compaction, Running};
use ashlar_options::CompactionEvent;
use ashlar_tree::version::Version;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

pub(super) type RunningByFamily = BTreeMap<FamilyId, Vec<Running>>;

/// What a compaction of one family is chosen from.
pub(super) struct Candidate {
    pub(super) family: Arc<Family>,
    pub(super) version: Arc<Version>,
    /// The claims of the compactions under way.
    pub(super) running: Vec<Running>,
    /// A table comes to level 0 soon: a flush is under way or due, or the next one is expected.
    pub(super) arriving: bool,
    /// Entries in memtables are newer than this; `None`: there are none.
    pub(super) unflushed_since: Option<SeqNum>,
}

impl Candidate {
    /// A copy of the state of `live`. `now`: the time at which to ask whether a flush is expected; `None`: a caller waits for
    /// all due work, so no flush is awaited.
    pub(super) fn of(live: &LiveFamily, running: &RunningByFamily, now: Option<Duration>) -> Candidate {
        let under_way = live.flushing.is_some() || live.memtables.immutable_len() > 0;
        Candidate {
            family: Arc::clone(&live.family),
            version: Arc::clone(&live.version),
            running: running_of(running, live.family.id()).to_vec(),
            unflushed_since: live.memtables.unflushed_since(),
            arriving: under_way || now.is_some_and(|now| live.flush_rate.is_expected(now)),
        }
    }

    /// Drops the copy. Returns whether nothing else used its version: the family has a newer one.
    pub(super) fn was_last_of_its_version(self) -> bool {
        Arc::into_inner(self.version).is_some()
    }

    /// Whether the family has the tables and the claims that it had when the copy was made. Under the state lock.
    pub(super) fn is_current(&self, state: &State) -> bool {
        let id = self.family.id();
        state.families.get(id).is_some_and(|live| Arc::ptr_eq(&live.version, &self.version))
            && running_of(&state.running, id) == self.running
    }
}

/// A compaction, and the claim to list while it runs.
pub(super) struct Choice {
    pub(super) plan: Compaction,
    pub(super) claim: Option<Running>,
    /// Gets what the compaction did, once it is installed.
    pub(super) report: Option<Report>,
}

/// Where a request looks for what its compaction did.
pub(super) type Report = Arc<OnceLock<CompactionEvent>>;

impl Choice {
    /// `plan`, which was chosen from `candidate`.
    pub(super) fn new(plan: Compaction, candidate: &Candidate) -> Choice {
        let claim = plan.running(&candidate.version.order);
        Choice { plan, claim, report: None }
    }

    /// Whether another job has taken a table since the choice was made.
    pub(super) fn is_taken(&self) -> bool {
        self.plan.files().any(|(_, file)| file.is_compacting())
    }
}

pub(super) fn running_of(running: &RunningByFamily, family: FamilyId) -> &[Running] {
    running.get(&family).map_or(&[], Vec::as_slice)
}

/// Whether a job has taken a table of `version`.
pub(super) fn is_busy(version: &Version) -> bool {
    version.levels.iter().flatten().any(|file| file.is_compacting())
}
