//! Prepared openings of the judge: families that differ, places, wrappers, bulk operations.

use ashlar_testkit::judge::{JudgeError, Opening, place};
use ashlar_testkit::ops::Op;
use ashlar_testkit::text::to_hex;
use ashlar_testkit::{Judge, JudgeVersion, Skip};
use std::path::Path;

fn start() -> Result<Judge, Skip> {
    let library = place(JudgeVersion::V11.name())?;
    Ok(Judge::spawn_with(Path::new(env!("CARGO_BIN_EXE_rocksdb-judge")), &library).expect("the judge starts"))
}

/// Prepares openings of `root`/db: three families, tables in two places, a folder for logs.
fn prepare(judge: &mut Judge, root: &Path) {
    let root = root.display();
    let path = |name: &str| to_hex(format!("{root}/{name}").as_bytes());
    let lines = [
        "without".to_owned(),
        format!("with db allow_concurrent_memtable_write=false;wal_dir={root}/wal"),
        "with family default num_levels=3".to_owned(),
        "with family stamped comparator=leveldb.BytewiseComparator.u64ts".to_owned(),
        "with family reverse comparator=rocksdb.ReverseBytewiseComparator;merge_operator=uint64add"
            .to_owned(),
        format!("with path * {} 1000", path("p0")),
        format!("with path * {} 1000000", path("p1")),
        "with transactions".to_owned(),
    ];
    lines.iter().for_each(|line| judge.prepare(line).unwrap());
}

fn everything() -> Result<(), Skip> {
    let (mut judge, folder) = (start()?, tempfile::tempdir().unwrap());
    let db = folder.path().join("db");
    prepare(&mut judge, folder.path());
    judge.open(&db, Opening::Create, "").unwrap();
    for line in [
        "bulk put default 0 300 100 1",
        "bulk put stamped 0 20 100 1",
        "bulk merge reverse 0 10 8 1",
        "bulk delete reverse 0 2 0 1",
        "bulk entity default 400 5 20 1",
        "bulk ingest default 500 5 20 1",
        "bulk prepared default 600 5 20 1",
        "bulk committed default 700 5 20 1",
        "bulk rolled_back default 800 5 20 2",
    ] {
        judge.bulk(&line.parse().unwrap()).unwrap();
    }
    judge.apply(&[Op::Flush { family: "default".into() }]).unwrap();
    let before: Vec<_> = ["default", "stamped", "reverse"].map(|name| judge.dump(name).unwrap()).into();
    assert_eq!(before.iter().map(Vec::len).collect::<Vec<_>>(), [315, 20, 8]);
    judge.close().unwrap();
    judge.open(&db, Opening::Existing, "").unwrap();
    let after: Vec<_> = ["default", "stamped", "reverse"].map(|name| judge.dump(name).unwrap()).into();
    assert_eq!(before, after);
    for place in ["p0", "wal"] {
        let files = std::fs::read_dir(folder.path().join(place)).unwrap().count();
        assert!(files > 0, "nothing in {place}");
    }
    for name in ["default", "stamped", "reverse"] {
        judge.probe(name).unwrap();
    }
    let refused = judge.prepare("with wings");
    assert!(matches!(refused, Err(JudgeError::Refused(_))), "{refused:?}");
    Ok(())
}

/// What one write policy leaves: the keys that are committed, and the write options of bulks.
fn with_policy(policy: &str) -> Result<(), Skip> {
    let (mut judge, folder) = (start()?, tempfile::tempdir().unwrap());
    for line in ["without", "with db ", "with family default ", "with read pin_data fill_cache"] {
        judge.prepare(line).unwrap();
    }
    judge.prepare(&format!("with transactions {policy}")).unwrap();
    judge.open(&folder.path().join("db"), Opening::Create, "").unwrap();
    for line in [
        "bulk put default 0 10 100 1 sync",
        "bulk put default 10 10 100 1 low_pri",
        "bulk put default 20 10 100 1 hint",
        "bulk prepared default 600 5 20 1",
        "bulk committed default 700 5 20 1",
        "bulk rolled_back default 800 5 20 2",
    ] {
        judge.bulk(&line.parse().unwrap()).unwrap();
    }
    assert_eq!(judge.dump("default").unwrap().len(), 35, "{policy}");
    assert!(judge.probe("default").unwrap() > 0);
    Ok(())
}

#[test]
fn transactions_of_every_write_policy_show_what_is_committed() {
    for policy in ["committed", "prepared", "unprepared"] {
        let done = with_policy(policy);
        done.unwrap_or_else(|skip| {
            skip.announce("transactions_of_every_write_policy_show_what_is_committed")
        });
    }
}

#[test]
fn prepared_openings_have_families_places_and_transactions() {
    let done = everything();
    done.unwrap_or_else(|skip| skip.announce("prepared_openings_have_families_places_and_transactions"));
}
