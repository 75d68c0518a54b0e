//! How long a thread runs: a count of operations, or a time.

use crate::plan::Plan;
use ashlar_env::Clock;
use std::time::Duration;

/// The remaining work of a thread.
#[derive(Debug)]
pub(crate) struct Budget {
    left: Option<u64>,
    until: Option<Duration>,
    every: u64,
    unchecked: u64,
}

impl Budget {
    /// The budget of a thread that begins now. With a time, the thread reads the clock every `every` operations.
    pub(crate) fn new(plan: &Plan, every: u64, clock: &dyn Clock) -> Self {
        let until = plan.duration.map(|d| clock.now() + d);
        Budget { left: plan.count, until, every, unchecked: 0 }
    }

    /// Takes up to `wanted` operations; 0 when the work is over.
    #[inline]
    pub(crate) fn take(&mut self, wanted: u64, clock: &dyn Clock) -> u64 {
        if let Some(until) = self.until {
            self.unchecked += wanted;
            if self.unchecked >= self.every {
                self.unchecked = 0;
                if clock.now() >= until {
                    self.left = Some(0);
                }
            }
        }
        let got = self.left.map_or(wanted, |left| left.min(wanted));
        self.left = self.left.map(|left| left - got);
        got
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::Flags;
    use ashlar_env::VirtualClock;

    #[test]
    fn counts_or_time_end_it() {
        let clock = VirtualClock::new();
        let mut plan = Plan::new("fillrandom", &Flags { num: 5, ..Flags::default() }).unwrap();
        let mut counted = Budget::new(&plan, 2, &clock);
        assert_eq!([2, 2, 2, 2].map(|n| counted.take(n, &clock)), [2, 2, 1, 0]);
        (plan.count, plan.duration) = (None, Some(Duration::from_secs(1)));
        let mut timed = Budget::new(&plan, 10, &clock);
        assert_eq!((0..100).map(|_| timed.take(1, &clock)).sum::<u64>(), 100);
        clock.advance(Duration::from_secs(2));
        assert!((0..20).map(|_| timed.take(1, &clock)).sum::<u64>() < 10);
    }
}
