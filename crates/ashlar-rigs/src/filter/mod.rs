//! Compaction filters beside a model, in random histories of writes, snapshots, flushes and requested compactions.
//!
//! The filter is a pure function of a value: it removes what begins with `x`, and turns a leading `c` into `d`. The model of
//! `model` applies that function where the engine promises it, and only there:
//!
//! 1. After a compaction of everything, each value that no snapshot sees is what the filter makes of it.
//! 2. A snapshot shows at every moment what it showed at first.
//! 3. After a compaction of some tables, a value is as it was, or what the filter makes of a part that the compaction read. A
//!    version that was overwritten or deleted never comes back.
//!
//! Nothing compacts on its own: a snapshot that is taken during a compaction has no promise.

mod model;

use ashlar_testkit::Rng;
use ashlar_testkit::suite::{Budget, Report, Watchdog, guarded};
use ashlardb::prelude::*;
use ashlardb::{
    CompactRangeOptions, CompactionFilter, Decision, Env, FamilyBuilder, Level, Read, Result, StringAppend,
};
use model::{Keys, Seen, verdict};
use std::sync::Arc;
use std::time::Duration;

/// Cases of a quick run.
const CASES: u64 = 24;

/// Case after case.
pub fn run(budget: &Budget) -> Report {
    let mut report = Report::new("filter", budget);
    let watchdog = Watchdog::new("filter", Duration::from_secs(120));
    budget.each_seed(CASES, &mut report, |seed, report| {
        watchdog.begins(seed);
        let done = guarded(|| history(seed, 900, report));
        report.count("cases", 1);
        if let Err(what) = done {
            report.fail(seed.to_string(), what);
        }
    });
    drop(watchdog);
    report.done(budget)
}

/// [`verdict`] as a filter.
#[derive(Debug)]
struct Marked;

impl CompactionFilter for Marked {
    fn name(&self) -> &str {
        "rel.Marked"
    }
    fn filter(&self, _: &[u8], value: &[u8]) -> Decision {
        verdict(value)
    }
    fn filters_entities(&self) -> bool {
        true
    }
    fn filter_entity(&self, _: &[u8], columns: &[(&[u8], &[u8])]) -> Decision {
        columns.iter().find(|(name, _)| name.is_empty()).map_or(Decision::Keep, |(_, value)| verdict(value))
    }
}

/// A snapshot, the last write of each family that it sees, and what it shows.
struct Held {
    snapshot: Snapshot,
    last: Vec<u64>,
    seen: Vec<Seen>,
}

struct World {
    db: Db,
    families: Vec<(Family, Keys)>,
    held: Vec<Held>,
    rng: Rng,
}

fn text<T>(answer: Result<T>) -> std::result::Result<T, String> {
    answer.map_err(|e| e.to_string())
}

fn entries(read: &impl Read) -> std::result::Result<Seen, String> {
    read.scan(..).map(text).collect()
}

/// The case of a seed.
fn history(seed: u64, steps: usize, report: &mut Report) -> std::result::Result<(), String> {
    let given = |f: FamilyBuilder| {
        f.compaction_filter(Arc::new(Marked)).merge_operator(Arc::new(StringAppend::new(",")))
    };
    let builder = Db::builder("/db").env(Env::mem());
    let builder = builder.options("disable_auto_compactions=true;target_file_size_base=65536");
    let db = text(builder.default_family(given).family("one", |f| given(f).blob_files(60)).open())?;
    let families = db.families().into_iter().map(|family| (family, Keys::default())).collect();
    let mut world = World { db, families, held: Vec::new(), rng: Rng::new(seed) };
    for step in 0..steps {
        world.step(report).map_err(|e| format!("step {step}: {e}"))?;
        if step % 25 == 0 {
            world.look_at_snapshots().map_err(|e| format!("step {step}: {e}"))?;
        }
    }
    world.look_at_snapshots()?;
    world.held.clear();
    (0..world.families.len()).try_for_each(|at| world.compact_all(at))
}

impl World {
    fn step(&mut self, report: &mut Report) -> std::result::Result<(), String> {
        let at = self.rng.below(self.families.len());
        match self.rng.below(100) {
            0..=1 => {
                report.count("compactions", 1);
                self.compact(at)
            }
            2..=4 => text(self.families[at].0.flush()).map(drop),
            5 if self.held.len() < 3 => {
                let last = self.families.iter().map(|(_, keys)| keys.last).collect();
                let seen = self.families.iter().map(|(_, keys)| keys.seen()).collect();
                self.held.push(Held { snapshot: text(self.db.snapshot())?, last, seen });
                Ok(())
            }
            6 if !self.held.is_empty() => {
                self.held.remove(self.rng.below(self.held.len()));
                Ok(())
            }
            _ => self.write(at),
        }
    }

    fn write(&mut self, at: usize) -> std::result::Result<(), String> {
        let rng = &mut self.rng;
        let Some((family, keys)) = self.families.get_mut(at) else { return Ok(()) };
        keys.last += 1;
        let (key, last) = (format!("k{:03}", rng.below(120)).into_bytes(), keys.last);
        let mark = ["x", "c", "k", "y"][rng.below(4)];
        let value = format!("{mark}{last}").repeat(if rng.percent(30) { 40 } else { 1 }).into_bytes();
        match rng.below(10) {
            0 => {
                text(family.delete(&key))?;
                keys.delete(&key);
            }
            1..=3 => {
                let operand = format!("m{last}").into_bytes();
                text(family.merge(&key, &operand))?;
                keys.merge(&key, operand);
            }
            4 => {
                text(family.put_entity(&key, &[("", &value[..]), ("other", b"1")]))?;
                keys.put(&key, value);
            }
            5 if rng.percent(20) => {
                let end = format!("k{:03}", rng.below(121)).into_bytes();
                if key < end {
                    text(family.delete_range(&key, &end))?;
                    keys.delete_range(key, end);
                }
            }
            _ => {
                text(family.put(&key, &value))?;
                keys.put(&key, value);
            }
        }
        Ok(())
    }

    fn newest_snapshot(&self, at: usize) -> u64 {
        self.held.last().map_or(0, |held| held.last[at])
    }

    fn compact_all(&mut self, at: usize) -> std::result::Result<(), String> {
        let newest = self.newest_snapshot(at);
        let Some((family, keys)) = self.families.get_mut(at) else { return Ok(()) };
        text(family.compact_range(.., CompactRangeOptions::default()))?;
        keys.compacted_all(newest, &entries(family)?)
    }

    /// A compaction of all tables, of a range of keys, or of the oldest table of level 0.
    fn compact(&mut self, at: usize) -> std::result::Result<(), String> {
        if self.rng.percent(60) {
            return self.compact_all(at);
        }
        let newest = self.newest_snapshot(at);
        let Some((family, keys)) = self.families.get_mut(at) else { return Ok(()) };
        if self.rng.percent(50) {
            let (from, keys) = (self.rng.below(120), self.rng.below(30));
            let range = format!("k{from:03}")..format!("k{:03}", from + keys);
            let options = CompactRangeOptions::new().rewrite_deepest(self.rng.percent(50));
            text(family.compact_range(range, options))?;
        } else {
            text(family.flush())?;
            let files = text(family.live_files())?;
            if let Some(oldest) = files.iter().rfind(|file| file.level == Level::ZERO) {
                let output = Level([1, 6][self.rng.below(2)]);
                text(family.compact_files(&[oldest.number], output, 0))?;
            }
        }
        keys.compacted_some(newest, &entries(family)?)
    }

    fn look_at_snapshots(&self) -> std::result::Result<(), String> {
        for held in &self.held {
            for ((family, _), seen) in self.families.iter().zip(&held.seen) {
                let found = entries(&held.snapshot.family(family))?;
                if found != *seen {
                    let name = family.name();
                    return Err(format!("a snapshot of {name} shows {found:?}, and showed {seen:?}"));
                }
            }
        }
        Ok(())
    }
}
