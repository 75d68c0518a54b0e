//! The source from which a cursor gets its table.

use crate::read_how::ReadHow;
use crate::reader::TableReader;
use ashlar_base::{Order, Result};
use std::ops::Deref;
use std::sync::Arc;

/// A table that the table cache may close while a cursor is in one of its blocks.
pub trait TableSource: Send {
    /// The table; it stays open as long as this lives.
    type Open<'a>: Deref<Target = TableReader>
    where
        Self: 'a;

    /// The table, opened within the limits of the read if it is not open. It is the same file each time.
    ///
    /// # Errors
    /// As [`TableReader::open`]; those of [`ReadHow::in_file`].
    fn open(&self, how: &ReadHow) -> Result<Self::Open<'_>>;

    /// The order of the table's keys.
    fn order(&self) -> &Order;
}

/// The table stays open as long as the cursor lives.
impl TableSource for Arc<TableReader> {
    type Open<'a> = &'a TableReader;

    #[inline]
    fn open(&self, _how: &ReadHow) -> Result<&TableReader> {
        Ok(self)
    }

    #[inline]
    fn order(&self) -> &Order {
        TableReader::order(self)
    }
}
