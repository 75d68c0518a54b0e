//! The unique id of a table, by which the MANIFEST recognises the file that it names.
//!
//! Computed from the database id, the session id and the file number, all three kept in the table's properties.
//! Source: RocksDB `table/unique_id.cc`.

use ashlar_base::checksum::{xxh3_128, xxh3_128_with_seed};

const SESSION_LEN: std::ops::RangeInclusive<usize> = 13..=24;
const LOW_MASK: u64 = (1 << 62) - 1;

/// The first two words of the internal unique id: what the MANIFEST stores as 16 little-endian bytes. Never both zero:
/// zeros stand for "unknown" there.
pub fn unique_id(db_id: &str, session_id: &str, number: u64) -> [u64; 2] {
    let (upper, lower) = session_words(session_id);
    let wide = xxh3_128_with_seed(db_id.as_bytes(), upper);
    let high = low_half(wide >> 64);
    [lower, high ^ number]
}

/// As [`unique_id`], in the form the MANIFEST stores.
pub fn unique_id_bytes(db_id: &str, session_id: &str, number: u64) -> [u8; 16] {
    let [first, second] = unique_id(db_id, session_id, number);
    (u128::from(first) | u128::from(second) << 64).to_le_bytes()
}

/// A session id is a number in base 36 whose last twelve digits make the lower word. Any other text is hashed.
fn session_words(session_id: &str) -> (u64, u64) {
    if let Some(words) = decode_session(session_id) {
        return words;
    }
    let wide = xxh3_128(session_id.as_bytes());
    let (upper, lower) = (low_half(wide >> 64), low_half(wide));
    (upper, if lower == 0 { upper | 1 } else { lower })
}

fn decode_session(session_id: &str) -> Option<(u64, u64)> {
    if !SESSION_LEN.contains(&session_id.len()) {
        return None;
    }
    let (a, b) = session_id.as_bytes().split_at_checked(session_id.len() - 12)?;
    let (a, b) = (base36(a)?, base36(b)?);
    Some((a >> 2, (b & LOW_MASK) | (a << 62)))
}

fn base36(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0u64, |sum, digit| {
        let digit = match digit {
            b'0'..=b'9' => digit - b'0',
            b'A'..=b'Z' => digit - b'A' + 10,
            _ => return None,
        };
        Some(sum.wrapping_mul(36).wrapping_add(u64::from(digit)))
    })
}

fn low_half(wide: u128) -> u64 {
    u64::try_from(wide & u128::from(u64::MAX)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Files written by RocksDB 11.8.1; the first two words as its tools compute them.
    #[test]
    fn equals_rocksdb() {
        assert_eq!(
            unique_id("SST Writer", "VMG8AAPICQFI0D3CFPWJ", 1),
            [10_899_466_810_232_436_963, 3_299_789_997_708_165_156]
        );
        assert_eq!(unique_id("SST Writer", "VMG8AAPICQFI0D3CFPWG", 1)[0], 10_899_466_810_232_436_960);
        assert_eq!(
            unique_id("b568f073-d669-4e2c-93c8-14823c10d389", "VMG8AAPICQFI0D3CFPWR", 9),
            [10_899_466_810_232_436_971, 11_130_876_041_085_548_611]
        );
    }

    #[test]
    fn other_texts_are_hashed() {
        let odd = unique_id("db", "not a session", 7);
        assert_ne!(odd[0], 0);
        assert_ne!(odd, unique_id("db", "not a sessioN", 7));
        assert_eq!(unique_id_bytes("db", "not a session", 7)[..8], odd[0].to_le_bytes());
        assert_eq!(unique_id_bytes("db", "not a session", 7)[8..], odd[1].to_le_bytes());
    }
}
