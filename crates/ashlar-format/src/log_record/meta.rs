//! Payloads of the records that are not data: compression, timestamp sizes, predecessor.

use ashlar_base::{Cursor, FamilyId, FileNumber, Malformed, SeqNum};

/// Payload of a set-compression record: data records are stored as they are.
pub const COMPRESSION_NONE: u32 = 0;
/// Payload of a set-compression record: each data record is one zstd frame.
pub const COMPRESSION_ZSTD: u32 = 7;

/// Type 9: [`COMPRESSION_NONE`] or [`COMPRESSION_ZSTD`].
///
/// # Errors
/// `Malformed` for any other value, which no writer of WALs has ever produced.
pub fn decode_compression(payload: &[u8]) -> Result<u32, Malformed> {
    let mut c = Cursor::new(payload);
    let kind = c.fixed32("compression")?;
    c.finish("compression")?;
    match kind {
        COMPRESSION_NONE | COMPRESSION_ZSTD => Ok(kind),
        _ => Err(Malformed { field: "compression", at: 0, what: "unknown kind" }),
    }
}

/// Types 10 and 11: families and the bytes of their timestamps, for all following records of the file.
///
/// # Errors
/// `Malformed` when the payload is not a whole number of six-byte entries.
pub fn decode_timestamp_sizes(payload: &[u8]) -> Result<Vec<(FamilyId, u16)>, Malformed> {
    let mut c = Cursor::new(payload);
    let mut sizes = Vec::with_capacity(payload.len() / 6);
    while !c.is_empty() {
        let family = FamilyId(c.fixed32("timestamp size.family")?);
        sizes.push((family, c.fixed16("timestamp size")?));
    }
    Ok(sizes)
}

/// The inverse of [`decode_timestamp_sizes`].
pub fn encode_timestamp_sizes(sizes: &[(FamilyId, u16)]) -> Vec<u8> {
    let mut out = Vec::with_capacity(sizes.len() * 6);
    for (family, size) in sizes {
        out.extend_from_slice(&family.0.to_le_bytes());
        out.extend_from_slice(&size.to_le_bytes());
    }
    out
}

/// Types 130 and 131: what the WAL before this one looked like when it was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PredecessorInfo {
    /// Its number.
    pub number: FileNumber,
    /// Its length in bytes.
    pub size: u64,
    /// The sequence field of its last batch, not of its last key; zero = it had none.
    pub last_batch: SeqNum,
}

impl PredecessorInfo {
    /// Reads the 24 bytes.
    ///
    /// # Errors
    /// `Malformed` for another length or a sequence above 56 bits.
    pub fn decode(payload: &[u8]) -> Result<Self, Malformed> {
        let mut c = Cursor::new(payload);
        let number = FileNumber(c.fixed64("predecessor.number")?);
        let size = c.fixed64("predecessor.size")?;
        let wide = c.malformed("predecessor.sequence", "over 56 bits");
        let last_batch = SeqNum::new(c.fixed64("predecessor.sequence")?).ok_or(wide)?;
        c.finish("predecessor")?;
        Ok(PredecessorInfo { number, size, last_batch })
    }

    /// The 24 bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(24);
        out.extend_from_slice(&self.number.0.to_le_bytes());
        out.extend_from_slice(&self.size.to_le_bytes());
        out.extend_from_slice(&self.last_batch.get().to_le_bytes());
        out
    }
}
