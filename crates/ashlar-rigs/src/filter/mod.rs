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
//! In some compactions the filter itself takes a snapshot, in the middle, and looks at it.
//! Nothing compacts on its own, so the model knows which compaction has read what.

mod model;

use ashlar_testkit::Rng;
use ashlar_testkit::suite::{Budget, Report, Watchdog, guarded};
use ashlardb::prelude::*;
use ashlardb::{
    CompactRangeOptions, CompactionFilter, Decision, Env, FamilyBuilder, Level, Read, Result, StringAppend,
};
use model::{Keys, Seen, difference, verdict};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Cases of a quick run.
const CASES: u64 = 24;

/// Case after case.
pub fn run(budget: &Budget) -> Report {
    let mut report = Report::new("filter", budget);
    let watchdog = Watchdog::new("filter", Duration::from_secs(120));
    budget.each_seed(CASES, &mut report, |seed, report| {
        let _case = watchdog.begins(seed);
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
#[derive(Debug, Default)]
struct Marked(Mutex<Taking>);

/// The snapshot that a filter takes in the middle of a compaction.
#[derive(Debug, Default)]
struct Taking {
    /// The database, and the number of values before the snapshot.
    armed: Option<(Db, usize)>,
    /// The snapshot, and what each family showed at once.
    taken: Option<(Snapshot, Vec<Seen>)>,
}

impl Marked {
    fn taking(&self) -> MutexGuard<'_, Taking> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CompactionFilter for Marked {
    fn name(&self) -> &str {
        "rel.Marked"
    }
    fn filter(&self, _: &[u8], value: &[u8]) -> Decision {
        let mut taking = self.taking();
        match &mut taking.armed {
            Some((db, 0)) => {
                let taken = look(db).ok();
                *taking = Taking { armed: None, taken };
            }
            Some((_, left)) => *left -= 1,
            None => {}
        }
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
    filter: Arc<Marked>,
    families: Vec<(Family, Keys)>,
    held: Vec<Held>,
    rng: Rng,
}

fn text<T>(answer: Result<T>) -> std::result::Result<T, String> {
    answer.map_err(|e| e.to_string())
}

/// A snapshot, and what each family shows in it.
fn look(db: &Db) -> std::result::Result<(Snapshot, Vec<Seen>), String> {
    let snapshot = text(db.snapshot())?;
    let seen = db.families().into_iter().map(|family| entries(&snapshot.family(&family)));
    let seen = seen.collect::<std::result::Result<_, String>>()?;
    Ok((snapshot, seen))
}

fn entries(read: &impl Read) -> std::result::Result<Seen, String> {
    read.scan(..).map(text).collect()
}

/// The case of a seed.
fn history(seed: u64, steps: usize, report: &mut Report) -> std::result::Result<(), String> {
    let filter = Arc::new(Marked::default());
    let given = |f: FamilyBuilder| {
        let filter: Arc<dyn CompactionFilter> = filter.clone();
        f.compaction_filter(filter).merge_operator(Arc::new(StringAppend::new(",")))
    };
    let builder = Db::builder("/db").env(Env::mem());
    let builder = builder.options("disable_auto_compactions=true;target_file_size_base=65536");
    let db = text(builder.default_family(given).family("one", |f| given(f).blob_files(60)).open())?;
    let families = db.families().into_iter().map(|family| (family, Keys::default())).collect();
    let mut world = World { db, filter, families, held: Vec::new(), rng: Rng::new(seed) };
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
                if self.held.len() >= 3 || !self.rng.percent(30) {
                    return self.compact(at);
                }
                let last = self.families.iter().map(|(_, keys)| keys.last).collect();
                self.filter.taking().armed = Some((self.db.clone(), self.rng.below(60)));
                let done = self.compact_some(at);
                if let Some((snapshot, seen)) = std::mem::take(&mut *self.filter.taking()).taken {
                    report.count("snapshots inside", 1);
                    self.held.push(Held { snapshot, last, seen });
                }
                done
            }
            2..=4 => text(self.families[at].0.flush()).map(drop),
            5 if self.held.len() < 3 => {
                let held = self.hold()?;
                self.held.push(held);
                Ok(())
            }
            6 if !self.held.is_empty() => {
                self.held.remove(self.rng.below(self.held.len()));
                Ok(())
            }
            _ => self.write(at),
        }
    }

    /// A snapshot, with what it shows: the same as an earlier one at the same write, or else what the model has.
    fn hold(&self) -> std::result::Result<Held, String> {
        let snapshot = text(self.db.snapshot())?;
        let last = self.families.iter().map(|(_, keys)| keys.last).collect();
        let twin = self.held.iter().find(|held| held.snapshot.sequence() == snapshot.sequence());
        let seen = match twin {
            Some(twin) => twin.seen.clone(),
            None => self.families.iter().map(|(_, keys)| keys.seen()).collect(),
        };
        Ok(Held { snapshot, last, seen })
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

    fn compact(&mut self, at: usize) -> std::result::Result<(), String> {
        if self.rng.percent(60) { self.compact_all(at) } else { self.compact_some(at) }
    }

    /// A compaction of a range of keys, or of the oldest table of level 0.
    fn compact_some(&mut self, at: usize) -> std::result::Result<(), String> {
        let newest = self.newest_snapshot(at);
        let Some((family, keys)) = self.families.get_mut(at) else { return Ok(()) };
        if self.rng.percent(50) {
            let (from, keys) = (self.rng.below(120), self.rng.below(100));
            let range = format!("k{from:03}")..format!("k{:03}", from + keys);
            let options = CompactRangeOptions::new().rewrite_deepest(self.rng.percent(50));
            text(family.compact_range(range, options))?;
        } else {
            text(family.flush())?;
            let files = text(family.live_files())?;
            if let Some(oldest) = files.iter().rfind(|file| file.level == Level::ZERO) {
                let output = Level([1, 6][self.rng.below(2)]);
                text(family.compact_files(&[oldest.number], output))?;
            }
        }
        keys.compacted_some(newest, &entries(family)?)
    }

    fn look_at_snapshots(&self) -> std::result::Result<(), String> {
        for held in &self.held {
            for ((family, _), seen) in self.families.iter().zip(&held.seen) {
                let found = entries(&held.snapshot.family(family))?;
                if let Some(difference) = difference(&found, seen) {
                    return Err(format!("a snapshot of {} has changed: {difference}", family.name()));
                }
            }
        }
        Ok(())
    }
}
