//! Runs jobs in the caller's thread, so that one seed decides every interleaving.
//!
//! 1. Jobs run only inside [`InlineExecutor::drive`](super::JobExecutor::drive) and inside waits on this executor's
//!    signals. A seeded generator draws the runnable job that gets the next step.
//! 2. When every job waits for time, the virtual clock jumps to the earliest of those times.
//! 3. Meant for one foreground thread. A wait inside a step runs the *other* jobs.

use super::threads::{abort, step_caught};
use super::{Job, JobExecutor, JobId, Lane, StepResult};
use crate::{Clock, SeededRand, VirtualClock};
use ashlar_sync::{Mutex, Rank, Signal, WaitHook};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Every job gets its turn. `width` returns this number, so that there are jobs to interleave.
const LOW_WIDTH: usize = 4;

/// Runs jobs in the caller, in an order that a seed decides.
pub struct InlineExecutor {
    inner: Arc<Inner>,
}

struct Inner {
    state: Mutex<State>,
    clock: Arc<VirtualClock>,
    rand: SeededRand,
}

#[derive(Default)]
struct State {
    next_id: u64,
    closed: bool,
    jobs: BTreeMap<JobId, Place>,
}

enum Place {
    Ready(Box<dyn Job>),
    /// Waits until the given time; `None`: until a wake.
    Waiting(Option<Duration>, Box<dyn Job>),
    /// Its step runs; holds whether it was woken since the step began.
    Stepping(bool),
}

impl State {
    /// The runnable jobs, oldest first.
    fn runnable(&self, now: Duration) -> Vec<JobId> {
        let due = |place: &Place| match place {
            Place::Ready(_) => true,
            Place::Waiting(due, _) => due.is_some_and(|d| d <= now),
            Place::Stepping(_) => false,
        };
        self.jobs.iter().filter(|(_, place)| due(place)).map(|(id, _)| *id).collect()
    }

    /// Takes a job out for a step.
    fn take(&mut self, id: JobId) -> Option<Box<dyn Job>> {
        match self.jobs.insert(id, Place::Stepping(false))? {
            Place::Ready(job) | Place::Waiting(_, job) => Some(job),
            Place::Stepping(woken) => {
                self.jobs.insert(id, Place::Stepping(woken));
                None
            }
        }
    }
}

/// The time at which a job that waits `d` is due; `None` when the clock cannot get there, so that only a wake counts.
fn due_after(now: Duration, d: Duration) -> Option<Duration> {
    now.checked_add(d).filter(|due| due.as_nanos() <= u128::from(u64::MAX))
}

impl Inner {
    /// Steps one runnable job, drawn at random. False: no job is runnable.
    fn step_one(&self) -> bool {
        let (id, mut job) = {
            let mut state = self.state.lock();
            let runnable = state.runnable(self.clock.now());
            let Ok(drawn) = usize::try_from(self.rand.below(runnable.len() as u64)) else { return false };
            let Some(id) = runnable.get(drawn).copied() else { return false };
            let Some(job) = state.take(id) else { return false };
            (id, job)
        };
        let result = step_caught(job.as_mut());
        let mut state = self.state.lock();
        let woken = matches!(state.jobs.remove(&id), Some(Place::Stepping(true)));
        let place = match result {
            Some(StepResult::Wait(d)) if !woken => Place::Waiting(due_after(self.clock.now(), d), job),
            Some(StepResult::Again | StepResult::Wait(_)) => Place::Ready(job),
            Some(StepResult::Done) => {
                drop(state);
                drop(job);
                return true;
            }
            None => {
                drop(state);
                abort(job);
                return true;
            }
        };
        if state.closed {
            drop(state);
            place.abort();
        } else {
            state.jobs.insert(id, place);
        }
        true
    }

    /// The time until the first waiting job is due.
    fn until_due(&self) -> Option<Duration> {
        let state = self.state.lock();
        let dues = state.jobs.values().filter_map(|place| match place {
            Place::Waiting(due, _) => *due,
            Place::Ready(_) | Place::Stepping(_) => None,
        });
        dues.min().map(|due| due.saturating_sub(self.clock.now()))
    }
}

impl Place {
    fn abort(self) {
        match self {
            Place::Ready(job) | Place::Waiting(_, job) => abort(job),
            Place::Stepping(_) => {}
        }
    }
}

impl WaitHook for Inner {
    fn pass(&self, timeout: Option<Duration>) -> bool {
        if self.step_one() {
            return true;
        }
        // Nothing is runnable, so all jobs wait for time.
        let jump = match (self.until_due(), timeout) {
            (Some(due), Some(limit)) => due.min(limit),
            (Some(d), None) | (None, Some(d)) => d,
            (None, None) => return false,
        };
        self.clock.advance(jump);
        true
    }

    fn now(&self) -> Duration {
        self.clock.now()
    }
}

impl InlineExecutor {
    /// An executor on `clock` that draws the next job from `rand`.
    pub fn new(clock: Arc<VirtualClock>, rand: SeededRand) -> Self {
        InlineExecutor {
            inner: Arc::new(Inner { state: Mutex::new(Rank::Env, State::default()), clock, rand }),
        }
    }

    /// The number of unfinished jobs.
    pub fn unfinished(&self) -> usize {
        self.inner.state.lock().jobs.len()
    }
}

impl JobExecutor for InlineExecutor {
    fn submit(&self, job: Box<dyn Job>, _lane: Lane) -> JobId {
        let mut state = self.inner.state.lock();
        state.next_id += 1;
        let id = JobId(state.next_id);
        if state.closed {
            drop(state);
            abort(job);
        } else {
            state.jobs.insert(id, Place::Ready(job));
        }
        id
    }

    fn wake(&self, id: JobId) {
        let mut state = self.inner.state.lock();
        if let Some(place) = state.jobs.remove(&id) {
            let place = match place {
                Place::Ready(job) | Place::Waiting(_, job) => Place::Ready(job),
                Place::Stepping(_) => Place::Stepping(true),
            };
            state.jobs.insert(id, place);
        }
    }

    fn knows(&self, id: JobId) -> bool {
        self.inner.state.lock().jobs.contains_key(&id)
    }

    fn width(&self, lane: Lane) -> usize {
        match lane {
            Lane::High => 1,
            Lane::Low => LOW_WIDTH,
        }
    }

    fn widen(&self, _: Lane, _: usize) {}

    fn signal(&self) -> Signal {
        Signal::new(Some(Arc::clone(&self.inner) as Arc<dyn WaitHook>))
    }

    fn drive(&self, steps: usize) -> usize {
        let mut done = 0;
        while done < steps {
            if self.inner.step_one() {
                done += 1;
                continue;
            }
            match self.inner.until_due() {
                Some(due) => self.inner.clock.advance(due),
                None => break,
            }
        }
        done
    }

    fn close(&self) {
        let jobs = {
            let mut state = self.inner.state.lock();
            state.closed = true;
            // The thread that steps a job at this moment aborts it.
            let (stepping, rest) = std::mem::take(&mut state.jobs)
                .into_iter()
                .partition(|(_, p)| matches!(p, Place::Stepping(_)));
            state.jobs = stepping;
            rest
        };
        jobs.into_values().for_each(Place::abort);
    }
}

impl Drop for InlineExecutor {
    fn drop(&mut self) {
        self.close();
    }
}

impl fmt::Debug for InlineExecutor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InlineExecutor").field("unfinished", &self.unfinished()).finish()
    }
}
