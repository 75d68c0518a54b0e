//! A drawn case as data, and as the line that replays it.
//!
//! ```text
//! 11.8.1 | db NAME=VALUE;… | family NAME NAME=VALUE;… | with ttl 86400 | read NAME NAME | do STEP, STEP
//!        | ours default|stored close|kill: STEP, … | theirs original|stored close|kill: STEP, …
//! ```
//! A step is `bulk …`, `flush FAMILY`, `compact FAMILY`, and in RocksDB's history `close` and `kill`, each followed by
//! another open. `@` in a value is the folder of the case. A dot stands for a group: `table.block_size=1024` is
//! `block_based_table_factory={block_size=1024}`. `db_paths` and `cf_paths` are lists `PATH:SIZE,…`.

use ashlar_testkit::JudgeVersion;
use ashlar_testkit::ops::{Bulk, BulkKind};
use std::collections::BTreeMap;
use std::fmt;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Setting {
    pub(super) name: String,
    pub(super) value: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Family {
    pub(super) name: String,
    pub(super) settings: Vec<Setting>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Bulk(Bulk),
    Flush(String),
    Compact(String),
    Close,
    Kill,
}

/// One visit to the directory, and how it ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Turn {
    /// With the settings of the newest OPTIONS file; else our defaults, or RocksDB's original settings.
    pub(super) stored: bool,
    pub(super) killed: bool,
    pub(super) steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) version: JudgeVersion,
    pub(super) db: Vec<Setting>,
    pub(super) families: Vec<Family>,
    /// Words behind `with` for the judge: `ttl SECONDS`, `transactions POLICY`, or nothing.
    pub(super) wrapper: String,
    /// Read options with which RocksDB reads.
    pub(super) reads: Vec<String>,
    pub(super) history: Vec<Step>,
    /// Ours, then theirs.
    pub(super) rounds: Vec<(Turn, Turn)>,
}

impl Setting {
    pub(super) fn new(name: &str, value: &str) -> Setting {
        Setting { name: name.to_owned(), value: value.to_owned() }
    }
}

/// Settings as one option string, groups in braces; places are left out, which no option string has.
pub(super) fn option_string(settings: &[Setting]) -> String {
    let mut groups: BTreeMap<&str, String> = BTreeMap::new();
    let mut out = String::new();
    for Setting { name, value } in settings.iter().filter(|s| !is_place(&s.name)) {
        match name.split_once('.') {
            Some((group, inner)) => *groups.entry(group).or_default() += &format!("{inner}={value};"),
            None => out += &format!("{name}={value};"),
        }
    }
    for (group, inner) in groups {
        let group = if group == "table" { "block_based_table_factory" } else { group };
        out += &format!("{group}={{{inner}}};");
    }
    out
}

pub(super) fn is_place(name: &str) -> bool {
    name == "db_paths" || name == "cf_paths"
}

/// The directories and target sizes of a place, `PATH:SIZE,…`.
pub(super) fn places(value: &str) -> impl Iterator<Item = (&str, u64)> {
    value.split(',').filter_map(|part| part.rsplit_once(':')).map(|(path, n)| (path, n.parse().unwrap_or(0)))
}

/// Splits at the semicolons that stand in no braces.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut from) = (Vec::new(), 0_i32, 0);
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ';' if depth == 0 => {
                parts.push(&text[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[from..]);
    parts.retain(|part| !part.trim().is_empty());
    parts
}

fn settings(text: &str) -> Result<Vec<Setting>, String> {
    let each = |part: &str| {
        let (name, value) = part.split_once('=').ok_or_else(|| format!("not NAME=VALUE: {part}"))?;
        Ok(Setting::new(name.trim(), value.trim()))
    };
    split(text).into_iter().map(each).collect()
}

fn steps(text: &str) -> Result<Vec<Step>, String> {
    let each = |text: &str| match text.split_once(' ').unwrap_or((text, "")) {
        ("flush", family) => Ok(Step::Flush(family.to_owned())),
        ("compact", family) => Ok(Step::Compact(family.to_owned())),
        ("close", _) => Ok(Step::Close),
        ("kill", _) => Ok(Step::Kill),
        _ => text.parse().map(Step::Bulk),
    };
    text.split(',').map(str::trim).filter(|text| !text.is_empty()).map(each).collect()
}

fn turn(text: &str) -> Result<Turn, String> {
    let (how, list) = text.split_once(':').ok_or_else(|| format!("no colon: {text}"))?;
    let (mode, end) = how.split_once(' ').ok_or_else(|| format!("no end: {how}"))?;
    Ok(Turn { stored: mode == "stored", killed: end == "kill", steps: steps(list)? })
}

impl Plan {
    /// Directories of tables that no OPTIONS file of RocksDB names: its programs must give them at every open.
    pub(super) fn has_places(&self) -> bool {
        let of_families = self.families.iter().flat_map(|family| &family.settings);
        self.db.iter().chain(of_families).any(|setting| is_place(&setting.name))
    }

    /// Takes out what RocksDB writes and does not read again: merges of families without an operator; in families of cuckoo
    /// tables all but deletes and puts of values of one length, which a flush passes over; wide columns of families that take
    /// no writes, which RocksDB logs before it refuses them; checks of memtables that are no skiplists, which no scan passes.
    pub(super) fn drop_what_rocksdb_loses(&mut self) {
        for family in &mut self.families {
            let is_skiplist = family
                .settings
                .iter()
                .all(|own| own.name != "memtable_factory" || own.value.contains("skip_list"));
            let is_check = |name: &str| {
                name == "paranoid_memory_checks" || name == "memtable_verify_per_key_checksum_on_seek"
            };
            family.settings.retain(|own| is_skiplist || !is_check(&own.name));
        }
        let has = |family: &Family, name: &str, value: &str| {
            family.settings.iter().any(|own| own.name == name && own.value.contains(value))
        };
        let named = |keep: &dyn Fn(&Family) -> bool| -> Vec<String> {
            self.families.iter().filter(|family| keep(family)).map(|family| family.name.clone()).collect()
        };
        let merging = named(&|family| has(family, "merge_operator", ""));
        let cuckoo = named(&|family| has(family, "table_factory", "CuckooTable"));
        let closed = named(&|family| has(family, "disallow_memtable_writes", "true"));
        let keep = |step: &Step| match step {
            Step::Bulk(bulk) => {
                let plain = matches!(bulk.kind, BulkKind::Put | BulkKind::Delete | BulkKind::Ingest);
                (plain || !cuckoo.contains(&bulk.family))
                    && (bulk.kind != BulkKind::Entity || !closed.contains(&bulk.family))
                    && (bulk.kind != BulkKind::Merge || merging.contains(&bulk.family))
            }
            _ => true,
        };
        let settle = |steps: &mut Vec<Step>| {
            steps.retain(keep);
            for step in steps {
                // Cuckoo tables hold values of one length.
                if let Step::Bulk(bulk) = step
                    && cuckoo.contains(&bulk.family)
                {
                    bulk.bytes = 10;
                }
            }
        };
        settle(&mut self.history);
        for (ours, theirs) in &mut self.rounds {
            settle(&mut ours.steps);
            settle(&mut theirs.steps);
        }
    }

    /// The bulks of all visits, ours and RocksDB's.
    pub(super) fn bulks(&self) -> impl Iterator<Item = &Bulk> {
        let of_rounds = self.rounds.iter().flat_map(|(ours, theirs)| ours.steps.iter().chain(&theirs.steps));
        self.history.iter().chain(of_rounds).filter_map(|step| match step {
            Step::Bulk(bulk) => Some(bulk),
            _ => None,
        })
    }
}

impl std::str::FromStr for Plan {
    type Err = String;

    fn from_str(text: &str) -> Result<Plan, String> {
        let mut sections = text.split(" | ").map(str::trim);
        let version = sections.next().unwrap_or_default();
        let is_version = |v: &JudgeVersion| v.name().ends_with(version);
        let version = JudgeVersion::ALL.into_iter().find(is_version);
        let mut plan = Plan {
            version: version.ok_or("the first section is a version of RocksDB")?,
            db: Vec::new(),
            families: Vec::new(),
            wrapper: String::new(),
            reads: Vec::new(),
            history: Vec::new(),
            rounds: Vec::new(),
        };
        let mut ours = None;
        for section in sections {
            let (word, rest) = section.split_once(' ').unwrap_or((section, ""));
            match word {
                "db" => plan.db = settings(rest)?,
                "family" => {
                    let (name, rest) = rest.split_once(' ').unwrap_or((rest, ""));
                    plan.families.push(Family { name: name.to_owned(), settings: settings(rest)? });
                }
                "with" => rest.clone_into(&mut plan.wrapper),
                "read" => plan.reads = rest.split_whitespace().map(str::to_owned).collect(),
                "do" => plan.history = steps(rest)?,
                "ours" => ours = Some(turn(rest)?),
                "theirs" => plan.rounds.push((ours.take().ok_or("theirs before ours")?, turn(rest)?)),
                _ => return Err(format!("no such section: {section}")),
            }
        }
        Ok(plan)
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Bulk(bulk) => write!(f, "{bulk}"),
            Step::Flush(family) => write!(f, "flush {family}"),
            Step::Compact(family) => write!(f, "compact {family}"),
            Step::Close => f.write_str("close"),
            Step::Kill => f.write_str("kill"),
        }
    }
}

fn list(steps: &[Step]) -> String {
    steps.iter().map(Step::to_string).collect::<Vec<_>>().join(", ")
}

fn joined(settings: &[Setting]) -> String {
    settings.iter().map(|s| format!("{}={}", s.name, s.value)).collect::<Vec<_>>().join(";")
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.version.name().trim_start_matches("rocksdb-"))?;
        if !self.db.is_empty() {
            write!(f, " | db {}", joined(&self.db))?;
        }
        for family in &self.families {
            write!(f, " | family {} {}", family.name, joined(&family.settings))?;
        }
        if !self.wrapper.is_empty() {
            write!(f, " | with {}", self.wrapper)?;
        }
        if !self.reads.is_empty() {
            write!(f, " | read {}", self.reads.join(" "))?;
        }
        write!(f, " | do {}", list(&self.history))?;
        for (ours, theirs) in &self.rounds {
            for (engine, turn, fresh) in [("ours", ours, "default"), ("theirs", theirs, "original")] {
                let mode = if turn.stored { "stored" } else { fresh };
                let end = if turn.killed { "kill" } else { "close" };
                write!(f, " | {engine} {mode} {end}: {}", list(&turn.steps))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_reads_back() {
        let line = "11.8.1 | db recycle_log_file_num=4;db_paths=@/p0:100,@/p1:1000 | family default \
                    num_levels=3;table.block_size=1;compression_opts={level=1;strategy=2} | with ttl 86400 | read pin_data tailing \
                    | do bulk put default 0 10 20 3, flush default, kill \
                    | ours stored kill: compact default | theirs original close: bulk delete default 0 2 0 1 nowal";
        let plan: Plan = line.parse().unwrap();
        assert_eq!(plan.to_string(), line);
        let text = option_string(&plan.families[0].settings);
        assert_eq!(
            text,
            "num_levels=3;compression_opts={level=1;strategy=2};block_based_table_factory={block_size=1;};"
        );
        assert_eq!(option_string(&plan.db), "recycle_log_file_num=4;");
    }
}
