//! A program that reads into its own memory, and asks a database about files and jobs, prints the same over both libraries.

use crate::compiled::{assert_same, ours, run, run_under, theirs};
use ashlar_testkit::judge::{Skip, place};
use ashlar_testkit::report::figure;
use std::path::{Path, PathBuf};

/// The lines that differ, by their beginnings over RocksDB's library, and why.
const DIFFERENT: [(&str, &str); 0] = [];

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c/details.c")
}

#[test]
fn both_libraries_tell_the_same_details() {
    let here = run(&source(), &ours());
    match theirs() {
        Ok(library) => {
            let there = run(&source(), &library);
            assert_same(&there, &here, &DIFFERENT.map(|(line, _)| line));
            figure(&format!(
                "C interface, details: {} lines of a program, the same over RocksDB 11.8.1",
                here.lines().count()
            ));
        }
        Err(skip) => skip.announce("both_libraries_tell_the_same_details"),
    }
}

/// No call reads or writes memory that is not its own, and the objects leak nothing.
#[test]
fn valgrind_finds_nothing_in_details() {
    let Ok(valgrind) = place("valgrind") else {
        return Skip::because("valgrind is not installed: apt-get install valgrind").announce("valgrind");
    };
    let words = ["--quiet", "--error-exitcode=9", "--leak-check=full", "--errors-for-leak-kinds=definite"];
    let said = run_under(&source(), &ours(), &valgrind, &words);
    assert!(said.ends_with("end\n"), "{said}");
}
