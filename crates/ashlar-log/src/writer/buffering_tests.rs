//! Logs that buffer records: where the bytes are after each step, and what a crash leaves.

use super::tests::NAME;
use super::*;
use crate::{LogEnd, RecoveryMode};
use ashlar_base::error::IoKind;
use ashlar_env::sim::{CallClass, CrashMode, Repeat, SimEnv};
use ashlar_format::log_record::Framing;
use std::path::Path;
use std::sync::Arc;

const BOUND: u64 = 100_000;

fn log(machine: &SimEnv, compressed: bool) -> LogWriter {
    let fs = machine.env().fs;
    fs.create_dir_all(Path::new("db")).unwrap();
    fs.sync_dir(Path::new("")).unwrap();
    let create = if compressed { LogWriter::create_compressed } else { LogWriter::create };
    create(fs, Path::new(NAME), FileNumber(14), Framing::Legacy).unwrap().buffering(BOUND)
}

/// All records of the log, which ends well.
fn read(machine: &SimEnv) -> Vec<Vec<u8>> {
    let (all, end) = tests::read(machine, RecoveryMode::Absolute);
    assert_eq!(end, LogEnd::Clean);
    all
}

fn record(i: u32) -> Vec<u8> {
    let len = usize::try_from(i % 7 * 3000).unwrap();
    i.to_le_bytes().repeat(len / 4 + 1)
}

fn records(range: std::ops::Range<u32>) -> Vec<Vec<u8>> {
    range.map(record).collect()
}

#[test]
fn a_flush_writes_all_that_waits_at_once() {
    for compressed in [false, true] {
        let machine = SimEnv::new(1);
        let log = log(&machine, compressed);
        let before = machine.calls_of(CallClass::Write);
        for r in records(0..8) {
            log.append(&r, false).unwrap();
        }
        assert_eq!(machine.calls_of(CallClass::Write), before, "nothing leaves the process");
        assert!(read(&machine.crash(CrashMode::KILL)).is_empty());
        log.flush().unwrap();
        log.flush().unwrap();
        assert_eq!(machine.calls_of(CallClass::Write), before + 1);
        assert_eq!(read(&machine.crash(CrashMode::KILL)), records(0..8));
        assert_eq!(log.durable(), 0);
        log.append(&record(8), false).unwrap();
        log.close().unwrap();
        assert_eq!(read(&machine.crash(CrashMode::DROP_ALL)), records(0..9), "a close hands over, and syncs");
    }
}

#[test]
fn a_sync_takes_everything_before_it_along() {
    let machine = SimEnv::new(2);
    let log = log(&machine, false);
    let first = log.append(&record(0), false).unwrap();
    let second = log.append(&record(1), false).unwrap();
    log.sync_to(first.end).unwrap();
    assert_eq!(read(&machine.crash(CrashMode::DROP_ALL)), records(0..2));
    let syncs = machine.calls_of(CallClass::Sync);
    log.sync_to(second.end).unwrap();
    assert_eq!(machine.calls_of(CallClass::Sync), syncs);
    log.append(&record(2), true).unwrap();
    assert_eq!(read(&machine.crash(CrashMode::DROP_ALL)), records(0..3));
    assert!(log.sync_to(log.position() + 1).is_err(), "not published");
}

/// The buffer is bounded, and what a kill leaves is a row of whole records at any moment.
#[test]
fn the_buffer_is_bounded() {
    let machine = SimEnv::new(3);
    let log = log(&machine, false);
    let mut left = 0;
    for i in 0..60 {
        log.append(&record(i), false).unwrap();
        let found = read(&machine.crash(CrashMode::KILL));
        assert_eq!(found, records(0..u32::try_from(found.len()).unwrap()));
        let held: usize = records(u32::try_from(found.len()).unwrap()..i + 1).iter().map(Vec::len).sum();
        assert!(held as u64 <= BOUND, "{held} bytes held back");
        left = found.len();
    }
    assert!(left > 40);
    let before = machine.calls_of(CallClass::Write);
    log.append(&vec![1; 200_000], false).unwrap();
    assert_eq!(machine.calls_of(CallClass::Write), before + 1, "what is larger is not held back");
}

#[test]
fn a_flush_that_fails_poisons() {
    let machine = SimEnv::new(4);
    let log = log(&machine, false);
    log.append(&record(0), false).unwrap();
    log.flush().unwrap();
    log.append(&record(1), false).unwrap();
    machine.fail_call(
        CallClass::Write,
        machine.calls_of(CallClass::Write) + 1,
        Repeat::Once,
        IoKind::NoSpace,
    );
    let first = log.flush().unwrap_err();
    assert!(first.to_string().contains("000014.log"), "{first}");
    machine.heal();
    for later in
        [log.flush(), log.append(&record(2), false).map(drop), log.sync_to(log.position()), log.close()]
    {
        assert_eq!(later.unwrap_err().kind(), first.kind());
    }
}

/// Writers that publish, sync and flush at once: each record once, in order.
#[test]
fn threads_flush_beside_a_writer() {
    let machine = SimEnv::new(5);
    let log = Arc::new(log(&machine, false));
    std::thread::scope(|scope| {
        for sync in [false, true] {
            let log = &log;
            scope.spawn(move || {
                for _ in 0..200 {
                    if sync { log.sync_to(log.position()).unwrap() } else { log.flush().unwrap() }
                }
            });
        }
        for i in 0..300 {
            log.append(&record(i), false).unwrap();
        }
    });
    log.flush().unwrap();
    assert_eq!(read(&machine), records(0..300));
}
