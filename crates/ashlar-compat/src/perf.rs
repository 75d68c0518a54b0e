//! The perf context of the calling thread.
//!
//! RocksDB's threads count from their beginning, with `kEnableCount`. The engine's threads count nothing until they are asked to, so
//! that programs without a perf context do not pay for it. A thread that sets no level counts from its first question on.

pub use ashlar_base::stats::perf::Level;
use ashlar_base::stats::perf::{self, Context, Metric};
use std::cell::Cell;

thread_local! {
    /// What the thread counts; `None`: it was not asked yet.
    static LEVEL: Cell<Option<Level>> = const { Cell::new(None) };
}

/// Changes what the calling thread counts.
pub fn set_level(level: Level) {
    LEVEL.set(Some(level));
    perf::set_level(level, None);
}

/// What the calling thread counts, from now on if no call has set a level: then as RocksDB does by default.
pub fn level() -> Level {
    LEVEL.get().unwrap_or_else(|| {
        set_level(Level::EnableCount);
        Level::EnableCount
    })
}

/// A sum of the calling thread, by RocksDB's name; 0 for one that is not counted.
pub fn sum(name: &str) -> u64 {
    level();
    Metric::named(name).map_or(0, |metric| Context::now().get(metric))
}

/// All sums of the calling thread as a text, in RocksDB's order, perhaps without those that are zero.
pub fn report(exclude_zero: bool) -> String {
    level();
    let now = Context::now();
    let sums = Metric::ALL.iter().map(|metric| (metric.name(), now.get(*metric)));
    let shown = sums.filter(|(_, sum)| !exclude_zero || *sum > 0);
    shown.map(|(name, sum)| format!("{name} = {sum}")).collect::<Vec<_>>().join(", ")
}

/// Sets the sums of the calling thread to zero.
pub fn reset() {
    level();
    perf::reset();
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread of its own, because the level is one of the thread.
    #[test]
    fn a_thread_counts_from_its_first_question_on() {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                assert_eq!((level(), perf::level()), (Level::EnableCount, Level::EnableCount));
                set_level(Level::Disable);
                assert_eq!((level(), sum("block_read_count")), (Level::Disable, 0));
                assert_eq!(report(true), "");
                assert!(report(false).contains("block_read_count = 0"));
            });
        });
    }
}
