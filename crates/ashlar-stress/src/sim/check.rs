//! Checks a store after a crash: opens it, reads it, compares it with the model, and crashes it again.

use super::expiring::compared;
use super::plan::Setup;
use super::store::{DIR, Names, Promise, Store, listing, model_name, open, scribble};
use super::tally::{Tally, name};
use super::transactions::{PREPARED, holds_its_locks, prepared};
use ashlar_base::ErrorKind;
use ashlar_engine::Db;
use ashlar_env::sim::{CrashMode, SimEnv};
use ashlar_options::ReadOptions;
use ashlar_repair::check_database;
use ashlar_testkit::Rng;
use ashlar_testkit::harm::LOST_WRITE;
use ashlar_testkit::ops::Change;
use ashlar_testkit::oracle::{Difference, Model, State};
use std::path::Path;

/// Recoveries that crash themselves, one in the other.
pub const DEEPEST: u32 = 3;

/// A crash to be checked.
pub struct Crash<'a> {
    pub setup: &'a Setup,
    pub model: &'a Model,
    /// What had been promised when the crash came.
    pub promise: &'a Promise,
    /// The families after the operation that was under way.
    pub names_after: &'a Names,
    /// Some crash on the way here was no kill, or a failed sync took what was not synced.
    pub power: bool,
    /// Between operations and background steps.
    pub quiet: bool,
    pub depth: u32,
}

/// Whatever a crash took, a check calls none of it a damage.
fn is_no_damage(sim: &SimEnv) -> Result<(), String> {
    match check_database(&sim.env(), Path::new(DIR), &mut |_| {}) {
        Ok(report) if report.is_sound() => Ok(()),
        Ok(report) => Err(format!("a check calls it damaged: {report}")),
        // It came before there was a database.
        Err(e) if e.kind() == ErrorKind::InvalidArgument => Ok(()),
        Err(e) => Err(format!("a check: {e}")),
    }
}

/// A store that came up again.
pub struct Recovered {
    pub db: Db,
    pub m: usize,
    pub names: Names,
}

pub fn any_mode(rng: &mut Rng) -> CrashMode {
    // A kill is asked for more often: it is the strictest about writes.
    if rng.percent(10) { CrashMode::KILL } else { *rng.pick(&CrashMode::all()).unwrap_or(&CrashMode::KILL) }
}

impl<'a> Crash<'a> {
    /// The promise of a store between two steps, or in the middle of the step that began with `promise`.
    pub fn of(store: &'a Store, promise: &'a Promise, quiet: bool) -> Crash<'a> {
        let Store { setup, model, sim, .. } = store;
        let (names_after, power) = (&store.promise.names, sim.reverted());
        Crash { setup, model, promise, names_after, power, quiet, depth: 0 }
    }

    /// What an open store holds: the cut and the families, or what is wrong with it.
    pub fn look(&self, db: &Db) -> Result<(usize, Names), String> {
        self.seen(db).map(|(_, m, names)| (m, names))
    }

    /// The same, with the smallest of the cuts that the store may be before the largest.
    pub fn seen(&self, db: &Db) -> Result<(usize, usize, Names), String> {
        let (names, state) = self.contents(db, &mut Rng::new(0))?;
        let floor = if self.power { self.promise.power } else { self.promise.kill };
        let (smallest, largest) = self.cut(db, &state, floor, &mut Tally::default())?;
        Ok((smallest, largest, names))
    }

    /// Opens `sim`, which crashed by `mode`, and checks everything; crashes it further now and then.
    pub fn check(
        &self,
        sim: &SimEnv,
        mode: CrashMode,
        rng: &mut Rng,
        tally: &mut Tally,
    ) -> Result<Recovered, String> {
        self.check_inner(sim, mode, rng, tally)
            .map_err(|e| format!("after {} (depth {}): {e}", name(mode), self.depth))
    }

    fn check_inner(
        &self,
        sim: &SimEnv,
        mode: CrashMode,
        rng: &mut Rng,
        tally: &mut Tally,
    ) -> Result<Recovered, String> {
        tally.crashed(mode);
        tally.nested += u64::from(self.depth > 0);
        let power = self.power || mode != CrashMode::KILL;
        // Some of them, without a draw: they all read everything.
        if sim.used_bytes().is_multiple_of(8) {
            is_no_damage(sim)?;
        }
        if self.depth < DEEPEST && rng.percent(30) {
            for _ in 0..rng.between(1, 2) {
                sim.photograph_at(rng.between(1, 45) as u64, any_mode(rng));
            }
        }
        let db = open(sim, self.setup).map_err(|e| format!("cannot be opened: {e}"))?;
        for (at, inner_mode, photograph) in sim.photographs() {
            let inner = Crash { power, depth: self.depth + 1, quiet: false, ..*self };
            let inner = inner.check(&photograph, inner_mode, rng, tally);
            inner.map_err(|e| format!("recovery crashed before call {at}: {e}"))?;
        }
        if !power && self.quiet && !db.recovery().is_clean() {
            return Err(format!("a kill leaves an unclean store: {}", db.recovery()));
        }
        let (names, state) = self.contents(&db, rng)?;
        let floor = if power { self.promise.power } else { self.promise.kill };
        let cut = self.cut(&db, &state, floor, tally);
        let (_, m) = cut.map_err(|e| format!("{e}\nreport: {}", db.recovery()))?;
        match rng.below(10) {
            0..2 => self.crash_again(sim, &state, rng, tally)?,
            2..4 => self.use_it(sim, rng, tally)?,
            _ => {}
        }
        Ok(Recovered { db, m, names })
    }

    /// Everything the store holds, under the model's names.
    fn contents(&self, db: &Db, rng: &mut Rng) -> Result<(Names, State), String> {
        let Promise { names: before, maybe, .. } = self.promise;
        let after = self.names_after;
        let mut names = Names::new();
        for family in db.families() {
            let known = [after, before, maybe].into_iter().find_map(|list| list.get(family.name()));
            let generation = known.ok_or_else(|| format!("family {} should not be there", family.name()))?;
            names.insert(family.name().to_owned(), *generation);
        }
        if let Some(lost) = before.keys().find(|n| after.contains_key(*n) && !names.contains_key(*n)) {
            return Err(format!("family {lost} is lost"));
        }
        let mut listings = Vec::new();
        for (name, generation) in &names {
            let family = db.family(name).ok_or("a family went away")?;
            let list = |reverse| listing(db, &family, ReadOptions::default(), reverse);
            let forward = list(false).map_err(|e| format!("scan of {name}: {e}"))?;
            if rng.percent(25) && list(true).map_err(|e| format!("reverse scan of {name}: {e}"))? != forward {
                return Err(format!("family {name} reads otherwise from behind"));
            }
            for _ in 0..4 {
                let Some((key, value)) = rng.pick(&forward) else { break };
                let got = db.get(&family, key, ReadOptions::default()).map_err(|e| format!("get: {e}"))?;
                if got.map(|v| compared(&family, key, &v)).as_ref() != Some(value) {
                    return Err(format!("family {name}: get and scan disagree on {key:02x?}"));
                }
            }
            listings.push((model_name(name, *generation), forward));
        }
        if db.recovery().read_only.is_empty() {
            listings.push((PREPARED.to_owned(), prepared(db)));
            holds_its_locks(db)?;
        }
        Ok((names, State::of(listings)))
    }

    /// The smallest and the largest cut of the model that the store is.
    fn cut(&self, db: &Db, state: &State, floor: usize, tally: &mut Tally) -> Result<(usize, usize), String> {
        let live = |change: &Change| state.names().any(|name| name == change.family());
        let mut model = self.model.mapped(|change| live(change).then(|| self.setup.counted(change, db)));
        model.acknowledge(floor);
        model.matches(state).map_err(|e| {
            match e {
                Difference::Lost { .. } => tally.lost += 1,
                Difference::NoPrefix { .. } => tally.holes += 1,
            }
            format!("{e} (floor {floor}, {} writes)", self.model.writes())
        })
    }

    /// What one recovery found, the next one finds.
    fn crash_again(
        &self,
        sim: &SimEnv,
        state: &State,
        rng: &mut Rng,
        tally: &mut Tally,
    ) -> Result<(), String> {
        let mode = any_mode(rng);
        tally.crashed(mode);
        let again = sim.crash(mode);
        let db = open(&again, self.setup).map_err(|e| format!("second crash ({}): open: {e}", name(mode)))?;
        let (_, found) =
            self.contents(&db, rng).map_err(|e| format!("second crash ({}): {e}", name(mode)))?;
        if found == *state {
            return Ok(());
        }
        tally.lost += 1;
        Err(format!(
            "{LOST_WRITE}a second crash ({}) changed the contents; second report: {}",
            name(mode),
            db.recovery()
        ))
    }

    /// The store takes writes, keeps them over a crash, and closes. On a copy: the store itself goes on as it was.
    fn use_it(&self, sim: &SimEnv, rng: &mut Rng, tally: &mut Tally) -> Result<(), String> {
        let copy = sim.crash(CrashMode::KILL);
        let mode = any_mode(rng);
        tally.crashed(mode);
        let what = |step: &str, e: &dyn std::fmt::Display| format!("used after the crash: {step}: {e}");
        let db = open(&copy, self.setup).map_err(|e| what("open", &e))?;
        scribble(&db, rng, false).map_err(|e| what("write", &e))?;
        if rng.percent(50) {
            db.flush(&db.families()).map_err(|e| what("flush", &e))?;
        }
        scribble(&db, rng, true).map_err(|e| what("synced write", &e))?;
        let (_, before) = self.contents(&db, rng)?;
        let photograph = copy.crash(mode);
        db.close().map_err(|e| what("close", &e))?;
        let again = open(&photograph, self.setup).map_err(|e| what("second open", &e))?;
        let (_, after) = self.contents(&again, rng)?;
        if before != after {
            tally.lost += 1;
            return Err(what(
                "crash",
                &format!("{LOST_WRITE}{} took synced writes; {}", name(mode), again.recovery()),
            ));
        }
        Ok(())
    }
}
