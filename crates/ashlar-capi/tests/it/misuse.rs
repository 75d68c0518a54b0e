//! With checked handles a wrong pointer ends the program, and a message says what is wrong with the pointer.

use crate::compiled::{compile, ours, program};
use std::os::unix::process::ExitStatusExt;
use std::process::Command;

/// For each case of `misuse.c` what the message says.
const SAID: [&str; 8] = [
    "rocksdb_iter_destroy: the parameter object (0x… is freed after it was freed: rocksdb_iterator_t",
    "rocksdb_get: the parameter db (0x… is used after it was freed: rocksdb_t",
    "rocksdb_iter_next: the parameter a0 (0x… is of another kind: rocksdb_writebatch_t where rocksdb_iterator_t belongs",
    "rocksdb_writebatch_clear: the parameter b (0x… is no object of this library: rocksdb_writebatch_t",
    "rocksdb_readoptions_set_fill_cache: the parameter object (0x… is used after it was freed: rocksdb_readoptions_t",
    "rocksdb_close: the parameter db (0x… belongs to another object, which frees it: rocksdb_t",
    "rocksdb_put_cf: the parameter column_family (0x… is used after it was freed: rocksdb_column_family_handle_t",
    "rocksdb_open: the parameter options (0x… is used after it was freed: rocksdb_options_t",
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
        assert!(said.contains(before) && said.contains(after), "case {case}: {said}");
        let printed = String::from_utf8_lossy(&done.stdout);
        assert!(!printed.contains("the same address"), "case {case}: {printed}");
    }
}

/// SIGABRT on Linux.
const fn libc_abort() -> i32 {
    6
}
