//! A limit for commands that never end: over some damaged files RocksDB loops for ever, and the caller would wait as long.

use rustix::time::{ClockId, clock_gettime};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Processor time that one command may take, in milliseconds: many times what the largest honest one does.
const MOST: u64 = 30_000;
/// No command is under way.
const IDLE: u64 = u64::MAX;

/// Ends the process during a command that takes more than [`MOST`] of the processor, or longer than it may.
pub struct Patience {
    /// Processor time and time of day when the present command began.
    began: Arc<[AtomicU64; 2]>,
}

impl Patience {
    /// `longest` is the most that one command may take of the day, in milliseconds: a command that waits for ever takes no
    /// processor time.
    pub fn new(longest: u64) -> Patience {
        let began = Arc::new([AtomicU64::new(IDLE), AtomicU64::new(IDLE)]);
        let seen = Arc::clone(&began);
        std::thread::spawn(move || {
            loop {
                std::thread::sleep(Duration::from_millis(500));
                let limits = [(ClockId::ProcessCPUTime, MOST), (ClockId::Monotonic, longest)];
                for ((clock, most), began) in limits.into_iter().zip(&*seen) {
                    if millis(clock).saturating_sub(began.load(Ordering::Relaxed)) > most {
                        eprintln!("rocksdb-judge: a command found no end in {most} ms ({clock:?})");
                        std::process::abort();
                    }
                }
            }
        });
        Patience { began }
    }

    /// Does a command.
    pub fn during<T>(&self, command: impl FnOnce() -> T) -> T {
        let [processor, day] = &*self.began;
        processor.store(millis(ClockId::ProcessCPUTime), Ordering::Relaxed);
        day.store(millis(ClockId::Monotonic), Ordering::Relaxed);
        let done = command();
        processor.store(IDLE, Ordering::Relaxed);
        day.store(IDLE, Ordering::Relaxed);
        done
    }
}

fn millis(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    u64::try_from(now.tv_sec * 1000 + now.tv_nsec / 1_000_000).unwrap_or(0)
}
