//! Writing a table.

mod block_sink;
mod separators;
mod table_builder;
mod tombstone_block;

pub use table_builder::{TableBuilder, TableSummary};
