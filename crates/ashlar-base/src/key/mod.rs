//! Internal keys: what memtables and tables order by.
//!
//! ```text
//! | user key | trailer: u64 LE = sequence << 8 | value type |
//! ```
//! 1. Order: user key ascending by the comparator, then the trailer descending: newest first.
//! 2. An [`InternalKey`] has at least eight bytes; nothing else builds one.
//! 3. Sequence numbers have 56 bits; the first write of a database gets 1; 0 occurs in tables after compaction.
//!
//! Source: RocksDB `db/dbformat.h`.

mod internal;
mod lookup;
pub mod timestamp;

pub use internal::{InternalKey, InternalKeyBuf, SeqNum, Trailer, ValueType};
pub use lookup::LookupKey;
