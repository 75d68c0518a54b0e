//! Directories under another name, or one that is no text.

use super::{Home, count, judged, rocksdb_finds, rocksdb_writes, write};
use ashlar_testkit::judge::copy_flat;
use ashlardb::{Db, ErrorKind};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;

/// The OPTIONS file then looks as if there were `db_paths`. Tables in the database directory tell that there are none.
#[test]
fn a_wal_dir_that_is_the_database_directory_in_another_spelling_is_no_sign_of_db_paths() {
    judged("wal_dir in another spelling", || {
        let home = Home::new();
        symlink(home.at("db"), home.at("link")).unwrap();
        let settings = format!("wal_dir={};", home.at("link").display());
        rocksdb_writes(&home.at("db"), &settings, 0..100, true, true)?;
        assert!(!home.files("db", ".sst").is_empty());
        let db = home.builder().open().unwrap();
        assert_eq!(count(&db), 100);
        write(&db, 100..110);
        db.close().unwrap();
        rocksdb_finds(&home.at("db"), &settings, 110)
    });
}

/// The path cannot be given to this engine, so that its logs cannot be read; they are not passed over.
#[test]
fn a_wal_dir_that_is_not_utf8_is_refused_and_loses_nothing() {
    let home = Home::new();
    let db = home.builder().wal_dir(home.at("wal")).open().unwrap();
    write(&db, 0..10);
    let copy = home.at("copy");
    copy_flat(&home.at("db"), &copy).unwrap();
    let options = fs::read_dir(&copy).unwrap().map(|entry| entry.unwrap().path());
    for file in options.filter(|path| path.to_string_lossy().contains("OPTIONS-")) {
        let bytes = fs::read(&file).unwrap();
        let path = home.at("wal");
        let path = path.as_os_str().as_bytes();
        let at = bytes.windows(path.len()).position(|window| window == path).unwrap();
        let odd = [&bytes[..at + path.len()], b"\xe4", &bytes[at + path.len()..]].concat();
        fs::write(file, odd).unwrap();
    }
    let e = Db::open(&copy).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidArgument, "{e}");
    assert!(e.to_string().contains("wal_dir"), "{e}");
}
