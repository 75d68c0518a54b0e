//! The program from outside: words in, text and statuses out.
//!
//! `db` the commands on databases, `ldb` and `ldb_*` those of RocksDB's tool beside it, `transactions` those on prepared transactions, `level` the proof of a format level, `bench` the benchmark, `sst`, `manifest` and `wal`
//! the files explained, `options` the names of options, `messages` what standard error does not take.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "in a test a panic is the report")]
#![allow(clippy::disallowed_methods, reason = "tests look at files from outside")]

mod bench;
mod benchmark_sh;
mod check;
mod db;
mod explain;
mod ldb;
mod ldb_files;
mod ldb_levels;
mod ldb_opens;
mod ldb_query;
mod level;
mod manifest;
mod messages;
mod options;
mod sst;
mod transactions;
mod wal;

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// What a run of the program left: status, standard output, standard error.
#[derive(Debug, PartialEq)]
struct Ran {
    status: i32,
    out: String,
    err: String,
}

/// Runs `ashlar` with `words`, feeding it `input`.
fn ashlar(words: &[&str], input: &[u8]) -> Ran {
    program(Path::new(env!("CARGO_BIN_EXE_ashlar")), words, input)
}

fn program(path: &Path, words: &[&str], input: &[u8]) -> Ran {
    let mut child = Command::new(path)
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let result = std::thread::scope(|scope| {
        // A program that does not read its input may be gone already.
        scope.spawn(move || drop(stdin.write_all(input)));
        child.wait_with_output().unwrap()
    });
    Ran {
        status: result.status.code().unwrap(),
        out: String::from_utf8(result.stdout).unwrap(),
        err: String::from_utf8(result.stderr).unwrap(),
    }
}

/// Runs it, and takes nothing but success without remarks.
fn good(words: &[&str], input: &[u8]) -> String {
    let ran = ashlar(words, input);
    assert_eq!((ran.status, ran.err.as_str()), (0, ""), "{words:?}: {ran:?}");
    ran.out
}

#[test]
fn help_is_worth_reading() {
    let (top, db) = (good(&["--help"], b""), good(&["db", "--help"], b""));
    assert!(top.contains("bench") && top.contains("db"), "{top}");
    for word in
        ["load", "--create_if_missing", "--column_family", "Examples:", "find . -type f", "Exit status"]
    {
        assert!(db.contains(word), "{word}: {db}");
    }
    assert!(good(&["--version"], b"").starts_with("ashlar "));
    assert_eq!(ashlar(&["nonsense"], b"").status, 2);
    assert_eq!(ashlar(&[], b"").status, 2);
}
