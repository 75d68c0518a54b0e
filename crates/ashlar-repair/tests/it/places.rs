//! Power cuts and kills of a database whose WAL files and tables are in several directories.

use ashlar_base::ErrorKind;
use ashlar_base::error::BusyKind;
use ashlar_engine::batch::WriteBatch;
use ashlar_engine::{Db, OpenFamily};
use ashlar_env::Env;
use ashlar_env::sim::{CallClass, CrashMode, SimEnv};
use ashlar_options::{DbOptions, DbPath, FamilyOptions, ReadOptions, WriteOptions};
use ashlar_repair::check_database;
use ashlar_testkit::report;
use std::path::Path;

const DIR: &str = "/db";
const KEYS: u32 = 600;

/// Opens with the given directories, or with those that the OPTIONS file names.
fn open(sim: &SimEnv, given: bool, wal_dir: &str) -> Db {
    let paths = |a: &str, b: &str| {
        if given { vec![DbPath::new(a, 100_000), DbPath::new(b, u64::MAX)] } else { Vec::new() }
    };
    let mut family = FamilyOptions { write_buffer_bytes: 64 << 10, ..FamilyOptions::default() };
    family.compaction.l0_trigger = 2;
    family.compaction.base_level_bytes = 64 << 10;
    family.compaction.target_file_bytes = 32 << 10;
    let wal_dir = if given { wal_dir.to_owned() } else { String::new() };
    let options = DbOptions { wal_dir, db_paths: paths("/p0", "/p1"), ..DbOptions::default() };
    let other = FamilyOptions { cf_paths: paths("/q0", "/p1"), ..family.clone() };
    let listed = [("default", family.clone()), ("other", other)];
    let listed = listed.map(|(name, options)| OpenFamily { name: name.to_owned(), options });
    Db::open(sim.env(), Path::new(DIR), options, listed.into(), family)
        .unwrap_or_else(|e| panic!("given: {given}: {e}"))
}

fn key(n: u32) -> [u8; 4] {
    // Keys are spread, so that tables overlap and are compacted.
    n.wrapping_mul(0x9e37_79b1).to_be_bytes()
}

fn put(db: &Db, n: u32) {
    let mut batch = WriteBatch::new();
    for name in ["default", "other"] {
        // Values that no codec compresses.
        let value: Vec<u8> = (0..150).flat_map(|i| key(n.wrapping_mul(151).wrapping_add(i))).collect();
        batch.put(db.family(name).unwrap().id(), &key(n), &value).unwrap();
    }
    db.write(&mut batch, WriteOptions { sync: true, ..WriteOptions::default() }).unwrap();
}

/// The number of writes, counted from the first, that both families have.
fn prefix(db: &Db) -> u32 {
    let has = |name: &str, n: u32| {
        db.get(&db.family(name).unwrap(), &key(n), ReadOptions::default()).unwrap().is_some()
    };
    let count = (0..KEYS).find(|n| !has("default", *n)).unwrap_or(KEYS);
    for n in 0..KEYS {
        assert_eq!((has("default", n), has("other", n)), (n < count, n < count), "write {n} of {count}");
    }
    count
}

#[test]
fn crashes_lose_nothing_wherever_the_files_are() {
    let (mut crashes, mut adopted) = (0, 0);
    for seed in 0..report::scale(2, 5) as u64 {
        // A run without a crash counts the calls; the next runs crash at each of them.
        let life = |sim: &SimEnv| {
            let (mut acknowledged, mut opens) = (Vec::new(), Vec::new());
            for (session, wal_dir) in [(0, "/wal"), (1, "/wal"), (2, "/wal2")] {
                let before = sim.calls_of(CallClass::Change);
                let db = open(sim, session != 1, wal_dir);
                opens.push(before..sim.calls_of(CallClass::Change) + 3);
                for n in (session * KEYS / 3)..((session + 1) * KEYS / 3) {
                    put(&db, n);
                    acknowledged.push(sim.calls_of(CallClass::Change));
                }
                db.flush(&db.families()).unwrap();
                db.wait_for_background().unwrap();
                db.close().unwrap();
            }
            (acknowledged, opens)
        };
        let sim = SimEnv::new(seed);
        let (_, opens) = life(&sim);
        let calls = sim.calls_of(CallClass::Change);
        let names = |dir: &str| sim.env().fs.list(Path::new(dir)).unwrap();
        assert!(names(DIR).iter().all(|f| !f.name.ends_with(".log") && !f.name.ends_with(".sst")));
        assert!(["/p0", "/p1", "/q0"].iter().any(|dir| names(dir).iter().any(|f| f.name.ends_with(".sst"))));
        assert!(names("/p1").iter().any(|f| f.name.ends_with(".sst")), "the lower levels");
        let modes = CrashMode::all();
        let step = usize::try_from(calls).unwrap().div_ceil(report::scale(60, 600));
        let sim = SimEnv::new(seed);
        for (turn, at) in (seed % step as u64..calls).step_by(step).enumerate() {
            sim.photograph_at(at, modes[turn % modes.len()]);
        }
        // Every call of the opens; the last open changes wal_dir.
        for (turn, at) in opens.into_iter().flatten().enumerate() {
            sim.photograph_at(at, modes[turn % modes.len()]);
        }
        let (acknowledged, _) = life(&sim);
        for (turn, (at, mode, image)) in sim.photographs().into_iter().enumerate() {
            let least = u32::try_from(acknowledged.iter().filter(|calls| **calls < at).count()).unwrap();
            // The last wal_dir: whichever of the two directories has the WAL files, they are found.
            let given = turn % 2 == 0 || least == 0;
            let db = open(&image, given, "/wal2");
            let found = prefix(&db);
            assert!(found >= least, "seed {seed}, call {at}, {mode:?}: {found} of {least}");
            drop(db);
            let checked = check_database(&image.env(), Path::new(DIR), &mut |_| {}).unwrap();
            assert!(checked.damages.is_empty(), "seed {seed}, call {at}, {mode:?}: {checked}");
            assert_eq!(prefix(&open(&image, false, "")), found);
            (crashes, adopted) = (crashes + 1, adopted + u32::from(!given));
        }
    }
    report::figure(&format!(
        "places: {crashes} crashes, {adopted} opened with the stored places, 0 keys lost"
    ));
}

/// The open replays into the second directory and commits the table. Regression: after a kill before the OPTIONS file
/// named that directory, an open without it did not know of the table, and reused its number.
#[test]
fn a_kill_in_an_open_that_adds_a_directory_leaves_a_database_that_opens_with_and_without_it() {
    let open = |sim: &SimEnv, paths: &[&str]| {
        let db_paths = paths.iter().map(|path| DbPath::new(*path, 0)).collect();
        let options = DbOptions { db_paths, ..DbOptions::default() };
        let names = ["default", "other"]
            .map(|name| OpenFamily { name: name.to_owned(), options: FamilyOptions::default() });
        Db::open(sim.env(), Path::new(DIR), options, names.into(), FamilyOptions::default())
    };
    let sim = SimEnv::new(1);
    put(&open(&sim, &["/p0"]).unwrap(), 0);
    let db = open(&sim, &["/p0"]).unwrap();
    put(&db, 1);
    let killed = sim.crash(CrashMode::KILL);
    for at in 1..200 {
        killed.photograph_at(at, CrashMode::KILL);
    }
    assert_eq!(prefix(&open(&killed, &["/p0", "/p1"]).unwrap()), 2);
    let images = killed.photographs();
    assert!(images.len() > 20);
    for (at, _, image) in images {
        let db = open(&image, &[]).unwrap_or_else(|e| panic!("killed before call {at}: {e}"));
        assert_eq!(prefix(&db), 2, "killed before call {at}");
        drop(db);
        let again = open(&image, &["/p0", "/p1"]).unwrap_or_else(|e| panic!("killed before call {at}: {e}"));
        assert_eq!(prefix(&again), 2, "killed before call {at}");
    }
}

/// The directories of a new family are handled as those of an open.
#[test]
fn directories_that_a_new_family_brings_are_held_and_locked() {
    let home = tempfile::tempdir().unwrap();
    let at = |name: &str| home.path().join(name);
    let env = Env::os().unwrap();
    let family =
        || FamilyOptions { cf_paths: vec![DbPath::new(at("q"), u64::MAX)], ..FamilyOptions::default() };
    let db = |name: &str| {
        Db::open(env.clone(), &at(name), DbOptions::default(), Vec::new(), FamilyOptions::default()).unwrap()
    };
    let (a, b) = (db("a"), db("b"));
    let q = a.create_family("q", family()).unwrap();
    let e = b.create_family("q", family()).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Busy(BusyKind::Locked), "{e}");
    // A second family in the same directory, and another directory under the same family name.
    a.create_family("r", family()).unwrap();
    std::fs::rename(at("q"), at("moved")).unwrap();
    std::fs::create_dir(at("q")).unwrap();
    let mut batch = WriteBatch::new();
    batch.put(q.id(), b"k", b"v").unwrap();
    a.write(&mut batch, WriteOptions::default()).unwrap();
    a.flush(&a.families()).unwrap();
    let tables = |name: &str| {
        let names =
            std::fs::read_dir(at(name)).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.ends_with(".sst")).count()
    };
    assert_eq!((tables("moved"), tables("q")), (1, 0));
    assert!(a.get(&q, b"k", ReadOptions::default()).unwrap().is_some());
    a.close().unwrap();
    std::fs::remove_dir(at("q")).unwrap();
    std::fs::rename(at("moved"), at("q")).unwrap();
    let a = db("a");
    assert!(a.get(&a.family("q").unwrap(), b"k", ReadOptions::default()).unwrap().is_some());
    a.close().unwrap();
    b.close().unwrap();
}

/// Opens that move the WAL files crash one after another. Regression: in between, the OPTIONS file named directories
/// without a WAL file.
#[test]
fn opens_that_move_the_logs_and_crash_leave_a_database_that_opens() {
    let sim = SimEnv::new(3);
    let db = open(&sim, true, "/wal");
    put(&db, 0);
    let modes = CrashMode::all();
    for (turn, wal_dir) in ["/wal2", DIR, "/wal"].into_iter().enumerate() {
        for first in 1..report::scale(25, 60) as u64 {
            let image = sim.crash(CrashMode::KILL);
            image.photograph_at(first, modes[(turn + usize::try_from(first).unwrap()) % modes.len()]);
            drop(open(&image, true, wal_dir));
            for (_, _, image) in image.photographs() {
                for (at, mode) in (1..30).zip(modes.iter().cycle().skip(turn)) {
                    image.photograph_at(at, *mode);
                }
                assert_eq!(prefix(&open(&image, first % 2 == 0, wal_dir)), 1);
                for (at, mode, image) in image.photographs() {
                    let what = format!("to {wal_dir}, before calls {first} and {at}, {mode:?}");
                    report::figure(&what);
                    assert_eq!(prefix(&open(&image, false, "")), 1, "{what}");
                }
            }
        }
    }
}

/// A power cut took the name of the newest WAL file, which has no write. Then an open that moves the WAL files crashes.
/// Regression: before its commit, the OPTIONS file named a directory without a WAL file, and the database did not open.
/// After the commit a directory without WAL files is refused.
#[test]
fn a_move_of_the_logs_that_crashed_is_no_loss_before_its_commit_and_one_after() {
    let open = |sim: &SimEnv, wal_dir: &str| {
        let options = DbOptions { wal_dir: wal_dir.to_owned(), ..DbOptions::default() };
        let names = ["default", "other"]
            .map(|name| OpenFamily { name: name.to_owned(), options: FamilyOptions::default() });
        Db::open(sim.env(), Path::new(DIR), options, names.into(), FamilyOptions::default())
    };
    let remove_logs = |sim: &SimEnv, dir: &str| {
        let fs = &sim.env().fs;
        let names = fs.list(Path::new(dir)).unwrap_or_default().into_iter().map(|file| file.name);
        names.filter(|name| name.ends_with(".log")).for_each(|name| {
            fs.remove(&Path::new(dir).join(name)).unwrap();
        });
    };
    let sim = SimEnv::new(5);
    let db = open(&sim, "").unwrap();
    put(&db, 0);
    db.flush(&db.families()).unwrap();
    let cut = sim.crash(CrashMode::KILL);
    remove_logs(&cut, DIR);
    (1..200).for_each(|at| cut.photograph_at(at, CrashMode::KILL));
    open(&cut, "/wal").unwrap().close().unwrap();
    let mut is_committed = false;
    for (at, _, image) in cut.photographs() {
        let gone = image.crash(CrashMode::KILL);
        assert_eq!(prefix(&open(&image, "").unwrap()), 1, "before call {at}");
        // A second open, which crashes as well, changes nothing about that.
        let again = gone.crash(CrashMode::KILL);
        (1..30).step_by(3).for_each(|at| again.photograph_at(at, CrashMode::KILL));
        drop(open(&again, "/wal").unwrap());
        for (inner, _, image) in again.photographs() {
            assert_eq!(prefix(&open(&image, "").unwrap()), 1, "before calls {at} and {inner}");
        }
        remove_logs(&gone, "/wal");
        let opened = open(&gone, "").map(drop);
        assert!(opened.is_err() || !is_committed, "before call {at}: the WAL files are gone");
        is_committed = opened.is_err();
    }
    assert!(is_committed);
}

/// Wherever a crash comes, an existing family has its directories: the OPTIONS file names them before the commit.
#[test]
fn a_crash_in_create_family_leaves_no_family_without_its_directories() {
    let open = |sim: &SimEnv| {
        let (options, family) = (DbOptions::default(), FamilyOptions::default());
        Db::open(sim.env(), Path::new(DIR), options, Vec::new(), family).unwrap()
    };
    let life = |sim: &SimEnv| {
        let db = open(sim);
        let before = sim.calls_of(CallClass::Change);
        let options = FamilyOptions { cf_paths: vec![DbPath::new("/q0", 0)], ..FamilyOptions::default() };
        db.create_family("other", options).unwrap();
        before..sim.calls_of(CallClass::Change)
    };
    let calls = life(&SimEnv::new(1));
    let mut there = 0;
    for mode in CrashMode::all() {
        let sim = SimEnv::new(1);
        calls.clone().for_each(|at| sim.photograph_at(at, mode));
        life(&sim);
        for (at, _, image) in sim.photographs() {
            let db = open(&image);
            let Some(family) = db.family("other") else { continue };
            let paths = family.options().cf_paths.clone();
            assert_eq!(paths, [DbPath::new("/q0", 0)], "call {at}, {mode:?}");
            there += 1;
        }
    }
    assert!(there > 0);
}

/// A new family begins in a directory of its own: with `OWNER`, and without files of another database.
#[test]
fn a_new_family_takes_no_directory_of_another_database() {
    let sim = SimEnv::new(1);
    let (fs, owner) = (&sim.env().fs, Path::new("/q0/OWNER"));
    let open = |dir: &str| {
        let (options, family) = (DbOptions::default(), FamilyOptions::default());
        Db::open(sim.env(), Path::new(dir), options, Vec::new(), family).unwrap()
    };
    let placed = || FamilyOptions { cf_paths: vec![DbPath::new("/q0", 0)], ..FamilyOptions::default() };
    let first = open("/first");
    let family = first.create_family("f", placed()).unwrap();
    assert!(fs.metadata(owner).unwrap().is_some());
    let mut batch = WriteBatch::new();
    batch.put(family.id(), b"k", b"v").unwrap();
    first.write(&mut batch, WriteOptions::default()).unwrap();
    first.flush(&first.families()).unwrap();
    first.close().unwrap();
    let before = fs.files(Path::new("/q0")).unwrap();
    let tables = |files: &[ashlar_env::FsEntry]| files.iter().filter(|f| f.name.ends_with(".sst")).count();
    assert_eq!(tables(&before), 1);
    let second = open("/second");
    for owned in [true, false] {
        if !owned {
            fs.remove(owner).unwrap();
        }
        let e = second.create_family("f", placed()).map(drop).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::InvalidArgument, "{e}");
        assert!(e.to_string().contains("cf_paths"), "{e}");
        assert!(second.family("f").is_none());
    }
    second.close().unwrap();
    let first = open("/first");
    assert_eq!(tables(&fs.files(Path::new("/q0")).unwrap()), 1);
    assert!(first.recovery().is_clean());
}
