//! A database and what users hold of it: handles, snapshots, scans, cursors; beside each of them what it must show.

use super::super::settings::Choice;
use super::acts::{Act, Call, DROPPED, End, FAMILIES, Share, Use};
use super::options::Options;
use super::second::Second;
use super::shown::{Bounds, Expected, Map, Move, Part, Past, ShortestFirst, Shown, Sorted};
use crate::sim::plan::Setup;
use crate::sim::store::DIR;
use ashlar_base::error::IoKind;
use ashlar_env::sim::{CallClass, CrashMode, Repeat, SimEnv};
use ashlar_testkit::ops::{Change, MERGE_OPERATOR};
use ashlar_testkit::oracle::first_difference;
use ashlar_testkit::{KeyValue, Rng};
use ashlardb::{
    Builder, CompactRangeOptions, Cursor, Db, Error, ErrorKind, Family, MayExist, Read, Resources, Result,
    Scan, Snapshot, Write, WriteBatch, WriteOptions, standard_operator,
};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Cursors, scans and snapshots that are held at once, of each.
pub(super) const HELD: usize = 5;

/// A family of the model, from its making on.
struct Modelled {
    name: &'static str,
    sorted: Sorted,
    map: Arc<Map>,
    past: Past,
    dropped: bool,
}

/// Which open a handle is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// The open of this number.
    Session(u64),
    /// The open of this number of the second database.
    Foreign(u64),
}

impl Origin {
    pub(super) fn is_foreign(self) -> bool {
        matches!(self, Origin::Foreign(_))
    }
}

pub(super) struct Handle {
    pub(super) family: Family,
    /// In the list of families of the model.
    pub(super) model: usize,
    pub(super) origin: Origin,
}

pub(super) struct Held {
    pub(super) snapshot: Snapshot,
    pub(super) origin: Origin,
    pub(super) maps: BTreeMap<usize, Arc<Map>>,
    /// Families and ranges of which tables were deleted since: the snapshot may have lost what is in them.
    pub(super) lossy: Vec<(usize, Bounds)>,
}

struct HeldCursor {
    cursor: Cursor,
    expected: Expected,
    options: Options,
    origin: Origin,
}

pub(super) struct HeldScan {
    scan: Scan,
    left: VecDeque<KeyValue>,
    options: Options,
    pub(super) origin: Origin,
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
    pub(super) parts: u64,
    pub(super) given_up: u64,
    pub(super) second: u64,
    pub(super) turns: u64,
}

/// The database and the model.
pub(super) struct World {
    pub(super) sim: SimEnv,
    pub(super) db: Db,
    pub(super) second: Second,
    session: u64,
    unlogged: bool,
    /// This open has seen a write without the log.
    has_unlogged: bool,
    families: Vec<Modelled>,
    pub(super) handles: Vec<Handle>,
    pub(super) snapshots: Vec<Held>,
    cursors: VecDeque<HeldCursor>,
    pub(super) scans: VecDeque<HeldScan>,
    pub(super) done: Done,
}

/// What a read is of, and what it must show.
struct Source<'a> {
    handle: &'a Handle,
    snapshot: Option<&'a Held>,
    options: Options,
    answer: Answer,
}

enum Answer {
    /// This part of the contents; of these ranges it is not known what they hold.
    Shows(Arc<Map>, Vec<Bounds>, Part),
    Refused,
}

pub(super) fn wrong(what: &str, e: &Error) -> String {
    format!("{what}: {e}")
}

/// Whether a call is refused as a handle of another open, or of a family that is gone, must be.
pub(super) fn is_refused<T>(what: &str, result: &Result<T>) -> std::result::Result<(), String> {
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

pub(super) fn builder(sim: &SimEnv, dir: &str, resources: Option<&Resources>) -> Builder {
    let operator = standard_operator(MERGE_OPERATOR);
    let builder = Db::builder(dir).env(sim.env()).default_family(|family| match operator {
        Some(operator) => family.merge_operator(operator),
        None => family,
    });
    match resources {
        Some(resources) => builder.resources(resources),
        None => builder,
    }
}

/// Opens the database with the settings of `choice` that `which` names, and those that it has stored.
fn open(
    sim: &SimEnv,
    resources: Option<&Resources>,
    (choice, which): (&Choice, u64),
    families: &[(&'static str, Sorted)],
) -> Result<Db> {
    let (choice, base) = (choice.clone(), Setup::draw(&mut Rng::new(0)));
    let (fresh, shares) = (which == u64::MAX, resources.is_some());
    let mut builder = builder(sim, DIR, resources).tune(move |db, family| {
        let stored_blocks = db.block_cache_bytes;
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
        if shares {
            db.block_cache_bytes = stored_blocks;
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

impl World {
    pub(super) fn new(
        seed: u64,
        choice: &Choice,
        share: Option<Share>,
    ) -> std::result::Result<World, String> {
        let sim = SimEnv::new(seed);
        let lasting: Vec<_> = FAMILIES.into_iter().filter(|(name, _)| *name != DROPPED).collect();
        let second = Second::new(&sim, share)?;
        let db = open(&sim, second.resources.as_ref(), (choice, u64::MAX), &lasting);
        let db = db.map_err(|e| wrong("the first open", &e))?;
        let family = |(name, sorted)| Modelled {
            name,
            sorted,
            map: Arc::default(),
            past: Past::new(),
            dropped: false,
        };
        let mut world = World {
            sim,
            db,
            second,
            session: 0,
            unlogged: choice.setup().unlogged,
            has_unlogged: false,
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
        self.begin_second()
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
                if self.snapshots.get(n).is_some_and(|held| !held.origin.is_foreign()) {
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
            Act::Second(act) => self.second(act),
        }
    }

    fn is_live(&self, handle: &Handle) -> bool {
        handle.origin == Origin::Session(self.session) && !self.families[handle.model].dropped
    }

    pub(super) fn live(&self, n: usize) -> Option<&Handle> {
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
        self.has_unlogged |= self.unlogged;
        for (model, change) in modelled {
            let Modelled { sorted, map, past, .. } = &mut self.families[model];
            sorted.apply(Arc::make_mut(map), &change);
            if let Change::Put { key, .. } | Change::Merge { key, .. } = &change
                && let Some(value) = map.get(key)
            {
                past.entry(key.clone()).or_default().insert(value.clone());
            }
        }
        Ok(())
    }

    fn snapshot(&mut self) -> std::result::Result<(), String> {
        let snapshot = self.db.snapshot().map_err(|e| wrong("snapshot", &e))?;
        let maps = self.families.iter().enumerate().map(|(n, f)| (n, Arc::clone(&f.map))).collect();
        let (origin, lossy) = (Origin::Session(self.session), Vec::new());
        self.snapshots.push(Held { snapshot, origin, maps, lossy });
        if self.snapshots.len() > HELD {
            let first = self.snapshots.iter().position(|held| !held.origin.is_foreign());
            first.map(|first| self.snapshots.remove(first));
        }
        Ok(())
    }

    /// What the calls describe; the last one of a kind counts.
    fn source(&self, calls: &[Call]) -> Option<Source<'_>> {
        let (mut handle, mut snapshot) = (self.named("default")?, None);
        let mut options = Options::default();
        let now = SystemTime::UNIX_EPOCH + Duration::from_micros(self.sim.env().clock.unix_micros());
        for call in calls {
            match call {
                Call::Family(n) => handle = &self.handles[n % self.handles.len()],
                Call::Snapshot(n) => snapshot = self.snapshots.get(n % self.snapshots.len().max(1)),
                Call::Option(setting) => options.set(*setting, now),
            }
        }
        let read = snapshot.map_or(Origin::Session(self.session), |held| held.origin);
        let part = options.part(self.has_unlogged && !read.is_foreign());
        let answer = match snapshot {
            _ if options.refused || handle.origin != read || !self.is_open(read) => Answer::Refused,
            None => Answer::Shows(Arc::clone(&self.families[handle.model].map), Vec::new(), part),
            Some(held) => {
                let map = held.maps.get(&handle.model).cloned().unwrap_or_default();
                let lossy = held.lossy.iter().filter(|(model, _)| *model == handle.model);
                Answer::Shows(map, lossy.map(|(_, range)| range.clone()).collect(), part)
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
        let (options, origin) = (source.options, source.handle.origin);
        let Modelled { sorted, name, .. } = self.families[source.handle.model];
        let [mut scan, backwards] = [(); 2].map(|()| {
            let scan = source.over(&self.db, |reader| reader.scan(bounds.clone()));
            prefixes.iter().fold(scan, |scan, prefix| scan.prefix(prefix))
        });
        let text = format!("scan of {name}, {calls:?}, {bounds:?}, prefixes {prefixes:?}");
        let narrowed = prefixes.iter().any(|prefix| !prefix.is_empty());
        let refused = sorted.is_inverted(bounds) || sorted == Sorted::Own && narrowed;
        let model = source.handle.model;
        let (map, lossy, part) = match source.answer {
            Answer::Shows(map, lossy, part) if !refused => (map, lossy, part),
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
        if part != Part::All || !lossy.is_empty() {
            self.done.parts += 1;
            let past = &self.families[model].past;
            let shown = Shown { sorted, entries, lossy, part, past };
            let ways = [scan.collect(), backwards.rev().collect()];
            let wanted =
                |key: &[u8]| sorted.holds(bounds, key) && prefixes.iter().all(|p| key.starts_with(p));
            return shown.check(ways, &options, wanted).map_err(|e| format!("{text}: {e}"));
        }
        match then {
            Use::Explain => {
                let told = match scan.explain(1 << 20) {
                    Err(e) if options.allow(&e) => return self.gave_up(),
                    told => told.map_err(|e| wrong(&text, &e))?,
                };
                let counts = (told.keys(), entries.len() as u64);
                if counts.0 == counts.1 { Ok(()) } else { Err(format!("{text}: explain counts {counts:?}")) }
            }
            Use::Ends(ends) => {
                let mut held = HeldScan { scan, left: entries.into(), options, origin };
                let goes_on = held.go(ends, &mut self.done).map_err(|e| format!("{text}: {e}"))?;
                if goes_on {
                    self.scans.push_back(held);
                    self.scans.truncate(HELD);
                }
                Ok(())
            }
            Use::Cursor(moves) => {
                let cursor = match scan.cursor() {
                    Err(e) if options.allow(&e) => return self.gave_up(),
                    cursor => cursor.map_err(|e| wrong(&text, &e))?,
                };
                let expected = Expected::new(sorted, entries);
                self.hold(HeldCursor { cursor, expected, options, origin }, moves, &text)
            }
        }
    }

    /// Moves a new cursor, and keeps it for later acts.
    fn hold(&mut self, mut held: HeldCursor, moves: &[Move], text: &str) -> std::result::Result<(), String> {
        for to in moves {
            held.go(to, &mut self.done).map_err(|e| format!("{text}: {e:?}"))?;
        }
        self.cursors.push_front(held);
        self.cursors.truncate(HELD);
        Ok(())
    }

    fn move_held(&mut self, n: usize, moves: &[Move]) -> std::result::Result<(), String> {
        let n = n % self.cursors.len().max(1);
        let Some(origin) = self.cursors.get(n).map(|held| held.origin) else { return Ok(()) };
        let later = !self.is_newest(origin);
        let Some(held) = self.cursors.get_mut(n) else { return Ok(()) };
        for to in moves {
            self.done.moves_later += u64::from(later);
            match held.go(to, &mut self.done) {
                Ok(()) => {}
                // A later open has removed a replaced table or blob file.
                Err(Trouble::Failed(e)) if later && is_gone(&e) => {
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
        if !held.go(ends, &mut self.done).map_err(|e| format!("a scan that is held: {e}"))? {
            self.scans.remove(n);
        }
        Ok(())
    }

    fn get(&mut self, calls: &[Call], key: &[u8]) -> std::result::Result<(), String> {
        let Some(source) = self.source(calls) else { return Ok(()) };
        let text = format!("get {} in {}, {calls:?}", key.escape_ascii(), source.handle.family.name());
        let (options, model) = (source.options, source.handle.model);
        let one = source.over(&self.db, |reader| reader.get(key));
        let may = source.over(&self.db, |reader| reader.key_may_exist(key));
        let told = source.over(&self.db, |reader| reader.explain_get(key));
        let many = source.over(&self.db, |reader| reader.multi_get([key, b"k01"]));
        match source.answer {
            Answer::Refused => {
                is_refused(&text, &one)?;
                is_refused(&text, &many)?;
                is_refused(&text, &may)?;
                is_refused(&text, &told)?;
                self.done.refused += 1;
                Ok(())
            }
            Answer::Shows(map, lossy, part) => {
                let Modelled { sorted, past, .. } = &self.families[model];
                let (mut answers, asked) = (Vec::new(), 4);
                let mut answered = 0;
                if let Some(value) = options.taken(one).map_err(|e| wrong(&text, &e))? {
                    (answered, answers) = (answered + 1, vec![(key, value)]);
                }
                if let Some(values) = options.taken(many).map_err(|e| wrong(&text, &e))? {
                    answered += 1;
                    answers.extend([key, b"k01"].into_iter().zip(values));
                }
                if let Some(may) = options.taken(may).map_err(|e| wrong(&text, &e))? {
                    answered += 1;
                    match may {
                        MayExist::No => answers.push((key, None)),
                        MayExist::Value(value) => answers.push((key, Some(value))),
                        MayExist::Maybe => {}
                    }
                }
                answered += u64::from(options.taken(told).map_err(|e| wrong(&text, &e))?.is_some());
                for (key, found) in answers {
                    let known = !lossy.iter().any(|range| sorted.holds(range, key));
                    let now = map.get(key).map(Vec::as_slice);
                    if known && !part.may_show(now, past.get(key), found.as_deref()) {
                        return Err(format!("{text}: another value of {}", key.escape_ascii()));
                    }
                }
                self.done.given_up += asked - answered;
                Ok(())
            }
        }
    }

    /// A read ended as its options allow.
    fn gave_up(&mut self) -> std::result::Result<(), String> {
        self.done.given_up += 1;
        Ok(())
    }

    /// Whether the open is the last one of its database.
    fn is_newest(&self, origin: Origin) -> bool {
        origin == Origin::Session(self.session) || origin == self.second.origin()
    }

    fn is_open(&self, origin: Origin) -> bool {
        self.is_newest(origin) && (!origin.is_foreign() || self.second.db.is_some())
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
            past: Past::new(),
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
            _ if self.is_open(handle.origin) && handle.origin.is_foreign() => return Ok(()),
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
        self.scans.retain(|held| held.origin.is_foreign());
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
                self.second.move_to(&self.sim)?;
                self.handles.clear();
                self.snapshots.clear();
                self.cursors.clear();
                self.scans.clear();
            }
        }
        // The last handle of a database that is dropped.
        if end != End::Close {
            self.db = self.second.open(&self.sim)?.clone();
        }
        let what = |e: &Error| format!("reopened ({end:?}) under {}, set {which:x}: {e}", choice.words());
        let resources = self.second.resources.as_ref();
        self.db = open(&self.sim, resources, (choice, which), &families).map_err(|e| what(&e))?;
        if end != End::Kill && !self.db.recovery().is_clean() {
            return Err(format!("a close in order leaves an unclean store: {}", self.db.recovery()));
        }
        let mut setup = Setup::draw(&mut Rng::new(0));
        choice.set(&mut setup, which);
        self.unlogged = setup.unlogged && which != 0;
        self.has_unlogged = false;
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
        self.second.compare()
    }
}

impl Source<'_> {
    /// Reads by `read`, through the snapshot, or through the open database.
    fn over<T>(&self, db: &Db, read: impl Fn(ashlardb::Reader<'_>) -> T) -> T {
        match self.snapshot {
            Some(held) => read(held.snapshot.reading(self.options.given).family(&self.handle.family)),
            None => read(db.reading(self.options.given).family(&self.handle.family)),
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
    fn go(&mut self, to: &Move, done: &mut Done) -> std::result::Result<(), Trouble> {
        done.moves += 1;
        let cursor = &mut self.cursor;
        let found = match to {
            Move::First => cursor.first(),
            Move::Last => cursor.last(),
            Move::Next => cursor.next(),
            Move::Prev => cursor.prev(),
            Move::Seek(key) => cursor.seek(key),
            Move::SeekForPrev(key) => cursor.seek_for_prev(key),
        };
        let found = match found {
            Err(e) if self.options.allow(&e) => {
                done.given_up += 1;
                self.expected.fail();
                let stays = cursor.entry().is_none();
                return if stays {
                    Ok(())
                } else {
                    Err(Trouble::Wrong("an entry after an error".to_owned()))
                };
            }
            found => found.map_err(Trouble::Failed)?.map(|(key, value)| (key.to_vec(), value.to_vec())),
        };
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
    fn go(&mut self, ends: &[bool], done: &mut Done) -> std::result::Result<bool, String> {
        for front in ends {
            let found = if *front { self.scan.next() } else { self.scan.next_back() };
            let expected = if *front { self.left.pop_front() } else { self.left.pop_back() };
            let found = match found.transpose() {
                Err(e) if self.options.allow(&e) => {
                    done.given_up += 1;
                    let over = self.scan.next().is_none() && self.scan.next_back().is_none();
                    return if over { Ok(false) } else { Err("a scan goes on after an error".to_owned()) };
                }
                found => found.map_err(|e| e.to_string())?,
            };
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
