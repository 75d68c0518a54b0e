//! A program whose listeners hear of flushes, compactions and ingestions prints the same over both libraries.

use crate::compiled::{prints_the_same, valgrind_finds_nothing_in};

#[test]
fn both_libraries_tell_listeners_the_same() {
    let test = "both_libraries_tell_listeners_the_same";
    prints_the_same(test, "listeners.c", "C interface, listeners", &[]);
}

/// No call reads or writes memory that is not its own, and the objects leak nothing.
#[test]
fn valgrind_finds_nothing_in_listeners() {
    valgrind_finds_nothing_in("listeners.c");
}
