//! `ashlar db check`.

use super::{ashlar, good};
use serde_json::{Value, json};
use std::path::Path;

fn parsed(line: &str) -> Value {
    serde_json::from_str(line).unwrap()
}

#[test]
fn a_damage_is_told_with_its_keys_and_a_status() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("db");
    let db = format!("--db={}", dir.display());
    let lines: String = (0..3000).map(|i| format!("key{i:05}\tvalue {i}\n")).collect();
    good(&["db", &db, "load", "--tsv", "--create_if_missing", "--compact"], lines.as_bytes());
    // A table that the compaction replaced may be there still: a remark.
    let said = good(&["db", &db, "check"], b"");
    assert!(
        said.contains("1 tables, 0 blob files, 1 WAL files with 3000 entries") && said.ends_with(": sound\n"),
        "{said}"
    );
    let report = parsed(&good(&["db", &db, "check", "--json"], b""));
    assert!(report["sound"] == true && report["tables"] == 1 && report["damages"] == json!([]), "{report}");

    let entries = std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path());
    let table = entries.filter(|path| path.extension().is_some_and(|e| e == "sst")).max().unwrap();
    let mut bytes = std::fs::read(&table).unwrap();
    bytes[6000] ^= 1;
    std::fs::write(&table, bytes).unwrap();
    let ran = ashlar(&["db", &db, "check"], b"");
    let name = table.file_name().unwrap().to_str().unwrap().to_owned();
    assert_eq!((ran.status, ran.err.as_str()), (1, &*format!("{}: 1 damage\n", dir.display())), "{ran:?}");
    assert!(ran.out.starts_with(&format!("{name} at ")), "{ran:?}");
    assert!(ran.out.contains("; family \"default\": at risk: keys 'key0"), "{ran:?}");
    let ran = ashlar(&["db", &db, "check", "--json"], b"");
    let damage = &parsed(&ran.out)["damages"][0];
    assert!(
        damage["file"] == *name && damage["offset"].is_u64() && damage["family"] == "default",
        "{damage}"
    );
    assert_eq!(damage["risk"]["kind"], "keys");
    let from = damage["risk"]["ranges"][0]["from"].as_str();
    assert!(from.is_some_and(|from| from.starts_with("6B6579")), "{damage}");

    let copy = temp.path().join("copy");
    let into = format!("--into={}", copy.display());
    let lossy = |words: &[&str], to: &Path| {
        let ran = ashlar(words, b"");
        let err = format!("{}: repaired with 1 loss\n", to.display());
        assert_eq!((ran.status, ran.err.as_str()), (3, err.as_str()), "{words:?}: {ran:?}");
        ran.out
    };
    let salvaged = lossy(&["db", &db, "repair", &into], &copy);
    let left = good(&["db", &format!("--db={}", copy.display()), "dump", "--count_only"], b"");
    let second = temp.path().join("around");
    let around = format!("--into={}", second.display());
    let said = lossy(&["db", &db, "repair", &around, "--around-unreadable"], &second);
    assert_eq!(said, salvaged, "all of it reads");
    let ran = ashlar(&["db", &db, "repair", &into], b"");
    assert!(ran.status == 1 && ran.err.contains("there is something in the place of the copy"), "{ran:?}");
    assert_eq!(ashlar(&["db", &db, "check"], b"").status, 1, "the directory is as it was");

    let said = lossy(&["db", &db, "repair"], &dir);
    assert_eq!(said, salvaged);
    assert!(
        said.contains("; losses are listed below\nloss: ")
            && said.contains(&format!("moved to lost/: {name}\n")),
        "{said}"
    );
    let account = parsed(&good(&["db", &db, "repair", "--json"], b""));
    assert!(account["lossless"] == true && account["manifest"].is_u64(), "{account}");
    assert!(["losses", "moved", "remarks"].iter().all(|list| account[list] == json!([])), "{account}");
    let said = good(&["db", &db, "check"], b"");
    assert!(said.ends_with(": sound\n"), "{said}");
    assert_eq!(good(&["db", &db, "dump", "--count_only"], b""), left);
    assert!(left.contains("Keys in range: 29") || left.contains("Keys in range: 28"), "{left}");

    let ran = ashlar(&["db", &format!("--db={}", temp.path().join("none").display()), "check"], b"");
    assert!(ran.status == 1 && ran.err.contains("there is no database"), "{ran:?}");
}

/// A flipped byte in writes that were never synced may also come from a power cut: the report has its keys, and the check does not fail.
#[test]
fn a_hole_in_a_log_is_told_and_no_failure() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("db");
    let db = format!("--db={}", dir.display());
    let lines: String = (0..3000).map(|i| format!("key{i:05}\tvalue {i}\n")).collect();
    good(&["db", &db, "load", "--tsv", "--create_if_missing"], lines.as_bytes());
    let entries = std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path());
    let logs = entries.filter(|path| path.extension().is_some_and(|e| e == "log"));
    let log = logs.max_by_key(|path| path.metadata().unwrap().len()).unwrap();
    let mut bytes = std::fs::read(&log).unwrap();
    bytes[100] ^= 1;
    std::fs::write(&log, bytes).unwrap();
    let said = good(&["db", &db, "check"], b"");
    assert!(said.starts_with("hole: ") && said.ends_with(": no damage, 1 hole\n"), "{said}");
    let report = parsed(&good(&["db", &db, "check", "--json"], b""));
    let risk = &report["holes"][0]["risk"];
    assert!(report["sound"] == true && risk["kind"] == "writes" && risk["last"] == 3000, "{report}");
    assert!(risk["behind"][0].as_str().is_some_and(|key| key.starts_with("6B6579")), "{report}");
}

#[test]
fn beside_a_process_that_has_the_database_open_a_check_says_so() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("db").display().to_string();
    let db = ashlardb::Db::open(&path).unwrap();
    ashlardb::Write::put(&db, "a", "1").unwrap();
    db.flush().unwrap();
    assert!(good(&["db", &path, "check"], b"").ends_with(": sound\n"));
    good(&["db", &path, "level"], b"");
    let entries = std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path());
    for table in entries.filter(|path| path.extension().is_some_and(|e| e == "sst")) {
        std::fs::remove_file(&table).unwrap();
        std::fs::write(&table, b"").unwrap();
    }
    for command in ["check", "level"] {
        let ran = ashlar(&["db", &path, command], b"");
        assert_eq!((ran.status, ran.out.as_str()), (1, ""), "{ran:?}");
        let pid = format!("pid {}", std::process::id());
        for part in ["open elsewhere", &pid, "look like damage", "Close the database"] {
            assert!(ran.err.contains(part), "{part}: {ran:?}");
        }
    }
    drop(db);
    let ran = ashlar(&["db", &path, "check"], b"");
    assert!(ran.status == 1 && ran.out.contains(".sst"), "{ran:?}");
}
