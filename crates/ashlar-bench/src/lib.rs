//! Workloads and measurements with db_bench's names, flags and lines.
//!
//! The core is pure: keys, values, random streams, plans, statistics and lines are functions of values. Threads ([`run`])
//! use the core and an engine that implements [`Engine`] and [`Store`], so that every engine does exactly the same work.
//! Time is the environment's clock; threads are the benchmark's own, not the engine's job executor.

#![deny(clippy::print_stderr, reason = "eprintln! panics when it cannot write; see say")]

mod access;
mod ashlar;
mod baseline;
mod budget;
mod calendar;
mod course;
mod flags;
mod header;
mod json;
mod keys;
mod lengths;
mod meter;
mod micro;
mod pace;
mod plan;
mod random;
mod repeat;
mod reporter;
mod runner;
pub mod say;
mod session;
mod stats;
mod store;
mod temporary;
#[cfg(test)]
mod tests;
mod transactions;
mod values;
mod words;
mod worker;

pub use access::Access;
pub use ashlar::Ashlar;
pub use calendar::utc;
pub use flags::{Flags, Parsed, TreeState, parse};
pub use keys::{KeyMaker, KeyOrder, KeyShape, KeyStream};
pub use lengths::Kind as Lengths;
pub use plan::{Beside, Plan, Work};
pub use random::Random;
pub use repeat::Repeat;
pub use session::{Done, Failure, Place, run};
pub use stats::{Measured, OpKind, ThreadStats};
pub use store::{Engine, Store, Transaction, Walk, WriteHow, Writer};
pub use values::Values;
pub use words::words;
