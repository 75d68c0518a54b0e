//! SST partitioners: compactions begin tables where they say, here as in RocksDB, and a wrong one harms nothing.

use crate::judge::{judge, level_of};
use crate::options::{newest, section};
use crate::store::listing;
use ashlar_testkit::judge::Opening;
use ashlar_testkit::{Change, JudgeVersion, Op, Rng};
use ashlardb::prelude::*;
use ashlardb::{
    Builder, CompactRangeOptions, Event, EventListener, FixedPrefixPartitioner, Level, LiveFile,
    PartitionerContext, SstPartitioner, SstPartitionerFactory,
};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

fn by_prefix(dir: &Path, length: usize, options: &str) -> Builder {
    let partitioner = Arc::new(FixedPrefixPartitioner::new(length));
    Db::builder(dir).options(options).default_family(move |f| f.sst_partitioner(partitioner.clone()))
}

fn tables(db: &Db) -> Vec<LiveFile> {
    db.default_family().live_files().unwrap()
}

/// `level:smallest-largest` of each table.
fn bounds(db: &Db) -> Vec<String> {
    let text = |key: &[u8]| key.escape_ascii().to_string();
    let one = |t: &LiveFile| format!("{}:{}-{}", t.level.0, text(&t.smallest), text(&t.largest));
    tables(db).iter().map(one).collect()
}

/// Random histories: below level 0, no table holds keys of two prefixes, and reads are those of a map.
#[test]
fn tables_below_level_0_are_of_one_prefix() {
    let mut moved = 0;
    for (seed, style) in [(1, "Level"), (2, "Universal"), (3, "Level"), (4, "Universal")] {
        let dir = tempfile::tempdir().unwrap();
        let options = format!(
            "compaction_style=kCompactionStyle{style};target_file_size_base=16K;max_bytes_for_level_base=64K;\
            write_buffer_size=64K;compression=kNoCompression;max_subcompactions=3;\
            compaction_options_universal={{allow_trivial_move={};}}",
            seed > 2
        );
        let moves = Arc::new(Moves::default());
        let builder = || by_prefix(dir.path(), 2, &options).listener(moves.clone());
        let (mut random, mut model) = (Rng::new(seed), BTreeMap::new());
        let mut db = builder().open().unwrap();
        for round in 0..12 {
            for _ in 0..700 {
                let key = format!("{}{}{:03}", pick(&mut random), pick(&mut random), random.below(400));
                match random.below(10) {
                    0 => {
                        db.delete(&key).unwrap();
                        model.remove(&key);
                    }
                    1 if random.below(20) == 0 => {
                        let end = format!("{key}~");
                        db.delete_range(&key, &end).unwrap();
                        model.retain(|k: &String, _| *k < key || *k >= end);
                    }
                    _ => {
                        let value = random.bytes(40);
                        db.put(&key, &value).unwrap();
                        model.insert(key, value);
                    }
                }
            }
            match round % 4 {
                0 => db.compact().unwrap(),
                1 => db.flush().unwrap(),
                2 => {
                    db.close().unwrap();
                    db = builder().open().unwrap();
                }
                _ => {}
            }
            db.wait_for_background().unwrap();
            for table in tables(&db).iter().filter(|table| table.level > Level(0)) {
                // The end of a range deletion is no key of the table.
                let same = table.smallest[..2] == table.largest[..2] || table.largest.ends_with(b"~");
                assert!(same, "seed {seed}, round {round}: {:?}", bounds(&db));
            }
        }
        let read: Vec<_> = listing(db.scan(..));
        let expected: Vec<_> =
            model.iter().map(|(key, value)| (key.clone().into_bytes(), value.clone())).collect();
        assert!(read == expected && read.len() > 1000, "seed {seed}");
        db.verify_db(|_| ()).unwrap();
        moved += *moves.0.lock().unwrap();
    }
    assert!(moved > 0, "tables within a partition still move");
}

fn pick(random: &mut Rng) -> char {
    ['a', 'b', 'c'][random.below(3)]
}

#[derive(Default)]
struct Moves(Mutex<u64>);

impl EventListener for Moves {
    fn on_event(&self, event: &Event) {
        if let Event::CompactionCompleted(compaction) = event {
            *self.0.lock().unwrap() += u64::from(compaction.trivial_move);
        }
    }
}

/// Cuts before each key that ends with `0`, and notes what it is asked.
#[derive(Clone, Debug, Default)]
struct Tens {
    asked: Arc<Mutex<Vec<String>>>,
    begun: Arc<Mutex<Vec<String>>>,
    panics: bool,
}

impl SstPartitionerFactory for Tens {
    fn name(&self) -> &str {
        "test.Tens"
    }

    fn create(&self, context: &PartitionerContext<'_>) -> Option<Box<dyn SstPartitioner>> {
        let (from, to) = (context.smallest.escape_ascii(), context.largest.escape_ascii());
        let line = format!("{} {} {} {from}-{to}", context.level, context.is_full, context.is_manual);
        self.begun.lock().unwrap().push(line);
        Some(Box::new(self.clone()))
    }
}

impl SstPartitioner for Tens {
    fn cuts_between(&mut self, previous: &[u8], current: &[u8], table_bytes: u64) -> bool {
        assert!(!self.panics || current != b"key25", "on purpose");
        assert!(previous < current && table_bytes < 1 << 20);
        self.asked.lock().unwrap().push(current.escape_ascii().to_string());
        current.ends_with(b"0")
    }
}

fn loaded(dir: &Path, partitioner: &Tens, ear: &Arc<Ear>) -> Db {
    let partitioner = Arc::new(partitioner.clone());
    let builder = Db::builder(dir).options("disable_auto_compactions=true").listener(ear.clone());
    let db = builder.default_family(move |f| f.sst_partitioner(partitioner.clone())).open().unwrap();
    for version in 0..2 {
        for n in 0..50 {
            db.put(format!("key{n:02}"), format!("{version}")).unwrap();
        }
        db.flush().unwrap();
    }
    db
}

#[derive(Default)]
struct Ear(Mutex<Vec<String>>);

impl EventListener for Ear {
    fn on_event(&self, event: &Event) {
        if let Event::PartitionerFailed { family, partitioner, output_level } = event {
            self.0.lock().unwrap().push(format!("{family} {partitioner} {output_level}"));
        }
    }
}

#[test]
fn a_partitioner_of_the_users_own_is_asked_between_keys_and_never_between_versions() {
    let (dir, tens, ear) = (tempfile::tempdir().unwrap(), Tens::default(), Arc::new(Ear::default()));
    let db = loaded(dir.path(), &tens, &ear);
    assert!(tens.begun.lock().unwrap().is_empty(), "a flush asks nothing");
    let _snapshot = db.snapshot().unwrap();
    db.put("key10", "newest").unwrap();
    db.flush().unwrap();
    db.compact().unwrap();
    assert_eq!(
        bounds(&db),
        ["6:key00-key09", "6:key10-key19", "6:key20-key29", "6:key30-key39", "6:key40-key49"]
    );
    let expected: Vec<_> = (1..50).map(|n| format!("key{n:02}")).collect();
    let asked = std::mem::take(&mut *tens.asked.lock().unwrap());
    assert_eq!(asked[asked.len() - 49..], expected, "each key once, although key10 has two versions");
    let begun = std::mem::take(&mut *tens.begun.lock().unwrap());
    assert_eq!(begun.last().unwrap(), "L6 true true key00-key49");
    // A part of the tree: not full.
    db.put("key15", "x").unwrap();
    db.default_family().compact_range("key10"..="key19", CompactRangeOptions::default()).unwrap();
    let begun = std::mem::take(&mut *tens.begun.lock().unwrap());
    assert_eq!(begun.last().unwrap(), "L6 false true key10-key19");
    assert_eq!((bounds(&db).len(), ear.0.lock().unwrap().len()), (5, 0));
}

/// The rest of the compaction is cut as without it; nothing else changes.
#[test]
fn a_panicking_partitioner_is_reported_and_harms_nothing() {
    let (dir, ear) = (tempfile::tempdir().unwrap(), Arc::new(Ear::default()));
    let tens = Tens { panics: true, ..Tens::default() };
    let db = loaded(dir.path(), &tens, &ear);
    db.compact().unwrap();
    assert_eq!(bounds(&db), ["6:key00-key09", "6:key10-key19", "6:key20-key49"]);
    assert_eq!(*ear.0.lock().unwrap(), ["default test.Tens L6"]);
    let log = std::fs::read_to_string(dir.path().join("LOG")).unwrap();
    assert!(log.contains("sst_partitioner_failed") && log.contains("test.Tens"), "{log}");
    assert_eq!(listing(db.scan(..)).len(), 50);
    db.verify_db(|_| ()).unwrap();
    drop(db);
    // Without it, tables are cut by size, and the report says so.
    let db = Db::open(dir.path()).unwrap();
    let report = db.recovery().unserved.join("\n");
    assert!(report.contains("\"test.Tens\" is not built in"), "{report}");
    db.compact().unwrap();
    assert_eq!(bounds(&db), ["6:key00-key49"]);
    db.close().unwrap();
    assert!(
        section(&newest(dir.path()), "CFOptions \"default\"").contains(&"sst_partitioner_factory=test.Tens")
    );
}

/// A table that would move as it is, is rewritten where it reaches over an end.
#[test]
fn a_table_over_an_end_is_not_moved() {
    for (keys, moved) in [(["aa1", "aa2"], true), (["aa1", "bb1"], false)] {
        let dir = tempfile::tempdir().unwrap();
        let moves = Arc::new(Moves::default());
        let quiet = "disable_auto_compactions=true;compression=kNoCompression;target_file_size_base=4096";
        let db = by_prefix(dir.path(), 2, quiet).listener(moves.clone()).open().unwrap();
        for key in keys {
            db.put(key, [b'v'; 3000]).unwrap();
        }
        db.flush().unwrap();
        db.compact().unwrap();
        assert_eq!(*moves.0.lock().unwrap() > 0, moved, "{keys:?}");
        assert_eq!(bounds(&db).len(), if moved { 1 } else { 2 }, "{keys:?}");
    }
}

/// What partitions are for: the data of one customer goes with its tables.
#[test]
fn the_tables_of_a_prefix_are_deleted_whole() {
    let dir = tempfile::tempdir().unwrap();
    let db = by_prefix(dir.path(), 4, "").open().unwrap();
    for customer in 0..5 {
        for n in 0..100 {
            db.put(format!("c{customer:03}/{n:03}"), "v").unwrap();
        }
    }
    db.compact().unwrap();
    assert_eq!(bounds(&db).len(), 5);
    assert_eq!(db.default_family().delete_files_in_ranges(&["c002".."c003"]).unwrap(), 1);
    assert_eq!(listing(db.scan(..)).len(), 400);
    assert_eq!(listing(db.scan("c002".."c003")).len(), 0);
}

/// Both releases cut the same data into the same tables.
#[test]
fn rocksdb_cuts_where_we_do() {
    let test = "rocksdb_cuts_where_we_do";
    for version in JudgeVersion::ALL {
        let Some(mut judge) = judge(version, test) else { return };
        let mut random = Rng::new(5);
        for length in [6, 1, 0, 3, 100].into_iter().take(ashlar_testkit::report::scale(2, 5)) {
            let options =
                format!("sst_partitioner_factory={{id=SstPartitionerFixedPrefixFactory;length={length};}}");
            let (theirs, ours) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            let mut keys: Vec<String> =
                (0..300).map(|_| format!("{}{:04}", pick(&mut random), random.below(9999))).collect();
            keys.extend(["a".to_owned(), "b".to_owned()]);
            let change = |key: &String| {
                let (family, key, value) = ("default".to_owned(), key.clone().into_bytes(), b"v".to_vec());
                Change::Put { family, key, value }
            };
            judge.open(theirs.path(), Opening::Create, &options).unwrap();
            keys.chunks(100)
                .for_each(|some| judge.write(&some.iter().map(change).collect::<Vec<_>>(), false).unwrap());
            let compact = || Op::Compact { family: "default".into() };
            judge.apply(&[Op::Flush { family: "default".into() }, compact()]).unwrap();
            // Once more, so that no table has come here unread.
            judge.write(&[change(&keys[0])], false).unwrap();
            judge.apply(&[Op::Flush { family: "default".into() }, compact()]).unwrap();
            judge.close().unwrap();
            let db =
                Db::builder(ours.path()).format_level(level_of(version)).options(&options).open().unwrap();
            keys.iter().for_each(|key| db.put(key, "v").unwrap());
            db.compact().unwrap();
            let here: Vec<_> = bounds(&db).iter().map(|table| table[1..].to_owned()).collect();
            db.close().unwrap();
            let db = Db::open_read_only(theirs.path()).unwrap();
            let there: Vec<_> = bounds(&db).iter().map(|table| table[1..].to_owned()).collect();
            assert_eq!(here, there, "{version:?}, {length}");
            assert_eq!(here.len() > 200, length >= 6, "{}", here.len());
            drop(db);
            // They read ours, and go on with the stored partitioner; we go on with theirs.
            judge.open(ours.path(), Opening::Stored, "").unwrap();
            judge.verify().unwrap();
            let dump = judge.dump("default").unwrap();
            judge.close().unwrap();
            let db = Db::builder(theirs.path()).format_level(level_of(version)).open().unwrap();
            assert!(!db.recovery().unserved.join("").contains("partitioner"), "{}", db.recovery());
            assert_eq!(listing(db.scan(..)), dump);
            let options = db.default_family().options();
            assert!(format!("{:?}", options.sst_partitioner).contains(&format!("length: {length} ")));
            db.compact().unwrap();
            let again: Vec<_> = bounds(&db).iter().map(|table| table[1..].to_owned()).collect();
            assert_eq!(again, here, "{version:?}, {length}");
            db.close().unwrap();
            for dir in [&ours, &theirs] {
                let line = format!(
                    "sst_partitioner_factory={{id=SstPartitionerFixedPrefixFactory;length={length};}}"
                );
                assert!(section(&newest(dir.path()), "CFOptions \"default\"").contains(&line.as_str()));
            }
        }
    }
}

#[test]
fn wrong_partitioners_are_refused() {
    #[derive(Debug)]
    struct Called(&'static str);
    impl SstPartitionerFactory for Called {
        fn name(&self) -> &str {
            self.0
        }
        fn create(&self, _: &PartitionerContext<'_>) -> Option<Box<dyn SstPartitioner>> {
            None
        }
    }
    let dir = tempfile::tempdir().unwrap();
    for (name, why) in [
        ("", "has an empty name"),
        ("SstPartitionerFixedPrefixFactory", "has the name of a built-in one"),
        ("a\nb", "does not come back from an OPTIONS file"),
    ] {
        let builder = Db::builder(dir.path());
        let e =
            builder.default_family(move |f| f.sst_partitioner(Arc::new(Called(name)))).open().unwrap_err();
        assert!(e.to_string().contains(why) && e.to_string().contains("SST partitioner"), "{name:?}: {e}");
    }
    for (text, why) in [
        ("mine", "\"mine\" is not built in"),
        ("{id=SstPartitionerFixedPrefixFactory;length=x;}", "x"),
        ("{id=SstPartitionerFixedPrefixFactory;width=1;}", "no option \"width\""),
    ] {
        let e =
            Db::builder(dir.path()).options(&format!("sst_partitioner_factory={text}")).open().unwrap_err();
        assert!(e.to_string().contains(why), "{text}: {e}");
    }
    let db = by_prefix(dir.path(), 2, "").open().unwrap();
    let e = db.default_family().set_options(&[("sst_partitioner_factory", "nullptr")]).unwrap_err();
    assert!(e.to_string().contains("does not change while the database is open"), "{e}");
    db.close().unwrap();
    // No partitioner any more.
    let db = Db::builder(dir.path()).options("sst_partitioner_factory=nullptr").open().unwrap();
    assert!(db.default_family().options().sst_partitioner.is_none());
    db.close().unwrap();
    assert!(!newest(dir.path()).contains("SstPartitioner"));
}
