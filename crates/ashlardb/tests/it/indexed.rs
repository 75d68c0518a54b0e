//! The indexed batch against a model: what a key is with the pending operations over the database, in scans of both
//! directions, with merges, families, orders and savepoints; and that what is written is what was read.

use crate::store::listing;
use ashlar_testkit::Rng;
use ashlardb::options::Order;
use ashlardb::prelude::*;
use ashlardb::{
    Columns, ErrorKind, IndexedBatch, IndexedBatchOptions, KeyRange, MayExist, Pending, Read, Result,
    StringAppend, Write,
};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// Shorter keys first, then by bytes.
#[derive(Debug)]
struct ByLength;

impl ashlardb::Comparator for ByLength {
    fn name(&self) -> &str {
        "test.ByLength"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        a.len().cmp(&b.len()).then(a.cmp(b))
    }
}

/// The orders of the families `bytes`, `reverse` and `length`.
fn orders() -> [(&'static str, Order); 3] {
    [
        ("bytes", Order::Bytewise),
        ("reverse", Order::ReverseBytewise),
        ("length", Order::Custom(Arc::new(ByLength))),
    ]
}

pub fn open(dir: &std::path::Path) -> (Db, Vec<(Family, Order)>) {
    let db = Db::open(dir.join("db")).unwrap();
    let family = |(name, order): (&str, Order)| {
        let set = |f: ashlardb::FamilyBuilder| {
            let f = f.merge_operator(Arc::new(StringAppend::new(",")));
            let order = order.clone();
            f.tune(move |f| f.order = order.clone())
        };
        (db.create_family_with(name, set).unwrap(), order.clone())
    };
    let families = orders().into_iter().map(family).collect();
    (db, families)
}

pub fn key(rng: &mut Rng) -> Vec<u8> {
    let length = rng.between(1, 3);
    (0..length).map(|_| b'a' + rng.below(4) as u8).collect()
}

/// A random operation on `to` and on the model of its family.
pub fn operate(rng: &mut Rng, to: &impl Write, model: &mut Model) {
    let (key, value) = (key(rng), format!("v{}", rng.below(1000)).into_bytes());
    match rng.below(10) {
        0..=3 => {
            to.put(&key, &value).unwrap();
            model.insert(key, value);
        }
        4..=5 => {
            to.delete(&key).unwrap();
            model.remove(&key);
        }
        6 => {
            to.put_entity(&key, &[(&b""[..], &value[..]), (b"other", b"column")]).unwrap();
            model.insert(key, value);
        }
        _ => {
            to.merge(&key, &value).unwrap();
            match model.get_mut(&key) {
                Some(old) => old.extend([b",", &value[..]].concat()),
                None => drop(model.insert(key, value)),
            }
        }
    }
}

/// The entries of the model in the family's order, within bounds.
fn expected(model: &Model, order: &Order, from: &[u8], to: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let within = |key: &[u8]| order.compare(from, key).is_le() && order.compare(key, to).is_lt();
    let mut entries: Vec<_> =
        model.iter().filter(|(key, _)| within(key)).map(|(k, v)| (k.clone(), v.clone())).collect();
    entries.sort_by(|(a, _), (b, _)| order.compare(a, b));
    entries
}

/// Compares every kind of read of `from` with the model.
pub fn compare(rng: &mut Rng, from: &impl Read, model: &Model, order: &Order) {
    let keys: Vec<Vec<u8>> = (0..12).map(|_| key(rng)).collect();
    for key in &keys {
        let want = model.get(key).map(Vec::as_slice);
        let shown = key.escape_ascii();
        assert_eq!(from.get(key).unwrap().as_deref(), want, "{shown}");
        let columns = from.get_entity(key).unwrap();
        assert_eq!(columns.as_ref().and_then(Columns::default_column), want, "{shown}");
        match from.key_may_exist(key).unwrap() {
            MayExist::No => assert_eq!(want, None, "{shown}"),
            MayExist::Maybe => {}
            MayExist::Value(value) => assert_eq!(Some(&*value), want, "{shown}"),
        }
    }
    let many = from.multi_get(&keys).unwrap();
    let want: Vec<_> = keys.iter().map(|key| model.get(key).map(Vec::as_slice)).collect();
    assert_eq!(many.iter().map(Option::as_deref).collect::<Vec<_>>(), want);

    let mut bounds = [key(rng), key(rng)];
    bounds.sort_by(|a, b| order.compare(a, b));
    let [from_key, to_key] = bounds;
    let want = expected(model, order, &from_key, &to_key);
    let range = from_key.clone()..to_key.clone();
    assert_eq!(listing(from.scan(range.clone())), want);
    let mut backward: Vec<_> = from.scan(range.clone()).rev().map(Result::unwrap).collect();
    backward.reverse();
    assert_eq!(backward, want);
    // From both ends until they meet.
    let (mut scan, mut front, mut back) = (from.scan(range.clone()), Vec::new(), Vec::new());
    while let Some(entry) = if rng.percent(50) { scan.next() } else { None } {
        front.push(entry.unwrap());
        let Some(entry) = scan.next_back() else { break };
        back.push(entry.unwrap());
    }
    front.extend(scan.map(Result::unwrap));
    back.reverse();
    assert_eq!([front, back].concat(), want);
    walk(rng, from, range, &want, order);
}

/// A cursor that goes to and fro is where the model says.
fn walk(rng: &mut Rng, from: &impl Read, range: impl KeyRange, want: &[(Vec<u8>, Vec<u8>)], order: &Order) {
    let mut cursor = from.scan(range).cursor().unwrap();
    let mut at: Option<usize> = None;
    for _ in 0..30 {
        match rng.below(6) {
            0 => {
                at = (!want.is_empty()).then_some(0);
                cursor.first().unwrap();
            }
            1 => {
                at = want.len().checked_sub(1);
                cursor.last().unwrap();
            }
            2 => {
                let key = key(rng);
                at = want.iter().position(|(k, _)| order.compare(k, &key).is_ge());
                cursor.seek(&key).unwrap();
            }
            3 => {
                let key = key(rng);
                at = want.iter().rposition(|(k, _)| order.compare(k, &key).is_le());
                cursor.seek_for_prev(&key).unwrap();
            }
            4 if at.is_some() => {
                at = at.map(|at| at + 1).filter(|at| *at < want.len());
                cursor.next().unwrap();
            }
            5 if at.is_some() => {
                at = at.and_then(|at| at.checked_sub(1));
                cursor.prev().unwrap();
            }
            _ => {}
        }
        let shown = cursor.entry().map(|(key, value)| (key.to_vec(), value.to_vec()));
        assert_eq!(shown.as_ref(), at.and_then(|at| want.get(at)));
        let column = cursor.columns().unwrap().map(|columns| columns.default_column().unwrap().to_vec());
        assert_eq!(column, shown.map(|(_, value)| value));
    }
}

/// Random operations with savepoints over a database in memtables and tables; a third of the batches is written.
#[test]
fn reads_over_the_database_agree_with_the_model() {
    let dir = tempfile::tempdir().unwrap();
    let (db, families) = open(dir.path());
    let mut rng = Rng::new(20);
    let mut models: Vec<Model> = vec![Model::new(); families.len()];
    for round in 0..60 {
        for ((family, _), model) in families.iter().zip(&mut models) {
            (0..6).for_each(|_| operate(&mut rng, family, model));
        }
        if round % 7 == 0 {
            db.flush().unwrap();
        }
        let options = IndexedBatchOptions::new().keep_operations(round % 2 == 0);
        let batch = db.indexed_batch_with(options);
        let (mut pending, mut saved) = (models.clone(), Vec::new());
        for _ in 0..12 {
            match rng.below(8) {
                0 => {
                    batch.set_savepoint().unwrap();
                    saved.push((pending.clone(), batch.len()));
                }
                1 if !saved.is_empty() => {
                    batch.rollback_to_savepoint().unwrap();
                    let (models, len) = saved.pop().unwrap();
                    assert_eq!(batch.len(), len);
                    pending = models;
                }
                2 if !saved.is_empty() => {
                    batch.pop_savepoint().unwrap();
                    saved.pop();
                }
                _ => {
                    for (at, (family, _)) in families.iter().enumerate() {
                        operate(&mut rng, &batch.family(family), &mut pending[at]);
                    }
                }
            }
        }
        for (at, (family, order)) in families.iter().enumerate() {
            compare(&mut rng, &batch.family(family), &pending[at], order);
            compare(&mut rng, family, &models[at], order);
        }
        match round % 3 {
            0 => {
                batch.write().unwrap();
                models = pending;
                assert!(batch.is_empty());
            }
            1 => {
                batch.clear();
                assert_eq!(batch.byte_len(), db.indexed_batch().byte_len());
            }
            _ => {}
        }
        for (at, (family, order)) in families.iter().enumerate() {
            compare(&mut rng, family, &models[at], order);
        }
    }
    // Everything comes back from the WAL.
    db.close().unwrap();
    drop((db, families));
    let db = Db::builder(dir.path().join("db"))
        .family("length", |f| f.tune(|f| f.order = Order::Custom(Arc::new(ByLength))))
        .open()
        .unwrap();
    for (at, (name, order)) in orders().into_iter().enumerate() {
        let family = db.family(name).unwrap();
        assert_eq!(listing(family.scan(..)), {
            let mut all: Vec<_> = models[at].clone().into_iter().collect();
            all.sort_by(|(a, _), (b, _)| order.compare(a, b));
            all
        });
    }
}

#[test]
fn what_a_batch_has_of_a_key_is_told_without_the_database() {
    let dir = tempfile::tempdir().unwrap();
    let (db, families) = open(dir.path());
    let (f, _) = &families[0];
    f.put("k", "below").unwrap();
    let batch = db.indexed_batch();
    let of = batch.family(f);
    assert_eq!(of.pending("k").unwrap(), None);
    of.merge("k", "1").unwrap();
    of.merge("k", "2").unwrap();
    assert_eq!(of.pending("k").unwrap(), Some(Pending::Merge(vec![b"1".to_vec(), b"2".to_vec()])));
    assert_eq!(of.get("k").unwrap().as_deref(), Some(&b"below,1,2"[..]));
    of.delete("k").unwrap();
    assert_eq!(of.pending("k").unwrap(), Some(Pending::Deleted));
    of.merge("k", "3").unwrap();
    assert!(matches!(of.pending("k").unwrap(), Some(Pending::Put(v)) if *v == *b"3"));
    of.put_entity("k", &[("", "d"), ("x", "y")]).unwrap();
    of.merge("k", "4").unwrap();
    let Some(Pending::Entity(columns)) = of.pending("k").unwrap() else { panic!("an entity") };
    assert_eq!((columns.get(""), columns.get("x")), (Some(&b"d,4"[..]), Some(&b"y"[..])));
    assert_eq!(batch.pending("k").unwrap(), None, "of another family");
    of.single_delete("k").unwrap();
    assert_eq!(of.pending("k").unwrap(), Some(Pending::Deleted));
    assert_eq!(batch.len(), 7, "the operations stay, a key has one state");
    batch.write().unwrap();
    assert_eq!(f.get("k").unwrap(), None);
}

#[test]
fn a_scan_shows_the_changes_up_to_its_making_and_a_snapshot_can_be_below() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path().join("db")).unwrap();
    db.put("a", "1").unwrap();
    let before = db.snapshot().unwrap();
    db.put("b", "2").unwrap();
    let batch = db.indexed_batch();
    batch.put("c", "3").unwrap();
    let scan = batch.scan(..);
    batch.put("d", "4").unwrap();
    batch.delete("a").unwrap();
    let keys = |entries: Vec<(Vec<u8>, Vec<u8>)>| {
        String::from_utf8(entries.into_iter().flat_map(|(key, _)| key).collect()).unwrap()
    };
    assert_eq!(keys(listing(scan)), "abc");
    assert_eq!(keys(listing(batch.scan(..))), "bcd");
    assert_eq!(keys(listing(batch.over(&before).scan(..))), "cd");
    assert_eq!(batch.over(&before).get("b").unwrap(), None);
    assert_eq!(keys(listing(batch.reading(ReadOptions::new()).prefix("d"))), "d");
    // Each entry of a scan may be changed while the scan goes on.
    for entry in batch.scan(..) {
        let (key, _) = entry.unwrap();
        batch.put([&key[..], b"+"].concat(), "").unwrap();
        batch.delete(key).unwrap();
    }
    assert_eq!(keys(listing(batch.scan(..))), "b+c+d+");
    let cursor = batch.scan(..).cursor().unwrap();
    assert_eq!(cursor.pins().memtable_bytes, 0, "{cursor:?}");
}

#[test]
fn wrong_operations_are_refused_and_leave_the_batch_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path().join("db")).unwrap();
    let other = Db::open(dir.path().join("other")).unwrap();
    let gone = db.create_family("gone").unwrap();
    db.drop_family(&gone).unwrap();
    let (foreign, before) = (other.default_family(), other.snapshot().unwrap());
    let batch = db.indexed_batch();
    batch.put("k", "v").unwrap();
    let kind = |answer: Result<()>| answer.unwrap_err().kind();
    const INVALID: ErrorKind = ErrorKind::InvalidArgument;
    assert_eq!(kind(batch.delete_range("a", "z")), ErrorKind::NotSupported);
    assert_eq!(kind(batch.merge("k", "v")), INVALID, "no merge operator");
    assert_eq!(kind(batch.put(vec![0; 9 << 20], "v")), INVALID);
    assert_eq!(kind(batch.family(&gone).put("k", "v")), INVALID);
    assert_eq!(kind(batch.family(&foreign).put("k", "v")), INVALID);
    assert_eq!(kind(batch.family(&foreign).get("k").map(drop)), INVALID);
    assert_eq!(kind(batch.family(&foreign).pending("k").map(drop)), INVALID);
    assert_eq!(kind(batch.family(&foreign).scan(..).cursor().map(drop)), INVALID);
    assert_eq!(kind(batch.family(&foreign).multi_get(["k"]).map(drop)), INVALID);
    assert_eq!(kind(batch.family(&foreign).scan(..).explain(9).map(drop)), INVALID);
    assert_eq!(kind(batch.rollback_to_savepoint()), INVALID);
    assert_eq!(kind(batch.pop_savepoint()), INVALID);
    assert_eq!(kind(batch.write_with(WriteOptions::synced().disable_wal(true))), INVALID);
    assert_eq!(batch.len(), 1);
    assert_eq!(kind(batch.over(&before).get("k").map(drop)), INVALID, "a snapshot of another database");
    assert_eq!(kind(batch.over(&before).scan(..).cursor().map(drop)), INVALID);
    batch.explain_get("k").unwrap();
    db.close().unwrap();
    assert!(matches!(kind(batch.write()), ErrorKind::Shutdown(_)));
    assert!(matches!(kind(batch.get("k").map(drop)), ErrorKind::Shutdown(_)));
    assert!(matches!(kind(batch.scan(..).cursor().map(drop)), ErrorKind::Shutdown(_)));
    assert_eq!(batch.len(), 1, "not written");
}

/// A batch that was written is empty, and can be filled again; a stalled write leaves it full.
#[test]
fn a_batch_is_used_again_after_its_write() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path().join("db")).unwrap();
    let batch: IndexedBatch = db.indexed_batch();
    for round in 0..3 {
        batch.put("k", format!("{round}")).unwrap();
        batch.set_savepoint().unwrap();
        batch.write_with(WriteOptions::synced()).unwrap();
        assert!(batch.is_empty() && batch.pop_savepoint().is_err(), "savepoints go with the operations");
        assert_eq!(batch.get("k").unwrap().as_deref(), Some(format!("{round}").as_bytes()));
    }
    batch.write().unwrap();
}
