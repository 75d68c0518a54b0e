//! A program that walks through the interface prints the same over both libraries.

use crate::compiled::{assert_same, ours, run, run_under, theirs};
use ashlar_testkit::judge::{Skip, place};
use ashlar_testkit::report::figure;
use std::path::Path;

/// The lines that differ, by their beginnings over RocksDB's library, and why.
const DIFFERENT: [(&str, &str); 1] =
    [("merge without an operator: ", "a family without an operator is a wrong argument here")];

#[test]
fn both_libraries_say_the_same() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c/phases.c");
    let here = run(&source, &ours());
    match theirs() {
        Ok(library) => {
            let there = run(&source, &library);
            assert_same(&there, &here, &DIFFERENT.map(|(line, _)| line));
            figure(&format!(
                "C interface: {} lines of a program, the same over RocksDB 11.8.1",
                here.lines().count()
            ));
        }
        Err(skip) => skip.announce("phases"),
    }
}

/// No call reads or writes memory that is not its own, and a program that destroys its objects leaks nothing of theirs.
#[test]
fn valgrind_finds_nothing() {
    let Ok(valgrind) = place("valgrind") else {
        return Skip::because("valgrind is not installed: apt-get install valgrind").announce("valgrind");
    };
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c/phases.c");
    let words = ["--quiet", "--error-exitcode=9", "--leak-check=full", "--errors-for-leak-kinds=definite"];
    let said = run_under(&source, &ours(), &valgrind, &words);
    assert!(said.ends_with("end\n"), "{said}");
}
