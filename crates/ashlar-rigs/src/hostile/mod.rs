//! Hostile workloads against the promise of memory: the resident size of a process stays within the cap of its database,
//! a tenth of it, and 32 MiB.
//!
//! Each row is a workload under a cap, in a child process of its own. The child samples its resident size, and what the
//! database says about its memory at the moment of the largest sample. What the caller holds by itself, such as a batch that
//! it builds, comes on top of the promise. A row is broken when
//! 1. the peak is above the promise and what readers, merge operands, a large batch, compactions of large values and indexes of long
//!    keys hold, and the allocator keeps,
//! 2. a write was refused for want of memory while readers held flushed memtables of less than half the memtables' share, or
//! 3. the report and the anonymous memory at the peak do not add up.
//!
//! They add up within a tenth and `OWN`, or `PRELOADED` with another allocator than the system's. The report is what the database
//! names, and the caller's own memory. What the allocator keeps may be missing in it, and what memtables have reserved and not used may
//! have no pages.
//!
//! A row is *named* if its peak exceeds the promise, and the memory report attributes the excess. Its owners are readers, the merge
//! operands that are being folded, a large batch, and the allocator. Others are compactions of values longer than a twentieth of the
//! cap, and indexes of keys of many KB.
//! Pages of files count up to `FILES`, because the code of a debug build is several times that of a release build.
//!
//! The row of `mixed` has a curve too, which must be flat. The rows of families show what families cost, beside RocksDB.
//!
//! `--replay=NAME@CAP` is one row, the cap in MiB, 0 for the default; `--replay=NAME` is the row under each cap. Without
//! `--time` every row has little data, and without `--replay` only some rows run.

mod families;
mod gauge;
mod mixed;
mod rocks;
mod work;

use ashlar_testkit::suite::{Budget, Length, Report, Watchdog, guarded};
use ashlar_testkit::{children, turns};
use comfy_table::{CellAlignment, Table, presets};
use families::Cost;
use std::collections::BTreeMap;
use std::time::Duration;

pub use work::play;

const MIB: u64 = 1 << 20;
/// Memory of the process beside the database, which no report names: statics, stacks, the allocator's own, the rig's.
const OWN: u64 = 8 * MIB;
/// The same with an allocator that was preloaded, which does not say what it keeps.
const PRELOADED: u64 = 24 * MIB;
/// Resident pages of files that count at most.
const FILES: u64 = 8 * MIB;

/// A workload and the caps under which it runs.
struct Row {
    name: &'static str,
    /// In MiB; 0: the default cap.
    caps: &'static [u64],
    /// The caps of the quick form.
    quick: &'static [u64],
}

const fn row(name: &'static str, caps: &'static [u64], quick: &'static [u64]) -> Row {
    Row { name, caps, quick }
}

const ALL: &[u64] = &[16, 64, 256, 0];

const ROWS: [Row; 30] = [
    row("values-1k", ALL, &[]),
    row("values-1k-16-cursors", ALL, &[]),
    row("values-1k-64-cursors", ALL, &[]),
    row("values-100k", ALL, &[]),
    row("values-100k-16-cursors", ALL, &[]),
    row("values-100k-64-cursors", ALL, &[16]),
    row("values-1m", ALL, &[16, 64]),
    row("values-1m-16-cursors", ALL, &[]),
    row("values-1m-64-cursors", ALL, &[]),
    row("blobs-100k-64-cursors", ALL, &[]),
    row("blobs-1m-64-cursors", ALL, &[16]),
    row("batches-100k", ALL, &[16]),
    row("batches-100b", ALL, &[]),
    row("multi-get-10k", ALL, &[]),
    row("merges-1-key", ALL, &[16]),
    row("merges-1000-keys", ALL, &[]),
    row("merges-10-keys-1k", ALL, &[16]),
    row("range-deletions", ALL, &[16]),
    row("families-100", &[16], &[16]),
    row("families-300", &[16], &[]),
    row("families-1000", &[16, 64, 256], &[]),
    // Below about 400 MiB the memtables of so many families do not fit, so that writes go at the pace of flushes.
    row("families-10000", &[512, 0], &[]),
    row("snapshots-200", ALL, &[]),
    row("compaction", ALL, &[]),
    row("index-17m", &[16, 24, 32, 64], &[]),
    row("index-40m", &[16, 32, 64, 256], &[]),
    row("long-keys", ALL, &[16]),
    row("reopen-after-kill", ALL, &[]),
    row("two-databases", &[64, 256], &[]),
    row(mixed::NAME, &[64], &[64]),
];

/// What a row has shown.
struct Shown {
    /// Its line of the table.
    cells: Vec<String>,
    broken: Vec<String>,
    /// Its curve, or what its families cost, as a table.
    more: String,
}

/// What a child says at its end: numbers by name.
type Figures = BTreeMap<String, u64>;

/// The numbers of a child's last line, `ROW name=number …`.
fn figures(text: &str) -> Option<Figures> {
    let line = text.lines().rev().find_map(|line| line.strip_prefix("ROW "))?;
    let number = |field: &str| {
        let (name, number) = field.split_once('=')?;
        Some((name.to_owned(), number.parse().ok()?))
    };
    line.split(' ').map(number).collect()
}

/// The rows of the suite that the budget asks for.
pub fn run(budget: &Budget) -> Report {
    let given = if let Length::For(time) = budget.length { time } else { Duration::ZERO };
    let watchdog = Watchdog::new("limits --hostile", Duration::from_secs(1200) + given);
    let mut report = Report::new("limits --hostile", budget);
    let (mut table, mut tables) = (Table::new(), String::new());
    table.load_preset(presets::ASCII_MARKDOWN);
    table.set_header(
        "workload|cap|promise|peak|anon|caller|named|owned|kept|at rest|RocksDB|refused|s|".split('|'),
    );
    for row in ROWS {
        let quick = budget.length == Length::Quick;
        for cap in if quick && budget.replay.is_none() { row.quick } else { row.caps } {
            let name = format!("{}@{cap}", row.name);
            let wanted = budget.replay.as_deref().is_none_or(|only| only == name || only == row.name);
            if !wanted || budget.is_enough(&report) || budget.is_over() {
                continue;
            }
            let _turn = turns::beside_others();
            let _case = watchdog.begins(&name);
            match guarded(|| one(budget, &row, *cap, quick)) {
                Ok(shown) => {
                    report.count("rows", 1);
                    shown.broken.into_iter().for_each(|why| report.fail(&name, format!("{name}: {why}")));
                    table.add_row(shown.cells);
                    tables += &shown.more;
                }
                Err(why) => report.fail(&name, format!("{name}: {why}")),
            }
        }
    }
    for column in table.column_iter_mut().filter(|column| column.index != 0) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    report.table = table.to_string() + &tables;
    drop(watchdog);
    report.done(budget)
}

/// How long a child works: the word for its role.
fn length(budget: &Budget, row: &Row, quick: bool) -> String {
    match budget.length {
        Length::For(time) if row.name == mixed::NAME && budget.replay.is_some() => time.as_secs().to_string(),
        _ if quick => "quick".to_owned(),
        _ => "full".to_owned(),
    }
}

/// The rules that a row breaks whose child has said `text`.
fn faults(of: &impl Fn(&str) -> u64, promise: u64, text: &str) -> Vec<String> {
    let said = |begin: &str| text.lines().find_map(|line| line.strip_prefix(begin)).unwrap_or("nothing said");
    let mut broken = Vec::new();
    if of("rss") > promise + of("caller") + of("owned") + of("kept") {
        broken.push(format!(
            "{} MiB resident where {} are promised beside {} of the caller's; at the peak: {}",
            of("rss") / MIB,
            promise / MIB,
            of("caller") / MIB,
            said("PEAK "),
        ));
    }
    if of("unfounded") > 0 {
        let why = said("REFUSED ");
        broken.push(format!("{} writes were refused, and readers held too little: {why}", of("unfounded")));
    }
    let own = if of("preloaded") == 0 { OWN } else { PRELOADED };
    let explained = of("named") + of("anon-caller");
    if of("anon") > explained + explained / 10 + own + of("anon-kept") {
        broken.push(format!(
            "{} MiB of anonymous memory, of which the report names {}, the allocator keeps {} and the caller has {}: {}",
            of("anon") / MIB,
            of("named") / MIB,
            of("anon-kept") / MIB,
            of("anon-caller") / MIB,
            said("ANON "),
        ));
    }
    if of("in-use") + of("anon-caller") > of("anon-around") + of("anon-around") / 10 + own {
        broken.push(format!(
            "the report names {} MiB, and the anonymous memory is {}: {}",
            of("named") / MIB,
            of("anon") / MIB,
            said("ANON "),
        ));
    }
    broken
}

/// One row under one cap.
fn one(budget: &Budget, row: &Row, cap: u64, quick: bool) -> Result<Shown, String> {
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let length = length(budget, row, quick);
    let place = folder.path().to_string_lossy().into_owned();
    let cap_bytes = (cap * MIB).to_string();
    let text = children::answer(budget, &["hostile", row.name, &cap_bytes, &length, &place])?;
    let all = figures(&text).ok_or_else(|| format!("the child said {text:?}"))?;
    let of = |name: &str| all.get(name).copied().unwrap_or_default();
    let theirs = if quick { None } else { rocks::figures(row.name, of("cap"), folder.path()) };
    let promise = of("cap") + of("cap") / 10 + 32 * MIB;
    let within = of("rss") <= promise + of("caller");
    let mut broken = faults(&of, promise, &text);
    let mib = |name: &str| format!("{}", of(name) / MIB);
    let mut cells = vec![row.name.to_owned(), mib("cap"), (promise / MIB).to_string()];
    cells.extend(["rss", "anon", "caller", "named", "owned", "kept", "rest"].map(mib));
    cells.push(theirs.as_ref().map_or("-".to_owned(), |theirs| (theirs.peak / MIB).to_string()));
    cells.push(of("refused").to_string());
    cells.push(format!("{:.1}", of("millis") as f64 / 1000.0));
    let verdict = match (broken.is_empty(), within) {
        (false, _) => "BROKEN",
        (true, true) => "held",
        (true, false) => "named",
    };
    cells.push(verdict.to_owned());
    if let Some(nanos) = all.get("nanos") {
        cells.push(format!("{:.1} µs each", *nanos as f64 / 1000.0));
    }
    let curve = mixed::curve(&text);
    broken.extend(mixed::slope(&curve));
    let mut more = String::new();
    if !curve.is_empty() {
        more += &format!("\n\n{} under {cap} MiB\n{}", row.name, mixed::table(&curve));
    }
    if let Some(ours) = Cost::find(&text) {
        let theirs = theirs.and_then(|theirs| theirs.families).map(|cost| ("RocksDB", cost));
        let engines: Vec<_> = std::iter::once(("AshlarDB", ours)).chain(theirs).collect();
        more += &format!("\n\n{} under {cap} MiB\n{}", row.name, families::table(&engines));
    }
    Ok(Shown { cells, broken, more })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each rule holds just below its limit, and is broken just above.
    #[test]
    fn every_rule_has_its_limit() {
        let sound = [
            ("rss", 160 * MIB),
            ("caller", 10 * MIB),
            ("owned", 30 * MIB),
            ("kept", 20 * MIB),
            ("anon", 138 * MIB),
            ("anon-around", 138 * MIB),
            ("named", 90 * MIB),
            ("in-use", 80 * MIB),
            ("anon-caller", 10 * MIB),
            ("anon-kept", 20 * MIB),
            ("unfounded", 0),
        ];
        let told = |name: &str, change: i64| {
            let of = |asked: &str| {
                let value = sound.iter().find(|(name, _)| *name == asked).map_or(0, |(_, value)| *value);
                if asked == name { value.saturating_add_signed(change) } else { value }
            };
            faults(&of, 100 * MIB, "")
        };
        assert_eq!(told("", 0), [""; 0]);
        assert!(told("rss", 1)[0].contains("are promised"));
        assert!(told("unfounded", 1)[0].contains("were refused"));
        assert!(told("anon", 1)[0].contains("of which the report names 90"));
        let most = (138 * MIB + 138 * MIB / 10 + OWN - 10 * MIB) - 80 * MIB;
        assert_eq!(told("in-use", most as i64), [""; 0]);
        assert!(told("in-use", most as i64 + 1)[0].contains("the report names"));
    }
}
