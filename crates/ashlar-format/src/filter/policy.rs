//! The kinds of filters that tables may get, by their names in OPTIONS files and option strings.
//!
//! Source: RocksDB `table/block_based/filter_policy.cc` (`FilterPolicy::CreateFromString`).

use super::{BloomBuilder, LegacyBloomBuilder, RibbonBuilder};
use std::fmt;

/// The first format version with filters that hash 64 bits.
const NEW_FILTERS: u32 = 5;

/// The kind and the size of a filter. The size is that of a Bloom filter; a Ribbon filter of the same error rate is
/// smaller.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FilterPolicy {
    /// A Bloom filter, in the form of the table's format version.
    Bloom {
        /// Bits per key.
        bits_per_key: f64,
    },
    /// A Ribbon filter. RocksDB reads it from 6.15 on.
    Ribbon {
        /// Bits per key of a Bloom filter with the same error rate.
        bloom_bits_per_key: f64,
        /// Tables above this level get Bloom filters, which are built faster, because these tables live only briefly. A
        /// flush counts as level -1: 0 means that all tables except flushed ones get Ribbon filters, -1 that all do.
        bloom_before_level: i32,
    },
}

impl FilterPolicy {
    /// Reads `bloomfilter:BITS`, `bloomfilter:BITS:false`, `rocksdb.BuiltinBloomFilter…` in the same forms, and
    /// `ribbonfilter:BITS`, `ribbonfilter:BITS:LEVEL`. `None` for anything else, "no policy" (`nullptr`) included.
    ///
    /// The second field of Bloom is accepted and ignored: it chose a form that RocksDB has removed.
    pub fn parse(text: &str) -> Option<FilterPolicy> {
        let fields: Vec<&str> = text.trim().split(':').map(str::trim).collect();
        let (name, bits, second) = match fields.as_slice() {
            [name, bits] => (*name, *bits, None),
            [name, bits, second] => (*name, *bits, Some(*second)),
            _ => return None,
        };
        let bits: f64 = bits.parse().ok().filter(|bits: &f64| bits.is_finite())?;
        match (name, second) {
            ("bloomfilter" | "rocksdb.BloomFilter" | "rocksdb.BuiltinBloomFilter", _) => {
                Some(FilterPolicy::Bloom { bits_per_key: bits })
            }
            ("ribbonfilter" | "rocksdb.RibbonFilter", level) => Some(FilterPolicy::Ribbon {
                bloom_bits_per_key: bits,
                bloom_before_level: level.map_or(Some(0), |level| level.parse().ok())?,
            }),
            _ => None,
        }
    }

    /// The filter of a table at that level; -1 for a flush.
    pub fn for_level(self, level: i32) -> FilterPolicy {
        match self {
            FilterPolicy::Ribbon { bloom_bits_per_key, bloom_before_level } if level < bloom_before_level => {
                FilterPolicy::Bloom { bits_per_key: bloom_bits_per_key }
            }
            same => same,
        }
    }

    /// A builder for a table of that format version, without regard to levels; `None` when there are too few bits for a
    /// filter.
    pub fn builder(self, format_version: u32) -> Option<FilterBuilder> {
        match self {
            FilterPolicy::Bloom { bits_per_key } if format_version < NEW_FILTERS => {
                LegacyBloomBuilder::new(bits_per_key).map(FilterBuilder::LegacyBloom)
            }
            FilterPolicy::Bloom { bits_per_key } => BloomBuilder::new(bits_per_key).map(FilterBuilder::Bloom),
            FilterPolicy::Ribbon { bloom_bits_per_key, .. } => {
                RibbonBuilder::new(bloom_bits_per_key).map(FilterBuilder::Ribbon)
            }
        }
    }
}

impl fmt::Display for FilterPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FilterPolicy::Bloom { bits_per_key } => write!(f, "bloomfilter:{bits_per_key}"),
            FilterPolicy::Ribbon { bloom_bits_per_key, bloom_before_level } => {
                write!(f, "ribbonfilter:{bloom_bits_per_key}:{bloom_before_level}")
            }
        }
    }
}

/// A builder of any kind of filter.
#[derive(Clone, Debug)]
pub enum FilterBuilder {
    /// FastLocalBloom.
    Bloom(BloomBuilder),
    /// Ribbon.
    Ribbon(RibbonBuilder),
    /// For format versions below 5.
    LegacyBloom(LegacyBloomBuilder),
}

impl FilterBuilder {
    /// Adds a user key. Equal keys in a row (versions) count once.
    #[inline]
    pub fn add(&mut self, user_key: &[u8]) {
        match self {
            FilterBuilder::Bloom(b) => b.add(user_key),
            FilterBuilder::Ribbon(b) => b.add(user_key),
            FilterBuilder::LegacyBloom(b) => b.add(user_key),
        }
    }

    /// Number of keys added, without repetitions.
    pub fn keys(&self) -> usize {
        match self {
            FilterBuilder::Bloom(b) => b.keys(),
            FilterBuilder::Ribbon(b) => b.keys(),
            FilterBuilder::LegacyBloom(b) => b.keys(),
        }
    }

    /// Bytes of the finished filter.
    pub fn size_estimate(&self) -> usize {
        match self {
            FilterBuilder::Bloom(b) => b.size_estimate(),
            FilterBuilder::Ribbon(b) => b.size_estimate(),
            FilterBuilder::LegacyBloom(b) => b.size_estimate(),
        }
    }

    /// The filter block; empty when no key was added.
    pub fn finish(&self) -> Vec<u8> {
        match self {
            FilterBuilder::Bloom(b) => b.finish(),
            FilterBuilder::Ribbon(b) => b.finish(),
            FilterBuilder::LegacyBloom(b) => b.finish(),
        }
    }
}
