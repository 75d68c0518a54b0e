//! A program that reads into its own memory, and asks a database about files and jobs, prints the same over both libraries.

use crate::compiled::{prints_the_same, valgrind_finds_nothing_in};

#[test]
fn both_libraries_tell_the_same_details() {
    let test = "both_libraries_tell_the_same_details";
    prints_the_same(test, "details.c", "C interface, details", &[]);
}

/// No call reads or writes memory that is not its own, and the objects leak nothing.
#[test]
fn valgrind_finds_nothing_in_details() {
    valgrind_finds_nothing_in("details.c");
}
