//! Round trips, lying sizes, bombs, broken streams.

use super::*;
use crate::unreadable::Unreadable;
use ashlar_base::bytes::put_varint32;

const WRITTEN: [Compression; 4] =
    [Compression::Snappy, Compression::Lz4, Compression::Zlib, Compression::Zstd];

fn sample(len: usize) -> Vec<u8> {
    (0..=255).flat_map(|b| [b, b'v', b'v'].repeat(70)).cycle().take(len).collect()
}

#[test]
fn blocks_return() {
    for kind in WRITTEN {
        let mut compressor = Compressor::new(kind, Compressor::DEFAULT).unwrap();
        let mut out = Vec::new();
        for len in [400, 4096, 70_000, 300_000] {
            let raw = sample(len);
            assert_eq!(compressor.compress(&raw, &mut out), kind);
            assert!(out.len() < len);
            assert_eq!(decompress(kind, &out, len).unwrap(), raw);
            assert!(decompress(kind, &out, len - 1).is_err());
        }
        assert_eq!(compressor.compress(b"", &mut out), Compression::None);
        assert!(out.is_empty());
    }
    assert_eq!(decompress(Compression::None, b"abc", 3).unwrap(), b"abc");
    assert!(decompress(Compression::None, b"abc", 2).is_err());
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
    for kind in [Compression::Bzip2, Compression::Xpress] {
        assert!(matches!(decompress(kind, b"x", 10), Err(Unreadable::NotSupported(_))));
    }
    for kind in [Compression::Bzip2, Compression::Xpress, Compression::Lz4hc, Compression::LevelDbZstd] {
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
