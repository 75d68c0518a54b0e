//! Bytes as text: `0x` and two upper-case digits per byte, as RocksDB's `ldb --hex` prints them; and a short form for
//! messages.

/// `0x` and two digits per byte.
pub fn to_hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let mut out = String::with_capacity(2 + bytes.len() * 2);
    out.push_str("0x");
    for byte in bytes {
        out.push(char::from(DIGITS[usize::from(byte >> 4)]));
        out.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    out
}

/// Reads what [`to_hex`] wrote, in either case; `None` without the `0x`, with an odd count or a foreign digit.
pub fn from_hex(text: &str) -> Option<Vec<u8>> {
    from_bare_hex(text.strip_prefix("0x")?)
}

/// Like [`from_hex`], for digits without the `0x`.
pub fn from_bare_hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    digits.chunks_exact(2).map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?)).collect()
}

fn digit(c: u8) -> Option<u8> {
    match c {
        b'0'..=b'9' => Some(c - b'0'),
        b'a'..=b'f' => Some(c - b'a' + 10),
        b'A'..=b'F' => Some(c - b'A' + 10),
        _ => None,
    }
}

/// At most 32 bytes in hex, then the length: what a failure message can afford.
pub fn short(bytes: &[u8]) -> String {
    let head = to_hex(&bytes[..bytes.len().min(32)]);
    if bytes.len() <= 32 { head } else { format!("{head}… ({} bytes)", bytes.len()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(from_hex(&to_hex(&all)), Some(all));
        assert_eq!(
            (to_hex(b""), from_hex("0x"), from_hex("0xaF")),
            ("0x".into(), Some(vec![]), Some(vec![0xaf]))
        );
    }

    #[test]
    fn refuses_what_is_no_hex() {
        for bad in ["", "61", "0x6", "0x6g", "0x 6", "0x6\u{e9}"] {
            assert_eq!(from_hex(bad), None, "{bad:?}");
        }
        assert!(short(&[0; 40]).ends_with("(40 bytes)"));
    }
}
