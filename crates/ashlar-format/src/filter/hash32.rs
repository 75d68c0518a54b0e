//! The 32-bit hash of old filters, of the hash index in data blocks and of prefix hash indexes.
//!
//! Words of four bytes are mixed in; the last one to three bytes are added one by one. RocksDB takes these as signed,
//! LevelDB as unsigned: the two agree as long as they are below 0x80.
//! Source: RocksDB `util/hash.cc`; LevelDB `util/hash.cc`.

const FACTOR: u32 = 0xc6a4_a793;

/// The seed of Bloom filters, RocksDB's and LevelDB's.
pub const BLOOM_SEED: u32 = 0xbc9f_1d34;
/// The seed of the hash index in data blocks.
pub const DATA_BLOCK_SEED: u32 = 397;
/// The seed of prefix hash indexes.
pub const PREFIX_SEED: u32 = 0;

/// RocksDB's hash of a key. About 4 ns for 16 bytes.
#[inline]
pub fn hash32(key: &[u8], seed: u32) -> u32 {
    hash(key, seed, |byte| i32::from(byte.cast_signed()).cast_unsigned())
}

/// LevelDB's hash of a key.
#[inline]
pub fn leveldb_hash32(key: &[u8], seed: u32) -> u32 {
    hash(key, seed, u32::from)
}

#[inline]
fn hash(key: &[u8], seed: u32, widen: fn(u8) -> u32) -> u32 {
    // The length is mixed in as 32 bits; keys are shorter than that.
    let len = (key.len() as u64 & 0xffff_ffff) as u32;
    let mut h = seed ^ len.wrapping_mul(FACTOR);
    let (words, rest) = key.as_chunks::<4>();
    for word in words {
        h = h.wrapping_add(u32::from_le_bytes(*word)).wrapping_mul(FACTOR);
        h ^= h >> 16;
    }
    if rest.is_empty() {
        return h;
    }
    for (i, byte) in rest.iter().enumerate() {
        h = h.wrapping_add(widen(*byte) << (8 * i));
    }
    h = h.wrapping_mul(FACTOR);
    h ^ h >> 24
}
