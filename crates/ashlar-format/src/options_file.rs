//! OPTIONS files: text in sections.
//!
//! ```text
//! [Version]                                    # a comment begins with '#', unless '\' precedes it
//!   rocksdb_version=7.8.3
//! [DBOptions]
//!   name=value
//! [CFOptions "default"]
//! [TableOptions/BlockBasedTable "default"]
//! ```
//! 1. Order of sections and of names in a section is kept; values are the text of the file, still escaped, since a
//!    nested object's structure shows only there. Families' names are unescaped.
//! 2. Exactly one `[DBOptions]`; the first `[CFOptions]` is that of `default`; a family's tables follow it. The last
//!    section is one of tables: a file without it was cut.
//! 3. A comment `#@ name=value` is a setting of AshlarDB that has no name in RocksDB.
//! 4. Escapes: `\` before `\`, `#` and `:`; `\n` and `\r`. A nested object is `{name=value;…}`.
//!
//! Source: RocksDB `options/options_parser.cc`, `options/options_helper.cc`.

#![deny(clippy::indexing_slicing)]

use ashlar_base::Malformed;
use std::collections::HashSet;
use std::fmt::Write;

/// The beginning of a comment with a setting of AshlarDB.
const OWN: &str = "#@";

const HEAD: &str = "# Written by AshlarDB in the form of RocksDB's OPTIONS files.\n";

/// What a section is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SectionKind {
    /// The program that wrote the file.
    Version,
    /// Options of the whole database.
    Db,
    /// Options of a column family.
    Family {
        /// Its name.
        name: String,
    },
    /// Options of a family's tables.
    Table {
        /// The kind of table, such as `BlockBasedTable`.
        kind: String,
        /// The family's name.
        family: String,
    },
}

/// One section: names and values in the order of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// What it is about.
    pub kind: SectionKind,
    /// Names and escaped values.
    pub entries: Vec<(String, String)>,
}

impl Section {
    /// Adds the text of the section, as [`OptionsFile::print`] has it.
    pub fn print_to(&self, out: &mut String) {
        // Writing to a String cannot fail.
        let _ = match &self.kind {
            SectionKind::Version => writeln!(out, "[Version]"),
            SectionKind::Db => writeln!(out, "[DBOptions]"),
            SectionKind::Family { name } => writeln!(out, "[CFOptions \"{}\"]", escape(name)),
            SectionKind::Table { kind, family } => {
                writeln!(out, "[TableOptions/{kind} \"{}\"]", escape(family))
            }
        };
        for (name, value) in &self.entries {
            let _ = writeln!(out, "  {name}={value}");
        }
        out.push('\n');
    }

    /// An empty section.
    pub fn new(kind: SectionKind) -> Self {
        Section { kind, entries: Vec::new() }
    }

    /// The escaped value of a name; the last one when it is given twice.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.entries.iter().rev().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }

    /// Appends a name and an escaped value.
    pub fn push(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.entries.push((name.into(), value.into()));
    }
}

/// A whole OPTIONS file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OptionsFile {
    /// Our own settings: names and values, neither of which has a line break.
    pub own: Vec<(String, String)>,
    /// The sections in order.
    pub sections: Vec<Section>,
}

impl OptionsFile {
    /// Reads a file's text.
    ///
    /// # Errors
    /// `Malformed` with the offset of the line: a statement that is neither section nor `name=value`, an unknown
    /// section, or sections missing, doubled or out of order.
    pub fn parse(text: &str) -> Result<OptionsFile, Malformed> {
        let mut file = OptionsFile::default();
        // Editors may have put a byte-order mark in front.
        let marked = text.strip_prefix('\u{feff}');
        let (mut seen, mut at) = (HashSet::new(), marked.map_or(0, |behind| text.len() - behind.len()));
        for raw in marked.unwrap_or(text).split_inclusive('\n') {
            if let Some((name, value)) = raw.trim().strip_prefix(OWN).and_then(|own| own.split_once('=')) {
                file.own.push((name.trim().to_owned(), value.trim().to_owned()));
            }
            let line = without_comment(raw).trim();
            let wrong = |what| Malformed { field: "options file", at, what };
            if let Some(title) = line.strip_prefix('[') {
                let title = title.strip_suffix(']').ok_or_else(|| wrong("a section without ]"))?;
                let kind = parse_title(title).ok_or_else(|| wrong("unknown section"))?;
                check_order(&seen, &kind).map_err(wrong)?;
                seen.insert(kind.clone());
                file.sections.push(Section::new(kind));
            } else if !line.is_empty() {
                let (name, value) = line.split_once('=').ok_or_else(|| wrong("a statement without ="))?;
                let section =
                    file.sections.last_mut().ok_or_else(|| wrong("a statement before any section"))?;
                section.push(name.trim(), value.trim());
            }
            at += raw.len();
        }
        let missing = |what| Malformed { field: "options file", at, what };
        file.db().ok_or_else(|| missing("no [DBOptions]"))?;
        file.family("default").ok_or_else(|| missing("no [CFOptions \"default\"]"))?;
        if file.sections.last().is_some_and(|last| matches!(last.kind, SectionKind::Family { .. })) {
            return Err(missing("a family without [TableOptions/...]: the end of the file is missing"));
        }
        Ok(file)
    }

    /// The section of the database's options.
    pub fn db(&self) -> Option<&Section> {
        self.sections.iter().find(|s| s.kind == SectionKind::Db)
    }

    /// The section of a family.
    pub fn family(&self, family: &str) -> Option<&Section> {
        self.sections.iter().find(|s| matches!(&s.kind, SectionKind::Family { name } if name == family))
    }

    /// The first section of table options of a family.
    pub fn table(&self, of: &str) -> Option<&Section> {
        self.sections.iter().find(|s| matches!(&s.kind, SectionKind::Table { family, .. } if family == of))
    }

    /// The text of the file, as [`OptionsFile::parse`] reads it back.
    pub fn print(&self) -> String {
        let mut out = String::from(HEAD);
        // Writing to a String cannot fail.
        for (name, value) in &self.own {
            let _ = writeln!(out, "{OWN} {name}={value}");
        }
        self.sections.iter().for_each(|section| section.print_to(&mut out));
        out
    }
}

fn check_order(seen: &HashSet<SectionKind>, next: &SectionKind) -> Result<(), &'static str> {
    if seen.contains(next) {
        return Err("a section given twice");
    }
    let has_family = |name: &str| seen.contains(&SectionKind::Family { name: name.to_owned() });
    match next {
        SectionKind::Family { name } if name != "default" && !has_family("default") => {
            Err("a family before \"default\"")
        }
        SectionKind::Table { family, .. } if !has_family(family) => Err("table options before their family"),
        _ => Ok(()),
    }
}

fn parse_title(title: &str) -> Option<SectionKind> {
    let (word, argument) = match title.split_once('"') {
        None => (title.trim(), None),
        Some((word, rest)) => (word.trim(), Some(unescape(rest.trim_end().strip_suffix('"')?))),
    };
    match (word, argument) {
        ("Version", None) => Some(SectionKind::Version),
        ("DBOptions", None) => Some(SectionKind::Db),
        ("CFOptions", Some(name)) => Some(SectionKind::Family { name }),
        (_, Some(family)) => {
            let kind = word.strip_prefix("TableOptions/")?.to_owned();
            Some(SectionKind::Table { kind, family })
        }
        _ => None,
    }
}

/// A line up to its comment: the first `#` that no backslash escapes.
fn without_comment(line: &str) -> &str {
    let mut escaped = false;
    for (i, c) in line.char_indices() {
        match c {
            '#' if !escaped => return line.get(..i).unwrap_or(line),
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    line
}

/// Makes a text fit a value: see the module's rule 4.
pub fn escape(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    for c in raw.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\\' | '#' | ':' => out.extend(['\\', c]),
            _ => out.push(c),
        }
    }
    out
}

/// The inverse of [`escape`]. A backslash before any other character means that character.
pub fn unescape(escaped: &str) -> String {
    let mut out = String::with_capacity(escaped.len());
    let mut chars = escaped.chars();
    while let Some(c) = chars.next() {
        out.push(match c {
            '\\' => match chars.next() {
                Some('n') => '\n',
                Some('r') => '\r',
                Some(other) => other,
                None => '\\',
            },
            _ => c,
        });
    }
    out
}

/// Splits the text of an object, with or without its outer braces, into names and values: `{a=1;b={c=2;};}`. Values
/// that are objects keep their braces.
///
/// # Errors
/// `Malformed` for a part without `=` and for braces that do not match. Nesting costs no stack.
pub fn split_object(text: &str) -> Result<Vec<(String, String)>, Malformed> {
    let trimmed = text.trim();
    let body = match trimmed.strip_prefix('{') {
        Some(rest) => rest.strip_suffix('}').ok_or(wrong_object(0, "a brace that is not closed"))?,
        None => trimmed,
    };
    let mut pairs = Vec::new();
    let (mut depth, mut from) = (0usize, 0usize);
    for (i, c) in body.char_indices().chain([(body.len(), ';')]) {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.checked_sub(1).ok_or(wrong_object(i, "a brace that was not opened"))?,
            ';' if depth == 0 => {
                let part = body.get(from..i).unwrap_or_default().trim();
                if !part.is_empty() {
                    let (name, value) = part.split_once('=').ok_or(wrong_object(from, "a part without ="))?;
                    pairs.push((name.trim().to_owned(), value.trim().to_owned()));
                }
                from = i + 1;
            }
            _ => {}
        }
    }
    if depth != 0 { Err(wrong_object(body.len(), "a brace that is not closed")) } else { Ok(pairs) }
}

fn wrong_object(at: usize, what: &'static str) -> Malformed {
    Malformed { field: "option object", at, what }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOLDEN: &str = include_str!("../../../golden/rocksdb-7.8.3/column_families/OPTIONS-000017");

    #[test]
    fn reads_rocksdbs_file_and_its_own() {
        let file = OptionsFile::parse(GOLDEN).unwrap();
        assert_eq!(file.sections.len(), 8);
        assert_eq!(file.db().unwrap().get("max_open_files"), Some("-1"));
        assert_eq!(file.family("two").unwrap().get("comparator"), Some("leveldb.BytewiseComparator"));
        assert_eq!(file.table("one").unwrap().get("block_size"), Some("4096"));
        assert!(file.family("gone").is_none());
        assert_eq!(OptionsFile::parse(&file.print()).as_ref(), Ok(&file));
        // A byte-order mark in front, without which a directory of values with times took values without.
        assert_eq!(OptionsFile::parse(&format!("\u{feff}{GOLDEN}")), Ok(file));
    }

    #[test]
    fn smallest_file() {
        let commented = "# x\n [DBOptions] # y\r\n\n a = b\\#c # z\n[CFOptions  \"default\" ]\n[TableOptions/X \"default\"]\n";
        let file = OptionsFile::parse(commented).unwrap();
        assert_eq!(file.db().unwrap().get("a"), Some("b\\#c"));
        let own = OptionsFile { own: vec![("ours".to_owned(), "1".to_owned())], ..file };
        assert_eq!(OptionsFile::parse(&own.print()), Ok(own));
    }

    #[test]
    fn names_what_is_wrong() {
        let what = |text: &str| OptionsFile::parse(text).unwrap_err().what;
        assert_eq!(what(""), "no [DBOptions]");
        assert_eq!(what("[DBOptions]"), "no [CFOptions \"default\"]");
        let cut = what("[DBOptions]\n[CFOptions \"default\"]\nmerge_operator=StringAppendOperator");
        assert!(cut.contains("the end of the file is missing"), "{cut}");
        assert_eq!(what("[DBOptions]\n[DBOptions]"), "a section given twice");
        assert_eq!(what("[DBOptions]\n[CFOptions \"x\"]"), "a family before \"default\"");
        assert_eq!(what("[TableOptions/X \"default\"]"), "table options before their family");
        assert_eq!(what("[Other]"), "unknown section");
        assert_eq!(what("[DBOptions"), "a section without ]");
        assert_eq!(what("[DBOptions]\nx"), "a statement without =");
        assert_eq!(what("x=1"), "a statement before any section");
        assert_eq!(OptionsFile::parse("[DBOptions]\nx").unwrap_err().at, 12);
    }

    #[test]
    fn no_cut_panics() {
        for end in (0..GOLDEN.len()).step_by(97) {
            let _ = OptionsFile::parse(&GOLDEN[..end]);
        }
    }

    #[test]
    fn escapes_return() {
        for raw in ["", "a:b#c\\d\n\r", "\\n", "ünï#"] {
            assert_eq!(unescape(&escape(raw)), raw);
        }
        assert_eq!(escape("a:b\n"), "a\\:b\\n");
    }

    #[test]
    fn objects_split() {
        let pairs = split_object("{a=1;b={c=2;d={e=3;};};f=;}").unwrap();
        let want = [("a", "1"), ("b", "{c=2;d={e=3;};}"), ("f", "")];
        assert_eq!(pairs, want.map(|(n, v)| (n.to_owned(), v.to_owned())));
        assert_eq!(split_object("a=1").unwrap().len(), 1);
        for bad in ["{a=1", "a=1}", "{a={b=1;}", "{x}"] {
            assert!(split_object(bad).is_err(), "{bad}");
        }
    }
}
