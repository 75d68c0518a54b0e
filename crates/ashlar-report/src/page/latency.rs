//! Latencies: a curve per engine over the percentiles, and the same in figures.

use super::{color, name, row_title};
use crate::record::{From, Latency};
use crate::summary::{Group, Row};
use crate::words::{escape, known, micros};
use std::collections::BTreeSet;
use std::fmt::Write;

/// The name of a percentile, its value, and the part of the operations that exceeds it.
type At = (&'static str, fn(&Latency) -> f64, f64);

const PERCENTILES: [At; 8] = [
    ("p50", |l| l.p50, 0.5),
    ("p75", |l| l.p75, 0.25),
    ("p90", |l| l.p90, 0.1),
    ("p95", |l| l.p95, 0.05),
    ("p99", |l| l.p99, 0.01),
    ("p99.9", |l| l.p999, 0.001),
    ("p99.99", |l| l.p9999, 0.0001),
    // The greatest is exact, however few there are.
    ("max", |l| l.max, f64::INFINITY),
];

/// Pixels of the drawing, before it is scaled.
const SIZE: (f64, f64) = (420.0, 210.0);
const MARGIN: (f64, f64) = (46.0, 22.0);

/// All rows with measured latencies. Empty if there are no such rows.
pub fn section(group: &Group<'_>, engines: &[&str]) -> String {
    let cards: String = group.rows.iter().map(|row| cards(group, row, engines)).collect();
    if cards.is_empty() {
        return String::new();
    }
    format!(
        "<h3>Latency</h3>\n<p class=\"note\">Percentiles of the typical repetition, on a scale of powers of ten. Those of a \
         closed loop begin when the call is made and hide the queue behind a stall; those of an open loop begin when the \
         operation was due. A dash: fewer than ten operations took longer.</p>\n<div class=\"cards\">\n{cards}</div>\n"
    )
}

/// A card for each kind of operation.
fn cards(group: &Group<'_>, row: &Row<'_>, engines: &[&str]) -> String {
    let typical = || row.cells.iter().filter_map(|cell| Some((cell.engine, cell.typical()?)));
    let kinds: BTreeSet<&str> =
        typical().flat_map(|(_, run)| run.latency_us.keys()).map(String::as_str).collect();
    let card = |kind: &&str| {
        let seen: Vec<(&str, &Latency)> =
            typical().filter_map(|(engine, run)| Some((engine, run.latency_us.get(*kind)?))).collect();
        let several = if kinds.len() > 1 { format!(", {kind}") } else { String::new() };
        let from = match seen.first().map(|(_, latency)| (latency.from, latency.rate)) {
            Some((From::Intended, Some(rate))) => format!("open loop, {} a second", crate::words::rate(rate)),
            Some((From::Intended, None)) => "open loop".to_owned(),
            _ => "closed loop".to_owned(),
        };
        format!(
            "<figure class=\"card\">\n<figcaption>{}{} <span class=\"scale\">{from}</span></figcaption>\n{}{}</figure>\n",
            row_title(group, row.id, row.title),
            escape(&several),
            curves(&seen, engines),
            table(&seen, engines)
        )
    };
    kinds.iter().map(card).collect()
}

fn curves(seen: &[(&str, &Latency)], engines: &[&str]) -> String {
    let all =
        || seen.iter().flat_map(|(_, l)| PERCENTILES.iter().map(|(_, of, _)| of(l))).filter(|&v| v > 0.0);
    let low = all().fold(f64::INFINITY, f64::min).max(0.001).log10().floor();
    let high = all().fold(0.001, f64::max).log10().ceil().max(low + 1.0);
    let (width, height) = (SIZE.0 - MARGIN.0 - 8.0, SIZE.1 - MARGIN.1 - 8.0);
    let x = |index: usize| MARGIN.0 + index as f64 / (PERCENTILES.len() - 1) as f64 * width;
    let y = |us: f64| 8.0 + (high - us.max(0.001).log10()).clamp(0.0, high - low) / (high - low) * height;
    let mut out =
        format!("<svg class=\"curves\" viewBox=\"0 0 {} {}\" aria-hidden=\"true\">", SIZE.0, SIZE.1);
    let mut power = low;
    while power <= high {
        let at = y(10_f64.powf(power));
        let _ = write!(
            out,
            "<line x1=\"{}\" x2=\"{}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/><text x=\"{}\" y=\"{:.1}\" class=\"y\">{}</text>",
            MARGIN.0,
            SIZE.0 - 8.0,
            MARGIN.0 - 6.0,
            at + 4.0,
            power_of_ten(power)
        );
        power += 1.0;
    }
    for (index, (name, ..)) in PERCENTILES.iter().enumerate() {
        let class = if index + 1 == PERCENTILES.len() { "x last" } else { "x" };
        let _ =
            write!(out, "<text x=\"{:.1}\" y=\"{}\" class=\"{class}\">{name}</text>", x(index), SIZE.1 - 6.0);
    }
    // AshlarDB is drawn last, above the others.
    for (engine, latency) in seen.iter().rev() {
        let points = PERCENTILES
            .iter()
            .enumerate()
            .map(|(i, (_, of, _))| format!("{:.1},{:.1}", x(i), y(of(latency))));
        let points = points.collect::<Vec<_>>().join(" ");
        let _ = write!(out, "<polyline class=\"{}\" points=\"{points}\"/>", color(engines, engine));
    }
    out.push_str("</svg>\n");
    out
}

/// `1 µs`, `100 ms`.
fn power_of_ten(power: f64) -> String {
    let us = 10_f64.powf(power);
    match us {
        us if us >= 1e6 => format!("{:.0} s", us / 1e6),
        us if us >= 1e3 => format!("{:.0} ms", us / 1e3),
        us if us >= 1.0 => format!("{us:.0} µs"),
        us => format!("{:.0} ns", us * 1e3),
    }
}

fn table(seen: &[(&str, &Latency)], engines: &[&str]) -> String {
    const SHOWN: [usize; 5] = [0, 4, 5, 6, 7];
    let heads: String = SHOWN.iter().map(|&i| format!("<th>{}</th>", PERCENTILES[i].0)).collect();
    let mut out = format!("<table class=\"figures\"><thead><tr><th>engine</th>{heads}</tr></thead><tbody>\n");
    for (engine, latency) in seen {
        let cell = |&i: &usize| {
            let (_, of, beyond) = PERCENTILES[i];
            format!("<td>{}</td>", known(latency.percentile(beyond, of(latency)), micros))
        };
        let cells: String = SHOWN.iter().map(cell).collect();
        let key = format!("<i class=\"key {}\"></i>", color(engines, engine));
        let _ = writeln!(out, "<tr><th scope=\"row\">{key}{}</th>{cells}</tr>", escape(name(engine)));
    }
    out.push_str("</tbody></table>\n");
    out
}
