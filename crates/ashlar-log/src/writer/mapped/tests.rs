//! Logs that store into mapped pieces, on the simulated machine: what is in the file after each call, and what a crash
//! leaves.

use super::*;
use crate::writer::tests::{NAME, read};
use crate::{Framing, LogEnd, RecoveryMode};
use ashlar_base::error::IoKind;
use ashlar_base::{ErrorKind, FileNumber};
use ashlar_env::SeededRand;
use ashlar_env::sim::{CallClass, CrashMode, Repeat, SimEnv};
use std::path::Path;

const SPARE: u64 = 64 << 10;

fn log(machine: &SimEnv, framing: Framing, compressed: bool) -> LogWriter {
    let fs = machine.env().fs;
    fs.create_dir_all(Path::new("db")).unwrap();
    fs.sync_dir(Path::new("")).unwrap();
    let create = if compressed { LogWriter::create_compressed } else { LogWriter::create };
    create(fs, Path::new(NAME), FileNumber(14), framing).unwrap().mapped(true)
}

fn add(log: &LogWriter, payloads: &[Vec<u8>]) -> Result<u64> {
    let mut group = log.begin();
    for payload in payloads {
        group.add_with_spare(payload, SPARE)?;
    }
    group.publish().map(|()| log.position())
}

fn len(machine: &SimEnv) -> u64 {
    machine.env().fs.metadata(Path::new(NAME)).unwrap().unwrap().len
}

/// Records of all lengths, small ones most often.
fn record(rand: &SeededRand, i: usize) -> Vec<u8> {
    let most = [1, 20, 200, 200, 200, 200, 2000, 9000, 70_000][usize::try_from(rand.below(9)).unwrap()];
    let len = usize::try_from(rand.below(most)).unwrap();
    i.to_le_bytes().iter().copied().cycle().map(|b| b | 1).take(len).collect()
}

#[test]
fn small_records_are_stored_and_all_are_read_back() {
    for (framing, compressed) in
        [(Framing::Legacy, false), (Framing::Recyclable, false), (Framing::Legacy, true)]
    {
        for seed in 0..3 {
            let machine = SimEnv::new(seed);
            let log = log(&machine, framing, compressed);
            let rand = machine.stream("records");
            let mut all: Vec<Vec<u8>> = Vec::new();
            for i in 0..300 {
                let group: Vec<_> = (0..=rand.below(3)).map(|_| record(&rand, i)).collect();
                let end = add(&log, &group).unwrap();
                all.extend(group);
                let block = BLOCK_SIZE as u64;
                assert!(len(&machine) == end || len(&machine) == end.next_multiple_of(block), "seed {seed}");
                // One log of three is not synced: its records are stored.
                if seed > 0 && rand.below(20) == 0 {
                    log.sync_to(end).unwrap();
                    let after = machine.crash(CrashMode::DROP_ALL);
                    assert!(
                        read(&after, RecoveryMode::Absolute) == (all.clone(), LogEnd::Clean),
                        "seed {seed}"
                    );
                }
            }
            assert!(read(&machine, RecoveryMode::Absolute) == (all.clone(), LogEnd::Clean), "seed {seed}");
            if seed % 2 == 0 {
                log.close().unwrap();
            } else {
                log.give_back();
            }
            assert_eq!(len(&machine), log.position());
            assert!(read(&machine, RecoveryMode::Absolute) == (all, LogEnd::Clean), "seed {seed}");
        }
    }
}

#[test]
fn a_block_of_small_records_costs_one_write() {
    let machine = SimEnv::new(1);
    let log = log(&machine, Framing::Legacy, false);
    let mut writes = 0;
    for _ in 0..1000 {
        let (before, position) = (machine.calls_of(CallClass::Write), log.position());
        let end = add(&log, &[vec![7; 93]]).unwrap();
        // Payload and header; what else happens is rare: space, zeros, a record over two blocks.
        let crossed = end / BLOCK_SIZE as u64 != position / BLOCK_SIZE as u64;
        writes += machine.calls_of(CallClass::Write) - before - if crossed { 0 } else { 2 };
    }
    assert!(writes < 20, "{writes}");
}

/// A kill before each call, and each power cut.
#[test]
fn every_crash_leaves_a_prefix() {
    for seed in 0..4 {
        let machine = SimEnv::new(seed);
        let log = log(&machine, Framing::Legacy, seed % 2 == 1);
        let rand = machine.stream("records");
        let first = machine.calls_of(CallClass::Change);
        for call in 0..300 {
            machine.photograph_at(first + call, CrashMode::KILL);
            machine.photograph_at(first + call, CrashMode::all()[usize::try_from(call % 21).unwrap()]);
        }
        // After each step: the calls until then, the records added, the records synced.
        let (mut steps, mut all, mut synced) = (vec![(first, 0, 0)], Vec::new(), 0);
        for i in 0..80 {
            let group: Vec<_> = (0..=rand.below(3)).map(|_| record(&rand, i)).collect();
            let end = add(&log, &group).unwrap();
            all.extend(group);
            steps.push((machine.calls_of(CallClass::Change), all.len(), synced));
            // Logs that are not synced store their records.
            if seed < 2 && rand.below(8) == 0 {
                log.sync_to(end).unwrap();
                synced = all.len();
                steps.push((machine.calls_of(CallClass::Change), all.len(), synced));
            }
        }
        for (at, mode, after) in machine.photographs() {
            let (_, added, synced) = *steps.iter().rfind(|(calls, ..)| *calls < at).unwrap();
            let least = if mode == CrashMode::KILL { added } else { synced };
            if after.env().fs.metadata(Path::new(NAME)).unwrap().is_none() {
                assert_eq!(least, 0, "seed {seed}, before call {at}, {mode:?}: no file");
                continue;
            }
            let (found, _) = read(&after, RecoveryMode::PointInTime);
            let context =
                format!("seed {seed}, before call {at}, {mode:?}: {} of {}", found.len(), all.len());
            assert!(all.starts_with(&found), "{context}");
            assert!(found.len() >= least, "{context}, at least {least}");
            if mode == CrashMode::KILL {
                let (tolerant, end) = read(&after, RecoveryMode::TolerateTail);
                assert!(tolerant == found && !matches!(end, LogEnd::Cut { .. }), "{context}: {end:?}");
            }
        }
    }
}

#[test]
fn a_missing_page_poisons() {
    let machine = SimEnv::new(3);
    let log = log(&machine, Framing::Legacy, false);
    for _ in 0..10 {
        add(&log, &[vec![1; 50]]).unwrap();
    }
    machine.env().fs.open_write(Path::new(NAME)).unwrap().truncate(log.position()).unwrap();
    let e = add(&log, &[vec![2; 50]]).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Io(IoKind::Other), "{e}");
    assert!(e.to_string().contains("000014.log"), "{e}");
    assert_eq!(add(&log, &[vec![2; 50]]).unwrap_err().kind(), e.kind());
    assert!(log.close().is_err());
    assert_eq!(read(&machine, RecoveryMode::Absolute), (vec![vec![1; 50]; 10], LogEnd::Clean));
}

#[test]
fn each_call_that_fails_leaves_acknowledged_records() {
    for seed in 0..50 {
        let machine = SimEnv::new(seed);
        let log = log(&machine, Framing::Legacy, false);
        let rand = machine.stream("records");
        let kind = if seed % 2 == 0 { IoKind::NoSpace } else { IoKind::Other };
        let at = machine.calls_of(CallClass::Change) + 1 + seed * 2 + seed % 3;
        machine.fail_call(CallClass::Change, at, Repeat::Once, kind);
        let mut acknowledged: Vec<Vec<u8>> = Vec::new();
        let mut failed = None;
        for i in 0..200 {
            let payload = record(&rand, i);
            let added = add(&log, std::slice::from_ref(&payload));
            // Half of the logs are synced, and so written over zeros.
            match added.and_then(|end| if seed % 4 < 2 { log.sync_to(end) } else { Ok(()) }) {
                Ok(()) => acknowledged.push(payload),
                Err(_) => {
                    failed = Some(payload);
                    break;
                }
            }
        }
        let found = read(&machine.crash(CrashMode::KILL), RecoveryMode::PointInTime).0;
        assert!(found.starts_with(&acknowledged), "seed {seed}: {} {}", found.len(), acknowledged.len());
        assert!(found.len() <= acknowledged.len() + usize::from(failed.is_some()), "seed {seed}");
    }
}

/// A full disk refuses records before they are logged, as without a mapping, and keeps the spare.
#[test]
fn a_full_disk_is_noticed_ahead() {
    let machine = SimEnv::new(1);
    let log = log(&machine, Framing::Legacy, false);
    machine.set_capacity(300_000);
    let mut all = Vec::new();
    let e = loop {
        match add(&log, &[vec![3; 500]]) {
            Ok(_) => all.push(vec![3; 500]),
            Err(e) => break e,
        }
    };
    assert_eq!(e.kind(), ErrorKind::Io(IoKind::NoSpace));
    assert!(all.len() > 400 && log.position() + SPARE > 290_000, "{} {}", all.len(), log.position());
    assert_eq!(len(&machine), log.position(), "no zeros");
    // Records that free space use the spare, by writes.
    let mut group = log.begin();
    group.add_into_spare(&[4; 1000]).unwrap();
    group.publish().unwrap();
    all.push(vec![4; 1000]);
    machine.set_capacity(10_000_000);
    log.ask_room(0, SPARE).unwrap();
    add(&log, &[vec![5; 100]]).unwrap();
    all.push(vec![5; 100]);
    assert_eq!(read(&machine, RecoveryMode::Absolute), (all, LogEnd::Clean));
}

#[test]
fn a_buffering_log_stores_its_flushes() {
    let machine = SimEnv::new(2);
    let log = log(&machine, Framing::Legacy, false).buffering(100_000);
    let rand = machine.stream("records");
    let all: Vec<_> = (0..400).map(|i| record(&rand, i)).collect();
    for (i, payload) in all.iter().enumerate() {
        add(&log, std::slice::from_ref(payload)).unwrap();
        if i % 3 == 0 {
            log.flush().unwrap();
            assert!(read(&machine.crash(CrashMode::KILL), RecoveryMode::Absolute).0 == all[..=i]);
        }
    }
    log.close().unwrap();
    assert!(read(&machine, RecoveryMode::Absolute) == (all, LogEnd::Clean));
}

/// A log that is synced writes over the zeros; after many publishes without a sync the next block is mapped again.
#[test]
fn a_log_that_is_synced_often_is_not_mapped() {
    let machine = SimEnv::new(3);
    let log = log(&machine, Framing::Legacy, false);
    let is_mapped = || match &log.tail.lock().piece {
        Some(Piece::Mapped(_)) => Some(true),
        Some(Piece::Written(_)) => Some(false),
        None => None,
    };
    let mut records = Vec::new();
    let mut put = || {
        records.push(vec![7; 93]);
        add(&log, &[vec![7; 93]]).unwrap()
    };
    let end = put();
    assert_eq!(is_mapped(), Some(true));
    log.sync_to(end).unwrap();
    for _ in 0..OFTEN - 1 {
        put();
        assert_eq!(is_mapped(), Some(false));
    }
    // The rest of the block, and a record in the next one.
    while log.position() < BLOCK_SIZE as u64 {
        assert_ne!(is_mapped(), Some(true));
        put();
    }
    put();
    assert_eq!(is_mapped(), Some(true));
    assert!(read(&machine, RecoveryMode::Absolute) == (records, LogEnd::Clean));
}

/// A kill between the two writes of a publish, and in the second one at each end of a page, leaves whole records and no damage.
#[test]
fn a_kill_inside_a_publish_of_a_synced_log_leaves_a_prefix() {
    let machine = SimEnv::new(4);
    let log = log(&machine, Framing::Legacy, false);
    let fs = machine.env().fs;
    let bytes = || {
        let file = fs.open_read(Path::new(NAME)).unwrap();
        let mut all = vec![0; usize::try_from(file.len()).unwrap()];
        file.read_exact_at(&mut all, 0).unwrap();
        all
    };
    let end = add(&log, &[vec![7; 93]]).unwrap();
    log.sync_to(end).unwrap();
    let rand = machine.stream("lengths");
    let page = usize::try_from(PAGE).unwrap();
    let (mut records, mut cases, mut appended) = (1, 0, 0);
    while log.position() < 8 * BLOCK_SIZE as u64 {
        let start = usize::try_from(log.position()).unwrap();
        let mut group: Vec<_> =
            (0..=rand.below(3)).map(|_| vec![7; usize::try_from(1 + rand.below(900)).unwrap()]).collect();
        // The second header often begins just before the end of a page. A header has 7 bytes.
        let to_page = page - (start + 7) % page;
        let before = usize::try_from(rand.below(10)).unwrap();
        if to_page < 2000 && group.len() > 1 {
            group[0].resize(to_page.saturating_sub(before).max(1), 7);
        }
        let end = usize::try_from(add(&log, &group).unwrap()).unwrap();
        log.sync_to(end as u64).unwrap();
        let after = bytes();
        if start / BLOCK_SIZE != end / BLOCK_SIZE || after.len() == end {
            // Not written over zeros, or not all of it.
            appended += 1;
            records += group.len();
            continue;
        }
        let mut headless = after.clone();
        let mut at = start;
        while at < end {
            let fragment = first_physical(&after[at..], Framing::Legacy).unwrap().len();
            headless[at..at + STORE_HEAD].fill(0);
            at += fragment;
        }
        let pages = (start.next_multiple_of(page)..end).step_by(page);
        for cut in std::iter::once(start).chain(pages) {
            let mut killed = headless.clone();
            killed[start..cut].copy_from_slice(&after[start..cut]);
            let then = SimEnv::new(5);
            let fs = then.env().fs;
            fs.create_dir_all(Path::new("db")).unwrap();
            fs.create(Path::new(NAME)).unwrap().write_at(&killed, 0).unwrap();
            let (found, log_end) = read(&then, RecoveryMode::TolerateTail);
            assert!(found.len() >= records && found.len() <= records + group.len(), "{start} {cut} {end}");
            assert!(!matches!(log_end, LogEnd::Cut { .. }), "{start} {cut} {end}: {log_end:?}");
            assert!(read(&then, RecoveryMode::PointInTime).0 == found, "{start} {cut} {end}");
            cases += 1;
        }
        records += group.len();
    }
    assert!(cases > 100 && appended > 2, "{cases} {appended}");
}

/// Regression: the cut of the zeros released the reserved space, and the log went on as if it had the space.
#[test]
fn a_header_in_two_pages_leaves_the_reserved_space() {
    let machine = SimEnv::new(11);
    let log = log(&machine, Framing::Legacy, false);
    let put = |bytes: u64| {
        let end = add(&log, &[vec![7; usize::try_from(bytes).unwrap()]]).unwrap();
        log.sync_to(end).unwrap();
    };
    (0..3).for_each(|_| put(93));
    // So that the next header begins three bytes before the end of a page.
    let header = Framing::Legacy.header_len() as u64;
    put(PAGE - log.position() % PAGE - 3 - header);
    assert_eq!(log.position() % PAGE, PAGE - 3);
    let (held, ahead) = (machine.used_bytes(), log.reserved_ahead());
    put(100);
    assert!(ahead > 100_000 && machine.used_bytes() >= held);
    // Others take all the space that is free.
    machine.set_capacity(machine.used_bytes());
    (0..100).for_each(|_| put(93));
}
