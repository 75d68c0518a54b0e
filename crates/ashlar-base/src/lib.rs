//! The words of the house: keys, sequence numbers, errors, cursors over bytes, checksums, comparators, statistics.
//!
//! No I/O, no threads, no `unsafe`. Everything above speaks in these types: bytes become types once, at the edge
//! (`ashlar-format`), and what stands behind it trusts the type.

pub mod bytes;
pub mod checksum;
pub mod error;
pub mod ext;
pub mod ids;
pub mod iter;
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
pub use ext::comparator::{Comparator, Order};
pub use ext::merge_operator::MergeOperator;
pub use ids::{FamilyId, FileNumber, Level};
pub use iter::{Direction, Entry, InternalIterator, RunCursor, Window};
pub use key::{InternalKey, InternalKeyBuf, LookupKey, SeqNum, Trailer, ValueType};
