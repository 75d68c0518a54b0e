//! Batches that are larger than the memtables may be.

use ashlar_engine::batch::WriteBatch;
use ashlar_engine::{Db, MemoryClass, OpenFamily};
use ashlar_env::sim::SimEnv;
use ashlar_options::{DbOptions, FamilyOptions, WriteOptions};
use std::path::Path;

fn write(db: &Db, bytes: usize) {
    let family = db.family("default").expect("always there");
    let mut batch = WriteBatch::new();
    for key in 0..bytes / 10_000 {
        batch.put(family.id(), format!("{key:08}").as_bytes(), &[7; 10_000]).expect("small");
    }
    db.write(&mut batch, WriteOptions::default()).expect("a write");
}

#[test]
fn a_large_batch_does_not_stay_in_memory() {
    // Readers of other tests delay when the memory of a flushed memtable is freed.
    let _alone = crate::alone();
    let sim = SimEnv::new(31);
    let options = DbOptions { memory_bytes: 16 << 20, ..DbOptions::default() };
    let none: Vec<OpenFamily> = Vec::new();
    let family = FamilyOptions::default();
    let db = Db::open(sim.env(), Path::new("/data/db"), options, none, family).expect("opens");
    let memtables = || {
        let report = db.memory_report();
        report.of(MemoryClass::WritableMemtables) + report.of(MemoryClass::ImmutableMemtables)
    };
    write(&db, 20 << 20);
    assert!(memtables() > 20 << 20, "it is not flushed yet");
    // No write follows; background jobs run.
    db.wait_for_background().expect("flushed");
    assert!(memtables() < 1 << 20, "{}", db.memory_report());
    // The second one arrives while the first is being flushed, and fills the memtables beside it.
    write(&db, 20 << 20);
    write(&db, 20 << 20);
    assert!(memtables() < 30 << 20, "it waited for the flush: {}", db.memory_report());
    db.wait_for_background().expect("flushed");
    assert!(memtables() < 1 << 20, "{}", db.memory_report());
    let held = db.memory_report();
    assert_eq!((held.of(MemoryClass::Batches), held.held_by_readers()), (0, 0), "{held}");
}

/// The second batch fills the last memtable that the family may have, and no write follows.
#[test]
fn a_large_batch_behind_a_flush_is_flushed_without_a_further_write() {
    let _alone = crate::alone();
    for atomic_flush in [false, true] {
        let sim = SimEnv::new(32);
        let options = DbOptions { atomic_flush, ..DbOptions::default() };
        let family =
            FamilyOptions { write_buffer_bytes: 1 << 20, max_write_buffers: 2, ..FamilyOptions::default() };
        let db = Db::open(sim.env(), Path::new("/data/db"), options, Vec::new(), family).expect("opens");
        write(&db, 2 << 20);
        write(&db, 2 << 20);
        assert!(db.memory_report().of(MemoryClass::WritableMemtables) > 2 << 20, "it waits for the flush");
        db.wait_for_background().expect("flushed");
        let report = db.memory_report();
        let held = report.of(MemoryClass::WritableMemtables) + report.of(MemoryClass::ImmutableMemtables);
        assert!(held < 1 << 20, "atomic_flush={atomic_flush}: {report}");
    }
}
