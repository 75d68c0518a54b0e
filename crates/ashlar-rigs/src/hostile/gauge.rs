//! The gauges of a child: its resident size, what it holds by itself, and what the database says at the peak.

use super::{FILES, MIB};
use ashlardb::{Db, MemoryClass};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

const EACH: Duration = Duration::from_millis(3);

/// What is sampled and counted while a workload runs. All counts are relaxed: the figures order nothing.
pub(super) struct Gauges {
    /// The databases to ask.
    open: Mutex<Vec<Db>>,
    /// Bytes that the workload holds by itself now.
    caller: AtomicU64,
    refused: AtomicU64,
    why: Mutex<String>,
    over: AtomicBool,
    has_large_batches: AtomicBool,
    peak: Mutex<Peak>,
    /// Nanoseconds of one operation, where the workload measures it.
    nanos: AtomicU64,
}

/// The largest samples.
#[derive(Clone, Debug, Default)]
struct Peak {
    rss: u64,
    /// The largest anonymous memory, and beside it what the caller had then and what the database said.
    anon: u64,
    caller: u64,
    named: u64,
    /// What readers and large batches hold.
    owned: u64,
    said: String,
}

/// Resident bytes of a process, `self` for this one, and the anonymous part of them.
pub(super) fn resident(process: &str) -> Option<(u64, u64)> {
    let text = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let of = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
    };
    Some((of("VmRSS:")?, of("RssAnon:")?))
}

impl Gauges {
    pub(super) fn new() -> Gauges {
        Gauges {
            open: Mutex::default(),
            caller: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            why: Mutex::default(),
            over: AtomicBool::new(false),
            has_large_batches: AtomicBool::new(false),
            peak: Mutex::default(),
            nanos: AtomicU64::new(0),
        }
    }

    /// Runs `work` beside the sampling, and prints the figures: `PEAK …`, `REFUSED …` and `ROW …`.
    ///
    /// # Errors
    /// Those of `work`.
    pub(super) fn around(&self, cap: u64, work: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
        let began = Instant::now();
        let done = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !self.over.load(Ordering::Relaxed) {
                    self.sample();
                    std::thread::sleep(EACH);
                }
            });
            let done = work();
            self.over.store(true, Ordering::Relaxed);
            done
        });
        let peak = self.peak.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let rest = resident("self").map_or(0, |(rss, _)| rss);
        println!("PEAK {}", peak.said);
        println!("REFUSED {}", self.why.lock().unwrap_or_else(PoisonError::into_inner));
        let nanos = match self.nanos.load(Ordering::Relaxed) {
            0 => String::new(),
            nanos => format!(" nanos={nanos}"),
        };
        println!(
            "ROW cap={cap} rss={} anon={} caller={} named={} owned={} rest={rest} refused={} millis={}{nanos}",
            peak.rss,
            peak.anon,
            peak.caller,
            peak.named,
            peak.owned,
            self.refused.load(Ordering::Relaxed),
            began.elapsed().as_millis(),
        );
        done
    }

    fn sample(&self) {
        let Some((rss, anon)) = resident("self") else { return };
        let caller = self.caller.load(Ordering::Relaxed);
        let mut peak = self.peak.lock().unwrap_or_else(PoisonError::into_inner);
        peak.rss = peak.rss.max(anon + rss.saturating_sub(anon).min(FILES));
        // The database is asked at each new peak that is larger by a little, since asking has a price.
        if anon < peak.anon + peak.anon / 64 {
            peak.anon = peak.anon.max(anon);
            return;
        }
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let (mut named, mut owned, mut said) = (0, 0, String::new());
        for db in &open {
            let now = db.memory_report();
            named += now.total();
            // A batch is in the WAL's buffer while it is logged, and in its memtable until that is flushed.
            let memtables = [MemoryClass::WritableMemtables, MemoryClass::ImmutableMemtables];
            let memtables: u64 = memtables.map(|class| now.of(class)).iter().sum();
            let of_batch = if self.has_large_batches.load(Ordering::Relaxed) {
                now.of(MemoryClass::Batches) + memtables.saturating_sub(now.cap / 4)
            } else {
                0
            };
            owned += now.held_by_readers() + of_batch;
            said += &format!("{now} ");
        }
        said += &format!("(anonymous {} MiB)", anon / MIB);
        (peak.anon, peak.caller, peak.named, peak.owned, peak.said) = (anon, caller, named, owned, said);
    }

    /// From now on asks `db` too.
    pub(super) fn opened(&self, db: &Db) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).push(db.clone());
    }

    /// Asks no database any more.
    pub(super) fn closed(&self) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Forgets all databases and the peak so far: what came before was a preparation.
    pub(super) fn restart(&self) {
        self.closed();
        *self.peak.lock().unwrap_or_else(PoisonError::into_inner) = Peak::default();
    }

    /// The workload holds so many bytes by itself.
    pub(super) fn holds(&self, bytes: usize) {
        self.caller.store(bytes as u64, Ordering::Relaxed);
    }

    /// From now on batches are larger than all memtables may be.
    pub(super) fn has_large_batches(&self) {
        self.has_large_batches.store(true, Ordering::Relaxed);
    }

    /// A write was refused for want of memory.
    pub(super) fn refused(&self, why: &ashlardb::Error) {
        self.refused.fetch_add(1, Ordering::Relaxed);
        *self.why.lock().unwrap_or_else(PoisonError::into_inner) = why.to_string().replace('\n', " ");
    }

    /// How long one operation took on average.
    pub(super) fn each_took(&self, all: Duration, operations: usize) {
        let nanos = all.as_nanos() / (operations.max(1) as u128);
        self.nanos.store(u64::try_from(nanos).unwrap_or(u64::MAX), Ordering::Relaxed);
    }
}
