//! A line of JSON per benchmark (`--json`), for programs.

use crate::plan::Plan;
use crate::stats::Measured;
use serde_json::{Map, Value, json};

/// The line, with its newline. An undefined number, such as a rate over no time, is null.
pub(crate) fn line(engine: &(String, String), plan: &Plan, measured: &Measured) -> String {
    let latencies: Map<String, Value> = measured
        .histograms
        .iter()
        .map(|(kind, h)| {
            let p = |percent| h.percentile(percent);
            let of_kind = json!({
                "count": h.count(), "mean": h.average(), "p50": p(50.0), "p75": p(75.0), "p99": p(99.0),
                "p999": p(99.9), "p9999": p(99.99),
            });
            (kind.name().to_owned(), of_kind)
        })
        .collect();
    let line = json!({
        "engine": engine.0, "version": engine.1, "benchmark": measured.name, "threads": plan.threads,
        "keys": plan.keys, "operations": measured.operations, "seconds": measured.seconds,
        "micros_per_op": measured.micros_per_op, "ops_per_sec": measured.ops_per_sec,
        "mb_per_sec": measured.mb_per_sec, "message": measured.message, "latency_us": latencies,
    });
    format!("{line}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::Flags;
    use crate::stats::{OpKind, ThreadStats};

    #[test]
    fn a_line_has_every_field() {
        let plan = Plan::new("readrandom", &Flags { num: 10, ..Flags::default() }).unwrap();
        let mut stats =
            ThreadStats { done: 4, message: Some("(1 of \"2\")\n".into()), ..ThreadStats::default() };
        stats.histograms.entry(OpKind::Read).or_default().add(2);
        let got = line(&("A".into(), "1".into()), &plan, &Measured::new("readrandom", stats));
        assert!(got.ends_with("}\n") && got.lines().count() == 1, "{got}");
        let read = json!({
            "count": 1, "mean": 2.0, "p50": 2.0, "p75": 2.0, "p99": 2.0, "p999": 2.0, "p9999": 2.0,
        });
        let expected = json!({
            "engine": "A", "version": "1", "benchmark": "readrandom", "threads": 1, "keys": 10, "operations": 4,
            "seconds": 0.0, "micros_per_op": 0.0, "ops_per_sec": 0.0, "mb_per_sec": null,
            "message": "(1 of \"2\")\n", "latency_us": { "read": read },
        });
        assert_eq!(serde_json::from_str::<Value>(&got).unwrap(), expected);
    }
}
