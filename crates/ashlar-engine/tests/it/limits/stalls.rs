//! What delays writers, and what must not: WAL files that idle families keep, writes that must not wait, limits on
//! background work. On the simulated machine.

use ashlar_base::error::BusyKind;
use ashlar_base::{Error, ErrorKind};
use ashlar_engine::batch::WriteBatch;
use ashlar_engine::{Db, OpenFamily};
use ashlar_env::sim::SimEnv;
use ashlar_format::compress::Compression;
use ashlar_options::{DbOptions, FamilyOptions, WriteOptions};
use ashlar_testkit::{Rng, report};
use std::path::Path;
use std::time::Duration;

const DIR: &str = "/data/db";
const DEFAULT: &str = "default";

/// Write buffers of 64 KiB.
fn family(max_write_buffers: usize) -> FamilyOptions {
    FamilyOptions { write_buffer_bytes: 64 << 10, max_write_buffers, ..FamilyOptions::default() }
}

fn open(sim: &SimEnv, options: DbOptions, family: FamilyOptions) -> Db {
    let default = OpenFamily { name: DEFAULT.to_owned(), options: family.clone() };
    Db::open(sim.env(), Path::new(DIR), options, vec![default], family).expect("opens")
}

fn put(db: &Db, family: &str, key: u64, bytes: usize, options: WriteOptions) -> Result<(), Error> {
    let family = db.family(family).expect("there");
    let mut batch = WriteBatch::new();
    batch.put(family.id(), format!("{key:08}").as_bytes(), &vec![7; bytes])?;
    db.write(&mut batch, options).map(drop)
}

fn log_bytes(sim: &SimEnv) -> u64 {
    let entries = sim.env().fs.list(Path::new(DIR)).expect("a directory");
    entries.iter().filter(|e| e.name.ends_with(".log")).map(|e| e.len).sum()
}

#[test]
fn an_idle_family_does_not_hold_the_logs_for_ever() {
    let _readers = crate::beside_others();
    let sim = SimEnv::new(3);
    let db = open(&sim, DbOptions::default(), family(2));
    db.create_family("idle", family(2)).expect("made");
    let idle = db.family("idle").expect("made");
    // Four times the sum of all write buffers, and the data written during their flushes.
    let bound = 4 * (64 << 10) * 2 * 2 + 4 * (64 << 10);
    let (mut most, mut written) = (0, 0u64);
    for key in 0..8000 {
        if key % 1000 == 0 {
            put(&db, "idle", key, 10, WriteOptions::default()).expect("a write");
        }
        put(&db, DEFAULT, key, 1000, WriteOptions::default()).expect("a write");
        written += 1000;
        sim.env().jobs.drive(2);
        most = most.max(log_bytes(&sim));
    }
    let tables = db.shape(&idle).levels.iter().map(|l| l.0).sum::<usize>();
    report::figure(&format!(
        "idle family: {written} bytes written beside it, logs {most} bytes at most, bound {bound}, cost {tables} small tables of {} bytes",
        db.shape(&idle).bytes()
    ));
    assert!(most <= bound, "logs of {most} bytes");
    assert!((1..=8).contains(&tables), "{tables}");
}

#[test]
fn a_write_that_must_not_wait_is_refused_at_once() {
    let _readers = crate::beside_others();
    let sim = SimEnv::new(4);
    let db = open(&sim, DbOptions::default(), family(2));
    let impatient = WriteOptions { no_slowdown: true, ..WriteOptions::default() };
    // Background jobs run only while a caller waits, so the memtables fill.
    let before = ashlar_env::Clock::now(sim.clock());
    let refused =
        (0..400).find_map(|key| put(&db, DEFAULT, key, 1000, impatient).err()).expect("two buffers fill");
    assert_eq!(refused.kind(), ErrorKind::Busy(BusyKind::Stalled), "{refused}");
    assert_eq!(ashlar_env::Clock::now(sim.clock()), before, "it waited");
    assert!(refused.to_string().starts_with("Result incomplete: "), "{refused}");
    db.wait_for_background().expect("flushed");
    put(&db, DEFAULT, 1, 1000, impatient).expect("there is room");
}

#[test]
fn a_write_of_low_priority_waits_while_compaction_is_behind() {
    let _readers = crate::beside_others();
    let sim = SimEnv::new(6);
    let mut shape = family(8);
    shape.compaction.l0_trigger = 2;
    shape.table.compression = Compression::None;
    let db = open(&sim, DbOptions::default(), shape);
    let lowly = WriteOptions { low_priority: true, ..WriteOptions::default() };
    let took = |key: u64, options: WriteOptions| {
        let before = ashlar_env::Clock::now(sim.clock());
        put(&db, DEFAULT, key, 1000, options).map(|()| ashlar_env::Clock::now(sim.clock()) - before)
    };
    assert_eq!(took(0, lowly).expect("a write"), Duration::ZERO, "nothing is due");
    db.abort_compactions().expect("none begins");
    let default = db.family(DEFAULT).expect("always there");
    for table in 0..4 {
        (0..50)
            .for_each(|key| put(&db, DEFAULT, key + table, 1000, WriteOptions::default()).expect("a write"));
        db.flush(std::slice::from_ref(&default)).expect("a flush");
    }
    assert!(db.pressure().debt_bytes > 0 && !db.pressure().stopped);
    assert_eq!(took(1, WriteOptions::default()).expect("a write"), Duration::ZERO, "others go on");
    let waited = took(2, lowly).expect("a write");
    assert!(waited > Duration::ZERO, "the write did not wait");
    let refused = took(3, WriteOptions { no_slowdown: true, ..lowly }).expect_err("it would wait");
    assert_eq!(refused.kind(), ErrorKind::Busy(BusyKind::Stalled));
    db.resume_compactions().expect("aborted before");
    db.wait_for_background().expect("caught up");
    assert_eq!(db.pressure().debt_bytes, 0);
    assert_eq!(took(4, lowly).expect("a write"), Duration::ZERO, "nothing is due any more");
}

#[test]
fn background_writing_keeps_to_its_rate() {
    let _readers = crate::beside_others();
    for atomic_flush in [false, true] {
        let limited = DbOptions { rate_limit_bytes: 100_000, atomic_flush, ..DbOptions::default() };
        // A megabyte at a tenth of a megabyte per second.
        let took = time_of_a_megabyte(limited.clone(), family(4));
        assert!((8.0..30.0).contains(&took), "{took}");
        let tuned = DbOptions { rate_limit_auto_tuned: true, ..limited };
        let waited_for = time_of_a_megabyte(tuned.clone(), family(4));
        assert!((took * 0.8..took * 1.2).contains(&waited_for), "{waited_for}, {took} at the whole limit");
        // One flush, for which no writer waits. The first tuned rate is half of the limit.
        let roomy = FamilyOptions { write_buffer_bytes: 8 << 20, ..family(4) };
        let unhurried = time_of_a_megabyte(tuned, roomy);
        assert!((16.0..24.0).contains(&unhurried), "{unhurried}");
    }
}

/// The seconds that it takes to write a megabyte and to flush it.
fn time_of_a_megabyte(options: DbOptions, mut shape: FamilyOptions) -> f64 {
    let sim = SimEnv::new(5);
    shape.table.compression = Compression::None;
    let db = open(&sim, options, shape);
    let family = db.family(DEFAULT).expect("always there");
    let begun = ashlar_env::Clock::now(sim.clock());
    let mut rng = Rng::new(9);
    for _ in 0..1000 {
        let key = rng.below(1_000_000) as u64;
        put(&db, DEFAULT, key, 1000, WriteOptions::default()).expect("a write");
    }
    db.flush(std::slice::from_ref(&family)).expect("flushes");
    let took = ashlar_env::Clock::now(sim.clock()) - begun;
    assert!(db.pressure().sustained_rate > 0.0 && !db.pressure().stopped);
    took.as_secs_f64()
}
