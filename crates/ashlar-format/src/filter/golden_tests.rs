//! Ribbon, legacy Bloom and LevelDB filters against real bytes and their own models; rates beside the theory.

#![allow(clippy::cast_possible_truncation, reason = "test data is small")]

use super::*;
use crate::table::{Footer, MetaIndex};

/// The filter block and the keys of a golden table with a full filter.
fn golden(file: &[u8], listing: &str) -> (Vec<u8>, Vec<Vec<u8>>) {
    let (footer, _) = Footer::decode(&file[file.len() - Footer::LEN..], file.len() as u64).unwrap();
    let at = |offset: u64, size: u64| &file[offset as usize..(offset + size) as usize];
    let meta = MetaIndex::decode(at(footer.metaindex.offset, footer.metaindex.size)).unwrap();
    let place = meta.filter().unwrap().handle;
    let keys = listing.lines().filter(|line| line.starts_with('\'')).map(|line| {
        let hex = line[1..].split('\'').next().unwrap();
        (0..hex.len() / 2).map(|i| u8::from_str_radix(&hex[2 * i..][..2], 16).unwrap()).collect()
    });
    (at(place.offset, place.size).to_vec(), keys.collect())
}

fn ribbon() -> (Vec<u8>, Vec<Vec<u8>>) {
    golden(
        include_bytes!("../../../../golden/sst/v5_lz4hc_ribbon.sst"),
        include_str!("../../../../golden/sst/v5_lz4hc_ribbon.expected.txt"),
    )
}

fn legacy() -> (Vec<u8>, Vec<Vec<u8>>) {
    golden(
        include_bytes!("../../../../golden/sst/v2_snappy_crc32c_legacybloom.sst"),
        include_str!("../../../../golden/sst/v2_snappy_crc32c_legacybloom.expected.txt"),
    )
}

fn key(prefix: &str, i: usize) -> Vec<u8> {
    format!("{prefix}{i:08}").into_bytes()
}

#[test]
fn the_golden_ribbon_filter_is_read_and_rebuilt_byte_by_byte() {
    let (filter, keys) = ribbon();
    assert_eq!((filter.len(), keys.len()), (1749, 2000));
    let form = FilterForm::decode(&filter);
    let FilterForm::Ribbon(shape) = form else { panic!("{form:?}") };
    assert_eq!((shape.blocks, shape.columns, shape.upper_start), (16, 7, 3));
    let mut builder = RibbonBuilder::new(10.0).unwrap();
    for key in &keys {
        assert!(form.may_contain(&filter, key) && form.may_match(&filter, xxph3_64(key)));
        builder.add(key);
        builder.add(key);
    }
    assert!(!form.may_contain(&filter, b"nope"));
    assert_eq!((builder.keys(), builder.size_estimate()), (2000, filter.len()));
    assert!(builder.finish() == filter, "other bytes than RocksDB's");
    assert!(builder.finish_with(16, 109).unwrap() == filter);
}

#[test]
fn the_golden_legacy_filter_is_read_and_rebuilt_byte_by_byte() {
    let (filter, keys) = legacy();
    let form = FilterForm::decode(&filter);
    assert_eq!(form, FilterForm::LegacyBloom(LegacyBloom { lines: 5, line_log2: 6, probes: 6 }));
    let mut builder = LegacyBloomBuilder::new(10.0).unwrap();
    for key in &keys {
        assert!(form.may_contain(&filter, key));
        builder.add(key);
    }
    assert!(!form.may_contain(&filter, b"nope"));
    assert!(form.may_match(&filter, xxph3_64(b"nope")), "the other hash proves nothing");
    assert_eq!(builder.size_estimate(), filter.len());
    assert!(builder.finish() == filter, "other bytes than RocksDB's");
}

#[test]
fn hash32_vectors() {
    let long: Vec<u8> = (0..=255).cycle().take(5000).collect();
    for (input, block, bloom) in [
        (&b""[..], 0x0000_018d, 0xbc9f_1d34),
        (b"a", 0x5c84_73b1, 0x286e_9db0),
        (b"ab", 0xe77f_7d03, 0x39ac_a330),
        (b"abc", 0x1d9a_a392, 0x855d_012f),
        (b"abcd", 0x0c6f_6be9, 0xb9c8_3353),
        (b"123456789", 0x9bb1_ae4a, 0x73dd_dd2a),
        (&long[..129], 0xb1e8_7c05, 0x1c82_06a4),
        (&long[..1025], 0x50dc_933b, 0x5903_bfc6),
        (&long, 0x46d4_5288, 0x57ff_8b4e),
    ] {
        assert_eq!(hash32(input, DATA_BLOCK_SEED), block, "{} bytes", input.len());
        assert_eq!(hash32(input, BLOOM_SEED), bloom, "{} bytes", input.len());
    }
    assert_eq!(hash32(b"key000000", BLOOM_SEED), 0x4b91_6297);
    // LevelDB takes the last bytes as unsigned.
    assert_eq!(leveldb_hash32(b"\x62", BLOOM_SEED), 0xef13_45c4);
    assert_eq!(leveldb_hash32(b"\xc3\x97", BLOOM_SEED), 0x5b66_3814);
    assert_eq!(leveldb_hash32(b"\xe2\x99\xa5", BLOOM_SEED), 0x323c_078f);
    assert_eq!(leveldb_hash32(b"\xe1\x80\xb9\x32", BLOOM_SEED), 0xed21_633a);
    assert_ne!(hash32(b"\xc3\x97", BLOOM_SEED), 0x5b66_3814);
}

/// The rate that a Ribbon filter of this shape must have: half for each column, by share of the slots.
fn ribbon_rate(shape: Ribbon) -> f64 {
    let upper = 0.5f64.powi(i32::from(shape.columns));
    let lower_share = f64::from(shape.upper_start) / f64::from(shape.blocks);
    upper * (1.0 + lower_share)
}

#[test]
fn rates_are_those_of_the_theory() {
    let keys = 20_000;
    for bits in [5.0, 10.0, 14.5] {
        for policy in [
            FilterPolicy::Bloom { bits_per_key: bits },
            FilterPolicy::Ribbon { bloom_bits_per_key: bits, bloom_before_level: -1 },
        ] {
            let mut builder = policy.builder(5).unwrap();
            (0..keys).for_each(|i| builder.add(&key("key", i)));
            let filter = builder.finish();
            assert_eq!(filter.len(), builder.size_estimate());
            let form = FilterForm::decode(&filter);
            assert!((0..keys).all(|i| form.may_contain(&filter, &key("key", i))));
            let asked = 400_000;
            let wrong = (0..asked).filter(|i| form.may_contain(&filter, &key("other", *i))).count();
            let measured = wrong as f64 / asked as f64;
            let theory = match form {
                FilterForm::Ribbon(shape) => ribbon_rate(shape),
                _ => bloom_fp_rate(bits),
            };
            // Four standard deviations of the count, and a tenth for the theory's own roughness.
            let slack = 4.0 * (theory / asked as f64).sqrt() + theory / 10.0;
            let size = filter.len() as f64 * 8.0 / keys as f64;
            println!("{policy}: {size:.2} bits per key, measured {measured:.5}, theory {theory:.5}");
            assert!((measured - theory).abs() < slack, "{policy}: {measured} is not {theory}");
            if let FilterPolicy::Ribbon { .. } = policy {
                assert!((theory / bloom_fp_rate(bits) - 1.0).abs() < 0.02, "{policy}: not the asked rate");
                assert!(size < 0.75 * bits, "{policy}: {size} bits per key");
            }
        }
    }
}

#[test]
fn every_size_of_ribbon_holds_its_keys() {
    let mut ribbons = 0;
    for count in (0..400).chain([500, 511, 513, 700, 1001, 2500, 9999]) {
        let mut builder = RibbonBuilder::new(9.3).unwrap();
        (0..count).for_each(|i| builder.add(&key("k", i)));
        let filter = builder.finish();
        assert_eq!(filter.len(), builder.size_estimate(), "{count} keys");
        let form = FilterForm::decode(&filter);
        assert_eq!(form == FilterForm::Nothing, count == 0);
        assert!((0..count).all(|i| form.may_contain(&filter, &key("k", i))), "{count} keys");
        ribbons += usize::from(matches!(form, FilterForm::Ribbon(_)));
    }
    assert!(ribbons > 50, "{ribbons}");
    for bits in [0.6, 1.0, 3.0, 50.0, 100.0] {
        let mut builder = RibbonBuilder::new(bits).unwrap();
        (0..3000).for_each(|i| builder.add(&key("k", i)));
        let filter = builder.finish();
        let form = FilterForm::decode(&filter);
        assert!((0..3000).all(|i| form.may_contain(&filter, &key("k", i))), "{bits} bits");
    }
    assert!(RibbonBuilder::new(0.4).is_none());
    let mut crowded = RibbonBuilder::new(10.0).unwrap();
    (0..1000).for_each(|i| crowded.add(&key("k", i)));
    assert_eq!(crowded.finish_with(2, 14), None, "a thousand keys in 256 slots");
    assert_eq!((crowded.finish_with(0, 14), crowded.finish_with(1, 14)), (None, None));
}

#[test]
fn damaged_filters_never_panic_and_damaged_shapes_are_no_filter() {
    for (good, keys) in [ribbon(), legacy()] {
        for cut in 0..good.len() {
            let form = FilterForm::decode(&good[..cut]);
            let _ = form.may_contain(&good[..cut], &keys[0]);
            // Other bytes than decoded, shorter ones: every answer is allowed, none may panic.
            let _ = FilterForm::decode(&good).may_contain(&good[..cut], &keys[0]);
        }
        for at in good.len() - 5..good.len() {
            for bit in 0..8 {
                let mut flipped = good.clone();
                flipped[at] ^= 1 << bit;
                let form = FilterForm::decode(&flipped);
                let _ = keys.iter().filter(|key| form.may_contain(&flipped, key)).count();
            }
        }
    }
    let everything = |filter: &[u8]| matches!(FilterForm::decode(filter), FilterForm::Everything(_));
    assert!(everything(&[0, 0xfe, 0, 2, 0, 0]), "less than a segment");
    assert!(everything(&[&[0; 32][..], &[0xfe, 0, 1, 0, 0]].concat()), "one block");
    assert!(everything(&[&[0; 64][..], &[6, 0, 0, 0, 0]].concat()), "no line");
    assert!(everything(&[&[0; 192][..], &[6, 2, 0, 0, 0]].concat()), "lines of 96 bytes");
    let wide = [&vec![0; 16 * 80][..], &[0xfe, 0, 2, 0, 0]].concat();
    assert!(
        matches!(FilterForm::decode(&wide), FilterForm::Ribbon(r) if (r.columns, r.upper_start) == (32, 0))
    );
}

/// LevelDB's builder in few lines: filters of `per_filter` keys each.
fn leveldb_block(filters: &[&[&[u8]]], bits_per_key: usize) -> Vec<u8> {
    let (mut block, mut offsets) = (Vec::new(), Vec::new());
    for keys in filters {
        offsets.push(block.len() as u32);
        if keys.is_empty() {
            continue;
        }
        let bytes = (keys.len() * bits_per_key).max(64).div_ceil(8);
        let mut bits = vec![0u8; bytes];
        for key in *keys {
            let mut hash = leveldb_hash32(key, BLOOM_SEED);
            for _ in 0..6 {
                let bit = hash as usize % (bytes * 8);
                bits[bit / 8] |= 1 << (bit % 8);
                hash = hash.wrapping_add(leveldb_hash32(key, BLOOM_SEED).rotate_right(17));
            }
        }
        block.extend_from_slice(&bits);
        block.push(6);
    }
    offsets.push(block.len() as u32);
    offsets.iter().for_each(|offset| block.extend_from_slice(&offset.to_le_bytes()));
    block.push(11);
    block
}

#[test]
fn leveldb_blocks_answer_by_offset() {
    let block = leveldb_block(&[&[b"foo", b"bar"], &[], &[b"box", b"\xe2\x99\xa5"]], 10);
    let filter = LevelDbFilter::decode(&block).unwrap();
    assert_eq!(filter.count(), 3);
    let may = |offset, key: &[u8]| filter.may_contain(&block, offset, key);
    assert!(may(0, b"foo") && may(2000, b"bar") && may(4096, b"box") && may(6000, b"\xe2\x99\xa5"));
    assert!(!may(0, b"box") && !may(4096, b"foo") && !may(2048, b"foo"), "an empty filter holds nothing");
    assert!(may(6144, b"foo"), "past the last filter");
    for cut in 0..block.len() {
        if let Some(filter) = LevelDbFilter::decode(&block[..cut]) {
            (0..9000).step_by(1000).for_each(|at| _ = filter.may_contain(&block[..cut], at, b"foo"));
        }
    }
    for at in 0..block.len() {
        let mut flipped = block.clone();
        flipped[at] ^= 0xff;
        if let Some(filter) = LevelDbFilter::decode(&flipped) {
            (0..9000).step_by(1000).for_each(|at| _ = filter.may_contain(&flipped, at, b"foo"));
        }
    }
}

#[test]
fn policies_by_name() {
    for (text, want) in [
        ("bloomfilter:10", Some(FilterPolicy::Bloom { bits_per_key: 10.0 })),
        ("bloomfilter:9.5:false", Some(FilterPolicy::Bloom { bits_per_key: 9.5 })),
        ("rocksdb.BuiltinBloomFilter:12", Some(FilterPolicy::Bloom { bits_per_key: 12.0 })),
        ("ribbonfilter:10", Some(FilterPolicy::Ribbon { bloom_bits_per_key: 10.0, bloom_before_level: 0 })),
        ("ribbonfilter:10:3", Some(FilterPolicy::Ribbon { bloom_bits_per_key: 10.0, bloom_before_level: 3 })),
        ("ribbonfilter:10:x", None),
        ("ribbonfilter:1:2:3", None),
        ("ribbonfilter", None),
        ("nullptr", None),
        ("bloomfilter:inf", None),
    ] {
        assert_eq!(FilterPolicy::parse(text), want, "{text}");
        if let Some(policy) = want {
            assert_eq!(FilterPolicy::parse(&policy.to_string()), want);
            let kind = policy.builder(4).unwrap();
            assert_eq!(matches!(kind, FilterBuilder::LegacyBloom(_)), text.contains("loom"));
        }
    }
    let ribbon = FilterPolicy::parse("ribbonfilter:10").unwrap();
    assert_eq!(ribbon.for_level(-1), FilterPolicy::Bloom { bits_per_key: 10.0 });
    assert_eq!(ribbon.for_level(0), ribbon);
}
