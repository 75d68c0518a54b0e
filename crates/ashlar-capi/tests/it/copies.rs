//! A program about copies, directories, filters and named tables prints the same over both libraries.

use crate::compiled::{prints_the_same, valgrind_finds_nothing_in};

#[test]
fn both_libraries_make_the_same_copies() {
    let test = "both_libraries_make_the_same_copies";
    prints_the_same(test, "copies.c", "C interface, copies, filters and files", &[]);
}

/// No call reads or writes memory that is not its own, and the objects leak nothing.
#[test]
fn valgrind_finds_nothing_in_copies() {
    valgrind_finds_nothing_in("copies.c");
}
