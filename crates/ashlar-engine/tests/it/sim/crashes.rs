//! Random runs, crashed between operations and in the middle of them.

use super::check::{Crash, any_mode};
use super::judged::Judges;
use super::plan::{Setup, Step, steps};
use super::store::Store;
use super::tally::Tally;
use ashlar_env::sim::{CallClass, CrashMode, SimEnv};
use ashlar_testkit::Rng;
use ashlar_testkit::report::figure;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

const SEEDS: u64 = 16;
const OPERATIONS: usize = 600;

/// One run. `photographs`: without them it does the same to the machine.
struct Run {
    store: Store,
    /// Decides when it crashes and how.
    rng: Rng,
}

impl Run {
    fn new(seed: u64) -> Result<(Run, Vec<Step>), String> {
        let mut rng = Rng::new(seed);
        let setup = Setup::draw(&mut rng.fork());
        let steps = steps(&setup, &mut rng.fork(), OPERATIONS);
        Ok((Run { store: Store::new(SimEnv::new(seed), setup)?, rng }, steps))
    }

    /// All steps, with crashes; then RocksDB looks at what is left. Returns the hash of what was done to the last machine.
    fn go(&mut self, steps: &[Step], tally: &mut Tally, judges: Option<&mut Judges>) -> Result<u64, String> {
        for (at, step) in steps.iter().enumerate() {
            tally.operations += 1;
            self.step(step, tally).map_err(|e| format!("step {at}, {}: {e}", brief(step)))?;
        }
        self.store.compare_all().map_err(|e| format!("at the end: {e}"))?;
        tally.unlogged += u64::from(self.store.setup.unlogged);
        tally.blob_files += self.store.blob_files() as u64;
        let hash = self.store.sim.trace_hash();
        if let Some(judges) = judges {
            let closed = self.rng.percent(50) || self.store.setup.unlogged;
            judges.read(&self.store, closed, &mut tally.judged).map_err(|e| format!("judged: {e}"))?;
        }
        Ok(hash)
    }

    fn step(&mut self, step: &Step, tally: &mut Tally) -> Result<(), String> {
        let before = self.store.promise.clone();
        if self.rng.percent(12) {
            let next = self.store.sim.calls_of(CallClass::Change) + self.rng.between(1, 40) as u64;
            let mode = any_mode(&mut self.rng);
            self.store.sim.photograph_at(next, mode);
        }
        self.store.step(step)?;
        for (at, mode, photograph) in self.store.sim.photographs() {
            tally.inside += 1;
            let mut rng = self.rng.fork();
            let checked = Crash::of(&self.store, &before, false).check(&photograph, mode, &mut rng, tally);
            checked.map_err(|e| format!("crash before call {at}: {e}"))?;
        }
        if self.rng.percent(6) {
            let mode = any_mode(&mut self.rng);
            let image = self.store.sim.crash(mode);
            let now = self.store.promise.clone();
            let mut rng = self.rng.fork();
            let found = Crash::of(&self.store, &now, true).check(&image, mode, &mut rng, tally)?;
            if self.rng.percent(8) {
                // The old store must not get in the way of the new one: nothing of it reaches the disk any more.
                let old = &self.store.sim;
                old.fail_call(
                    CallClass::Any,
                    1,
                    ashlar_env::sim::Repeat::Sticky,
                    ashlar_base::error::IoKind::Other,
                );
                self.store.adopt(image, found.db, found.m, found.names);
            }
        }
        Ok(())
    }
}

pub(crate) fn brief(step: &Step) -> String {
    let text = format!("{step:?}");
    text.chars().take(100).collect()
}

fn run(seed: u64, tally: &mut Tally, judges: Option<&mut Judges>) -> Result<u64, String> {
    let (mut run, steps) = Run::new(seed)?;
    tally.seeds += 1;
    let outcome = catch_unwind(AssertUnwindSafe(|| run.go(&steps, tally, judges)));
    outcome.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        Err(format!("panic: {}", text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("?")))
    })
}

pub(crate) fn from_env(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn crashes_lose_nothing_that_was_acknowledged() {
    let mut tally = Tally::default();
    let mut failures = Vec::new();
    let mut judges = Judges::start();
    let one = from_env("ASHLAR_SIM_SEED");
    let time = from_env("ASHLAR_SIM_MINUTES").map(|minutes| Duration::from_secs(60 * minutes));
    let seeds = match (one, time) {
        (Some(seed), _) => seed..seed + 1,
        (None, Some(_)) => 0..u64::MAX,
        (None, None) => 0..from_env("ASHLAR_SIM_SEEDS").unwrap_or(SEEDS),
    };
    let began = Instant::now();
    for seed in seeds {
        if time.is_some_and(|time| began.elapsed() >= time) {
            break;
        }
        let pair = seed % 100 == 7 || one.is_some();
        let _alone = pair.then(crate::alone);
        let first = run(seed, &mut tally, judges.as_mut().ok());
        if let Err(e) = &first {
            tally.hangs += u64::from(e.contains("HANG"));
            failures.push(format!("seed {seed}: {e}"));
        }
        if pair {
            let second = run(seed, &mut Tally::default(), None);
            if first != second {
                failures.push(format!("seed {seed}: two runs differ: {first:?} and {second:?}"));
            }
            tally.pairs += 1;
        }
    }
    figure(&format!("simulated crashes: {tally}; {} differences", failures.len()));
    if let Err(skip) = judges {
        skip.announce("what simulated runs leave, read by RocksDB");
    }
    let shown: Vec<&str> = failures.iter().take(8).map(String::as_str).collect();
    assert!(
        failures.is_empty(),
        "{} seeds failed; replay with ASHLAR_SIM_SEED=n\n{}",
        failures.len(),
        shown.join("\n")
    );
    assert!(one.is_some() || tally.all_crashes() >= 2000, "too few crashes: {tally}");
}

#[test]
fn every_mode_occurs() {
    let mut rng = Rng::new(1);
    let drawn: std::collections::BTreeSet<_> =
        (0..1000).map(|_| super::tally::name(any_mode(&mut rng))).collect();
    assert_eq!(drawn.len(), CrashMode::all().len());
}
