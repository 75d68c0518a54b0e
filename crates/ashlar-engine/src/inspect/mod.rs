//! Properties, under RocksDB's names, and the level check: which releases can read a database.

mod aggregate;
mod cache_roles;
mod catalog;
mod check;
mod human;
mod level_check;
mod levels;
mod shape;
mod stats_text;
mod work;

pub use aggregate::TableSums;
pub use cache_roles::CacheRoles;
pub use catalog::{Answer, PROPERTIES, Property, find};
pub(crate) use check::{LogsNeeded, check_logs};
pub use check::{check_database, check_database_in};
pub(crate) use human::bytes as human_bytes;
pub use level_check::{Found, LevelReport, check_level, check_level_in};
pub use levels::{FamilyShape, levelstats, live_data_bytes, tables_text};
pub use shape::Shape;
pub use stats_text::{BlobNow, DbWrites, FamilyStats, LevelNow, StallCounts, db_text, family_text};
pub use work::{FamilyWork, LevelWork};
