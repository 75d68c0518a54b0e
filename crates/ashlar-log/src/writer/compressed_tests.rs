//! Compressed logs: written, truncated, with flipped bits, and beside other kinds of records.

use super::*;
use crate::reader::{LogEnd, LogReader, RecoveryMode};
use ashlar_base::checksum::{crc32c, mask_crc};
use ashlar_env::Env;
use ashlar_format::log_record::{COMPRESSION_ZSTD, Framing, encode_compression_record, encode_record};
use std::path::Path;
use std::sync::Arc;

const NAME: &str = "db/000014.log";
const MODES: [RecoveryMode; 4] =
    [RecoveryMode::TolerateTail, RecoveryMode::Absolute, RecoveryMode::PointInTime, RecoveryMode::SkipAny];

fn noise(len: usize, mut x: u32) -> Vec<u8> {
    let step = |_| {
        x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (x >> 24) as u8
    };
    (0..len).map(step).collect()
}

/// Small ones, those that shrink, and those that do not and take several blocks.
fn payloads() -> Vec<Vec<u8>> {
    vec![vec![1; 12], noise(70_000, 1), b"abc".repeat(30_000), vec![], noise(300, 2), vec![7; 1_000_000]]
}

fn written(framing: Framing, payloads: &[Vec<u8>]) -> Vec<u8> {
    let env = Env::mem();
    env.fs.create_dir_all(Path::new("db")).unwrap();
    let log =
        LogWriter::create_compressed(Arc::clone(&env.fs), Path::new(NAME), FileNumber(14), framing).unwrap();
    assert!(log.is_compressed());
    for payload in payloads {
        log.append(payload, false).unwrap();
    }
    log.close().unwrap();
    let file = env.fs.open_read(Path::new(NAME)).unwrap();
    let mut bytes = vec![0; usize::try_from(file.len()).unwrap()];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

fn read(bytes: &[u8], mode: RecoveryMode) -> (Vec<Vec<u8>>, LogEnd) {
    let env = Env::mem();
    env.fs.create_dir_all(Path::new("db")).unwrap();
    env.fs.create(Path::new(NAME)).unwrap().write_at(bytes, 0).unwrap();
    let mut reader = LogReader::open(env.fs.open_read(Path::new(NAME)).unwrap(), FileNumber(14), mode);
    let mut all = Vec::new();
    while let Some(record) = reader.next().unwrap() {
        all.push(record.payload.to_vec());
    }
    (all, reader.end())
}

#[test]
fn frames_are_read_back_and_begin_as_rocksdbs_do() {
    for framing in [Framing::Legacy, Framing::Recyclable] {
        let bytes = written(framing, &payloads());
        let raw: usize = payloads().iter().map(Vec::len).sum();
        assert!(bytes.len() < raw / 8, "{} bytes of {raw}", bytes.len());
        for mode in MODES {
            assert!(read(&bytes, mode) == (payloads(), LogEnd::Clean), "{framing:?} {mode:?}");
        }
    }
    let theirs = include_bytes!("../../../../golden/rocksdb-7.8.3/wal_zstd/000004.log");
    assert_eq!(written(Framing::Legacy, &[])[..], theirs[..11]);
    assert_eq!(read(&theirs[..11], RecoveryMode::Absolute), (vec![], LogEnd::Clean));
}

#[test]
fn a_cut_leaves_whole_records_and_a_flip_no_wrong_one() {
    let payloads: Vec<Vec<u8>> = (0..12).map(|i| b"some words ".repeat(i + 1)).collect();
    for framing in [Framing::Legacy, Framing::Recyclable] {
        let bytes = written(framing, &payloads);
        let mut longest = 0;
        for cut in 0..bytes.len() {
            let (found, _) = read(&bytes[..cut], RecoveryMode::PointInTime);
            assert!(payloads.starts_with(&found) && found.len() >= longest && found.len() < payloads.len());
            longest = found.len();
        }
        assert_eq!(longest, payloads.len() - 1);
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut flipped = bytes.clone();
                flipped[at] ^= 1 << bit;
                let (found, end) = read(&flipped, RecoveryMode::PointInTime);
                assert!(payloads.starts_with(&found), "{framing:?}, byte {at} bit {bit}");
                assert!(found.len() < payloads.len() && end != LogEnd::Clean, "byte {at} bit {bit}");
                for record in read(&flipped, RecoveryMode::SkipAny).0 {
                    // Without its first record the log is one of raw frames: batches that do not decode.
                    assert!(at < 11 || payloads.contains(&record), "{framing:?}, byte {at} bit {bit}");
                }
            }
        }
    }
}

/// What newer releases write between the first record and the data: never compressed.
#[test]
fn records_that_are_no_data_stand_uncompressed_among_frames() {
    let data = written(Framing::Recyclable, &[b"one".to_vec()]);
    let frame = &data[11..];
    for (type_byte, payload) in [
        (130, PREDECESSOR.to_vec()),
        (131, PREDECESSOR.to_vec()),
        (10, vec![0, 0, 0, 0, 8, 0]),
        (11, vec![0, 0, 0, 0, 8, 0]),
    ] {
        let mut bytes = Vec::new();
        encode_compression_record(&mut bytes, COMPRESSION_ZSTD);
        let mut header = vec![type_byte];
        if matches!(type_byte, 11 | 131) {
            header.extend_from_slice(&14u32.to_le_bytes());
        }
        let covered = [&header[..], &payload].concat();
        bytes.extend_from_slice(&mask_crc(crc32c(&covered)).to_le_bytes());
        bytes.extend_from_slice(&u16::try_from(payload.len()).unwrap().to_le_bytes());
        bytes.extend_from_slice(&covered);
        bytes.extend_from_slice(frame);
        let (found, end) = read(&bytes, RecoveryMode::Absolute);
        assert_eq!((found, end), (vec![payload, b"one".to_vec()], LogEnd::Clean), "type {type_byte}");
    }
}

/// A file that is used again: its former life was compressed too, and longer.
#[test]
fn a_recycled_file_ends_where_its_former_life_goes_on() {
    let former = written(Framing::Recyclable, &[noise(500, 3), noise(400, 4)]);
    let mut bytes = Vec::new();
    encode_compression_record(&mut bytes, COMPRESSION_ZSTD);
    let frame = zstd::bulk::compress(b"new", 3).unwrap();
    let at = bytes.len() as u64;
    encode_record(&mut bytes, Framing::Recyclable, 14, at, &frame);
    // The former life had number 13.
    let mut old = Vec::new();
    encode_record(&mut old, Framing::Recyclable, 13, bytes.len() as u64, &former[22..]);
    bytes.extend_from_slice(&old);
    for mode in MODES {
        let (found, end) = read(&bytes, mode);
        assert_eq!(found, [b"new"], "{mode:?} {end:?}");
        assert!(matches!(end, LogEnd::Clean | LogEnd::OldRecord { .. }), "{mode:?} {end:?}");
    }
}

const PREDECESSOR: &[u8; 24] = b"\x09\0\0\0\0\0\0\0\x00\x01\0\0\0\0\0\0\x05\0\0\0\0\0\0\0";
