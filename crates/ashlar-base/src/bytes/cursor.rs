//! The only reader of untrusted bytes. Its errors name the field and the offset. It cannot panic and cannot read past
//! the end.
//!
//! Overlong varints (`80 00`) are accepted as in RocksDB; a value that does not fit its type is refused.
//! Source: RocksDB `util/coding.h`.

use crate::error::Error;
use std::fmt;
use std::path::Path;

/// Bytes that do not decode: which field, at which offset of the decoded slice, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// The field that was being read, e.g. `handle.offset`.
    pub field: &'static str,
    /// Offset from the start of the slice given to the cursor.
    pub at: usize,
    /// What is wrong with it.
    pub what: &'static str,
}

impl Malformed {
    /// Places the error in a file: `base` is where the decoded slice starts.
    #[track_caller]
    pub fn in_file(self, path: &Path, base: u64) -> Error {
        Error::corruption(self.to_string()).at(path, base.saturating_add(self.at as u64))
    }

    /// The error without a file, for bytes that came from memory.
    #[track_caller]
    pub fn into_error(self) -> Error {
        Error::corruption(self.to_string())
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in {} (byte {})", self.what, self.field, self.at)
    }
}

impl std::error::Error for Malformed {}

/// A reader over a slice. Copyable, so a position can be kept and returned to.
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'a> {
    rest: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    /// Starts at the first byte.
    pub fn new(bytes: &'a [u8]) -> Self {
        Cursor { rest: bytes, at: 0 }
    }

    /// What is left.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Bytes read so far.
    pub fn position(&self) -> usize {
        self.at
    }

    /// True when nothing is left.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// An error at the current position.
    pub fn malformed(&self, field: &'static str, what: &'static str) -> Malformed {
        Malformed { field, at: self.at, what }
    }

    /// The next `N` bytes.
    pub fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], Malformed> {
        let (head, rest) =
            self.rest.split_first_chunk().ok_or_else(|| self.malformed(field, "unexpected end"))?;
        (self.rest, self.at) = (rest, self.at + N);
        Ok(*head)
    }

    /// The next `len` bytes.
    pub fn bytes(&mut self, len: usize, field: &'static str) -> Result<&'a [u8], Malformed> {
        let (head, rest) =
            self.rest.split_at_checked(len).ok_or_else(|| self.malformed(field, "unexpected end"))?;
        (self.rest, self.at) = (rest, self.at + len);
        Ok(head)
    }

    /// One byte.
    pub fn u8(&mut self, field: &'static str) -> Result<u8, Malformed> {
        Ok(u8::from_le_bytes(self.array(field)?))
    }

    /// Two bytes, little endian.
    pub fn fixed16(&mut self, field: &'static str) -> Result<u16, Malformed> {
        Ok(u16::from_le_bytes(self.array(field)?))
    }

    /// Four bytes, little endian.
    pub fn fixed32(&mut self, field: &'static str) -> Result<u32, Malformed> {
        Ok(u32::from_le_bytes(self.array(field)?))
    }

    /// Eight bytes, little endian.
    pub fn fixed64(&mut self, field: &'static str) -> Result<u64, Malformed> {
        Ok(u64::from_le_bytes(self.array(field)?))
    }

    /// A base-128 integer of at most five bytes.
    #[inline]
    pub fn varint32(&mut self, field: &'static str) -> Result<u32, Malformed> {
        if let [first, rest @ ..] = self.rest
            && *first < 0x80
        {
            (self.rest, self.at) = (rest, self.at + 1);
            return Ok(u32::from(*first));
        }
        let start = *self;
        let wide = self.varint(5, field)?;
        u32::try_from(wide).map_err(|_| start.malformed(field, "integer over 32 bits"))
    }

    /// A base-128 integer of at most ten bytes.
    #[inline]
    pub fn varint64(&mut self, field: &'static str) -> Result<u64, Malformed> {
        self.varint(10, field)
    }

    /// A zigzag-coded signed integer of at most ten bytes.
    pub fn varsigned64(&mut self, field: &'static str) -> Result<i64, Malformed> {
        let z = self.varint64(field)?;
        Ok((z >> 1).cast_signed() ^ -((z & 1).cast_signed()))
    }

    fn varint(&mut self, max_len: usize, field: &'static str) -> Result<u64, Malformed> {
        let mut value = 0u64;
        for (i, byte) in self.rest.iter().take(max_len).enumerate() {
            let low = u64::from(byte & 0x7f);
            if i == 9 && low > 1 {
                return Err(self.malformed(field, "integer over 64 bits"));
            }
            value |= low << (7 * i);
            if byte & 0x80 == 0 {
                let (_, rest) = self.rest.split_at(i + 1);
                (self.rest, self.at) = (rest, self.at + i + 1);
                return Ok(value);
            }
        }
        let what = if self.rest.len() < max_len { "unexpected end" } else { "varint too long" };
        Err(self.malformed(field, what))
    }

    /// A varint32 length and that many bytes.
    #[inline]
    pub fn slice(&mut self, field: &'static str) -> Result<&'a [u8], Malformed> {
        let len = self.varint32(field)?;
        self.bytes(len as usize, field)
    }

    /// Refuses bytes after the last field.
    pub fn finish(&self, field: &'static str) -> Result<(), Malformed> {
        if self.rest.is_empty() { Ok(()) } else { Err(self.malformed(field, "trailing bytes")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::{put_varint32, put_varint64, put_varsigned64};

    #[test]
    fn varints_return_what_was_put() {
        for shift in 0..64 {
            for value in [1u64 << shift, (1u64 << shift) - 1, u64::MAX >> shift] {
                let mut buf = Vec::new();
                put_varint64(&mut buf, value);
                put_varsigned64(&mut buf, value.cast_signed());
                let mut c = Cursor::new(&buf);
                assert_eq!(c.varint64("v"), Ok(value));
                assert_eq!(c.varsigned64("s"), Ok(value.cast_signed()));
                assert!(c.is_empty());
                let mut buf = Vec::new();
                let narrow = (value & 0xffff_ffff) as u32;
                put_varint32(&mut buf, narrow);
                assert_eq!(Cursor::new(&buf).varint32("v"), Ok(narrow));
            }
        }
    }

    #[test]
    fn refuses_what_does_not_fit() {
        assert_eq!(Cursor::new(&[0xff; 4]).varint32("v").unwrap_err().what, "unexpected end");
        assert_eq!(Cursor::new(&[0xff; 12]).varint64("v").unwrap_err().what, "integer over 64 bits");
        assert_eq!(Cursor::new(&[0x80; 12]).varint64("v").unwrap_err().what, "varint too long");
        assert_eq!(
            Cursor::new(&[0xff, 0xff, 0xff, 0xff, 0x7f]).varint32("v").unwrap_err().what,
            "integer over 32 bits"
        );
        assert_eq!(
            Cursor::new(&[5, 1, 2]).slice("s").unwrap_err(),
            Malformed { field: "s", at: 1, what: "unexpected end" }
        );
        assert_eq!(Cursor::new(&[0x80, 0x00]).varint32("v"), Ok(0));
    }
}
