//! The settings of a database and of one family together. `names` sets and shows them by their names in RocksDB.

use crate::{DbOptions, FamilyOptions};

/// The settings of a database and of one family: what RocksDB calls `Options`.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The settings of the database.
    pub db: DbOptions,
    /// The settings of the family.
    pub family: FamilyOptions,
}
