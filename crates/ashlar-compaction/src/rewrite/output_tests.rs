//! Tables cut and written in memory, and the remains when writing fails.

use super::super::fixture::{TestDir, dump, trailer};
use super::*;
use crate::rewrite::Grandparent;
use ashlar_base::{InternalKeyBuf, Order};
use ashlar_env::Env;

const PUT: ValueType = ValueType::Put;

fn fill(sink: &mut TableOutputs, keys: std::ops::Range<u64>, versions: u64) {
    for i in keys {
        for version in 0..versions {
            let key = InternalKeyBuf::new(format!("k{i:06}").as_bytes(), trailer(100 - version, PUT));
            sink.add(key.as_key(), &noise(i, version), version == 0).unwrap();
        }
    }
}

/// 400 bytes that do not compress.
fn noise(a: u64, b: u64) -> Vec<u8> {
    let mut x = (a << 8 | b).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut word = || {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        x.to_le_bytes()
    };
    (0..50).flat_map(|_| word()).collect()
}

fn limits(target_bytes: u64) -> CutLimits {
    CutLimits { target_bytes, ..CutLimits::none() }
}

#[test]
fn cuts_at_the_target_and_never_inside_a_key() {
    let place = TestDir::new(Env::mem(), Order::Bytewise);
    let mut sink = TableOutputs::new(place.plan(), limits(20_000), place.numbers());
    fill(&mut sink, 0..60, 10);
    assert!(sink.bytes_written() > 200_000);
    sink.finish().unwrap();
    let done = sink.take();
    assert!(done.len() > 8, "{} tables", done.len());
    let version = place.empty();
    let mut all = 0;
    for (i, output) in done.iter().enumerate() {
        let file = &output.file;
        let on_disk =
            place.env.fs.metadata(&place.dir.join(format!("{:06}.sst", file.number.0))).unwrap().unwrap();
        assert_eq!(on_disk.len, file.size);
        assert!(i + 1 == done.len() || (20_000..30_000).contains(&file.size), "{}", file.size);
        assert!(file.tail_size > 0 && file.tail_size < file.size && file.unique_id.is_some());
        assert_eq!((file.oldest_ancestor_time, file.file_creation_time), (Some(500), Some(600)));
        assert_eq!((file.smallest_seq.get(), file.largest_seq.get()), (91, 100));
        assert_eq!(file.oldest_blob_file, FileNumber(0));
        let entries = dump(&version, file).len() as u64;
        assert_eq!(
            (entries, entries % 10),
            (output.counts.entries, 0),
            "all ten versions of a key in one table"
        );
        all += entries;
    }
    assert_eq!(all, 600);
    for pair in done.windows(2) {
        let (a, b) = (pair[0].file.largest.as_key().user_key(), pair[1].file.smallest.as_key().user_key());
        assert!(a < b);
    }
    assert_eq!(place.pending.smallest(), Some(FileNumber(10)));
    drop(done);
    assert_eq!(place.pending.smallest(), None);
}

#[test]
fn cuts_where_too_many_grandparents_are_met() {
    let place = TestDir::new(Env::mem(), Order::Bytewise);
    let grandparents = (0..6)
        .map(|i| Grandparent { largest: format!("k{:06}", i * 10 + 9).into_bytes(), size_bytes: 100 })
        .collect();
    let limits = CutLimits { target_bytes: 1 << 30, overlap_bytes_max: 150, grandparents };
    let mut sink = TableOutputs::new(place.plan(), limits, place.numbers());
    fill(&mut sink, 0..60, 1);
    sink.finish().unwrap();
    let entries: Vec<u64> = sink.take().iter().map(|o| o.counts.entries).collect();
    assert_eq!(entries, [20, 20, 20]);
}

#[test]
fn names_the_oldest_blob_file() {
    let place = TestDir::new(Env::mem(), Order::Bytewise);
    let mut sink = TableOutputs::new(place.plan(), CutLimits::none(), place.numbers());
    // In order: a blob; a blob that expires, which does not count; an inline value; a blob; an entity with a blob.
    let entity: &[u8] = b"\x02\x02\x02\x02\x08\x01\x11\x04\x04\x04\x05citynoteOslo\x01\x08\x40\x12\x07";
    let (blob, row) = (ValueType::BlobIndex, ValueType::Entity);
    let entries: [(ValueType, &[u8]); 6] = [
        (blob, &[1, 9, 0, 0, 0]),
        (blob, &[2, 77, 7, 0, 0, 0]),
        (blob, &[0, 77, b'x']),
        (blob, &[1, 11, 0, 0, 0]),
        (row, entity),
        (row, b"\x01\x00"),
    ];
    for (user_key, (kind, value)) in (b'a'..).zip(entries) {
        let key = InternalKeyBuf::new(&[user_key], trailer(1, kind));
        sink.add(key.as_key(), value, true).unwrap();
    }
    for (kind, damaged) in [(blob, &[][..]), (blob, &[3, 1]), (blob, &[1]), (blob, &[2, 1]), (row, &[1, 1])] {
        let bad = InternalKeyBuf::new(b"z", trailer(1, kind));
        assert!(sink.add(bad.as_key(), damaged, true).unwrap_err().is_corruption());
    }
    sink.finish().unwrap();
    assert_eq!(sink.take()[0].file.oldest_blob_file, FileNumber(8));
}

#[test]
fn what_is_not_taken_is_removed() {
    let place = TestDir::new(Env::mem(), Order::Bytewise);
    let mut sink = TableOutputs::new(place.plan(), limits(20_000), place.numbers());
    fill(&mut sink, 0..200, 1);
    assert!(place.files().len() > 2);
    drop(sink);
    assert_eq!(place.files(), [""; 0]);
    assert_eq!(place.pending.smallest(), None);

    let mut sink = TableOutputs::new(place.plan(), limits(20_000), place.numbers());
    fill(&mut sink, 0..200, 1);
    let repeated = InternalKeyBuf::new(b"k000199", trailer(100, PUT));
    assert!(sink.add(repeated.as_key(), b"", false).is_err());
    drop(sink);
    assert_eq!(place.files(), [""; 0]);
}

#[test]
fn a_file_that_is_not_what_was_written_is_refused() {
    let place = TestDir::new(Env::mem(), Order::Bytewise);
    let mut plan = place.plan();
    plan.checks.read_back = true;
    let path = place.dir.join("000010.sst");
    let file = place.env.fs.create(&path).unwrap();
    let mut builder = TableBuilder::new(file, plan.table.clone(), plan.identity.clone()).unwrap();
    builder.add(InternalKeyBuf::new(b"k", trailer(1, PUT)).as_key(), b"v").unwrap();
    let (number, written) = (FileNumber(10), builder.finish().unwrap());
    let sink = TableOutputs::new(plan, CutLimits::none(), place.numbers());
    sink.check_size(number, written.size).unwrap();
    sink.read_back(number, &written).unwrap();
    let (size, longer) = (written.size, written.size + 1);
    let more = TableSummary { entries: 2, ..written };
    for (refused, what) in [
        (sink.check_size(number, longer), format!("table has {size} bytes where {longer} were written")),
        (sink.read_back(number, &more), "table reads back with 1 entries where 2 were written".to_owned()),
    ] {
        let e = refused.unwrap_err();
        assert!(e.is_corruption() && e.message() == what && e.path() == Some(&*path), "{e}");
    }
}

#[test]
fn no_entry_no_table() {
    let place = TestDir::new(Env::mem(), Order::Bytewise);
    let mut sink = TableOutputs::new(place.plan(), limits(20_000), place.numbers());
    sink.finish().unwrap();
    assert!(sink.take().is_empty());
    assert_eq!(place.files(), [""; 0]);
}
