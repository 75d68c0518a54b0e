use super::*;
use ashlar_base::{FamilyId, FileNumber, SeqNum};

fn hex(text: &str) -> Vec<u8> {
    text.split_whitespace().map(|b| u8::from_str_radix(b, 16).unwrap()).collect()
}

#[test]
fn writes_what_rocksdb_writes() {
    let file = hex("0F 0A EF 62 13 00 01 01 00 00 00 00 00 00 00 01 00 00 00 01 02 6B 31 02 76 31");
    let mut out = Vec::new();
    encode_record(&mut out, Framing::Legacy, 0, 0, &file[7..]);
    assert_eq!(out, file);
    let p = parse_physical(&file, 9, false).unwrap();
    assert_eq!((p.type_byte, p.payload, p.len), (1, &file[7..], 26));
}

#[test]
fn end_is_where_the_encoder_stops() {
    let sizes = [0usize, 1, 23, 32_746, 32_750, 32_757, 32_761, 32_762, 65_522, 65_523, 70_000, 98_304];
    let starts = [0u64, 1, 28, 32_756, 32_757, 32_758, 32_760, 32_761, 32_762, 32_767, 32_768, 65_530];
    for framing in [Framing::Legacy, Framing::Recyclable] {
        for (at, size) in starts.iter().flat_map(|a| sizes.iter().map(move |s| (*a, *s))) {
            let mut out = Vec::new();
            encode_record(&mut out, framing, 5, at, &vec![7; size]);
            assert_eq!(record_end(framing, at, size as u64), Some(at + out.len() as u64), "{at} {size}");
        }
    }
    let sizes = sizes.iter().chain(&[16_384, 16_385, 16_400, 32_747, 32_754, 32_755, 49_131, 49_138, 49_139]);
    for framing in [Framing::Legacy, Framing::Recyclable] {
        for (at, size) in starts.iter().flat_map(|a| sizes.clone().map(move |s| (*a, *s))) {
            let mut out = Vec::new();
            encode_frame(&mut out, framing, 5, at, &vec![7; size]);
            assert_eq!(frame_end(framing, at, size as u64), Some(at + out.len() as u64), "{at} {size}");
        }
    }
    assert_eq!(record_end(Framing::Legacy, u64::MAX - 3, 10), None);
    assert_eq!(record_end(Framing::Legacy, 0, u64::MAX), None);
}

/// RocksDB 7.8 tells fragments of frames apart by where in its block they begin, and by nothing else.
#[test]
fn fragments_of_frames_never_begin_where_the_one_before_did() {
    for framing in [Framing::Legacy, Framing::Recyclable] {
        for start in [0usize, 11, 16_384, 32_750, 32_761, 32_766] {
            let mut file = vec![0; start];
            for len in [200_000, 32_761 - 16_384, 16_384, 32_754, 32_757, 32_746, 65_508, 3, 100_000] {
                let at = file.len() as u64;
                encode_frame(&mut file, framing, 5, at, &vec![1; len]);
            }
            let (mut at, mut before, mut payload) = (start, None, 0);
            while at < file.len() {
                let left = BLOCK_SIZE - at % BLOCK_SIZE;
                if left < framing.header_len() {
                    at += left;
                    continue;
                }
                let fragment = parse_physical(&file[at..file.len().min(at + left)], 5, false).unwrap();
                assert_ne!(Some(at % BLOCK_SIZE), before, "{framing:?}, from {start}");
                before = Some(at % BLOCK_SIZE);
                payload += fragment.payload.len();
                at += fragment.len;
            }
            assert_eq!(payload, 200_000 + 16_377 + 16_384 + 32_754 + 32_757 + 32_746 + 65_508 + 3 + 100_000);
        }
    }
}

#[test]
fn a_record_at_a_blocks_end_is_cut_as_rocksdb_cuts_it() {
    let mut out = Vec::new();
    encode_record(&mut out, Framing::Legacy, 0, 32_761, b"abc");
    let first = parse_physical(&out[..7], 0, false).unwrap();
    assert_eq!((first.record_type().unwrap().kind, first.payload), (RecordKind::First, &b""[..]));
    let last = parse_physical(&out[7..], 0, false).unwrap();
    assert_eq!((last.record_type().unwrap().kind, last.payload), (RecordKind::Last, &b"abc"[..]));
    let mut out = Vec::new();
    encode_record(&mut out, Framing::Legacy, 0, 32_763, b"abc");
    assert_eq!(&out[..5], &[0; 5]);
}

#[test]
fn faults_come_in_rocksdbs_order() {
    let mut long = Vec::new();
    encode_record(&mut long, Framing::Recyclable, 14, 0, b"payload");
    assert_eq!(parse_physical(&long, 14, false).unwrap().payload, b"payload");
    assert_eq!(parse_physical(&long, 15, false), Err(Fault::OldRecord { len: 18 }));
    assert_eq!(parse_physical(&long, 14, true), Err(Fault::MixedForms));
    assert_eq!(parse_physical(&long[..9], 14, false), Err(Fault::ShortHeader));
    assert_eq!(parse_physical(&long[..17], 15, false), Err(Fault::BadLength));
    assert_eq!(parse_physical(&[0; 100], 14, false), Err(Fault::Zero));
    assert_eq!(parse_physical(&[0; 6], 14, false), Err(Fault::ShortHeader));
    let mut typed = long.clone();
    typed[4] = 0;
    typed[5] = 0;
    typed[6] = 0;
    assert_eq!(parse_physical(&typed, 14, false), Err(Fault::Zero), "no checksum is looked at");
}

#[test]
fn every_flipped_bit_is_seen() {
    let mut file = Vec::new();
    encode_record(&mut file, Framing::Recyclable, 14, 0, b"payload");
    for i in 0..file.len() * 8 {
        let mut bad = file.clone();
        bad[i / 8] ^= 1 << (i % 8);
        assert!(parse_physical(&bad, 14, false).is_err(), "bit {i}");
    }
}

#[test]
fn meta_payloads_return() {
    let sizes = vec![(FamilyId(0), 8), (FamilyId(7), 16)];
    assert_eq!(decode_timestamp_sizes(&encode_timestamp_sizes(&sizes)), Ok(sizes));
    assert_eq!(decode_timestamp_sizes(&hex("00 00 00 00 08 00")), Ok(vec![(FamilyId(0), 8)]));
    assert!(decode_timestamp_sizes(&[0; 7]).is_err());
    let bytes = hex("08 00 00 00 00 00 00 00 52 00 00 00 00 00 00 00 04 00 00 00 00 00 00 00");
    let info = PredecessorInfo::decode(&bytes).unwrap();
    let want = PredecessorInfo { number: FileNumber(8), size: 82, last_batch: SeqNum::new(4).unwrap() };
    assert_eq!((info, info.encode()), (want, bytes));
    assert!(PredecessorInfo::decode(&[0; 23]).is_err());
    assert!(PredecessorInfo::decode(&[0xff; 24]).is_err());
    assert_eq!(decode_compression(&hex("07 00 00 00")), Ok(COMPRESSION_ZSTD));
    assert!(decode_compression(&hex("01 00 00 00")).is_err());
    assert!(decode_compression(&hex("07 00 00 00 00")).is_err());
}

#[test]
fn type_bytes_return() {
    for byte in 0..=255u8 {
        if let Some(t) = RecordType::from_u8(byte) {
            assert_eq!(t.to_u8(), byte);
        }
    }
    assert_eq!((0..=255u8).filter(|b| RecordType::from_u8(*b).is_some()).count(), 13);
}
