//! Versions: the tables of each family, the edits that change them, and the MANIFEST that records the edits.
//!
//! ```text
//! CURRENT -> MANIFEST -> VersionEdits -> one Version per family -> FileMeta -> TableReader
//! ```

mod beside;
mod builder;
mod commit;
mod comparators;
mod current;
mod epoch;
mod fences;
mod file_meta;
mod file_table;
mod leader;
mod levels;
mod manifest;
mod open_tables;
mod plan;
mod queue;
mod replay;
mod replayed;
mod set;
mod snapshot;
mod state;
mod table_properties;
mod tables;

pub use beside::{read_manifest_beside, replay_manifest_beside};
pub use builder::TreeBuilder;
use current::SwitchFailure;
pub use current::{SMALL, candidates, read_small, write_small};
pub use current::{new_db_id, oversized_identity, read_current, read_identity, write_identity};
pub use file_meta::{FileMeta, TableCounts};
pub use file_table::OpenTable;
pub use levels::{Version, newest_first};
pub use manifest::start_manifest;
pub use open_tables::OpenTables;
pub use queue::Install;
pub use replay::{
    out_of_numbers, read_manifest, replay_durable, replay_manifest, verify_manifest, was_current,
};
pub use replayed::{DroppedTail, Replayed, ReplayedFamily};
pub use set::Beginning;
pub use set::{MANIFEST_BOUND, VersionSet};
pub use state::{Carried, DbFacts, FamilyState};
pub use table_properties::TableProperties;
pub use tables::Tables;
