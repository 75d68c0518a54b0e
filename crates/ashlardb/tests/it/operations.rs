//! Operations on many keys, ranges and files at once.

use crate::store::{copy, listing};
use ashlar_base::stats::{Statistics, Ticker};
use ashlar_testkit::judge::{JudgeError, Opening};
use ashlar_testkit::{Judge, JudgeVersion, Rng, report};
use ashlardb::{Compression, Db, FormatLevel, MayExist, MemtableStats, Read as _, SizeOptions, Write as _};
use std::path::Path;
use std::sync::Arc;

/// Small tables and blocks on several levels.
fn open(dir: &Path, statistics: Option<Arc<Statistics>>) -> Db {
    let builder = Db::builder(dir).format_level(FormatLevel::V7_8).tune(move |db, family| {
        db.statistics.clone_from(&statistics);
        family.write_buffer_bytes = 256 << 10;
        family.table.block_size = 1024;
        family.table.compression = Compression::None;
        family.compaction.target_file_bytes = 32 << 10;
        family.compaction.base_level_bytes = 64 << 10;
    });
    builder.open().unwrap()
}

fn key(i: usize) -> Vec<u8> {
    format!("key{i:06}").into_bytes()
}

fn value(i: usize) -> Vec<u8> {
    format!("value {i} ").repeat(8).into_bytes()
}

/// Even numbers up to `to`, some written twice, some deleted.
fn fill(db: &Db, to: usize) {
    for i in (0..to).step_by(2) {
        db.put(key(i), b"an older value").unwrap();
    }
    db.flush().unwrap();
    for i in (0..to).step_by(2) {
        if i % 14 == 0 { db.delete(key(i)).unwrap() } else { db.put(key(i), value(i)).unwrap() }
    }
}

#[test]
fn many_keys_are_read_as_one_by_one_with_fewer_looks_into_blocks() {
    let dir = tempfile::tempdir().unwrap();
    let statistics = Arc::new(Statistics::new());
    let db = open(dir.path(), Some(Arc::clone(&statistics)));
    fill(&db, 20_000);
    // A compaction looks into blocks too.
    db.wait_for_background().unwrap();
    let blocks = || statistics.ticker(Ticker::BlockCacheHit) + statistics.ticker(Ticker::BlockCacheMiss);
    let mut rng = Rng::new(5);
    let keys: Vec<Vec<u8>> = (0..4000).map(|_| key(rng.below(20_100))).collect();
    for state in ["in several places", "compacted"] {
        let before = blocks();
        let one_by_one: Vec<_> = keys.iter().map(|k| db.get(k).unwrap()).collect();
        let between = blocks();
        let many = db.multi_get(&keys).unwrap();
        let (single, batched) = (between - before, blocks() - between);
        assert_eq!(many.len(), keys.len());
        for ((key, one), many) in keys.iter().zip(&one_by_one).zip(&many) {
            assert_eq!(one.as_deref(), many.as_deref(), "{state}: {}", key.escape_ascii());
        }
        assert!(
            many.iter().flatten().count() > 1500 && batched * 3 < single * 2,
            "{state}: {batched} of {single}"
        );
        report::figure(&format!(
            "multi-get of {} keys, {state}: {batched} looks into blocks where single gets need {single}",
            keys.len()
        ));
        db.compact().unwrap();
    }
    assert_eq!(statistics.ticker(Ticker::NumberMultigetKeysRead), 8000);
    assert!(db.multi_get::<&[u8]>([]).unwrap().is_empty());
}

#[test]
fn what_may_not_exist_does_not() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path(), None);
    fill(&db, 6000);
    db.delete_range(key(100), key(200)).unwrap();
    // The filter of a table that a compaction has just made is not cached.
    db.wait_for_background().unwrap();
    let (mut no, mut missing) = (0, 0);
    for i in 0..6000 {
        let (exists, found) = (db.key_may_exist(key(i)).unwrap(), db.get(key(i)).unwrap());
        missing += usize::from(found.is_none());
        match exists {
            MayExist::No => {
                assert!(found.is_none(), "{i}");
                no += 1;
            }
            MayExist::Maybe => {}
            MayExist::Value(value) => assert_eq!(found.as_deref(), Some(&*value), "{i}"),
        }
    }
    assert!(no * 10 > missing * 9, "{no} of {missing} were ruled out");
}

#[test]
fn sizes_are_those_of_the_files() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path(), None);
    fill(&db, 20_000);
    let family = db.default_family();
    let files = |from: usize, to: usize| {
        family.approximate_sizes(&[(key(from), key(to))], SizeOptions::default()).unwrap()[0]
    };
    db.compact().unwrap();
    let total = db.default_family().shape().bytes();
    assert_eq!(files(0, 30_000), total);
    assert_eq!((files(30_000, 40_000), files(50, 50), files(90, 80)), (0, 0, 0));
    let mut rng = Rng::new(1);
    for _ in 0..200 {
        let (from, to) = (rng.below(20_000), rng.below(20_000));
        if from < to {
            let share = total as f64 * (to - from) as f64 / 20_000.0;
            let off = (files(from, to) as f64 - share).abs();
            // Values compress alike; a range ends inside of a block on both sides, and tables have their own tails.
            assert!(off < share * 0.1 + 8192.0, "{from}..{to}: {} bytes, {share} expected", files(from, to));
        }
    }
    assert_eq!(family.approximate_memtable_stats(key(0), key(30_000)).unwrap(), MemtableStats::default());
    for i in 0..500 {
        db.put(key(i), value(i)).unwrap();
    }
    let stats = family.approximate_memtable_stats(key(100), key(200)).unwrap();
    assert_eq!(stats.count, 100);
    assert!((100 * 60..100 * 250).contains(&stats.bytes), "{stats:?}");
    let all = SizeOptions::new().memtables(true);
    let both = family.approximate_sizes(&[(key(100), key(200))], all).unwrap()[0];
    assert_eq!(both, files(100, 200) + stats.bytes);
}

#[test]
fn files_of_a_range_go_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path(), None);
    fill(&db, 20_000);
    db.compact().unwrap();
    let before = listing(db.scan(..));
    let family = db.default_family();
    let tables = || db.property("rocksdb.levelstats").unwrap();
    let shape = tables();
    assert_eq!(family.delete_files_in_ranges(&["x"..]).unwrap(), 0);
    assert_eq!((tables(), listing(db.scan(..))), (shape, before.clone()));
    let (from, to) = (key(5000), key(15_000));
    let gone = family.delete_files_in_ranges(&[&from..=&to]).unwrap();
    assert!(gone > 5, "{gone} tables");
    let after = listing(db.scan(..));
    let outside = |list: &[(Vec<u8>, Vec<u8>)]| {
        list.iter().filter(|(k, _)| *k < from || *k > to).cloned().collect::<Vec<_>>()
    };
    assert_eq!(outside(&after), outside(&before));
    let left = after.len() - outside(&after).len();
    assert!(left < 500 && after.iter().all(|entry| before.contains(entry)), "{left} entries left inside");
    assert_eq!(db.health().cause.map(|e| e.to_string()), None);
    db.close().unwrap();
    let db = open(dir.path(), None);
    assert!(listing(db.scan(..)) == after && db.recovery().is_clean());
    db.close().unwrap();
    let read = |version| -> Result<_, JudgeError> {
        let mut judge = Judge::spawn(version)?;
        let copy = copy(dir.path());
        judge.open(copy.path(), Opening::Existing, "")?;
        judge.verify()?;
        judge.dump("default")
    };
    for version in JudgeVersion::ALL {
        match read(version) {
            Err(JudgeError::Skip(skip)) => return skip.announce("files_of_a_range_go_and_nothing_else"),
            found => assert!(found.unwrap() == after, "{}", version.name()),
        }
    }
}

#[test]
fn verifying_reads_every_byte_of_every_file() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path(), None);
    fill(&db, 4000);
    db.compact().unwrap();
    let mut steps = Vec::new();
    let sound = db.verify_checksums(|done| steps.push(*done)).unwrap();
    assert_eq!((sound.files, sound.bytes), (sound.files_total, sound.bytes_total));
    assert_eq!(sound.entries, listing(db.scan(..)).len() as u64);
    assert!(steps.len() as u64 == sound.files && steps.windows(2).all(|w| w[0].bytes < w[1].bytes));
    // Behind the back of the open database, whose cache has the block.
    let names = std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().path());
    let table = names.filter(|p| p.extension().is_some_and(|e| e == "sst")).max().unwrap();
    let good = std::fs::read(&table).unwrap();
    let mut found = 0;
    for at in (0..good.len()).step_by(good.len() / 40) {
        let mut bad = good.clone();
        bad[at] ^= 0x20;
        std::fs::write(&table, &bad).unwrap();
        // The index of the block index and the properties have bytes that mean nothing.
        if let Err(e) = db.verify_checksums(|_| {}) {
            assert!(e.is_corruption() && e.path() == Some(&*table), "{e}");
            found += 1;
        }
    }
    assert!(found >= 38, "{found} of 40 flips were found");
    std::fs::write(&table, &good).unwrap();
    assert_eq!(db.verify_checksums(|_| {}).unwrap(), sound);
}
