//! A database and what users hold of it: handles, snapshots, scans, cursors; beside each of them what it must show.

use super::super::settings::Choice;
use super::acts::{Act, Call, DROPPED, End, FAMILIES, Use};
use super::shown::{Bounds, Expected, Map, Move, ShortestFirst, Sorted};
use crate::sim::plan::Setup;
use crate::sim::store::DIR;
use ashlar_base::error::IoKind;
use ashlar_env::sim::{CallClass, CrashMode, Repeat, SimEnv};
use ashlar_testkit::ops::{Change, MERGE_OPERATOR};
use ashlar_testkit::oracle::first_difference;
use ashlar_testkit::{KeyValue, Rng};
use ashlardb::{
    Builder, CompactRangeOptions, Cursor, Db, Error, ErrorKind, Family, Read, ReadOptions, Result, Scan,
    Snapshot, Write, WriteBatch, WriteOptions, standard_operator,
};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

/// Where the other database stands.
const OTHER: &str = "/data/other";
/// Cursors, scans and snapshots that are held at once, of each.
const HELD: usize = 5;

/// A family of the model, from its making on.
struct Modelled {
    name: &'static str,
    sorted: Sorted,
    map: Arc<Map>,
    dropped: bool,
}

/// Which open a handle is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// The open of this number.
    Session(u64),
    /// The other database.
    Foreign,
}

struct Handle {
    family: Family,
    /// In the list of families of the model.
    model: usize,
    origin: Origin,
}

struct Held {
    snapshot: Snapshot,
    origin: Origin,
    maps: BTreeMap<usize, Arc<Map>>,
    /// Families and ranges of which tables were deleted since: the snapshot may have lost what is in them.
    lossy: Vec<(usize, Bounds)>,
}

struct HeldCursor {
    cursor: Cursor,
    expected: Expected,
    session: u64,
}

struct HeldScan {
    scan: Scan,
    left: VecDeque<KeyValue>,
}

/// What was done, for the report.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Done {
    pub(super) scans: u64,
    pub(super) moves: u64,
    pub(super) moves_later: u64,
    pub(super) refused: u64,
    pub(super) tables_deleted: u64,
    pub(super) reopens: u64,
}

/// The database and the model.
pub(super) struct World {
    sim: SimEnv,
    db: Db,
    other: Db,
    session: u64,
    unlogged: bool,
    families: Vec<Modelled>,
    handles: Vec<Handle>,
    snapshots: Vec<Held>,
    cursors: VecDeque<HeldCursor>,
    scans: VecDeque<HeldScan>,
    pub(super) done: Done,
}

/// What a read is of, and what it must show.
struct Source<'a> {
    handle: &'a Handle,
    snapshot: Option<&'a Held>,
    options: ReadOptions,
    answer: Answer,
}

enum Answer {
    /// The contents; of these ranges it is not known what they hold.
    Shows(Arc<Map>, Vec<Bounds>),
    Refused,
    /// A read of the other database by its own handles.
    Elsewhere,
}

fn wrong(what: &str, e: &Error) -> String {
    format!("{what}: {e}")
}

/// Whether a call is refused as a handle of another open, or of a family that is gone, must be.
fn is_refused<T>(what: &str, result: &Result<T>) -> std::result::Result<(), String> {
    match result {
        Err(e) if matches!(e.kind(), ErrorKind::InvalidArgument | ErrorKind::Shutdown(_)) => Ok(()),
        Err(e) => Err(format!("{what}: refused with another kind of error: {e}")),
        Ok(_) => Err(format!("{what}: taken, though it had to be refused")),
    }
}

/// Whether a file is gone that the entry is in.
fn is_gone(e: &Error) -> bool {
    e.is_not_found() || e.to_string().contains("the blob file that an entry points into is missing")
}

fn builder(sim: &SimEnv, dir: &str) -> Builder {
    let operator = standard_operator(MERGE_OPERATOR);
    Db::builder(dir).env(sim.env()).default_family(|family| match operator {
        Some(operator) => family.merge_operator(operator),
        None => family,
    })
}

/// Opens the database with the settings of `choice` that `which` names, and those that it has stored.
fn open(sim: &SimEnv, choice: &Choice, which: u64, families: &[(&'static str, Sorted)]) -> Result<Db> {
    let (choice, base) = (choice.clone(), Setup::draw(&mut Rng::new(0)));
    let fresh = which == u64::MAX;
    let mut builder = builder(sim, DIR).tune(move |db, family| {
        let mut setup = Setup { db: db.clone(), family: family.clone(), ..base.clone() };
        if fresh {
            setup.family.compaction = base.family.compaction.clone();
            setup.family.write_buffer_bytes = base.family.write_buffer_bytes;
            setup.db.block_cache_bytes = base.db.block_cache_bytes;
        }
        choice.set(&mut setup, which);
        (*db, *family) = (setup.db, setup.family);
        if !setup.places.wal_dir.is_empty() {
            db.wal_dir = setup.places.wal_dir;
        }
    });
    for (name, sorted) in families {
        builder = builder.family(name, |family| match sorted {
            Sorted::Up => family,
            Sorted::Down => family.reverse_order(),
            Sorted::Own => family.comparator(Arc::new(ShortestFirst)),
        });
    }
    builder.open()
}

fn open_other(sim: &SimEnv) -> Result<Db> {
    let db = builder(sim, OTHER).family("back", |family| family.reverse_order()).open()?;
    db.put("k01", "of the other database")?;
    Ok(db)
}

impl World {
    pub(super) fn new(seed: u64, choice: &Choice) -> std::result::Result<World, String> {
        let sim = SimEnv::new(seed);
        let lasting: Vec<_> = FAMILIES.into_iter().filter(|(name, _)| *name != DROPPED).collect();
        let db = open(&sim, choice, u64::MAX, &lasting).map_err(|e| wrong("the first open", &e))?;
        let other = open_other(&sim).map_err(|e| wrong("the other database", &e))?;
        let family = |(name, sorted)| Modelled { name, sorted, map: Arc::default(), dropped: false };
        let mut world = World {
            sim,
            db,
            other,
            session: 0,
            unlogged: choice.setup().unlogged,
            families: lasting.into_iter().map(family).collect(),
            handles: Vec::new(),
            snapshots: Vec::new(),
            cursors: VecDeque::new(),
            scans: VecDeque::new(),
            done: Done::default(),
        };
        world.begin()?;
        Ok(world)
    }

    /// Takes the handles of a session.
    fn begin(&mut self) -> std::result::Result<(), String> {
        for model in 0..self.families.len() {
            if !self.families[model].dropped {
                let family = self.db.family(self.families[model].name).map_err(|e| wrong("a family", &e))?;
                self.handles.push(Handle { family, model, origin: Origin::Session(self.session) });
            }
        }
        for (model, name) in [(0, "default"), (1, "back")] {
            let family = self.other.family(name).map_err(|e| wrong("a family of the other", &e))?;
            self.handles.push(Handle { family, model, origin: Origin::Foreign });
        }
        let snapshot = self.other.snapshot().map_err(|e| wrong("snapshot of the other", &e))?;
        let (origin, maps, lossy) = (Origin::Foreign, BTreeMap::new(), Vec::new());
        self.snapshots.push(Held { snapshot, origin, maps, lossy });
        Ok(())
    }

    pub(super) fn act(&mut self, act: &Act) -> std::result::Result<(), String> {
        match act {
            Act::Write(changes) => self.write(changes),
            Act::Flush(n) => {
                self.live(*n).map_or(Ok(()), |h| h.family.flush()).map_err(|e| wrong("flush", &e))
            }
            Act::Compact(n) => {
                let options = CompactRangeOptions::default();
                let done = self.live(*n).map_or(Ok(()), |h| h.family.compact_range(.., options));
                done.map_err(|e| wrong("compact_range", &e))
            }
            Act::Drive(steps) => {
                self.sim.env().jobs.drive(*steps);
                Ok(())
            }
            Act::Snapshot => self.snapshot(),
            Act::Release(n) => {
                let n = n % self.snapshots.len().max(1);
                if self.snapshots.get(n).is_some_and(|held| held.origin != Origin::Foreign) {
                    self.snapshots.remove(n);
                }
                Ok(())
            }
            Act::Scan { calls, bounds, prefixes, then } => self.scan(calls, bounds, prefixes, then),
            Act::Move(n, moves) => self.move_held(*n, moves),
            Act::Go(n, ends) => self.go_on(*n, ends),
            Act::Get(calls, key) => self.get(calls, key),
            Act::DropFamily => self.drop_family(),
            Act::CreateFamily => self.create_family(),
            Act::DeleteFiles(n, a, b) => self.delete_files(*n, a, b),
            Act::Refused(n) => self.refused(*n),
            Act::Reopen { choice, which, end } => self.reopen(choice, *which, *end),
        }
    }

    fn is_live(&self, handle: &Handle) -> bool {
        handle.origin == Origin::Session(self.session) && !self.families[handle.model].dropped
    }

    fn live(&self, n: usize) -> Option<&Handle> {
        let live: Vec<&Handle> = self.handles.iter().filter(|handle| self.is_live(handle)).collect();
        live.get(n % live.len().max(1)).copied()
    }

    fn named(&self, name: &str) -> Option<&Handle> {
        self.handles.iter().find(|h| self.is_live(h) && self.families[h.model].name == name)
    }

    fn write(&mut self, changes: &[Change]) -> std::result::Result<(), String> {
        let batch = WriteBatch::new();
        let mut modelled = Vec::new();
        for change in changes {
            let Some(handle) = self.named(change.family()) else { continue };
            let (model, to) = (handle.model, batch.family(&handle.family));
            let change = in_order(change, self.families[model].sorted);
            let added = match &change {
                Change::Put { key, value, .. } => to.put(key, value),
                Change::Delete { key, .. } => to.delete(key),
                Change::SingleDelete { key, .. } => to.single_delete(key),
                Change::Merge { key, operand, .. } => to.merge(key, operand),
                Change::DeleteRange { from, to: end, .. } => to.delete_range(from, end),
            };
            added.map_err(|e| wrong("a change", &e))?;
            modelled.push((model, change));
        }
        let options = WriteOptions::new().disable_wal(self.unlogged);
        self.db.writing(options).write(batch).map_err(|e| wrong("write", &e))?;
        for (model, change) in modelled {
            let Modelled { sorted, map, .. } = &mut self.families[model];
            sorted.apply(Arc::make_mut(map), &change);
        }
        Ok(())
    }

    fn snapshot(&mut self) -> std::result::Result<(), String> {
        let snapshot = self.db.snapshot().map_err(|e| wrong("snapshot", &e))?;
        let maps = self.families.iter().enumerate().map(|(n, f)| (n, Arc::clone(&f.map))).collect();
        let (origin, lossy) = (Origin::Session(self.session), Vec::new());
        self.snapshots.push(Held { snapshot, origin, maps, lossy });
        if self.snapshots.len() > HELD {
            let first = self.snapshots.iter().position(|held| held.origin != Origin::Foreign);
            first.map(|first| self.snapshots.remove(first));
        }
        Ok(())
    }

    /// What the calls describe; the last one of a kind counts.
    fn source(&self, calls: &[Call]) -> Option<Source<'_>> {
        let (mut handle, mut snapshot) = (self.named("default")?, None);
        let mut options = ReadOptions::new();
        for call in calls {
            match call {
                Call::Family(n) => handle = &self.handles[n % self.handles.len()],
                Call::Snapshot(n) => snapshot = Some(&self.snapshots[n % self.snapshots.len()]),
                Call::FillCache(yes) => options = options.fill_cache(*yes),
            }
        }
        let now = Origin::Session(self.session);
        let answer = match (handle.origin, snapshot) {
            (Origin::Foreign, Some(held)) if held.origin == Origin::Foreign => Answer::Elsewhere,
            (origin, Some(held)) if origin != now || held.origin != now => Answer::Refused,
            (origin, None) if origin != now => Answer::Refused,
            (_, None) => Answer::Shows(Arc::clone(&self.families[handle.model].map), Vec::new()),
            (_, Some(held)) => {
                let map = held.maps.get(&handle.model).cloned().unwrap_or_default();
                let lossy = held.lossy.iter().filter(|(model, _)| *model == handle.model);
                Answer::Shows(map, lossy.map(|(_, range)| range.clone()).collect())
            }
        };
        Some(Source { handle, snapshot, options, answer })
    }

    fn scan(
        &mut self,
        calls: &[Call],
        bounds: &Bounds,
        prefixes: &[Vec<u8>],
        then: &Use,
    ) -> std::result::Result<(), String> {
        let Some(source) = self.source(calls) else { return Ok(()) };
        let Modelled { sorted, name, .. } = self.families[source.handle.model];
        let mut scan = source.over(&self.db, |reader| reader.scan(bounds.clone()));
        for prefix in prefixes {
            scan = scan.prefix(prefix);
        }
        let text = format!("scan of {name}, {calls:?}, {bounds:?}, prefixes {prefixes:?}");
        let narrowed = prefixes.iter().any(|prefix| !prefix.is_empty());
        let refused = sorted.is_inverted(bounds) || sorted == Sorted::Own && narrowed;
        let (map, lossy) = match source.answer {
            Answer::Elsewhere => return Ok(()),
            Answer::Shows(map, lossy) if !refused => (map, lossy),
            _ => {
                self.done.refused += 1;
                is_refused(&text, &scan.cursor())?;
                is_refused(&text, &scan.explain(10))?;
                let first = if calls.len().is_multiple_of(2) { scan.next() } else { scan.next_back() };
                return is_refused(&text, &first.unwrap_or_else(|| Ok(Default::default())));
            }
        };
        self.done.scans += 1;
        let entries = sorted.shown(&map, bounds, prefixes);
        if !lossy.is_empty() {
            let known = |entry: &KeyValue| !lossy.iter().any(|range| sorted.holds(range, &entry.0));
            let found = scan.collect::<Result<Vec<_>>>().map_err(|e| wrong(&text, &e))?;
            let [expected, found] =
                [entries, found].map(|list| list.into_iter().filter(known).collect::<Vec<_>>());
            return first_difference(&expected, &found).map_or(Ok(()), |d| Err(format!("{text}: {d}")));
        }
        match then {
            Use::Explain => {
                let told = scan.explain(1 << 20).map_err(|e| wrong(&text, &e))?;
                let counts = (told.keys(), entries.len() as u64);
                if counts.0 == counts.1 { Ok(()) } else { Err(format!("{text}: explain counts {counts:?}")) }
            }
            Use::Ends(ends) => {
                let mut held = HeldScan { scan, left: entries.into() };
                let goes_on = held.go(ends).map_err(|e| format!("{text}: {e}"))?;
                if goes_on {
                    self.scans.push_back(held);
                    self.scans.truncate(HELD);
                }
                Ok(())
            }
            Use::Cursor(moves) => {
                let cursor = scan.cursor().map_err(|e| wrong(&text, &e))?;
                let expected = Expected::new(sorted, entries);
                let mut held = HeldCursor { cursor, expected, session: self.session };
                for to in moves {
                    self.done.moves += 1;
                    held.go(to).map_err(|e| format!("{text}: {e:?}"))?;
                }
                self.cursors.push_front(held);
                self.cursors.truncate(HELD);
                Ok(())
            }
        }
    }

    fn move_held(&mut self, n: usize, moves: &[Move]) -> std::result::Result<(), String> {
        let n = n % self.cursors.len().max(1);
        let Some(held) = self.cursors.get_mut(n) else { return Ok(()) };
        for to in moves {
            self.done.moves += 1;
            self.done.moves_later += u64::from(held.session != self.session);
            match held.go(to) {
                Ok(()) => {}
                // The open of a later session has removed a replaced table or blob file.
                Err(Trouble::Failed(e)) if held.session != self.session && is_gone(&e) => {
                    self.cursors.remove(n);
                    break;
                }
                Err(e) => return Err(format!("a cursor that is held: {e:?}")),
            }
        }
        Ok(())
    }

    fn go_on(&mut self, n: usize, ends: &[bool]) -> std::result::Result<(), String> {
        let n = n % self.scans.len().max(1);
        let Some(held) = self.scans.get_mut(n) else { return Ok(()) };
        if !held.go(ends).map_err(|e| format!("a scan that is held: {e}"))? {
            self.scans.remove(n);
        }
        Ok(())
    }

    fn get(&mut self, calls: &[Call], key: &[u8]) -> std::result::Result<(), String> {
        let Some(source) = self.source(calls) else { return Ok(()) };
        let text = format!("get {} in {}, {calls:?}", key.escape_ascii(), source.handle.family.name());
        let one = source.over(&self.db, |reader| reader.get(key));
        let many = source.over(&self.db, |reader| reader.multi_get([key, b"k01"]));
        match source.answer {
            Answer::Elsewhere => Ok(()),
            Answer::Refused => {
                is_refused(&text, &one)?;
                is_refused(&text, &many)?;
                self.done.refused += 1;
                Ok(())
            }
            Answer::Shows(map, lossy) => {
                let sorted = self.families[source.handle.model].sorted;
                let one = one.map_err(|e| wrong(&text, &e))?;
                let many = many.map_err(|e| wrong(&text, &e))?;
                for (key, found) in [(key, one.as_ref()), (key, many[0].as_ref()), (b"k01", many[1].as_ref())]
                {
                    let known = !lossy.iter().any(|range| sorted.holds(range, key));
                    if known && map.get(key).map(Vec::as_slice) != found.map(|view| &**view) {
                        return Err(format!("{text}: another value of {}", key.escape_ascii()));
                    }
                }
                Ok(())
            }
        }
    }

    fn drop_family(&mut self) -> std::result::Result<(), String> {
        let Some(handle) = self.named(DROPPED) else { return Ok(()) };
        self.db.drop_family(&handle.family).map_err(|e| wrong("drop_family", &e))?;
        let model = handle.model;
        self.families[model].dropped = true;
        Ok(())
    }

    fn create_family(&mut self) -> std::result::Result<(), String> {
        if self.named(DROPPED).is_some() {
            return Ok(());
        }
        let family = self.db.create_family(DROPPED).map_err(|e| wrong("create_family", &e))?;
        self.handles.push(Handle {
            family,
            model: self.families.len(),
            origin: Origin::Session(self.session),
        });
        self.families.push(Modelled {
            name: DROPPED,
            sorted: Sorted::Up,
            map: Arc::default(),
            dropped: false,
        });
        Ok(())
    }

    fn delete_files(&mut self, n: usize, a: &[u8], b: &[u8]) -> std::result::Result<(), String> {
        let Some(handle) = self.live(n) else { return Ok(()) };
        let (model, sorted) = (handle.model, self.families[handle.model].sorted);
        let (from, to) = if sorted.compare(a, b).is_gt() { (b, a) } else { (a, b) };
        let (family, from, to) = (handle.family.name().to_owned(), from.to_vec(), to.to_vec());
        let bounds = (Bound::Included(from.clone()), Bound::Excluded(to.clone()));
        let deleted = handle.family.delete_files_in_ranges(std::slice::from_ref(&bounds));
        self.done.tables_deleted += deleted.map_err(|e| wrong("delete_files_in_ranges", &e))? as u64;
        for held in &mut self.snapshots {
            held.lossy.push((model, bounds.clone()));
        }
        self.write(&[Change::DeleteRange { family, from, to }])
    }

    /// Handles that belong elsewhere change nothing.
    fn refused(&mut self, n: usize) -> std::result::Result<(), String> {
        let bad: Vec<&Handle> = self.handles.iter().filter(|handle| !self.is_live(handle)).collect();
        let Some(handle) = bad.get(n % bad.len().max(1)) else { return Ok(()) };
        self.done.refused += 1;
        let what = format!("{} of {:?}", handle.family.name(), handle.origin);
        match n / 8 {
            0 | 1 => return is_refused(&what, &self.db.drop_family(&handle.family)),
            2..5 => {
                let batch = WriteBatch::new();
                // Of two families, of which one is right: all or nothing.
                if let Some(good) = self.named("default") {
                    batch.family(&good.family).put("k02", "x").map_err(|e| wrong("a change", &e))?;
                }
                let added = batch.family(&handle.family).put("k02", "x");
                if added.is_err() {
                    return is_refused(&what, &added);
                }
                return is_refused(&what, &self.db.write(batch));
            }
            _ if handle.origin == Origin::Foreign => return Ok(()),
            _ => {}
        }
        is_refused(&what, &handle.family.put("k02", "x"))?;
        is_refused(&what, &handle.family.delete_range("a", "b"))?;
        is_refused(&what, &handle.family.flush())?;
        is_refused(&what, &handle.family.delete_files_in_ranges(&["a".."b"]))?;
        is_refused(&what, &handle.family.set_options(&[("write_buffer_size", "1000000")]))
    }

    fn reopen(&mut self, choice: &Choice, which: u64, end: End) -> std::result::Result<(), String> {
        self.done.reopens += 1;
        let end = if end == End::Kill && self.unlogged { End::Close } else { end };
        let families: Vec<_> =
            self.families.iter().filter(|f| !f.dropped).map(|f| (f.name, f.sorted)).collect();
        self.scans.clear();
        let before = self.sim.clone();
        match end {
            End::Close => {
                self.db.close().map_err(|e| wrong("close", &e))?;
                // Some handles of before stay, to be refused.
                self.handles.retain(|handle| handle.origin == Origin::Session(self.session));
                self.handles.truncate(2);
                self.snapshots.retain(|held| held.origin == Origin::Session(self.session));
                self.snapshots.truncate(1);
            }
            End::Drop => {
                self.handles.clear();
                self.snapshots.clear();
            }
            End::Kill => {
                self.db.flush_wal(false).map_err(|e| wrong("flush_wal", &e))?;
                self.sim = before.crash(CrashMode::KILL);
                before.fail_call(CallClass::Any, 1, Repeat::Sticky, IoKind::Other);
                self.other = open_other(&self.sim).map_err(|e| wrong("the other database", &e))?;
                self.handles.clear();
                self.snapshots.clear();
                self.cursors.clear();
            }
        }
        // The last handle of a database that is dropped.
        if end != End::Close {
            self.db = self.other.clone();
        }
        let what = |e: &Error| format!("reopened ({end:?}) under {}, set {which:x}: {e}", choice.words());
        self.db = open(&self.sim, choice, which, &families).map_err(|e| what(&e))?;
        if end != End::Kill && !self.db.recovery().is_clean() {
            return Err(format!("a close in order leaves an unclean store: {}", self.db.recovery()));
        }
        let mut setup = Setup::draw(&mut Rng::new(0));
        choice.set(&mut setup, which);
        self.unlogged = setup.unlogged && which != 0;
        self.session += 1;
        self.begin()?;
        self.compare().map_err(|e| format!("reopened ({end:?}) under {}, set {which:x}: {e}", choice.words()))
    }

    /// Everything as the model has it, from both ends?
    pub(super) fn compare(&self) -> std::result::Result<(), String> {
        for handle in self.handles.iter().filter(|handle| self.is_live(handle)) {
            let Modelled { sorted, map, name, .. } = &self.families[handle.model];
            let mut expected = sorted.shown(map, &(Bound::Unbounded, Bound::Unbounded), &[]);
            for reverse in [false, true] {
                let scan = handle.family.scan(..);
                let found: Result<Vec<_>> = if reverse { scan.rev().collect() } else { scan.collect() };
                let found = found.map_err(|e| wrong(name, &e))?;
                if let Some(difference) = first_difference(&expected, &found) {
                    return Err(format!("family {name}, reverse {reverse}: {difference}"));
                }
                expected.reverse();
            }
        }
        Ok(())
    }
}

impl Source<'_> {
    /// Reads by `read`, through the snapshot, or through the open database.
    fn over<T>(&self, db: &Db, read: impl Fn(ashlardb::Reader<'_>) -> T) -> T {
        match self.snapshot {
            Some(held) => read(held.snapshot.reading(self.options).family(&self.handle.family)),
            None => read(db.reading(self.options).family(&self.handle.family)),
        }
    }
}

/// Why a move of a cursor is wrong.
enum Trouble {
    Failed(Error),
    Wrong(String),
}

impl std::fmt::Debug for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Trouble::Failed(e) => write!(f, "{e}"),
            Trouble::Wrong(text) => f.write_str(text),
        }
    }
}

impl HeldCursor {
    fn go(&mut self, to: &Move) -> std::result::Result<(), Trouble> {
        let cursor = &mut self.cursor;
        let found = match to {
            Move::First => cursor.first(),
            Move::Last => cursor.last(),
            Move::Next => cursor.next(),
            Move::Prev => cursor.prev(),
            Move::Seek(key) => cursor.seek(key),
            Move::SeekForPrev(key) => cursor.seek_for_prev(key),
        };
        let found = found.map_err(Trouble::Failed)?.map(|(key, value)| (key.to_vec(), value.to_vec()));
        let expected = self.expected.go(to);
        if found.as_ref() == expected {
            return Ok(());
        }
        let key =
            |entry: Option<&KeyValue>| entry.map_or("the end".into(), |(k, _)| k.escape_ascii().to_string());
        let (expected, found) = (key(expected), key(found.as_ref()));
        Err(Trouble::Wrong(format!("{to:?} goes to {found} instead of {expected}, or shows another value")))
    }
}

impl HeldScan {
    /// Takes entries from the front and from the back. False: the scan is over.
    fn go(&mut self, ends: &[bool]) -> std::result::Result<bool, String> {
        for front in ends {
            let found = if *front { self.scan.next() } else { self.scan.next_back() };
            let expected = if *front { self.left.pop_front() } else { self.left.pop_back() };
            let found = found.transpose().map_err(|e| e.to_string())?;
            if found != expected {
                let lists = [expected, found].map(|entry| entry.into_iter().collect::<Vec<_>>());
                let difference = first_difference(&lists[0], &lists[1]).unwrap_or_default();
                return Err(format!("from the {}: {difference}", if *front { "front" } else { "back" }));
            }
            if found.is_none() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The same change, its range in the order of the family.
fn in_order(change: &Change, sorted: Sorted) -> Change {
    match change {
        Change::DeleteRange { family, from, to } if sorted.compare(from, to).is_gt() => {
            Change::DeleteRange { family: family.clone(), from: to.clone(), to: from.clone() }
        }
        other => other.clone(),
    }
}
