//! LevelDB's own filters. No golden table has one: this is one put together as LevelDB's builder does.

use crate::fixture::{Entries, forward, key, open};
use crate::golden::leveldb_footer;
use ashlar_base::{InternalKey, LookupKey, Order, SeqNum, ValueType};
use ashlar_format::block::{BlockBuilder, IndexBlockBuilder, IndexEntries};
use ashlar_format::filter::{BLOOM_SEED, leveldb_hash32};
use ashlar_format::table::{BlockHandle, MetaIndex};

/// Entries per data block.
const PER_BLOCK: usize = 20;
/// The range of the file that one filter is for.
const RANGE: usize = 2048;

fn entries() -> Entries {
    (0..200u64)
        .map(|i| {
            // Two versions of every key: some fall into two blocks.
            let key = key(format!("key{:05}", i / 2).as_bytes(), 1000 - i, ValueType::Put);
            (key.as_key().encoded().to_vec(), format!("value {i} {}", "x".repeat(60)).into_bytes())
        })
        .collect()
}

fn bloom(keys: &[Vec<u8>]) -> Vec<u8> {
    let mut bits = vec![0u8; (keys.len() * 10).max(64).div_ceil(8)];
    for key in keys {
        let mut hash = leveldb_hash32(key, BLOOM_SEED);
        let delta = hash.rotate_right(17);
        for _ in 0..6 {
            let bit = hash as usize % (bits.len() * 8);
            bits[bit / 8] |= 1 << (bit % 8);
            hash = hash.wrapping_add(delta);
        }
    }
    bits.push(6);
    bits
}

/// A table with the filters of what `filtered` keeps of its keys.
fn table(filtered: impl Fn(&[u8]) -> bool, name: &[u8]) -> Vec<u8> {
    let mut footer = leveldb_footer();
    let checksum = footer.checksum;
    let mut file = Vec::new();
    let put = |file: &mut Vec<u8>, block: &[u8]| {
        let handle = BlockHandle { offset: file.len() as u64, size: block.len() as u64 };
        file.extend_from_slice(block);
        file.extend_from_slice(&checksum.trailer(handle.offset, block, 0));
        handle
    };
    let mut index = IndexBlockBuilder::new(IndexEntries::default(), 1);
    let mut filters: Vec<Vec<Vec<u8>>> = Vec::new();
    for block_entries in entries().chunks(PER_BLOCK) {
        let mut block = BlockBuilder::new(16);
        filters.resize(filters.len().max(file.len() / RANGE + 1), Vec::new());
        for (key, value) in block_entries {
            block.add(key, value);
            let user_key = InternalKey::decode(key).unwrap().user_key();
            if filtered(user_key) {
                filters.last_mut().unwrap().push(user_key.to_vec());
            }
        }
        let handle = put(&mut file, block.finish());
        index.add(&block_entries.last().unwrap().0, handle, b"");
    }
    let (mut block, mut offsets) = (Vec::new(), Vec::new());
    for keys in &filters {
        offsets.extend_from_slice(&(block.len() as u32).to_le_bytes());
        if !keys.is_empty() {
            block.extend_from_slice(&bloom(keys));
        }
    }
    offsets.extend_from_slice(&(block.len() as u32).to_le_bytes());
    block.extend_from_slice(&offsets);
    block.push(11);
    let mut meta = MetaIndex::default();
    meta.set(name, put(&mut file, &block));
    footer.metaindex = put(&mut file, &meta.encode());
    footer.index = Some(put(&mut file, &index.finish()));
    let footer = footer.encode(file.len() as u64).unwrap();
    file.extend_from_slice(&footer);
    file
}

#[test]
fn every_key_is_found_and_others_mostly_without_a_block() {
    let table = open(&table(|_| true, MetaIndex::LEVELDB_FILTER), Order::Bytewise).unwrap();
    assert_eq!(table.verify().unwrap(), 200);
    assert_eq!(forward(&table).unwrap(), entries());
    for (key, value) in &entries() {
        let key = InternalKey::decode(key).unwrap();
        let found = table.get(&LookupKey::new(key.user_key(), key.seq())).unwrap().unwrap();
        assert_eq!((found.trailer, found.value()), (key.trailer(), &value[..]));
        let other = [key.user_key(), b"?"].concat();
        assert!(table.get(&LookupKey::new(&other, SeqNum::MAX)).unwrap().is_none());
    }
}

/// A filter that denies what is there shows that it is asked, and by which reads.
#[test]
fn a_filter_is_believed_by_lookups_and_checked_by_verification() {
    let half = |user_key: &[u8]| user_key < &b"key00050"[..];
    let lying = open(&table(half, MetaIndex::LEVELDB_FILTER), Order::Bytewise).unwrap();
    assert_eq!(forward(&lying).unwrap(), entries(), "scans do not ask it");
    let (mut found, mut denied) = (0, 0);
    for (key, _) in &entries() {
        let key = InternalKey::decode(key).unwrap();
        match lying.get(&LookupKey::new(key.user_key(), key.seq())).unwrap() {
            Some(_) => found += 1,
            None => denied += 1,
        }
    }
    assert!(found >= 100 && denied > 80, "{found} found, {denied} denied");
    let error = lying.verify().unwrap_err();
    assert!(error.is_corruption() && error.to_string().contains("filter denies"), "{error}");
    // Another policy is no filter.
    let other = open(&table(half, b"filter.mine"), Order::Bytewise).unwrap();
    assert_eq!(other.verify().unwrap(), 200);
}
