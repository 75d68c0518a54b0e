//! A limit on the bytes per second that flushes and compactions write.
//!
//! 1. The limiter blocks no thread: a job reports what its last step wrote and gets the pause before the next step.
//! 2. Flushes have priority. They may use the whole rate; compactions get the rest.
//! 3. Flushes never delay compactions by more than a second at a time, so compactions always make progress.
//! 4. Allowance that was not used within a tenth of a second is lost.
//!
//! Source: RocksDB `util/rate_limiter.cc` (`GenericRateLimiter`: behaviour).

use ashlar_sync::{Mutex, Rank};
use std::time::Duration;

/// The largest unused allowance, in seconds of the rate.
const BURST: f64 = 0.1;
/// The longest delay of compactions by flushes, in seconds of the rate.
const PUT_OFF: f64 = 1.0;

/// The allowances in bytes; negative: bytes written ahead of the rate.
#[derive(Debug, Default)]
struct Balance {
    at: Duration,
    flushes: f64,
    compactions: f64,
}

/// The limit of a database. See the module.
#[derive(Debug)]
pub(crate) struct RateLimiter {
    balance: Mutex<Balance>,
}

impl RateLimiter {
    pub(crate) fn new() -> Self {
        RateLimiter { balance: Mutex::new(Rank::Leaf, Balance::default()) }
    }

    /// Records that a step wrote `bytes` up to `now`, with a limit of `rate` bytes per second (0: none). Returns the
    /// pause of the job.
    pub(crate) fn wrote(&self, is_flush: bool, bytes: u64, rate: u64, now: Duration) -> Duration {
        if rate == 0 {
            return Duration::ZERO;
        }
        let (rate, bytes) = (rate as f64, bytes as f64);
        let mut balance = self.balance.lock();
        let earned = now.saturating_sub(balance.at).as_secs_f64() * rate;
        balance.at = balance.at.max(now);
        balance.flushes = (balance.flushes + earned).min(rate * BURST);
        balance.compactions = (balance.compactions + earned).min(rate * BURST);
        let left = if is_flush {
            balance.flushes -= bytes;
            let put_off = (balance.compactions - bytes).max(-rate * PUT_OFF);
            balance.compactions = balance.compactions.min(put_off);
            balance.flushes
        } else {
            balance.compactions -= bytes;
            balance.compactions
        };
        Duration::from_secs_f64((-left / rate).max(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: u64 = 1 << 20;
    const STEP: u64 = 64 << 10;

    /// Simulates jobs of both kinds for `seconds`; returns the bytes of flushes and of compactions.
    fn run(seconds: u64, flushes: bool, compactions: bool) -> (u64, u64) {
        let limiter = RateLimiter::new();
        let (mut next, mut sums) = ([Duration::ZERO; 2], [0, 0]);
        let mut now = Duration::ZERO;
        while now < Duration::from_secs(seconds) {
            for (kind, wanted) in [flushes, compactions].into_iter().enumerate() {
                if wanted && next[kind] <= now {
                    sums[kind] += STEP;
                    next[kind] = now + limiter.wrote(kind == 0, STEP, RATE, now);
                }
            }
            now += Duration::from_millis(1);
        }
        (sums[0], sums[1])
    }

    #[test]
    fn keeps_the_rate_and_lets_flushes_go_first() {
        let about = |bytes: u64, rate: f64| (bytes as f64 / (20.0 * RATE as f64) - rate).abs() < 0.1;
        let (flushed, none) = run(20, true, false);
        assert!(about(flushed, 1.0) && none == 0, "{flushed}");
        let (none, compacted) = run(20, false, true);
        assert!(about(compacted, 1.0) && none == 0, "{compacted}");
        let (flushed, compacted) = run(20, true, true);
        assert!(about(flushed, 1.0), "{flushed}");
        assert!(
            compacted >= 10 * STEP && about(compacted, 0.05),
            "neither starved nor in the way: {compacted}"
        );
    }

    #[test]
    fn without_a_rate_there_is_no_pause() {
        let limiter = RateLimiter::new();
        assert_eq!(limiter.wrote(false, u64::MAX, 0, Duration::ZERO), Duration::ZERO);
    }
}
