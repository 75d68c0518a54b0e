//! The rarer structures, written: that they are there, that they pay, and that damage to them is reported.

use crate::fixture::{Entries, backward, forward, key, open, windows, write};
use ashlar_base::{ErrorKind, InternalKey, LookupKey, Order, Result, SeqNum, ValueType};
use ashlar_env::Env;
use ashlar_format::compress::Compression;
use ashlar_format::filter::FilterPolicy;
use ashlar_format::table::{ChecksumKind, IndexKind};
use ashlar_table::{TableBuilder, TableOptions};
use ashlar_testkit::report::scale;
use std::path::Path;

fn entries(count: u32) -> Entries {
    (0..count)
        .map(|i| {
            let user_key = format!("key{:05}", i / 2);
            let value = format!(
                "{{\"number\": {}, \"street\": \"Long Road {}\", \"city\": \"Oslo\"}}",
                i * 7,
                i % 50
            );
            let key = key(user_key.as_bytes(), u64::from(2 * count - i), ValueType::Put);
            (key.as_key().encoded().to_vec(), value.into_bytes())
        })
        .collect()
}

#[test]
fn dictionaries_make_tables_smaller() {
    let entries = entries(2000);
    let base = TableOptions { block_size: 512, ..TableOptions::default() };
    for (compression, train, buffer) in [
        (Compression::Lz4, 0, 0),
        (Compression::Lz4hc, 0, 20_000),
        (Compression::Zlib, 0, 0),
        (Compression::Zstd, 0, 0),
        (Compression::Zstd, 40_000, 0),
        (Compression::Zstd, 40_000, 60_000),
    ] {
        let without = TableOptions { compression, ..base.clone() };
        let with = TableOptions {
            max_dict_bytes: 4096,
            zstd_max_train_bytes: train,
            max_dict_buffer_bytes: buffer,
            ..without.clone()
        };
        let ((plain, _), (smaller, _)) = (write(&without, &entries), write(&with, &entries));
        // The dictionary itself is in the smaller one.
        assert!(smaller.len() < plain.len() * 9 / 10, "{compression:?} {} {}", smaller.len(), plain.len());
        let table = open(&smaller, Order::Bytewise).unwrap();
        assert!(forward(&table).unwrap() == entries);
        assert_eq!(table.verify().unwrap(), 2000);
    }
    for compression in [Compression::None, Compression::Snappy, Compression::Bzip2] {
        let without = TableOptions { compression, ..base.clone() };
        let with = TableOptions { max_dict_bytes: 4096, ..without.clone() };
        assert!(write(&without, &entries).0 == write(&with, &entries).0, "{compression:?} has none");
    }
}

#[test]
fn partitions_are_many_and_told_in_the_properties() {
    let options = TableOptions {
        block_size: 512,
        index: IndexKind::TwoLevel,
        metadata_block_size: 256,
        partition_filters: true,
        ..TableOptions::default()
    };
    let entries = entries(3000);
    let (bytes, _) = write(&options, &entries);
    let table = open(&bytes, Order::Bytewise).unwrap();
    let p = table.properties();
    assert!(p.index_partitions.unwrap() > 10 && p.top_level_index_size.unwrap() > 100);
    assert_eq!(p.index_kind, Some(2));
    let at_open = table.memory();
    table.get(&LookupKey::new(b"key00700", SeqNum::MAX)).unwrap().unwrap();
    let after_one = table.memory();
    assert_eq!(table.verify().unwrap(), 3000);
    assert!(table.memory() > 4 * (after_one - at_open), "{at_open} {after_one} {}", table.memory());
    assert!(table.get(&LookupKey::new(b"zzz", SeqNum::MAX)).unwrap().is_none());
}

#[test]
fn levels_choose_compression_and_filter() {
    use Compression::{Lz4, None as Raw, Snappy, Zstd};
    let ribbon = FilterPolicy::Ribbon { bloom_bits_per_key: 10.0, bloom_before_level: 2 };
    let options = TableOptions {
        compression_per_level: vec![Raw, Snappy, Lz4],
        bottommost_compression: Some(Zstd),
        filter: Some(ribbon),
        ..TableOptions::default()
    };
    let chosen = |level, base, bottom| options.for_level(level, base, bottom).compression;
    assert_eq!([chosen(-1, 4, true), chosen(0, 4, false)], [Raw, Raw]);
    assert_eq!([chosen(4, 4, false), chosen(5, 4, false), chosen(6, 4, false)], [Snappy, Lz4, Lz4]);
    assert_eq!([chosen(0, 4, true), chosen(6, 6, true)], [Zstd, Zstd]);
    let default = TableOptions::default();
    assert_eq!(default.for_level(6, 6, true).compression, default.compression);
    assert!(matches!(options.for_level(1, 1, false).filter, Some(FilterPolicy::Bloom { .. })));
    assert_eq!(options.for_level(2, 1, false).filter, Some(ribbon));
}

#[test]
fn hash_search_indexes_are_not_written() {
    let env = Env::mem();
    env.fs.create_dir_all(Path::new("/db")).unwrap();
    let file = env.fs.create(Path::new("/db/1.sst")).unwrap();
    let options = TableOptions { index: IndexKind::HashSearch, ..TableOptions::default() };
    let refused = TableBuilder::new(file, options, crate::fixture::identity()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NotSupported);
    assert!(refused.to_string().contains("kHashSearch"), "{refused}");
}

/// Everything a reader can do; results must be the table's or errors. True when `verify` refused.
fn judge(bytes: &[u8], expected: &Entries, what: &str) -> bool {
    let Ok(table) = open(bytes, Order::Bytewise) else { return true };
    let same = |got: Result<Entries>| {
        if let Ok(got) = got {
            assert!(got == *expected, "{what}: other content");
        }
    };
    same(forward(&table));
    same(backward(&table));
    same(windows(&table));
    for (key, value) in expected.iter().step_by(5) {
        let key = InternalKey::decode(key).unwrap();
        if let Ok(found) = table.get(&LookupKey::new(key.user_key(), key.seq())) {
            let found = found.unwrap_or_else(|| panic!("{what}: key lost"));
            assert_eq!((found.trailer, found.value()), (key.trailer(), &value[..]), "{what}");
        }
    }
    table.verify().is_err()
}

/// Small tables that hold every structure there is between them.
fn shapes() -> Vec<TableOptions> {
    let base = TableOptions {
        block_size: 300,
        index: IndexKind::TwoLevel,
        metadata_block_size: 60,
        partition_filters: true,
        data_block_hash_ratio: Some(0.75),
        max_dict_bytes: 200,
        ..TableOptions::default()
    };
    let ribbon = Some(FilterPolicy::Ribbon { bloom_bits_per_key: 10.0, bloom_before_level: -1 });
    vec![
        TableOptions { compression: Compression::Zstd, format_version: 7, ..base.clone() },
        TableOptions {
            compression: Compression::Zlib,
            format_version: 4,
            checksum: ChecksumKind::Crc32c,
            ..base.clone()
        },
        TableOptions {
            compression: Compression::Bzip2,
            index: IndexKind::BinarySearchWithFirstKey,
            filter: ribbon,
            ..base.clone()
        },
        TableOptions { filter: ribbon, ..base },
    ]
}

#[test]
fn flips_in_every_structure() {
    let expected = entries(60);
    let (mut flips, mut refused) = (0, 0);
    for options in shapes() {
        let (bytes, _) = write(&options, &expected);
        assert!(open(&bytes, Order::Bytewise).unwrap().verify().is_ok());
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= [0x01, 0x80, 0xff][at % 3];
            refused +=
                usize::from(judge(&damaged, &expected, &format!("{:?} byte {at}", options.compression)));
            flips += 1;
        }
        for len in 0..bytes.len() {
            assert!(open(&bytes[..len], Order::Bytewise).is_err(), "cut at {len}");
        }
    }
    assert!(refused > flips * 9 / 10, "only {refused} of {flips} flips were noticed");
}

/// The same with the checksums not compared, where decoders see the damage: nothing but panics would be wrong.
#[test]
fn damage_behind_the_checksums() {
    let expected = entries(60);
    for mut options in shapes() {
        // Checksum "none" is right for every block of a version without context.
        (options.checksum, options.format_version) = (ChecksumKind::None, 5);
        let (bytes, _) = write(&options, &expected);
        for at in 0..bytes.len() - 53 {
            let flips = [0x01, 0x80, 0xff];
            for flip in flips.into_iter().cycle().skip(at % 3).take(scale(1, 3)) {
                let mut damaged = bytes.clone();
                damaged[at] ^= flip;
                let Ok(table) = open(&damaged, Order::Bytewise) else { continue };
                let _ = (forward(&table), backward(&table), windows(&table), table.verify());
                for (key, _) in expected.iter().step_by(9) {
                    let key = InternalKey::decode(key).unwrap();
                    let _ = table.get(&LookupKey::new(key.user_key(), key.seq()));
                }
            }
        }
    }
}
