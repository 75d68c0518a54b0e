//! Range tombstones: written, read back, read from RocksDB's tables, damaged.

use crate::fixture::{Entries, forward, identity, key, open};
use ashlar_base::{Order, Result, SeqNum, Trailer, ValueType};
use ashlar_env::Env;
use ashlar_table::{TableBuilder, TableOptions, TableReader, TableSummary};
use std::path::Path;

fn seq(n: u64) -> SeqNum {
    SeqNum::new(n).unwrap()
}

/// A table with put entries `(key, seq)` and tombstones `(begin, end, seq)`.
pub fn write(
    options: &TableOptions,
    points: &[(&str, u64)],
    ranges: &[(&str, &str, u64)],
) -> Result<(Vec<u8>, TableSummary)> {
    let env = Env::mem();
    let path = Path::new("/db/000009.sst");
    env.fs.create_dir_all(Path::new("/db"))?;
    let mut builder = TableBuilder::new(env.fs.create(path)?, options.clone(), identity())?;
    for (begin, end, at) in ranges {
        builder.add_range_tombstone(begin.as_bytes(), end.as_bytes(), seq(*at))?;
    }
    for (user_key, at) in points {
        builder.add(key(user_key.as_bytes(), *at, ValueType::Put).as_key(), b"value")?;
    }
    let summary = builder.finish()?;
    let file = env.fs.open_read(path)?;
    let mut bytes = vec![0; file.len() as usize];
    file.read_exact_at(&mut bytes, 0)?;
    Ok((bytes, summary))
}

/// `begin..end@seqs` of every fragment.
fn shown(table: &TableReader) -> Vec<String> {
    let text = |b: &[u8]| b.escape_ascii().to_string();
    let seqs = |s: &[SeqNum]| s.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    let fragments = table.range_tombstones().fragments();
    fragments.map(|f| format!("{}..{}@{}", text(f.begin), text(f.end), seqs(&f.seqs()))).collect()
}

#[test]
fn come_back_with_bounds_and_counts() {
    for version in 2..=7 {
        let options = TableOptions { format_version: version, ..TableOptions::default() };
        let ranges = [("b", "d", 9), ("b", "d", 4), ("d", "f", 4), ("x", "z", 1)];
        let (bytes, made) = write(&options, &[("b", 12), ("c", 3), ("y", 2)], &ranges).unwrap();
        assert_eq!((made.entries, made.deletions, made.range_deletions), (7, 4, 4));
        assert_eq!((made.smallest_seq, made.largest_seq, made.newest_value), (seq(1), seq(12), seq(12)));
        assert_eq!(made.smallest, key(b"b", 12, ValueType::Put));
        assert_eq!(made.largest.as_key().split(), (&b"z"[..], Trailer::RANGE_END));
        let table = open(&bytes, Order::Bytewise).unwrap();
        assert_eq!(shown(&table), ["b..d@9 4", "d..f@4", "x..z@1"]);
        let p = table.properties();
        assert_eq!((p.num_entries, p.num_deletions, p.num_range_deletions), (Some(7), Some(4), Some(4)));
        assert_eq!((p.key_smallest_seqno, p.key_largest_seqno), (Some(1), Some(12)));
        assert_eq!((p.raw_key_size, p.raw_value_size), (Some(7 * 9), Some(3 * 5 + 4)));
        assert_eq!(table.verify().unwrap(), 3);
        assert_eq!(forward(&table).unwrap().len(), 3, "points only");
        assert!(table.memory() > 0);
    }
}

#[test]
fn bounds_come_from_whichever_reaches_further() {
    let bounds = |points: &[(&str, u64)], ranges: &[(&str, &str, u64)]| {
        let (_, made) = write(&TableOptions::default(), points, ranges).unwrap();
        (format!("{:?}", made.smallest), format!("{:?}", made.largest))
    };
    let largest_end = format!("m#{},RangeDelete", SeqNum::MAX);
    assert_eq!(bounds(&[("b", 5)], &[("b", "m", 7)]), ("b#7,RangeDelete".into(), largest_end.clone()));
    assert_eq!(bounds(&[("b", 7), ("m", 1)], &[("b", "m", 5)]), ("b#7,Put".into(), "m#1,Put".into()));
    assert_eq!(
        bounds(&[("a", 7), ("c", 1)], &[("b", "bb", 5), ("bb", "m", 5)]),
        ("a#7,Put".into(), largest_end)
    );
}

#[test]
fn a_table_of_tombstones_only() {
    for version in [5, 6, 7] {
        let options = TableOptions { format_version: version, ..TableOptions::default() };
        let (bytes, made) = write(&options, &[], &[("a", "k", 3)]).unwrap();
        assert_eq!((made.entries, made.tail_size), (1, made.size));
        assert_eq!(format!("{:?}", made.smallest), "a#3,RangeDelete");
        let table = open(&bytes, Order::Bytewise).unwrap();
        assert_eq!((table.blocks(), table.verify().unwrap()), (0, 0));
        assert_eq!(shown(&table), ["a..k@3"]);
        assert_eq!(forward(&table).unwrap(), Entries::new());
        assert_eq!((table.properties().data_size, table.properties().filter_size), (Some(0), Some(0)));
        let wanted = ashlar_base::LookupKey::new(b"b", SeqNum::MAX);
        assert!(table.get(&wanted).unwrap().is_none());
    }
    assert!(write(&TableOptions::default(), &[], &[]).is_err());
}

#[test]
fn what_does_not_ascend_is_refused() {
    let refused =
        |ranges: &[(&str, &str, u64)]| write(&TableOptions::default(), &[], ranges).err().map(|e| e.kind());
    let invalid = Some(ashlar_base::ErrorKind::InvalidArgument);
    assert_eq!(refused(&[("a", "b", 1), ("a", "b", 2)]), invalid);
    assert_eq!(refused(&[("a", "b", 1), ("a", "b", 1)]), invalid);
    assert_eq!(refused(&[("b", "c", 1), ("a", "b", 1)]), invalid);
    assert_eq!(refused(&[("a", "a", 1)]), invalid);
    assert_eq!(refused(&[("b", "a", 1)]), invalid);
    assert_eq!(refused(&[("a", "c", 2), ("a", "b", 1), ("b", "c", 9)]), None);
    let reverse = TableOptions { order: Order::ReverseBytewise, ..TableOptions::default() };
    let (bytes, made) = write(&reverse, &[("k", 1)], &[("m", "c", 5), ("c", "b", 5)]).unwrap();
    assert_eq!(made.largest.as_key().user_key(), b"b");
    assert_eq!(shown(&open(&bytes, Order::ReverseBytewise).unwrap()), ["m..c@5", "c..b@5"]);
    let env = Env::mem();
    env.fs.create_dir_all(Path::new("/db")).unwrap();
    let out = env.fs.create(Path::new("/db/000009.sst")).unwrap();
    let mut builder = TableBuilder::new(out, TableOptions::default(), identity()).unwrap();
    let stray = key(b"a", 1, ValueType::RangeDelete);
    assert!(builder.add(stray.as_key(), b"b").is_err(), "not among the points");
}

fn golden(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden").join(name);
    let file = Env::os().unwrap().fs.open_read(&path).unwrap();
    let mut bytes = vec![0; file.len() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

#[test]
fn of_rocksdb() {
    let table = open(&golden("sst/v7_db_merge_rangedel_versions.sst"), Order::Bytewise).unwrap();
    assert_eq!(shown(&table), ["k03..k05@40", "k05..k06@46 40", "k06..k09@46", "z0..z9@48"]);
    let table = open(&golden("rocksdb-7.8.3/range_del/000011.sst"), Order::Bytewise).unwrap();
    assert_eq!(shown(&table), ["key2..key5@11"]);
    assert_eq!(table.verify().unwrap(), 1);
}

#[test]
fn damage_never_shows_other_tombstones() {
    let options = TableOptions { block_size: 64, ..TableOptions::default() };
    let (bytes, _) = write(&options, &[("b", 5), ("c", 6)], &[("a", "c", 9), ("c", "x", 9)]).unwrap();
    let good = shown(&open(&bytes, Order::Bytewise).unwrap());
    let check = |damaged: &[u8], what: &str| {
        if let Ok(table) = open(damaged, Order::Bytewise) {
            assert_eq!(shown(&table), good, "{what}");
        }
    };
    for at in 0..bytes.len() {
        check(&bytes[..at], &format!("cut at {at}"));
        for flip in [1, 0x0e, 0x80] {
            let mut damaged = bytes.clone();
            damaged[at] ^= flip;
            check(&damaged, &format!("byte {at} flip {flip}"));
        }
    }
}
