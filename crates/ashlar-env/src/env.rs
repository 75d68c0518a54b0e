//! The four services of the machine in one value: files, clock, threads, randomness.

use crate::jobs::{JobExecutor, ThreadExecutor};
use crate::{Clock, Fs, MemFs, OsClock, OsFs, OsRand, Rand, SeededRand};
use ashlar_base::Result;
use ashlar_base::stats::Ticks;
use std::sync::Arc;

/// Files, clock, randomness and background work. Clones share.
#[derive(Clone, Debug)]
pub struct Env {
    /// Files and directories.
    #[doc(hidden)]
    pub fs: Arc<dyn Fs>,
    /// Time.
    #[doc(hidden)]
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    #[doc(hidden)]
    pub rand: Arc<dyn Rand>,
    /// Background work.
    #[doc(hidden)]
    pub jobs: Arc<dyn JobExecutor>,
}

impl Env {
    /// The machine itself. One thread for flushes, one per further core (at least one) for compactions; threads start
    /// with the first job.
    ///
    /// # Errors
    /// `Io`: the system gives no random seed.
    pub fn os() -> Result<Env> {
        let (rand, clock) = (Arc::new(OsRand::new()?), Arc::new(OsClock::new()));
        Ok(Env { fs: Arc::new(OsFs::new()), jobs: threads(&clock), clock, rand })
    }

    /// Files in memory, everything else as the machine has it: for tests that want speed, not faults.
    pub fn mem() -> Env {
        let clock = Arc::new(OsClock::new());
        let rand: Arc<dyn Rand> = match OsRand::new() {
            Ok(rand) => Arc::new(rand),
            Err(_) => Arc::new(SeededRand::new(clock.unix_micros())),
        };
        Env { fs: Arc::new(MemFs::new()), jobs: threads(&clock), clock, rand }
    }

    /// The clock, for statistics.
    #[doc(hidden)]
    pub fn ticks(&self) -> Ticks {
        let clock = Arc::clone(&self.clock);
        Ticks::new(move || u64::try_from(clock.now().as_nanos()).unwrap_or(u64::MAX))
    }
}

fn threads(clock: &Arc<OsClock>) -> Arc<dyn JobExecutor> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    Arc::new(ThreadExecutor::new(Arc::clone(clock) as _, 1, cores.saturating_sub(1).max(1)))
}
