//! WALs written by RocksDB 7.8.3 and LevelDB 1.23, read whole: records where RocksDB's tools saw them, batches with the
//! entries that RocksDB's `ldb idump` printed for the same directory (`tests/golden/*.expected.txt`).

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

use ashlar_base::{FileNumber, Result};
use ashlar_env::ReadFile;
use ashlar_format::write_batch::{BatchOp, BatchReader};
use ashlar_log::{LogEnd, LogReader, LogRecordKind, RecoveryMode};
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

#[derive(Debug)]
struct Bytes(&'static [u8]);

impl ReadFile for Bytes {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        let rest = self.0.get(usize::try_from(offset).unwrap()..).unwrap_or_default();
        let n = rest.len().min(buf.len());
        buf[..n].copy_from_slice(&rest[..n]);
        Ok(n)
    }
    fn len(&self) -> u64 {
        self.0.len() as u64
    }
    fn path(&self) -> &Path {
        Path::new("golden.log")
    }
}

struct Golden {
    name: &'static str,
    number: u64,
    log: &'static [u8],
    expected: &'static str,
}

macro_rules! golden {
    ($db:literal, $number:literal, $digits:literal) => {
        Golden {
            name: $db,
            number: $number,
            log: include_bytes!(concat!("../../../../golden/rocksdb-7.8.3/", $db, "/", $digits, ".log")),
            expected: include_str!(concat!("../golden/", $db, ".expected.txt")),
        }
    };
}

const GOLDEN: [Golden; 15] = [
    golden!("wal_ops", 4, "000004"),
    golden!("wal_frag", 4, "000004"),
    golden!("wal_trailer", 4, "000004"),
    golden!("wal_zstd", 4, "000004"),
    golden!("wal_recycle", 12, "000012"),
    golden!("wal_recycle", 14, "000014"),
    golden!("column_families", 4, "000004"),
    golden!("column_families", 14, "000014"),
    golden!("atomic_flush", 12, "000012"),
    golden!("merge_flushed", 10, "000010"),
    golden!("manifest_history", 14, "000014"),
    golden!("manifest_tags", 18, "../manifest_history/000014"),
    golden!("range_del", 10, "000010"),
    golden!("ttl", 8, "000008"),
    golden!("udt", 8, "000008"),
];

const MODES: [RecoveryMode; 4] =
    [RecoveryMode::TolerateTail, RecoveryMode::Absolute, RecoveryMode::PointInTime, RecoveryMode::SkipAny];

/// Offsets and payloads of all records; the log must end cleanly.
fn records(log: &'static [u8], number: u64, mode: RecoveryMode) -> Vec<(u64, Vec<u8>)> {
    let mut reader = LogReader::open(Arc::new(Bytes(log)), FileNumber(number), mode);
    let mut found = Vec::new();
    while let Some(record) = reader.next().unwrap() {
        assert_eq!(record.kind, LogRecordKind::Data);
        found.push((record.offset, record.payload.to_vec()));
    }
    assert_eq!(reader.end(), LogEnd::Clean);
    assert_eq!((reader.good_end(), reader.skipped().count), (log.len() as u64, 0));
    found
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, b| {
        write!(text, "{b:02X}").unwrap();
        text
    })
}

/// The entries of a batch as `idump` prints them, by family id. Range deletions have no line there.
fn entries(batch: &[u8], deletes_have_timestamps: bool) -> Vec<(u32, String)> {
    let batch = BatchReader::new(batch).unwrap();
    let mut seq = batch.seq().get();
    let mut lines = Vec::new();
    for op in batch.iter() {
        let op = op.unwrap();
        let (key, value) = match op {
            BatchOp::Put { key, value, .. } | BatchOp::Merge { key, value, .. } => (key, value),
            BatchOp::Delete { key, .. } | BatchOp::SingleDelete { key, .. } => (key, &b""[..]),
            BatchOp::DeleteRange { .. } => {
                seq += 1;
                continue;
            }
            BatchOp::LogData(_) => continue,
            other => panic!("{other:?}"),
        };
        let number = match op.value_type().unwrap() as u8 {
            0 if deletes_have_timestamps => 20,
            number => number,
        };
        let line = format!("'{}' seq:{seq}, type:{number} => {}", hex(key), hex(value));
        lines.push((op.family().unwrap().0, line.trim_end().to_owned()));
        seq += 1;
    }
    lines
}

/// The lines of a family's section. Long ones are cut off with `...`.
fn expected_entries(text: &str, family: u32) -> Vec<&str> {
    let name = ["default", "one", "two"][family as usize];
    let section = text.lines().skip_while(|l| l.strip_prefix("family ") != Some(name)).skip(1);
    section.take_while(|l| l.starts_with('\'')).map(str::trim_end).collect()
}

fn same(expected: &str, line: &str) -> bool {
    match expected.split_once("... (") {
        Some((head, _)) => line.starts_with(head),
        None => expected == line,
    }
}

#[test]
fn entries_are_those_of_rocksdbs_dump() {
    let mut compared = 0;
    for Golden { name, number, log, expected } in GOLDEN {
        for mode in MODES {
            for (_, batch) in records(log, number, mode) {
                for (family, line) in entries(&batch, name == "udt") {
                    if HIDDEN.iter().any(|(db, head)| *db == name && line.starts_with(head)) {
                        continue;
                    }
                    let lines = expected_entries(expected, family);
                    assert!(lines.iter().any(|l| same(l, &line)), "{name}: {line:.200}");
                    compared += 1;
                }
            }
        }
    }
    assert_eq!(compared, 4 * ENTRIES);
}

/// Entries that no dump shows: behind a range deletion, or of a family that was dropped.
const HIDDEN: [(&str, &str); 4] = [
    ("wal_ops", "'6B31' seq:7"),
    ("wal_ops", "'6B35' seq:8"),
    ("column_families", "'7431' seq:3"),
    ("column_families", "'6731' seq:4"),
];

/// Point entries in all of [`GOLDEN`], without the hidden ones.
const ENTRIES: usize = 51;

#[test]
fn a_database_that_lives_in_its_wal_is_whole() {
    for Golden { name, number, log, expected } in GOLDEN.into_iter().take(4) {
        let all = records(log, number, RecoveryMode::PointInTime);
        let count: usize = all.iter().map(|(_, batch)| entries(batch, false).len()).sum();
        let hidden = HIDDEN.iter().filter(|(db, _)| *db == name).count();
        assert_eq!(count - hidden, expected_entries(expected, 0).len(), "{name}");
    }
}

#[test]
fn records_stand_where_rocksdbs_tools_see_them() {
    for Golden { name, number, log, expected } in GOLDEN {
        let file = format!("log {number:06}.log");
        let physical =
            expected.lines().skip_while(|l| *l != file).skip(1).map_while(|l| l.strip_prefix("physical "));
        let starts: Vec<u64> = physical
            .filter_map(|l| {
                let mut words = l.split(' ');
                let offset = words.next()?.parse().ok()?;
                // Full and first, short and long header.
                ["1", "2", "5", "6"].contains(&words.next()?).then_some(offset)
            })
            .collect();
        let found = records(log, number, RecoveryMode::PointInTime);
        assert!(!starts.is_empty(), "{name}");
        assert_eq!(found.iter().map(|(offset, _)| *offset).collect::<Vec<_>>(), starts, "{name}");
    }
}

#[test]
fn prepared_transactions_come_out_in_order() {
    let log = include_bytes!("../../../../golden/rocksdb-7.8.3/txn_2pc/000004.log");
    let all = records(log, 4, RecoveryMode::PointInTime);
    let headers: Vec<(u64, u32)> = all
        .iter()
        .map(|(_, batch)| BatchReader::new(batch).unwrap())
        .map(|b| (b.seq().get(), b.count()))
        .collect();
    assert_eq!(headers, [(1, 1), (2, 1), (2, 1), (2, 1), (2, 0), (3, 0), (3, 1)]);
    let last = |i: usize| {
        let (_, batch) = &all[i];
        format!("{:?}", BatchReader::new(batch).unwrap().iter().last().unwrap().unwrap())
    };
    assert_eq!(last(1), format!("{:?}", BatchOp::EndPrepare { xid: b"tx-commit" }));
    assert_eq!(last(4), format!("{:?}", BatchOp::Commit { xid: b"tx-commit" }));
    assert_eq!(last(5), format!("{:?}", BatchOp::Rollback { xid: b"tx-rollback" }));
}

#[test]
fn leveldbs_logs() {
    // Its directory with snappy has the same log.
    let log = include_bytes!("../../../../golden/leveldb-1.23/plain/000007.log");
    let all = records(log, 7, RecoveryMode::Absolute);
    let first = BatchReader::new(&all[0].1).unwrap();
    assert_eq!((first.seq().get(), all.len()), (32, 31));
    assert_eq!(
        entries(&all[0].1, false),
        [(0, "'6B65793030' seq:32, type:1 => 76616C75652D312D3030".to_owned())]
    );
}

/// Every prefix and every changed byte of a compressed log and of one with long headers, in every mode.
#[test]
fn damaged_goldens_deliver_only_what_was_written() {
    for Golden { name, number, log, .. } in GOLDEN.into_iter().filter(|g| g.log.len() < 1000) {
        let written: Vec<_> =
            records(log, number, RecoveryMode::Absolute).into_iter().map(|(_, b)| b).collect();
        let cuts = (0..log.len()).map(|end| log[..end].to_vec());
        let flips = (0..log.len() * 8).map(|bit| {
            let mut bad = log.to_vec();
            bad[bit / 8] ^= 1 << (bit % 8);
            bad
        });
        for (i, bad) in cuts.chain(flips).enumerate() {
            let bad: &'static [u8] = bad.leak();
            for mode in MODES {
                let mut reader = LogReader::open(Arc::new(Bytes(bad)), FileNumber(number), mode);
                let mut at = 0;
                while let Some(record) = reader.next().unwrap() {
                    let place = written.iter().skip(at).position(|w| w == record.payload);
                    let place = place
                        .unwrap_or_else(|| panic!("{name}, damage {i}: a record that was never written"));
                    assert!(place == 0 || mode == RecoveryMode::SkipAny, "{name}, damage {i}: a hole");
                    at += place + 1;
                }
                assert!(at <= written.len());
            }
        }
    }
}
