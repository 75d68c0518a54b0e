//! Prints the table of names: lists, explanations, and most of the page `docs/options.md`.

use super::database::DATABASE;
use super::family::FAMILY;
use super::nested::{COMPRESSION, FIFO, METADATA_CACHE, UNIVERSAL};
use super::operation::{COMPACT_FILES, COMPACT_RANGE, FLUSH, READ, WRITE};
use super::row::{AnswerKind, Group, Range, Row};
use super::table::TABLE;
use ashlar_base::nearest::nearest;
use std::fmt::Write;

/// A row of the table, for display.
#[derive(Clone, Debug, PartialEq)]
pub struct OptionName {
    /// The struct of RocksDB that has the name.
    pub group: Group,
    /// RocksDB's name.
    pub name: &'static str,
    /// How the engine treats a value.
    pub answer: AnswerKind,
    /// Our setting, as a path; for used and mapped names.
    pub onto: Option<&'static str>,
    /// The values the setting takes.
    pub range: Option<Range>,
    /// Our default, in RocksDB's words.
    pub default: Option<String>,
    /// RocksDB 11.8's default; empty when its OPTIONS file has none.
    pub rocksdb_default: &'static str,
    /// Whether RocksDB can change it while the database is open.
    pub live: bool,
    /// The effect of the option, or the reason why it has no effect.
    pub text: &'static str,
}

fn rows<T: Default>(group: Group, rows: &'static [Row<T>]) -> impl Iterator<Item = OptionName> {
    rows.iter().map(move |row| OptionName {
        group,
        name: row.name,
        answer: row.kind(),
        onto: row.setting().map(|s| s.onto),
        range: row.setting().map(|s| s.range),
        default: row.setting().and_then(|s| (s.show)(&T::default())),
        rocksdb_default: row.default,
        live: row.live,
        text: row.text,
    })
}

/// The whole table, group by group.
pub fn option_names() -> Vec<OptionName> {
    rows(Group::Database, DATABASE)
        .chain(rows(Group::Family, FAMILY))
        .chain(rows(Group::Table, TABLE))
        .chain(rows(Group::MetadataCache, METADATA_CACHE))
        .chain(rows(Group::Compression, COMPRESSION))
        .chain(rows(Group::Universal, UNIVERSAL))
        .chain(rows(Group::Fifo, FIFO))
        .chain(rows(Group::Read, READ))
        .chain(rows(Group::Write, WRITE))
        .chain(rows(Group::Flush, FLUSH))
        .chain(rows(Group::CompactRange, COMPACT_RANGE))
        .chain(rows(Group::CompactFiles, COMPACT_FILES))
        .collect()
}

/// The rows of a name, in every group that has it; `Err` with the nearest name when no group has it.
pub fn explain(name: &str) -> Result<String, Option<&'static str>> {
    let bare = name.rsplit('.').next().unwrap_or(name);
    let all = option_names();
    let found: Vec<&OptionName> = all.iter().filter(|o| o.name == bare).collect();
    if found.is_empty() {
        return Err(nearest(bare, all.iter().map(|o| o.name)));
    }
    Ok(found.into_iter().map(OptionName::explain).collect::<Vec<_>>().join("\n"))
}

impl OptionName {
    /// A few lines.
    fn explain(&self) -> String {
        let mut out = format!("{} ({})\n  {}\n", self.name, self.group.rocksdb_struct(), self.text);
        let mut line = |what: &str, value: &str| {
            // Writing to a String cannot fail.
            let _ = writeln!(out, "  {what:<18}{value}");
        };
        line("answer", self.answer_sentence());
        if let Some(onto) = self.onto {
            line("setting", onto);
        }
        if let Some(range) = self.range {
            line("values", &range.to_string());
        }
        if let Some(default) = &self.default {
            line("default", default);
        }
        if !self.rocksdb_default.is_empty() {
            line("RocksDB's default", self.rocksdb_default);
        }
        line("while open", self.change_sentence());
        out
    }

    fn answer_sentence(&self) -> &'static str {
        match self.answer {
            AnswerKind::Used => "used: a setting of AshlarDB means the same",
            AnswerKind::Mapped => "mapped: a different AshlarDB setting serves the same purpose",
            AnswerKind::Ignored => "ignored: any valid value is accepted and has no effect",
            AnswerKind::Unserved => {
                "unserved: accepted and kept for RocksDB, without effect; the open's report names it"
            }
            AnswerKind::Refused => "refused: only the value that switches the feature off is accepted",
        }
    }

    fn change_sentence(&self) -> &'static str {
        match (self.group, self.live) {
            (Group::Read | Group::Write | Group::Flush | Group::CompactRange | Group::CompactFiles, _) => {
                "given per call"
            }
            (_, true) => "changes at once",
            (_, false) => "does not change: it is given at open",
        }
    }
}

/// The number of names per treatment, as a Markdown table.
pub fn table() -> String {
    let all = option_names();
    let mut out = String::from(PAGE_HEAD);
    out.push_str(
        "| group | in RocksDB | used | mapped | ignored | unserved | refused | all |\n|---|---|--:|--:|--:|--:|--:|--:|\n",
    );
    let count = |group: Option<Group>, kind: Option<AnswerKind>| {
        let fits = |o: &&OptionName| group.is_none_or(|g| o.group == g) && kind.is_none_or(|k| o.answer == k);
        all.iter().filter(fits).count()
    };
    for group in Group::ALL.into_iter().map(Some).chain([None]) {
        let (word, name) = group.map_or(("all", ""), |g| (g.word(), g.rocksdb_struct()));
        let counts = AnswerKind::ALL.map(|kind| count(group, Some(kind)).to_string()).join(" | ");
        let _ = writeln!(out, "| {word} | {name} | {counts} | {} |", count(group, None));
    }
    for group in Group::ALL {
        let _ = write!(out, "\n## {} (`{}`)\n\n", group.word(), group.rocksdb_struct());
        out.push_str("| name | answer | setting, values | default | RocksDB's | open | what it does, or why nothing |\n");
        out.push_str("|---|---|---|---|---|---|---|\n");
        for o in all.iter().filter(|o| o.group == group) {
            let setting = match (o.onto, o.range) {
                (Some(onto), Some(range)) => format!("`{onto}`: {range}"),
                _ => String::new(),
            };
            let cells = [
                format!("`{}`", o.name),
                o.answer.word().to_owned(),
                setting,
                code(o.default.as_deref().unwrap_or_default()),
                code(o.rocksdb_default),
                if o.live { "changes" } else { "" }.to_owned(),
                o.text.to_owned(),
            ];
            let _ = writeln!(out, "| {} |", cells.map(|c| c.replace('|', "\\|")).join(" | "));
        }
    }
    out
}

fn code(text: &str) -> String {
    match text {
        "" => String::new(),
        long if long.len() > 40 => "`{…}`".to_owned(),
        short => format!("`{short}`"),
    }
}

const PAGE_HEAD: &str = "\
# Options by RocksDB's names

Made by `ashlar options page > docs/options.md` from the table in `crates/ashlar-options/src/names`; a test holds the
two together. Every name of RocksDB 6.29 to 11.8 has one of five answers:

- **used**: a setting of AshlarDB means the same;
- **mapped**: a different AshlarDB setting serves the same purpose;
- **ignored**: any valid value is accepted and has no effect: the engine always behaves so, or decides by itself;
- **unserved**: accepted without effect, though RocksDB acts on it; the report of an open names such a value of a directory;
- **refused**: only the value that switches the feature off is accepted, because AshlarDB does not have the feature.

An open never refuses the OPTIONS file of a directory. It writes the file's values of ignored, unserved and refused names back unchanged.

Option strings (`write_buffer_size=64M;compression=kZSTD`) and OPTIONS files use these names. `ashlar options explain NAME` shows a row.

";
