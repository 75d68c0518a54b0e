//! The perf context: sums of the calling thread.

use crate::door::Result;
use ashlar_base::stats::perf::{self, Context, Level, Metric};
use std::cell::Cell;

/// Java's numbers of levels, with what the engine counts.
const LEVELS: [(i8, Level); 5] = [
    (1, Level::Disable),
    (2, Level::EnableCount),
    (3, Level::EnableTimeExceptForMutex),
    (4, Level::EnableTimeExceptForMutex),
    (5, Level::EnableTime),
];

thread_local! {
    /// Java's number of the level of the thread.
    static LEVEL: Cell<i8> = const { Cell::new(2) };
}

// Each function below is the body of the natives that the description names.

/// A number that stands for the sums of the calling thread. No call looks at it.
pub fn context() -> Result<i64> {
    Ok(1)
}

/// The level of the thread, by Java's number.
pub fn level() -> Result<i8> {
    Ok(LEVEL.get())
}

/// Changes the level of the thread.
///
/// # Errors
/// `InvalidArgument`: there is no such level.
pub fn set_level(level: i8) -> Result<()> {
    let known = LEVELS.iter().find(|(number, _)| *number == level);
    let (_, own) =
        known.ok_or_else(|| ashlardb::Error::invalid(format!("there is no perf level {level}")))?;
    LEVEL.set(level);
    perf::set_level(*own, None);
    Ok(())
}

/// A sum, by its name with and without `get_`; 0 for one that is not counted.
pub fn metric(full: &str, short: &str) -> Result<i64> {
    let metric = Metric::named(full).or_else(|| Metric::named(short));
    Ok(metric.map_or(0, |metric| Context::now().get(metric)).cast_signed())
}

/// All sums begin again with 0.
pub fn reset() -> Result<()> {
    perf::reset();
    Ok(())
}

/// All sums as a text, perhaps without those that are zero.
pub fn text(exclude_zero: bool) -> Result<String> {
    let now = Context::now();
    let sums = Metric::ALL.iter().map(|metric| (metric.name(), now.get(*metric)));
    let shown = sums.filter(|(_, sum)| !exclude_zero || *sum > 0);
    Ok(shown.map(|(name, sum)| format!("{name} = {sum}")).collect::<Vec<_>>().join(", "))
}
