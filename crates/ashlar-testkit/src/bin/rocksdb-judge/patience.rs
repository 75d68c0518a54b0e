//! An end for commands that find none: over some damaged files RocksDB loops for ever, and whoever asked would wait as long.

use rustix::time::{ClockId, clock_gettime};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Processor time that one command may take, in milliseconds: many times what the largest honest one does.
const MOST: u64 = 30_000;
/// No command is under way.
const IDLE: u64 = u64::MAX;

/// Ends the process during a command that takes more than [`MOST`].
pub struct Patience {
    /// Processor time when the present command began.
    began: Arc<AtomicU64>,
}

impl Patience {
    pub fn new() -> Patience {
        let began = Arc::new(AtomicU64::new(IDLE));
        let seen = Arc::clone(&began);
        std::thread::spawn(move || {
            loop {
                std::thread::sleep(Duration::from_millis(500));
                if processor_millis().saturating_sub(seen.load(Ordering::Relaxed)) > MOST {
                    eprintln!("rocksdb-judge: a command found no end in {MOST} ms of processor time");
                    std::process::abort();
                }
            }
        });
        Patience { began }
    }

    /// Does a command.
    pub fn during<T>(&self, command: impl FnOnce() -> T) -> T {
        self.began.store(processor_millis(), Ordering::Relaxed);
        let done = command();
        self.began.store(IDLE, Ordering::Relaxed);
        done
    }
}

fn processor_millis() -> u64 {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    u64::try_from(now.tv_sec * 1000 + now.tv_nsec / 1_000_000).unwrap_or(0)
}
