//! The session id: a new one for every open, recorded in the properties of the tables that the session writes.
//!
//! Twenty digits in base 36: the first eight carry the upper part, the last twelve the lower 62 bits of 126 random
//! bits.
//! Source: RocksDB `table/unique_id.cc`.

use ashlar_env::Rand;

const UPPER_DIGITS: usize = 8;
const LOWER_DIGITS: usize = 12;

/// A fresh id.
pub fn new_session_id(rand: &dyn Rand) -> String {
    let lower = (rand.next_u64() >> 2).max(1);
    let mut id = digits(rand.next_u64(), UPPER_DIGITS);
    id.push_str(&digits(lower, LOWER_DIGITS));
    id
}

/// The last `count` digits of `value` in base 36, most significant first.
fn digits(mut value: u64, count: usize) -> String {
    let mut reversed = Vec::with_capacity(count);
    for _ in 0..count {
        let digit = u32::try_from(value % 36).unwrap_or(0);
        reversed.push(char::from_digit(digit, 36).unwrap_or('0').to_ascii_uppercase());
        value /= 36;
    }
    reversed.iter().rev().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twenty_upper_case_digits() {
        let rand = ashlar_env::SeededRand::new(7);
        let (a, b) = (new_session_id(&rand), new_session_id(&rand));
        assert_ne!(a, b);
        for id in [a, b] {
            assert_eq!(id.len(), 20);
            assert!(id.bytes().all(|c| c.is_ascii_digit() || c.is_ascii_uppercase()), "{id}");
        }
        assert_eq!(digits(35 * 36 + 1, 4), "00Z1");
    }
}
