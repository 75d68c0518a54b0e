//! Checksums: CRC-32C with RocksDB's mask, and the xxHash family.
//!
//! Source: RocksDB `util/crc32c.h`, `table/format.cc`.

pub use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed, xxh3_128, xxh3_128_with_seed};
pub use xxhash_rust::xxh32::xxh32;
pub use xxhash_rust::xxh64::xxh64;

const MASK_DELTA: u32 = 0xa282_ead8;

/// CRC-32C (Castagnoli) of `bytes`. About 5 ns for 130 bytes with SSE4.2.
#[inline]
pub fn crc32c(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes)
}

/// Continues `crc`, the checksum of what stood before `bytes`.
#[inline]
pub fn crc32c_append(crc: u32, bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(crc, bytes)
}

/// The form in which CRCs are stored, so that a CRC over bytes that hold CRCs stays meaningful.
#[inline]
pub fn mask_crc(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(MASK_DELTA)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The plain bit-by-bit form, the oracle of the fast one.
    fn crc32c_plain(bytes: &[u8]) -> u32 {
        let mut crc = !0u32;
        for byte in bytes {
            crc ^= u32::from(*byte);
            for _ in 0..8 {
                crc = if crc & 1 == 1 { (crc >> 1) ^ 0x82f6_3b78 } else { crc >> 1 };
            }
        }
        !crc
    }

    #[test]
    fn known_values() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(mask_crc(crc32c(b"123456789")), 0xc78a_b0e5);
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
    }

    #[test]
    fn equals_the_plain_form() {
        let bytes: Vec<u8> = (0..=255u8).chain(0..77).collect();
        for end in 0..bytes.len() {
            assert_eq!(crc32c(&bytes[..end]), crc32c_plain(&bytes[..end]));
            assert_eq!(crc32c_append(crc32c(&bytes[..end]), &bytes[end..]), crc32c_plain(&bytes));
        }
    }
}
