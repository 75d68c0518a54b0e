//! What the tables of a family say about themselves.
//!
//! Source: RocksDB `include/rocksdb/db.h` (`GetPropertiesOfAllTables`, `GetPropertiesOfTablesInRange`).

use super::Db;
use crate::column_family::Family;
use ashlar_base::ext::table_properties_collector::UserProperties;
use ashlar_base::{FileNumber, Level, Order, Result};
use ashlar_format::table::Properties;
use ashlar_read::iter::KeyBounds;
use ashlar_tree::version::FileMeta;

/// The properties of one table.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableProperties {
    /// The file number in the table's name.
    pub number: FileNumber,
    /// The level of the table.
    pub level: Level,
    /// What the collectors of the family gave when the table was written, by name.
    pub collected: UserProperties,
    /// The names of the collectors' factories, as `[first,second]`; empty: the table does not say.
    pub collectors: String,
    /// A collector asked for a compaction of the table.
    pub marked_for_compaction: bool,
    /// The number of entries, range deletions included; `None`, here and below: the table does not say.
    pub entries: Option<u64>,
    /// The number of deletions among them.
    pub deletions: Option<u64>,
    /// The number of range deletions among them.
    pub range_deletions: Option<u64>,
    /// The number of merge operands among the entries.
    pub merge_operands: Option<u64>,
    /// Bytes of all keys before compression, with eight more per key.
    pub raw_key_bytes: Option<u64>,
    /// Bytes of all values before compression.
    pub raw_value_bytes: Option<u64>,
    /// Bytes of the data blocks as stored.
    pub data_bytes: Option<u64>,
    /// Everything that the table says about itself.
    pub stored: Properties,
}

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
                let marked_for_compaction = file.file.need_compaction;
                Ok(said(file.number(), level, marked_for_compaction, table.properties()))
            })
            .collect()
    }
}

fn said(number: FileNumber, level: Level, marked_for_compaction: bool, said: &Properties) -> TableProperties {
    TableProperties {
        number,
        level,
        collected: said.collected(),
        collectors: said.property_collectors.clone().unwrap_or_default(),
        marked_for_compaction,
        entries: said.num_entries,
        deletions: said.num_deletions,
        range_deletions: said.num_range_deletions,
        merge_operands: said.num_merge_operands,
        raw_key_bytes: said.raw_key_size,
        raw_value_bytes: said.raw_value_size,
        data_bytes: said.data_size,
        stored: said.clone(),
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
