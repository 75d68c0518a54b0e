//! Every suite, with the budget of an ordinary test run.

use ashlar_stress::{
    Budget, Length, Report, compat, corrupt, filter, hostile, limits, meta, sim, soak, sweep, torture, txn,
};
use ashlar_testkit::report::{figure, scale, skipped};
use std::sync::Mutex;
use std::time::Duration;

/// What all suites took so far.
static TOGETHER: Mutex<Duration> = Mutex::new(Duration::ZERO);

/// Says what a suite did, and how long it took; nothing may have been found.
fn clean(report: Report) -> Report {
    let mut together = TOGETHER.lock().unwrap();
    *together += Duration::from_secs_f64(report.seconds);
    let so_far = together.as_secs_f64();
    drop(together);
    figure(&format!("{} ({:.1} s, suites so far {so_far:.1} s)", report.line(), report.seconds));
    for why in &report.skipped {
        skipped(&format!("rel {}", report.suite), why);
    }
    assert!(report.failures.is_empty(), "{report}");
    report
}

/// The budget of suites that kill child processes.
fn with_children() -> Budget {
    let mut budget = Budget::quick();
    budget.program = env!("CARGO_BIN_EXE_rel").into();
    budget.threads = 2;
    budget
}

#[test]
fn crashes_lose_nothing_that_was_acknowledged() {
    let report = clean(sim::run(&Budget::quick()));
    assert!(report.figures["crashes"] >= 2000, "too few: {report}");
    assert!(report.figures["times a full disk refused and resumed"] > 0, "no disk was ever full: {report}");
    for job in ["a flush", "the log"] {
        let taken = report.figures[&format!("deletions taken where {job} lacked room")];
        assert!(taken > 50, "{taken} deletions where {job} lacked room: {report}");
    }
    for what in ["logs", "tables", "blob files"] {
        let count = report.figures[&format!("{what} in other directories")];
        assert!(count > 0, "no {what} in other directories: {report}");
    }
    for what in [
        "transactions committed",
        "conflicts",
        "transactions prepared",
        "prepared ones committed",
        "prepared ones rolled back",
        "files behind all data",
        "checkpoints",
        "backups",
        "feeds compared",
        "ranges compacted",
        "tables compacted",
        "locks refused",
        "catch-ups",
        "catch-ups that saw a write beside them",
        "earlier views compared",
        "writes that expire",
        "values that were over",
    ] {
        assert!(report.figures.get(what).is_some_and(|n| *n >= 5), "{what}: {report}");
    }
    assert!(report.figures["changes of feeds compared"] >= 200, "{report}");
    if report.skipped.is_empty() {
        for what in ["directories read unclosed", "undecided transactions found by RocksDB"] {
            assert!(report.figures[what] > 0, "{what}: {report}");
        }
    }
    for way in ["F1 kept", "F2 reverted", "F3 late", "F4 spurious"] {
        assert!(
            report.figures[&format!("syncs that failed, {way}")] > 0,
            "no sync failed as {way}: {report}"
        );
    }
}

#[test]
fn every_call_may_fail() {
    let report = clean(sweep::run(&with_children()));
    assert!(report.figures["calls made to fail"] >= scale(150, 800) as u64, "too few: {report}");
    assert!(report.figures["allocations refused"] >= 20, "too few: {report}");
}

#[test]
fn damage_is_told_or_no_matter() {
    let report = clean(corrupt::run(&Budget::quick()));
    assert!(report.figures["cells"] >= 200, "too few: {report}");
}

#[test]
fn no_flipped_byte_goes_unnoticed() {
    let mut sample = Budget::new(0, Length::For(Duration::from_secs(3)), None);
    sample.threads = 2;
    let report = clean(corrupt::exhaustive::run(&sample));
    assert!(report.figures["flips"] >= 100, "too few: {report}");
}

#[test]
fn no_setting_changes_an_answer() {
    let report = clean(meta::run(&Budget::quick()));
    assert_eq!(report.figures["pairs of settings met"], report.figures["pairs of settings"], "{report}");
    for what in [
        "kills among them",
        "moves of cursors after a reopen",
        "handles refused",
        "tables deleted by range",
        "reopens under handles",
    ] {
        assert!(report.figures[what] > 5, "{what}: {report}");
    }
}

#[test]
fn rocksdb_shows_no_more_of_a_damaged_directory() {
    clean(corrupt::diff::run(&Budget::quick()));
}

#[test]
fn killed_processes_leave_what_was_acknowledged() {
    let report = clean(torture::run(&with_children(), None));
    assert!(report.figures["kills"] >= 12 && report.figures["keys compared"] > 1000, "too few: {report}");
    assert!(report.figures["kills in the recovery"] > 0, "{report}");
}

#[test]
fn limits_of_the_machine_are_met() {
    let report = clean(limits::run(&with_children()));
    assert!(report.figures["cases"] + report.skipped.len() as u64 >= 11, "too few: {report}");
}

#[test]
fn hostile_workloads_stay_within_the_promise_of_memory() {
    let report = clean(hostile::run(&with_children()));
    assert!(report.figures["rows"] >= 8, "too few: {report}");
    report.table.lines().for_each(figure);
}

#[test]
fn directories_pass_between_releases() {
    let report = clean(compat::run(&Budget::quick()));
    assert_eq!(report.figures["golden directories"], 16, "{report}");
}

#[test]
fn nothing_grows() {
    let report = clean(soak::run(&with_children()));
    assert!(report.figures["rounds"] >= 8, "{report}");
}

#[test]
fn transactions_answer_as_their_model() {
    let report = clean(txn::run(&Budget::quick()));
    for (what, least) in [
        ("commits", 1000),
        ("conflicts", 200),
        ("locks refused", 400),
        ("ranges locked", 400),
        ("ranges refused", 60),
        ("additions", 2000),
        ("decisions", 300),
    ] {
        assert!(report.figures[what] >= least, "{what}: {report}");
    }
}

#[test]
fn filters_leave_what_their_model_says() {
    let report = clean(filter::run(&Budget::quick()));
    for (what, least) in [("compactions", 200), ("snapshots inside", 30)] {
        assert!(report.figures[what] >= least, "{what}: {report}");
    }
}
