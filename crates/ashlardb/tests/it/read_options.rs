//! Each option of a read, through every verb that takes it.

use ashlar_env::sim::{CallClass, SimEnv};
use ashlar_env::{Clock, VirtualClock};
use ashlardb::options::IndexKind;
use ashlardb::prelude::*;
use ashlardb::{BusyKind, Compression, Env, ErrorKind, MayExist, Read, ReadTier};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

const NOT_CACHED: ErrorKind = ErrorKind::Busy(BusyKind::NotCached);
const KEYS: usize = 400;

fn key(n: usize) -> String {
    format!("k{n:04}")
}

/// A database in one table of many blocks, nothing of which is cached.
fn filled(env: Env, dir: &Path) -> Db {
    let db = Db::builder(dir).env(env).default_family(|f| f.compression(Compression::None)).open().unwrap();
    for n in 0..KEYS {
        db.put(key(n), [b'v'; 100]).unwrap();
    }
    db.flush().unwrap();
    db
}

/// The error of each verb that must fail so.
fn errors(of: &impl Read, n: usize) -> Vec<ErrorKind> {
    let kind = |e: ashlardb::Error| e.kind();
    vec![
        of.get(key(n)).map(drop).unwrap_err().kind(),
        of.get_entity(key(n)).map(drop).unwrap_err().kind(),
        of.multi_get([key(n), key(n + 1)]).map(drop).unwrap_err().kind(),
        of.explain_get(key(n)).map(drop).unwrap_err().kind(),
        of.scan(key(n)..).next().unwrap().map(drop).map_err(kind).unwrap_err(),
        of.scan(..=key(n)).next_back().unwrap().map(drop).map_err(kind).unwrap_err(),
        of.scan(key(n)..).cursor().and_then(|mut c| c.first().map(drop)).map_err(kind).unwrap_err(),
        of.scan(key(n)..).explain(9).map(drop).map_err(kind).unwrap_err(),
    ]
}

fn all_are(kinds: &[ErrorKind], kind: ErrorKind) {
    assert!(kinds.iter().all(|k| *k == kind), "{kinds:?}");
}

/// Turns one byte of the only file with this extension, the first one that belongs to a value.
fn damage(dir: &Path, extension: &str) {
    let files = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let of_kind: Vec<_> = files.filter(|path| path.extension().is_some_and(|e| e == extension)).collect();
    let mut bytes = std::fs::read(&of_kind[0]).unwrap();
    let at = bytes.windows(8).position(|w| w == b"vvvvvvvv").unwrap();
    bytes[at] = b'X';
    std::fs::write(&of_kind[0], bytes).unwrap();
    assert_eq!(of_kind.len(), 1);
}

#[test]
fn without_checksums_a_damaged_block_is_read_and_not_kept() {
    let dir = tempfile::tempdir().unwrap();
    let db = filled(Env::os().unwrap(), dir.path());
    damage(dir.path(), "sst");
    let trusting = db.reading(ReadOptions::new().verify_checksums(false));
    let cached = || db.int_property("rocksdb.block-cache-usage").unwrap();
    let before = cached();
    for _ in 0..2 {
        assert_eq!(trusting.get(key(0)).unwrap().unwrap()[0], b'X');
        assert_eq!(trusting.get_entity(key(0)).unwrap().unwrap().default_column().unwrap()[0], b'X');
        assert_eq!(trusting.multi_get([key(0)]).unwrap()[0].as_ref().unwrap()[0], b'X');
        assert_eq!(trusting.scan(..).next().unwrap().unwrap().1[0], b'X');
        assert_eq!(
            db.snapshot().unwrap().reading(ReadOptions::new().verify_checksums(false)).scan(..).count(),
            KEYS
        );
        all_are(&errors(&db, 0), ErrorKind::Corruption);
    }
    assert_eq!(cached(), before, "an unchecked block is in the cache");
}

#[test]
fn without_checksums_a_damaged_blob_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::builder(dir.path()).options("enable_blob_files=true;min_blob_size=10").open().unwrap();
    db.put(key(0), [b'v'; 100]).unwrap();
    db.flush().unwrap();
    damage(dir.path(), "blob");
    let trusting = db.reading(ReadOptions::new().verify_checksums(false));
    assert_eq!(trusting.get(key(0)).unwrap().unwrap()[0], b'X');
    assert_eq!(trusting.scan(..).next().unwrap().unwrap().1[0], b'X');
    assert!(db.get(key(0)).unwrap_err().is_corruption() && db.scan(..).next().unwrap().is_err());
    let cached = db.reading(ReadOptions::new().read_tier(ReadTier::BlockCache));
    assert_eq!(cached.get(key(0)).unwrap_err().kind(), NOT_CACHED, "blobs are not cached");
}

#[test]
fn the_tier_of_the_cache_reads_no_file() {
    let sim = SimEnv::new(1);
    let db = filled(sim.env(), Path::new("/db"));
    db.put("m", "in memory").unwrap();
    let options = ReadOptions::new().read_tier(ReadTier::BlockCache);
    let snapshot = db.snapshot().unwrap();
    for round in ["with the table open", "with the table closed"] {
        let reads = sim.calls_of(CallClass::Read);
        let cached = db.reading(options);
        all_are(&errors(&cached, 0), NOT_CACHED);
        all_are(&errors(&snapshot.reading(options), 0), NOT_CACHED);
        assert!(cached.get("m").unwrap().is_some(), "{round}");
        assert_eq!(cached.key_may_exist(key(0)).unwrap(), MayExist::Maybe, "{round}");
        assert_eq!(sim.calls_of(CallClass::Read), reads, "{round}");
        let e = cached.get(key(0)).unwrap_err();
        assert!(e.to_string().starts_with("Result incomplete: "), "{e}");
        // Keys of one cached block are answered, and a scan ends at the first block that is not cached.
        assert!(db.get(key(0)).unwrap().is_some());
        let reads = sim.calls_of(CallClass::Read);
        assert_eq!(cached.get(key(0)).unwrap().unwrap().len(), 100, "{round}");
        assert!(cached.multi_get([key(1), key(0)]).unwrap().iter().all(Option::is_some), "{round}");
        let listed: Vec<_> = cached.scan(..).collect();
        assert!((2..KEYS).contains(&listed.len()), "{}", listed.len());
        assert_eq!(listed.last().unwrap().as_ref().unwrap_err().kind(), NOT_CACHED);
        assert_eq!(sim.calls_of(CallClass::Read), reads, "{round}");
        // Closes every table that no read uses, with its blocks.
        db.set_db_options(&[("max_open_files", "0")]).unwrap();
    }
}

/// The partition of a key is read from the file, too, and so is its filter.
#[test]
fn the_tier_of_the_cache_reads_no_partition_of_an_index_or_a_filter() {
    let sim = SimEnv::new(1);
    let db = Db::builder("/db").env(sim.env()).tune(|_, family| {
        family.table.index = IndexKind::TwoLevel;
        (family.table.partition_filters, family.table.metadata_block_size) = (true, 64);
    });
    let db = db.open().unwrap();
    for n in 0..KEYS {
        db.put(key(n), [b'v'; 100]).unwrap();
    }
    db.flush().unwrap();
    // Opens the table, and reads the first partition.
    assert!(db.get(key(0)).unwrap().is_some());
    let cached = db.reading(ReadOptions::new().read_tier(ReadTier::BlockCache));
    let reads = sim.calls_of(CallClass::Read);
    assert!(cached.get(key(0)).unwrap().is_some());
    all_are(&errors(&cached, KEYS - 2), NOT_CACHED);
    assert_eq!(cached.key_may_exist(key(KEYS - 1)).unwrap(), MayExist::Maybe);
    assert_eq!(sim.calls_of(CallClass::Read), reads);
}

#[test]
fn the_tier_of_memtables_knows_no_table() {
    let dir = tempfile::tempdir().unwrap();
    let db = filled(Env::os().unwrap(), dir.path());
    db.put("m", "in memory").unwrap();
    let memtable = db.reading(ReadOptions::new().read_tier(ReadTier::Memtable));
    assert!(memtable.get(key(0)).unwrap().is_none() && memtable.get("m").unwrap().is_some());
    assert_eq!(memtable.multi_get([key(1), "m".to_owned()]).unwrap().iter().flatten().count(), 1);
    assert_eq!(memtable.key_may_exist(key(0)).unwrap(), MayExist::No);
    assert!(memtable.get_entity(key(0)).unwrap().is_none());
    assert_eq!((memtable.scan(..).count(), memtable.scan(..).rev().count()), (1, 1));
}

#[test]
fn the_tier_of_what_persists_leaves_unlogged_writes_out() {
    let dir = tempfile::tempdir().unwrap();
    let db = filled(Env::os().unwrap(), dir.path());
    let persisted = db.reading(ReadOptions::new().read_tier(ReadTier::Persisted));
    db.put(key(0), "logged").unwrap();
    assert_eq!(persisted.get(key(0)).unwrap().unwrap(), *b"logged");
    assert_eq!(persisted.scan(..).next().unwrap().unwrap().1, b"logged");
    // Both ends of a scan show the same part.
    db.put("m", "logged").unwrap();
    let mut both = persisted.scan(..);
    assert_eq!(both.next().unwrap().unwrap().1, b"logged");
    assert_eq!(both.next_back().unwrap().unwrap().0, b"m");
    db.writing(WriteOptions::new().disable_wal(true)).put(key(0), "unlogged").unwrap();
    assert_eq!(persisted.get(key(0)).unwrap().unwrap(), [b'v'; 100]);
    assert_eq!(persisted.scan(..).next().unwrap().unwrap().1, [b'v'; 100]);
    assert_eq!(db.get(key(0)).unwrap().unwrap(), *b"unlogged");
    db.flush().unwrap();
    assert_eq!(persisted.get(key(0)).unwrap().unwrap(), *b"unlogged");
}

fn since_1970(clock: &dyn Clock) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_micros(clock.unix_micros())
}

#[test]
fn a_deadline_ends_reads_of_files_and_scans() {
    let sim = SimEnv::new(1);
    let db = filled(sim.env(), Path::new("/db"));
    let second = Duration::from_secs(1);
    let until = since_1970(sim.clock()) + second;
    let limited = ReadOptions::new().deadline(until);
    let mut begun = db.reading(limited).scan(..).cursor().unwrap();
    assert!(begun.next().unwrap().is_some() && db.reading(limited).get(key(0)).unwrap().is_some());
    sim.clock().advance(second);
    let reads = sim.calls_of(CallClass::Read);
    let late = db.reading(limited);
    all_are(&errors(&late, KEYS / 2), ErrorKind::TimedOut);
    all_are(&errors(&db.snapshot().unwrap().reading(limited), KEYS / 2), ErrorKind::TimedOut);
    assert_eq!(sim.calls_of(CallClass::Read), reads, "a file was read after the deadline");
    assert!(late.get(key(0)).unwrap().is_some(), "an answer from the cache costs no time");
    // The cursor goes on in its block, and no further, although the rest is cached by now.
    assert_eq!(db.scan(..).count(), KEYS);
    let mut steps = 0;
    let ended = loop {
        match begun.next() {
            Ok(entry) => assert!(entry.is_some(), "the end"),
            Err(e) => break e,
        }
        steps += 1;
    };
    assert!(ended.kind() == ErrorKind::TimedOut && (1..KEYS / 2).contains(&steps), "{ended} {steps}");
    let before_1970 = SystemTime::UNIX_EPOCH - second;
    let passed = db.reading(ReadOptions::new().deadline(before_1970)).scan(..).next();
    assert_eq!(passed.unwrap().unwrap_err().kind(), ErrorKind::TimedOut);
}

/// A clock on which every look takes time.
#[derive(Debug, Default)]
struct Slow {
    clock: VirtualClock,
    micros_each: AtomicU64,
}

impl Clock for Slow {
    fn now(&self) -> Duration {
        self.clock.advance(Duration::from_micros(self.micros_each.load(Ordering::Relaxed)));
        self.clock.now()
    }

    fn unix_micros(&self) -> u64 {
        self.clock.unix_micros()
    }

    fn sleep(&self, d: Duration) {
        self.clock.sleep(d);
    }
}

#[test]
fn a_slow_read_of_a_file_times_out() {
    let (sim, slow) = (SimEnv::new(1), Arc::new(Slow::default()));
    let db = filled(Env { clock: Arc::clone(&slow) as _, ..sim.env() }, Path::new("/db"));
    let ms = Duration::from_millis(1);
    let limited = db.reading(ReadOptions::new().io_timeout(ms));
    slow.micros_each.store(5000, Ordering::Relaxed);
    all_are(&errors(&limited, 0), ErrorKind::TimedOut);
    assert!(db.get(key(0)).unwrap().is_some() && limited.get(key(0)).unwrap().is_some(), "from the cache");
    slow.micros_each.store(10, Ordering::Relaxed);
    assert_eq!(limited.scan(..).filter(Result::is_ok).count(), KEYS);
}

#[test]
fn an_io_timeout_of_zero_is_refused_by_the_first_call() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path()).unwrap();
    let wrong = db.reading(ReadOptions::new().io_timeout(Duration::ZERO));
    all_are(&errors(&wrong, 0), ErrorKind::InvalidArgument);
    assert_eq!(wrong.key_may_exist("k").unwrap_err().kind(), ErrorKind::InvalidArgument);
}
