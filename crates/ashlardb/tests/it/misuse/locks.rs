//! Comparators, merge operators and compaction filters run under no lock of the engine.

use ashlardb::{
    Builder, CompactRangeOptions, CompactionFilter, CompactionFilterFactory, Comparator, Db, Decision,
    FilterContext, MergeOperator, Read as _, Result, SizeOptions, Write as _, WriteBatch,
};
use std::backtrace::Backtrace;
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// The places that called a callback while their thread held a lock.
#[derive(Debug, Default)]
struct Watch(Mutex<BTreeSet<String>>);

impl Watch {
    fn called(&self) {
        if ashlar_sync::holds_no_lock() {
            return;
        }
        let text = Backtrace::force_capture().to_string();
        let at = text.lines().filter_map(|line| line.trim().strip_prefix("at "));
        let of_the_engine = at.filter(|at| at.contains("/crates/ashlar-") && !at.contains("/ashlar-base/"));
        let place: Vec<&str> = of_the_engine.take(6).collect();
        self.0.lock().unwrap().insert(place.join("\n"));
    }
}

/// Byte order.
#[derive(Debug)]
struct Watched(Arc<Watch>);

impl Comparator for Watched {
    fn name(&self) -> &str {
        "Watched"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        self.0.called();
        a.cmp(b)
    }
}

/// The last operand.
#[derive(Debug)]
struct WatchedMerge(Arc<Watch>);

impl MergeOperator for WatchedMerge {
    fn name(&self) -> &str {
        "WatchedMerge"
    }

    fn full_merge(&self, _: &[u8], _: Option<&[u8]>, operands: &[&[u8]]) -> Result<Vec<u8>> {
        self.0.called();
        Ok(operands.last().map(|last| last.to_vec()).unwrap_or_default())
    }

    fn partial_merge(&self, _: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        self.0.called();
        operands.last().map(|last| last.to_vec())
    }
}

/// Keeps everything.
#[derive(Debug)]
struct WatchedFilter(Arc<Watch>);

/// Makes them. It may be dropped under a lock, as [`CompactionFilterFactory`] says; the filters may not.
#[derive(Debug)]
struct WatchedFactory(Arc<Watch>);

impl CompactionFilter for WatchedFilter {
    fn name(&self) -> &str {
        self.0.called();
        "WatchedFilter"
    }

    fn filter(&self, _: &[u8], _: &[u8]) -> Decision {
        self.0.called();
        Decision::Keep
    }
}

impl CompactionFilterFactory for WatchedFactory {
    fn name(&self) -> &str {
        "WatchedFilters"
    }

    fn create(&self, _: &FilterContext<'_>) -> Option<Box<dyn CompactionFilter>> {
        self.0.called();
        Some(Box::new(WatchedFilter(Arc::clone(&self.0))))
    }
}

impl Drop for WatchedFilter {
    fn drop(&mut self) {
        self.0.called();
    }
}

const SETTINGS: [&str; 2] = [
    "",
    "atomic_flush=true;ttl=1;periodic_compaction_seconds=1;enable_blob_files=true;min_blob_size=100;\
     enable_blob_garbage_collection=true;blob_garbage_collection_age_cutoff=1.0",
];

fn watched(dir: &Path, watch: &Arc<Watch>, settings: &str) -> Builder {
    let family = |f: ashlardb::FamilyBuilder| {
        let (order, merge) = (Watched(Arc::clone(watch)), WatchedMerge(Arc::clone(watch)));
        let filters = Arc::new(WatchedFactory(Arc::clone(watch)));
        f.comparator(Arc::new(order)).merge_operator(Arc::new(merge)).compaction_filter_factory(filters)
    };
    let small = "write_buffer_size=65536;target_file_size_base=32768;max_bytes_for_level_base=65536;\
                 level0_file_num_compaction_trigger=2;max_subcompactions=4;max_background_jobs=4";
    Db::builder(dir).options(&format!("{small};{settings}")).family("default", family).family("f", family)
}

fn write_much(db: &Db) {
    for n in 0..1500_u32 {
        let key = format!("{:05}", n * 7919 % 1500);
        match n % 5 {
            0 => db.merge(&key, [1; 300]).unwrap(),
            1 if n % 100 == 1 => db.delete_range(&key, format!("{key}5")).unwrap(),
            2 if n % 3 == 0 => db.delete(&key).unwrap(),
            _ => db.put(&key, [2; 300]).unwrap(),
        }
        db.family("f").unwrap().put(&key, "v").unwrap();
    }
    let batch = WriteBatch::new();
    batch.put("a", "1").unwrap();
    batch.delete_range("b", "c").unwrap();
    batch.merge("a", "2").unwrap();
    db.write(&batch).unwrap();
}

fn read_much(db: &Db) {
    let family = db.default_family();
    let snapshot = db.snapshot().unwrap();
    for key in ["00000", "00700", "01499", "a", "z"] {
        let _ = db.get(key).unwrap();
        let _ = snapshot.get(key).unwrap();
        let _ = db.key_may_exist(key).unwrap();
        let _ = db.explain_get(key).unwrap();
    }
    let _ = db.multi_get(["00001", "00900", "a", "b"]).unwrap();
    db.scan("00100".."00400").for_each(|row| drop(row.unwrap()));
    db.scan("00100".."00400").rev().for_each(|row| drop(row.unwrap()));
    let _ = db.scan("00100".."00400").explain(100).unwrap();
    let mut cursor = db.scan(..).cursor().unwrap();
    cursor.seek("00700").unwrap();
    cursor.prev().unwrap();
    cursor.seek_for_prev("00300").unwrap();
    cursor.next().unwrap();
    let both = SizeOptions::new().memtables(true);
    let _ = family.approximate_sizes(&[("00100", "00900")], both).unwrap();
    let _ = family.approximate_memtable_stats("00100", "00900").unwrap();
    let _ = (family.live_files().unwrap(), family.shape(), db.property("rocksdb.stats"), db.pressure());
}

fn tend(db: &Db) {
    let family = db.default_family();
    family.set_options(&[("max_bytes_for_level_base", "131072")]).unwrap();
    db.set_db_options(&[("max_background_jobs", "3")]).unwrap();
    db.flush().unwrap();
    let _ = family.compact_range("00100".."00300", CompactRangeOptions::default());
    let files: Vec<_> = family.live_files().unwrap().iter().map(|file| file.number).take(1).collect();
    let two_jobs = ashlardb::CompactFilesOptions::new().max_subcompactions(2);
    let _ = family.compact_files_with(&files, ashlardb::Level(6), two_jobs);
    let _ = family.delete_files_in_ranges(&["00100".."00300"]).unwrap();
    let _ = (db.verify_checksums(|_| {}).unwrap(), db.verify_db(|_| {}).unwrap());
    db.pause_background_work().unwrap();
    db.put("00001", "v").unwrap();
    let _ = db.wait_for_background();
    db.continue_background_work().unwrap();
    let new = db.create_family("new").unwrap();
    new.put("k", "v").unwrap();
    db.drop_family(&new).unwrap();
    db.wait_for_background().unwrap();
}

#[test]
fn no_comparator_merge_operator_or_filter_runs_under_a_lock() {
    for settings in SETTINGS {
        let (dir, watch) = (tempfile::tempdir().unwrap(), Arc::new(Watch::default()));
        for _ in 0..2 {
            let db = watched(dir.path(), &watch, settings).open().unwrap();
            write_much(&db);
            read_much(&db);
            tend(&db);
            write_much(&db);
            read_much(&db);
            db.compact().unwrap();
            write_much(&db);
            db.close().unwrap();
        }
        read_much(&watched(dir.path(), &watch, settings).read_only(true).open().unwrap());
        let copy = tempfile::tempdir().unwrap();
        let _ = watched(dir.path(), &watch, settings).salvage(copy.path(), |_| {}).unwrap();
        let _ = watched(dir.path(), &watch, settings).repair(|_| {}).unwrap();
        let places = watch.0.lock().unwrap();
        let text = places.iter().cloned().collect::<Vec<_>>().join("\n\n");
        assert!(places.is_empty(), "{settings}: {} places:\n{text}", places.len());
    }
}
