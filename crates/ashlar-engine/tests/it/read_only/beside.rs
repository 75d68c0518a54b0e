//! Repeated read-only opens beside threads and processes that write, flush and compact without a pause.

use super::{open_read_only, small};
use crate::pauses::in_pauses;
use ashlar_base::FamilyId;
use ashlar_engine::batch::WriteBatch;
use ashlar_engine::{Db, OpenFamily};
use ashlar_env::Env;
use ashlar_options::{DbOptions, ReadOptions, WriteOptions};
use ashlar_testkit::judge::{JudgeError, Opening};
use ashlar_testkit::{Change, Judge, JudgeVersion, report};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const KEYS: u64 = 40;

/// The changes of write `n`: one key in each family gets the value `n`, and so does the key `last`.
fn changes(n: u64) -> Vec<Change> {
    let put = |family: &str, key: String| {
        let value = format!("{n:0400}").into_bytes();
        Change::Put { family: family.to_owned(), key: key.into_bytes(), value }
    };
    let both = |family| [put(family, format!("key{:02}", n % KEYS)), put(family, "last".to_owned())];
    ["default", "one"].into_iter().flat_map(both).collect()
}

fn number(db: &Db, family: &str, key: &str) -> u64 {
    let family = db.family(family).unwrap();
    let value = db.get(&family, key.as_bytes(), ReadOptions::default()).unwrap();
    value.map_or(0, |v| std::str::from_utf8(&v).unwrap().parse().unwrap())
}

/// Checks that the database shows exactly the writes up to some number, and returns that number.
fn check(db: &Db) -> u64 {
    let last = number(db, "default", "last");
    for family in ["default", "one"] {
        assert_eq!(number(db, family, "last"), last, "{family}");
        for key in 0..KEYS {
            let newest =
                (0..KEYS).map(|back| last.saturating_sub(back)).find(|n| n % KEYS == key).unwrap_or(0);
            assert_eq!(number(db, family, &format!("key{key:02}")), newest, "{family} {key} of {last}");
        }
    }
    last
}

/// The writer of [`read_beside`] waits when it is so many writes ahead of an open. A slow machine opens more slowly with
/// each record of the MANIFEST, and would never catch up with a writer that goes on for ever.
const AHEAD: u64 = 1000;

/// Opens and reads `opens` times. Meanwhile another thread calls `write` with 1, 2, 3, … until all reads are done.
fn read_beside<E: Send + std::fmt::Debug>(
    dir: &Path,
    opens: usize,
    write: impl FnMut(u64) -> Result<(), E> + Send,
) -> (u64, usize) {
    /// Ends both threads, also when one of them panics.
    struct Over<'a>(&'a AtomicBool);
    impl Drop for Over<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Release);
        }
    }
    let (written, over) = (AtomicU64::new(0), AtomicBool::new(false));
    let opened_at = AtomicU64::new(0);
    let mut write = write;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _over = Over(&over);
            while !over.load(Ordering::Acquire) {
                let next = written.load(Ordering::Relaxed) + 1;
                if next > opened_at.load(Ordering::Acquire) + AHEAD {
                    std::thread::yield_now();
                    continue;
                }
                write(next).unwrap();
                written.store(next, Ordering::Release);
            }
        });
        let _over = Over(&over);
        let mut states = std::collections::BTreeSet::new();
        let (mut open, mut wanted) = (0, 50);
        while open < opens && !over.load(Ordering::Acquire) {
            let before = written.load(Ordering::Acquire);
            if before < wanted {
                std::thread::yield_now();
                continue;
            }
            wanted = before + 3;
            opened_at.store(before, Ordering::Release);
            let db = open_read_only(Env::os().unwrap(), dir).unwrap_or_else(|e| panic!("open {open}: {e}"));
            assert!(
                db.recovery().is_clean(),
                "the writer's unfinished record is no damage: {}",
                db.recovery()
            );
            let seen = check(&db);
            assert!(seen >= before, "{seen} seen, {before} were written before the open");
            states.insert(seen);
            open += 1;
        }
        (written.load(Ordering::Acquire), states.len())
    })
}

#[test]
fn our_own_writer() {
    let _readers = crate::beside_others();
    let dir = tempfile::tempdir().unwrap();
    let one = OpenFamily { name: "one".to_owned(), options: small() };
    let db = Db::open(Env::os().unwrap(), dir.path(), DbOptions::default(), vec![one], small()).unwrap();
    let opens = report::scale(60, 200);
    let (writes, states) = read_beside(dir.path(), opens, |n| {
        let mut batch = WriteBatch::new();
        for change in changes(n) {
            let Change::Put { family, key, value } = change else { continue };
            batch.put(db.family(&family).unwrap().id(), &key, &value)?;
        }
        db.write(&mut batch, WriteOptions::default()).map(drop)
    });
    let names = db.env().fs.list(dir.path()).unwrap();
    let numbers: u64 = names.iter().filter_map(|e| e.name.split('.').next()?.parse().ok()).max().unwrap_or(0);
    report::figure(&format!(
        "read-only beside our writer: {opens} opens of {states} states during {writes} writes and about {numbers} files made; \
         0 errors, 0 writes missing"
    ));
    assert!(states > opens / 4 && numbers > 30, "{states} states, file numbers to {numbers}");
}

/// Regression: both attempts of the open met the record between two writes of its writer, and the report named a loss.
#[test]
fn a_record_that_is_ended_in_a_pause_is_no_damage() {
    let _readers = crate::beside_others();
    let dir = tempfile::tempdir().unwrap();
    let options = DbOptions { mapped_wal: false, ..DbOptions::default() };
    let db = Db::open(Env::os().unwrap(), dir.path(), options, vec![], small()).unwrap();
    for n in 1..=3 {
        let mut batch = WriteBatch::new();
        batch.put(FamilyId::DEFAULT, b"last", format!("{n}").as_bytes()).unwrap();
        db.write(&mut batch, WriteOptions::default()).unwrap();
    }
    let mut paths = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path());
    let log = paths.find(|path| path.extension().is_some_and(|e| e == "log")).unwrap();
    let whole = std::fs::read(&log).unwrap();
    std::fs::write(&log, &whole[..whole.len() - 3]).unwrap();
    let (path, pauses) = (log.clone(), Arc::new(AtomicU64::new(0)));
    let paused = Arc::clone(&pauses);
    let env = in_pauses(&Env::os().unwrap(), move || {
        paused.fetch_add(1, Ordering::Relaxed);
        std::fs::write(&path, &whole).unwrap();
    });
    let reader = open_read_only(env, dir.path()).unwrap();
    assert!(reader.recovery().is_clean(), "{}", reader.recovery());
    assert_eq!((number(&reader, "default", "last"), pauses.load(Ordering::Relaxed)), (3, 1));
}

fn rocksdb(version: JudgeVersion, options: &str) -> Result<(u64, usize), JudgeError> {
    let dir = tempfile::tempdir().unwrap();
    let mut judge = Judge::spawn(version)?;
    let options = format!(
        "write_buffer_size=65536;target_file_size_base=32768;max_bytes_for_level_base=131072;\
         level0_file_num_compaction_trigger=2;{options}"
    );
    judge.open(dir.path(), Opening::Create, &options)?;
    judge.create_family("one")?;
    Ok(read_beside(dir.path(), report::scale(40, 600), |n| judge.write(&changes(n), false)))
}

#[test]
fn rocksdb_as_the_writer() {
    let _readers = crate::beside_others();
    for version in JudgeVersion::ALL {
        for options in ["", "recycle_log_file_num=3;wal_recovery_mode=kPointInTimeRecovery"] {
            match rocksdb(version, options) {
                Err(JudgeError::Skip(skip)) => return skip.announce("rocksdb_as_the_writer"),
                Err(e) => panic!("{}: {e}", version.name()),
                Ok((writes, states)) => report::figure(&format!(
                    "read-only beside RocksDB {} ({}): {states} states during {writes} writes; 0 errors, 0 writes missing",
                    version.name(),
                    if options.is_empty() { "fresh logs" } else { "recycled logs" }
                )),
            }
        }
    }
}
