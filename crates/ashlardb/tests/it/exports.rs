//! A family that is imported has exactly the entries of the exported one, in its levels and under later writes; calls that fail and
//! crashes leave all of it or nothing.

use ashlar_env::sim::{CallClass, CrashMode, Repeat, SimEnv};
use ashlar_testkit::Rng;
use ashlardb::prelude::*;
use ashlardb::{
    CompactRangeOptions, Env, ErrorKind, ExportedFile, FamilyExport, ImportOptions, IngestMode,
    IngestOptions, IoKind, LiveFile, Read, StringAppend, WriteOptions,
};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

fn entries(from: &impl Read) -> Entries {
    from.scan(..).map(|entry| entry.unwrap()).map(|(k, v)| (k.to_vec(), v.to_vec())).collect()
}

fn appending(family: ashlardb::FamilyBuilder) -> ashlardb::FamilyBuilder {
    family.merge_operator(Arc::new(StringAppend::new(","))).options("disable_auto_compactions=true")
}

fn open(path: impl AsRef<Path>) -> Db {
    Db::builder(path).family("source", appending).open().unwrap()
}

/// Does `steps` steps of every kind to a family and its model.
fn work(family: &Family, model: &mut Entries, rng: &mut Rng, steps: u32) {
    for _ in 0..steps {
        let key = format!("key{:04}", rng.below(400)).into_bytes();
        let value = format!("v{}", rng.below(1_000_000)).into_bytes();
        match rng.below(100) {
            0..=59 => {
                family.put(&key, &value).unwrap();
                model.insert(key, value);
            }
            60..=74 => {
                family.delete(&key).unwrap();
                model.remove(&key);
            }
            75..=87 => {
                family.merge(&key, &value).unwrap();
                let merged = model.get(&key).map(|old| [old, &b","[..], &value].concat());
                model.insert(key, merged.unwrap_or(value));
            }
            88..=91 => {
                let end = format!("key{:04}", rng.below(400)).into_bytes();
                if key < end {
                    family.delete_range(&key, &end).unwrap();
                    model.retain(|k, _| *k < key || *k >= end);
                }
            }
            92..=96 => family.flush().unwrap(),
            97..=98 => {
                family.compact_range(.., CompactRangeOptions::default()).unwrap();
            }
            _ => {
                let (a, b) = (key.clone(), format!("key{:04}", rng.below(400)).into_bytes());
                if a < b {
                    family.compact_range(&a[..]..&b[..], CompactRangeOptions::default()).unwrap();
                }
            }
        }
    }
}

/// The tree of a family, but for the numbers of the files.
fn tree(family: &Family) -> Vec<LiveFile> {
    let mut files = family.live_files().unwrap();
    // The tree of an import has numbers and a directory of its own.
    for file in &mut files {
        (file.number, file.dir) = (ashlardb::FileNumber(0), std::path::PathBuf::new());
    }
    files
}

#[test]
fn imported_families_equal_a_model() {
    for seed in 0..ashlar_testkit::report::scale(6, 12) as u64 {
        let mut rng = Rng::new(seed);
        let home = tempfile::tempdir().unwrap();
        let (db, mut model) = (open(home.path().join("from")), Entries::new());
        let source = db.family("source").unwrap();
        // A snapshot keeps old versions, so that entries of one key are in several levels.
        work(&source, &mut model, &mut rng, 150);
        let kept = db.snapshot().unwrap();
        work(&source, &mut model, &mut rng, 300);
        let out = home.path().join("out");
        let export = source.export(&out).unwrap();
        let before = (tree(&source), model.clone());
        assert_eq!(FamilyExport::read(&out).unwrap(), export, "{seed}");
        drop(kept);
        work(&source, &mut model, &mut rng, 50);
        drop((source, db));

        let other = Db::open(home.path().join("to")).unwrap();
        for n in 0..rng.below(3000) {
            other.put("own", n.to_be_bytes()).unwrap();
        }
        let mode = [IngestMode::Link, IngestMode::Copy, IngestMode::Move][seed as usize % 3];
        let options = ImportOptions::new().mode(mode).verify(seed % 2 == 0);
        let mut imported = other.import_family_with("imported", &export, options, appending).unwrap();
        assert_eq!(out.exists(), mode != IngestMode::Move);
        assert_eq!(tree(&imported), before.0, "{seed}");
        let mut model = before.1;
        let newest = export.files.iter().map(|file| file.sequences.1).max().unwrap_or_default();
        assert!(other.snapshot().unwrap().sequence() >= newest);
        let mut other = other;
        for round in 0..3 {
            assert_eq!(entries(&imported), model, "{seed}, {round}");
            let backwards: Entries = imported
                .scan(..)
                .rev()
                .map(|entry| entry.unwrap())
                .map(|(k, v)| (k.to_vec(), v.to_vec()))
                .collect();
            assert_eq!(backwards, model);
            assert!(model.iter().all(|(k, v)| imported.get(k).unwrap().as_deref() == Some(&v[..])));
            work(&imported, &mut model, &mut rng, 100);
            other.close().unwrap();
            other = Db::builder(home.path().join("to")).family("imported", appending).open().unwrap();
            assert!(other.recovery().is_clean(), "{}", other.recovery());
            imported = other.family("imported").unwrap();
        }
        other.compact().unwrap();
        assert_eq!(entries(&imported), model);
        other.verify_db(|_| ()).unwrap();
    }
}

#[test]
fn later_writes_are_newer_than_imported_entries() {
    let home = tempfile::tempdir().unwrap();
    let db = open(home.path().join("from"));
    for n in 0..5000_u32 {
        db.put("other", n.to_be_bytes()).unwrap();
    }
    let source = db.family("source").unwrap();
    source.put("k", "imported").unwrap();
    source.delete("gone").unwrap();
    source.delete_range("r", "s").unwrap();
    let export = source.export(home.path().join("out")).unwrap();
    let to = Db::open(home.path().join("to")).unwrap();
    let before = to.snapshot().unwrap();
    let imported = to.import_family("imported", &export).unwrap();
    assert_eq!(imported.get("k").unwrap().as_deref(), Some(&b"imported"[..]));
    assert_eq!(before.family(&imported).get("k").unwrap(), None);
    for key in ["k", "gone", "r1"] {
        imported.put(key, "later").unwrap();
        assert_eq!(imported.get(key).unwrap().as_deref(), Some(&b"later"[..]), "{key}");
    }
    to.put("own", "1").unwrap();
    drop((before, imported));
    to.close().unwrap();
    let to = Db::open(home.path().join("to")).unwrap();
    let imported = to.family("imported").unwrap();
    for key in ["k", "gone", "r1"] {
        assert_eq!(imported.get(key).unwrap().as_deref(), Some(&b"later"[..]), "{key}");
    }
}

/// The numbers of the imported entries are below that of the snapshots.
#[test]
fn snapshots_from_before_an_import_see_no_entry_and_later_ones_all() {
    let home = tempfile::tempdir().unwrap();
    let db = open(home.path().join("from"));
    let source = db.family("source").unwrap();
    source.put("k", "imported").unwrap();
    let export = source.export(home.path().join("out")).unwrap();
    let to = Db::open(home.path().join("to")).unwrap();
    for n in 0..100_u32 {
        to.put("own", n.to_be_bytes()).unwrap();
    }
    let before = [to.snapshot().unwrap(), to.snapshot().unwrap()];
    let imported = to.import_family("imported", &export).unwrap();
    let after = to.snapshot().unwrap();
    let second = to.import_family("second", &export).unwrap();
    imported.put("later", "1").unwrap();
    for round in 0..2 {
        for snapshot in &before {
            assert_eq!(entries(&snapshot.family(&imported)).len(), 0, "{round}");
            assert_eq!(snapshot.family(&imported).get("k").unwrap(), None);
        }
        assert_eq!(entries(&after.family(&imported)).len(), 1);
        assert_eq!(entries(&after.family(&second)).len(), 0);
        assert_eq!((entries(&imported).len(), entries(&second).len()), (2, 1));
        to.flush().unwrap();
        to.compact().unwrap();
        imported.compact_range(.., CompactRangeOptions::default()).unwrap();
    }
}

/// The same database, the family `default`, no table at all, ingested tables, reverse order.
#[test]
fn families_of_every_kind_are_exported_and_imported() {
    let home = tempfile::tempdir().unwrap();
    let at = |name: &str| home.path().join(name);
    let db = open(at("db"));
    db.put("k", "default").unwrap();
    let empty = db.family("source").unwrap().export(at("empty")).unwrap();
    assert_eq!((empty.files.len(), empty.bytes()), (0, 0));
    assert_eq!(FamilyExport::read(at("empty")).unwrap(), empty);
    let second = db.import_family("second", &empty).unwrap();
    second.merge("k", "1").unwrap();
    assert_eq!(entries(&second).len(), 1);

    let export = db.default_family().export(at("default")).unwrap();
    assert_eq!((export.family.as_str(), export.files.len()), ("default", 1));
    let copy = db.import_family("copy", &export).unwrap();
    assert_eq!(copy.get("k").unwrap().as_deref(), Some(&b"default"[..]));

    let down = db.create_family_with("down", |f| f.reverse_order()).unwrap();
    let mut writer = down.sst_writer(at("file.sst")).unwrap();
    writer.put("b", "2").unwrap();
    writer.put("a", "1").unwrap();
    writer.finish().unwrap();
    down.put("a", "0").unwrap();
    down.ingest(&[at("file.sst")], IngestOptions::new()).unwrap();
    let export = down.export(at("down")).unwrap();
    let up = db.import_family("up", &export).unwrap();
    let keys: Vec<_> = up.scan(..).map(|entry| entry.unwrap().0.to_vec()).collect();
    assert_eq!(keys, [b"b", b"a"]);
    assert_eq!(
        up.get("a").unwrap().as_deref(),
        Some(&b"1"[..]),
        "the sequence number that only the MANIFEST has"
    );
    // Each directory is a database.
    for (name, family, count) in [("empty", "source", 0), ("default", "default", 1), ("down", "down", 2)] {
        let copy = Db::builder(at(name)).family("down", |f| f.reverse_order()).open().unwrap();
        assert!(copy.recovery().is_clean(), "{}", copy.recovery());
        assert_eq!(entries(&copy.family(family).unwrap()).len(), count, "{name}");
        copy.close().unwrap();
    }
}

#[test]
fn an_export_beside_a_writer_has_whole_batches() {
    let home = tempfile::tempdir().unwrap();
    let db = open(home.path().join("db"));
    let source = db.family("source").unwrap();
    let ended = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0_u32..100_000 {
                if ended.load(std::sync::atomic::Ordering::Relaxed) {
                    return;
                }
                let batch = WriteBatch::new();
                let one = batch.family(&source);
                for key in ["a", "b", "c"] {
                    one.put(format!("{key}{n:06}"), vec![b'v'; 100]).unwrap();
                }
                db.writing(WriteOptions::new().disable_wal(n % 2 == 0)).write(&batch).unwrap();
            }
        });
        let mut before = 0;
        for n in 0..5 {
            let export = source.export(home.path().join(format!("out{n}"))).unwrap();
            let copy = db.import_family(&format!("copy{n}"), &export).unwrap();
            let entries = entries(&copy);
            let batches = entries.len() / 3;
            assert_eq!(entries.len() % 3, 0, "half of a batch");
            assert!((0..batches).all(|n| entries.contains_key(format!("c{n:06}").as_bytes())));
            assert!(batches >= before);
            before = batches;
        }
        ended.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

/// A database and an export on one simulated machine.
fn simulated() -> (SimEnv, Db, FamilyExport, Entries) {
    let sim = SimEnv::new(7);
    let from = Db::builder("/from").env(sim.env()).family("source", appending).open().unwrap();
    let source = from.family("source").unwrap();
    for n in 0..300_u32 {
        source.put((n % 100).to_be_bytes(), vec![b'v'; 50]).unwrap();
        if n % 100 == 50 {
            source.flush().unwrap();
        }
    }
    source.compact_range(.., CompactRangeOptions::default()).unwrap();
    source.put("top", "1").unwrap();
    let export = source.export("/out").unwrap();
    let expected = entries(&source);
    from.close().unwrap();
    let to = open_to(sim.env());
    to.put("before", "1").unwrap();
    (sim, to, export, expected)
}

fn open_to(env: Env) -> Db {
    Db::builder("/to").env(env).open().unwrap()
}

/// Whether the family is there, and then whole. Otherwise nothing prevents the next attempt. Nothing stays behind.
fn whole_or_absent(sim: &SimEnv, export: &FamilyExport, expected: &Entries, what: &str) -> bool {
    let env = sim.env();
    let db = open_to(env.clone());
    let there = db.family("imported").is_ok();
    if !there {
        let again =
            FamilyExport::read_in(&*env.fs, Path::new("/out")).unwrap_or_else(|e| panic!("{what}: {e}"));
        assert_eq!(&again, export, "{what}");
        db.import_family("imported", &again).unwrap_or_else(|e| panic!("{what}: {e}"));
    }
    let imported = db.family("imported").unwrap();
    assert_eq!(&entries(&imported), expected, "{what}");
    imported.put("top", "later").unwrap();
    assert_eq!(imported.get("top").unwrap().as_deref(), Some(&b"later"[..]), "{what}");
    db.flush().unwrap();
    db.wait_for_background().unwrap();
    let files = env.fs.list(Path::new("/to")).unwrap();
    let tables = files.iter().filter(|entry| entry.name.ends_with(".sst")).count();
    let live: usize =
        ["default", "imported"].iter().map(|name| db.family(name).unwrap().live_files().unwrap().len()).sum();
    assert_eq!(tables, live, "{what}");
    db.close().unwrap();
    there
}

#[test]
fn a_crash_during_an_import_leaves_the_whole_family_or_none() {
    for mode in [IngestMode::Link, IngestMode::Copy, IngestMode::Move] {
        let (sim, db, export, expected) = simulated();
        let before = sim.calls_of(CallClass::Change);
        for at in (1..200).step_by(ashlar_testkit::report::scale(3, 1)) {
            for crash in CrashMode::all() {
                sim.photograph_at(before + at, crash);
            }
        }
        let options = ImportOptions::new().mode(mode);
        db.import_family_with("imported", &export, options, |f| f).unwrap();
        let calls = sim.calls_of(CallClass::Change) - before;
        assert!(calls < 200, "{calls}");
        let after = sim.crash(CrashMode::DROP_ALL);
        assert!(whole_or_absent(&after, &export, &expected, "after the call"), "the family was not durable");
        let (mut whole, mut absent) = (0, 0);
        for (at, crash, machine) in sim.photographs() {
            let what = format!("{mode:?}, call {} of {calls}, {crash:?}", at - before);
            match whole_or_absent(&machine, &export, &expected, &what) {
                true => whole += 1,
                false => absent += 1,
            }
        }
        assert!(whole > 0 && absent > 5, "{mode:?}: {whole} whole, {absent} absent");
    }
}

#[test]
fn a_call_that_fails_during_an_import_leaves_no_family_and_the_next_attempt_succeeds() {
    for (class, repeat) in [
        (CallClass::Read, Repeat::Once),
        (CallClass::Change, Repeat::Once),
        (CallClass::Change, Repeat::Sticky),
    ] {
        let mut at = 0;
        loop {
            at += 1;
            let (sim, db, export, expected) = simulated();
            sim.fail_call(class, sim.calls_of(class) + at, repeat, IoKind::NoSpace);
            let made = db.import_family("imported", &export);
            if sim.injected() == 0 {
                made.unwrap();
                break;
            }
            sim.heal();
            let what = format!("{class:?} {at}: {:?}", made.as_ref().err());
            let there = db.family("imported").is_ok();
            assert_eq!(there, made.is_ok(), "{what}");
            drop((made, db));
            let left = whole_or_absent(&sim, &export, &expected, &what);
            // When every later call fails, the outcome of the commit is not known.
            assert!(left == there || repeat == Repeat::Sticky && !there, "{what}");
        }
        assert!(at > 10, "{class:?}: {at}");
    }
}

#[test]
fn a_crash_or_a_call_that_fails_during_an_export_leaves_the_whole_export_or_none() {
    let exporting = || {
        let sim = SimEnv::new(7);
        let db = Db::builder("/db").env(sim.env()).family("source", appending).open().unwrap();
        let source = db.family("source").unwrap();
        for n in 0..200_u32 {
            source.put(n.to_be_bytes(), vec![b'v'; 50]).unwrap();
        }
        (sim, db, source)
    };
    let whole = |sim: &SimEnv, what: &str| {
        let env = sim.env();
        let there = env.fs.metadata(Path::new("/out")).unwrap().is_some();
        if !there {
            let db = Db::builder("/db").env(env.clone()).family("source", appending).open().unwrap();
            db.family("source").unwrap().put("k", "v").unwrap();
            db.family("source").unwrap().export("/out").unwrap_or_else(|e| panic!("{what}: {e}"));
        }
        let export =
            FamilyExport::read_in(&*env.fs, Path::new("/out")).unwrap_or_else(|e| panic!("{what}: {e}"));
        let to = Db::builder("/to").env(env).open().unwrap();
        let imported = to.import_family("imported", &export).unwrap_or_else(|e| panic!("{what}: {e}"));
        assert!(there == (entries(&imported).len() == 200) || !there, "{what}");
    };
    let (sim, db, source) = exporting();
    let before = sim.calls_of(CallClass::Change);
    for at in 1..200 {
        sim.photograph_at(before + at, CrashMode::DROP_ALL);
        sim.photograph_at(before + at, CrashMode::KILL);
    }
    source.export("/out").unwrap();
    whole(&sim.crash(CrashMode::DROP_ALL), "after the call");
    for (at, mode, machine) in sim.photographs() {
        whole(&machine, &format!("call {}, {mode:?}", at - before));
    }
    drop((source, db));
    for class in [CallClass::Read, CallClass::Change] {
        for at in 1.. {
            let (sim, db, source) = exporting();
            sim.fail_call(class, sim.calls_of(class) + at, Repeat::Once, IoKind::NoSpace);
            let made = source.export("/out");
            if sim.injected() == 0 {
                made.unwrap();
                break;
            }
            sim.heal();
            let there = sim.env().fs.metadata(Path::new("/out")).unwrap().is_some();
            assert_eq!(there, made.is_ok(), "{class:?} {at}: {made:?}");
            drop((source, db));
            whole(&sim, &format!("{class:?} {at}"));
        }
    }
}

/// Writes that are not synced come before the family, and a power cut keeps both or the writes alone.
#[test]
fn what_was_written_before_is_durable_with_an_import() {
    let (sim, db, export, _) = simulated();
    db.put("unsynced", "1").unwrap();
    db.import_family("imported", &export).unwrap();
    drop(db);
    let db = open_to(sim.crash(CrashMode::DROP_ALL).env());
    assert_eq!(db.get("unsynced").unwrap().as_deref(), Some(&b"1"[..]));
    assert!(db.family("imported").is_ok());
}

#[test]
fn families_whose_values_have_times_keep_them() {
    let home = tempfile::tempdir().unwrap();
    let db = Db::builder(home.path().join("db"))
        .family("timed", |f| f.ttl(std::time::Duration::from_secs(3600)))
        .open()
        .unwrap();
    let timed = db.family("timed").unwrap();
    timed.put("k", "v").unwrap();
    timed.export(home.path().join("out")).unwrap();
    let export = FamilyExport::read(home.path().join("out")).unwrap();
    let e = db.import_family("plain", &export).unwrap_err();
    assert!(e.kind() == ErrorKind::InvalidArgument && e.to_string().contains("write times"), "{e}");
    let options = ImportOptions::new();
    let hour = std::time::Duration::from_secs(3600);
    let copy = db.import_family_with("copy", &export, options, |f| f.ttl(hour)).unwrap();
    assert_eq!(copy.get("k").unwrap().as_deref(), Some(&b"v"[..]));
    db.put("k", "v").unwrap();
    let plain = db.default_family().export(home.path().join("plain")).unwrap();
    let e = db.import_family_with("other", &plain, options, |f| f.ttl(hour)).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidArgument, "{e}");
}

/// The export of a family with one key, in `dir`: as its files say, and as another program would describe it.
fn small_export(dir: &Path) -> (FamilyExport, FamilyExport) {
    let source = open(dir.join("source"));
    let family = source.family("source").unwrap();
    family.put("k", "v").unwrap();
    let export = family.export(dir.join("export")).unwrap();
    let [table] = export.files.as_slice() else { panic!("{export:?}") };
    let file = ExportedFile::described(&table.path, table.level, table.sequences);
    let described = FamilyExport::described("source", &export.comparator, vec![file]);
    (export, described)
}

fn tables_in(folder: &Path) -> usize {
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    names.filter(|name| name.to_string_lossy().ends_with(".sst")).count()
}

/// Tables are stored in directories of the new family that the database did not have before, with and without a record of an
/// export.
#[test]
fn a_family_with_directories_of_its_own_is_imported() {
    let dir = tempfile::tempdir().unwrap();
    let (export, described) = small_export(dir.path());
    let path = dir.path().join("db");
    let db = Db::open(&path).unwrap();
    for (name, export) in [("recorded", &export), ("described", &described)] {
        let place = dir.path().join(format!("place of {name}"));
        let options = ImportOptions::new().mode(IngestMode::Copy);
        let made = db
            .import_family_with(name, export, options, |family| appending(family).cf_path(&place, 1 << 40))
            .unwrap();
        assert_eq!(made.get("k").unwrap().as_deref(), Some(&b"v"[..]));
        assert_eq!(tables_in(&place), 1, "{name}");
    }
    db.close().unwrap();
    drop(db);
    let again =
        Db::builder(&path).family("recorded", appending).family("described", appending).open().unwrap();
    for name in ["recorded", "described"] {
        assert_eq!(again.family(name).unwrap().get("k").unwrap().as_deref(), Some(&b"v"[..]));
    }
}

/// A table without a record of an export is stored in the second directory, if the first has no room for its level.
#[test]
fn a_described_table_is_imported_into_any_directory() {
    let dir = tempfile::tempdir().unwrap();
    let (_, described) = small_export(dir.path());
    for mode in [IngestMode::Copy, IngestMode::Link, IngestMode::Move] {
        let place = dir.path().join(format!("{mode:?}"));
        let (small, large) = (place.join("small"), place.join("large"));
        let placed = Db::builder(place.join("db")).db_path(&small, 1).db_path(&large, 1 << 40);
        let db = placed.open().unwrap();
        let imported = db
            .import_family_with("made", &described, ImportOptions::new().mode(mode).verify(true), |family| {
                family
            })
            .unwrap();
        assert_eq!(imported.get("k").unwrap().as_deref(), Some(&b"v"[..]));
        assert_eq!((tables_in(&small), tables_in(&large)), (0, 1), "{mode:?}");
    }
}
