//! What goes through the whole engine: puts without a log, reads in and out of the cache, cursors, compactions.
//!
//! Files lie in memory, so that no device is measured, except where a read of one is the point.

use crate::case::{Bench, Place, VALUE, keys, random, values};
use ashlar_bench::{Random, Values};
use ashlar_env::Env;
use ashlardb::{Compression, Cursor, Db, Read, UInt64Add, Write, WriteOptions};
use std::hint::black_box;
use std::path::PathBuf;
use std::sync::Arc;

/// Number of runs that cursors and compactions merge.
const RUNS: u64 = 3;

/// How a database is opened.
#[derive(Clone)]
struct Form {
    env: Env,
    dir: PathBuf,
    codec: Compression,
    cache: u64,
}

impl Form {
    /// Files in memory, and a cache that holds everything.
    fn in_memory() -> Form {
        Form { env: Env::mem(), dir: "/db".into(), codec: Compression::None, cache: 256 << 20 }
    }

    /// Nothing is flushed or compacted but on request.
    fn open(&self) -> Db {
        let (codec, cache) = (self.codec, self.cache);
        let builder = Db::builder(&self.dir).env(self.env.clone()).fresh_options().tune(move |db, family| {
            db.block_cache_bytes = cache;
            family.write_buffer_bytes = 256 << 20;
            family.table.compression = codec;
            family.compaction.automatic = false;
            family.merge_operator = Some(Arc::new(UInt64Add));
        });
        builder.open().unwrap()
    }

    /// A database of `count` keys, in so many runs.
    fn filled(&self, count: u64, runs: u64) -> Db {
        let db = self.open();
        let (mut keys, mut values) = (keys(), values());
        let writer = db.writing(WriteOptions::new().disable_wal(true));
        for run in 0..runs {
            for number in (run..count).step_by(usize::try_from(runs).unwrap()) {
                writer.put(keys.key(number), values.next(VALUE)).unwrap();
            }
            db.flush().unwrap();
        }
        db
    }
}

/// Puts that reach the memtable and nothing else.
struct Puts {
    db: Db,
    values: Values,
    next: u64,
    count: u64,
}

/// Puts of ascending keys without the log.
pub fn put_without_log(place: &Place<'_>) -> Box<dyn Bench> {
    Box::new(Puts {
        db: Form::in_memory().open(),
        values: values(),
        next: 0,
        count: place.size(50_000, 2000),
    })
}

impl Bench for Puts {
    fn fresh(&mut self) {
        self.db.flush().unwrap();
    }

    fn round(&mut self) -> u64 {
        let mut keys = keys();
        let writer = self.db.writing(WriteOptions::new().disable_wal(true));
        for _ in 0..self.count {
            writer.put(keys.key(self.next), self.values.next(VALUE)).unwrap();
            self.next += 1;
        }
        self.count
    }
}

/// Gets of drawn keys.
struct Gets {
    db: Db,
    keys: u64,
    random: Random,
    gets: u64,
}

impl Gets {
    fn new(db: Db, keys: u64, gets: u64) -> Box<Gets> {
        let mut made = Gets { db, keys, random: random(6), gets };
        // What the cache holds, it holds from here on.
        for number in 0..keys {
            made.db.get(super::case::keys().key(number)).unwrap().unwrap();
        }
        made.round();
        Box::new(made)
    }
}

/// In a table whose blocks are all in the cache.
pub fn get_cached(place: &Place<'_>) -> Box<dyn Bench> {
    let count = place.size(100_000, 5000);
    Gets::new(Form::in_memory().filled(count, 1), count, place.size(20_000, 2000))
}

/// In tables of which the cache holds nearly nothing and the operating system everything.
pub fn get_from_page_cache(place: &Place<'_>) -> Box<dyn Bench> {
    let form = Form {
        env: place.env.clone(),
        dir: place.dir.join("page-cache"),
        cache: 1 << 20,
        ..Form::in_memory()
    };
    let count = place.size(300_000, 20_000);
    Gets::new(form.filled(count, 1), count, place.size(5000, 1000))
}

impl Bench for Gets {
    fn round(&mut self) -> u64 {
        let mut keys = keys();
        for _ in 0..self.gets {
            let found = self.db.get(keys.key(self.random.below(self.keys))).unwrap();
            assert_eq!(black_box(found).unwrap().len(), VALUE);
        }
        self.gets
    }
}

/// Batches of drawn keys.
struct MultiGets(Box<Gets>);

/// Per key of a batch, in a table whose blocks are all in the cache.
pub fn multi_get(place: &Place<'_>) -> Box<dyn Bench> {
    let count = place.size(100_000, 5000);
    Box::new(MultiGets(Gets::new(Form::in_memory().filled(count, 1), count, place.size(20_000, 2000))))
}

impl Bench for MultiGets {
    fn round(&mut self) -> u64 {
        const BATCH: u64 = 64;
        let mut maker = keys();
        let batches = self.0.gets / BATCH;
        for _ in 0..batches {
            let drawn = (0..BATCH).map(|_| maker.key(self.0.random.below(self.0.keys)).to_vec());
            let found = self.0.db.multi_get(drawn).unwrap();
            assert!(black_box(found).iter().all(Option::is_some));
        }
        batches * BATCH
    }
}

/// Steps of a cursor over one run, all of it in the cache.
struct Steps {
    db: Db,
    count: u64,
    backward: bool,
}

fn steps(place: &Place<'_>, backward: bool) -> Box<dyn Bench> {
    let count = place.size(100_000, 5000);
    let mut made = Steps { db: Form::in_memory().filled(count, 1), count, backward };
    made.round();
    Box::new(made)
}

/// Forward.
pub fn next(place: &Place<'_>) -> Box<dyn Bench> {
    steps(place, false)
}

/// Backward.
pub fn prev(place: &Place<'_>) -> Box<dyn Bench> {
    steps(place, true)
}

impl Bench for Steps {
    fn round(&mut self) -> u64 {
        let mut cursor = self.db.scan(..).cursor().unwrap();
        let mut seen =
            u64::from(if self.backward { cursor.last() } else { cursor.first() }.unwrap().is_some());
        while step(&mut cursor, self.backward) {
            seen += 1;
        }
        assert_eq!(seen, self.count);
        seen
    }
}

#[inline]
fn step(cursor: &mut Cursor, backward: bool) -> bool {
    black_box(if backward { cursor.prev() } else { cursor.next() }.unwrap()).is_some()
}

/// Seeks, each by a cursor of its own.
struct Seeks {
    db: Db,
    keys: u64,
    random: Random,
}

/// Over three runs, all of them in the cache.
pub fn seek(place: &Place<'_>) -> Box<dyn Bench> {
    let keys = place.size(100_000, 6000);
    let mut made = Seeks { db: Form::in_memory().filled(keys, RUNS), keys, random: random(7) };
    // What the cache holds, it holds from here on.
    let mut cursor = made.db.scan(..).cursor().unwrap();
    cursor.first().unwrap();
    while step(&mut cursor, false) {}
    made.round();
    Box::new(made)
}

impl Bench for Seeks {
    fn round(&mut self) -> u64 {
        const SEEKS: u64 = 2000;
        let mut maker = keys();
        for _ in 0..SEEKS {
            let key = maker.key(self.random.below(self.keys));
            let mut cursor = self.db.scan(..).cursor().unwrap();
            assert_eq!(cursor.seek(key).unwrap().unwrap().0, key);
        }
        SEEKS
    }
}

/// Steps from the first key to the last, past deleted keys.
struct Gone {
    db: Db,
    deleted: u64,
}

/// Deletes all keys but the first and the last. `flushed`: the deletions are in a table.
fn gone(db: Db, deleted: u64, flushed: bool) -> Box<dyn Bench> {
    let mut keys = keys();
    let writer = db.writing(WriteOptions::new().disable_wal(true));
    for number in [0, deleted + 1] {
        writer.put(keys.key(number), b"").unwrap();
    }
    for number in 1..=deleted {
        writer.delete(keys.key(number)).unwrap();
    }
    if flushed {
        db.flush().unwrap();
    }
    let mut made = Gone { db, deleted };
    made.round();
    Box::new(made)
}

/// In a table, without older entries.
pub fn pass_deleted(place: &Place<'_>) -> Box<dyn Bench> {
    gone(Form::in_memory().open(), place.size(100_000, 5000), true)
}

/// In the memtable, with the values in a table whose blocks are all in the cache.
pub fn pass_deleted_values(place: &Place<'_>) -> Box<dyn Bench> {
    let deleted = place.size(100_000, 5000);
    gone(Form::in_memory().filled(deleted + 1, 1), deleted, false)
}

impl Bench for Gone {
    fn round(&mut self) -> u64 {
        let mut cursor = self.db.scan(..).cursor().unwrap();
        cursor.first().unwrap().unwrap();
        assert!(step(&mut cursor, false));
        assert!(!step(&mut cursor, false));
        self.deleted
    }
}

/// Gets of counters.
struct Counters {
    db: Db,
    counters: u64,
}

/// A table has the sum of the older operands, and the memtable 50 newer ones.
pub fn get_counter(place: &Place<'_>) -> Box<dyn Bench> {
    const ROUNDS: u64 = 100;
    let counters = place.size(2000, 100);
    let db = Form::in_memory().open();
    let mut keys = keys();
    let writer = db.writing(WriteOptions::new().disable_wal(true));
    for round in 0..ROUNDS {
        if round == ROUNDS / 2 {
            db.flush().unwrap();
            db.compact().unwrap();
        }
        for number in 0..counters {
            writer.merge(keys.key(number), round.to_le_bytes()).unwrap();
        }
    }
    Box::new(Counters { db, counters })
}

impl Bench for Counters {
    fn round(&mut self) -> u64 {
        let mut keys = keys();
        for number in 0..self.counters {
            let sum = self.db.get(keys.key(number)).unwrap().unwrap();
            assert_eq!(black_box(&sum)[..], 4950u64.to_le_bytes());
        }
        self.counters
    }
}

/// A compaction of three runs into one, per entry.
struct Rewrite {
    form: Form,
    db: Option<Db>,
    count: u64,
}

fn rewrite(place: &Place<'_>, codec: Compression) -> Box<dyn Bench> {
    let form = Form { codec, ..Form::in_memory() };
    Box::new(Rewrite { form, db: None, count: place.size(150_000, 6000) })
}

/// Blocks stay as they are.
pub fn rewrite_plain(place: &Place<'_>) -> Box<dyn Bench> {
    rewrite(place, Compression::None)
}

/// Blocks are compressed by LZ4.
pub fn rewrite_lz4(place: &Place<'_>) -> Box<dyn Bench> {
    rewrite(place, Compression::Lz4)
}

impl Bench for Rewrite {
    fn fresh(&mut self) {
        if let Some(old) = self.db.take() {
            old.close().unwrap();
        }
        self.form.env = Env::mem();
        self.db = Some(self.form.filled(self.count, RUNS));
    }

    fn round(&mut self) -> u64 {
        self.db.as_ref().unwrap().compact().unwrap();
        self.count
    }
}
