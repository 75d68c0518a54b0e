//! The perf context: sums of the calling thread.

use crate::door::Result;
use ashlar_compat::perf::{self, Level};
use ashlardb::Error;

/// Java's numbers of levels, with what the engine counts.
const LEVELS: [(i8, Level); 5] = [
    (1, Level::Disable),
    (2, Level::EnableCount),
    (3, Level::EnableTimeExceptForMutex),
    (4, Level::EnableTimeAndCpuTimeExceptForMutex),
    (5, Level::EnableTime),
];

// Each function below is the body of the natives that the description names.

/// A number that stands for the sums of the calling thread. No call looks at it. The thread counts from now on.
pub fn context() -> Result<i64> {
    perf::level();
    Ok(1)
}

/// The level of the thread, by Java's number.
pub fn level() -> Result<i8> {
    let own = perf::level();
    Ok(LEVELS.iter().find(|(_, level)| *level == own).map_or(0, |(number, _)| *number))
}

/// Changes the level of the thread.
///
/// # Errors
/// `InvalidArgument`: there is no such level.
pub fn set_level(level: i8) -> Result<()> {
    let known = LEVELS.iter().find(|(number, _)| *number == level);
    let (_, own) = known.ok_or_else(|| Error::invalid(format!("there is no perf level {level}")))?;
    perf::set_level(*own);
    Ok(())
}

/// A sum, by its name with and without `get_`; 0 for one that is not counted.
pub fn metric(full: &str, short: &str) -> Result<i64> {
    let sums = [perf::sum(full), perf::sum(short)];
    Ok(sums.into_iter().max().unwrap_or(0).cast_signed())
}

/// All sums begin again with 0.
pub fn reset() -> Result<()> {
    perf::reset();
    Ok(())
}

/// All sums as a text, perhaps without those that are zero.
pub fn text(exclude_zero: bool) -> Result<String> {
    Ok(perf::report(exclude_zero))
}
