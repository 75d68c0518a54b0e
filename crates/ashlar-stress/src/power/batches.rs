//! Writers of numbered batches, the promises to them, and the check of these promises.

use crate::sim::plan::{DEFAULT, Setup};
use ashlar_base::Error;
use ashlar_engine::batch::WriteBatch;
use ashlar_engine::{Db, OpenFamily};
use ashlar_env::Env;
use ashlar_options::{ReadOptions, WriteOptions};
use ashlar_sync::ReadPin;
use ashlar_testkit::Rng;
use ashlar_testkit::harm::LOST_WRITE;
use rustix::fs::Advice;
use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

pub(super) const WRITERS: usize = 2;
/// The family of the markers: by writer, the number of its last batch.
const MARKERS: &str = "markers";

/// Batches of a writer that are written as fast as can be; then it slows down, so that there is room for all.
const FAST: u64 = 2000;
/// By writer, the number of a batch.
pub(super) type Numbers = [u64; WRITERS];

/// Batches that were promised to be durable, and how long the device's log was by then.
#[derive(Clone, Copy, Debug)]
pub(super) struct Promise {
    pub(super) position: u64,
    pub(super) durable: Numbers,
}

#[derive(Debug)]
struct Progress {
    written: Numbers,
    promises: Vec<Promise>,
}

/// How often writers make something durable.
#[derive(Clone, Copy, Debug)]
struct Syncs {
    writes_percent: usize,
    logs_per_mille: usize,
}

const SYNCS: [Syncs; 4] = [
    Syncs { writes_percent: 0, logs_per_mille: 2 },
    Syncs { writes_percent: 1, logs_per_mille: 5 },
    Syncs { writes_percent: 15, logs_per_mille: 20 },
    Syncs { writes_percent: 40, logs_per_mille: 20 },
];

/// A database with writers on it.
pub(super) struct Writers<'a> {
    pub(super) db: Db,
    syncs: Syncs,
    progress: Mutex<Progress>,
    over: AtomicBool,
    position: &'a (dyn Fn() -> u64 + Sync),
}

/// Ends the writers when dropped.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl<'a> Writers<'a> {
    /// Writers that go on behind what was found; `position` says how long the log of the device is.
    pub(super) fn new(
        db: Db,
        found: Numbers,
        rng: &mut Rng,
        position: &'a (dyn Fn() -> u64 + Sync),
    ) -> Writers<'a> {
        let syncs = *rng.pick(&SYNCS).unwrap_or(&SYNCS[0]);
        let first = Promise { position: 0, durable: found };
        let progress = Progress { written: found, promises: vec![first] };
        Writers { db, syncs, progress: Mutex::new(progress), over: AtomicBool::new(false), position }
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The acknowledged batches.
    pub(super) fn written(&self) -> Numbers {
        self.progress().written
    }

    /// What was promised, in the order it was.
    pub(super) fn promises(&self) -> Vec<Promise> {
        self.progress().promises.clone()
    }

    /// What is promised now.
    pub(super) fn durable(&self) -> Numbers {
        self.progress().promises.last().map_or([0; WRITERS], |last| last.durable)
    }

    /// Makes all that was acknowledged durable.
    ///
    /// # Errors
    /// The database's.
    pub(super) fn sync(&self) -> Result<(), Error> {
        let all = self.written();
        self.db.sync_wal()?;
        self.promise(all);
        Ok(())
    }

    /// From now on these are durable.
    fn promise(&self, all: Numbers) {
        let mut progress = self.progress();
        let mut durable = progress.promises.last().map_or(all, |last| last.durable);
        durable.iter_mut().zip(all).for_each(|(floor, now)| *floor = now.max(*floor));
        let position = (self.position)();
        progress.promises.push(Promise { position, durable });
    }

    /// Runs the writers until `during` is over. A batch that fails is tried again if `again` says so,
    /// else it is its writer's last.
    ///
    /// # Errors
    /// A writer's last, beside what `during` says.
    pub(super) fn run<T>(
        &self,
        rng: &mut Rng,
        again: &(dyn Fn(&Error) -> bool + Sync),
        during: impl FnOnce() -> T,
    ) -> (T, Result<(), Error>) {
        std::thread::scope(|scope| {
            let writers: Vec<_> = (0..WRITERS)
                .map(|writer| (writer, rng.fork()))
                .map(|(writer, rng)| scope.spawn(move || self.write(writer, rng, again)))
                .collect();
            // Also when it panics, so that the writers end.
            let stop = Stop(&self.over);
            let said = during();
            drop(stop);
            let ends = writers.into_iter().map(|writer| match writer.join() {
                Ok(end) => end,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            // All are waited for.
            let ends: Vec<_> = ends.collect();
            (said, ends.into_iter().collect())
        })
    }

    /// Batch after batch until the writers are stopped.
    fn write(&self, writer: usize, mut rng: Rng, again: &dyn Fn(&Error) -> bool) -> Result<(), Error> {
        let Writers { db, over, .. } = self;
        let begun = self.written();
        let families = [DEFAULT, MARKERS].map(|name| db.family(name));
        let [Some(default), Some(markers)] = families else { return Ok(()) };
        while !over.load(Ordering::Relaxed) {
            let before = self.written();
            if before[writer] - begun[writer] > FAST {
                std::thread::sleep(Duration::from_millis(2));
            }
            let number = before[writer] + 1;
            let options =
                WriteOptions { sync: rng.percent(self.syncs.writes_percent), ..WriteOptions::default() };
            let mut batch = WriteBatch::new();
            batch.put(default.id(), key(writer, number).as_bytes(), &value(number))?;
            batch.put(markers.id(), format!("w{writer}").as_bytes(), &number.to_le_bytes())?;
            match db.write(&mut batch, options) {
                Ok(_) => {}
                Err(e) if again(&e) => continue,
                Err(e) => return Err(e),
            }
            self.progress().written[writer] = number;
            if options.sync {
                let mut all = before;
                all[writer] = number;
                self.promise(all);
            } else if rng.below(1000) < self.syncs.logs_per_mille {
                match self.sync() {
                    Ok(()) => {}
                    Err(e) if again(&e) => {}
                    Err(e) => return Err(e),
                }
            }
        }
        Ok(())
    }
}

/// Opens the database of a folder, its two families made where they are missing.
pub(super) fn open(setup: &Setup, folder: &Path) -> Result<Db, String> {
    let env = Env::os().map_err(|e| e.to_string())?;
    let family = |name: &str| OpenFamily { name: name.to_owned(), options: setup.family.clone() };
    let families = vec![family(DEFAULT), family(MARKERS)];
    Db::open(env, &folder.join("db"), setup.db.clone(), families, setup.family.clone())
        .map_err(|e| format!("open: {e}"))
}

/// Settings of a seed; all is logged.
pub(super) fn setup(rng: &mut Rng) -> Setup {
    Setup { unlogged: false, ..Setup::draw(rng) }
}

/// Lets time pass. Now and then the system writes some of the database's files back and drops them from its cache: the system
/// does so at any time by itself, without a flush of the device.
pub(super) fn pass(time: Duration, rng: &mut Rng, folder: &Path) {
    let (began, writes_back) = (Instant::now(), rng.percent(70));
    while began.elapsed() < time {
        std::thread::sleep(Duration::from_millis(rng.between(2, 30) as u64).min(time));
        let files = std::fs::read_dir(folder.join("db")).into_iter().flatten().flatten();
        for file in files.filter(|_| writes_back && rng.percent(60)) {
            // It may be gone by now, or be a folder.
            let Ok(file) = File::open(file.path()) else { continue };
            let _ = rustix::fs::fadvise(&file, 0, None, Advice::DontNeed);
        }
    }
}

/// Does what no open file may disturb, an `umount`: tables that readers used are closed a moment after the database.
pub(super) fn undisturbed(act: impl Fn() -> Result<(), String>) -> Result<(), String> {
    for _ in 0..200 {
        ReadPin::settle();
        if act().is_ok() {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    act()
}

fn key(writer: usize, number: u64) -> String {
    format!("w{writer}/{number:08}")
}

fn value(number: u64) -> Vec<u8> {
    let len = 8 + usize::try_from(number * 7919 % 3000).unwrap_or(0);
    number.to_le_bytes().into_iter().cycle().take(len).collect()
}

/// The number of each writer's last batch; all before it must be there, and nothing behind it.
fn look(db: &Db) -> Result<Numbers, String> {
    let family = |name: &str| db.family(name).ok_or_else(|| format!("family {name} is lost"));
    let (default, markers) = (family(DEFAULT)?, family(MARKERS)?);
    let get = |family, key: &str| {
        let found = db.get(family, key.as_bytes(), ReadOptions::default());
        found.map(|v| v.map(|v| v.into_vec())).map_err(|e| format!("get {key}: {e}"))
    };
    let mut found = [0; WRITERS];
    for (writer, last) in found.iter_mut().enumerate() {
        let marker = get(&markers, &format!("w{writer}"))?;
        *last = marker.and_then(|v| v.try_into().ok()).map_or(0, u64::from_le_bytes);
        for number in 1..=*last + 1 {
            let expected = (number <= *last).then(|| value(number));
            if get(&default, &key(writer, number))? != expected {
                return Err(format!("writer {writer}: batch {number} of {last} is not whole"));
            }
        }
    }
    Ok(found)
}

/// What a cut left: nothing of what was durable is missing.
pub(super) fn found_of(db: &Db, durable: Numbers) -> Result<Numbers, String> {
    let all = look(db)?;
    for (writer, (found, durable)) in all.iter().zip(durable).enumerate() {
        if *found < durable {
            return Err(format!("{LOST_WRITE}writer {writer} has {found} of {durable} durable batches"));
        }
    }
    Ok(all)
}

/// How many batches `now` has behind `then`.
pub(super) fn between(then: Numbers, now: Numbers) -> u64 {
    then.iter().zip(now).map(|(then, now)| now.saturating_sub(*then)).sum()
}
