//! Damaged files: a read-only open serves the rest, as an ordinary open does.

use super::{dir, open, open_read_only, put, small, state};
use ashlar_base::ErrorKind;
use ashlar_engine::{Db, OpenFamily};
use ashlar_env::sim::SimEnv;
use ashlar_options::{BlobOptions, DbOptions, FamilyOptions, ReadOptions};

fn names(sim: &SimEnv, end: &str) -> Vec<String> {
    let all = sim.env().fs.list(dir()).unwrap().into_iter().map(|entry| entry.name);
    all.filter(|name| name.ends_with(end)).collect()
}

/// Inverts the byte that is `from_end` bytes before the end of the file; 0 appends a byte.
fn harm(sim: &SimEnv, name: &str, from_end: u64) {
    let (fs, path) = (sim.env().fs, dir().join(name));
    let file = fs.open_read(&path).unwrap();
    let at = file.len() - from_end;
    let mut byte = [0];
    assert_eq!(file.read_at(&mut byte, at).unwrap(), usize::from(from_end > 0));
    let written = fs.open_write(&path).unwrap();
    written.write_at(&[!byte[0]], at).unwrap();
    written.sync_data().unwrap();
}

fn read(db: &Db, family: &str, key: &str) -> ashlar_base::Result<Option<Vec<u8>>> {
    let value = db.get(&db.family(family).unwrap(), key.as_bytes(), ReadOptions::default())?;
    Ok(value.map(|value| value.to_vec()))
}

/// Reads the key of each family: "one" is damaged, "default" is sound.
fn reads_as_an_ordinary_open(sim: &SimEnv, name: &str) {
    let reader = open_read_only(sim.env(), dir()).unwrap_or_else(|e| panic!("{name}: {e}"));
    let report = reader.recovery();
    assert!(report.damaged.len() == 1 && report.damaged[0].file == name && !report.is_clean(), "{report}");
    let options = DbOptions { create_if_missing: false, ..DbOptions::default() };
    let ordinary =
        Db::open(sim.crash(ashlar_env::sim::CrashMode::KILL).env(), dir(), options, vec![], small()).unwrap();
    for db in [&reader, &ordinary] {
        assert_eq!(read(db, "default", "k").unwrap().as_deref(), Some(&b"sound"[..]), "{name}");
        let e = read(db, "one", "k").unwrap_err();
        assert!(e.kind() == ErrorKind::Corruption && e.to_string().contains(name), "{name}: {e}");
    }
    ordinary.close().unwrap();
}

/// A database whose families have a table each, and the name of the table of "one".
fn with_a_table_each() -> (SimEnv, String) {
    let sim = SimEnv::new(8);
    let db = open(sim.env());
    put(&db, &db.family("default").unwrap(), "k", "sound");
    db.flush(&db.families()).unwrap();
    let before = names(&sim, ".sst");
    put(&db, &db.family("one").unwrap(), "k", "damaged");
    db.flush(&db.families()).unwrap();
    db.close().unwrap();
    let name = names(&sim, ".sst").into_iter().find(|name| !before.contains(name)).unwrap();
    (sim, name)
}

/// The open failed as a whole, and every key was unreadable.
#[test]
fn a_damaged_table_costs_its_own_keys_only() {
    let _readers = crate::beside_others();
    for from_end in [1, 53] {
        let (sim, name) = with_a_table_each();
        harm(&sim, &name, from_end);
        reads_as_an_ordinary_open(&sim, &name);
        // The damage is gone: nothing is reported.
        harm(&sim, &name, from_end);
        let reader = open_read_only(sim.env(), dir()).unwrap();
        assert!(reader.recovery().is_clean() && state(&reader).len() == 2, "{}", reader.recovery());
    }
}

/// The open failed as a whole, and every key was unreadable.
#[test]
fn a_table_of_the_wrong_length_costs_its_own_keys_only() {
    let _readers = crate::beside_others();
    for len in [0, 100, 10_000] {
        let (sim, name) = with_a_table_each();
        let file = sim.env().fs.open_write(&dir().join(&name)).unwrap();
        file.truncate(len).unwrap();
        file.sync_all().unwrap();
        let reader = open_read_only(sim.env(), dir()).unwrap();
        let report = reader.recovery();
        assert!(report.damaged.len() == 1 && report.damaged[0].file == name, "{report}");
        assert_eq!(read(&reader, "default", "k").unwrap().as_deref(), Some(&b"sound"[..]));
        let e = read(&reader, "one", "k").unwrap_err();
        assert!(e.kind() == ErrorKind::Corruption && e.to_string().contains(&name), "{e}");
        // An open that writes is refused, as RocksDB's is.
        let e = Db::open(sim.env(), dir(), DbOptions::default(), vec![], small()).unwrap_err();
        assert!(e.kind() == ErrorKind::Corruption && e.to_string().contains(&name), "{e}");
    }
}

/// The open failed as a whole, and every key was unreadable.
#[test]
fn a_blob_file_of_the_wrong_size_costs_its_own_keys_only() {
    let _readers = crate::beside_others();
    let sim = SimEnv::new(9);
    let blob = BlobOptions { enabled: true, min_blob_bytes: 1, ..BlobOptions::default() };
    let one = OpenFamily { name: "one".to_owned(), options: FamilyOptions { blob, ..small() } };
    let db = Db::open(sim.env(), dir(), DbOptions::default(), vec![one], small()).unwrap();
    put(&db, &db.family("default").unwrap(), "k", "sound");
    put(&db, &db.family("one").unwrap(), "k", "damaged");
    db.flush(&db.families()).unwrap();
    db.close().unwrap();
    let name = names(&sim, ".blob").remove(0);
    harm(&sim, &name, 0);
    reads_as_an_ordinary_open(&sim, &name);
}

/// RocksDB copies no IDENTITY into a checkpoint or a backup, and the open reported a repair.
#[test]
fn a_copy_without_identity_is_clean() {
    let _readers = crate::beside_others();
    let sim = SimEnv::new(10);
    open(sim.env()).close().unwrap();
    let identity = dir().join("IDENTITY");
    sim.env().fs.remove(&identity).unwrap();
    let reader = open_read_only(sim.env(), dir()).unwrap();
    assert!(reader.recovery().is_clean(), "{}", reader.recovery());
    let db = open(sim.env());
    assert!(db.recovery().is_clean(), "{}", db.recovery());
    assert!(db.recovery().to_string().contains("written: IDENTITY, which was missing"), "{}", db.recovery());
    assert!(sim.env().fs.metadata(&identity).unwrap().is_some());
    db.close().unwrap();
}
