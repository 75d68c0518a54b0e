//! Damaged tables: an error or the very same content, never a panic, never other content.

use crate::fixture::{Entries, backward, forward, key, open, windows, write};
use ashlar_base::{InternalKey, LookupKey, Order, Result, ValueType};
use ashlar_format::compress::Compression;
use ashlar_format::table::ChecksumKind;
use ashlar_table::TableOptions;

fn entries() -> Entries {
    (0..90u32)
        .map(|i| {
            let user_key = format!("key{:04}", i / 2);
            let value = format!("{i:03}").repeat(8 + i as usize % 5).into_bytes();
            (key(user_key.as_bytes(), u64::from(200 - i), ValueType::Put).as_key().encoded().to_vec(), value)
        })
        .collect()
}

/// Everything a reader can do with the bytes; the results must agree with `expected` where they are results.
fn judge(bytes: &[u8], expected: &Entries, what: &str) {
    let Ok(table) = open(bytes, Order::Bytewise) else { return };
    let same = |got: Result<Entries>| {
        if let Ok(got) = got {
            assert!(got == *expected, "{what}: other content");
        }
    };
    same(forward(&table));
    same(backward(&table));
    same(windows(&table));
    let _ = table.verify();
    for (key, value) in expected.iter().step_by(7) {
        let key = InternalKey::decode(key).unwrap();
        if let Ok(found) = table.get(&LookupKey::new(key.user_key(), key.seq())) {
            let found = found.unwrap_or_else(|| panic!("{what}: key lost"));
            assert_eq!((found.trailer, found.value()), (key.trailer(), &value[..]), "{what}");
        }
    }
}

#[test]
fn flipped_bytes() {
    let expected = entries();
    for (version, checksum, compression) in
        [(5, ChecksumKind::Crc32c, Compression::None), (7, ChecksumKind::Xxh3, Compression::Lz4)]
    {
        let options = TableOptions {
            format_version: version,
            checksum,
            compression,
            block_size: 512,
            ..TableOptions::default()
        };
        let (bytes, _) = write(&options, &expected);
        assert!(bytes.len() < 6000, "{}", bytes.len());
        let mut refused = 0;
        for at in 0..bytes.len() {
            for flip in [0x01, 0x80, 0xff] {
                let mut damaged = bytes.clone();
                damaged[at] ^= flip;
                judge(&damaged, &expected, &format!("v{version} byte {at} flip {flip:#x}"));
                refused += usize::from(
                    open(&damaged, Order::Bytewise).and_then(|table| table.verify().map(|_| ())).is_err(),
                );
            }
        }
        assert!(
            refused > bytes.len() * 3 * 9 / 10,
            "only {refused} flips of {} were noticed",
            bytes.len() * 3
        );
    }
}

#[test]
fn cut_anywhere() {
    let expected = entries();
    let (bytes, _) = write(&TableOptions { block_size: 512, ..TableOptions::default() }, &expected);
    for len in 0..bytes.len() {
        assert!(open(&bytes[..len], Order::Bytewise).is_err(), "cut at {len}");
    }
}

#[test]
fn a_damaged_filter_costs_no_answer_and_is_told() {
    let expected = entries();
    let (bytes, _) = write(&TableOptions::default(), &expected);
    let table = open(&bytes, Order::Bytewise).unwrap();
    let filter_at = table.properties().tail_start_offset.unwrap() as usize;
    let memory = table.memory();
    let mut damaged = bytes;
    damaged[filter_at..filter_at + 40].fill(0);
    let table = open(&damaged, Order::Bytewise).unwrap();
    assert!(table.memory() < memory);
    judge(&damaged, &expected, "filter");
    let error = table.verify().unwrap_err();
    assert_eq!((error.is_corruption(), error.offset()), (true, Some(filter_at as u64)), "{error}");
}

#[test]
fn wrong_size_and_nonsense() {
    let (bytes, _) = write(&TableOptions::default(), &entries());
    let options = || {
        ashlar_table::ReaderOptions::new(
            Order::Bytewise,
            ashlar_cache::FramePool::new(1 << 16),
            ashlar_base::FileNumber(1),
        )
    };
    let error = ashlar_table::TableReader::open(crate::fixture::file(&bytes), 7, options()).unwrap_err();
    assert!(error.is_corruption() && error.path().is_some(), "{error}");
    for len in [0, 1, 47, 48, 52, 53, 100] {
        for byte in [0u8, 0xff] {
            assert!(open(&vec![byte; len], Order::Bytewise).is_err());
        }
    }
}
