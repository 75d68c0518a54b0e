//! One owner per directory, whoever asks and under whatever name.

use crate::child::{Kind, Writer, churns, opens};
use crate::store::{Shape, Store};
use ashlardb::{BusyKind, Db, ErrorKind, FormatLevel};
use std::time::Duration;

const LOCKED: ErrorKind = ErrorKind::Busy(BusyKind::Locked);

#[test]
fn a_second_open_names_the_owner_under_every_name() {
    let temp = tempfile::tempdir().unwrap();
    let (real, alias) = (temp.path().join("db"), temp.path().join("alias"));
    let db = Db::open(&real).unwrap();
    std::os::unix::fs::symlink(&real, &alias).unwrap();
    db.put("k", "v").unwrap();
    let pid = std::process::id().to_string();
    for path in [&real, &alias, &real.join("../alias/.")] {
        let e = Db::open(path).unwrap_err();
        assert_eq!(e.kind(), LOCKED, "{e}");
        assert!(e.to_string().contains(&pid) && e.to_string().contains("LOCK"), "{e}");
    }
    // The refused opens gave nothing up: another process is refused too, under both names.
    for path in [&real, &alias] {
        let said = opens(path);
        assert!(said.starts_with("refused Resource busy") && said.contains(&pid), "{said}");
    }
    db.put("k2", "v").unwrap();
    db.close().unwrap();
    assert_eq!(opens(&real), "opened");
    let db = Db::open(&alias).unwrap();
    assert!(db.get("k2").unwrap().is_some());
    assert!(opens(&real).starts_with("refused"));
    drop(db);
    assert_eq!(opens(&alias), "opened");
}

#[test]
fn a_living_process_keeps_us_out_and_a_killed_one_does_not() {
    let dir = tempfile::tempdir().unwrap();
    let shape = Shape::large(FormatLevel::default());
    let mut writer = Writer::start(dir.path(), shape, Kind::Sequential, 1);
    writer.wait_until_writing();
    let e = Db::open(dir.path()).unwrap_err();
    assert_eq!(e.kind(), LOCKED, "{e}");
    assert!(e.to_string().contains(&writer.id().to_string()), "{e} does not name {}", writer.id());
    let returned = writer.kill_after(Duration::from_millis(20));
    let store = Store::open(dir.path(), shape);
    assert!(store.db().sequence().get() >= returned);
}

#[test]
fn closing_gives_descriptors_and_threads_back() {
    let dir = tempfile::tempdir().unwrap();
    let said = churns(dir.path());
    let numbers: Vec<usize> =
        said.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse().ok()).collect();
    let [fds_before, threads_before, fds_after, threads_after] = numbers[..] else { panic!("{said}") };
    assert_eq!((fds_before, threads_before), (fds_after, threads_after), "{said}");
}
