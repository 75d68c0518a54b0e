//! A program that reads write batches back prints the same over both libraries, also for random batches over a database.

use crate::compiled::{prints_the_same, valgrind_finds_nothing_in};

#[test]
fn both_libraries_read_a_batch_back_alike() {
    let test = "both_libraries_read_a_batch_back_alike";
    prints_the_same(test, "indexed.c", "C interface, batches that are read back", &[]);
}

/// No call reads or writes memory that is not its own, and the objects leak nothing.
#[test]
fn valgrind_finds_nothing_in_batches_that_are_read_back() {
    valgrind_finds_nothing_in("indexed.c");
}
