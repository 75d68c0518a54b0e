//! A limit on the bytes per second that flushes and compactions write.
//!
//! 1. The limiter blocks no thread: a job reports what its last step wrote and gets the pause before the next step.
//! 2. Flushes have priority. They may use the whole rate; compactions get the rest.
//! 3. Flushes never delay compactions by more than a second at a time, so compactions always make progress.
//! 4. Allowance that was not used within a tenth of a second is lost.
//! 5. A tuned rate follows the need. Every ten seconds the limiter looks in what share of the tenths of a second a job paused: above
//!    nine tenths the rate grows by a twentieth, below a half it shrinks as much, and without a pause it falls to its least, a
//!    twentieth of the limit. While writers wait for background work, the rate is the whole limit.
//!
//! Source: RocksDB `util/rate_limiter.cc` (`GenericRateLimiter`: behaviour; `TuneLocked`: the shares). There, the rate stays low
//! while writers wait.

use std::time::Duration;

/// The largest unused allowance, in seconds of the rate.
const BURST: f64 = 0.1;
/// The longest delay of compactions by flushes, in seconds of the rate.
const PUT_OFF: f64 = 1.0;

/// The least tuned rate, as a share of the limit.
const LEAST: f64 = 0.05;
/// By how much one window changes a tuned rate.
const STEP: f64 = 1.05;
/// The parts of a window in which pauses are counted.
const PERIOD: Duration = Duration::from_millis(100);
/// The periods between two looks at a tuned rate.
const WINDOW: u64 = 100;

/// A limit on what jobs write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limit {
    /// Bytes per second; 0: no limit.
    pub rate: u64,
    /// Whether the rate follows the need, up to `rate`.
    pub auto_tuned: bool,
}

/// What a job wrote in one step.
#[derive(Clone, Copy, Debug)]
pub struct Written {
    /// The bytes.
    pub bytes: u64,
    /// Whether a flush wrote them, and not a compaction.
    pub is_flush: bool,
    /// Whether writers wait for background work.
    pub is_urgent: bool,
}

/// The account of all jobs under one limit. See the module.
#[derive(Debug, Default)]
pub struct RateLimiter {
    at: Duration,
    /// The allowances in bytes; negative: bytes written ahead of the rate.
    flushes: f64,
    compactions: f64,
    tuning: Tuning,
}

/// A rate that follows the need.
#[derive(Debug, Default)]
struct Tuning {
    limit: u64,
    rate: f64,
    window_began: Duration,
    /// The periods of the window in which a job paused. Each counts once: `counted` is the first that does not count yet.
    paused: u64,
    counted: u64,
}

impl RateLimiter {
    /// Records what a step wrote up to `now`. Returns the pause of the job.
    pub fn wrote(&mut self, written: Written, limit: Limit, now: Duration) -> Duration {
        if limit.rate == 0 {
            return Duration::ZERO;
        }
        if !limit.auto_tuned {
            return self.pause(written, limit.rate as f64, now);
        }
        let rate = self.tuning.rate(limit.rate, written.is_urgent, now);
        let pause = self.pause(written, rate, now);
        self.tuning.paused(now, pause);
        pause
    }

    fn pause(&mut self, written: Written, rate: f64, now: Duration) -> Duration {
        let bytes = written.bytes as f64;
        let earned = now.saturating_sub(self.at).as_secs_f64() * rate;
        self.at = self.at.max(now);
        self.flushes = (self.flushes + earned).min(rate * BURST);
        self.compactions = (self.compactions + earned).min(rate * BURST);
        let left = if written.is_flush {
            self.flushes -= bytes;
            let put_off = (self.compactions - bytes).max(-rate * PUT_OFF);
            self.compactions = self.compactions.min(put_off);
            self.flushes
        } else {
            self.compactions -= bytes;
            self.compactions
        };
        Duration::from_secs_f64((-left / rate).max(0.0))
    }
}

impl Tuning {
    fn rate(&mut self, limit: u64, is_urgent: bool, now: Duration) -> f64 {
        let max = limit as f64;
        if self.limit != limit {
            // As RocksDB: the first window begins in the middle.
            *self = Tuning { limit, rate: max / 2.0, ..Tuning::default() };
            self.begin_window(now);
        }
        let periods = period(now).saturating_sub(period(self.window_began));
        if is_urgent {
            self.rate = max;
            self.begin_window(now);
        } else if periods >= WINDOW {
            let least = max * LEAST;
            self.rate = match self.paused * 100 / periods {
                _ if self.paused == 0 => least,
                0..50 => (self.rate / STEP).max(least),
                91.. => (self.rate * STEP).min(max),
                _ => self.rate,
            };
            self.begin_window(now);
        }
        self.rate
    }

    fn begin_window(&mut self, now: Duration) {
        (self.window_began, self.paused) = (now, 0);
        self.counted = self.counted.max(period(now));
    }

    /// Counts the periods of a pause.
    fn paused(&mut self, now: Duration, pause: Duration) {
        if !pause.is_zero() {
            let first = self.counted.max(period(now));
            let end = period(now.saturating_add(pause)).saturating_add(1);
            self.paused += end.saturating_sub(first);
            self.counted = first.max(end);
        }
    }
}

/// The number of the period in which `time` lies.
fn period(time: Duration) -> u64 {
    u64::try_from(time.as_nanos() / PERIOD.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: u64 = 1 << 20;
    const PART: u64 = 64 << 10;
    const FIXED: Limit = Limit { rate: RATE, auto_tuned: false };

    fn part(is_flush: bool) -> Written {
        Written { bytes: PART, is_flush, is_urgent: false }
    }

    /// Simulates jobs of both kinds for `seconds`; returns the bytes of flushes and of compactions.
    fn run(seconds: u64, flushes: bool, compactions: bool) -> (u64, u64) {
        let mut limiter = RateLimiter::default();
        let (mut next, mut sums) = ([Duration::ZERO; 2], [0, 0]);
        let mut now = Duration::ZERO;
        while now < Duration::from_secs(seconds) {
            for (kind, wanted) in [flushes, compactions].into_iter().enumerate() {
                if wanted && next[kind] <= now {
                    sums[kind] += PART;
                    next[kind] = now + limiter.wrote(part(kind == 0), FIXED, now);
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
            compacted >= 10 * PART && about(compacted, 0.05),
            "neither starved nor in the way: {compacted}"
        );
    }

    #[test]
    fn without_a_rate_there_is_no_pause() {
        let mut limiter = RateLimiter::default();
        let all = Written { bytes: u64::MAX, is_flush: false, is_urgent: false };
        for auto_tuned in [false, true] {
            assert_eq!(limiter.wrote(all, Limit { rate: 0, auto_tuned }, Duration::ZERO), Duration::ZERO);
        }
    }

    /// Simulates a job that has `need` bytes per second to write, and does not catch up, for `seconds` from `now` on. Returns the
    /// tuned rate, as a share of the limit.
    fn tuned(limiter: &mut RateLimiter, now: &mut Duration, seconds: u64, need: f64, is_urgent: bool) -> f64 {
        let limit = Limit { rate: RATE, auto_tuned: true };
        let end = *now + Duration::from_secs(seconds);
        let between = Duration::from_secs_f64(PART as f64 / need);
        while *now < end {
            let pause = limiter.wrote(Written { is_urgent, ..part(false) }, limit, *now);
            *now += pause.max(between);
        }
        limiter.tuning.rate / RATE as f64
    }

    #[test]
    fn a_tuned_rate_follows_the_need() {
        let (mut limiter, mut now) = (RateLimiter::default(), Duration::from_secs(1_000));
        let mut share =
            |seconds, need, is_urgent| tuned(&mut limiter, &mut now, seconds, need * RATE as f64, is_urgent);
        assert!((share(1, 8.0, false) - 0.5).abs() < 0.01, "it begins in the middle");
        let after_a_minute = share(60, 8.0, false);
        assert!(after_a_minute > 0.6 && after_a_minute < 0.8, "{after_a_minute}");
        assert!((share(300, 8.0, false) - 1.0).abs() < 0.01, "not above the limit");
        let quiet = share(60, 0.02, false);
        assert!((quiet - LEAST).abs() < 0.01, "{quiet}");
        let steady = share(1_200, 0.3, false);
        assert!(steady > 0.28 && steady < 0.4, "as much as is needed: {steady}");
        assert!((share(1, 0.3, true) - 1.0).abs() < 0.01, "the whole limit, at once, while writers wait");
    }
}
