//! A program that calls every function prints the same over both libraries.

use crate::compiled::{compile, ours, prints_the_same, program, run_in, theirs, valgrind_finds_nothing_in};
use std::process::Command;

/// The lines that differ, by their beginnings over LevelDB's library, and why.
const DIFFERENT: [(&str, &str); 2] = [
    ("sizes: ", "a table here has other bytes"),
    ("policy asked: ", "filters of the caller are not made here"),
];

#[test]
fn both_libraries_say_the_same() {
    let differ = DIFFERENT.map(|(line, _)| line);
    prints_the_same("both_libraries_say_the_same", "walk.c", "LevelDB's C interface", &differ);
}

#[test]
fn valgrind_finds_nothing() {
    valgrind_finds_nothing_in("walk.c");
}

/// The message for a wrong pointer names the function that the program called.
#[test]
fn a_wrong_pointer_is_that_of_a_function_of_leveldb() {
    let dir = tempfile::tempdir().unwrap();
    let misuse = dir.path().join("misuse");
    compile(&["-std=c99", "-xc"], &program("misuse.c"), Some(&ours()), &misuse).unwrap();
    let done = Command::new(&misuse).env("ASHLARDB_CHECK_HANDLES", "1").output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(!done.status.success() && said.contains("leveldb_writebatch_iterate: the parameter b"), "{said}");
    assert!(said.contains("leveldb_writebatch_t"), "{said}");
}

/// A directory that LevelDB wrote opens through the same program, and has its entries.
#[test]
fn a_directory_of_leveldb_opens() {
    let there = match theirs() {
        Ok(library) => library,
        Err(skip) => return skip.announce("a_directory_of_leveldb_opens"),
    };
    let dir = tempfile::tempdir().unwrap();
    let said = run_in(&program("handed.c"), &there, dir.path());
    assert_eq!(said, "wrote\n");
    let said = run_in(&program("handed.c"), &ours(), dir.path());
    assert_eq!(said, "entries 1000, first key000000 = value0, last key000999 = value999\nwrote\n");
    let again = run_in(&program("handed.c"), &ours(), dir.path());
    assert_eq!(again, said);
}
