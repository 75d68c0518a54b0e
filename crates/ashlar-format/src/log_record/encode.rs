//! Cuts a logical record into fragments.

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

/// The file offset after a record of `payload` bytes written at file offset `at` (the zero bytes that close a block
/// before it included). `None` when it would not fit 64 bits. Cost: arithmetic only.
pub fn record_end(framing: Framing, at: u64, payload: u64) -> Option<u64> {
    end_of(framing, BLOCK_SIZE, at, payload)
}

/// [`record_end`] of a record that [`encode_frame`] writes.
pub fn frame_end(framing: Framing, at: u64, frame: u64) -> Option<u64> {
    end_of(framing, FRAME_OPENING, at, frame)
}

/// Appends the fragments of one record to `out`, in the form of the file from offset `at` on: zero bytes to close
/// the block if no header fits, then the fragments. Exactly `record_end(..) - at` bytes. `log_number` is used by the
/// recyclable form only. Cost: one copy and one CRC of the payload; no allocation beyond `out`.
pub fn encode_record(out: &mut Vec<u8>, framing: Framing, log_number: u32, at: u64, payload: &[u8]) {
    encode(out, framing, BLOCK_SIZE, log_number, at, payload);
}

/// Appends the fragments of one record of a compressed log, as [`encode_record`] does, but no fragment fills a block:
/// RocksDB 7.8 takes a fragment for the one before it when both begin their block (its pull request 11198).
pub fn encode_frame(out: &mut Vec<u8>, framing: Framing, log_number: u32, at: u64, frame: &[u8]) {
    encode(out, framing, FRAME_OPENING, log_number, at, frame);
}

/// The largest payload of a fragment of a compressed record at the beginning of a block.
const FRAME_OPENING: usize = BLOCK_SIZE / 2;

/// `opening`: bytes of payload that a fragment at the beginning of a block may have; the next one may fill the block.
fn end_of(framing: Framing, opening: usize, at: u64, payload: u64) -> Option<u64> {
    let header = framing.header_len() as u64;
    let (mut at, mut rest) = (at, payload);
    let left = left_in_block(at) as u64;
    if left < header {
        at = at.checked_add(left)?;
    } else if left < BLOCK_SIZE as u64 {
        let here = left - header;
        if payload <= here {
            return at.checked_add(header)?.checked_add(payload);
        }
        at = at.checked_add(left)?;
        rest = payload - here;
    }
    let one = BLOCK_SIZE as u64 - header;
    let (opening, per_block) =
        if opening as u64 >= one { (one, one) } else { (opening as u64, one - header) };
    let whole_blocks = rest.saturating_sub(1) / per_block;
    let tail = rest - whole_blocks * per_block;
    let headers = if tail > opening { 2 * header } else { header };
    at.checked_add(whole_blocks.checked_mul(BLOCK_SIZE as u64)?)?.checked_add(headers)?.checked_add(tail)
}

fn encode(out: &mut Vec<u8>, framing: Framing, opening: usize, log_number: u32, at: u64, payload: &[u8]) {
    let header = framing.header_len();
    let mut left = left_in_block(at);
    if left < header {
        out.resize(out.len() + left, 0);
        left = BLOCK_SIZE;
    }
    let mut rest = payload;
    let mut begin = true;
    loop {
        let room = if left == BLOCK_SIZE { opening.min(left - header) } else { left - header };
        let (fragment, after) = rest.split_at_checked(room).unwrap_or((rest, &[]));
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
        left -= header + fragment.len();
        if left == 0 {
            left = BLOCK_SIZE;
        }
        (rest, begin) = (after, false);
    }
}

/// Appends the first record of a log whose data records are compressed, or not, as `compression` says (see
/// [`super::decode_compression`]). It has the short header in every log, and its offset is 0.
pub fn encode_compression_record(out: &mut Vec<u8>, compression: u32) {
    put_fragment(out, Framing::Legacy, RecordKind::SetCompression, 0, &compression.to_le_bytes());
}

#[inline]
#[expect(clippy::expect_used, reason = "the one caller cuts fragments to what is left of a 32 KiB block")]
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
