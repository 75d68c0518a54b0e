//! Properties, under RocksDB's names, and the texts that answer them.

mod aggregate;
mod cache_roles;
mod catalog;
mod human;
mod levels;
mod stats_text;
mod work;

pub use aggregate::TableSums;
pub use cache_roles::CacheRoles;
pub use catalog::{Answer, PROPERTIES, Property, find};
pub(crate) use human::bytes as human_bytes;
pub use levels::{FamilyShape, levelstats, live_data_bytes, tables_text};
pub use stats_text::{BlobNow, DbWrites, FamilyStats, LevelNow, StallCounts, db_text, family_text};
pub use work::{FamilyWork, LevelWork};
