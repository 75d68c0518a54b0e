//! Compaction filters: what they remove and change, what they must not, and real RocksDB as a judge.

use crate::child::mixed;
use crate::judge::Judges;
use crate::store::{FAMILIES, copy, files, listing, state_of, write};
use ashlar_env::sim::{CallClass, CrashMode, SimEnv};
use ashlar_testkit::judge::{JudgeError, Opening};
use ashlar_testkit::ops::{MERGE_OPERATOR, draw};
use ashlar_testkit::{Change, Judge, JudgeVersion, Op, report};
use ashlardb::{
    Builder, CompactRangeOptions, CompactionFilter, CompactionFilterFactory, Db, Decision, ErrorKind, Event,
    EventListener, Family, FamilyBuilder, FileNumber, FilterContext, FormatLevel, Level, Read as _,
    RemoveEmptyValue, TransactionOptions, Write as _, standard_operator,
};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

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
    db.default_family().compact_files(&[newest], Level(1)).unwrap();
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

/// [`Marked`], and it waits at its first value until the test lets it go on.
#[derive(Debug, Default)]
struct Waits(Mutex<Option<(Sender<()>, Receiver<()>)>>);

impl CompactionFilter for Waits {
    fn name(&self) -> &str {
        "test.Waits"
    }
    fn filter(&self, _: &[u8], value: &[u8]) -> Decision {
        let first = self.0.lock().unwrap().take();
        if let Some((reached, go_on)) = first {
            reached.send(()).unwrap();
            go_on.recv_timeout(Duration::from_secs(30)).unwrap();
        }
        decision(value)
    }
}

/// RocksDB gives up here: the values vanish from the snapshot.
#[test]
fn a_snapshot_taken_during_a_compaction_shows_one_moment_too() {
    let (dir, filter) = (tempfile::tempdir().unwrap(), Arc::new(Waits::default()));
    let given = Arc::clone(&filter);
    let db = quiet(dir.path()).default_family(move |f| f.compaction_filter(given)).open().unwrap();
    for (key, value) in [("a", "x"), ("b", "c1"), ("c", "k"), ("d", "to z"), ("e", "1")] {
        db.put(key, value).unwrap();
    }
    db.flush().unwrap();
    let (reached, at) = channel();
    let (go, go_on) = channel();
    *filter.0.lock().unwrap() = Some((reached, go_on));
    let other = db.clone();
    let compaction = std::thread::spawn(move || other.compact());
    at.recv_timeout(Duration::from_secs(30)).unwrap();
    let (before, again) = (db.snapshot().unwrap(), db.snapshot().unwrap());
    let transaction = db.begin_with(TransactionOptions::new().snapshot(true)).unwrap();
    db.put("f", "later").unwrap();
    let all = "a=x b=c1 c=k d=to z e=1";
    assert_eq!(text(&before), all);
    go.send(()).unwrap();
    compaction.join().unwrap().unwrap();
    for _ in 0..2 {
        assert_eq!(text(&before), all);
        assert_eq!(before.get("a").unwrap().as_deref(), Some(&b"x"[..]));
        assert_eq!(before.multi_get(["b", "e"]).unwrap()[1].as_deref().unwrap(), b"1");
        assert_eq!(text(&db), "b=d1 c=k f=later");
        assert_eq!(text(&db.snapshot().unwrap()), "b=d1 c=k f=later", "a later one shows what is there");
        // The next compaction knows these snapshots.
        db.compact().unwrap();
    }
    assert_eq!(transaction.get("a").unwrap().as_deref(), Some(&b"x"[..]));
    transaction.rollback().unwrap();
    drop(before);
    assert_eq!(text(&again.clone()), all);
    drop(again);
    db.compact().unwrap();
    assert_eq!(text(&db), "b=d1 c=k f=later");
    let tables = std::fs::read_dir(dir.path())
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().ends_with(".sst"));
    assert_eq!(tables.count(), 1, "the replaced tables are gone with the snapshots");
    // A close ends what a snapshot keeps, and a snapshot may outlive it.
    let late = db.snapshot().unwrap();
    db.close().unwrap();
    assert!(late.get("b").is_err());
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
    f.compact_files(&[newest], Level(6)).unwrap();
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

/// A universal tree has its older runs in deeper levels; a removal must hold there too.
#[test]
fn a_universal_tree_is_filtered_too() {
    for num_levels in [2, 7] {
        let (dir, filter) = (tempfile::tempdir().unwrap(), Arc::new(Marked::default()));
        let style = format!("compaction_style=kCompactionStyleUniversal;num_levels={num_levels}");
        let db = quiet(dir.path())
            .options(&style)
            .default_family(move |f| f.compaction_filter(filter))
            .open()
            .unwrap();
        for round in ["k", "c", "x"] {
            for n in 0..30 {
                db.put(format!("{n:02}"), format!("{}{n}", if n % 3 == 0 { round } else { "k" })).unwrap();
            }
            db.flush().unwrap();
        }
        let snapshot = db.snapshot().unwrap();
        db.compact().unwrap();
        assert_eq!((listing(db.scan(..)).len(), listing(snapshot.scan(..)).len()), (30, 30));
        drop(snapshot);
        db.compact().unwrap();
        assert_eq!(listing(db.scan(..)).len(), 20, "{num_levels} levels");
        assert!(db.get("00").unwrap().is_none());
        db.verify_db(|_| ()).unwrap();
    }
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

/// By the length of the value: a third goes, a third changes. With range deletions, merges and blob files.
#[derive(Debug)]
struct ByLength;

impl CompactionFilter for ByLength {
    fn name(&self) -> &str {
        "test.ByLength"
    }
    fn filter(&self, _: &[u8], value: &[u8]) -> Decision {
        match value.len() % 3 {
            0 => Decision::Remove,
            1 => Decision::Change([value, b"+"].concat()),
            _ => Decision::Keep,
        }
    }
}

/// The directories that we compact with a filter read the same in both versions of RocksDB, and its filter's name in
/// OPTIONS disturbs neither.
#[test]
fn both_rocksdbs_read_what_a_filter_left() {
    let mut judges = match Judges::start() {
        Ok(judges) => judges,
        Err(skip) => return skip.announce("both_rocksdbs_read_what_a_filter_left"),
    };
    let (mut removed, level) = (0, FormatLevel::V7_8);
    for seed in 0..report::scale(4, 60) as u64 {
        let dir = tempfile::tempdir().unwrap();
        let given = |f: FamilyBuilder| {
            let f = f
                .compaction_filter(Arc::new(ByLength))
                .merge_operator(standard_operator(MERGE_OPERATOR).unwrap());
            f.write_buffer(128 << 10)
                .options("enable_blob_files=true;min_blob_size=1000;enable_blob_garbage_collection=true")
        };
        let builder = Db::builder(dir.path()).format_level(level);
        let builder = FAMILIES.iter().fold(builder, |builder, name| builder.family(name, given));
        let db = builder.open().unwrap();
        for op in draw(seed, 400, &mixed()) {
            match op {
                Op::Write { changes, sync } => write(&db, &changes, sync),
                Op::Compact { family } => {
                    db.family(&family).unwrap().compact_range(.., CompactRangeOptions::default()).unwrap()
                }
                _ => {}
            }
        }
        db.families()
            .iter()
            .for_each(|family| family.compact_range(.., CompactRangeOptions::default()).unwrap());
        removed += db.ticker("rocksdb.compaction.key.drop.user").unwrap();
        let state = state_of(&db);
        for family in db.families() {
            let marked = |value: &[u8]| value.len().is_multiple_of(3);
            assert!(listing(family.scan(..)).iter().all(|(_, value)| !marked(value)), "seed {seed}");
        }
        db.verify_db(|_| ()).unwrap();
        db.close().unwrap();
        judges.read(dir.path(), level, &state, &format!("seed {seed}"));
    }
    stored_names_open();
    assert!(removed > 100, "{removed} values removed");
    report::figure(&format!("filters: {removed} values removed, read alike by both RocksDBs"));
}

/// RocksDB loads an OPTIONS file that names a filter which it does not know.
fn stored_names_open() {
    let dir = tempfile::tempdir().unwrap();
    let given = |f: FamilyBuilder| f.compaction_filter(Arc::new(ByLength));
    let maker = |f: FamilyBuilder| f.compaction_filter_factory(Arc::new(Maker::default()));
    let db = Db::builder(dir.path()).format_level(FormatLevel::V7_8);
    let db = db.family("default", given).family("f", maker).open().unwrap();
    db.put("k", "vv").unwrap();
    db.close().unwrap();
    for version in JudgeVersion::ALL {
        let mut judge = Judge::spawn(version).unwrap();
        let copy = copy(dir.path());
        judge.open(copy.path(), Opening::Stored, "").unwrap_or_else(|e| panic!("{}: {e}", version.name()));
        assert_eq!(judge.dump("default").unwrap(), [(b"k".to_vec(), b"vv".to_vec())]);
        judge.close().unwrap();
        let options = newest_options(copy.path());
        // What RocksDB writes for an object that it does not have.
        assert!(options.contains("compaction_filter=nullptr"), "{options}");
    }
    let ours = newest_options(dir.path());
    assert!(ours.contains("compaction_filter=test.ByLength\n"), "{ours}");
    assert!(ours.contains("compaction_filter_factory=test.Maker\n"), "{ours}");
}

fn newest_options(dir: &Path) -> String {
    let files = files(dir).into_keys().filter(|name| name.to_string_lossy().starts_with("OPTIONS-"));
    std::fs::read_to_string(dir.join(files.max().unwrap())).unwrap()
}

/// A power cut or a kill before each change of the disk: every key has the version of before the compaction or the one of
/// after it, and none has an older one.
#[test]
fn a_crash_during_a_filtered_compaction_loses_and_revives_nothing() {
    let sim = SimEnv::new(7);
    let open = |sim: &SimEnv| {
        let filter = Arc::new(Marked::default());
        let builder = quiet(Path::new("/db")).env(sim.env());
        builder.default_family(|f| f.compaction_filter(filter).blob_files(40)).open().unwrap()
    };
    let value = |n: usize| ["x", "c", "k"][n % 3].repeat(20 + n);
    let (keys, mut changed) = (60, 0);
    let db = open(&sim);
    (0..keys).for_each(|n| db.put(format!("k{n:02}"), "older").unwrap());
    db.compact().unwrap();
    for half in 0..2 {
        (half * 30..keys - 10 + half * 10).for_each(|n| db.put(format!("k{n:02}"), value(n)).unwrap());
        db.flush().unwrap();
    }
    let from = sim.calls_of(CallClass::Change);
    for at in 1..=400 {
        sim.photograph_at(from + at, CrashMode::DROP_ALL);
        sim.photograph_at(from + at, CrashMode::KILL);
    }
    db.compact().unwrap();
    let after = |n: usize| match decision(value(n).as_bytes()) {
        Decision::Remove => None,
        Decision::Change(new) => Some(new),
        _ => Some(value(n).into_bytes()),
    };
    let photographs = sim.photographs();
    for (at, mode, crashed) in &photographs {
        let db = open(crashed);
        let done = db.get("k00").unwrap().is_none();
        for n in 0..keys {
            let found = db.get(format!("k{n:02}")).unwrap().map(|view| view.to_vec());
            let before = Some(value(n).into_bytes());
            let what = format!("k{n:02} at call {at}, {mode:?}");
            assert_eq!(found, if done { after(n) } else { before }, "{what}");
        }
        changed += usize::from(done);
        db.verify_db(|_| ()).unwrap();
    }
    assert!(0 < changed && changed < photographs.len(), "{changed} of {}", photographs.len());
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
            .apply(&[Op::Flush { family: "default".into() }, Op::Compact { family: "default".into() }])
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

/// Removes operands that begin with `r`.
#[derive(Debug)]
struct Operands;

impl CompactionFilter for Operands {
    fn name(&self) -> &str {
        "test.Operands"
    }
    fn filter(&self, _: &[u8], _: &[u8]) -> Decision {
        Decision::Keep
    }
    fn filter_merge_operand(&self, _: &[u8], operand: &[u8]) -> Decision {
        if operand.starts_with(b"r") { Decision::Remove } else { Decision::Keep }
    }
}

/// An operator that combines operands must not do so before the filter has seen each of them: the combined operand would take
/// newer ones with it.
#[test]
fn each_operand_is_asked_about_by_itself() {
    let dir = tempfile::tempdir().unwrap();
    let given = |f: FamilyBuilder| {
        f.compaction_filter(Arc::new(Operands)).merge_operator(standard_operator(MERGE_OPERATOR).unwrap())
    };
    let db = quiet(dir.path()).default_family(given).open().unwrap();
    db.merge("k", "r0").unwrap();
    db.merge("k", "m1").unwrap();
    db.put("l", "p").unwrap();
    db.flush().unwrap();
    db.merge("l", "m1").unwrap();
    db.flush().unwrap();
    db.merge("l", "r2").unwrap();
    db.merge("l", "m3").unwrap();
    db.compact().unwrap();
    assert_eq!(text(&db), "k=m1 l=p,m1,m3");
}
