//! Cursors against a sorted vector, builders against the worked examples, hostile blocks.

use super::*;
use crate::table::BlockHandle;
use crate::unreadable::Unreadable;
use ashlar_base::ext::comparator::BytewiseOrder;
use ashlar_base::key::Sharing;
use ashlar_base::{InternalKey, InternalKeyBuf, Order, SeqNum, Trailer, ValueType};

fn trailer(seq: u64) -> Trailer {
    Trailer::new(SeqNum::new(seq).unwrap(), ValueType::Put)
}

fn internal(user: &str, seq: u64) -> Vec<u8> {
    InternalKeyBuf::new(user.as_bytes(), trailer(seq)).as_key().encoded().to_vec()
}

/// Keys with long and short shared prefixes, several versions each, newest first.
fn entries(count: u64) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut all = Vec::new();
    for i in 0..count {
        for seq in (1..=1 + i % 3).rev() {
            let value = vec![b'v'; usize::try_from(i * 7 % 200).unwrap()];
            all.push((
                internal(&format!("key{:05}{}", i * 10, "x".repeat((i % 5) as usize)), seq * 100),
                value,
            ));
        }
    }
    all
}

fn build(builder: &mut BlockBuilder, entries: &[(Vec<u8>, Vec<u8>)]) -> Vec<u8> {
    builder.reset();
    for (key, value) in entries {
        let most = builder.size_estimate_after(key.len(), value.len());
        builder.add(key, value);
        assert!(builder.size_estimate() <= most);
        assert_eq!(builder.last_key(), key);
    }
    assert_eq!(builder.entries(), entries.len());
    let estimate = builder.size_estimate();
    let block = builder.finish().to_vec();
    assert_eq!(block.len(), estimate);
    block
}

fn assert_at(cursor: &BlockCursor, block: &DataBlock<'_>, want: Option<&(Vec<u8>, Vec<u8>)>) {
    let got = cursor.entry(block).map(|e| (e.key.encoded(), e.value));
    assert_eq!(got, want.map(|(k, v)| (k.as_slice(), v.as_slice())));
    assert_eq!(cursor.is_on_entry(), want.is_some());
    assert_eq!(cursor.internal_key().map(|k| k.encoded()), want.map(|(k, _)| k.as_slice()));
}

#[test]
fn every_way_through_a_block() {
    let all = entries(60);
    for mut builder in
        [1, 2, 3, 16, 1000].map(BlockBuilder::new).into_iter().chain([BlockBuilder::without_delta(4)])
    {
        let bytes = build(&mut builder, &all);
        let block = DataBlock::parse(&bytes).unwrap();
        let mut cursor = BlockCursor::new(InternalEntries);
        cursor.first(&block).unwrap();
        for want in &all {
            assert_at(&cursor, &block, Some(want));
            cursor.next(&block).unwrap();
        }
        assert_at(&cursor, &block, None);
        cursor.prev(&block).unwrap();
        assert_at(&cursor, &block, None);
        cursor.last(&block).unwrap();
        for want in all.iter().rev() {
            assert_at(&cursor, &block, Some(want));
            cursor.prev(&block).unwrap();
        }
        assert_at(&cursor, &block, None);
    }
}

/// Keys that are prefixes of each other, several versions of some, tombstones, and trailers that share bytes with keys.
fn mixed_entries() -> Vec<(Vec<u8>, Vec<u8>)> {
    let users: [&[u8]; 9] =
        [b"", b"\x01", b"\x01\x05", b"a", b"ab", b"ab\x01", b"abc", b"b\xff", b"b\xff\xff"];
    let mut all = Vec::new();
    for (at, user) in users.iter().enumerate() {
        for version in (0..=at as u64 % 3).rev() {
            let kind = if (at as u64 + version) % 4 == 3 { ValueType::Delete } else { ValueType::Put };
            let trailer = Trailer::new(SeqNum::new(5 + version).unwrap(), kind);
            let key = InternalKeyBuf::new(user, trailer).as_key().encoded().to_vec();
            all.push((key, vec![b'v'; at]));
        }
    }
    all
}

#[test]
fn steps_say_how_user_keys_share() {
    let all = mixed_entries();
    let user = |at: usize| InternalKey::decode(&all[at].0).unwrap().user_key();
    for mut builder in
        [1, 2, 3, 16].map(BlockBuilder::new).into_iter().chain([BlockBuilder::without_delta(4)])
    {
        let bytes = build(&mut builder, &all);
        let block = DataBlock::parse(&bytes).unwrap();
        let mut cursor = BlockCursor::new(InternalEntries);
        cursor.first(&block).unwrap();
        for (at, entry) in all.iter().enumerate().skip(1) {
            let sharing = cursor.step_sharing(block.entries()).unwrap();
            assert_eq!(sharing, Some(Sharing::of(user(at - 1), user(at))), "entry {at}");
            assert_at(&cursor, &block, Some(entry));
        }
        assert_eq!(cursor.step_sharing(block.entries()), Ok(None));
        assert_eq!((cursor.left_key(), cursor.is_on_entry()), (user(all.len() - 1), false));
        cursor.last(&block).unwrap();
        for at in (1..all.len()).rev() {
            if let Some(sharing) = cursor.sharing_before() {
                assert_eq!(sharing, Sharing::of(user(at), user(at - 1)), "entry {at}");
            }
            cursor.prev(&block).unwrap();
            assert_at(&cursor, &block, Some(&all[at - 1]));
        }
    }
}

#[test]
fn plain_entries_are_visible_puts_of_further_keys() {
    let mut all = mixed_entries();
    for order in [Order::Bytewise, Order::ReverseBytewise] {
        // `None`: one key begins with the other, and the trailer behind it may hide that. Such an entry need not count as plain.
        let is_plain = |all: &[(Vec<u8>, Vec<u8>)], at: usize, seq: SeqNum| {
            let [before, key] = [at - 1, at].map(|at| InternalKey::decode(&all[at].0).unwrap());
            let put = key.trailer().value_type() == Some(ValueType::Put) && key.seq() <= seq;
            let plain = put && order.compare(before.user_key(), key.user_key()).is_lt();
            let (a, b) = (before.user_key(), key.user_key());
            (!plain || !b.starts_with(a) && !a.starts_with(b)).then_some(plain)
        };
        let bytes = build(&mut BlockBuilder::new(5), &all);
        let block = DataBlock::parse(&bytes).unwrap();
        for seq in [4, 5, 6, 9].map(|seq| SeqNum::new(seq).unwrap()) {
            let mut cursor = BlockCursor::new(InternalEntries);
            cursor.first(&block).unwrap();
            for at in 1..all.len() {
                let stepped = cursor.step_plain(block.entries(), &order, seq);
                assert!(is_plain(&all, at, seq).is_none_or(|plain| plain == stepped), "{order:?} {at} {seq}");
                if !stepped {
                    cursor.next(&block).unwrap();
                }
                assert_at(&cursor, &block, Some(&all[at]));
            }
            assert!(!cursor.step_plain(block.entries(), &order, seq));
            cursor.last(&block).unwrap();
            for at in (0..all.len() - 1).rev() {
                let decoded = cursor.key_before(2).is_some();
                let stepped = cursor.step_back_plain(&order, seq);
                assert!(decoded || !stepped, "the entry before {at} is not decoded");
                let plain = decoded.then(|| is_plain(&all, at, seq)).flatten();
                assert!(plain.is_none_or(|plain| plain == stepped), "{order:?} {at} {seq}");
                if !stepped {
                    cursor.prev(&block).unwrap();
                }
                assert_at(&cursor, &block, Some(&all[at]));
            }
        }
        all.sort_by(|a, b| {
            let [a, b] = [a, b].map(|e| InternalKey::decode(&e.0).unwrap());
            Order::ReverseBytewise.compare_internal(a, b)
        });
    }
}

/// Small blocks whose keys would take dozens of megabytes if all were decoded at once.
#[test]
fn long_shared_keys_do_not_take_much_memory() {
    for (len, count) in [(1 << 21, 20), (1 << 20, 40), (300_000, 40), (1 << 19, 4)] {
        let begin = "k".repeat(len);
        let all: Vec<_> =
            (0..count).map(|n| (internal(&format!("{begin}{n:03}"), 9), vec![b'v'; 3])).collect();
        let bytes = build(&mut BlockBuilder::new(1000), &all);
        let block = DataBlock::parse(&bytes).unwrap();
        let mut cursor = BlockCursor::new(InternalEntries);
        cursor.last(&block).unwrap();
        for want in all.iter().rev() {
            assert_at(&cursor, &block, Some(want));
            assert!(cursor.key_before(5).is_none());
            cursor.prev(&block).unwrap();
        }
        assert_at(&cursor, &block, None);
    }
}

#[test]
fn turning_around_anywhere() {
    let all = entries(40);
    let bytes = build(&mut BlockBuilder::new(7), &all);
    let block = DataBlock::parse(&bytes).unwrap();
    let (mut cursor, mut at, mut x) = (BlockCursor::new(InternalEntries), 0usize, 9u64);
    cursor.first(&block).unwrap();
    for _ in 0..5000 {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        if x >> 63 == 0 && at + 1 < all.len() {
            cursor.next(&block).unwrap();
            at += 1;
        } else if at > 0 {
            cursor.prev(&block).unwrap();
            at -= 1;
        }
        assert_at(&cursor, &block, Some(&all[at]));
    }
}

#[test]
fn seeks_find_the_neighbours() {
    let all = entries(50);
    for interval in [1, 5, 16] {
        let bytes = build(&mut BlockBuilder::new(interval), &all);
        let block = DataBlock::parse(&bytes).unwrap();
        let mut cursor = BlockCursor::new(InternalEntries);
        for i in 0..520u64 {
            for seq in [0, 100, 150, 200, 300, 400] {
                let user = format!("key{i:05}");
                let order = Order::Bytewise;
                let cmp = |e: &(Vec<u8>, Vec<u8>)| {
                    let stored = InternalKey::decode(&e.0).unwrap().split();
                    order.compare_parts(stored.0, stored.1, user.as_bytes(), trailer(seq))
                };
                cursor.seek_key(&block, &order, user.as_bytes(), trailer(seq)).unwrap();
                assert_at(&cursor, &block, all.iter().find(|e| cmp(e).is_ge()));
                cursor.seek_key_for_prev(&block, &order, user.as_bytes(), trailer(seq)).unwrap();
                assert_at(&cursor, &block, all.iter().rev().find(|e| cmp(e).is_le()));
            }
        }
    }
}

#[test]
fn other_orders_seek_too() {
    let mut all = entries(30);
    all.sort_by(|a, b| {
        let key = |e: &(Vec<u8>, Vec<u8>)| InternalKey::decode(&e.0).unwrap().to_buf();
        Order::ReverseBytewise.compare_internal(key(a).as_key(), key(b).as_key())
    });
    let bytes = build(&mut BlockBuilder::new(4), &all);
    let block = DataBlock::parse(&bytes).unwrap();
    let mut cursor = BlockCursor::new(InternalEntries);
    for order in [Order::ReverseBytewise, Order::Custom(std::sync::Arc::new(Backwards))] {
        for want in &all {
            let (user, trailer) = InternalKey::decode(&want.0).unwrap().split();
            cursor.seek_key(&block, &order, user, trailer).unwrap();
            assert_at(&cursor, &block, Some(want));
        }
    }
}

#[derive(Debug)]
struct Backwards;

impl ashlar_base::Comparator for Backwards {
    fn name(&self) -> &str {
        "backwards"
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
        b.cmp(a)
    }
}

#[test]
fn an_empty_block_has_one_restart_point() {
    let bytes = build(&mut BlockBuilder::new(16), &[]);
    assert_eq!(bytes, [0, 0, 0, 0, 1, 0, 0, 0]);
    let block = DataBlock::parse(&bytes).unwrap();
    let mut cursor = BlockCursor::new(InternalEntries);
    cursor.first(&block).unwrap();
    assert_at(&cursor, &block, None);
    cursor.last(&block).unwrap();
    assert_at(&cursor, &block, None);
    cursor.seek_key_for_prev(&block, &Order::Bytewise, b"k", Trailer::FIRST).unwrap();
    assert_at(&cursor, &block, None);
}

fn handles(count: u64) -> Vec<(Vec<u8>, BlockHandle)> {
    let mut offset = 0;
    (0..count)
        .map(|i| {
            let handle = BlockHandle { offset, size: 300 - i % 7 * 40 };
            // A gap before every eleventh block: a delta cannot say that.
            offset = handle.end_with_trailer().unwrap() + if i % 11 == 10 { 64 } else { 0 };
            (internal(&format!("sep{i:04}"), 5), handle)
        })
        .collect()
}

#[test]
fn index_blocks_in_every_form() {
    let all = handles(100);
    for form in 0..8 {
        let format =
            IndexEntries { user_keys: form & 1 != 0, delta_values: form & 2 != 0, first_keys: form & 4 != 0 };
        let cut = if format.user_keys { 8 } else { 0 };
        for interval in [1, 4, 16] {
            let mut builder = IndexBlockBuilder::new(format, interval);
            for (key, handle) in &all {
                builder.add(&key[..key.len() - cut], *handle, key);
            }
            let estimate = builder.size_estimate();
            let bytes = builder.finish();
            assert_eq!(bytes.len(), estimate);
            let block = DataBlock::parse(&bytes).unwrap();
            let mut cursor = IndexCursor::new(format);
            let check = |cursor: &IndexCursor, (key, handle): &(Vec<u8>, BlockHandle)| {
                let value = cursor.index_value().unwrap();
                assert_eq!((cursor.key(), value.handle), (&key[..key.len() - cut], *handle));
                let first = value.first_key.map(|range| range.of(&bytes));
                assert_eq!(first, format.first_keys.then_some(key.as_slice()));
            };
            cursor.first(&block).unwrap();
            for want in &all {
                check(&cursor, want);
                cursor.next(&block).unwrap();
            }
            assert_eq!(cursor.index_value(), None);
            cursor.last(&block).unwrap();
            for want in all.iter().rev() {
                check(&cursor, want);
                cursor.prev(&block).unwrap();
            }
            for (i, want) in all.iter().enumerate() {
                cursor
                    .seek_key(&block, &Order::Bytewise, format!("sep{i:04}").as_bytes(), trailer(9))
                    .unwrap();
                check(&cursor, want);
            }
            cursor.seek(&block, &UserTarget { order: &BytewiseOrder, user_key: b"z" }).unwrap();
            assert!(!cursor.is_on_entry());
        }
    }
}

#[test]
fn the_first_key_index_of_a_rocksdb_file() {
    let first = |n: u32| [format!("key{n:06}").as_bytes(), &[1, 0, 0, 0, 0, 0, 0, 0]].concat();
    let format = IndexEntries { user_keys: true, delta_values: true, first_keys: true };
    let mut bytes = [&b"\x00\x09key000015\x00\xf2\x01\x11"[..], &first(0)].concat();
    bytes.extend_from_slice(&[&b"\x07\x0231\x07\x11"[..], &first(16)].concat());
    bytes.extend_from_slice(&[0, 0, 0, 0, 1, 0, 0, 0]);
    let block = DataBlock::parse(&bytes).unwrap();
    let mut cursor = IndexCursor::new(format);
    let mut again = IndexBlockBuilder::new(format, 4);
    cursor.first(&block).unwrap();
    for (key, offset, size, number) in [(&b"key000015"[..], 0, 242, 0), (b"key000031", 247, 238, 16)] {
        let value = cursor.index_value().unwrap();
        assert_eq!((cursor.key(), value.handle), (key, BlockHandle { offset, size }));
        assert_eq!(value.first_key.unwrap().of(&bytes), first(number));
        again.add(key, value.handle, &first(number));
        cursor.next(&block).unwrap();
    }
    assert!(!cursor.is_on_entry());
    assert_eq!(again.finish(), bytes);
}

#[test]
fn features_of_the_packed_word() {
    let bytes = build(&mut BlockBuilder::new(16), &entries(3));
    let with_bit = |bit: u32| {
        let (body, packed) = bytes.split_last_chunk::<4>().unwrap();
        let packed = u32::from_le_bytes(*packed) | 1 << bit;
        [body, &packed.to_le_bytes()].concat()
    };
    assert!(matches!(DataBlock::parse(&with_bit(28)), Err(Unreadable::Malformed(_))));
    assert!(DataBlock::parse(&with_bit(29)).is_ok());
    assert!(matches!(DataBlock::parse(&with_bit(30)), Err(Unreadable::Malformed(_))));
    assert!(DataBlock::parse(&with_bit(31)).is_err());
    let mut hashed = with_bit(31);
    let at = hashed.len() - 4;
    hashed.splice(at..at, [255, 0, 255, 3, 0]);
    assert_eq!(DataBlock::parse(&hashed).unwrap().entries(), DataBlock::parse(&bytes).unwrap().entries());
}

/// Drives every call over bytes that may be anything; only errors are allowed.
fn exercise(bytes: &[u8]) {
    if let Ok(block) = DataBlock::reopen(bytes) {
        exercise_cursor(&block, BlockCursor::new(InternalEntries));
        exercise_cursor(&block, PlainCursor::new(PlainEntries));
        for form in 0..8 {
            let format = IndexEntries {
                user_keys: form & 1 != 0,
                delta_values: form & 2 != 0,
                first_keys: form & 4 != 0,
            };
            exercise_cursor(&block, IndexCursor::new(format));
        }
    }
    let _ = DataBlock::parse(bytes);
}

fn exercise_cursor<F: EntryFormat>(block: &DataBlock<'_>, mut cursor: EntryCursor<F>) {
    let target = InternalTarget { order: &BytewiseOrder, user_key: b"key00050", trailer: Trailer::FIRST };
    let _ = cursor.seek(block, &target);
    let _ = cursor.prev(block);
    let _ = cursor.next(block);
    let _ = cursor.seek_for_prev(block, &target);
    let _ = cursor.last(block);
    for _ in 0..20 {
        let _ = cursor.prev(block);
    }
    let _ = cursor.first(block);
    while cursor.is_on_entry() {
        if cursor.next(block).is_err() {
            assert!(!cursor.is_on_entry() && cursor.key().is_empty());
        }
    }
}

#[test]
fn hostile_blocks_do_not_panic() {
    let mut index = IndexBlockBuilder::new(IndexEntries { delta_values: true, ..Default::default() }, 4);
    for (key, handle) in handles(12) {
        index.add(&key, handle, b"");
    }
    let data = build(&mut BlockBuilder::new(4), &entries(8));
    for bytes in [data, index.finish()] {
        for cut in 0..=bytes.len() {
            exercise(&bytes[..cut]);
            exercise(&bytes[cut..]);
        }
        for at in 0..bytes.len() {
            for flip in [1, 4, 0x20, 0x80, 0xff] {
                let mut flipped = bytes.clone();
                flipped[at] ^= flip;
                exercise(&flipped);
            }
        }
    }
}

#[test]
fn restart_arrays_are_proven() {
    let good = build(&mut BlockBuilder::new(2), &entries(8));
    let restarts = DataBlock::parse(&good).unwrap().restart_count();
    assert!(restarts > 3);
    let array = good.len() - 4 - 4 * restarts;
    for (restart, value) in [(0, 1), (2, 3), (restarts - 1, u32::MAX), (1, u32::try_from(array).unwrap())] {
        let mut bad = good.clone();
        bad[array + 4 * restart..][..4].copy_from_slice(&value.to_le_bytes());
        assert!(matches!(DataBlock::parse(&bad), Err(Unreadable::Malformed(_))), "{restart} {value}");
        exercise(&bad);
    }
}

/// RocksDB writes the restart point 0 twice when `block_restart_interval` is 0, and reads such a block.
#[test]
fn a_restart_point_may_stand_twice() {
    let wanted = entries(8);
    let good = build(&mut BlockBuilder::new(1), &wanted);
    let count = DataBlock::parse(&good).unwrap().restart_count();
    let array = good.len() - 4 - 4 * count;
    let packed = u32::try_from(count + 1).unwrap().to_le_bytes();
    let twice = [&good[..array], &[0; 4], &good[array..good.len() - 4], &packed].concat();
    let block = DataBlock::parse(&twice).unwrap();
    assert_eq!(block.restart_count(), count + 1);
    exercise(&twice);
    let mut cursor = BlockCursor::default();
    cursor.first(&block).unwrap();
    for (key, value) in &wanted {
        assert_eq!((cursor.key(), cursor.value(&block)), (&key[..], &value[..]));
        cursor.next(&block).unwrap();
    }
    cursor.last(&block).unwrap();
    for (key, _) in wanted.iter().rev() {
        assert_eq!(cursor.key(), &key[..]);
        cursor.prev(&block).unwrap();
    }
}
