//! Flush and compaction, and the rewrite loop that both share.
//!
//! [`flush`] writes memtables to a table of level 0; [`rewrite`] decides which entries survive and writes tables, with the
//! properties that a [`Writer`] gives them. For a compaction, the [`Style`](picker::Style) of the tree picks what to compact
//! (pure, no lock), `plan` holds the decision and says whether the files are rewritten, moved or dropped. `split` cuts a
//! large rewrite into parts, `inputs` opens the tables. `job` runs the parts (no lock, all the I/O, resumable in steps) and
//! returns a version edit for the caller to install. [`RateLimiter`] limits what
//! background jobs write.
//!
//! Source: RocksDB `db/compaction/compaction_picker_level.cc`, `db/version_set.cc` (behaviour).

pub mod rewrite;
mod session;
mod expiry;
mod writer;
pub mod flush;
mod split;
mod plan;
pub mod picker;
mod level_run;
mod inputs;
mod job;
mod flush_rate;
mod limiter;

pub use expiry::filter_of;
pub use flush_rate::FlushRate;
pub use job::{CompactionCounters, CompactionInput, CompactionOutcome, CompactionPart, edit_without_io};
pub use limiter::{Limit, RateLimiter, Written};
pub use plan::{Action, Compaction, Reason, Running};
pub use session::new_session_id;
pub use writer::{Writer, output_numbers};

#[cfg(test)]
mod tree_tests;
