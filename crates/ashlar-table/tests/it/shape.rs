//! What stands in the files that are written, and what is not written.

use crate::fixture::{Entries, forward, identity, key, open, open_with, write};
use ashlar_base::{ErrorKind, FileNumber, InternalKey, LookupKey, Order, SeqNum, Trailer, ValueType};
use ashlar_cache::FramePool;
use ashlar_env::Env;
use ashlar_format::compress::Compression;
use ashlar_format::filter::FilterPolicy;
use ashlar_table::{ReadHow, ReaderOptions, TableBuilder, TableOptions, unique_id};
use ashlar_testkit::heap::untouched;
use std::path::Path;

fn numbered(count: u32) -> Entries {
    (0..count)
        .map(|i| {
            let key = key(format!("key{i:06}").as_bytes(), u64::from(i) + 5, ValueType::Put);
            (key.as_key().encoded().to_vec(), format!("value {i}").into_bytes())
        })
        .collect()
}

#[test]
fn properties_tell_what_was_written() {
    let mut entries = numbered(1000);
    entries.push((key(b"z1", 9, ValueType::Delete).as_key().encoded().to_vec(), Vec::new()));
    entries.push((key(b"z2", 3, ValueType::Merge).as_key().encoded().to_vec(), b"m".to_vec()));
    for version in 2..=7 {
        let options = TableOptions { format_version: version, ..TableOptions::default() };
        let (bytes, summary) = write(&options, &entries);
        let table = open(&bytes, Order::Bytewise).unwrap();
        let p = table.properties();
        assert_eq!(p.num_entries, Some(1002));
        assert_eq!(
            (p.num_deletions, p.num_merge_operands, p.num_range_deletions),
            (Some(1), Some(1), Some(0))
        );
        assert_eq!(p.format_version, Some(u64::from(version)));
        assert_eq!(p.index_key_is_user_key, Some(u64::from(version >= 3)));
        assert_eq!(p.index_value_is_delta_encoded, Some(u64::from(version >= 4)));
        assert_eq!(p.num_filter_entries, Some(1002));
        assert_eq!((p.key_smallest_seqno, p.key_largest_seqno), (Some(3), Some(1004)));
        assert_eq!(p.num_data_blocks, Some(u64::from(table.blocks())));
        assert_eq!(p.tail_start_offset, Some(summary.size - summary.tail_size));
        assert_eq!(p.compression.as_deref(), Some(if version == 7 { "BuiltinV2;04;" } else { "LZ4" }));
        assert_eq!(p.raw_key_size, Some(summary.raw_key_bytes));
        assert_eq!((summary.smallest_seq.get(), summary.largest_seq.get()), (3, 1004));
        assert_eq!((summary.entries, summary.deletions), (1002, 1));
        let identity = identity();
        assert_eq!(summary.unique_id, unique_id(&identity.db_id, &identity.session_id, 9));
    }
}

#[test]
fn versions_of_one_key_over_many_blocks() {
    let entries: Entries = (0..500u64)
        .map(|i| (key(b"one key", 1000 - i, ValueType::Put).as_key().encoded().to_vec(), vec![7; 40]))
        .collect();
    let (bytes, _) = write(&TableOptions { block_size: 300, ..TableOptions::default() }, &entries);
    let table = open(&bytes, Order::Bytewise).unwrap();
    assert!(table.blocks() > 50);
    assert_eq!(table.properties().index_key_is_user_key, Some(0));
    assert_eq!(table.properties().num_filter_entries, Some(1));
    for seq in 501..=1000 {
        let found = table.get(&LookupKey::new(b"one key", SeqNum::new(seq).unwrap())).unwrap().unwrap();
        assert_eq!(found.trailer.seq().get(), seq);
        let mut older = Vec::new();
        let mut show = |trailer: Trailer, _: &_, _| {
            older.push(trailer.seq().get());
            Ok(older.len() < 100)
        };
        table.older(b"one key", found, &ReadHow::default(), &mut show).unwrap();
        assert!(older.into_iter().eq((501..seq).rev().take(100)));
    }
    assert!(table.get(&LookupKey::new(b"one key", SeqNum::new(500).unwrap())).unwrap().is_none());
}

#[test]
fn incompressible_blocks_are_stored_raw() {
    let mut x = 1u64;
    let entries: Entries = (0..200u64)
        .map(|i| {
            let value = (0..16).flat_map(|_| {
                x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (x >> 16).to_le_bytes().into_iter().take(6)
            });
            (key(&i.to_be_bytes(), 1, ValueType::Put).as_key().encoded().to_vec(), value.collect())
        })
        .collect();
    let options =
        TableOptions { compression: Compression::Zstd, format_version: 7, ..TableOptions::default() };
    let (bytes, _) = write(&options, &entries);
    let table = open(&bytes, Order::Bytewise).unwrap();
    assert_eq!(forward(&table).unwrap(), entries);
    let rejected = table.properties().num_data_blocks_compression_rejected;
    assert_eq!(rejected, table.properties().num_data_blocks);
}

#[test]
fn refuses_wrong_input() {
    let env = Env::mem();
    env.fs.create_dir_all(Path::new("/db")).unwrap();
    let file = || env.fs.create(Path::new("/db/1.sst")).unwrap();
    let builder = || TableBuilder::new(file(), TableOptions::default(), identity()).unwrap();
    assert_eq!(builder().finish().unwrap_err().kind(), ErrorKind::InvalidArgument);
    let mut b = builder();
    b.add(key(b"b", 5, ValueType::Put).as_key(), b"").unwrap();
    for (user, seq) in [(b"b", 5), (b"b", 6), (b"a", 9)] {
        let refused = b.add(key(user, seq, ValueType::Put).as_key(), b"").unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
    }
    let refused = b.add(key(b"c", 1, ValueType::RangeDelete).as_key(), b"d").unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
    let unknown = [&b"c"[..], &[0x7f, 1, 0, 0, 0, 0, 0, 0]].concat();
    let refused = b.add(InternalKey::decode(&unknown).unwrap(), b"").unwrap_err();
    assert_eq!((refused.kind(), refused.message()), (ErrorKind::NotSupported, "entries of type 0x7f"));
    b.add(key(b"b", 4, ValueType::Put).as_key(), b"").unwrap();
    assert_eq!(b.finish().unwrap().entries, 2);
    for options in [
        TableOptions { format_version: 1, ..TableOptions::default() },
        TableOptions { format_version: 8, ..TableOptions::default() },
        TableOptions { block_restart_interval: 0, ..TableOptions::default() },
        TableOptions { block_size: 0, ..TableOptions::default() },
        TableOptions {
            filter: Some(FilterPolicy::Bloom { bits_per_key: f64::NAN }),
            ..TableOptions::default()
        },
        TableOptions { metadata_block_size: 0, ..TableOptions::default() },
        TableOptions { data_block_hash_ratio: Some(0.0), ..TableOptions::default() },
        TableOptions { max_dict_bytes: 1 << 31, ..TableOptions::default() },
    ] {
        let refused = TableBuilder::new(file(), options, identity()).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
    }
}

#[test]
fn two_gib_are_refused_before_they_are_touched() {
    let Some(huge) = untouched("two_gib_are_refused_before_they_are_touched", 1 << 31) else { return };
    let env = Env::mem();
    let file = env.fs.create(Path::new("/1.sst")).unwrap();
    let mut builder = TableBuilder::new(file, TableOptions::default(), identity()).unwrap();
    let put = key(b"k", 1, ValueType::Put);
    for (refused, what) in [
        (builder.add(put.as_key(), &huge), "key and value of 2 GiB or more"),
        (builder.add_range_tombstone(b"a", &huge, put.as_key().seq()), "range tombstones of 2 GiB or more"),
    ] {
        let e = refused.unwrap_err();
        assert_eq!((e.kind(), e.message()), (ErrorKind::InvalidArgument, what));
        assert_eq!(e.path(), Some(Path::new("/1.sst")));
    }
    assert_eq!(builder.entries(), 0);
}

#[test]
fn blocks_are_kept_in_the_pool_and_leave_with_the_table() {
    let entries = numbered(5000);
    let (bytes, _) = write(&TableOptions::default(), &entries);
    let pool = FramePool::new(40_000);
    let options = ReaderOptions::new(Order::Bytewise, pool.clone(), FileNumber(9));
    let table = open_with(&bytes, options).unwrap();
    let mut kept = Vec::new();
    for (i, (key, value)) in entries.iter().enumerate() {
        let key = InternalKey::decode(key).unwrap();
        let found = table.get(&LookupKey::new(key.user_key(), SeqNum::MAX)).unwrap().unwrap();
        assert_eq!(found.value(), value);
        if i % 1000 == 0 {
            kept.push((found, value));
        }
        assert!(pool.usage().used <= 40_000);
    }
    let usage = pool.usage();
    assert!(usage.hits > 4500 && usage.misses >= u64::from(table.blocks()), "{usage:?}");
    assert!(table.memory() > 0);
    drop(table);
    for (found, value) in kept {
        assert_eq!(found.value(), value);
    }
    assert_eq!(pool.usage().used, 0);
}

/// Regression: keys of many KB that begin alike made an index that the reader took for damage, because its compressed form was so short.
#[test]
fn an_index_that_is_much_longer_than_its_file_is_read_back() {
    let long = |n: u32| {
        let mut user_key = vec![b'7'; 32 << 10];
        user_key.extend_from_slice(&n.to_be_bytes());
        user_key
    };
    let count = 2200;
    let entries: Entries =
        (0..count).map(|n| (key(&long(n), 5, ValueType::Put).as_key().encoded().to_vec(), vec![7])).collect();
    for compression in [Compression::Lz4, Compression::Zstd] {
        let (bytes, _) = write(&TableOptions { compression, ..TableOptions::default() }, &entries);
        let pool = FramePool::new(1 << 20);
        let table = open_with(&bytes, ReaderOptions::new(Order::Bytewise, pool, FileNumber(9))).unwrap();
        for n in [0, count / 2, count - 1] {
            let found = table.get(&LookupKey { user_key: &long(n), seq: SeqNum::MAX }).unwrap();
            assert!(found.is_some(), "{compression:?}: key {n}");
        }
    }
}
