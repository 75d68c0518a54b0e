use super::*;
use ashlar_base::{ErrorKind, FamilyId, SeqNum, ValueType};
use ashlar_testkit::heap::untouched;

fn hex(text: &str) -> Vec<u8> {
    text.split_whitespace().map(|b| u8::from_str_radix(b, 16).unwrap()).collect()
}

const D: FamilyId = FamilyId::DEFAULT;

/// Payload of the second record of golden `wal_ops`.
const ALL_PLAIN: &str = "02 00 00 00 00 00 00 00 09 00 00 00 01 01 62 01 32 00 01 61 01 01 63 01 33 07 01 63 \
    02 01 6E 08 05 00 00 00 00 00 00 00 03 04 6E 6F 74 65 01 02 6B 31 01 78 01 02 6B 35 01 79 01 02 6B 39 01 7A \
    0F 02 6B 30 02 6B 36";

fn all_plain() -> BatchEncoder {
    let mut b = BatchEncoder::new();
    b.put(D, b"b", b"2").unwrap();
    b.delete(D, b"a").unwrap();
    b.put(D, b"c", b"3").unwrap();
    b.single_delete(D, b"c").unwrap();
    b.merge(D, b"n", &5u64.to_le_bytes()).unwrap();
    b.log_data(b"note").unwrap();
    b.put(D, b"k1", b"x").unwrap();
    b.put(D, b"k5", b"y").unwrap();
    b.put(D, b"k9", b"z").unwrap();
    b.delete_range(D, b"k0", b"k6").unwrap();
    b
}

#[test]
fn writes_what_rocksdb_writes() {
    let golden = hex(ALL_PLAIN);
    let mut b = all_plain();
    assert_eq!(b.finish(SeqNum::new(2).unwrap()), golden);
    assert_eq!((b.count(), b.byte_len()), (9, golden.len()));
    let r = BatchReader::new(&golden).unwrap();
    assert_eq!((r.seq().get(), r.count()), (2, 9));
    let ops: Vec<_> = r.iter().map(Result::unwrap).collect();
    assert_eq!(ops.len(), 10);
    assert_eq!(ops[4], BatchOp::Merge { family: D, key: b"n", value: &5u64.to_le_bytes() });
    assert_eq!(ops[5], BatchOp::LogData(b"note"));
    assert_eq!(ops[9], BatchOp::DeleteRange { family: D, begin: b"k0", end: b"k6" });
    assert_eq!(b.reader().iter().map(Result::unwrap).collect::<Vec<_>>(), ops);
}

#[test]
fn families_take_the_long_form() {
    let (one, two) = (FamilyId(1), FamilyId(2));
    let mut b = BatchEncoder::new();
    b.put(D, b"d2", b"default-2").unwrap();
    b.put(one, b"o2", b"one-2").unwrap();
    b.delete(one, b"o1").unwrap();
    b.merge(two, b"cnt", &3u64.to_le_bytes()).unwrap();
    b.put(two, b"s1", b"x").unwrap();
    b.single_delete(two, b"s1").unwrap();
    b.delete_range(two, b"t0", b"t9").unwrap();
    let encoded = b.finish(SeqNum::new(5).unwrap()).to_vec();
    let golden = include_bytes!("../../../../golden/rocksdb-7.8.3/column_families/000014.log");
    assert_eq!(encoded, golden[7..]);
    let families: Vec<_> = b.reader().iter().map(|op| op.unwrap().family().unwrap().0).collect();
    assert_eq!(families, [0, 1, 1, 2, 2, 2, 2]);
}

#[test]
fn group_commit_joins_records() {
    let (mut group, one) = (BatchEncoder::new(), all_plain());
    let mut two = BatchEncoder::new();
    two.put(FamilyId(300), b"", b"").unwrap();
    for b in [&one, &two, &one] {
        group.append_records(b).unwrap();
    }
    assert_eq!(group.count(), 19);
    group.finish(SeqNum::new(7).unwrap());
    let bytes = group.finish(SeqNum::new(8).unwrap()).to_vec();
    let r = BatchReader::new(&bytes).unwrap();
    assert_eq!((r.seq().get(), r.iter().filter(|o| o.is_ok()).count()), (8, 21));
    r.validate().unwrap();
    assert_eq!(BatchEncoder::from_encoded(&bytes).unwrap().finish(SeqNum::new(8).unwrap()), bytes);
    let mut copy = bytes;
    set_sequence(&mut copy, SeqNum::MAX);
    assert_eq!(BatchReader::new(&copy).unwrap().seq(), SeqNum::MAX);
    set_sequence(&mut [0; 3], SeqNum::MAX);
}

#[test]
fn marks_bring_the_state_back() {
    let mut b = all_plain();
    let mark = b.mark();
    let before = b.finish(SeqNum::ZERO).to_vec();
    b.put(D, b"x", b"y").unwrap();
    b.rollback_to(mark);
    assert_eq!(b.finish(SeqNum::ZERO), before);
    b.clear();
    assert!(b.is_empty() && b.count() == 0);
    b.rollback_to(mark);
    assert!(b.is_empty());
    assert_eq!(b.finish(SeqNum::ZERO), [0; 12]);
}

#[test]
fn what_the_format_cannot_hold_is_refused_and_changes_nothing() {
    let test = "what_the_format_cannot_hold_is_refused_and_changes_nothing";
    let Some(huge) = untouched(test, 1 << 32) else { return };
    let (longest, value) = (&huge[..huge.len() - 1], &huge[..]);
    let mut b = all_plain();
    let before = b.finish(SeqNum::ZERO).to_vec();
    for refused in [
        b.put(D, b"k", value),
        b.merge(D, b"k", value),
        b.entity(D, b"k", value),
        b.put(D, longest, b""),
        b.delete(D, longest),
        b.single_delete(D, longest),
        b.delete_range(D, b"k", longest),
        b.delete_range(D, longest, b"k"),
    ] {
        let e = refused.unwrap_err();
        assert_eq!(e.kind(), ErrorKind::InvalidArgument);
        assert_eq!(e.message(), "key or value of 4 GiB or more");
    }
    let e = b.log_data(value).unwrap_err();
    assert_eq!((e.kind(), e.message()), (ErrorKind::InvalidArgument, "log data of 4 GiB or more"));
    assert_eq!(b.finish(SeqNum::ZERO), before);
}

#[test]
fn two_phase_markers() {
    let with = |records: &str, count: u8| {
        let mut bytes = vec![0; 12];
        bytes[8] = count;
        bytes.extend(hex(records));
        let ops = BatchReader::new(&bytes).unwrap().iter().map(|o| format!("{:?}", o.unwrap()));
        ops.collect::<Vec<_>>()
    };
    assert_eq!(with("0D 09 12 13", 0), ["Noop", "BeginPrepare", "BeginPersistedPrepare", "BeginUnprepare"]);
    assert_eq!(with("0A 01 78 0B 01 78", 0), ["EndPrepare { xid: [120] }", "Commit { xid: [120] }"]);
    assert_eq!(with("0C 00", 0), ["Rollback { xid: [] }"]);
    assert_eq!(with("15 01 09 01 78", 0), ["CommitWithTimestamp { timestamp: [9], xid: [120] }"]);
    assert_eq!(
        with("19 01 01 6B 09 76 02 00 00 00 00 00 00 00", 1),
        ["TimedPut { family: FamilyId(1), key: [107], value: [118], write_time: 2 }"]
    );
    assert_eq!(
        with("10 00 01 6B 01 76 16 01 6B 01 77", 2),
        [
            "BlobIndex { family: FamilyId(0), key: [107], index: [118] }",
            "Entity { family: FamilyId(0), key: [107], entity: [119] }"
        ]
    );
}

#[test]
fn the_count_must_be_exact() {
    let mut bytes = hex(ALL_PLAIN);
    for count in [0u8, 8, 10, 255] {
        bytes[8] = count;
        let r = BatchReader::new(&bytes).unwrap();
        assert_eq!(r.validate().unwrap_err().what, "wrong count", "{count}");
        assert!(BatchEncoder::from_encoded(&bytes).is_err());
        let delivered = r.iter().filter(|o| o.as_ref().is_ok_and(BatchOp::is_counted)).count();
        assert_eq!(delivered, usize::from(count.min(9)));
    }
}

#[test]
fn hostile_bytes_are_refused_with_their_place() {
    assert_eq!(BatchReader::new(&[0; 11]).unwrap_err().what, "unexpected end");
    assert_eq!(BatchReader::new(&[0xff; 12]).unwrap_err().what, "over 56 bits");
    let golden = hex(ALL_PLAIN);
    for end in 12..golden.len() {
        assert!(BatchReader::new(&golden[..end]).unwrap().validate().is_err(), "{end}");
    }
    for (i, flip) in (0..golden.len()).flat_map(|i| [1u8, 0x80, 0xff].map(|f| (i, f))) {
        let mut bad = golden.clone();
        bad[i] ^= flip;
        if let Ok(r) = BatchReader::new(&bad) {
            assert!(r.iter().count() <= bad.len());
        }
    }
    for tag in [0x14u8, 0x1a, 0x7f, 0x80, 0xff] {
        let mut bad = golden.clone();
        bad.push(tag);
        let e = BatchReader::new(&bad).unwrap().validate().unwrap_err();
        assert_eq!((e.what, e.at), ("unknown tag", golden.len()));
    }
    let short_timed = hex("00 00 00 00 00 00 00 00 01 00 00 00 18 01 6B 02 76 76");
    let e = BatchReader::new(&short_timed).unwrap().validate().unwrap_err();
    assert_eq!((e.field, e.at), ("timed put.value", 15));
}

#[test]
fn value_types_follow_the_tags() {
    let types: Vec<_> = all_plain().reader().iter().map(|o| o.unwrap().value_type()).collect();
    assert_eq!(types[1], Some(ValueType::Delete));
    assert_eq!(types[5], None);
    assert_eq!(types[9], Some(ValueType::RangeDelete));
}
