//! Round trips, lying sizes, bombs, broken streams.

use super::*;
use crate::unreadable::Unreadable;
use ashlar_base::bytes::put_varint32;
use ashlar_testkit::heap::untouched;

const WRITTEN: [Compression; 6] = [
    Compression::Snappy,
    Compression::Lz4,
    Compression::Lz4hc,
    Compression::Zlib,
    Compression::Bzip2,
    Compression::Zstd,
];

fn sample(len: usize) -> Vec<u8> {
    (0..=255).flat_map(|b| [b, b'v', b'v'].repeat(70)).cycle().take(len).collect()
}

#[test]
fn blocks_return() {
    let mut reused = Vec::new();
    for kind in WRITTEN {
        let mut compressor = Compressor::new(kind, Compressor::DEFAULT).unwrap();
        let mut out = Vec::new();
        for len in [400, 4096, 70_000, 300_000] {
            let raw = sample(len);
            assert_eq!(compressor.compress(&raw, &mut out), kind);
            assert!(out.len() < len);
            assert_eq!(decompress(kind, &out, len).unwrap(), raw);
            assert!(decompress(kind, &out, len - 1).is_err());
            decompress_into(kind, &out, None, len, &mut reused).unwrap();
            assert!(reused == raw, "{kind:?} over another block");
        }
        assert_eq!(compressor.compress(b"", &mut out), Compression::None);
        assert!(out.is_empty());
    }
    assert_eq!(decompress(Compression::None, b"abc", 3).unwrap(), b"abc");
    assert!(decompress(Compression::None, b"abc", 2).is_err());
    decompress_into(Compression::None, b"abc", None, 3, &mut reused).unwrap();
    assert_eq!(reused, b"abc");
}

#[test]
fn what_does_not_shrink_is_stored_raw() {
    let mut x = 1u64;
    let noise: Vec<u8> = (0..4096)
        .map(|_| {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (x >> 56) as u8
        })
        .collect();
    let mut out = Vec::new();
    for kind in WRITTEN {
        let mut compressor = Compressor::new(kind, 1).unwrap();
        assert_eq!(compressor.compress(&noise, &mut out), Compression::None);
        assert_eq!(out, noise);
    }
}

#[test]
fn four_gib_are_refused_before_they_are_touched() {
    let Some(raw) = untouched("four_gib_are_refused_before_they_are_touched", 1 << 32) else { return };
    let mut out = Vec::new();
    for kind in WRITTEN {
        let mut compressor = Compressor::new(kind, 1).unwrap();
        let refused = compressor.compress_always(&raw, &mut out).unwrap_err();
        let what = if kind == Compression::Snappy { "Snappy failed" } else { "too long" };
        assert_eq!((refused.field, refused.what), ("compression", what), "{kind:?}");
    }
}

#[test]
fn lying_lengths_are_refused() {
    for kind in WRITTEN {
        let raw = sample(4096);
        let mut out = Vec::new();
        Compressor::new(kind, 1).unwrap().compress(&raw, &mut out);
        let mut body = ashlar_base::Cursor::new(&out);
        body.varint32("len").unwrap();
        for lie in [0, 1, 4095, 4097, 1 << 20, u32::MAX] {
            let mut lying = Vec::new();
            put_varint32(&mut lying, lie);
            lying.extend_from_slice(body.rest());
            assert!(decompress(kind, &lying, 1 << 30).is_err(), "{kind:?} {lie}");
        }
        let mut bomb = Vec::new();
        put_varint32(&mut bomb, 1 << 30);
        bomb.extend_from_slice(&[0; 12]);
        let refused = decompress(kind, &bomb, usize::MAX).unwrap_err();
        assert!(matches!(refused, Unreadable::Malformed(m) if m.what.contains("beyond")), "{kind:?}");
    }
}

#[test]
fn large_blocks_of_few_bytes_return_and_may_not_say_more_or_less() {
    let len = 40 << 20;
    for kind in [Compression::Zlib, Compression::Bzip2, Compression::Zstd] {
        let mut compressor = Compressor::new(kind, Compressor::DEFAULT).unwrap();
        let mut out = Vec::new();
        assert_eq!(compressor.compress(&vec![7; len], &mut out), kind);
        assert!(out.len() < len / 512, "{kind:?}: {} bytes", out.len());
        assert!(decompress(kind, &out, len).unwrap() == vec![7; len], "{kind:?}");
        let stream = out[4..].to_vec();
        for lie in [len - 1, len + 1, len / 2, len * 2] {
            let mut lying = Vec::new();
            put_varint32(&mut lying, u32::try_from(lie).unwrap());
            lying.extend_from_slice(&stream);
            assert!(decompress(kind, &lying, u32::MAX as usize).is_err(), "{kind:?} {lie}");
        }
        if kind == Compression::Zstd {
            assert!(decompress(Compression::LevelDbZstd, &stream, len).unwrap() == vec![7; len]);
        }
    }
}

#[test]
fn broken_streams_are_refused_or_differ() {
    for kind in WRITTEN {
        let raw = sample(600);
        let mut out = Vec::new();
        Compressor::new(kind, 1).unwrap().compress(&raw, &mut out);
        for cut in 0..out.len() {
            assert!(decompress(kind, &out[..cut], 4096).is_err(), "{kind:?} cut at {cut}");
        }
        let longer = [&out[..], &[0]].concat();
        assert!(decompress(kind, &longer, 4096).is_err(), "{kind:?} with a byte more");
        for at in 0..out.len() {
            for flip in [1, 0x10, 0x80, 0xff] {
                let mut flipped = out.clone();
                flipped[at] ^= flip;
                let _ = decompress(kind, &flipped, 4096);
            }
        }
    }
}

#[test]
fn names_and_numbers() {
    for byte in 0..=255 {
        let Some(kind) = Compression::from_byte(byte) else { continue };
        assert_eq!(kind.byte(), byte);
        assert_eq!(Compression::from_name(kind.name()), Some(kind));
    }
    assert_eq!(Compression::from_leveldb_byte(2), Some(Compression::LevelDbZstd));
    assert_eq!(Compression::from_byte(0x80), None);
    assert!(matches!(
        decompress(Compression::Xpress, b"x", 10),
        Err(Unreadable::NotSupported("Xpress compression"))
    ));
    for kind in [Compression::Xpress, Compression::ZstdNotFinal, Compression::LevelDbZstd] {
        assert!(matches!(Compressor::new(kind, 1), Err(Unreadable::NotSupported(_))));
    }
}

#[test]
fn leveldb_zstd_is_a_bare_frame() {
    let raw = sample(5000);
    let frame = zstd::bulk::compress(&raw, 1).unwrap();
    assert_eq!(decompress(Compression::LevelDbZstd, &frame, 5000).unwrap(), raw);
    assert!(decompress(Compression::LevelDbZstd, &frame, 4999).is_err());
    assert!(decompress(Compression::LevelDbZstd, &frame[..frame.len() - 1], 5000).is_err());
    assert!(decompress(Compression::LevelDbZstd, b"", 5000).is_err());
}

/// Records that are much alike, each a block of its own.
fn records() -> Vec<Vec<u8>> {
    (0..400u32)
        .map(|i| {
            format!(
                "{{\"id\": {i}, \"name\": \"user {}\", \"city\": \"Oslo\", \"mark\": {}}}",
                i * 7919,
                i % 7
            )
            .into_bytes()
        })
        .collect()
}

#[test]
fn dictionaries_of_a_few_bytes_are_taken() {
    for kind in [Compression::Lz4, Compression::Lz4hc, Compression::Zlib, Compression::Zstd] {
        for len in 1..20 {
            let bytes = sample(len);
            let mut with = Compressor::new(kind, Compressor::DEFAULT).unwrap();
            with.set_dictionary(&bytes).unwrap();
            let dictionary = Dictionary::new(bytes).unwrap();
            let mut out = Vec::new();
            assert_eq!(with.compress(&sample(4096), &mut out), kind, "{len}");
            assert_eq!(decompress_with(kind, &out, Some(&dictionary), 4096).unwrap(), sample(4096));
        }
    }
}

#[test]
fn dictionaries_help_and_are_needed() {
    let records = records();
    let raw_content = records[..20].concat();
    let sizes: Vec<usize> = records.iter().map(Vec::len).collect();
    let trained = train_zstd_dictionary(&records.concat(), &sizes, 2000).expect("400 records are enough");
    assert_eq!(trained[..4], [0x37, 0xa4, 0x30, 0xec]);
    assert!(trained.len() <= 2000);
    for (kind, bytes) in [
        (Compression::Lz4, &raw_content),
        (Compression::Lz4hc, &raw_content),
        (Compression::Zlib, &raw_content),
        (Compression::Zstd, &raw_content),
        (Compression::Zstd, &trained),
    ] {
        let mut with = Compressor::new(kind, Compressor::DEFAULT).unwrap();
        with.set_dictionary(bytes).unwrap();
        let dictionary = Dictionary::new(bytes.clone()).unwrap();
        assert!(dictionary.memory() >= bytes.len());
        let mut out = Vec::new();
        for record in &records {
            assert_eq!(with.compress(record, &mut out), kind, "{kind:?}");
            assert!(out.len() < record.len() * 2 / 3, "{kind:?}: {} of {}", out.len(), record.len());
            assert_eq!(decompress_with(kind, &out, Some(&dictionary), 1000).unwrap(), *record);
            assert_ne!(decompress(kind, &out, 1000).ok().as_ref(), Some(record), "{kind:?} without");
            assert!(decompress_with(kind, &out, Some(&dictionary), record.len() - 1).is_err());
        }
        broken_dictionaries(kind, bytes, &out, records.last().unwrap());
    }
    for kind in [Compression::Snappy, Compression::Bzip2] {
        let mut with = Compressor::new(kind, 1).unwrap();
        with.set_dictionary(&raw_content).unwrap();
        let mut out = Vec::new();
        assert_eq!(with.compress(&sample(4096), &mut out), kind);
        assert_eq!(decompress(kind, &out, 4096).unwrap(), sample(4096), "no dictionary in it");
    }
}

/// Cut and flipped dictionaries and blocks: an error, or other bytes of the right number; never a panic.
fn broken_dictionaries(kind: Compression, bytes: &[u8], block: &[u8], record: &[u8]) {
    for cut in (1..bytes.len()).step_by(37) {
        let cut = Dictionary::new(bytes[..cut].to_vec()).unwrap();
        let _ = decompress_with(kind, block, Some(&cut), 1000);
    }
    for at in (0..bytes.len()).step_by(13) {
        let mut flipped = bytes.to_vec();
        flipped[at] ^= 0xff;
        let _ = decompress_with(kind, block, Some(&Dictionary::new(flipped).unwrap()), 1000);
    }
    let dictionary = Dictionary::new(bytes.to_vec()).unwrap();
    for at in 0..block.len() {
        assert!(decompress_with(kind, &block[..at], Some(&dictionary), 1000).is_err());
        let mut flipped = block.to_vec();
        flipped[at] ^= 0x11;
        if let Ok(raw) = decompress_with(kind, &flipped, Some(&dictionary), 1000) {
            assert!(raw.len() <= 1000 && (raw.len() == record.len() || at < 2));
        }
    }
    assert!(Dictionary::new(Vec::new()).is_err());
}

#[test]
fn a_false_trained_dictionary_is_told() {
    let mut bytes = vec![0x37, 0xa4, 0x30, 0xec];
    bytes.extend_from_slice(&[0; 60]);
    let dictionary = Dictionary::new(bytes.clone()).unwrap();
    let raw = sample(500);
    let frame = zstd::bulk::compress(&raw, 1).unwrap();
    let stored = [&[0xf4, 0x03][..], &frame].concat();
    let refused = decompress_with(Compression::Zstd, &stored, Some(&dictionary), 1000).unwrap_err();
    assert!(matches!(refused, Unreadable::Malformed(m) if m.what.contains("dictionary")));
    let mut with = Compressor::new(Compression::Zstd, 1).unwrap();
    with.set_dictionary(&bytes).unwrap();
    let mut out = Vec::new();
    let refused = with.compress_always(&raw, &mut out).unwrap_err();
    assert_eq!((refused.field, refused.what), ("compression", "zstd failed"));
    assert_eq!(with.compress(&raw, &mut out), Compression::None);
    assert_eq!(out, raw, "a block can always be stored as it is");
    assert!(train_zstd_dictionary(b"abc", &[1, 1], 100).is_none(), "sizes that do not add up");
    assert!(train_zstd_dictionary(b"", &[], 100).is_none());
}
