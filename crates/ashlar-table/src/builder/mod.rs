//! Writing a table.

mod block_sink;
mod separators;
mod table_builder;

pub use table_builder::{TableBuilder, TableSummary};
