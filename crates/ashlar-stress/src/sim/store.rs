//! A store on a simulated machine beside its model: every step is done to both, every read is compared.
//!
//! A family that is dropped and made again is another family: the model calls them `name#0`, `name#1`, ….

use super::check::Crash;
use super::expiring::{TIMED, compared, next_second, own_ttl};
use super::features::Done;
use super::plan::{DEFAULT, Setup, Step};
use super::transactions::{PREPARED, prepared};
use ashlar_base::{Error, ErrorKind, FamilyId};
use ashlar_engine::Db;
use ashlar_engine::batch::WriteBatch;
use ashlar_engine::column_family::Family;
use ashlar_engine::health::Severity;
use ashlar_env::sim::{CrashMode, SimEnv};
use ashlar_options::{ReadOptions, WriteOptions};
use ashlar_read::iter::KeyBounds;
use ashlar_read::snapshot::Snapshot;
use ashlar_testkit::harm::HANG;
use ashlar_testkit::ops::{Change, Op};
use ashlar_testkit::oracle::{Model, State, first_difference};
use ashlar_testkit::{KeyValue, Rng};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where the database stands on its machine.
pub const DIR: &str = "/data/db";

/// The live families: name and generation.
pub type Names = BTreeMap<String, u32>;

/// What the model calls a family.
pub fn model_name(name: &str, generation: u32) -> String {
    format!("{name}#{generation}")
}

/// What a crash must not take, and which families there are.
#[derive(Clone, Debug, Default)]
pub struct Promise {
    /// Those that are there.
    pub names: Names,
    /// Families that may be there too: to make or to drop them failed.
    pub maybe: Names,
    /// Writes up to this one survive a power cut.
    pub power: usize,
    /// Writes up to this one survive a kill.
    pub kill: usize,
    /// Writes up to this one are in the log, which may hold some of them back.
    pub logged: usize,
}

/// A snapshot, and what it must show.
pub(super) struct Held {
    pub(super) snapshot: Snapshot,
    pub(super) state: State,
    doubt: Option<State>,
    pub(super) names: Names,
}

/// One family as a read sees it.
struct View<'a> {
    handle: Arc<Family>,
    name: String,
    states: [Option<&'a State>; 2],
    options: ReadOptions,
}

/// The store and its model.
pub struct Store {
    /// Its machine.
    pub sim: SimEnv,
    /// Its settings.
    pub setup: Setup,
    /// The open database.
    pub db: Db,
    /// What it should hold.
    pub model: Model,
    /// What a crash must leave of that.
    pub promise: Promise,
    /// The state without the last write, while it is not known whether that is in.
    pub(super) doubt: Option<State>,
    /// Generations given out per name.
    next_generation: Names,
    pub(super) snapshots: BTreeMap<u32, Held>,
    /// Calls of the file system are made to fail: steps may fail, and say so.
    pub faulty: bool,
    /// Steps that failed.
    pub failures: u64,
    /// Writes that came in by an ingestion.
    pub ingested: u64,
    /// Families that were made by an import.
    pub imported: u64,
    /// What the features of the history know and have done.
    pub features: Done,
}

/// Opens the database of a machine.
///
/// # Errors
/// Those of the engine.
pub fn open(sim: &SimEnv, setup: &Setup) -> Result<Db, Error> {
    let given = setup.places.given_to(sim);
    let families = setup.families(&given);
    Db::open(sim.env(), Path::new(DIR), given.of(&setup.db), families, setup.family.clone())
}

/// All entries of a family, in one direction.
pub fn listing(
    db: &Db,
    family: &Family,
    options: ReadOptions,
    reverse: bool,
) -> Result<Vec<KeyValue>, Error> {
    listing_within(db, family, KeyBounds::default(), options, reverse)
}

/// The entries of a family within a range, in one direction.
fn listing_within(
    db: &Db,
    family: &Family,
    range: KeyBounds,
    options: ReadOptions,
    reverse: bool,
) -> Result<Vec<KeyValue>, Error> {
    let mut iter = db.iter(family, range, options)?;
    let mut out = Vec::new();
    if reverse {
        iter.last()?
    } else {
        iter.first()?
    }
    while let Some((key, value)) = iter.entry() {
        out.push((key.to_vec(), compared(family, key, value)));
        if reverse { iter.prev()? } else { iter.next()? }
    }
    if reverse {
        out.reverse();
    }
    Ok(out)
}

impl Store {
    /// A store on a new machine.
    pub fn new(sim: SimEnv, setup: Setup) -> Result<Store, String> {
        let db = open(&sim, &setup).map_err(|e| format!("the first open: {e}"))?;
        let names = Names::from([(DEFAULT.to_owned(), 0)]);
        let promise = Promise { names: names.clone(), ..Promise::default() };
        Ok(Store {
            sim,
            setup,
            db,
            model: Model::new(),
            promise,
            doubt: None,
            next_generation: Names::new(),
            snapshots: BTreeMap::new(),
            faulty: false,
            failures: 0,
            ingested: 0,
            imported: 0,
            features: Done::default(),
        })
    }

    /// The store goes on as what a crash left: the model is cut at `m`.
    pub fn adopt(&mut self, sim: SimEnv, db: Db, m: usize, names: Names) {
        self.snapshots.clear();
        self.model.truncate(m);
        self.doubt = None;
        self.features.bookmark = None;
        self.features.views.clear();
        self.promise = Promise { names, power: m, kill: m, logged: m, ..Promise::default() };
        self.db = db;
        self.sim = sim;
    }

    /// Does one step.
    ///
    /// # Errors
    /// A wrong answer, or an error where nothing was made to fail.
    pub fn step(&mut self, step: &Step) -> Result<(), String> {
        match step {
            Step::Op(op) => self.op(op),
            Step::SyncWal => {
                let done = self.db.sync_wal();
                if self.passed("sync_wal", done)?.is_some() {
                    self.promise.kill = self.promise.kill.max(self.promise.logged);
                    self.promise.power = self.promise.power.max(self.promise.logged);
                }
                Ok(())
            }
            Step::FlushWal { sync } => {
                let done = self.db.flush_wal(*sync);
                if self.passed("flush_wal", done)?.is_some() {
                    self.promise.kill = self.promise.kill.max(self.promise.logged);
                    let synced = if *sync { self.promise.logged } else { 0 };
                    self.promise.power = self.promise.power.max(synced);
                }
                Ok(())
            }
            Step::Create(name) => self.create(name),
            Step::Drop(name) => self.drop_family(name),
            Step::Drive(steps) => {
                self.sim.env().jobs.drive(*steps);
                Ok(())
            }
            Step::Idle => {
                let done = self.db.wait_for_background();
                self.passed("wait_for_background", done).map(drop)
            }
            Step::Feature(feature) => self.feature(feature),
        }
    }

    fn op(&mut self, op: &Op) -> Result<(), String> {
        match op {
            Op::Write { changes, sync } => self.write(changes, *sync),
            Op::Flush { family } => {
                let Some(handle) = self.db.family(family) else { return Ok(()) };
                let last = self.last_write_to(family);
                let done = self.db.flush(&[handle]);
                if self.passed("flush", done)?.is_some() {
                    self.promise.power = self.promise.power.max(last);
                    self.promise.kill = self.promise.kill.max(last);
                }
                Ok(())
            }
            Op::Compact { family } => {
                let Some(handle) = self.db.family(family) else { return Ok(()) };
                let done = self.db.compact_range(&handle, None, None);
                self.passed("compact_range", done).map(drop)
            }
            Op::Reopen => self.reopen(),
            Op::Snapshot { id } => {
                let Some(snapshot) = self.passed("snapshot", self.db.snapshot())? else { return Ok(()) };
                let (state, doubt) = (self.model.now().clone(), self.doubt.clone());
                let held = Held { snapshot, state, doubt, names: self.promise.names.clone() };
                self.snapshots.insert(*id, held);
                Ok(())
            }
            Op::Release { id } => {
                self.snapshots.remove(id);
                Ok(())
            }
            Op::Get { family, key, at } => self.get(family, key, *at),
            Op::Scan { family, from, to, reverse, at } => self.scan(family, (from, to), *reverse, *at),
        }
    }

    /// `None`: it failed, and calls are made to fail.
    pub(super) fn passed<T>(&mut self, what: &str, outcome: Result<T, Error>) -> Result<Option<T>, String> {
        match outcome {
            Ok(value) => Ok(Some(value)),
            Err(e) if e.kind() == ErrorKind::Aborted => Err(format!("{HANG}{what}: {e}")),
            Err(_) if self.faulty => {
                self.failures += 1;
                Ok(None)
            }
            Err(e) => Err(format!("{what} failed: {e}")),
        }
    }

    /// Whether it is known of all writes and families that they are in or not.
    pub fn is_certain(&self) -> bool {
        self.doubt.is_none() && self.promise.maybe.is_empty() && self.db.health().severity < Severity::Hard
    }

    /// A store that takes writes again knows whether the write that failed is in: then so do we.
    pub fn settle_doubt(&mut self) -> Result<(), String> {
        if self.db.health().severity >= Severity::Hard {
            return Ok(());
        }
        // And so it is with families whose drop failed.
        for name in self.promise.maybe.keys().cloned().collect::<Vec<_>>() {
            if self.db.family(&name).is_some()
                && let Some(generation) = self.promise.maybe.remove(&name)
            {
                self.promise.names.insert(name, generation);
            }
        }
        let Some(without) = self.doubt.take() else { return Ok(()) };
        let mut listings = vec![(PREPARED.to_owned(), prepared(&self.db))];
        for (name, generation) in self.promise.names.clone() {
            let family = self.db.family(&name).ok_or_else(|| format!("family {name} is gone"))?;
            let listed = listing(&self.db, &family, ReadOptions::default(), false);
            let Some(found) = self.passed("scan", listed)? else {
                self.doubt = Some(without);
                return Ok(());
            };
            listings.push((model_name(&name, generation), found));
        }
        let differences = [self.model.now(), &without].map(|state| {
            let differs = |(name, found): &(String, Vec<KeyValue>)| {
                let here = first_difference(&state.entries(name), found)?;
                Some(format!("family {name}: {here}"))
            };
            listings.iter().find_map(differs)
        });
        match differences {
            [None, _] => Ok(()),
            [Some(_), None] => {
                self.model.truncate(self.model.writes() - 1);
                Ok(())
            }
            [Some(with), Some(without)] => {
                Err(format!("a write that failed is neither in ({with}) nor not in ({without})"))
            }
        }
    }

    /// Whether a run may go on to write: not while it does not know the contents and the store would take the write, because
    /// then it could not know later.
    pub(super) fn may_write(&mut self) -> Result<bool, String> {
        self.settle_doubt()?;
        Ok(self.doubt.is_none() || self.db.health().severity >= Severity::Hard)
    }

    pub(super) fn write(&mut self, changes: &[Change], sync: bool) -> Result<(), String> {
        if !self.may_write()? {
            return Ok(());
        }
        let (mut batch, modelled) = self.batched(changes)?;
        if modelled.is_empty() {
            return Ok(());
        }
        let number = self.model.apply(&modelled);
        if self.ingests(changes, sync) {
            return self.ingest(changes, number);
        }
        let done = self.db.write(&mut batch, self.setup.how_to_write(sync)).map(drop);
        self.logged("write", number, sync, done).map(drop)
    }

    /// The changes of families that are there: a batch, and as the model has them.
    pub(super) fn batched(&self, changes: &[Change]) -> Result<(WriteBatch, Vec<Change>), String> {
        let (mut batch, mut modelled) = (WriteBatch::new(), Vec::new());
        let time = changes.iter().any(|change| change.family() == TIMED).then(|| next_second(&self.sim));
        for (family, change, named) in self.live(changes)? {
            let (change, named) = match time.filter(|_| change.family() == TIMED) {
                Some(time) => self.setup.timed(self.model.now(), named, &change, time),
                None => (change, named),
            };
            match (own_ttl(&change), &change) {
                (Some(own), Change::Put { key, value, .. }) => {
                    batch.put_with_ttl(family.id(), key, value, own.into())
                }
                _ => add(&mut batch, family.id(), &change),
            }
            .map_err(|e| e.to_string())?;
            modelled.push(named);
        }
        Ok((batch, modelled))
    }

    /// Notes the outcome of write `number`, which the model has. Returns whether the write was done.
    pub(super) fn logged(
        &mut self,
        what: &str,
        number: usize,
        sync: bool,
        done: Result<(), Error>,
    ) -> Result<bool, String> {
        let indeterminate = matches!(&done, Err(e) if e.kind() == ErrorKind::Indeterminate);
        let passed = self.passed(what, done)?.is_some();
        if passed {
            if !self.setup.unlogged {
                self.promise.logged = number;
            }
            if !self.setup.unlogged && (sync || !self.setup.holds_back()) {
                self.promise.kill = number;
            }
            if sync && !self.setup.unlogged {
                self.promise.power = number;
            }
        } else if indeterminate {
            self.doubt = Some(self.model.cut(number - 1));
        } else {
            // Refused: it must never show.
            self.model.truncate(number - 1);
        }
        Ok(passed)
    }

    pub(super) fn create(&mut self, name: &str) -> Result<(), String> {
        if self.promise.names.contains_key(name) {
            return Ok(());
        }
        // Used up even if it fails: a later open may find the family.
        let generation = self.next_generation.get(name).copied().unwrap_or(0);
        self.next_generation.insert(name.to_owned(), generation + 1);
        let made = match self.imports(name, generation) {
            true => self.import(name, generation),
            false => self.db.create_family(name, self.setup.of(name, &self.setup.places)),
        };
        if self.passed("create_family", made)?.is_some() {
            self.imported += u64::from(self.imports(name, generation));
            self.promise.names.insert(name.to_owned(), generation);
            self.promise.maybe.remove(name);
        } else {
            self.promise.maybe.entry(name.to_owned()).or_insert(generation);
        }
        Ok(())
    }

    fn drop_family(&mut self, name: &str) -> Result<(), String> {
        if !self.promise.names.contains_key(name) {
            return Ok(());
        }
        let family = self.db.family(name).ok_or_else(|| format!("family {name} is gone"))?;
        let done = self.db.drop_family(&family);
        let dropped = self.passed("drop_family", done)?.is_some();
        // A store that still takes writes after it failed to drop a family keeps what it takes.
        if (dropped || self.db.health().severity >= Severity::Hard)
            && let Some(generation) = self.promise.names.remove(name)
            && !dropped
        {
            self.promise.maybe.insert(name.to_owned(), generation);
        }
        Ok(())
    }

    fn reopen(&mut self) -> Result<(), String> {
        self.snapshots.clear();
        let done = self.db.close();
        self.passed("close", done)?;
        let opened = open(&self.sim, &self.setup);
        let Some(db) = self.passed("open", opened)? else { return Ok(()) };
        if self.faulty {
            return self.come_back(db);
        }
        if !db.recovery().is_clean() {
            return Err(format!("a close in order leaves an unclean store: {}", db.recovery()));
        }
        self.db = db;
        // What was replayed is in tables now, as what was not logged is since the close.
        self.promise.kill = self.model.writes();
        (self.promise.power, self.promise.logged) = (self.promise.kill, self.promise.kill);
        Ok(())
    }

    /// Goes on with a store that was opened after calls had failed: writes with an unknown outcome are known now.
    fn come_back(&mut self, db: Db) -> Result<(), String> {
        let what = |e: String| format!("reopened after failures: {e}");
        // Looked at in a copy, where no call fails.
        let copy = open(&self.sim.crash(CrashMode::KILL), &self.setup).map_err(|e| what(e.to_string()))?;
        let (m, names) = Crash::of(self, &self.promise, false).look(&copy).map_err(what)?;
        self.adopt(self.sim.clone(), db, m, names);
        Ok(())
    }

    /// The last write that changed the family.
    fn last_write_to(&self, family: &str) -> usize {
        let Some(generation) = self.promise.names.get(family) else { return 0 };
        let upto = if self.setup.unlogged { usize::MAX } else { self.promise.logged };
        self.model.last_write_to(&model_name(family, *generation), upto)
    }

    /// What a read looks at, and the states that may answer it.
    fn view(&self, family: &str, at: Option<u32>) -> Option<View<'_>> {
        let handle = self.db.family(family)?;
        let generation = *self.promise.names.get(family)?;
        let name = model_name(family, generation);
        let Some(id) = at else {
            let states = [Some(self.model.now()), self.doubt.as_ref()];
            return Some(View { handle, name, states, options: ReadOptions::default() });
        };
        let held = self.snapshots.get(&id)?;
        let known = held.names.get(family) == Some(&generation);
        let options = ReadOptions { at: Some(held.snapshot.seq()), ..ReadOptions::default() };
        known.then(|| View { handle, name, states: [Some(&held.state), held.doubt.as_ref()], options })
    }

    fn get(&mut self, family: &str, key: &[u8], at: Option<u32>) -> Result<(), String> {
        let Some(View { handle, name, states, options }) = self.view(family, at) else { return Ok(()) };
        let found = self.db.get(&handle, key, options).map(|v| v.map(|v| v.into_vec()));
        let expected = states.map(|s| s.map(|s| s.get(&name, key).map(<[u8]>::to_vec)));
        let Some(found) = self.passed("get", found)? else { return Ok(()) };
        if expected.iter().flatten().any(|e| *e == found) {
            return Ok(());
        }
        let len = |v: &Option<Vec<u8>>| v.as_ref().map(Vec::len);
        let expected: Vec<_> = expected.iter().flatten().map(len).collect();
        Err(format!(
            "get {family} {key:02x?} at {at:?}: {expected:?} bytes expected, {:?} found",
            len(&found)
        ))
    }

    fn scan(
        &mut self,
        family: &str,
        (from, to): (&[u8], &[u8]),
        reverse: bool,
        at: Option<u32>,
    ) -> Result<(), String> {
        let Some(View { handle, name, states, options }) = self.view(family, at) else { return Ok(()) };
        let range =
            KeyBounds { lower: Some(from.to_vec()), upper: Some(to.to_vec()), ..KeyBounds::default() };
        let expected = states.map(|s| s.map(|s| s.scan(&name, from, to)));
        let found = listing_within(&self.db, &handle, range, options, reverse);
        let Some(found) = self.passed("scan", found)? else { return Ok(()) };
        let mut differences = expected.iter().flatten().map(|e| first_difference(e, &found));
        let first = differences.next().flatten();
        match first.filter(|_| differences.all(|d| d.is_some())) {
            None => Ok(()),
            Some(difference) => Err(format!("scan {family} at {at:?} reverse {reverse}: {difference}")),
        }
    }

    /// Blob files, wherever they are.
    pub fn blob_files(&self) -> usize {
        self.files("blob").len()
    }

    /// Files whose names end like this, outside of the database directory.
    pub fn files_elsewhere(&self, extension: &str) -> usize {
        self.files(extension).iter().filter(|path| !path.starts_with(DIR)).count()
    }

    /// The directory of the newest log: an open that is not given `wal_dir` stays with the one before.
    pub fn wal_dir(&self) -> PathBuf {
        let newest = self.files("log").into_iter().max_by_key(|path| path.file_name().map(ToOwned::to_owned));
        newest.as_deref().and_then(Path::parent).unwrap_or(Path::new(DIR)).to_path_buf()
    }

    fn files(&self, extension: &str) -> Vec<PathBuf> {
        let env = self.sim.env();
        let listed = |dir: PathBuf| {
            let entries = env.fs.list(&dir).unwrap_or_default();
            entries.into_iter().map(move |entry| dir.join(entry.name))
        };
        let all = self.setup.places.dirs().into_iter().flat_map(listed);
        all.filter(|path| path.extension().is_some_and(|e| e == extension)).collect()
    }

    /// Everything as the model has it?
    pub fn compare_all(&mut self) -> Result<(), String> {
        if let Some(difference) = first_difference(&self.model.now().entries(PREPARED), &prepared(&self.db)) {
            return Err(format!("{PREPARED}: {difference}"));
        }
        for (name, generation) in self.promise.names.clone() {
            let family = self.db.family(&name).ok_or_else(|| format!("family {name} is gone"))?;
            let expected = self.setup.entries(self.model.now(), &model_name(&name, generation), &self.db);
            for reverse in [false, true] {
                let found = listing(&self.db, &family, ReadOptions::default(), reverse);
                let found = found.map_err(|e| format!("scan of {name}: {e}"))?;
                if let Some(difference) = first_difference(&expected, &found) {
                    return Err(format!("family {name}, reverse {reverse}: {difference}"));
                }
            }
        }
        Ok(())
    }
}

/// The changes as one batch.
///
/// # Errors
/// A family that is not there, or a change that no batch takes.
pub fn batch(db: &Db, changes: &[Change]) -> Result<WriteBatch, String> {
    let mut batch = WriteBatch::new();
    for change in changes {
        let name = change.family();
        let family = db.family(name).ok_or_else(|| format!("family {name} is gone"))?;
        add(&mut batch, family.id(), change).map_err(|e| e.to_string())?;
    }
    Ok(batch)
}

pub(super) fn add(batch: &mut WriteBatch, id: FamilyId, change: &Change) -> Result<(), Error> {
    match change {
        Change::Put { key, value, .. } => batch.put(id, key, value),
        Change::Delete { key, .. } => batch.delete(id, key),
        Change::SingleDelete { key, .. } => batch.single_delete(id, key),
        Change::Merge { key, operand, .. } => batch.merge(id, key, operand),
        Change::DeleteRange { from, to, .. } => batch.delete_range(id, from, to),
    }
}

/// Writes a few fresh keys into every family of an open store, to see that it takes them. Returns what it now holds.
pub fn scribble(db: &Db, rng: &mut Rng, sync: bool) -> Result<(), Error> {
    let mut batch = WriteBatch::new();
    for family in db.families() {
        let key = format!("scribble{}", rng.below(1000));
        batch.put(family.id(), key.as_bytes(), key.as_bytes())?;
        let found = |value: Option<Vec<u8>>| value.as_deref() == Some(key.as_bytes());
        let mut alone = WriteBatch::new();
        alone.put(family.id(), key.as_bytes(), key.as_bytes())?;
        db.write(&mut alone, WriteOptions::default())?;
        let value = db.get(&family, key.as_bytes(), ReadOptions::default())?.map(|v| v.into_vec());
        assert!(found(value), "a write is not seen");
    }
    db.write(&mut batch, WriteOptions { sync, ..WriteOptions::default() }).map(drop)
}
