//! Internal keys, by which memtables and tables are sorted.
//!
//! ```text
//! | user key | trailer: u64 LE = sequence << 8 | value type |
//! ```
//! 1. Order: user key ascending by the comparator, then the trailer descending: newest first.
//! 2. An [`InternalKey`] has at least eight bytes; no other code builds one.
//! 3. Sequence numbers have 56 bits. The first write of a database gets 1; 0 occurs in tables after compaction.
//!
//! Source: RocksDB `db/dbformat.h`.

mod internal;
mod lookup;
mod sharing;
pub mod timestamp;

pub use internal::{InternalKey, InternalKeyBuf, SeqNum, Trailer, ValueType};
pub use lookup::LookupKey;
pub use sharing::Sharing;
