//! The queue of MANIFEST commits: requests that wait, answers that no thread has taken yet, and what only a leader may
//! touch.

use super::FamilyState;
use super::manifest::Manifest;
use super::plan::{CommitRequest, State};
use ashlar_base::{Error, Result};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// The leader of a commit calls this once the records are durable, in commit order, with no lock held. It gets the
/// state of each family that the commit changed, as it is after this commit, and must not commit.
pub type Install = Box<dyn FnOnce(&[Arc<FamilyState>]) + Send>;

/// The queue, which a lock guards.
pub(super) struct Queue {
    /// `None` while a leader works.
    pub(super) manifest_state: Option<Box<ManifestState>>,
    pub(super) answers: BTreeMap<u64, CommitResult>,
    pub(super) waiting: VecDeque<Ticket>,
    pub(super) next_ticket: u64,
    /// The size in bytes above which a MANIFEST is replaced.
    pub(super) bound: u64,
}

/// A place in the queue.
pub(super) struct Ticket {
    pub(super) id: u64,
    pub(super) request: CommitRequest,
    pub(super) install: Install,
}

/// The new states of the families a commit changed.
pub(super) type CommitResult = Result<Vec<Arc<FamilyState>>>;

/// What only the leader of the moment may touch.
pub(super) struct ManifestState {
    pub(super) state: State,
    /// `None` before the first commit, and after a failure.
    pub(super) manifest: Option<Manifest>,
    pub(super) fatal: Option<Error>,
}

impl ManifestState {
    pub(super) fn new(state: State) -> Box<ManifestState> {
        Box::new(ManifestState { state, manifest: None, fatal: None })
    }
}
