//! Hash index, separated blocks, rewritten blocks: against plain blocks, RocksDB's bytes, and damage.
// Test data is small.
#![allow(clippy::cast_possible_truncation)]

use super::*;
use crate::compress::{Compression, decompress};
use crate::unreadable::Unreadable;
use ashlar_base::bytes::{common_prefix, put_varint32};
use ashlar_base::{InternalKeyBuf, Malformed, Order, SeqNum, Trailer, ValueType};

type Entries = Vec<(Vec<u8>, Vec<u8>)>;

fn internal(user: &str, seq: u64) -> Vec<u8> {
    let trailer = Trailer::new(SeqNum::new(seq).unwrap(), ValueType::Put);
    InternalKeyBuf::new(user.as_bytes(), trailer).as_key().encoded().to_vec()
}

fn entries(count: u64) -> Entries {
    let mut all = Vec::new();
    for i in 0..count {
        for seq in (1..=1 + i % 4 * 3).rev() {
            all.push((internal(&format!("key{i:04}"), seq * 10), vec![b'v'; (i % 23) as usize]));
        }
    }
    all
}

fn listed(bytes: &[u8]) -> Result<Entries, Unreadable> {
    let block = DataBlock::parse(bytes)?;
    let mut cursor = BlockCursor::default();
    let mut all = Vec::new();
    cursor.first(&block)?;
    while cursor.is_on_entry() {
        all.push((cursor.key().to_vec(), cursor.value(&block).to_vec()));
        cursor.next(&block)?;
    }
    Ok(all)
}

fn hashed(all: &Entries, interval: usize, ratio: f64) -> Vec<u8> {
    let mut builder = BlockBuilder::with_hash_index(interval, ratio);
    for (key, value) in all {
        let most = builder.size_estimate_after(key.len(), value.len());
        builder.add(key, value);
        assert!(builder.size_estimate() <= most);
    }
    let estimate = builder.size_estimate();
    let block = builder.finish().to_vec();
    assert_eq!(block.len(), estimate);
    block
}

#[test]
fn hashed_lookups_equal_bisection() {
    for (count, interval, ratio) in [(1, 1, 0.75), (40, 1, 0.75), (60, 3, 0.5), (90, 16, 1.0), (90, 16, 0.0)]
    {
        let all = entries(count);
        let bytes = hashed(&all, interval, ratio);
        let index = HashIndex::of(&bytes).expect("small enough");
        let block = DataBlock::parse(&bytes).unwrap();
        assert_eq!(listed(&bytes).unwrap(), all);
        let mut absent = 0;
        for i in 0..count + 20 {
            for user in [format!("key{i:04}"), format!("key{i:04}x"), format!("{i}")] {
                absent += usize::from(index.find(user.as_bytes()) == Bucket::Absent);
                for seq in [0, 5, 10, 15, 40, 1000] {
                    let trailer = Trailer::seek(SeqNum::new(seq).unwrap());
                    let look_up =
                        |index| block.look_up(index, &Order::Bytewise, user.as_bytes(), trailer).unwrap();
                    match (look_up(Some(index)), look_up(None)) {
                        (InBlock::Unsettled, _) | (_, InBlock::Unsettled) => {}
                        // Past the end sends the reader to the next block, which is right in both ways or in none.
                        (found, InBlock::Absent) => {
                            assert!(matches!(found, InBlock::Absent | InBlock::Past), "{user} {seq}");
                        }
                        (found, plain) => assert_eq!(found, plain, "{user} {seq}"),
                    }
                }
            }
        }
        assert!(count < 40 || ratio == 1.0 || absent > 20, "{absent}");
    }
}

#[test]
fn too_large_for_a_hash_index() {
    let many: Entries = (0..255).map(|i| (internal(&format!("{i:03}"), 1), Vec::new())).collect();
    assert!(HashIndex::of(&hashed(&many, 1, 0.75)).is_none(), "interval 254");
    assert!(HashIndex::of(&hashed(&many[..254].to_vec(), 1, 0.75)).is_some());
    for (value, has) in [(65_000, true), (65_520, false), (70_000, false)] {
        let one = vec![(internal("k", 1), vec![7; value])];
        let bytes = hashed(&one, 1, 0.75);
        assert_eq!(HashIndex::of(&bytes).is_some(), has, "{}", bytes.len());
        assert_eq!(listed(&bytes).unwrap(), one);
    }
    let mut builder = BlockBuilder::with_hash_index(1, 0.75);
    for (key, value) in &many {
        builder.add(key, value);
    }
    builder.finish();
    builder.reset();
    builder.add(&many[0].0, b"");
    assert!(HashIndex::of(builder.finish()).is_some(), "a new block is a new index");
}

fn golden(name: &str, block: std::ops::Range<usize>) -> Vec<u8> {
    let path = format!("{}/../../golden/sst/{name}.sst", env!("CARGO_MANIFEST_DIR"));
    #[allow(clippy::disallowed_methods)]
    let bytes = std::fs::read(path).unwrap();
    bytes[block].to_vec()
}

#[test]
fn the_hash_index_of_rocksdb_byte_for_byte() {
    let theirs = golden("v6_crc32c_datablockhash", 0..2023);
    let index = HashIndex::of(&theirs).unwrap();
    assert_eq!(index.find(b"key000000"), Bucket::Interval(0));
    assert_eq!(index.find(b"key000005"), Bucket::Collision);
    assert_eq!(index.find(b"zzz"), Bucket::Absent);
    let all = listed(&theirs).unwrap();
    assert_eq!(all.len(), 48);
    assert_eq!(hashed(&all, 4, 0.75), theirs);
}

/// The first block of RocksDB's file with separated values; its stored bytes are zstd.
fn separated() -> Vec<u8> {
    let file = golden("v7_zstd_separated_kv", 0..2048);
    let len = (16..file.len()).find(|len| {
        decompress(Compression::Zstd, &file[..*len], 1 << 20).is_ok_and(|raw| is_separated(&raw))
    });
    decompress(Compression::Zstd, &file[..len.unwrap()], 1 << 20).unwrap()
}

#[test]
fn separated_blocks_of_rocksdb_join() {
    let theirs = separated();
    assert!(matches!(DataBlock::parse(&theirs), Err(Unreadable::Malformed(_))));
    let plain = join_separated(&theirs).unwrap();
    let all = listed(&plain).unwrap();
    assert_eq!(all.len(), 18);
    assert_eq!(all[1].0[..9], *b"key000001");
    assert_eq!((all[0].1.len(), all[17].0.len()), (40, 17));
    let mut builder = BlockBuilder::new(4);
    all.iter().for_each(|(key, value)| builder.add(key, value));
    assert_eq!(builder.finish(), plain, "as if it had been written plain");
    assert!(join_separated(&plain).is_err());
}

/// The separated form, as the specification has it.
fn separate(all: &Entries, interval: usize, hash: bool) -> Vec<u8> {
    let (mut keys, mut values, mut restarts) = (Vec::new(), Vec::new(), Vec::new());
    for (i, (key, value)) in all.iter().enumerate() {
        let restart = i % interval == 0;
        let shared = if restart { 0 } else { common_prefix(&all[i - 1].0, key) };
        if restart {
            restarts.push(keys.len() as u32);
        }
        put_varint32(&mut keys, shared as u32);
        put_varint32(&mut keys, (key.len() - shared) as u32);
        put_varint32(&mut keys, value.len() as u32);
        if restart {
            put_varint32(&mut keys, values.len() as u32);
        }
        keys.extend_from_slice(&key[shared..]);
        values.extend_from_slice(value);
    }
    if restarts.is_empty() {
        restarts.push(0);
    }
    let mut out = [keys.clone(), values].concat();
    restarts.iter().for_each(|r| out.extend_from_slice(&r.to_le_bytes()));
    if hash {
        let plain = hashed(all, interval, 0.75);
        let buckets = HashIndex::of(&plain).unwrap();
        let _ = buckets.find(b"");
        let count =
            usize::from(u16::from_le_bytes(plain[plain.len() - 6..plain.len() - 4].try_into().unwrap()));
        out.extend_from_slice(&plain[plain.len() - 6 - count..plain.len() - 4]);
    }
    out.extend_from_slice(&(keys.len() as u32).to_le_bytes());
    let packed = restarts.len() as u32 | 1 << 28 | u32::from(hash) << 31;
    out.extend_from_slice(&packed.to_le_bytes());
    out
}

#[test]
fn separated_blocks_join_to_plain_ones() {
    for (count, interval) in [(0, 4), (1, 1), (30, 1), (30, 4), (30, 1000)] {
        let all = entries(count);
        let mut builder = BlockBuilder::new(interval);
        all.iter().for_each(|(key, value)| builder.add(key, value));
        assert_eq!(join_separated(&separate(&all, interval, false)).unwrap(), builder.finish());
    }
    let all = entries(30);
    assert_eq!(join_separated(&separate(&all, 4, true)).unwrap(), hashed(&all, 4, 0.75));
}

#[test]
fn damaged_forms_never_panic_nor_grow() {
    let all = entries(12);
    for good in [separate(&all, 4, false), separate(&all, 4, true), separated(), hashed(&all, 4, 0.75)] {
        let check = |bytes: &[u8]| {
            let joined = if is_separated(bytes) { join_separated(bytes) } else { Ok(bytes.to_vec()) };
            let Ok(plain) = joined else { return };
            assert!(plain.len() <= 2 * bytes.len() + 16);
            let _ = listed(&plain);
            if let (Some(index), Ok(block)) = (HashIndex::of(&plain), DataBlock::parse(&plain)) {
                for key in [&b"key0003"[..], b"", b"zz"] {
                    let _ = block.look_up(Some(index), &Order::Bytewise, key, Trailer::FIRST);
                }
            }
        };
        for at in 0..good.len() {
            check(&good[..at]);
            for flip in [1, 0x10, 0x80, 0xff] {
                let mut bad = good.clone();
                bad[at] ^= flip;
                check(&bad);
            }
        }
    }
}

#[test]
fn rewriting_keeps_order_and_restart_points() {
    let all = entries(30);
    for interval in [1, 4, 1000] {
        let mut builder = BlockBuilder::new(interval);
        all.iter().for_each(|(key, value)| builder.add(key, value));
        let bytes = builder.finish().to_vec();
        let block = DataBlock::parse(&bytes).unwrap();
        let same = rewrite_block::<Malformed>(&block, |key, value, k, v| {
            k.extend_from_slice(key);
            v.extend_from_slice(value);
            Ok(())
        });
        assert_eq!(same.unwrap(), bytes);
        let padded = rewrite_block::<Malformed>(&block, |key, value, k, v| {
            let (user, trailer) = key.split_at(key.len() - 8);
            k.extend_from_slice(&[user, &[0; 8], trailer].concat());
            v.extend_from_slice(value);
            Ok(())
        });
        let padded = padded.unwrap();
        assert_eq!(DataBlock::parse(&padded).unwrap().restart_count(), block.restart_count());
        let got = listed(&padded).unwrap();
        for ((got, _), (key, _)) in got.iter().zip(&all) {
            assert_eq!(got.len(), key.len() + 8);
            assert_eq!(got[..7], key[..7]);
        }
        assert_eq!(got.len(), all.len());
    }
}
