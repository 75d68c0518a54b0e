//! Reads the checkout and asks every rule.

use super::finding::{Finding, excuse};
use super::{layers, order, paths, prose, rows, sizes, words};
use crate::project;
use std::fs;
use std::path::Path;

/// What `--help` says.
pub const HELP: &str = "\
usage: cargo xtask tidy [--ratchet]

  layers         a crate uses crates of lower layers only, and its tests none above it
  module-order   in the engine, ashlar-txn, ashlar-repair, ashlar-observe and the crates of the tree, a module uses only modules above it in the crate's lib.rs
  crate-size     14,000 lines outside tests
  file-size      800 lines; inline-tests: 150 lines of unit tests in a file; function-size: 70 lines outside tests
  unfinished     no todo!, unimplemented!, dbg!; switched-off: no #[ignore]
  unsafe         only in the starred crates; rows: with a row in docs/unsafe.md, as each dependency in docs/dependencies.md
  names          no utils, common, helpers; machine-path: no folder of one machine in any text
  paths          a path in backticks that begins with crates/, docs/, golden/ or xtask/ exists; one of a Source: has the shape of a source file
  prose          plain English in comments, docs and messages: no more breaches than xtask/prose-ratchet.txt allows

--ratchet lowers the counts in xtask/prose-ratchet.txt to what is found.
An exception is a line in xtask/tidy-exceptions.txt: RULE PATH: reason.";

/// The crates whose modules have an order.
const ORDERED: [&str; 8] = [
    "ashlar-tree",
    "ashlar-read",
    "ashlar-compaction",
    "ashlar-observe",
    "ashlar-pressure",
    "ashlar-engine",
    "ashlar-repair",
    "ashlar-txn",
];

const EXCUSES: &str = "xtask/tidy-exceptions.txt";
const RATCHET: &str = "xtask/prose-ratchet.txt";

/// The kinds of files that are read.
const KINDS: [&str; 6] = [".rs", ".md", ".toml", ".txt", ".sh", "run"];

/// Runs the chore.
pub fn main(args: &[String]) -> Result<(), String> {
    match args {
        [] => {}
        [arg] if arg == "--ratchet" => {
            lower_ratchet(&project::root()).map_err(|e| format!("tidy cannot rewrite {RATCHET}: {e}"))?
        }
        [arg, ..] => return Err(format!("tidy takes no {arg}\n\n{HELP}")),
    }
    check()?;
    println!("tidy");
    Ok(())
}

/// Asks every rule; the error lists all findings, one per line.
pub fn check() -> Result<(), String> {
    let root = project::root();
    let findings = findings(&root).map_err(|e| format!("tidy cannot read the checkout: {e}"))?;
    if findings.is_empty() {
        return Ok(());
    }
    let lines: Vec<String> = findings.iter().map(Finding::to_string).collect();
    Err(format!("{}\n{} findings", lines.join("\n"), lines.len()))
}

/// Rewrites the ratchet file with the counts that fell.
fn lower_ratchet(root: &Path) -> std::io::Result<()> {
    let mut counts = prose::Counts::default();
    for path in project::files(root, "", &KINDS)? {
        counts.add(&path.to_string_lossy(), &fs::read_to_string(root.join(&path))?);
    }
    let old = fs::read_to_string(root.join(RATCHET)).unwrap_or_default();
    fs::write(root.join(RATCHET), counts.lowered(&old))
}

fn findings(root: &Path) -> std::io::Result<Vec<Finding>> {
    let read = |path: &str| fs::read_to_string(root.join(path));
    let unsafe_page = read("docs/unsafe.md")?;
    let orders =
        ORDERED.map(|name| read(&format!("crates/{name}/src/lib.rs")).map(|lib| order::modules(&lib)));
    let orders: Vec<_> =
        ORDERED.into_iter().zip(orders.into_iter().collect::<Result<Vec<_>, _>>()?).collect();
    let mut found = rows::check_dependencies(&read("Cargo.toml")?, &read("docs/dependencies.md")?);
    let mut counts = prose::Counts::default();
    let mut lines = sizes::CrateLines::default();
    for path in project::files(root, "", &KINDS)? {
        let name = path.to_string_lossy().into_owned();
        let text = read(&name)?;
        counts.add(&name, &text);
        found.extend(words::check_text(&name, &text));
        if name.ends_with(".rs") || name.ends_with(".md") {
            found.extend(paths::check(&name, &text, |path| root.join(path).exists()));
        }
        if name.ends_with("Cargo.toml") && name != "Cargo.toml" {
            found.extend(layers::check(&name, &text));
        }
        if name.ends_with(".rs") {
            found.extend(sizes::check(&name, &text, is_test_file(&name)));
            if !is_test_file(&name) {
                lines.add(&name, &text);
            }
            found.extend(words::check_source(&name, &text));
            found.extend(rows::check_unsafe(&name, &text, &unsafe_page));
            for (of, order) in &orders {
                if let Some(module) = module_of(of, &name) {
                    found.extend(order::check(&name, &text, &module, order));
                }
            }
        }
    }
    found.extend(lines.check());
    found.extend(counts.check(&read(RATCHET).unwrap_or_default(), RATCHET));
    let excuses = read(EXCUSES).unwrap_or_default();
    Ok(excuse(found, &excuses, EXCUSES))
}

fn is_test_file(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    path.contains("/tests/") || name == "tests.rs" || name.ends_with("_tests.rs")
}

/// The module of the crate that a file belongs to; `None` for other crates, tests and `lib.rs` itself.
fn module_of(name: &str, path: &str) -> Option<String> {
    let rest = path.strip_prefix("crates/")?.strip_prefix(name)?.strip_prefix("/src/")?;
    let first = rest.split('/').next()?;
    (rest != "lib.rs" && !is_test_file(path)).then(|| first.trim_end_matches(".rs").to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_sorted_into_kinds() {
        assert!(is_test_file("crates/a/tests/it/x.rs") && is_test_file("crates/a/src/b/tests.rs"));
        assert!(is_test_file("crates/a/src/signal_tests.rs") && !is_test_file("crates/a/src/latest.rs"));
        let of = |name: &str, path: &str| module_of(name, &format!("crates/{path}"));
        assert_eq!(of("ashlar-tree", "ashlar-tree/src/version/edit.rs").as_deref(), Some("version"));
        assert_eq!(of("ashlar-read", "ashlar-read/src/super_version.rs").as_deref(), Some("super_version"));
        assert_eq!(of("ashlar-engine", "ashlar-engine/src/lib.rs"), None);
        assert_eq!(of("ashlar-engine", "ashlar-log/src/x.rs"), None);
    }
}
