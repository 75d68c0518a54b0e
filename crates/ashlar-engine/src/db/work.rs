//! The kinds of background work that have at most one job per database, and whether that job exists.
//!
//! Flushes and compactions are not in this table: a flush is marked at its family, a compaction claims its files.

use ashlar_env::JobId;
use std::collections::BTreeMap;

/// A kind of background work that one job of a database does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Work {
    /// Takes writes again after a hard error.
    Resume,
    /// Tries to reserve WAL space again after the disk was full.
    LogRoom,
    /// Re-checks a level 0 that waits for a flush.
    L0Delay,
    /// Removes obsolete files.
    Purge,
    /// Runs work that only the clock makes due.
    Timer,
    /// Reads all files to find damage.
    Scrub,
}

impl Work {
    /// All kinds, in the order in which the scheduler checks them.
    pub(super) const ALL: [Work; 6] =
        [Work::Resume, Work::LogRoom, Work::L0Delay, Work::Purge, Work::Timer, Work::Scrub];

    /// Whether a pause of background work waits for the job. The timer and the scrubber end only with the database or
    /// by a change of settings, so only a close waits for them.
    pub(super) fn is_counted(self) -> bool {
        !matches!(self, Work::Timer | Work::Scrub)
    }

    /// Whether callers wait for the job's first step. Otherwise the job begins by waiting.
    fn begins_awaited(self) -> bool {
        matches!(self, Work::Resume | Work::Purge)
    }
}

/// The existing jobs, at most one per kind of work.
#[derive(Debug, Default)]
pub(crate) struct Slots(BTreeMap<Work, Slot>);

#[derive(Debug)]
struct Slot {
    /// Noted only for work that [`Work::is_counted`] excludes.
    id: Option<JobId>,
    /// False while the job itself waits: callers that wait for background work then ignore the job.
    awaited: bool,
}

impl Slots {
    /// Takes the slot for a new job; false if a job has it.
    pub(super) fn take(&mut self, work: Work) -> bool {
        let free = self.is_free(work);
        if free {
            self.0.insert(work, Slot { id: None, awaited: work.begins_awaited() });
        }
        free
    }

    /// The job of `work` has ended.
    pub(super) fn free(&mut self, work: Work) {
        self.0.remove(&work);
    }

    /// Whether no job does `work`.
    pub(super) fn is_free(&self, work: Work) -> bool {
        !self.0.contains_key(&work)
    }

    /// Whether there is no job.
    pub(super) fn are_free(&self) -> bool {
        self.0.is_empty()
    }

    /// The id of the job, if there is one and its id was noted.
    pub(super) fn id(&self, work: Work) -> Option<JobId> {
        self.0.get(&work).and_then(|slot| slot.id)
    }

    /// The ids that were noted.
    pub(super) fn ids(&self) -> impl Iterator<Item = JobId> {
        self.0.values().filter_map(|slot| slot.id)
    }

    /// Notes the id of the job, unless the job has ended. If a later job has its place already, the later id stays.
    pub(super) fn set_id(&mut self, work: Work, id: JobId) {
        if let Some(slot) = self.0.get_mut(&work) {
            slot.id = slot.id.max(Some(id));
        }
    }

    /// Notes whether callers wait for the job.
    pub(super) fn set_awaited(&mut self, work: Work, awaited: bool) {
        if let Some(slot) = self.0.get_mut(&work) {
            slot.awaited = awaited;
        }
    }

    /// Whether `work` has a job for which callers wait.
    pub(super) fn is_awaited(&self, work: Work) -> bool {
        self.0.get(&work).is_some_and(|slot| slot.awaited)
    }

    /// How many of the counted jobs are ignored by callers that wait for background work.
    pub(super) fn waiting(&self) -> usize {
        self.0.iter().filter(|(work, slot)| work.is_counted() && !slot.awaited).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_late_id_of_a_job_that_has_ended_does_not_replace_that_of_its_successor() {
        let mut slots = Slots::default();
        slots.take(Work::Timer);
        slots.free(Work::Timer);
        slots.take(Work::Timer);
        slots.set_id(Work::Timer, JobId(2));
        slots.set_id(Work::Timer, JobId(1));
        assert_eq!(slots.id(Work::Timer), Some(JobId(2)));
    }

    #[test]
    fn a_slot_has_one_job_and_callers_wait_for_what_works() {
        let mut slots = Slots::default();
        assert!(slots.take(Work::Purge) && !slots.take(Work::Purge) && !slots.are_free());
        assert_eq!(slots.waiting(), 0);
        slots.set_awaited(Work::Purge, false);
        assert_eq!(slots.waiting(), 1);
        assert!(slots.take(Work::L0Delay) && slots.take(Work::Timer));
        assert_eq!(slots.waiting(), 2, "a timer is not counted");
        slots.free(Work::Purge);
        slots.free(Work::L0Delay);
        slots.free(Work::Timer);
        assert!(slots.are_free() && slots.take(Work::Purge));
    }
}
