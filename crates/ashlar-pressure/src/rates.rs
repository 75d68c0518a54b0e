//! The measured rates of background work, and the rate that writers can sustain.
//!
//! 1. The *drain rate* is bytes compacted per second while compactions run; it is kept while there is nothing to
//!    compact. A compaction's bytes are counted when it ends. They are divided by the time, since the previous compaction
//!    ended, during which at least one compaction ran.
//!    The *inflow* is bytes flushed per second. A flush's bytes are counted when it ends, and divided by the time since the
//!    previous flush ended. Without a further flush the inflow is at most the last flush's bytes over the time since its end.
//! 2. Both are averages over some seconds, updated when background work ends, so writers read no clock for them.
//! 3. Each flushed byte costs some bytes of compaction, the *amplification*, computed from the sums since the open.
//!    Writers can sustain the drain rate divided by the amplification.

use std::time::Duration;

/// The averaging period of the rates.
const MEMORY: Duration = Duration::from_secs(5);
/// The rate of compactions and the sustainable rate before the first measurement, and the minimum of the latter.
const UNKNOWN: f64 = 16.0 * 1024.0 * 1024.0;
const LEAST: f64 = 1024.0 * 1024.0;
/// Forecasts by these rates reach no further.
pub(crate) const HORIZON: Duration = Duration::from_secs(600);

/// The rates of a database. See the module.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rates {
    at: Duration,
    flushed: u64,
    drained: u64,
    /// A compaction ran at the last record.
    runs: bool,
    /// Seconds in which compactions ran since one last ended.
    busy: f64,
    /// Seconds since a flush last ended.
    quiet: f64,
    /// Bytes of the flushes that ended last.
    last_flushed: f64,
    /// The average of the inflow over the flushes that have ended.
    flushes: f64,
    /// Bytes per second; 0 before the first measurement.
    pub inflow: f64,
    /// Bytes per second; 0 before the first measurement.
    pub drain: f64,
}

impl Rates {
    /// Records the sums of bytes flushed and compacted up to `now`, and whether a compaction runs. Both rates are measured
    /// between the ends of jobs, however often this is called.
    pub fn note(&mut self, now: Duration, (flushed, drained): (u64, u64), runs: bool) {
        let passed = now.saturating_sub(self.at).as_secs_f64();
        if passed < 0.01 {
            return;
        }
        let average = |old: f64, bytes: u64, seconds: f64| {
            let (new, weight) = (bytes as f64 / seconds, 1.0 - (-seconds / MEMORY.as_secs_f64()).exp());
            if old == 0.0 { new } else { old + (new - old) * weight }
        };
        let came = flushed.saturating_sub(self.flushed);
        self.quiet += passed;
        if came > 0 {
            self.flushes = average(self.flushes, came, self.quiet);
            (self.last_flushed, self.quiet) = (came as f64, 0.0);
        }
        self.inflow = self.flushes.min(self.last_flushed / self.quiet);
        let moved = drained.saturating_sub(self.drained);
        if self.runs || moved > 0 {
            self.busy += passed;
        }
        if moved > 0 {
            self.drain = average(self.drain, moved, self.busy);
            self.busy = 0.0;
        }
        (self.at, self.flushed, self.drained, self.runs) = (now, flushed, drained, runs);
    }

    /// Bytes of compaction per flushed byte.
    pub fn amplification(&self) -> f64 {
        if self.flushed == 0 { 1.0 } else { (self.drained as f64 / self.flushed as f64).max(1.0) }
    }

    /// Bytes per second that compactions will move: as measured, or a guess before the first one has ended.
    pub(crate) fn expected_drain(&self) -> f64 {
        if self.drain == 0.0 { UNKNOWN } else { self.drain }
    }

    /// Bytes per second that writers can sustain.
    pub fn sustained(&self) -> f64 {
        if self.drain == 0.0 { UNKNOWN } else { (self.drain / self.amplification()).max(LEAST) }
    }

    /// The time until debt has grown by `bytes` at its current growth; `None` when debt does not grow.
    pub fn time_to(&self, bytes: f64) -> Option<Duration> {
        let growth = self.inflow * self.amplification() - self.drain;
        Duration::try_from_secs_f64(bytes / growth).ok().filter(|_| growth >= 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn measures_what_is_carried() {
        let mut rates = Rates::default();
        assert_eq!((rates.sustained(), rates.time_to(1.0)), (UNKNOWN, None));
        // 10 MiB/s are flushed, 30 MiB/s are compacted, and each byte costs three.
        for second in 1..=60 {
            rates.note(Duration::from_secs(second), (second * 10 * MIB, second * 30 * MIB), true);
        }
        assert!((rates.sustained() / MIB as f64 - 10.0).abs() < 0.1, "{rates:?}");
        assert!(rates.time_to(MIB as f64).is_none(), "debt stands still");
        // The inflow doubles: in ten seconds debt grows by about 300 MiB.
        for second in 61..=90 {
            let flushed = 600 + (second - 60) * 20;
            rates.note(Duration::from_secs(second), (flushed * MIB, second * 30 * MIB), false);
        }
        let time = rates.time_to(100.0 * MIB as f64).expect("debt grows");
        assert!((2..20).contains(&time.as_secs()), "{time:?}");
        let before = rates.drain;
        rates.note(Duration::from_secs(1000), (1200 * MIB, 2700 * MIB), false);
        assert_eq!(rates.drain, before, "not forgotten without work");
        assert!(rates.inflow < 1.0 * MIB as f64);
    }

    #[test]
    fn a_caller_that_asks_often_changes_no_rate() {
        let (mut seldom, mut often) = (Rates::default(), Rates::default());
        // A compaction of 40 MiB ends every four seconds.
        for tick in 1..=4000_u64 {
            let (now, ends) = (Duration::from_millis(20 * tick), tick / 200);
            let sums = (ends * 10 * MIB, ends * 40 * MIB);
            often.note(now, sums, true);
            if tick % 200 == 0 {
                seldom.note(now, sums, true);
            }
        }
        for rates in [seldom, often] {
            assert!((rates.drain / MIB as f64 - 10.0).abs() < 0.2, "{rates:?}");
            assert!((rates.inflow / MIB as f64 - 2.5).abs() < 0.1, "{rates:?}");
        }
    }
    /// Regression: a flush that ended between two looks counted as so many bytes in the time between them.
    #[test]
    fn the_first_flush_is_no_flood() {
        let mut rates = Rates::default();
        let flush_ends = 20_000;
        let mut most = 0.0_f64;
        for millis in (50..60_000).step_by(50) {
            let flushed = if millis < flush_ends { 0 } else { 64 * MIB };
            rates.note(Duration::from_millis(millis), (flushed, 0), false);
            most = most.max(rates.inflow);
        }
        assert!((most / MIB as f64 - 3.2).abs() < 0.1, "{most}");
        assert!(rates.inflow < 1.7 * MIB as f64, "writers have paused: {rates:?}");
    }
}
