//! Logs of recyclable records: the fill bytes at the end of a block, and records of the file's earlier use.

use super::tests::{Bytes, MODES, open, write};
use super::*;
use crate::{PhysicalKind, PhysicalRecords};
use ashlar_base::FileNumber;
use ashlar_format::log_record::{BLOCK_SIZE, Framing, RECYCLABLE_HEADER};
use std::sync::Arc;

const NUMBER: u32 = 14;

/// The payloads that a mode delivers, how the log ends, and what was passed over.
fn read(file: &[u8], mode: RecoveryMode) -> (Vec<Vec<u8>>, LogEnd, Skipped) {
    let mut reader = open(file, mode);
    let mut records = Vec::new();
    while let Some(record) = reader.next().unwrap() {
        records.push(record.payload.to_vec());
    }
    (records, reader.end(), reader.skipped())
}

/// The kinds of the stretches of a file.
fn kinds(file: &[u8]) -> Vec<(u64, PhysicalKind)> {
    let file = Arc::new(Bytes(file.to_vec()));
    let mut records = PhysicalRecords::new(file, FileNumber(u64::from(NUMBER)));
    let mut all = Vec::new();
    while let Some(record) = records.next().unwrap() {
        all.push((record.offset, record.kind));
    }
    all
}

#[test]
fn whatever_is_left_of_a_block_is_its_end() {
    for framing in [Framing::Legacy, Framing::Recyclable] {
        for left in 0..=RECYCLABLE_HEADER + 3 {
            let header = framing.header_len();
            // One record that leaves `left` bytes of its block, and one that leaves as many of a later one.
            let payloads = [
                vec![1; 100],
                vec![2; BLOCK_SIZE - 2 * header - 100 - left],
                vec![3; 2 * BLOCK_SIZE],
                vec![4; 10],
                vec![5; 20_000],
            ];
            let (file, starts) = write(framing, NUMBER, &payloads);
            for mode in MODES {
                let (records, end, skipped) = read(&file, mode);
                let what = format!("{framing:?}, {mode:?}, {left} bytes left");
                assert_eq!(records.len(), payloads.len(), "{what}: {end:?}");
                assert_eq!(
                    (records.as_slice(), end, skipped.count),
                    (&payloads[..], LogEnd::Clean, 0),
                    "{what}"
                );
            }
            let zeros = kinds(&file).iter().any(|(_, kind)| matches!(kind, PhysicalKind::Zeros { .. }));
            assert!(!zeros, "{framing:?}: {left} bytes left of the block at {}", starts[2]);
        }
    }
}

#[test]
fn as_many_zeros_are_a_hole_where_a_header_has_seven_bytes() {
    // The writer of a log of short headers puts a header into seven bytes: zeros there were never written.
    let (file, _) = write(Framing::Legacy, NUMBER, &[vec![1; BLOCK_SIZE - 7 - 8], vec![2; 50]]);
    let mut holed = file.clone();
    holed[BLOCK_SIZE - 8..BLOCK_SIZE].fill(0);
    let (records, end, _) = read(&holed, RecoveryMode::PointInTime);
    assert_eq!(records.len(), 1);
    assert!(matches!(end, LogEnd::Cut { .. }), "{end:?}");
}

#[test]
fn zeros_over_more_than_a_header_are_a_hole_in_a_log_of_recyclable_records_too() {
    let (file, starts) = write(Framing::Recyclable, NUMBER, &vec![vec![7; 4085]; 40]);
    assert_eq!(starts[8], BLOCK_SIZE, "eight records to a block");
    let mut holed = file.clone();
    holed[starts[7]..starts[8]].fill(0);
    let (records, end, _) = read(&holed, RecoveryMode::PointInTime);
    let LogEnd::Cut { offset, reason: CutReason::Zeros, .. } = end else { panic!("{end:?}") };
    assert_eq!((records.len(), offset), (7, starts[7] as u64));
}

/// Payloads of all sizes, some of zeros, some over several blocks.
fn assorted(seed: u8, count: usize) -> Vec<Vec<u8>> {
    let len = |i: usize| match i % 11 {
        0 => 0,
        10 => 40_000,
        n => (i * 37 + usize::from(seed)) % (n * 150),
    };
    (0..count).map(|i| vec![if i % 3 == 0 { 0 } else { seed }; len(i)]).collect()
}

#[test]
fn a_former_life_that_is_cut_anywhere_is_no_damage() {
    let (old, _) = write(Framing::Recyclable, 9, &assorted(3, 60));
    for count in 1..50 {
        let payloads = assorted(200, count);
        let (new, _) = write(Framing::Recyclable, NUMBER, &payloads);
        if new.len() + 2 * BLOCK_SIZE > old.len() {
            break;
        }
        let reused = [&new[..], &old[new.len()..]].concat();
        for mode in MODES {
            let (records, end, skipped) = read(&reused, mode);
            assert_eq!(records, payloads, "{mode:?}, {count} records: {end:?}");
            let is_whole = match (mode, end) {
                // Zeros of the former life may stand between.
                (RecoveryMode::PointInTime, LogEnd::OldRecord { offset }) => offset >= new.len() as u64,
                (_, end) => end == LogEnd::Clean,
            };
            assert!(is_whole && skipped.count == 0, "{mode:?}, {count} records, {}: {end:?}", new.len());
        }
    }
}

#[test]
fn a_former_life_does_not_hide_damage() {
    let (old, _) = write(Framing::Recyclable, 9, &vec![vec![3; 500]; 300]);
    let payloads = vec![vec![200; 130]; 100];
    let (new, starts) = write(Framing::Recyclable, NUMBER, &payloads);
    let reused = [&new[..], &old[new.len()..]].concat();
    // A flipped byte of the header, or of the payload, of a record with others behind it, and of the last one.
    for (record, byte) in [40, 99].into_iter().flat_map(|r| (0..20).map(move |byte| (r, byte))) {
        for flip in [1, 0x80, 0xff] {
            let mut bad = reused.clone();
            bad[starts[record] + byte] ^= flip;
            let (records, end, _) = read(&bad, RecoveryMode::PointInTime);
            assert_eq!(records.len(), record, "record {record}, byte {byte}, {flip:#x}");
            assert!(matches!(end, LogEnd::Cut { .. }), "record {record}, byte {byte}, {flip:#x}: {end:?}");
        }
    }
    // Of a page that a power cut lost the former life shows: what stands behind it is behind a hole.
    let mut lost = reused.clone();
    lost[4096..8192].copy_from_slice(&old[4096..8192]);
    let (_, end, _) = read(&lost, RecoveryMode::PointInTime);
    assert!(matches!(end, LogEnd::Cut { .. }), "{end:?}");
    let mut lost = reused;
    lost[..4096].copy_from_slice(&old[..4096]);
    let (records, end, _) = read(&lost, RecoveryMode::PointInTime);
    assert!(records.is_empty());
    assert!(matches!(end, LogEnd::Cut { offset: 0, reason: CutReason::FormerLife, .. }), "{end:?}");
}

#[test]
fn a_thorough_reader_finds_what_stands_behind_damage_in_its_block() {
    for framing in [Framing::Legacy, Framing::Recyclable] {
        let payloads: Vec<Vec<u8>> = (0..500_usize).map(|i| vec![7; 20 + i % 9]).collect();
        let (file, starts) = write(framing, NUMBER, &payloads);
        for (record, byte) in [(0, 5), (0, 4), (0, 12), (300, 5), (300, 0), (498, 15)] {
            let mut bad = file.clone();
            bad[starts[record] + byte] ^= 0xff;
            let starts: Vec<u64> = starts.iter().map(|start| *start as u64).collect();
            let file = Arc::new(Bytes(bad));
            let mut reader = LogReader::thorough(file, FileNumber(u64::from(NUMBER)));
            let mut found = 0;
            while let Some(record) = reader.next().unwrap() {
                assert_eq!(record.payload.len(), 20 + starts.binary_search(&record.offset).unwrap() % 9);
                found += 1;
            }
            assert_eq!(
                (found, reader.skipped().count),
                (499, 1),
                "{framing:?}, record {record}, byte {byte}"
            );
        }
    }
}

#[test]
fn a_compressed_record_goes_on_behind_the_end_of_a_block() {
    // Of a compressed record no fragment need reach the end of its block: the zeros there may stand in its middle.
    use ashlar_base::checksum::{crc32c, mask_crc};
    let raw = |type_byte: u8, payload: &[u8]| {
        let covered = [&[type_byte], &NUMBER.to_le_bytes()[..], payload].concat();
        let len = u16::try_from(payload.len()).unwrap();
        [&mask_crc(crc32c(&covered)).to_le_bytes()[..], &len.to_le_bytes(), &covered].concat()
    };
    for left in 0..RECYCLABLE_HEADER {
        let first = vec![1; BLOCK_SIZE - RECYCLABLE_HEADER - left];
        let file = [raw(6, &first), vec![0; left], raw(8, b"end")].concat();
        for mode in MODES {
            let (records, end, _) = read(&file, mode);
            assert_eq!(
                (records, end),
                (vec![[&first[..], b"end"].concat()], LogEnd::Clean),
                "{mode:?}, {left}"
            );
        }
    }
}
