//! Checkpoints and backups in a history. A copy whose call returned holds its moment through every later crash. A checkpoint opens
//! there, and a backup can be restored.
//!
//! Each new copy is looked at once after a crash that comes directly behind the call; crashes of the history look at one of the
//! older ones.

use super::check::any_mode;
use super::places::Places;
use super::plan::Setup;
use super::store::{Names, Store, listing, model_name};
use super::tally::name;
use super::transactions::{PREPARED, holds_its_locks, prepared};
use ashlar_backup::{BackupEngine, BackupOptions, CheckpointOptions, checkpoint};
use ashlar_base::{Error, ErrorKind};
use ashlar_engine::Db;
use ashlar_env::sim::{CrashMode, SimEnv};
use ashlar_options::ReadOptions;
use ashlar_testkit::Rng;
use ashlar_testkit::oracle::{State, first_difference};
use std::path::{Path, PathBuf};

/// Where backups are.
const BACKUPS: &str = "/data/backups";
/// Where a backup is restored to, on a copy of the machine.
const RESTORED: &str = "/data/restored";
/// The most checkpoints, and the most backups, that a history keeps.
const MOST: usize = 2;

/// Where a copy is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    Checkpoint(PathBuf),
    Backup(u32),
}

/// A copy, and what it holds.
struct Copied {
    /// Copies are numbered in the order of their making.
    number: u64,
    place: Place,
    state: State,
    names: Names,
}

/// The copies of a history.
#[derive(Default)]
pub(super) struct Copies {
    all: Vec<Copied>,
    /// Numbers the directories of checkpoints.
    made: usize,
    /// The number of copies that were made.
    copied: u64,
}

impl Store {
    /// Makes a checkpoint and looks at it after a crash.
    pub(super) fn checkpoint(&mut self, flush: bool) -> Result<(), String> {
        let checkpoints = self.features.copies.all.iter().filter(|c| matches!(c.place, Place::Checkpoint(_)));
        if checkpoints.count() >= MOST {
            self.forget(|place| matches!(place, Place::Checkpoint(_)))?;
        }
        self.features.copies.made += 1;
        let into = PathBuf::from(format!("/data/checkpoint{}", self.features.copies.made));
        let options = CheckpointOptions::new().flush(flush);
        let done = checkpoint(&self.db, &into, options, &mut |_| {});
        self.copied(done.map(|_| Place::Checkpoint(into)), "checkpoints")
    }

    /// Makes a backup and looks at it after a crash.
    pub(super) fn back_up(&mut self, flush: bool) -> Result<(), String> {
        let backups = self.features.copies.all.iter().filter(|c| matches!(c.place, Place::Backup(_)));
        if backups.count() >= MOST {
            self.delete_backup()?;
        }
        let made = engine(&self.sim).and_then(|mut engine| {
            engine.create_backup_with(&self.db, &BackupOptions::new().flush(flush), |_| {})
        });
        self.copied(made.map(|made| Place::Backup(made.info.id)), "backups")
    }

    /// Removes the oldest backup.
    pub(super) fn delete_backup(&mut self) -> Result<(), String> {
        self.forget(|place| matches!(place, Place::Backup(_)))
    }

    /// Notes a copy that was made.
    fn copied(&mut self, made: Result<Place, Error>, what: &'static str) -> Result<(), String> {
        let place = match made {
            Ok(place) => place,
            // Tables in several directories are not copied.
            Err(e) if e.kind() == ErrorKind::NotSupported && self.setup.places.are_any() => return Ok(()),
            Err(e) => return Err(format!("{what}: {e}")),
        };
        self.features.count(what);
        let number = self.features.copies.copied + 1;
        let (state, names) = (self.model.now().clone(), self.promise.names.clone());
        let copy = Copied { number, place, state, names };
        // Without a draw of the history. The trace differs from history to history.
        self.features.copies.copied = number;
        let mode = any_mode(&mut Rng::new(self.sim.trace_hash() ^ number));
        let holds = copy.holds(&self.sim.crash(mode), &self.setup);
        self.features.copies.all.push(copy);
        holds.map_err(|e| format!("{} behind the call: {e}", name(mode)))
    }

    /// Removes the oldest copy of a kind.
    fn forget(&mut self, kind: impl Fn(&Place) -> bool) -> Result<(), String> {
        let all = &mut self.features.copies.all;
        let Some(at) = all.iter().position(|copy| kind(&copy.place)) else { return Ok(()) };
        let done = match all.remove(at).place {
            Place::Checkpoint(dir) => self.sim.env().fs.list(&dir).and_then(|entries| {
                entries.iter().try_for_each(|entry| self.sim.env().fs.remove(&dir.join(&entry.name)))
            }),
            Place::Backup(id) => engine(&self.sim).and_then(|mut engine| engine.delete(id)),
        };
        done.map_err(|e| format!("the removal of a copy: {e}"))
    }

    /// The number of copies so far.
    pub(super) fn copies(&self) -> u64 {
        self.features.copies.copied
    }

    /// One of the first `before` copies that was not removed, as a crash of the machine leaves it.
    pub(super) fn a_copy_holds(&self, before: u64, image: &SimEnv, rng: &mut Rng) -> Result<(), String> {
        let kept: Vec<&Copied> =
            self.features.copies.all.iter().filter(|copy| copy.number <= before).collect();
        rng.pick(&kept).map_or(Ok(()), |copy| copy.holds(image, &self.setup))
    }
}

fn engine(sim: &SimEnv) -> Result<BackupEngine, Error> {
    BackupEngine::builder(BACKUPS).env(sim.env()).open()
}

impl Copied {
    /// Opens the copy on a machine that crashed, and compares it with its moment.
    fn holds(&self, image: &SimEnv, setup: &Setup) -> Result<(), String> {
        // The machine itself goes on as it is.
        let image = image.crash(CrashMode::KILL);
        self.compare(&image, setup).map_err(|e| format!("{:?}: {e}", self.place))
    }

    fn compare(&self, image: &SimEnv, setup: &Setup) -> Result<(), String> {
        let dir = match &self.place {
            Place::Checkpoint(dir) => dir.as_path(),
            Place::Backup(id) => {
                let engine = engine(image).map_err(|e| e.to_string())?;
                engine.restore(*id, RESTORED).map_err(|e| format!("restore: {e}"))?;
                Path::new(RESTORED)
            }
        };
        let options = Places::default().of(&setup.db);
        let db =
            Db::open(image.env(), dir, options, setup.families(&Places::default()), setup.family.clone());
        let db = db.map_err(|e| format!("open: {e}"))?;
        let found = db.families().iter().map(|family| family.name().to_owned()).collect::<Vec<_>>();
        if found.len() != self.names.len() || found.iter().any(|name| !self.names.contains_key(name)) {
            return Err(format!("families {found:?}, expected {:?}", self.names));
        }
        let different = |what: &str, listed: &[_], found: &[_]| match first_difference(listed, found) {
            Some(difference) => Err(format!("{what}: {difference}")),
            None => Ok(()),
        };
        for (name, generation) in &self.names {
            let family = db.family(name).ok_or("a family went away")?;
            let found = listing(&db, &family, ReadOptions::default(), false).map_err(|e| e.to_string())?;
            different(name, &setup.entries(&self.state, &model_name(name, *generation), &db), &found)?;
        }
        different(PREPARED, &self.state.entries(PREPARED), &prepared(&db))?;
        holds_its_locks(&db)
    }
}
