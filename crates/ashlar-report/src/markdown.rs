//! The page as Markdown, shorter: remarks, rates, waits at a fixed rate, amplification, and the settings.

use crate::benchmark;
use crate::graph;
use crate::page::name;
use crate::record::{From, Latency, Record, Run};
use crate::summary::{BENCHMARK, Cell, Group, OPERATIONS, OURS, REFERENCE, ROCKSJAVA, Row, Spread, Summary};
use crate::theory::predicted;
use crate::words::{bytes, factor, known, micros, rate};
use std::fmt::Write;

/// The workloads of which the processor time for an entry is shown.
const COMPACT: [&str; 2] = ["compact", "compactfilter"];

/// A page of this run, to insert below a heading.
pub fn markdown(run: &Run) -> String {
    shown(run, amplification)
}

/// The page without amplification: a table of rates for each experiment, and one of waits if the rate was given.
pub fn rates(run: &Run) -> String {
    shown(run, |_| String::new())
}

/// A table of rates for each experiment, and one sentence with date, machine and versions: for a page that links to the rest.
pub fn brief(run: &Run) -> String {
    let summary = Summary::of(run);
    let mut out = String::new();
    for group in &summary.groups {
        out.push_str(&table(group, &summary.engines));
        out.push('\n');
    }
    let Some(header) = run.headers.last() else { return out };
    let day = header.time.split('T').next().unwrap_or_default();
    let machine = header.machine.lines();
    let of = |wanted: &str| machine.iter().find(|(name, _)| *name == wanted).map(|(_, value)| text(value));
    let place: Vec<String> = ["Processor", "Memory"].into_iter().filter_map(of).collect();
    let _ = writeln!(out, "Measured {day} on {}: {}.", place.join(", "), versions(run, &summary));
    out
}

/// `more` follows the rates of each experiment.
fn shown(run: &Run, more: impl Fn(&Group<'_>) -> String) -> String {
    let summary = Summary::of(run);
    let mut out = String::new();
    for group in &summary.groups {
        let _ = writeln!(out, "### {}\n", group.title());
        out.push_str(&table(group, &summary.engines));
        out.push('\n');
        out.push_str(&not_first(group));
        out.push_str(&benchmark(group));
        out.push_str(&past(group));
        out.push_str(&waits(group));
        out.push_str(&rewriting(group));
        out.push_str(&costs(group));
        out.push_str(&jvms(group));
        out.push_str(&linkbench(group));
        out.push_str(&more(group));
    }
    if !summary.marks.is_empty() {
        let marks: String = summary.marks.iter().map(|mark| format!("- {}\n", text(mark))).collect();
        let _ = writeln!(out, "Before you read:\n\n{marks}");
    }
    out.push_str(&source(run, &summary));
    out
}

/// A text in a cell.
fn text(of: &str) -> String {
    of.replace('\\', "\\\\").replace('|', "\\|").replace('<', "&lt;").replace('\n', " ")
}

fn line(out: &mut String, cells: impl IntoIterator<Item = String>) {
    let cells: Vec<String> = cells.into_iter().collect();
    let _ = writeln!(out, "| {} |", cells.join(" | "));
}

/// Rows down, engines across, medians. The best of a row is bold where rates rank engines.
fn table(group: &Group<'_>, engines: &[&str]) -> String {
    let ranked = group.rows.iter().any(|row| group.ranks(row));
    let both = ranked && engines.contains(&OURS) && engines.contains(&REFERENCE);
    let mut out =
        "Operations per second, median; in brackets half the span of the repetitions.\n\n".to_owned();
    let ratio_head = both.then(|| format!("{} × {}", name(OURS), name(REFERENCE)));
    line(
        &mut out,
        ["".to_owned()].into_iter().chain(engines.iter().map(|engine| text(name(engine)))).chain(ratio_head),
    );
    let columns = engines.len() + usize::from(both);
    line(&mut out, ["---".to_owned()].into_iter().chain((0..columns).map(|_| "---:".to_owned())));
    for row in &group.rows {
        let ranks = group.ranks(row);
        let best = row.best().filter(|_| ranks);
        let cells =
            engines.iter().map(|engine| row.of(engine).map_or_else(|| "–".to_owned(), |c| figure(c, best)));
        let id = if row.id == row.title { String::new() } else { format!("{} ", text(row.id)) };
        let ratio = both.then(|| known(against(row).filter(|_| ranks), factor));
        line(&mut out, [format!("{id}{}", text(row.title))].into_iter().chain(cells).chain(ratio));
    }
    out
}

fn figure(cell: &Cell<'_>, best: Option<Spread>) -> String {
    let Some(speed) = cell.rate() else { return "–".to_owned() };
    let bold = if best == Some(speed) { "**" } else { "" };
    let span = (speed.max - speed.min) / 2.0 / speed.median * 100.0;
    let span = if cell.runs.len() > 1 { format!(" (± {span:.0} %)") } else { String::new() };
    format!("{bold}{}{bold}{span}", rate(speed.median))
}

fn against(row: &Row<'_>) -> Option<f64> {
    Some(row.of(OURS)?.rate()?.median / row.of(REFERENCE)?.rate()?.median)
}

/// The latencies of operations that were due at a fixed rate.
fn waits(group: &Group<'_>) -> String {
    let mut rows = String::new();
    for row in &group.rows {
        for cell in &row.cells {
            let open = |latency: &Latency| (latency.from == From::Intended).then_some(latency.rate).flatten();
            let kinds = cell.typical().map(|run| run.latency_us.iter()).into_iter().flatten();
            for (kind, due) in kinds.filter_map(|(kind, latency)| Some((kind, open(latency)?))) {
                type At = fn(&Latency) -> Option<f64>;
                let shown: [At; 4] = [
                    |l| l.percentile(0.5, l.p50),
                    |l| l.percentile(0.01, l.p99),
                    |l| l.percentile(0.001, l.p999),
                    |l| l.percentile(0.0001, l.p9999),
                ];
                let shown = shown.map(|at| cell.median(|run| at(run.latency_us.get(kind)?)));
                let all = cell.runs.iter().filter_map(|run| Some(run.latency_us.get(kind)?.max));
                let longest = Spread::of(all).map(|spread| spread.max);
                let head = [text(row.title), text(name(cell.engine)), text(kind), rate(due)];
                let waits = shown.into_iter().chain([longest]).map(|wait| known(wait, micros));
                line(&mut rows, head.into_iter().chain(waits));
            }
        }
    }
    if rows.is_empty() {
        return rows;
    }
    format!(
        "From when an operation was due until it was done; percentiles are medians of the repetitions, the longest is of all. A dash: \
         fewer than ten operations took longer. `due a second` counts all kinds of operations:\n\n\
         | | engine | operation | due a second | p50 | p99 | p99.9 | p99.99 | longest |\n\
         |---|---|---|---:|---:|---:|---:|---:|---:|\n{rows}\n"
    )
}

/// The processor time that compactions take for an entry: that of the process without the calling thread, which waits.
fn rewriting(group: &Group<'_>) -> String {
    let mut rows = String::new();
    for row in &group.rows {
        let cost = |cell: &Cell<'_>| {
            cell.median(|run| {
                let ops = run.ops.as_ref().filter(|_| COMPACT.contains(&run.workload.as_str()))?;
                Some((ops.us_cpu_op? - ops.us_cpu_thread_op?).max(0.0))
            })
        };
        let reference = row.of(REFERENCE).and_then(cost).filter(|_| group.is_quotable());
        for cell in &row.cells {
            let Some(own) = cost(cell) else { continue };
            let ratio = reference.filter(|_| cell.engine == OURS).map(|reference| reference / own);
            let head = [text(row.title), text(name(cell.engine)), micros(own)];
            line(&mut rows, head.into_iter().chain([known(ratio, factor)]));
        }
    }
    if rows.is_empty() {
        return rows;
    }
    format!(
        "Processor time of the compacting threads for each entry that remains, or that a filter was asked about:\n\n\
         | | engine | per entry | {} × {} |\n|---|---|---:|---:|\n{rows}\n",
        name(OURS),
        name(REFERENCE)
    )
}

/// A line for each engine of each row: the processor time of an operation, the ratio, and `more` of the cell.
fn processor_times(group: &Group<'_>, more: impl Fn(&Cell<'_>) -> Vec<String>) -> String {
    let mut rows = String::new();
    for row in &group.rows {
        let cost = |cell: &Cell<'_>| cell.median(|run| run.ops.as_ref()?.us_cpu_op);
        let reference = row.of(REFERENCE).and_then(cost).filter(|_| group.is_quotable());
        for cell in &row.cells {
            let Some(own) = cost(cell) else { continue };
            let ratio = reference.filter(|_| cell.engine == OURS).map(|reference| reference / own);
            let head = [text(row.title), text(name(cell.engine)), micros(own), known(ratio, factor)];
            line(&mut rows, head.into_iter().chain(more(cell)));
        }
    }
    rows
}

/// What the rate does not show of operations: processor time, bytes written and stored, and transactions that ran again.
fn costs(group: &Group<'_>) -> String {
    if group.experiment != OPERATIONS {
        return String::new();
    }
    let rows = processor_times(group, |cell| {
        let again = |run: &Record| run.params.options.get("conflicts")?.parse::<f64>().ok();
        let writes = |run: &Record| run.amp.wa_eng.filter(|written| *written > 0.0).and(run.written());
        vec![
            known(cell.median(writes), factor),
            known(cell.median(|run| run.amp.sa_du), factor),
            known(cell.median(again), |count| format!("{count:.0}")),
        ]
    });
    if rows.is_empty() {
        return rows;
    }
    format!(
        "Processor time of an operation, of all threads and until background work is done; bytes written for a byte of the user, \
         where tables were written; bytes stored for a live byte; transactions that met a conflict and ran again:\n\n\
         | | engine | processor time | {} × {} | written | stored | again |\n|---|---|---:|---:|---:|---:|---:|\n{rows}\n",
        name(OURS),
        name(REFERENCE)
    )
}

/// The processor time and the memory of a JVM with its native half.
fn jvms(group: &Group<'_>) -> String {
    if group.experiment != ROCKSJAVA {
        return String::new();
    }
    let memory = |cell: &Cell<'_>| cell.median(|run| run.mem.rss_peak.map(|bytes| bytes as f64));
    let rows = processor_times(group, |cell| vec![known(memory(cell), bytes)]);
    if rows.is_empty() {
        return rows;
    }
    format!(
        "Processor time of an operation, of all threads of the JVM; peak of the JVM's resident memory:\n\n\
         | | engine | processor time | {} × {} | memory |\n|---|---|---:|---:|---:|\n{rows}\n",
        name(OURS),
        name(REFERENCE)
    )
}

/// What an operation of Linkbench costs, and how its throughput grows.
fn linkbench(group: &Group<'_>) -> String {
    let mut out = String::new();
    let costs = graph::costs(group);
    if !costs.is_empty() {
        let _ = write!(out, "What an operation costs. {}\n\n", graph::COSTS_NOTE);
        out.push_str(&plain(&graph::COSTS, costs.iter().map(|cells| &cells[..])));
    }
    let growth = graph::growth(group);
    if !growth.is_empty() {
        let _ = write!(out, "Throughput of N clients: {}\n\n", graph::GROWTH_NOTE);
        out.push_str(&plain(&graph::GROWTH, growth.iter().map(|cells| &cells[..])));
    }
    out
}

/// The columns of `benchmark.sh`.
fn benchmark(group: &Group<'_>) -> String {
    let lines = benchmark::lines(group);
    if lines.is_empty() {
        return String::new();
    }
    let table = plain(&benchmark::HEAD, lines.iter().map(|cells| &cells[..]));
    format!("The columns of the script. {}\n\n{table}", benchmark::NOTE)
}

/// The rows in which another engine is faster than AshlarDB.
fn not_first(group: &Group<'_>) -> String {
    let sentence = group.standing();
    if sentence.is_empty() { sentence } else { format!("{}\n\n", text(&sentence)) }
}

/// A table whose first two columns are texts and whose others are numbers.
fn plain<'a>(head: &[&str], lines: impl Iterator<Item = &'a [String]>) -> String {
    let mut out = String::new();
    line(&mut out, head.iter().map(|name| (*name).to_owned()));
    let aligned = (0..head.len()).map(|column| if column < 2 { "---" } else { "---:" }.to_owned());
    line(&mut out, aligned);
    lines.for_each(|cells| line(&mut out, cells.iter().map(|cell| text(cell))));
    out + "\n"
}

/// Published figures, a line per engine. The table of [`benchmark()`] has the figures of its document already.
fn past(group: &Group<'_>) -> String {
    if group.experiment == BENCHMARK {
        return String::new();
    }
    let mut engines: Vec<&str> =
        group.rows.iter().flat_map(|row| &row.history).map(|(engine, _)| *engine).collect();
    engines.sort_unstable();
    engines.dedup();
    let mut out = String::new();
    for engine in engines {
        let of =
            |row: &Row<'_>| row.history.iter().find(|(known, _)| *known == engine).map(|(_, p)| p.clone());
        let figures: Vec<String> =
            group.rows.iter().filter_map(|row| Some(format!("{} {}", row.id, of(row)?.text))).collect();
        let machine = group.rows.iter().find_map(of).map(|p| p.machine).unwrap_or_default();
        let _ = writeln!(
            out,
            "History, not to be compared: {} in {}: {}.\n",
            name(engine),
            text(&machine),
            figures.join("; ")
        );
    }
    out
}

/// Write and space beside theory, for the rows that write. [`costs`] has both for operations, which the theory does not cover.
fn amplification(group: &Group<'_>) -> String {
    if group.experiment == OPERATIONS {
        return String::new();
    }
    let writes = |run: &Record| run.ops.as_ref().is_some_and(|ops| ops.found.is_none());
    let mut rows = String::new();
    for row in &group.rows {
        for cell in &row.cells {
            let Some(run) = cell.typical().filter(|run| writes(run)) else { continue };
            let theory = predicted(run);
            type Figure = fn(&Record) -> Option<f64>;
            let measured: [Figure; 3] = [Record::written, |r| r.amp.wa_eng, |r| r.amp.sa_du];
            let [process, engine, space] = measured.map(|figure| cell.median(figure));
            if process.or(engine).or(space).is_none() {
                continue;
            }
            let cells =
                [process, engine, theory.and_then(|theory| theory.wa), space, theory.map(|theory| theory.sa)];
            let cells = cells.map(|value| known(value, factor));
            line(&mut rows, [text(row.title), text(name(cell.engine))].into_iter().chain(cells));
        }
    }
    if rows.is_empty() {
        return rows;
    }
    format!(
        "Bytes written per user byte, and stored per live byte:\n\n\
         | | engine | written, process | by the engine’s count | theory | stored | theory |\n\
         |---|---|---:|---:|---:|---:|---:|\n{rows}\n"
    )
}

fn source(run: &Run, summary: &Summary<'_>) -> String {
    let mut out = String::new();
    if let Some(header) = run.headers.last() {
        let machine = header.machine.lines().into_iter().filter(|(name, _)| *name != "Mitigations");
        let machine =
            machine.map(|(name, value)| format!("{name}: {}", text(&value))).collect::<Vec<_>>().join("; ");
        let _ = writeln!(out, "Measured {} with `{}`.", header.time, header.command);
        if !machine.is_empty() {
            let _ = writeln!(out, "{machine}.");
        }
    }
    let versions = versions(run, summary);
    if !versions.is_empty() {
        let _ = writeln!(out, "{versions}.");
    }
    out
}

/// Each engine with the version that its records name.
fn versions(run: &Run, summary: &Summary<'_>) -> String {
    let versions = summary.engines.iter().filter_map(|engine| {
        let told = run.records.iter().find(|r| r.engine.name == *engine && !r.engine.version.is_empty())?;
        Some(format!("{} {}", name(engine), text(&told.engine.version)))
    });
    versions.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn rows_engines_and_history() {
        let text = markdown(&sample::comparison());
        for part in [
            "### LevelDB’s page, standard size, matched settings\n",
            "|  | AshlarDB | RocksDB | LevelDB | Kyoto TreeDB | LMDB | AshlarDB × RocksDB |\n",
            "| 1A sequential reads | **6,120,000** (± 1 %) | 4,900,000 (± 1 %) | 3,670,000 (± 1 %) | – | 5,510,000 (± 1 %) | 1.25 |\n",
            "History, not to be compared: LevelDB in 2011: ",
            "1A 4,030,000; ",
            "| random writes | AshlarDB | 4.50 | 4.40 |",
            "- treedb: not here: no library libkyotocabinet\n",
            "Measured 2026-01-31T12:00:00Z with `ashlar-compare --experiment s3`.\n",
            "AshlarDB 1.2.3, RocksDB 1.2.3,",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        assert_eq!(markdown(&Run::default()), "");
    }

    /// The size shows that everything works, and the page says what else the machine did meanwhile.
    #[test]
    fn the_smoke_size_ranks_no_engine_and_names_the_share_of_others() {
        let mut run = sample::comparison();
        for record in &mut run.records {
            record.size = Some("smoke".into());
            record.params.options.insert(
                "disturbed".into(),
                "other programs used 40 % of the processors; other guests took 6 % of the processors; pages were swapped".into(),
            );
        }
        let text = markdown(&run);
        assert!(text.contains("| 1A sequential reads | 6,120,000 (± 1 %) |"), "{text}");
        assert!(!text.contains("**") && !text.contains("AshlarDB × RocksDB"), "{text}");
        assert!(text.contains("used up to 46 % of the processors beside 60 of 60 runs"), "{text}");
        let page = crate::page(&run);
        assert!(page.contains("used up to 46 %") && !page.contains("<td>1.25</td>"), "{page}");
        for record in &mut run.records {
            record.experiment = ROCKSJAVA.into();
            record.ops.iter_mut().for_each(|ops| ops.us_cpu_op = Some(0.5));
        }
        let text = rates(&run);
        assert!(text.contains("| sequential reads | AshlarDB | 0.50 µs | – |"), "{text}");
    }

    /// No formula covers the load of Linkbench, and write calls say nothing of an engine that maps its writes.
    #[test]
    fn amplification_has_dashes_for_what_is_not_known() {
        let mut run = sample::comparison();
        run.records.retain(|record| record.row == "1D" && record.engine.name != "treedb");
        for record in &mut run.records {
            record.workload = "linkbench-load".into();
            if record.engine.name == "lmdb" {
                record.engine.name = "treedb".into();
            }
        }
        let text = markdown(&run);
        assert!(text.contains("| random writes | AshlarDB | 4.50 | 4.40 | – | 0.90 | – |"), "{text}");
        assert!(text.contains("| random writes | Kyoto TreeDB | – | 4.40 | – | 0.90 | – |"), "{text}");
    }

    #[test]
    fn the_brief_form_has_the_table_and_one_sentence() {
        let text = brief(&sample::comparison());
        assert!(text.contains("| 1A sequential reads | **6,120,000** (± 1 %) |"), "{text}");
        assert!(text.contains("\n\nMeasured 2026-01-31 on "), "{text}");
        assert!(text.contains("AshlarDB 1.2.3, RocksDB 1.2.3,"), "{text}");
        for left_out in ["###", "History", "written, process", "ashlar-compare"] {
            assert!(!text.contains(left_out), "{left_out}\n{text}");
        }
        assert_eq!(brief(&Run::default()), "");
    }

    #[test]
    fn the_cost_of_an_entry_where_all_was_compacted() {
        let mut run = sample::comparison();
        assert!(!rates(&run).contains("per entry"));
        for record in run.records.iter_mut().filter(|record| record.row == "1A") {
            record.workload = COMPACT[0].into();
            let us = if record.engine.name == OURS { 0.5 } else { 1.25 };
            if let Some(ops) = &mut record.ops {
                (ops.us_cpu_op, ops.us_cpu_thread_op) = (Some(us + 0.125), Some(0.125));
            }
        }
        let text = rates(&run);
        assert!(text.contains("| sequential reads | AshlarDB | 0.50 µs | 2.50 |\n"), "{text}");
        assert!(text.contains("| sequential reads | RocksDB | 1.25 µs | – |\n"), "{text}");
    }

    #[test]
    fn operations_show_their_processor_time_and_the_load_beside() {
        let mut run = sample::comparison();
        assert!(!rates(&run).contains("processor time |"));
        for record in &mut run.records {
            record.experiment = OPERATIONS.into();
            record
                .params
                .options
                .insert("disturbed".into(), "other programs used 20 % of the processors".into());
            record.params.options.insert("conflicts".into(), "12".into());
            if let Some(ops) = &mut record.ops {
                ops.us_cpu_op = Some(if record.engine.name == OURS { 0.5 } else { 1.25 });
            }
        }
        let text = rates(&run);
        assert!(text.contains("### Operations, standard size"), "{text}");
        assert!(text.contains("| sequential reads | AshlarDB | 0.50 µs | 2.50 |"), "{text}");
        assert!(text.contains("| 12 |"), "{text}");
        assert!(
            text.contains(
                "- other programs or guests used up to 20 % of the processors beside 60 of 60 runs"
            ),
            "{text}"
        );
    }

    #[test]
    fn waits_where_the_rate_was_given() {
        let mut run = sample::comparison();
        assert!(!markdown(&run).contains("due a second"));
        for latency in run.records.iter_mut().flat_map(|record| record.latency_us.values_mut()) {
            (latency.from, latency.rate) = (From::Intended, Some(250_000.0));
        }
        let text = rates(&run);
        for part in [
            "p99.99 | longest |\n|---|---|---|---:|---:|---:|---:|---:|---:|\n| sequential reads | AshlarDB | read | 250,000 | 0.13 µs | 0.98 µs | 6.54 µs | 49 µs | 3.3 ms |\n",
            "| random writes | LMDB | write | 250,000 |",
            // The driver limits the rates.
            "| 1A sequential reads | 6,120,000 (± 1 %) |",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        assert!(!text.contains("AshlarDB × RocksDB"), "{text}");
        for latency in run.records.iter_mut().flat_map(|record| record.latency_us.values_mut()) {
            latency.count = 9_999;
        }
        let text = rates(&run);
        assert!(
            text.contains("| AshlarDB | read | 250,000 | 0.13 µs | 0.98 µs | – | – | 3.3 ms |"),
            "{text}"
        );
    }

    #[test]
    fn tables_have_as_many_cells_in_every_line() {
        let mut run = sample::comparison();
        run.records[0].title = "a|b".into();
        for latency in run.records.iter_mut().flat_map(|record| record.latency_us.values_mut()) {
            (latency.from, latency.rate) = (From::Intended, Some(1.0));
        }
        let text = markdown(&run).replace("\\|", "");
        for block in text.split("\n\n").filter(|block| block.starts_with('|')) {
            let counts: std::collections::BTreeSet<_> =
                block.lines().map(|l| l.matches('|').count()).collect();
            assert_eq!(counts.len(), 1, "{block}");
        }
    }
}
