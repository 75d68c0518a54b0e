//! Background work on request, through the door: what is in the database stays the same, for us and for RocksDB.

use crate::judge::{Judges, expect_state};
use crate::store::{FAMILIES, Shape, Store, state_of};
use ashlar_base::Level;
use ashlar_testkit::ops::{Mix, draw};
use ashlar_testkit::oracle::Model;
use ashlar_testkit::{Op, Skip};
use ashlardb::{
    CompactFilesOptions, CompactRangeOptions, Compression, Db, ErrorKind, Family, FileNumber, FormatLevel,
    Write as _,
};
use std::path::Path;

const LEVEL: FormatLevel = FormatLevel::V7_8;

/// A store with some hundred writes in tables of level 0, nothing compacted yet, and what it must hold.
fn written(dir: &Path, seed: u64) -> (Store, Model) {
    let mut store = Store::open(dir, Shape::small(LEVEL));
    store.db().abort_compactions().unwrap();
    let mut model = Model::new();
    let families = FAMILIES.map(String::from).to_vec();
    let mix = Mix {
        families,
        max_value_bytes: 4000,
        compact_per_mille: 0,
        reopen_per_mille: 0,
        flush_per_mille: 60,
        ..Mix::writes_only()
    };
    for op in draw(seed, 300, &mix) {
        if let Op::Write { changes, .. } = &op {
            model.apply(changes);
        }
        store.apply(&op);
    }
    store.db().flush().unwrap();
    (store, model)
}

fn in_level(family: &Family, level: Level) -> usize {
    family.live_files().unwrap().iter().filter(|file| file.level == level).count()
}

/// Compacts one family by the range, one by its files, and leaves the third.
fn compact(store: &Store) {
    let db = store.db();
    let [default, one, two] = FAMILIES.map(|name| db.family(name).unwrap());
    let refused = default.compact_range(.., CompactRangeOptions::default()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Aborted, "while compactions are aborted");
    db.pause_background_work().unwrap();
    db.resume_compactions().unwrap();
    let refused = default.compact_range(.., CompactRangeOptions::default()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Aborted, "while background work is paused");
    assert!(in_level(&one, Level(0)) > 1 && in_level(&two, Level(0)) > 1);
    let numbers: Vec<_> = one.live_files().unwrap().iter().map(|file| file.number).collect();
    db.continue_background_work().unwrap();
    default.compact_range(.., CompactRangeOptions::new().exclusive(true)).unwrap();
    // The tables may have gone into a compaction of their own meanwhile.
    match one.compact_files(&numbers, Level(6)) {
        Ok(()) => assert_eq!(in_level(&one, Level(0)), 0),
        Err(e) => assert_eq!(e.kind(), ErrorKind::InvalidArgument, "{e}"),
    }
    assert_eq!(default.live_files().unwrap().iter().map(|file| file.level).min(), Some(Level(6)));
    assert!(one.compact_files(&[FileNumber(1 << 40)], Level(6)).is_err());
    assert!(db.continue_background_work().is_err() && db.resume_compactions().is_err());
    db.wait_for_background().unwrap();
}

fn judged(seeds: u64) -> Result<(), Skip> {
    let mut judges = Judges::start()?;
    for seed in 0..seeds {
        let dir = tempfile::tempdir().unwrap();
        let (mut store, model) = written(dir.path(), seed);
        compact(&store);
        expect_state(model.now(), &state_of(store.db()), &format!("seed {seed}"));
        store.close();
        judges.read(dir.path(), LEVEL, model.now(), &format!("seed {seed}"));
    }
    Ok(())
}

#[test]
fn compactions_on_request_change_no_answer() {
    judged(3).unwrap_or_else(|skip| skip.announce("compactions_on_request_change_no_answer"));
}

#[test]
fn a_family_is_flushed_by_itself() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path()).unwrap();
    let [one, two] = ["one", "two"].map(|name| db.create_family(name).unwrap());
    one.put(b"k", b"1").unwrap();
    two.put(b"k", b"2").unwrap();
    one.flush().unwrap();
    assert_eq!((one.live_files().unwrap().len(), two.live_files().unwrap().len()), (1, 0));
    db.flush().unwrap();
    assert_eq!((one.live_files().unwrap().len(), two.live_files().unwrap().len()), (1, 1));
}

/// A compaction of named files tells its inputs and outputs, and keeps to the size of the outputs.
#[test]
fn a_compaction_of_named_files_tells_what_it_did() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::builder(dir.path())
        .options("disable_auto_compactions=true;compression=kNoCompression")
        .open()
        .unwrap();
    let family = db.default_family();
    for round in 0..2u8 {
        for key in 0..100u8 {
            db.put([key], [round; 1000]).unwrap();
        }
        db.flush().unwrap();
    }
    let numbers: Vec<_> = family.live_files().unwrap().iter().map(|file| file.number).collect();
    let how = CompactFilesOptions::new().max_subcompactions(1);
    let told = family.compact_files_with(&numbers, Level(2), how.file_bytes(20_000)).unwrap().unwrap();
    let after = family.live_files().unwrap();
    assert_eq!(told.inputs, [(Level(0), numbers.clone())]);
    assert_eq!(told.output_tables, after.iter().map(|file| file.number).collect::<Vec<_>>());
    assert_eq!((told.output_level, told.outputs), (Level(2), after.len() as u64));
    assert_eq!((told.input_entries, told.output_entries), (200, 100));
    assert!((4..=8).contains(&after.len()), "100 values of 1000 bytes in tables of 20000: {}", after.len());
    // Another request has a report of its own.
    let again: Vec<_> = after.iter().map(|file| file.number).collect();
    let told = family.compact_files_with(&again, Level(3), how.file_bytes(u64::MAX)).unwrap().unwrap();
    assert_eq!(told.inputs, [(Level(2), again)]);
    assert!(family.compact_files_with(&numbers, Level(3), how).is_err(), "these tables are gone");
    // The compression of one call.
    let bytes = |family: &Family| family.live_files().unwrap().iter().map(|file| file.bytes).sum::<u64>();
    let (there, whole) = (family.live_files().unwrap(), bytes(&family));
    let there: Vec<_> = there.iter().map(|file| file.number).collect();
    family.compact_files_with(&there, Level(4), how.compression(Compression::Lz4)).unwrap();
    assert!(bytes(&family) * 5 < whole, "{} of {whole} bytes", bytes(&family));
    assert_eq!(family.live_files().unwrap()[0].dir, dir.path());
}
