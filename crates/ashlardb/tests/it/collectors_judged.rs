//! Collected properties and marks for compactions beside real RocksDB.

use crate::collectors::Counting;
use crate::judge::{judge, level_of};
use crate::options::{newest, section};
use crate::store::{listing, write};
use ashlar_testkit::judge::Opening;
use ashlar_testkit::{Change, JudgeVersion, Op, Rng, Tools, report};
use ashlardb::CompactOnDeletion;
use ashlardb::prelude::*;
use std::sync::Arc;

/// 7.8.3's `sst_dump` lists the properties of our tables, and both releases open, verify and compact them.
#[test]
fn rocksdb_shows_what_was_collected() {
    let test = "rocksdb_shows_what_was_collected";
    let tools = match Tools::available() {
        Ok(tools) => tools,
        Err(skip) => return skip.announce(test),
    };
    for version in JudgeVersion::ALL {
        let Some(mut judge) = judge(version, test) else { return };
        let dir = tempfile::tempdir().unwrap();
        let db = Db::builder(dir.path())
            .format_level(level_of(version))
            .options("disable_auto_compactions=true")
            .default_family(|f| f.table_properties_collector(Arc::new(Counting::default())))
            .open()
            .unwrap();
        for n in 0..500 {
            db.put(format!("key{n:03}"), vec![b'v'; n % 90]).unwrap();
        }
        db.delete("key007").unwrap();
        db.delete_range("key100", "key200").unwrap();
        db.flush().unwrap();
        let expected = listing(db.scan(..));
        let table = db.default_family().live_files().unwrap()[0].number;
        db.close().unwrap();
        if version == JudgeVersion::V7 {
            let shown = tools.properties(&dir.path().join(format!("{:06}.sst", table.0))).unwrap();
            for line in [
                "property collectors names: [test.Census]",
                "# census.Delete: 0x31",
                "# census.Put: 0x333939",
                "# census.RangeDelete: 0x31",
                "# census.longest: 0x3839",
            ] {
                assert!(shown.lines().any(|shown| shown.trim() == line), "{line}: {shown}");
            }
        }
        judge.open(dir.path(), Opening::Stored, "").unwrap();
        judge.verify().unwrap();
        assert_eq!(judge.dump("default").unwrap(), expected);
        judge.apply(&[Op::Compact { family: "default".into() }]).unwrap();
        assert_eq!(judge.dump("default").unwrap(), expected);
        judge.close().unwrap();
    }
}

const DELETIONS: &str = "table_properties_collectors={id=CompactOnDeletionCollector;window_size=128;deletion_trigger=10;\
    deletion_ratio=0.5;}";

fn marks(db: &Db) -> Vec<(u8, bool)> {
    let tables = db.default_family().properties_of_all_tables().unwrap();
    tables.iter().map(|table| (table.level.0, table.marked_for_compaction)).collect()
}

fn change(kind: usize, key: usize) -> Change {
    let (family, key) = ("default".to_owned(), format!("key{key:06}").into_bytes());
    match kind {
        0 => Change::Delete { family, key },
        1 => Change::SingleDelete { family, key },
        _ => Change::Put { family, key, value: vec![b'v'; 40] },
    }
}

/// RocksDB 11.8.1 marks the same tables, whatever the limits.
#[test]
fn we_mark_the_tables_that_rocksdb_marks() {
    let test = "we_mark_the_tables_that_rocksdb_marks";
    let Some(mut judge) = judge(JudgeVersion::V11, test) else { return };
    let mut random = Rng::new(11);
    let mut marked = 0;
    let rounds = 40;
    for round in 0..rounds {
        let (window, trigger) = (random.below(3) * random.below(700), random.below(80));
        let ratio = [0.0, 0.1, 0.5, 1.0][random.below(4)];
        let min = [0, 0, 8192, 1 << 20][random.below(4)];
        let options = format!(
            "disable_auto_compactions=true;compression=kNoCompression;\
            block_based_table_factory={{filter_policy=nullptr;block_size=4096;}};\
            table_properties_collectors={{id=CompactOnDeletionCollector;window_size={window};\
            deletion_trigger={trigger};deletion_ratio={ratio};min_file_size={min};}}"
        );
        let share = 2 + random.below(12);
        let keys = 1 + random.below(1200);
        let changes: Vec<_> = (0..keys).map(|key| change(random.below(share), key)).collect();
        let (theirs, ours) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        judge.open(theirs.path(), Opening::Create, &options).unwrap();
        changes.chunks(200).for_each(|some| judge.write(some, false).unwrap());
        judge.apply(&[Op::Flush { family: "default".into() }]).unwrap();
        judge.close().unwrap();
        let db = Db::builder(ours.path()).options(&options).open().unwrap();
        write(&db, &changes, false);
        db.flush().unwrap();
        let here = marks(&db);
        let there = marks(&Db::open_read_only(theirs.path()).unwrap());
        assert_eq!(here, there, "{round}: {options}, {keys} keys, one in {share}");
        marked += usize::from(here[0].1);
    }
    assert!((5..rounds - 5).contains(&marked), "{marked} of {rounds}");
    report::figure(&format!("marks for compactions: {rounds} tables as RocksDB 11.8.1, {marked} marked"));
}

/// A mark that one engine wrote starts a compaction in the other, after an open.
#[test]
fn a_mark_of_either_engine_starts_a_compaction_in_the_other() {
    let test = "a_mark_of_either_engine_starts_a_compaction_in_the_other";
    for version in JudgeVersion::ALL {
        let Some(mut judge) = judge(version, test) else { return };
        for style in ["kCompactionStyleLevel", "kCompactionStyleUniversal"] {
            let quiet = format!("compaction_style={style};disable_auto_compactions=true;{DELETIONS}");
            let awake = format!("compaction_style={style}");
            let puts: Vec<_> = (0..300).map(|key| change(2, key)).collect();
            let deletes: Vec<_> = (0..200).map(|key| change(0, key)).collect();
            let (theirs, ours) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            // Theirs, then we open it.
            judge.open(theirs.path(), Opening::Create, &quiet).unwrap();
            judge.write(&puts, false).unwrap();
            judge.apply(&[Op::Compact { family: "default".into() }]).unwrap();
            judge.write(&deletes, false).unwrap();
            judge.apply(&[Op::Flush { family: "default".into() }]).unwrap();
            judge.close().unwrap();
            assert_eq!(marks(&Db::open_read_only(theirs.path()).unwrap())[0], (0, true), "{style}");
            let awaken = format!("disable_auto_compactions=false;{awake}");
            let db =
                Db::builder(theirs.path()).format_level(level_of(version)).options(&awaken).open().unwrap();
            db.wait_for_background().unwrap();
            let after = marks(&db);
            assert!(after.iter().all(|(level, marked)| *level > 0 && !marked), "{style}: {after:?}");
            assert_eq!(listing(db.scan(..)).len(), 100);
            db.close().unwrap();
            // Ours, then they open it.
            let level = level_of(version);
            let db = Db::builder(ours.path()).format_level(level).options(&quiet).open().unwrap();
            write(&db, &puts, false);
            db.compact().unwrap();
            write(&db, &deletes, false);
            db.flush().unwrap();
            let before = marks(&db);
            assert_eq!(before[0], (0, true), "{style}");
            assert_eq!((before.len(), marks(&db).iter().filter(|(_, marked)| *marked).count()), (2, 1));
            db.close().unwrap();
            judge.open(ours.path(), Opening::Existing, &awake).unwrap();
            let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
            while judge.tables().unwrap() != 1 {
                assert!(std::time::Instant::now() < deadline, "{version:?} {style}: {:?}", judge.tables());
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
            assert_eq!(judge.dump("default").unwrap().len(), 100);
            judge.close().unwrap();
            assert_eq!(Db::open_read_only(ours.path()).unwrap().recovery().families.len(), 1);
        }
    }
}

/// Both releases load what we store of collectors, and we what they store.
#[test]
fn collectors_are_known_by_name_in_both_directions() {
    let test = "collectors_are_known_by_name_in_both_directions";
    let built_in = |db: &Db| {
        let collectors = &db.default_family().options().table.collectors;
        collectors.iter().map(|collector| format!("{collector:?}")).collect::<Vec<_>>()
    };
    for version in JudgeVersion::ALL {
        let Some(mut judge) = judge(version, test) else { return };
        let dir = tempfile::tempdir().unwrap();
        let level = level_of(version);
        let counting = || Arc::new(Counting::default());
        let set = CompactOnDeletion::new(1000, 77).ratio(0.25).min_file_bytes(4096);
        let open = || Db::builder(dir.path()).format_level(level);
        let given = || {
            open().default_family(move |f| {
                f.table_properties_collector(Arc::new(set)).table_properties_collector(counting())
            })
        };
        given().open().unwrap().close().unwrap();
        let min = if version == JudgeVersion::V7 { "" } else { "min_file_size=4096;" };
        let one = format!(
            "{{id=CompactOnDeletionCollector;{min}deletion_ratio=0.250000;deletion_trigger=77;window_size=1000;}}"
        );
        let line = |list: &str| format!("table_properties_collectors={list}");
        let family = |text: &str| {
            section(text, "CFOptions \"default\"").iter().map(|line| (*line).to_owned()).collect::<Vec<_>>()
        };
        let stored = newest(dir.path());
        assert!(family(&stored).contains(&line(&format!("{one}:test.Census"))), "{stored}");
        // Without the program's own collector, the other one acts, and the report names the missing one.
        let db = open().open().unwrap();
        let kept = if version == JudgeVersion::V7 { set.min_file_bytes(0) } else { set };
        assert_eq!(built_in(&db), [format!("{kept:?}")]);
        let report = db.recovery().unserved.join("\n");
        assert!(report.contains("\"test.Census\" is not built in"), "{report}");
        db.close().unwrap();
        assert!(family(&newest(dir.path())).contains(&line(&format!("{one}:test.Census"))));
        let db = given().open().unwrap();
        assert_eq!(db.recovery().unserved, Vec::<String>::new());
        db.close().unwrap();
        // RocksDB takes the list, passes over what it does not know, and stores the rest.
        judge.open(dir.path(), Opening::Stored, "").unwrap();
        judge.close().unwrap();
        assert!(family(&newest(dir.path())).contains(&line(&format!("{{{one}}}"))), "{}", newest(dir.path()));
        let db = open().open().unwrap();
        assert_eq!((built_in(&db), &db.recovery().unserved), (vec![format!("{kept:?}")], &Vec::new()));
        db.close().unwrap();
        assert!(family(&newest(dir.path())).contains(&line(&format!("{{{one}}}"))));
    }
}
