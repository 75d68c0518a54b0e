//! Messages that cannot be written: the status is the one that the command has when they can.

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
