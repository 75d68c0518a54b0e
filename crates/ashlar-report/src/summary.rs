//! Groups records by experiment, row and engine: medians, spread, and remarks.

use crate::history;
use crate::page::name;
use crate::record::{CHECKED, Class, From, Limit, Published, Record, Run, Status};
use crate::words::factor;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The reference engine, if it was measured.
pub const REFERENCE: &str = "rocksdb";
/// The name of AshlarDB.
pub const OURS: &str = "ashlardb";

/// The experiment whose processor times are shown for every row.
pub const OPERATIONS: &str = "operations";

/// The experiment of RocksJava, whose processes are JVMs.
pub const ROCKSJAVA: &str = "s1";

/// The experiment of `benchmark.sh`, which has the columns of that script.
pub const BENCHMARK: &str = "s2";

/// Linkbench's experiment, whose cost per operation is shown as its document does. Runs with other modes or configurations have
/// this name with parts behind dots: `s4.txn.sync`.
pub const LINKBENCH: &str = "s4";

/// The size whose figures are not to be quoted.
const SMOKE: &str = "smoke";

/// The parts behind Linkbench's name; empty for the usual configuration. `None`: another experiment.
fn linkbench_parts(experiment: &str) -> Option<&str> {
    let rest = experiment.strip_prefix(LINKBENCH)?;
    if rest.is_empty() { Some(rest) } else { rest.strip_prefix('.') }
}

/// A file of records, in order.
pub struct Summary<'a> {
    /// Every engine: AshlarDB first, then the reference, then in the order of the file.
    pub engines: Vec<&'a str>,
    /// Experiments.
    pub groups: Vec<Group<'a>>,
    /// Remarks that a reader needs before the figures.
    pub marks: Vec<String>,
}

/// An experiment with one class of settings in one size.
pub struct Group<'a> {
    /// Its name.
    pub experiment: &'a str,
    /// Its settings.
    pub class: Class,
    /// Its size.
    pub size: Option<&'a str>,
    /// The rows, in the order of the file.
    pub rows: Vec<Row<'a>>,
}

/// One workload on every engine.
pub struct Row<'a> {
    /// The name within the experiment.
    pub id: &'a str,
    /// The description.
    pub title: &'a str,
    /// An entry per engine, in the order of [`Summary::engines`].
    pub cells: Vec<Cell<'a>>,
    /// Figures of the repeated document.
    pub history: Vec<(&'a str, Published)>,
}

/// One workload on one engine, in several repetitions.
pub struct Cell<'a> {
    /// The engine.
    pub engine: &'a str,
    /// The records that count.
    pub runs: Vec<&'a Record>,
    /// The reason if no record counts; empty otherwise.
    pub why: String,
}

/// A figure over several repetitions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// Median.
    pub median: f64,
    /// Least.
    pub min: f64,
    /// Most.
    pub max: f64,
    /// Standard deviation divided by the mean; 0 for one repetition.
    pub cv: f64,
}

impl Spread {
    /// The spread of these values. `None`: there are no values.
    pub fn of(values: impl Iterator<Item = f64>) -> Option<Spread> {
        let mut sorted: Vec<f64> = values.filter(|value| value.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let (n, (&min, &max)) = (sorted.len(), sorted.first().zip(sorted.last())?);
        let median = (sorted[(n - 1) / 2] + sorted[n / 2]) / 2.0;
        let mean = sorted.iter().sum::<f64>() / n as f64;
        let square = sorted.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
        let deviation = if n > 1 { (square / (n - 1) as f64).sqrt() } else { 0.0 };
        Some(Spread { median, min, max, cv: if mean > 0.0 { deviation / mean } else { 0.0 } })
    }

    /// True if the difference of two medians is smaller than the wider of the two spreads.
    pub fn ties(&self, other: &Spread) -> bool {
        (self.median - other.median).abs() < (self.max - self.min).max(other.max - other.min)
    }
}

impl<'a> Cell<'a> {
    /// Operations per second.
    pub fn rate(&self) -> Option<Spread> {
        Spread::of(self.runs.iter().filter_map(|run| Some(run.ops.as_ref()?.per_sec)))
    }

    /// The median of a figure over the repetitions.
    pub fn median(&self, figure: impl Fn(&Record) -> Option<f64>) -> Option<f64> {
        Spread::of(self.runs.iter().filter_map(|run| figure(run))).map(|spread| spread.median)
    }

    /// The repetition whose rate is the median, the lower of two.
    pub fn typical(&self) -> Option<&'a Record> {
        let mut runs = self.runs.clone();
        let rate = |run: &Record| run.ops.as_ref().map_or(0.0, |ops| ops.per_sec);
        runs.sort_by(|a, b| rate(a).total_cmp(&rate(b)));
        runs.get(runs.len().checked_sub(1)? / 2).copied()
    }
}

impl<'a> Row<'a> {
    /// The engine's cell.
    pub fn of(&self, engine: &str) -> Option<&Cell<'a>> {
        self.cells.iter().find(|cell| cell.engine == engine)
    }

    /// The highest median rate.
    pub fn best(&self) -> Option<Spread> {
        let rates = self.cells.iter().filter_map(Cell::rate);
        rates.max_by(|a, b| a.median.total_cmp(&b.median))
    }

    /// True if the driver limits the rate: operations are due at given times, so every engine that keeps up has the same rate.
    pub fn is_paced(&self) -> bool {
        let latencies = self.cells.iter().flat_map(|cell| &cell.runs).flat_map(|run| run.latency_us.values());
        latencies.into_iter().any(|latency| latency.from == From::Intended && latency.rate.is_some())
    }

    /// True if engines with the same requested work did or read something different. Missing sums cannot be compared: runs
    /// ended by the clock, several threads. Each run checks the content of its directory by itself.
    fn disagrees(&self) -> bool {
        let runs = || self.cells.iter().flat_map(|cell| &cell.runs);
        let asked: BTreeSet<&str> = runs().filter_map(|run| run.hash.ops.as_deref()).collect();
        let read: BTreeSet<&str> = runs().filter_map(|run| run.hash.reads.as_deref()).collect();
        // Of a run that the clock ended, the sum is that of its first operations, but `found` counts all of them.
        let whole = runs().filter(|run| run.hash.reads.is_some() && run.params.limit == Limit::Count);
        let found: BTreeSet<u64> = whole.filter_map(|run| run.ops.as_ref()?.found).collect();
        asked.len() > 1 || read.len() > 1 || found.len() > 1
    }
}

impl<'a> Group<'a> {
    /// The heading: `s3, standard size, matched settings`.
    pub fn title(&self) -> String {
        let size = self.size.map_or(String::new(), |size| format!(", {size} size"));
        let linkbench = linkbench_parts(self.experiment).map(|parts| match parts {
            "" => "Linkbench".to_owned(),
            parts => format!("Linkbench ({})", parts.replace('.', ", ")),
        });
        let experiment = match linkbench.as_deref().unwrap_or(self.experiment) {
            "s0" => "RocksDB and LevelDB on flash",
            ROCKSJAVA => "RocksJava on flash",
            BENCHMARK => "benchmark.sh",
            "s3" => "LevelDB’s page",
            "ycsb" => "YCSB",
            "hot-paths" => "Hot paths",
            OPERATIONS => "Operations",
            "free" => "Workloads",
            other => other,
        };
        format!("{experiment}{size}, {} settings", self.class.text())
    }

    /// True if the rates of a row say which engine is faster. They do not in the smoke size, which only shows that everything works,
    /// and where the driver limits them.
    pub fn ranks(&self, row: &Row<'_>) -> bool {
        self.is_quotable() && !row.is_paced()
    }

    /// Sentences that name the rows in which another engine is faster than AshlarDB, with the fastest and the ratio of the median rates,
    /// and those of another engine alone. Empty if no row ranks AshlarDB and another engine.
    pub fn standing(&self) -> String {
        let (mut compared, mut behind, mut alone) = (0, Vec::new(), Vec::new());
        for row in self.rows.iter().filter(|row| self.ranks(row)) {
            let others = row.cells.iter().filter(|cell| cell.engine != OURS);
            let others = others.filter_map(|cell| Some((cell.engine, cell.rate()?)));
            let Some((engine, best)) = others.max_by(|a, b| a.1.median.total_cmp(&b.1.median)) else {
                continue;
            };
            let Some(ours) = row.of(OURS).and_then(Cell::rate) else {
                alone.push(row.id);
                continue;
            };
            compared += 1;
            if best.median > ours.median {
                let tie = if best.ties(&ours) { ", within the spread" } else { "" };
                behind.push(format!(
                    "{} ({} {} times{tie})",
                    row.id,
                    name(engine),
                    factor(best.median / ours.median)
                ));
            }
        }
        let us = name(OURS);
        let first = match behind.len() {
            _ if compared == 0 => return String::new(),
            0 => format!("{us} is first in each of {compared} rows."),
            count => format!("{us} is not first in {count} of {compared} rows: {}.", behind.join(", ")),
        };
        match alone.is_empty() {
            true => first,
            false => format!("{first} {us} has no figure in {}.", alone.join(", ")),
        }
    }

    /// False for the smoke size.
    pub fn is_quotable(&self) -> bool {
        self.size != Some(SMOKE)
    }

    /// True for Linkbench in any mode and configuration.
    pub fn is_linkbench(&self) -> bool {
        linkbench_parts(self.experiment).is_some()
    }

    /// The row with which the page of 2011 compares this one, and whether the comparison is in bytes.
    pub fn baseline(&self, row: &str) -> Option<(&Row<'a>, bool)> {
        let base = match (self.experiment == "s3" && !row.starts_with('1'), row.split_once('-')?) {
            (true, (section, "seq")) => {
                if section.starts_with('3') {
                    "1A"
                } else {
                    "1C"
                }
            }
            (true, (section, "rand")) => {
                if section.starts_with('3') {
                    "1B"
                } else {
                    "1D"
                }
            }
            _ => return None,
        };
        Some((self.rows.iter().find(|known| known.id == base)?, row.starts_with("2A")))
    }
}

impl<'a> Summary<'a> {
    /// Summarises a file.
    pub fn of(run: &'a Run) -> Summary<'a> {
        let records = &run.records;
        let engines = engines(records);
        let mut groups: Vec<Group<'a>> = Vec::new();
        for record in records {
            let key = (record.experiment.as_str(), record.class, record.size.as_deref());
            if !groups.iter().any(|g| (g.experiment, g.class, g.size) == key) {
                let rows = rows(records, key, &engines);
                groups.push(Group { experiment: key.0, class: key.1, size: key.2, rows });
            }
        }
        let marks = marks(&groups, records);
        Summary { engines, groups, marks }
    }
}

fn engines(records: &[Record]) -> Vec<&str> {
    let mut engines: Vec<&str> = Vec::new();
    for record in records {
        if !engines.contains(&record.engine.name.as_str()) {
            engines.push(&record.engine.name);
        }
    }
    // The sort is stable: the others keep their order.
    engines.sort_by_key(|&name| match name {
        OURS => 0,
        REFERENCE => 1,
        _ => 2,
    });
    engines
}

fn rows<'a>(records: &'a [Record], key: (&str, Class, Option<&str>), engines: &[&'a str]) -> Vec<Row<'a>> {
    let mut rows: Vec<Row<'a>> = Vec::new();
    let of_group = |r: &&Record| (r.experiment.as_str(), r.class, r.size.as_deref()) == key;
    for record in records.iter().filter(of_group) {
        if rows.iter().any(|row| row.id == record.row) {
            continue;
        }
        let of_row: Vec<&Record> = records.iter().filter(|r| of_group(r) && r.row == record.row).collect();
        let cells = engines.iter().filter_map(|&engine| cell(&of_row, engine)).collect();
        let published = |&engine: &&'a str| {
            let told = of_row.iter().find(|r| r.engine.name == engine)?.published.clone();
            Some((engine, told.or_else(|| history::published(key.0, &record.row, engine))?))
        };
        let mut history: Vec<(&str, Published)> = engines.iter().filter_map(published).collect();
        // Two forms of one engine have the same history.
        let form_of = |engine: &'a str| engine.split('-').next().unwrap_or_default();
        history.dedup_by(|(b, told), (a, before)| form_of(a) == form_of(b) && told == before);
        rows.push(Row { id: &record.row, title: &record.title, cells, history });
    }
    rows
}

fn cell<'a>(of_row: &[&'a Record], engine: &'a str) -> Option<Cell<'a>> {
    let all: Vec<&Record> = of_row.iter().copied().filter(|r| r.engine.name == engine).collect();
    let last = all.last()?;
    let runs: Vec<&Record> = all.iter().copied().filter(|r| r.counts()).collect();
    let why = if runs.is_empty() { last.status.text() } else { String::new() };
    Some(Cell { engine, runs, why })
}

/// The remarks, each once.
fn marks(groups: &[Group<'_>], records: &[Record]) -> Vec<String> {
    let mut marks = Vec::new();
    let mut told: BTreeMap<(&str, String), BTreeSet<&str>> = BTreeMap::new();
    for record in records.iter().filter(|record| record.status != Status::Ok) {
        told.entry((&record.engine.name, record.status.text())).or_default().insert(&record.row);
    }
    for record in records.iter().filter(|record| record.counts()) {
        let said =
            |name: &&str| record.params.options.get(*name).is_some_and(|text| text.starts_with("not "));
        for name in ["memory limit", "durability", "totals"].iter().filter(|name| said(name)) {
            let text = format!("{name} {}", record.params.options[*name]);
            told.entry((&record.engine.name, text)).or_default().insert(&record.row);
        }
    }
    for ((engine, why), rows) in &told {
        let every = records.iter().filter(|r| r.engine.name == *engine).map(|r| r.row.as_str());
        let all = every.collect::<BTreeSet<_>>() == *rows;
        let rows = rows.iter().copied().collect::<Vec<_>>().join(", ");
        marks.push(if all { format!("{engine}: {why}") } else { format!("{engine}, {rows}: {why}") });
    }
    marks.extend(checked(records));
    marks.extend(beside(records));
    let (mut cells, mut wide, mut least) = (0, 0, usize::MAX);
    for group in groups {
        for row in group.rows.iter().filter(|row| row.disagrees()) {
            marks.push(format!(
                "void, {} {}: the engines did not read or do the same",
                group.title(),
                row.id
            ));
        }
        for cell in group.rows.iter().flat_map(|row| &row.cells).filter(|cell| !cell.runs.is_empty()) {
            least = least.min(cell.runs.len());
            cells += 1;
            wide += usize::from(cell.rate().is_some_and(|rate| rate.cv > 0.1));
        }
    }
    if cells > 0 && least < 3 {
        marks.push(format!("fewer than three repetitions of some figures (the least: {least})"));
    }
    if wide > 0 {
        marks.push(format!("{wide} of {cells} figures vary by more than 10 % between repetitions"));
    }
    if !groups.iter().all(Group::is_quotable) {
        marks.push("smoke size: shows that everything works; its figures are not to be quoted".to_owned());
    }
    marks
}

/// The remark on the consistency checks of databases after their last row, which make a row void if they fail. `None`: there were none.
fn checked(records: &[Record]) -> Option<String> {
    let has_passed = |record: &&Record| record.counts() && record.params.options.contains_key(CHECKED);
    let engines: Vec<&String> = records.iter().filter(has_passed).map(|record| &record.engine.name).collect();
    let (runs, engines) = (engines.len(), engines.into_iter().collect::<BTreeSet<_>>().len());
    (runs > 0).then(|| {
        format!("the consistency check passed after each of the {runs} runs that count, of {engines} engines")
    })
}

/// The remark that others used the processors beside records whose figures count, with the largest share.
fn beside(records: &[Record]) -> Option<String> {
    let counting = || records.iter().filter(|record| record.counts());
    let shares: Vec<u32> = counting().filter_map(share).collect();
    let (most, busy, all) = (shares.iter().max()?, shares.len(), counting().count());
    Some(format!(
        "other programs or guests used up to {most} % of the processors beside {busy} of {all} runs: processor times say more than rates"
    ))
}

/// The percentage of the processors that others used beside a run. `None`: too little to be noted.
fn share(record: &Record) -> Option<u32> {
    let reasons = record.params.options.get("disturbed")?.split("; ");
    let percent =
        |reason: &str| reason.strip_suffix(" % of the processors")?.rsplit(' ').next()?.parse::<u32>().ok();
    reasons.filter_map(percent).reduce(|a, b| a + b)
}

#[cfg(test)]
mod tests;
