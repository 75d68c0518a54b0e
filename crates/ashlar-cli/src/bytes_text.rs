//! Bytes as text: hexadecimal digits, words of the command line, keys in sentences.

use ashlar_base::{InternalKey, ValueType};
use std::fmt;
use std::io::{self, Write};

/// Bytes as capital hexadecimal digits.
pub(crate) struct Hex<'a>(pub(crate) &'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02X}"))
    }
}

/// Writes bytes unchanged, or as hexadecimal digits.
pub(crate) fn write_bytes(out: &mut dyn Write, bytes: &[u8], hex: bool) -> io::Result<()> {
    if hex { write!(out, "{}", Hex(bytes)) } else { out.write_all(bytes) }
}

/// Parses a word, or a part of a line, to bytes: unchanged, or from `0x` and hexadecimal digits.
///
/// # Errors
/// A sentence saying what is wrong with the digits.
pub(crate) fn parse_bytes(text: &[u8], hex: bool) -> Result<Vec<u8>, String> {
    if !hex {
        return Ok(text.to_vec());
    }
    let wrong = |why: &str| format!("Invalid hex input {}: {why}", text.escape_ascii());
    let digits = text.strip_prefix(b"0x").ok_or_else(|| wrong("it must start with 0x"))?;
    let (pairs, rest) = digits.as_chunks::<2>();
    if !rest.is_empty() {
        return Err(wrong("an even number of digits is needed"));
    }
    let digit = |d: u8| char::from(d).to_digit(16).and_then(|d| u8::try_from(d).ok());
    let byte = |&[high, low]: &[u8; 2]| Some(digit(high)? << 4 | digit(low)?);
    pairs.iter().map(byte).collect::<Option<_>>().ok_or_else(|| wrong("digits are 0-9 and A-F"))
}

/// A user key for a sentence: quoted with escapes, or as digits.
pub(crate) fn quoted(key: &[u8], hex: bool) -> String {
    if hex { format!("0x{}", Hex(key)) } else { format!("'{}'", key.escape_ascii()) }
}

/// An internal key for a sentence: RocksDB's form, with the type by name.
pub(crate) fn internal(key: InternalKey<'_>, hex: bool) -> String {
    let (user_key, trailer) = key.split();
    format!("{} seq {} {}", quoted(user_key, hex), trailer.seq(), type_name(trailer.type_byte()))
}

/// The name of a type of entry.
pub(crate) fn type_name(byte: u8) -> String {
    let name = match ValueType::from_u8(byte) {
        Some(ValueType::Delete) => "delete",
        Some(ValueType::Put) => "put",
        Some(ValueType::Merge) => "merge",
        Some(ValueType::SingleDelete) => "single delete",
        Some(ValueType::RangeDelete) => "range delete",
        Some(ValueType::BlobIndex) => "blob index",
        Some(ValueType::DeleteWithTimestamp) => "delete with timestamp",
        Some(ValueType::Entity) => "entity",
        Some(ValueType::TimedPut) => "timed put",
        None => return format!("type {byte:#04x}"),
    };
    name.to_owned()
}

/// A count and its noun: `1 table`, `2 tables`.
pub(crate) fn counted(count: u64, noun: &str) -> String {
    let plural = match noun.strip_suffix('y') {
        _ if count == 1 => return format!("1 {noun}"),
        Some(stem) if !noun.ends_with("ey") => format!("{stem}ies"),
        _ if noun.ends_with("ch") || noun.ends_with("ss") => format!("{noun}es"),
        _ => format!("{noun}s"),
    };
    format!("{count} {plural}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use ashlar_base::{InternalKeyBuf, SeqNum, Trailer};

    #[test]
    fn words_and_digits() {
        assert_eq!(parse_bytes(b"a b", false), Ok(b"a b".to_vec()));
        assert_eq!(parse_bytes(b"0x00fF", true), Ok(vec![0, 0xff]));
        for wrong in ["61", "0x6", "0xZZ"] {
            assert!(parse_bytes(wrong.as_bytes(), true).unwrap_err().contains(wrong));
        }
        assert_eq!(format!("{}", Hex(b"\x01\xab")), "01AB");
        assert_eq!((quoted(b"a\0'", false), quoted(b"a", true)), (r"'a\x00\''".into(), "0x61".into()));
    }

    #[test]
    fn sentences() {
        let key = InternalKeyBuf::new(b"k", Trailer::new(SeqNum::new(7).unwrap(), ValueType::SingleDelete));
        assert_eq!(internal(key.as_key(), false), "'k' seq 7 single delete");
        let odd = InternalKeyBuf::new(b"k", Trailer::from_raw(0x3ff));
        assert_eq!(internal(odd.as_key(), true), "0x6B seq 3 type 0xff");
        assert_eq!(
            [counted(1, "entry"), counted(2, "entry"), counted(0, "table"), counted(3, "key")],
            ["1 entry", "2 entries", "0 tables", "3 keys"]
        );
    }
}
