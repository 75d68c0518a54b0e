//! ldb's flags for how a database is opened: times to live with their times, and a secondary.

use super::ldb::{place, run};
use super::program;
use ashlar_testkit::Tools;
use ashlardb::prelude::*;
use std::path::Path;

/// Seconds since 1970.
fn now() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs()
}

#[test]
fn entries_are_shown_with_the_times_of_their_writes() {
    let (dir, ldb) = place();
    let db = dir.path().join("db");
    let before = now();
    for line in ["put old.1 a --ttl --create_if_missing", "put old.2 b --ttl"] {
        assert_eq!(run(&ldb, &db, line).out, "OK\n", "{line}");
    }
    let after = now() + 1;
    let good = |line: &str| {
        let ran = run(&ldb, &db, line);
        assert_eq!((ran.status, ran.err.as_str()), (0, ""), "{line}: {ran:?}");
        ran.out
    };
    let shown = good("dump --ttl --timestamp");
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines[0], "Dumping key-values from Fri May 10 00:40:02 2013 to Tue Jan 19 03:14:07 2038");
    assert!(lines[1].ends_with(" old.1 ==> a") && lines[2].ends_with(" old.2 ==> b"), "{shown}");
    assert_eq!(lines[1].len(), "Sat Nov 28 20:54:05 2026 old.1 ==> a".len(), "{shown}");
    assert_eq!(lines[3..], ["Keys in range: 2"], "{shown}");
    assert!(good("scan --ttl --timestamp --no_value").lines().nth(2).unwrap().ends_with(" old.2"));
    assert_eq!(
        good(&format!("scan --ttl --start_time={before} --end_time={after}")),
        "old.1 ==> a\nold.2 ==> b\n"
    );
    assert_eq!(good(&format!("scan --ttl --start_time={after}")), "");
    assert_eq!(good(&format!("dump --ttl --end_time={before}")), "Keys in range: 0\n");
    assert_eq!(good("dump --ttl --timestamp --count_only"), "Keys in range: 2\n");
    let buckets = good("dump --ttl --count_only --bucket=1000000000 --start_time=1500000000");
    assert_eq!(buckets, "Keys in range: 2\n", "a bucket for all times counts as no bucket");
    let buckets = good("dump --ttl --count_only --bucket=1000 --start_time=1500000000 --end_time=1500002500");
    let ends: Vec<&str> = buckets.lines().map(|line| line.rsplit_once(" to ").unwrap().1).collect();
    let three =
        ["Fri Jul 14 02:56:40 2017 : 0", "Fri Jul 14 03:13:20 2017 : 0", "Fri Jul 14 03:21:40 2017 : 0"];
    assert_eq!(ends, three);
    for (line, said) in [
        ("dump --timestamp", "give --ttl"),
        ("scan --start_time=5", "give --ttl"),
        ("dump --bucket=5", "give --ttl"),
        ("dump --ttl --start_time=5 --end_time=3", "--end_time is before --start_time"),
        ("dump --ttl --start_time=x", "x"),
        ("dump --path=x.sst --timestamp", "cannot be used with"),
    ] {
        let ran = run(&ldb, &db, line);
        assert!(ran.status == 2 && ran.out.is_empty() && ran.err.contains(said), "{line}: {ran:?}");
    }
    // A plain value has no time.
    let plain = dir.path().join("plain");
    assert_eq!(run(&ldb, &plain, "put k v --create_if_missing").status, 0);
    let ran = run(&ldb, &plain, "dump --ttl --timestamp");
    assert!(ran.status == 1 && !ran.out.contains("Keys in range"), "{ran:?}");
}

/// RocksDB 7.8.3 prints these lines, and then ends with status 1 whatever it did.
#[test]
fn times_are_those_of_rocksdbs_ldb() {
    if let Err(skip) = Tools::available() {
        return skip.announce("times_are_those_of_rocksdbs_ldb");
    }
    let (dir, ours) = place();
    let db = dir.path().join("db");
    for line in ["put a.1 1 --ttl --create_if_missing", "put a.2 2 --ttl", "put b 3 --ttl"] {
        assert_eq!(run(Path::new("ldb"), &db, line).out, "OK\n", "{line}");
    }
    for line in [
        "dump --ttl --timestamp",
        "dump --ttl --timestamp --hex",
        "dump --ttl --timestamp --count_delim",
        "dump --ttl --timestamp --max_keys=1",
        "dump --ttl --timestamp --start_time=1700000000 --end_time=1900000000",
        "dump --ttl --start_time=2000000000",
        "dump --ttl --end_time=1600000000",
        "dump --ttl --bucket=1000000000",
        "dump --ttl --bucket=0",
        "dump --ttl --timestamp --bucket=100000000 --start_time=1700000000 --end_time=1950000000",
        "scan --ttl --timestamp --no_value",
    ] {
        let flag = format!("--db={}", db.display());
        let words: Vec<&str> = ["TZ=UTC", "ldb", &flag].into_iter().chain(line.split(' ')).collect();
        let other = program(Path::new("/usr/bin/env"), &words, b"");
        let one = run(&ours, &db, line);
        assert_eq!((one.status, one.out), (0, other.out), "{line}");
    }
}

#[test]
fn a_secondary_reads_beside_the_writer() {
    let (dir, ldb) = place();
    let path = dir.path().join("db");
    let db = Db::open(&path).unwrap();
    db.put("k", "v").unwrap();
    let second = dir.path().join("second");
    let flag = format!("--secondary_path={}", second.display());
    let ran = |line: &str| run(&ldb, &path, &format!("{line} {flag}"));
    assert_eq!(ran("scan").out, "k ==> v\n");
    db.put("k", "w").unwrap();
    for (line, out) in [
        ("get k", "w\n"),
        ("multi_get k", "k ==> w\n"),
        ("get_entity k", ":w\n"),
        ("dump", "k ==> w\nKeys in range: 1\n"),
        ("idump --count_only", "Internal keys in range: 2\n"),
        ("checkconsistency", "OK\n"),
        ("get_property rocksdb.estimate-num-keys", "rocksdb.estimate-num-keys: 2\n"),
    ] {
        let ran = ran(line);
        assert_eq!((ran.status, ran.out.as_str(), ran.err.as_str()), (0, out, ""), "{line}");
    }
    db.close().unwrap();
    for line in
        ["put k x", "delete k", "compact", "create_column_family f", "query", "checkpoint --checkpoint_dir=c"]
    {
        let ran = ran(line);
        assert!(ran.status == 1 && ran.err.contains("a secondary only reads"), "{line}: {ran:?}");
    }
    for line in ["scan --ttl", "scan --use_txn", "repair"] {
        assert_eq!(ran(line).status, 2, "{line}");
    }
    assert!(!second.exists(), "nothing is written there");
    assert_eq!(run(&ldb, &path, "get k").out, "w\n");
}

/// Each program reads, as a secondary, a database that the other one has open or has written, and refuses writes.
#[test]
fn a_secondary_reads_as_rocksdbs_ldb_does() {
    if let Err(skip) = Tools::available() {
        return skip.announce("a_secondary_reads_as_rocksdbs_ldb_does");
    }
    let (dir, ours) = place();
    let theirs = Path::new("ldb");
    let db = dir.path().join("db");
    for line in ["put a 1 --create_if_missing", "put b 2"] {
        assert_eq!(run(theirs, &db, line).status, 0, "{line}");
    }
    let flag = format!("--secondary_path={}", dir.path().join("second").display());
    for line in ["dump", "get b", "idump --hex", "put c 3", "delete a", "compact", "list_live_files_metadata"]
    {
        let line = format!("{line} {flag}");
        let (one, other) = (run(&ours, &db, &line), run(theirs, &db, &line));
        assert_eq!((one.status, &one.out), (other.status, &other.out), "{line}: {one:?} {other:?}");
    }
}

/// A table is not taken out unseen: the command names what takes out damaged ones.
#[test]
fn a_table_stays() {
    let (dir, ldb) = place();
    let db = dir.path().join("db");
    assert_eq!(run(&ldb, &db, "put k v --create_if_missing").status, 0);
    let ran = run(&ldb, &db, "unsafe_remove_sst_file 12");
    assert!(ran.status == 1 && ran.err.contains("table 12 stays") && ran.err.contains("repair"), "{ran:?}");
    assert_eq!(run(&ldb, &db, "unsafe_remove_sst_file x").status, 2);
    assert_eq!(run(&ldb, &db, "unsafe_remove_sst_file").status, 2);
    assert_eq!(run(&ldb, &db, "get k").out, "v\n");
}
