//! WAL files of transactions that write before they commit.

use super::replay::{batch, write_wal};
use super::two_phase::{BEGIN, COMMIT, END, NOOP, PERSISTED, ROLLBACK, UNPREPARED, marked};
use super::*;
use crate::{FoundWals, Policy, UndecidedTransaction, replay_found};
use ashlar_base::ErrorKind;
use ashlar_log::RecoveryMode::PointInTime;

/// The result of both replays: that the first asks for another policy, and what the second reads.
fn replayed(env: &Env) -> Result<(Vec<String>, u64, Vec<String>)> {
    let mut r = recover(env).unwrap();
    let before = r.versions.last_sequence();
    let (outcome, _) = replay_into(env, &mut r, PointInTime).unwrap();
    assert_eq!((outcome.policy, r.versions.last_sequence()), (Policy::BeforeCommit, before));
    assert!(matches!(&r.report.read_only[..], [only] if only.contains("write before they commit")));
    let mut r = recover(env).unwrap();
    let wals = FoundWals::open(env, dir(), &r.versions).unwrap();
    let mut notes = Notes::default();
    let how = (PointInTime, Policy::BeforeCommit);
    let outcome = replay_found(&wals, dir(), &r.versions, how, &mut notes, &mut r.report)?;
    assert!(r.report.is_clean(), "{}", r.report);
    let listed = |found: &UndecidedTransaction| format!("{} {}", found.operations, found.keys());
    let lines = r.report.read_only.split_off(1);
    assert_eq!(lines.len(), r.report.undecided.len());
    let lines =
        lines.into_iter().zip(r.report.undecided.iter().map(listed)).map(|(line, n)| format!("{line}: {n}"));
    Ok((notes.ops, outcome.last_seq.get(), lines.collect()))
}

fn log(batches: &[Vec<u8>]) -> Env {
    let env = Env::mem();
    fresh(&env);
    write_wal(&env, 10, batches);
    env
}

#[test]
fn what_is_committed_counts_under_the_sequence_it_was_written_with() {
    let env = log(&[
        marked(1, &[(NOOP, ""), (0, "a"), (0, "b"), (NOOP, "")]),
        marked(2, &[(PERSISTED, ""), (0, "p"), (0, "q"), (END, "x")]),
        marked(3, &[(NOOP, ""), (0, "c"), (NOOP, "")]),
        marked(4, &[(PERSISTED, ""), (0, "r"), (END, "y")]),
        marked(5, &[(COMMIT, "x")]),
        marked(6, &[(0, "r"), (ROLLBACK, "y")]),
        marked(7, &[(PERSISTED, ""), (0, "s"), (0, "t"), (END, "z 1")]),
        marked(8, &[(NOOP, ""), (0, "d"), (NOOP, "")]),
    ]);
    let (ops, last, undecided) = replayed(&env).unwrap();
    assert_eq!(ops, ["0:a@1", "0:b@1", "0:c@3", "0:p@2", "0:q@2", "0:r@6", "0:d@8"]);
    assert_eq!(last, 8);
    assert_eq!(undecided, ["transaction 'z 1' with 2 writes in the WAL is not decided on: 2 2"]);
}

#[test]
fn keys_that_repeat_and_joined_batches_count_on() {
    let env = log(&[
        // Two writers in one record; the first puts a key twice.
        marked(1, &[(0, "a"), (0, "b"), (0, "a"), (NOOP, ""), (0, "c"), (NOOP, "")]),
        // Parts that are written before the transaction prepares.
        marked(4, &[(UNPREPARED, ""), (0, "u"), (END, "x")]),
        marked(5, &[(UNPREPARED, ""), (0, "u"), (0, "v"), (END, "x")]),
        marked(6, &[(PERSISTED, ""), (0, "w"), (END, "x"), (COMMIT, "x"), (0, "d"), (NOOP, "")]),
    ]);
    let (ops, last, undecided) = replayed(&env).unwrap();
    assert_eq!(ops, ["0:a@1", "0:b@1", "0:a@2", "0:c@3", "0:u@4", "0:u@5", "0:v@5", "0:w@6", "0:d@8"]);
    assert_eq!((last, undecided), (8, vec![]));
}

/// A sequence that goes back is damage, unless marks show that sequences count differently; such marks may come later.
#[test]
fn marks_behind_a_sequence_that_goes_back_are_looked_for() {
    let plain = || vec![batch(1, &["a", "b", "c"]), batch(2, &["d"])];
    let e = replay_into(&log(&plain()), &mut recover(&log(&plain())).unwrap(), PointInTime).unwrap_err();
    assert!(e.is_corruption() && e.to_string().contains("goes back"), "{e}");
    let mut batches = plain();
    batches.push(marked(3, &[(PERSISTED, ""), (0, "p"), (END, "x")]));
    let (ops, last, undecided) = replayed(&log(&batches)).unwrap();
    assert_eq!((ops.len(), last, undecided.len()), (4, 3, 1));
}

/// In such a database RocksDB puts a mark behind the data of each write, also if no transaction is in its WAL files.
#[test]
fn plain_writes_alone_tell_that_sequences_count_parts() {
    let env = log(&[
        marked(1, &[(0, "a"), (0, "b"), (NOOP, "")]),
        marked(2, &[(0, "c"), (0, "a"), (NOOP, "")]),
        marked(3, &[(NOOP, ""), (0, "d"), (NOOP, "")]),
    ]);
    let (ops, last, undecided) = replayed(&env).unwrap();
    assert_eq!(ops, ["0:a@1", "0:b@1", "0:c@2", "0:a@2", "0:d@3"]);
    assert_eq!((last, undecided), (3, vec![]));
}

/// The WAL file of undecided data is kept below the families' log numbers. The tables then hold that data.
#[test]
fn what_is_undecided_and_in_tables_is_not_read() {
    for decided in [true, false] {
        let env = log_10_kept_for_what_it_prepares();
        write_wal(&env, 10, &[marked(4, &[(PERSISTED, ""), (0, "p"), (END, "x")])]);
        let decision = if decided { (COMMIT, "x") } else { (NOOP, "") };
        write_wal(&env, 20, &[marked(6, &[(0, "a"), decision])]);
        match replayed(&env) {
            Ok((ops, last, undecided)) => {
                assert_eq!((decided, ops, last), (true, vec!["0:a@6".to_owned()], 6));
                assert!(undecided.is_empty());
            }
            Err(e) => {
                assert!(!decided && e.kind() == ErrorKind::NotSupported, "{e}");
                assert!(e.to_string().contains("transaction 'x'"), "{e}");
            }
        }
    }
}

/// RocksDB does not mix the policies. Uncommitted data does not count under either.
#[test]
fn marks_of_the_other_policy_prepare_too() {
    let env = log(&[
        marked(1, &[(BEGIN, ""), (0, "p"), (END, "x")]),
        marked(2, &[(PERSISTED, ""), (0, "q"), (END, "y"), (COMMIT, "y")]),
    ]);
    let (ops, _, undecided) = replayed(&env).unwrap();
    assert_eq!((ops, undecided.len()), (vec!["0:q@2".to_owned()], 1));
}
