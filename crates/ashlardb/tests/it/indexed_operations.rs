//! The operations of an indexed batch, with and without those that others replaced, against a list: in ranges, from both ends,
//! with cursors, and after savepoints, rollbacks, a clear and a write.

use crate::indexed::{key, open};
use ashlar_testkit::Rng;
use ashlardb::options::Order;
use ashlardb::prelude::*;
use ashlardb::{
    Columns, ErrorKind, IndexedBatch, IndexedBatchOptions, Operation, OperationCursor, Operations, Result,
    SeqNum, Write,
};

type Entry = (Vec<u8>, Operation);

fn keeping(db: &Db, yes: bool) -> IndexedBatch {
    db.indexed_batch_with(IndexedBatchOptions::new().keep_operations(yes))
}

/// A random operation on `to`, and the same as the iterator shows it.
fn operate(rng: &mut Rng, to: &impl Write) -> Entry {
    let (key, value) = (key(rng), format!("v{}", rng.below(1000)).into_bytes());
    let operation = match rng.below(10) {
        0..=3 => Operation::Put(value[..].into()),
        4 => Operation::Delete,
        5 => Operation::SingleDelete,
        6 => Operation::Entity(Columns::new(vec![(b"c".to_vec(), value)]).into()),
        _ => Operation::Merge(value[..].into()),
    };
    match &operation {
        Operation::Put(value) => to.put(&key, value),
        Operation::Delete => to.delete(&key),
        Operation::SingleDelete => to.single_delete(&key),
        Operation::Entity(columns) => to.put_entity(&key, &[("c", columns.get("c").unwrap())]),
        Operation::Merge(operand) => to.merge(&key, operand),
        _ => unreachable!(),
    }
    .unwrap();
    (key, operation)
}

/// What a batch shows after these operations, oldest first: the keys in order, the newest operation on each key first.
fn expected(operations: &[Entry], order: &Order, keeps: bool) -> Vec<Entry> {
    let mut shown: Vec<Entry> = Vec::new();
    for (key, operation) in operations {
        if !keeps && !matches!(operation, Operation::Merge(_)) {
            shown.retain(|(other, _)| other != key);
        }
        shown.push((key.clone(), operation.clone()));
    }
    shown.reverse();
    shown.sort_by(|(a, _), (b, _)| order.compare(a, b));
    shown
}

fn compare(rng: &mut Rng, of: impl Fn(&[u8], &[u8]) -> Operations, shown: &[Entry], order: &Order) {
    let mut ends = [key(rng), key(rng)];
    ends.sort_by(|a, b| order.compare(a, b));
    let [from, to] = ends;
    let within = |key: &[u8]| order.compare(&from, key).is_le() && order.compare(key, &to).is_lt();
    let want: Vec<Entry> = shown.iter().filter(|(key, _)| within(key)).cloned().collect();
    assert_eq!(of(&from, &to).collect::<Vec<_>>(), want);
    let mut backward: Vec<_> = of(&from, &to).rev().collect();
    backward.reverse();
    assert_eq!(backward, want);
    // From both ends until they meet.
    let (mut both, mut front, mut back) = (of(&from, &to), Vec::new(), Vec::new());
    loop {
        let from_front = rng.percent(50);
        let Some(entry) = (if from_front { both.next() } else { both.next_back() }) else { break };
        if from_front { front.push(entry) } else { back.push(entry) }
    }
    assert!(both.next().is_none() && both.next_back().is_none());
    back.reverse();
    assert_eq!([front, back].concat(), want);
    walk(rng, of(&from, &to).cursor(), &want, order);
}

/// A cursor that goes to and fro is where the list says.
fn walk(rng: &mut Rng, mut cursor: OperationCursor, want: &[Entry], order: &Order) {
    let (mut at, mut fresh): (Option<usize>, bool) = (None, true);
    for _ in 0..40 {
        let key = key(rng);
        let shown = match rng.below(8) {
            0 => {
                at = (!want.is_empty()).then_some(0);
                cursor.first()
            }
            1 => {
                at = want.len().checked_sub(1);
                cursor.last()
            }
            2 => {
                at = want.iter().position(|(k, _)| order.compare(k, &key).is_ge());
                cursor.seek(&key)
            }
            3 => {
                at = want.iter().rposition(|(k, _)| order.compare(k, &key).is_le());
                cursor.seek_for_prev(&key)
            }
            4 | 5 => {
                at = if fresh { Some(0) } else { at.map(|at| at + 1) };
                at = at.filter(|at| *at < want.len());
                cursor.next()
            }
            _ => {
                at = if fresh { Some(want.len()) } else { at };
                at = at.and_then(|at| at.checked_sub(1));
                cursor.prev()
            }
        };
        let shown = shown.map(|(key, operation)| (key.to_vec(), operation.clone()));
        assert_eq!(shown.as_ref(), at.and_then(|at| want.get(at)));
        fresh = false;
    }
}

#[test]
fn the_operations_agree_with_a_list_of_them() {
    let dir = tempfile::tempdir().unwrap();
    let (db, families) = open(dir.path());
    let mut rng = Rng::new(29);
    for round in 0..60 {
        let keeps = round % 2 == 0;
        let batch = keeping(&db, keeps);
        let (mut lists, mut saved) = (vec![Vec::<Entry>::new(); families.len()], Vec::new());
        for _ in 0..20 {
            match rng.below(9) {
                0 => {
                    batch.set_savepoint().unwrap();
                    saved.push(lists.clone());
                }
                1 if !saved.is_empty() => {
                    batch.rollback_to_savepoint().unwrap();
                    lists = saved.pop().unwrap();
                }
                2 if !saved.is_empty() => {
                    batch.pop_savepoint().unwrap();
                    saved.pop();
                }
                3 if rng.percent(20) => {
                    batch.clear();
                    lists.iter_mut().for_each(Vec::clear);
                    saved.clear();
                }
                _ => {
                    for ((family, _), list) in families.iter().zip(&mut lists) {
                        (0..3).for_each(|_| list.push(operate(&mut rng, &batch.family(family))));
                    }
                }
            }
            for ((family, order), list) in families.iter().zip(&lists) {
                let of = batch.family(family);
                let of = |from: &[u8], to: &[u8]| of.operations(from..to).unwrap();
                compare(&mut rng, of, &expected(list, order, keeps), order);
            }
        }
        assert_eq!(batch.len(), lists.iter().map(Vec::len).sum::<usize>());
        if round % 3 == 0 {
            batch.write().unwrap();
            for (family, _) in &families {
                assert!(batch.family(family).operations(..).unwrap().next().is_none());
            }
        }
    }
}

#[test]
fn an_operation_that_decides_a_value_replaces_the_older_ones_unless_all_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let (db, families) = open(dir.path());
    let (f, _) = &families[0];
    for (keeps, want) in [(false, "merge 4, put 3"), (true, "merge 4, put 3, merge 2, single, put 1")] {
        let batch = keeping(&db, keeps);
        let of = batch.family(f);
        of.put("k", "1").unwrap();
        of.single_delete("k").unwrap();
        of.merge("k", "2").unwrap();
        let before = of.operations(..).unwrap();
        of.put("k", "3").unwrap();
        of.merge("k", "4").unwrap();
        let text = |(_, operation): Entry| match operation {
            Operation::Put(value) => format!("put {}", value.escape_ascii()),
            Operation::Merge(operand) => format!("merge {}", operand.escape_ascii()),
            Operation::SingleDelete => "single".to_owned(),
            other => format!("{other:?}"),
        };
        let shown: Vec<String> = of.operations(..).unwrap().map(text).collect();
        assert_eq!(shown.join(", "), want);
        assert_eq!(before.count(), if keeps { 3 } else { 2 }, "it shows the moment of the call");
        assert_eq!(of.get("k").unwrap().as_deref(), Some(&b"3,4"[..]));
        assert!(batch.operations(..).unwrap().next().is_none(), "of another family");
    }
}

#[test]
fn wrong_ranges_and_families_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path().join("db")).unwrap();
    let other = Db::open(dir.path().join("other")).unwrap();
    let batch = keeping(&db, true);
    batch.put("k", "v").unwrap();
    let kind = |answer: Result<Operations>| answer.unwrap_err().kind();
    assert_eq!(kind(batch.operations("b".."a")), ErrorKind::InvalidArgument);
    assert_eq!(kind(batch.family(&other.default_family()).operations(..)), ErrorKind::InvalidArgument);
    assert_eq!(batch.operations("k"..="k").unwrap().count(), 1);
    // The operations need no database.
    db.close().unwrap();
    assert_eq!(batch.operations(..).unwrap().count(), 1);
}

#[test]
fn log_data_goes_with_the_batch_and_is_no_operation() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path().join("db")).unwrap();
    let batch = keeping(&db, false);
    batch.put_log_data("a note").unwrap();
    assert!(batch.is_empty() && batch.operations(..).unwrap().next().is_none());
    batch.set_savepoint().unwrap();
    batch.put_log_data("taken back").unwrap();
    batch.rollback_to_savepoint().unwrap();
    batch.put("k", "v").unwrap();
    batch.write().unwrap();
    let update = db.updates_since(SeqNum::new(1).unwrap()).unwrap().next().unwrap().unwrap();
    let has = |text: &[u8]| update.data().windows(text.len()).any(|bytes| bytes == text);
    assert!(has(b"a note") && !has(b"taken back"), "{update:?}");

    // A transaction too.
    let before = db.sequence().get();
    let transaction = db.begin().unwrap();
    transaction.put_log_data("of a commit").unwrap();
    transaction.put("k", "w").unwrap();
    transaction.commit().unwrap();
    assert!(transaction.put_log_data("too late").is_err());
    let update = db.updates_since(SeqNum::new(before + 1).unwrap()).unwrap().next().unwrap().unwrap();
    assert!(update.data().windows(11).any(|bytes| bytes == b"of a commit"), "{update:?}");
}

#[test]
fn a_transaction_tells_its_operations_as_a_batch() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path().join("db")).unwrap();
    let t = db.begin().unwrap();
    t.put("a", "1").unwrap();
    t.delete("b").unwrap();
    let copy = WriteBatch::from_data(&t.data().unwrap()).unwrap();
    assert_eq!((copy.len(), t.len()), (2, 2));
    t.rollback().unwrap();
    assert_eq!(t.data().unwrap_err().kind(), ErrorKind::InvalidArgument);
    db.put("b", "2").unwrap();
    db.write(copy).unwrap();
    assert_eq!(db.get("a").unwrap().as_deref(), Some(&b"1"[..]));
    assert_eq!(db.get("b").unwrap(), None);
}
