//! Random runs, crashed between operations and in the middle of them.

use super::check::{Crash, any_mode};
use super::features::{Which, among};
use super::judged::Judges;
use super::plan::{Setup, Step, steps};
use super::secondary::shows;
use super::store::{Store, open};
use super::tally::{Tally, name};
use ashlar_base::Error;
use ashlar_base::error::IoKind;
use ashlar_env::sim::{CallClass, CrashMode, Repeat, SimEnv};
use ashlar_log::RecoveryMode;
use ashlar_testkit::Rng;
use ashlar_testkit::ops::Op;
use ashlar_testkit::suite::guarded;

const OPERATIONS: usize = 600;

/// Makes the generator of the features from a seed.
pub(super) const FEATURES: u64 = 0x5eed_fea7;

/// One history.
struct Run {
    store: Store,
    /// Decides when it crashes and how.
    rng: Rng,
    /// Decides where the files are.
    places: Rng,
    /// Decides which features there are, and how they crash.
    features: Rng,
}

impl Run {
    fn new(seed: u64) -> Result<(Run, Vec<Step>), String> {
        let mut rng = Rng::new(seed);
        let mut places = Rng::new(!seed);
        let mut features = Rng::new(seed ^ FEATURES);
        let setup = Setup::draw(&mut rng.fork()).placed(&mut places).featured();
        let steps = steps(&setup, &mut rng.fork(), OPERATIONS);
        let steps = among(steps, &setup, Which::All, &mut features);
        Ok((Run { store: Store::new(SimEnv::new(seed), setup)?, rng, places, features }, steps))
    }

    /// All steps, with crashes; then RocksDB looks at what is left. Returns the hash of what was done to the last machine.
    fn go(&mut self, steps: &[Step], tally: &mut Tally, judges: Option<&mut Judges>) -> Result<u64, String> {
        for (at, step) in steps.iter().enumerate() {
            tally.operations += 1;
            self.step(step, tally).map_err(|e| format!("step {at}, {}: {e}", brief(step)))?;
        }
        self.store
            .compare_all()
            .and_then(|()| self.store.views_hold())
            .map_err(|e| format!("at the end: {e}"))?;
        tally.unlogged += u64::from(self.store.setup.unlogged);
        tally.held_back += u64::from(self.store.setup.holds_back());
        tally.blob_files += self.store.blob_files() as u64;
        tally.ingested += self.store.ingested;
        tally.imported += self.store.imported;
        tally.feature(&self.store.features);
        tally.placed += u64::from(self.store.setup.places.are_any());
        for (count, extension) in tally.elsewhere.iter_mut().zip(["log", "sst", "blob"]) {
            *count += self.store.files_elsewhere(extension) as u64;
        }
        let hash = self.store.sim.trace_hash();
        if let Some(judges) = judges {
            let closed = self.rng.percent(50) || self.store.setup.unlogged;
            judges.read(&self.store, closed, &mut tally.judged).map_err(|e| format!("judged: {e}"))?;
        }
        Ok(hash)
    }

    fn step(&mut self, step: &Step, tally: &mut Tally) -> Result<(), String> {
        let before = self.store.promise.clone();
        if matches!(step, Step::Op(Op::Reopen)) {
            self.store.setup.places.change(&mut self.places);
        }
        let copies = self.store.copies();
        let feature = matches!(step, Step::Feature(_));
        let rng = if feature { &mut self.features } else { &mut self.rng };
        if rng.percent(if feature { 30 } else { 12 }) {
            let next = self.store.sim.calls_of(CallClass::Change) + rng.between(1, 40) as u64;
            let mode = any_mode(rng);
            self.store.sim.photograph_at(next, mode);
        }
        self.store.step(step)?;
        for (at, mode, photograph) in self.store.sim.photographs() {
            tally.inside += 1;
            if mode == CrashMode::KILL {
                let opened = opens_tolerant(&photograph, &self.store.setup);
                opened.map_err(|e| format!("kill before call {at}, a torn tail tolerated: {e}"))?;
            }
            self.a_copy_holds(copies, &photograph).map_err(|e| format!("crash before call {at}: {e}"))?;
            if mode == CrashMode::KILL || at.is_multiple_of(16) {
                let power = mode != CrashMode::KILL;
                let shown = shows(&Crash { power, ..Crash::of(&self.store, &before, false) }, &photograph);
                shown.map_err(|e| format!("{} before call {at}: {e}", name(mode)))?;
            }
            let mut rng = if feature { self.features.fork() } else { self.rng.fork() };
            let checked = Crash::of(&self.store, &before, false).check(&photograph, mode, &mut rng, tally);
            checked.map_err(|e| format!("crash before call {at}: {e}"))?;
        }
        let rng = if feature { &mut self.features } else { &mut self.rng };
        if rng.percent(6) {
            let mode = any_mode(rng);
            let image = self.store.sim.crash(mode);
            let now = self.store.promise.clone();
            let (mut fork, goes_on) = (rng.fork(), rng.percent(8));
            self.a_copy_holds(copies, &image).map_err(|e| format!("after {}: {e}", name(mode)))?;
            let found = Crash::of(&self.store, &now, true).check(&image, mode, &mut fork, tally)?;
            if goes_on {
                // The old store must not get in the way of the new one: nothing of it reaches the disk any more.
                let old = &self.store.sim;
                old.fail_call(CallClass::Any, 1, Repeat::Sticky, IoKind::Other);
                self.store.adopt(image, found.db, found.m, found.names);
            }
        }
        Ok(())
    }

    /// Looks at a copy after some of the crashes.
    fn a_copy_holds(&mut self, before: u64, image: &SimEnv) -> Result<(), String> {
        match self.features.percent(20) {
            true => self.store.a_copy_holds(before, image, &mut self.features),
            false => Ok(()),
        }
    }
}

/// A kill leaves no more than a torn tail: the mode that tolerates one, and no other damage, opens the store.
fn opens_tolerant(sim: &SimEnv, setup: &Setup) -> Result<(), Error> {
    let mut setup = setup.clone();
    setup.db.recovery_mode = RecoveryMode::TolerateTail;
    open(&sim.crash(CrashMode::KILL), &setup).map(drop)
}

/// A step in a few words.
pub fn brief(step: &Step) -> String {
    let text = format!("{step:?}");
    text.chars().take(100).collect()
}

/// The history of a seed. Answers the hash of all that was done to its last machine: equal for equal runs.
///
/// # Errors
/// What does not hold.
pub fn history(seed: u64, tally: &mut Tally, judges: Option<&mut Judges>) -> Result<u64, String> {
    let (mut run, steps) = Run::new(seed)?;
    tally.seeds += 1;
    guarded(|| run.go(&steps, tally, judges))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ashlar_env::sim::CrashMode;

    #[test]
    fn every_mode_occurs() {
        let mut rng = Rng::new(1);
        let drawn: std::collections::BTreeSet<_> = (0..1000).map(|_| name(any_mode(&mut rng))).collect();
        assert_eq!(drawn.len(), CrashMode::all().len());
    }
}
