//! What the tables of a family say about themselves.
//!
//! Source: RocksDB `include/rocksdb/db.h` (`GetPropertiesOfAllTables`, `GetPropertiesOfTablesInRange`).

use super::Db;
use crate::column_family::Family;
use ashlar_base::{FileNumber, Order, Result};
use ashlar_read::iter::KeyBounds;
use ashlar_tree::version::{FileMeta, TableProperties};

impl Db {
    /// The properties of the family's tables whose keys reach into `range`, by level: in level 0 the newest first, in deeper
    /// levels by key.
    ///
    /// # Errors
    /// `Corruption`, `Io`: a table cannot be opened. `InvalidArgument`: the family belongs to another database. `Shutdown`.
    /// # Cost
    /// Opens the tables that nothing has opened yet.
    pub fn table_properties(&self, family: &Family, range: &KeyBounds) -> Result<Vec<TableProperties>> {
        self.properties_where(family, |order, file| meets(file, order, range))
    }

    /// The properties of the family's table with that number; `None`: the family has no such table now.
    ///
    /// # Errors
    /// Those of [`Db::table_properties`].
    /// # Cost
    /// Opens the table if nothing has opened it yet.
    pub fn properties_of_table(
        &self,
        family: &Family,
        number: FileNumber,
    ) -> Result<Option<TableProperties>> {
        Ok(self.properties_where(family, |_, file| file.number() == number)?.pop())
    }

    fn properties_where(
        &self,
        family: &Family,
        is_asked: impl Fn(&Order, &FileMeta) -> bool,
    ) -> Result<Vec<TableProperties>> {
        let version = &family.super_version.get().version;
        self.core().check_open()?;
        self.core().check_own(family)?;
        let asked = version.files().filter(|(_, file)| is_asked(&version.order, file));
        asked
            .map(|(level, file)| {
                let table = version.table_for_pass(file)?;
                Ok(TableProperties::of(level, file, table.properties()))
            })
            .collect()
    }
}

/// Whether the bounds of a table have a key of the range.
fn meets(file: &FileMeta, order: &Order, range: &KeyBounds) -> bool {
    let (smallest, largest) = (file.smallest().user_key(), file.largest().user_key());
    let before = range.lower.as_deref().is_some_and(|lower| {
        file.ends_before(order, lower) || range.lower_open && order.compare(largest, lower).is_eq()
    });
    let behind = range.upper.as_deref().is_some_and(|upper| {
        let side = order.compare(smallest, upper);
        side.is_gt() || side.is_eq() && !range.upper_closed
    });
    !before && !behind
}
