//! Linkbench's tables, for both pages: what an operation costs, and how throughput grows with the clients.
//!
//! 1. A row of requests is divided by its operations, a row of the load by its nodes, as the document of 2015 does.
//! 2. Bytes, calls and processor time are those of the process until background work was idle. Read calls include those that the
//!    page cache answers, and those of the driver's sampler; reads of mapped pages are no calls. KiB are those that the process
//!    made the storage layer transfer: pages of the page cache are not in them, mapped pages are. Context switches are those of
//!    the whole machine.
//! 3. The growth follows the universal scalability law `X(N) = a·N / (1 + b·(N − 1) + c·N·(N − 1))`: `a` is the throughput of one
//!    client, `b` the part of the work that is serial, `c` what clients cost each other. Neither is negative, and a part is not above
//!    1. Points that the law does not meet within [`WORST_MISS`] have no parameters: the table says how far off the best fit is.

use crate::page::name;
use crate::record::Record;
use crate::summary::{Cell, Group};
use crate::words::{bytes, factor, known, micros, rate};

/// The heads of the columns of [`costs`].
pub const COSTS: [&str; 12] = [
    "row",
    "engine",
    "ops/s",
    "size",
    "apparent",
    "read calls/op",
    "KiB from storage/op",
    "KiB to storage/op",
    "switches/op",
    "CPU/op",
    "RSS",
    "list p99",
];

/// The heads of the columns of [`growth`].
pub const GROWTH: [&str; 7] = ["case", "engine", "points", "a, ops/s", "b", "c", "fit"];

/// The greatest part of a measured throughput by which the law may miss it.
const WORST_MISS: f64 = 0.1;

/// What a reader of [`growth`] needs to know.
pub const GROWTH_NOTE: &str = "a·N / (1 + b·(N − 1) + c·N·(N − 1)) by least squares, b and c not below 0. b: the serial part; c: what \
     clients cost each other. The law has no parameters here where it misses a point by more than 10 %, or where b would be above 1. A fit \
     to three points has none to spare, so that it may be near by chance.";

/// What a reader of [`costs`] needs to know.
pub const COSTS_NOTE: &str = "Of a load: a node with its links. Read calls include those that the page cache answers; reads of mapped \
     pages are none. KiB are what the process made the storage transfer. Context switches (switches/op) are those of the whole machine, \
     other programs included.";

/// The operation whose latency the document discusses.
const LIST: &str = "GET_LINKS_LIST";

/// What an operation costs, a line per row and engine; empty for other experiments.
pub fn costs(group: &Group<'_>) -> Vec<[String; 12]> {
    if !group.is_linkbench() {
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
    let p99 = cell.median(|run| run.latency_us.get(LIST).and_then(|list| list.percentile(0.01, list.p99)));
    [
        row.to_owned(),
        name(cell.engine).to_owned(),
        known(cell.rate().map(|speed| speed.median), rate),
        whole(|run| run.space.du),
        whole(|run| run.space.apparent),
        known(each(|run| run.io.syscr), factor),
        kib(|run| run.io.proc_read),
        kib(|run| run.io.proc_write),
        known(each(|run| run.cpu.machine_cs), factor),
        known(cpu, micros),
        whole(|run| run.mem.rss),
        known(p99, micros),
    ]
}

/// The growth of throughput, a line per case and engine with rows of three or more numbers of clients.
pub fn growth(group: &Group<'_>) -> Vec<[String; 7]> {
    let mut lines = Vec::new();
    if !group.is_linkbench() {
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
            if let Some(law) = scalability(&points) {
                let [a, b, c, fit] = shown(law, &points);
                lines.push([case.clone(), name(engine).to_owned(), points.len().to_string(), a, b, c, fit]);
            }
        }
    }
    lines
}

/// The parameters in words, and how well the law fits; without parameters if it does not.
fn shown([a, b, c]: [f64; 3], points: &[(f64, f64)]) -> [String; 4] {
    let misses = |&(n, speed): &(f64, f64)| {
        let said = a * n / (1.0 + b * (n - 1.0) + c * n * (n - 1.0));
        (said / speed - 1.0).abs()
    };
    let miss = points.iter().filter(|(_, speed)| *speed > 0.0).map(misses).fold(0.0, f64::max);
    let none = |why: String| ["–", "–", "–", &why].map(str::to_owned);
    if miss > WORST_MISS {
        return none(format!("none: {:.0} % off", miss * 100.0));
    }
    if b > 1.0 {
        return none(format!("none: b would be {b:.2}"));
    }
    [rate(a), format!("{b:.3}"), format!("{c:.4}"), format!("within {:.0} %", (miss * 100.0).ceil())]
}

/// The parameters of the law by least squares of N / X(N), which is linear in them; none of them is negative. `None`: fewer than
/// three numbers of clients.
pub fn scalability(points: &[(f64, f64)]) -> Option<[f64; 3]> {
    let usable: Vec<(f64, f64)> = points.iter().copied().filter(|(_, speed)| *speed > 0.0).collect();
    let mut clients: Vec<f64> = usable.iter().map(|(clients, _)| *clients).collect();
    clients.sort_by(f64::total_cmp);
    clients.dedup();
    if clients.len() < 3 {
        return None;
    }
    // The best fit has the parameters that would be negative at 0. There are two, so every choice of them is tried.
    let choices = [[true, true], [true, false], [false, true], [false, false]];
    let fits = choices.into_iter().filter_map(|free| fitted(&usable, free));
    let allowed = fits.filter(|[p, q, r]| *p > 0.0 && *q >= 0.0 && *r >= 0.0);
    let [p, q, r] = allowed.min_by(|a, b| squares(&usable, *a).total_cmp(&squares(&usable, *b)))?;
    Some([1.0 / p, q / p, r / p])
}

/// The terms of N / X(N) = p + q·(N − 1) + r·N·(N − 1).
fn terms(clients: f64) -> [f64; 3] {
    [1.0, clients - 1.0, clients * (clients - 1.0)]
}

/// The sum of the squared errors of a fit.
fn squares(points: &[(f64, f64)], fit: [f64; 3]) -> f64 {
    let error = |&(clients, speed): &(f64, f64)| {
        let found: f64 = terms(clients).iter().zip(fit).map(|(term, factor)| term * factor).sum();
        (found - clients / speed).powi(2)
    };
    points.iter().map(error).sum()
}

/// The parameters by the normal equations. The second and the third are 0 unless they are `free`.
fn fitted(points: &[(f64, f64)], free: [bool; 2]) -> Option<[f64; 3]> {
    let mut rows = [[0.0; 4]; 3];
    for &(clients, speed) in points {
        let mut terms = terms(clients);
        terms.iter_mut().skip(1).zip(free).filter(|(_, free)| !free).for_each(|(term, _)| *term = 0.0);
        for (row, term) in rows.iter_mut().zip(terms) {
            for (cell, other) in row.iter_mut().zip(terms.into_iter().chain([clients / speed])) {
                *cell += term * other;
            }
        }
    }
    // The equation of a parameter that is not free says that it is 0.
    (1..3).zip(free).filter(|(_, free)| !free).for_each(|(place, _)| rows[place][place] = 1.0);
    solved(rows)
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
    use crate::summary::{LINKBENCH, Summary};

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
        // Faster than in proportion: the parameters stay at 0, and a is the best proportion.
        let steep = [1.0, 2.0, 4.0, 8.0].map(|n| (n, n * n));
        let [a, b, c] = scalability(&steep).unwrap();
        assert!(a > 1.0 && a < 8.0 && b == 0.0 && c == 0.0, "{a} {b} {c}");
        // Noise around a law without c.
        let noisy = [(1.0, 1000.0), (2.0, 1550.0), (4.0, 2000.0), (16.0, 2900.0)];
        let [_, b, c] = scalability(&noisy).unwrap();
        assert!(b > 0.0 && c >= 0.0, "{b} {c}");
        assert_eq!((scalability(&[(1.0, 5.0), (2.0, 9.0)]), scalability(&[(1.0, 5.0); 3])), (None, None));
    }

    fn record(row: &str, per_sec: f64) -> Record {
        let mut record =
            Record { schema: SCHEMA, experiment: LINKBENCH.into(), row: row.into(), ..Record::default() };
        record.engine.name = "ashlardb".into();
        record.ops = Some(Ops { total: 1000, per_sec, ..Ops::default() });
        record.space.du = Some(3 << 20);
        (record.io.syscr, record.io.proc_read, record.io.proc_write) =
            (Some(500), Some(4096 * 1000), Some(512_000));
        (record.cpu.machine_cs, record.cpu.process_s, record.mem.rss) =
            (Some(2000), Some(0.02), Some(1 << 20));
        record.latency_us.insert(LIST.into(), Latency { count: 1000, p99: 1500.0, ..Latency::default() });
        record
    }

    #[test]
    fn other_modes_are_groups_of_their_own_with_the_same_tables() {
        let of = |experiment: &str| Record { experiment: experiment.into(), ..record("cached-1", 1000.0) };
        let run = Run {
            headers: Vec::new(),
            records: ["s4", "s4.txn.sync", "s40"].iter().map(|name| of(name)).collect(),
        };
        let summary = Summary::of(&run);
        let titles: Vec<String> = summary.groups.iter().map(Group::title).collect();
        let settings = ", matched settings";
        assert_eq!(
            titles,
            ["Linkbench", "Linkbench (txn, sync)", "s40"].map(|name| format!("{name}{settings}"))
        );
        assert_eq!(summary.groups.iter().map(|group| costs(group).len()).collect::<Vec<_>>(), [1, 1, 0]);
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
            [["cached", "AshlarDB", "3", "1,000", "0.250", "0.0010", "within 1 %"].map(str::to_owned)]
        );
    }

    /// A serial part above 1 and a law that misses a point are no findings about an engine.
    #[test]
    fn a_law_that_does_not_fit_has_no_parameters() {
        let of = |points: &[(f64, f64)]| shown(scalability(points).unwrap(), points);
        let falls = [1.0, 4.0, 16.0].map(|n| (n, law(50_000.0, 1.2, 0.002, n)));
        assert_eq!(of(&falls), ["–", "–", "–", "none: b would be 1.20"]);
        let [a, b, c, fit] = of(&[(1.0, 20_300.0), (4.0, 9510.0), (16.0, 26_600.0)]);
        assert_eq!([a, b, c], ["–", "–", "–"]);
        assert!(fit.starts_with("none: ") && fit.ends_with(" % off"), "{fit}");
        let near =
            [1.0, 4.0, 16.0].map(|n| (n, law(50_000.0, 0.2, 0.002, n) * if n > 2.0 { 1.05 } else { 1.0 }));
        assert!(of(&near)[3].starts_with("within "), "{:?}", of(&near));
    }
}
