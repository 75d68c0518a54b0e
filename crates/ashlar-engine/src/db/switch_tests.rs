//! Memtables that a large batch filled are switched without a further write.

use super::super::Db;
use super::*;
use crate::batch::WriteBatch;
use ashlar_base::ErrorKind;
use ashlar_base::error::{BusyKind, IoKind};
use ashlar_env::sim::{CallClass, Repeat, SimEnv};
use ashlar_options::{DbOptions, FamilyOptions, WriteOptions};
use std::path::Path;

const BUFFER: usize = 1 << 20;

/// Two write buffers of 1 MiB.
fn open(sim: &SimEnv) -> Db {
    let family =
        FamilyOptions { write_buffer_bytes: BUFFER, max_write_buffers: 2, ..FamilyOptions::default() };
    Db::open(sim.env(), Path::new("/db"), DbOptions::default(), Vec::new(), family).unwrap()
}

/// Writes a batch that is larger than a memtable.
fn write_large(db: &Db) {
    let mut batch = WriteBatch::new();
    for key in 0..2 * BUFFER / 1000 {
        batch.put(FamilyId::DEFAULT, format!("{key:08}").as_bytes(), &[7; 1000]).unwrap();
    }
    db.write(&mut batch, WriteOptions::default()).unwrap();
}

/// The bytes in the current memtable, and the number of immutable ones.
fn memtables(db: &Db) -> (usize, usize) {
    let state = db.core().state();
    let family = state.families.get(FamilyId::DEFAULT).unwrap();
    (family.memtables.current().rep.filled(), family.memtables.immutable_len())
}

/// Regression: the flush could not take the lead, and its holder did not look. The batch stayed until the next write.
#[test]
fn the_holder_of_the_lead_switches_what_waited_for_a_flush() {
    let sim = SimEnv::new(1);
    let db = open(&sim);
    write_large(&db);
    assert_eq!(memtables(&db), (0, 1), "switched at once");
    write_large(&db);
    assert!(memtables(&db).0 > BUFFER && memtables(&db).1 == 1, "it waits for the flush");
    let core = Arc::clone(db.core());
    let led = core.committer.lead_alone(|| {
        while memtables(&db).1 > 0 {
            assert!(sim.env().jobs.drive(1) > 0, "the flush does not end");
        }
        assert!(memtables(&db).0 > BUFFER, "the flush has no lead");
        Ok(())
    });
    led.unwrap();
    assert_eq!(memtables(&db), (0, 1), "switched when the lead was released");
    db.wait_for_background().unwrap();
    assert_eq!(memtables(&db), (0, 0));
}

/// A flush ends between the leader's look at the memtables and its release of the lead.
#[test]
fn a_leader_looks_again_after_its_release() {
    let sim = SimEnv::new(2);
    let db = open(&sim);
    write_large(&db);
    let mut batch = WriteBatch::new();
    for key in 0..2 * BUFFER / 1000 {
        batch.put(FamilyId::DEFAULT, format!("{key:08}").as_bytes(), &[7; 1000]).unwrap();
    }
    let core = Arc::clone(db.core());
    // `done` runs at that moment.
    let mut done = || {
        while memtables(&db).1 > 0 {
            assert!(sim.env().jobs.drive(1) > 0, "the flush does not end");
        }
        assert!(memtables(&db).0 > BUFFER, "the flush has no lead");
    };
    let plain = (WriteOptions::default(), None);
    core.committer.commit_checked(batch.encoder(), plain, &mut || Ok(()), &mut done).unwrap();
    assert_eq!(memtables(&db), (0, 1), "switched when the lead was released");
}

/// Regression: a leader whose check fails, as that of a transaction with a conflict, left a full memtable to the next write.
#[test]
fn a_leader_that_writes_nothing_looks_too() {
    let sim = SimEnv::new(4);
    let db = open(&sim);
    write_large(&db);
    write_large(&db);
    let core = Arc::clone(db.core());
    let mut check = || {
        while memtables(&db).1 > 0 {
            assert!(sim.env().jobs.drive(1) > 0, "the flush does not end");
        }
        assert!(memtables(&db).0 > BUFFER, "the flush has no lead");
        Err(Error::invalid("a conflict"))
    };
    let plain = (WriteOptions::default(), None);
    let mut batch = WriteBatch::new();
    batch.put(FamilyId::DEFAULT, b"key", b"value").unwrap();
    core.committer.commit_checked(batch.encoder(), plain, &mut check, &mut || ()).unwrap_err();
    assert_eq!(memtables(&db), (0, 1), "switched when the lead was released");
}

/// Regression: the error of a switch that no later write repeats was reported nowhere.
#[test]
fn a_failed_switch_is_reported() {
    let sim = SimEnv::new(3);
    let db = open(&sim);
    write_large(&db);
    write_large(&db);
    let core = Arc::clone(db.core());
    let led = core.committer.lead_alone(|| {
        while memtables(&db).1 > 0 {
            assert!(sim.env().jobs.drive(1) > 0, "the flush does not end");
        }
        // The next call that changes something belongs to the switch.
        sim.fail_call(CallClass::Write, sim.calls_of(CallClass::Write) + 1, Repeat::Sticky, IoKind::Other);
        Ok(())
    });
    led.unwrap();
    assert!(memtables(&db).0 > BUFFER, "the switch failed");
    assert!(core.health.severity() > Severity::Healthy, "it is reported");
    sim.heal();
    write_large(&db);
    assert!(!core.health.is_failing(Source::NextLog), "the next write tries again");
    db.wait_for_background().unwrap();
    assert_eq!(memtables(&db), (0, 0));
}

/// Regression: memory was called scarce before the look that freed replaced super versions, and a write was refused for it.
#[test]
fn memory_that_the_look_frees_refuses_no_write() {
    let sim = SimEnv::new(4);
    let options = DbOptions { memory_bytes: 16 << 20, ..DbOptions::default() };
    let db = Db::open(sim.env(), Path::new("/db"), options, Vec::new(), FamilyOptions::default()).unwrap();
    let family = db.family("default").unwrap();
    let core = db.core();
    // Two readers, each of a flushed memtable of more than half the share.
    let readers = [0, 1].map(|_| {
        let mut batch = WriteBatch::new();
        for key in 0..22 {
            batch.put(FamilyId::DEFAULT, format!("{key:02}").as_bytes(), &[7; 100_000]).unwrap();
        }
        let held = family.super_version.get();
        db.write(&mut batch, WriteOptions::default()).unwrap();
        db.flush(&[Arc::clone(&family)]).unwrap();
        held
    });
    // A flush job may hold a super version for a moment after the flush has returned.
    assert!((0..100_000).any(|_| core.held_memtables().readers == 2), "the flushes hold on");
    let filler = core.memory.budget().charge(MemoryUse::Buffers, 0);
    let mut fill = 0;
    let mut leave = |left: usize| {
        // Tables are closed meanwhile, so that another look finds more space.
        for _ in 0..3 {
            let (budget, live) = (core.memory.budget(), core.state().live_memtable_bytes());
            fill = (fill + budget.cap() + live).saturating_sub(budget.total() + left);
            filler.set(fill);
        }
        assert!(core.is_memory_scarce());
    };
    leave(2 << 20);
    let refused = core.check_memory().unwrap_err();
    assert!(refused.to_string().contains("2 cursors and views hold"), "{refused}");
    let [first, second] = readers;
    drop(first);
    assert!(core.is_memory_scarce(), "it is not freed yet");
    // The first memtable goes, and the second one is still held.
    core.check_memory().unwrap();
    leave(2 << 20);
    let now = || core.env.clock.now();
    let timeout = Some(Duration::from_millis(20));
    let hurried = Deadline::of(WriteOptions { timeout, ..WriteOptions::default() }, &core.env);
    let began = now();
    let late = core.wait_for_readers(hurried).unwrap_err();
    assert_eq!((late.kind(), now() - began), (ErrorKind::TimedOut, Duration::from_millis(20)));
    assert!(!core.has_refused_lately(), "the others get their wait");
    let began = now();
    let refused = core.wait_for_readers(None).unwrap_err();
    let busy = ErrorKind::Busy(BusyKind::Memory);
    assert_eq!((refused.kind(), now() - began), (busy, Duration::from_millis(100)));
    assert!(core.has_refused_lately());
    core.env.clock.sleep(Duration::from_secs(1));
    assert!(!core.has_refused_lately());
    drop(second);
    let began = now();
    core.wait_for_readers(None).unwrap();
    assert_eq!(now(), began);
}

/// Regression: at the limit of all memtables together, each write to another of many families began a WAL file.
#[test]
fn small_memtables_of_many_families_are_switched_together() {
    let sim = SimEnv::new(5);
    let options = DbOptions { memory_bytes: 16 << 20, ..DbOptions::default() };
    let db = Db::open(sim.env(), Path::new("/db"), options, Vec::new(), FamilyOptions::default()).unwrap();
    let families: Vec<_> =
        (0..300).map(|n| db.create_family(&format!("{n}"), FamilyOptions::default()).unwrap()).collect();
    let wal = || db.core().committer.current().wal.number();
    let (mut last, mut switches) = (wal(), 0);
    for round in 0..20 {
        for family in &families {
            let mut batch = WriteBatch::new();
            batch.put(family.id(), &[round], &[7; 1000]).unwrap();
            db.write(&mut batch, WriteOptions::default()).unwrap();
            switches += u32::from(wal() != last);
            last = wal();
        }
    }
    assert!((2..500).contains(&switches), "{switches} WAL files for 6000 writes of 1 KB");
}
