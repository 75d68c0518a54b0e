//! Writers of the primitive encodings; [`super::Cursor`] reads them back.

/// Appends a base-128 integer: one to five bytes.
#[inline]
pub fn put_varint32(out: &mut Vec<u8>, value: u32) {
    put_varint64(out, u64::from(value));
}

/// Appends a base-128 integer: one to ten bytes.
#[inline]
pub fn put_varint64(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push((value & 0x7f) as u8);
}

/// Appends a zigzag-coded signed integer.
pub fn put_varsigned64(out: &mut Vec<u8>, value: i64) {
    put_varint64(out, (value << 1).cast_unsigned() ^ (value >> 63).cast_unsigned());
}

/// Appends a varint32 length and the bytes.
///
/// # Panics
/// When the slice is 4 GiB or longer: every caller has refused such input before.
#[inline]
#[expect(clippy::expect_used, reason = "a length that does not fit would be written cut: worse than a panic")]
pub fn put_slice(out: &mut Vec<u8>, bytes: &[u8]) {
    let len = u32::try_from(bytes.len()).expect("slices of 4 GiB and more are refused at the door");
    put_varint32(out, len);
    out.extend_from_slice(bytes);
}

/// Bytes a varint takes.
#[inline]
pub fn varint_len(value: u64) -> usize {
    let bits = 64 - (value | 1).leading_zeros() as usize;
    bits.div_ceil(7)
}
