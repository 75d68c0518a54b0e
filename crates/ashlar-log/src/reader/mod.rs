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
//!    count as zeros.
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

/// The largest record taken: a batch is limited to 4 GiB.
const RECORD_MAX: usize = u32::MAX as usize;

/// Appends bytes to a record that is put together; false when it grows over [`RECORD_MAX`].
///
/// # Errors
/// The system has no memory, or the record takes more of it than one record should ([`uncompressed_max`]).
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

/// How much damage is forgiven. RocksDB's `WALRecoveryMode`, with its numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RecoveryMode {
    /// 0: a torn tail, in every log; any other damage is a cut that fails the open.
    TolerateTail = 0,
    /// 1: nothing; every cut fails the open.
    Absolute = 1,
    /// 2: every cut is where the database ends. The default.
    #[default]
    PointInTime = 2,
    /// 3: what does not read is passed over.
    SkipAny = 3,
}

/// What a delivered record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogRecordKind {
    /// A write batch or a version edit.
    Data,
    /// Timestamp sizes; `decode_timestamp_sizes` of `ashlar_format::log_record` reads them and cannot fail here.
    TimestampSizes,
    /// What the log before this one must look like; `PredecessorInfo::decode` cannot fail here.
    PredecessorInfo,
}

/// A whole record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogRecord<'a> {
    /// Where its first header stands in the file.
    pub offset: u64,
    /// What it is.
    pub kind: LogRecordKind,
    /// Its bytes, uncompressed. Valid until the next call.
    pub payload: &'a [u8],
}

/// Why reading could not go on.
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
    /// Zeros where records were written: something follows them.
    Zeros,
    /// Records of the file's former life where records of this log were written: some follow.
    FormerLife,
    /// A record has its last fragment missing, and another record follows.
    NoEnd,
    /// A record has its first fragment missing.
    NoStart,
    /// Something that is no fragment stands between a record's fragments.
    Interrupted,
    /// A record type that is not known and must not be passed over.
    UnknownType(u8),
    /// Long headers behind records with short ones.
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
    /// At the end of a record, or in zeros, or (modes `TolerateTail`, `Absolute`) at a record of the file's former life.
    Clean,
    /// In something that the mode takes for an interrupted write and forgives silently.
    Torn {
        /// Where what was dropped begins.
        offset: u64,
        /// What was found.
        reason: CutReason,
        /// Bytes dropped.
        dropped_bytes: u64,
    },
    /// In damage. Nothing behind it was looked at.
    Cut {
        /// Where the damage is.
        offset: u64,
        /// What was found.
        reason: CutReason,
        /// Bytes known to be dropped: of the record, or of the rest of its block.
        dropped_bytes: u64,
    },
    /// Mode `PointInTime`: at a record of the file's former life. Replay stops, unless the next log goes on with exactly
    /// the next sequence.
    OldRecord {
        /// Where that record stands.
        offset: u64,
    },
}

/// What [`RecoveryMode::SkipAny`] passed over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    /// Number of damages.
    pub count: u64,
    /// Bytes known to be dropped.
    pub bytes: u64,
    /// Offset and reason of the first.
    pub first: Option<(u64, CutReason)>,
}

#[cfg(test)]
mod recycled_tests;
#[cfg(test)]
mod tests;
