//! Compaction filters: what they remove and change, what they must not, and real RocksDB as a judge.

use crate::judge::Judges;
use crate::store::{copy, listing, state_of};
use ashlar_testkit::judge::{JudgeError, Opening};
use ashlar_testkit::{Change, Judge, JudgeVersion, Rng, report};
use ashlardb::{
    Builder, CompactRangeOptions, CompactionFilter, CompactionFilterFactory, Db, Decision, ErrorKind, Event,
    EventListener, Family, FileNumber, FilterContext, FormatLevel, Level, Read as _, RemoveEmptyValue,
    Snapshot, StringAppend, Write as _,
};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// `x…` goes, `c…` becomes `d…`, `to K` goes with all keys before `K`. Counts what it is asked about.
#[derive(Debug, Default)]
struct Marked {
    asked: Mutex<Vec<String>>,
    by_key: bool,
}

impl Marked {
    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

fn decision(value: &[u8]) -> Decision {
    match value {
        [b'x', ..] => Decision::Remove,
        [b'c', rest @ ..] => Decision::Change([b"d", rest].concat()),
        _ => value.strip_prefix(b"to ").map_or(Decision::Keep, |to| Decision::RemoveAndSkipUntil(to.into())),
    }
}

impl CompactionFilter for Marked {
    fn name(&self) -> &str {
        "test.Marked"
    }
    fn filter(&self, key: &[u8], value: &[u8]) -> Decision {
        self.asked.lock().unwrap().push(key.escape_ascii().to_string());
        decision(value)
    }
    fn filter_blob_by_key(&self, key: &[u8]) -> Option<Decision> {
        self.by_key.then(|| if key.ends_with(b"x") { Decision::Remove } else { Decision::Keep })
    }
    fn filters_entities(&self) -> bool {
        true
    }
    fn filter_entity(&self, _: &[u8], columns: &[(&[u8], &[u8])]) -> Decision {
        columns.iter().find(|(name, _)| name.is_empty()).map_or(Decision::Keep, |(_, value)| decision(value))
    }
}

fn quiet(dir: &Path) -> Builder {
    Db::builder(dir).options("disable_auto_compactions=true")
}

fn with(dir: &Path, filter: &Arc<Marked>) -> Db {
    let filter = Arc::clone(filter);
    quiet(dir).default_family(move |f| f.compaction_filter(filter)).open().unwrap()
}

fn text(db: &impl ashlardb::Read) -> String {
    let lines = listing(db.scan(..));
    let line = |(k, v): &(Vec<u8>, Vec<u8>)| format!("{}={}", k.escape_ascii(), v.escape_ascii());
    lines.iter().map(line).collect::<Vec<_>>().join(" ")
}

/// The tables of level 0, newest first.
fn level0(family: &Family) -> Vec<FileNumber> {
    let files = family.live_files().unwrap().into_iter().filter(|file| file.level == Level::ZERO);
    files.map(|file| file.number).collect()
}

#[test]
fn a_compaction_removes_and_changes_what_the_filter_says() {
    let (dir, filter) = (tempfile::tempdir().unwrap(), Arc::new(Marked::default()));
    let db = with(dir.path(), &filter);
    for (key, value) in [("a", "x1"), ("b", "keep"), ("c", "c1"), ("d", "to g"), ("e", "1"), ("g", "2")] {
        db.put(key, value).unwrap();
    }
    db.flush().unwrap();
    assert_eq!(text(&db), "a=x1 b=keep c=c1 d=to g e=1 g=2", "a flush asks no filter");
    assert!(filter.asked().is_empty());
    db.compact().unwrap();
    assert_eq!(text(&db), "b=keep c=d1 g=2");
    assert_eq!(filter.asked(), ["a", "b", "c", "d", "g"], "not about what is skipped");
    assert_eq!(db.ticker("rocksdb.compaction.key.drop.user"), Some(3));
}

#[test]
fn an_older_version_does_not_come_back() {
    let (dir, filter) = (tempfile::tempdir().unwrap(), Arc::new(Marked::default()));
    let db = with(dir.path(), &filter);
    db.put("k", "old").unwrap();
    db.compact().unwrap();
    db.put("k", "x").unwrap();
    db.flush().unwrap();
    let newest = level0(&db.default_family())[0];
    // The removal stays above the old version, which this compaction does not read.
    db.default_family().compact_files(&[newest], Level(1), 0).unwrap();
    assert_eq!(db.get("k").unwrap(), None);
    db.compact().unwrap();
    assert_eq!(db.get("k").unwrap(), None);
    assert_eq!(db.int_property("rocksdb.estimate-num-keys"), Some(0));
}

#[test]
fn what_a_snapshot_sees_stays_until_the_snapshot_goes() {
    let (dir, filter) = (tempfile::tempdir().unwrap(), Arc::new(Marked::default()));
    let db = with(dir.path(), &filter);
    db.put("a", "x1").unwrap();
    db.put("b", "c1").unwrap();
    let snapshot = db.snapshot().unwrap();
    db.put("c", "x2").unwrap();
    db.put("a", "x3").unwrap();
    db.compact().unwrap();
    assert_eq!(text(&snapshot), "a=x1 b=c1");
    assert_eq!(text(&db), "b=c1", "the newer version of a went, and did not bring the older one back");
    drop(snapshot);
    db.compact().unwrap();
    assert_eq!(text(&db), "b=d1");
}

#[test]
fn values_in_blob_files_go_by_key_without_a_read() {
    for by_key in [true, false] {
        let (dir, filter) = (tempfile::tempdir().unwrap(), Arc::new(Marked { by_key, ..Marked::default() }));
        let given = Arc::clone(&filter);
        let db = quiet(dir.path())
            .default_family(move |f| f.blob_files(100).compaction_filter(given))
            .open()
            .unwrap();
        for n in 0..20 {
            let (mark, end) = if n % 2 == 0 { ("x", "x") } else { ("c", "") };
            db.put(format!("k{n:02}{end}"), mark.repeat(200)).unwrap();
        }
        db.flush().unwrap();
        let read = || db.ticker("rocksdb.blobdb.blob.file.bytes.read").unwrap();
        let before = read();
        db.compact().unwrap();
        assert_eq!(read() > before, !by_key);
        assert_eq!(filter.asked().is_empty(), by_key);
        let left = listing(db.scan(..));
        assert_eq!(left.len(), 10);
        let first = if by_key { b'c' } else { b'd' };
        assert!(left.iter().all(|(_, value)| value.len() == 200 && value[0] == first));
        // A file of garbage alone is gone.
        assert_eq!(db.int_property("rocksdb.live-blob-file-garbage-size").unwrap() > 0, by_key);
        db.verify_db(|_| ()).unwrap();
    }
}

#[test]
fn a_family_has_the_filter_it_was_given_and_no_other() {
    let (dir, filter) = (tempfile::tempdir().unwrap(), Arc::new(Marked::default()));
    let open = |filter: &Arc<Marked>| {
        let (one, two) = (Arc::clone(filter), Arc::clone(filter));
        let builder = quiet(dir.path()).default_family(move |f| f.compaction_filter(one));
        builder.family("new", |f| f).family("own", move |f| f.compaction_filter(two)).open().unwrap()
    };
    let db = open(&filter);
    db.create_family("made").unwrap();
    db.close().unwrap();
    let db = open(&filter);
    for family in db.families() {
        family.put("k", "x").unwrap();
        family.compact_range(.., CompactRangeOptions::default()).unwrap();
        let removed = matches!(family.name(), "default" | "own");
        assert_eq!(family.get("k").unwrap().is_none(), removed, "{}", family.name());
    }
}

/// A forgotten filter removes nothing, and the report says so; the OPTIONS file keeps its name.
#[test]
fn an_open_without_the_filter_says_so_and_keeps_its_name() {
    let (dir, filter) = (tempfile::tempdir().unwrap(), Arc::new(Marked::default()));
    let db = with(dir.path(), &filter);
    db.put("k", "x").unwrap();
    assert!(db.recovery().unserved.is_empty(), "{}", db.recovery());
    db.close().unwrap();
    for _ in 0..2 {
        let db = quiet(dir.path()).open().unwrap();
        let said = db.recovery().unserved.join("\n");
        assert!(said.contains("compaction_filter=test.Marked: \"test.Marked\" is not built in"), "{said}");
        db.compact().unwrap();
        assert_eq!(text(&db), "k=x");
        db.close().unwrap();
    }
    let db = with(dir.path(), &filter);
    assert!(db.recovery().unserved.is_empty(), "{}", db.recovery());
    db.compact().unwrap();
    assert_eq!(text(&db), "");
    db.close().unwrap();
    // Another filter takes its place.
    let other =
        quiet(dir.path()).options("compaction_filter=RemoveEmptyValueCompactionFilter").open().unwrap();
    other.put("empty", "").unwrap();
    other.put("k", "x").unwrap();
    other.close().unwrap();
    // Built in: found by its name.
    let db = quiet(dir.path()).open().unwrap();
    assert!(db.recovery().unserved.is_empty(), "{}", db.recovery());
    db.compact().unwrap();
    assert_eq!(text(&db), "k=x");
}

/// Filters its compactions by what is known of them.
#[derive(Debug, Default)]
struct Maker(Mutex<Vec<String>>);

impl CompactionFilterFactory for Maker {
    fn name(&self) -> &str {
        "test.Maker"
    }
    fn create(&self, context: &FilterContext<'_>) -> Option<Box<dyn CompactionFilter>> {
        let FilterContext { family_name, level, is_full, is_manual, is_bottommost, .. } = context;
        let line = format!("{family_name} {level} full={is_full} manual={is_manual} last={is_bottommost}");
        self.0.lock().unwrap().push(line);
        is_full.then(|| Box::new(Marked::default()) as _)
    }
}

#[test]
fn a_factory_knows_its_compaction() {
    let (dir, maker) = (tempfile::tempdir().unwrap(), Arc::new(Maker::default()));
    let given = Arc::clone(&maker);
    let db = quiet(dir.path()).family("f", move |f| f.compaction_filter_factory(given)).open().unwrap();
    let f = db.family("f").unwrap();
    f.put("a", "x").unwrap();
    f.put("b", "x").unwrap();
    f.compact_range(.., CompactRangeOptions::default()).unwrap();
    assert_eq!(text(&f), "");
    f.put("a", "y").unwrap();
    f.compact_range(.., CompactRangeOptions::default()).unwrap();
    f.put("m", "x").unwrap();
    f.flush().unwrap();
    let newest = level0(&f)[0];
    f.compact_files(&[newest], Level(6), 0).unwrap();
    assert_eq!(text(&f), "a=y m=x", "not a full compaction: the factory made no filter");
    let told = maker.0.lock().unwrap().clone();
    assert_eq!(told[0], "f L6 full=true manual=true last=true");
    assert_eq!(told.last().unwrap(), "f L6 full=false manual=true last=true");
    db.close().unwrap();
    let db = quiet(dir.path()).open().unwrap();
    let said = db.recovery().unserved.join("\n");
    assert!(said.contains("compaction_filter_factory=test.Maker: "), "{said}");
}

/// Tables of a load in key order move down unread; a filter has to see them all the same.
#[test]
fn a_request_filters_every_table_that_could_move() {
    let (dir, filter) = (tempfile::tempdir().unwrap(), Arc::new(Marked::default()));
    let given = Arc::clone(&filter);
    let builder = quiet(dir.path()).options("target_file_size_base=65536");
    let db = builder.default_family(move |f| f.compaction_filter(given)).open().unwrap();
    for table in 0..4 {
        for n in 0..2000 {
            db.put(format!("{table}{n:04}"), format!("{}{:040}", if n % 2 == 0 { "x" } else { "k" }, n))
                .unwrap();
        }
        db.flush().unwrap();
    }
    db.compact().unwrap();
    assert_eq!(listing(db.scan(..)).len(), 4000);
    filter.asked();
    // Nothing is above the last level: only a request that rewrites it asks again.
    let range = |word: &str| {
        let mut options = CompactRangeOptions::new();
        options.set("bottommost_level_compaction", word).unwrap();
        db.compact_range(.., options).unwrap();
        filter.asked().len()
    };
    assert_eq!(range("kSkip"), 0);
    assert_eq!(range("kIfHaveCompactionFilter"), 4000);
    assert_eq!(range("kForce"), 4000);
    db.close().unwrap();
    let db = quiet(dir.path()).open().unwrap();
    let tables = db.property("rocksdb.levelstats");
    let mut options = CompactRangeOptions::new();
    options.set("bottommost_level_compaction", "kIfHaveCompactionFilter").unwrap();
    db.compact_range(.., options).unwrap();
    assert_eq!(db.property("rocksdb.levelstats"), tables, "without a filter it means kSkip");
}

#[derive(Default)]
struct Filtered(Mutex<Vec<(u64, u64, u64)>>);

impl EventListener for Filtered {
    fn on_event(&self, event: &Event) {
        if let Event::CompactionCompleted(done) = event {
            let told = (done.input_entries, done.output_entries, done.filtered_entries);
            self.0.lock().unwrap().push(told);
        }
    }
}

#[test]
fn listeners_hear_how_many_entries_the_filter_removed() {
    let (dir, filter, ear) =
        (tempfile::tempdir().unwrap(), Arc::new(Marked::default()), Arc::new(Filtered::default()));
    let builder = quiet(dir.path()).listener(ear.clone());
    let db = builder.default_family(move |f| f.compaction_filter(filter)).open().unwrap();
    for n in 0..9 {
        db.put(format!("{n}"), if n < 4 { "x" } else { "y" }).unwrap();
    }
    db.compact().unwrap();
    db.wait_for_background().unwrap();
    db.close().unwrap();
    assert_eq!(ear.0.lock().unwrap()[0], (9, 5, 4));
}

#[test]
fn names_that_files_cannot_hold_are_refused() {
    #[derive(Debug)]
    struct Named(&'static str);
    impl CompactionFilter for Named {
        fn name(&self) -> &str {
            self.0
        }
        fn filter(&self, _: &[u8], _: &[u8]) -> Decision {
            Decision::Keep
        }
    }
    let dir = tempfile::tempdir().unwrap();
    for name in ["", "RemoveEmptyValueCompactionFilter", "TtlCompactionFilter", "two\nlines", " blank"] {
        let builder = Db::builder(dir.path()).default_family(|f| f.compaction_filter(Arc::new(Named(name))));
        assert_eq!(builder.open().map_err(|e| e.kind()).unwrap_err(), ErrorKind::InvalidArgument, "{name:?}");
    }
    let builtin = Db::builder(dir.path()).default_family(|f| f.compaction_filter(Arc::new(RemoveEmptyValue)));
    builtin.open().unwrap();
}

/// What the database should hold: a key's value, its sequence, and the operands above it with theirs.
#[derive(Clone, Debug, Default)]
struct State {
    base: Option<(u64, Vec<u8>)>,
    operands: Vec<(u64, Vec<u8>)>,
}

impl State {
    fn joined(&self) -> Option<Vec<u8>> {
        let base = self.base.iter().map(|(_, value)| &value[..]);
        let parts: Vec<_> = base.chain(self.operands.iter().map(|(_, operand)| &operand[..])).collect();
        (!parts.is_empty()).then(|| parts.join(&b','))
    }

    /// What a compaction of some tables may leave: the value and the oldest of its operands may have been there without the
    /// others.
    fn may_become(&self, newest: u64) -> Vec<Option<Vec<u8>>> {
        let mut all = vec![self.joined()];
        if let Some(base) = self.base.as_ref().filter(|(seq, _)| *seq > newest) {
            for folded in 0..=self.operands.len() {
                let (below, above) = self.operands.split_at(folded);
                let part = State { base: Some(base.clone()), operands: below.to_vec() }.joined();
                let left = part.and_then(filtered).map(|value| (base.0, value));
                all.push(State { base: left, operands: above.to_vec() }.joined());
            }
        }
        all
    }

    fn oldest(&self) -> u64 {
        self.base.iter().chain(&self.operands).map(|(seq, _)| *seq).min().unwrap_or_default()
    }

    fn newest(&self) -> u64 {
        self.base.iter().chain(&self.operands).map(|(seq, _)| *seq).max().unwrap_or_default()
    }
}

type Seen = BTreeMap<Vec<u8>, Vec<u8>>;

/// One family beside its model.
struct Modelled {
    family: Family,
    keys: BTreeMap<Vec<u8>, State>,
    seq: u64,
}

fn filtered(value: Vec<u8>) -> Option<Vec<u8>> {
    match decision(&value) {
        Decision::Remove => None,
        Decision::Change(new) => Some(new),
        _ => Some(value),
    }
}

impl Modelled {
    fn seen(&self) -> Seen {
        self.keys.iter().filter_map(|(key, state)| Some((key.clone(), state.joined()?))).collect()
    }

    fn write(&mut self, rng: &mut Rng) {
        self.seq += 1;
        let (key, seq) = (format!("k{:03}", rng.below(120)).into_bytes(), self.seq);
        let mark = ["x", "c", "k", "y"][rng.below(4)];
        let value = format!("{mark}{seq}").repeat(if rng.percent(30) { 40 } else { 1 }).into_bytes();
        let state = self.keys.entry(key.clone()).or_default();
        match rng.below(10) {
            0 => {
                self.family.delete(&key).unwrap();
                *state = State::default();
            }
            1..=3 => {
                let operand = format!("m{seq}").into_bytes();
                self.family.merge(&key, &operand).unwrap();
                state.operands.push((seq, operand));
            }
            4 => {
                let columns = [("", &value[..]), ("other", b"1")];
                self.family.put_entity(&key, &columns).unwrap();
                *state = State { base: Some((seq, value)), operands: vec![] };
            }
            5 if rng.percent(20) => {
                let end = format!("k{:03}", rng.below(121)).into_bytes();
                if key < end {
                    self.family.delete_range(&key, &end).unwrap();
                    self.keys.range_mut(key..end).for_each(|(_, state)| *state = State::default());
                }
            }
            _ => {
                self.family.put(&key, &value).unwrap();
                *state = State { base: Some((seq, value)), operands: vec![] };
            }
        }
    }

    /// After a compaction: `all` says that it read everything. `newest`: the newest live snapshot.
    fn compacted(&mut self, newest: u64, all: bool, what: &str) {
        let found: Seen = listing(self.family.scan(..)).into_iter().collect();
        for (key, state) in &mut self.keys {
            let (now, seen) = (state.joined(), found.get(key).cloned());
            let asked = state.oldest() > newest;
            let whole = now.clone().and_then(filtered);
            let context = || format!("{what}: {} {state:?}", key.escape_ascii());
            if all {
                let expected = if asked { whole } else { now };
                assert_eq!(seen, expected, "{}", context());
            } else {
                assert!(state.may_become(newest).contains(&seen), "{}: {seen:?}", context());
            }
            let seq = state.newest();
            if seen != state.joined() {
                *state = State { base: seen.map(|value| (seq, value)), operands: vec![] };
            }
        }
        assert_eq!(found, self.seen(), "{what}");
    }
}

/// Random writes, snapshots and requested compactions of two families, beside a model of what a filter leaves.
fn history(seed: u64, steps: usize, dir: &Path) -> (usize, Db) {
    let mut rng = Rng::new(seed);
    let builder = quiet(dir).format_level(FormatLevel::V7_8).options("target_file_size_base=65536");
    let given = |f: ashlardb::FamilyBuilder| {
        f.compaction_filter(Arc::new(Marked::default())).merge_operator(Arc::new(StringAppend::new(",")))
    };
    let db = builder.family("default", given).family("one", |f| given(f).blob_files(60)).open().unwrap();
    let mut families: Vec<Modelled> =
        db.families().into_iter().map(|family| Modelled { family, keys: BTreeMap::new(), seq: 0 }).collect();
    let mut snapshots: Vec<(Snapshot, Vec<u64>, Vec<Seen>)> = vec![];
    let mut compactions = 0;
    for step in 0..steps {
        let what = format!("seed {seed}, step {step}");
        let at = rng.below(2);
        match rng.below(100) {
            0..=1 => {
                let newest = snapshots.last().map_or(0, |(_, seqs, _)| seqs[at]);
                let family = &families[at].family;
                compactions += 1;
                let all = rng.percent(60);
                if all {
                    family.compact_range(.., CompactRangeOptions::default()).unwrap();
                } else if rng.percent(50) {
                    let from = rng.below(120);
                    let options = CompactRangeOptions::new().rewrite_deepest(rng.percent(50));
                    let range = format!("k{from:03}")..format!("k{:03}", from + rng.below(30));
                    family.compact_range(range, options).unwrap();
                } else {
                    family.flush().unwrap();
                    let files = level0(family);
                    if files.is_empty() {
                        continue;
                    }
                    family
                        .compact_files(&files[files.len() - 1..], Level(rng.below(2) as u8 * 5 + 1), 0)
                        .unwrap();
                }
                families[at].compacted(newest, all, &what);
            }
            2..=4 => families[at].family.flush().map(drop).unwrap(),
            5 if snapshots.len() < 3 => {
                let seqs = families.iter().map(|f| f.seq).collect();
                snapshots.push((db.snapshot().unwrap(), seqs, families.iter().map(Modelled::seen).collect()));
            }
            6 if !snapshots.is_empty() => {
                snapshots.remove(rng.below(snapshots.len()));
            }
            _ => families[at].write(&mut rng),
        }
        for (snapshot, _, seen) in snapshots.iter().filter(|_| step % 25 == 0) {
            for (family, seen) in families.iter().zip(seen) {
                let found: Seen = listing(snapshot.family(&family.family).scan(..)).into_iter().collect();
                assert_eq!(&found, seen, "{what}: a snapshot of {}", family.family.name());
            }
        }
    }
    drop(snapshots);
    for family in &mut families {
        family.family.compact_range(.., CompactRangeOptions::default()).unwrap();
        family.compacted(0, true, &format!("seed {seed}, end"));
    }
    (compactions, db)
}

#[test]
fn histories_read_as_the_model_and_both_rocksdbs_read_the_same() {
    let mut judges = Judges::start();
    let mut compactions = 0;
    for seed in 0..report::scale(6, 100) as u64 {
        let dir = tempfile::tempdir().unwrap();
        let (done, db) = history(seed, 1500, dir.path());
        compactions += done;
        let state = state_of(&db);
        db.verify_db(|_| ()).unwrap();
        db.close().unwrap();
        if let Ok(judges) = &mut judges {
            judges.read(dir.path(), FormatLevel::V7_8, &state, &format!("seed {seed}"));
        }
    }
    report::figure(&format!("filters: {compactions} compactions beside a model, 0 differences"));
    if let Err(skip) = judges {
        skip.announce("histories_read_as_the_model_and_both_rocksdbs_read_the_same");
    }
}

/// The same writes, compacted by RocksDB with its own filter and by us with ours of that name.
#[test]
fn the_built_in_filter_removes_what_rocksdbs_removes() {
    let options = "compaction_filter=RemoveEmptyValueCompactionFilter";
    let put = |n: u32, value: &str| Change::Put {
        family: "default".into(),
        key: format!("k{n:03}").into_bytes(),
        value: value.into(),
    };
    for version in JudgeVersion::ALL {
        let dir = tempfile::tempdir().unwrap();
        let mut judge = match Judge::spawn(version) {
            Ok(judge) => judge,
            Err(JudgeError::Skip(skip)) => {
                return skip.announce("the_built_in_filter_removes_what_rocksdbs_removes");
            }
            Err(e) => panic!("{e}"),
        };
        judge.open(dir.path(), Opening::Create, options).unwrap();
        let first: Vec<_> = (0..100).map(|n| put(n, "v")).collect();
        let second: Vec<_> = (0..100).filter(|n| n % 3 == 0).map(|n| put(n, "")).collect();
        judge.write(&first, true).unwrap();
        judge.write(&second, true).unwrap();
        judge.close().unwrap();
        let ours = copy(dir.path());
        judge.open(dir.path(), Opening::Existing, options).unwrap();
        judge
            .apply(&[
                ashlar_testkit::Op::Flush { family: "default".into() },
                ashlar_testkit::Op::Compact { family: "default".into() },
            ])
            .unwrap();
        let theirs = judge.dump("default").unwrap();
        judge.close().unwrap();
        // The stored name is enough.
        let db = Db::open(ours.path()).unwrap();
        assert!(!db.recovery().to_string().contains("compaction_filter"), "{}", db.recovery());
        db.compact().unwrap();
        assert_eq!(listing(db.scan(..)), theirs, "{}", version.name());
        assert_eq!(theirs.len(), 66);
        db.close().unwrap();
        judge.open(ours.path(), Opening::Existing, options).unwrap();
        assert_eq!(judge.dump("default").unwrap(), theirs);
        judge.close().unwrap();
    }
}
