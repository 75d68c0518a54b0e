//! The page `docs/c-functions.md`: how many of RocksDB's functions work, by how widely programs use them, and what setters do.
//!
//! The page is generated from the description in `api/`, from the tiers in `tests/tiers.tsv`, and from the table of option names.

use crate::compiled::api;
use crate::describe::{Api, Body, Function};
use ashlar_options::{AnswerKind, option_names};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

/// The tiers, as the page explains them.
const TIERS: [(&str, &str); 5] = [
    ("T0", "most bindings call them"),
    ("T1", "several bindings"),
    ("T2", "few bindings"),
    ("T3a", "one binding, or none"),
    ("T3b", "since RocksDB 11.9"),
];

/// The functions of RocksDB, each with its tier.
fn tiers() -> BTreeMap<String, String> {
    let table = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tiers.tsv");
    let table = std::fs::read_to_string(table).unwrap();
    let rows = table.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once('\t'));
    rows.map(|(name, tier)| (name.to_owned(), tier.to_owned())).collect()
}

/// The names of all functions, without the prefix.
fn names(api: &Api) -> BTreeSet<&str> {
    api.functions.iter().map(|function| function.name.as_str()).collect()
}

/// A program of C without its comments and strings.
fn code(program: &str) -> String {
    let (mut code, mut rest) = (String::new(), program);
    while let Some(at) = rest.find(['/', '"', '\'']) {
        code.push_str(&rest[..at]);
        rest = &rest[at..];
        let end = match rest.as_bytes() {
            [b'/', b'*', ..] => rest.find("*/").map(|at| at + 2),
            [b'/', b'/', ..] => rest.find('\n'),
            [b'/', ..] => Some(1),
            [quote, inside @ ..] => {
                let mut is_escaped = false;
                let ends = |byte: &u8| {
                    let ends = byte == quote && !is_escaped;
                    is_escaped = *byte == b'\\' && !is_escaped;
                    ends
                };
                inside.iter().position(ends).map(|at| at + 2)
            }
            [] => None,
        };
        rest = &rest[end.unwrap_or(rest.len())..];
        code.push(' ');
    }
    code + rest
}

/// The functions that a program of C calls.
fn calls(program: &str) -> BTreeSet<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let code = code(program);
    let before = code.match_indices('(').map(|(at, _)| code[..at].trim_end());
    let name = |before: &str| before[before.rfind(|c| !is_part(c)).map_or(0, |at| at + 1)..].to_owned();
    before.map(name).collect()
}

/// The functions that a test calls: in a program of `tests/c`, or in the generated one of getters and their setters.
fn called(api: &Api) -> BTreeSet<&str> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c");
    let read =
        |entry: std::io::Result<std::fs::DirEntry>| std::fs::read_to_string(entry.unwrap().path()).unwrap();
    let mut called = calls(&crate::options::program().0);
    std::fs::read_dir(dir).unwrap().map(read).for_each(|program| called.extend(calls(&program)));
    let is_called = |function: &&Function| called.contains(&format!("{}{}", api.prefix, function.name));
    api.functions.iter().filter(is_called).map(|function| function.name.as_str()).collect()
}

#[test]
fn a_name_in_a_comment_is_no_call() {
    let program = "/* rocksdb_a(1) */ // rocksdb_b()\nint x = rocksdb_c (\"rocksdb_d(\\\") \", '\"', rocksdb_e, y / rocksdb_f(2));";
    let called = calls(program);
    let names: Vec<&str> = called.iter().map(String::as_str).filter(|name| !name.is_empty()).collect();
    assert_eq!(names, ["rocksdb_c", "rocksdb_f"]);
}

/// What a setter does with its value.
fn effect(function: &Function) -> Option<&'static str> {
    let Some(Body::Set { option, .. }) = &function.body else { return None };
    let named = option_names().into_iter().find(|row| row.name == option);
    Some(match named.map(|row| row.answer) {
        Some(AnswerKind::Used) => "acts",
        Some(AnswerKind::Mapped) => "acts by another setting",
        Some(AnswerKind::Ignored) => "accepted hint",
        Some(AnswerKind::Unserved) => "accepted, and named by the report of the open",
        Some(AnswerKind::Refused) => "refused, but for the neutral value",
        None => "an argument of a call that takes the object",
    })
}

fn page(api: &Api) -> String {
    let (tiers, there, called) = (tiers(), names(api), called(api));
    let refused: BTreeSet<&str> = api.refused.iter().map(|(_, name)| name.as_str()).collect();
    let mut page = String::from(
        "# RocksDB's C functions\n\nGenerated: `REWRITE=1 cargo test -p ashlar-capi --test it coverage`. A function without its feature \
         answers\n`Not implemented`, or the open does. The tests call the others in programs that run over RocksDB's library too.\n\n\
         | tier | functions | work | of these called by the tests | `Not implemented` | missing |\n|---|---|---|---|---|---|\n",
    );
    let mut sums = [0; 5];
    for (tier, what) in TIERS {
        let of_tier: Vec<&String> =
            tiers.iter().filter(|(_, of)| *of == tier).map(|(name, _)| name).collect();
        let missing = of_tier.iter().filter(|name| !there.contains(name.as_str())).count();
        let without = of_tier.iter().filter(|name| refused.contains(name.as_str())).count();
        let is_tested = |name: &&&String| called.contains(name.as_str()) && !refused.contains(name.as_str());
        let tested = of_tier.iter().filter(is_tested).count();
        let counts = [of_tier.len(), of_tier.len() - missing - without, tested, without, missing];
        sums = std::array::from_fn(|at| sums[at] + counts[at]);
        let [all, work, tested, without, missing] = counts;
        writeln!(page, "| {tier}: {what} | {all} | {work} | {tested} | {without} | {missing} |").unwrap();
    }
    let [all, work, tested, without, missing] = sums;
    writeln!(page, "| all | {all} | {work} | {tested} | {without} | {missing} |").unwrap();
    let older = there.iter().filter(|name| !tiers.contains_key(**name)).count();
    writeln!(
        page,
        "\nBesides, {older} functions that RocksDB removed or does not declare.\n\n## Without their feature\n"
    )
    .unwrap();
    let mut features: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (feature, name) in &api.refused {
        features.entry(feature).or_default().push(name);
    }
    for (feature, names) in features {
        let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        writeln!(page, "- {feature}: {}", names.join(", ")).unwrap();
    }
    page.push_str("\n## Setters by name\n\n| a setter | how many |\n|---|---|\n");
    let mut effects: BTreeMap<&str, usize> = BTreeMap::new();
    api.functions.iter().filter_map(effect).for_each(|effect| *effects.entry(effect).or_default() += 1);
    for (effect, count) in effects {
        writeln!(page, "| {effect} | {count} |").unwrap();
    }
    page.push_str(
        "\n[options.md](options.md) has each option, [moving.md](moving.md) the other differences.\n",
    );
    page
}

#[test]
fn the_page_of_c_functions_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/c-functions.md");
    let generated = page(&api());
    if std::env::var_os("REWRITE").is_some_and(|value| value == "1") {
        std::fs::write(&path, &generated).unwrap();
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        stored == generated,
        "docs/c-functions.md is old: REWRITE=1 cargo test -p ashlar-capi --test it coverage"
    );
}

#[test]
fn every_function_of_rocksdb_exists_and_no_other_is_refused() {
    let api = api();
    let (tiers, there) = (tiers(), names(&api));
    assert_eq!(tiers.len(), 1_749);
    let missing: Vec<&String> = tiers.keys().filter(|name| !there.contains(name.as_str())).collect();
    assert!(missing.is_empty(), "{missing:?}");
    let unknown: Vec<&String> =
        api.refused.iter().map(|(_, name)| name).filter(|name| !there.contains(name.as_str())).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}
