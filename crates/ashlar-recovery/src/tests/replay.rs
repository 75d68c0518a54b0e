//! Replay in the four modes, over damage of every kind.

use super::*;
use ashlar_base::ErrorKind;
use ashlar_format::log_record::LogLink;
use ashlar_format::version_edit::WalAddition;
use ashlar_format::write_batch::BatchEncoder;
use ashlar_log::{Framing, LogWriter, RecoveryMode::*};
use std::sync::Arc;

/// Bytes of one record of [`six`]: header, batch header, put of `kN` with a value of one byte.
const RECORD: usize = 7 + 12 + 1 + 3 + 2;

pub(super) fn batch(first: u64, keys: &[&str]) -> Vec<u8> {
    let mut b = BatchEncoder::new();
    for key in keys {
        b.put(FamilyId::DEFAULT, key.as_bytes(), b"v").unwrap();
    }
    b.finish(seq(first)).to_vec()
}

pub(super) fn write_wal(env: &Env, number: u64, payloads: &[Vec<u8>]) {
    let path = dir().join(FileKind::Wal(FileNumber(number)).name());
    let log = LogWriter::create(Arc::clone(&env.fs), &path, FileNumber(number), Framing::Legacy).unwrap();
    for p in payloads {
        log.append(p, false).unwrap();
    }
    log.close().unwrap();
}

/// A database whose WAL file 10 holds k0 to k5, one batch each, with sequences 1 to 6.
fn six() -> Env {
    let env = Env::mem();
    fresh(&env);
    let batches: Vec<_> = (0..6).map(|i| batch(i + 1, &[&format!("k{i}")])).collect();
    write_wal(&env, 10, &batches);
    env
}

fn damage(env: &Env, number: u64, f: impl FnOnce(&mut Vec<u8>)) {
    let name = FileKind::Wal(FileNumber(number)).name();
    let mut bytes = get(&*env.fs, &dir().join(&name));
    f(&mut bytes);
    put(env, &name, &bytes);
}

/// The number of recovered keys; `None` when the open fails, which must then change nothing.
fn keys(env: &Env, mode: RecoveryMode) -> Option<usize> {
    let before = contents(env);
    let mut r = recover(env).unwrap();
    let result = replay_into(env, &mut r, mode);
    assert_eq!(contents(env), before);
    match result {
        Ok((outcome, notes)) => {
            assert_eq!(outcome.last_seq, seq(notes.ops.len() as u64));
            assert_eq!(outcome.cut, r.report.sequence_cut.is_some());
            Some(notes.ops.len())
        }
        Err(e) => {
            assert!(e.is_corruption() && e.offset().is_some(), "{e}");
            assert_eq!(e.path(), Some(&*dir().join("000010.log")), "{e}");
            None
        }
    }
}

#[test]
fn each_mode_over_each_damage() {
    type Damage = fn(&mut Vec<u8>);
    let cases: [(&str, Damage, [Option<usize>; 4]); 9] = [
        ("nothing", |_| {}, [Some(6), Some(6), Some(6), Some(6)]),
        ("last bytes cut off", |b| b.truncate(b.len() - 3), [Some(5), None, Some(5), Some(5)]),
        ("ends in the last header", |b| b.truncate(5 * RECORD + 4), [Some(5), None, Some(5), Some(5)]),
        ("stray bytes", |b| b.extend([1, 2, 3]), [Some(6), None, Some(6), Some(6)]),
        ("zeros", |b| b.resize(b.len() + 200, 0), [Some(6), Some(6), Some(6), Some(6)]),
        ("bit flip in the third", |b| b[2 * RECORD + 20] ^= 1, [None, None, Some(2), Some(2)]),
        ("bit flip in the last", |b| b[5 * RECORD + 20] ^= 1, [None, None, Some(5), Some(5)]),
        ("length past the end", |b| b[2 * RECORD + 4] = 255, [Some(2), None, Some(2), Some(2)]),
        ("cut between records", |b| b.truncate(4 * RECORD), [Some(4), Some(4), Some(4), Some(4)]),
    ];
    for (name, damage_it, expected) in cases {
        let env = six();
        damage(&env, 10, damage_it);
        let found = [TolerateTail, Absolute, PointInTime, SkipAny].map(|mode| keys(&env, mode));
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn every_cut_and_every_flip_leaves_a_prefix() {
    let good = get(&*six().fs, &dir().join("000010.log"));
    let env = six();
    for at in 0..good.len() {
        put(&env, "000010.log", &good[..at]);
        let n = keys(&env, PointInTime).unwrap();
        assert_eq!(n, at / RECORD, "cut at {at}");
        let mut bad = good.clone();
        bad[at] ^= 0x10;
        put(&env, "000010.log", &bad);
        assert_eq!(keys(&env, PointInTime).unwrap(), at / RECORD, "flip at {at}");
    }
}

#[test]
fn a_later_log_goes_on_only_where_the_damage_was() {
    for (first, expected) in
        [(3, vec!["0:k0@1", "0:k1@2", "0:x@3"]), (7, vec!["0:k0@1", "0:k1@2"]), (2, vec![])]
    {
        let env = six();
        damage(&env, 10, |b| b[2 * RECORD + 20] ^= 1);
        write_wal(&env, 12, &[batch(first, &["x"])]);
        let mut r = recover(&env).unwrap();
        let (outcome, notes) = replay_into(&env, &mut r, PointInTime).unwrap();
        if first == 2 {
            assert_eq!(notes.ops.len(), 2, "a log that goes back is not the continuation either");
        } else {
            assert_eq!(notes.ops, expected);
        }
        assert!(outcome.cut, "{}", r.report);
        assert_eq!(outcome.newest_wal, Some(FileNumber(12)));
        assert_eq!(outcome.last_seq, seq(notes.ops.len() as u64));
        let files: Vec<_> = r.report.dropped.iter().map(|d| d.file.as_str()).collect();
        if first == 3 {
            assert_eq!(files, ["000010.log"]);
        } else {
            assert_eq!(files, ["000010.log", "000012.log"], "{}", r.report);
        }
    }
}

#[test]
fn an_empty_batch_ties_the_logs_together() {
    let env = six();
    damage(&env, 10, |b| b[2 * RECORD + 20] ^= 1);
    write_wal(&env, 12, &[batch(3, &[]), batch(3, &["x", "y"])]);
    write_wal(&env, 13, &[batch(5, &["z"])]);
    let mut r = recover(&env).unwrap();
    let (outcome, notes) = replay_into(&env, &mut r, PointInTime).unwrap();
    assert_eq!(notes.ops, ["0:k0@1", "0:k1@2", "0:x@3", "0:y@4", "0:z@5"]);
    assert_eq!(outcome.last_seq, seq(5));
}

#[test]
fn a_torn_log_that_is_not_the_newest() {
    let env = six();
    damage(&env, 10, |b| b.truncate(b.len() - 3));
    write_wal(&env, 12, &[batch(7, &["x"])]);
    let mut r = recover(&env).unwrap();
    let e = replay_into(&env, &mut r, TolerateTail).unwrap_err();
    assert!(e.is_corruption() && e.to_string().contains("not the newest"), "{e}");
}

#[test]
fn sequences_never_go_back() {
    for mode in [TolerateTail, Absolute, PointInTime, SkipAny] {
        let env = six();
        write_wal(&env, 12, &[batch(4, &["x"])]);
        let mut r = recover(&env).unwrap();
        let e = replay_into(&env, &mut r, mode).unwrap_err();
        assert!(e.to_string().contains("the sequence goes back: 7 was next, the batch has 4"), "{e}");
        assert_eq!(e.path(), Some(&*dir().join("000012.log")));
    }
}

/// Blocks that a failed device never wrote, with the content of another WAL file.
#[test]
fn the_beginning_of_an_older_log_is_damage() {
    for records in [1, 3] {
        let env = six();
        let old = [link(4, 1, SIX), batch(4, &["x"]), batch(5, &["y"])];
        write_wal(&env, 12, &old[..records]);
        let mut r = recover(&env).unwrap();
        let edit = VersionEdit { min_log_to_keep: Some(FileNumber(2)), ..VersionEdit::of(FamilyId::DEFAULT) };
        r.versions.commit(vec![edit]).unwrap();
        let (outcome, notes) = replay_into(&env, &mut r, PointInTime).unwrap();
        assert!(notes.ops.len() == 6 && outcome.cut, "{}", r.report);
        let [dropped] = &r.report.dropped[..] else { panic!("{}", r.report) };
        assert_eq!((dropped.file.as_str(), dropped.offset), ("000012.log", 0));
        let mut r = recover(&env).unwrap();
        let e = replay_into(&env, &mut r, Absolute).unwrap_err();
        assert!(e.is_corruption() && e.to_string().contains("an older WAL file"), "{e}");
    }
}

#[test]
fn gaps_in_sequences_are_fine() {
    let env = six();
    write_wal(&env, 12, &[batch(40, &["x"])]);
    let mut r = recover(&env).unwrap();
    let (outcome, notes) = replay_into(&env, &mut r, PointInTime).unwrap();
    assert_eq!((outcome.last_seq, notes.ops.len()), (seq(40), 7));
    assert!(r.report.is_clean());
    assert!(r.versions.next_file_number() > FileNumber(12));
}

#[test]
fn flushed_families_take_nothing() {
    let env = Env::mem();
    let v = fresh(&env).versions;
    let one = v.create_family("one", Order::Bytewise, 7, FileNumber(4)).unwrap();
    let dropped = v.create_family("dropped", Order::Bytewise, 7, FileNumber(4)).unwrap().id;
    v.drop_family(dropped).unwrap();
    let mut b = BatchEncoder::new();
    b.put(FamilyId::DEFAULT, b"a", b"v").unwrap();
    b.put(one.id, b"b", b"v").unwrap();
    b.put(dropped, b"c", b"v").unwrap();
    b.put(FamilyId::DEFAULT, b"d", b"v").unwrap();
    write_wal(&env, 10, &[b.finish(seq(1)).to_vec()]);
    let edit = VersionEdit { log_number: Some(FileNumber(11)), ..VersionEdit::default() };
    v.commit(vec![edit]).unwrap();
    let mut r = recover(&env).unwrap();
    let (outcome, notes) = replay_into(&env, &mut r, PointInTime).unwrap();
    assert_eq!(notes.ops, ["1:b@2"], "what is skipped keeps its number");
    assert_eq!(outcome.last_seq, seq(4));
    // No family needs the WAL file any more, so it is not read.
    v.commit(vec![VersionEdit { log_number: Some(FileNumber(11)), ..VersionEdit::of(one.id) }]).unwrap();
    let mut r = recover(&env).unwrap();
    let (_, notes) = replay_into(&env, &mut r, PointInTime).unwrap();
    assert!(notes.batches.is_empty());
}

#[test]
fn a_family_ahead_of_the_damage() {
    let env = six();
    let v = recover(&env).unwrap().versions;
    let one = v.create_family("one", Order::Bytewise, 7, FileNumber(4)).unwrap();
    damage(&env, 10, |b| b[2 * RECORD + 20] ^= 1);
    let number = v.new_file_number();
    table_file(&env, number).unwrap();
    let log_number = Some(FileNumber(11));
    v.commit(vec![VersionEdit { family: one.id, log_number, ..flush_edit(number, "x", 6) }]).unwrap();
    let mut r = recover(&env).unwrap();
    let e = replay_into(&env, &mut r, PointInTime).unwrap_err();
    let text = e.to_string();
    assert!(text.contains("column family inconsistency: family \"one\""), "{e}");
    assert!(text.contains("000010.log at offset") && text.contains("checksum"), "{e}");
}

#[test]
fn what_was_synced_is_never_a_torn_tail() {
    let tracked = |synced| {
        let env = six();
        let v = recover(&env).unwrap().versions;
        let wal = WalAddition { number: FileNumber(10), synced_size: Some(synced) };
        v.commit(vec![VersionEdit { wal_added: vec![wal], ..VersionEdit::default() }]).unwrap();
        env
    };
    let replay = |env: &Env| {
        let mut r = recover(env).unwrap();
        replay_into(env, &mut r, PointInTime).map(|(_, notes)| notes.ops.len())
    };
    let env = tracked(3 * RECORD as u64);
    damage(&env, 10, |b| b[3 * RECORD + 20] ^= 1);
    assert_eq!(replay(&env).unwrap(), 3);
    damage(&env, 10, |b| b[2 * RECORD + 20] ^= 1);
    let e = replay(&env).unwrap_err();
    assert!(e.is_corruption() && e.to_string().contains("that was synced"), "{e}");
    damage(&env, 10, |b| b.truncate(2 * RECORD));
    let e = replay(&env).unwrap_err();
    assert!(e.to_string().contains("but 75 were synced"), "{e}");
    env.fs.remove(&dir().join("000010.log")).unwrap();
    let e = replay(&env).unwrap_err();
    assert!(e.to_string().contains("WAL file 000010 is missing"), "{e}");
}

#[test]
fn batches_that_are_wrong_inside() {
    let mut wrong_count = batch(3, &["x"]);
    wrong_count[8] = 2;
    let mut backwards = BatchEncoder::new();
    backwards.delete_range(FamilyId::DEFAULT, b"z", b"a").unwrap();
    let beyond = batch(SeqNum::MAX.get(), &["x"]);
    for bad in [wrong_count, backwards.finish(seq(3)).to_vec(), b"short".to_vec(), vec![0xff; 30], beyond] {
        let env = Env::mem();
        fresh(&env);
        write_wal(&env, 10, &[batch(1, &["k0", "k1"]), bad, batch(4, &["k3"])]);
        assert_eq!(keys(&env, PointInTime), Some(2));
        assert_eq!(keys(&env, Absolute), None);
        assert_eq!(keys(&env, TolerateTail), None);
        let mut r = recover(&env).unwrap();
        let (_, notes) = replay_into(&env, &mut r, SkipAny).unwrap();
        assert_eq!(notes.ops, ["0:k0@1", "0:k1@2", "0:k3@4"]);
        assert!(!r.report.is_clean());
    }
}

#[test]
fn sequences_end_at_56_bits() {
    let bytes = batch(SeqNum::MAX.get(), &["a", "b"]);
    let ops: Vec<_> = sequenced_ops(&BatchReader::new(&bytes).unwrap()).collect();
    assert!(matches!(ops[0], Ok((SeqNum::MAX, _))));
    let e = ops[1].as_ref().unwrap_err();
    assert!(ops.len() == 2 && e.is_corruption() && e.message() == "a sequence number over 56 bits", "{e}");
}

#[test]
fn timestamps_in_a_log_are_refused_by_family() {
    use ashlar_base::checksum::{crc32c, mask_crc};
    use ashlar_format::log_record::encode_timestamp_sizes;
    for (family, refused) in [(0, true), (7, false)] {
        let env = six();
        let typed = [&[10_u8][..], &encode_timestamp_sizes(&[(FamilyId(family), 8)])].concat();
        let mut record = mask_crc(crc32c(&typed)).to_le_bytes().to_vec();
        record.extend(u16::try_from(typed.len() - 1).unwrap().to_le_bytes());
        record.extend(typed);
        damage(&env, 10, |b| b.splice(0..0, record).for_each(drop));
        let mut r = recover(&env).unwrap();
        let replayed = replay_into(&env, &mut r, PointInTime);
        if !refused {
            assert_eq!(replayed.unwrap().1.ops.len(), 6, "a family that is gone");
            continue;
        }
        let e = replayed.map(drop).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::NotSupported);
        assert_eq!(e.message(), "user-defined timestamps in the WAL, of family 0");
        assert_eq!((e.path(), e.offset()), (Some(&*dir().join("000010.log")), Some(0)));
    }
}

#[test]
fn empty_range_deletions_take_no_sequence() {
    let mut b = BatchEncoder::new();
    b.delete_range(FamilyId::DEFAULT, b"b", b"b").unwrap();
    b.put(FamilyId::DEFAULT, b"c", b"v").unwrap();
    let env = Env::mem();
    fresh(&env);
    write_wal(&env, 10, &[b.finish(seq(2)).to_vec(), batch(4, &["d"])]);
    let mut r = recover(&env).unwrap();
    let (outcome, notes) = replay_into(&env, &mut r, Absolute).unwrap();
    assert_eq!(notes.ops, ["0:c@2", "0:d@4"]);
    assert_eq!(outcome.last_seq, seq(4));
}

#[test]
fn an_unreadable_log_fails_every_mode() {
    use ashlar_base::error::IoKind;
    use ashlar_env::sim::{CallClass, Repeat, SimEnv};
    for mode in [TolerateTail, Absolute, PointInTime, SkipAny] {
        let sim = SimEnv::new(7);
        let env = sim.env();
        env.fs.create_dir_all(dir()).unwrap();
        fresh(&env);
        write_wal(&env, 10, &[batch(1, &["a"])]);
        let mut r = recover(&env).unwrap();
        sim.fail_call(CallClass::Read, sim.calls_of(CallClass::Read) + 3, Repeat::Sticky, IoKind::Other);
        let e = replay_into(&env, &mut r, mode).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Io(IoKind::Other), "{e}");
    }
}

/// Bytes of one WAL file of [`six`].
const SIX: u64 = 6 * RECORD as u64;

/// The empty batch at the beginning of a WAL file that continues another one.
pub(super) fn link(next: u64, number: u64, end: u64) -> Vec<u8> {
    let mut b = BatchEncoder::new();
    b.log_data(&LogLink { number: FileNumber(number), end }.encode()).unwrap();
    b.finish(seq(next)).to_vec()
}

#[test]
fn a_log_is_not_taken_where_the_end_of_the_one_before_it_is_missing() {
    // (the remaining bytes of log 10, whether log 12 is replayed in each mode)
    let cases =
        [(Some(6), [true; 4]), (Some(4), [false, false, false, true]), (None, [false, false, false, true])];
    for (left, follows) in cases {
        for (mode, follows) in [TolerateTail, Absolute, PointInTime, SkipAny].into_iter().zip(follows) {
            let env = six();
            match left {
                Some(records) => damage(&env, 10, |b| b.truncate(records * RECORD)),
                None => env.fs.remove(&dir().join("000010.log")).unwrap(),
            }
            write_wal(&env, 12, &[link(7, 10, SIX), batch(7, &["x"])]);
            let mut r = recover(&env).unwrap();
            match replay_into(&env, &mut r, mode) {
                Ok((outcome, notes)) => {
                    let x = notes.ops.iter().any(|op| op == "0:x@7");
                    assert_eq!(x, follows, "{left:?} records in mode {mode:?}: {:?}", notes.ops);
                    assert_eq!(outcome.cut, !follows, "{}", r.report);
                    assert_eq!(r.report.is_clean(), left == Some(6), "{}", r.report);
                }
                Err(e) => {
                    assert!(!follows && mode != PointInTime, "{left:?} records in mode {mode:?}: {e}");
                    assert!(e.to_string().contains("the WAL file before"), "{e}");
                }
            }
        }
    }
}

#[test]
fn zeros_where_records_were_written_are_a_hole_too() {
    let env = six();
    damage(&env, 10, |b| b[4 * RECORD..].fill(0));
    write_wal(&env, 12, &[link(7, 10, SIX), batch(7, &["x"])]);
    let mut r = recover(&env).unwrap();
    let (outcome, notes) = replay_into(&env, &mut r, PointInTime).unwrap();
    assert_eq!((notes.ops.len(), outcome.cut), (4, true), "{}", r.report);
}

#[test]
fn a_log_that_was_begun_in_vain_is_passed_over() {
    // WAL file 11 was begun when file 10 held two batches; its creation failed and writing continued in file 10.
    let env = six();
    write_wal(&env, 11, &[link(3, 10, 2 * RECORD as u64)]);
    write_wal(&env, 12, &[link(7, 10, SIX), batch(7, &["x"])]);
    let mut r = recover(&env).unwrap();
    let (outcome, notes) = replay_into(&env, &mut r, PointInTime).unwrap();
    assert_eq!((notes.ops.len(), outcome.cut), (7, false), "{}", r.report);
    assert!(r.report.is_clean(), "{}", r.report);
}

#[test]
fn a_log_before_the_first_that_is_needed_is_not_asked_for() {
    let env = six();
    env.fs.remove(&dir().join("000010.log")).unwrap();
    write_wal(&env, 12, &[link(7, 1, SIX), batch(7, &["x"])]);
    let mut r = recover(&env).unwrap();
    let edit = VersionEdit { min_log_to_keep: Some(FileNumber(2)), ..VersionEdit::of(FamilyId::DEFAULT) };
    r.versions.commit(vec![edit]).unwrap();
    let (outcome, notes) = replay_into(&env, &mut r, PointInTime).unwrap();
    assert_eq!((notes.ops.len(), outcome.cut), (1, false), "{}", r.report);
}
