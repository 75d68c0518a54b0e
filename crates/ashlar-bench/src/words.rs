//! A cheap sum that reads every byte, so that a benchmark touches all of a value and engines can be compared.

/// The sum of `bytes`: words of eight bytes, then single bytes. One changed byte changes the sum; swapped words do not.
#[inline]
pub fn words(bytes: &[u8]) -> u64 {
    let chunks = bytes.as_chunks::<8>();
    let sum = chunks.0.iter().fold(0_u64, |sum, word| sum.wrapping_add(u64::from_le_bytes(*word)));
    chunks.1.iter().fold(sum, |sum, &byte| sum.wrapping_add(u64::from(byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_counts() {
        let sum = words(b"abcdefghXY");
        assert_eq!(sum, u64::from_le_bytes(*b"abcdefgh") + u64::from(b'X') + u64::from(b'Y'));
        let bytes: Vec<u8> = (0..100).collect();
        for place in 0..bytes.len() {
            let mut other = bytes.clone();
            other[place] ^= 0x10;
            assert_ne!(words(&bytes), words(&other), "{place}");
        }
    }
}
