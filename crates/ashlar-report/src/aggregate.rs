//! Summarises a file of records as JSON. For each row, engine and number: the median and spread over the repetitions, the
//! ratios to the reference and the best engine, and the figure of the document.
//!
//! The numbers are named by their place in a record: `ops.per_sec`, `latency_us.read.p99`, `amp.wa_proc`. Settings, courses
//! over time and the identity of runs are left out.

use crate::record::{Class, Published, Record, Run, SCHEMA};
use crate::summary::{Cell, Group, REFERENCE, Row, Spread, Summary};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// Parts of a record that are not figures.
const NO_FIGURES: [&str; 7] = ["schema", "rep", "order", "params", "series", "published", "status"];

#[derive(Serialize)]
struct Aggregate<'a> {
    schema: u32,
    /// The time and the command of each run.
    runs: Vec<(&'a str, &'a str)>,
    marks: &'a [String],
    rows: Vec<Line<'a>>,
}

/// One row on one engine.
#[derive(Serialize)]
struct Line<'a> {
    experiment: &'a str,
    size: Option<&'a str>,
    class: Class,
    row: &'a str,
    title: &'a str,
    engine: &'a str,
    version: &'a str,
    repetitions: usize,
    /// Why there are no figures.
    why: Option<&'a str>,
    figures: BTreeMap<String, Spread>,
    /// Operations per second over RocksDB's. Neither ratio exists where rates do not rank engines ([`Group::ranks`]).
    to_reference: Option<f64>,
    /// Operations per second over the best engine's.
    to_best: Option<f64>,
    published: Option<&'a Published>,
}

/// The JSON, with a newline at its end.
pub fn aggregate(run: &Run) -> String {
    let summary = Summary::of(run);
    let lines = |group| lines(group);
    let aggregate = Aggregate {
        schema: SCHEMA,
        runs: run.headers.iter().map(|header| (header.time.as_str(), header.command.as_str())).collect(),
        marks: &summary.marks,
        rows: summary.groups.iter().flat_map(lines).collect(),
    };
    // The keys are strings and there are no cycles, so serialisation cannot fail.
    serde_json::to_string_pretty(&aggregate).unwrap_or_default() + "\n"
}

fn lines<'a>(group: &'a Group<'a>) -> Vec<Line<'a>> {
    let of_row = |row: &'a Row<'a>| row.cells.iter().map(move |cell| line(group, row, cell));
    group.rows.iter().flat_map(of_row).collect()
}

fn line<'a>(group: &Group<'a>, row: &'a Row<'a>, cell: &'a Cell<'a>) -> Line<'a> {
    let rate = cell.rate().map(|rate| rate.median);
    let ranks = group.ranks(row);
    let over = |other: Option<Spread>| {
        Some(rate? / other.filter(|_| ranks).map(|rate| rate.median).filter(|&rate| rate > 0.0)?)
    };
    Line {
        experiment: group.experiment,
        size: group.size,
        class: group.class,
        row: row.id,
        title: row.title,
        engine: cell.engine,
        version: cell.runs.first().map_or("", |run| &run.engine.version),
        repetitions: cell.runs.len(),
        why: (!cell.why.is_empty()).then_some(&cell.why),
        figures: figures(&cell.runs),
        to_reference: over(row.of(REFERENCE).and_then(Cell::rate)),
        to_best: over(row.best()),
        published: row.history.iter().find(|(engine, _)| *engine == cell.engine).map(|(_, said)| said),
    }
}

/// Every number of any repetition.
fn figures(runs: &[&Record]) -> BTreeMap<String, Spread> {
    let mut values: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for run in runs {
        // A record is an object; other values are left out.
        let record = serde_json::to_value(run).unwrap_or_default();
        for (name, part) in record.as_object().into_iter().flatten() {
            if !NO_FIGURES.contains(&name.as_str()) {
                collect(name, part, &mut values);
            }
        }
    }
    values.into_iter().filter_map(|(name, all)| Some((name, Spread::of(all.into_iter())?))).collect()
}

fn collect(name: &str, value: &Value, values: &mut BTreeMap<String, Vec<f64>>) {
    match value {
        Value::Number(number) => values.entry(name.to_owned()).or_default().extend(number.as_f64()),
        Value::Object(parts) => {
            parts.iter().for_each(|(part, value)| collect(&format!("{name}.{part}"), value, values));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    fn rows(run: &Run) -> Vec<Value> {
        let all: Value = serde_json::from_str(&aggregate(run)).unwrap();
        all["rows"].as_array().unwrap().clone()
    }

    #[test]
    fn medians_ratios_and_history() {
        let run = sample::comparison();
        let rows = rows(&run);
        assert_eq!(rows.len(), 25, "five rows on five engines");
        let of = |row: &str, engine: &str| {
            rows.iter().find(|line| line["row"] == row && line["engine"] == engine).unwrap()
        };
        let lmdb = of("1A", "lmdb");
        let rate = &lmdb["figures"]["ops.per_sec"];
        let is = |value: &Value, wanted: f64| {
            let value = value.as_f64().unwrap();
            assert!((value / wanted - 1.0).abs() < 1e-9, "{value} {wanted}");
        };
        is(&rate["median"], 6e6 * 0.9 * 1.02);
        is(&rate["min"], 6e6 * 0.9 * 1.01);
        is(&rate["max"], 6e6 * 0.9 * 1.03);
        assert!(rate["cv"].as_f64().unwrap() > 0.0);
        is(&lmdb["to_reference"], 0.9 / 0.8);
        is(&lmdb["to_best"], 0.9);
        assert_eq!((lmdb["repetitions"].as_u64(), &lmdb["why"]), (Some(3), &Value::Null));
        assert_eq!(lmdb["published"], Value::Null);
        assert_eq!(of("1A", "leveldb")["published"]["text"], "4,030,000");
        is(&of("1D", "rocksdb")["figures"]["amp.wa_proc"]["median"], 4.5);
        assert!(of("1B", "rocksdb")["figures"]["latency_us.read.p999"]["max"].as_f64().unwrap() > 0.0);
        assert!(of("1B", "rocksdb")["figures"].get("params.keys").is_none());
    }

    #[test]
    fn an_engine_that_is_not_here_says_why_and_has_no_zeros() {
        let run = sample::comparison();
        let rows = rows(&run);
        let missing = rows.iter().find(|line| line["engine"] == "treedb").unwrap();
        assert_eq!(missing["why"], "not here: no library libkyotocabinet");
        assert_eq!((&missing["figures"], &missing["to_best"]), (&serde_json::json!({}), &Value::Null));
    }
}
