//! A checkpoint has exactly the state of one moment, opens here and in RocksDB, and shares only files that never change.

use ashlar_env::sim::{CallClass, CrashMode, Repeat, SimEnv};
use ashlar_testkit::judge::{JudgeError, MERGING, Opening};
use ashlar_testkit::{Judge, JudgeVersion};
use ashlardb::prelude::*;
use ashlardb::{CheckpointOptions, CompactRangeOptions, ErrorKind, FormatLevel, IoKind, Read, WriteOptions};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

fn entries(from: &impl Read) -> Entries {
    from.scan(..).map(|entry| entry.unwrap()).map(|(k, v)| (k.to_vec(), v.to_vec())).collect()
}

fn names(dir: &Path, ending: &str) -> Vec<String> {
    let all = fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = all.filter(|name| name.ends_with(ending)).collect();
    names.sort();
    names
}

fn small(dir: &Path) -> Db {
    let builder = Db::builder(dir).family("other", |f| f);
    builder.tune(|_, family| family.write_buffer_bytes = 64 << 10).open().unwrap()
}

/// Ends the writers when a test ends, in a panic too.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Writes batches over two families until `ended`: after batch `n` both have the keys 0 to `n`, and one key has `n`. Of
/// three batches, `unlogged` skip the WAL.
fn writes(db: &Db, ended: &AtomicBool, unlogged: u64) {
    let other = db.family("other").unwrap();
    for n in 0_u64.. {
        if ended.load(Ordering::Relaxed) {
            return;
        }
        let batch = WriteBatch::new();
        batch.put(n.to_be_bytes(), vec![b'x'; 300]).unwrap();
        batch.family(&other).put(n.to_be_bytes(), vec![b'y'; 300]).unwrap();
        batch.put("newest", n.to_be_bytes()).unwrap();
        db.writing(WriteOptions::new().disable_wal(n % 3 < unlogged)).write(&batch).unwrap();
    }
}

fn wait_for_the_first(db: &Db) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while db.get("newest").unwrap().is_none() {
        assert!(Instant::now() < deadline, "no batch is written");
        std::thread::yield_now();
    }
}

/// The number of batches that the copy in `dir` has; it has each of them as a whole.
fn batches_of(dir: &Path) -> u64 {
    let db = Db::open(dir).unwrap();
    assert!(db.recovery().is_clean(), "{}", db.recovery());
    let (one, two) = (entries(&db), entries(&db.family("other").unwrap()));
    let newest = u64::from_be_bytes(one[&b"newest"[..]].as_slice().try_into().unwrap());
    assert_eq!((one.len() as u64, two.len() as u64), (newest + 2, newest + 1));
    assert!((0..=newest).all(|n| two.contains_key(n.to_be_bytes().as_slice())));
    newest + 1
}

#[test]
fn copies_beside_a_writer_are_whole_and_ever_newer() {
    let home = tempfile::tempdir().unwrap();
    let db = small(&home.path().join("db"));
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _ends = Ends(&ended);
        scope.spawn(|| writes(&db, &ended, 0));
        wait_for_the_first(&db);
        let mut before = 0;
        for n in 0..8 {
            let copy = home.path().join(format!("copy{n}"));
            let options = CheckpointOptions::new().flush(n % 3 == 2);
            let mut last = None;
            let made = db.checkpoint_with(&copy, options, |done| last = Some(*done)).unwrap();
            let done = last.expect("at least a WAL file is copied");
            assert_eq!((done.files, done.bytes), (done.files_total, done.bytes_total));
            assert_eq!((done.files, done.bytes), (made.linked + made.copied, made.bytes));
            if n % 2 == 1 {
                db.compact_range(.., CompactRangeOptions::default()).unwrap();
            }
            let batches = batches_of(&copy);
            assert!(batches > before || n == 0, "copy {n} has {batches} batches, the one before {before}");
            assert_eq!(made.sequence.get(), 3 * batches, "a copy has the writes up to its sequence number");
            before = batches;
        }
    });
    assert_eq!(names(home.path(), ".tmp"), [""; 0]);
}

#[test]
fn neither_database_changes_the_other() {
    let home = tempfile::tempdir().unwrap();
    let (path, copy) = (home.path().join("db"), home.path().join("copy"));
    let db = small(&path);
    for n in 0..2000_u32 {
        db.put(n.to_be_bytes(), vec![1; 100]).unwrap();
    }
    db.flush().unwrap();
    db.put("in the WAL", "1").unwrap();
    let made = db.checkpoint(&copy).unwrap();
    assert!(made.linked > 0 && made.copied == 1, "{made:?}");
    let at_copy = entries(&db);
    let table = names(&copy, ".sst").remove(0);
    assert_eq!(fs::metadata(copy.join(&table)).unwrap().nlink(), 2);

    db.delete_range(0_u32.to_be_bytes(), 1500_u32.to_be_bytes()).unwrap();
    db.compact_range(.., CompactRangeOptions::default()).unwrap();
    assert!(!path.join(&table).exists(), "after the call obsolete files are removed again");
    let left = entries(&db);

    let second = small(&copy);
    assert_eq!(entries(&second), at_copy);
    second.delete_range(1000_u32.to_be_bytes(), 2000_u32.to_be_bytes()).unwrap();
    second.compact_range(.., CompactRangeOptions::default()).unwrap();
    second.close().unwrap();
    assert_eq!(entries(&db), left);
    db.close().unwrap();
    assert_eq!(entries(&small(&path)), left);
    assert_eq!(entries(&small(&copy)).len(), 1001);
}

#[test]
fn writes_without_the_wal_are_in_the_copy() {
    let home = tempfile::tempdir().unwrap();
    let db = small(&home.path().join("db"));
    db.writing(WriteOptions::new().disable_wal(true)).put("k", "unlogged").unwrap();
    db.checkpoint(home.path().join("copy")).unwrap();
    let copy = Db::open(home.path().join("copy")).unwrap();
    assert_eq!(copy.get("k").unwrap().as_deref(), Some(&b"unlogged"[..]));

    db.pause_background_work().unwrap();
    let e = db.checkpoint(home.path().join("second")).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Aborted, "{e}");
    assert!(!home.path().join("second").exists());
    db.continue_background_work().unwrap();
    db.checkpoint(home.path().join("second")).unwrap();
}

#[test]
fn buffered_records_and_a_wal_dir_elsewhere_are_in_the_one_directory() {
    let home = tempfile::tempdir().unwrap();
    let builder = Db::builder(home.path().join("db")).wal_dir(home.path().join("wal"));
    let db = builder.tune(|db, _| db.manual_wal_flush = true).open().unwrap();
    db.put("k", "buffered").unwrap();
    let copy = home.path().join("a/b/copy");
    db.checkpoint(&copy).unwrap();
    assert_eq!(names(&copy, ".log").len(), 1);
    let opened = Db::open(&copy).unwrap();
    assert_eq!(opened.get("k").unwrap().as_deref(), Some(&b"buffered"[..]));
    opened.put("only here", "1").unwrap();
    db.put("only there", "1").unwrap();
    assert_eq!((entries(&opened).len(), entries(&db).len()), (2, 2));
}

#[test]
fn a_wrong_place_is_refused_and_nothing_in_it_changes() {
    let home = tempfile::tempdir().unwrap();
    let at = |name: &str| home.path().join(name);
    let db = small(&at("db"));
    db.put("k", "v").unwrap();
    let refused = |into: &str, why: &str| {
        let e = db.checkpoint(at(into)).unwrap_err();
        assert!(e.kind() == ErrorKind::InvalidArgument && e.to_string().contains(why), "{e}");
    };
    refused("db", "inside");
    refused("db/copy", "inside");
    fs::create_dir(at("full")).unwrap();
    fs::write(at("full/note"), "mine").unwrap();
    refused("full", "something in the place");
    fs::write(at("file"), "mine").unwrap();
    refused("file", "something in the place");
    fs::create_dir(at("new.tmp")).unwrap();
    fs::write(at("new.tmp/note"), "mine").unwrap();
    refused("new", "note");
    assert_eq!(fs::read(at("new.tmp/note")).unwrap(), b"mine");
    let e = db.checkpoint("").unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidArgument, "{e}");

    // The remains of an interrupted checkpoint go; those of an opened database stay.
    fs::create_dir(at("second.tmp")).unwrap();
    fs::write(at("second.tmp/000009.sst"), "half").unwrap();
    fs::create_dir(at("second")).unwrap();
    db.checkpoint(at("second")).unwrap();
    assert_eq!(Db::open(at("second")).unwrap().get("k").unwrap().as_deref(), Some(&b"v"[..]));
    fs::rename(at("second"), at("third.tmp")).unwrap();
    refused("third", "IDENTITY");
    std::os::unix::fs::symlink(at("db"), at("link")).unwrap();
    refused("link/copy", "inside");
    fs::create_dir(at("db/lost")).unwrap();
    std::os::unix::fs::symlink(at("db/lost"), at("deep link")).unwrap();
    refused("deep link/a/copy", "inside");

    let read_only = Db::builder(at("db")).read_only(true).open().unwrap();
    assert_eq!(read_only.checkpoint(at("fourth")).unwrap_err().kind(), ErrorKind::NotSupported);
    db.close().unwrap();
    assert!(matches!(db.checkpoint(at("fifth")).unwrap_err().kind(), ErrorKind::Shutdown(_)));
    assert!(!at("fourth").exists() && !at("fifth").exists() && !at("fifth.tmp").exists());
}

/// The MANIFEST does not say when a blob file becomes obsolete.
#[test]
fn blob_files_that_no_table_needs_are_not_asked_for() {
    let home = tempfile::tempdir().unwrap();
    let db = Db::builder(home.path().join("db")).default_family(|f| f.blob_files(10)).open().unwrap();
    for round in 0..3 {
        db.put("k", vec![round; 100]).unwrap();
        db.flush().unwrap();
        db.compact().unwrap();
        let copy = home.path().join(round.to_string());
        db.checkpoint(&copy).unwrap();
        assert_eq!(Db::open(copy).unwrap().get("k").unwrap().as_deref(), Some(&[round; 100][..]));
    }
}

/// A flush beside the writers had a part of the batches that came after the moment.
#[test]
fn a_copy_beside_writers_that_skip_the_wal_is_whole() {
    let home = tempfile::tempdir().unwrap();
    let db = small(&home.path().join("db"));
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _ends = Ends(&ended);
        scope.spawn(|| writes(&db, &ended, 2));
        wait_for_the_first(&db);
        for n in 0..ashlar_testkit::report::scale(4, 10) {
            let copy = home.path().join(format!("copy{n}"));
            db.checkpoint(&copy).unwrap();
            batches_of(&copy);
        }
    });
}

#[test]
fn of_copies_to_one_place_at_most_one_is_made() {
    let home = tempfile::tempdir().unwrap();
    let db = small(&home.path().join("db"));
    for n in 0..1000_u32 {
        db.put(n.to_be_bytes(), vec![1; 100]).unwrap();
    }
    db.flush().unwrap();
    let mut copies = 0;
    for round in 0..40 {
        let copy = home.path().join(round.to_string());
        let made: Vec<_> = std::thread::scope(|scope| {
            let all: Vec<_> = (0..4).map(|_| scope.spawn(|| db.checkpoint(&copy))).collect();
            all.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let count = made.iter().filter(|made| made.is_ok()).count();
        assert!(count <= 1 && copy.exists() == (count == 1), "{made:?}");
        if count == 1 {
            assert_eq!(entries(&Db::open(&copy).unwrap()).len(), 1000);
            copies += 1;
        }
    }
    assert!(copies > 0);
}

#[test]
fn a_missing_wal_file_is_an_error() {
    let home = tempfile::tempdir().unwrap();
    let db = small(&home.path().join("db"));
    db.put("k", "v").unwrap();
    for name in names(&home.path().join("db"), ".log") {
        fs::remove_file(home.path().join("db").join(name)).unwrap();
    }
    let e = db.checkpoint(home.path().join("copy")).unwrap_err();
    assert!(e.is_corruption() && e.to_string().contains(".log"), "{e}");
    assert!(!home.path().join("copy").exists());
}

fn rocksdb_reads(dir: &Path, expected: &Entries, version: JudgeVersion) -> Result<(), JudgeError> {
    let mut judge = Judge::spawn(version)?;
    judge.open(dir, Opening::Existing, MERGING)?;
    judge.verify()?;
    let found: Entries = judge.dump("default")?.into_iter().collect();
    assert_eq!(&found, expected);
    judge.close()
}

#[test]
fn rocksdb_opens_a_checkpoint() {
    let run = || -> Result<(), JudgeError> {
        for version in JudgeVersion::ALL {
            let home = tempfile::tempdir().unwrap();
            let level = if version == JudgeVersion::V7 { FormatLevel::V7_8 } else { FormatLevel::default() };
            let builder = Db::builder(home.path().join("db")).format_level(level);
            let db = builder
                .tune(|_, family| {
                    family.blob.enabled = true;
                    family.blob.min_blob_bytes = 1000;
                })
                .open()
                .unwrap();
            for n in 0..500_u32 {
                db.put(n.to_be_bytes(), vec![b'v'; 10 * n as usize]).unwrap();
            }
            db.flush().unwrap();
            db.put("in the WAL", "1").unwrap();
            db.checkpoint(home.path().join("copy")).unwrap();
            rocksdb_reads(&home.path().join("copy"), &entries(&db), version)?;
        }
        Ok(())
    };
    match run() {
        Err(JudgeError::Skip(skip)) => skip.announce("RocksDB opens a checkpoint"),
        result => result.unwrap(),
    }
}

/// The database of the checkpoint came from RocksDB, with an OPTIONS file that names its own `wal_dir`.
#[test]
fn a_checkpoint_of_rocksdbs_directory_opens() {
    let run = || -> Result<(), JudgeError> {
        let home = tempfile::tempdir().unwrap();
        let mut judge = Judge::spawn(JudgeVersion::V11)?;
        judge.open(&home.path().join("db"), Opening::Create, MERGING)?;
        judge.close()?;
        let db = Db::open(home.path().join("db")).unwrap();
        db.put("k", "v").unwrap();
        db.checkpoint(home.path().join("copy")).unwrap();
        let copy = Db::open(home.path().join("copy")).unwrap();
        assert_eq!(copy.get("k").unwrap().as_deref(), Some(&b"v"[..]));
        copy.close().unwrap();
        rocksdb_reads(&home.path().join("copy"), &entries(&db), JudgeVersion::V11)
    };
    match run() {
        Err(JudgeError::Skip(skip)) => skip.announce("a checkpoint of RocksDB's directory"),
        result => result.unwrap(),
    }
}

/// A database with a table, a WAL file and two families, on a simulated machine.
fn simulated() -> (SimEnv, Db) {
    let sim = SimEnv::new(7);
    let db = Db::builder("/db").env(sim.env()).family("other", |f| f).open().unwrap();
    for n in 0..200_u32 {
        db.put(n.to_be_bytes(), vec![b'v'; 50]).unwrap();
    }
    db.flush().unwrap();
    db.writing(WriteOptions::synced()).put("in the WAL", "1").unwrap();
    db.family("other").unwrap().put("in the WAL", "2").unwrap();
    (sim, db)
}

/// The copy on this machine is complete, or does not exist and the next attempt makes it.
fn copy_is_whole_or_absent(sim: &SimEnv, expected: &Entries, what: &str) -> bool {
    let there = sim.env().fs.metadata(Path::new("/copy")).unwrap().is_some();
    if !there {
        let db = Db::builder("/db").env(sim.env()).open().unwrap();
        db.checkpoint("/copy").unwrap_or_else(|e| panic!("{what}: {e}"));
    }
    let copy = Db::builder("/copy").env(sim.env()).open().unwrap_or_else(|e| panic!("{what}: {e}"));
    assert_eq!(&entries(&copy), expected, "{what}");
    there
}

#[test]
fn a_power_cut_leaves_the_whole_copy_or_none() {
    let (sim, db) = simulated();
    let expected = entries(&db);
    let before = sim.calls_of(CallClass::Change);
    for at in 1..200 {
        sim.photograph_at(before + at, CrashMode::DROP_ALL);
        sim.photograph_at(before + at, CrashMode::KILL);
    }
    db.checkpoint("/copy").unwrap();
    let calls = sim.calls_of(CallClass::Change) - before;
    let after = sim.crash(CrashMode::DROP_ALL);
    assert!(copy_is_whole_or_absent(&after, &expected, "after the call"), "the copy was not durable");
    let photographs = sim.photographs();
    assert!(photographs.len() as u64 >= 2 * (calls - 1) && calls < 200, "{calls}");
    for (at, mode, machine) in photographs {
        copy_is_whole_or_absent(&machine, &expected, &format!("call {}, {mode:?}", at - before));
    }
}

#[test]
fn a_call_that_fails_leaves_no_copy_and_the_next_attempt_succeeds() {
    for class in [CallClass::Read, CallClass::Change] {
        let mut at = 0;
        loop {
            at += 1;
            let (sim, db) = simulated();
            let expected = entries(&db);
            sim.fail_call(class, sim.calls_of(class) + at, Repeat::Once, IoKind::NoSpace);
            let made = db.checkpoint("/copy");
            if sim.injected() == 0 {
                made.unwrap();
                break;
            }
            sim.heal();
            let there = sim.env().fs.metadata(Path::new("/copy")).unwrap().is_some();
            let what = format!("{class:?} {at}: {made:?}");
            assert_eq!(there, made.is_ok(), "{what}");
            drop(db);
            copy_is_whole_or_absent(&sim, &expected, &what);
        }
        assert!(at > 10, "{class:?}: {at}");
    }
}
