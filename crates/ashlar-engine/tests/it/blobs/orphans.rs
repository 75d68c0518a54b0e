//! Crashes anywhere in flushes and compactions with blobs: the next open keeps only files that are needed.
//!
//! After everything is deleted and compacted away, every remaining table or blob file would be an orphan.

use ashlar_base::FamilyId;
use ashlar_engine::batch::WriteBatch;
use ashlar_engine::{Db, OpenFamily};
use ashlar_env::sim::{CallClass, CrashMode, SimEnv};
use ashlar_options::{BlobOptions, CompactionOptions, DbOptions, FamilyOptions, WriteOptions};
use ashlar_testkit::{Rng, report};
use std::path::Path;

const DIR: &str = "/data/db";
const KEYS: usize = 60;

fn open(sim: &SimEnv) -> Db {
    let options = FamilyOptions {
        blob: BlobOptions {
            enabled: true,
            min_blob_bytes: 200,
            file_bytes: 4000,
            collect_garbage: true,
            age_cutoff: 0.5,
            force_threshold: 0.5,
            ..BlobOptions::default()
        },
        compaction: CompactionOptions {
            l0_trigger: 2,
            target_file_bytes: 4096,
            ..CompactionOptions::default()
        },
        ..FamilyOptions::default()
    };
    let default = OpenFamily { name: "default".to_owned(), options: options.clone() };
    Db::open(sim.env(), Path::new(DIR), DbOptions::default(), vec![default], options).unwrap()
}

/// Rounds of synced writes, flushed and compacted.
fn live(db: &Db, rng: &mut Rng) {
    let family = db.family("default").unwrap();
    for _ in 0..5 {
        let mut batch = WriteBatch::new();
        for _ in 0..30 {
            let value = vec![b'v'; *rng.pick(&[100, 200, 900]).unwrap()];
            batch.put(FamilyId::DEFAULT, format!("key{}", rng.below(KEYS)).as_bytes(), &value).unwrap();
        }
        db.write(&mut batch, WriteOptions { sync: true, ..WriteOptions::default() }).unwrap();
        db.flush(std::slice::from_ref(&family)).unwrap();
    }
    db.compact_range(&family, None, None).unwrap();
    db.wait_for_background().unwrap();
}

fn files(sim: &SimEnv, end: &str) -> Vec<String> {
    let listed = sim.env().fs.list(Path::new(DIR)).unwrap();
    listed.into_iter().map(|entry| entry.name).filter(|name| name.ends_with(end)).collect()
}

/// Deletes all keys; returns the remaining files.
fn emptied(sim: &SimEnv) -> Vec<String> {
    let db = open(sim);
    let family = db.family("default").unwrap();
    let mut batch = WriteBatch::new();
    for key in 0..KEYS {
        batch.delete(FamilyId::DEFAULT, format!("key{key}").as_bytes()).unwrap();
    }
    db.write(&mut batch, WriteOptions::default()).unwrap();
    for _ in 0..2 {
        db.compact_range(&family, None, None).unwrap();
        db.wait_for_background().unwrap();
    }
    [files(sim, ".blob"), files(sim, ".sst")].concat()
}

#[test]
fn a_crash_leaves_no_file_that_nobody_knows() {
    // Files that readers in other tests still hold would not be removed yet.
    let _alone = crate::alone();
    let (mut crashes, mut with_blobs) = (0, 0);
    for seed in 0..report::scale(2, 30) as u64 {
        let sim = SimEnv::new(seed);
        let mut rng = Rng::new(seed);
        let db = open(&sim);
        let begin = sim.calls_of(CallClass::Change);
        for _ in 0..40 {
            let mode = *rng.pick(&CrashMode::all()).unwrap();
            sim.photograph_at(begin + rng.between(1, 400) as u64, mode);
        }
        live(&db, &mut rng);
        for (at, mode, crashed) in sim.photographs() {
            with_blobs += usize::from(!files(&crashed, ".blob").is_empty());
            assert_eq!(emptied(&crashed), [""; 0], "seed {seed}, crash before call {at}, {mode:?}");
            crashes += 1;
        }
    }
    report::figure(&format!(
        "blob files after a crash: {crashes} crashes in flushes and compactions, {with_blobs} with blob files in the directory, \
         0 orphaned files left"
    ));
    assert!(with_blobs > 20, "{with_blobs}");
}
