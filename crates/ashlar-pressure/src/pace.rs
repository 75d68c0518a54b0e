//! The pace of a family, by its gauges.
//!
//! Writers are delayed gradually as debt grows, instead of being stopped at once. Between the slowdown and the stop
//! threshold each byte is delayed by the measured time that background work needs for it ([`Rates`](crate::Rates)), times
//! fullness / (1 - fullness). That factor is 0 at first, 1 at half, and grows without bound. So writers settle at the
//! speed at which debt stays constant. The fullness of a family is the larger of its two gauges.

use crate::DiskUse;
use ashlar_options::FamilyOptions;
use std::time::Duration;

/// The gauges of a family.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Gauges {
    /// The number of tables in level 0.
    pub l0_tables: usize,
    /// Bytes that compaction still has to move.
    pub debt_bytes: u64,
}

/// The speed that writers are allowed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// No delay.
    Free,
    /// Each written byte is delayed by this time.
    Slow {
        /// Nanoseconds per byte.
        nanos_per_byte: f64,
    },
    /// Writers wait for background work.
    Stop,
}

/// The values of a family's gauges between which its writers are slowed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// The numbers of tables in level 0 at which writers are slowed, and stopped.
    pub l0: (f64, f64),
    /// The bytes of debt at which writers are slowed, and stopped.
    pub debt: (f64, f64),
}

impl Bounds {
    /// The bounds of a family. `None`: its compactions do not run, so neither gauge slows its writers.
    pub fn of(options: &FamilyOptions) -> Option<Bounds> {
        let c = &options.compaction;
        let (soft, hard) = c.debt_bounds();
        let l0 = (c.l0_slowdown as f64, c.l0_stop as f64);
        c.works().then_some(Bounds { l0, debt: (soft as f64, hard as f64) })
    }

    /// How full the fuller gauge is: at most 0 before writers are slowed, 1 when they are stopped.
    pub(crate) fn fullness(&self, l0: f64, debt: f64) -> f64 {
        let share = |value: f64, (from, to)| match value {
            value if value >= to => 1.0,
            value if to > from => (value - from) / (to - from),
            _ => 0.0,
        };
        share(l0, self.l0).max(share(debt, self.debt))
    }
}

/// The delay of a byte, in seconds, at a fullness below 1, if writers can sustain `sustained` bytes per second.
pub(crate) fn seconds_per_byte(fullness: f64, sustained: f64) -> f64 {
    let full = fullness.clamp(0.0, 0.999);
    full / (1.0 - full) / sustained
}

/// The pace for a family with these gauges, if writers can sustain `sustained` bytes per second.
pub fn pace(gauges: &Gauges, options: &FamilyOptions, sustained: f64) -> Pace {
    let Some(bounds) = Bounds::of(options) else { return Pace::Free };
    match bounds.fullness(gauges.l0_tables as f64, gauges.debt_bytes as f64) {
        fullness if fullness >= 1.0 => Pace::Stop,
        fullness if fullness > 0.0 => {
            Pace::Slow { nanos_per_byte: seconds_per_byte(fullness, sustained) * 1e9 }
        }
        _ => Pace::Free,
    }
}

/// How far compaction is behind, and when writers will have to wait.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct WritePressure {
    /// Bytes that compaction still has to move, over all families.
    pub debt_bytes: u64,
    /// Bytes per second that compaction moves while it runs; 0 before the first.
    pub drain_rate: f64,
    /// Bytes per second that are currently flushed.
    pub inflow_rate: f64,
    /// Bytes per second that writers can sustain, as measured.
    pub sustained_rate: f64,
    /// The current delay of a write of one mebibyte.
    pub delay_per_mebibyte: Duration,
    /// Writers wait until background work has caught up.
    pub stopped: bool,
    /// When writers will be slowed if all rates stay as they are; `None`: not at these rates. Zero while they are slowed.
    pub time_to_slowdown: Option<Duration>,
    /// When writers will be stopped if all rates stay as they are; `None`: not at these rates. Level 0, debt, memtables and the
    /// cap on memory count, whichever stops writers first.
    pub time_to_stop: Option<Duration>,
    /// The disk space of the database, with what its limits leave for writes.
    pub disk: DiskUse,
    /// When writes will be refused for want of disk space, if flushes keep their rate and no compaction frees any; `None`: not
    /// at this rate within ten minutes, or no flush has ended yet. Zero while they are refused.
    pub time_to_full: Option<Duration>,
}

impl Pace {
    /// The pace of this many nanoseconds per byte; infinity: a stop.
    pub fn of(nanos_per_byte: f64) -> Pace {
        match nanos_per_byte {
            n if n <= 0.0 => Pace::Free,
            n if n.is_infinite() => Pace::Stop,
            nanos_per_byte => Pace::Slow { nanos_per_byte },
        }
    }

    /// Nanoseconds per byte; infinity: a stop.
    pub fn nanos_per_byte(self) -> f64 {
        match self {
            Pace::Free => 0.0,
            Pace::Slow { nanos_per_byte } => nanos_per_byte,
            Pace::Stop => f64::INFINITY,
        }
    }

    /// The delay of a group of `bytes`.
    pub fn delay(self, bytes: usize) -> Duration {
        match self {
            Pace::Slow { nanos_per_byte } => Duration::from_secs_f64(nanos_per_byte * bytes as f64 / 1e9),
            Pace::Free | Pace::Stop => Duration::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slows_smoothly_and_stops() {
        let options = FamilyOptions::default();
        const CARRIED: f64 = 1e7;
        let at = |l0_tables| pace(&Gauges { l0_tables, ..Gauges::default() }, &options, CARRIED);
        assert_eq!(at(0), Pace::Free);
        assert_eq!(at(options.compaction.l0_slowdown), Pace::Free);
        let (from, to) = (options.compaction.l0_slowdown, options.compaction.l0_stop);
        assert_eq!(at((from + to) / 2), Pace::Slow { nanos_per_byte: 1e9 / CARRIED }, "what is carried");
        let mut before = 0.0;
        for n in options.compaction.l0_slowdown + 1..options.compaction.l0_stop {
            let Pace::Slow { nanos_per_byte } = at(n) else { panic!("{n} tables: {:?}", at(n)) };
            // The admitted rate falls by at most half from step to step.
            let rate = |nanos: f64| 1.0 / (1.0 / CARRIED + nanos / 1e9);
            assert!(nanos_per_byte > before && rate(nanos_per_byte) > rate(before) * 0.49, "no cliff");
            before = nanos_per_byte;
        }
        assert_eq!(at(options.compaction.l0_stop), Pace::Stop);
        let owing = Gauges { debt_bytes: options.compaction.hard_debt_bytes, ..Gauges::default() };
        assert_eq!(pace(&owing, &options, CARRIED), Pace::Stop);
    }

    #[test]
    fn a_bound_of_0_bytes_neither_stops_nor_slows_writes() {
        let mut options = FamilyOptions::default();
        let idle = Gauges::default();
        let owing = Gauges { debt_bytes: 1 << 30, ..idle };
        options.compaction.hard_debt_bytes = 0;
        assert_eq!((pace(&idle, &options, 1e7), pace(&owing, &options, 1e7)), (Pace::Free, Pace::Free));
        options.compaction.soft_debt_bytes = 0;
        assert_eq!((pace(&idle, &options, 1e7), pace(&owing, &options, 1e7)), (Pace::Free, Pace::Free));
        options.compaction.hard_debt_bytes = 1 << 30;
        assert_eq!((pace(&idle, &options, 1e7), pace(&owing, &options, 1e7)), (Pace::Free, Pace::Stop));
    }
}
