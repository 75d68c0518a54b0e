//! The jobs of a lane that wait for a thread. Owners take turns; the jobs of one owner go in their order.
//!
//! So an owner with many jobs does not keep an owner with one job from the threads: the single job waits for one step of
//! each other owner.

use super::{Job, JobId};
use std::collections::{BTreeMap, VecDeque};

/// A job of the executor.
pub(super) struct Entry {
    pub(super) id: JobId,
    pub(super) owner: u64,
    pub(super) job: Box<dyn Job>,
}

/// See the module.
#[derive(Default)]
pub(super) struct Ready {
    /// Never an empty queue.
    queues: BTreeMap<u64, VecDeque<Entry>>,
    /// The owners of `queues`, in the order of their turns.
    turns: VecDeque<u64>,
    len: usize,
}

impl Ready {
    /// Adds a job after those of its owner. An owner without a waiting job gets the last turn.
    pub(super) fn push(&mut self, entry: Entry) {
        let owner = entry.owner;
        let queue = self.queues.entry(owner).or_insert_with(|| {
            self.turns.push_back(owner);
            VecDeque::new()
        });
        queue.push_back(entry);
        self.len += 1;
    }

    /// The job whose turn it is. Its owner gets the last turn.
    pub(super) fn pop(&mut self) -> Option<Entry> {
        let owner = self.turns.pop_front()?;
        let queue = self.queues.get_mut(&owner)?;
        let entry = queue.pop_front();
        if queue.is_empty() {
            self.queues.remove(&owner);
        } else {
            self.turns.push_back(owner);
        }
        self.len -= usize::from(entry.is_some());
        entry
    }

    /// Takes a job out.
    pub(super) fn take(&mut self, id: JobId) -> Option<Entry> {
        let (owner, at) = self.queues.iter().find_map(|(owner, queue)| {
            queue.iter().position(|entry| entry.id == id).map(|at| (*owner, at))
        })?;
        let queue = self.queues.get_mut(&owner)?;
        let entry = queue.remove(at);
        if queue.is_empty() {
            self.queues.remove(&owner);
            self.turns.retain(|turn| *turn != owner);
        }
        self.len -= usize::from(entry.is_some());
        entry
    }

    pub(super) fn has(&self, id: JobId) -> bool {
        self.queues.values().flatten().any(|entry| entry.id == id)
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Takes all jobs.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = Entry> {
        (self.turns, self.len) = (VecDeque::new(), 0);
        std::mem::take(&mut self.queues).into_values().flatten()
    }
}
