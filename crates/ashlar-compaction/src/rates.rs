//! The measured rates of background work, and the rate that writers can sustain.
//!
//! 1. The *drain rate* is bytes compacted per second while compactions run; it is kept while there is nothing to
//!    compact. The *inflow* is bytes flushed per second.
//! 2. Both are averages over some seconds, updated when background work ends, so writers read no clock for them.
//! 3. Each flushed byte costs some bytes of compaction, the *amplification*, computed from the sums since the open.
//!    Writers can sustain the drain rate divided by the amplification.

use std::time::Duration;

/// The averaging period of the rates.
const MEMORY: Duration = Duration::from_secs(5);
/// The sustainable rate before the first measurement, and its minimum.
const UNKNOWN: f64 = 16.0 * 1024.0 * 1024.0;
const LEAST: f64 = 1024.0 * 1024.0;

/// The rates of a database. See the module.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rates {
    at: Duration,
    flushed: u64,
    drained: u64,
    /// Bytes per second; 0 before the first measurement.
    pub inflow: f64,
    /// Bytes per second; 0 before the first measurement.
    pub drain: f64,
}

impl Rates {
    /// Records the sums of bytes flushed and compacted up to `now`.
    pub fn note(&mut self, now: Duration, flushed: u64, drained: u64) {
        let passed = now.saturating_sub(self.at).as_secs_f64();
        if passed < 0.01 {
            return;
        }
        let weight = 1.0 - (-passed / MEMORY.as_secs_f64()).exp();
        let average = |old: f64, bytes: u64| {
            let new = bytes as f64 / passed;
            if old == 0.0 { new } else { old + (new - old) * weight }
        };
        self.inflow = average(self.inflow, flushed.saturating_sub(self.flushed));
        let moved = drained.saturating_sub(self.drained);
        if moved > 0 {
            self.drain = average(self.drain, moved);
        }
        (self.at, self.flushed, self.drained) = (now, flushed, drained);
    }

    /// Bytes of compaction per flushed byte.
    pub fn amplification(&self) -> f64 {
        if self.flushed == 0 { 1.0 } else { (self.drained as f64 / self.flushed as f64).max(1.0) }
    }

    /// Bytes per second that writers can sustain.
    pub fn sustained(&self) -> f64 {
        if self.drain == 0.0 { UNKNOWN } else { (self.drain / self.amplification()).max(LEAST) }
    }

    /// The time until debt has grown by `bytes` at its current growth; `None` when debt does not grow.
    pub fn time_to(&self, bytes: u64) -> Option<Duration> {
        let growth = self.inflow * self.amplification() - self.drain;
        (growth >= 1.0).then(|| Duration::from_secs_f64((bytes as f64 / growth).min(1e9)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn measures_what_is_carried() {
        let mut rates = Rates::default();
        assert_eq!((rates.sustained(), rates.time_to(1)), (UNKNOWN, None));
        // 10 MiB/s are flushed, 30 MiB/s are compacted, and each byte costs three.
        for second in 1..=60 {
            rates.note(Duration::from_secs(second), second * 10 * MIB, second * 30 * MIB);
        }
        assert!((rates.sustained() / MIB as f64 - 10.0).abs() < 0.1, "{rates:?}");
        assert!(rates.time_to(MIB).is_none(), "debt stands still");
        // The inflow doubles: in ten seconds debt grows by about 300 MiB.
        for second in 61..=90 {
            let flushed = 600 + (second - 60) * 20;
            rates.note(Duration::from_secs(second), flushed * MIB, second * 30 * MIB);
        }
        let time = rates.time_to(100 * MIB).expect("debt grows");
        assert!((2..20).contains(&time.as_secs()), "{time:?}");
        let before = rates.drain;
        rates.note(Duration::from_secs(1000), 1200 * MIB, 2700 * MIB);
        assert_eq!(rates.drain, before, "not forgotten without work");
        assert!(rates.inflow < 1.0 * MIB as f64);
    }
}
