//! The work of the processes that are killed.
//!
//! A file outside the directory has the number of acknowledged operations of each writer. A writer updates its number
//! before its next operation begins. The number survives the process in the page cache.

use super::plan::{Plan, open};
use super::points::Trapped;
use crate::sim::ingested::{may_be_ingested, write_files};
use crate::sim::plan::Setup;
use crate::sim::store::batch;
use ashlar_engine::{Db, IngestMode, IngestOptions};
use ashlar_env::Env;
use ashlar_options::ReadOptions;
use ashlar_read::iter::KeyBounds;
use ashlar_testkit::{Change, Op, Rng};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// No point: the clock decides.
pub(super) const ANYWHERE: &str = "anywhere";

fn number(word: &str) -> Result<u64, String> {
    word.parse().map_err(|_| format!("no number: {word}"))
}

/// The machine, with a point in its files where one is named.
fn machine(point: &str) -> Result<Env, String> {
    let mut env = Env::os().map_err(|e| e.to_string())?;
    if point != ANYWHERE {
        env.fs = Arc::new(Trapped::new(Arc::clone(&env.fs), point.parse()?));
    }
    Ok(env)
}

fn opened(dir: &str, (plan, setup): (&Plan, &Setup), point: &str) -> Result<Db, String> {
    open(machine(point)?, Path::new(dir), plan, setup).map_err(|e| format!("the open of a child: {e}"))
}

/// `DIR SEED ROUND PROGRESS POINT`: writes and reads until it is killed.
///
/// # Errors
/// Any that an operation has.
pub(crate) fn write(words: &[&str]) -> Result<(), String> {
    let [dir, seed, round, progress, point] = words else { return Err(format!("{words:?}")) };
    let (plan, round) = (Plan::draw(number(seed)?), number(round)?);
    let setup = plan.setup(round);
    let db = opened(dir, (&plan, &setup), point)?;
    let progress = File::options().write(true).open(progress).map_err(|e| e.to_string())?;
    let role = Role { plan: &plan, setup: &setup, round, db: &db, progress: &progress };
    std::thread::scope(|scope| {
        for reader in 0..plan.readers {
            scope.spawn(move || or_end(role.read(reader)));
        }
        for writer in 0..plan.writers {
            scope.spawn(move || or_end(role.write(writer)));
        }
    });
    Ok(())
}

/// A thread that failed ends the process; the others would go on for ever.
fn or_end(done: Result<(), String>) {
    if let Err(e) = done {
        eprintln!("{e}");
        std::process::exit(1);
    }
}

#[derive(Clone, Copy)]
struct Role<'a> {
    plan: &'a Plan,
    setup: &'a Setup,
    round: u64,
    db: &'a Db,
    progress: &'a File,
}

impl Role<'_> {
    fn write(self, writer: usize) -> Result<(), String> {
        let stride = self.plan.stride(self.setup);
        for (done, op) in (1_u64..).zip(self.plan.list(self.round, writer)) {
            let Op::Write { changes, sync } = op else { continue };
            let written = match may_be_ingested(&changes, sync) {
                true => self.ingest(writer, &changes),
                false => {
                    let mut batch = batch(self.db, &changes)?;
                    self.db.write(&mut batch, self.setup.how_to_write(sync)).map(drop)
                }
            };
            written.map_err(|e| format!("writer {writer}, operation {done}: {e}"))?;
            if done % stride != 0 {
                continue;
            }
            self.keep().map_err(|e| format!("writer {writer}, behind operation {done}: {e}"))?;
            let place = writer as u64 * 8;
            self.progress.write_all_at(&done.to_le_bytes(), place).map_err(|e| e.to_string())?;
        }
        Ok(())
    }

    /// A synced write as an ingestion. A kill leaves the files behind.
    fn ingest(self, writer: usize, changes: &[Change]) -> ashlar_base::Result<()> {
        let folder = self.db.path().with_extension(format!("files{writer}"));
        let parts = write_files(self.db, &folder, 0, changes)?;
        self.db.ingest(&parts, IngestOptions::new().mode(IngestMode::Move)).map(drop)
    }

    /// All writes so far survive a kill from here on.
    fn keep(self) -> ashlar_base::Result<()> {
        match (self.setup.unlogged, self.setup.holds_back()) {
            (true, _) => self.db.flush(&self.db.families()),
            (false, true) => self.db.flush_wal(false),
            (false, false) => Ok(()),
        }
    }

    /// Scans stretches, each in order and without an error, and gets keys.
    fn read(self, reader: usize) -> Result<(), String> {
        let mut rng = Rng::new(reader as u64);
        loop {
            let families = self.db.families();
            let Some(family) = rng.pick(&families) else { continue };
            let from = format!("{}{:05}", rng.below(self.plan.writers), rng.below(2000)).into_bytes();
            let range = KeyBounds { lower: Some(from), ..KeyBounds::default() };
            let failed = |e: ashlar_base::Error| format!("reader {reader}: {e}");
            let mut iter = self.db.iter(family, range, ReadOptions::default()).map_err(failed)?;
            iter.first().map_err(failed)?;
            let mut last = Vec::new();
            for _ in 0..50 {
                let Some((key, _)) = iter.entry() else { break };
                if last.as_slice() >= key {
                    return Err(format!("reader {reader}: {} behind itself", key.escape_ascii()));
                }
                last = key.to_vec();
                iter.next().map_err(failed)?;
            }
            self.db.get(family, &last, ReadOptions::default()).map_err(failed)?;
        }
    }
}

/// `DIR SEED ROUND POINT`: recovers, and waits to be killed.
///
/// # Errors
/// The open's.
pub(crate) fn recover(words: &[&str]) -> Result<(), String> {
    let [dir, seed, round, point] = words else { return Err(format!("{words:?}")) };
    let plan = Plan::draw(number(seed)?);
    let setup = plan.setup(number(round)?);
    let _db = opened(dir, (&plan, &setup), point)?;
    loop {
        std::thread::sleep(Duration::from_secs(1));
    }
}
