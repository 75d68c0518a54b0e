//! A copy of a directory whose OPTIONS file names the `wal_dir` of the original.

use super::{Home, check, count, judged, refused, rocksdb_finds, rocksdb_writes};
use ashlardb::Write as _;
use std::fs;

/// RocksDB leaves no `OWNER` in a `wal_dir`.
#[test]
fn a_copy_of_rocksdbs_directory_is_refused_the_logs_of_its_original() {
    judged("copy of a directory with a wal_dir", || {
        for wal in ["wal", "original/wal"] {
            let home = Home::new();
            let options = format!("wal_dir={};", home.at(wal).display());
            rocksdb_writes(&home.at("original"), &options, 0..100, false, true)?;
            let copied = std::process::Command::new("cp")
                .arg("-a")
                .args([home.at("original"), home.at("db")])
                .status();
            assert!(copied.unwrap().success());
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
