//! What a database says about itself, under RocksDB's names: its properties, the texts of `rocksdb.stats`, its info log.
//!
//! | module | idea |
//! |---|---|
//! | `catalog` | the names of all properties, and which are supported |
//! | `levels`, `aggregate`, `cache_roles` | the sizes of the tree, sums over tables, the memory by use |
//! | `memory_report`, `pins` | the memory by class and owner, and what readers keep alive |
//! | `work`, `stats_text` | flushes and compactions by level, and the texts made from them |
//! | `counters` | the sums since the open, and what the last text reported of them |
//! | `write_tally` | the counts of the write path |
//! | `info_log`, `events` | the file `LOG`; events on their way to listeners and to that file |
//!
//! The values and the lines come from the engine; this crate gives them names, sums, texts and a file.
//!
//! Each module may use only modules above it (`cargo xtask tidy` reads this order).

mod human;
mod lines;
mod info_log;
mod events;
mod catalog;
mod levels;
mod aggregate;
mod cache_roles;
mod memory_report;
mod pins;
mod work;
mod stats_text;
mod counters;
mod write_tally;

pub use aggregate::TableSums;
pub use cache_roles::CacheRoles;
pub use catalog::{Answer, PROPERTIES, Property, find_property};
pub use counters::{Counters, Scrubbed, StallCause};
pub use events::Events;
pub use human::bytes as human_bytes;
pub use info_log::InfoLog;
pub use levels::{FamilyShape, levelstats, live_data_bytes, tables_text};
pub use lines::utc;
pub use memory_report::{MemoryClass, MemoryReport};
pub use pins::{Pins, SnapshotPins};
pub use stats_text::{BlobNow, DbWrites, FamilyStats, LevelNow, StallCounts, db_text, family_text};
pub use work::{FamilyWork, LevelWork};
pub use write_tally::{GroupSize, WriteTally, WriteTotals};
