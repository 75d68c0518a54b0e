//! A program that sets what has no number, lists files and makes backups prints the same over both libraries. What the engine
//! does not have is refused in words.

use crate::compiled::{ours, prints_the_same, program, run, valgrind_finds_nothing_in};

#[test]
fn both_libraries_keep_the_same_settings() {
    let test = "both_libraries_keep_the_same_settings";
    prints_the_same(test, "settings.c", "C interface, settings", &[]);
}

#[test]
fn valgrind_finds_nothing_in_settings() {
    valgrind_finds_nothing_in("settings.c");
}

#[test]
fn what_the_engine_does_not_have_is_refused() {
    let said = run(&program("unserved.c"), &ours());
    let refused: Vec<&str> = said.lines().filter(|line| line.ends_with(": Not implemented")).collect();
    let others: Vec<&str> = said.lines().filter(|line| !refused.contains(line)).collect();
    assert_eq!(refused.len(), 15, "{said}");
    let expected = [
        "service is destroyed",
        "filter is destroyed",
        "another filter is destroyed",
        "a reader: 0",
        "a replayer: 0",
        "open_and_compact: 0",
        "null: 0",
        "policy is destroyed",
        "kept: 2 3 1",
        "a: '1'",
        "plain tables: ok",
        "flush: ok",
        "get: ok",
        "foo1: 'bar1'",
        "cuckoo tables: ok",
        "flush: ok",
        "get: ok",
        "foo1: 'bar1'",
        "end",
    ];
    assert_eq!(others, expected, "{said}");
}

#[test]
fn valgrind_finds_nothing_in_what_is_refused() {
    valgrind_finds_nothing_in("unserved.c");
}
