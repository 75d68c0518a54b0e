//! A program about copies, directories, filters and named tables prints the same over both libraries.

use crate::compiled::{prints_the_same, valgrind_finds_nothing_in};

#[test]
fn both_libraries_make_the_same_copies() {
    let test = "both_libraries_make_the_same_copies";
    prints_the_same(test, "copies.c", "C interface, copies, filters and files", &[]);
}

#[test]
fn both_libraries_keep_the_same_transactions() {
    prints_the_same(
        "both_libraries_keep_the_same_transactions",
        "transacted.c",
        "C interface, transactions",
        &[],
    );
}

#[test]
fn both_libraries_answer_the_same_calls() {
    prints_the_same("both_libraries_answer_the_same_calls", "calls.c", "C interface, further calls", &[]);
}

#[test]
fn both_libraries_have_the_same_figures() {
    prints_the_same("both_libraries_have_the_same_figures", "figures.c", "C interface, figures", &[]);
}

#[test]
fn both_libraries_name_the_same_places() {
    let test = "both_libraries_name_the_same_places";
    prints_the_same(test, "places.c", "C interface, tables in further directories", &[]);
}

#[test]
fn both_libraries_leave_out_the_same_tables() {
    let test = "both_libraries_leave_out_the_same_tables";
    prints_the_same(test, "filters.c", "C interface, scans with a filter of tables", &[]);
}

#[test]
fn both_libraries_keep_a_cache_within_its_capacity() {
    let test = "both_libraries_keep_a_cache_within_its_capacity";
    prints_the_same(test, "caches.c", "C interface, one cache of several databases", &[]);
}

/// No call reads or writes memory that is not its own, and the objects leak nothing.
#[test]
fn valgrind_finds_nothing_in_copies() {
    valgrind_finds_nothing_in("copies.c");
    valgrind_finds_nothing_in("transacted.c");
    valgrind_finds_nothing_in("filters.c");
}
