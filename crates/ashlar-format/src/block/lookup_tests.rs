//! Point lookups in a block against the cursor, in sound and in damaged blocks.

#![allow(clippy::cast_possible_truncation)]

use super::*;
use crate::block::{BlockBuilder, BlockCursor};
use ashlar_base::{InternalKeyBuf, SeqNum, ValueType};

/// Splitmix64.
pub(in crate::block) struct Random(pub u64);

impl Random {
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }

    /// Keys that share long beginnings, and begin with one another.
    pub fn key(&mut self) -> Vec<u8> {
        let beginning = [&b""[..], b"a", b"shared by many", b"a\x01\x05\0\0"][self.below(4) as usize];
        let mut key = beginning.to_vec();
        for _ in 0..self.below(12) {
            key.push([0, 1, 5, b'a', 0xff][self.below(5) as usize]);
        }
        key
    }
}

pub(in crate::block) fn orders() -> [Order; 2] {
    [Order::Bytewise, Order::ReverseBytewise]
}

/// A block of drawn keys, each with up to three versions.
pub(in crate::block) fn block(random: &mut Random, order: &Order) -> (Vec<Vec<u8>>, Vec<u8>) {
    let mut keys: Vec<_> = (0..1 + random.below(40)).map(|_| random.key()).collect();
    keys.sort_by(|a, b| order.compare(a, b));
    keys.dedup();
    let interval = 1 + random.below(18) as usize;
    let mut builder = match random.below(4) {
        0 => BlockBuilder::without_delta(interval),
        1 => BlockBuilder::with_hash_index(interval, 0.75),
        _ => BlockBuilder::new(interval),
    };
    for key in &keys {
        let newest = 1 + random.below(3);
        for seq in (1..=newest).rev() {
            let trailer = Trailer::new(SeqNum::new(seq * 100).unwrap(), ValueType::Put);
            let value = vec![7; random.below(150) as usize];
            builder.add(InternalKeyBuf::new(key, trailer).as_key().encoded(), &value);
        }
    }
    (keys, builder.finish().to_vec())
}

pub(in crate::block) fn by_cursor(
    block: &DataBlock<'_>,
    order: &Order,
    user_key: &[u8],
    trailer: Trailer,
) -> Result<InBlock, Malformed> {
    let mut cursor = BlockCursor::default();
    cursor.seek_key(block, order, user_key, trailer)?;
    Ok(match cursor.internal_key() {
        None => InBlock::Past,
        Some(key) if key.user_key() == user_key => {
            InBlock::Found { trailer: key.trailer(), value: cursor.value_range() }
        }
        Some(_) => InBlock::Absent,
    })
}

#[test]
fn lookups_answer_as_the_cursor() {
    let mut random = Random(1);
    let (mut settled, mut unsettled) = (0, 0);
    for order in orders().iter().cycle().take(1000) {
        let (mut keys, bytes) = block(&mut random, order);
        let block = DataBlock::parse(&bytes).unwrap();
        keys.extend((0..20).map(|_| random.key()));
        for key in &keys {
            for seq in [0, 100, 150, 200, 300, 1000] {
                let trailer = Trailer::seek(SeqNum::new(seq).unwrap());
                let want = by_cursor(&block, order, key, trailer).unwrap();
                match block.look_up(None, order, key, trailer).unwrap() {
                    InBlock::Unsettled => unsettled += 1,
                    found => {
                        settled += 1;
                        assert_eq!(found, want, "{key:?} {seq} {order:?}");
                    }
                }
                let Some(index) = HashIndex::of(&bytes) else { continue };
                match (block.look_up(Some(index), order, key, trailer).unwrap(), want) {
                    (InBlock::Unsettled, _) => {}
                    // Without an interval for the key, only the last one is walked: it shows whether the block ends first.
                    (found, InBlock::Absent) => assert!(matches!(found, InBlock::Absent | InBlock::Past)),
                    (found, want) => assert_eq!(found, want, "{key:?} {seq} {order:?}"),
                }
            }
        }
    }
    assert!(settled > 3 * unsettled && unsettled > 100, "{settled} {unsettled}");
}

#[test]
fn newest_versions_are_always_settled() {
    let mut builder = BlockBuilder::new(16);
    let keys: Vec<_> = (0..40u32).map(|n| format!("key{n:06}")).collect();
    for key in &keys {
        for seq in [9, 8, 7] {
            let trailer = Trailer::new(SeqNum::new(seq).unwrap(), ValueType::Put);
            builder.add(InternalKeyBuf::new(key.as_bytes(), trailer).as_key().encoded(), b"v");
        }
    }
    let block = DataBlock::parse(builder.finish()).unwrap();
    for key in &keys {
        let found = block.look_up(None, &Order::Bytewise, key.as_bytes(), Trailer::seek(SeqNum::MAX));
        assert!(matches!(found, Ok(InBlock::Found { trailer, .. }) if trailer.seq().get() == 9), "{key}");
    }
}

#[test]
fn damaged_blocks_are_answered_as_by_the_cursor() {
    let mut random = Random(2);
    let mut errors = 0;
    for order in orders().iter().cycle().take(2000) {
        let (keys, mut bytes) = block(&mut random, order);
        for _ in 0..1 + random.below(6) {
            let at = random.below(bytes.len() as u64) as usize;
            bytes[at] = [random.below(256) as u8, random.below(9) as u8][random.below(2) as usize];
        }
        let Ok(block) = DataBlock::parse(&bytes) else { continue };
        for key in &keys {
            let trailer = Trailer::seek(SeqNum::MAX);
            let want = by_cursor(&block, order, key, trailer);
            let found = block.look_up(None, order, key, trailer);
            errors += u64::from(found.is_err());
            assert!(found == want || found == Ok(InBlock::Unsettled), "{key:?}: {found:?}, not {want:?}");
            let _ = block.look_up(HashIndex::of(&bytes), order, key, trailer);
        }
    }
    assert!(errors > 100, "{errors}");
}
