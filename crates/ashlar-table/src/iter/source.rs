//! The source from which a cursor gets its table.

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

    /// The table, opened if necessary. It is the same file each time.
    ///
    /// # Errors
    /// As [`TableReader::open`].
    fn open(&self) -> Result<Self::Open<'_>>;

    /// The order of the table's keys.
    fn order(&self) -> &Order;
}

/// The table stays open as long as the cursor lives.
impl TableSource for Arc<TableReader> {
    type Open<'a> = &'a TableReader;

    #[inline]
    fn open(&self) -> Result<&TableReader> {
        Ok(self)
    }

    #[inline]
    fn order(&self) -> &Order {
        TableReader::order(self)
    }
}
