//! Many families: the OPTIONS file is whole after each change, and an idle family costs little. The times of an
//! open stand beside those of RocksDB 11.8.1 as figures; `ASHLAR_FAMILIES` sets the number of families.

use crate::child::Limited;
use ashlar_testkit::judge::{JudgeError, Opening};
use ashlar_testkit::{Judge, JudgeVersion, report};
use ashlardb::prelude::*;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The most memory that an idle family may take, in bytes.
const IDLE_FAMILY: u64 = 16 << 10;

/// The newest OPTIONS file.
fn options_file(dir: &Path) -> String {
    let files = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let named = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with("OPTIONS-");
    fs::read_to_string(files.filter(named).max().unwrap()).unwrap()
}

/// The line of a setting in the section of a family.
fn setting<'t>(text: &'t str, family: &str, name: &str) -> &'t str {
    let (_, behind) = text.split_once(&format!("[CFOptions \"{family}\"]\n")).unwrap();
    let section = behind.split("\n[").next().unwrap();
    section.lines().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix('=')).unwrap()
}

#[test]
fn the_options_file_has_the_settings_of_every_family_as_they_are_after_each_change() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path()).unwrap();
    let families: Vec<_> = (0..30).map(|i| db.create_family(&format!("f{i}")).unwrap()).collect();
    families[7].set_options(&[("write_buffer_size", "1234567")]).unwrap();
    let text = options_file(dir.path());
    assert_eq!(text.matches("[CFOptions ").count(), 31);
    assert_eq!(setting(&text, "f7", "write_buffer_size"), "1234567");
    let usual = setting(&text, "f8", "write_buffer_size").to_owned();
    db.drop_family(&families[7]).unwrap();
    assert!(!options_file(dir.path()).contains("\"f7\""));
    db.create_family("f7").unwrap();
    families[9].set_options(&[("write_buffer_size", "7654321")]).unwrap();
    families[9].set_options(&[("write_buffer_size", "7654322")]).unwrap();
    let text = options_file(dir.path());
    let of = |family: &str| setting(&text, family, "write_buffer_size").to_owned();
    assert_eq!(
        (of("f7"), of("f8"), of("f9"), of("default")),
        (usual.clone(), usual.clone(), "7654322".into(), usual)
    );
    db.close().unwrap();
    let db = Db::open(dir.path()).unwrap();
    assert_eq!(db.families().len(), 31);
    assert_eq!(db.family("f9").unwrap().options().write_buffer_bytes, 7_654_322);
}

/// Memory that this process has allocated and touched, in bytes: without the pages of the program, which grow as it does.
fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

fn millis(start: Instant) -> u128 {
    start.elapsed().as_millis()
}

/// What the child process of this module does: makes a database of `count` families, or opens the directory that has them.
/// Answers the milliseconds of the open and of the close, and the bytes of memory that the open database took.
pub fn steps(what: &str, count: usize, dir: &Path) -> String {
    // What a process takes for its first database is no cost of a family.
    let other = tempfile::tempdir().unwrap();
    Db::open(other.path()).unwrap().close().unwrap();
    let (before, start) = (resident(), Instant::now());
    let db = match what {
        "create" => {
            let names = (0..count).map(|i| format!("f{i}"));
            names.fold(Db::builder(dir), |builder, name| builder.family(&name, |f| f)).open().unwrap()
        }
        "write" => Db::open(dir).unwrap(),
        "read" => Db::builder(dir).read_only(true).open().unwrap(),
        _ => panic!("no such step: {what}"),
    };
    let (took, taken) = (millis(start), resident().saturating_sub(before));
    assert_eq!(db.families().len(), count + 1);
    let start = Instant::now();
    db.close().unwrap();
    format!("{took} {} {taken}", millis(start))
}

/// Figures of ours: milliseconds of the open and of the close, bytes of memory.
struct Ours {
    took: u64,
    closed: u64,
    taken: u64,
}

fn ours(what: &str, count: usize, dir: &Path) -> Ours {
    let limits = Limited { addresses: 8 << 30, time: Duration::from_secs(600) };
    let said = limits.run(&format!("families\t{what}\t{count}\t{}", dir.to_str().unwrap()));
    let [took, closed, taken] = said.split(' ').map(|word| word.parse().unwrap()).collect::<Vec<u64>>()[..]
    else {
        panic!("not three figures: {said}")
    };
    Ours { took, closed, taken }
}

/// Milliseconds in which RocksDB opens the directory read-only and for writing.
fn rocksdbs(dir: &Path) -> Result<(u128, u128), JudgeError> {
    let mut judge = Judge::spawn(JudgeVersion::V11)?;
    let mut open = |opening| {
        let start = Instant::now();
        judge.open(dir, opening, "")?;
        let took = millis(start);
        judge.close().map(|()| took)
    };
    Ok((open(Opening::ReadOnly)?, open(Opening::Existing)?))
}

#[test]
fn an_idle_family_takes_at_most_16_kib() {
    let wanted = std::env::var("ASHLAR_FAMILIES").map(|number| number.parse().unwrap());
    let count = wanted.unwrap_or(report::scale(300, 1000));
    let dir = tempfile::tempdir().unwrap();
    let create = ours("create", count, dir.path());
    let (write, read) = (ours("write", count, dir.path()), ours("read", count, dir.path()));
    for (what, open) in [("written", &write), ("read", &read)] {
        let each = open.taken / count as u64;
        assert!(each <= IDLE_FAMILY, "a family of a database that is {what} takes {each} bytes");
    }
    let theirs = match rocksdbs(dir.path()) {
        Ok(figures) => figures,
        Err(JudgeError::Skip(skip)) => return skip.announce("an_idle_family_takes_at_most_16_kib"),
        Err(e) => panic!("{e:?}"),
    };
    report::figure(&format!(
        "{count} families: made in {} ms and closed in {}; opened to write in {} ms, {} bytes each, RocksDB 11.8.1 {} ms; \
         opened read-only in {} ms, {} bytes each, RocksDB {} ms",
        create.took,
        create.closed,
        write.took,
        write.taken / count as u64,
        theirs.1,
        read.took,
        read.taken / count as u64,
        theirs.0,
    ));
}

/// Small memtables of many families hold more room than entries, and that room counts: writes go on, within the cap.
#[test]
fn a_small_cap_holds_a_little_data_of_many_families() {
    let dir = tempfile::tempdir().unwrap();
    let count = report::scale(200, 600);
    let names = (0..count).map(|i| format!("f{i}"));
    let builder =
        names.fold(Db::builder(dir.path()).memory(16 << 20), |builder, name| builder.family(&name, |f| f));
    let db = builder.open().unwrap();
    let value = vec![b'v'; 7000];
    for round in 0..2u8 {
        for family in db.families() {
            family.put([round], &value).unwrap();
        }
    }
    let found = db.families().iter().filter(|family| family.scan(..).count() == 2).count();
    assert_eq!(found, count + 1);
}
