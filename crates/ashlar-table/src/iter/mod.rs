//! Cursors over the entries of one table.

mod run_cursor;
mod table_cursor;
mod table_iter;

pub use table_cursor::{Stepped, TableCursor};
pub use table_iter::TableIter;
