//! Flush: the oldest immutable memtables of a family become one table of level 0.
//!
//! Pick: the caller takes all immutable memtables of the family. Run: [`FlushRun`], in steps, without any lock. Install: the caller takes the edit of the
//! [`FlushOutcome`], adds the log number, commits the edit, and removes the memtables.
//!
//! Source: RocksDB `db/flush_job.cc` (behaviour).

mod run;

pub use run::{FlushInput, FlushOutcome, FlushRun};

#[cfg(test)]
mod tests;
