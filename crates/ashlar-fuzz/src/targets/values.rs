//! Targets inside values: compressed blocks, blobs and the references to them, entities.

use super::Outcome;
use crate::corpus;
use crate::sst::LIMIT;
use ashlar_base::Cursor;
use ashlar_base::bytes::{put_slice, put_varint32, put_varint64};
use ashlar_format::blob::{BlobFooter, BlobHeader, BlobIndex, BlobRecordHeader};
use ashlar_format::compress::{Compression, Compressor, Dictionary, decompress, decompress_with};
use ashlar_format::entity::Entity;
use ashlar_format::value_suffix::{put_preferred, put_write_time, split_preferred, split_write_time};

pub(super) fn cursor(input: &[u8]) -> Outcome {
    let again = |out: Vec<u8>, value: u64| {
        let decoded = Cursor::new(&out).varint64("again").expect("a whole number");
        assert_eq!(decoded, value);
    };
    let mut c = Cursor::new(input);
    if let Ok(value) = c.varint32("number") {
        let mut out = Vec::new();
        put_varint32(&mut out, value);
        again(out, u64::from(value));
    }
    let mut c = Cursor::new(input);
    if let Ok(value) = c.varint64("number") {
        let mut out = Vec::new();
        put_varint64(&mut out, value);
        again(out, value);
    }
    let mut c = Cursor::new(input);
    while !c.is_empty() {
        let slice = c.slice("slice").map_err(|e| e.to_string())?;
        let mut out = Vec::new();
        put_slice(&mut out, slice);
        assert_eq!(Cursor::new(&out).slice("again"), Ok(slice));
    }
    Ok(())
}

pub(super) fn stored(input: &[u8]) -> Outcome {
    let (byte, block) = input.split_first().ok_or("nothing")?;
    let dictionary = Dictionary::new(input.to_vec()).map_err(|e| e.to_string())?;
    let mut outcome = Err("no algorithm".to_owned());
    for kind in [Compression::from_byte(*byte), Compression::from_leveldb_byte(*byte)].into_iter().flatten() {
        // Raw lengths that lie must not be believed, however much is allowed.
        let most = decompress(kind, block, u32::MAX as usize);
        let _ = decompress_with(kind, block, Some(&dictionary), u32::MAX as usize);
        outcome = match decompress(kind, block, LIMIT) {
            Err(e) => Err(e.into_error().to_string()),
            Ok(raw) => {
                assert!(raw.len() <= LIMIT, "larger than allowed");
                assert!(most.is_ok_and(|most| most == raw), "a limit changes the answer");
                assert!(raw.is_empty() || decompress(kind, block, raw.len() - 1).is_err());
                again(kind, &raw);
                Ok(())
            }
        };
    }
    outcome
}

/// What was decompressed is compressed and decompressed again.
fn again(kind: Compression, raw: &[u8]) {
    let Ok(mut compressor) = Compressor::new(kind, Compressor::DEFAULT) else { return };
    let mut out = Vec::new();
    let stored_as = compressor.compress(raw, &mut out);
    if stored_as != Compression::None {
        assert_eq!(decompress(stored_as, &out, raw.len()).ok().as_deref(), Some(raw));
    }
}

/// Blob files, and the values that refer to them as 7.8.3 wrote them.
pub(super) fn blobs() -> Vec<Vec<u8>> {
    let mut inputs = corpus::files(|name| name.ends_with(".blob"));
    let index = [0x01, 0x0a, 0x3e, 0x64, 0x00];
    let expiring = [0x02, 0x80, 0x01, 0x0a, 0x3e, 0x64, 0x00];
    inputs.extend([index.to_vec(), expiring.to_vec(), [&[0x00, 0x07][..], b"inlined"].concat()]);
    inputs
}

pub(super) fn blob(input: &[u8]) -> Outcome {
    let index = BlobIndex::decode(input).map(|index| {
        let mut out = Vec::new();
        index.encode(&mut out);
        assert_eq!(BlobIndex::decode(&out), Ok(index));
    });
    let Ok(header) = BlobHeader::decode(input) else { return index.map_err(|e| e.to_string()) };
    let mut out = Vec::new();
    header.encode(&mut out);
    assert_eq!(BlobHeader::decode(&out), Ok(header));
    let records_end = input.len().saturating_sub(BlobFooter::LEN);
    let footer = BlobFooter::decode(input.get(records_end..).unwrap_or_default());
    let mut c = Cursor::new(input);
    c.bytes(BlobHeader::LEN, "header").map_err(|e| e.to_string())?;
    let mut records = 0;
    while c.position() < records_end {
        let record = BlobRecordHeader::decode(&mut c).map_err(|e| e.to_string())?;
        let len = |len: u64| usize::try_from(len).unwrap_or(usize::MAX);
        let key = c.bytes(len(record.key_len), "key").map_err(|e| e.to_string())?;
        let value = c.bytes(len(record.value_len), "value").map_err(|e| e.to_string())?;
        record.verify(key, value).map_err(|e| e.to_string())?;
        records += 1;
    }
    assert!(records <= input.len() / BlobRecordHeader::LEN);
    footer.map(drop).map_err(|e| e.to_string())
}

pub(super) fn entities() -> Vec<Vec<u8>> {
    vec![
        vec![1, 2, 0, 1, b'a', 1, b'x', b'y'],
        vec![1, 1, 3, b'c', b'o', b'l', 2, b'v', b'w'],
        vec![1, 0],
        [b"value".as_slice(), &[0x62, 0x01, 0x8c, 0x51]].concat(),
        [b"value".as_slice(), &[1, 2, 3, 4, 5, 6, 7, 8]].concat(),
    ]
}

pub(super) fn entity(input: &[u8]) -> Outcome {
    if let Ok((value, time)) = split_write_time(input) {
        let mut out = value.to_vec();
        put_write_time(&mut out, time);
        assert!(out == input);
    }
    if let Ok((value, time)) = split_preferred(input) {
        let mut out = value.to_vec();
        put_preferred(&mut out, time);
        assert!(out == input);
    }
    let entity = Entity::decode(input).map_err(|e| e.into_error().to_string())?;
    assert!(entity.columns().len() <= input.len(), "more columns than bytes");
    let mut out = Vec::new();
    entity.encode(&mut out);
    assert_eq!(Entity::decode(&out).as_ref(), Ok(&entity), "encoded and decoded again");
    Ok(())
}
