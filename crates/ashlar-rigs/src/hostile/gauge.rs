//! The gauges of a child: its resident size, what it holds by itself, and what the database says at the peak.

use super::{FILES, MIB};
use ashlardb::{Db, MemoryClass, MemoryReport};
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
    /// Refusals for which readers held too little.
    unfounded: AtomicU64,
    why: Mutex<String>,
    over: AtomicBool,
    has_large_batches: AtomicBool,
    has_large_values: AtomicBool,
    /// Indexes are as large as the data.
    has_long_keys: AtomicBool,
    peak: Mutex<Peak>,
    /// Nanoseconds of one operation, where the workload measures it.
    nanos: AtomicU64,
}

/// So much of the buffers of compactions over values of a MiB is accepted: a block of each of ten inputs, and the stored and the plain
/// form of the output's.
const BUFFERS_OF_VALUES: u64 = 12 << 20;

/// A moment, and what the caller had and the database said then.
#[derive(Clone, Debug, Default)]
struct Moment {
    /// The largest size so far, at most a little above that of the moment.
    bytes: u64,
    /// The size before the question.
    asked_at: u64,
    /// The larger one of the sizes before and after the answer.
    around: u64,
    caller: u64,
    named: u64,
    /// That without what memtables have reserved and not used, which may have no pages.
    in_use: u64,
    /// What readers, merge operands, large batches and compactions of large values hold.
    owned: u64,
    /// What the allocator kept.
    kept: u64,
    said: String,
}

impl Moment {
    /// Whether `bytes` are so much more that the databases are asked again, since asking has a price.
    fn is_below(&self, bytes: u64) -> bool {
        bytes > self.asked_at && bytes >= self.asked_at + self.asked_at / 64
    }
}

/// The moments of the largest resident size and of the most anonymous memory.
#[derive(Clone, Debug, Default)]
struct Peak {
    rss: Moment,
    anon: Moment,
}

/// Ends the sampling when it is dropped, so that a panic of the workload ends it too.
pub(super) struct Over<'a>(pub(super) &'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
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
            unfounded: AtomicU64::new(0),
            why: Mutex::default(),
            over: AtomicBool::new(false),
            has_large_batches: AtomicBool::new(false),
            has_large_values: AtomicBool::new(false),
            has_long_keys: AtomicBool::new(false),
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
            let _over = Over(&self.over);
            work()
        });
        let peak = self.peak.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let rest = resident("self").map_or(0, |(rss, _)| rss);
        println!("PEAK {}", peak.rss.said);
        println!("ANON {}", peak.anon.said);
        println!("REFUSED {}", self.why.lock().unwrap_or_else(PoisonError::into_inner));
        let nanos = match self.nanos.load(Ordering::Relaxed) {
            0 => String::new(),
            nanos => format!(" nanos={nanos}"),
        };
        println!(
            "ROW cap={cap} rss={} caller={} owned={} kept={} anon={} anon-around={} anon-caller={} named={} in-use={} anon-kept={} rest={rest} refused={} unfounded={} preloaded={} millis={}{nanos}",
            peak.rss.bytes,
            peak.rss.caller,
            peak.rss.owned,
            peak.rss.kept,
            peak.anon.bytes,
            peak.anon.around,
            peak.anon.caller,
            peak.anon.named,
            peak.anon.in_use,
            peak.anon.kept,
            self.refused.load(Ordering::Relaxed),
            self.unfounded.load(Ordering::Relaxed),
            u8::from(std::env::var_os("LD_PRELOAD").is_some()),
            began.elapsed().as_millis(),
        );
        done
    }

    fn sample(&self) {
        let Some((rss, mut anon)) = resident("self") else { return };
        let caller = self.caller.load(Ordering::Relaxed);
        let rss = anon + rss.saturating_sub(anon).min(FILES);
        // A database that is being opened has no handle yet, and reports nothing.
        let asks = !self.open.lock().unwrap_or_else(PoisonError::into_inner).is_empty();
        let mut peak = self.peak.lock().unwrap_or_else(PoisonError::into_inner);
        if peak.rss.is_below(rss) || peak.anon.is_below(anon) {
            let ((named, in_use), owned, kept, said) = self.asked();
            // On a busy machine memory may come and go before the answer, which knows nothing of it then; or come with the answer.
            let after = resident("self").map_or(anon, |(_, after)| after);
            let around = anon.max(after);
            anon = anon.min(after);
            let said = format!("{said}(resident {} MiB, anonymous {} MiB)", rss / MIB, anon / MIB);
            let now = Moment { around, caller, named, in_use, owned, kept, said, ..Moment::default() };
            if peak.rss.is_below(rss) {
                peak.rss = Moment { bytes: rss, asked_at: rss, ..now.clone() };
            }
            if asks && peak.anon.is_below(anon) {
                peak.anon = Moment { bytes: anon, asked_at: anon, ..now };
            }
        }
        peak.rss.bytes = peak.rss.bytes.max(rss);
        if asks {
            peak.anon.bytes = peak.anon.bytes.max(anon);
        }
    }

    /// What the databases name, in all and in use; how much of that a row may have beyond the promise; what the allocator keeps; and the
    /// reports as text.
    fn asked(&self) -> ((u64, u64), u64, u64, String) {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let (mut named, mut in_use, mut owned, mut said) = (0, 0, 0, String::new());
        for db in &open {
            let now = db.memory_report();
            named += now.total();
            in_use += now.in_use();
            // A batch is in the WAL's buffer while it is logged, and in its memtable until that is flushed.
            let of_batch = match self.has_large_batches.load(Ordering::Relaxed) {
                true => now.of(MemoryClass::Batches) + memtables(&now).saturating_sub(now.cap / 4),
                false => 0,
            };
            let of_values = match self.has_large_values.load(Ordering::Relaxed) {
                true => now.of(MemoryClass::Buffers).min(BUFFERS_OF_VALUES),
                false => 0,
            };
            let of_keys = match self.has_long_keys.load(Ordering::Relaxed) {
                true => now.of(MemoryClass::Tables),
                false => 0,
            };
            owned += now.held_by_readers() + now.of(MemoryClass::Operands) + of_batch + of_values + of_keys;
            said += &format!("{now} ");
        }
        // The report's own figure may be older.
        ((named, in_use), owned, ashlar_env::kept_by_allocator_now(), said)
    }

    /// From now on asks `db` too.
    pub(super) fn opened(&self, db: &Db) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).push(db.clone());
    }

    /// Stops sampling all databases.
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

    /// From now on a value is longer than a twentieth of the cap.
    pub(super) fn has_large_values(&self) {
        self.has_large_values.store(true, Ordering::Relaxed);
    }

    /// From now on indexes are as large as the data.
    pub(super) fn has_long_keys(&self) {
        self.has_long_keys.store(true, Ordering::Relaxed);
    }

    /// A write to `db` was refused for want of memory: without a reason, unless readers hold flushed memtables of half the
    /// memtables' share.
    pub(super) fn refused(&self, db: &Db, why: &ashlardb::Error) {
        let report = db.memory_report();
        let is_unfounded = report.of(MemoryClass::HeldMemtables) < report.cap / 8;
        self.refused.fetch_add(1, Ordering::Relaxed);
        let before = self.unfounded.fetch_add(u64::from(is_unfounded), Ordering::Relaxed);
        if is_unfounded || before == 0 {
            let text = format!("{why}; {report}");
            *self.why.lock().unwrap_or_else(PoisonError::into_inner) = text.replace('\n', " ");
        }
    }

    /// How long one operation took on average.
    pub(super) fn each_took(&self, all: Duration, operations: usize) {
        let nanos = all.as_nanos() / (operations.max(1) as u128);
        self.nanos.store(u64::try_from(nanos).unwrap_or(u64::MAX), Ordering::Relaxed);
    }
}

/// Bytes of the memtables that take writes or wait for a flush.
pub(super) fn memtables(report: &MemoryReport) -> u64 {
    report.of(MemoryClass::WritableMemtables) + report.of(MemoryClass::ImmutableMemtables)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: the sampler of a workload that panicked went on, and the child hung until its parent gave up.
    #[test]
    fn a_panic_of_the_workload_ends_the_sampling() {
        let gauges = Gauges::new();
        let run = || gauges.around(1, || panic!("as planned"));
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_err());
    }

    /// Regression: a size that grew little from sample to sample was compared with a report from before its growth.
    #[test]
    fn slow_growth_is_seen() {
        let mut moment = Moment { bytes: 6400, asked_at: 6400, ..Moment::default() };
        for bytes in 6401..6500 {
            assert!(!moment.is_below(bytes));
            moment.bytes = bytes;
        }
        assert!(moment.is_below(6500));
    }

    /// Regression: a refusal was excused by the name of its row.
    #[test]
    fn a_refusal_without_a_reader_is_unfounded() {
        let gauges = Gauges::new();
        let dir = tempfile::tempdir().unwrap();
        let db = Db::open(dir.path().join("db")).unwrap();
        gauges.refused(&db, &ashlardb::Error::invalid("refused"));
        assert_eq!(gauges.unfounded.load(Ordering::Relaxed), 1);
    }
}
