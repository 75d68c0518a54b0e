//! Backups are whole, share what they have in common, and survive whatever interrupts a call.

use ashlar_env::sim::{CallClass, CrashMode, DataMode, DirMode, Repeat, SimEnv};
use ashlar_testkit::report::scale;
use ashlardb::prelude::*;
use ashlardb::{
    BackupEngine, BackupOptions, CompactRangeOptions, ErrorKind, IoKind, Read, RestoreOptions, WriteOptions,
};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

pub(crate) type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

pub(crate) fn entries(from: &impl Read) -> Entries {
    from.scan(..).map(|entry| entry.unwrap()).map(|(k, v)| (k.to_vec(), v.to_vec())).collect()
}

fn names(dir: &Path) -> Vec<String> {
    let all = fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = all.collect();
    names.sort();
    names
}

fn small(dir: &Path) -> Db {
    let builder = Db::builder(dir).family("other", |f| f.blob_files(500));
    builder.tune(|_, family| family.write_buffer_bytes = 64 << 10).open().unwrap()
}

fn fill(db: &Db, round: u32) {
    let other = db.family("other").unwrap();
    for n in 0..300_u32 {
        db.put((round * 200 + n).to_be_bytes(), vec![round as u8; 100]).unwrap();
        other.put(n.to_be_bytes(), vec![round as u8; if n % 10 == 0 { 1000 } else { 20 }]).unwrap();
    }
}

fn restored(engine: &BackupEngine, id: u32, into: &Path) -> (Entries, Entries) {
    engine.restore(id, into).unwrap_or_else(|e| panic!("backup {id}: {e}"));
    let db = Db::open(into).unwrap();
    assert!(db.recovery().is_clean(), "{}", db.recovery());
    (entries(&db), entries(&db.family("other").unwrap()))
}

#[test]
fn backups_are_incremental_and_each_restores_its_moment() {
    (1..4).step_by(2).for_each(backups_are_incremental);
}

fn backups_are_incremental(threads: usize) {
    let home = tempfile::tempdir().unwrap();
    let at = |name: &str| home.path().join(name);
    let db = small(&at("db"));
    let mut engine = BackupEngine::builder(at("backups")).threads(threads).open().unwrap();
    let mut states = Vec::new();
    for round in 0..5_u32 {
        fill(&db, round);
        if round == 3 {
            db.compact_range(.., CompactRangeOptions::default()).unwrap();
        }
        let options = BackupOptions::new().flush(round % 2 == 1).metadata(format!("round {round}"));
        let mut last = None;
        let made = engine.create_backup_with(&db, &options, |done| last = Some(*done)).unwrap();
        let done = last.unwrap();
        assert_eq!((done.files, done.bytes), (done.files_total, done.bytes_total));
        assert_eq!((made.info.id, made.info.metadata), (round + 1, format!("round {round}").into_bytes()));
        assert!(made.info.bytes > 0 && made.info.unix_seconds > 1_600_000_000);
        let again = engine.create_backup_with(&db, &BackupOptions::new(), |_| ()).unwrap();
        assert!(again.shared_files > 0 || round == 0, "{again:?}");
        assert!(round != 1 || again.copied_bytes < 100, "{again:?}");
        engine.delete(again.info.id).unwrap();
        states.push((entries(&db), entries(&db.family("other").unwrap())));
    }
    drop(engine);
    let engine = BackupEngine::builder(at("backups")).read_only(true).threads(threads).open().unwrap();
    let listed = engine.backups();
    assert_eq!(listed.iter().map(|b| b.id).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
    assert!(listed.windows(2).all(|two| two[0].sequence < two[1].sequence));
    for (backup, state) in listed.iter().zip(&states) {
        let mut done = Vec::new();
        engine.verify_with(backup.id, |copied| done.push((copied.files, copied.bytes))).unwrap();
        assert_eq!((done.len(), done.last()), (backup.files, Some(&(backup.files, backup.bytes))));
        assert_eq!(&restored(&engine, backup.id, &at(&format!("to {}", backup.id))), state);
        // The same directory again and again, with a database in it.
        assert_eq!(&restored(&engine, backup.id, &at("in place")), state);
    }
    assert_eq!(engine.restore_latest(at("latest")).unwrap().id, 5);
}

#[test]
fn a_deletion_keeps_what_other_backups_need() {
    let home = tempfile::tempdir().unwrap();
    let at = |name: &str| home.path().join(name);
    let db = small(&at("db"));
    let mut engine = BackupEngine::open(at("b")).unwrap();
    let mut states = Vec::new();
    for round in 0..4 {
        fill(&db, round);
        db.compact().unwrap();
        engine.create_backup(&db).unwrap();
        states.push((entries(&db), entries(&db.family("other").unwrap())));
    }
    let shared = names(&at("b/shared_checksum")).len();
    engine.delete(2).unwrap();
    assert_eq!(engine.purge_old(2).unwrap(), [1]);
    assert_eq!(engine.purge_old(2).unwrap(), [0_u32; 0]);
    assert!(names(&at("b/shared_checksum")).len() < shared, "files of deleted backups are gone");
    for id in [3, 4] {
        assert_eq!(restored(&engine, id, &at(&format!("to {id}"))), states[id as usize - 1]);
    }
    assert_eq!(
        (names(&at("b/meta")), names(&at("b/private"))),
        (vec!["3".into(), "4".into()], vec!["3".into(), "4".into()])
    );
    assert_eq!(engine.delete(2).unwrap_err().kind(), ErrorKind::InvalidArgument);
    engine.purge_old(0).unwrap();
    assert_eq!(names(&at("b/shared_checksum")), [""; 0]);
    assert_eq!(engine.restore_latest(at("none")).unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(engine.create_backup(&db).unwrap().info.id, 1);
}

#[test]
fn wrong_places_and_a_second_writer_are_refused() {
    let home = tempfile::tempdir().unwrap();
    let at = |name: &str| home.path().join(name);
    let db = small(&at("db"));
    fill(&db, 1);
    let mut engine = BackupEngine::open(at("b")).unwrap();
    engine.create_backup(&db).unwrap();
    let second = BackupEngine::open(at("b")).unwrap_err();
    assert!(matches!(second.kind(), ErrorKind::Busy(_)), "{second}");
    let mut reader = BackupEngine::builder(at("b")).read_only(true).open().unwrap();
    assert_eq!(reader.create_backup(&db).unwrap_err().kind(), ErrorKind::NotSupported);
    assert_eq!(reader.delete(1).unwrap_err().kind(), ErrorKind::NotSupported);
    let missing = BackupEngine::builder(at("nothing")).read_only(true).open().unwrap_err();
    assert!(missing.is_not_found() && !at("nothing").exists());
    assert_eq!(BackupEngine::open(at("db")).unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(BackupEngine::open("").unwrap_err().kind(), ErrorKind::InvalidArgument);

    let before = entries(&db);
    let live = engine.restore(1, at("db")).unwrap_err();
    assert!(matches!(live.kind(), ErrorKind::Busy(_)) && live.to_string().contains("open"), "{live}");
    fs::create_dir(at("full")).unwrap();
    fs::write(at("full/note"), "mine").unwrap();
    fs::write(at("file"), "mine").unwrap();
    for place in ["full", "file", "b", "b/meta", ""] {
        let into = if place.is_empty() { place.into() } else { at(place) };
        let e = engine.restore(1, into).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::InvalidArgument, "{place}: {e}");
    }
    assert_eq!(names(&at("full")), ["note"]);
    assert_eq!(engine.restore(9, at("new")).unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert!(!at("new").exists());
    let large = BackupOptions::new().metadata(vec![0; (1 << 20) + 1]);
    assert_eq!(
        engine.create_backup_with(&db, &large, |_| ()).unwrap_err().kind(),
        ErrorKind::InvalidArgument
    );
    assert_eq!(entries(&db), before);
    db.close().unwrap();
    // A note beside the database stays.
    fs::write(at("db/note"), "mine").unwrap();
    restored(&engine, 1, &at("db"));
    assert_eq!(fs::read(at("db/note")).unwrap(), b"mine");
    // Remains of an interrupted backup go, what is foreign does not, and its id is not used.
    fs::create_dir_all(at("b/private/2/mine")).unwrap();
    fs::write(at("b/shared_checksum/.000009.sst.tmp"), "half").unwrap();
    fs::write(at("b/shared_checksum/note"), "mine").unwrap();
    let db = small(&at("db"));
    let e = engine.create_backup(&db).unwrap_err();
    assert!(at("b/private/2/mine").exists() && e.to_string().contains("private/2"), "{e}");
    fs::remove_dir(at("b/private/2/mine")).unwrap();
    engine.create_backup(&db).unwrap();
    assert!(at("b/shared_checksum/note").exists() && !at("b/shared_checksum/.000009.sst.tmp").exists());
    engine.delete(2).unwrap();
    db.close().unwrap();
    let read_only = Db::builder(at("db")).read_only(true).open().unwrap();
    assert_eq!(engine.create_backup(&read_only).unwrap_err().kind(), ErrorKind::NotSupported);
    assert_eq!(engine.backups().len(), 1);
}

#[test]
fn kept_log_files_bring_the_writes_after_the_backup() {
    let home = tempfile::tempdir().unwrap();
    let at = |name: &str| home.path().join(name);
    let keep = RestoreOptions::new().keep_log_files(true);
    let mut engine = BackupEngine::open(at("b")).unwrap();
    let db = Db::open(at("db")).unwrap();
    db.put("before", "1").unwrap();
    engine.create_backup(&db).unwrap();
    db.put("after", "1").unwrap();
    db.close().unwrap();
    engine.restore_with(1, at("db"), keep, |_| ()).unwrap();
    let db = Db::open(at("db")).unwrap();
    assert_eq!(entries(&db).len(), 2);
    // Now the write after the backup is in a table only, and later ones in the WAL: a gap.
    db.flush().unwrap();
    db.put("later", "1").unwrap();
    db.close().unwrap();
    let e = engine.restore_with(1, at("db"), keep, |_| ()).unwrap_err();
    assert!(e.kind() == ErrorKind::InvalidArgument && e.to_string().contains("does not continue"), "{e}");
    assert_eq!(entries(&Db::open(at("db")).unwrap()).len(), 3, "a refused call changes nothing");
    engine.restore(1, at("db")).unwrap();
    assert_eq!(entries(&Db::open(at("db")).unwrap()).len(), 1);
}

/// Each damage is reported by file; the other backup stays usable, and nothing of either is removed.
#[test]
fn damage_costs_one_backup_and_is_named() {
    let home = tempfile::tempdir().unwrap();
    let at = |name: &str| home.path().join(name);
    let db = small(&at("db"));
    fill(&db, 0);
    let mut engine = BackupEngine::open(at("b")).unwrap();
    engine.create_backup_with(&db, &BackupOptions::new().flush(true), |_| ()).unwrap();
    let sound = (entries(&db), entries(&db.family("other").unwrap()));
    fill(&db, 1);
    db.compact().unwrap();
    engine.create_backup(&db).unwrap();
    drop(engine);
    let text = fs::read_to_string(at("b/meta/2")).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let own = lines.iter().find(|line| line.contains("shared_checksum")).unwrap().split(' ').next().unwrap();
    let mut damages: Vec<(String, Option<Vec<u8>>)> =
        (0..text.len()).step_by(7).map(|n| ("meta/2".into(), Some(text.as_bytes()[..n].to_vec()))).collect();
    damages.push(("meta/2".into(), Some(b"1\n2\n\xff\n".to_vec())));
    damages.push(("meta/2".into(), Some(text.replace("private/2", "private/1").into_bytes())));
    damages.push(("meta/2".into(), Some(text.replace("private/2/CURRENT", "private/2/LOCK").into_bytes())));
    damages.push(("meta/2".into(), Some(text.replace(own, "../../secret").into_bytes())));
    damages.push((own.to_owned(), None));
    damages.push((own.to_owned(), Some(b"short".to_vec())));
    damages.push(("private/2/CURRENT".into(), None));
    for (file, content) in damages {
        let path = at("b").join(&file);
        let before = fs::read(&path).unwrap();
        match &content {
            Some(content) => fs::write(&path, content).unwrap(),
            None => fs::remove_file(&path).unwrap(),
        }
        let mut engine = BackupEngine::open(at("b")).unwrap();
        assert_eq!(engine.backups().iter().map(|b| b.id).collect::<Vec<_>>(), [1], "{file} {content:?}");
        let corrupt = engine.corrupt_backups();
        let said = corrupt[0].error.to_string();
        assert!(corrupt.len() == 1 && corrupt[0].id == 2 && said.contains("meta/2"), "{said}");
        assert!(said.contains("line") || said.contains("names no"), "{said}");
        engine.collect_garbage().unwrap();
        for result in [engine.verify(2), engine.restore(2, at("never")).map(drop)] {
            assert!(result.unwrap_err().is_corruption() && !at("never").exists());
        }
        engine.verify(1).unwrap();
        assert_eq!(engine.restore_latest(at("one")).unwrap().id, 1);
        drop(engine);
        fs::write(&path, before).unwrap();
    }
    // A changed byte shows in a verification and in a restore. An existing database stays.
    let path = at("b").join(own);
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let mut engine = BackupEngine::open(at("b")).unwrap();
    assert_eq!(engine.backups().len(), 2);
    engine.verify_sizes(2).unwrap();
    for into in ["fresh", "one"] {
        let e = engine.restore(2, at(into)).unwrap_err();
        assert!(e.is_corruption() && e.to_string().contains(own), "{e}");
    }
    assert!(engine.verify(2).unwrap_err().is_corruption());
    assert!(!at("fresh/CURRENT").exists());
    let kept = Db::open(at("one")).unwrap();
    assert_eq!((entries(&kept), entries(&kept.family("other").unwrap())), sound);
    // A failed restore can be repeated, and deleting the damaged backup leaves the other one.
    engine.delete(2).unwrap();
    assert_eq!(restored(&engine, 1, &at("fresh")), sound);
    fs::write(at("b/meta/2"), "nonsense").unwrap();
    engine.create_backup(&db).unwrap();
    assert_eq!(engine.corrupt_backups().len(), 1);
    engine.delete(2).unwrap();
    assert_eq!(engine.backups().iter().map(|b| b.id).collect::<Vec<_>>(), [1, 3]);
}

/// A kill, and power cuts with which each directory change that was not synced may survive or not.
const MODES: [CrashMode; 5] = [
    CrashMode::KILL,
    CrashMode::DROP_ALL,
    CrashMode { data: DataMode::DropAll, dirs: DirMode::Prefix },
    CrashMode { data: DataMode::DropAll, dirs: DirMode::Subset },
    CrashMode { data: DataMode::DropAll, dirs: DirMode::KeepAll },
];

/// A database with tables, a WAL file and two families, on a simulated machine, and a backup of an earlier state.
fn simulated(seed: u64) -> (SimEnv, Db, BackupEngine, Entries) {
    let sim = SimEnv::new(seed);
    let db = Db::builder("/db").env(sim.env()).family("other", |f| f.blob_files(30)).open().unwrap();
    for n in 0..200_u32 {
        db.put(n.to_be_bytes(), vec![b'v'; 50]).unwrap();
    }
    db.family("other").unwrap().put("blob", vec![b'b'; 500]).unwrap();
    db.flush().unwrap();
    db.writing(WriteOptions::synced()).put("in the WAL", "1").unwrap();
    let mut engine = BackupEngine::builder("/b").env(sim.env()).open().unwrap();
    engine.create_backup(&db).unwrap();
    let first = entries(&db);
    db.writing(WriteOptions::synced()).put("second", "2").unwrap();
    db.flush().unwrap();
    db.writing(WriteOptions::synced()).put("in the second WAL", "2").unwrap();
    (sim, db, engine, first)
}

/// Every listed backup of this machine is whole, backup 1 is there, and the next creation succeeds and leaves no garbage.
fn backups_are_whole(sim: &SimEnv, states: &[&Entries], least: usize, what: &str) {
    let env = sim.env();
    let mut engine =
        BackupEngine::builder("/b").env(sim.env()).open().unwrap_or_else(|e| panic!("{what}: {e}"));
    assert!(engine.corrupt_backups().is_empty(), "{what}: {:?}", engine.corrupt_backups());
    let listed = engine.backups();
    assert!(listed.len() >= least, "{what}: {listed:?}");
    let db = Db::builder("/db").env(sim.env()).open().unwrap();
    let made = engine.create_backup(&db).unwrap_or_else(|e| panic!("{what}: {e}"));
    db.close().unwrap();
    for (number, backup) in engine.backups().iter().enumerate() {
        engine.verify(backup.id).unwrap_or_else(|e| panic!("{what}: {e}"));
        let into = format!("/restored {number}");
        engine.restore(backup.id, &into).unwrap_or_else(|e| panic!("{what}: {e}"));
        let db = Db::builder(&into).env(sim.env()).open().unwrap();
        let expected = if backup.id == made.info.id { states[states.len() - 1] } else { states[number] };
        assert_eq!(&entries(&db), expected, "{what}, backup {}", backup.id);
    }
    engine.purge_old(0).unwrap();
    for folder in ["/b/meta", "/b/private", "/b/shared_checksum"] {
        let left = env.fs.list(Path::new(folder)).unwrap();
        assert!(left.is_empty(), "{what}: {folder} {left:?}");
    }
}

#[test]
fn a_power_cut_during_a_creation_leaves_the_earlier_backups() {
    let (sim, db, mut engine, first) = simulated(7);
    let second = entries(&db);
    let before = sim.calls_of(CallClass::Change);
    let step = scale(4, 1);
    for at in (1..200).step_by(step) {
        MODES.iter().for_each(|mode| sim.photograph_at(before + at, *mode));
    }
    engine.create_backup(&db).unwrap();
    let calls = sim.calls_of(CallClass::Change) - before;
    let photographs = sim.photographs();
    let least = MODES.len() as u64 * ((calls - 1) / step as u64);
    assert!(photographs.len() as u64 >= least && calls < 200, "{calls}");
    backups_are_whole(&sim.crash(CrashMode::DROP_ALL), &[&first, &second], 2, "after the call");
    for (at, mode, machine) in photographs {
        backups_are_whole(&machine, &[&first, &second], 1, &format!("call {}, {mode:?}", at - before));
    }
}

#[test]
fn a_power_cut_during_a_deletion_leaves_the_other_backups() {
    let (sim, db, mut engine, _) = simulated(7);
    let second = entries(&db);
    engine.create_backup(&db).unwrap();
    let before = sim.calls_of(CallClass::Change);
    for at in 1..60 {
        MODES.iter().for_each(|mode| sim.photograph_at(before + at, *mode));
    }
    engine.delete(1).unwrap();
    for (at, mode, machine) in sim.photographs() {
        let what = format!("call {}, {mode:?}", at - before);
        let engine = BackupEngine::builder("/b").env(machine.env()).open().unwrap();
        assert!(engine.corrupt_backups().is_empty(), "{what}");
        let newest = engine.backups().last().unwrap().id;
        assert_eq!(newest, 2, "{what}");
        for backup in engine.backups() {
            engine.verify(backup.id).unwrap_or_else(|e| panic!("{what}: {e}"));
        }
        engine.restore(2, "/r").unwrap();
        assert_eq!(entries(&Db::builder("/r").env(machine.env()).open().unwrap()), second, "{what}");
    }
}

#[test]
fn a_creation_that_fails_leaves_the_earlier_backups_and_the_next_attempt_succeeds() {
    for class in [CallClass::Read, CallClass::Change] {
        for repeat in [Repeat::Once, Repeat::Sticky] {
            let mut at = 0;
            loop {
                at += scale(4, 1) as u64;
                let (sim, db, mut engine, first) = simulated(7);
                let second = entries(&db);
                sim.fail_call(class, sim.calls_of(class) + at, repeat, IoKind::NoSpace);
                let made = engine.create_backup(&db);
                let injected = sim.injected();
                sim.heal();
                if injected == 0 {
                    made.unwrap();
                    break;
                }
                let what = format!("{class:?} {repeat:?} {at}: {made:?}");
                let states = if made.is_ok() { 2 } else { 1 };
                drop((db, engine));
                // What the failed call took back does not come back with a power cut.
                for mode in &MODES[2..4] {
                    backups_are_whole(&sim.crash(*mode), &[&first, &second], 1, &what);
                }
                backups_are_whole(&sim, &[&first, &second], states, &what);
            }
            assert!(at > 10, "{class:?}: {at}");
        }
    }
}

/// The directory of a restore is a database with the backup's state, or none.
#[test]
fn an_interrupted_restore_leaves_no_database_and_can_be_repeated() {
    let (sim, db, _, first) = simulated(7);
    let second = entries(&db);
    db.close().unwrap();
    let restore = |sim: &SimEnv| {
        let engine = BackupEngine::builder("/b").env(sim.env()).read_only(true).open().unwrap();
        engine.restore(1, "/db").map(drop)
    };
    let state = |sim: &SimEnv, what: &str| {
        let has_current = sim.env().fs.metadata(Path::new("/db/CURRENT")).unwrap().is_some();
        if has_current {
            let found = entries(&Db::builder("/db").env(sim.env()).open().unwrap());
            assert!(found == first || found == second, "{what}");
        }
        restore(sim).unwrap_or_else(|e| panic!("{what}: {e}"));
        assert_eq!(entries(&Db::builder("/db").env(sim.env()).open().unwrap()), first, "{what}");
    };
    for seed in 0..scale(2, 8) as u64 {
        let (sim, db, ..) = simulated(seed);
        db.close().unwrap();
        let before = sim.calls_of(CallClass::Change);
        for at in 1..100 {
            MODES.iter().for_each(|mode| sim.photograph_at(before + at, *mode));
        }
        restore(&sim).unwrap();
        let photographs = sim.photographs();
        assert!(photographs.len() > 20);
        state(&sim.crash(CrashMode::DROP_ALL), "after the call");
        for (at, mode, machine) in photographs {
            state(&machine, &format!("seed {seed}, call {}, {mode:?}", at - before));
        }
    }
    for class in [CallClass::Read, CallClass::Change] {
        for at in (1..).step_by(scale(3, 1)) {
            let machine = sim.crash(CrashMode::KILL);
            machine.fail_call(class, machine.calls_of(class) + at, Repeat::Once, IoKind::NoSpace);
            let engine = BackupEngine::builder("/b").env(machine.env()).read_only(true).open();
            let result = engine.and_then(|engine| engine.restore(1, "/db"));
            let injected = machine.injected();
            machine.heal();
            if injected == 0 {
                result.unwrap();
                break;
            }
            state(&machine, &format!("{class:?} {at}: {result:?}"));
        }
    }
}

#[test]
fn a_rate_limit_spreads_the_copying() {
    let sim = SimEnv::new(1);
    let db = Db::builder("/db").env(sim.env()).open().unwrap();
    for n in 0..40_u32 {
        db.put(n.to_be_bytes(), vec![n as u8; 10_000]).unwrap();
    }
    let clock = sim.env().clock;
    let began = clock.now();
    let mut engine = BackupEngine::builder("/b").env(sim.env()).rate_limit(100_000).open().unwrap();
    let made = engine.create_backup(&db).unwrap();
    assert!(made.copied_bytes > 400_000);
    assert!(clock.now() - began >= Duration::from_secs(4), "{:?}", clock.now() - began);
}

/// Each batch is in both families or in neither, with writes that skip the WAL too.
#[test]
fn backups_beside_writers_are_whole() {
    let home = tempfile::tempdir().unwrap();
    let db = small(&home.path().join("db"));
    let mut engine = BackupEngine::builder(home.path().join("b")).threads(3).open().unwrap();
    let write = |n: u64, unlogged: bool| {
        let batch = WriteBatch::new();
        batch.put(n.to_be_bytes(), vec![b'x'; 300]).unwrap();
        batch.family(&db.family("other").unwrap()).put(n.to_be_bytes(), vec![b'y'; 600]).unwrap();
        db.writing(WriteOptions::new().disable_wal(unlogged)).write(&batch).unwrap();
    };
    write(0, false);
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            (1..)
                .take_while(|_| !ended.load(Ordering::Relaxed))
                .for_each(|n| write(n, n > 2000 && n % 3 == 0));
        });
        for round in 0..scale(4, 8) {
            engine.create_backup_with(&db, &BackupOptions::new().flush(round % 3 == 2), |_| ()).unwrap();
            if round % 2 == 1 {
                db.compact_range(.., CompactRangeOptions::default()).unwrap();
            }
        }
        ended.store(true, Ordering::Relaxed);
        writer.join().unwrap();
    });
    let mut before = 0;
    for backup in engine.backups() {
        engine.verify(backup.id).unwrap();
        let (one, two) = restored(&engine, backup.id, &home.path().join("to"));
        assert_eq!(one.keys().collect::<Vec<_>>(), two.keys().collect::<Vec<_>>());
        assert_eq!(one.len() as u64 * 2, backup.sequence.get());
        assert!(one.len() >= before);
        before = one.len();
    }
}

/// Their tables have neither a session nor the ending `sst`.
#[test]
fn tables_of_leveldb_are_backed_up_and_restored() {
    let home = tempfile::tempdir().unwrap();
    let golden = ashlar_testkit::golden::golden("leveldb-1.23/level0").unwrap();
    let db = Db::builder(golden.path()).options("disable_auto_compactions=true").open().unwrap();
    let state = entries(&db);
    let mut engine = BackupEngine::open(home.path().join("b")).unwrap();
    let made = engine.create_backup(&db).unwrap();
    assert!(names(&home.path().join("b/shared_checksum")).len() > 1 && made.shared_files == 0);
    let again = engine.create_backup(&db).unwrap();
    assert!(again.shared_files > 1, "{again:?}");
    engine.verify(2).unwrap();
    engine.restore(2, home.path().join("copy")).unwrap();
    let copy = Db::open(home.path().join("copy")).unwrap();
    assert!(copy.recovery().is_clean(), "{}", copy.recovery());
    assert_eq!(entries(&copy), state);
}

#[test]
fn a_table_that_differs_from_its_checksum_is_not_backed_up() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("db");
    let checksums = "file_checksum_gen_factory=FileChecksumGenCrc32cFactory";
    let db = Db::builder(&path).options(checksums).open().unwrap();
    db.put("k", vec![7; 1000]).unwrap();
    db.flush().unwrap();
    let mut engine = BackupEngine::open(home.path().join("b")).unwrap();
    engine.create_backup(&db).unwrap();
    db.put("l", vec![8; 1000]).unwrap();
    db.flush().unwrap();
    let table = names(&path).into_iter().rfind(|name| name.ends_with(".sst")).unwrap();
    let mut bytes = fs::read(path.join(&table)).unwrap();
    bytes[10] ^= 1;
    fs::write(path.join(&table), bytes).unwrap();
    let e = engine.create_backup(&db).unwrap_err();
    assert!(e.is_corruption() && e.to_string().contains(&table), "{e}");
    assert_eq!(engine.backups().len(), 1);
    assert_eq!(names(&home.path().join("b/shared_checksum")).len(), 1);
    assert_eq!(names(&home.path().join("b/private")), ["1"]);
    engine.verify(1).unwrap();
}

/// WAL files with data of a family that was created after the backup do not continue it: the restored MANIFEST lacks the family.
#[test]
fn log_files_of_a_later_family_are_not_kept() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let db = Db::open(&path).unwrap();
    db.put("a", "1").unwrap();
    let mut engine = BackupEngine::open(dir.path().join("backups")).unwrap();
    let id = engine.create_backup(&db).unwrap().info.id;
    db.create_family("later").unwrap().put("k", "v").unwrap();
    db.close().unwrap();
    let keep = RestoreOptions::new().keep_log_files(true);
    let e = engine.restore_with(id, &path, keep, |_| ()).unwrap_err();
    assert!(e.kind() == ErrorKind::InvalidArgument && e.to_string().contains("created later"), "{e}");
    let db = Db::open(&path).unwrap();
    assert_eq!(db.family("later").unwrap().get("k").unwrap().as_deref(), Some(&b"v"[..]), "nothing changed");
    db.close().unwrap();
    engine.restore(id, &path).unwrap();
    assert_eq!(Db::open(&path).unwrap().get("a").unwrap().as_deref(), Some(&b"1"[..]));
}
