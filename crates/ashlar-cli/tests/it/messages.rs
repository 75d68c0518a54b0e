//! Messages that cannot be written: the status is the one that the command has when they can. Answers that cannot be
//! written end the command with status 1, and the message names standard output.

use std::fs::OpenOptions;
use std::path::Path;
use std::process::{Command, Stdio};

/// The status of `ashlar` with these words when standard error takes nothing; `input` is a file.
fn status(words: &[&str], input: &Path) -> Option<i32> {
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    Command::new(env!("CARGO_BIN_EXE_ashlar"))
        .args(words)
        .stdin(std::fs::File::open(input).unwrap())
        .stdout(Stdio::null())
        .stderr(full)
        .status()
        .unwrap()
        .code()
}

#[cfg(target_os = "linux")]
#[test]
fn a_message_that_cannot_be_written_changes_no_status() {
    let dir = tempfile::tempdir().unwrap();
    let missing = dir.path().join("none").display().to_string();
    let new = dir.path().join("new").display().to_string();
    let junk = dir.path().join("junk");
    std::fs::write(&junk, "a\t1\nno entry\n").unwrap();
    let cases: [(&[&str], i32); 9] = [
        (&["db", &missing, "get", "a"], 1),
        (&["db", &missing, "check"], 1),
        (&["db", &missing, "get", "a", "--wrong"], 2),
        (&["db", &missing, "nonsense"], 2),
        (&["db", &missing], 2),
        (&["db", &new, "load", "--create_if_missing"], 1),
        (&["manifest", &missing], 1),
        (&["bench", "--num=-1"], 1),
        (&["bench", "--wrong=1"], 1),
    ];
    for (words, expected) in cases {
        assert_eq!(status(words, &junk), Some(expected), "{words:?}");
    }
    assert_eq!(super::good(&["db", &new, "get", "a"], b""), "1\n");
    let words = ["bench", "--benchmarks=fillseq", "--num=2000", "--stats_interval=1000"];
    assert_eq!(status(&words, &junk), Some(0));
}

/// Status and standard error of `ashlar` with these words when standard output takes nothing.
fn unanswered(words: &[&str]) -> (Option<i32>, String) {
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let ran = Command::new(env!("CARGO_BIN_EXE_ashlar"))
        .args(words)
        .stdin(Stdio::null())
        .stdout(full)
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    (ran.status.code(), String::from_utf8(ran.stderr).unwrap())
}

#[cfg(target_os = "linux")]
#[test]
fn an_answer_that_cannot_be_written_names_standard_output_and_what_was_made() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("db").display().to_string();
    let copy = home.path().join("copy").display().to_string();
    super::good(&["db", &dir, "put", "a", "1", "--create_if_missing"], b"");
    super::good(&["db", &dir, "compact"], b"");
    let table = std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path().display().to_string());
    let table = table.into_iter().find(|name| name.ends_with(".sst")).unwrap();
    let log = std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path().display().to_string());
    let log = log.into_iter().find(|name| name.ends_with(".log")).unwrap();
    let into = format!("--into={copy}");
    let sst = format!("--file={table}");
    let cases: [(&[&str], &str); 23] = [
        (&["db", &dir, "get", "a"], ""),
        (&["db", &dir, "scan"], ""),
        (&["db", &dir, "dump"], ""),
        (&["db", &dir, "families"], ""),
        (&["db", &dir, "explain", "a"], ""),
        (&["db", &dir, "property", "rocksdb.stats"], ""),
        (&["db", &dir, "info"], ""),
        (&["db", &dir, "check"], ""),
        (&["db", &dir, "check", "--json"], ""),
        (&["db", &dir, "level"], ""),
        (&["manifest", &dir], ""),
        (&["wal", &log], ""),
        (&["sst", &sst], ""),
        (&["options", "list"], ""),
        (&["options", "page"], ""),
        (&["bench", "--benchmarks=fillseq", "--num=10"], ""),
        (&["db", &dir, "put", "b", "2"], "the write was made"),
        (&["db", &dir, "delete", "a"], "the write was made"),
        (&["db", &dir, "load"], "the entries were loaded"),
        (&["db", &dir, "create_family", "f"], "the family was created"),
        (&["db", &dir, "drop_family", "f"], "the family was dropped"),
        (&["db", &dir, "compact"], "the compaction was made"),
        (&["db", &dir, "repair", &into], "the repair was made"),
    ];
    for (words, made) in cases {
        let (status, text) = unanswered(words);
        assert_eq!(status, Some(1), "{words:?}: {text}");
        assert!(text.contains("cannot write standard output: No space left on device"), "{words:?}: {text}");
        assert!(text.trim_end().ends_with(made), "{words:?}: {text}");
        assert!(!text.contains("panicked"), "{words:?}: {text}");
    }
    assert_eq!(super::good(&["db", &dir, "scan"], b""), "b ==> 2\n");
}
