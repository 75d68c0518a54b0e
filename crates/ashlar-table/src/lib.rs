//! SST files on storage: building, opening, point lookups, cursors, verification.
//!
//! The bytes are `ashlar-format`'s, the files `ashlar-env`'s, the memory of blocks `ashlar-cache`'s; this crate joins
//! the three. A table is written once, front to back, and never changes.
//!
//! ```text
//! TableBuilder -> | data blocks | filter | index | properties | metaindex | footer |  -> TableReader -> get
//!                                                                                              |-----> TableIter
//!                                                                                              '-----> RunCursor
//! ```
//! 1. Every block that enters memory has been checked first, unless the options say otherwise.
//! 2. An error names the file and, where there is one, the offset of the block.
//! 3. A feature that is not served is refused by name when the table is opened or the block is read, never guessed at.
//!
//! Source: RocksDB `table/block_based/`, LevelDB `table/`.
#![deny(clippy::indexing_slicing)]

mod anatomy;
mod around;
mod builder;
mod filter;
mod footer;
mod index;
mod iter;
mod options;
mod read_how;
mod reader;
mod sst_writer;
mod unique_id;
mod verify;

pub use anatomy::{Anatomy, BlockPlace, BlockRole, DataPlace, NamedProperty, StoredBlock};
pub use around::LostStretch;
pub use builder::{CollectorFailure, MAX_ENTRY_BYTES, MAX_KEY_BYTES, TableBuilder, TableSummary};
pub use filter::filter_hash;
pub use footer::with_proved_footer;
pub use iter::{Stepped, TableCursor, TableIter};
pub use options::{FORMAT_VERSIONS, ReaderOptions, TableIdentity, TableOptions};
pub use read_how::{ReadHow, ReadLimit};
pub use reader::{Ask, FoundIn, ShowEntry, TableFound, TableReader, TableSurvey, Windows};
pub use sst_writer::{SstSummary, SstWriter, SstWriterInput};
pub use unique_id::{unique_id, unique_id_bytes};
pub use verify::Verification;
