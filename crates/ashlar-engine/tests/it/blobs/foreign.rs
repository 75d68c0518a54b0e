//! RocksDB's directories with values in blob files: this engine reads, writes and compacts them, and RocksDB reads them
//! again.

use super::{blob_files, compare, open, read_by};
use ashlar_base::FamilyId;
use ashlar_engine::batch::WriteBatch;
use ashlar_options::WriteOptions;
use ashlar_testkit::golden::golden;
use ashlar_testkit::judge::{JudgeError, Opening, Tools};
use ashlar_testkit::{Change, Judge, JudgeVersion, KeyValue, Op, Rng, report};
use std::collections::BTreeMap;

#[test]
fn the_golden_directory_is_read_compacted_and_read_by_rocksdb() {
    let _readers = crate::beside_others();
    let golden = golden("rocksdb-7.8.3/blobs").unwrap_or_else(|skip| panic!("{skip}"));
    let want = &golden.families[0].visible;
    assert_eq!(want.len(), 3);
    let db = open(golden.path());
    compare(&db, want, "as found");
    db.compact_range(&db.family("default").unwrap(), None, None).unwrap();
    compare(&db, want, "compacted");
    db.close().unwrap();
    compare(&open(golden.path()), want, "reopened");
    assert_eq!(blob_files(golden.path()), 2);
    let Ok(tools) = Tools::available() else {
        return report::skipped("the_golden_directory_is_read_compacted_and_read_by_rocksdb", "no ldb");
    };
    tools.check_consistency(golden.path()).unwrap();
    for version in JudgeVersion::ALL {
        match read_by(version, golden.path(), "", want, "golden blobs") {
            Err(JudgeError::Skip(skip)) => {
                skip.announce("the_golden_directory_is_read_compacted_and_read_by_rocksdb");
            }
            done => done.unwrap(),
        }
    }
}

/// Values from empty to some kilobytes, half of them long enough for blob files.
fn value(rng: &mut Rng) -> Vec<u8> {
    let len = [0, 10, 31, 32, 400, 5000][rng.below(6)];
    let byte = rng.bytes(1)[0];
    (0..len).map(|i| byte.wrapping_add((i % 7) as u8)).collect()
}

fn exchange(compression: &str, seed: u64) -> Result<usize, JudgeError> {
    let dir = tempfile::tempdir().unwrap();
    let mut rng = Rng::new(seed);
    let mut state: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
    let mut judge = Judge::spawn(JudgeVersion::V11)?;
    let options = format!(
        "enable_blob_files=true;min_blob_size=32;blob_file_size=20000;blob_compression_type={compression};\
         block_based_table_factory={{format_version=5}};disable_auto_compactions=true"
    );
    judge.open(dir.path(), Opening::Create, &options)?;
    let family = || "default".to_owned();
    for _ in 0..4 {
        for _ in 0..60 {
            let key = format!("key{:02}", rng.below(80)).into_bytes();
            let change = if rng.percent(15) {
                state.remove(&key);
                Change::Delete { family: family(), key }
            } else {
                let value = value(&mut rng);
                state.insert(key.clone(), value.clone());
                Change::Put { family: family(), key, value }
            };
            judge.write(&[change], false)?;
        }
        judge.apply(&[Op::Flush { family: family() }])?;
    }
    judge.close()?;
    let files = blob_files(dir.path());
    assert!(files >= 4, "{files} blob files");

    let what = format!("{compression}, seed {seed}");
    let listed = |state: &BTreeMap<_, _>| state.clone().into_iter().collect::<Vec<KeyValue>>();
    let db = open(dir.path());
    compare(&db, &listed(&state), &what);
    let mut batch = WriteBatch::new();
    for i in 0..20 {
        let (key, value) = (format!("key{:02}", i * 3).into_bytes(), value(&mut rng));
        batch.put(FamilyId::DEFAULT, &key, &value).unwrap();
        state.insert(key, value);
    }
    db.write(&mut batch, WriteOptions::default()).unwrap();
    compare(&db, &listed(&state), &what);
    let default = db.family("default").unwrap();
    db.flush(std::slice::from_ref(&default)).unwrap();
    db.compact_range(&default, None, None).unwrap();
    compare(&db, &listed(&state), &format!("{what}, compacted"));
    db.close().unwrap();
    for version in JudgeVersion::ALL {
        read_by(version, dir.path(), "", &listed(&state), &what)?;
    }
    // RocksDB opens the directory once more and collects the garbage.
    let mut judge = Judge::spawn(JudgeVersion::V11)?;
    let collect =
        format!("{options};enable_blob_garbage_collection=true;blob_garbage_collection_age_cutoff=1.0");
    judge.open(dir.path(), Opening::Existing, &collect)?;
    judge.apply(&[Op::Compact { family: family() }])?;
    assert!(judge.dump("default")? == listed(&state), "{what}: after RocksDB's compaction");
    judge.close()?;
    compare(&open(dir.path()), &listed(&state), &format!("{what}, compacted by RocksDB"));
    Ok(state.len())
}

#[test]
fn directories_with_blobs_go_to_and_fro() {
    let _readers = crate::beside_others();
    let (mut directories, mut values) = (0, 0);
    for seed in 0..report::scale(1, 8) as u64 {
        for compression in ["kNoCompression", "kLZ4Compression", "kZSTD"] {
            match exchange(compression, seed) {
                Err(JudgeError::Skip(skip)) => return skip.announce("directories_with_blobs_go_to_and_fro"),
                done => values += done.unwrap_or_else(|e| panic!("{compression}, seed {seed}: {e}")),
            }
            directories += 1;
        }
    }
    report::figure(&format!(
        "blob judge: {directories} directories of RocksDB 11.8.1, {values} values; read, compacted by us, read by \
         7.8.3 and 11.8.1: 0 differences"
    ));
}
