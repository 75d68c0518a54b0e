//! WAL files with two-phase transactions.

use super::replay::{batch, write_wal};
use super::*;
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

/// The result of replaying the WAL files: what is delivered, the last sequence, and why the database is read-only.
fn replayed(logs: &[(u64, &[Vec<u8>])]) -> (Vec<String>, u64, Vec<String>) {
    let env = Env::mem();
    fresh(&env);
    logs.iter().for_each(|(number, batches)| write_wal(&env, *number, batches));
    let mut r = recover(&env).unwrap();
    let (outcome, notes) = replay_into(&env, &mut r, PointInTime).unwrap();
    assert!(r.report.is_clean(), "{}", r.report);
    (notes.ops, outcome.last_seq.get(), r.report.read_only)
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
    assert_eq!(r.report.read_only, Vec::<String>::new());
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
        r.report.read_only,
        ["transaction 'x' with 1 writes in WAL file 000010 is prepared and not decided on"]
    );
}
