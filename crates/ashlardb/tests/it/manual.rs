//! The manual (`docs/manual.md`) is whole: every method of the door is in it, every entry has an example, and the tests it
//! names are there. The examples themselves run as the crate's documentation tests.

use ashlar_testkit::report::figure;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

const MANUAL: &str = include_str!("../../../../docs/manual.md");
const GUARANTEES: &str = include_str!("../../../../docs/guarantees.md");
/// The section with the table of tests.
const TABLE: &str = "What holds it";
/// The section with RocksDB's contents.
const CONTENTS: &str = "RocksDB's manual, entry by entry";

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Heading and text of every section.
fn sections() -> Vec<(&'static str, &'static str)> {
    MANUAL.split("\n## ").skip(1).filter_map(|section| section.split_once('\n')).collect()
}

/// The chapters: all sections but the two tables.
fn chapters() -> Vec<(&'static str, &'static str)> {
    sections().into_iter().filter(|(heading, _)| ![TABLE, CONTENTS].contains(heading)).collect()
}

/// The rows of the table in a section, their cells trimmed.
fn rows(section: &str) -> Vec<Vec<&'static str>> {
    let table = sections().into_iter().find(|(heading, _)| *heading == section).unwrap().1;
    let rows = table.lines().filter(|line| line.starts_with("| ")).skip(1);
    rows.map(|row| row.trim_matches('|').split('|').map(str::trim).collect()).collect()
}

/// Is there a test of that name? `crate: module::path::name`, in `tests/it` or `src`.
fn is_there(reference: &str) -> bool {
    let Some((package, path)) = reference.split_once(": ") else { return false };
    let Some((module, name)) = path.rsplit_once("::") else { return false };
    let module = module.replace("::", "/");
    let places = ["tests/it", "src"].map(|root| crates().join(package).join(root));
    let files =
        places.iter().flat_map(|root| [root.join(format!("{module}.rs")), root.join(&module).join("mod.rs")]);
    let text: String = files.filter_map(|file| std::fs::read_to_string(file).ok()).collect();
    let test = format!("#[test]\nfn {name}(");
    text.lines().map(|line| format!("{}\n", line.trim())).collect::<String>().contains(&test)
}

/// What stands between single backquotes and looks like a test.
fn references(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2).filter(|quoted| quoted.contains(": ") && quoted.contains("::"))
}

#[test]
fn every_entry_has_an_example_and_a_row() {
    let headings: Vec<&str> = chapters().iter().map(|(heading, _)| *heading).collect();
    let rows = rows(TABLE);
    assert_eq!(rows.iter().map(|row| row[0]).collect::<Vec<_>>(), headings);
    for (heading, text) in chapters() {
        assert!(text.contains("\n```rust\n"), "{heading}: no example that runs");
    }
    let (mut both, mut cells) = (0, 0);
    for row in &rows {
        assert!(row.len() == 4 && row.iter().all(|cell| !cell.is_empty()), "{row:?}");
        let judged = row[2..]
            .iter()
            .filter(|cell| cell.contains("judge") || cell.contains('`') || cell.contains("golden"));
        cells += judged.count();
        both +=
            usize::from(row[2..].iter().all(|cell| !cell.contains("nothing") && !cell.contains("ends with")));
    }
    figure(&format!(
        "manual: {} entries, each with an example and an oracle; {both} go both ways, {cells} sides judged",
        rows.len()
    ));
}

#[test]
fn each_entry_of_rocksdbs_manual_has_its_chapters() {
    let rows = rows(CONTENTS);
    assert_eq!(rows.len(), 72);
    let headings: Vec<&str> = chapters().iter().map(|(heading, _)| *heading).collect();
    for row in &rows {
        let [entry, here, later] = row.as_slice() else { panic!("{row:?}") };
        assert!(*here != "-" || *later != "-", "{entry}: neither here nor later");
        // A link is to a page of its own.
        for chapter in
            here.split("; ").filter(|name| !["-", "this manual"].contains(name) && !name.starts_with('['))
        {
            assert!(headings.contains(&chapter), "{entry}: no chapter '{chapter}'");
        }
        for link in [here, later].iter().filter_map(|cell| cell.split_once("](")?.1.split_once(')')) {
            assert!(crates().join("../docs").join(link.0).exists(), "{entry}: no page {}", link.0);
        }
    }
    let whole = rows.iter().filter(|row| row[1] != "-" && row[2] == "-").count();
    figure(&format!("RocksDB's manual: {} entries, {whole} of them without a remainder", rows.len()));
}

#[test]
fn what_the_manual_names_is_there() {
    let table = sections().into_iter().find(|(heading, _)| *heading == TABLE).unwrap().1;
    let named: BTreeSet<&str> = references(table).collect();
    assert!(named.len() > 8, "{named:?}");
    for reference in named {
        assert!(is_there(reference), "no such test: {reference}");
    }
    assert!(!is_there("ashlardb: door::no_such_test") && !is_there("ashlardb: door"));
}

#[test]
fn every_guarantee_names_a_test_that_is_there() {
    for reference in references(GUARANTEES) {
        assert!(is_there(reference), "no such test: {reference}");
    }
    let rows = GUARANTEES.lines().filter(|line| line.starts_with("| ") && !line.ends_with("| held by |"));
    let mut count = 0;
    for row in rows {
        let held = row.trim_matches('|').rsplit('|').next().unwrap_or_default();
        let by = ["crashes", "calls", "damage", "kill", "limits", "passed", "`ashlar"];
        assert!(by.iter().any(|name| held.contains(name)), "held by nothing: {row}");
        count += 1;
    }
    figure(&format!("guarantees: {count} lines, each held by a test"));
}

#[test]
fn every_method_of_the_door_is_in_the_manual() {
    let mut missing = Vec::new();
    for entry in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("src")).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let file = path.file_name().unwrap().to_string_lossy().into_owned();
        for line in text.lines() {
            // The methods of the types, and of the traits with the verbs, whose doc comments stand before them.
            let of_trait =
                line.strip_prefix("    fn ").filter(|_| ["read.rs", "write.rs"].contains(&file.as_str()));
            let Some(rest) = line.split_once("    pub fn ").map(|(_, rest)| rest).or(of_trait) else {
                continue;
            };
            let name = rest.split(['(', '<']).next().unwrap_or_default();
            // Constructors of the types themselves are in the examples.
            if name != "new" && !MANUAL.contains(&format!("{name}(")) {
                missing.push(format!("{}: {name}", path.file_name().unwrap().display()));
            }
        }
    }
    assert!(missing.is_empty(), "not in docs/manual.md: {missing:#?}");
}
