//! Files in several directories: `wal_dir`, `db_paths`, `cf_paths`, with RocksDB 11.8.1 as the other writer.

use ashlar_testkit::golden::golden;
use ashlar_testkit::judge::{JudgeError, Opening, copy_flat};
use ashlar_testkit::text::to_hex;
use ashlar_testkit::{Change, Judge, JudgeVersion, Op};
use ashlardb::{
    Builder, Db, Env, FormatLevel, PlaceSettings, Read as _, RecoveryMode, Result, Write as _,
    check_database, check_database_in,
};
use std::fs;
use std::path::{Path, PathBuf};

mod copies;
mod spellings;

/// A directory for one test, with names in it.
struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Home {
        Home(tempfile::tempdir().unwrap())
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn wal_dir(&self) -> String {
        format!("wal_dir={};", self.at("wal").display())
    }

    /// Two directories, the first one for level 0 only.
    fn paths(&self, option: &str) -> String {
        format!("{option}={}:1500000,{}:1000000000000;", self.at("p0").display(), self.at("p1").display())
    }

    fn builder(&self) -> Builder {
        Db::builder(self.at("db")).format_level(FormatLevel::V11).default_family(|f| {
            f.options("max_bytes_for_level_base=1M;target_file_size_base=64K;write_buffer_size=256K")
        })
    }

    fn placed(&self) -> Builder {
        self.builder().db_path(self.at("p0"), 1_500_000).db_path(self.at("p1"), 1_000_000_000_000)
    }

    fn places(&self) -> PlaceSettings {
        let paths = [("p0", 1_500_000), ("p1", 1_000_000_000_000)];
        let db_paths = paths.map(|(name, bytes)| ashlardb::DbPath::new(self.at(name), bytes)).to_vec();
        PlaceSettings { db_paths, ..PlaceSettings::default() }
    }

    /// The files of a kind, by directory.
    fn files(&self, dir: &str, ending: &str) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.at(dir)) else { return Vec::new() };
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.filter(|name| name.ends_with(ending)).collect();
        names.sort();
        names
    }

    /// Everything in the database directory but LOCK and LOG, by name and content.
    fn contents(&self) -> Vec<(String, Vec<u8>)> {
        let names = self.files("db", "").into_iter().filter(|n| *n != "LOCK" && !n.starts_with("LOG"));
        names.filter_map(|name| Some((name.clone(), fs::read(self.at("db").join(name)).ok()?))).collect()
    }
}

/// Runs a test that needs RocksDB; without one it says that it is skipped.
fn judged(test: &str, run: impl FnOnce() -> std::result::Result<(), JudgeError>) {
    match run() {
        Err(JudgeError::Skip(skip)) => skip.announce(test),
        result => result.unwrap_or_else(|e| panic!("{test}: {e}")),
    }
}

fn key(n: usize) -> String {
    format!("key{n:06}")
}

fn value(n: usize) -> String {
    format!("value{n:06}").repeat(20)
}

/// RocksDB with a directory open. Option strings have no form for its lists of directories: here they may stand in front, as
/// `db_paths=/a:100,/b:200;`.
fn rocksdb(dir: &Path, opening: Opening, options: &str) -> std::result::Result<Judge, JudgeError> {
    let mut judge = Judge::spawn(JudgeVersion::V11)?;
    let (list, rest) = options.split_once(';').unwrap_or((options, ""));
    let (whose, paths) = match list.split_once('=') {
        Some(("db_paths", paths)) => ("*", paths),
        Some(("cf_paths", paths)) => ("default", paths),
        _ => {
            judge.open(dir, opening, options)?;
            return Ok(judge);
        }
    };
    judge.prepare(&format!("with db {rest}"))?;
    judge.prepare(&format!("with family default {rest}"))?;
    for path in paths.split(',') {
        let (path, bytes) = path.rsplit_once(':').unwrap();
        judge.prepare(&format!("with path {whose} {} {bytes}", to_hex(path.as_bytes())))?;
    }
    judge.open(dir, opening, "")?;
    Ok(judge)
}

/// Lets RocksDB write keys. `flushes`: after each tenth of them; `killed`: it does not close.
fn rocksdb_writes(
    dir: &Path,
    options: &str,
    keys: std::ops::Range<usize>,
    flushes: bool,
    killed: bool,
) -> std::result::Result<(), JudgeError> {
    let mut judge = rocksdb(dir, Opening::Create, options)?;
    let tenth = keys.len().div_ceil(10);
    for from in keys.clone().step_by(tenth) {
        let part = from..(from + tenth).min(keys.end);
        let put = |n| Change::Put { family: "default".into(), key: key(n).into(), value: value(n).into() };
        judge.write(&part.map(put).collect::<Vec<_>>(), true)?;
        if flushes {
            judge.apply(&[Op::Flush { family: "default".into() }])?;
        }
    }
    if killed {
        judge.kill();
        return Ok(());
    }
    judge.apply(&[Op::Compact { family: "default".into() }])?;
    judge.close()
}

/// RocksDB finds so many keys, and every block sound.
fn rocksdb_finds(dir: &Path, options: &str, keys: usize) -> std::result::Result<(), JudgeError> {
    let mut judge = rocksdb(dir, Opening::Existing, options)?;
    judge.verify()?;
    let found = judge.dump("default")?;
    assert_eq!(found.len(), keys);
    assert!(found.iter().enumerate().all(|(n, (k, _))| *k == key(n).as_bytes()));
    judge.close()
}

fn count(db: &Db) -> usize {
    db.scan(..).inspect(|entry| assert!(entry.is_ok(), "{entry:?}")).count()
}

fn write(db: &Db, keys: std::ops::Range<usize>) {
    for n in keys {
        db.put(key(n), value(n)).unwrap();
    }
}

fn check(home: &Home) -> Result<ashlardb::CheckReport> {
    check_database(&Env::os().unwrap(), &home.at("db"), &mut |_| {})
}

fn refused(result: Result<Db>, setting: &str) -> String {
    let e = result.map(drop).unwrap_err();
    let text = format!("{e} {e:?}");
    assert!(text.contains(setting), "{text}");
    assert!(!e.is_corruption(), "{text}");
    text
}

#[test]
fn logs_are_read_and_written_where_the_options_file_says() {
    judged("wal_dir of RocksDB", || {
        let home = Home::new();
        rocksdb_writes(&home.at("db"), &home.wal_dir(), 0..100, false, true)?;
        assert_eq!(count(&home.builder().read_only(true).open().unwrap()), 100);
        let checked = check(&home).unwrap();
        assert_eq!((checked.damages.len(), checked.logs), (0, 1), "{checked}");
        let db = home.builder().open().unwrap();
        assert!(db.recovery().is_clean(), "{}", db.recovery());
        assert_eq!(count(&db), 100);
        db.put(key(100), value(100)).unwrap();
        db.close().unwrap();
        assert_eq!((home.files("wal", ".log").len(), home.files("db", ".log").len()), (1, 0));
        rocksdb_finds(&home.at("db"), &home.wal_dir(), 101)
    });
}

#[test]
fn a_wal_dir_that_is_gone_is_refused_before_anything_is_written() {
    judged("wal_dir that is gone", || {
        let home = Home::new();
        rocksdb_writes(&home.at("db"), &home.wal_dir(), 0..100, false, true)?;
        fs::rename(home.at("wal"), home.at("moved")).unwrap();
        let before = home.contents();
        for result in [home.builder().open(), home.builder().read_only(true).open()] {
            refused(result, "wal_dir=");
        }
        refused(home.builder().wal_dir(home.at("wrong")).open(), "wal_dir=");
        assert!(check(&home).unwrap_err().to_string().contains("wal_dir="));
        assert_eq!(home.contents(), before);
        let db = home.builder().wal_dir(home.at("moved")).open().unwrap();
        assert_eq!(count(&db), 100);
        db.close().unwrap();
        rocksdb_finds(&home.at("db"), &format!("wal_dir={}", home.at("moved").display()), 100)
    });
}

/// RocksDB 7.8 goes on when it cannot store its settings, and leaves them in a file that it never renames.
#[test]
fn a_wal_dir_that_only_an_unfinished_options_file_names_is_found() {
    judged("wal_dir in OPTIONS-N.dbtmp", || {
        let home = Home::new();
        rocksdb_writes(&home.at("db"), &home.wal_dir(), 0..100, false, true)?;
        for name in home.files("db", "").iter().filter(|name| name.starts_with("OPTIONS-")) {
            let path = home.at("db").join(name);
            fs::rename(&path, path.with_extension("dbtmp")).unwrap();
        }
        assert!(check(&home).unwrap().is_sound());
        assert_eq!(count(&home.builder().read_only(true).open().unwrap()), 100);
        let db = home.builder().open().unwrap();
        assert_eq!(count(&db), 100);
        db.close().unwrap();
        assert_eq!(home.files("wal", ".log").len(), 1, "the logs stay where they were");
        rocksdb_finds(&home.at("db"), &home.wal_dir(), 100)
    });
}

#[test]
fn logs_that_no_options_file_leads_to_are_found_by_the_info_log() {
    judged("wal_dir without an OPTIONS file", || {
        let home = Home::new();
        rocksdb_writes(&home.at("db"), &home.wal_dir(), 0..100, false, true)?;
        for name in home.files("db", "").iter().filter(|name| name.starts_with("OPTIONS-")) {
            fs::remove_file(home.at("db").join(name)).unwrap();
        }
        fs::rename(home.at("wal"), home.at("moved")).unwrap();
        refused(home.builder().open(), "wal_dir=");
        assert!(check(&home).unwrap_err().to_string().contains("wal_dir="));
        fs::rename(home.at("moved"), home.at("wal")).unwrap();
        assert_eq!(count(&home.builder().read_only(true).open().unwrap()), 100);
        let db = home.builder().open().unwrap();
        assert_eq!(count(&db), 100);
        db.close().unwrap();
        rocksdb_finds(&home.at("db"), &home.wal_dir(), 100)
    });
}

#[test]
fn a_wal_dir_whose_logs_are_all_done_with_is_no_missing_one() {
    judged("wal_dir without a needed log", || {
        let home = Home::new();
        let options = home.wal_dir() + "optimize_manifest_for_recovery=true;";
        rocksdb_writes(&home.at("db"), &options, 0..100, false, false)?;
        rocksdb_finds(&home.at("db"), &options, 100)?;
        assert!(check(&home).unwrap().is_sound());
        for _ in 0..2 {
            let db = home.builder().open().unwrap();
            assert_eq!(count(&db), 100);
            db.close().unwrap();
        }
        rocksdb_finds(&home.at("db"), &options, 100)
    });
}

#[test]
fn a_log_of_another_file_system_that_is_not_replayed_to_its_end_is_kept_in_lost() {
    let home = Home::new();
    let memory = Path::new("/dev/shm");
    let other = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap();
    let logs = || -> Vec<PathBuf> {
        let paths = fs::read_dir(other.path()).unwrap().map(|entry| entry.unwrap().path());
        paths.filter(|path| path.extension().is_some_and(|e| e == "log")).collect()
    };
    let db = home.builder().wal_dir(other.path()).open().unwrap();
    write(&db, 0..300);
    db.close().unwrap();
    let [log] = &logs()[..] else { panic!("{:?}", logs()) };
    let mut bytes = fs::read(log).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(log, &bytes).unwrap();
    let db = home.builder().open().unwrap();
    let name = log.file_name().unwrap().to_str().unwrap();
    assert_eq!(db.recovery().lost, [name], "{}", db.recovery());
    assert!((100..200).contains(&count(&db)));
    db.close().unwrap();
    assert!(!log.exists() && logs().len() == 1);
    assert!(fs::read(home.at("db/lost").join(name)).unwrap() == bytes);
}

#[test]
fn a_new_wal_dir_takes_new_logs_and_the_former_one_is_read_and_left_as_it_is() {
    judged("another wal_dir", || {
        let home = Home::new();
        rocksdb_writes(&home.at("db"), &home.wal_dir(), 0..100, false, true)?;
        let former = home.files("wal", ".log");
        let db = home.builder().wal_dir(home.at("new")).open().unwrap();
        assert_eq!(count(&db), 100);
        write(&db, 100..110);
        db.close().unwrap();
        assert_eq!(home.files("wal", ".log"), former);
        assert_eq!((home.files("new", ".log").len(), home.files("db", ".log").len()), (1, 0));
        assert_eq!(count(&home.builder().open().unwrap()), 110, "the OPTIONS file names the new one");
        rocksdb_finds(&home.at("db"), &format!("wal_dir={}", home.at("new").display()), 110)?;
        let db = home.builder().wal_dir(home.at("db")).open().unwrap();
        assert_eq!(count(&db), 110, "and back to one directory");
        db.close().unwrap();
        rocksdb_finds(&home.at("db"), "", 110)
    });
}

#[test]
fn a_database_without_wal_dir_gets_one_and_keeps_its_logs() {
    let home = Home::new();
    let db = home.builder().open().unwrap();
    write(&db, 0..50);
    db.close().unwrap();
    assert_eq!(home.files("db", ".log").len(), 1);
    let db = home.builder().wal_dir(home.at("wal")).open().unwrap();
    write(&db, 50..60);
    db.close().unwrap();
    assert_eq!((home.files("wal", ".log").len(), home.files("db", ".log").len()), (1, 0));
    assert_eq!(count(&home.builder().read_only(true).open().unwrap()), 60);
}

#[test]
fn a_copy_never_touches_the_logs_of_its_original() {
    let home = Home::new();
    let original = Db::builder(home.at("original")).wal_dir(home.at("wal"));
    let db = original.clone().open().unwrap();
    write(&db, 0..50);
    db.close().unwrap();
    let logs = home.files("wal", ".log");
    fs::create_dir(home.at("db")).unwrap();
    copy_flat(&home.at("original"), &home.at("db")).unwrap();
    copy_flat(&home.at("wal"), &home.at("db")).unwrap();
    let text = refused(home.builder().open(), "wal_dir");
    assert!(text.contains("two directories"), "{text}");
    let db = home.builder().wal_dir(home.at("db")).open().unwrap();
    assert!(!db.recovery().foreign.is_empty(), "the other logs are told");
    assert_eq!(count(&db), 50);
    write(&db, 50..60);
    db.close().unwrap();
    assert_eq!(home.files("wal", ".log"), logs);
    assert_eq!(count(&home.builder().open().unwrap()), 60);
    assert_eq!(count(&original.open().unwrap()), 50);
}

#[test]
fn a_directory_that_was_moved_with_its_logs_uses_them_and_tells() {
    judged("moved directory", || {
        let home = Home::new();
        rocksdb_writes(&home.at("db"), &home.wal_dir(), 0..100, false, true)?;
        copy_flat(&home.at("wal"), &home.at("db")).unwrap();
        fs::remove_dir_all(home.at("wal")).unwrap();
        let db = home.builder().open().unwrap();
        assert_eq!(count(&db), 100);
        assert!(db.recovery().foreign.iter().any(|line| line.contains("wal_dir=")), "{}", db.recovery());
        db.close().unwrap();
        let db = home.builder().open().unwrap();
        assert!(db.recovery().is_clean() && db.recovery().foreign.is_empty(), "{}", db.recovery());
        db.close().unwrap();
        let names = home.files("db", "").into_iter().filter(|name| name.starts_with("OPTIONS-"));
        let newest = fs::read_to_string(home.at("db").join(names.max().unwrap())).unwrap();
        assert!(!newest.contains("wal_dir=/"), "{newest}");
        rocksdb_finds(&home.at("db"), "", 100)
    });
}

#[test]
fn tables_in_several_directories_are_read_written_and_handed_back() {
    judged("db_paths of RocksDB", || {
        let home = Home::new();
        let tuned = home.paths("db_paths")
            + "max_bytes_for_level_base=1M;target_file_size_base=64K;write_buffer_size=256K";
        rocksdb_writes(&home.at("db"), &tuned, 0..20_000, true, false)?;
        assert!(!home.files("p1", ".sst").is_empty());
        assert_eq!(count(&home.placed().read_only(true).open().unwrap()), 20_000);
        let env = Env::os().unwrap();
        let checked = check_database_in(&env, &home.at("db"), &home.places(), &mut |_| {}).unwrap();
        assert!(checked.damages.is_empty() && checked.tables > 0, "{checked}");
        for round in 0..3 {
            let db = if round == 0 { home.placed().open().unwrap() } else { home.builder().open().unwrap() };
            let from = 20_000 + round * 4000;
            write(&db, from..from + 4000);
            db.flush().unwrap();
            if round > 0 {
                db.compact().unwrap();
            }
            assert_eq!(count(&db), from + 4000);
            db.close().unwrap();
            assert_eq!(home.files("db", ".sst"), Vec::<String>::new());
            let copy = format!("{tuned};");
            rocksdb_finds(&home.at("db"), &copy, from + 4000)?;
            // RocksDB has written an OPTIONS file that does not name the directories.
            refused(home.builder().open(), "db_paths");
            home.placed().open().unwrap().close().unwrap();
        }
        assert!(check(&home).unwrap().damages.is_empty(), "our OPTIONS file names them");
        Ok(())
    });
}

#[test]
fn tables_in_directories_that_are_not_known_are_no_damage() {
    judged("db_paths that are not given", || {
        for option in ["db_paths", "cf_paths"] {
            let home = Home::new();
            let tuned = home.paths(option)
                + "max_bytes_for_level_base=1M;target_file_size_base=64K;write_buffer_size=256K";
            rocksdb_writes(&home.at("db"), &tuned, 0..20_000, true, false)?;
            assert!(!home.files("p1", ".sst").is_empty());
            let before = home.contents();
            for result in [home.builder().open(), home.builder().read_only(true).open()] {
                refused(result, "db_paths");
            }
            for e in [check(&home).map(drop), home.builder().repair(|_| {}).map(drop)] {
                let e = e.unwrap_err();
                assert!(e.to_string().contains("db_paths") && !e.is_corruption(), "{option}: {e}");
            }
            assert!(
                home.builder().salvage(home.at("copy"), |_| {}).unwrap_err().to_string().contains("db_paths")
            );
            assert_eq!(home.contents(), before);
            let of_family = |b: Builder| {
                b.default_family(|f| {
                    f.cf_path(home.at("p0"), 1_500_000).cf_path(home.at("p1"), 1_000_000_000_000)
                })
            };
            let placed = if option == "db_paths" { home.placed() } else { of_family(home.builder()) };
            let repaired = placed.clone().repair(|_| {}).unwrap();
            assert!(repaired.is_lossless(), "{repaired}");
            let db = placed.open().unwrap();
            write(&db, 20_000..21_000);
            db.compact().unwrap();
            assert_eq!(count(&db), 21_000);
            db.close().unwrap();
            rocksdb_finds(&home.at("db"), &tuned, 21_000)?;
        }
        Ok(())
    });
}

#[test]
fn a_repair_that_finds_no_table_of_a_family_asks_for_its_directories() {
    judged("cf_paths with all tables in the first", || {
        let home = Home::new();
        let path = format!("cf_paths={}:1000000000;", home.at("p0").display());
        rocksdb_writes(&home.at("db"), &path, 0..1000, true, false)?;
        assert!(!home.files("p0", ".sst").is_empty());
        let before = home.contents();
        for e in [home.builder().repair(|_| {}), home.builder().salvage(home.at("copy"), |_| {})] {
            let text = e.unwrap_err().to_string();
            assert!(text.contains("cf_paths"), "{text}");
        }
        assert_eq!(home.contents(), before);
        let given = home.builder().db_path(home.at("db"), 1).repair(|_| {}).unwrap();
        assert!(!given.is_lossless(), "the caller says that there is no other directory");
        Ok(())
    });
}

/// RocksDB's OPTIONS file shows that there are `db_paths` only where it names no other `wal_dir`; the info log names them.
#[test]
fn a_database_with_db_paths_and_no_table_yet_is_not_written_without_them() {
    for is_aside in [false, true] {
        judged("db_paths before the first table", || {
            let home = Home::new();
            let wal_dir =
                if is_aside { format!("wal_dir={};", home.at("wal").display()) } else { String::new() };
            let options = home.paths("db_paths") + &wal_dir;
            rocksdb_writes(&home.at("db"), &options, 0..100, false, true)?;
            let before = home.contents();
            refused(home.builder().open(), "db_paths");
            assert_eq!(home.contents(), before);
            assert_eq!(count(&home.builder().read_only(true).open().unwrap()), 100);
            let db = home.placed().open().unwrap();
            db.flush().unwrap();
            db.close().unwrap();
            assert_eq!((home.files("p0", ".sst").len(), home.files("db", ".sst").len()), (1, 0));
            rocksdb_finds(&home.at("db"), &options, 100)
        });
    }
}

#[test]
fn directories_in_another_order_are_refused() {
    let home = Home::new();
    let db = home.placed().open().unwrap();
    write(&db, 0..1000);
    db.flush().unwrap();
    db.close().unwrap();
    let turned = || home.builder().db_path(home.at("p1"), 1000).db_path(home.at("p0"), 1000);
    let text = refused(turned().open(), "db_paths");
    assert!(text.contains("same order"), "{text}");
    fs::rename(home.at("p1"), home.at("p2")).unwrap();
    refused(home.builder().open(), "db_paths");
}

#[test]
fn a_salvage_brings_all_directories_into_one() {
    judged("salvage of places", || {
        let home = Home::new();
        let db = home.placed().wal_dir(home.at("wal")).open().unwrap();
        write(&db, 0..20_000);
        db.compact().unwrap();
        write(&db, 20_000..20_010);
        db.close().unwrap();
        assert!(!home.files("p1", ".sst").is_empty());
        let report = home.builder().salvage(home.at("copy"), |_| {}).unwrap();
        assert!(report.is_lossless(), "{report}");
        let db = Db::builder(home.at("copy")).format_level(FormatLevel::V11).open().unwrap();
        assert_eq!(count(&db), 20_010);
        db.close().unwrap();
        rocksdb_finds(&home.at("copy"), "", 20_010)?;
        assert_eq!(count(&home.builder().open().unwrap()), 20_010, "the source is as it was");
        Ok(())
    });
}

#[test]
fn a_repair_replaces_a_damaged_table_of_another_directory() {
    let home = Home::new();
    let db = home.placed().open().unwrap();
    write(&db, 0..20_000);
    db.compact().unwrap();
    db.close().unwrap();
    // The largest: the last memtable may have left a table of one entry.
    let tables = home.files("p1", ".sst").into_iter().map(|name| home.at("p1").join(name));
    let table = tables.max_by_key(|table| fs::metadata(table).unwrap().len()).unwrap();
    let mut bytes = fs::read(&table).unwrap();
    bytes[100] ^= 1;
    fs::write(&table, bytes).unwrap();
    assert_eq!(check(&home).unwrap().damages.len(), 1);
    let report = home.builder().repair(|_| {}).unwrap();
    assert!(!report.is_lossless() && home.files("db/lost", ".sst").len() == 1, "{report}");
    let db = home.builder().open().unwrap();
    assert!(count(&db) > 19_000);
    db.close().unwrap();
    assert!(check(&home).unwrap().damages.is_empty());
}

#[test]
fn two_databases_share_no_directory() {
    let home = Home::new();
    let db = home.placed().wal_dir(home.at("wal")).open().unwrap();
    let other = || Db::builder(home.at("other"));
    refused(other().wal_dir(home.at("wal")).open(), "wal_dir");
    refused(other().db_path(home.at("p1"), 1).open(), "db_paths");
    let text = refused(other().wal_dir(home.at("db")).open(), "wal_dir");
    assert!(text.contains("another database"), "{text}");
    db.close().unwrap();
}

#[test]
fn option_strings_name_places_and_the_log_of_events_goes_where_the_options_file_says() {
    let home = Home::new();
    fs::create_dir(home.at("logs")).unwrap();
    let at = |name| home.at(name).display().to_string();
    let text = format!(
        "wal_dir={};db_log_dir={};db_paths={{{{path={};target_size=1G}}:{{path={};target_size=1T}}}}",
        at("wal"),
        at("logs"),
        at("p0"),
        at("p1")
    );
    let db = home.builder().options(&text).open().unwrap();
    write(&db, 0..100);
    db.flush().unwrap();
    db.close().unwrap();
    let there =
        (home.files("wal", ".log").len(), home.files("p0", ".sst").len(), home.files("logs", "LOG").len());
    assert_eq!(there, (1, 1, 1));
    let db = home.builder().open().unwrap();
    assert_eq!(count(&db), 100);
    assert!(db.recovery().is_clean(), "{}", db.recovery());
    db.close().unwrap();
    assert_eq!(home.files("db", "LOG"), Vec::<String>::new());
}

#[test]
fn directories_of_one_family_are_not_those_of_another() {
    let home = Home::new();
    fs::create_dir(home.at("logs")).unwrap();
    let logs = format!("db_log_dir={}", home.at("logs").display());
    let here = || home.builder().options(&logs).default_family(|f| f.cf_path(home.at("p0"), 1 << 40));
    let other = |b: Builder| b.family("other", |f| f.cf_path(home.at("p1"), 1 << 40));
    let db = other(here()).family("plain", |f| f).open().unwrap();
    db.create_family("later").unwrap();
    db.families().iter().for_each(|family| family.put(key(0), value(0)).unwrap());
    db.flush().unwrap();
    assert_eq!(["p0", "p1", "db"].map(|dir| home.files(dir, ".sst").len()), [1, 1, 2]);
    db.close().unwrap();
    for builder in [here(), other(here()), here().family("other", |f| f).family("plain", |f| f)] {
        let db = builder.open().unwrap();
        let families = db.families();
        assert_eq!(families.len(), 4);
        for family in families {
            assert_eq!(*family.get(key(0)).unwrap().unwrap(), *value(0).as_bytes(), "{}", family.name());
            family.put(key(1), value(1)).unwrap();
        }
        db.flush().unwrap();
        db.close().unwrap();
    }
    assert_eq!(["p0", "p1", "db"].map(|dir| home.files(dir, ".sst").len()), [4, 4, 8]);
}

#[test]
fn a_file_that_is_gone_is_named_where_it_was() {
    let home = Home::new();
    let db = home.builder().wal_dir(home.at("wal")).open().unwrap();
    write(&db, 0..10);
    for log in home.files("wal", ".log") {
        fs::remove_file(home.at("wal").join(log)).unwrap();
    }
    let e = db.close().unwrap_err();
    assert_eq!(e.path().unwrap().parent(), Some(&*home.at("wal")), "{e}");

    let home = Home::new();
    let db = home.placed().open().unwrap();
    write(&db, 0..10);
    db.flush().unwrap();
    write(&db, 10..20);
    db.flush().unwrap();
    db.close().unwrap();
    let table = home.files("p0", ".sst").into_iter().next_back().unwrap();
    fs::write(home.at("p0").join(&table), b"short").unwrap();
    let e = home.placed().open().unwrap_err();
    assert_eq!(e.path(), Some(&*home.at("p0").join(&table)), "{e}");
}

/// The tables in a directory of `home`, by name and content.
fn tables(home: &Home, dir: &str) -> Vec<(String, Vec<u8>)> {
    let names = home.files(dir, ".sst").into_iter();
    names.map(|name| (name.clone(), fs::read(home.at(dir).join(name)).unwrap())).collect()
}

#[test]
fn a_directory_of_a_closed_database_is_not_taken_by_another_one() {
    let home = Home::new();
    let first = || Db::builder(home.at("db")).db_path(home.at("p0"), 1 << 40).wal_dir(home.at("wal"));
    let db = first().open().unwrap();
    for round in 0..3 {
        write(&db, round * 100..(round + 1) * 100);
        db.flush().unwrap();
    }
    db.close().unwrap();
    let before = tables(&home, "p0");
    // A new database, and one that has tables under the same numbers.
    let other = Db::open(home.at("other")).unwrap();
    write(&other, 0..10);
    other.flush().unwrap();
    other.close().unwrap();
    for dir in ["new", "other"] {
        for owned in [true, false] {
            // Without OWNER it is as RocksDB leaves it.
            let mark = home.at("p0").join("OWNER");
            let content = fs::read(&mark).unwrap();
            if !owned {
                fs::remove_file(&mark).unwrap();
            }
            let text = refused(Db::builder(home.at(dir)).db_path(home.at("p0"), 1 << 40).open(), "db_paths");
            // Of the number of a table of its own there are two then, which is refused as well.
            let twice = dir == "other" && !owned && text.contains("it should be in");
            assert!(twice || text.contains("belongs to"), "{text}");
            fs::write(&mark, content).unwrap();
        }
        let text = refused(Db::builder(home.at(dir)).wal_dir(home.at("wal")).open(), "wal_dir");
        assert!(text.contains("belongs to"), "{text}");
    }
    assert!(!home.at("new/CURRENT").exists());
    assert_eq!(tables(&home, "p0"), before);
    let db = first().open().unwrap();
    assert_eq!(count(&db), 300);
    assert!(db.recovery().is_clean(), "{}", db.recovery());
}

#[test]
fn a_copy_of_a_database_directory_does_not_take_the_tables_of_its_original() {
    let home = Home::new();
    let db = Db::builder(home.at("db")).db_path(home.at("p0"), 1 << 40).open().unwrap();
    write(&db, 0..100);
    db.flush().unwrap();
    db.close().unwrap();
    copy_flat(&home.at("db"), &home.at("copy")).unwrap();
    let before = tables(&home, "p0");
    let text = refused(Db::open(home.at("copy")), "db_paths");
    assert!(text.contains("the database in"), "{text}");
    assert_eq!(tables(&home, "p0"), before);
    // With its directories copied it is a database of its own; and one that was moved keeps its directories.
    copy_flat(&home.at("p0"), &home.at("p1")).unwrap();
    let copy = Db::builder(home.at("copy")).db_path(home.at("p1"), 1 << 40).open().unwrap();
    assert_eq!(count(&copy), 100);
    copy.compact().unwrap();
    copy.close().unwrap();
    fs::rename(home.at("db"), home.at("moved")).unwrap();
    let moved = Db::open(home.at("moved")).unwrap();
    assert_eq!(count(&moved), 100);
}

#[test]
fn tables_of_unknown_origin_in_a_directory_without_an_owner_are_moved_to_lost() {
    let home = Home::new();
    let open = || Db::builder(home.at("db")).db_path(home.at("p0"), 1 << 40).open().unwrap();
    let db = open();
    write(&db, 0..100);
    db.flush().unwrap();
    db.close().unwrap();
    let table = home.files("p0", ".sst").pop().unwrap();
    fs::copy(home.at("p0").join(&table), home.at("p0/000004.sst")).unwrap();
    fs::remove_file(home.at("p0/OWNER")).unwrap();
    let db = open();
    assert_eq!(home.files("db/lost", ".sst"), ["000004.sst"]);
    assert!(db.recovery().is_clean(), "{}", db.recovery());
    assert!(db.recovery().foreign.iter().any(|line| line.starts_with("000004.sst")), "{}", db.recovery());
    assert_eq!(count(&db), 100);
    db.close().unwrap();
    // Of its own directory it removes what it does not need.
    fs::copy(home.at("p0").join(&table), home.at("p0/000005.sst")).unwrap();
    drop(open());
    assert_eq!(home.files("db/lost", ".sst"), ["000004.sst"]);
    assert_eq!(home.files("p0", ".sst"), [table]);
}

#[test]
fn what_a_killed_rocksdb_left_in_its_directories_is_not_taken_for_that_of_another_database() {
    let home = Home::new();
    judged("what_a_killed_rocksdb_left_in_its_directories_is_not_taken_for_that_of_another_database", || {
        let options = format!("{}disable_auto_compactions=true;", home.paths("db_paths"));
        rocksdb_writes(&home.at("db"), &options, 0..1000, true, true)?;
        // A table that the MANIFEST does not name, and one without an end, are all that the second directory holds.
        let table = home.at("p0").join(home.files("p0", ".sst").pop().unwrap());
        let bytes = fs::read(&table).unwrap();
        assert!(home.files("p1", ".sst").is_empty());
        fs::write(home.at("p1/000901.sst"), &bytes).unwrap();
        fs::write(home.at("p1/000902.sst"), &bytes[..bytes.len() / 2]).unwrap();
        let db = home.placed().open().unwrap();
        assert_eq!(count(&db), 1000);
        db.close().unwrap();
        assert_eq!(home.files("db/lost", ".sst"), ["000901.sst", "000902.sst"]);
        rocksdb_finds(&home.at("db"), &home.paths("db_paths"), 1000)
    });
}

#[test]
fn an_open_that_becomes_read_only_or_is_refused_leaves_no_owner() {
    let home = Home::new();
    let golden = golden("rocksdb-7.8.3/udt").unwrap_or_else(|skip| panic!("{skip}"));
    fs::create_dir(home.at("wal")).unwrap();
    let db = Db::builder(golden.path()).wal_dir(home.at("wal")).open().unwrap();
    assert!(!db.recovery().read_only.is_empty(), "{}", db.recovery());
    assert!(!home.at("wal/OWNER").exists());
    db.close().unwrap();
    assert!(!home.at("wal/OWNER").exists());

    let open = || Db::builder(home.at("db")).wal_dir(home.at("logs"));
    let db = open().open().unwrap();
    write(&db, 0..100);
    db.close().unwrap();
    let log = home.files("logs", ".log").pop().unwrap();
    let mut bytes = fs::read(home.at("logs").join(&log)).unwrap();
    bytes[100] ^= 1;
    fs::write(home.at("logs").join(&log), bytes).unwrap();
    fs::remove_file(home.at("logs/OWNER")).unwrap();
    let e = open().recovery_mode(RecoveryMode::Absolute).open().unwrap_err();
    assert!(e.is_corruption(), "{e}");
    assert!(!home.at("logs/OWNER").exists());
}

/// RocksDB, killed in a flush, leaves tables that the MANIFEST does not name. Those of a PlainTable family tell no id that is
/// read.
#[test]
fn unnamed_tables_of_another_kind_do_not_refuse_the_open_of_their_database() {
    let home = Home::new();
    let golden = golden("rocksdb-11.8.1/plain_table").unwrap_or_else(|skip| panic!("{skip}"));
    copy_flat(golden.path(), &home.at("db")).unwrap();
    fs::create_dir(home.at("p1")).unwrap();
    let table = home.files("db", ".sst").remove(0);
    fs::copy(home.at("db").join(table), home.at("p1").join("000777.sst")).unwrap();
    let db = Db::builder(home.at("db"))
        .db_path(home.at("db"), 1 << 40)
        .db_path(home.at("p1"), 1 << 40)
        .open()
        .unwrap();
    let report = db.recovery().to_string();
    assert!(report.contains("table_factory=PlainTable"), "{report}");
    assert!(db.put("k", "v").is_err(), "the open only reads");
    db.close().unwrap();
    assert_eq!(home.files("p1", ""), ["000777.sst", "LOCK"], "no OWNER is left");
}
