//! The report: medians and spread, each engine beside the others, and the figures of the document.

use crate::drive::{Matrix, Outcome};
use crate::experiment::Experiment;
use ashlar_peers::engine::EngineName;
use ashlar_report::record::{Class, Latency, Record, Status};
use comfy_table::{CellAlignment, Table, presets};
use std::collections::BTreeSet;
use std::fmt::Write;

/// The median; `None` of nothing.
pub fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() % 2 {
        1 => sorted.get(middle).copied(),
        _ => Some((sorted.get(middle.checked_sub(1)?)? + sorted.get(middle)?) / 2.0),
    }
}

/// Half the distance between the least and the most, in percent of the median.
fn spread(values: &[f64]) -> Option<f64> {
    let middle = median(values.iter().copied())?;
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(0.0, f64::max);
    Some((most - least) / 2.0 / middle * 100.0)
}

/// Everything that is printed in the end.
pub fn text(matrix: &Matrix, outcome: &Outcome) -> String {
    let mut out = String::new();
    let in_detail = [Experiment::HotPaths, Experiment::Operations].map(Experiment::text);
    let free = matrix.size.is_none() || in_detail.contains(&matrix.experiment.as_str());
    // Writing to a String cannot fail.
    let _ = match (&matrix.size, matrix.sessions.first()) {
        (Some(size), _) => writeln!(out, "{} {size}, {} repetitions", matrix.experiment, matrix.reps),
        (None, Some(session)) => writeln!(out, "{}, {} repetitions", settings(session), matrix.reps),
        (None, None) => Ok(()),
    };
    let versions: BTreeSet<_> = counting(outcome).map(|r| (&r.engine.name, &r.engine.version)).collect();
    for (name, version) in versions {
        let _ = writeln!(out, "{name}: {version}");
    }
    for ((name, class), checked) in &outcome.durability {
        let _ = writeln!(out, "{}: durability {class}: {}", name.text(), checked.text());
    }
    for (name, marks) in &outcome.marks {
        let _ = marks.iter().try_for_each(|why| writeln!(out, "{}: {why}", name.text()));
    }
    let _ = writeln!(out, "{}", if free { figures(matrix, outcome) } else { matrix_of(matrix, outcome) });
    if free {
        let _ = writeln!(out, "{}", latencies(matrix, outcome));
    }
    if let Some(line) = overheads(outcome) {
        let _ = writeln!(out, "{line}");
    }
    for what in disagreements(outcome) {
        let _ = writeln!(out, "VOID: {what}");
    }
    out
}

fn settings(session: &crate::experiment::Session) -> String {
    let s = &session.settings;
    format!(
        "{} {} keys of {} + {} bytes; {}, codec {}, cache {} MiB, memtable {} MiB x {}, blocks {} B, filter {} bits",
        session.keys,
        s.key_shape,
        s.key_bytes,
        s.value_bytes,
        s.durability(),
        s.codec,
        s.cache_bytes >> 20,
        s.write_buffer_bytes >> 20,
        s.write_buffers,
        s.block_bytes,
        s.filter_bits,
    )
}

/// A line of a table.
#[derive(Clone, Copy, PartialEq)]
struct Row<'a> {
    name: &'a str,
    title: &'a str,
    class: Class,
}

/// The rows, in the order of their runs.
fn rows(outcome: &Outcome) -> Vec<Row<'_>> {
    let mut rows = Vec::new();
    for record in &outcome.records {
        let row = Row { name: &record.row, title: &record.title, class: record.class };
        if !rows.contains(&row) {
            rows.push(row);
        }
    }
    rows
}

/// All records of a row and an engine.
fn all<'a>(outcome: &'a Outcome, row: Row<'a>, engine: EngineName) -> impl Iterator<Item = &'a Record> + 'a {
    let is = move |r: &&Record| r.row == row.name && r.class == row.class && r.engine.name == engine.text();
    outcome.records.iter().filter(is)
}

/// The records whose figures count.
fn of<'a>(outcome: &'a Outcome, row: Row<'a>, engine: EngineName) -> impl Iterator<Item = &'a Record> + 'a {
    all(outcome, row, engine).filter(|r| r.counts())
}

/// The records whose figures count.
fn counting(outcome: &Outcome) -> impl Iterator<Item = &Record> {
    outcome.records.iter().filter(|r| r.counts())
}

/// Rows that name figures that cannot be compared, because the requested work or the read entries differ.
fn disagreements(outcome: &Outcome) -> Vec<String> {
    let mut void = Vec::new();
    for row in rows(outcome) {
        let of = || counting(outcome).filter(|r| r.row == row.name && r.class == row.class);
        let asked: BTreeSet<_> = of().filter_map(|r| r.hash.ops.as_ref()).collect();
        let reads: BTreeSet<_> =
            of().filter_map(|r| Some((r.hash.reads.as_ref()?, r.ops.as_ref()?.found))).collect();
        if asked.len() > 1 {
            void.push(format!("the engines were not asked for the same in {}", row.name));
        }
        if reads.len() > 1 {
            void.push(format!("the engines did not read the same in {}", row.name));
        }
    }
    void
}

/// Operations per second: a line per row, a column per engine.
fn matrix_of(matrix: &Matrix, outcome: &Outcome) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::ASCII_MARKDOWN);
    let mut header = vec!["row", "what, operations per second", "class"];
    header.extend(matrix.engines.iter().map(|engine| engine.text()));
    header.push("published (history)");
    table.set_header(header);
    for row in rows(outcome) {
        let mut cells = vec![row.name.to_owned(), row.title.to_owned(), row.class.text().to_owned()];
        cells.extend(matrix.engines.iter().map(|&engine| cell(outcome, row, engine)));
        let published: Vec<String> =
            matrix.engines.iter().filter_map(|&e| history(outcome, row, e)).collect();
        cells.push(published.join("; "));
        table.add_row(cells);
    }
    right(table, 3..3 + matrix.engines.len())
}

fn cell(outcome: &Outcome, row: Row<'_>, engine: EngineName) -> String {
    let rates: Vec<f64> = of(outcome, row, engine).filter_map(|r| Some(r.ops.as_ref()?.per_sec)).collect();
    match (median(rates.iter().copied()), spread(&rates)) {
        (Some(rate), Some(spread)) if rates.len() > 1 => format!("{} ±{spread:.0}%", short(rate)),
        (Some(rate), _) => short(rate),
        _ => match all(outcome, row, engine).last().map(|r| &r.status) {
            Some(Status::NotHere { why }) if why.starts_with("not offered") => "not offered".into(),
            Some(Status::NotHere { .. }) => "not here".into(),
            Some(Status::Failed { .. }) => "FAILED".into(),
            Some(Status::Timeout { .. }) => "TIMEOUT".into(),
            Some(Status::Void { .. }) => "VOID".into(),
            Some(Status::Ok) | None => "-".into(),
        },
    }
}

fn history(outcome: &Outcome, row: Row<'_>, engine: EngineName) -> Option<String> {
    // Two forms of one engine have the same history.
    let known =
        all(outcome, row, engine).find_map(|r| r.published.as_ref()).filter(|_| engine.variant() == 0)?;
    Some(format!("{} {}", engine.text(), known.text))
}

/// Three digits and a unit.
fn short(rate: f64) -> String {
    let (value, unit) = match rate {
        r if r >= 1e6 => (r / 1e6, "M"),
        r if r >= 1e3 => (r / 1e3, "k"),
        r => (r, ""),
    };
    let digits = if value < 10.0 { 2 } else { usize::from(value < 100.0) };
    format!("{value:.digits$}{unit}")
}

fn figures(matrix: &Matrix, outcome: &Outcome) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::ASCII_MARKDOWN);
    table.set_header([
        "workload",
        "engine",
        "us/op",
        "ops/s",
        "spread %",
        "cpu us/op",
        "caller cpu",
        "faults/op",
        "switches/op",
        "settle s",
        "write amp",
        "(engine)",
        "RSS MiB",
        "levels",
        "wall x",
        "cpu x",
    ]);
    for row in rows(outcome) {
        let wall = |engine| median(of(outcome, row, engine).filter_map(|r| Some(r.ops.as_ref()?.us_wall_op)));
        let cpu = |engine| median(of(outcome, row, engine).filter_map(|r| r.ops.as_ref()?.us_cpu_op));
        for &engine in &matrix.engines {
            let Some(last) = of(outcome, row, engine).last() else { continue };
            let all =
                |figure: fn(&Record) -> Option<f64>| median(of(outcome, row, engine).filter_map(figure));
            let walls: Vec<f64> =
                of(outcome, row, engine).filter_map(|r| Some(r.ops.as_ref()?.us_wall_op)).collect();
            let ratio = |reference: Option<f64>, own: Option<f64>| {
                let ratio = reference.zip(own).map(|(reference, own)| reference / own);
                number(ratio.filter(|_| engine == EngineName::Ashlardb), 2)
            };
            table.add_row([
                row.name.to_owned(),
                engine.text().to_owned(),
                number(wall(engine), 3),
                number(all(|r| Some(r.ops.as_ref()?.per_sec)), 0),
                number(spread(&walls), 0),
                number(cpu(engine), 3),
                number(all(|r| r.ops.as_ref()?.us_cpu_thread_op), 3),
                number(all(|r| per_op(r, r.cpu.minor_faults?)), 3),
                number(all(|r| per_op(r, r.cpu.vol_cs? + r.cpu.invol_cs?)), 3),
                number(all(|r| r.phase.as_ref()?.settle_seconds), 2),
                number(all(Record::written), 2),
                number(all(|r| r.amp.wa_eng), 2),
                number(all(|r| r.mem.rss_peak.map(|b| b as f64 / 1_048_576.0)), 0),
                last.engine_counters.levels.iter().map(u64::to_string).collect::<Vec<_>>().join(" "),
                ratio(wall(EngineName::Rocksdb), wall(engine)),
                ratio(cpu(EngineName::Rocksdb), cpu(engine)),
            ]);
        }
    }
    right(table, 2..13)
}

fn per_op(record: &Record, count: u64) -> Option<f64> {
    Some(count as f64 / record.ops.as_ref()?.total.max(1) as f64)
}

/// Every kind of operation of every row, in microseconds.
fn latencies(matrix: &Matrix, outcome: &Outcome) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::ASCII_MARKDOWN);
    table.set_header([
        "latency", "engine", "of", "due /s", "p50 us", "p90", "p99", "p99.9", "p99.99", "longest",
    ]);
    for row in rows(outcome) {
        for &engine in &matrix.engines {
            let kinds: BTreeSet<_> = of(outcome, row, engine).flat_map(|r| r.latency_us.keys()).collect();
            for kind in kinds {
                let seen: Vec<_> = of(outcome, row, engine).filter_map(|r| r.latency_us.get(kind)).collect();
                let m = |figure: fn(&Latency) -> Option<f64>| {
                    number(median(seen.iter().filter_map(|l| figure(l))), 1)
                };
                table.add_row([
                    row.name.to_owned(),
                    engine.text().to_owned(),
                    kind.clone(),
                    m(|l| l.rate),
                    m(|l| Some(l.p50)),
                    m(|l| Some(l.p90)),
                    m(|l| Some(l.p99)),
                    m(|l| Some(l.p999)),
                    m(|l| Some(l.p9999)),
                    m(|l| Some(l.max)),
                ]);
            }
        }
    }
    right(table, 3..10)
}

/// The driver's own cost per operation.
fn overheads(outcome: &Outcome) -> Option<String> {
    let each = |row: Row<'_>| {
        let of_row = counting(outcome).filter(|r| r.row == row.name && r.class == row.class);
        let us = median(of_row.filter_map(|r| r.ops.as_ref()?.driver_overhead_us))?;
        Some(format!("{} {us:.3}", row.name))
    };
    let all: Vec<String> = rows(outcome).into_iter().filter_map(each).collect();
    (!all.is_empty()).then(|| format!("the driver's own part, us per operation: {}", all.join(", ")))
}

fn right(mut table: Table, columns: std::ops::Range<usize>) -> Table {
    for index in columns {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

fn number(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ashlar_report::record::Ops;

    #[test]
    fn medians_and_spread() {
        assert_eq!(median([3.0, 1.0, 2.0].into_iter()), Some(2.0));
        assert_eq!(median([4.0, 1.0].into_iter()), Some(2.5));
        assert_eq!(median(std::iter::empty()), None);
        assert_eq!(spread(&[1.0, 2.0, 3.0]), Some(50.0));
        assert_eq!(spread(&[]), None);
    }

    #[test]
    fn rates_are_short() {
        let shown: Vec<_> = [1_234_567.0, 34_560.0, 987.4, 3.125].into_iter().map(short).collect();
        assert_eq!(shown, ["1.23M", "34.6k", "987", "3.12"]);
    }

    #[test]
    fn a_row_without_figures_says_what_became_of_it() {
        let mut record = Record::without_figures("lmdb", Status::Void { why: "lost".into() });
        record.row = "1A".into();
        let row = Row { name: "1A", title: "", class: Class::Matched };
        let of = |record: &Record| {
            let outcome = Outcome { records: vec![record.clone()], ..Outcome::default() };
            cell(&outcome, row, EngineName::Lmdb)
        };
        assert_eq!(of(&record), "VOID");
        record.status = Status::NotHere { why: "not offered: no log".into() };
        assert_eq!(of(&record), "not offered");
        record.status = Status::Ok;
        record.ops = Some(Ops { per_sec: 1500.0, ..Ops::default() });
        assert_eq!(of(&record), "1.50k");
    }

    #[test]
    fn engines_that_read_otherwise_are_void() {
        let of = |engine: &str, sum: &str| {
            let mut record = Record::without_figures(engine, Status::Ok);
            record.row = "1B".into();
            record.ops = Some(Ops::default());
            record.hash.reads = Some(sum.to_owned());
            record
        };
        let records = vec![of("ashlardb", "1"), of("lmdb", "1")];
        let mut outcome = Outcome { records, ..Outcome::default() };
        assert_eq!(disagreements(&outcome), [""; 0]);
        outcome.records.push(of("redb", "2"));
        assert_eq!(disagreements(&outcome), ["the engines did not read the same in 1B"]);
        let mut asked = of("lmdb", "1");
        asked.hash.ops = Some("3".into());
        outcome.records = vec![of("ashlardb", "1"), asked.clone()];
        assert_eq!(disagreements(&outcome), [""; 0], "a sum that is not given");
        outcome.records[0].hash.ops = Some("4".into());
        assert_eq!(disagreements(&outcome), ["the engines were not asked for the same in 1B"]);
    }
}
