//! Opening for reading only: it writes nothing, shows what an ordinary open would show, and is consistent beside a
//! writer.

mod before_commit;
mod beside;
mod damaged;
mod overtaken;

use ashlar_base::{ErrorKind, FamilyId};
use ashlar_engine::batch::WriteBatch;
use ashlar_engine::column_family::Family;
use ashlar_engine::{Db, OpenFamily};
use ashlar_env::Env;
use ashlar_env::sim::{CallClass, CrashMode, DataMode, DirMode, SimEnv, Watched};
use ashlar_options::{DbOptions, FamilyOptions, ReadOptions, WriteOptions};
use ashlar_read::iter::KeyBounds;
use ashlar_testkit::KeyValue;
use std::path::Path;

const DIR: &str = "/data/db";

fn dir() -> &'static Path {
    Path::new(DIR)
}

const TORN: CrashMode = CrashMode { data: DataMode::TornPage, dirs: DirMode::Prefix };

/// Memtables and tables of the smallest size.
fn small() -> FamilyOptions {
    let mut options = FamilyOptions { write_buffer_bytes: 64 << 10, ..FamilyOptions::default() };
    options.compaction.l0_trigger = 2;
    options.compaction.target_file_bytes = 4096;
    options.compaction.base_level_bytes = 8192;
    options
}

fn open(env: Env) -> Db {
    let one = OpenFamily { name: "one".to_owned(), options: small() };
    Db::open(env, dir(), DbOptions::default(), vec![one], small()).unwrap()
}

fn open_read_only(env: Env, dir: &Path) -> ashlar_base::Result<Db> {
    Db::open_read_only(env, dir, DbOptions::default(), vec![], small())
}

fn put(db: &Db, family: &Family, key: &str, value: &str) {
    let mut batch = WriteBatch::new();
    batch.put(family.id(), key.as_bytes(), value.as_bytes()).unwrap();
    db.write(&mut batch, WriteOptions::default()).unwrap();
}

/// Every entry of every family, in both directions.
fn state(db: &Db) -> Vec<(String, Vec<KeyValue>)> {
    let listing = |family: &Family| {
        let mut it = db.iter(family, KeyBounds::default(), ReadOptions::default()).unwrap();
        let mut all = Vec::new();
        it.first().unwrap();
        while let Some((key, value)) = it.entry() {
            all.push((key.to_vec(), value.to_vec()));
            let got = db.get(family, key, ReadOptions::default()).unwrap();
            assert_eq!(got.as_deref(), Some(value));
            it.next().unwrap();
        }
        all
    };
    db.families().iter().map(|f| (f.name().to_owned(), listing(f))).collect()
}

#[test]
fn every_change_is_refused_by_name() {
    let _readers = crate::beside_others();
    let sim = SimEnv::new(1);
    let db = open(sim.env());
    let default = db.family("default").unwrap();
    put(&db, &default, "k", "v");
    let reader = open_read_only(Env { fs: Watched::over(&sim.env()), ..sim.env() }, dir()).unwrap();
    let family = reader.family("one").unwrap();
    let mut batch = WriteBatch::new();
    batch.put(FamilyId::DEFAULT, b"k", b"w").unwrap();
    let refusals = [
        reader.write(&mut batch, WriteOptions::default()).map(drop),
        reader.flush(&reader.families()),
        reader.compact_range(&family, None, None),
        reader.sync_wal(),
        reader.create_family("two", small()).map(drop),
        reader.drop_family(&family),
    ];
    for refusal in refusals {
        let e = refusal.unwrap_err();
        assert_eq!(e.kind(), ErrorKind::NotSupported);
        assert!(e.to_string().contains("read-only"), "{e}");
    }
    reader.wait_for_background().unwrap();
    assert_eq!(state(&reader), state(&db));
    assert_eq!(reader.recovery().read_only, ["as asked"]);
    assert!(reader.recovery().to_string().contains("read-only: as asked"));
    // The read-only database keeps its state, and outlives the writer.
    put(&db, &default, "k", "w");
    db.compact_range(&default, None, None).unwrap();
    db.close().unwrap();
    let got = reader.get(&reader.family("default").unwrap(), b"k", ReadOptions::default()).unwrap();
    assert_eq!(got.as_deref(), Some(&b"v"[..]));
    reader.close().unwrap();
    assert!(reader.snapshot().is_err());
}

#[test]
fn there_must_be_a_database() {
    let sim = SimEnv::new(1);
    let kind = |sim: &SimEnv| open_read_only(sim.env(), dir()).unwrap_err().kind();
    assert_eq!(kind(&sim), ErrorKind::InvalidArgument);
    sim.env().fs.create_dir_all(dir()).unwrap();
    assert_eq!(kind(&sim), ErrorKind::InvalidArgument);
    open(sim.env()).close().unwrap();
    let missing = OpenFamily { name: "missing".to_owned(), options: small() };
    let asked = Db::open_read_only(sim.env(), dir(), DbOptions::default(), vec![missing], small());
    assert_eq!(asked.unwrap_err().kind(), ErrorKind::InvalidArgument);
}

/// After a crash at each of many calls, the read-only open shows what an ordinary open of the same disk shows
/// afterwards.
#[test]
fn crashed_directories_show_what_an_ordinary_open_shows() {
    let _readers = crate::beside_others();
    let (mut crashes, mut entries) = (0, 0);
    for mode in [CrashMode::DROP_ALL, CrashMode::KILL, TORN] {
        let sim = SimEnv::new(7);
        for at in (1..4000).step_by(13) {
            sim.photograph_at(at, mode);
        }
        let db = open(sim.env());
        let families = db.families();
        for i in 0..400 {
            put(&db, &families[i % 2], &format!("key{:03}", i * 7 % 90), &format!("{i:0300}"));
            if i % 40 == 39 {
                db.flush(&families).unwrap();
            }
        }
        db.close().unwrap();
        assert!(sim.calls_of(CallClass::Change) > 400);
        for (at, _, crashed) in sim.photographs() {
            let watched = Env { fs: Watched::over(&crashed.env()), ..crashed.env() };
            let seen = open_read_only(watched, dir());
            let ordinary = Db::open(
                crashed.env(),
                dir(),
                DbOptions { create_if_missing: false, ..DbOptions::default() },
                vec![],
                small(),
            );
            match (seen, ordinary) {
                (Ok(seen), Ok(ordinary)) => {
                    let found = state(&seen);
                    assert!(found == state(&ordinary), "{mode:?} at call {at}");
                    entries += found.iter().map(|(_, list)| list.len()).sum::<usize>();
                }
                (seen, ordinary) => {
                    assert_eq!(
                        seen.is_err(),
                        ordinary.is_err(),
                        "{mode:?} at call {at}: {seen:?}, {ordinary:?}"
                    );
                }
            }
            crashes += 1;
        }
    }
    ashlar_testkit::report::figure(&format!(
        "read-only opens of {crashes} crashed disks: {entries} entries, 0 other than by an ordinary open, 0 bytes written"
    ));
    assert!(crashes > 50 && entries > 1000);
}
