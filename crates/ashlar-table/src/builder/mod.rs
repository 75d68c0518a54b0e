//! Writes a table.

mod block_sink;
mod collectors;
mod filter_keys;
mod separators;
mod table_builder;
mod tail;
mod tombstone_block;
mod waiting;

pub use collectors::CollectorFailure;
pub use table_builder::{MAX_ENTRY_BYTES, MAX_KEY_BYTES, TableBuilder, TableSummary};
