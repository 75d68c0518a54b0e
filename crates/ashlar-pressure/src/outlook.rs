//! When writers of a family will be slowed and stopped, if they continue at their present rate.
//!
//! Three things stop writers, and each has its own forecast:
//! 1. *Level 0* gets a table whenever a memtable is full. The running compaction takes its inputs off level 0 at its end, and
//!    the next one begins. The forecast plays these events one after the other.
//! 2. *Debt* grows by each table and shrinks with each compaction; in the long run, it grows at the difference of two rates
//!    ([`Rates::time_to`]).
//! 3. *Memtables* wait for their flush when writers fill them faster than flushes write them.
//!
//! Writers that are slowed fill memtables more slowly ([`pace`](crate::pace())), so the time of a table depends on the fullness of
//! level 0. A forecast is as good as the rates: it assumes that writers ask for as much as they did for their last memtables.

use crate::Rates;
use crate::pace::{Bounds, seconds_per_byte};
use crate::rates::HORIZON;
use std::time::Duration;

/// A forecast stops after so many events, if not at the horizon.
const EVENTS: usize = 512;

/// The part of the measured rate of compactions that is counted on while writers fill level 0.
const CAUTION: f64 = 0.8;

/// A family at one moment. Times are in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Outlook {
    /// Tables in level 0, and memtables that wait for their flush.
    pub tables: usize,
    /// The number of tables in level 0 at which a compaction begins.
    pub trigger: usize,
    /// Where writers are slowed and stopped. `None`: compactions do not run, and only memtables stop writers.
    pub bounds: Option<Bounds>,
    /// Bytes of a full memtable.
    pub memtable_bytes: f64,
    /// The part of the current memtable that is filled, from 0 to 1.
    pub filled: f64,
    /// The time in which writers fill a memtable, with the present delay; 0: no memtable is expected.
    pub fill_time: f64,
    /// The present delay of a byte, in seconds.
    pub delay: f64,
    /// The longest delay of a byte, in seconds: a single delay of a writer is bounded.
    pub delay_max: f64,
    /// The number of tables that running compactions take off level 0.
    pub taken: usize,
    /// Bytes that the running compactions of level 0 read.
    pub taken_bytes: f64,
    /// Seconds for which the running compactions of level 0 have run.
    pub taken_for: f64,
    /// Whether further compactions may begin.
    pub compacts: bool,
    /// The number of memtables that wait for their flush.
    pub immutable: usize,
    /// The most memtables that the family may have, with the current one.
    pub memtables_max: usize,
    /// The time in which a flush writes a memtable; 0 before the first flush has ended.
    pub flush_time: f64,
    /// Seconds for which the running flush has run.
    pub flushing_for: f64,
    /// Bytes of debt.
    pub debt: f64,
}

/// When writers will be slowed and stopped; `None`: not as far as the rates tell.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Forecast {
    /// The time until the first delay.
    pub slowdown: Option<Duration>,
    /// The time until the stop.
    pub stop: Option<Duration>,
}

impl Forecast {
    /// The earlier of both, for each.
    #[must_use]
    pub fn or_sooner(self, other: Forecast) -> Forecast {
        let sooner = |a: Option<Duration>, b| [a, b].into_iter().flatten().min();
        Forecast { slowdown: sooner(self.slowdown, other.slowdown), stop: sooner(self.stop, other.stop) }
    }
}

impl Outlook {
    /// The forecast at these rates of the database.
    pub fn forecast(&self, rates: &Rates) -> Forecast {
        let mut forecast = Forecast { slowdown: None, stop: self.memtables() };
        if let Some(bounds) = &self.bounds {
            forecast = forecast.or_sooner(self.tables(bounds, rates)).or_sooner(self.debt(bounds, rates));
        }
        let near = |time: &Duration| *time <= HORIZON;
        Forecast { slowdown: forecast.slowdown.filter(near), stop: forecast.stop.filter(near) }
    }

    /// When debt reaches its bounds at the average rates.
    fn debt(&self, bounds: &Bounds, rates: &Rates) -> Forecast {
        let to = |bound: f64| rates.time_to((bound - self.debt).max(0.0));
        Forecast { slowdown: to(bounds.debt.0), stop: to(bounds.debt.1) }
    }

    /// The time in which writers fill a memtable at this fullness.
    fn fill_time_at(&self, fullness: f64, sustained: f64) -> f64 {
        let delayed = self.delay.min(self.delay_max) * self.memtable_bytes;
        let free = (self.fill_time - delayed).max(self.fill_time / 20.0);
        free + self.memtable_bytes * seconds_per_byte(fullness, sustained).min(self.delay_max)
    }

    /// Plays the arrivals of tables and the ends of compactions.
    fn tables(&self, bounds: &Bounds, rates: &Rates) -> Forecast {
        let mut forecast = Forecast::default();
        if self.fill_time <= 0.0 {
            return forecast;
        }
        // Flushes take a part of what compactions have had so far.
        let drain = (rates.expected_drain() * CAUTION).max(1.0);
        // Seconds that a compaction spends per level-0 table: measured on the running one, or else from the average
        // amplification.
        let price = match self.taken {
            0 => self.memtable_bytes * rates.amplification() / drain,
            taken => self.taken_bytes / drain / taken as f64,
        };
        let all = self.taken_bytes / drain;
        let under_way = (self.taken as f64, (all - self.taken_for).max(all / 8.0));
        let mut running = (self.taken > 0).then_some(under_way);
        let (mut at, mut tables, mut debt) = (0.0, self.tables as f64, self.debt);
        let fill = |tables, debt| self.fill_time_at(bounds.fullness(tables, debt), rates.sustained());
        let mut next = fill(tables, debt) * (1.0 - self.filled.clamp(0.0, 1.0));
        for _ in 0..EVENTS {
            let fullness = bounds.fullness(tables, debt);
            if fullness > 0.0 && forecast.slowdown.is_none() {
                forecast.slowdown = Some(Duration::from_secs_f64(at));
            }
            if fullness >= 1.0 {
                forecast.stop = Some(Duration::from_secs_f64(at));
                break;
            }
            if running.is_none() && self.compacts && tables >= self.trigger.max(1) as f64 {
                running = Some((tables, tables * price));
            }
            match running {
                Some((taken, left)) if left <= next => {
                    (at, next, tables, running) = (at + left, next - left, tables - taken, None);
                    debt = (debt - taken * self.memtable_bytes).max(0.0);
                }
                _ => {
                    at += next;
                    running = running.map(|(taken, left)| (taken, left - next));
                    (tables, debt) = (tables + 1.0, debt + self.memtable_bytes);
                    next = fill(tables, debt);
                }
            }
        }
        forecast
    }

    /// When the last memtable is full before a flush has made room. A flush takes all memtables that wait when it begins.
    fn memtables(&self) -> Option<Duration> {
        if self.fill_time <= 0.0 || self.memtables_max < 2 {
            return None;
        }
        // Before the first flush has ended, it is taken to be half done.
        let each = if self.flush_time > 0.0 { self.flush_time } else { 2.0 * self.flushing_for };
        let begins =
            |waiting: usize| (waiting, if waiting > 0 { each * waiting as f64 } else { f64::INFINITY });
        let (mut at, mut waiting) = (0.0, self.immutable);
        let mut next = self.fill_time * (1.0 - self.filled.clamp(0.0, 1.0));
        let (mut taken, mut flush) = begins(waiting);
        flush = (flush - self.flushing_for).max(flush / 8.0);
        for _ in 0..EVENTS {
            if flush <= next {
                (at, next, waiting) = (at + flush, next - flush, waiting - taken);
                (taken, flush) = begins(waiting);
            } else {
                at += next;
                if waiting + 1 >= self.memtables_max {
                    return Some(Duration::from_secs_f64(at));
                }
                (waiting, flush) = (waiting + 1, flush - next);
                if taken == 0 {
                    (taken, flush) = begins(waiting);
                }
                next = self.fill_time;
            }
            if each <= 0.0 {
                break;
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: f64 = 1048576.0;

    /// A memtable of 4 MiB a second, compactions of 20 MiB per second.
    fn outlook(tables: usize) -> Outlook {
        Outlook {
            tables,
            trigger: 4,
            bounds: Some(Bounds { l0: (8.0, 12.0), debt: (f64::MAX, f64::INFINITY) }),
            memtable_bytes: 4.0 * MIB,
            fill_time: 1.0,
            delay_max: 1.0,
            compacts: true,
            memtables_max: 2,
            ..Outlook::default()
        }
    }

    fn rates() -> Rates {
        let mut rates = Rates::default();
        for second in 1..=60 {
            let flushed = second << 22;
            rates.note(Duration::from_secs(second), (flushed, 5 * flushed), true);
        }
        rates
    }

    fn seconds(time: Option<Duration>) -> f64 {
        time.expect("a forecast").as_secs_f64()
    }

    #[test]
    fn without_compactions_level_0_fills_table_by_table() {
        let alone = Outlook { compacts: false, filled: 0.5, ..outlook(0) };
        let forecast = alone.forecast(&rates());
        assert!((8.4..8.6).contains(&seconds(forecast.slowdown)), "{forecast:?}");
        // From the slowdown on a table takes longer: 1 s, and a third, once, and three times that of the sustained rate.
        let stop = seconds(forecast.stop);
        assert!((13.0..18.0).contains(&stop), "{forecast:?}");
        assert_eq!(Outlook { fill_time: 0.0, ..alone }.forecast(&rates()), Forecast::default(), "no writer");
    }

    #[test]
    fn the_running_compaction_takes_its_tables_off_at_its_end() {
        // It reads 400 MiB, which takes 20 s: too long for four more tables.
        let long = Outlook { taken: 6, taken_bytes: 400.0 * MIB, ..outlook(8) };
        let stop = seconds(long.forecast(&rates()).stop);
        assert!((4.0..12.0).contains(&stop), "{stop}");
        let soon = Outlook { taken_for: 19.0, ..long };
        let later = soon.forecast(&rates()).stop;
        assert!(later.is_none_or(|later| later.as_secs_f64() > stop + 1.0), "{later:?}");
    }

    /// Regression: before the first compaction had ended, the forecast expected none, and level 0 to fill.
    #[test]
    fn a_load_that_compactions_carry_has_no_stop() {
        let mut easy = outlook(2);
        easy.fill_time = 10.0;
        assert_eq!(easy.forecast(&rates()).stop, None);
        assert_eq!(easy.forecast(&Rates::default()), Forecast::default());
    }

    #[test]
    fn debt_stops_writers_as_level_0_does() {
        let bounds = Bounds { l0: (90.0, 99.0), debt: (52.0 * MIB, 70.0 * MIB) };
        let owing = Outlook { debt: 50.0 * MIB, bounds: Some(bounds), compacts: false, ..outlook(0) };
        let forecast = owing.forecast(&rates());
        assert!((1.0..=2.0).contains(&seconds(forecast.slowdown)), "{forecast:?}");
        assert!((4.0..12.0).contains(&seconds(forecast.stop)), "{forecast:?}");
    }

    #[test]
    fn memtables_stop_writers_when_flushes_are_slower() {
        let slow = Outlook { flush_time: 3.0, immutable: 1, memtables_max: 3, bounds: None, ..outlook(0) };
        let stop = seconds(slow.forecast(&rates()).stop);
        assert!((2.0..=5.0).contains(&stop), "{stop}");
        assert_eq!(Outlook { flush_time: 0.5, compacts: false, ..slow }.memtables(), None);
    }
}
