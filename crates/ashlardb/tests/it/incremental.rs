//! Universal trees that merge their oldest runs in parts: the content, the bounds, and RocksDB's view.

use crate::judge::{judge, level_of};
use crate::store::listing;
use ashlar_testkit::judge::Opening;
use ashlar_testkit::{Change, JudgeVersion, Op, Rng, report};
use ashlardb::prelude::*;
use ashlardb::{Builder, CompactionEvent, Event, EventListener, FormatLevel, Level};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// The amplification in percent from which runs are merged.
const PERCENT: u64 = 25;
/// `max_compaction_bytes`.
const MOST: u64 = 512 << 10;
const KEYS: usize = 5000;

#[derive(Default)]
struct Heard(Mutex<Vec<CompactionEvent>>);

impl Heard {
    fn take(&self) -> Vec<CompactionEvent> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

impl EventListener for Heard {
    fn on_event(&self, event: &Event) {
        if let Event::CompactionCompleted(compaction) = event {
            self.0.lock().unwrap().push(compaction.clone());
        }
    }
}

/// The settings, as both engines take them.
fn options(incremental: bool) -> String {
    format!(
        "compaction_style=kCompactionStyleUniversal;write_buffer_size=4194304;target_file_size_base=32768;\
         max_compaction_bytes={MOST};compression=kNoCompression;\
         compaction_options_universal={{max_size_amplification_percent={PERCENT};incremental={incremental};}}"
    )
}

fn builder(dir: &Path, level: FormatLevel, incremental: bool) -> Builder {
    Db::builder(dir).format_level(level).options(&options(incremental))
}

/// One flush of puts, deletions and deleted ranges, after which the tree comes to rest.
fn round(db: &Db, model: &mut Model, rng: &mut Rng) {
    for _ in 0..120 {
        let key = |n: usize| format!("key{n:05}").into_bytes();
        let n = rng.below(KEYS);
        match rng.below(100) {
            0 => {
                let (from, to) = (key(n), key(n + 5));
                db.delete_range(&from, &to).unwrap();
                let gone: Vec<_> = model.range(from..to).map(|(key, _)| key.clone()).collect();
                gone.iter().for_each(|key| drop(model.remove(key)));
            }
            1..15 => {
                db.delete(key(n)).unwrap();
                model.remove(&key(n));
            }
            _ => {
                let value = rng.bytes(1000);
                db.put(key(n), &value).unwrap();
                model.insert(key(n), value);
            }
        }
    }
    db.flush().unwrap();
    db.wait_for_background().unwrap();
}

/// A database whose keys are all written and lie in one run.
fn filled(builder: Builder, model: &mut Model, rng: &mut Rng) -> Db {
    let db = builder.open().unwrap();
    for n in 0..KEYS {
        let (key, value) = (format!("key{n:05}").into_bytes(), rng.bytes(1000));
        db.put(&key, &value).unwrap();
        model.insert(key, value);
    }
    db.compact().unwrap();
    db
}

/// The bytes of the runs, newest first.
fn runs(db: &Db) -> Vec<u64> {
    let files = db.default_family().live_files().unwrap();
    let of = |level: u8| files.iter().filter(move |file| file.level == Level(level));
    let deeper = (1..7).map(|level| of(level).map(|file| file.bytes).sum());
    of(0).map(|file| file.bytes).chain(deeper.filter(|bytes| *bytes > 0)).collect()
}

fn holds(db: &Db, model: &Model) -> bool {
    listing(db.scan(..)) == model.clone().into_iter().collect::<Vec<_>>()
}

/// Random histories read as their model, also through a snapshot, while no compaction reads much more than its bound and
/// the amplification stays within its limit. Without parts the same history merges the whole data.
#[test]
fn compactions_stay_near_their_bound() {
    let mut largest = Vec::new();
    for (seed, incremental) in [(1, true), (2, true), (1, false)].into_iter().step_by(report::scale(2, 1)) {
        let dir = tempfile::tempdir().unwrap();
        let (mut model, mut rng) = (Model::new(), Rng::new(seed));
        let heard = Arc::new(Heard::default());
        let builder = || builder(dir.path(), FormatLevel::V9_11, incremental).listener(heard.clone());
        let mut db = filled(builder(), &mut model, &mut rng);
        heard.take();
        let mut held = None;
        for at in 0..60 {
            round(&db, &mut model, &mut rng);
            let runs = runs(&db);
            let (oldest, newer) = runs.split_last().unwrap();
            let newer: u64 = newer.iter().sum();
            assert!(runs.len() < 4 || newer * 100 < PERCENT * oldest, "seed {seed}, round {at}: {runs:?}");
            if at % 10 == 5 {
                held = Some((db.snapshot().unwrap(), model.clone()));
            }
            if at % 10 == 9
                && let Some((snapshot, then)) = held.take()
            {
                let seen = listing(snapshot.scan(..));
                assert!(
                    seen == then.into_iter().collect::<Vec<_>>(),
                    "seed {seed}, round {at}: the snapshot"
                );
                assert!(holds(&db, &model), "seed {seed}, round {at}");
            }
            if at == 30 {
                held = None;
                db.close().unwrap();
                db = builder().open().unwrap();
            }
        }
        assert!(held.is_none() && holds(&db, &model), "seed {seed}");
        db.verify_db(|_| ()).unwrap();
        let events = heard.take();
        let wasteful = events.iter().filter(|event| event.reason == "space-amplification");
        largest.push(wasteful.clone().map(|event| event.input_bytes).max().unwrap());
        report::figure(&format!(
            "merges for space, in parts {incremental}: {}, the largest reads {} bytes",
            wasteful.count(),
            largest.last().unwrap()
        ));
        if incremental {
            let all = events.iter().map(|event| event.input_bytes).max().unwrap();
            let data: u64 = runs(&db).iter().sum();
            assert!(all <= data * PERCENT / 100 + MOST, "seed {seed}: {all} of {data}");
        }
    }
    let (whole, parts) = largest.split_last().unwrap();
    assert!(parts.iter().all(|part| *part <= MOST) && *whole > 8 * MOST, "{largest:?}");
}

/// RocksDB opens the tree between two parts of a merge, reads and verifies it, and continues it with the same options; so do we after it.
#[test]
fn rocksdb_goes_on_between_the_parts() {
    for version in [JudgeVersion::V7, JudgeVersion::V11] {
        let Some(mut judge) = judge(version, "rocksdb_goes_on_between_the_parts") else { return };
        let dir = tempfile::tempdir().unwrap();
        let (mut model, mut rng) = (Model::new(), Rng::new(7));
        let heard = Arc::new(Heard::default());
        let builder = || builder(dir.path(), level_of(version), true).listener(heard.clone());
        filled(builder(), &mut model, &mut rng).close().unwrap();
        for turn in 0..3 {
            heard.take();
            let db = builder().open().unwrap();
            assert!(holds(&db, &model), "{} turn {turn}", version.name());
            for _ in 0..20 {
                round(&db, &mut model, &mut rng);
            }
            let parts =
                |event: &CompactionEvent| event.reason == "space-amplification" && event.input_bytes <= MOST;
            assert!(heard.take().iter().any(parts), "{} turn {turn}", version.name());
            db.close().unwrap();
            judge
                .open(dir.path(), Opening::Existing, &options(true))
                .unwrap_or_else(|e| panic!("{}: {e}", version.name()));
            judge.verify().unwrap();
            let family = || "default".to_owned();
            for n in 0..6 {
                let (key, value) = (format!("key{:05}", 700 * n + turn).into_bytes(), rng.bytes(30_000));
                let put = Change::Put { family: family(), key: key.clone(), value: value.clone() };
                judge.write(&[put], false).unwrap();
                judge.apply(&[Op::Flush { family: family() }]).unwrap();
                model.insert(key, value);
            }
            if turn == 1 {
                judge.apply(&[Op::Compact { family: family() }]).unwrap();
            }
            let theirs = judge.dump("default").unwrap();
            let ours: Vec<_> = model.clone().into_iter().collect();
            assert!(theirs == ours, "{} turn {turn}", version.name());
            judge.close().unwrap();
        }
    }
}
