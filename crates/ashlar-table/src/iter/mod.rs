//! Cursors over the entries of one table.

mod run_cursor;
mod source;
mod table_iter;

pub use source::TableSource;
pub use table_iter::TableIter;
