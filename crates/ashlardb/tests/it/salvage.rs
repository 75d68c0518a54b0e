//! Salvage: the damaged directory stays as it is, byte for byte, whatever becomes of the copy; and the copy is what a repair
//! of the directory would have made of it.

use crate::integrity::{database, files};
use crate::quarantine_blobs::stored;
use crate::repair::{
    DAMAGES, DIR, compare, copy, crashed_before_each, damage, damaged, forget_tree, holds, judged, repair,
    settings, targets,
};
use crate::store::fingerprint;
use ashlar_env::sim::{CallClass, CrashMode, Repeat, SimEnv};
use ashlar_testkit::judge::JudgeError;
use ashlar_testkit::rng::Rng;
use ashlar_testkit::{JudgeVersion, report};
use ashlardb::{BusyKind, Db, ErrorKind, IoKind, Read as _, RepairReport, Write as _};
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

fn salvage(dir: &Path, into: &Path) -> ashlardb::Result<RepairReport> {
    settings(dir).salvage(into, |_| {})
}

/// What both families list.
fn content(dir: &Path) -> Vec<(Vec<u8>, Vec<u8>)> {
    let db = settings(dir).create(false).open().unwrap();
    let list = |name: &str| {
        let entries = db.family(name).unwrap().scan(..).map(|entry| entry.unwrap());
        entries.map(|(key, value)| (key.to_vec(), value.to_vec())).collect::<Vec<_>>()
    };
    let both = ["default", "blobs"].map(list).concat();
    db.close().unwrap();
    both
}

/// Writes, flushes and compacts all there is.
fn use_up(dir: &Path) {
    let db = settings(dir).open().unwrap();
    for family in ["default", "blobs"].map(|name| db.family(name).unwrap()) {
        (0..100_u32).for_each(|i| family.put(format!("key{i:05}"), [7; 300]).unwrap());
    }
    db.compact().unwrap();
    db.close().unwrap();
}

/// Files that have a name elsewhere too.
fn linked(dir: &Path) -> usize {
    let all = files(dir, "");
    all.iter().filter(|file| file.is_file() && std::fs::metadata(file).unwrap().nlink() > 1).count()
}

#[test]
fn the_source_stays_as_it_is_and_the_copy_is_its_repair() {
    let temp = tempfile::tempdir().unwrap();
    let whole = temp.path().join("whole");
    database(&whole, "");
    let mut rng = Rng::new(12);
    let (mut runs, mut shared, mut judgements) = (0, 0, 0);
    for (at, name) in targets(&whole).into_iter().enumerate() {
        for kind in (at % report::scale(3, 1)..DAMAGES).step_by(report::scale(3, 1)) {
            let [dir, into, repaired] =
                ["source", "copy", "repaired"].map(|part| temp.path().join(format!("{part}{runs}")));
            copy(&whole, &dir);
            damage(kind, &dir.join(&name), &mut rng);
            copy(&dir, &repaired);
            let (what, before) = (format!("{name}, damage {kind}"), fingerprint(&dir));
            let account = salvage(&dir, &into).unwrap_or_else(|e| panic!("{what}: {e}"));
            assert!(fingerprint(&dir) == before, "{what}: changed by the salvage");
            assert_eq!(account, repair(&repaired), "{what}");
            assert!(content(&into) == content(&repaired), "{what}\n{account}");
            shared += linked(&into);
            runs += 1;
            if runs % 8 == 0 {
                for version in JudgeVersion::ALL {
                    match judged(&into, version) {
                        Err(JudgeError::Skip(skip)) => skip.announce("the_source_stays_as_it_is"),
                        other => judgements += usize::from(other.unwrap_or_else(|e| panic!("{what}: {e:?}"))),
                    }
                }
            }
            use_up(&into);
            assert!(fingerprint(&dir) == before, "{what}: changed by the life of the copy");
            [dir, into, repaired].iter().for_each(|dir| std::fs::remove_dir_all(dir).unwrap());
        }
    }
    assert!(shared > runs, "{shared} files shared");
    report::figure(&format!(
        "salvage: {runs} damaged directories, as they were; {shared} files shared with them, {judgements} judged"
    ));
}

#[test]
fn a_copy_replaces_nothing_and_nobody_has_the_source_open() {
    let temp = tempfile::tempdir().unwrap();
    let [dir, full, file, copy, link] =
        ["db", "full", "file", "copy", "link"].map(|name| temp.path().join(name));
    let entries = database(&dir, "");
    std::fs::create_dir(&full).unwrap();
    std::fs::write(full.join("mine"), "").unwrap();
    std::fs::write(&file, "").unwrap();
    std::os::unix::fs::symlink(&copy, &link).unwrap();
    let before = fingerprint(temp.path());
    for into in [&dir, &dir.join("copy"), &dir.join("lost/copy"), &full, &file, &link] {
        let e = salvage(&dir, into).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::InvalidArgument, "{}: {e}", into.display());
        assert!(e.to_string().contains("ame another") || e.to_string().contains("elsewhere"), "{e}");
    }
    assert_eq!(salvage(&full.join("none"), &copy).unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert!(fingerprint(temp.path()) == before);

    let db = Db::open(&dir).unwrap();
    assert_eq!(salvage(&dir, &copy).unwrap_err().kind(), ErrorKind::Busy(BusyKind::Locked));
    assert!(!copy.exists());
    db.close().unwrap();

    std::fs::create_dir(&copy).unwrap();
    let account = salvage(&dir, &copy).unwrap();
    assert!(account.losses.is_empty() && account.moved.is_empty(), "{account}");
    assert_eq!(compare(&copy, &entries, &account, "sound"), 0);
    assert_eq!(salvage(&dir, &copy).unwrap_err().kind(), ErrorKind::InvalidArgument, "a second time");
}

#[test]
fn without_a_manifest_the_source_stays_too() {
    let temp = tempfile::tempdir().unwrap();
    let (dir, into) = (temp.path().join("db"), temp.path().join("copy"));
    let entries = database(&dir, "");
    forget_tree(&dir);
    let before = fingerprint(&dir);
    let account = salvage(&dir, &into).unwrap();
    assert!(account.losses.is_empty() && account.rebuilt, "{account}");
    assert!(account.remarks[0].contains("no MANIFEST"), "{account}");
    assert_eq!(compare(&into, &entries, &account, "no MANIFEST"), 0, "{account}");
    assert!(fingerprint(&dir) == before);
}

#[test]
fn where_no_link_can_lead_files_are_copied() {
    let (temp, shm) = (tempfile::tempdir().unwrap(), Path::new("/dev/shm"));
    let device = |path: &Path| std::fs::metadata(path).map(|about| about.dev()).ok();
    let Some(elsewhere) = tempfile::tempdir_in(shm).ok().filter(|_| device(shm) != device(temp.path()))
    else {
        return report::skipped("where_no_link_can_lead", "there is no second file system to write to");
    };
    let (dir, into) = (temp.path().join("db"), elsewhere.path().join("copy"));
    let entries = database(&dir, "");
    let account = salvage(&dir, &into).unwrap();
    assert_eq!((linked(&into), compare(&into, &entries, &account, "elsewhere")), (0, 0));
}

const COPY: &str = "/copies/one";

fn salvage_at(sim: &SimEnv, into: &str) -> ashlardb::Result<RepairReport> {
    Db::builder(DIR).env(sim.env()).salvage(into, |_| {})
}

/// Names and bytes of the source.
fn source(sim: &SimEnv) -> BTreeMap<String, Vec<u8>> {
    let fs = sim.env().fs;
    let read = |name: String| {
        let file = fs.open_read(&Path::new(DIR).join(&name)).unwrap();
        let mut bytes = vec![0; file.len() as usize];
        file.read_exact_at(&mut bytes, 0).unwrap();
        (name, bytes)
    };
    fs.list(Path::new(DIR)).unwrap().into_iter().map(|entry| read(entry.name)).collect()
}

/// Whether an open may take the copy for a database; then it has all that the source has, or the repair has gone on.
fn has_current(sim: &SimEnv, source: &BTreeMap<String, Vec<u8>>, what: &str) -> bool {
    let there = sim.env().fs.list(Path::new(COPY)).unwrap_or_default();
    let has = |name: &str| there.iter().any(|entry| entry.name == name);
    if has("CURRENT") && !has("lost") {
        let data = source.keys().filter(|name| !["LOCK", "LOG"].contains(&name.as_str()));
        data.for_each(|name| assert!(has(name), "{what}: CURRENT is there and {name} is not"));
    }
    has("CURRENT")
}

/// A crash before any change that a salvage makes leaves the source, of which another salvage makes the same; over what is
/// left of the first it does not go, and an open takes that for no more than it is. What is left of one that ended is
/// durable.
#[test]
fn an_interrupted_salvage_leaves_the_source() {
    let (sim, model) = damaged(8);
    let before = source(&sim);
    let whole = sim.crash(CrashMode::KILL);
    let from = whole.calls_of(CallClass::Change);
    let account = salvage_at(&whole, COPY).unwrap();
    let changes = whole.calls_of(CallClass::Change) - from;
    assert!(!account.is_lossless() && account.moved.len() == 1, "{account}");
    for ended in [whole.crash(CrashMode::DROP_ALL), whole] {
        assert!(source(&ended) == before);
        holds(&ended, COPY, &model, &account, "whole");
    }
    let (mut images, mut refused, mut current) = (0, 0, 0);
    let step = report::scale(3, 1);
    let all = crashed_before_each(&sim, changes, |run| drop(salvage_at(run, COPY).unwrap()));
    for (what, image) in all.into_iter().step_by(step) {
        assert!(source(&image) == before, "{what}");
        current += usize::from(has_current(&image, &before, &what));
        match salvage_at(&image, COPY) {
            Ok(again) => assert_eq!(again, account, "{what}"),
            Err(e) => {
                assert_eq!(e.kind(), ErrorKind::InvalidArgument, "{what}: {e}");
                refused += 1;
            }
        }
        assert_eq!(salvage_at(&image, "/copies/two").unwrap(), account, "{what}");
        holds(&image, "/copies/two", &model, &account, &what);
        assert!(source(&image) == before, "{what}: afterwards");
        images += 1;
    }
    assert!(
        images * step as u64 >= changes && refused > current && current > 0,
        "{images} {refused} {current}"
    );
    report::figure(&format!(
        "salvage: crashed before each of {changes} changes, {images} images; {refused} remainders refused"
    ));
}

/// On a read-only file system no process can write to the source, so salvage takes no LOCK. Where only this process lacks
/// permission, another may be writing, so salvage takes the LOCK.
#[test]
fn a_source_that_nobody_can_write_needs_no_lock() {
    let (sim, model) = damaged(9);
    for (kind, needs) in [(IoKind::ReadOnly, false), (IoKind::Denied, true)] {
        let run = sim.crash(CrashMode::KILL);
        run.fail_call(CallClass::Change, run.calls_of(CallClass::Change) + 1, Repeat::Once, kind);
        match salvage_at(&run, COPY) {
            Ok(account) if !needs => holds(&run, COPY, &model, &account, "read only"),
            Err(e) if needs => assert_eq!(e.kind(), ErrorKind::Io(kind)),
            other => panic!("{kind:?}: {other:?}"),
        }
    }
}

/// A stretch of one file after the other that the device never reads: a repair of the directory fails and says what to do,
/// and that tells the stretch and loses nothing else.
#[test]
fn what_the_device_does_not_read_is_zeros_in_the_copy_and_told() {
    let (sim, mut model) = stored(10, false);
    let db = Db::builder(DIR).env(sim.env()).default_family(|f| f.blob_files(300)).open().unwrap();
    for i in 0..20_u8 {
        let key = format!("log{i:03}").into_bytes();
        db.put(&key, [i; 100]).unwrap();
        model.insert(key, vec![i; 100]);
    }
    db.close().unwrap();
    let around = |run: &SimEnv| Db::builder(DIR).env(run.env()).salvage_around_unreadable(COPY, |_| {});
    let whole = sim.crash(CrashMode::KILL);
    let account = around(&whole).unwrap();
    assert!(account.losses.is_empty(), "{account}");
    holds(&whole, COPY, &model, &account, "whole");

    // What is no fault of the device is passed over nowhere.
    for at in 1..60 {
        let run = sim.crash(CrashMode::KILL);
        let next = run.calls_of(CallClass::Read) + at;
        run.fail_call(CallClass::Read, next, Repeat::Once, IoKind::TooManyFiles);
        match around(&run) {
            Ok(account) => assert!(account.losses.is_empty(), "read {at}: {account}"),
            Err(e) => assert_eq!(e.kind(), ErrorKind::Io(IoKind::TooManyFiles), "read {at}: {e}"),
        }
    }

    let (mut runs, mut refused, mut lost) = (0, 0, 0);
    let before = source(&sim);
    for (name, bytes) in before.iter().filter(|(_, bytes)| !bytes.is_empty()) {
        let (run, path) = (sim.crash(CrashMode::KILL), Path::new(DIR).join(name));
        let middle = bytes.len() as u64 / 2;
        run.spoil(&path, middle..middle + 1).unwrap();
        let account = around(&run).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(source(&run.crash(CrashMode::KILL)) == before, "{name}");
        if name.starts_with("LOG") {
            assert!(account.losses.is_empty(), "{name}: {account}");
            continue;
        }
        let first = &account.losses[0];
        assert!(
            first.file == *name && first.cause.contains("cannot be read, zeros in the copy"),
            "{account}"
        );
        holds(&run, COPY, &model, &account, name);
        let db = Db::builder(COPY).env(run.env()).open().unwrap();
        lost += model.keys().filter(|key| db.get(key).unwrap().is_none()).count();
        if let Err(e) = Db::builder(DIR).env(run.env()).repair(|_| {}) {
            assert_eq!(e.kind(), ErrorKind::Io(IoKind::Other), "{name}: {e}");
            assert!(e.to_string().contains("--around-unreadable"), "{name}: {e}");
            refused += 1;
        }
        runs += 1;
    }
    assert!(runs > 9 && refused + 2 > runs && lost > 0, "{runs} {refused} {lost}");
    report::figure(&format!(
        "salvage around what the device does not read: {runs} files, {refused} that no repair reads, {lost} keys lost, told"
    ));
}
