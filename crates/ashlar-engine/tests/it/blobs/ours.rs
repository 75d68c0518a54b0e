//! Blob files of this engine: written by flush and compaction, emptied, and read by RocksDB after each step.

use super::{blob_files, compare, open_with, read_by};
use ashlar_base::FamilyId;
use ashlar_base::ext::merge_operator::standard_operator;
use ashlar_engine::Db;
use ashlar_engine::batch::WriteBatch;
use ashlar_format::compress::Compression;
use ashlar_options::{BlobOptions, CompactionOptions, FamilyOptions, FormatLevel, WriteOptions};
use ashlar_read::iter::KeyBounds;
use ashlar_testkit::judge::{JudgeError, Opening, Tools};
use ashlar_testkit::{Judge, JudgeVersion, KeyValue, Op, Rng, report};
use std::collections::BTreeMap;
use std::path::Path;

type State = BTreeMap<Vec<u8>, Vec<u8>>;

const JUDGED: &str = "merge_operator=stringappend";

fn settings(compression: Compression) -> FamilyOptions {
    FamilyOptions {
        merge_operator: standard_operator("stringappend"),
        write_buffer_bytes: 64 << 10,
        blob: BlobOptions {
            enabled: true,
            min_blob_bytes: 100,
            file_bytes: 20_000,
            compression,
            collect_garbage: true,
            age_cutoff: 0.5,
            force_threshold: 0.7,
            ..BlobOptions::default()
        },
        compaction: CompactionOptions {
            l0_trigger: 2,
            target_file_bytes: 8 << 10,
            base_level_bytes: 16 << 10,
            level_multiplier: 3.0,
            ..CompactionOptions::default()
        },
        ..FamilyOptions::default()
    }
}

/// Puts, deletes and merges of values from empty to some kilobytes.
fn write(db: &Db, rng: &mut Rng, state: &mut State) {
    let mut batch = WriteBatch::new();
    for _ in 0..40 {
        let key = format!("key{:03}", rng.below(150)).into_bytes();
        let len = *rng.pick(&[0, 20, 99, 100, 300, 2000, 5000]).unwrap();
        let value = if rng.percent(50) { rng.bytes(len) } else { vec![b'a'; len] };
        match rng.below(10) {
            0 => {
                batch.delete(FamilyId::DEFAULT, &key).unwrap();
                state.remove(&key);
            }
            1..3 => {
                batch.merge(FamilyId::DEFAULT, &key, &value).unwrap();
                let joined = state.get(&key).map(|old| [&old[..], b",", &value].concat());
                state.insert(key, joined.unwrap_or(value));
            }
            _ => {
                batch.put(FamilyId::DEFAULT, &key, &value).unwrap();
                state.insert(key, value);
            }
        }
    }
    db.write(&mut batch, WriteOptions::default()).unwrap();
}

fn listed(state: &State) -> Vec<KeyValue> {
    state.clone().into_iter().collect()
}

/// Asserts that all readers agree about a closed directory.
fn judged(dir: &Path, level: FormatLevel, state: &State, what: &str) -> Result<(), JudgeError> {
    for version in JudgeVersion::ALL {
        if level <= FormatLevel::V7_8 || version == JudgeVersion::V11 {
            read_by(version, dir, JUDGED, &listed(state), what)?;
        }
    }
    if let (true, Ok(tools)) = (level <= FormatLevel::V7_8, Tools::available()) {
        tools.check_consistency(dir).unwrap_or_else(|e| panic!("{what}: {e}"));
    }
    Ok(())
}

fn life(compression: Compression, level: FormatLevel, seed: u64) -> Result<usize, JudgeError> {
    let what = |when: &str| format!("{compression:?}, {level}, seed {seed}: {when}");
    let dir = tempfile::tempdir().unwrap();
    let (mut rng, mut state) = (Rng::new(seed), State::new());
    let reopen = |automatic| {
        let mut family = settings(compression);
        family.compaction.automatic = automatic;
        open_with(dir.path(), level, family).unwrap()
    };
    let db = reopen(false);
    let family = db.family("default").unwrap();
    for _ in 0..6 {
        write(&db, &mut rng, &mut state);
        db.flush(std::slice::from_ref(&family)).unwrap();
    }
    compare(&db, &listed(&state), &what("flushed"));
    db.close().unwrap();
    let flushed = blob_files(dir.path());
    assert!(flushed >= 6, "{flushed} blob files");
    judged(dir.path(), level, &state, &what("flushed"))?;

    let db = reopen(true);
    let family = db.family("default").unwrap();
    for _ in 0..20 {
        write(&db, &mut rng, &mut state);
    }
    db.wait_for_background().unwrap();
    compare(&db, &listed(&state), &what("compacted in the background"));
    db.close().unwrap();
    judged(dir.path(), level, &state, &what("compacted in the background"))?;

    let db = reopen(true);
    let family_now = db.family("default").unwrap();
    drop(family);
    for _ in 0..8 {
        db.compact_range(&family_now, None, None).unwrap();
    }
    db.wait_for_background().unwrap();
    compare(&db, &listed(&state), &what("collected"));
    db.close().unwrap();
    // Readers in other tests may have delayed the removal of files; the next open removes them.
    reopen(false).close().unwrap();
    judged(dir.path(), level, &state, &what("collected"))?;
    let live: usize = state.values().map(Vec::len).filter(|len| *len >= 100).sum();
    let files = blob_files(dir.path());
    assert!(files <= live / 10_000 + 4, "{}: {files} blob files for {live} bytes", what("collected"));

    // RocksDB continues with the directory, and this engine with the result.
    let mut judge = Judge::spawn(JudgeVersion::V11)?;
    let options = format!(
        "{JUDGED};enable_blob_files=true;min_blob_size=50;enable_blob_garbage_collection=true;\
         blob_garbage_collection_age_cutoff=1.0;block_based_table_factory={{format_version=5}}"
    );
    judge.open(dir.path(), Opening::Existing, &options)?;
    judge.apply(&[Op::Compact { family: "default".into() }])?;
    assert!(judge.dump("default")? == listed(&state), "{}", what("compacted by RocksDB"));
    judge.close()?;
    let db = reopen(true);
    compare(&db, &listed(&state), &what("compacted by RocksDB"));
    db.close().unwrap();
    Ok(state.len())
}

#[test]
fn rocksdb_reads_the_blob_files_we_write() {
    let _readers = crate::beside_others();
    let (mut directories, mut values) = (0, 0);
    for seed in 0..report::scale(1, 8) as u64 {
        for (compression, level) in [
            (Compression::None, FormatLevel::V7_8),
            (Compression::Lz4, FormatLevel::V9_11),
            (Compression::Zstd, FormatLevel::V7_8),
        ] {
            match life(compression, level, seed) {
                Err(JudgeError::Skip(skip)) => return skip.announce("rocksdb_reads_the_blob_files_we_write"),
                done => values += done.unwrap_or_else(|e| panic!("{compression:?}, seed {seed}: {e}")),
            }
            directories += 1;
        }
    }
    report::figure(&format!(
        "blob files of ours: {directories} directories, {values} values; flushed, compacted, collected, each read by \
         7.8.3 and 11.8.1, then compacted by 11.8.1 and read by us: 0 differences"
    ));
}

/// Large columns go to blob files if the level's RocksDB knows such entities; otherwise they stay in the table. In both
/// cases RocksDB reads the default column, and this engine all columns.
#[test]
fn large_columns_are_separated_where_the_level_knows_them() {
    let _readers = crate::beside_others();
    let mut rng = Rng::new(5);
    for (level, separated) in [(FormatLevel::V11, true), (FormatLevel::V9_11, false)] {
        let dir = tempfile::tempdir().unwrap();
        let mut family = settings(Compression::None);
        family.blob.file_bytes = 1 << 20;
        let reopen = || open_with(dir.path(), level, family.clone()).unwrap();
        let db = reopen();
        let rows: Vec<(Vec<u8>, [Vec<u8>; 3])> = (0..30)
            .map(|n| (format!("row{n:03}").into_bytes(), [50, 99, 2000].map(|len| rng.bytes(len))))
            .collect();
        for (n, (key, [default, small, large])) in rows.iter().enumerate() {
            let mut batch = WriteBatch::new();
            // In every third row the default column is the large one.
            let (default, last) = if n % 3 == 0 { (large, default) } else { (default, large) };
            let columns: [(&[u8], &[u8]); 3] = [(b"", default), (b"a", small), (b"z", last)];
            batch.put_entity(FamilyId::DEFAULT, key, &columns).unwrap();
            db.write(&mut batch, WriteOptions::default()).unwrap();
        }
        let looked = |db: &Db| {
            let family = db.family("default").unwrap();
            for (n, (key, [default, small, large])) in rows.iter().enumerate() {
                let (default, last) = if n % 3 == 0 { (large, default) } else { (default, large) };
                let row = db.get_entity(&family, key, Default::default()).unwrap().unwrap();
                let columns = [&b""[..], b"a", b"z"].map(|name| row.get(name).map(<[u8]>::to_vec));
                assert_eq!(columns, [default, small, last].map(|value| Some(value.clone())), "{level}");
            }
        };
        let family = db.family("default").unwrap();
        db.flush(std::slice::from_ref(&family)).unwrap();
        looked(&db);
        let bytes = db.property_int(&family, "rocksdb.total-blob-file-size").unwrap();
        assert_eq!(bytes > 30 * 2000, separated, "{level}: {bytes} bytes of blobs");
        // The keys are merged into and half of them deleted: the rest is carried, the other blobs are garbage.
        let mut state = State::new();
        for (n, (key, [default, _, large])) in rows.iter().enumerate() {
            let mut batch = WriteBatch::new();
            if n % 2 == 0 {
                batch.delete(FamilyId::DEFAULT, key).unwrap();
            } else {
                batch.merge(FamilyId::DEFAULT, key, b"more").unwrap();
                let base = if n % 3 == 0 { large } else { default };
                state.insert(key.clone(), [&base[..], b",more"].concat());
            }
            db.write(&mut batch, WriteOptions::default()).unwrap();
        }
        db.compact_range(&family, None, None).unwrap();
        compare(&db, &listed(&state), &format!("{level}, compacted"));
        db.close().unwrap();
        match judged(dir.path(), level, &state, &format!("{level}")) {
            Err(JudgeError::Skip(skip)) => return skip.announce("large_columns_are_separated"),
            other => other.unwrap(),
        }
        let db = reopen();
        compare(&db, &listed(&state), &format!("{level}, opened again"));
        db.close().unwrap();
    }
}

/// Values move out of old blob files: files that an iterator or a snapshot still reads stay until it is dropped.
#[test]
fn a_blob_file_stays_as_long_as_somebody_may_read_it() {
    let _alone = crate::alone();
    let dir = tempfile::tempdir().unwrap();
    let mut family = settings(Compression::None);
    family.blob = BlobOptions { age_cutoff: 1.0, ..family.blob };
    let db = open_with(dir.path(), FormatLevel::V9_11, family).unwrap();
    let family = db.family("default").unwrap();
    let (mut rng, mut state) = (Rng::new(3), State::new());
    write(&db, &mut rng, &mut state);
    db.compact_range(&family, None, None).unwrap();
    let snapshot = db.snapshot().unwrap();
    let (old, mut it) = (listed(&state), db.iter(&family, KeyBounds::default(), Default::default()).unwrap());
    it.first().unwrap();
    for _ in 0..5 {
        write(&db, &mut rng, &mut state);
        db.compact_range(&family, None, None).unwrap();
    }
    db.wait_for_background().unwrap();
    for (key, value) in &old {
        assert_eq!(it.entry().unwrap(), (&key[..], &value[..]));
        it.next().unwrap();
        let at = ashlar_options::ReadOptions { at: Some(snapshot.seq()), ..Default::default() };
        assert_eq!(db.get(&family, key, at).unwrap().as_deref(), Some(&value[..]));
    }
    assert!(it.entry().is_none());
    drop((it, snapshot));
    let before = blob_files(dir.path());
    for _ in 0..2 {
        db.compact_range(&family, None, None).unwrap();
        db.wait_for_background().unwrap();
    }
    compare(&db, &listed(&state), "after all");
    assert!(blob_files(dir.path()) < before, "{before} blob files before");
    db.close().unwrap();
}
