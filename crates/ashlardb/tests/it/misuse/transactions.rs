//! Wrong use of transactions and indexed batches.

use super::callbacks::{Callback, Trap, trapped};
use super::kind;
use crate::store::listing;
use ashlar_testkit::within;
use ashlardb::prelude::*;
use ashlardb::{BusyKind, ErrorKind, Result, ShutdownKind, StringAppend};
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

const INVALID: Option<ErrorKind> = Some(ErrorKind::InvalidArgument);
const CLOSED: Option<ErrorKind> = Some(ErrorKind::Shutdown(ShutdownKind::Closed));
const SECONDS: u64 = 30;

fn fresh() -> (TempDir, Db) {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path().join("db")).unwrap();
    db.put("k", "v").unwrap();
    (dir, db)
}

/// Every call of a transaction.
fn calls(t: &Transaction, family: &Family) -> Vec<(&'static str, Option<ErrorKind>)> {
    let of = t.family(family);
    vec![
        ("get", kind(t.get("k"))),
        ("get_entity", kind(t.get_entity("k"))),
        ("multi_get", kind(t.multi_get(["k"]))),
        ("key_may_exist", kind(t.key_may_exist("k"))),
        ("explain_get", kind(t.explain_get("k"))),
        ("reading", kind(t.reading(ReadOptions::new()).get("k"))),
        ("cursor", kind(t.scan(..).cursor())),
        ("scan", t.scan(..).next().and_then(kind)),
        ("explain", kind(t.scan(..).explain(10))),
        ("get of a family", kind(of.get("k"))),
        ("get_for_update", kind(t.get_for_update("k"))),
        ("get_for_share", kind(t.get_for_share("k"))),
        ("get_for_update of a family", kind(of.get_for_update("k"))),
        ("get_for_share of a family", kind(of.get_for_share("k"))),
        ("multi_get_for_update", kind(t.multi_get_for_update(["k"]))),
        ("multi_get_for_update of a family", kind(of.multi_get_for_update(["k"]))),
        ("put", kind(t.put("k", "x"))),
        ("delete", kind(t.delete("k"))),
        ("single_delete", kind(t.single_delete("k"))),
        ("put of a family", kind(of.put("k", "x"))),
        ("untracked put", kind(t.untracked().put("k", "x"))),
        ("untracked put of a family", kind(of.untracked().put("k", "x"))),
        ("set_snapshot", kind(t.set_snapshot())),
        ("set_snapshot_on_next_operation", kind(t.set_snapshot_on_next_operation())),
        ("clear_snapshot", kind(t.clear_snapshot())),
        ("set_savepoint", kind(t.set_savepoint())),
        ("rollback_to_savepoint", kind(t.rollback_to_savepoint())),
        ("pop_savepoint", kind(t.pop_savepoint())),
        ("commit", kind(t.commit())),
        ("rollback", kind(t.rollback())),
    ]
}

#[test]
fn a_transaction_that_has_ended_is_refused_every_call() {
    let (_dir, db) = fresh();
    let family = db.default_family();
    for options in [TransactionOptions::new(), TransactionOptions::optimistic()] {
        for commit in [false, true] {
            let t = db.begin_with(options).unwrap();
            t.set_savepoint().unwrap();
            t.put("k", "mine").unwrap();
            let scan = t.scan(..);
            if commit { t.commit() } else { t.rollback() }.unwrap();
            assert!(!t.is_active() && t.is_empty() && t.tracked_keys() == 0 && t.snapshot().is_none());
            for (call, answer) in calls(&t, &family) {
                assert_eq!(answer, INVALID, "{call}");
            }
            let e = t.commit().unwrap_err().to_string();
            assert!(e.contains(if commit { "was committed" } else { "was rolled back" }), "{e}");
            // A scan that was made before keeps what it needs.
            assert_eq!(listing(scan), [(b"k".to_vec(), b"mine".to_vec())]);
        }
    }
}

#[test]
fn families_of_other_databases_and_dropped_ones_are_refused() {
    let (_dir, db) = fresh();
    let (_other_dir, other) = fresh();
    let foreign = other.default_family();
    let gone = db.create_family("gone").unwrap();
    gone.put("k", "v").unwrap();
    let t = db.begin().unwrap();
    let late = db.begin().unwrap();
    late.family(&gone).put("late", "v").unwrap();
    late.put("late", "v").unwrap();
    let reads = db.begin().unwrap();
    assert!(reads.family(&gone).get_for_update("k").unwrap().is_some());
    reads.put("read", "v").unwrap();
    db.drop_family(&gone).unwrap();
    let e = reads.commit().unwrap_err();
    assert!(e.kind() == ErrorKind::InvalidArgument && e.to_string().contains("\"gone\" was dropped"), "{e}");
    assert_eq!(db.get("read").unwrap(), None);
    for (call, answer) in calls(&t, &foreign) {
        if call.contains("of a family") {
            assert_eq!(answer, INVALID, "{call}");
        }
    }
    let t = db.begin().unwrap();
    assert_eq!(kind(t.family(&gone).put("k", "x")), INVALID);
    assert!(t.family(&gone).get("k").unwrap().is_some(), "read as it was when it was dropped");
    assert_eq!((kind(late.commit()), db.get("late").unwrap()), (INVALID, None), "all or nothing");
    assert!(other.get("k").unwrap().as_deref() == Some(b"v"));
    assert_eq!(kind(t.delete_range("a", "z")), Some(ErrorKind::NotSupported));
    assert_eq!(kind(t.merge("k", "v")), INVALID, "without an operator");
    assert_eq!(t.len(), 0);
}

#[test]
fn a_closed_database_ends_its_transactions() {
    for options in [TransactionOptions::new(), TransactionOptions::optimistic()] {
        let (dir, db) = fresh();
        let t = db.begin_with(options).unwrap();
        t.put("k", "mine").unwrap();
        t.get_for_update("j").unwrap();
        db.close().unwrap();
        assert_eq!(kind(t.get("k")), CLOSED);
        assert_eq!(kind(t.get("j")), CLOSED);
        assert_eq!(kind(t.multi_get(["j"])), CLOSED);
        assert_eq!(kind(t.scan(..).cursor()), CLOSED);
        assert_eq!(kind(t.set_snapshot()), CLOSED);
        assert_eq!(kind(t.commit()), CLOSED);
        assert_eq!(kind(t.commit()), INVALID, "it has ended");
        assert_eq!(kind(db.begin()), CLOSED);
        assert_eq!(kind(db.transaction(|t| t.put("k", "x"))), CLOSED);
        drop((t, db));
        let db = Db::open(dir.path().join("db")).unwrap();
        assert_eq!(db.get("k").unwrap().as_deref(), Some(&b"v"[..]));
    }
    // A transaction keeps the database open.
    let (dir, db) = fresh();
    let t = db.begin().unwrap();
    drop(db);
    assert_eq!(kind(Db::open(dir.path().join("db"))), Some(ErrorKind::Busy(BusyKind::Locked)));
    t.put("k", "mine").unwrap();
    t.commit().unwrap();
    drop(t);
    assert_eq!(Db::open(dir.path().join("db")).unwrap().get("k").unwrap().as_deref(), Some(&b"mine"[..]));
}

#[test]
fn a_closure_that_panics_changes_nothing_and_leaves_no_lock() {
    let (_dir, db) = fresh();
    let answer = catch_unwind(AssertUnwindSafe(|| {
        db.transaction(|t| -> Result<()> {
            t.put("k", "mine")?;
            t.put("new", "mine")?;
            std::panic::resume_unwind(Box::new("on purpose"))
        })
    }));
    assert!(answer.is_err());
    assert_eq!(listing(db.scan(..)), [(b"k".to_vec(), b"v".to_vec())]);
    let t = db.begin_with(TransactionOptions::new().lock_timeout(Duration::ZERO)).unwrap();
    t.put("k", "free").unwrap();
    t.commit().unwrap();
    // The work may end its transaction by itself.
    db.transaction(|t| {
        t.put("k", "rolled back")?;
        t.rollback()
    })
    .unwrap();
    db.transaction(|t| {
        t.put("new", "committed")?;
        t.commit()
    })
    .unwrap();
    assert_eq!(db.get("k").unwrap().as_deref(), Some(&b"free"[..]));
    assert!(db.get("new").unwrap().is_some());
}

/// A thread that waits for its own lock, in another transaction, waits until the timeout. On other keys both go on.
#[test]
fn a_transaction_inside_another_meets_its_locks() {
    let (_dir, db) = fresh();
    let short = TransactionOptions::new().lock_timeout(Duration::from_millis(20));
    db.transaction(|outer| {
        outer.put("k", "outer")?;
        let inner = db.transaction_with(short, |inner| inner.put("k", "inner"));
        assert_eq!(kind(inner), Some(ErrorKind::TimedOut));
        db.transaction(|inner| inner.put("other", "inner"))
    })
    .unwrap();
    assert_eq!(db.get("k").unwrap().as_deref(), Some(&b"outer"[..]));
    assert!(db.get("other").unwrap().is_some());
    // An optimistic one inside goes through, and the one around it is a conflict then.
    let answer = db.transaction_with(short.attempts(2), |outer| {
        outer.put("k", "outer")?;
        db.transaction_with(TransactionOptions::optimistic(), |inner| inner.put("k", "inner"))
    });
    assert_eq!(kind(answer), Some(ErrorKind::Busy(BusyKind::Conflict)));
    assert_eq!(db.get("k").unwrap().as_deref(), Some(&b"inner"[..]));
}

/// Callbacks inside a write may not begin or commit; those of a read may.
#[test]
fn transactions_in_callbacks_are_refused_or_served() {
    for callback in [Callback::Comparator, Callback::Listener("flush_finished"), Callback::MergeOperator] {
        let (dir, trap) = (tempfile::tempdir().unwrap(), Arc::new(Trap::default()));
        let db = trapped(dir.path(), callback, &trap).open().unwrap();
        db.put("a", "1").unwrap();
        trap.holds(Some(db.clone()));
        let (send, answers) = std::sync::mpsc::channel();
        let send = std::sync::Mutex::new(send);
        trap.once(move |db| {
            let db = db.unwrap();
            let began = kind(db.begin());
            let done = kind(db.transaction(|t| t.put("inside", "1")));
            send.lock().unwrap().send((began, done)).unwrap();
        });
        let spring = db.clone();
        within(SECONDS, "the callback", move || match callback {
            Callback::Comparator => spring.put("trap2", "v"),
            Callback::MergeOperator => {
                spring.merge("a", "2")?;
                spring.get("a").map(drop)
            }
            Callback::CompactionFilter => spring.compact(),
            Callback::Listener(_) => spring.flush(),
        })
        .unwrap();
        let served = callback == Callback::MergeOperator;
        let expected = if served { (None, None) } else { (INVALID, INVALID) };
        assert_eq!(answers.recv_timeout(Duration::from_secs(SECONDS)).unwrap(), expected, "{callback:?}");
        assert_eq!(db.get("inside").unwrap().is_some(), served);
        trap.holds(None);
    }
}

thread_local! {
    static SHARED: RefCell<Option<Rc<ashlardb::IndexedBatch>>> = const { RefCell::new(None) };
}

/// Uses the batch of its thread, in the middle of a call on it.
#[derive(Debug)]
struct Reenters;

impl ashlardb::MergeOperator for Reenters {
    fn name(&self) -> &str {
        "Reenters"
    }

    fn full_merge(&self, key: &[u8], existing: Option<&[u8]>, operands: &[&[u8]]) -> Result<Vec<u8>> {
        if let Some(batch) = SHARED.take() {
            // A read of the batch calls the operator: other reads are served meanwhile, changes are not.
            assert_eq!(kind(batch.get("absent")), None);
            assert_eq!(kind(batch.operations(..)), None);
            assert_eq!(kind(batch.put("other", "x")), INVALID);
            assert_eq!(kind(batch.put_log_data("x")), INVALID);
            assert_eq!(kind(batch.write()), INVALID);
        }
        StringAppend::new(",").full_merge(key, existing, operands)
    }
}

#[test]
fn a_callback_may_not_change_what_is_in_the_middle_of_a_call() {
    let dir = tempfile::tempdir().unwrap();
    let operator = |f: ashlardb::FamilyBuilder| f.merge_operator(Arc::new(Reenters));
    let db = Db::builder(dir.path().join("db")).default_family(operator).open().unwrap();
    let (t, batch) = (db.begin().unwrap(), Rc::new(db.indexed_batch()));
    t.merge("k", "1").unwrap();
    batch.merge("k", "1").unwrap();
    SHARED.set(Some(Rc::clone(&batch)));
    assert_eq!(batch.get("k").unwrap().as_deref(), Some(&b"1"[..]));
    assert!(SHARED.take().is_none(), "the operator was called");
    assert!(t.get_for_update("k").unwrap().is_some());
    assert_eq!((t.len(), batch.len()), (1, 1));
}

/// A comparator that panics while a batch takes an operation: the batch has none of it.
#[test]
fn a_comparator_that_panics_leaves_batches_and_transactions_whole() {
    let (dir, trap) = (tempfile::tempdir().unwrap(), Arc::new(Trap::default()));
    let db = trapped(dir.path(), Callback::Comparator, &trap).open().unwrap();
    let (t, batch) = (db.begin().unwrap(), db.indexed_batch());
    t.put("a", "1").unwrap();
    batch.put("a", "1").unwrap();
    for put in [&(|| batch.put("trap1", "x")) as &dyn Fn() -> Result<()>, &|| t.untracked().put("trap1", "x")]
    {
        trap.panics();
        assert!(catch_unwind(AssertUnwindSafe(put)).is_err());
    }
    assert_eq!((t.len(), batch.len()), (1, 1));
    assert_eq!(t.get("trap1").unwrap(), None);
    t.put("b", "2").unwrap();
    t.commit().unwrap();
    batch.put("c", "3").unwrap();
    batch.write().unwrap();
    let keys: Vec<u8> = listing(db.scan(..)).into_iter().flat_map(|(key, _)| key).collect();
    assert_eq!(keys, b"abc");
    // In the check under the lead: other writers go on.
    let t = db.begin_with(TransactionOptions::optimistic()).unwrap();
    t.put("trap2", "x").unwrap();
    db.put("later", "x").unwrap();
    trap.panics();
    assert!(catch_unwind(AssertUnwindSafe(|| t.commit())).is_err());
    let other = db.clone();
    within(SECONDS, "a put", move || other.put("z", "1")).unwrap();
    drop(t);
    assert!(db.get("trap2").unwrap().is_none());
    // Under the locks of ranges: the key counts as one of the range, and nothing is left locked.
    let (t, hasty) = (db.begin().unwrap(), TransactionOptions::new().lock_timeout(Duration::ZERO));
    let other = db.begin_with(hasty).unwrap();
    t.lock_range("a".."b").unwrap();
    trap.panics();
    assert_eq!(other.get_for_update("trap3").unwrap_err().kind(), ErrorKind::TimedOut);
    assert!(trap.is_sprung());
    other.put("trap3", "x").unwrap();
    t.rollback().unwrap();
    other.commit().unwrap();
}
