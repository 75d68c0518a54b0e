//! Opens a table and finds keys in it.

mod ahead;
mod block_file;
mod blocks;
mod bounds;
mod embedded;
mod lookup;
mod open;
mod readahead;
mod scratch;
mod table_index;
mod table_reader;
mod tombstones;
mod windows;

pub(crate) use ahead::Ahead;
pub(crate) use block_file::{BlockFile, MAX_BLOCK, MAX_META_BLOCK, Reading, meta_block_max};
pub(crate) use blocks::opened;
pub use lookup::Ask;
pub use open::TableSurvey;
pub(crate) use readahead::{Readahead, SharedBlock};
pub(crate) use table_index::{BlockAt, charge_table};
pub use table_reader::{FoundIn, ShowEntry, TableFound, TableReader};
pub use windows::Windows;
