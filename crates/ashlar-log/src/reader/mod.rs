//! Reads a log, and treats damage by the recovery mode.
//!
//! 1. A record is delivered only if the checksum of each fragment is right and the fragments are in order.
//! 2. The first damage that the mode does not forgive ends the reading ([`LogEnd::Cut`]). [`RecoveryMode::SkipAny`]
//!    reads on behind the damage and counts it ([`LogReader::skipped`]).
//! 3. Some damage looks like a write that a crash interrupted. The modes that forgive it end the reading with
//!    [`LogEnd::Torn`]. After a cut the caller decides: it fails the open, or ends the replay there.
//! 4. The MANIFEST is read in [`RecoveryMode::TolerateTail`], and any cut is fatal.
//! 5. Zeros at the end of a file are space that was never written. Zeros with data behind them are writes that a power
//!    cut lost while it kept later ones. They are damage, except in [`RecoveryMode::SkipAny`]. RocksDB skips them in
//!    every mode, and so uses data behind a hole. A power cut may also keep bytes of a checksum before the zeros; they
//!    count as zeros. A process that is killed in the middle of a store into a mapped WAL leaves a payload behind zeros, at
//!    the end of the file: a torn tail in [`RecoveryMode::TolerateTail`].
//! 6. A record with another log's number belongs to the file's earlier use only if its checksum is right. Otherwise its
//!    type or its number is damaged. RocksDB does not check this and takes the record for the end of the log.
//! 7. A recycled log ends where its writer stopped, which may be in the middle of a record of the file's earlier use.
//!    Unreadable bytes are the end of the log, not damage, under three conditions: their header does not have the log's
//!    number, whole records of the earlier use follow, and no record of this log follows. RocksDB ends there too, and
//!    reports corruption in some modes.
//! 8. In a log of recyclable records, up to ten zeros at the end of a block fill the block, also within a record.
//!
//! Source: RocksDB `db/log_reader.cc`, `db/db_impl/db_impl_open.cc`.

mod assemble;
mod blocks;
mod physical;
mod scan;
mod zstd_stream;

pub use assemble::LogReader;
pub use physical::{PhysicalKind, PhysicalRecord, PhysicalRecords};
pub use scan::record_behind;

use ashlar_base::bytes::OutOfMemory;
use ashlar_env::uncompressed_max;
use std::fmt;

/// The length of the largest record: a batch is limited to 4 GiB.
const RECORD_MAX: usize = u32::MAX as usize;

/// Appends bytes to the record being assembled; false when it exceeds [`RECORD_MAX`].
///
/// # Errors
/// The system has no memory, or the record takes more memory than one record may ([`uncompressed_max`]).
fn append(record: &mut Vec<u8>, bytes: &[u8]) -> Result<bool, OutOfMemory> {
    let len = record.len().saturating_add(bytes.len());
    if len > RECORD_MAX {
        return Ok(false);
    }
    if len > uncompressed_max() {
        return Err(OutOfMemory);
    }
    record.try_reserve(bytes.len())?;
    record.extend_from_slice(bytes);
    Ok(true)
}

/// Which damage of a WAL file an open tolerates. RocksDB's `WALRecoveryMode`, with its numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RecoveryMode {
    /// 0: tolerates a torn tail in every WAL file. Any other damage fails the open.
    TolerateTail = 0,
    /// 1: tolerates nothing. Every damage fails the open.
    Absolute = 1,
    /// 2: the database ends at the first damage. The default.
    #[default]
    PointInTime = 2,
    /// 3: skips unreadable records and goes on after them.
    SkipAny = 3,
}

/// The kind of a delivered record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogRecordKind {
    /// A write batch or a version edit.
    Data,
    /// Timestamp sizes; `decode_timestamp_sizes` of `ashlar_format::log_record` reads them and cannot fail here.
    TimestampSizes,
    /// The expected end of the preceding log; `PredecessorInfo::decode` cannot fail here.
    PredecessorInfo,
}

/// A whole record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogRecord<'a> {
    /// The file offset of its first header.
    pub offset: u64,
    /// The kind of the record.
    pub kind: LogRecordKind,
    /// The bytes of the record, uncompressed. Valid until the next call.
    pub payload: &'a [u8],
}

/// The reason why reading ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CutReason {
    /// The file ends inside a header.
    TruncatedHeader,
    /// The file ends inside a record's payload, or a length is wrong in the last block.
    TruncatedBody,
    /// The file ends between the fragments of a record.
    MissingFragments,
    /// A length reaches past its block.
    BadLength,
    /// A checksum is wrong.
    ChecksumMismatch,
    /// Zeros where records were written, with data after them.
    Zeros,
    /// The file ends with a payload before which the header was never stored.
    UnfinishedStore,
    /// Records of the file's earlier use where records of this log were written: records of this log follow.
    FormerLife,
    /// A record has its last fragment missing, and another record follows.
    NoEnd,
    /// A record has its first fragment missing.
    NoStart,
    /// A record's fragments have something between them that is not a fragment.
    Interrupted,
    /// An unknown record type that must not be skipped.
    UnknownType(u8),
    /// Long headers after records with short ones.
    MixedForms,
    /// A set-compression record that is not the first, or names an unknown compression.
    BadCompressionRecord,
    /// A record of timestamp sizes that does not decode, or names a family twice.
    BadTimestampSizes,
    /// A predecessor record that does not decode.
    BadPredecessorInfo,
    /// A compressed record that does not decompress.
    BadCompressedData,
    /// More than 4 GiB in one record.
    TooLarge,
    /// More zeros than any writer reserves: see [`LogReader::with_zeros_max`].
    ManyZeros,
}

impl fmt::Display for CutReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            CutReason::TruncatedHeader => "truncated header",
            CutReason::TruncatedBody => "truncated record body",
            CutReason::MissingFragments => "the file ends between the fragments of a record",
            CutReason::BadLength => "bad record length",
            CutReason::ChecksumMismatch => "checksum mismatch",
            CutReason::Zeros => "zeros where something was written",
            CutReason::UnfinishedStore => "a payload without its header at the end of the file",
            CutReason::FormerLife => "records of the file's former life where something was written",
            CutReason::NoEnd => "partial record without end",
            CutReason::NoStart => "missing start of fragmented record",
            CutReason::Interrupted => "error in middle of record",
            CutReason::UnknownType(byte) => return write!(f, "unknown record type {byte}"),
            CutReason::MixedForms => "recyclable record in a log of others",
            CutReason::BadCompressionRecord => "bad compression record",
            CutReason::BadTimestampSizes => "bad record of timestamp sizes",
            CutReason::BadPredecessorInfo => "bad predecessor record",
            CutReason::BadCompressedData => "record does not decompress",
            CutReason::TooLarge => "record of more than 4 GiB",
            CutReason::ManyZeros => "more zeros than any writer reserves",
        };
        f.write_str(text)
    }
}

/// How the log ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogEnd {
    /// The log ends with a record, in zeros, or (modes `TolerateTail`, `Absolute`) at a record of the file's earlier
    /// use.
    Clean,
    /// The log ends in bytes that the mode takes for an interrupted write. It drops them without an error.
    Torn {
        /// The offset of the first dropped byte.
        offset: u64,
        /// What the reader found there.
        reason: CutReason,
        /// The number of dropped bytes.
        dropped_bytes: u64,
    },
    /// The log ends in damage. The reader did not look at the bytes after it.
    Cut {
        /// The offset of the damage.
        offset: u64,
        /// What the reader found there.
        reason: CutReason,
        /// The number of bytes known to be dropped: the rest of the record, or of its block.
        dropped_bytes: u64,
    },
    /// Mode `PointInTime`: the log ends at a record of the file's earlier use. Replay stops, unless the next log
    /// continues with exactly the next sequence number.
    OldRecord {
        /// The offset of that record.
        offset: u64,
    },
}

/// The damage that [`RecoveryMode::SkipAny`] skipped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    /// The number of damages.
    pub count: u64,
    /// The number of bytes known to be dropped.
    pub bytes: u64,
    /// The offset and the reason of the first damage.
    pub first: Option<(u64, CutReason)>,
}

#[cfg(test)]
mod recycled_tests;
#[cfg(test)]
mod tests;
