//! A program that walks through the interface prints the same over both libraries.

use crate::compiled::{prints_the_same, valgrind_finds_nothing_in};

/// The lines that differ, by their beginnings over RocksDB's library, and why.
const DIFFERENT: [(&str, &str); 1] =
    [("merge without an operator: ", "a family without an operator is a wrong argument here")];

#[test]
fn both_libraries_say_the_same() {
    prints_the_same("phases", "phases.c", "C interface", &DIFFERENT.map(|(line, _)| line));
}

/// No call reads or writes memory that is not its own, and a program that destroys its objects leaks nothing of theirs.
#[test]
fn valgrind_finds_nothing() {
    valgrind_finds_nothing_in("phases.c");
}
