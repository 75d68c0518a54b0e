//! Filters: a few bits per key that show, without a read of a data block, that a key is not in the file.
//!
//! ```text
//! FastLocalBloom:  | bits: a multiple of 64 bytes | ff | 00 | probes: u8 | 00 00 |
//! ```
//! The other kinds are in their own source files: Ribbon, the Bloom filter of format versions below 5, and LevelDB's filter
//! block.
//!
//! 1. A key's probes stay in one line of 64 bytes: one cache miss per lookup.
//! 2. An unknown filter is treated as matching every key. A filter with a wrong bit could hide a key, so a known filter is
//!    validated byte by byte.
//! 3. The hash is the preview form of XXH3 that RocksDB froze; it is not XXH3.
//!
//! Source: RocksDB `util/bloom_impl.h`, `table/block_based/filter_policy.cc`, `util/xxph3.h`.
#![deny(clippy::indexing_slicing)]

mod bloom;
mod form;
mod hash32;
mod legacy;
mod leveldb;
mod policy;
mod ribbon;
mod xxph3;

#[cfg(test)]
mod golden_tests;
#[cfg(test)]
mod tests;

pub use bloom::{BloomBuilder, bloom_fp_rate};
pub use form::FilterForm;
pub use hash32::{BLOOM_SEED, DATA_BLOCK_SEED, PREFIX_SEED, hash32, leveldb_hash32};
pub use legacy::{LegacyBloom, LegacyBloomBuilder};
pub use leveldb::LevelDbFilter;
pub use policy::{FilterBuilder, FilterPolicy};
pub use ribbon::{Ribbon, RibbonBuilder};
pub use xxph3::xxph3_64;
