//! The table: medians, spread, and what AshlarDB is of RocksDB.

use crate::drive::{Matrix, Outcome};
use crate::engine::EngineName;
use crate::task::Workload;
use ashlar_report::record::{Latency, Record};
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
    let s = &matrix.settings;
    let mut out = format!(
        "{} keys of {} + {} bytes, {} reads, {} repetitions; {}, codec {}, cache {} MiB, memtable {} MiB x {}, \
         blocks {} B, filter {} bits\n",
        matrix.keys,
        s.key_bytes,
        s.value_bytes,
        matrix.reads,
        matrix.reps,
        s.durability(),
        s.codec,
        s.cache_bytes >> 20,
        s.write_buffer_bytes >> 20,
        s.write_buffers,
        s.block_bytes,
        s.filter_bits,
    );
    let versions: BTreeSet<_> = counting(outcome).map(|r| (&r.engine.name, &r.engine.version)).collect();
    for (name, version) in versions {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{name}: {version}");
    }
    for (name, why) in &outcome.marks {
        let _ = writeln!(out, "{}: {why}", name.text());
    }
    let _ = writeln!(out, "{}", figures(matrix, outcome));
    if matrix.workloads.contains(&Workload::Openloop) {
        let _ = writeln!(out, "{}", latencies(outcome));
    }
    for what in disagreements(outcome) {
        let _ = writeln!(out, "VOID: {what}");
    }
    out
}

/// Rows that say which figures may not be compared.
fn disagreements(outcome: &Outcome) -> Vec<String> {
    let mut void = Vec::new();
    for workload in Workload::ALL {
        let of = counting(outcome).filter(|r| r.workload == workload.text());
        let hashes: BTreeSet<_> =
            of.map(|r| (&r.hash.reads, r.ops.as_ref().and_then(|ops| ops.found))).collect();
        if hashes.len() > 1 {
            void.push(format!("the engines did not read the same in {}", workload.text()));
        }
    }
    void
}

fn of<'a>(
    outcome: &'a Outcome,
    workload: Workload,
    engine: EngineName,
) -> impl Iterator<Item = &'a Record> + 'a {
    counting(outcome).filter(move |r| r.workload == workload.text() && r.engine.name == engine.text())
}

/// The records whose figures count.
fn counting(outcome: &Outcome) -> impl Iterator<Item = &Record> {
    outcome.records.iter().filter(|r| r.counts())
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
        "settle s",
        "write amp",
        "(engine)",
        "RSS MiB",
        "levels",
        "wall x",
        "cpu x",
    ]);
    for workload in Workload::ALL {
        if !matrix.workloads.contains(&workload) {
            continue;
        }
        let wall =
            |engine| median(of(outcome, workload, engine).filter_map(|r| Some(r.ops.as_ref()?.us_wall_op)));
        let cpu = |engine| median(of(outcome, workload, engine).filter_map(|r| r.ops.as_ref()?.us_cpu_op));
        for &engine in &matrix.engines {
            let Some(last) = of(outcome, workload, engine).last() else { continue };
            let all =
                |figure: fn(&Record) -> Option<f64>| median(of(outcome, workload, engine).filter_map(figure));
            let walls: Vec<f64> =
                of(outcome, workload, engine).filter_map(|r| Some(r.ops.as_ref()?.us_wall_op)).collect();
            let ratio = |reference: Option<f64>, own: Option<f64>| {
                let ratio = reference.zip(own).map(|(reference, own)| reference / own);
                number(ratio.filter(|_| engine == EngineName::Ashlardb), 2)
            };
            table.add_row([
                workload.text().to_owned(),
                engine.text().to_owned(),
                number(wall(engine), 3),
                number(all(|r| Some(r.ops.as_ref()?.per_sec)), 0),
                number(spread(&walls), 0),
                number(cpu(engine), 3),
                number(all(|r| r.ops.as_ref()?.us_cpu_thread_op), 3),
                number(all(|r| r.phase.as_ref()?.settle_seconds), 2),
                number(all(|r| r.amp.wa_proc), 2),
                number(all(|r| r.amp.wa_eng), 2),
                number(all(|r| r.mem.rss_peak.map(|b| b as f64 / 1_048_576.0)), 0),
                last.engine_counters.levels.iter().map(u64::to_string).collect::<Vec<_>>().join(" "),
                ratio(wall(EngineName::Rocksdb), wall(engine)),
                ratio(cpu(EngineName::Rocksdb), cpu(engine)),
            ]);
        }
    }
    right(table, 2..11)
}

fn latencies(outcome: &Outcome) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::ASCII_MARKDOWN);
    table.set_header(["openloop", "rate /s", "p50 us", "p90", "p99", "p99.9", "p99.99", "longest stall"]);
    for engine in [EngineName::Ashlardb, EngineName::Rocksdb] {
        let seen: Vec<_> =
            of(outcome, Workload::Openloop, engine).filter_map(|r| r.latency_us.get("write")).collect();
        if seen.is_empty() {
            continue;
        }
        let m = |figure: fn(&Latency) -> f64| number(median(seen.iter().map(|l| figure(l))), 1);
        table.add_row([
            engine.text().to_owned(),
            m(|l| l.rate.unwrap_or_default()),
            m(|l| l.p50),
            m(|l| l.p90),
            m(|l| l.p99),
            m(|l| l.p999),
            m(|l| l.p9999),
            m(|l| l.max),
        ]);
    }
    right(table, 1..8)
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

    #[test]
    fn medians_and_spread() {
        assert_eq!(median([3.0, 1.0, 2.0].into_iter()), Some(2.0));
        assert_eq!(median([4.0, 1.0].into_iter()), Some(2.5));
        assert_eq!(median(std::iter::empty()), None);
        assert_eq!(spread(&[1.0, 2.0, 3.0]), Some(50.0));
        assert_eq!(spread(&[]), None);
    }
}
