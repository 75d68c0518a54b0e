//! A copy of a directory whose OPTIONS file names the `wal_dir` of the original.

use super::{Home, check, count, judged, refused, rocksdb_finds, rocksdb_writes};
use ashlardb::{Db, Read as _, Write as _};
use std::fs;
use std::process::Command;

/// RocksDB leaves no `OWNER` in a `wal_dir`.
#[test]
fn a_copy_of_rocksdbs_directory_is_refused_the_logs_of_its_original() {
    judged("copy of a directory with a wal_dir", || {
        for wal in ["wal", "original/wal"] {
            let home = Home::new();
            let options = format!("wal_dir={};", home.at(wal).display());
            rocksdb_writes(&home.at("original"), &options, 0..100, false, true)?;
            copied(&home, "original", "db");
            let logs = home.files(wal, ".log");
            for result in [home.builder().open(), home.builder().read_only(true).open()] {
                let text = refused(result, "wal_dir");
                assert!(text.contains("is a copy of that one"), "{text}");
            }
            assert!(check(&home).unwrap_err().to_string().contains("wal_dir"));
            assert!(home.builder().repair(|_| ()).is_err());
            assert_eq!(home.files(wal, ".log"), logs);

            let own_logs = if wal == "wal" { home.at("db") } else { home.at("db/wal") };
            let expected = if wal == "wal" { 0 } else { 100 };
            let copy = home.builder().wal_dir(own_logs).open().unwrap();
            assert_eq!(count(&copy), expected);
            copy.put("only in the copy", "1").unwrap();
            copy.close().unwrap();
            rocksdb_finds(&home.at("original"), &options, 100)?;
            assert_eq!(count(&home.builder().open().unwrap()), expected + 1);

            // A directory that was moved leaves no original.
            fs::remove_dir_all(home.at("db")).unwrap();
            if wal == "wal" {
                fs::rename(home.at("original"), home.at("db")).unwrap();
                assert_eq!(count(&home.builder().open().unwrap()), 100);
            }
        }
        Ok(())
    });
}

fn copied(home: &Home, from: &str, to: &str) {
    let copied = Command::new("cp").arg("-a").args([home.at(from), home.at(to)]).status();
    assert!(copied.unwrap().success());
}

/// A checkpoint and a restored backup have an OPTIONS file, and no info log.
#[test]
fn logs_are_refused_where_no_info_log_proves_that_they_are_this_databases() {
    judged("checkpoint of a database with a wal_dir", || {
        for log_dir in [false, true] {
            let home = Home::new();
            let mut options = format!("wal_dir={};", home.at("wal").display());
            if log_dir {
                fs::create_dir(home.at("logs")).unwrap();
                options += &format!("db_log_dir={};", home.at("logs").display());
            }
            rocksdb_writes(&home.at("original"), &options, 0..100, false, true)?;
            copied(&home, "original", "db");
            for file in ["LOG", "IDENTITY"] {
                let _ = fs::remove_file(home.at("db").join(file));
            }
            let logs = home.files("wal", ".log");
            for result in [home.builder().open(), home.builder().read_only(true).open()] {
                let text = refused(result, "wal_dir");
                assert!(text.contains("Give wal_dir explicitly"), "{text}");
            }
            assert!(check(&home).is_err() && home.builder().repair(|_| ()).is_err());
            assert_eq!(home.files("wal", ".log"), logs);
            assert_eq!(count(&home.builder().wal_dir(home.at("db")).open().unwrap()), 0);

            fs::rename(home.at("db"), home.at("copy")).unwrap();
            if !log_dir {
                fs::rename(home.at("original"), home.at("db")).unwrap();
                assert_eq!(count(&home.builder().open().unwrap()), 100, "moved");
            } else {
                assert_eq!(count(&Db::open(home.at("original")).unwrap()), 100, "its info log is elsewhere");
            }
        }
        Ok(())
    });
}

/// With `max_log_file_size` RocksDB begins new info logs while it goes on. They do not say which database it is.
#[test]
fn an_info_log_that_was_replaced_often_proves_its_wal_dir() {
    judged("info log replaced often", || {
        let home = Home::new();
        let options = format!("wal_dir={};max_log_file_size=1;", home.at("wal").display());
        rocksdb_writes(&home.at("db"), &options, 0..100, false, true)?;
        let later = fs::read_to_string(home.at("db/LOG")).unwrap();
        assert!(!later.contains("Recovering from manifest file"), "{later}");
        for i in 10..60 {
            fs::write(home.at(&format!("db/LOG.old.99999999999999{i}")), &later).unwrap();
        }
        assert_eq!(count(&home.builder().read_only(true).open().unwrap()), 100);
        assert_eq!(count(&home.builder().open().unwrap()), 100);
        Ok(())
    });
}

/// RocksDB began a new database where the old one had been, with the same `wal_dir`.
#[test]
fn logs_of_a_new_database_in_the_old_place_are_not_those_of_the_moved_one() {
    judged("a new database in the place of a moved one", || {
        let home = Home::new();
        let options = format!("wal_dir={};", home.at("wal").display());
        rocksdb_writes(&home.at("new"), &options, 0..10, false, true)?;
        fs::rename(home.at("new"), home.at("db")).unwrap();
        fs::rename(home.at("wal"), home.at("wal of db")).unwrap();
        rocksdb_writes(&home.at("new"), &options, 0..90, false, true)?;
        let text = refused(home.builder().open(), "wal_dir");
        assert!(text.contains("uses"), "{text}");
        assert_eq!(count(&home.builder().wal_dir(home.at("wal of db")).open().unwrap()), 10);
        rocksdb_finds(&home.at("new"), &options, 90)
    });
}

/// It means another directory in every working directory.
#[test]
fn a_relative_wal_dir_of_rocksdb_is_not_looked_for_in_this_working_directory() {
    judged("a relative wal_dir", || {
        let home = Home::new();
        let options = format!("wal_dir={};", home.at("wal").display());
        rocksdb_writes(&home.at("db"), &options, 0..100, false, true)?;
        let here = std::env::current_dir().unwrap();
        let up = "../".repeat(here.components().count() - 1);
        let relative = format!("{up}{}", home.at("wal").display().to_string().trim_start_matches('/'));
        let name = home.files("db", "").into_iter().find(|name| name.starts_with("OPTIONS-")).unwrap();
        let file = home.at("db").join(name);
        let text = fs::read_to_string(&file).unwrap();
        fs::write(&file, text.replace(&home.at("wal").display().to_string(), &relative)).unwrap();
        refused(home.builder().open(), "wal_dir");
        refused(home.builder().read_only(true).open(), "wal_dir");
        assert_eq!(count(&home.builder().wal_dir(home.at("wal")).open().unwrap()), 100);
        Ok(())
    });
}

#[test]
fn a_database_that_lost_what_names_its_wal_dir_is_refused() {
    judged("no OPTIONS file and no info log", || {
        let home = Home::new();
        let options = format!("wal_dir={};", home.at("wal").display());
        rocksdb_writes(&home.at("db"), &options, 0..100, true, true)?;
        for name in home.files("db", "").iter().filter(|n| n.starts_with("OPTIONS-") || *n == "LOG") {
            fs::remove_file(home.at("db").join(name)).unwrap();
        }
        let before = home.contents();
        refused(home.builder().open(), "wal_dir");
        refused(home.builder().read_only(true).open(), "wal_dir");
        assert_eq!(home.contents(), before);
        assert_eq!(count(&home.builder().wal_dir(home.at("wal")).open().unwrap()), 100);
        rocksdb_finds(&home.at("db"), &options, 100)
    });
}

/// RocksDB leaves no `OWNER` in a directory of tables either. Its info log names those that were there when it opened.
#[test]
fn a_copy_is_refused_the_tables_of_its_original() {
    judged("copy of a directory with db_paths", || {
        let home = Home::new();
        let paths =
            format!("db_paths={}:1,{}:1000000000;", home.at("original").display(), home.at("slow").display());
        rocksdb_writes(&home.at("original"), &paths, 0..1000, true, false)?;
        rocksdb_finds(&home.at("original"), &paths, 1000)?;
        assert!(!home.files("slow", ".sst").is_empty());
        copied(&home, "original", "db");
        let placed = |slow: &str| home.builder().db_path(home.at("db"), 1).db_path(home.at(slow), 1 << 30);
        let text = refused(placed("slow").open(), "db_paths");
        assert!(text.contains("of which this one is a copy"), "{text}");
        rocksdb_finds(&home.at("original"), &paths, 1000)?;
        copied(&home, "slow", "copy of slow");
        assert_eq!(count(&placed("copy of slow").open().unwrap()), 1000);
        rocksdb_finds(&home.at("original"), &paths, 1000)
    });
}

/// No WAL file was left in the `wal_dir`, and the next open took the logs for lost.
#[test]
fn a_repaired_database_with_a_wal_dir_opens() {
    for is_gone in [false, true] {
        let home = Home::new();
        let db = home.builder().wal_dir(home.at("wal")).open().unwrap();
        db.put("flushed", "v").unwrap();
        db.flush().unwrap();
        db.put("logged", "v").unwrap();
        db.close().unwrap();
        if is_gone {
            fs::remove_dir_all(home.at("wal")).unwrap();
            refused(home.builder().open(), "wal_dir");
        }
        home.builder().repair(|_| ()).unwrap();
        assert!(check(&home).unwrap().is_sound());
        let db = home.builder().open().unwrap();
        assert!(db.get("flushed").unwrap().is_some());
        assert_eq!(db.get("logged").unwrap().is_some(), !is_gone);
        db.put("later", "v").unwrap();
        db.close().unwrap();
        assert!(home.builder().open().unwrap().get("later").unwrap().is_some());
    }
}
