//! Power cuts of a real file system: a database on ext4, whose device takes nothing more from one moment on.
//!
//! Writers add numbered batches, some of them synced, each over two families. The power is cut under them; the journal is
//! replayed, the database opened. Of each writer's batches a prefix must be there, whole, up to the last that a synced
//! write or a `sync_wal` had made durable at least, before the cut began. Then it goes on where it stands.
//!
//! What returned later counts for nothing: a sync under way while ext4 is shut down may answer that all is well and have
//! written nothing. Of plain appends with `fdatasync`, without a database, one in seven cuts showed that.

use crate::sim::plan::{DEFAULT, Setup};
use crate::suite::{Budget, Report, Watchdog, guarded};
use crate::turns;
use ashlar_engine::batch::WriteBatch;
use ashlar_engine::options::{ReadOptions, WriteOptions};
use ashlar_engine::{Db, OpenFamily};
use ashlar_env::Env;
use ashlar_sync::ReadPin;
use ashlar_testkit::Rng;
use ashlar_testkit::ext4::Ext4;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

const WRITERS: usize = 2;
/// The family of the markers: by writer, the number of its last batch.
const MARKERS: &str = "markers";
const MIB: u64 = 96;
/// Cuts of a quick run.
const CUTS: u64 = 12;
/// Cuts that one file system lives through.
const LIVES: u64 = 10;
/// How it is mounted.
const MOUNTS: [&str; 3] = ["", "data=writeback", "nodelalloc"];

/// Batches per writer: acknowledged, and durable by promise.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    written: [u64; WRITERS],
    durable: [u64; WRITERS],
}

impl Progress {
    fn promise(&mut self, all: [u64; WRITERS]) {
        for (floor, now) in self.durable.iter_mut().zip(all) {
            *floor = now.max(*floor);
        }
    }
}

/// What the writers share.
struct Shared {
    db: Db,
    progress: Mutex<Progress>,
    over: AtomicBool,
}

impl Shared {
    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Power cuts, seed after seed; `--replay=N` makes the cut of seed N, on a fresh file system.
pub fn run(budget: &Budget) -> Report {
    let _turn = turns::beside_others();
    let mut report = Report::new("power", budget);
    let watchdog = Watchdog::new("power", Duration::from_secs(120));
    let replayed = budget.replayed("");
    let mut machine = None;
    let seeds: Box<dyn Iterator<Item = u64>> = match replayed {
        Some(seed) => Box::new(std::iter::once(seed)),
        None => Box::new(budget.seeds(CUTS)),
    };
    for seed in seeds {
        if budget.is_enough(&report) {
            break;
        }
        watchdog.begins(seed);
        if machine.is_none() || seed % LIVES == 0 {
            // The one before is unmounted first.
            drop(machine.take());
            machine = match Machine::new(seed) {
                Ok(machine) => Some(machine),
                Err(why) => {
                    report.skip(why);
                    break;
                }
            };
        }
        let Some(there) = &mut machine else { break };
        if let Err(e) = guarded(|| there.cut(seed, &mut report)) {
            report.fail(seed.to_string(), e);
            machine = None;
        }
    }
    drop(watchdog);
    report.skip("a log of block writes between file system and device (FUSE): not built");
    report.done(budget)
}

/// A file system with a database on it.
struct Machine {
    disk: Ext4,
    setup: Setup,
    /// What the last open found.
    found: [u64; WRITERS],
}

impl Machine {
    fn new(seed: u64) -> Result<Machine, String> {
        let mut rng = Rng::new(seed);
        let setup = Setup { unlogged: false, ..Setup::draw(&mut rng) };
        let options = *rng.pick(&MOUNTS).unwrap_or(&"");
        let disk = Ext4::new(MIB, options).map_err(|skip| skip.to_string())?;
        Ok(Machine { disk, setup, found: [0; WRITERS] })
    }

    fn open(&self) -> Result<Db, String> {
        let env = Env::os().map_err(|e| e.to_string())?;
        let family = |name: &str| OpenFamily { name: name.to_owned(), options: self.setup.family.clone() };
        let families = vec![family(DEFAULT), family(MARKERS)];
        let path = self.disk.path().join("db");
        Db::open(env, &path, self.setup.db.clone(), families, self.setup.family.clone())
            .map_err(|e| format!("open: {e}"))
    }

    /// Tables that readers used are closed a moment after the database.
    fn boot(&self) -> Result<(), String> {
        let mut tries = 0;
        loop {
            ReadPin::settle();
            match self.disk.boot() {
                Err(_) if tries < 200 => tries += 1,
                done => return done,
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Writes, cuts the power, boots, and looks.
    fn cut(&mut self, seed: u64, report: &mut Report) -> Result<(), String> {
        let mut rng = Rng::new(seed);
        let progress = Progress { written: self.found, durable: self.found };
        let shared =
            Shared { db: self.open()?, progress: Mutex::new(progress), over: AtomicBool::new(false) };
        let wait = Duration::from_millis(rng.between(5, 400) as u64);
        let (cut, promised) = std::thread::scope(|scope| {
            for writer in 0..WRITERS {
                let (shared, rng) = (&shared, rng.fork());
                scope.spawn(move || write(shared, writer, rng));
            }
            std::thread::sleep(wait);
            let promised = *shared.progress();
            let cut = self.disk.cut();
            shared.over.store(true, Ordering::Relaxed);
            (cut, promised)
        });
        cut.map_err(|e| format!("the power cannot be cut: {e}"))?;
        drop(shared);
        self.boot()?;
        report.count("power cuts", 1);
        let written = |p: &[u64; WRITERS]| p.iter().zip(&self.found).map(|(now, then)| now - then).sum();
        report.count("batches acknowledged", written(&promised.written));
        report.count("batches durable by promise", written(&promised.durable));
        let db = self.open()?;
        let found = look(&db)?;
        for (writer, (found, durable)) in found.iter().zip(promised.durable).enumerate() {
            if *found < durable {
                return Err(format!(
                    "writer {writer}: {found} batches left, {durable} were acknowledged: lost"
                ));
            }
        }
        let gone = promised.written.iter().zip(&found).map(|(w, f)| w.saturating_sub(*f)).sum();
        report.count("unsynced batches that went", gone);
        self.found = found;
        db.close().map_err(|e| format!("close: {e}"))
    }
}

fn key(writer: usize, number: u64) -> String {
    format!("w{writer}/{number:08}")
}

fn value(number: u64) -> Vec<u8> {
    let len = 8 + usize::try_from(number * 7919 % 3000).unwrap_or(0);
    number.to_le_bytes().into_iter().cycle().take(len).collect()
}

/// Batch after batch until the power is gone.
fn write(shared: &Shared, writer: usize, mut rng: Rng) {
    let Shared { db, over, .. } = shared;
    let families = [DEFAULT, MARKERS].map(|name| db.family(name));
    let [Some(default), Some(markers)] = families else { return };
    while !over.load(Ordering::Relaxed) {
        let before = *shared.progress();
        let number = before.written[writer] + 1;
        let options = WriteOptions { sync: rng.percent(15), ..WriteOptions::default() };
        let mut batch = WriteBatch::new();
        let added = batch
            .put(default.id(), key(writer, number).as_bytes(), &value(number))
            .and_then(|()| batch.put(markers.id(), format!("w{writer}").as_bytes(), &number.to_le_bytes()));
        if added.and_then(|()| db.write(&mut batch, options)).is_err() {
            return;
        }
        shared.progress().written[writer] = number;
        if options.sync {
            let mut all = before.written;
            all[writer] = number;
            shared.progress().promise(all);
        } else if rng.percent(2) {
            let all = shared.progress().written;
            if db.sync_wal().is_ok() {
                shared.progress().promise(all);
            }
        }
    }
}

/// The number of each writer's last batch; all before it must be there, and nothing behind it.
fn look(db: &Db) -> Result<[u64; WRITERS], String> {
    let family = |name: &str| db.family(name).ok_or_else(|| format!("family {name} is lost"));
    let (default, markers) = (family(DEFAULT)?, family(MARKERS)?);
    let get = |family, key: &str| {
        let found = db.get(family, key.as_bytes(), &ReadOptions::default());
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
