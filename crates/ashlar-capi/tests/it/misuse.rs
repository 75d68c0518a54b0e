//! With checked handles a wrong pointer ends the program, and a message says what is wrong with the pointer.

use crate::compiled::{compile, ours, program, run, valgrind_finds_nothing_in};
use std::os::unix::process::ExitStatusExt;
use std::process::Command;

/// For each case of `misuse.c` what the message says.
const SAID: [&str; 13] = [
    "rocksdb_iter_destroy: the parameter object (0x… is freed after it was freed: rocksdb_iterator_t",
    "rocksdb_get: the parameter db (0x… is used after it was freed: rocksdb_t",
    "rocksdb_iter_next: the parameter a0 (0x… is of another kind: rocksdb_writebatch_t where rocksdb_iterator_t belongs",
    "rocksdb_writebatch_clear: the parameter b (0x… is no object of this library: rocksdb_writebatch_t",
    "rocksdb_readoptions_set_fill_cache: the parameter object (0x… is used after it was freed: rocksdb_readoptions_t",
    "rocksdb_close: the parameter db (0x… belongs to another object, which frees it: rocksdb_t",
    "rocksdb_put_cf: the parameter column_family (0x… is used after it was freed: rocksdb_column_family_handle_t",
    "rocksdb_open: the parameter options (0x… is used after it was freed: rocksdb_options_t",
    "rocksdb_multi_get: the parameter the object (0x… is of another kind: rocksdb_writebatch_t where rocksdb_t belongs",
    "rocksdb_set_options_cf: the parameter db (0x… is of another kind: rocksdb_writebatch_t where rocksdb_t belongs",
    "rocksdb_flushjobinfo_triggered_writes_slowdown: the parameter info (0x… is no object of this library: rocksdb_flushjobinfo_t",
    "rocksdb_wal_file_log_number: the parameter file (0x… is no object of this library: rocksdb_wal_file_t",
    "rocksdb_readoptions_set_snapshot: the parameter a1 (0x… is no object of this library: rocksdb_snapshot_t",
];

#[test]
fn each_wrong_pointer_ends_the_program_with_a_message() {
    let dir = tempfile::tempdir().unwrap();
    let misuse = dir.path().join("misuse");
    compile(&["-std=c99", "-xc"], &program("misuse.c"), Some(&ours()), &misuse).unwrap();
    for (case, expected) in SAID.iter().enumerate() {
        let data = tempfile::tempdir().unwrap();
        let mut run = Command::new(&misuse);
        run.arg(data.path()).arg(case.to_string()).env("ASHLARDB_CHECK_HANDLES", "1");
        let done = run.output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.signal(), Some(libc_abort()), "case {case}: {} {said}", done.status);
        let (before, after) = expected.split_once('…').unwrap();
        // The name of a kind ends there: rocksdb_t is not the beginning of rocksdb_t_t.
        let after = [". ", " "].map(|end| format!("{after}{end}"));
        let is_said = said.contains(before) && after.iter().any(|after| said.contains(after));
        assert!(is_said, "case {case}: {said}");
        let printed = String::from_utf8_lossy(&done.stdout);
        assert!(!printed.contains("the same address"), "case {case}: {printed}");
    }
}

/// SIGABRT on Linux.
const fn libc_abort() -> i32 {
    6
}

/// A read of many keys that fails as a whole leaves nothing of the caller in its places.
#[test]
fn reads_of_many_set_every_place() {
    let said = run(&program("many.c"), &ours());
    let mut expected =
        vec!["open, two families: a value, 1 bytes, a: ok", "open, two families: no value, 0 bytes, b: ok"];
    let whole: [(&str, &str); 10] = [
        ("no database: no value, 0 bytes", "Invalid argument"),
        ("no options: no value, 0 bytes", "Invalid argument"),
        ("no family: no value, 0 bytes", "Invalid argument"),
        ("batched, no database: no value", "Invalid argument"),
        ("no transaction: no value, 0 bytes", "Invalid argument"),
        ("no database of transactions: no value, 0 bytes", "Invalid argument"),
        ("closed, two families: no value, 0 bytes", "Shutdown in progress"),
        ("closed, one family: no value, 0 bytes", "Shutdown in progress"),
        ("closed, default: no value, 0 bytes", "Shutdown in progress"),
        ("closed, batched: no value", "Shutdown in progress"),
    ];
    let lines = whole.map(|(place, error)| ["a", "b"].map(|key| format!("{place}, {key}: {error}")));
    expected.extend(lines.iter().flatten().map(String::as_str));
    expected.push("end");
    assert_eq!(said.lines().collect::<Vec<_>>(), expected, "{said}");
}

/// The loader may give the name of an exported function to the program or to another library.
#[test]
fn the_library_calls_no_exported_function_of_its_own() {
    let said = run(&program("interposed.c"), &ours());
    assert_eq!(said, "a flag: 1\nthe flag is set: 1\nend\n");
}

#[test]
fn valgrind_finds_nothing_in_reads_of_many() {
    valgrind_finds_nothing_in("many.c");
}
