//! Cutting a logical record into fragments.

use super::{BLOCK_SIZE, HEADER, RECYCLABLE_HEADER, RecordKind, RecordType};
use ashlar_base::checksum::{crc32c, crc32c_append, mask_crc};

/// Which header a writer puts before its data records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// Seven bytes, types 1–4. What a MANIFEST always uses.
    Legacy,
    /// Eleven bytes, types 5–8, with the log number.
    Recyclable,
}

impl Framing {
    /// Bytes of a header.
    pub const fn header_len(self) -> usize {
        match self {
            Framing::Legacy => HEADER,
            Framing::Recyclable => RECYCLABLE_HEADER,
        }
    }
}

/// Bytes to the end of the block that holds file offset `at`: 1 to [`BLOCK_SIZE`].
fn left_in_block(at: u64) -> usize {
    BLOCK_SIZE - usize::try_from(at % BLOCK_SIZE as u64).unwrap_or(0)
}

/// The file offset behind a record of `payload` bytes written at file offset `at` (the zero bytes that close a block
/// before it included). `None` when it would not fit 64 bits. Cost: arithmetic only.
pub fn record_end(framing: Framing, at: u64, payload: u64) -> Option<u64> {
    let header = framing.header_len();
    let mut at = at;
    let mut left = left_in_block(at);
    if left < header {
        at = at.checked_add(left as u64)?;
        left = BLOCK_SIZE;
    }
    let here = (left - header) as u64;
    if payload <= here {
        return at.checked_add(header as u64)?.checked_add(payload);
    }
    let rest = payload - here;
    let per_block = (BLOCK_SIZE - header) as u64;
    let whole_blocks = (rest - 1) / per_block;
    let tail = rest - whole_blocks * per_block;
    at.checked_add(left as u64)?
        .checked_add(whole_blocks.checked_mul(BLOCK_SIZE as u64)?)?
        .checked_add(header as u64)?
        .checked_add(tail)
}

/// Appends the fragments of one record to `out`, as they stand in the file from offset `at` on: zero bytes to close
/// the block if no header fits, then the fragments. Exactly `record_end(..) - at` bytes. `log_number` is used by the
/// recyclable form only. Cost: one copy and one CRC of the payload; no allocation beyond `out`.
pub fn encode_record(out: &mut Vec<u8>, framing: Framing, log_number: u32, at: u64, payload: &[u8]) {
    let header = framing.header_len();
    let mut left = left_in_block(at);
    if left < header {
        out.resize(out.len() + left, 0);
        left = BLOCK_SIZE;
    }
    let mut rest = payload;
    let mut begin = true;
    loop {
        let (fragment, after) = rest.split_at_checked(left - header).unwrap_or((rest, &[]));
        let kind = match (begin, after.is_empty()) {
            (true, true) => RecordKind::Full,
            (true, false) => RecordKind::First,
            (false, false) => RecordKind::Middle,
            (false, true) => RecordKind::Last,
        };
        put_fragment(out, framing, kind, log_number, fragment);
        if after.is_empty() {
            return;
        }
        (rest, begin, left) = (after, false, BLOCK_SIZE);
    }
}

#[inline]
fn put_fragment(out: &mut Vec<u8>, framing: Framing, kind: RecordKind, log_number: u32, fragment: &[u8]) {
    let recyclable = framing == Framing::Recyclable;
    let type_byte = RecordType { kind, recyclable }.to_u8();
    let mut crc = crc32c(&[type_byte]);
    if recyclable {
        crc = crc32c_append(crc, &log_number.to_le_bytes());
    }
    // From the caller's bytes, not from the copy in `out`: reading what was just stored costs twice as much.
    crc = crc32c_append(crc, fragment);
    let len = u16::try_from(fragment.len()).expect("a fragment is shorter than a block");
    out.extend_from_slice(&mask_crc(crc).to_le_bytes());
    out.extend_from_slice(&len.to_le_bytes());
    out.push(type_byte);
    if recyclable {
        out.extend_from_slice(&log_number.to_le_bytes());
    }
    out.extend_from_slice(fragment);
}
