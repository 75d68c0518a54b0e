//! What an operation costs the machine: processor, switches, faults, calls, memory, settling.

use super::name;
use crate::benchmark;
use crate::graph;
use crate::record::Record;
use crate::summary::{Cell, Group};
use crate::words::{bytes, escape, factor, known, rate, thousands};
use std::fmt::Write;

/// A table of all rows and engines.
pub fn section(group: &Group<'_>) -> String {
    let mut rows = String::new();
    for row in &group.rows {
        for (index, cell) in row.cells.iter().filter(|cell| !cell.runs.is_empty()).enumerate() {
            let class = if index == 0 { "new" } else { "same" };
            let _ = writeln!(
                rows,
                "<tr class=\"{class}\"><th scope=\"row\">{}</th>{}</tr>",
                escape(row.id),
                line(cell)
            );
        }
    }
    format!(
        "<details open><summary>Cost and memory</summary>\n<div class=\"scroll\"><table class=\"figures\"><thead>\
         <tr><th>row</th><th class=\"t\">engine</th><th>ops/s</th><th>± %</th><th>µs/op</th><th>CPU µs/op</th><th>driver’s</th><th>instructions</th>\
         <th>switches/op</th><th>minor faults/op</th><th>write calls/op</th><th>settled s</th><th>RSS peak</th><th>configured</th><th>levels</th></tr></thead><tbody>\n\
         {rows}</tbody></table></div></details>\n"
    )
}

/// Linkbench's own tables, with the columns of its document; empty for other experiments.
pub fn linkbench(group: &Group<'_>) -> String {
    let costs = graph::costs(group);
    if costs.is_empty() {
        return String::new();
    }
    let mut out = format!("<h3>What an operation costs</h3>\n<p>{}</p>\n", graph::COSTS_NOTE);
    out.push_str(&plain(&graph::COSTS, costs.iter().map(|cells| &cells[..])));
    let growth = graph::growth(group);
    if !growth.is_empty() {
        let _ = write!(out, "<h3>Throughput of N clients</h3>\n<p>{}</p>\n", graph::GROWTH_NOTE);
        out.push_str(&plain(&graph::GROWTH, growth.iter().map(|cells| &cells[..])));
    }
    out
}

/// The columns of `benchmark.sh`; empty for other experiments.
pub fn benchmark(group: &Group<'_>) -> String {
    let lines = benchmark::lines(group);
    if lines.is_empty() {
        return String::new();
    }
    let table = plain(&benchmark::HEAD, lines.iter().map(|cells| &cells[..]));
    format!("<h3>The columns of the script</h3>\n<p>{}</p>\n{table}", benchmark::NOTE)
}

/// A table whose second column is a text too.
fn plain<'a>(head: &[&str], lines: impl Iterator<Item = &'a [String]>) -> String {
    let class = |column| if column == 1 { " class=\"t\"" } else { "" };
    let head: String =
        head.iter().enumerate().map(|(column, name)| format!("<th{}>{name}</th>", class(column))).collect();
    let line = |cells: &[String]| {
        let cell = |(column, cell): (usize, &String)| match column {
            0 => format!("<th scope=\"row\">{}</th>", escape(cell)),
            _ => format!("<td{}>{}</td>", class(column), escape(cell)),
        };
        format!("<tr>{}</tr>\n", cells.iter().enumerate().map(cell).collect::<String>())
    };
    let body: String = lines.map(line).collect();
    format!(
        "<div class=\"scroll\"><table class=\"figures\"><thead><tr>{head}</tr></thead><tbody>\n{body}</tbody></table></div>\n"
    )
}

fn line(cell: &Cell<'_>) -> String {
    let each = |value: Option<u64>, run: &Record| Some(value? as f64 / run.ops.as_ref()?.total.max(1) as f64);
    let switches = |run: &Record| each(Some(run.cpu.vol_cs? + run.cpu.invol_cs?), run);
    let small = |value: f64| if value > 0.0 && value < 0.005 { "< 0.01".to_owned() } else { factor(value) };
    let levels = cell.runs.last().map(|run| &run.engine_counters.levels);
    let levels = levels.map(|levels| levels.iter().map(u64::to_string).collect::<Vec<_>>().join(" "));
    let speed = cell.rate();
    let cells = [
        known(speed.map(|speed| speed.median), rate),
        known(speed.map(|speed| (speed.max - speed.min) / 2.0 / speed.median * 100.0), |v| format!("{v:.0}")),
        known(cell.median(|r| Some(r.ops.as_ref()?.us_wall_op)), factor),
        known(cell.median(|r| r.ops.as_ref()?.us_cpu_op), factor),
        known(cell.median(|r| r.ops.as_ref()?.driver_overhead_us), factor),
        known(cell.median(|r| r.ops.as_ref()?.instructions_op), thousands),
        known(cell.median(switches), small),
        known(cell.median(|r| each(r.cpu.minor_faults, r)), small),
        known(cell.median(|r| each(r.io.syscw, r)), small),
        known(cell.median(|r| r.phase.as_ref()?.settle_seconds), |v| format!("{v:.2}")),
        known(cell.median(|r| r.mem.rss_peak.map(|n| n as f64)), bytes),
        known(cell.median(|r| r.mem.configured_bytes.map(|n| n as f64)), bytes),
        levels.filter(|levels| !levels.is_empty()).unwrap_or_else(|| "–".to_owned()),
    ];
    let cells: String = cells.iter().map(|cell| format!("<td>{cell}</td>")).collect();
    format!("<td class=\"t\">{}</td>{cells}", escape(name(cell.engine)))
}
