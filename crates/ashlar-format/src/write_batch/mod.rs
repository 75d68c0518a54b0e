//! Write batches: the payload of a WAL record.
//!
//! ```text
//! | sequence: u64 LE | count: u32 LE | { tag: u8, payload }* |
//! payload: [ family: varint32 ] then one to three slices, by tag
//! ```
//! 1. `count` is the number of data records; markers and log data are not counted, and consume no sequence number.
//! 2. The first data record has the batch's sequence, each further one the next.
//! 3. The family `default` is written in the short form, without its id; readers take both forms.
//! 4. Group commit puts the records of several batches after one header: [`BatchEncoder::append_records`].
//!
//! Source: RocksDB `db/write_batch.cc`, `db/dbformat.h`.

#![deny(clippy::indexing_slicing)]

mod encoder;
mod op;
mod reader;

pub use encoder::{BatchEncoder, BatchMark, set_sequence};
pub use op::BatchOp;
pub use reader::{BatchIter, BatchReader};

/// Bytes of sequence and count.
pub const BATCH_HEADER: usize = 12;

/// The tag bytes of batch records.
mod tag {
    pub const DELETE: u8 = 0x00;
    pub const PUT: u8 = 0x01;
    pub const MERGE: u8 = 0x02;
    pub const LOG_DATA: u8 = 0x03;
    pub const FAMILY_DELETE: u8 = 0x04;
    pub const FAMILY_PUT: u8 = 0x05;
    pub const FAMILY_MERGE: u8 = 0x06;
    pub const SINGLE_DELETE: u8 = 0x07;
    pub const FAMILY_SINGLE_DELETE: u8 = 0x08;
    pub const BEGIN_PREPARE: u8 = 0x09;
    pub const END_PREPARE: u8 = 0x0a;
    pub const COMMIT: u8 = 0x0b;
    pub const ROLLBACK: u8 = 0x0c;
    pub const NOOP: u8 = 0x0d;
    pub const FAMILY_DELETE_RANGE: u8 = 0x0e;
    pub const DELETE_RANGE: u8 = 0x0f;
    pub const FAMILY_BLOB_INDEX: u8 = 0x10;
    pub const BLOB_INDEX: u8 = 0x11;
    pub const BEGIN_PERSISTED_PREPARE: u8 = 0x12;
    pub const BEGIN_UNPREPARE: u8 = 0x13;
    pub const COMMIT_WITH_TIMESTAMP: u8 = 0x15;
    pub const ENTITY: u8 = 0x16;
    pub const FAMILY_ENTITY: u8 = 0x17;
    pub const TIMED_PUT: u8 = 0x18;
    pub const FAMILY_TIMED_PUT: u8 = 0x19;
}

#[cfg(test)]
mod tests;
