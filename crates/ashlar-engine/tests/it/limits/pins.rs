//! What iterators and snapshots keep alive: reported while they live, freed when they are dropped.

use ashlar_engine::batch::WriteBatch;
use ashlar_engine::{Db, MemoryClass, OpenFamily, Pins};
use ashlar_env::sim::SimEnv;
use ashlar_format::table::IndexKind;
use ashlar_options::{DbOptions, FamilyOptions, ReadOptions, WriteOptions};
use ashlar_read::iter::KeyBounds;
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

/// The pinned state, once `obsolete_files` files are pinned. Objects that any thread of this process is just using
/// count as pinned until the thread releases them.
fn pins(db: &Db, obsolete_files: u64) -> Pins {
    let mut pins = db.pins().expect("open");
    for _ in 0..100_000 {
        if pins.obsolete_files == obsolete_files {
            break;
        }
        std::thread::yield_now();
        pins = db.pins().expect("open");
    }
    pins
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
    let idle = pins(&db, 0);
    assert_eq!((idle.memtable_bytes, idle.obsolete_files, idle.snapshots), (0, 0, 0), "{idle}");
    assert_eq!(idle.oldest_snapshot, None);

    let snapshot = db.snapshot().expect("open");
    let mut cursor = db.iter(&family, KeyBounds::default(), ReadOptions::default()).expect("opens");
    cursor.first().expect("reads");
    let fresh = family.pins_of(&cursor);
    assert_eq!((fresh.memtable_bytes, fresh.obsolete_files), (0, 0), "the family still has all of the data");
    assert!(fresh.block_bytes > 0 && fresh.sequence == snapshot.seq());

    ashlar_env::Clock::sleep(sim.clock(), Duration::from_secs(90));
    overwrite(&db, 3);
    down();
    let told = family.pins_of(&cursor);
    let all = pins(&db, told.obsolete_files);
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
    // The snapshot keeps one older version of every key.
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
    let free = pins(&db, 0);
    assert_eq!((free.memtable_bytes, free.obsolete_files, free.snapshots), (0, 0, 0), "{free}");
}

#[test]
fn blocks_of_standing_cursors_are_in_the_pins() {
    const VALUE: usize = 200_000;
    const CURSORS: usize = 40;
    let _readers = crate::beside_others();
    let sim = SimEnv::new(24);
    let mut options = FamilyOptions::default();
    options.table.compression = ashlar_format::compress::Compression::None;
    let memory = DbOptions { memory_bytes: 16 << 20, ..DbOptions::default() };
    let none: Vec<OpenFamily> = Vec::new();
    let db = Db::open(sim.env(), Path::new("/data/db"), memory, none, options).expect("opens");
    let family = db.family("default").expect("always there");
    let name = |key: usize| format!("{key:05}").into_bytes();
    for key in 0..2 * CURSORS {
        let mut batch = WriteBatch::new();
        batch.put(family.id(), &name(key), &vec![7; VALUE]).expect("small");
        db.write(&mut batch, WriteOptions::default()).expect("a write");
    }
    db.flush(std::slice::from_ref(&family)).expect("flushes");
    db.compact_range(&family, None, None).expect("compacts");
    db.wait_for_background().expect("idle");
    let stand = |n: usize| {
        let mut cursor = db.iter(&family, KeyBounds::default(), ReadOptions::default()).expect("opens");
        cursor.seek(&name(2 * n)).expect("reads");
        cursor
    };
    let cursors: Vec<_> = (0..CURSORS).map(stand).collect();
    let own: u64 = cursors.iter().map(|cursor| family.pins_of(cursor).block_bytes).sum();
    let (pins, memory) = (db.pins().expect("open"), db.memory_report());
    report::figure(&format!(
        "pins: {CURSORS} cursors hold {own} B of blocks by themselves; {pins}; {memory}"
    ));
    assert!(own >= (CURSORS * VALUE) as u64, "{own}");
    assert!((own..own + own / 10).contains(&pins.block_bytes), "{own} by themselves: {pins}");
    assert_eq!(memory.of(MemoryClass::HeldBlocks), pins.block_bytes);
    // A second cursor on a block holds nothing more.
    let beside: Vec<_> = (0..CURSORS).map(stand).collect();
    assert!(db.pins().expect("open").block_bytes < own + own / 5, "blocks count once");
    drop((cursors, beside));
    assert_eq!(db.pins().expect("open").block_bytes, 0);
}

/// Bytes of indexes and filters in memory.
fn tables_bytes(db: &Db) -> u64 {
    let family = db.family("default").expect("always there");
    db.property_int(&family, "rocksdb.estimate-table-readers-mem").expect("a number")
}

#[test]
fn indexes_give_way_under_cursors() {
    const ENTRIES: usize = 192_000;
    const CURSORS: usize = 64;
    // Blocks may use a quarter of the cap, and the WAL has its buffer.
    const CAP: u64 = 16 << 20;
    const LEFT: u64 = CAP - CAP / 4 - (2 << 20);
    let _readers = crate::beside_others();
    let sim = SimEnv::new(23);
    let mut family_options = FamilyOptions::default();
    // One entry per block: indexes use most of the memory.
    family_options.table.block_size = 1;
    // An index with first keys is whole under every cap.
    family_options.table.index = IndexKind::BinarySearchWithFirstKey;
    family_options.compaction.target_file_bytes = 256 << 10;
    let options = DbOptions { memory_bytes: CAP, ..DbOptions::default() };
    let none: Vec<OpenFamily> = Vec::new();
    let db = Db::open(sim.env(), Path::new("/data/db"), options, none, family_options).expect("opens");
    let family = db.family("default").expect("always there");
    let name = |key: usize| format!("{key:08}").into_bytes();
    for from in (0..ENTRIES).step_by(1000) {
        let mut batch = WriteBatch::new();
        (from..from + 1000).for_each(|key| batch.put(family.id(), &name(key), &[7; 40]).expect("small"));
        db.write(&mut batch, WriteOptions::default()).expect("a write");
    }
    db.flush(std::slice::from_ref(&family)).expect("flushes");
    db.compact_range(&family, None, None).expect("compacts");
    db.wait_for_background().expect("idle");
    db.set_db_options(&[("max_open_files", "0")]).expect("changes while open");
    db.set_db_options(&[("max_open_files", "-1")]).expect("changes while open");

    let each = ENTRIES / CURSORS;
    let (mut cursors, mut one, mut most) = (Vec::new(), 0, 0);
    for n in 0..CURSORS {
        let mut iter = db.iter(&family, KeyBounds::default(), ReadOptions::default()).expect("opens");
        iter.seek(&name(n * each)).expect("reads");
        cursors.push(iter);
        most = most.max(tables_bytes(&db));
        one = if n == 0 { most } else { one };
    }
    let whole = one * db.shape(&family).tables() as u64;
    for (n, iter) in cursors.iter_mut().enumerate() {
        for key in n * each..(n + 1) * each {
            assert_eq!(iter.key(), Some(&*name(key)));
            iter.next().expect("tables come back");
        }
    }
    report::figure(&format!(
        "pins: {CURSORS} cursors over tables with {whole} B of indexes and filters, {one} B each: {most} B in memory at most"
    ));
    assert!(whole > LEFT * 5 / 4, "{whole} B are too little");
    assert!(most <= LEFT + one, "{most} B of {whole} B");
}
