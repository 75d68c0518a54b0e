//! Rates: a card per row, a bar per engine, as on LevelDB's page.
//!
//! The scale of a card is its best median. The thin line is the span of the repetitions. Figures of the document that is
//! repeated are outlines: other machine, other year. A group of one engine is one card with a bar per row.

use super::{name, row_title};
use crate::record::Published;
use crate::summary::{Cell, Group, OURS, REFERENCE, Row, Spread};
use crate::words::{escape, factor, rate};
use std::fmt::Write;

/// All cards of a group.
pub fn section(group: &Group<'_>, engines: &[&str]) -> String {
    let mut out = "<h3>Operations per second</h3>\n<div class=\"cards\">\n".to_owned();
    if engines.len() == 1 {
        out.push_str(&alone(group));
    } else {
        group.rows.iter().for_each(|row| out.push_str(&card(group, row)));
    }
    out.push_str("</div>\n");
    out
}

/// The drawing: `part` of the width, and the span of the repetitions as parts.
fn bar(part: f64, span: Option<(f64, f64)>, class: &str) -> String {
    let percent = |part: f64| (part * 100.0).clamp(0.0, 100.0);
    let line = span.map_or(String::new(), |(from, to)| {
        let (from, to) = (percent(from), percent(to));
        format!("<line x1=\"{from:.2}%\" x2=\"{to:.2}%\" y1=\"7\" y2=\"7\"/>")
    });
    format!(
        "<svg aria-hidden=\"true\"><rect class=\"{class}\" y=\"1\" width=\"{:.2}%\" height=\"12\"/>{line}</svg>",
        percent(part).max(0.4)
    )
}

fn alone(group: &Group<'_>) -> String {
    let rates = || group.rows.iter().filter_map(|row| row.cells.first()?.rate());
    let most = rates().map(|rate| rate.max).fold(0.0, f64::max);
    let mut out =
        "<table class=\"bars\"><thead><tr><th>workload</th><th></th><th>ops/s</th></tr></thead><tbody>"
            .to_owned();
    for row in &group.rows {
        let Some(cell) = row.cells.first() else { continue };
        let title = row_title(group, row.id, row.title);
        match cell.rate() {
            Some(speed) => {
                let span = (speed.max > speed.min).then(|| (speed.min / most, speed.max / most));
                let _ = writeln!(
                    out,
                    "<tr class=\"ours\"><th scope=\"row\">{title}</th><td class=\"bar\">{}</td><td>{}</td></tr>",
                    bar(speed.median / most, span, "b"),
                    rate(speed.median)
                );
            }
            None => out.push_str(&missing(&title, &cell.why, 2)),
        }
    }
    out.push_str("</tbody></table>\n");
    format!("<figure class=\"card wide\">\n{out}</figure>\n")
}

fn card(group: &Group<'_>, row: &Row<'_>) -> String {
    let ranks = group.ranks(row);
    let best = row.best().filter(|_| ranks);
    let reference = row.of(REFERENCE).and_then(Cell::rate).filter(|_| ranks);
    let most = row.cells.iter().filter_map(Cell::rate).map(|rate| rate.max).fold(0.0, f64::max);
    let base = group.baseline(row.id);
    let mut out = format!(
        "<figure class=\"card\">\n<figcaption>{}</figcaption>\n<table class=\"bars\"><thead><tr><th>engine</th><th></th>\
         <th>ops/s</th><th><abbr title=\"times RocksDB’s\">× Rocks</abbr></th>\
         <th><abbr title=\"times the best\">× best</abbr></th>{}</tr></thead><tbody>\n",
        row_title(group, row.id, row.title),
        base.map_or("", |(_, bytes)| if bytes {
            "<th><abbr title=\"times the engine’s own baseline, in bytes\">× base</abbr></th>"
        } else {
            "<th><abbr title=\"times the engine’s own baseline\">× base</abbr></th>"
        })
    );
    for cell in &row.cells {
        let Some(speed) = cell.rate() else {
            out.push_str(&missing(&escape(name(cell.engine)), &cell.why, 4 + usize::from(base.is_some())));
            continue;
        };
        let span = (speed.max > speed.min).then(|| (speed.min / most, speed.max / most));
        let class = if cell.engine == OURS { " class=\"ours\"" } else { "" };
        let _ = writeln!(
            out,
            "<tr{class}><th scope=\"row\">{}</th><td class=\"bar\">{}</td><td>{}</td><td>{}</td><td>{}</td>{}</tr>",
            escape(name(cell.engine)),
            bar(speed.median / most, span, "b"),
            rate(speed.median),
            ratio(&speed, reference.as_ref()),
            ratio(&speed, best.as_ref()),
            base.map_or(String::new(), |base| format!("<td>{}</td>", baseline(cell, base)))
        );
    }
    for (engine, published) in &row.history {
        out.push_str(&past(engine, published, most, base.is_some()));
    }
    out.push_str("</tbody></table>\n</figure>\n");
    out
}

/// `1.23`, or `≈ 1.02` if the spread is wider than the difference.
pub fn ratio(speed: &Spread, to: Option<&Spread>) -> String {
    let Some(to) = to.filter(|to| to.median > 0.0) else { return "–".to_owned() };
    let tie = speed != to && speed.ties(to);
    format!("{}{}", if tie { "≈ " } else { "" }, factor(speed.median / to.median))
}

/// The ratio to the engine's own baseline; in bytes for large values.
fn baseline(cell: &Cell<'_>, (base, in_bytes): (&Row<'_>, bool)) -> String {
    let times = || {
        let base = base.of(cell.engine)?;
        let entry = |cell: &Cell<'_>| {
            let params = &cell.runs.first()?.params;
            Some((params.key_bytes + params.value_bytes) as f64)
        };
        let bytes = if in_bytes { entry(cell)? / entry(base)? } else { 1.0 };
        Some(cell.rate()?.median / base.rate()?.median * bytes)
    };
    times().map_or_else(|| "–".to_owned(), factor)
}

fn missing(title: &str, why: &str, columns: usize) -> String {
    let why = if why.is_empty() { "no figure" } else { why };
    format!(
        "<tr class=\"off\"><th scope=\"row\">{title}</th><td colspan=\"{columns}\" title=\"{0}\">{0}</td></tr>\n",
        escape(why)
    )
}

fn past(engine: &str, published: &Published, most: f64, wide: bool) -> String {
    let year = published.machine.split(':').next().unwrap_or_default();
    let drawn = published.per_sec.filter(|_| most > 0.0);
    let drawn = drawn.map_or(String::new(), |speed| bar(speed / most, None, "h"));
    let figure = published.per_sec.map_or_else(|| escape(&published.text), rate);
    format!(
        "<tr class=\"past\"><th scope=\"row\">{} <small>{}</small></th><td class=\"bar\">{drawn}</td><td>{figure}</td>\
         <td colspan=\"{}\" title=\"{}\">published</td></tr>\n",
        escape(name(engine)),
        escape(year),
        if wide { 3 } else { 2 },
        escape(&format!("{} ({})", published.text, published.machine))
    )
}
