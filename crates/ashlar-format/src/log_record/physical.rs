//! Reads one physical record from the rest of a block.

use super::{Framing, HEADER, RECYCLABLE_HEADER, RecordType};
use ashlar_base::Cursor;
use ashlar_base::checksum::{crc32c, crc32c_append, mask_crc};
use ashlar_base::planted::{Bug, planted};

/// A physical record whose checksum is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Physical<'a> {
    /// The type byte as stored; [`Physical::record_type`] tells whether it is known.
    pub type_byte: u8,
    /// The payload: what follows the header.
    pub payload: &'a [u8],
    /// Bytes of header and payload together.
    pub len: usize,
}

impl Physical<'_> {
    /// The type; `None` when it is not known here.
    pub fn record_type(&self) -> Option<RecordType> {
        RecordType::from_u8(self.type_byte)
    }

    /// True for an unknown type that a reader may pass over.
    pub fn may_be_ignored(&self) -> bool {
        self.type_byte & 0x80 != 0
    }
}

/// Why no record could be read. What follows from it depends on the recovery mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Too few bytes for a header are left: the closing bytes of a block, or a torn header at the end of the file.
    ShortHeader,
    /// A recyclable record after data records with the short header.
    MixedForms,
    /// The record claims more bytes than the block (or the file) has left.
    BadLength,
    /// Written under another log number; `len` bytes of header and payload may be skipped.
    OldRecord {
        /// Bytes of header and payload together.
        len: usize,
    },
    /// Type 0 and length 0: nothing more in this block.
    Zero,
    /// The checksum is wrong, so the length may be as well.
    BadChecksum,
}

/// Reads the physical record at the start of `rest`, which reaches to the end of the block (or of the file).
/// `legacy_only` says that data records were read and all of them had the short header.
///
/// # Errors
/// The first [`Fault`], in RocksDB's order of checks.
pub fn parse_physical(rest: &[u8], log_number: u32, legacy_only: bool) -> Result<Physical<'_>, Fault> {
    let mut c = Cursor::new(rest);
    let short = |_| Fault::ShortHeader;
    let stored_crc = c.fixed32("record.crc").map_err(short)?;
    let payload_len = usize::from(c.fixed16("record.len").map_err(short)?);
    let covered = c;
    let type_byte = c.u8("record.type").map_err(short)?;
    let recyclable = RecordType::from_u8(type_byte).is_some_and(|t| t.recyclable);
    let header = if recyclable { RECYCLABLE_HEADER } else { HEADER };
    let mut stored_number = log_number;
    if recyclable {
        if legacy_only {
            return Err(Fault::MixedForms);
        }
        stored_number = c.fixed32("record.log number").map_err(short)?;
    }
    let payload = c.bytes(payload_len, "record.payload").map_err(|_| Fault::BadLength)?;
    let len = header + payload_len;
    if stored_number != log_number {
        return Err(Fault::OldRecord { len });
    }
    if type_byte == 0 && payload_len == 0 {
        return Err(Fault::Zero);
    }
    let covered = covered.rest().get(..len - (HEADER - 1)).unwrap_or_default();
    if mask_crc(crc32c(covered)) != stored_crc && !planted(Bug::LogChecksumIgnored) {
        return Err(Fault::BadChecksum);
    }
    Ok(Physical { type_byte, payload, len })
}

/// The first physical record, header and payload, in the output of [`encode_record`](super::encode_record). `None`: the output is
/// empty, or begins with the zeros that close a block. Checks nothing else.
#[inline]
pub fn first_physical(frames: &[u8], framing: Framing) -> Option<&[u8]> {
    let len = frames.get(4..6)?.first_chunk::<2>()?;
    frames.get(..framing.header_len() + usize::from(u16::from_le_bytes(*len)))
}

/// True when header and payload together, `record`, have the checksum before them. Tells a record of
/// the file's former life, which is whole, from one whose type or number is damaged.
pub fn has_its_checksum(record: &[u8]) -> bool {
    match (record.first_chunk::<4>(), record.get(HEADER - 1..)) {
        (Some(stored), Some(covered)) => mask_crc(crc32c(covered)) == u32::from_le_bytes(*stored),
        _ => false,
    }
}

/// True when `rest`, what is left of a whole block, are the zeros that a writer closes a block with because no header fits.
/// `recyclable` says that the log's records have the long header: their writer leaves up to ten bytes, and seven of
/// them look like a header of type 0 and length 0.
pub fn closes_block(rest: &[u8], recyclable: bool) -> bool {
    let header = if recyclable { RECYCLABLE_HEADER } else { HEADER };
    rest.len() < header && rest.iter().all(|byte| *byte == 0)
}

/// True when `rest` begins with the header of a recyclable record of this log, though some other field of the header, or
/// the payload, be damaged. Of a damaged number the checksum tells what it was.
pub fn is_of_log(rest: &[u8], log_number: u32) -> bool {
    let number = log_number.to_le_bytes();
    let stored = rest.get(HEADER..RECYCLABLE_HEADER);
    let (Some(stored), Some(crc), Some(len), Some(&type_byte)) =
        (stored, rest.first_chunk::<4>(), rest.get(4..6), rest.get(HEADER - 1))
    else {
        return false;
    };
    if stored == number {
        return true;
    }
    let len = len.first_chunk::<2>().map_or(0, |b| usize::from(u16::from_le_bytes(*b)));
    let Some(payload) = rest.get(RECYCLABLE_HEADER..RECYCLABLE_HEADER + len) else { return false };
    let sum = crc32c_append(crc32c_append(crc32c(&[type_byte]), &number), payload);
    mask_crc(sum) == u32::from_le_bytes(*crc)
}
