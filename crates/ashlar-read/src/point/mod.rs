//! Point reads: ask the runs from the newest to the oldest, and stop at the first that has the key.

mod explain;
mod get;
mod many;
mod newest;
mod stage;
mod trace;
mod view;

#[cfg(test)]
mod tests;

pub use explain::{GetExplained, ScanExplained, explain_get, explain_scan};
pub use get::{get, get_entity};
pub use many::{may_exist, multi_get};
pub use newest::newest_sequence;
pub use trace::{Met, Probe, ProbedRun};
pub use view::{MayExist, View};
