//! Whole engines under the scheduler: in builds with `--cfg shuttle` only, and nothing else runs in those.

use ashlar_stress::{Budget, shuttle};
use ashlar_testkit::report::figure;

#[test]
fn no_order_of_steps_breaks_a_promise() {
    let mut budget = Budget::quick();
    budget.threads = 2;
    let report = shuttle::run(&budget);
    figure(&format!("{} ({:.1} s)", report.line(), report.seconds));
    assert!(report.failures.is_empty(), "{report}");
    for what in ["crashes", "runs that compacted", "calls made to fail", "batches that others committed"] {
        assert!(report.figures[what] > 0, "no {what}: {report}");
    }
}
