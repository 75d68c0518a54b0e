//! Log records: the framing shared by the WAL and the MANIFEST.
//!
//! A log is a row of 32 KiB blocks. A logical record is one `Full` fragment, or `First Middle* Last`; no fragment
//! crosses a block.
//! ```text
//! | crc: u32 LE, masked crc32c | len: u16 LE | type: u8 | log number: u32 LE, recyclable types only | payload: len |
//! ```
//! 1. The crc covers type, log number and payload; `len` counts the payload only.
//! 2. A block's last bytes, when too few for a header, are zero and skipped; when just enough, they hold an empty
//!    `First` fragment. In a log of recyclable records that is up to ten zeros, more than a short header has.
//! 3. A recyclable fragment with another log number is from the file's former life.
//! 4. Type 0 with length 0 means: go on at the next block. It is no end mark.
//! 5. A compressed log begins with a set-compression record; each data record is a zstd frame, and fragments are shorter
//!    (see [`encode_frame`]).
//! 6. An unknown type with bit 0x80 may be skipped, one without it is damage. It has the short header.
//!
//! Source: RocksDB `db/log_format.h`, `db/log_writer.cc`, `db/log_reader.cc`.

#![deny(clippy::indexing_slicing)]

mod encode;
mod link;
mod meta;
mod physical;

pub use encode::{Framing, encode_compression_record, encode_frame, encode_record, frame_end, record_end};
pub use link::LogLink;
pub use meta::{
    COMPRESSION_NONE, COMPRESSION_ZSTD, PredecessorInfo, decode_compression, decode_timestamp_sizes,
    encode_timestamp_sizes,
};
pub use physical::{
    Fault, Physical, closes_block, first_physical, has_its_checksum, is_of_log, parse_physical,
};

/// Bytes per block.
pub const BLOCK_SIZE: usize = 32 << 10;
/// The bytes of the checksum, with which a header begins.
pub const CHECKSUM: usize = 4;
/// Bytes of the header of types 1–4, 9, 10 and 130.
pub const HEADER: usize = 7;
/// Bytes of the header of types 5–8, 11 and 131.
pub const RECYCLABLE_HEADER: usize = 11;

/// What a physical record is, apart from the form of its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordKind {
    /// A whole logical record.
    Full,
    /// The first fragment.
    First,
    /// A fragment between first and last.
    Middle,
    /// The last fragment.
    Last,
    /// The compression of all following data records.
    SetCompression,
    /// Timestamp sizes of column families.
    TimestampSizes,
    /// What the previous WAL must look like.
    PredecessorInfo,
}

/// The type byte of a physical record: a kind and the form of the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordType {
    /// What it is.
    pub kind: RecordKind,
    /// True for the long header, which holds the log number.
    pub recyclable: bool,
}

impl RecordType {
    /// `None` for a type that is not known (0 included).
    pub const fn from_u8(byte: u8) -> Option<RecordType> {
        use RecordKind::{First, Full, Last, Middle, PredecessorInfo, SetCompression, TimestampSizes};
        let (kind, recyclable) = match byte {
            1 => (Full, false),
            2 => (First, false),
            3 => (Middle, false),
            4 => (Last, false),
            5 => (Full, true),
            6 => (First, true),
            7 => (Middle, true),
            8 => (Last, true),
            9 => (SetCompression, false),
            10 => (TimestampSizes, false),
            11 => (TimestampSizes, true),
            130 => (PredecessorInfo, false),
            131 => (PredecessorInfo, true),
            _ => return None,
        };
        Some(RecordType { kind, recyclable })
    }

    /// The byte in the file. There is no recyclable form of `SetCompression`.
    pub const fn to_u8(self) -> u8 {
        match (self.kind, self.recyclable) {
            (RecordKind::Full, false) => 1,
            (RecordKind::First, false) => 2,
            (RecordKind::Middle, false) => 3,
            (RecordKind::Last, false) => 4,
            (RecordKind::Full, true) => 5,
            (RecordKind::First, true) => 6,
            (RecordKind::Middle, true) => 7,
            (RecordKind::Last, true) => 8,
            (RecordKind::SetCompression, _) => 9,
            (RecordKind::TimestampSizes, false) => 10,
            (RecordKind::TimestampSizes, true) => 11,
            (RecordKind::PredecessorInfo, false) => 130,
            (RecordKind::PredecessorInfo, true) => 131,
        }
    }
}

#[cfg(test)]
mod tests;
