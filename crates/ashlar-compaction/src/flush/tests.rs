//! Flushes of real memtables into tables in memory.

use super::*;
use crate::rewrite::Progress;
use crate::rewrite::fixture::{TestDir, dump};
use ashlar_base::{ErrorKind, FamilyId, Level, Order, SeqNum, ValueType};
use ashlar_env::Env;
use ashlar_memtable::{MemtableRep, Op, WriterSlot, protected};
use std::sync::Arc;

fn memtable(order: &Order, entries: &[(&str, u64, ValueType, &str)]) -> Arc<dyn MemtableRep> {
    let rep = ashlar_memtable::memtable(order.clone());
    let mut writer = WriterSlot::default();
    for (key, seq, value_type, value) in entries {
        let op = Op { key: key.as_bytes(), value: value.as_bytes(), value_type: *value_type, seq_delta: 0 };
        let prepared = rep.prepare(&mut writer, &mut [op].into_iter()).unwrap();
        rep.insert(&mut writer, prepared, SeqNum::new(*seq).unwrap());
    }
    rep
}

fn begun(place: &TestDir, memtables: Vec<Arc<dyn MemtableRep>>, snapshots: &[u64]) -> FlushRun {
    FlushRun::new(FlushInput {
        job: 0,
        family: FamilyId(3),
        memtables,
        snapshots: snapshots.iter().map(|s| SeqNum::new(*s).unwrap()).collect(),
        output: place.plan(),
        numbers: place.numbers(),
    })
    .unwrap()
}

fn flush(place: &TestDir, memtables: Vec<Arc<dyn MemtableRep>>, snapshots: &[u64]) -> FlushOutcome {
    let mut run = begun(place, memtables, snapshots);
    assert_eq!(place.files(), [""; 0], "no file before the first step");
    while run.step(30).unwrap() == Progress::More {}
    run.finish().unwrap()
}

use ValueType::{Delete, Merge, Put};

#[test]
fn memtables_become_one_table() {
    for order in [Order::Bytewise, Order::ReverseBytewise] {
        let place = TestDir::new(Env::mem(), order.clone());
        let old = memtable(
            &order,
            &[("aa1", 1, Put, "old"), ("aa2", 2, Put, "b"), ("aa3", 3, Merge, "m"), ("aa1", 4, Put, "mid")],
        );
        let new = memtable(&order, &[("aa1", 5, Put, "new"), ("aa3", 6, Merge, "n"), ("aa2", 7, Delete, "")]);
        let outcome = flush(&place, vec![new, old], &[4]);
        assert_eq!(outcome.memtables, 2);
        assert_eq!((outcome.edit.family, outcome.edit.added.len()), (FamilyId(3), 1));
        let (level, file) = outcome.edit.added[0].clone();
        assert_eq!(level, Level::ZERO);
        assert_eq!((file.smallest_seq.get(), file.largest_seq.get(), file.epoch), (2, 7, 0));
        let mut expected =
            ["aa1#5=new", "aa1#4=mid", "aa2#7-", "aa2#2=b", "aa3#6=n", "aa3#3=m"].map(String::from).to_vec();
        if matches!(order, Order::ReverseBytewise) {
            expected.sort_by(|a, b| b[..3].cmp(&a[..3]));
        }
        assert_eq!(dump(&place.empty(), &file), expected);
        assert_eq!(outcome.counters.dropped_hidden, 1);
        assert_eq!(outcome.bytes_written, file.size);
        assert_eq!(place.files(), ["000010.sst"]);
        assert_eq!(place.pending.smallest().map(|n| n.0), Some(10));
    }
}

#[test]
fn an_empty_memtable_gives_an_edit_without_a_table() {
    let place = TestDir::new(Env::mem(), Order::Bytewise);
    let outcome = flush(&place, vec![memtable(&Order::Bytewise, &[])], &[]);
    assert_eq!((outcome.memtables, outcome.edit.added.len(), outcome.pending.len()), (1, 0, 0));
    assert_eq!(place.files(), [""; 0]);
}

#[test]
fn given_up_half_way_nothing_stays() {
    let place = TestDir::new(Env::mem(), Order::Bytewise);
    let keys: Vec<String> = (0..100).map(|i| format!("{i:04}")).collect();
    let entries: Vec<_> = (1..).zip(&keys).map(|(s, k)| (k.as_str(), s, Put, "v")).collect();
    let mut run = begun(&place, vec![memtable(&Order::Bytewise, &entries)], &[]);
    assert_eq!(run.step(100).unwrap(), Progress::More);
    assert_eq!(place.files(), ["000010.sst"]);
    drop(run);
    assert_eq!(place.files(), [""; 0]);
}

#[test]
fn finished_before_its_end_nothing_stays() {
    let place = TestDir::new(Env::mem(), Order::Bytewise);
    let entries = [("a", 1, Put, "v"), ("b", 2, Put, "v")];
    let mut run = begun(&place, vec![memtable(&Order::Bytewise, &entries)], &[]);
    assert_eq!(run.step(1).unwrap(), Progress::More);
    let e = run.finish().map(drop).unwrap_err();
    assert_eq!((e.kind(), e.message()), (ErrorKind::InvalidArgument, "a flush was finished before its end"));
    assert_eq!(place.files(), [""; 0]);
}

#[test]
fn an_entry_that_changed_in_memory_reaches_no_table() {
    let place = TestDir::new(Env::mem(), Order::Bytewise);
    let entry = ("key", 1, Put, "something that does not end in its checksum");
    let input = FlushInput {
        job: 0,
        family: FamilyId(3),
        memtables: vec![protected(memtable(&Order::Bytewise, &[entry]), 8)],
        snapshots: Vec::new(),
        output: place.plan(),
        numbers: place.numbers(),
    };
    let refused = FlushRun::new(input).map(drop).unwrap_err();
    assert!(refused.is_corruption() && refused.to_string().contains("in memory"), "{refused}");
    assert_eq!(place.files(), [""; 0]);
}
