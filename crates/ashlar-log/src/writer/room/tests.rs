use super::*;
use crate::{Framing, LogEnd, LogReader, LogWriter, RecoveryMode};
use ashlar_base::FileNumber;
use ashlar_env::sim::{CallClass, CrashMode, Repeat, SimEnv};
use std::path::Path;

const NAME: &str = "log";
const SPARE: u64 = 64 << 10;
const KEPT: u64 = 48 << 10;
const NO_SPACE: ErrorKind = ErrorKind::Io(IoKind::NoSpace);

fn log(machine: &SimEnv) -> LogWriter {
    LogWriter::create(machine.env().fs, Path::new(NAME), FileNumber(14), Framing::Legacy).unwrap()
}

fn len(machine: &SimEnv) -> u64 {
    machine.env().fs.metadata(Path::new(NAME)).unwrap().unwrap().len
}

fn records(machine: &SimEnv) -> usize {
    let file = machine.env().fs.open_read(Path::new(NAME)).unwrap();
    let mut reader = LogReader::open(file, FileNumber(14), RecoveryMode::Absolute);
    let mut count = 0;
    while reader.next().unwrap().is_some() {
        count += 1;
    }
    assert_eq!(reader.end(), LogEnd::Clean);
    count
}

/// Appends a record, if there is room for it and `spare` bytes more.
fn append(log: &LogWriter, bytes: usize, spare: u64) -> Result<()> {
    let mut group = log.begin();
    group.add_with_spare(&vec![7; bytes], spare)?;
    group.publish()
}

/// Whether the file has space up to `end`, or gets it now.
fn reaches(log: &LogWriter, end: u64) -> bool {
    log.reach(&mut log.tail.lock(), end).is_ok()
}

/// Fills the log until the disk has no room for more.
fn full(machine: &SimEnv, log: &LogWriter) {
    machine.set_capacity(machine.used_bytes() + (200 << 10));
    let lack = (0..1000).find_map(|_| append(log, 1000, SPARE).err()).unwrap();
    assert_eq!(lack.kind(), NO_SPACE, "{lack}");
}

#[test]
fn room_is_asked_for_in_pieces_and_given_back() {
    let machine = SimEnv::new(1);
    let log = log(&machine);
    let before = machine.calls();
    (0..5000).for_each(|_| append(&log, 1000, SPARE).unwrap());
    let asked = machine.calls() - before - 5000;
    assert!((5..12).contains(&asked), "{asked} calls for 5 MB");
    assert_eq!(len(&machine), log.position());
    let ahead = machine.used_bytes() - log.position();
    assert!((SPARE..=SPARE + PIECE_MAX).contains(&ahead), "{ahead} bytes ahead");
    log.give_back();
    assert_eq!((machine.used_bytes(), len(&machine)), (log.position(), log.position()));
    append(&log, 1000, SPARE).unwrap();
    assert!(machine.used_bytes() > log.position() + SPARE, "reserved again");
    assert_eq!(records(&machine), 5001);
}

#[test]
fn on_a_full_disk_the_spare_room_is_left() {
    let machine = SimEnv::new(2);
    let log = log(&machine);
    full(&machine, &log);
    let (position, calls) = (log.position(), machine.calls());
    assert_eq!(append(&log, 1, SPARE).unwrap_err().kind(), NO_SPACE);
    assert_eq!(machine.calls(), calls, "not asked again");
    assert_eq!(machine.used_bytes(), position + KEPT, "the rest is given back");
    // Others take whatever they get.
    machine.set_capacity(machine.used_bytes());
    let mut more = 0;
    while log.fits(100) {
        let mut group = log.begin();
        let end = group.add_into_spare(&[7; 100]).unwrap().end;
        group.publish().unwrap();
        log.sync_to(end).unwrap();
        more += 1;
    }
    assert_eq!(log.begin().add_into_spare(&[7; 100]).unwrap_err().kind(), NO_SPACE);
    assert!(more > 400 && log.position() <= position + KEPT, "{more} records");
    assert_eq!(records(&machine.crash(CrashMode::DROP_ALL)), records(&machine));
    let used = machine.used_bytes();
    machine.set_capacity(used + (30 << 10));
    for _ in 0..3 {
        assert_eq!(log.ask_room(0, SPARE).unwrap_err().kind(), NO_SPACE);
        assert!(machine.used_bytes() <= used, "what was used up is not taken again before there is more");
    }
    machine.set_capacity(u64::MAX);
    assert_eq!(append(&log, 1, SPARE).unwrap_err().kind(), NO_SPACE, "no call has asked");
    log.ask_room(0, SPARE).unwrap();
    append(&log, 1000, SPARE).unwrap();
    assert_eq!(records(&machine.crash(CrashMode::KILL)), records(&machine));
}

/// If others have taken a part of the space, the rest is kept.
#[test]
fn a_part_is_better_than_nothing() {
    let machine = SimEnv::new(3);
    let log = log(&machine);
    machine.set_capacity(20 << 10);
    assert_eq!(append(&log, 100, SPARE).unwrap_err().kind(), NO_SPACE);
    assert_eq!(machine.used_bytes(), 12 << 10);
    assert!(reaches(&log, 12 << 10));
    assert_eq!(machine.used_bytes(), 12 << 10);
    assert!(reaches(&log, 19 << 10) && !reaches(&log, (20 << 10) + 1));
    assert_eq!(machine.used_bytes(), 20 << 10, "what is left is for the work that makes room");
    machine.set_capacity(0);
    assert_eq!(log.ask_room(0, SPARE).unwrap_err().kind(), NO_SPACE);
    assert!(!reaches(&log, 1) && log.append(&[7; 100], false).is_err());
}

#[test]
fn filled_records_keep_their_room() {
    let machine = SimEnv::new(4);
    let log = log(&machine);
    machine.set_capacity(700 << 10);
    let mut group = log.begin();
    group.add_with_spare(&vec![7; 600 << 10], SPARE).unwrap();
    assert_eq!(group.add_with_spare(&vec![7; 600 << 10], SPARE).unwrap_err().kind(), NO_SPACE);
    machine.set_capacity(0);
    group.publish().unwrap();
    assert_eq!(records(&machine), 1);
}

/// What keeps records back has room for them.
#[test]
fn held_records_keep_their_room() {
    let machine = SimEnv::new(5);
    let log = log(&machine).buffering(1 << 20);
    full(&machine, &log);
    assert!(len(&machine) == 0 && log.position() > 100_000);
    log.give_back();
    machine.set_capacity(0);
    log.flush().unwrap();
    assert_eq!(len(&machine), log.position());
    log.give_back();
    assert_eq!(machine.used_bytes(), log.position());
}

#[test]
fn other_errors_are_left_to_the_writes() {
    let machine = SimEnv::new(6);
    let log = log(&machine);
    let next = machine.calls_of(CallClass::Write) + 1;
    machine.fail_call(CallClass::Write, next, Repeat::Once, IoKind::Other);
    append(&log, 1000, SPARE).unwrap();
    assert!(reaches(&log, 1 << 40));
    assert_eq!(machine.used_bytes(), len(&machine));
    log.give_back();
    assert_eq!(records(&machine), 1);
}
