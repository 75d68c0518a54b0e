//! Reads of a family at one moment, which is a [`super_version::SuperVersion`] and a sequence number.
//!
//! | module | idea |
//! |---|---|
//! | [`point`] | one key, or many at once: memtables first, then tables from the newest level down |
//! | [`iter`] | cursors: merge the runs in order, and combine versions to entries |
//! | [`merge`], [`range_del`], [`visibility`] | the result of several entries of one key |
//! | [`snapshot`] | the sequence numbers that reads may still use |
//! | [`overlap`] | what memtables have in the ranges of files that are ingested |
//! | [`expiry`] | values that end in the time of their write, and are hidden when they are over |
//!
//! This crate writes nothing, waits for no writer, and knows no background work.
//!
//! Each module may use only modules above it (`cargo xtask tidy` reads this order).

pub mod merge;
pub mod range_del;
pub mod visibility;
pub mod expiry;
pub mod overlap;
pub mod super_version;
pub mod snapshot;
pub mod iter;
pub mod point;

/// A copy that a reader holds is charged from this length on.
const CHARGED: usize = 16 << 10;
