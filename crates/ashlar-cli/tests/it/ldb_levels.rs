//! The commands of ldb that move tables to other levels, held against RocksDB's tool.

use super::ldb::{place, run};
use super::{Ran, ashlar};
use ashlar_testkit::Tools;
use std::path::Path;

/// The lines of `list_live_files_metadata` that name a level with tables.
fn used_levels(ldb: &Path, db: &Path) -> Vec<String> {
    let listed = run(ldb, db, "list_live_files_metadata").out;
    let lines: Vec<&str> = listed.lines().collect();
    let used = lines.windows(2).filter(|pair| pair[0].contains("level") && pair[1].ends_with(".sst"));
    used.map(|pair| pair[0].trim_matches(['-', ' ']).to_owned()).collect()
}

/// The newest OPTIONS file.
fn options(db: &Path) -> String {
    let files = std::fs::read_dir(db).unwrap().map(|entry| entry.unwrap().path());
    let newest = files.filter(|file| file.to_string_lossy().contains("OPTIONS-")).max().unwrap();
    std::fs::read_to_string(newest).unwrap()
}

fn good(ldb: &Path, db: &Path, line: &str) -> String {
    let ran = run(ldb, db, line);
    assert_eq!((ran.status, ran.err.as_str()), (0, ""), "{line}: {ran:?}");
    ran.out
}

/// A database with a table in the last of seven levels, and a write in the WAL.
fn deep(ldb: &Path, db: &Path) {
    for line in ["batchput a 1 b 2 c 3 --create_if_missing", "compact", "put d 4"] {
        good(ldb, db, line);
    }
    assert_eq!(used_levels(ldb, db), ["level 6"]);
}

const DUMP: &str = "a ==> 1\nb ==> 2\nc ==> 3\nd ==> 4\nKeys in range: 4\n";

#[test]
fn tables_move_to_fewer_levels() {
    let (dir, ldb) = place();
    let db = dir.path().join("db");
    deep(&ldb, &db);
    assert_eq!(
        good(&ldb, &db, "reduce_levels --new_levels=7 --print_old_levels"),
        "The old number of levels in use is 7\n"
    );
    assert_eq!(used_levels(&ldb, &db), ["level 6"]);
    assert_eq!(good(&ldb, &db, "reduce_levels --new_levels=3"), "Compacting the db...\n");
    assert_eq!(used_levels(&ldb, &db), ["level 2"]);
    assert!(options(&db).contains("num_levels=3"), "the next open has three levels");
    assert_eq!(good(&ldb, &db, "dump"), DUMP);
    // The tables do not go back.
    good(&ldb, &db, "put e 5");
    good(&ldb, &db, "compact");
    assert_eq!(used_levels(&ldb, &db), ["level 2"]);
    // Another family keeps its levels.
    good(&ldb, &db, "create_column_family two");
    good(&ldb, &db, "put --column_family=two k v");
    good(&ldb, &db, "compact --column_family=two");
    let old = used_levels(&ldb, &db);
    assert_eq!(good(&ldb, &db, "reduce_levels --new_levels=2 --column_family=two"), "Compacting the db...\n");
    assert_eq!((old.len(), used_levels(&ldb, &db)), (2, vec!["level 2".to_owned(), "level 1".to_owned()]));
    assert_eq!(good(&ldb, &db, "get --column_family=two k"), "v\n");
    for (line, status, said) in [
        ("reduce_levels", 2, "--new_levels"),
        ("reduce_levels --new_levels=1", 2, "2..=64"),
        ("reduce_levels --new_levels=x", 2, "x"),
        ("reduce_levels --new_levels=2 --column_family=none", 1, "none"),
    ] {
        let ran = run(&ldb, &db, line);
        assert!(ran.status == status && ran.err.contains(said), "{line}: {ran:?}");
    }
}

#[test]
fn a_leveled_family_becomes_universal() {
    let (dir, ldb) = place();
    let db = dir.path().join("db");
    deep(&ldb, &db);
    for name in ["two", "three"] {
        good(&ldb, &db, &format!("create_column_family {name}"));
    }
    for line in ["put e 5 --auto_compaction=false", "put f 6 --auto_compaction=false"] {
        good(&ldb, &db, line);
    }
    let change = "change_compaction_style --old_compaction_style=0 --new_compaction_style=1";
    // The open writes the write in the WAL to a table of level 0.
    let said =
        "files per level before compaction: 3,0,0,0,0,0,1\nfiles per level after compaction: 0,0,0,0,0,0,1\n";
    assert_eq!(good(&ldb, &db, change), said);
    assert!(
        options(&db).contains("compaction_style=kCompactionStyleUniversal"),
        "the OPTIONS file has the style"
    );
    assert_eq!(good(&ldb, &db, "scan --no_value"), "a\nb\nc\nd\ne\nf\n");
    // An empty family has nothing to compact, and other families keep their style.
    let two = format!("{change} --column_family=two");
    let said =
        "files per level before compaction: 0,0,0,0,0,0,0\nfiles per level after compaction: 0,0,0,0,0,0,0\n";
    assert_eq!(good(&ldb, &db, &two), said);
    let styles = options(&db);
    let universal = styles.matches("compaction_style=kCompactionStyleUniversal").count();
    assert_eq!((universal, styles.matches("compaction_style=").count()), (2, 3), "{styles}");
    // Tables of a universal family move too.
    assert_eq!(good(&ldb, &db, "reduce_levels --new_levels=3"), "Compacting the db...\n");
    assert_eq!(
        (used_levels(&ldb, &db), good(&ldb, &db, "get f")),
        (vec!["level 2".to_owned()], "6\n".to_owned())
    );
    let again = run(&ldb, &db, change);
    assert!(again.status == 1 && again.err.contains("another style than leveled"), "{again:?}");
    for (line, status, said) in [
        (
            "change_compaction_style --old_compaction_style=1 --new_compaction_style=0",
            1,
            "no file has to change",
        ),
        ("change_compaction_style --old_compaction_style=1 --new_compaction_style=1", 1, "the same"),
        ("change_compaction_style --old_compaction_style=0", 2, "--new_compaction_style"),
        ("change_compaction_style --old_compaction_style=0 --new_compaction_style=2", 2, "2"),
        ("update_manifest --update_temperatures", 1, "nothing was changed"),
    ] {
        let ran = run(&ldb, &db, line);
        assert!(ran.status == status && ran.out.is_empty() && ran.err.contains(said), "{line}: {ran:?}");
    }
}

/// Copies the files of a database.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

/// Each program changes a copy of the same database, and each reads and writes what the other one has changed.
#[test]
fn changed_databases_are_those_of_rocksdbs_ldb() {
    if let Err(skip) = Tools::available() {
        return skip.announce("changed_databases_are_those_of_rocksdbs_ldb");
    }
    let (dir, ours) = place();
    let theirs = Path::new("ldb");
    let db = dir.path().join("db");
    deep(&ours, &db);
    let rewritten = ashlar(&["db", db.to_str().unwrap(), "rewrite", "--level=rocksdb-7.8"], b"");
    assert_eq!(rewritten.status, 0, "{rewritten:?}");
    let level = "--level=rocksdb-7.8";
    for (command, other_lines) in [
        ("reduce_levels --new_levels=3 --print_old_levels", false),
        ("reduce_levels --new_levels=9 --print_old_levels", false),
        // RocksDB moves the table to level 0.
        ("change_compaction_style --old_compaction_style=0 --new_compaction_style=1", true),
        ("change_compaction_style --old_compaction_style=1 --new_compaction_style=0", false),
    ] {
        let name = command.replace(' ', "_");
        let (a, b) = (dir.path().join(format!("{name}_a")), dir.path().join(format!("{name}_b")));
        copy(&db, &a);
        copy(&db, &b);
        let Ran { status, out, err } = run(&ours, &a, &format!("{command} {level}"));
        let other = run(theirs, &b, command);
        assert_eq!(status, other.status, "{command}: {err} {other:?}");
        let lines = |out: &str| {
            out.lines().take(if other_lines { 1 } else { 9 }).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(lines(&out), lines(&other.out), "{command}");
        if !other_lines {
            assert_eq!(used_levels(&ours, &a), used_levels(theirs, &b), "{command}");
        }
        for (ldb, db) in [(theirs, &a), (&*ours, &b)] {
            assert_eq!(good(ldb, db, "dump"), DUMP, "{command}");
            assert_eq!(good(ldb, db, "put e 5"), "OK\n", "{command}");
            good(ldb, db, "compact");
            assert_eq!(good(ldb, db, "get e"), "5\n", "{command}");
        }
    }
}
