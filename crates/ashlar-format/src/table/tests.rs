//! Worked examples: checksums, footers, the compression property; hostile footers and properties.

use super::*;
use crate::compress::Compression;
use crate::unreadable::Unreadable;

const ENTITIES: &[u8] = include_bytes!("../../../../golden/sst/v7_db_blobindex_entities.sst");
const SNAPPY_V2: &[u8] = include_bytes!("../../../../golden/sst/v2_snappy_crc32c_legacybloom.sst");

fn tail(file: &[u8]) -> &[u8] {
    &file[file.len() - Footer::LEN..]
}

#[test]
fn checksum_vectors() {
    let s = |n: usize| (0..=255).cycle().take(n).collect::<Vec<u8>>();
    for (input, crc, x32, x64, x3) in [
        (b"".to_vec(), 0xa282_ead8, 0x02cc_5d05, 0x51d8_e999, 0),
        (b"a".to_vec(), 0x28e4_6e78, 0x550d_7456, 0xa98c_6e5b, 0xf912_61fb),
        (b"key000".to_vec(), 0xa761_3198, 0xae50_fea6, 0x9aaa_5ea7, 0x53ed_9a77),
        (s(100), 0x7a4e_6e6d, 0x7f89_ba44, 0x3216_6597, 0x876a_4072),
        (s(5000), 0x0b9d_df6d, 0x3ec8_3a87, 0x0f25_fc9a, 0xd081_f6f5),
    ] {
        assert_eq!(ChecksumKind::None.of(&input), 0);
        assert_eq!(ChecksumKind::Crc32c.of(&input), crc);
        assert_eq!(ChecksumKind::XxHash32.of(&input), x32);
        assert_eq!(ChecksumKind::XxHash64.of(&input), x64);
        assert_eq!(ChecksumKind::Xxh3.of(&input), x3);
        for kind in (0..5).filter_map(ChecksumKind::from_u8) {
            let Some((last, body)) = input.split_last() else { continue };
            assert_eq!(kind.of_parts(body, *last), kind.of(&input));
        }
    }
    assert_eq!(ChecksumKind::from_u8(5), None);
}

#[test]
fn a_footer_of_version_7() {
    let (footer, start) = Footer::decode(tail(ENTITIES), ENTITIES.len() as u64).unwrap();
    assert_eq!((start, footer.version, footer.kind), (1541, 7, TableKind::BlockBased));
    assert_eq!(footer.checksum, BlockChecksum { kind: ChecksumKind::Xxh3, base_context: 0x7318_b0a4 });
    assert_eq!(footer.checksum.modifier(1541), 0x7318_b6a1);
    assert_eq!(footer.metaindex, BlockHandle { offset: 1433, size: 103 });
    assert_eq!(footer.index, None);
    assert_eq!(footer.encode(start).unwrap(), tail(ENTITIES));
    let moved = Footer::decode(tail(ENTITIES), ENTITIES.len() as u64 + 1);
    assert!(matches!(moved, Err(Unreadable::Malformed(m)) if m.what == "checksum mismatch"));
    assert_eq!(footer.checksum.trailer(0, &ENTITIES[..186], 0), ENTITIES[186..191]);
    assert!(footer.checksum.verify(191, &ENTITIES[191..265]).is_ok());
    assert!(footer.checksum.verify(190, &ENTITIES[191..265]).is_err());
}

#[test]
fn a_footer_of_version_2() {
    let (footer, start) = Footer::decode(tail(SNAPPY_V2), SNAPPY_V2.len() as u64).unwrap();
    assert_eq!(footer.metaindex, BlockHandle { offset: 5867, size: 81 });
    assert_eq!(footer.index, Some(BlockHandle { offset: 4562, size: 185 }));
    assert_eq!(footer.checksum, BlockChecksum { kind: ChecksumKind::Crc32c, base_context: 0 });
    assert_eq!(footer.encode(start).unwrap(), tail(SNAPPY_V2));
}

#[test]
fn other_tables_are_named() {
    let mut bytes = tail(SNAPPY_V2).to_vec();
    bytes[41] = 8;
    assert!(matches!(Footer::decode(&bytes, 6006), Err(Unreadable::NotSupported(_))));
    bytes[45..].copy_from_slice(&0x8242_2296_63bf_9564_u64.to_le_bytes());
    assert_eq!(Footer::decode(&bytes, 6006), Err(Unreadable::NotSupported("PlainTable files")));
    bytes[45..].copy_from_slice(&0x9267_89d0_c5f1_7873_u64.to_le_bytes());
    assert_eq!(Footer::decode(&bytes, 6006), Err(Unreadable::NotSupported("CuckooTable files")));
    bytes[45..].fill(7);
    assert!(matches!(Footer::decode(&bytes, 6006), Err(Unreadable::Malformed(_))));
}

#[test]
fn a_footer_that_asks_for_features_to_come_is_refused_by_name() {
    let (footer, start) = Footer::decode(tail(ENTITIES), ENTITIES.len() as u64).unwrap();
    let mut asking = tail(ENTITIES).to_vec();
    asking[33] = 1;
    // Its checksum is made right again, as a newer writer's would be.
    asking[5..9].fill(0);
    let sum = footer.checksum.kind.of(&asking).wrapping_add(footer.checksum.modifier(start));
    asking[5..9].copy_from_slice(&sum.to_le_bytes());
    let newer = "tables that need a feature newer than format version 7";
    assert_eq!(Footer::decode(&asking, ENTITIES.len() as u64), Err(Unreadable::NotSupported(newer)));
    let metaindex = BlockHandle { offset: 7, size: 1 << 32 };
    let refused = Footer { metaindex, ..footer }.encode(7 + (1 << 32) + 5).unwrap_err();
    assert_eq!((refused.field, refused.what), ("footer.metaindex", "over 4 GiB"));
}

#[test]
fn hostile_footers_do_not_panic() {
    for file in [ENTITIES, SNAPPY_V2] {
        let whole = tail(file);
        let len = file.len() as u64;
        for cut in 0..whole.len() {
            assert!(Footer::decode(&whole[cut + 1..], len).is_err());
            assert!(Footer::decode(&whole[..cut], len).is_err());
        }
        for at in 0..whole.len() {
            for bit in 0..8 {
                let mut flipped = whole.to_vec();
                flipped[at] ^= 1 << bit;
                let got = Footer::decode(&flipped, len);
                // From version 6 on the footer covers itself.
                assert!(got.is_err() || file.len() == SNAPPY_V2.len(), "byte {at} bit {bit}: {got:?}");
            }
        }
        for short in 0..60 {
            let _ = Footer::decode(whole, short);
        }
    }
    let (footer, _) = Footer::decode(tail(ENTITIES), ENTITIES.len() as u64).unwrap();
    assert!(footer.encode(0).is_err());
    assert!(Footer { version: 5, ..footer }.encode(1541).is_err());
    assert!(Footer { version: 8, ..footer }.encode(1541).is_err());
}

#[test]
fn compression_property_in_both_syntaxes() {
    let types = |off, types: &[u8]| CompressionProperty::Types { off, types: types.to_vec() };
    for (text, want) in [
        (";;", types(true, &[])),
        ("BuiltinV2;07;", types(false, &[7])),
        ("BuiltinV2;0407;", types(false, &[4, 7])),
        ("BuiltinV2;;", types(false, &[])),
    ] {
        let got = CompressionProperty::parse(7, text).unwrap();
        assert_eq!(got, want);
        assert_eq!(got.print(), text);
    }
    assert!(CompressionProperty::parse(7, "BuiltinV2;04;new;").is_ok());
    for wrong in
        ["NoCompression", "BuiltinV2;04", "BuiltinV2;4;", "BuiltinV2;00;", "BuiltinV2;FF;", "BuiltinV2;0a;"]
    {
        assert!(matches!(CompressionProperty::parse(7, wrong), Err(Unreadable::Malformed(_))), "{wrong}");
    }
    assert!(matches!(CompressionProperty::parse(7, "X;;"), Err(Unreadable::NotSupported(_))));
    for kind in (0..=7).filter_map(Compression::from_byte) {
        let property = CompressionProperty::Single(kind);
        assert_eq!(CompressionProperty::parse(6, &property.print()), Ok(property));
    }
    assert!(CompressionProperty::parse(6, "foo").is_err());
    assert_eq!(CompressionProperty::for_table(7, Compression::Lz4, &[0, 4, 4]).print(), "BuiltinV2;04;");
    assert_eq!(CompressionProperty::for_table(7, Compression::None, &[0]).print(), ";;");
    assert_eq!(CompressionProperty::for_table(5, Compression::Zstd, &[0, 7]).print(), "ZSTD");
}

#[test]
fn properties_keep_what_they_do_not_know() {
    let mut properties =
        Properties { num_entries: Some(300), comparator: Some("c".into()), ..Default::default() };
    properties.other.insert(b"user.collected".to_vec(), vec![0xff, 0]);
    properties.other.insert(b"rocksdb.data.size".to_vec(), vec![0x80]);
    let block = properties.encode();
    assert_eq!(Properties::decode(&block), Ok(properties.clone()));
    assert!(properties.index_kind().is_err());
    properties.index_kind = Some(9);
    assert!(properties.index_kind().is_err());
    properties.index_kind = Some(3);
    assert!(properties.index_entries().unwrap().first_keys);
}

#[test]
fn hostile_properties_and_metaindex_do_not_panic() {
    for block in [&ENTITIES[287..287 + 1141], &ENTITIES[1433..1433 + 103]] {
        for cut in 0..block.len() {
            let _ = Properties::decode(&block[..cut]);
            let _ = MetaIndex::decode(&block[..cut]);
            let _ = Properties::global_seqno_place(&block[..cut]);
        }
        for at in 0..block.len() {
            for flip in [1, 0x80, 0xff] {
                let mut flipped = block.to_vec();
                flipped[at] ^= flip;
                let _ = Properties::decode(&flipped);
                let _ = MetaIndex::decode(&flipped);
                let _ = Properties::global_seqno_place(&flipped);
            }
        }
    }
}

#[test]
fn handles_end_inside_the_file() {
    let handle = BlockHandle { offset: 10, size: 20 };
    assert_eq!(handle.len_with_trailer(35), Ok(25));
    assert!(handle.len_with_trailer(34).is_err());
    assert!(BlockHandle { offset: u64::MAX, size: 1 }.len_with_trailer(u64::MAX).is_err());
    assert!(BlockHandle { offset: 1, size: u64::MAX - 3 }.len_with_trailer(u64::MAX).is_err());
}
