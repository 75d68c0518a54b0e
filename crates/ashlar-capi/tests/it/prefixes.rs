//! A program with a prefix extractor of its own: one library reads what the other wrote, with seeks within a prefix.

use crate::compiled::{VALGRIND, compile, ours, program as source, theirs, valgrind};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The program over a library.
fn program(library: &Path, dir: &Path, name: &str) -> PathBuf {
    let program = dir.join(name);
    compile(&["-std=c99", "-xc"], &source("prefixes.c"), Some(library), &program).unwrap();
    program
}

/// What the program prints to its two outputs. It must end well.
fn said(program: &Path, words: &[&str]) -> (String, String) {
    let done = Command::new(program).args(words).output().unwrap();
    let [out, err] = [done.stdout, done.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(done.status.success(), "{}: {out}{err}", done.status);
    (out, err)
}

/// The count of seeks that RocksDB's prefix filters spared.
fn useful(counts: &str) -> u64 {
    counts.rsplit(' ').next().unwrap().trim().parse().unwrap()
}

#[test]
fn both_libraries_seek_within_each_others_prefixes() {
    let dir = tempfile::tempdir().unwrap();
    let here = program(&ours(), dir.path(), "ours");
    let there = match theirs() {
        Ok(library) => program(&library, dir.path(), "theirs"),
        Err(skip) => return skip.announce("both_libraries_seek_within_each_others_prefixes"),
    };
    let mut all = Vec::new();
    for (writer, name) in [(&here, "by-us"), (&there, "by-them")] {
        let data = dir.path().join(name);
        let data = data.to_str().unwrap();
        said(writer, &[data, "write"]);
        let stored = |name: &str| {
            let files = std::fs::read_dir(data).unwrap().map(|entry| entry.unwrap().path());
            let mut files: Vec<_> =
                files.filter(|path| path.to_string_lossy().contains("OPTIONS-")).collect();
            files.sort();
            std::fs::read_to_string(files.last().unwrap()).unwrap().contains(name)
        };
        assert!(stored("prefix_extractor=test.Colon\n"), "{name}");
        for extractor in ["test.Colon", "test.Other"] {
            let (ours, _) = said(&here, &[data, "read", extractor]);
            let (theirs, counts) = said(&there, &[data, "read", extractor]);
            assert_eq!(ours, theirs, "{name}, read with {extractor}");
            // RocksDB trusts the filters of the extractor that it has, and of no other.
            assert_eq!(useful(&counts) > 0, extractor == "test.Colon", "{name}, {extractor}: {counts}");
            all.push(ours);
        }
    }
    assert!(all.iter().all(|one| *one == all[0]), "{all:?}");
    assert!(all[0].contains("from p5:: p5:03 p5:08 p5:13 p5:18 p5:x00"), "{}", all[0]);
}

/// The rules of C are called with memory that is theirs to read, and are destroyed with the options and the database.
#[test]
fn valgrind_finds_nothing_in_rules_of_c() {
    let Some(valgrind) = valgrind() else { return };
    let dir = tempfile::tempdir().unwrap();
    let here = program(&ours(), dir.path(), "ours");
    let (here, data) = (here.to_str().unwrap(), dir.path().join("data"));
    let data = data.to_str().unwrap();
    let words = [&VALGRIND[..], &[here]].concat();
    said(&valgrind, &[words.as_slice(), &[data, "write"]].concat());
    let (out, _) = said(&valgrind, &[words.as_slice(), &[data, "read", "test.Colon"]].concat());
    assert!(out.contains("\nz:: last\n"), "{out}");
}
