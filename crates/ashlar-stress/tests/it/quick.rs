//! Every suite, with the budget of an ordinary test run.

use ashlar_stress::{Budget, Report, corrupt, sim, sweep};
use ashlar_testkit::report::{figure, skipped};

/// Says what a suite did; nothing may have been found.
fn clean(report: Report) -> Report {
    figure(&format!("{} ({:.1} s)", report.line(), report.seconds));
    for why in &report.skipped {
        skipped(&format!("rel {}", report.suite), why);
    }
    assert!(report.failures.is_empty(), "{report}");
    report
}

#[test]
fn crashes_lose_nothing_that_was_acknowledged() {
    let report = clean(sim::run(&Budget::quick()));
    assert!(report.figures["crashes"] >= 2000, "too few: {report}");
    assert!(report.figures["times a full disk refused and resumed"] > 0, "no disk was ever full: {report}");
}

#[test]
fn every_call_may_fail() {
    let report = clean(sweep::run(&Budget::quick()));
    assert!(report.figures["calls made to fail"] >= 1000, "too few: {report}");
}

#[test]
fn damage_is_told_or_no_matter() {
    let report = clean(corrupt::run(&Budget::quick()));
    assert!(report.figures["cells"] >= 200, "too few: {report}");
}
