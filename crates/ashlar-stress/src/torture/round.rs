//! Runs a case round by round: kills, recovers, checks.

use super::door::Door;
use super::history::Histories;
use super::kill::{Kill, Killed, recovery, writers};
use super::plan::{Plan, open};
use crate::contents::{self, ours, same};
use crate::sim::plan::Setup;
use ashlar_engine::Db;
use ashlar_env::Env;
use ashlar_format::filename::FileKind;
use ashlar_options::FormatLevel;
use ashlar_testkit::judge::{JudgeError, MERGING, Opening, copy_flat};
use ashlar_testkit::oracle::State;
use ashlar_testkit::report::scale;
use ashlar_testkit::suite::{Budget, Length, Report};
use ashlar_testkit::{Judge, JudgeVersion, Rng};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

/// One directory under killed processes.
struct Victim<'a> {
    seed: u64,
    plan: Plan,
    door: Option<&'a Door>,
    dir: &'a Path,
    histories: Histories,
    rng: Rng,
    report: &'a mut Report,
}

/// The case of a seed. A directory in which something was found is kept, and named.
///
/// # Errors
/// A text that says what is wrong.
pub(super) fn case(
    seed: u64,
    (budget, door): (&Budget, Option<&Door>),
    report: &mut Report,
) -> Result<(), String> {
    let dir = tempfile::tempdir().map_err(|e| e.to_string())?;
    let plan = Plan::draw(seed);
    let plan = if door.is_some() { plan.behind_a_door() } else { plan };
    let histories = Histories::new(plan.writers);
    let rng = plan.chances();
    let mut victim = Victim { seed, plan, door, dir: dir.path(), histories, rng, report };
    for round in 0..victim.plan.rounds {
        if let Err(e) = victim.round(round, budget) {
            let what = format!("round {round}: {e}; {:?}", victim.plan);
            return Err(format!("{what}; the directory is kept: {}", dir.keep().display()));
        }
    }
    Ok(())
}

impl Victim<'_> {
    fn round(&mut self, round: u64, budget: &Budget) -> Result<(), String> {
        let long = budget.length != Length::Quick;
        let setup = self.plan.setup(round);
        let kill = Kill::draw(&mut self.rng, if long { (50, 3000) } else { (5, scale(120, 600)) });
        let killed = self.write_and_kill(round, budget, &kill)?;
        self.count_kill("kills", killed.at);
        let stride = self.plan.stride(&setup);
        let acknowledged = self.histories.follow(&self.plan, round, stride, &killed.floors);
        self.report.count("writes acknowledged", acknowledged);
        while self.door.is_none() && self.rng.percent(30) {
            let kill = Kill::draw(&mut self.rng, (1, 60));
            let at = recovery(budget, self.dir, (self.seed, round), &kill)?;
            self.count_kill("kills in the recovery", at);
        }
        let looks = self.rng.below(100);
        let theirs = match looks {
            0..10 => self.recovered_by_rocksdb()?,
            10..30 => self.read_by_rocksdb()?,
            _ => None,
        };
        self.look(&setup, theirs)
    }

    fn write_and_kill(&self, round: u64, budget: &Budget, kill: &Kill) -> Result<Killed, String> {
        match self.door {
            Some(door) => door.writers(self.dir, (&self.plan, round), kill.time()),
            None => writers(budget, self.dir, (self.seed, round), self.plan.writers, kill),
        }
    }

    fn count_kill(&mut self, what: &str, at: Option<String>) {
        self.report.count(what, 1);
        if let Some(place) = at {
            self.report.count("kills at named calls", 1);
            self.report.count(&format!("at {place}"), 1);
        }
    }

    /// Opens the directory and compares the content with the histories. `theirs` is the content that RocksDB found.
    fn look(&mut self, setup: &Setup, theirs: Option<State>) -> Result<(), String> {
        let before = lengths(self.dir)?;
        let began = Instant::now();
        let db = self.open(setup)?;
        self.report.time("recovery", began.elapsed());
        let torn = only_torn_ends(&db, &before)?;
        self.report.count("torn ends", u64::from(torn));
        let state = ours(&db)?;
        let keys: usize = state.names().map(|name| state.entries(name).len()).sum();
        self.report.count("keys compared", keys as u64);
        let settled = self.histories.settle(&state, db.visible().get());
        settled.map_err(|e| format!("{e}\nreport of the open: {}", db.recovery()))?;
        if let Some(theirs) = theirs {
            same(&theirs, &state).map_err(|e| format!("RocksDB found otherwise: {e}"))?;
        }
        db.verify_checksums(|_| ()).map_err(|e| format!("verification: {e}"))?;
        db.close().map_err(|e| format!("close: {e}"))?;
        drop(db);
        let db = self.open(setup)?;
        if !db.recovery().is_clean() {
            return Err(format!("a close in order leaves an unclean store: {}", db.recovery()));
        }
        same(&state, &ours(&db)?).map_err(|e| format!("opened again: {e}"))?;
        db.close().map_err(|e| format!("second close: {e}"))
    }

    fn open(&self, setup: &Setup) -> Result<Db, String> {
        let env = Env::os().map_err(|e| e.to_string())?;
        open(env, self.dir, &self.plan, setup).map_err(|e| format!("does not open: {e}"))
    }

    /// RocksDB's view of a copy.
    fn read_by_rocksdb(&mut self) -> Result<Option<State>, String> {
        let copy = tempfile::tempdir().map_err(|e| e.to_string())?;
        copy_flat(self.dir, copy.path()).map_err(|e| e.to_string())?;
        self.rocksdb(copy.path(), "read by RocksDB")
    }

    /// RocksDB recovers the directory instead of AshlarDB, and closes it.
    fn recovered_by_rocksdb(&mut self) -> Result<Option<State>, String> {
        self.rocksdb(self.dir, "recovered by RocksDB")
    }

    fn rocksdb(&mut self, dir: &Path, what: &str) -> Result<Option<State>, String> {
        let both = self.plan.level <= FormatLevel::V7_8;
        let version = if both && self.rng.percent(50) { JudgeVersion::V7 } else { JudgeVersion::V11 };
        if !dir.join(FileKind::Current.name()).exists() {
            // Killed before there was a database.
            return Ok(None);
        }
        let said = |e: JudgeError| format!("{}: {e}", version.name());
        let mut judge = match Judge::spawn(version) {
            Ok(judge) => judge,
            Err(JudgeError::Skip(skip)) => {
                self.report.skip(format!("what killed processes leave, {what}: {skip}"));
                return Ok(None);
            }
            Err(e) => return Err(said(e)),
        };
        let format = if both { 5 } else { 6 };
        let options = format!("block_based_table_factory={{format_version={format}}};{MERGING}");
        judge.open(dir, Opening::Existing, &options).map_err(said)?;
        let found = contents::theirs(&mut judge).map_err(said)?;
        judge.close().map_err(said)?;
        self.report.count(what, 1);
        Ok(Some(found))
    }
}

/// Names and lengths of the files.
fn lengths(dir: &Path) -> Result<BTreeMap<String, u64>, String> {
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(dir).map_err(|e| e.to_string())? {
        let entry = entry.map_err(|e| e.to_string())?;
        let about = entry.metadata().map_err(|e| e.to_string())?;
        files.insert(entry.file_name().to_string_lossy().into_owned(), about.len());
    }
    Ok(files)
}

/// Checks that only tails were dropped: of the MANIFEST, or of a WAL file without data in later files.
fn only_torn_ends(db: &Db, before: &BTreeMap<String, u64>) -> Result<bool, String> {
    let report = db.recovery();
    for dropped in &report.dropped {
        let to_the_end = before.get(&dropped.file) == Some(&(dropped.offset + dropped.bytes));
        let behind = before.range(dropped.file.clone()..).skip(1);
        let newest = !behind.into_iter().any(|(name, len)| name.ends_with(".log") && *len > 0);
        if !to_the_end || (dropped.file.ends_with(".log") && !newest) {
            return Err(format!("more than a torn end was dropped: {report}"));
        }
    }
    if !report.lost.is_empty() && !report.tail_dropped() {
        return Err(format!("files were moved aside without a reason: {report}"));
    }
    Ok(report.tail_dropped())
}
