//! Every worked value of the articles and of the suite's specification.

use super::*;
use crate::record::{Engine, Ops};

fn near(value: f64, expected: f64) -> bool {
    (value - expected).abs() < 0.0005
}

fn same(name: &str, arguments: &[f64], expected: f64) {
    let value = answer(name, arguments).unwrap();
    assert!(near(value, expected), "{name}{arguments:?} = {value}, not {expected}");
}

#[test]
fn worked_values() {
    same("btree_wa", &[4096.0, 128.0], 33.0);
    same("btree_wa", &[4096.0, 128.0, 8.0], 5.0);
    same("lsm_wa", &[3.0, 7.0], 24.0);
    same("lsm_wa", &[3.0, 10.0], 33.0);
    same("tiered_wa", &[4.0], 5.0);
    same("btree_space", &[2.0 / 3.0], 1.5);
    same("btree_space", &[0.5], 2.0);
    same("btree_row_overhead", &[128.0], 1.15625);
    same("page_compress_wasted", &[5.0 * 1024.0, 8.0 * 1024.0], 3.0 * 1024.0);
    same("page_compress_space", &[5.0, 8.0], 1.6);
    same("leveled_space", &[10.0], 1.1111);
    same("leveled_space", &[6.0], 1.2);
    same("leveled_last_share", &[10.0], 0.9);
    same("tiered_space", &[], 2.0);
    same("cmp_point", &[1_000_000.0], 20.0);
    same("cmp_range", &[1_000_000.0, 20.0], 40.0);
    same("disk_point", &[], 1.0);
    same("disk_range", &[20.0, 40.0], 1.475);
    same("disk_range_worst", &[20.0, 40.0], 2.0);
    same("disk_range_worst", &[1.0, 40.0], 1.0);
    same("cache_need", &[1000.0, 16.0, 8.0], 24_000.0);
    same("cache_need", &[1000.0, 16.0, 8.0, 800.0, 10.0], 25_000.0);
    same("capacity_ratio", &[8_000_000.0, 24_000.0], 333.3333);
}

/// A level's sum of parts comes to the closed form.
#[test]
fn leveled_space_is_the_sum_of_its_levels() {
    let sum: f64 = (0..60).map(|level| 10_f64.powi(-level)).sum();
    assert!(near(leveled_space(10.0), sum));
}

#[test]
fn what_cannot_be_calculated_says_why() {
    let why = answer("btree", &[]).unwrap_err();
    assert!(
        why.starts_with("calc btree: no such function. The functions are:\n  btree_wa page row [changes=1] "),
        "{why}"
    );
    assert_eq!(
        answer("lsm_wa", &[3.0]).unwrap_err(),
        "calc lsm_wa: 1 arguments given, it takes (levels, per_level)"
    );
    assert!(answer("tiered_space", &[1.0]).is_err());
    for (name, arguments) in [("btree_space", &[0.0][..]), ("leveled_space", &[1.0]), ("cmp_point", &[-1.0])]
    {
        assert!(answer(name, arguments).unwrap_err().contains("has no value"), "{name}");
    }
}

fn run(engine: &str, workload: &str, levels: &[u64]) -> Record {
    let mut record = Record { workload: workload.into(), ..Record::default() };
    record.engine = Engine { name: engine.into(), version: String::new() };
    record.ops = Some(Ops::default());
    record.engine_counters.levels = levels.to_vec();
    (record.params.key_bytes, record.params.value_bytes) = (28, 100);
    record
}

#[test]
fn predictions_of_runs() {
    let wa = |record: &Record| predicted(record).unwrap().wa.unwrap();
    assert!(near(wa(&run("rocksdb", "overwrite", &[2, 1, 4, 9, 30])), 24.0));
    assert!(near(wa(&run("ashlardb", "fillrandom", &[2, 0, 0, 0, 3])), 3.0));
    assert!(near(wa(&run("leveldb", "fillrandom", &[2])), 2.0));
    assert!(near(wa(&run("leveldb", "fillseq", &[0, 1, 2])), 2.0));
    assert!(near(wa(&run("lmdb", "fillrandom", &[])), 33.0));
    assert!(near(predicted(&run("sqlite-wal", "fillrandom", &[])).unwrap().sa, 1.5));
    assert_eq!(predicted(&run("unheard", "fillrandom", &[])), None);
    let mut read = run("rocksdb", "readrandom", &[0, 1]);
    read.ops = Some(Ops { found: Some(1), ..Ops::default() });
    assert_eq!(predicted(&read).unwrap().wa, None);
    let mut mixed = run("lmdb", "mixed", &[]);
    (mixed.params.key_bytes, mixed.params.value_bytes) = (0, 0);
    assert_eq!(predicted(&mixed), None, "no rows");
    mixed.ops = Some(Ops { total: 10, user_bytes: 1280, ..Ops::default() });
    assert!(near(wa(&mixed), 33.0), "rows of many lengths");
    mixed.workload = "linkbench-load".into();
    assert_eq!(predicted(&mixed), None, "neither in key order nor of random keys");
    let mut packed = run("rocksdb", "fillrandom", &[0, 1]);
    packed.params = crate::record::Params { durability: "nolog".into(), ..packed.params };
    (packed.params.codec, packed.params.compress_ratio) = (Some("lz4".into()), Some(0.5));
    assert!(near(wa(&packed), 2.0 * 78.0 / 128.0));
    assert!(near(predicted(&packed).unwrap().sa, 10.0 / 9.0 * 78.0 / 128.0));
}

#[test]
fn a_choice_trades_writes_for_space_and_runs() {
    let gib = (1_u64 << 30) as f64;
    let leveled = Choice { style: Style::Leveled, ratio: 10.0, stored: 1.0, memtable: gib / 1024.0 };
    // 1 GiB over a memtable of 1 MiB are 4 levels: log, flush, level 1, and 7 for each of three more.
    let trade = leveled.trade(gib);
    assert_eq!((trade.write, trade.runs), (3.0 + 3.0 * 7.0, Some(8.0)));
    assert!((trade.space - 10.0 / 9.0).abs() < 1e-9);
    let tiered = Choice { style: Style::Tiered, ..leveled }.trade(gib);
    assert_eq!(tiered, Trade { write: 6.0, space: 2.0, runs: Some(41.0) });
    // A codec does not shrink the log.
    let packed = Choice { stored: 0.5, ..leveled }.trade(2.0 * gib);
    assert_eq!((packed.write, packed.runs), (1.0 + 23.0 / 2.0, Some(8.0)));
    let larger = Choice { memtable: gib / 16.0, ..leveled }.trade(gib);
    assert!(larger.write < trade.write && larger.space == trade.space);
    assert_eq!(leveled.trade(0.0).write, 3.0, "less than a memtable");
}
