//! Encodes and decodes the values of table properties.

use ashlar_base::bytes::{Cursor, put_varint64};

/// One encoding: bytes to a value and back.
pub(super) trait Codec {
    /// The decoded form.
    type Value;
    /// `None` when the bytes are not exactly one value.
    fn decode(bytes: &[u8]) -> Option<Self::Value>;
    /// The bytes.
    fn encode(value: &Self::Value) -> Vec<u8>;
}

/// A base-128 integer.
pub(super) struct Varint;
/// Four bytes, little endian.
pub(super) struct Fixed32;
/// Eight bytes, little endian.
pub(super) struct Fixed64;
/// UTF-8.
pub(super) struct Text;
/// Bytes as they are.
pub(super) struct Raw;

impl Codec for Varint {
    type Value = u64;
    fn decode(bytes: &[u8]) -> Option<u64> {
        let mut c = Cursor::new(bytes);
        let value = c.varint64("property").ok()?;
        c.finish("property").ok()?;
        Some(value)
    }
    fn encode(value: &u64) -> Vec<u8> {
        let mut out = Vec::new();
        put_varint64(&mut out, *value);
        out
    }
}

impl Codec for Fixed32 {
    type Value = u32;
    fn decode(bytes: &[u8]) -> Option<u32> {
        bytes.try_into().ok().map(u32::from_le_bytes)
    }
    fn encode(value: &u32) -> Vec<u8> {
        value.to_le_bytes().to_vec()
    }
}

impl Codec for Fixed64 {
    type Value = u64;
    fn decode(bytes: &[u8]) -> Option<u64> {
        bytes.try_into().ok().map(u64::from_le_bytes)
    }
    fn encode(value: &u64) -> Vec<u8> {
        value.to_le_bytes().to_vec()
    }
}

impl Codec for Text {
    type Value = String;
    fn decode(bytes: &[u8]) -> Option<String> {
        String::from_utf8(bytes.to_vec()).ok()
    }
    fn encode(value: &String) -> Vec<u8> {
        value.as_bytes().to_vec()
    }
}

impl Codec for Raw {
    type Value = Vec<u8>;
    fn decode(bytes: &[u8]) -> Option<Vec<u8>> {
        Some(bytes.to_vec())
    }
    fn encode(value: &Vec<u8>) -> Vec<u8> {
        value.clone()
    }
}
