//! Reading filters.

use super::bloom::{LINE, PROBE_STEP, line_start};
use super::legacy::LegacyBloom;
use super::ribbon::Ribbon;
use super::xxph3::xxph3_64;

/// Metadata bytes at the end of every RocksDB filter.
const METADATA_LEN: usize = 5;

/// What a filter block is; decoded once, then asked with the bytes beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterForm {
    /// No key was added: nothing matches.
    Nothing,
    /// Not a filter this engine reads, by name: everything may match.
    Everything(&'static str),
    /// Bloom filter with all probes in one cache line.
    FastLocalBloom {
        /// Number of 64-byte lines.
        lines: u32,
        /// Probes per key, 1 to 30.
        probes: u8,
    },
    /// Ribbon filter.
    Ribbon(Ribbon),
    /// Bloom filter of format versions below 5, with a hash of its own.
    LegacyBloom(LegacyBloom),
}

impl FilterForm {
    /// Recognises a filter block. Never an error: what is odd may match anything.
    pub fn decode(filter: &[u8]) -> FilterForm {
        let Some((bits, metadata)) = filter.split_last_chunk::<METADATA_LEN>() else {
            return FilterForm::Nothing;
        };
        if bits.is_empty() {
            return FilterForm::Nothing;
        }
        match *metadata {
            [0xff, 0, probes @ 1..=30, 0, 0] => match u32::try_from(bits.len() / LINE) {
                Ok(lines) if bits.len().is_multiple_of(LINE) => FilterForm::FastLocalBloom { lines, probes },
                _ => FilterForm::Everything("Bloom filter of an odd length"),
            },
            [0xff, ..] => FilterForm::Everything("unknown Bloom filter"),
            [0xfe, seed, low, middle, high] => {
                let blocks = u32::from_le_bytes([low, middle, high, 0]);
                Ribbon::new(seed, blocks, bits.len() / 16)
                    .map_or(FilterForm::Everything("Ribbon filter of an odd shape"), FilterForm::Ribbon)
            }
            [probes @ 0x01..=0x7f, a, b, c, d] => {
                LegacyBloom::decode(bits, probes, u32::from_le_bytes([a, b, c, d])).map_or(
                    FilterForm::Everything("legacy Bloom filter of an odd length"),
                    FilterForm::LegacyBloom,
                )
            }
            _ => FilterForm::Everything("unknown filter"),
        }
    }

    /// True unless the filter proves that the user key was not added. The key is without its timestamp, if keys have one.
    /// `filter` are the bytes this was decoded from.
    #[inline]
    pub fn may_contain(self, filter: &[u8], user_key: &[u8]) -> bool {
        match self {
            FilterForm::Everything(_) => true,
            form => form.may_contain_hashed(filter, user_key, xxph3_64(user_key)),
        }
    }

    /// [`FilterForm::may_contain`] for a key whose hash ([`super::xxph3_64`]) is known. A legacy filter computes its own hash.
    #[inline]
    pub fn may_contain_hashed(self, filter: &[u8], user_key: &[u8], hash: u64) -> bool {
        match self {
            FilterForm::LegacyBloom(bloom) => bloom.may_contain(filter, user_key),
            form => form.may_match(filter, hash),
        }
    }

    /// The offset of the one cache line that the filter reads for a hash; `None` for forms that read several or none.
    #[inline]
    pub fn line_of(self, hash: u64) -> Option<usize> {
        match self {
            FilterForm::FastLocalBloom { lines, .. } => Some(line_start(hash, lines)),
            _ => None,
        }
    }

    /// [`FilterForm::may_contain`] for a key whose hash ([`super::xxph3_64`]) is known. Legacy filters have another hash:
    /// they prove nothing here.
    #[inline]
    pub fn may_match(self, filter: &[u8], hash: u64) -> bool {
        match self {
            FilterForm::FastLocalBloom { lines, probes } => bloom_may_match(filter, lines, probes, hash),
            FilterForm::Ribbon(ribbon) => ribbon.may_match(filter, hash),
            FilterForm::Nothing => false,
            FilterForm::Everything(_) | FilterForm::LegacyBloom(_) => true,
        }
    }
}

#[inline]
fn bloom_may_match(filter: &[u8], lines: u32, probes: u8, hash: u64) -> bool {
    let start = line_start(hash, lines);
    let Some(line) = filter.get(start..).and_then(|rest| rest.first_chunk::<LINE>()) else { return true };
    let mut h = (hash >> 32) as u32;
    for _ in 0..probes {
        let bit = h >> 23;
        // Nine bits name one of 512: `get` cannot miss, and the compiler sees it.
        let byte = line.get((bit >> 3) as usize & (LINE - 1)).copied().unwrap_or(u8::MAX);
        if byte >> (bit & 7) & 1 == 0 {
            return false;
        }
        h = h.wrapping_mul(PROBE_STEP);
    }
    true
}
