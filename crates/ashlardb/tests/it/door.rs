//! The API as users use it.

use crate::child::mixed;
use crate::store::{FAMILIES, Shape, Store, listing};
use ashlar_testkit::heap::untouched;
use ashlar_testkit::ops::{Mix, draw};
use ashlar_testkit::oracle::{State, first_difference};
use ashlar_testkit::{KeyValue, Model, Op, report};
use ashlardb::{
    Db, ErrorKind, FormatLevel, Read as _, ReadOptions, ShutdownKind, Snapshot, UInt64Add, Write as _,
    WriteBatch, WriteOptions,
};
use std::collections::BTreeMap;
use std::sync::Arc;

const CLOSED: ErrorKind = ErrorKind::Shutdown(ShutdownKind::Closed);

fn pairs(list: &[(&str, &str)]) -> Vec<KeyValue> {
    list.iter().map(|(k, v)| (k.as_bytes().to_vec(), v.as_bytes().to_vec())).collect()
}

fn batch_of(key: &str, value: &str) -> WriteBatch {
    let batch = WriteBatch::new();
    batch.put(key, value).unwrap();
    batch
}

#[test]
fn families_batches_snapshots_and_scans() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("deep/er/db");
    let db = Db::open(&path).unwrap();
    assert!(db.recovery().created);
    let events = db.create_family("events").unwrap();
    assert_eq!(db.create_family("events").unwrap_err().kind(), ErrorKind::InvalidArgument);
    let batch = WriteBatch::new();
    for (key, value) in [("a", "1"), ("b", "2"), ("ba", "3"), ("c", "4"), ("d", "5")] {
        batch.put(key, value).unwrap();
    }
    batch.delete("c").unwrap();
    batch.family(&events).put("e1", "x").unwrap();
    batch.family(&events).put("e2", "y").unwrap();
    db.write(&batch).unwrap();
    assert!(batch.is_empty(), "what was written is not written again");
    let before = db.snapshot().unwrap();
    db.put("a", "changed").unwrap();
    db.delete("b").unwrap();
    events.put("e3", "z").unwrap();
    db.flush().unwrap();

    assert_eq!(listing(db.scan(..)), pairs(&[("a", "changed"), ("ba", "3"), ("d", "5")]));
    assert_eq!(listing(before.scan(..)), pairs(&[("a", "1"), ("b", "2"), ("ba", "3"), ("d", "5")]));
    assert_eq!(listing(before.scan("b".."c").rev()), pairs(&[("ba", "3"), ("b", "2")]));
    assert_eq!(listing(before.prefix("b")), pairs(&[("b", "2"), ("ba", "3")]));
    assert_eq!(listing(db.scan("b"..)), pairs(&[("ba", "3"), ("d", "5")]));
    assert_eq!(listing(db.scan(.."ba")), pairs(&[("a", "changed")]));
    assert_eq!(listing(events.scan(..).rev()), pairs(&[("e3", "z"), ("e2", "y"), ("e1", "x")]));
    assert_eq!(listing(before.family(&events).scan("e2"..)), pairs(&[("e2", "y")]));
    assert_eq!(before.get("a").unwrap().as_deref(), Some(&b"1"[..]));
    assert_eq!(before.family(&events).get("e3").unwrap().as_deref(), None);
    assert!(listing(db.scan("b".."b")).is_empty(), "an empty range");

    let mut cursor = db.scan(..).cursor().unwrap();
    assert_eq!(cursor.seek("b").unwrap(), Some((&b"ba"[..], &b"3"[..])));
    assert_eq!(cursor.seek_for_prev("b").unwrap(), Some((&b"a"[..], &b"changed"[..])));
    assert_eq!(cursor.prev().unwrap(), None);
    assert_eq!(cursor.entry(), None);

    db.drop_family(&events).unwrap();
    assert_eq!(events.put("e4", "w").unwrap_err().kind(), ErrorKind::InvalidArgument);
    let e = db.family("events").unwrap_err();
    assert!(e.kind() == ErrorKind::InvalidArgument && e.to_string().contains("default"), "{e}");
    assert_eq!(db.drop_family(&db.default_family()).unwrap_err().kind(), ErrorKind::InvalidArgument);
    drop((before, cursor, events));
    db.close().unwrap();
    assert_eq!(ashlardb::list_families(&ashlardb::Env::os().unwrap(), &path).unwrap().len(), 1);
}

#[test]
fn after_close_every_clone_answers_shutdown() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path()).unwrap();
    db.put("k", "a value long enough not to be kept inside of the view itself, which takes up to 64 bytes")
        .unwrap();
    db.flush().unwrap();
    let (clone, family, snapshot) = (db.clone(), db.default_family(), db.snapshot().unwrap());
    let view = db.get("k").unwrap().unwrap();
    let mut cursor = db.scan(..).cursor().unwrap();
    clone.close().unwrap();
    db.close().expect("a second close is fine");
    let answers = [
        db.put("a", "b").err(),
        db.delete("a").err(),
        db.write(batch_of("a", "b")).err(),
        clone.writing(WriteOptions::new().disable_wal(true)).put("a", "b").err(),
        clone.writing(WriteOptions::synced()).put("a", "b").err(),
        db.get("k").err(),
        family.get("k").err(),
        family.put("a", "b").err(),
        snapshot.get("k").err(),
        db.scan(..).next().unwrap().err(),
        db.scan(..).cursor().err(),
        db.snapshot().err(),
        db.flush().err(),
        db.compact().err(),
        db.sync().err(),
        db.create_family("f").err(),
    ];
    for (index, answer) in answers.iter().enumerate() {
        assert_eq!(answer.as_ref().map(|e| e.kind()), Some(CLOSED), "call {index}: {answer:?}");
    }
    // A cursor and a view hold what they read.
    assert!(cursor.first().is_ok() || cursor.first().unwrap_err().kind() == CLOSED);
    assert!(view.starts_with(b"a value"));
    // The directory is free although handles are still there.
    let again = Db::open(dir.path()).unwrap();
    assert!(again.get("k").unwrap().is_some());
    drop((clone, family, snapshot, cursor, view, db));
    again.put("k2", "v").unwrap();
    drop(again);
    assert_eq!(listing(Db::open(dir.path()).unwrap().scan(..)).len(), 2);
}

#[test]
fn dropping_the_last_handle_closes() {
    let dir = tempfile::tempdir().unwrap();
    for round in 0..3 {
        let db = Db::open(dir.path()).unwrap();
        assert_eq!(listing(db.scan(..)).len(), round);
        assert!(db.recovery().is_clean());
        db.put(format!("k{round}"), "v").unwrap();
        if round == 1 {
            db.flush().unwrap();
        }
        let family = db.default_family();
        drop(db);
        assert_eq!(listing(family.scan(..)).len(), round + 1, "a family keeps it open");
    }
}

#[test]
fn unlogged_data_survives_close_and_drop() {
    let dir = tempfile::tempdir().unwrap();
    for (round, close) in [(1, true), (2, false)] {
        let db = Db::open(dir.path()).unwrap();
        let fast = db.writing(WriteOptions::new().disable_wal(true));
        for i in 0..1000 {
            fast.put(format!("{round}-{i:04}"), vec![b'v'; i % 200]).unwrap();
        }
        db.writing(WriteOptions::synced()).put(format!("{round}-synced"), "s").unwrap();
        assert!(db.durable_sequence() >= db.sequence() || !close, "a synced write leaves nothing behind it");
        if close {
            db.close().unwrap();
        }
    }
    let db = Db::open(dir.path()).unwrap();
    assert_eq!(listing(db.scan(..)).len(), 2002);
}

#[test]
fn what_is_too_large_is_refused_at_the_door() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path()).unwrap();
    let key = vec![b'k'; (8 << 20) + 1];
    let refused = |answer: ashlardb::Result<()>, word: &str| {
        let e = answer.unwrap_err();
        assert!(e.kind() == ErrorKind::InvalidArgument && e.to_string().contains(word), "{e}");
    };
    refused(db.put(&key, ""), "8388608");
    refused(db.delete(&key), "8388608");
    refused(db.default_family().put(&key, ""), "8388608");
    let batch = batch_of("fine", "");
    refused(batch.put(&key, ""), "8388608");
    assert_eq!(batch.len(), 1, "a refused operation leaves the batch as it was");
    assert_eq!(listing(db.scan(..)).len(), 0, "nothing was written");
    db.put(&key[1..], "the largest key").unwrap();
    db.put("k", vec![b'v'; 20 << 20]).unwrap();
    db.flush().unwrap();
    assert_eq!(db.get(&key[1..]).unwrap().as_deref(), Some(&b"the largest key"[..]));
    assert_eq!(db.get("k").unwrap().map(|v| v.len()), Some(20 << 20));
    let test = "what_is_too_large_is_refused_at_the_door, values";
    let Some(value) = untouched(test, 1 << 32) else { return };
    refused(db.put("big", &value), "4294967295");
    refused(WriteBatch::new().put("big", &value), "4294967295");
    assert_eq!(db.get("big").unwrap().map(|v| v.len()), None);
}

#[test]
fn a_list_with_reads_at_snapshots_agrees_with_the_model() {
    let mix = Mix { read_percent: 30, snapshot_percent: 4, ..mixed() };
    let (mut reads, mut operations) = (0, 0);
    for seed in 0..report::scale(6, 60) as u64 {
        let dir = tempfile::tempdir().unwrap();
        let shape = [Shape::small, Shape::large][seed as usize % 2](FormatLevel::default());
        let mut store = Store::open(dir.path(), shape);
        let mut model = Model::new();
        let mut snapshots: BTreeMap<u32, (Snapshot, State)> = BTreeMap::new();
        for (number, op) in draw(seed, 1500, &mix).into_iter().enumerate() {
            let what = format!("seed {seed}, operation {number}: {op}");
            match &op {
                Op::Snapshot { id } => {
                    snapshots.insert(*id, (store.db().snapshot().unwrap(), model.now().clone()));
                }
                Op::Release { id } => drop(snapshots.remove(id)),
                Op::Get { .. } | Op::Scan { .. } => {
                    read(&store, &model, &snapshots, &op, &what);
                    reads += 1;
                }
                Op::Reopen => snapshots.clear(),
                Op::Write { changes, .. } => {
                    model.apply(changes);
                }
                _ => {}
            }
            store.apply(&op);
            operations += 1;
        }
        for family in FAMILIES {
            let found = listing(store.db().family(family).unwrap().scan(..));
            assert_eq!(first_difference(&model.now().entries(family), &found), None, "seed {seed}, {family}");
        }
    }
    report::figure(&format!("model: {operations} operations, {reads} reads, 0 differences"));
}

fn read(store: &Store, model: &Model, snapshots: &BTreeMap<u32, (Snapshot, State)>, op: &Op, what: &str) {
    let db = store.db();
    match op {
        Op::Get { family, key, at } => {
            let family = db.family(family).unwrap();
            let (found, expected) = match at {
                None => (family.get(key), model.now().get(family.name(), key)),
                Some(id) => {
                    let (snapshot, state) = &snapshots[id];
                    (snapshot.family(&family).get(key), state.get(family.name(), key))
                }
            };
            assert_eq!(found.unwrap().as_deref(), expected, "{what}");
        }
        Op::Scan { family, from, to, reverse, at } => {
            let handle = db.family(family).unwrap();
            let (scan, mut expected) = match at {
                None => (handle.scan(from..to), model.now().scan(family, from, to)),
                Some(id) => {
                    let (snapshot, state) = &snapshots[id];
                    (snapshot.family(&handle).scan(from..to), state.scan(family, from, to))
                }
            };
            let found = if *reverse { listing(scan.rev()) } else { listing(scan) };
            if *reverse {
                expected.reverse();
            }
            assert_eq!(first_difference(&expected, &found), None, "{what}");
        }
        _ => unreachable!("not a read: {what}"),
    }
}

#[test]
fn settings_by_rocksdbs_names() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::builder(dir.path().join("db"))
        .options("max_total_wal_size=1G;write_buffer_size=128K;compression=kZSTD")
        .family("events", |f| f.options("block_based_table_factory={block_size=16K;}"))
        .open()
        .unwrap();
    db.family("events").unwrap().put("k", "v").unwrap();
    db.close().unwrap();
    for (text, kind) in [
        ("write_bufer_size=1M", ErrorKind::InvalidArgument),
        ("compaction_filter=mine", ErrorKind::InvalidArgument),
        ("write_buffer_size=1", ErrorKind::InvalidArgument),
    ] {
        let whole = Db::builder(dir.path().join("db")).options(text).open().unwrap_err();
        let family =
            Db::builder(dir.path().join("db")).family("events", |f| f.options(text)).open().unwrap_err();
        assert_eq!((whole.kind(), family.kind()), (kind, kind), "{text}");
    }
}

/// Handles go to other threads and are shared by them. Values may drop in any order.
#[test]
fn handles_are_send_and_sync_and_drop_in_any_order() {
    fn shared<T: Send + Sync>(_: &T) {}
    fn sent<T: Send>(_: &T) {}
    for order in 0..3 {
        let dir = tempfile::tempdir().unwrap();
        let db = Db::open(dir.path()).unwrap();
        db.put("k", "v").unwrap();
        let (family, snapshot) = (db.default_family(), db.snapshot().unwrap());
        let (scan, view) = (snapshot.scan(..), db.get("k").unwrap().unwrap());
        let (mut cursor, batch) = (scan.cursor().unwrap(), WriteBatch::new());
        shared(&db);
        shared(&family);
        shared(&snapshot);
        shared(&view);
        sent(&scan);
        sent(&cursor);
        sent(&batch);
        match order {
            0 => drop((db, family, snapshot, scan)),
            1 => drop((scan, snapshot, family, db)),
            _ => std::thread::spawn(move || drop((snapshot, db, scan, family))).join().unwrap(),
        }
        assert_eq!((&*view, cursor.next().unwrap()), (&b"v"[..], Some((&b"k"[..], &b"v"[..]))));
        drop((view, cursor));
        assert!(Db::open(dir.path()).unwrap().get("k").unwrap().is_some(), "the last handle closed it");
    }
}

/// What no option of a read changes is what it answers.
#[test]
fn a_scan_that_does_not_fill_the_cache_leaves_nothing_in_it() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path()).unwrap();
    for n in 0..1000 {
        db.put(format!("k{n:04}"), [7; 500]).unwrap();
    }
    db.flush().unwrap();
    let cached = || db.int_property("rocksdb.block-cache-usage").unwrap();
    let once = db.reading(ReadOptions::new().fill_cache(false));
    let before = cached();
    assert_eq!(listing(once.scan(..)).len(), 1000);
    assert!(once.get("k0500").unwrap().is_some());
    assert!(once.multi_get(["k0007", "k0900"]).unwrap().iter().all(Option::is_some));
    assert_eq!(cached(), before, "blocks were kept");
    assert_eq!(listing(db.scan(..)).len(), 1000);
    assert!(cached() > before + 100_000, "{} {before}", cached());
}

/// A batch in RocksDB's form is the same batch, and savepoints cut it.
#[test]
fn a_batch_comes_back_from_its_form_and_to_its_savepoints() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::builder(dir.path().join("db"))
        .default_family(|f| f.merge_operator(Arc::new(UInt64Add)))
        .open()
        .unwrap();
    let family = db.create_family("f").unwrap();
    let batch = WriteBatch::new();
    batch.put("a", "1").unwrap();
    batch.set_savepoint().unwrap();
    batch.family(&family).put("b", "2").unwrap();
    batch.put_log_data("note").unwrap();
    batch.set_savepoint().unwrap();
    batch.delete("a").unwrap();
    batch.rollback_to_savepoint().unwrap();
    assert_eq!(batch.len(), 2);
    batch.pop_savepoint().unwrap();
    for refused in [batch.rollback_to_savepoint(), batch.pop_savepoint()] {
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::InvalidArgument, "no savepoint");
    }
    batch.merge("n", 5u64.to_le_bytes()).unwrap();
    batch.single_delete("s").unwrap();
    batch.delete_range("x", "z").unwrap();
    batch.put_entity("e", &[("", "0"), ("c", "1")]).unwrap();
    let form = batch.data().unwrap();
    let copy = WriteBatch::from_data(&form).unwrap();
    assert_eq!((copy.len(), copy.data().unwrap()), (batch.len(), form.clone()));
    db.write(&copy).unwrap();
    assert!(copy.is_empty());
    assert_eq!(db.get("a").unwrap().as_deref(), Some(&b"1"[..]));
    assert_eq!(family.get("b").unwrap().as_deref(), Some(&b"2"[..]));
    assert_eq!(db.get("n").unwrap().as_deref(), Some(&5u64.to_le_bytes()[..]));
    assert_eq!(db.get_entity("e").unwrap().unwrap().get("c"), Some(&b"1"[..]));
    // The form is checked: no cut and no changed count is taken.
    for len in 0..form.len() {
        assert!(WriteBatch::from_data(&form[..len]).is_err(), "{len} bytes");
    }
    let mut counted = form;
    counted[8] += 1;
    assert!(WriteBatch::from_data(&counted).unwrap_err().is_corruption());
    // The mark of a prepared transaction is no operation of a batch.
    let mut marked = vec![0; 12];
    marked.push(9);
    assert_eq!(WriteBatch::from_data(&marked).unwrap_err().kind(), ErrorKind::NotSupported);
}
