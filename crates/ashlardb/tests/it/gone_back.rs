//! A log whose sequence goes back, as two processes leave it that write to one log.

use ashlardb::prelude::*;
use ashlardb::{Env, check_database};
use std::fs;
use std::path::{Path, PathBuf};

/// The only log of a directory.
fn log(dir: &Path) -> PathBuf {
    let files = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    files.into_iter().find(|path| path.extension().is_some_and(|end| end == "log")).unwrap()
}

/// A database whose log ends with its records.
fn open(dir: &Path) -> Db {
    Db::builder(dir).mapped_wal(false).open().unwrap()
}

/// A database as a killed process leaves it: writes of the keys a0 to a9, and behind them in the log those of b1 to b4, with
/// sequences from 2 on.
fn made(dir: &Path) {
    let other = tempfile::tempdir().unwrap();
    let second = open(other.path());
    second.put("b0", "0").unwrap();
    let begin = fs::read(log(other.path())).unwrap().len();
    for i in 1..5 {
        second.put(format!("b{i}"), "1").unwrap();
    }
    let behind = fs::read(log(other.path())).unwrap().split_off(begin);
    let living = tempfile::tempdir().unwrap();
    let first = open(living.path());
    for i in 0..10 {
        first.put(format!("a{i}"), "0").unwrap();
    }
    fs::create_dir(dir).unwrap();
    for entry in fs::read_dir(living.path()).unwrap().map(|entry| entry.unwrap()) {
        if entry.file_type().unwrap().is_file() {
            fs::copy(entry.path(), dir.join(entry.file_name())).unwrap();
        }
    }
    let mut bytes = fs::read(log(dir)).unwrap();
    bytes.extend(behind);
    fs::write(log(dir), bytes).unwrap();
}

fn keys(dir: &Path) -> Vec<String> {
    let db = Db::open(dir).unwrap();
    let keys = db.scan(..).map(|entry| String::from_utf8(entry.unwrap().0).unwrap()).collect();
    db.close().unwrap();
    keys
}

fn kept() -> Vec<String> {
    (0..10).map(|i| format!("a{i}")).collect()
}

#[test]
fn a_log_whose_sequence_goes_back_is_damage_to_a_check_and_the_open_names_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("db");
    made(&dir);
    let report = check_database(&Env::os().unwrap(), &dir, &mut |_| ()).unwrap();
    let [damage] = &*report.damages else { panic!("{report}") };
    let name = log(&dir).file_name().unwrap().to_str().unwrap().to_owned();
    assert!(damage.file == name && damage.offset.is_some() && report.holes.is_empty(), "{report}");
    let said = damage.to_string();
    assert!(said.contains("the sequence goes back: 11 was next, the batch has 2"), "{said}");
    assert!(said.contains("'b1', 'b2', 'b3'"), "{said}");
    for e in [Db::open(&dir).unwrap_err(), Db::open_read_only(&dir).unwrap_err()] {
        let said = e.to_string();
        assert!(e.is_corruption() && said.contains("goes back") && e.offset() == damage.offset, "{said}");
        assert!(said.contains("check'") && said.contains("repair'"), "{said}");
    }
}

#[test]
fn a_repair_keeps_what_stands_before_a_sequence_that_goes_back_and_names_the_rest() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("db");
    made(&dir);
    let name = log(&dir).file_name().unwrap().to_str().unwrap().to_owned();
    let copy = dir.with_extension("copy");
    let salvaged = Db::builder(&dir).salvage(&copy, |_| ()).unwrap();
    let repaired = Db::builder(&dir).repair(|_| ()).unwrap();
    for (report, dir) in [(salvaged, &copy), (repaired, &dir)] {
        let [loss] = &*report.losses else { panic!("{report}") };
        assert!(loss.file == name && loss.to_string().contains("'b1', 'b2', 'b3'"), "{report}");
        assert!(!report.is_lossless() && report.log_batches == 10, "{report}");
        assert_eq!(keys(dir), kept());
        let lost = fs::read_dir(dir.join("lost")).unwrap();
        let lost: Vec<_> = lost.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        assert!(lost.iter().any(|lost| lost.contains(name.trim_end_matches(".log"))), "{lost:?}");
    }
}
