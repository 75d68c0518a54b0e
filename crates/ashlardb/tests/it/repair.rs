//! Repair: whatever is damaged, the directory opens afterwards, here and in RocksDB; what is lost was told, key by key, and
//! nothing else is.

use crate::integrity::{Entries, check, database, files};
use crate::quarantine::names;
use crate::quarantine_blobs::{with_a_damaged_blob_file, with_bytes_behind_a_blob_file};
use ashlar_env::sim::{CallClass, CrashMode, DataMode, DirMode, Repeat, SimEnv};
use ashlar_testkit::judge::{JudgeError, Opening};
use ashlar_testkit::rng::Rng;
use ashlar_testkit::{Judge, JudgeVersion, report};
use ashlardb::{Builder, Db, ErrorKind, FormatLevel, IoKind, Read as _, RepairReport, Risk, Write as _};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            std::fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
        }
    }
}

/// Takes `CURRENT` and the MANIFESTs away.
pub fn forget_tree(dir: &Path) {
    for file in files(dir, "") {
        let name = file.file_name().unwrap().to_str().unwrap();
        if name == "CURRENT" || name.starts_with("MANIFEST-") {
            std::fs::remove_file(file).unwrap();
        }
    }
}

fn builder(dir: &Path) -> Builder {
    Db::builder(dir).format_level(FormatLevel::V7_8)
}

/// Settings for a directory as `database` makes it.
pub fn settings(dir: &Path) -> Builder {
    builder(dir).family("blobs", |f| f.blob_files(200))
}

pub fn repair(dir: &Path) -> RepairReport {
    settings(dir).repair(|_| {}).unwrap()
}

/// Whether the account says that the key may be lost.
fn told(report: &RepairReport, family: &str, key: &[u8]) -> bool {
    report.losses.iter().any(|loss| match &loss.risk {
        Risk::Database | Risk::Writes { .. } | Risk::UnknownKeys => true,
        Risk::Keys(spans) => {
            loss.family.as_deref() == Some(family) && spans.iter().any(|s| &*s.from <= key && key <= &*s.to)
        }
        _ => false,
    })
}

/// Opens what was repaired and holds it against the model; how many keys are not as they were, all of them told.
pub fn compare(dir: &Path, entries: &[Entries; 2], report: &RepairReport, what: &str) -> usize {
    let sound = check(dir);
    assert!(sound.damages.is_empty(), "{what}: {sound}\n{report}");
    let db = builder(dir).create(false).open().unwrap_or_else(|e| panic!("{what}: {e}\n{report}"));
    let mut lost = 0;
    for (name, model) in ["default", "blobs"].into_iter().zip(entries) {
        let family = db.family(name).unwrap_or_else(|e| panic!("{what}: {e}\n{report}"));
        for (key, value) in model {
            let found = family.get(key).unwrap_or_else(|e| panic!("{what}: {e}\n{report}"));
            if found.as_deref() != Some(&value[..]) {
                assert!(told(report, name, key), "{what}: {} is not told\n{report}", key.escape_ascii());
                lost += 1;
            }
        }
        let listed = family.scan(..).map(|entry| entry.unwrap().0).collect::<Vec<_>>();
        assert!(listed.iter().all(|key| model.contains_key(key)), "{what}: a key that was never written");
    }
    db.close().unwrap();
    lost
}

/// Does RocksDB open it and list what we list?
pub fn judged(dir: &Path, version: JudgeVersion) -> Result<bool, JudgeError> {
    let mut judge = Judge::spawn(version)?;
    let temp = tempfile::tempdir().unwrap();
    copy(dir, temp.path());
    judge.open(temp.path(), Opening::Existing, "")?;
    judge.verify()?;
    let db = Db::builder(dir).read_only(true).open().unwrap();
    for name in ["default", "blobs"] {
        let entries = db.family(name).unwrap().scan(..).map(|e| e.unwrap());
        let ours: Vec<_> = entries.map(|(k, v)| (k.to_vec(), v.to_vec())).collect();
        assert!(judge.dump(name)? == ours, "{}: {name}", version.name());
    }
    Ok(true)
}

/// What may happen to a file; the last kind: it is gone.
pub const DAMAGES: usize = 5;

pub fn damage(kind: usize, file: &Path, rng: &mut Rng) {
    if kind == DAMAGES - 1 {
        return std::fs::remove_file(file).unwrap();
    }
    let mut bytes = std::fs::read(file).unwrap();
    let at = rng.below(bytes.len());
    match kind {
        0 => bytes[at] ^= 1 << rng.below(8),
        1 => bytes[at..].iter_mut().take(4096).for_each(|byte| *byte = 0),
        2 => bytes.truncate(at),
        _ => bytes.extend([7; 100]),
    }
    std::fs::write(file, &bytes).unwrap();
}

/// The names of the files that count: one of each kind at least.
pub fn targets(dir: &Path) -> Vec<String> {
    let current = std::fs::read_to_string(dir.join("CURRENT")).unwrap();
    let mut targets = vec!["CURRENT".to_owned(), current.trim().to_owned()];
    let data = [".sst", ".blob", ".log"].iter().flat_map(|ends| files(dir, ends));
    targets.extend(data.map(|file| file.file_name().unwrap().to_str().unwrap().to_owned()));
    targets
}

#[test]
fn whatever_is_damaged_what_is_left_opens_and_losses_are_told() {
    let temp = tempfile::tempdir().unwrap();
    let whole = temp.path().join("whole");
    let entries = database(&whole, "");
    let mut rng = Rng::new(11);
    let (mut runs, mut losses, mut lost, mut judgements) = (0, 0, 0, 0);
    for (at, name) in targets(&whole).into_iter().enumerate() {
        for kind in (at % report::scale(3, 1)..DAMAGES).step_by(report::scale(3, 1)) {
            let dir = temp.path().join(format!("run{runs}"));
            copy(&whole, &dir);
            damage(kind, &dir.join(&name), &mut rng);
            let what = format!("{name}, damage {kind}");
            // A log that is gone leaves no trace behind the newest MANIFEST.
            let silent = kind == 4 && name.ends_with(".log") || kind == 2 && name.ends_with(".log");
            let report = repair(&dir);
            runs += 1;
            losses += report.losses.len();
            if silent {
                builder(&dir).create(false).open().unwrap().close().unwrap();
            } else {
                lost += compare(&dir, &entries, &report, &what);
            }
            if runs % 4 == 0 {
                for version in JudgeVersion::ALL {
                    match judged(&dir, version) {
                        Err(JudgeError::Skip(skip)) => skip.announce("whatever_is_damaged"),
                        other => judgements += usize::from(other.unwrap_or_else(|e| panic!("{what}: {e:?}"))),
                    }
                }
            }
            std::fs::remove_dir_all(&dir).unwrap();
        }
    }
    report::figure(&format!(
        "repair: {runs} damaged directories open; {losses} losses told, {lost} keys hit; {judgements} judged"
    ));
}

#[test]
fn without_a_manifest_everything_is_merged() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("db");
    let entries = database(&dir, "");
    forget_tree(&dir);
    let account = repair(&dir);
    assert!(account.losses.is_empty() && account.remarks[0].contains("no MANIFEST"), "{account}");
    assert!(account.rebuilt && !account.is_lossless(), "{account}");
    assert_eq!(compare(&dir, &entries, &account, "no MANIFEST"), 0, "{account}");
    assert!(std::fs::read_dir(dir.join("lost")).unwrap().count() > account.moved.len(), "a note is there");
    for version in JudgeVersion::ALL {
        match judged(&dir, version) {
            Err(JudgeError::Skip(skip)) => return skip.announce("without_a_manifest"),
            other => assert!(other.unwrap()),
        }
    }
}

#[test]
fn a_sound_database_loses_nothing() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("db");
    let entries = database(&dir, "");
    let db = Db::open(&dir).unwrap();
    let e = Db::builder(&dir).repair(|_| {}).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Busy(ashlardb::BusyKind::Locked), "{e}");
    db.close().unwrap();
    for _ in 0..2 {
        let account = repair(&dir);
        assert!(
            account.losses.is_empty() && account.moved.is_empty() && account.rewritten.is_empty(),
            "{account}"
        );
        assert_eq!(compare(&dir, &entries, &account, "sound"), 0);
    }
    assert!(!dir.join("lost").exists());
}

pub const DIR: &str = "/db";

/// A database on a simulated disk, one table of which has a bit flipped.
pub fn damaged(seed: u64) -> (SimEnv, BTreeMap<Vec<u8>, Vec<u8>>) {
    let sim = SimEnv::new(seed);
    let open = Db::builder(DIR).env(sim.env()).default_family(|f| f.tune(|f| f.table.block_size = 512));
    let db = open.open().unwrap();
    let mut model = BTreeMap::new();
    for round in 0..3_u32 {
        for i in 0..150_u32 {
            let (key, value) =
                (format!("{:04}", i * 7 % 200 + round), format!("value {i} {round}").repeat(3));
            db.put(key.as_bytes(), value.as_bytes()).unwrap();
            model.insert(key.into_bytes(), value.into_bytes());
        }
        if round < 2 {
            db.flush().unwrap();
        }
    }
    db.sync().unwrap();
    db.close().unwrap();
    let fs = sim.env().fs;
    let tables = fs.list(Path::new(DIR)).unwrap().into_iter().filter(|entry| entry.name.ends_with(".sst"));
    let table = Path::new(DIR).join(tables.max_by_key(|entry| entry.len).unwrap().name);
    let mut byte = [0];
    fs.open_read(&table).unwrap().read_exact_at(&mut byte, 1500).unwrap();
    let file = fs.open_write(&table).unwrap();
    file.write_at(&[byte[0] ^ 16], 1500).unwrap();
    file.sync_all().unwrap();
    (sim, model)
}

fn repair_at(sim: &SimEnv) -> ashlardb::Result<RepairReport> {
    Db::builder(DIR).env(sim.env()).repair(|_| {})
}

/// What a crash before each of the changes leaves that `work` makes on `sim`: killed, without power, and without power when
/// any names were durable already.
pub fn crashed_before_each(sim: &SimEnv, changes: u64, work: impl Fn(&SimEnv)) -> Vec<(String, SimEnv)> {
    let mut images = Vec::new();
    let any_names = CrashMode { data: DataMode::DropAll, dirs: DirMode::Subset };
    for mode in [CrashMode::KILL, CrashMode::DROP_ALL, any_names] {
        let run = sim.crash(CrashMode::KILL);
        let from = run.calls_of(CallClass::Change);
        (1..=changes).for_each(|at| run.photograph_at(from + at, mode));
        work(&run);
        let named = run
            .photographs()
            .into_iter()
            .map(|(at, _, image)| (format!("{mode:?} before change {}", at - from), image));
        images.extend(named);
    }
    images
}

/// Every key reads right, or is one that the first account told.
pub fn holds(
    sim: &SimEnv,
    dir: &str,
    model: &BTreeMap<Vec<u8>, Vec<u8>>,
    account: &RepairReport,
    what: &str,
) {
    let db = Db::builder(dir).env(sim.env()).create(false).open().unwrap_or_else(|e| panic!("{what}: {e}"));
    reads(&db, model, account, what);
    db.close().unwrap();
}

/// The same of a database that is open.
pub fn reads(db: &Db, model: &BTreeMap<Vec<u8>, Vec<u8>>, account: &RepairReport, what: &str) {
    for (key, value) in model {
        let found = db.get(key).unwrap_or_else(|e| panic!("{what}: {e}"));
        let right = found.as_deref() == Some(&value[..]);
        assert!(right || told(account, "default", key), "{what}: {}", key.escape_ascii());
    }
    let checked = db.verify_db(|_| {}).unwrap();
    assert!(checked.damages.is_empty(), "{what}: {checked}");
}

/// A crash before any change that a repair makes leaves what it began with, or what it ends with: begun again it comes to
/// the same.
#[test]
fn a_repair_that_crashes_is_begun_again() {
    let (sim, model) = damaged(5);
    let whole = sim.crash(CrashMode::KILL);
    let before = whole.calls_of(CallClass::Change);
    let account = repair_at(&whole).unwrap();
    assert!(!account.is_lossless() && account.rewritten.len() == 1 && account.moved.len() == 1, "{account}");
    let changes = whole.calls_of(CallClass::Change) - before;
    holds(&whole, DIR, &model, &account, "whole");
    let mut images = 0;
    for (what, image) in crashed_before_each(&sim, changes, |run| drop(repair_at(run).unwrap())) {
        repair_at(&image).unwrap_or_else(|e| panic!("{what}: {e}"));
        holds(&image, DIR, &model, &account, &what);
        images += 1;
    }
    assert!(images as u64 >= changes, "{images} of {changes}");
    report::figure(&format!(
        "repair: crashed before each of {changes} changes, {images} images repaired again"
    ));
}

/// The table and the log that `damaged` begins with, a bit of the log flipped too, each with its bytes.
fn originals(sim: &SimEnv) -> Vec<Vec<u8>> {
    let fs = sim.env().fs;
    let entries = fs.list(Path::new(DIR)).unwrap();
    let read = |name: &str| {
        let file = fs.open_read(&Path::new(DIR).join(name)).unwrap();
        let mut bytes = vec![0; file.len() as usize];
        file.read_exact_at(&mut bytes, 0).unwrap();
        bytes
    };
    let log = entries.iter().filter(|e| e.name.ends_with(".log")).max_by_key(|e| e.len).unwrap();
    let mut bytes = read(&log.name);
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    let file = fs.open_write(&Path::new(DIR).join(&log.name)).unwrap();
    file.write_at(&bytes[middle..=middle], middle as u64).unwrap();
    file.sync_all().unwrap();
    let table = entries.iter().filter(|e| e.name.ends_with(".sst")).max_by_key(|e| e.len).unwrap();
    vec![read(&table.name), bytes]
}

/// Whether a file with these bytes is in the directory, or in `lost/`.
pub fn is_kept(sim: &SimEnv, bytes: &[u8]) -> bool {
    let fs = sim.env().fs;
    [DIR.into(), Path::new(DIR).join("lost")].iter().any(|dir: &PathBuf| {
        fs.list(dir).unwrap_or_default().iter().any(|entry| {
            let Ok(file) = fs.open_read(&dir.join(&entry.name)) else { return false };
            let mut found = vec![0; file.len() as usize];
            file.read_exact_at(&mut found, 0).is_ok() && found == bytes
        })
    })
}

/// The open after a crash does not remove what the repair had replaced and not yet moved away.
#[test]
fn a_repair_that_crashes_leaves_its_originals_to_nobody() {
    let (sim, _) = damaged(7);
    let originals = originals(&sim);
    let whole = sim.crash(CrashMode::KILL);
    let before = whole.calls_of(CallClass::Change);
    let account = repair_at(&whole).unwrap();
    assert!(account.moved.len() == 2 && originals.iter().all(|bytes| is_kept(&whole, bytes)), "{account}");
    let changes = whole.calls_of(CallClass::Change) - before;
    let mark = Path::new(DIR).join("lost/REPAIRING");
    let (mut images, mut moved) = (0, 0);
    for (what, image) in crashed_before_each(&sim, changes, |run| drop(repair_at(run).unwrap())) {
        if image.env().fs.metadata(&mark).unwrap().is_none() {
            // Not begun to commit, or all of it moved.
            continue;
        }
        let db = Db::builder(DIR).env(image.env()).open().unwrap_or_else(|e| panic!("{what}: {e}"));
        moved += db.recovery().lost.len();
        db.close().unwrap();
        assert!(originals.iter().all(|bytes| is_kept(&image, bytes)), "{what}");
        assert!(image.env().fs.metadata(&mark).unwrap().is_none(), "{what}");
        images += 1;
    }
    assert!(images >= 4 && moved >= 2, "{images} images, {moved} moved");
    report::figure(&format!(
        "repair: {images} crashes behind its mark, {moved} files moved by the next open"
    ));
}

/// A read that fails proves no damage: the repair fails with it, and the next one comes to what the first would have.
#[test]
fn a_read_that_fails_is_no_damage() {
    let (mut all, mut failed) = (0, 0);
    let without_manifest = with_a_damaged_blob_file(7);
    for name in names(&without_manifest.0, DIR).into_iter().map(|(name, _)| name) {
        if name == "CURRENT" || name.starts_with("MANIFEST-") {
            without_manifest.0.env().fs.remove(&Path::new(DIR).join(name)).unwrap();
        }
    }
    let with_bytes_behind = with_bytes_behind_a_blob_file(8);
    for (sim, model) in [damaged(6), with_a_damaged_blob_file(6), without_manifest, with_bytes_behind] {
        let whole = sim.crash(CrashMode::KILL);
        let before = whole.calls_of(CallClass::Read);
        let account = repair_at(&whole).unwrap();
        let reads = whole.calls_of(CallClass::Read) - before;
        assert!(!account.losses.is_empty(), "{account}");
        for at in (1..=reads).step_by(report::scale(5, 1)) {
            let run = sim.crash(CrashMode::KILL);
            let from = run.calls_of(CallClass::Read);
            run.fail_call(CallClass::Read, from + at, Repeat::Once, IoKind::Other);
            let what = format!("read {at}");
            failed += 1;
            match repair_at(&run) {
                Ok(other) => assert_eq!(other.losses, account.losses, "{what}"),
                Err(e) => {
                    assert!(matches!(e.kind(), ErrorKind::Io(_)), "{what}: {e}");
                    run.heal();
                    repair_at(&run).unwrap_or_else(|e| panic!("{what}: {e}"));
                }
            }
            holds(&run, DIR, &model, &account, &what);
        }
        all += reads;
    }
    report::figure(&format!("repair: of {all} reads {failed} failed once; none was taken for damage"));
}

/// Regression: the WAL file that another family needed was removed, and with it the only copy of what a damaged table had lost.
#[test]
fn a_wal_file_that_may_have_what_a_table_lost_is_kept() {
    let temp = tempfile::tempdir().unwrap();
    let db = Db::builder(temp.path()).family("other", |f| f).open().unwrap();
    let other = db.family("other").unwrap();
    // Keeps the WAL file.
    db.put("in the log", "").unwrap();
    for n in 0..50 {
        other.put(format!("k{n:02}"), "v").unwrap();
    }
    other.flush().unwrap();
    db.close().unwrap();
    let table = &files(temp.path(), ".sst")[0];
    let bytes = std::fs::read(table).unwrap();
    std::fs::write(table, &bytes[..bytes.len() / 3]).unwrap();
    let report = Db::builder(temp.path()).repair(|_| {}).unwrap();
    assert!(report.remarks.iter().any(|remark| remark.contains("older WAL files")), "{report}");
    let db = Db::open(temp.path()).unwrap();
    assert!(db.get("in the log").unwrap().is_some(), "{report}");
    db.close().unwrap();

    let alone = tempfile::tempdir().unwrap();
    for log in files(&temp.path().join("lost"), ".log") {
        std::fs::copy(&log, alone.path().join(log.file_name().unwrap())).unwrap();
    }
    let report = Db::builder(alone.path()).repair(|_| {}).unwrap();
    let db = Db::open(alone.path()).unwrap();
    let kept: usize = db.families().iter().map(|family| family.scan(..).count()).sum();
    assert_eq!(kept, 51, "{report}");
}
