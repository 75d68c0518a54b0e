//! Properties: every name has a value, or is refused with a reason.

use super::Store;
use ashlar_base::FamilyId;
use ashlar_engine::Db;
use ashlar_env::sim::SimEnv;
use ashlar_env::{Env, JobExecutor};
use ashlar_observe::{Answer, PROPERTIES};
use ashlar_options::{DbOptions, FamilyOptions};
use ashlar_testkit::report;
use std::path::Path;

fn store() -> Store {
    let store = Store::open(Env::mem(), DbOptions::default());
    for n in 0..1000u32 {
        store.put(&n.to_be_bytes(), &[7; 100]);
    }
    store.compact();
    for n in 0..10u32 {
        store.put(&n.to_be_bytes(), &[8; 100]);
    }
    store.flush();
    store.put(b"in memory", b"1");
    store
}

#[test]
fn every_name_is_answered_or_refused() {
    let _readers = crate::beside_others();
    let store = store();
    let (mut answered, mut refused) = (0, 0);
    for property in PROPERTIES {
        let number = if property.numbered { "0" } else { "" };
        let name = format!("rocksdb.{}{number}", property.name);
        let text = store.db.property(&store.family, &name);
        let int = store.db.property_int(&store.family, &name);
        let map = store.db.property_map(&store.family, &name);
        let checked = Db::check_property(&name);
        match property.answer {
            Answer::Refused(why) => {
                refused += 1;
                assert_eq!((text, int, map), (None, None, None), "{name}");
                assert!(checked.unwrap_err().to_string().contains(why), "{name}");
                continue;
            }
            Answer::Number => assert_eq!(text, int.map(|n| n.to_string()), "{name}"),
            Answer::Text => assert_eq!((int, map), (None, None), "{name}"),
            Answer::Map => assert!(map.is_some_and(|m| !m.is_empty()), "{name}"),
        }
        answered += 1;
        assert!(store.db.property(&store.family, &name).is_some_and(|t| !t.is_empty()), "{name}");
        checked.unwrap();
    }
    report::figure(&format!("properties: {answered} answered, {refused} refused of {}", PROPERTIES.len()));
    assert_eq!(store.db.property(&store.family, "rocksdb.no-such-thing"), None);
    assert_eq!(
        Db::check_property("rocksdb.no-such-thing").unwrap_err().kind(),
        ashlar_base::ErrorKind::InvalidArgument
    );
}

#[test]
fn numbers_tell_what_is_there() {
    let _readers = crate::beside_others();
    let store = store();
    let int = |name: &str| store.db.property_int(&store.family, &format!("rocksdb.{name}")).unwrap();
    let text = |name: &str| store.db.property(&store.family, &format!("rocksdb.{name}")).unwrap();
    assert_eq!((int("num-entries-active-mem-table"), int("num-immutable-mem-table")), (1, 0));
    assert_eq!(int("estimate-num-keys"), 1011);
    assert_eq!((text("num-files-at-level0"), text("num-files-at-level6")), ("1".to_owned(), "1".to_owned()));
    assert_eq!(store.db.property(&store.family, "rocksdb.num-files-at-level7"), None);
    let (live, total) = (int("live-sst-files-size"), int("total-sst-files-size"));
    assert!(live > 1000 && total >= live);
    assert!(int("estimate-live-data-size") < live, "the table of level 0 is about keys that lie below");
    assert_eq!(int("estimate-table-readers-mem"), 0, "no table was read yet");
    store.get(&5u32.to_be_bytes());
    assert!(int("estimate-table-readers-mem") > 0);
    assert_eq!((int("num-live-versions") > 0, int("base-level")), (true, 6));
    assert_eq!((int("oldest-snapshot-time"), int("oldest-snapshot-sequence")), (0, 0));
    let snapshot = store.db.snapshot().unwrap();
    assert_eq!((int("num-snapshots"), int("oldest-snapshot-sequence")), (1, snapshot.seq().get()));
    assert!(int("oldest-snapshot-time") > 1_500_000_000);
    assert_eq!(
        (int("is-write-stopped"), int("actual-delayed-write-rate"), int("background-errors")),
        (0, 0, 0)
    );
    let ratio: f64 = text("compression-ratio-at-level6").parse().unwrap();
    assert!(ratio > 2.0, "{ratio}");
    assert_eq!(text("compression-ratio-at-level3"), "-1.000000");
    let all = store.db.property_map(&store.family, "rocksdb.aggregated-table-properties").unwrap();
    assert_eq!((all["num_entries"].as_str(), all["num_deletions"].as_str()), ("1010", "0"));
    let upper =
        store.db.property_map(&store.family, "rocksdb.aggregated-table-properties-at-level0").unwrap();
    assert_eq!(upper["num_entries"], "10");
    assert_eq!(text("live-sst-files-size-at-temperature0"), live.to_string());
    assert_eq!(text("live-sst-files-size-at-temperature3"), "0");
    assert_eq!(store.db.property_int_sum("rocksdb.num-entries-active-mem-table"), Some(1));
    // A deletion in a memtable is an entry, and takes away itself and what it deletes.
    store.write(|batch| batch.delete(store.family.id(), &1u32.to_be_bytes()).unwrap());
    assert_eq!(int("estimate-num-keys"), 1010);
}

/// Deletions count in the level that holds them; running compactions count by the runs they merge.
#[test]
fn deletions_aborts_and_runs_are_counted() {
    let _readers = crate::beside_others();
    let sim = SimEnv::new(9);
    let mut family = FamilyOptions::default();
    family.compaction.l0_trigger = 3;
    let db = Db::open(sim.env(), Path::new("/db"), DbOptions::default(), vec![], family).unwrap();
    let store = Store { family: db.family("default").unwrap(), db };
    let int = |name: &str| store.db.property_int(&store.family, &format!("rocksdb.{name}")).unwrap();
    store.put(b"k", b"v");
    store.write(|batch| {
        batch.delete(FamilyId::DEFAULT, b"a").unwrap();
        batch.single_delete(FamilyId::DEFAULT, b"b").unwrap();
        batch.delete_range(FamilyId::DEFAULT, b"c", b"d").unwrap();
    });
    assert_eq!((int("num-deletes-active-mem-table"), int("num-entries-active-mem-table")), (2, 4));
    assert_eq!(int("num-deletes-imm-mem-tables"), 0);
    store.db.abort_compactions().unwrap();
    store.db.abort_compactions().unwrap();
    assert_eq!(int("compaction-abort-count"), 2);
    for _ in 0..3 {
        (0..2000u32).for_each(|n| store.put(&n.to_be_bytes(), &[7; 100]));
        store.flush();
    }
    assert_eq!(int("num-deletes-active-mem-table"), 0);
    assert_eq!((int("num-running-compactions"), int("num-running-compaction-sorted-runs")), (0, 0));
    store.db.resume_compactions().unwrap();
    store.db.resume_compactions().unwrap();
    assert_eq!(int("compaction-abort-count"), 0);
    // Claimed but not begun: nothing drives the jobs.
    assert_eq!((int("num-running-compactions"), int("num-running-compaction-sorted-runs")), (1, 3));
    store.db.wait_for_background().unwrap();
    assert_eq!((int("num-running-compactions"), int("num-running-compaction-sorted-runs")), (0, 0));
}

/// Obsolete tables are counted as long as they exist; memory is listed by use.
#[test]
fn obsolete_tables_and_the_roles_of_memory_are_told() {
    let _readers = crate::beside_others();
    let sim = SimEnv::new(10);
    let mut family = FamilyOptions::default();
    family.compaction.automatic = false;
    let db = Db::open(sim.env(), Path::new("/db"), DbOptions::default(), vec![], family).unwrap();
    let store = Store { family: db.family("default").unwrap(), db };
    let int = |name: &str| store.db.property_int(&store.family, &format!("rocksdb.{name}")).unwrap();
    for _ in 0..2 {
        (0..1000u32).for_each(|n| store.put(&n.to_be_bytes(), &[7; 100]));
        store.flush();
    }
    assert_eq!(int("obsolete-sst-files-size"), 0);
    for (name, bytes) in [("000001.sst", 100), ("000002.ldb", 30), ("999999.sst", 7)] {
        sim.env().fs.create(&Path::new("/db").join(name)).unwrap().write_at(&vec![0; bytes], 0).unwrap();
    }
    assert_eq!(int("obsolete-sst-files-size"), 130, "a file with a future number may be in progress");
    let reader = store.db.iter(&store.family, Default::default(), Default::default()).unwrap();
    store.db.compact_range(&store.family, None, None).unwrap();
    sim.jobs().drive(1000);
    assert_eq!(
        int("obsolete-sst-files-size"),
        0,
        "the purge removed those files, and a reader holds the compacted tables"
    );
    assert!(int("total-sst-files-size") > int("live-sst-files-size"));
    drop(reader);
    store.put(b"in memory", b"1");
    store.get(&5u32.to_be_bytes());
    let roles = store.db.property_map(&store.family, "rocksdb.block-cache-entry-stats").unwrap();
    let role = |name: &str| roles[name].parse::<u64>().unwrap();
    assert_eq!((role("count.data-block"), role("bytes.data-block")), (1, int("block-cache-usage")));
    assert!(role("bytes.write-buffer") > 0 && role("bytes.block-based-table-reader") > 0, "{roles:?}");
    let text = store.db.property(&store.family, "rocksdb.fast-block-cache-entry-stats").unwrap();
    assert!(text.contains(" DataBlock(1,") && text.contains(" WriteBuffer(1,"), "{text}");
}

#[test]
fn the_stats_text_adds_up() {
    let _readers = crate::beside_others();
    let store = store();
    let text = store.db.property(&store.family, "rocksdb.stats").unwrap();
    let row = |head: &str| {
        let line = text.lines().find(|line| line.trim_start().starts_with(head)).unwrap();
        line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!((row("L0")[1].as_str(), row("L6")[1].as_str(), row("Sum")[1].as_str()), ("1/0", "1/0", "2/0"));
    // Two flushes; the other row is a compaction or a move.
    assert_eq!(row("L0")[16], "2");
    assert!(text.contains(
        "Cumulative writes: 1011 writes, 1011 keys, 1011 commit groups, 1.0 writes per commit group"
    ));
    assert!(text.contains("Cumulative WAL: 1011 writes, 0 syncs"));
    assert!(text.contains("Cumulative stall: 00:00:00.000 H:M:S, 0.0 percent"));
    let again = store.db.property(&store.family, "rocksdb.dbstats").unwrap();
    assert!(again.contains("Interval writes: 0 writes, 0 keys"));
    assert!(
        store.db.property(&store.family, "rocksdb.levelstats").unwrap().starts_with("Level Files Size(MB)\n")
    );
    assert_eq!(store.db.property(&store.family, "rocksdb.sstables").unwrap().matches("--- level").count(), 7);
}
