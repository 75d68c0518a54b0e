//! What the tables of a family say about themselves.
//!
//! Source: RocksDB `include/rocksdb/db.h` (`GetPropertiesOfAllTables`, `GetPropertiesOfTablesInRange`).

use super::Db;
use crate::column_family::Family;
use ashlar_base::{FileNumber, Level, Order, Result};
use ashlar_format::filename::FileKind;
use ashlar_read::iter::KeyBounds;
use ashlar_tree::version::{FileMeta, TableProperties, Version};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// The tables of a family at one moment: see [`Db::hold_tables`]. It does not keep the database open.
pub struct HeldTables(Arc<Version>);

impl fmt::Debug for HeldTables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HeldTables").field(&self.0.files().count()).finish()
    }
}

impl HeldTables {
    /// The properties of the table with that number; `None`: the family had no such table.
    ///
    /// # Errors
    /// `Corruption`, `Io`: the table cannot be opened.
    pub fn properties_of_table(&self, number: FileNumber) -> Result<Option<TableProperties>> {
        let found = self.0.files().find(|(_, file)| file.number() == number);
        let read = |(level, file): (Level, &Arc<FileMeta>)| {
            let table = self.0.table_for_pass(file)?;
            Ok(TableProperties::of(level, file, table.properties()))
        };
        found.map(read).transpose()
    }
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

    /// The path of the family's table with that number; `None`: the family has no such table now.
    ///
    /// # Errors
    /// `InvalidArgument`: the family belongs to another database. `Shutdown`.
    pub fn path_of_table(&self, family: &Family, number: FileNumber) -> Result<Option<PathBuf>> {
        let (core, version) = (self.core(), &family.super_version.get().version);
        core.check_open()?;
        core.check_own(family)?;
        let options = family.options();
        let found = version.files().find(|(_, file)| file.number() == number);
        Ok(found.map(|(_, meta)| {
            let dir = core.writer.dir_of(&core.dir, &options, meta.file.path_id);
            dir.join(FileKind::Table(number).name())
        }))
    }

    /// The paths of all tables of the family at this moment, by their numbers.
    ///
    /// # Errors
    /// As [`Db::path_of_table`].
    pub fn paths_of_tables(&self, family: &Family) -> Result<BTreeMap<FileNumber, PathBuf>> {
        let (core, version) = (self.core(), &family.super_version.get().version);
        core.check_open()?;
        core.check_own(family)?;
        let options = family.options();
        let path = |(_, meta): (Level, &Arc<FileMeta>)| {
            let dir = core.writer.dir_of(&core.dir, &options, meta.file.path_id);
            (meta.number(), dir.join(FileKind::Table(meta.number()).name()))
        };
        Ok(version.files().map(path).collect())
    }

    /// The tables of a family at this moment, which stay as long as the answer.
    ///
    /// # Errors
    /// As [`Db::path_of_table`].
    pub fn hold_tables(&self, family: &Family) -> Result<HeldTables> {
        self.core().check_open()?;
        self.core().check_own(family)?;
        Ok(HeldTables(Arc::clone(&family.super_version.get().version)))
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
