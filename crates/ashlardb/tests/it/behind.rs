//! Files that are ingested behind all data are hidden by every entry above them, deletions included, whatever compactions ran before.

use ashlar_env::sim::{CallClass, CrashMode, SimEnv};
use ashlar_testkit::judge::{JudgeError, Opening};
use ashlar_testkit::{Change, Judge, JudgeVersion, KeyValue, Rng};
use ashlardb::prelude::*;
use ashlardb::{
    CompactRangeOptions, Env, ErrorKind, FormatLevel, IngestMode, IngestOptions, Read, Result, SstWriter,
};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const LEVELED: &str =
    "cf_allow_ingest_behind=true;num_levels=4;target_file_size_base=16384;max_bytes_for_level_base=65536";
const UNIVERSAL: &str = "cf_allow_ingest_behind=true;compaction_style=kCompactionStyleUniversal;num_levels=4";

type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

fn behind() -> IngestOptions {
    IngestOptions::new().behind(true)
}

fn entries(from: &impl Read) -> Entries {
    from.scan(..).map(|entry| entry.unwrap()).map(|(k, v)| (k.to_vec(), v.to_vec())).collect()
}

fn open(path: &Path, settings: &'static str) -> Db {
    let builder = Db::builder(path).default_family(move |f| f.options(settings));
    builder.tune(|_, family| family.write_buffer_bytes = 64 << 10).open().unwrap()
}

fn file(db: &Db, path: PathBuf, entries: &Entries) -> PathBuf {
    let mut writer = db.default_family().sst_writer(&path).unwrap();
    entries.iter().for_each(|(key, value)| writer.put(key, value).unwrap());
    writer.finish().unwrap();
    path
}

/// What was written above, and what came behind it. A key that was written or deleted once hides the other forever.
#[derive(Clone, Default)]
struct Model {
    above: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    behind: Entries,
}

impl Model {
    fn entries(&self) -> Entries {
        let mut all = self.behind.clone();
        for (key, value) in &self.above {
            match value {
                Some(value) => drop(all.insert(key.clone(), value.clone())),
                None => drop(all.remove(key)),
            }
        }
        all
    }
}

fn key(n: usize) -> Vec<u8> {
    format!("key{n:04}").into_bytes()
}

#[test]
fn histories_with_files_behind_equal_a_model() {
    for seed in 0..ashlar_testkit::report::scale(2, 6) as u64 {
        let settings = if seed % 2 == 0 { LEVELED } else { UNIVERSAL };
        let (home, mut rng) = (tempfile::tempdir().unwrap(), Rng::new(seed));
        let mut db = open(&home.path().join("db"), settings);
        let mut model = Model::default();
        let (mut next, mut taken) = (0, 0);
        for step in 0..600 {
            let n = rng.below(400);
            match rng.below(100) {
                0..=49 => {
                    let value = format!("value {step} ").repeat(20).into_bytes();
                    db.put(key(n), &value).unwrap();
                    model.above.insert(key(n), Some(value));
                }
                50..=69 => {
                    db.delete(key(n)).unwrap();
                    model.above.insert(key(n), None);
                }
                70..=74 => {
                    let end = (n + rng.below(30)).min(399);
                    db.delete_range(key(n), key(end)).unwrap();
                    (n..end).for_each(|n| drop(model.above.insert(key(n), None)));
                }
                75..=84 => db.flush().unwrap(),
                85..=89 => db.compact().unwrap(),
                90..=96 if next < 400 => {
                    // The next keys, so that no two files overlap.
                    let to = (next + rng.below(30) + 1).min(400);
                    let new: Entries =
                        (next..to).map(|n| (key(n), format!("behind {n}").into_bytes())).collect();
                    let path = file(&db, home.path().join(format!("{step}.sst")), &new);
                    let before = db.snapshot().unwrap();
                    let (shown, sequence) = (model.entries(), before.sequence());
                    let done = db.ingest(&[&path], behind()).unwrap();
                    assert_eq!((done[0].level.0, done[0].sequence.get()), (3, 0), "{seed}");
                    (next, taken) = (to, taken + 1);
                    model.behind.extend(new);
                    assert_eq!(entries(&before), shown, "a snapshot from before, {seed}, {step}");
                    let after = db.snapshot().unwrap();
                    assert!(after.sequence() > sequence);
                    assert_eq!(entries(&after), model.entries());
                }
                _ => {
                    db.close().unwrap();
                    db = open(&home.path().join("db"), settings);
                    assert!(db.recovery().is_clean(), "{}", db.recovery());
                }
            }
            if step % 50 == 0 {
                assert_eq!(entries(&db), model.entries(), "{seed}, {step}");
            }
        }
        assert!(taken > 5, "{seed}: {taken}");
        db.compact().unwrap();
        let expected = model.entries();
        assert_eq!(entries(&db), expected, "{seed}");
        for n in 0..400 {
            assert_eq!(
                db.get(key(n)).unwrap().as_deref(),
                expected.get(&key(n)).map(|v| &v[..]),
                "{seed}, {n}"
            );
        }
        db.verify_db(|_| ()).unwrap();
    }
}

/// The last level takes no other table on any request.
#[test]
fn compactions_and_ordinary_ingestions_stay_above_the_last_level() {
    for settings in [LEVELED, UNIVERSAL] {
        let home = tempfile::tempdir().unwrap();
        let db = open(&home.path().join("db"), settings);
        for n in 0..2000 {
            db.put(key(n), vec![7; 100]).unwrap();
        }
        db.compact().unwrap();
        let levels = |db: &Db| -> Vec<u8> {
            db.default_family().live_files().unwrap().iter().map(|file| file.level.0).collect()
        };
        assert!(levels(&db).iter().all(|level| *level == 2), "{:?}", levels(&db));
        assert!(db.default_family().live_files().unwrap().iter().all(|file| file.sequences.0.get() > 0));
        let numbers: Vec<_> =
            db.default_family().live_files().unwrap().iter().map(|file| file.number).collect();
        let e = db.default_family().compact_files(&numbers, ashlardb::Level(3)).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::InvalidArgument, "{e}");
        let target = CompactRangeOptions::default().target_level(ashlardb::Level(3));
        if let Err(e) = db.compact_range(.., target) {
            assert!(matches!(e.kind(), ErrorKind::InvalidArgument | ErrorKind::NotSupported), "{e}");
        }
        assert!(levels(&db).iter().all(|level| *level < 3), "{:?}", levels(&db));
        let path =
            file(&db, home.path().join("beside.sst"), &Entries::from([(b"zz".to_vec(), b"1".to_vec())]));
        let done = db.ingest(&[&path], IngestOptions::new()).unwrap();
        assert!(done[0].level.0 < 3 && done[0].sequence.get() > 0, "{done:?}");
    }
}

#[test]
fn calls_that_make_no_sense_are_refused() {
    let home = tempfile::tempdir().unwrap();
    let at = |name: &str| home.path().join(name);
    let refused = |answer: Result<Vec<ashlardb::Ingested>>, word: &str| {
        let e = answer.unwrap_err();
        assert!(e.kind() == ErrorKind::InvalidArgument && e.to_string().contains(word), "{e}");
    };
    let db = open(&at("db"), LEVELED);
    let one = |name: &str, key: &str| file(&db, at(name), &Entries::from([(key.into(), b"1".to_vec())]));
    let (a, again, b) = (one("a", "a"), one("again", "a"), one("b", "b"));
    refused(db.ingest(&[&a, &again], behind()), "overlaps");
    db.ingest(&[&a, &b], behind()).unwrap();
    refused(db.ingest(&[&again], behind()), "overlaps");
    let mut ranges = db.default_family().sst_writer(at("ranges")).unwrap();
    ranges.put("x", "1").unwrap();
    ranges.delete_range("y", "z").unwrap();
    ranges.finish().unwrap();
    refused(db.ingest(&[at("ranges")], behind()), "range deletion");
    // Families that keep no level for it.
    let plain = db.create_family_with("plain", |f| f.options("cf_allow_ingest_behind=false")).unwrap();
    let mut writer = SstWriter::create(at("c")).unwrap();
    writer.put("c", "1").unwrap();
    writer.finish().unwrap();
    refused(plain.ingest(&[at("c")], behind()), "keeps no level");
    let fifo = "cf_allow_ingest_behind=true;compaction_style=kCompactionStyleFIFO";
    let fifo = db.create_family_with("fifo", |f| f.options(fifo)).unwrap();
    refused(fifo.ingest(&[at("c")], behind()), "keeps no level");
    let few =
        db.create_family_with("few", |f| f.options("cf_allow_ingest_behind=true;num_levels=2")).unwrap();
    refused(few.ingest(&[at("c")], behind()), "keeps no level");
    let parts = [(&db.default_family(), &[at("c")][..]), (&plain, &[at("c")])];
    refused(db.ingest_families(&parts, behind()), "keeps no level");
    let other = db.create_family_with("other", |f| f.options(LEVELED)).unwrap();
    let parts = [(&other, &[at("c")][..]), (&db.default_family(), &[again])];
    refused(db.ingest_families(&parts, behind()), "overlaps");
    assert_eq!((entries(&db).len(), entries(&other).len()), (2, 0));
    // A tree that was filled without the setting has sequence number 0 above the last level, once there is one below.
    drop((plain, fifo, few, other));
    let late = Db::builder(at("late")).default_family(|f| f.options("num_levels=3")).open().unwrap();
    late.put("k", "v").unwrap();
    late.compact().unwrap();
    late.close().unwrap();
    let late = Db::builder(at("late"))
        .default_family(|f| f.options("num_levels=4;cf_allow_ingest_behind=true"))
        .open()
        .unwrap();
    refused(late.ingest(&[at("c")], behind()), "sequence number 0");
    assert_eq!(late.get("k").unwrap().as_deref(), Some(&b"v"[..]));
}

fn judged(version: JudgeVersion, settings: &str, dir: &Path, act: impl FnOnce(&mut Judge)) -> bool {
    let mut judge = match Judge::spawn(version) {
        Err(JudgeError::Skip(skip)) => {
            skip.announce("files behind all data, beside RocksDB");
            return false;
        }
        judge => judge.unwrap(),
    };
    let opening = if dir.exists() { Opening::Existing } else { Opening::Create };
    judge.open(dir, opening, settings).unwrap();
    act(&mut judge);
    judge.close().unwrap();
    true
}

fn put(n: usize, value: &str) -> Change {
    Change::Put { family: "default".into(), key: key(n), value: value.into() }
}

fn delete(n: usize) -> Change {
    Change::Delete { family: "default".into(), key: key(n) }
}

/// RocksDB's directory is written here, then RocksDB takes a file behind it, then this engine takes one.
#[test]
fn rocksdb_and_we_take_turns_on_a_database_with_files_behind() {
    for version in JudgeVersion::ALL {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join("db");
        let settings = "allow_ingest_behind=true;compaction_style=kCompactionStyleUniversal;num_levels=4";
        let level = if version == JudgeVersion::V7 { FormatLevel::V7_8 } else { FormatLevel::V11 };
        let filled = judged(version, settings, &dir, |judge| {
            let all: Vec<_> = (0..300).map(|n| put(n, "theirs")).collect();
            judge.write(&all, false).unwrap();
            judge.apply(&["flush default".parse().unwrap()]).unwrap();
        });
        if !filled {
            return;
        }
        // The settings come from their OPTIONS file.
        let db = Db::builder(&dir).format_level(level).open().unwrap();
        assert!(db.recovery().read_only.is_empty(), "{}", db.recovery());
        for n in 0..100 {
            db.delete(key(n)).unwrap();
        }
        db.put(key(500), "ours").unwrap();
        db.compact().unwrap();
        let files = db.default_family().live_files().unwrap();
        assert!(files.iter().all(|file| file.level.0 < 3 && file.sequences.0.get() > 0), "{files:?}");
        let ours: Entries = (700..710).map(|n| (key(n), b"behind, ours".to_vec())).collect();
        let path = file(&db, home.path().join("ours.sst"), &ours);
        db.close().unwrap();
        let theirs: Vec<_> = (0..10).chain(600..610).map(|n| put(n, "behind, theirs")).collect();
        judged(version, settings, &dir, |judge| {
            let path = home.path().join("theirs.sst");
            judge.write_sst("default", &path, &theirs).unwrap();
            judge.ingest_behind("default", &[&path]).unwrap();
            judge.write(&[delete(605)], false).unwrap();
        });
        let db = Db::builder(&dir).format_level(level).open().unwrap();
        db.ingest(&[&path], behind()).unwrap();
        db.delete(key(705)).unwrap();
        db.compact().unwrap();
        let mut expected: Entries = (100..300).map(|n| (key(n), b"theirs".to_vec())).collect();
        expected.insert(key(500), b"ours".to_vec());
        expected.extend((600..610).filter(|n| *n != 605).map(|n| (key(n), b"behind, theirs".to_vec())));
        expected.extend(ours.into_iter().filter(|(k, _)| *k != key(705)));
        assert_eq!(entries(&db), expected, "{}", version.name());
        db.close().unwrap();
        judged(version, settings, &dir, |judge| {
            let found: Vec<KeyValue> = judge.dump("default").unwrap();
            assert_eq!(found.into_iter().collect::<Entries>(), expected, "{}", version.name());
            judge.verify().unwrap();
            judge.apply(&["compact default".parse().unwrap()]).unwrap();
            assert_eq!(judge.dump("default").unwrap().into_iter().collect::<Entries>(), expected);
            judge.probe("default").unwrap();
        });
    }
}

#[test]
fn a_crash_during_the_call_leaves_the_files_of_all_families_or_none() {
    let open = |env: Env| {
        let builder = Db::builder("/db").env(env).default_family(|f| f.options(LEVELED));
        builder.family("other", |f| f.options(LEVELED)).open().unwrap()
    };
    let taken = |db: &Db, paths: &[PathBuf; 2]| {
        let (default, other) = (db.default_family(), db.family("other").unwrap());
        let parts = [(&default, &paths[..1]), (&other, &paths[1..])];
        db.ingest_families(&parts, behind().mode(IngestMode::Copy)).unwrap();
    };
    let shown = |db: &Db| [entries(db), entries(&db.family("other").unwrap())];
    let sim = SimEnv::new(3);
    let db = open(sim.env());
    db.put(key(1), "above").unwrap();
    db.delete(key(2)).unwrap();
    db.family("other").unwrap().delete(key(12)).unwrap();
    db.flush().unwrap();
    db.writing(WriteOptions::synced()).put(key(3), "above").unwrap();
    let paths = ["/one.sst", "/two.sst"].map(PathBuf::from);
    for (path, from) in paths.iter().zip([0, 10]) {
        let new: Entries = (from..from + 5).map(|n| (key(n), b"behind".to_vec())).collect();
        file(&db, path.clone(), &new);
    }
    let before = shown(&db);
    let first = sim.calls_of(CallClass::Change);
    for at in 1..100 {
        sim.photograph_at(first + at, CrashMode::DROP_ALL);
        sim.photograph_at(first + at, CrashMode::KILL);
    }
    taken(&db, &paths);
    let after = shown(&db);
    let lengths = |shown: &[Entries; 2]| [shown[0].len(), shown[1].len()];
    assert_eq!((lengths(&before), lengths(&after)), ([2, 0], [4, 4]));
    let (mut none, mut all) = (0, 0);
    for (at, mode, machine) in sim.photographs() {
        let db = open(machine.env());
        let found = shown(&db);
        assert!(found == before || found == after, "call {}, {mode:?}: {found:?}", at - first);
        if found == before {
            none += 1;
            taken(&db, &paths);
        } else {
            all += 1;
        }
        assert_eq!(shown(&db), after);
    }
    assert!(none > 5 && all > 0, "{none} {all}");
    assert_eq!(shown(&open(sim.crash(CrashMode::DROP_ALL).env())), after);
}
