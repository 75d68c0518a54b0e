//! The types that all crates share: keys, sequence numbers, errors, cursors over bytes, checksums, comparators,
//! statistics.
//!
//! No I/O, no threads, no `unsafe`. Bytes from a disk become these types once, in `ashlar-format`; all other code
//! trusts the types.

pub mod bytes;
pub mod checksum;
pub mod error;
pub mod ext;
pub mod ids;
pub mod iter;
pub mod kept;
pub mod key;
pub mod memory;
pub mod nearest;
pub mod panics;
pub mod planted;
pub mod range_del;
pub mod splitmix;
pub mod stats;

pub use bytes::{Cursor, Malformed};
pub use error::{Error, ErrorKind, Result};
pub use ext::compaction_filter::{CompactionFilter, CompactionFilterFactory, FilterSource};
pub use ext::comparator::{Comparator, Order};
pub use ext::merge_operator::MergeOperator;
pub use ids::{FamilyId, FileNumber, Level};
pub use iter::{Direction, Entry, InternalIterator, RunCursor, Window};
pub use key::{InternalKey, InternalKeyBuf, LookupKey, SeqNum, Trailer, ValueType};
