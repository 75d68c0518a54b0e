//! Course over time: a line per engine, all of a row on the same axes, so that stalls are seen. The area is operations, the
//! line above it bytes given to write calls: where it rises and the area falls, background work is being paid for.

use super::{name, row_title};
use crate::record::{Record, Series};
use crate::summary::{Group, OURS, Row};
use crate::words::{bytes, escape, known, micros, rate};
use std::fmt::Write;

/// Shorter runs have no course.
const LEAST: usize = 3;
/// A row that writes less than this in every second counts as not writing.
const LEAST_WRITTEN: u64 = 1 << 16;

/// All rows that last long enough. Empty if there are no such rows.
pub fn section(group: &Group<'_>) -> String {
    let cards: String = group.rows.iter().filter_map(|row| card(group, row)).collect();
    if cards.is_empty() {
        return String::new();
    }
    format!(
        "<h3>Course over time</h3>\n<p class=\"note\">Operations in each second of the typical repetition; all engines of a \
         card on the same axes. A second without any is a stall; beside it the longest single operation. The thin line is \
         bytes written in each second, background work included.</p>\n<div class=\"cards\">\n{cards}</div>\n"
    )
}

fn card(group: &Group<'_>, row: &Row<'_>) -> Option<String> {
    let courses: Vec<(&str, &Series)> =
        row.cells.iter().filter_map(|cell| Some((cell.engine, course(cell.typical()?)?))).collect();
    let long = courses.iter().map(|(_, series)| series.ops.len()).max().filter(|&long| long >= LEAST)?;
    let per_sec = |series: &Series, ops: u64| ops as f64 / series.interval_s.max(1e-9);
    let all = courses.iter().flat_map(|(_, s)| s.ops.iter().map(move |&ops| per_sec(s, ops)));
    let most = all.fold(1.0, f64::max);
    let written = |s: &Series| s.write_bytes.iter().copied().max().unwrap_or(0);
    let most_written = courses.iter().map(|(_, s)| written(s)).max().filter(|&most| most >= LEAST_WRITTEN);
    let mut out = format!(
        "<figure class=\"card\">\n<figcaption>{} <span class=\"scale\">{} s × {} ops/s</span></figcaption>\n\
         <table class=\"course\"><thead><tr><th>engine</th><th></th><th>least</th><th>median</th><th>stalls</th><th>longest</th><th>written/s</th></tr>\
         </thead><tbody>\n",
        row_title(group, row.id, row.title),
        rate(long as f64 * courses[0].1.interval_s),
        rate(most)
    );
    for (engine, series) in &courses {
        let mut sorted: Vec<f64> = series.ops.iter().map(|&ops| per_sec(series, ops)).collect();
        let drawn = drawing(&sorted, &series.write_bytes, long, most, most_written);
        sorted.sort_by(f64::total_cmp);
        let _ = writeln!(
            out,
            "<tr{}><th scope=\"row\">{}</th><td class=\"bar\">{drawn}</td><td>{}</td><td>{}</td><td>{}</td>\
             <td>{}</td><td>{}</td></tr>",
            if *engine == OURS { " class=\"ours\"" } else { "" },
            escape(name(engine)),
            rate(*sorted.first()?),
            rate(sorted[sorted.len() / 2]),
            sorted.iter().filter(|&&rate| rate == 0.0).count(),
            known(series.longest_us.iter().max().map(|&us| us as f64), micros),
            known(most_written.and_then(|_| mean(&series.write_bytes)), bytes)
        );
    }
    out.push_str("</tbody></table>\n</figure>\n");
    Some(out)
}

fn course(record: &Record) -> Option<&Series> {
    record.series.as_ref().filter(|series| !series.ops.is_empty())
}

fn mean(values: &[u64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<u64>() as f64 / values.len() as f64)
}

/// Steps, filled below: a step is an interval. Above them, where something was, what was written.
fn drawing(rates: &[f64], written: &[u64], long: usize, most: f64, most_written: Option<u64>) -> String {
    let at = |index: usize| index as f64 / long as f64 * 100.0;
    let mut path = "M0,100".to_owned();
    for (index, rate) in rates.iter().enumerate() {
        let y = 100.0 - rate / most * 96.0;
        // Writing to a String cannot fail.
        let _ = write!(path, "L{:.2},{y:.2}L{:.2},{y:.2}", at(index), at(index + 1));
    }
    let _ = write!(path, "L{:.2},100Z", at(rates.len()));
    let line = most_written.filter(|_| !written.is_empty()).map_or(String::new(), |most| {
        let point = |(index, &bytes): (usize, &u64)| {
            let y = 100.0 - bytes as f64 / most as f64 * 96.0;
            format!("{:.2},{y:.2}", at(index) + 50.0 / long as f64)
        };
        let points: Vec<String> = written.iter().enumerate().map(point).collect();
        format!("<polyline class=\"w\" points=\"{}\"/>", points.join(" "))
    });
    format!(
        "<svg class=\"steps\" viewBox=\"0 0 100 100\" preserveAspectRatio=\"none\" aria-hidden=\"true\"><path \
         d=\"{path}\"/>{line}</svg>"
    )
}
