//! Course over time: a line per engine, all of a row on the same axes, so that stalls are seen.

use super::{name, row_title};
use crate::record::{Record, Series};
use crate::summary::{Group, OURS, Row};
use crate::words::{escape, rate};
use std::fmt::Write;

/// Shorter runs have no course.
const LEAST: usize = 3;

/// All rows that last long enough; nothing when none does.
pub fn section(group: &Group<'_>) -> String {
    let cards: String = group.rows.iter().filter_map(|row| card(group, row)).collect();
    if cards.is_empty() {
        return String::new();
    }
    format!(
        "<h3>Course over time</h3>\n<p class=\"note\">Operations in each second of the typical repetition; all engines of a \
         card on the same axes. A second without any is a stall.</p>\n<div class=\"cards\">\n{cards}</div>\n"
    )
}

fn card(group: &Group<'_>, row: &Row<'_>) -> Option<String> {
    let courses: Vec<(&str, &Series)> =
        row.cells.iter().filter_map(|cell| Some((cell.engine, course(cell.typical()?)?))).collect();
    let long = courses.iter().map(|(_, series)| series.ops.len()).max().filter(|&long| long >= LEAST)?;
    let per_sec = |series: &Series, ops: u64| ops as f64 / series.interval_s.max(1e-9);
    let all = courses.iter().flat_map(|(_, s)| s.ops.iter().map(move |&ops| per_sec(s, ops)));
    let most = all.fold(1.0, f64::max);
    let mut out = format!(
        "<figure class=\"card\">\n<figcaption>{} <span class=\"scale\">{} s × {} ops/s</span></figcaption>\n\
         <table class=\"course\"><thead><tr><th>engine</th><th></th><th>least</th><th>median</th><th>stalls</th></tr>\
         </thead><tbody>\n",
        row_title(group, row.id, row.title),
        rate(long as f64 * courses[0].1.interval_s),
        rate(most)
    );
    for (engine, series) in &courses {
        let mut sorted: Vec<f64> = series.ops.iter().map(|&ops| per_sec(series, ops)).collect();
        let line = line(&sorted, long, most);
        sorted.sort_by(f64::total_cmp);
        let _ = writeln!(
            out,
            "<tr{}><th scope=\"row\">{}</th><td class=\"bar\">{line}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            if *engine == OURS { " class=\"ours\"" } else { "" },
            escape(name(engine)),
            rate(*sorted.first()?),
            rate(sorted[sorted.len() / 2]),
            sorted.iter().filter(|&&rate| rate == 0.0).count()
        );
    }
    out.push_str("</tbody></table>\n</figure>\n");
    Some(out)
}

fn course(record: &Record) -> Option<&Series> {
    record.series.as_ref().filter(|series| !series.ops.is_empty())
}

/// Steps, filled below: a step is an interval.
fn line(rates: &[f64], long: usize, most: f64) -> String {
    let at = |index: usize| index as f64 / long as f64 * 100.0;
    let mut path = "M0,100".to_owned();
    for (index, rate) in rates.iter().enumerate() {
        let y = 100.0 - rate / most * 96.0;
        // Writing to a String cannot fail.
        let _ = write!(path, "L{:.2},{y:.2}L{:.2},{y:.2}", at(index), at(index + 1));
    }
    let _ = write!(path, "L{:.2},100Z", at(rates.len()));
    format!(
        "<svg class=\"steps\" viewBox=\"0 0 100 100\" preserveAspectRatio=\"none\" aria-hidden=\"true\"><path d=\"{path}\"/></svg>"
    )
}
