//! The experiment of operations: answers, content and copies are checked against what was written, so the figures count.

use crate::run;

const ROWS: [&str; 17] = [
    "txn-pessimistic",
    "txn-pessimistic-4",
    "txn-pessimistic-4-hot",
    "txn-optimistic",
    "txn-optimistic-4",
    "txn-optimistic-4-hot",
    "universal-fillrandom",
    "universal-overwrite",
    "sst-write",
    "ingest",
    "ingest-unverified",
    "checkpoint",
    "backup",
    "backup-again",
    "prefixscan",
    "prefixscan-missing",
    "compact-filter",
];

/// Also the check of the types of RocksDB's functions for them: every one is called.
#[test]
fn operations_run_on_both() {
    let (text, run) = run(&["--experiment", "operations"]);
    assert!(!text.contains("VOID"), "{text}");
    for engine in ["ashlardb", "rocksdb"] {
        let of = |row: &str| {
            let found = run.records.iter().find(|r| r.row == row && r.engine.name == engine);
            found.unwrap_or_else(|| panic!("{engine} has no row {row}: {text}"))
        };
        if of(ROWS[0]).status.text().starts_with("not here") {
            println!("skipped: {engine}: {}", of(ROWS[0]).status.text());
            continue;
        }
        for row in ROWS {
            assert!(of(row).counts() && of(row).hash.data.is_some(), "{row}: {}", of(row).status.text());
        }
        let total = |row: &str| of(row).ops.as_ref().map_or(0, |ops| ops.total);
        let found = |row: &str| of(row).ops.as_ref().and_then(|ops| ops.found);
        assert_eq!((total("txn-optimistic-4-hot"), total("txn-pessimistic")), (1000, 1000));
        assert_eq!(found("prefixscan"), Some(10 * total("prefixscan")), "ten entries each");
        assert_eq!(found("prefixscan-missing"), Some(0));
        assert_eq!((total("backup"), total("checkpoint")), (1, 2));
        let conflicts = |row: &str| of(row).params.options["conflicts"].clone();
        assert_eq!(conflicts("txn-optimistic"), "0", "one thread meets no other");
        assert_eq!(of("universal-overwrite").params.options["compaction_style"], "universal");
        let rewritten = of("compact-filter").engine_counters.levels.iter().filter(|tables| **tables > 0);
        assert_eq!(rewritten.count(), 1, "all of it was compacted");
    }
}

#[test]
fn engines_without_an_operation_say_so() {
    for row in ["txn-pessimistic", "prefixscan", "ingest", "checkpoint", "compact-filter"] {
        let (text, run) = run(&["--experiment", "operations", "--rows", row, "--engines", "redb"]);
        let last = run.records.last().map(|record| record.status.text()).unwrap_or_default();
        assert!(last.starts_with("not here: not offered: "), "{row}: {last}: {text}");
    }
}
