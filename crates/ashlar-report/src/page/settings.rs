//! Settings, machine, and every run.

use super::name;
use crate::record::{Params, Record, Run, Status};
use crate::summary::{Group, Summary};
use crate::words::{bytes, escape, rate, thousands};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Settings as names and texts, without the unknown ones.
fn words(params: &Params) -> Vec<(&'static str, String)> {
    let size = |value: Option<u64>| value.map(|n| bytes(n as f64));
    let memtables = params.write_buffer_bytes.map(|each| match params.write_buffers {
        Some(n) => format!("{} × {n}", bytes(each as f64)),
        None => bytes(each as f64),
    });
    let all = [
        // A graph has keys and values of many lengths.
        ("keys", (params.keys > 0).then(|| thousands(params.keys as f64))),
        (
            "entry",
            (params.key_bytes > 0).then(|| format!("{} + {} bytes", params.key_bytes, params.value_bytes)),
        ),
        ("compressible to", params.compress_ratio.map(|ratio| format!("{:.0} %", ratio * 100.0))),
        ("threads", Some(params.threads.to_string())),
        ("batch", (params.batch > 1).then(|| params.batch.to_string())),
        ("codec", params.codec.clone()),
        ("durability", Some(params.durability.clone()).filter(|text| !text.is_empty())),
        ("cache", size(params.cache_bytes)),
        ("memtables", memtables),
        ("blocks", size(params.block_bytes)),
        (
            "filter",
            params
                .filter_bits
                .map(|bits| if bits == 0 { "none".into() } else { format!("{bits} bits a key") }),
        ),
        ("memory limit", size(params.memory_limit_bytes)),
        ("regime", params.regime.clone()),
        ("seed", Some(params.seed.to_string())),
    ];
    all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// The common settings of all runs of the group, in a line.
pub fn sentence(group: &Group<'_>) -> String {
    let mut runs = group.rows.iter().flat_map(|row| &row.cells).flat_map(|cell| &cell.runs);
    let Some(first) = runs.next() else { return String::new() };
    let mut common = words(&first.params);
    for run in runs {
        let words = words(&run.params);
        common.retain(|word| words.contains(word));
    }
    if common.is_empty() {
        return String::new();
    }
    let items: String =
        common.iter().map(|(name, value)| format!("<span><b>{name}</b> {}</span> ", escape(value))).collect();
    format!("<p class=\"settings\">{items}</p>\n")
}

/// Settings per engine, the machine, every run.
pub fn section(run: &Run, summary: &Summary<'_>) -> String {
    let mut out = "<section>\n<h2>How it was measured</h2>\n".to_owned();
    if let Some(header) = run.headers.last() {
        let _ = writeln!(out, "<p class=\"note\">Command: <code>{}</code></p>", escape(&header.command));
        let mut lines = header.machine.lines();
        lines.push(("Measured", header.time.clone()));
        let commit = header.suite_commit.clone().map_or(String::new(), |commit| format!(", commit {commit}"));
        lines.push(("Suite", format!("{}{commit}", header.suite_version)));
        let rows: String = lines
            .iter()
            .filter(|(_, value)| !value.is_empty())
            .map(|(name, value)| format!("<dt>{name}</dt><dd>{}</dd>\n", escape(value)))
            .collect();
        let _ = writeln!(out, "<h3>Machine</h3>\n<dl class=\"machine\">\n{rows}</dl>");
    }
    out.push_str(&engines(run, summary));
    out.push_str(&history(summary));
    out.push_str(&every(run));
    out.push_str("</section>\n");
    out
}

/// The settings of each engine in its own words, by row if rows differ.
fn engines(run: &Run, summary: &Summary<'_>) -> String {
    let mut out = String::new();
    for &engine in &summary.engines {
        let mut told: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for record in run.records.iter().filter(|record| record.engine.name == engine && record.counts()) {
            let options = record.params.options.iter().map(|(name, value)| format!("{name} = {value}"));
            let rows = told.entry(options.collect::<Vec<_>>().join("; ")).or_default();
            if !rows.contains(&record.row.as_str()) {
                rows.push(&record.row);
            }
        }
        told.remove("");
        for (options, rows) in told {
            let _ = writeln!(
                out,
                "<dt>{} <small>{}</small></dt><dd>{}</dd>",
                escape(name(engine)),
                escape(&rows.join(", ")),
                escape(&options)
            );
        }
    }
    if out.is_empty() {
        out
    } else {
        format!("<h3>Settings in the engines’ words</h3>\n<dl class=\"machine\">\n{out}</dl>\n")
    }
}

/// The sources of published figures.
fn history(summary: &Summary<'_>) -> String {
    let rows = summary.groups.iter().flat_map(|group| &group.rows);
    let mut machines: Vec<&str> =
        rows.flat_map(|row| &row.history).map(|(_, p)| p.machine.as_str()).collect();
    machines.sort_unstable();
    machines.dedup();
    if machines.is_empty() {
        return String::new();
    }
    let items: String = machines.iter().map(|machine| format!("<li>{}</li>", escape(machine))).collect();
    format!(
        "<p class=\"note\">Figures marked “published” are history, measured by others on other machines, and are not to be \
         compared with ours:</p>\n<ul class=\"note\">{items}</ul>\n"
    )
}

fn every(run: &Run) -> String {
    let mut rows = String::new();
    for record in &run.records {
        let _ = writeln!(rows, "<tr>{}</tr>", one(record));
    }
    format!(
        "<details><summary>Every run ({})</summary>\n<div class=\"scroll\"><table class=\"figures\"><thead><tr>\
         <th>experiment</th><th>settings</th><th>row</th><th>engine</th><th>rep</th><th>order</th><th>ops</th><th>seconds</th>\
         <th>ops/s</th><th>codec</th><th>durability</th><th>hash</th><th>state</th></tr></thead><tbody>\n{rows}</tbody>\
         </table></div></details>\n",
        run.records.len()
    )
}

fn one(record: &Record) -> String {
    let ops = record.ops.as_ref();
    let dash = || "–".to_owned();
    let state = match &record.status {
        Status::Ok => "ok".to_owned(),
        other => other.text(),
    };
    let text = [
        record.experiment.clone(),
        record.class.text().to_owned(),
        record.row.clone(),
        name(&record.engine.name).to_owned(),
    ];
    let figures = [
        record.rep.to_string(),
        record.order.to_string(),
        ops.map_or_else(dash, |ops| ops.total.to_string()),
        record.phase.as_ref().map_or_else(dash, |phase| format!("{:.3}", phase.seconds)),
        ops.map_or_else(dash, |ops| rate(ops.per_sec)),
    ];
    let last = [
        record.params.codec.clone().unwrap_or_else(dash),
        record.params.durability.clone(),
        record.hash.reads.clone().unwrap_or_else(dash),
        state,
    ];
    let td = |class: &'static str| move |cell: &String| format!("<td{class}>{}</td>", escape(cell));
    let left = td(" class=\"t\"");
    text.iter().map(left).chain(figures.iter().map(td(""))).chain(last.iter().map(left)).collect()
}
