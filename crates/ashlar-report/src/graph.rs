//! Linkbench's tables, for both pages: what an operation costs, and how throughput grows with the clients.
//!
//! 1. A row of requests is divided by its operations, a row of the load by its nodes, as the document of 2015 does.
//! 2. Bytes, calls and processor time are those of the process until background work was idle. Context switches are those of the
//!    whole machine.
//! 3. The growth follows the universal scalability law `X(N) = a·N / (1 + b·(N − 1) + c·N·(N − 1))`: `a` is the throughput of one
//!    client, `b` the part of the work that is serial, `c` what clients cost each other.

use crate::page::name;
use crate::record::Record;
use crate::summary::{Cell, Group, LINKBENCH};
use crate::words::{bytes, factor, known, micros, rate};

/// The heads of the columns of [`costs`].
pub const COSTS: [&str; 12] = [
    "row",
    "engine",
    "ops/s",
    "size",
    "apparent",
    "read calls/op",
    "KiB read/op",
    "KiB written/op",
    "switches/op",
    "CPU/op",
    "RSS",
    "list p99",
];

/// The heads of the columns of [`growth`].
pub const GROWTH: [&str; 5] = ["case", "engine", "a, ops/s", "b", "c"];

/// The operation whose latency the document discusses.
const LIST: &str = "GET_LINKS_LIST";

/// What an operation costs, a line per row and engine; empty for other experiments.
pub fn costs(group: &Group<'_>) -> Vec<[String; 12]> {
    if group.experiment != LINKBENCH {
        return Vec::new();
    }
    let of_row = |row: &crate::summary::Row<'_>| {
        row.cells
            .iter()
            .filter(|cell| !cell.runs.is_empty())
            .map(|cell| line(row.id, cell))
            .collect::<Vec<_>>()
    };
    group.rows.iter().flat_map(of_row).collect()
}

/// Nodes of a load, operations of requests.
fn divisor(run: &Record) -> Option<f64> {
    let nodes = run.params.options.get("nodes").and_then(|nodes| nodes.parse().ok());
    nodes.or_else(|| Some(run.ops.as_ref()?.total as f64)).filter(|count: &f64| *count > 0.0)
}

fn line(row: &str, cell: &Cell<'_>) -> [String; 12] {
    let each = |of: fn(&Record) -> Option<u64>| cell.median(|run| Some(of(run)? as f64 / divisor(run)?));
    let kib = |of| known(each(of).map(|bytes| bytes / 1024.0), factor);
    let whole = |of: fn(&Record) -> Option<u64>| known(cell.median(|run| Some(of(run)? as f64)), bytes);
    let cpu = cell.median(|run| Some(run.cpu.process_s? * 1e6 / divisor(run)?));
    let p99 = cell.median(|run| Some(run.latency_us.get(LIST)?.p99));
    [
        row.to_owned(),
        name(cell.engine).to_owned(),
        known(cell.rate().map(|speed| speed.median), rate),
        whole(|run| run.space.du),
        whole(|run| run.space.apparent),
        known(each(|run| run.io.syscr), factor),
        kib(|run| run.io.proc_rchar),
        kib(|run| run.io.proc_wchar),
        known(each(|run| run.cpu.machine_cs), factor),
        known(cpu, micros),
        whole(|run| run.mem.rss),
        known(p99, micros),
    ]
}

/// The growth of throughput, a line per case and engine with rows of three or more numbers of clients.
pub fn growth(group: &Group<'_>) -> Vec<[String; 5]> {
    let mut lines = Vec::new();
    if group.experiment != LINKBENCH {
        return lines;
    }
    let case_of =
        |id: &str| id.rsplit_once('-').map(|(case, clients)| (case.to_owned(), clients.parse::<f64>().ok()));
    let mut cases: Vec<String> = group.rows.iter().filter_map(|row| Some(case_of(row.id)?.0)).collect();
    cases.dedup();
    let engines = group.rows.iter().flat_map(|row| &row.cells).map(|cell| cell.engine);
    let mut known_engines: Vec<&str> = Vec::new();
    for engine in engines {
        if !known_engines.contains(&engine) {
            known_engines.push(engine);
        }
    }
    for case in &cases {
        for engine in &known_engines {
            let points: Vec<(f64, f64)> = group
                .rows
                .iter()
                .filter_map(|row| {
                    let (of, clients) = case_of(row.id)?;
                    let speed = row.of(engine)?.rate()?.median;
                    (of == *case).then_some((clients?, speed))
                })
                .collect();
            if let Some([a, b, c]) = scalability(&points) {
                let cells =
                    [case.clone(), name(engine).to_owned(), rate(a), format!("{b:.3}"), format!("{c:.4}")];
                lines.push(cells);
            }
        }
    }
    lines
}

/// The parameters of the law by least squares of N / X(N), which is linear in them. `None`: fewer than three points.
pub fn scalability(points: &[(f64, f64)]) -> Option<[f64; 3]> {
    let usable = || points.iter().filter(|(_, speed)| *speed > 0.0);
    if usable().count() < 3 {
        return None;
    }
    // The normal equations of y = p + q·(N − 1) + r·N·(N − 1), with the right side as the last column.
    let mut rows = [[0.0; 4]; 3];
    for &(clients, speed) in usable() {
        let terms = [1.0, clients - 1.0, clients * (clients - 1.0)];
        for (row, term) in rows.iter_mut().zip(terms) {
            for (cell, other) in row.iter_mut().zip(terms.into_iter().chain([clients / speed])) {
                *cell += term * other;
            }
        }
    }
    let [p, q, r] = solved(rows)?;
    (p > 0.0).then(|| [1.0 / p, q / p, r / p])
}

/// Gauss's elimination with pivots. `None`: no single solution.
fn solved(mut rows: [[f64; 4]; 3]) -> Option<[f64; 3]> {
    for column in 0..3 {
        let pivot = (column..3).max_by(|a, b| rows[*a][column].abs().total_cmp(&rows[*b][column].abs()))?;
        rows.swap(column, pivot);
        let head = rows[column];
        if head[column].abs() < 1e-300 {
            return None;
        }
        for (_, row) in rows.iter_mut().enumerate().filter(|(place, _)| *place != column) {
            let factor = row[column] / head[column];
            row.iter_mut().zip(head).for_each(|(cell, above)| *cell -= factor * above);
        }
    }
    Some([0, 1, 2].map(|place| rows[place][3] / rows[place][place]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Latency, Ops, Run, SCHEMA};
    use crate::summary::Summary;

    fn law(a: f64, b: f64, c: f64, n: f64) -> f64 {
        a * n / (1.0 + b * (n - 1.0) + c * n * (n - 1.0))
    }

    #[test]
    fn the_law_is_found_again() {
        for (a, b, c) in [(1000.0, 0.0, 0.0), (52_000.0, 0.3, 0.002), (10.0, 0.9, 0.01)] {
            let points = [1.0, 2.0, 4.0, 8.0, 16.0].map(|n| (n, law(a, b, c, n)));
            for found in [scalability(&points), scalability(&points[..3])] {
                let found = found.unwrap();
                assert!((found[0] / a - 1.0).abs() < 1e-6 && (found[1] - b).abs() < 1e-6, "{found:?}");
                assert!((found[2] - c).abs() < 1e-6, "{found:?}");
            }
        }
        assert_eq!((scalability(&[(1.0, 5.0), (2.0, 9.0)]), scalability(&[(1.0, 5.0); 3])), (None, None));
    }

    fn record(row: &str, per_sec: f64) -> Record {
        let mut record =
            Record { schema: SCHEMA, experiment: LINKBENCH.into(), row: row.into(), ..Record::default() };
        record.engine.name = "ashlardb".into();
        record.ops = Some(Ops { total: 1000, per_sec, ..Ops::default() });
        record.space.du = Some(3 << 20);
        (record.io.syscr, record.io.proc_rchar, record.io.proc_wchar) =
            (Some(500), Some(4096 * 1000), Some(512_000));
        (record.cpu.machine_cs, record.cpu.process_s, record.mem.rss) =
            (Some(2000), Some(0.02), Some(1 << 20));
        record.latency_us.insert(LIST.into(), Latency { p99: 1500.0, ..Latency::default() });
        record
    }

    #[test]
    fn costs_are_per_operation_and_those_of_a_load_per_node() {
        let mut load = record("cached-load", 9e4);
        load.params.options.insert("nodes".into(), "100".into());
        load.latency_us.clear();
        let rows = [("cached-1", 1.0), ("cached-4", 4.0), ("cached-16", 16.0)];
        let records = rows.map(|(row, n)| record(row, law(1000.0, 0.25, 0.001, n)));
        let run = Run { headers: Vec::new(), records: [vec![load], records.into()].concat() };
        let summary = Summary::of(&run);
        let costs = costs(&summary.groups[0]);
        assert_eq!(
            costs[0][2..],
            ["90,000", "3 MiB", "–", "5.00", "40.0", "5.00", "20.0", "200 µs", "1 MiB", "–"]
        );
        assert_eq!(costs[1][5..], ["0.50", "4.00", "0.50", "2.00", "20 µs", "1 MiB", "1.5 ms"]);
        assert_eq!(
            growth(&summary.groups[0]),
            [["cached", "AshlarDB", "1,000", "0.250", "0.0010"].map(str::to_owned)]
        );
    }
}
