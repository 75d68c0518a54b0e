//! Secondaries of a history: views that another process opens beside the writer, which writes and works meanwhile.
//!
//! A view shows the model cut behind a write. That write is not below the writes that had reached the operating system, nor below what
//! an earlier view showed. What a view has shown survives a kill of the writer. Later the view shows the same, although the writer has
//! removed its files. A call that would change the directory panics ([`Watched`]).

use super::check::Crash;
use super::plan::Setup;
use super::store::{DIR, Names, Store, listing, model_name};
use ashlar_base::Error;
use ashlar_engine::Db;
use ashlar_engine::batch::WriteBatch;
use ashlar_env::Env;
use ashlar_env::sim::{SimEnv, Watched};
use ashlar_options::{ReadOptions, WriteOptions};
use ashlar_testkit::ops::Change;
use ashlar_testkit::oracle::{State, first_difference};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The most views that a history keeps.
const MOST: usize = 2;

/// A view, and what it shows.
pub(super) struct View {
    db: Db,
    state: State,
    names: Names,
}

/// The writer beside an open.
struct Writer {
    sim: SimEnv,
    /// So many calls of the reader come between two pieces of background work.
    pace: u64,
    /// The steps of such a piece.
    steps: usize,
    how: WriteOptions,
    /// All families are flushed after the write.
    flush: bool,
    waiting: Mutex<Option<(Db, WriteBatch)>>,
    outcome: Mutex<Option<Result<(), Error>>>,
    over: AtomicBool,
}

impl Writer {
    /// What the writer does before a reading call of the other process.
    fn before(&self, call: u64) {
        if self.over.load(Ordering::Relaxed) || !call.is_multiple_of(self.pace) {
            return;
        }
        self.sim.env().jobs.drive(self.steps);
        if call >= 3 * self.pace {
            self.write();
        }
    }

    /// Writes the batch, and flushes, once.
    fn write(&self) {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some((db, mut batch)) = waiting else { return };
        let written = db.write(&mut batch, self.how);
        let done = written.and_then(|_| if self.flush { db.flush(&db.families()) } else { Ok(()) });
        *self.outcome.lock().unwrap_or_else(PoisonError::into_inner) = Some(done);
    }
}

/// Opens the database of a machine as a secondary does, with the files of `env`.
fn open_view(env: Env, sim: &SimEnv, setup: &Setup) -> Result<Db, String> {
    let given = setup.places.not_stored_on(sim);
    let (options, families) = (given.of(&setup.db), setup.families(&given));
    let db = Db::open_read_only(env, Path::new(DIR), options, families, setup.family.clone());
    db.map_err(|e| format!("a secondary: {e}"))
}

/// A secondary of what a crash left shows what an open must find there.
pub(super) fn shows(crash: &Crash<'_>, image: &SimEnv) -> Result<(), String> {
    let (fs, _) = Watched::with(&image.env(), |_, _| {});
    let view = open_view(Env { fs, ..image.env() }, image, crash.setup)?;
    crash.look(&view).map(drop).map_err(|e| format!("a secondary: {e}\nreport: {}", view.recovery()))
}

impl Store {
    /// Opens a view, which is what a secondary does that catches up. During the open, the writer does background work, writes these
    /// changes, and may flush.
    pub(super) fn follow(
        &mut self,
        changes: &[Change],
        pace: u64,
        steps: usize,
        flush: bool,
    ) -> Result<(), String> {
        self.views_hold()?;
        let before = self.promise.clone();
        let (batch, modelled) = self.batched(changes)?;
        let number = (!modelled.is_empty()).then(|| self.model.apply(&modelled));
        let writer = Arc::new(Writer {
            sim: self.sim.clone(),
            pace,
            steps,
            how: self.setup.how_to_write(false),
            flush,
            waiting: Mutex::new(Some((self.db.clone(), batch))),
            outcome: Mutex::default(),
            over: AtomicBool::new(false),
        });
        let beside = Arc::clone(&writer);
        let (fs, _) = Watched::with(&self.sim.env(), move |call, _| beside.before(call));
        let view = open_view(Env { fs, ..self.sim.env() }, &self.sim, &self.setup)?;
        writer.over.store(true, Ordering::Relaxed);
        writer.write();
        let outcome = writer.outcome.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((number, done)) = number.zip(outcome) {
            self.logged("a write beside a secondary", number, false, done)?;
        }
        let seen = Crash::of(self, &before, true).seen(&view);
        let (seen, m, names) = seen.map_err(|e| format!("a secondary: {e}\nreport: {}", view.recovery()))?;
        if names != self.promise.names {
            return Err(format!("a secondary: families {names:?}, expected {:?}", self.promise.names));
        }
        self.features.count("catch-ups");
        *self.features.counts.entry("catch-ups that saw a write beside them").or_default() +=
            u64::from(number.is_some_and(|number| seen >= number));
        self.promise.kill = self.promise.kill.max(seen);
        self.features.views.push(View { db: view, state: self.model.cut(m), names });
        if self.features.views.len() > MOST {
            self.features.views.remove(0);
        }
        Ok(())
    }

    /// Every view shows what it showed first.
    pub(super) fn views_hold(&mut self) -> Result<(), String> {
        for View { db, state, names } in &self.features.views {
            for (name, generation) in names {
                let what = |e: String| format!("family {name} of an earlier view: {e}");
                let family = db.family(name).ok_or_else(|| what("it is gone".to_owned()))?;
                let expected = self.setup.entries(state, &model_name(name, *generation), db);
                let found = listing(db, &family, ReadOptions::default(), false);
                let found = found.map_err(|e| what(e.to_string()))?;
                first_difference(&expected, &found).map_or(Ok(()), |e| Err(what(e)))?;
            }
        }
        *self.features.counts.entry("earlier views compared").or_default() +=
            self.features.views.len() as u64;
        Ok(())
    }
}
