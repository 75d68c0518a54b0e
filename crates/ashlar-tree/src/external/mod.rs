//! External files: SST files that no database wrote, before they become tables of a version.
//!
//! [`survey`] and [`inspect()`] read such a file and refuse what a family cannot take. [`Span`] is the range of its keys, and finds
//! the tables of a version that overlap the range. Nothing here changes a file or a version.

mod inspect;
mod span;

pub use inspect::{Inspected, Taker, Takes, inspect, survey};
pub use span::{Span, fits, level_overlaps};
