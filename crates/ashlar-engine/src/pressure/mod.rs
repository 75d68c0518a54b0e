//! Admission: how fast writers may go, so that memtables and level 0 never exceed their limits.
//!
//! Writers are delayed gradually as debt grows, instead of being stopped at once. Between the slowdown and the stop
//! threshold each byte is delayed by the measured time that background work needs for it ([`Rates`]), times
//! fullness / (1 - fullness). That factor is 0 at first, 1 at half, and grows without bound. So writers settle at the
//! speed at which debt stays constant.
//!
//! 1. Only background work ends a stop, so code that stops a writer must first schedule such work.
//! 2. The fullness of a family is the larger of its two gauges; the fullest family decides for the database.
//! 3. Memtables are no gauge: a full one is switched at once, or its writers wait for a flush (`db`, make room).

mod resources;
mod memory;

pub(crate) use ashlar_compaction::Rates;
pub(crate) use memory::Memory;
pub use resources::Resources;
pub(crate) use resources::{Paced, lanes};

use ashlar_options::FamilyOptions;
use ashlar_sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use ashlar_sync::{Mutex, Rank};
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

/// While compaction work is due, a low-priority write is delayed by this many times the measured cost of its bytes.
const LOW_PRIORITY_FACTOR: f64 = 4.0;

/// The pace for a family with these gauges, if writers can sustain `sustained` bytes per second.
pub fn pace(gauges: &Gauges, options: &FamilyOptions, sustained: f64) -> Pace {
    let c = &options.compaction;
    if !c.works() {
        return Pace::Free;
    }
    let (soft, hard) = c.debt_bounds();
    if gauges.l0_tables >= c.l0_stop || gauges.debt_bytes >= hard {
        return Pace::Stop;
    }
    let share = |value: f64, from: f64, to: f64| if to > from { (value - from) / (to - from) } else { 0.0 };
    let l0 = share(gauges.l0_tables as f64, c.l0_slowdown as f64, c.l0_stop as f64);
    let debt = share(gauges.debt_bytes as f64, soft as f64, hard as f64);
    let fullness = l0.max(debt);
    if fullness <= 0.0 {
        return Pace::Free;
    }
    let full = fullness.min(0.999);
    Pace::Slow { nanos_per_byte: 1e9 / sustained * full / (1.0 - full) }
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
    /// When writers will be stopped if all rates stay as they are; `None`: not at these rates.
    pub time_to_stop: Option<Duration>,
}

/// The pace of the whole database, as the write path reads it.
#[derive(Debug)]
pub(crate) struct Pressure {
    /// Bits of nanoseconds per byte; infinity = stop. Written under the state lock, read as a hint.
    nanos_per_byte: AtomicU64,
    /// Bits of the additional nanoseconds per byte for low-priority writes.
    low_priority_nanos: AtomicU64,
    /// The number of leaders that are delayed or stopped.
    holding: AtomicUsize,
    rates: Mutex<Rates>,
    slowed_micros: AtomicU64,
    stopped_micros: AtomicU64,
    stops: AtomicU64,
}

impl Pressure {
    pub(crate) fn new() -> Self {
        Pressure {
            nanos_per_byte: AtomicU64::new(0),
            low_priority_nanos: AtomicU64::new(0),
            holding: AtomicUsize::new(0),
            rates: Mutex::new(Rank::Leaf, Rates::default()),
            slowed_micros: AtomicU64::new(0),
            stopped_micros: AtomicU64::new(0),
            stops: AtomicU64::new(0),
        }
    }

    /// Records the sums of bytes flushed and compacted up to `now`; see [`Rates`].
    pub(crate) fn measure(&self, now: Duration, flushed: u64, drained: u64) -> Rates {
        let mut rates = self.rates.lock();
        rates.note(now, flushed, drained);
        *rates
    }

    /// Sets the additional delay of low-priority writes while background work is `due`.
    pub(crate) fn set_low_priority(&self, due: bool, sustained: f64) {
        let nanos = if due { 1e9 / sustained * LOW_PRIORITY_FACTOR } else { 0.0 };
        self.low_priority_nanos.store(nanos.to_bits(), Ordering::Relaxed);
    }

    /// The additional pace of low-priority writes.
    pub(crate) fn low_priority_pace(&self) -> Pace {
        Pace::of(f64::from_bits(self.low_priority_nanos.load(Ordering::Relaxed)))
    }

    /// A leader begins or ends waiting.
    pub(crate) fn hold(&self, begins: bool) {
        if begins {
            self.holding.fetch_add(1, Ordering::Relaxed);
        } else {
            self.holding.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Whether a leader waits, and with it all writers behind it.
    pub(crate) fn is_holding(&self) -> bool {
        self.holding.load(Ordering::Relaxed) > 0
    }

    /// Sets the slowest of all families' paces.
    pub(crate) fn set(&self, paces: impl Iterator<Item = Pace>) {
        let slowest = paces.map(Pace::nanos_per_byte).fold(0.0, f64::max);
        self.nanos_per_byte.store(slowest.to_bits(), Ordering::Relaxed);
    }

    /// The current pace.
    pub(crate) fn pace(&self) -> Pace {
        Pace::of(f64::from_bits(self.nanos_per_byte.load(Ordering::Relaxed)))
    }

    /// Records how long writers were held.
    pub(crate) fn held(&self, how: Pace, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        if how == Pace::Stop {
            self.stops.fetch_add(1, Ordering::Relaxed);
            self.stopped_micros.fetch_add(micros, Ordering::Relaxed);
        } else {
            self.slowed_micros.fetch_add(micros, Ordering::Relaxed);
        }
    }

    /// The number of stops, and the times writers spent stopped and slowed.
    pub(crate) fn totals(&self) -> (u64, Duration, Duration) {
        let time = |of: &AtomicU64| Duration::from_micros(of.load(Ordering::Relaxed));
        (self.stops.load(Ordering::Relaxed), time(&self.stopped_micros), time(&self.slowed_micros))
    }
}

impl Pace {
    fn of(nanos_per_byte: f64) -> Pace {
        match nanos_per_byte {
            n if n <= 0.0 => Pace::Free,
            n if n.is_infinite() => Pace::Stop,
            nanos_per_byte => Pace::Slow { nanos_per_byte },
        }
    }

    fn nanos_per_byte(self) -> f64 {
        match self {
            Pace::Free => 0.0,
            Pace::Slow { nanos_per_byte } => nanos_per_byte,
            Pace::Stop => f64::INFINITY,
        }
    }

    /// The delay of a group of `bytes`.
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

    #[test]
    fn the_fullest_family_counts() {
        let p = Pressure::new();
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
