//! What cursors and snapshots keep alive: told while they live, free when they are gone.

use ashlar_engine::batch::WriteBatch;
use ashlar_engine::options::{DbOptions, FamilyOptions, ReadOptions, WriteOptions};
use ashlar_engine::{Db, OpenFamily};
use ashlar_env::sim::SimEnv;
use ashlar_testkit::report;
use std::path::Path;
use std::time::Duration;

const KEYS: usize = 500;

fn overwrite(db: &Db, round: u8) {
    let family = db.family("default").expect("always there");
    let mut batch = WriteBatch::new();
    for key in 0..KEYS {
        batch.put(family.id(), format!("{key:05}").as_bytes(), &[round; 100]).expect("small");
    }
    db.write(&mut batch, WriteOptions::default()).expect("a write");
}

#[test]
fn what_readers_keep_is_told_and_comes_free() {
    let _readers = crate::beside_others();
    let sim = SimEnv::new(21);
    let mut options = FamilyOptions::default();
    options.table.compression = ashlar_format::compress::Compression::None;
    let none: Vec<OpenFamily> = Vec::new();
    let db = Db::open(sim.env(), Path::new("/data/db"), DbOptions::default(), none, options).expect("opens");
    let family = db.family("default").expect("always there");
    let down = || {
        db.flush(std::slice::from_ref(&family)).expect("flushes");
        db.compact_range(&family, None, None).expect("compacts");
        db.wait_for_background().expect("idle");
    };
    overwrite(&db, 1);
    down();
    overwrite(&db, 2);
    let idle = db.pins().expect("open");
    assert_eq!((idle.memtable_bytes, idle.obsolete_files, idle.snapshots), (0, 0, 0), "{idle}");
    assert_eq!(idle.oldest_snapshot, None);

    let snapshot = db.snapshot().expect("open");
    let mut cursor = db.iter(&family, ReadOptions::default()).expect("opens");
    cursor.first().expect("reads");
    let fresh = cursor.pins(&family);
    assert_eq!((fresh.memtable_bytes, fresh.obsolete_files), (0, 0), "all of it is the family's still");
    assert!(fresh.block_bytes > 0 && fresh.sequence == snapshot.seq());

    ashlar_env::Clock::sleep(sim.clock(), Duration::from_secs(90));
    overwrite(&db, 3);
    down();
    let told = cursor.pins(&family);
    let all = db.pins().expect("open");
    let written = (KEYS * 100) as u64;
    report::figure(&format!("pins: {told:?}; {all}"));
    assert!(told.memtable_bytes > written, "two rounds were in the memtable it holds: {told:?}");
    assert!(told.obsolete_files == 1 && told.obsolete_bytes > written, "{told:?}");
    assert_eq!(
        (all.memtable_bytes, all.obsolete_files, all.obsolete_bytes),
        (told.memtable_bytes, told.obsolete_files, told.obsolete_bytes),
        "there is one reader: {all}"
    );
    let kept = db.snapshot_pins(&snapshot).expect("open");
    assert_eq!((all.snapshots, all.oldest_snapshot), (1, Some(kept)));
    assert_eq!((kept.age.as_secs(), kept.changes_since), (90, KEYS as u64));
    // Of every key the snapshot keeps one version behind the newest.
    assert!((written / 2..2 * written).contains(&kept.older_bytes), "{kept:?}");
    assert!(all.to_string().contains("1 snapshots, the oldest at "), "{all}");

    let mut seen = 0;
    while let Some((_, value)) = cursor.entry() {
        assert_eq!(value, [2; 100]);
        seen += 1;
        cursor.next().expect("reads");
    }
    assert_eq!(seen, KEYS);
    drop((cursor, snapshot));
    down();
    let free = db.pins().expect("open");
    assert_eq!((free.memtable_bytes, free.obsolete_files, free.snapshots), (0, 0, 0), "{free}");
}
