//! Point reads: from the newest home of a key to the oldest, and no further than the first that knows it.

mod explain;
mod get;
mod many;
mod trace;
mod view;

#[cfg(test)]
mod tests;

pub use explain::{GetExplained, ScanExplained, explain_get, explain_scan};
pub use get::{get, get_entity};
pub use many::{MayExist, may_exist, multi_get};
pub use trace::{Met, Place, Step};
pub use view::View;
