use super::*;
use crate::{LogEnd, LogReader, RecoveryMode};
use ashlar_base::error::IoKind;
use ashlar_base::{Error, ErrorKind};
use ashlar_env::sim::{CallClass, CrashMode, Repeat, SimEnv};
use ashlar_format::log_record::Framing;
use std::path::Path;
use std::sync::Arc;

pub(super) const NAME: &str = "db/000014.log";

fn log(machine: &SimEnv, framing: Framing) -> LogWriter {
    let fs = machine.env().fs;
    fs.create_dir_all(Path::new("db")).unwrap();
    fs.sync_dir(Path::new("")).unwrap();
    LogWriter::create(fs, Path::new(NAME), FileNumber(14), framing).unwrap()
}

fn payloads() -> Vec<Vec<u8>> {
    [0, 1, 32_740, 5, 70_000, 8, 32_730, 3].iter().map(|n| vec![u8::try_from(n % 251).unwrap(); *n]).collect()
}

/// All records of the log, and how it ends.
pub(super) fn read(machine: &SimEnv, mode: RecoveryMode) -> (Vec<Vec<u8>>, LogEnd) {
    let file = machine.env().fs.open_read(Path::new(NAME)).unwrap();
    let mut reader = LogReader::open(file, FileNumber(14), mode);
    let mut all = Vec::new();
    while let Some(record) = reader.next().unwrap() {
        all.push(record.payload.to_vec());
    }
    (all, reader.end())
}

#[test]
fn what_is_written_is_read_back() {
    for framing in [Framing::Legacy, Framing::Recyclable] {
        let machine = SimEnv::new(1);
        let log = log(&machine, framing);
        for payload in payloads() {
            let before = machine.calls_of(CallClass::Write);
            let range = log.append(&payload, false).unwrap();
            assert_eq!(machine.calls_of(CallClass::Write), before + 1, "one write per publish");
            assert_eq!(log.position(), range.end);
        }
        log.close().unwrap();
        assert!(log.append(b"late", false).is_err());
        assert!(log.close().is_err());
        assert_eq!(read(&machine, RecoveryMode::Absolute), (payloads(), LogEnd::Clean));
    }
}

#[test]
fn a_group_is_one_write() {
    for framing in [Framing::Legacy, Framing::Recyclable] {
        let machine = SimEnv::new(1);
        let log = log(&machine, framing);
        let before = machine.calls_of(CallClass::Write);
        for part in payloads().chunks(5) {
            let mut end = log.position();
            let mut group = log.begin();
            for payload in part {
                let range = group.add(payload).unwrap();
                assert_eq!(range.start, end);
                end = range.end;
            }
            assert!(log.position() < end, "not published");
            group.publish().unwrap();
            assert_eq!(log.position(), end);
        }
        log.begin().publish().unwrap();
        assert_eq!(machine.calls_of(CallClass::Write), before + 2);
        assert_eq!(read(&machine, RecoveryMode::Absolute), (payloads(), LogEnd::Clean));
    }
}

#[test]
fn records_of_a_dropped_group_come_before_those_of_the_next() {
    let machine = SimEnv::new(1);
    let log = log(&machine, Framing::Legacy);
    log.begin().add(b"first").unwrap();
    assert_eq!(read(&machine, RecoveryMode::Absolute).0.len(), 0);
    log.append(b"second", false).unwrap();
    assert_eq!(
        read(&machine, RecoveryMode::Absolute),
        (vec![b"first".to_vec(), b"second".to_vec()], LogEnd::Clean)
    );
}

#[test]
fn a_log_shorter_than_its_good_end_is_not_appended_to() {
    let machine = SimEnv::new(1);
    let end = log(&machine, Framing::Legacy).append(b"all", true).unwrap().end;
    for (path, position) in [(NAME, end + 1), ("db/000015.log", 1)] {
        let path = Path::new(path);
        let refused = LogWriter::append_to(machine.env().fs, path, FileNumber(14), Framing::Legacy, position)
            .unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
        assert_eq!(refused.message(), format!("log is shorter than {position} bytes"));
        assert_eq!(refused.path(), Some(path));
    }
    assert_eq!(read(&machine, RecoveryMode::Absolute).0, [b"all"]);
}

#[test]
fn syncs_coalesce() {
    let machine = SimEnv::new(1);
    let log = log(&machine, Framing::Legacy);
    let syncs = || machine.calls_of(CallClass::Sync);
    let before = syncs();
    let first = log.append(b"a", false).unwrap();
    let second = log.append(b"b", false).unwrap();
    log.sync_to(first.end).unwrap();
    assert_eq!(syncs(), before + 2, "file and directory");
    log.sync_to(second.end).unwrap();
    log.sync_to(0).unwrap();
    assert_eq!((syncs(), log.durable()), (before + 2, second.end));
    let third = log.append(b"c", true).unwrap();
    assert_eq!((syncs(), log.durable()), (before + 3, third.end));
    assert!(log.sync_to(third.end + 1).is_err(), "not published");
    let after = machine.crash(CrashMode::DROP_ALL);
    assert_eq!(read(&after, RecoveryMode::Absolute).0, [b"a", b"b", b"c"]);
}

#[test]
fn an_empty_log_can_be_made_durable() {
    let machine = SimEnv::new(1);
    log(&machine, Framing::Legacy).sync_to(0).unwrap();
    assert_eq!(read(&machine.crash(CrashMode::DROP_ALL), RecoveryMode::Absolute), (vec![], LogEnd::Clean));
}

#[test]
fn every_crash_leaves_a_prefix_that_holds_what_was_synced() {
    for mode in CrashMode::all() {
        for seed in 0..20 {
            let machine = SimEnv::new(seed);
            let log = log(&machine, Framing::Legacy);
            let all = payloads();
            for (i, payload) in all.iter().enumerate() {
                log.append(payload, i == 3).unwrap();
            }
            let after = machine.crash(mode);
            let (got, _) = read(&after, RecoveryMode::PointInTime);
            assert!(got.len() > 3 && got == all[..got.len()], "{mode:?}, seed {seed}");
            let file = after.env().fs.open_read(Path::new(NAME)).unwrap();
            let mut reader = LogReader::open(file, FileNumber(14), RecoveryMode::PointInTime);
            while reader.next().unwrap().is_some() {}
            let fs = after.env().fs;
            let end = reader.good_end();
            let log =
                LogWriter::append_to(fs, Path::new(NAME), FileNumber(14), Framing::Legacy, end).unwrap();
            log.append(b"resumed", true).unwrap();
            let (again, end) = read(&after, RecoveryMode::Absolute);
            assert_eq!((again.len(), end), (got.len() + 1, LogEnd::Clean), "{mode:?}, seed {seed}");
        }
    }
}

fn poisoned(log: &LogWriter, first: &Error) {
    let later = log.append(b"more", false).unwrap_err();
    assert_eq!(later.kind(), first.kind());
    assert!(first.to_string().contains("db"), "{first}");
    for e in [&later, &log.sync_to(log.position() + 1).unwrap_err(), &log.close().unwrap_err()] {
        assert!(e.to_string().contains("000014.log"), "{e}");
    }
}

#[test]
fn one_failure_poisons_for_ever() {
    for class in [CallClass::Write, CallClass::Sync] {
        let machine = SimEnv::new(7);
        let log = log(&machine, Framing::Legacy);
        let good = log.append(b"good", true).unwrap();
        machine.fail_call(class, machine.calls_of(class) + 1, Repeat::Once, IoKind::NoSpace);
        let first = log.append(&[7; 5000], true).unwrap_err();
        assert_eq!(machine.injected(), 1);
        machine.heal();
        poisoned(&log, &first);
        log.sync_to(good.end).unwrap();
        let after = machine.crash(CrashMode::DROP_ALL);
        assert_eq!(read(&after, RecoveryMode::PointInTime).0, [b"good"]);
    }
}

#[test]
fn a_directory_that_does_not_sync_poisons_too() {
    let machine = SimEnv::new(7);
    let log = log(&machine, Framing::Legacy);
    let class = CallClass::Sync;
    machine.fail_call(class, machine.calls_of(class) + 2, Repeat::Once, IoKind::Other);
    let first = log.append(b"x", true).unwrap_err();
    poisoned(&log, &first);
    assert_eq!(log.durable(), 0);
}

#[test]
fn threads_share_syncs() {
    let machine = SimEnv::new(3);
    let log = Arc::new(log(&machine, Framing::Legacy));
    let ends: Vec<u64> = (0..200).map(|i: u32| log.append(&i.to_le_bytes(), false).unwrap().end).collect();
    let before = machine.calls_of(CallClass::Sync);
    std::thread::scope(|scope| {
        for part in ends.chunks(50) {
            let log = &log;
            scope.spawn(move || part.iter().for_each(|end| log.sync_to(*end).unwrap()));
        }
    });
    assert_eq!(machine.calls_of(CallClass::Sync), before + 2, "the first sync covers all");
    assert_eq!(log.durable(), ends[199]);
}

#[test]
fn what_a_full_disk_took_of_a_write_is_given_back() {
    let machine = SimEnv::new(1);
    let log = log(&machine, Framing::Legacy);
    let first = log.append(&[7; 1000], false).unwrap();
    machine.set_capacity(machine.used_bytes() + 500);
    let e = log.append(&[8; 1000], false).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Io(IoKind::NoSpace), "{e}");
    assert_eq!(machine.used_bytes(), first.end);
    assert!(log.append(&[9; 10], false).is_err(), "it takes no more records");
    assert_eq!(read(&machine, RecoveryMode::Absolute), (vec![vec![7; 1000]], LogEnd::Clean));
}

/// Regression: the frames of a long record grew piece by piece. Each growth copied them, and an allocator kept what was left.
#[test]
fn a_long_record_is_framed_in_one_allocation() {
    for framing in [Framing::Legacy, Framing::Recyclable] {
        let machine = SimEnv::new(1);
        let log = log(&machine, framing);
        let mut group = log.begin();
        let range = group.add(&vec![7; 3_000_000]).unwrap();
        assert_eq!(group.frames_capacity() as u64, range.end - range.start);
        group.publish().unwrap();
    }
}
