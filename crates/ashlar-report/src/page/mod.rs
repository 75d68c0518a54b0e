//! The page: one self-contained file with its style and drawings, without scripts.
//!
//! Every drawing is in or beside a table with the same figures. Order: remarks, rates, course over time, latencies,
//! amplification beside theory, cost, the trade that the reader moves, settings, every run.

mod axes;
mod bars;
mod cost;
mod latency;
mod series;
mod settings;
mod trade;
mod triangle;

use crate::record::Run;
use crate::summary::{Group, OURS, Summary};
use crate::words::escape;
use std::fmt::Write;

const STYLE: &str = include_str!("style.css");

/// A page of this run.
pub fn page(run: &Run) -> String {
    let summary = Summary::of(run);
    let title = title(&summary);
    let trade = trade::section(&summary);
    let rules = if trade.is_empty() { String::new() } else { trade::rules() };
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" href=\"data:,\">\n\
         <title>{title}</title>\n<style>\n{STYLE}{rules}</style>\n</head>\n<body>\n<main>\n"
    );
    out.push_str(&head(&summary, run, &title));
    out.push_str(&first(&summary));
    for group in &summary.groups {
        let _ = writeln!(out, "<section>\n<h2>{}</h2>", escape(&group.title()));
        out.push_str(&settings::sentence(group));
        out.push_str(&not_first(group));
        out.push_str(&bars::section(group, &summary.engines));
        out.push_str(&series::section(group));
        out.push_str(&latency::section(group, &summary.engines));
        out.push_str(&triangle::section(group, &summary.engines));
        out.push_str(&cost::linkbench(group));
        out.push_str(&cost::benchmark(group));
        out.push_str(&cost::section(group));
        out.push_str("</section>\n");
    }
    out.push_str(&trade);
    out.push_str(&settings::section(run, &summary));
    out.push_str("</main>\n</body>\n</html>\n");
    out
}

fn title(summary: &Summary<'_>) -> String {
    match summary.engines.as_slice() {
        [] => "No records".to_owned(),
        [one] => format!("{}, measured", escape(name(one))),
        _ if summary.engines.contains(&OURS) => "AshlarDB beside other engines".to_owned(),
        _ => "Engines beside one another".to_owned(),
    }
}

/// The name of the engine in its makers' spelling.
pub(crate) fn name(engine: &str) -> &str {
    match engine {
        "ashlardb" => "AshlarDB",
        "rocksdb" => "RocksDB",
        "leveldb" => "LevelDB",
        "treedb" => "Kyoto TreeDB",
        "sqlite" => "SQLite",
        "sqlite-wal" => "SQLite, WAL",
        "sqlite-rollback" => "SQLite, rollback",
        "lmdb" => "LMDB",
        "wiredtiger" | "wiredtiger-btree" => "WiredTiger",
        "wiredtiger-lsm" => "WiredTiger LSM",
        "innodb" => "InnoDB",
        "myrocks" => "MyRocks",
        "tidesdb" => "TidesDB",
        other => other,
    }
}

fn head(summary: &Summary<'_>, run: &Run, title: &str) -> String {
    let mut out = format!("<header>\n<h1>{title}</h1>\n");
    if let Some(header) = run.headers.last() {
        let day = header.time.split('T').next().unwrap_or_default();
        let machine = [header.machine.cpu.clone(), header.machine.distribution.clone()];
        let machine = machine.into_iter().flatten().collect::<Vec<_>>().join(", ");
        let comma = if machine.is_empty() { "" } else { " · " };
        let _ = writeln!(out, "<p class=\"sub\">{}{comma}{}</p>", escape(day), escape(&machine));
    }
    let versions = summary.engines.iter().filter_map(|engine| {
        let version = run.records.iter().find(|r| r.engine.name == *engine && !r.engine.version.is_empty());
        Some(format!("<dt>{}</dt><dd>{}</dd>", escape(name(engine)), escape(&version?.engine.version)))
    });
    let versions: String = versions.collect();
    if !versions.is_empty() {
        let _ = writeln!(out, "<dl class=\"versions\">{versions}</dl>");
    }
    out.push_str("</header>\n");
    out
}

/// Marks: broken rules, and absent engines.
fn first(summary: &Summary<'_>) -> String {
    if summary.marks.is_empty() {
        return String::new();
    }
    let marks: String = summary.marks.iter().map(|mark| format!("<li>{}</li>\n", escape(mark))).collect();
    format!("<aside class=\"marks\">\n<h2>Before you read</h2>\n<ul>\n{marks}</ul>\n</aside>\n")
}

/// The rows in which another engine is faster than AshlarDB.
fn not_first(group: &Group<'_>) -> String {
    let sentence = group.standing();
    if sentence.is_empty() { sentence } else { format!("<p>{}</p>\n", escape(&sentence)) }
}

/// The heading of a row: its name in the document, if it has one, and its description.
fn row_title(group: &Group<'_>, id: &str, title: &str) -> String {
    if id == title || group.experiment == "free" {
        return escape(title);
    }
    format!("<span class=\"id\">{}</span> {}", escape(id), escape(title))
}

/// The class that gives an engine its colour in line drawings.
fn color(engines: &[&str], engine: &str) -> String {
    let place = engines.iter().position(|known| *known == engine).unwrap_or(0);
    format!("c{}", place % 12)
}

#[cfg(test)]
mod tests;
