//! The workloads, each in a child process: `rel child hostile ROW CAP quick|full DIR`.

use super::families::{self, Cost, since, timed};
use super::gauge::{Gauges, memtables, resident};
use super::mixed::{self, Mixed};
use ashlar_testkit::Rng;
use ashlardb::prelude::*;
use ashlardb::{Builder, BusyKind, Cursor, ErrorKind, FamilyBuilder, Resources, StringAppend};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Bytes of data of a row: of a full run, and of a quick one.
const FULL: usize = 200 << 20;
const QUICK: usize = 48 << 20;

/// A workload at work.
struct Work<'a> {
    dir: &'a Path,
    cap: u64,
    quick: bool,
    /// How long the row works that is given a time.
    time: Duration,
    gauges: &'a Gauges,
    rng: Rng,
}

type Done = Result<(), String>;

fn text(e: ashlardb::Error) -> String {
    e.to_string()
}

/// The role of a child: one row under one cap.
///
/// # Errors
/// What failed, or that there is no such row.
pub fn play(words: &[&str]) -> Done {
    let [row, cap, length, dir] = words else { return Err(format!("no such role: {words:?}")) };
    let gauges = Gauges::new();
    let cap = cap.parse().map_err(|_| format!("{cap} is no number of bytes"))?;
    // The default cap, as an open with these resources has it.
    let in_force = Resources::new(cap).memory() as u64;
    let (quick, seconds) = match *length {
        "quick" => (true, 3),
        "full" => (false, mixed::LONG / 1000 + 10),
        number => (false, number.parse().map_err(|_| format!("{number} is no number of seconds"))?),
    };
    let time = Duration::from_secs(seconds);
    let mut work = Work { dir: Path::new(dir), cap, quick, time, gauges: &gauges, rng: Rng::new(7) };
    let two = if *row == "two-databases" { 2 } else { 1 };
    gauges.around(in_force * two, || work.row(row))
}

impl Work<'_> {
    fn row(&mut self, row: &str) -> Done {
        match row {
            "values-1k" => self.values(1000, 0, 0),
            "values-1k-16-cursors" => self.values(1000, 16, 0),
            "values-1k-64-cursors" => self.values(1000, 64, 0),
            "values-100k" => self.values(100_000, 0, 0),
            "values-100k-16-cursors" => self.values(100_000, 16, 0),
            "values-100k-64-cursors" => self.values(100_000, 64, 0),
            "values-1m" => self.values(1_000_000, 0, 0),
            "values-1m-16-cursors" => self.values(1_000_000, 16, 0),
            "values-1m-64-cursors" => self.values(1_000_000, 64, 0),
            "blobs-100k-64-cursors" => self.values(100_000, 64, 1000),
            "blobs-1m-64-cursors" => self.values(1_000_000, 64, 1000),
            "batches-100k" => self.batches(100_000),
            "batches-100b" => self.batches(100),
            "multi-get-10k" => self.multi_get(),
            "merges-1-key" => self.merges(1, 100),
            "merges-1000-keys" => self.merges(1000, 100),
            "merges-10-keys-1k" => self.merges(10, 1000),
            "range-deletions" => self.range_deletions(),
            "families-100" => self.families(100),
            "families-300" => self.families(300),
            "families-1000" => self.families(1000),
            "families-10000" => self.families(10_000),
            "snapshots-200" => self.snapshots(),
            "compaction" => self.compaction(),
            "index-17m" => self.index(5_000_000),
            "index-40m" => self.index(12_000_000),
            "long-keys" => self.long_keys(),
            "reopen-after-kill" => self.reopen(),
            "two-databases" => self.two(),
            mixed::NAME => self.mixed(),
            other => Err(format!("no such row: {other}")),
        }
    }

    fn scaled(&self, quick: usize, full: usize) -> usize {
        if self.quick { quick } else { full }
    }

    fn open_at(&self, name: &str, blobs: u64) -> Result<Db, String> {
        let builder = Db::builder(self.dir.join(name)).memory(self.cap);
        let family = |f: FamilyBuilder| f.merge_operator(Arc::new(StringAppend::new(",")));
        let builder = builder.default_family(|f| match blobs {
            0 => family(f),
            least => family(f).blob_files(least),
        });
        let db = builder.open().map_err(text)?;
        self.gauges.opened(&db);
        Ok(db)
    }

    fn open(&self) -> Result<Db, String> {
        self.open_at("db", 0)
    }

    /// A write may be refused for want of memory, if readers hold it.
    fn accept(&self, db: &Db, outcome: ashlardb::Result<()>) -> Done {
        match outcome {
            Err(e) if e.kind() == ErrorKind::Busy(BusyKind::Memory) => {
                self.gauges.refused(db, &e);
                Ok(())
            }
            other => other.map_err(text),
        }
    }

    fn put(&mut self, db: &Db, key: usize, value: &mut [u8]) -> Done {
        fill(&mut self.rng, value);
        self.accept(db, db.put(name(key), &*value))
    }

    fn values(&mut self, bytes: usize, cursors: usize, blobs: u64) -> Done {
        let db = self.open_at("db", blobs)?;
        if bytes as u64 * 20 > db.memory_report().cap {
            self.gauges.has_large_values();
        }
        let keys = self.scaled(QUICK.max(bytes * 64), FULL) / bytes;
        let mut value = vec![0; bytes];
        let step = (keys * 5 / 8) | 1;
        (0..keys).try_for_each(|i| self.put(&db, i * step % keys, &mut value))?;
        let mut open = standing(&db, cursors, keys)?;
        for _ in 0..keys {
            let key = self.rng.below(keys);
            self.put(&db, key, &mut value)?;
        }
        // First those that stood meanwhile, then new ones.
        for _ in 0..2 {
            for _ in 0..(keys / cursors.max(1)).min(500) {
                for cursor in &mut open {
                    cursor.next().map_err(text)?;
                }
            }
            open.clear();
            open = standing(&db, cursors, keys)?;
        }
        drop(open);
        self.end(&db)
    }

    fn end(&self, db: &Db) -> Done {
        db.close().map_err(text)?;
        self.gauges.closed();
        Ok(())
    }

    fn batches(&mut self, bytes: usize) -> Done {
        let db = self.open()?;
        let each = (64 << 20) / bytes;
        self.gauges.has_large_batches();
        let mut value = vec![0; bytes];
        for round in 0..self.scaled(2, 5) {
            let batch = WriteBatch::new();
            for i in 0..each {
                fill(&mut self.rng, &mut value);
                batch.put(name(round * each + i), &value).map_err(text)?;
                self.gauges.holds(batch.byte_len());
            }
            self.accept(&db, db.write(&batch))?;
            drop(batch);
            self.gauges.holds(0);
        }
        // At rest the memtable of the last batch is gone.
        db.wait_for_background().map_err(text)?;
        let report = db.memory_report();
        if memtables(&report) > report.cap / 4 {
            return Err(format!("after the last batch: {report}"));
        }
        self.end(&db)
    }

    fn multi_get(&mut self) -> Done {
        let db = self.open()?;
        let keys = self.scaled(2000, 20_000);
        let mut value = vec![0; 10_000];
        (0..keys).try_for_each(|key| self.put(&db, key, &mut value))?;
        let answer = db.multi_get((0..keys / 2).map(name)).map_err(text)?;
        if answer.iter().any(Option::is_none) {
            return Err("a value is missing".to_owned());
        }
        drop(answer);
        self.end(&db)
    }

    fn merges(&mut self, keys: usize, bytes: usize) -> Done {
        let db = self.open()?;
        let mut operand = vec![0; bytes];
        let count = self.scaled(40_000, 100_000);
        for i in 0..count {
            fill(&mut self.rng, &mut operand);
            self.accept(&db, db.merge(name(i % keys), &operand))?;
        }
        db.compact().map_err(text)?;
        // The value is the caller's, with a comma behind each operand.
        self.gauges.holds(count / keys * (bytes + 1));
        let value = db.get(name(0)).map_err(text)?;
        if value.is_none_or(|value| value.len() < count / keys * bytes) {
            return Err("operands are missing".to_owned());
        }
        self.gauges.holds(0);
        self.end(&db)
    }

    fn range_deletions(&mut self) -> Done {
        let db = self.open()?;
        let count = self.scaled(20_000, 100_000);
        for i in 0..count {
            let from = self.rng.below(1 << 30);
            self.accept(&db, db.delete_range(name(from), name(from + 1 + i % 1000)))?;
        }
        db.get(name(5)).map_err(text)?;
        db.flush().map_err(text)?;
        db.get(name(5)).map_err(text)?;
        db.compact().map_err(text)?;
        self.end(&db)
    }

    fn families(&mut self, count: usize) -> Done {
        let mut cost = Cost::default();
        let anonymous = || resident("self").map_or(0, |(_, anon)| anon);
        let names: Vec<String> = (0..count).map(family_name).collect();
        let together = count > families::ONE_BY_ONE as usize;
        let opened = if together { None } else { Some(self.open()?) };
        let (before, began) = (anonymous(), Instant::now());
        let db = match opened {
            Some(db) => db,
            None => {
                let builder = Db::builder(self.dir.join("db")).memory(self.cap);
                let builder = names.iter().fold(builder, |builder, name| builder.family(name, |f| f));
                let db = builder.open().map_err(text)?;
                self.gauges.opened(&db);
                db
            }
        };
        let family = |name: &String| if together { db.family(name) } else { db.create_family(name) };
        let families: Result<Vec<_>, _> = names.iter().map(family).collect();
        let mut families = families.map_err(text)?;
        self.gauges.each_took(began.elapsed(), count);
        cost.create = since(began) / count as u64;
        cost.idle = anonymous().saturating_sub(before) / count as u64;
        let began = Instant::now();
        families.push(db.create_family(&family_name(count)).map_err(text)?);
        cost.one_more = since(began);
        let mut value = vec![0; families::VALUE as usize];
        for round in 0..self.scaled(10, 20_000 / count + 10) {
            for family in &families {
                fill(&mut self.rng, &mut value);
                self.accept(&db, family.put(name(round), &value))?;
            }
        }
        let began = Instant::now();
        for family in &families {
            for key in 0..families::TURN {
                fill(&mut self.rng, &mut value);
                self.accept(&db, family.put(name(key as usize), &value))?;
            }
        }
        cost.put = since(began) / (u64::from(families::TURN) * families.len() as u64);
        drop(families);
        cost.close = timed(|| self.end(&db))?;
        drop(db);
        let began = Instant::now();
        let db = self.open()?;
        cost.open = since(began);
        println!("{}", cost.line());
        self.end(&db)
    }

    fn snapshots(&mut self) -> Done {
        let db = self.open()?;
        let mut value = vec![0; 100];
        let mut kept = Vec::new();
        for i in 0..self.scaled(20_000, 200_000) {
            let key = self.rng.below(10_000);
            self.put(&db, key, &mut value)?;
            if i % self.scaled(100, 1000) == 0 {
                kept.push(db.snapshot().map_err(text)?);
            }
        }
        db.compact().map_err(text)?;
        drop(kept);
        self.end(&db)
    }

    fn compaction(&mut self) -> Done {
        let db = self.open()?;
        let keys = self.scaled(QUICK, 2 * FULL) / 1000;
        let mut value = vec![0; 1000];
        let step = (keys * 5 / 8) | 1;
        (0..keys).try_for_each(|i| self.put(&db, i * step % keys, &mut value))?;
        db.compact().map_err(text)?;
        self.end(&db)
    }

    /// Small values, so that the files have 17 or 40 MiB of indexes and filters. The figure is the time of a random read.
    fn index(&mut self, full: usize) -> Done {
        let keys = self.scaled(full / 10, full);
        let db = self.open()?;
        let mut value = vec![0; 100];
        (0..keys).try_for_each(|key| self.put(&db, key, &mut value))?;
        db.compact().map_err(text)?;
        let reads = self.scaled(2000, 20_000);
        let began = Instant::now();
        for _ in 0..reads {
            db.get(name(self.rng.below(keys))).map_err(text)?;
        }
        self.gauges.each_took(began.elapsed(), reads);
        self.end(&db)
    }

    /// Keys of up to 30 KB that begin alike, so that indexes are as large as the data.
    fn long_keys(&mut self) -> Done {
        let db = self.open()?;
        let count = self.scaled(QUICK, FULL) / 16_000;
        self.gauges.has_long_keys();
        let long = |at: usize| {
            let mut rng = Rng::new(at as u64);
            let mut key = vec![b'7'; 1000 + rng.below(30_000)];
            key.extend(name(rng.below(1 << 30)));
            key
        };
        (0..count).try_for_each(|at| self.accept(&db, db.put(long(at), b"v")))?;
        for _ in 0..count / 10 {
            let key = long(self.rng.below(count));
            if db.get(key).map_err(text)?.is_none() {
                return Err("a key is missing".to_owned());
            }
        }
        db.compact().map_err(text)?;
        self.end(&db)
    }

    /// A full log is replayed: the open before it ends without a close.
    fn reopen(&mut self) -> Done {
        let log = self.scaled(QUICK, FULL) as u64;
        let logs = |b: Builder| {
            b.options(&format!("max_total_wal_size={log}"))
                .default_family(|f| f.tune(|f| f.write_buffer_bytes = 2 << 30))
        };
        let roomy = logs(Db::builder(self.dir.join("db")).memory(4 * log + (256 << 20))).open();
        let db = roomy.map_err(text)?;
        let mut value = vec![0; 1000];
        for key in 0..usize::try_from(log).unwrap_or(0) / 1100 {
            fill(&mut self.rng, &mut value);
            db.put(name(key), &value).map_err(text)?;
        }
        db.sync().map_err(text)?;
        let copy = self.dir.join("killed");
        // No file may go while it is copied.
        db.pause_background_work().map_err(text)?;
        copy_files(&self.dir.join("db"), &copy).map_err(|e| e.to_string())?;
        drop(db);
        self.gauges.restart();
        let began = Instant::now();
        let db = logs(Db::builder(copy).memory(self.cap)).open().map_err(text)?;
        self.gauges.opened(&db);
        self.gauges.each_took(began.elapsed(), 1);
        self.end(&db)
    }

    fn mixed(&mut self) -> Done {
        let db = self.open()?;
        let keys = self.scaled(QUICK, FULL) / 1000;
        let mut value = vec![0; 1000];
        (0..keys).try_for_each(|key| self.put(&db, key, &mut value))?;
        let mut rng = Rng::new(9);
        let accept = |outcome| self.accept(&db, outcome);
        let mixed = Mixed { db: &db, keys, time: self.time, accept: &accept };
        mixed.run(name, |below| rng.below(below))?;
        self.end(&db)
    }

    fn two(&mut self) -> Done {
        let (a, b) = (self.open_at("a", 0)?, self.open_at("b", 0)?);
        let keys = self.scaled(QUICK, FULL) / 1000;
        let mut value = vec![0; 1000];
        for i in 0..keys {
            self.put(&a, i, &mut value)?;
            self.put(&b, keys - i, &mut value)?;
        }
        for db in [&a, &b] {
            for entry in db.scan(..) {
                entry.map_err(text)?;
            }
        }
        a.close().map_err(text)?;
        self.end(&b)
    }
}

/// Bytes that no codec shortens.
fn fill(rng: &mut Rng, value: &mut [u8]) {
    for piece in value.chunks_mut(8) {
        piece.copy_from_slice(&rng.next_u64().to_le_bytes()[..piece.len()]);
    }
}

fn family_name(n: usize) -> String {
    format!("family {n}")
}

/// A key of 16 bytes.
fn name(key: usize) -> [u8; 16] {
    let mut name = *b"a hostile key 00";
    name[8..].copy_from_slice(&(key as u64).to_be_bytes());
    name
}

/// Cursors that stand at places of the whole range.
fn standing(db: &Db, count: usize, keys: usize) -> Result<Vec<Cursor>, String> {
    let at = |n: usize| {
        let mut cursor = db.scan(..).cursor()?;
        cursor.seek(name(keys / count * n))?;
        Ok(cursor)
    };
    let all: ashlardb::Result<Vec<_>> = (0..count).map(at).collect();
    all.map_err(text)
}

fn copy_files(from: &Path, into: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(into)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        if entry.file_name() != "LOCK" {
            std::fs::copy(entry.path(), into.join(entry.file_name()))?;
        }
    }
    Ok(())
}
