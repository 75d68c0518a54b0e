//! The table of `benchmark.sh`, for both pages: a line per row and engine with the columns that the script prints, and the lines
//! of the document of 2020 below.
//!
//! 1. A figure is the median of the repetitions. GB are GiB, MB are MiB, and microseconds per operation are those of a thread, as in the
//!    script.
//! 2. `L0_GB` is what flushes wrote, `Sum_GB` what flushes and compactions wrote, `W-Amp` the second divided by the first, by the
//!    engine's own count. `W-MB/s` and `Stall%` are parts of `Uptime`, which goes on until background work is idle.
//! 3. `Size-GB` has a unit that was lost in the document (0.2 for 97 GiB). Here the column is what the files of the directory hold.

use crate::history;
use crate::page::name;
use crate::record::{Latency, Record};
use crate::summary::{BENCHMARK, Cell, Group, REFERENCE};
use crate::words::known;

/// The columns.
const COLUMNS: usize = 19;

/// The heads of the columns.
pub const HEAD: [&str; COLUMNS] = [
    "row",
    "engine",
    "ops/sec",
    "mb/sec",
    "Size-GB",
    "L0_GB",
    "Sum_GB",
    "W-Amp",
    "W-MB/s",
    "usec/op",
    "p50",
    "p75",
    "p99",
    "p99.9",
    "p99.99",
    "Uptime",
    "Stall-time",
    "Stall%",
    "du -s -k",
];

/// What a reader of the table needs to know.
pub const NOTE: &str = "GB are GiB, usec and percentiles are microseconds of one thread. Size-GB: what the files hold. L0_GB: written by \
     flushes; Sum_GB: by flushes and compactions; W-Amp: the second divided by the first. Uptime: seconds until background work is idle. \
     Stall-time: seconds that writers waited. The lines of 2020 are history, as printed there: other machine, 900 million keys (2K: 100 \
     million), stalls as hours:minutes:seconds, and a Size-GB whose unit was lost.";

const GIB: f64 = (1_u64 << 30) as f64;
const MIB: f64 = (1_u64 << 20) as f64;

/// A line per row and engine, and per line of the document; empty for other experiments.
pub fn lines(group: &Group<'_>) -> Vec<[String; COLUMNS]> {
    let mut lines = Vec::new();
    if group.experiment != BENCHMARK {
        return lines;
    }
    for row in &group.rows {
        lines.extend(row.cells.iter().filter(|cell| !cell.runs.is_empty()).map(|cell| line(row.id, cell)));
        lines.extend(history::benchmark(row.id).map(|figures| past(row.id, &figures)));
    }
    lines
}

/// A line of the document: its columns have the names of [`HEAD`].
fn past(row: &str, figures: &[&str; COLUMNS - 2]) -> [String; COLUMNS] {
    std::array::from_fn(|column| match column {
        0 => row.to_owned(),
        1 => format!("{} 6.10, 2020", name(REFERENCE)),
        _ => figures[column - 2].replace('-', "–"),
    })
}

fn line(row: &str, cell: &Cell<'_>) -> [String; COLUMNS] {
    let shown = |digits: usize, of: &dyn Fn(&Record) -> Option<f64>| {
        known(cell.median(of), |value| format!("{value:.digits$}"))
    };
    let wait = |of: fn(&Latency) -> f64| shown(1, &|run| latency(run).map(of));
    [
        row.to_owned(),
        name(cell.engine).to_owned(),
        shown(0, &|run| Some(run.ops.as_ref()?.per_sec)),
        shown(1, &|run| Some(run.ops.as_ref()?.user_bytes as f64 / MIB / run.phase.as_ref()?.seconds)),
        shown(2, &|run| Some(run.space.apparent? as f64 / GIB)),
        shown(2, &|run| Some(run.engine_counters.flush_bytes? as f64 / GIB)),
        shown(2, &|run| Some(written(run)? / GIB)),
        shown(1, &|run| run.amp.wa_tree),
        shown(1, &|run| Some(written(run)? / MIB / uptime(run)?)),
        shown(1, &|run| run.ops.as_ref()?.us_thread_op),
        wait(|waits| waits.p50),
        wait(|waits| waits.p75),
        wait(|waits| waits.p99),
        wait(|waits| waits.p999),
        wait(|waits| waits.p9999),
        shown(1, &uptime),
        shown(1, &|run| run.engine_counters.stall_s),
        shown(1, &|run| Some(run.engine_counters.stall_s? / uptime(run)? * 100.0)),
        shown(0, &|run| Some(run.space.du? as f64 / 1024.0)),
    ]
}

/// Bytes of flushes and compactions.
fn written(run: &Record) -> Option<f64> {
    Some((run.engine_counters.flush_bytes? + run.engine_counters.compact_write_bytes?) as f64)
}

/// Seconds until background work was idle.
fn uptime(run: &Record) -> Option<f64> {
    let phase = run.phase.as_ref()?;
    Some(phase.seconds + phase.settle_seconds.unwrap_or(0.0)).filter(|&seconds| seconds > 0.0)
}

/// The latencies of reads, in a row that reads beside a writer.
fn latency(run: &Record) -> Option<&Latency> {
    run.latency_us.get("read").or_else(|| run.latency_us.get("write"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use crate::summary::Summary;

    #[test]
    fn a_line_has_the_columns_of_the_script() {
        let mut run = sample::comparison();
        assert!(lines(&Summary::of(&run).groups[0]).is_empty(), "another experiment");
        run.records.retain(|record| record.row == "1D" && record.engine.name == "ashlardb");
        for record in &mut run.records {
            (record.experiment, record.row) = (BENCHMARK.into(), "overwrite-8K".into());
            record.engine_counters.flush_bytes = Some(1 << 30);
            record.engine_counters.compact_write_bytes = Some(3 << 30);
            record.engine_counters.stall_s = Some(1.0);
            record.amp.wa_tree = Some(4.0);
            record
                .phase
                .iter_mut()
                .for_each(|phase| (phase.seconds, phase.settle_seconds) = (6.0, Some(2.0)));
            record.ops.iter_mut().for_each(|ops| ops.user_bytes = 60 << 20);
            (record.space.du, record.space.apparent) = (Some(2048), Some(1 << 29));
        }
        let summary = Summary::of(&run);
        let [ours, past] = &lines(&summary.groups[0])[..] else { panic!("two lines") };
        let figures = [
            "10.0", "0.50", "1.00", "4.00", "4.0", "512.0", "–", "1.6", "2.0", "11.8", "78.4", "588.2",
            "8.0", "1.0", "12.5", "2",
        ];
        assert_eq!(ours[3..], figures, "{ours:?}");
        assert_eq!(past[1..8], ["RocksDB 6.10, 2020", "85756", "34.3", "0.1", "161.4", "739.9", "4.5"]);
        assert_eq!(past[15..], ["–", "00:20:18.388", "22.9", "159903832"]);
    }
}
