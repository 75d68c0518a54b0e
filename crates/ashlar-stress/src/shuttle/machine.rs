//! The machine of a case: the simulated disk, threads of the scheduler, and its time.

use ashlar_env::jobs::ThreadExecutor;
use ashlar_env::sim::SimEnv;
use ashlar_env::{Clock, Env};
use ashlar_sync::schedule;
use std::sync::Arc;
use std::time::Duration;

/// 2020-01-01 00:00:00 UTC.
const START_UNIX_MICROS: u64 = 1_577_836_800_000_000;

/// The time of the run.
#[derive(Debug)]
struct RunClock;

impl Clock for RunClock {
    fn now(&self) -> Duration {
        schedule::now()
    }

    fn unix_micros(&self) -> u64 {
        START_UNIX_MICROS + u64::try_from(schedule::now().as_micros()).unwrap_or(u64::MAX / 2)
    }

    fn sleep(&self, d: Duration) {
        schedule::sleep(d);
    }
}

/// The services of a simulated machine, with background work on `1 + low` threads.
pub fn env(sim: &SimEnv, low: usize) -> Env {
    let clock = Arc::new(RunClock);
    let jobs = Arc::new(ThreadExecutor::new(Arc::clone(&clock) as _, 1, low));
    Env { clock, jobs, ..sim.env() }
}
