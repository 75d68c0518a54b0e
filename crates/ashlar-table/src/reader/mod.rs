//! Opening a table and finding keys in it.

mod block_file;
mod open;
mod table_reader;
mod tombstones;

pub(crate) use block_file::BlockFile;
pub use table_reader::{TableFound, TableReader};
