//! Admission: how fast writers may go, so that memtables and level 0 never outgrow their bounds.
//!
//! Writers pay for debt as it grows, in small delays, instead of running into a wall: between the point where slowing
//! begins and the point where writing stops, the pace falls smoothly from free to a trickle.
//!
//! 1. A stop is lifted by background work only; whoever stops must have seen to it that such work is scheduled.
//! 2. The fullness of a family is the larger of its two gauges; the database goes by its fullest family.
//! 3. Memtables are no gauge: a full one is switched at once, or its writers wait for a flush (`db`, make room).

mod memory;

pub(crate) use memory::Memory;

use crate::options::FamilyOptions;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What a family's gauges show.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Gauges {
    /// Tables in level 0.
    pub l0_tables: usize,
    /// Bytes that compaction still has to move.
    pub debt_bytes: u64,
}

/// How writers may go on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// No delay.
    Free,
    /// Each byte written costs this long.
    Slow {
        /// Nanoseconds per byte.
        nanos_per_byte: f64,
    },
    /// Wait for background work.
    Stop,
}

/// 16 MiB/s where slowing begins …
const SLOWEST_START_NANOS: f64 = 1e9 / (16.0 * 1024.0 * 1024.0);
/// … and a sixteenth of it at the end.
const SLOWEST_END_FACTOR: f64 = 16.0;

/// The pace for a family with these gauges.
pub fn pace(gauges: &Gauges, options: &FamilyOptions) -> Pace {
    let c = &options.compaction;
    if !c.automatic {
        return Pace::Free;
    }
    if gauges.l0_tables >= c.l0_stop || gauges.debt_bytes >= c.hard_debt_bytes {
        return Pace::Stop;
    }
    let share = |value: f64, from: f64, to: f64| if to > from { (value - from) / (to - from) } else { 0.0 };
    let l0 = share(gauges.l0_tables as f64, c.l0_slowdown as f64, c.l0_stop as f64);
    let debt = share(gauges.debt_bytes as f64, c.soft_debt_bytes as f64, c.hard_debt_bytes as f64);
    let fullness = l0.max(debt);
    if fullness <= 0.0 {
        return Pace::Free;
    }
    Pace::Slow { nanos_per_byte: SLOWEST_START_NANOS * SLOWEST_END_FACTOR.powf(fullness.min(1.0)) }
}

/// The pace of the whole database, as the write path reads it.
#[derive(Debug, Default)]
pub(crate) struct Pressure {
    /// Bits of nanoseconds per byte; infinity = stop. Written under the state lock, read as a hint.
    nanos_per_byte: AtomicU64,
    slowed_micros: AtomicU64,
    stopped_micros: AtomicU64,
    stops: AtomicU64,
}

impl Pressure {
    /// Takes over the paces of all families: the slowest counts.
    pub(crate) fn set(&self, paces: impl Iterator<Item = Pace>) {
        let slowest = paces.map(Pace::nanos_per_byte).fold(0.0, f64::max);
        self.nanos_per_byte.store(slowest.to_bits(), Ordering::Relaxed);
    }

    /// The present pace.
    pub(crate) fn pace(&self) -> Pace {
        let nanos = f64::from_bits(self.nanos_per_byte.load(Ordering::Relaxed));
        match nanos {
            n if n <= 0.0 => Pace::Free,
            n if n.is_infinite() => Pace::Stop,
            nanos_per_byte => Pace::Slow { nanos_per_byte },
        }
    }

    /// Notes how long writers were held.
    pub(crate) fn held(&self, how: Pace, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        if how == Pace::Stop {
            self.stops.fetch_add(1, Ordering::Relaxed);
            self.stopped_micros.fetch_add(micros, Ordering::Relaxed);
        } else {
            self.slowed_micros.fetch_add(micros, Ordering::Relaxed);
        }
    }

    /// Stops so far, and the time writers spent stopped and slowed.
    pub(crate) fn totals(&self) -> (u64, Duration, Duration) {
        let time = |of: &AtomicU64| Duration::from_micros(of.load(Ordering::Relaxed));
        (self.stops.load(Ordering::Relaxed), time(&self.stopped_micros), time(&self.slowed_micros))
    }
}

impl Pace {
    fn nanos_per_byte(self) -> f64 {
        match self {
            Pace::Free => 0.0,
            Pace::Slow { nanos_per_byte } => nanos_per_byte,
            Pace::Stop => f64::INFINITY,
        }
    }

    /// How long a group of `bytes` is delayed.
    pub(crate) fn delay(self, bytes: usize) -> Duration {
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
        let at = |l0_tables| pace(&Gauges { l0_tables, ..Gauges::default() }, &options);
        assert_eq!(at(0), Pace::Free);
        assert_eq!(at(options.compaction.l0_slowdown), Pace::Free);
        let mut before = 0.0;
        for n in options.compaction.l0_slowdown + 1..options.compaction.l0_stop {
            let Pace::Slow { nanos_per_byte } = at(n) else { panic!("{n} tables: {:?}", at(n)) };
            assert!(nanos_per_byte > before && (before == 0.0 || nanos_per_byte < before * 1.5), "no cliff");
            before = nanos_per_byte;
        }
        assert_eq!(at(options.compaction.l0_stop), Pace::Stop);
        let owing = Gauges { debt_bytes: options.compaction.hard_debt_bytes, ..Gauges::default() };
        assert_eq!(pace(&owing, &options), Pace::Stop);
    }

    #[test]
    fn the_fullest_family_counts() {
        let p = Pressure::default();
        p.set(
            [Pace::Free, Pace::Slow { nanos_per_byte: 5.0 }, Pace::Slow { nanos_per_byte: 2.0 }].into_iter(),
        );
        assert_eq!(p.pace(), Pace::Slow { nanos_per_byte: 5.0 });
        assert_eq!(p.pace().delay(1000), Duration::from_micros(5));
        p.set([Pace::Stop].into_iter());
        assert_eq!(p.pace(), Pace::Stop);
        p.set(std::iter::empty());
        assert_eq!(p.pace(), Pace::Free);
    }
}
