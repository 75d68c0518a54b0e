//! WAL files with two-phase transactions.

use super::replay::{batch, write_wal};
use super::*;
use ashlar_format::log_record::LogLink;
use ashlar_format::write_batch::BatchEncoder;
use ashlar_log::RecoveryMode::PointInTime;
use ashlar_log::{Framing, LogWriter};
use std::sync::Arc;

pub(super) const BEGIN: u8 = 0x09;
pub(super) const END: u8 = 0x0a;
pub(super) const COMMIT: u8 = 0x0b;
pub(super) const ROLLBACK: u8 = 0x0c;
pub(super) const NOOP: u8 = 0x0d;
pub(super) const PERSISTED: u8 = 0x12;
pub(super) const UNPREPARED: u8 = 0x13;

/// A batch of marks and puts: `(mark, transaction)`, or `(0, key)`.
pub(super) fn marked(first: u64, parts: &[(u8, &str)]) -> Vec<u8> {
    let puts: Vec<&str> = parts.iter().filter(|p| p.0 == 0).map(|p| p.1).collect();
    let mut out = batch(first, &puts)[..12].to_vec();
    for (mark, text) in parts {
        match *mark {
            0 => out.extend_from_slice(&batch(first, &[text])[12..]),
            BEGIN | NOOP | PERSISTED | UNPREPARED => out.push(*mark),
            mark => {
                out.extend([mark, u8::try_from(text.len()).unwrap()]);
                out.extend_from_slice(text.as_bytes());
            }
        }
    }
    out
}

fn lines(report: &RecoveryReport) -> Vec<String> {
    report.undecided.iter().map(ToString::to_string).collect()
}

/// The result of replaying the WAL files: what is delivered, the last sequence, and what is undecided.
fn replayed(logs: &[(u64, &[Vec<u8>])]) -> (Vec<String>, u64, Vec<String>) {
    let env = Env::mem();
    fresh(&env);
    logs.iter().for_each(|(number, batches)| write_wal(&env, *number, batches));
    let mut r = recover(&env).unwrap();
    let (outcome, notes) = replay_into(&env, &mut r, PointInTime).unwrap();
    assert!(r.report.is_clean(), "{}", r.report);
    (notes.ops, outcome.last_seq.get(), lines(&r.report))
}

#[test]
fn data_counts_at_its_commit() {
    let (ops, last, reasons) = replayed(&[(
        10,
        &[
            batch(1, &["a"]),
            marked(2, &[(BEGIN, ""), (0, "p1"), (0, "p2"), (END, "x")]),
            batch(2, &["b"]),
            marked(3, &[(BEGIN, ""), (0, "q"), (END, "y")]),
            marked(3, &[(COMMIT, "x")]),
            marked(5, &[(ROLLBACK, "y")]),
            batch(5, &["c"]),
        ],
    )]);
    assert_eq!(ops, ["0:a@1", "0:b@2", "0:p1@3", "0:p2@4", "0:c@5"]);
    assert_eq!((last, reasons), (5, vec![]));
}

#[test]
fn joined_batches_are_taken_apart() {
    let (ops, last, reasons) = replayed(&[(
        10,
        &[
            marked(1, &[(BEGIN, ""), (0, "p"), (END, "x"), (0, "a"), (BEGIN, ""), (0, "q"), (END, "y")]),
            marked(2, &[(0, "own"), (COMMIT, "y"), (0, "b"), (COMMIT, "x"), (COMMIT, "gone")]),
        ],
    )]);
    assert_eq!(ops, ["0:a@1", "0:own@2", "0:q@3", "0:b@4", "0:p@5"]);
    assert_eq!((last, reasons), (5, vec![]));
}

#[test]
fn a_decision_may_stand_in_a_later_log() {
    let prepare = marked(2, &[(BEGIN, ""), (0, "p"), (END, "x")]);
    let (ops, last, reasons) =
        replayed(&[(10, &[batch(1, &["a"]), prepare]), (12, &[marked(2, &[(COMMIT, "x")])])]);
    assert_eq!((ops, last, reasons), (vec!["0:a@1".to_owned(), "0:p@2".to_owned()], 2, vec![]));
}

#[test]
fn what_is_undecided_is_named() {
    let (ops, last, reasons) =
        replayed(&[(10, &[batch(1, &["a"]), marked(2, &[(BEGIN, ""), (0, "p"), (0, "q"), (END, "x y")])])]);
    assert_eq!((ops, last), (vec!["0:a@1".to_owned()], 1));
    assert_eq!(
        reasons,
        ["transaction 'x y' with 2 writes in WAL file 000010 is prepared and not decided on"]
    );
}

#[test]
fn a_commit_with_a_timestamp_is_a_commit() {
    let mut commit = marked(2, &[(0, "own")]);
    commit.extend([0x15, 8, 1, 0, 0, 0, 0, 0, 0, 0, 1, b'x']);
    let (ops, last, reasons) =
        replayed(&[(10, &[batch(1, &["a"]), marked(2, &[(BEGIN, ""), (0, "p"), (END, "x")]), commit])]);
    assert_eq!(ops, ["0:a@1", "0:own@2", "0:p@3"]);
    assert_eq!((last, reasons), (3, vec![]));
}

/// A WAL file below those that the families need is read only for transactions prepared in it.
#[test]
fn kept_logs_are_read_for_what_they_prepare() {
    for prepares in [true, false] {
        let env = log_10_kept_for_what_it_prepares();
        let first = match prepares {
            true => marked(6, &[(BEGIN, ""), (0, "p"), (END, "x")]),
            false => batch(1, &["old"]),
        };
        write_wal(&env, 10, &[first]);
        write_wal(&env, 20, &[marked(6, &[(COMMIT, "x")]), batch(6 + u64::from(prepares), &["n"])]);
        let mut r = recover(&env).unwrap();
        let (_, notes) = replay_into(&env, &mut r, PointInTime).unwrap();
        match prepares {
            true => assert_eq!(notes.ops, ["0:p@6", "0:n@7"]),
            false => assert_eq!(notes.ops, ["0:n@6"]),
        }
    }
}

/// A commit may be flushed while an older prepared transaction keeps its WAL file.
#[test]
fn kept_logs_are_read_for_what_they_decide() {
    let env = log_10_kept_for_what_it_prepares();
    write_wal(
        &env,
        10,
        &[marked(6, &[(BEGIN, ""), (0, "p"), (END, "x"), (BEGIN, ""), (0, "q"), (END, "y")])],
    );
    write_wal(&env, 12, &[marked(6, &[(COMMIT, "x")])]);
    write_wal(&env, 20, &[marked(7, &[(ROLLBACK, "y")]), batch(7, &["n"])]);
    let mut r = recover(&env).unwrap();
    let (_, notes) = replay_into(&env, &mut r, PointInTime).unwrap();
    assert!(r.report.undecided.is_empty());
    assert_eq!(notes.ops, ["0:n@7"]);
}

/// The end of a recycled WAL file says nothing of the files behind one that is kept for transactions: those between them may
/// be gone.
#[test]
fn the_end_of_a_kept_recycled_log_stops_no_replay() {
    let env = log_10_kept_for_what_it_prepares();
    let prepare = marked(6, &[(BEGIN, ""), (0, "p"), (END, "x")]);
    let life = |number: u64, records: usize| {
        let path = dir().join(FileKind::Wal(FileNumber(number)).name());
        let log =
            LogWriter::create(Arc::clone(&env.fs), &path, FileNumber(number), Framing::Recyclable).unwrap();
        for _ in 0..records {
            log.append(&prepare, false).unwrap();
        }
        log.close().unwrap();
        let bytes = get(&*env.fs, &path);
        env.fs.remove(&path).unwrap();
        bytes
    };
    let (mut file, now) = (life(5, 3), life(10, 1));
    file[..now.len()].copy_from_slice(&now);
    put(&env, &FileKind::Wal(FileNumber(10)).name(), &file);
    write_wal(&env, 20, &[batch(8, &["n"])]);
    let mut r = recover(&env).unwrap();
    let (outcome, notes) = replay_into(&env, &mut r, PointInTime).unwrap();
    assert_eq!(notes.ops, ["0:n@8"], "{}", r.report);
    assert!(r.report.dropped.is_empty() && !outcome.cut && outcome.unclean.is_none(), "{}", r.report);
    assert_eq!(
        lines(&r.report),
        ["transaction 'x' with 1 writes in WAL file 000010 is prepared and not decided on"]
    );
}

/// The beginning of a WAL file of this engine: the link, and copies of undecided transactions.
fn with_link(before: u64, end: u64, first: u64, parts: &[(u8, &str)]) -> Vec<u8> {
    let mut link = BatchEncoder::new();
    link.log_data(&LogLink { number: FileNumber(before), end }.encode()).unwrap();
    let link = link.finish(seq(first)).to_vec();
    let copies = marked(first, parts);
    [&copies[..12], &link[12..], &copies[12..]].concat()
}

const COPY: [(u8, &str); 4] = [(ROLLBACK, "x"), (BEGIN, ""), (0, "p"), (END, "x")];

#[test]
fn a_copy_replaces_the_data_of_the_older_file() {
    let prepare = marked(2, &[(BEGIN, ""), (0, "p"), (END, "x")]);
    let older = [batch(1, &["a"]), prepare];
    let end = 7 * 2 + older.iter().map(Vec::len).sum::<usize>() as u64;
    let newer = [with_link(10, end, 2, &COPY), marked(2, &[(COMMIT, "x")]), batch(3, &["b"])];
    let (ops, last, undecided) = replayed(&[(10, &older), (12, &newer)]);
    assert_eq!((ops, last, undecided), (vec!["0:a@1".into(), "0:p@2".into(), "0:b@3".into()], 3, vec![]));
    let (ops, _, undecided) = replayed(&[(10, &older), (12, &newer[..1])]);
    assert_eq!((ops, undecided.len()), (vec!["0:a@1".to_owned()], 1));
    assert!(undecided[0].contains("WAL file 000012"), "{undecided:?}");
}

/// The write of a decision fails, but the bytes are in the file. The engine begins another file, and crashes before it commits
/// that file.
#[test]
fn a_copy_of_what_was_decided_does_not_count() {
    for decision in [COMMIT, ROLLBACK] {
        let older = [
            batch(1, &["a"]),
            marked(2, &[(BEGIN, ""), (0, "p"), (END, "x")]),
            marked(2, &[(decision, "x")]),
        ];
        let next = if decision == COMMIT { 3 } else { 2 };
        let (ops, _, undecided) = replayed(&[(10, &older), (12, &[marked(3, &COPY)])]);
        assert_eq!((ops.len() as u64, undecided), (next - 1, vec![]));
        // The name was used again in between.
        let again = [older.to_vec(), vec![marked(next, &[(BEGIN, ""), (0, "q"), (END, "x")])]].concat();
        let copy = [(ROLLBACK, "x"), (BEGIN, ""), (0, "q"), (END, "x")];
        let (_, _, undecided) = replayed(&[(10, &again), (12, &[marked(3, &copy)])]);
        assert_eq!(undecided.len(), 1, "{undecided:?}");
    }
}

/// A dropped family needed the file with the decision, which is gone; the file with the prepare is still there.
#[test]
fn what_a_later_file_does_not_copy_was_decided() {
    let env = log_10_kept_for_what_it_prepares();
    let both = marked(6, &[(BEGIN, ""), (0, "p"), (END, "x"), (BEGIN, ""), (0, "q"), (END, "y")]);
    write_wal(&env, 10, &[both]);
    let copies = [(ROLLBACK, "y"), (BEGIN, ""), (0, "q"), (END, "y")];
    write_wal(&env, 20, &[with_link(12, 99, 7, &copies), batch(7, &["n"])]);
    let mut r = recover(&env).unwrap();
    let (_, notes) = replay_into(&env, &mut r, PointInTime).unwrap();
    assert_eq!(notes.ops, ["0:n@7"], "{}", r.report);
    assert_eq!(
        lines(&r.report),
        ["transaction 'y' with 1 writes in WAL file 000020 is prepared and not decided on"]
    );
}

/// The creation of a WAL file fails behind its first batch, and everything since takes no sequence numbers.
#[test]
fn a_file_begun_in_vain_replaces_nothing_newer() {
    let prepare = |key| marked(2, &[(BEGIN, ""), (0, key), (END, "x")]);
    let older = [batch(1, &["a"]), prepare("p"), marked(2, &[(ROLLBACK, "x")]), prepare("q")];
    let end = 7 * 2 + older[..2].iter().map(Vec::len).sum::<usize>() as u64;
    for copies in [&COPY[..], &[]] {
        let (ops, _, undecided) = replayed(&[(10, &older), (12, &[with_link(10, end, 2, copies)])]);
        assert_eq!(ops, ["0:a@1"]);
        assert_eq!(
            undecided,
            ["transaction 'x' with 1 writes in WAL file 000010 is prepared and not decided on"]
        );
    }
}

/// The remains of a WAL file whose creation failed: writing continued in the file before it.
#[test]
fn copies_in_a_file_that_was_begun_in_vain_do_not_count() {
    let older = [
        batch(1, &["a"]),
        marked(2, &[(BEGIN, ""), (0, "p"), (END, "x")]),
        marked(2, &[(COMMIT, "x")]),
        batch(3, &["b"]),
    ];
    let (ops, last, undecided) = replayed(&[(10, &older), (12, &[with_link(10, 20, 2, &COPY)])]);
    assert_eq!((ops, last, undecided), (vec!["0:a@1".into(), "0:p@2".into(), "0:b@3".into()], 3, vec![]));
}
