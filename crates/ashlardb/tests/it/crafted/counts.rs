//! Many of everything: families, sections, tables that are missing.

use super::judge;
use super::kit::{Directory, family, put};
use ashlar_base::FileNumber;
use ashlar_format::filename::FileKind;
use ashlar_testkit::report::scale;
use ashlardb::{Db, Env, list_families};
use std::fmt::Write;
use std::time::{Duration, Instant};

fn families(count: u32) -> tempfile::TempDir {
    let mut dir = Directory::new();
    dir.more = (1..=count).map(|id| family(id, format!("family{id}").as_bytes())).collect();
    dir.finish()
}

/// They fit 256 MB. Every step opens all of them.
#[test]
fn thousands_of_families_cost_little() {
    let verdict = judge(families(2000).path());
    for step in ["forward", "write", "repair", "after"] {
        assert!(!verdict.of(step).contains(':'), "{verdict:#?}");
    }
}

#[test]
fn names_with_control_characters_are_escaped_in_messages() {
    let mut dir = Directory::new();
    dir.edit.comparator = Some("mine\x1b[2J".to_owned());
    let e = Db::open(dir.finish().path()).unwrap_err().to_string();
    assert!(e.contains("mine\\u{1b}[2J"), "{e}");
}

#[test]
fn a_hundred_thousand_families_are_listed_at_once() {
    let dir = families(100_000);
    let start = Instant::now();
    assert_eq!(list_families(&Env::os().unwrap(), dir.path()).unwrap().len(), 100_001);
    // Not a measurement: work in square time takes minutes.
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
}

#[test]
fn options_of_many_sections_are_read_at_once() {
    let dir = tempfile::tempdir().unwrap();
    Db::open(dir.path()).unwrap().close().unwrap();
    let mut text =
        String::from("[Version]\n  rocksdb_version=11.8.1\n[DBOptions]\n[CFOptions \"default\"]\n");
    for at in 0..scale(20_000, 100_000) {
        writeln!(text, "[CFOptions \"f{at}\"]\n[TableOptions/BlockBasedTable \"f{at}\"]").unwrap();
    }
    std::fs::write(dir.path().join(FileKind::Options(FileNumber(90)).name()), text).unwrap();
    let start = Instant::now();
    Db::open(dir.path()).unwrap().close().unwrap();
    // Not a measurement: work in square time takes minutes.
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
}

#[test]
fn many_tables_that_are_missing_are_told_and_repaired_at_once() {
    let mut dir = Directory::new();
    for number in 100..scale(8_000, 50_000) as u64 {
        let (name, key) = (FileKind::Table(FileNumber(number)), format!("k{number:08}"));
        dir.table(number, 1, b"", (put(&key, 1), put(&key, 1)), (1, 1));
        // One stays: where no table is there, a repair asks for db_paths first.
        if number > 100 {
            std::fs::remove_file(dir.path().join(name.name())).unwrap();
        }
    }
    dir.edit.next_file = Some(FileNumber(60_000));
    let verdict = judge(dir.finish().path());
    assert_eq!((verdict.of("repair"), verdict.of("check after")), ("fine", "sound"), "{verdict:#?}");
}
