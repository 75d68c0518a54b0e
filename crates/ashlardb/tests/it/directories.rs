//! Directories that users rename, replace, remove or enter under another working directory while a database is open in
//! them; and names in them that lead elsewhere.

use ashlar_env::sim::{CallClass, CrashMode, SimEnv};
use ashlardb::{
    Builder, BusyKind, Db, Env, ErrorKind, IoKind, Read as _, Severity, Write as _, WriteOptions,
    check_database, list_families,
};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

const ROLE: &str = "ASHLAR_TEST_DIRECTORIES";
const LOCKED: ErrorKind = ErrorKind::Busy(BusyKind::Locked);
const NOT_FOUND: ErrorKind = ErrorKind::Io(IoKind::NotFound);

/// Not a test of its own: what child processes run, which may change their working directory. The role is a word and a
/// directory.
#[test]
fn entry() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let (word, dir) = role.split_once('\t').unwrap();
    let dir = Path::new(dir);
    match word {
        "two-working-directories" => two_working_directories(dir),
        "working-directory-removed" => working_directory_removed(dir),
        "relative-places" => relative_places(dir),
        "open" => match Db::open(dir) {
            Ok(_) => println!("\nchild: opened"),
            Err(e) => println!("\nchild: {e}"),
        },
        _ => panic!("no such role: {role}"),
    }
}

/// What a child with that role prints.
fn child(word: &str, dir: &Path) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "directories::entry", "--nocapture"]);
    command.env(ROLE, format!("{word}\t{}", dir.display())).stdin(Stdio::null());
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    said
}

fn fill(db: &Db, prefix: &str) {
    let db = db.writing(WriteOptions::synced());
    (0..100).for_each(|i| db.put(format!("{prefix}{i:03}"), prefix).unwrap());
}

/// Flushes, compacts and writes once more, so that files are made and removed.
fn work(db: &Db, prefix: &str) {
    for round in 0..3 {
        db.put(format!("{prefix}-{round}"), prefix).unwrap();
        db.flush().unwrap();
        db.compact().unwrap();
    }
}

/// The keys that begin with `prefix`, and all.
fn keys(dir: &Path, prefix: &str) -> (usize, usize) {
    let db = Db::open(dir).unwrap();
    let all: Vec<_> = db.scan(..).map(|e| e.unwrap().0).collect();
    db.verify_checksums(|_| {}).unwrap();
    db.close().unwrap();
    (all.iter().filter(|key| key.starts_with(prefix.as_bytes())).count(), all.len())
}

fn two_working_directories(dir: &Path) {
    let relative = |db: Builder| db.tune(|db, _| db.info_log.dir = "logs".to_owned()).open().unwrap();
    std::env::set_current_dir(dir.join("x")).unwrap();
    let a = relative(Db::builder("rel"));
    fill(&a, "a");
    std::env::set_current_dir(dir.join("y")).unwrap();
    let b = relative(Db::builder("rel"));
    fill(&b, "b");
    work(&a, "a");
    work(&b, "b");
    let e = Db::open(dir.join("x/rel")).unwrap_err();
    assert_eq!(e.kind(), LOCKED);
    std::env::set_current_dir("/").unwrap();
    work(&a, "a");
    let mut entries = b.scan(..);
    let first = entries.next().unwrap();
    a.close().unwrap();
    b.close().unwrap();
    assert!(first.is_ok());
    assert_eq!(entries.inspect(|e| assert!(e.is_ok())).count(), 102);
}

#[test]
fn a_changed_working_directory_mixes_no_two_databases() {
    let temp = tempfile::tempdir().unwrap();
    for name in ["x", "y"] {
        std::fs::create_dir(temp.path().join(name)).unwrap();
    }
    child("two-working-directories", temp.path());
    for (name, prefix) in [("x", "a"), ("y", "b")] {
        let above = temp.path().join(name);
        assert_eq!(keys(&above.join("rel"), prefix), (103, 103));
        let logs = std::fs::read_dir(above.join("logs")).unwrap();
        let names: Vec<_> = logs.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        assert!(names.iter().all(|log| log.contains(&format!("_{name}_rel_LOG"))), "{names:?}");
    }
}

fn working_directory_removed(dir: &Path) {
    let work_dir = dir.join("gone");
    std::fs::create_dir(&work_dir).unwrap();
    std::env::set_current_dir(&work_dir).unwrap();
    let db = Db::open("../db").unwrap();
    fill(&db, "a");
    std::fs::remove_dir(&work_dir).unwrap();
    work(&db, "a");
    db.close().unwrap();
}

#[test]
fn a_removed_working_directory_is_not_needed() {
    let temp = tempfile::tempdir().unwrap();
    child("working-directory-removed", temp.path());
    assert_eq!(keys(&temp.path().join("db"), "a"), (103, 103));
}

/// Two databases of equal settings, each with relative directories of its own working directory. The first one works in the
/// working directory of the second, and is opened there.
fn relative_places(dir: &Path) {
    let enter = |name: &str| std::env::set_current_dir(dir.join(name)).unwrap();
    let open = || {
        let family = |f: ashlardb::FamilyBuilder| f.cf_path("own", 1 << 30);
        Db::builder("db").db_path("t", 1 << 30).wal_dir("w").family("own", family).open().unwrap()
    };
    enter("y");
    let second = open();
    fill(&second, "b");
    work(&second, "b");
    second.close().unwrap();
    enter("x");
    let first = open();
    fill(&first, "a");
    first.flush().unwrap();
    enter("y");
    work(&first, "a");
    first.family("own").unwrap().put("own", "a").unwrap();
    first.flush().unwrap();
    first.close().unwrap();
    for (name, prefix) in [("x", "a"), ("y", "b")] {
        assert_eq!(keys(&dir.join(name).join("db"), prefix), (103, 103), "{name}");
    }
    let again = Db::open("../x/db").unwrap();
    assert_eq!(again.family("own").unwrap().get("own").unwrap().as_deref(), Some(&b"a"[..]));
}

#[test]
fn relative_directories_of_tables_are_those_of_the_open() {
    let temp = tempfile::tempdir().unwrap();
    for name in ["x", "y"] {
        std::fs::create_dir(temp.path().join(name)).unwrap();
    }
    child("relative-places", temp.path());
    for name in ["x/t", "x/own", "y/t"] {
        let entries = std::fs::read_dir(temp.path().join(name)).unwrap();
        let tables = entries.filter(|e| e.as_ref().unwrap().path().extension().is_some_and(|e| e == "sst"));
        assert!(tables.count() > 0, "{name} has tables");
    }
}

#[test]
fn a_renamed_directory_keeps_its_database_and_the_old_name_gets_another() {
    let temp = tempfile::tempdir().unwrap();
    let (dir, old) = (temp.path().join("db"), temp.path().join("old"));
    let a = Db::open(&dir).unwrap();
    fill(&a, "a");
    a.flush().unwrap();
    let mut entries = a.scan(..);
    let first = entries.next().unwrap();
    std::fs::rename(&dir, &old).unwrap();
    let b = Db::open(&dir).unwrap();
    fill(&b, "b");
    work(&a, "a");
    work(&b, "b");
    assert_eq!(Db::open(&old).unwrap_err().kind(), LOCKED, "under its new name it has an owner");
    a.verify_checksums(|_| {}).unwrap();
    assert!(first.is_ok());
    assert_eq!(entries.inspect(|e| assert!(e.is_ok())).count(), 99);
    a.close().unwrap();
    b.close().unwrap();
    assert_eq!(keys(&old, "a"), (103, 103));
    assert_eq!(keys(&dir, "b"), (103, 103));
}

#[test]
fn a_removed_lock_file_lets_nothing_in() {
    let temp = tempfile::tempdir().unwrap();
    let (dir, copy) = (temp.path().join("db"), temp.path().join("copy"));
    let db = Db::open(&dir).unwrap();
    fill(&db, "a");
    for _ in 0..2 {
        let _ = std::fs::remove_file(dir.join("LOCK"));
        assert_eq!(Db::open(&dir).unwrap_err().kind(), LOCKED);
        assert_eq!(Db::builder(&dir).repair(|_| {}).unwrap_err().kind(), LOCKED);
        assert_eq!(Db::builder(&dir).salvage(&copy, |_| {}).unwrap_err().kind(), LOCKED);
        let said = child("open", &dir);
        assert!(said.contains("child: Resource busy"), "{said}");
        // The next round is with a LOCK that another process made.
        std::fs::write(dir.join("LOCK"), "").unwrap();
    }
    work(&db, "a");
    db.close().unwrap();
    assert_eq!(keys(&dir, "a"), (103, 103));
}

#[test]
fn closing_says_that_the_directory_was_removed() {
    let temp = tempfile::tempdir().unwrap();
    for flushed in [false, true] {
        for replaced in [false, true] {
            let dir = temp.path().join(format!("db{flushed}{replaced}"));
            let db = Db::open(&dir).unwrap();
            fill(&db, "a");
            if flushed {
                db.flush().unwrap();
            }
            std::fs::remove_dir_all(&dir).unwrap();
            if replaced {
                Db::open(&dir).unwrap().close().unwrap();
            }
            let e = db.close().unwrap_err();
            assert_eq!((e.kind(), e.path()), (NOT_FOUND, Some(&*dir)), "{e}");
            assert!(e.to_string().contains("lost"), "{e}");
        }
    }
}

#[test]
fn closing_says_which_file_was_removed() {
    for (ends, words) in [("CURRENT", "CURRENT"), (".log", ".log"), ("", "MANIFEST-")] {
        let temp = tempfile::tempdir().unwrap();
        let db = Db::open(temp.path()).unwrap();
        fill(&db, "a");
        for entry in std::fs::read_dir(temp.path()).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if name.ends_with(ends) && name.contains(words) {
                std::fs::remove_file(temp.path().join(name)).unwrap();
            }
        }
        let e = db.close().unwrap_err();
        assert_eq!(e.kind(), NOT_FOUND);
        assert!(e.to_string().contains(words) && e.to_string().contains("lost"), "{e}");
    }
}

#[test]
fn a_path_of_no_name_is_refused() {
    let (env, empty) = (Env::os().unwrap(), Path::new(""));
    let temp = tempfile::tempdir().unwrap();
    let copy = temp.path().join("copy");
    let refused = [
        Db::open(empty).map(drop),
        Db::open_read_only(empty).map(drop),
        Db::builder(empty).repair(|_| {}).map(drop),
        Db::builder(empty).salvage(&copy, |_| {}).map(drop),
        Db::builder(temp.path()).salvage(empty, |_| {}).map(drop),
        check_database(&env, empty, &mut |_| {}).map(drop),
        list_families(&env, empty).map(drop),
    ];
    for answer in refused {
        let e = answer.unwrap_err();
        assert_eq!(
            (e.kind(), e.message()),
            (ErrorKind::InvalidArgument, "the path of the database is empty")
        );
    }
    assert!(!copy.exists());
}

#[test]
fn directories_with_the_names_of_files_are_left_alone() {
    let temp = tempfile::tempdir().unwrap();
    let names = [
        "000099.sst",
        "000098.log",
        "000097.blob",
        "000096.ldb",
        "OPTIONS-000095",
        "MANIFEST-000094",
        "000093.dbtmp",
    ];
    for name in names {
        std::fs::create_dir(temp.path().join(name)).unwrap();
    }
    for round in 0..2 {
        let db = Db::open(temp.path()).unwrap();
        let told = db.recovery().foreign.join("\n");
        // The first open makes the database, and looks at it behind that.
        assert!(names.iter().all(|name| told.contains(name)), "round {round}: {told}");
        fill(&db, "a");
        work(&db, "a");
        db.close().unwrap();
    }
    let env = Env::os().unwrap();
    let report = check_database(&env, temp.path(), &mut |_| {}).unwrap();
    assert!(report.is_sound(), "{report:?}");
    assert_eq!(Db::open_read_only(temp.path()).unwrap().get("a000").unwrap().as_deref(), Some(&b"a"[..]));
    let db = Db::open(temp.path()).unwrap();
    assert_eq!(db.recovery().unserved, Vec::<String>::new());
    db.close().unwrap();
    Db::builder(temp.path()).repair(|_| {}).unwrap();
    std::fs::remove_file(temp.path().join("CURRENT")).unwrap();
    Db::builder(temp.path()).repair(|_| {}).unwrap();
    assert_eq!(keys(temp.path(), "a"), (103, 103));
    assert!(names.iter().all(|name| temp.path().join(name).is_dir()));
}

#[test]
fn nothing_is_moved_through_a_link_in_place_of_lost() {
    let temp = tempfile::tempdir().unwrap();
    let (dir, elsewhere) = (temp.path().join("db"), temp.path().join("elsewhere"));
    let db = Db::open(&dir).unwrap();
    fill(&db, "a");
    db.flush().unwrap();
    db.close().unwrap();
    std::fs::create_dir(&elsewhere).unwrap();
    symlink(&elsewhere, dir.join("lost")).unwrap();
    assert_eq!(keys(&dir, "a"), (100, 100), "an open that has nothing to move works");
    let table = std::fs::read_dir(&dir).unwrap().map(|e| e.unwrap().path());
    let table = table.into_iter().find(|path| path.extension().is_some_and(|e| e == "sst")).unwrap();
    let mut bytes = std::fs::read(&table).unwrap();
    bytes[20] ^= 1;
    std::fs::write(&table, &bytes).unwrap();
    let before: Vec<_> = std::fs::read_dir(&dir).unwrap().map(|e| e.unwrap().file_name()).collect();

    let e = Db::builder(&dir).repair(|_| {}).unwrap_err();
    assert_eq!((e.kind(), e.path()), (ErrorKind::InvalidArgument, Some(&*dir.join("lost"))), "{e}");
    let after: Vec<_> = std::fs::read_dir(&dir).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(before, after, "refused before anything is written");
    assert_eq!(std::fs::read_dir(&elsewhere).unwrap().count(), 0);
    std::fs::remove_file(dir.join("lost")).unwrap();
    Db::builder(&dir).repair(|_| {}).unwrap();
    assert!(dir.join("lost").join(table.file_name().unwrap()).exists());
}

#[test]
fn temporary_names_that_lead_elsewhere_are_not_written_through() {
    let temp = tempfile::tempdir().unwrap();
    let mine = temp.path().join("mine");
    let links = [
        |to: &Path| std::fs::hard_link(to.parent().unwrap().with_file_name("mine"), to),
        |to: &Path| symlink("../mine", to),
    ];
    for (round, through) in links.into_iter().enumerate() {
        let dir = temp.path().join(format!("db{round}"));
        let db = Db::open(&dir).unwrap();
        fill(&db, "a");
        db.close().unwrap();
        std::fs::write(&mine, "mine").unwrap();
        for name in ["IDENTITY", "LOG"] {
            std::fs::remove_file(dir.join(name)).unwrap();
        }
        for number in 0..30 {
            let names = [format!("{number:06}.dbtmp"), format!("OPTIONS-{number:06}.dbtmp")];
            names.iter().for_each(|name| through(&dir.join(name)).unwrap());
        }
        through(&dir.join("LOG")).unwrap();
        let db = Db::open(&dir).unwrap();
        work(&db, "a");
        db.close().unwrap();
        assert_eq!(std::fs::read(&mine).unwrap(), b"mine");
        assert_eq!(keys(&dir, "a"), (103, 103));
    }
}

#[test]
fn a_link_in_the_place_of_a_file_is_named_as_one() {
    let temp = tempfile::tempdir().unwrap();
    for ending in ["sst", "CURRENT"] {
        let dir = temp.path().join(ending);
        let db = Db::open(&dir).unwrap();
        fill(&db, "a");
        db.flush().unwrap();
        db.close().unwrap();
        let entries = std::fs::read_dir(&dir).unwrap().map(|e| e.unwrap().path());
        let file = entries.into_iter().find(|path| path.to_str().unwrap().ends_with(ending)).unwrap();
        let target = temp.path().join("target");
        std::fs::rename(&file, &target).unwrap();
        symlink(&target, &file).unwrap();
        let e = Db::open(&dir).unwrap_err();
        let text = e.to_string();
        assert!(text.contains("symbolic link") && text.contains("Put the file itself"), "{text}");
        assert_eq!((e.kind(), e.path()), (ErrorKind::InvalidArgument, Some(&*file)), "{text}");
        std::fs::rename(&target, &file).unwrap();
        assert_eq!(keys(&dir, "a"), (100, 100));
    }
}

/// The purge could not open the link, and tried again for ever.
#[test]
fn a_link_in_the_place_of_a_dead_log_goes_and_its_target_stays() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("db");
    let db = Db::open(&dir).unwrap();
    fill(&db, "a");
    db.flush().unwrap();
    db.close().unwrap();
    let target = temp.path().join("target");
    std::fs::write(&target, "mine").unwrap();
    let link = dir.join("000001.log");
    symlink(&target, &link).unwrap();
    let db = Db::open(&dir).unwrap();
    db.wait_for_background().unwrap();
    assert_eq!(db.property("rocksdb.background-errors").as_deref(), Some("0"));
    db.close().unwrap();
    assert!(link.symlink_metadata().is_err(), "the link is still there");
    assert_eq!(std::fs::read(&target).unwrap(), b"mine");
    assert_eq!(keys(&dir, "a"), (100, 100));
}

/// The open passed over the directory, and the writes of the log that had been there were missing.
#[test]
fn a_directory_in_the_place_of_a_needed_log_is_refused() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("db");
    let db = Db::open(&dir).unwrap();
    fill(&db, "a");
    db.close().unwrap();
    let entries = std::fs::read_dir(&dir).unwrap().map(|e| e.unwrap().path());
    let log = entries.into_iter().find(|path| path.extension().is_some_and(|e| e == "log")).unwrap();
    let kept = temp.path().join("kept");
    std::fs::rename(&log, &kept).unwrap();
    std::fs::create_dir(&log).unwrap();
    for result in [Db::open(&dir), Db::builder(&dir).read_only(true).open()] {
        let e = result.unwrap_err();
        assert_eq!((e.kind(), e.path()), (ErrorKind::InvalidArgument, Some(&*log)), "{e}");
    }
    let report = check_database(&Env::os().unwrap(), &dir, &mut |_| {}).unwrap();
    let name = log.file_name().unwrap().to_str().unwrap();
    assert!(report.damages.len() == 1 && report.damages[0].file == name, "{report}");
    std::fs::remove_dir(&log).unwrap();
    std::fs::rename(&kept, &log).unwrap();
    assert_eq!(keys(&dir, "a"), (100, 100));
}

#[test]
fn a_repair_of_a_directory_that_holds_no_database_writes_and_moves_nothing() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("home");
    std::fs::create_dir(&dir).unwrap();
    let names = ["000012.log", "notes.log", "thesis.txt"];
    names
        .iter()
        .for_each(|name| std::fs::write(dir.join(name), "text of mine, longer than a header").unwrap());
    let copy = temp.path().join("copy");
    for answer in [
        Db::builder(&dir).repair(|_| {}),
        Db::builder(&dir).db_path(temp.path().join("t"), 1 << 30).repair(|_| {}),
        Db::builder(&dir).salvage(&copy, |_| {}),
    ] {
        let e = answer.unwrap_err();
        let absent = e.kind() == NOT_FOUND && e.to_string().contains("db_paths");
        assert!(absent || e.to_string().contains("there is no database"), "{e}");
        let mut found: Vec<_> = std::fs::read_dir(&dir).unwrap().map(|e| e.unwrap().file_name()).collect();
        found.sort();
        assert_eq!(found, names);
    }
    assert_eq!(std::fs::read_dir(temp.path()).unwrap().count(), 1);
}

/// An IDENTITY holds nothing of the user's: however large it is, it costs no open, check, repair or salvage.
#[test]
fn an_identity_that_is_too_large_locks_nothing_out() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("db");
    let db = Db::open(&dir).unwrap();
    db.put("a", "1").unwrap();
    db.close().unwrap();
    let good = std::fs::read(dir.join("IDENTITY")).unwrap();
    let enlarge = |dir: &Path| {
        let file = std::fs::OpenOptions::new().write(true).open(dir.join("IDENTITY")).unwrap();
        // A sparse file: no block is written for it.
        file.set_len(3 << 30).unwrap();
    };
    let identity = |dir: &Path| std::fs::read(dir.join("IDENTITY")).unwrap();

    enlarge(&dir);
    let report = check_database(&Env::os().unwrap(), &dir, &mut |_| {}).unwrap();
    assert!(report.is_sound(), "{report}");
    assert!(report.to_string().contains("IDENTITY has 3221225472 bytes and names no database"), "{report}");

    for around in [false, true] {
        let copy = temp.path().join(format!("copy {around}"));
        let builder = Db::builder(&dir);
        let report = match around {
            true => builder.salvage_around_unreadable(&copy, |_| {}),
            false => builder.salvage(&copy, |_| {}),
        }
        .unwrap();
        assert!(report.is_lossless(), "{report}");
        assert_eq!(identity(&copy), good);
        assert_eq!(Db::open(&copy).unwrap().get("a").unwrap().as_deref(), Some(&b"1"[..]));
    }

    Db::builder(&dir).repair(|_| {}).unwrap();
    assert_eq!(identity(&dir), good);
    enlarge(&dir);
    let db = Db::open(&dir).unwrap();
    let report = db.recovery().to_string();
    assert!(report.contains("IDENTITY, which had 3221225472 bytes"), "{report}");
    db.close().unwrap();
    assert_eq!(identity(&dir), good);

    // A directory in which nothing but an IDENTITY was left.
    let new = temp.path().join("new");
    std::fs::create_dir(&new).unwrap();
    std::fs::write(new.join("IDENTITY"), [0; 5000]).unwrap();
    Db::open(&new).unwrap().close().unwrap();
    assert_eq!(identity(&new).len(), 36);
}

/// A destroyed database is gone, with its archive. Files of others stay, and keep the directory.
#[test]
fn a_destroyed_database_is_gone_and_nothing_else() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("db");
    let make = || {
        let db = Db::builder(&dir).options("WAL_ttl_seconds=1000").open().unwrap();
        db.create_family("f").unwrap().put("k", "v").unwrap();
        for _ in 0..3 {
            db.put("k", vec![b'v'; 100_000]).unwrap();
            db.flush().unwrap();
        }
        db
    };
    let db = make();
    let busy = Db::builder(&dir).destroy().unwrap_err();
    assert_eq!(busy.kind(), ErrorKind::Busy(BusyKind::Locked), "{busy}");
    assert_eq!(db.get("k").unwrap().unwrap().len(), 100_000, "nothing is removed");
    db.close().unwrap();
    drop(db);
    Db::builder(&dir).destroy().unwrap();
    assert!(!dir.exists());
    Db::builder(&dir).destroy().unwrap();

    make().close().unwrap();
    std::fs::write(dir.join("notes.txt"), "mine").unwrap();
    Db::builder(&dir).destroy().unwrap();
    let left: Vec<_> = std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["notes.txt"]);
    let none = Db::builder(&dir).destroy().unwrap_err();
    assert_eq!(none.kind(), ErrorKind::InvalidArgument, "{none}");
    assert!(dir.join("notes.txt").exists());

    // Files with names that databases use are no database.
    for name in ["000001.log", "000002.sst", "LOG", "LOCK", "CURRENT"] {
        std::fs::write(dir.join(name), "mine").unwrap();
    }
    let none = Db::builder(&dir).destroy().unwrap_err();
    assert_eq!(none.kind(), ErrorKind::InvalidArgument, "{none}");
    assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 6);

    // A link to a database stays, and leads to an empty directory.
    let (real, link) = (temp.path().join("real"), temp.path().join("link"));
    Db::open(&real).unwrap().close().unwrap();
    symlink(&real, &link).unwrap();
    Db::builder(&link).destroy().unwrap();
    assert_eq!(std::fs::read_dir(&real).unwrap().count(), 0);

    // Tables elsewhere go too. Another database's stay, and what no database uses.
    let (home, tables) = (temp.path().join("home"), temp.path().join("tables"));
    let db = Db::builder(&home).db_path(&tables, 1 << 30).open().unwrap();
    db.put("k", "v").unwrap();
    db.flush().unwrap();
    db.close().unwrap();
    drop(db);
    std::fs::write(tables.join("notes.txt"), "mine").unwrap();
    Db::builder(&home).destroy().unwrap();
    let left: Vec<_> = std::fs::read_dir(&tables).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert!(!home.exists() && left == ["notes.txt"], "{left:?}");
}

/// Each database has directories of its own; one that is taken over by another database is not emptied.
#[test]
fn a_destroyed_database_leaves_the_directories_of_another() {
    let temp = tempfile::tempdir().unwrap();
    let (one, other) = (temp.path().join("one"), temp.path().join("other"));
    let (wal, tables) = (temp.path().join("wal"), temp.path().join("tables"));
    let open = |home: &Path| {
        Db::builder(home).options(&format!("wal_dir={}", wal.display())).db_path(&tables, 1 << 30)
    };
    let db = open(&one).open().unwrap();
    db.put("k", "v").unwrap();
    db.flush().unwrap();
    db.put("l", "w").unwrap();
    db.close().unwrap();
    drop(db);
    // A copy of the directory has the same id, and the original keeps the other directories.
    std::fs::create_dir(&other).unwrap();
    for file in std::fs::read_dir(&one).unwrap().map(|entry| entry.unwrap()) {
        std::fs::copy(file.path(), other.join(file.file_name())).unwrap();
    }
    let refused = Db::builder(&other).destroy().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NotSupported, "{refused}");
    // Nor are tables that no file says to be the database's.
    std::fs::rename(tables.join("OWNER"), temp.path().join("OWNER")).unwrap();
    let refused = Db::builder(&one).destroy().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NotSupported, "{refused}");
    std::fs::rename(temp.path().join("OWNER"), tables.join("OWNER")).unwrap();
    let db = Db::open(&one).unwrap();
    assert_eq!(db.get("k").unwrap().as_deref(), Some(&b"v"[..]));
    assert_eq!(db.get("l").unwrap().as_deref(), Some(&b"w"[..]));
    let busy = Db::builder(&one).destroy().unwrap_err();
    assert_eq!(busy.kind(), ErrorKind::Busy(BusyKind::Locked), "{busy}");
    db.close().unwrap();
    drop(db);
    Db::builder(&one).destroy().unwrap();
    assert!(!one.exists() && !wal.exists() && !tables.exists());
}

/// A crash before any change of a removal leaves the whole database, or none that opens. A second removal ends it.
#[test]
fn a_crashed_removal_leaves_all_or_nothing_that_opens() {
    let path = Path::new("/db");
    let beside = [Path::new("/tables"), Path::new("/wal")];
    let sim = SimEnv::new(11);
    let builder = |sim: &SimEnv| {
        let places =
            Db::builder(path).db_path("/tables", 1 << 30).options("wal_dir=/wal;WAL_ttl_seconds=1000");
        places.env(sim.env())
    };
    let db = builder(&sim).open().unwrap();
    db.put("flushed", "1").unwrap();
    db.flush().unwrap();
    db.wait_for_background().unwrap();
    db.writing(WriteOptions::synced()).put("logged", "2").unwrap();
    db.close().unwrap();
    drop(db);
    let before = sim.calls_of(CallClass::Change);
    for at in 1..60 {
        CrashMode::all().into_iter().for_each(|mode| sim.photograph_at(before + at, mode));
    }
    builder(&sim).destroy().unwrap();
    let photographs = sim.photographs();
    assert!(photographs.len() > 8, "{}", photographs.len());
    let mut opened = 0;
    for (at, _, crashed) in photographs {
        if let Ok(db) = builder(&crashed).create(false).open() {
            assert_eq!(db.get("flushed").unwrap().as_deref(), Some(&b"1"[..]), "before change {at}");
            assert_eq!(db.get("logged").unwrap().as_deref(), Some(&b"2"[..]), "before change {at}");
            db.close().unwrap();
            opened += 1;
        }
        if crashed.env().fs.metadata(path).unwrap().is_some() {
            builder(&crashed).destroy().unwrap();
        }
        assert!(crashed.env().fs.metadata(path).unwrap().is_none(), "before change {at}");
        // Nothing of the database is left beside it.
        for place in beside {
            let left = crashed.env().fs.list(place).unwrap_or_default();
            let is_data = |name: &str| {
                ashlar_env::Fs::files(&*crashed.env().fs, &place.join(name)).is_ok_and(|f| !f.is_empty())
            };
            let data = left
                .iter()
                .find(|entry| entry.name != "LOCK" && (entry.name != "archive" || is_data("archive")));
            assert!(data.is_none(), "before change {at}: {left:?}");
        }
    }
    assert!(opened > 0);
}

/// Writes failed while the database said that it was healthy.
#[test]
fn a_next_wal_file_that_cannot_be_created_shows_in_the_health() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::builder(dir.path()).options("write_buffer_size=65536").open().unwrap();
    let taken: Vec<_> = (5..60).map(|number| dir.path().join(format!("{number:06}.log"))).collect();
    let taken: Vec<_> = taken.into_iter().filter(|path| std::fs::create_dir(path).is_ok()).collect();
    let refused = (0..1000).find_map(|n| db.put(format!("k{n}"), [7; 1024]).err()).unwrap();
    let (health, shown) = (db.health(), refused.to_string());
    assert!(shown.contains(".log"), "{shown}");
    assert_eq!((health.severity, health.cause.map(|e| e.to_string())), (Severity::Soft, Some(shown)));
    taken.iter().for_each(|path| std::fs::remove_dir(path).unwrap());
    db.put("k", "v").unwrap();
    db.wait_for_background().unwrap();
    assert_eq!(db.health().severity, Severity::Healthy);
}

/// With the id in IDENTITY alone a copy without that file has an id of its own. A crash at any moment of the open that takes the id
/// out of the MANIFEST loses it nowhere.
#[test]
fn an_id_that_is_kept_apart_is_never_lost() {
    let path = Path::new("/db");
    let sim = SimEnv::new(12);
    let apart = |sim: &SimEnv| Db::builder(path).env(sim.env()).options("write_dbid_to_manifest=false");
    let id_of = |builder: Builder| {
        let db = builder.open().unwrap();
        let id = db.identity().unwrap().unwrap();
        db.close().unwrap();
        id
    };
    let id = id_of(Db::builder(path).env(sim.env()));
    // As RocksDB leaves it with write_identity_file=false: the id is in the MANIFEST only.
    sim.env().fs.remove(&path.join("IDENTITY")).unwrap();
    sim.env().fs.sync_dir(path).unwrap();
    let before = sim.calls_of(CallClass::Change);
    for at in (1..40).step_by(ashlar_testkit::report::scale(2, 1)) {
        CrashMode::all().into_iter().for_each(|mode| sim.photograph_at(before + at, mode));
    }
    assert_eq!(id_of(apart(&sim)), id);
    assert_eq!(id_of(apart(&sim)), id);
    let photographs = sim.photographs();
    assert!(photographs.len() > 20, "{}", photographs.len());
    for (at, _, crashed) in photographs {
        assert_eq!(id_of(apart(&crashed)), id, "before change {at}");
        assert_eq!(id_of(apart(&crashed)), id, "before change {at}");
    }
    // A copy without IDENTITY.
    sim.env().fs.remove(&path.join("IDENTITY")).unwrap();
    let other = id_of(apart(&sim));
    assert_ne!(other, id);
    assert_eq!(id_of(apart(&sim)), other);
    assert_eq!(id_of(Db::builder(path).env(sim.env()).options("write_dbid_to_manifest=true")), other);
}

/// Regression: a repair took the WAL files of another database, which then never opened again.
#[test]
fn neither_a_repair_nor_a_removal_takes_the_directory_of_another_database() {
    let temp = tempfile::tempdir().unwrap();
    let [home, logs, tables, empty] = ["home", "logs", "tables", "empty"].map(|name| temp.path().join(name));
    let paths = || Db::builder(&home).wal_dir(&logs).db_path(&tables, 1 << 30).db_path(&empty, 1 << 30);
    let open = || paths().open();
    let db = open().unwrap();
    db.put("table", "1").unwrap();
    db.flush().unwrap();
    db.writing(WriteOptions::synced()).put("log", "2").unwrap();
    db.close().unwrap();
    let listed = |dir: &Path| {
        let mut names: Vec<_> =
            std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    for place in [&logs, &tables, &empty] {
        let before = listed(place);
        let refusals = [
            Db::open(place).map(drop),
            Db::builder(place).repair(|_| ()).map(drop),
            Db::builder(place).destroy(),
        ];
        for refused in refusals {
            let e = refused.unwrap_err();
            assert_eq!(e.kind(), ErrorKind::InvalidArgument, "{e}");
            // Nothing in an empty directory could be repaired.
            assert!(e.to_string().contains("home") || place == &empty, "{e}");
        }
        assert_eq!(listed(place), before);
    }
    assert!(Db::open(&empty).unwrap_err().to_string().contains("home"));
    let db = open().unwrap();
    assert!(db.get("table").unwrap().is_some() && db.get("log").unwrap().is_some());
    db.close().unwrap();
    Db::builder(&home).repair(|_| ()).unwrap();
}
