//! The order of a case: which thread takes the next step.

use ashlar_sync::schedule;
use ashlar_sync::shuttle::scheduler::{Schedule, Scheduler, Task, TaskId};
use ashlar_testkit::Rng;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Priority changes of a case of depth 3.
const CHANGES: usize = 2;
/// Time passes at one step in so many although a thread could go on.
const HASTE: usize = 4096;

/// A thread is stopped for a while at one step in so many of those that have naps.
const TIRED: usize = 256;

/// How the next thread is chosen.
enum Policy {
    /// Among all that can go on, each as likely.
    Random,
    /// Likewise; but now and then one stops where it is, for as long as others take for anything from a lock to a flush.
    /// By thread: the step at which it goes on.
    Naps { asleep: BTreeMap<TaskId, u64> },
    /// The one of the highest priority (the lowest number here). At the steps `changes`, and when it yields, the running
    /// one falls behind all others.
    Pct { priorities: BTreeMap<usize, u64>, changes: Vec<u64>, behind: u64 },
}

/// The order of one run, drawn from a seed.
pub struct Order {
    seed: u64,
    policy: Policy,
    rng: Rng,
    used: bool,
    /// Steps at which there was a choice.
    choices: u64,
    steps: Arc<AtomicU64>,
}

impl Order {
    /// The order of a seed. `steps` counts its steps.
    pub fn new(seed: u64, steps: Arc<AtomicU64>) -> Order {
        let mut rng = Rng::new(seed ^ 0x5eed_0f0a_11de_a15e);
        let policy = match seed % 3 {
            0 => Policy::Random,
            1 => Policy::Naps { asleep: BTreeMap::new() },
            _ => {
                // How long the run will be is not known: any order of magnitude is as likely.
                let end = 1 << rng.between(6, 14);
                let changes = (0..CHANGES).map(|_| rng.between(1, end) as u64).collect();
                Policy::Pct { priorities: BTreeMap::new(), changes, behind: 1 << 63 }
            }
        };
        Order { seed, policy, rng, used: false, choices: 0, steps }
    }
}

impl Scheduler for Order {
    fn new_execution(&mut self) -> Option<Schedule> {
        let first = !std::mem::replace(&mut self.used, true);
        first.then(|| Schedule::new(self.seed))
    }

    fn next_task(&mut self, ready: &[&Task], current: Option<TaskId>, yields: bool) -> Option<TaskId> {
        self.steps.fetch_add(1, Ordering::Relaxed);
        let keeper = schedule::keeper();
        let waits = ready.len() > 1 && self.rng.below(HASTE) != 0;
        let ready: Vec<TaskId> =
            ready.iter().map(|task| task.id()).filter(|id| !waits || Some(*id) != keeper).collect();
        if let [only] = ready[..] {
            return Some(only);
        }
        self.choices += 1;
        match &mut self.policy {
            Policy::Random => self.rng.pick(&ready).copied(),
            Policy::Naps { asleep } => {
                if let Some(current) = current.filter(|_| self.rng.below(TIRED) == 0) {
                    asleep.insert(current, self.choices + (1 << self.rng.between(4, 12)));
                }
                asleep.retain(|_, until| *until > self.choices);
                let awake: Vec<TaskId> =
                    ready.iter().filter(|id| !asleep.contains_key(id)).copied().collect();
                let first = || ready.iter().min_by_key(|id| asleep.get(id)).copied();
                self.rng.pick(&awake).copied().or_else(first)
            }
            Policy::Pct { priorities, changes, behind } => {
                if let Some(current) = current.filter(|_| yields || changes.contains(&self.choices)) {
                    *behind += 1;
                    priorities.insert(usize::from(current), *behind);
                }
                let rng = &mut self.rng;
                ready.into_iter().min_by_key(|id| {
                    *priorities.entry(usize::from(*id)).or_insert_with(|| rng.next_u64() >> 1)
                })
            }
        }
    }

    fn next_u64(&mut self) -> u64 {
        self.rng.next_u64()
    }
}
