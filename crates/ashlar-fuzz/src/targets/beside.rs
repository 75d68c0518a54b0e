//! Targets beside tables and in keys: opens of blob files, LevelDB's filters, timestamps, progress files.

use super::Outcome;
use crate::corpus;
use ashlar_base::checksum::{crc32c, mask_crc};
use ashlar_base::ext::timestamp_order::timestamp_order;
use ashlar_base::key::timestamp::{pad_boundary, split_timestamp, strip_internal};
use ashlar_base::{Cursor, FamilyId, FileNumber, InternalKey};
use ashlar_blob::BlobReader;
use ashlar_env::ReadFile;
use ashlar_format::backup_meta::SharedName;
use ashlar_format::blob::{BlobFooter, BlobHeader, BlobRecordHeader};
use ashlar_format::filter::{FilterForm, FilterPolicy, LevelDbFilter};
use ashlar_format::version_edit::CompactionProgress;
use std::path::Path;
use std::sync::Arc;

pub(super) fn blob_files() -> Vec<Vec<u8>> {
    corpus::files(|name| name.ends_with(".blob"))
}

/// Gives every record that its lengths allow, and the footer, the checksums of the damaged bytes.
pub(super) fn fix_blob_file(data: &mut [u8]) {
    let end = data.len().saturating_sub(BlobFooter::LEN);
    let mut at = BlobHeader::LEN;
    while let Some(next) = fix_record(data, at, end) {
        at = next;
    }
    if let Some((covered, crc)) = data.get_mut(end..).and_then(|footer| footer.split_last_chunk_mut::<4>()) {
        *crc = mask_crc(crc32c(covered)).to_le_bytes();
    }
}

fn fix_record(data: &mut [u8], at: usize, end: usize) -> Option<usize> {
    let record = data.get_mut(at..end)?;
    let (head, body) = record.split_first_chunk_mut::<{ BlobRecordHeader::LEN }>()?;
    let mut lengths = Cursor::new(head);
    let key_len = lengths.fixed64("key length").ok()?;
    let len = usize::try_from(key_len.checked_add(lengths.fixed64("value length").ok()?)?).ok()?;
    let blob_crc = mask_crc(crc32c(body.get(..len)?)).to_le_bytes();
    let (fields, crcs) = head.split_last_chunk_mut::<8>()?;
    let head_crc = mask_crc(crc32c(fields)).to_le_bytes();
    crcs.iter_mut().zip(head_crc.into_iter().chain(blob_crc)).for_each(|(byte, new)| *byte = new);
    Some(at + BlobRecordHeader::LEN + len)
}

/// The input as a file.
#[derive(Debug)]
struct Bytes(Vec<u8>);

impl ReadFile for Bytes {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> ashlar_base::Result<usize> {
        let rest = usize::try_from(offset).ok().and_then(|at| self.0.get(at..)).unwrap_or_default();
        buf.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
        Ok(buf.len().min(rest.len()))
    }

    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn path(&self) -> &Path {
        Path::new("000010.blob")
    }
}

pub(super) fn blob_file(input: &[u8]) -> Outcome {
    let file = Arc::new(Bytes(input.to_vec()));
    let reader = BlobReader::open(file, FileNumber(10), Some(FamilyId::DEFAULT), None);
    let reader = reader.map_err(|e| e.to_string())?;
    let verified = reader.verify();
    let mut records = reader.records();
    let mut count = 0;
    loop {
        let (key, place) = match records.next() {
            Ok(Some(record)) => (record.key.to_vec(), record.place),
            Ok(None) => break,
            Err(e) => {
                assert!(verified.is_err(), "verified, then refused");
                return Err(e.to_string());
            }
        };
        count += 1;
        assert!(count <= input.len(), "more records than bytes");
        let both = (reader.get(&key, &place, true).ok(), reader.get(&key, &place, false).ok());
        assert_eq!(both.0, both.1, "another value without verification");
        assert!(both.0.is_some() || verified.is_err(), "verified, then refused");
    }
    let total = verified.map_err(|e| e.to_string())?;
    assert_eq!((total.count, total.bytes), (count as u64, input.len() as u64 - 62));
    Ok(())
}

/// Filters of RocksDB's kinds and sizes, and one block of LevelDB's: two filters, the second empty.
pub(super) fn filters() -> Vec<Vec<u8>> {
    let mut filters = Vec::new();
    for (policy, version) in [("bloomfilter:10", 5), ("bloomfilter:10", 4), ("ribbonfilter:10", 5)] {
        for keys in [1u32, 700, 2000] {
            let builder = FilterPolicy::parse(policy).and_then(|policy| policy.builder(version));
            let mut builder = builder.expect("a known policy");
            (0..keys).for_each(|i| builder.add(&i.to_be_bytes()));
            filters.push(builder.finish());
        }
    }
    let mut block = vec![0x5a; 40];
    block.push(6);
    for offset in [0u32, 41, 41] {
        block.extend_from_slice(&offset.to_le_bytes());
    }
    block.push(11);
    filters.push(block);
    filters
}

pub(super) fn every_filter(input: &[u8]) -> Outcome {
    let form = FilterForm::decode(input);
    let leveldb = LevelDbFilter::decode(input);
    assert!(leveldb.is_none_or(|filter| filter.count() <= input.len()), "more filters than bytes");
    for i in 0..200u32 {
        let key = i.to_be_bytes();
        form.may_contain(input, &key);
        if let Some(filter) = leveldb {
            filter.may_contain(input, u64::from(i) * 512, &key);
            filter.may_contain(input, 1 << (i % 64), &key);
        }
    }
    if let Some(policy) = std::str::from_utf8(input).ok().and_then(FilterPolicy::parse) {
        assert_eq!(FilterPolicy::parse(&policy.to_string()), Some(policy));
    }
    match form {
        FilterForm::Everything(what) => Err(what.to_owned()),
        _ => Ok(()),
    }
}

/// Keys of the golden database with timestamps, with their trailers.
pub(super) fn stamped_keys() -> Vec<Vec<u8>> {
    vec![b"a\x03\0\0\0\0\0\0\0\x01\x04\0\0\0\0\0\0b\x04\0\0\0\0\0\0\0\x14\x05\0\0\0\0\0\0".to_vec()]
}

pub(super) fn timestamp(input: &[u8]) -> Outcome {
    let order = timestamp_order("rocksdb.ReverseBytewiseComparator.u64ts").expect("a known order");
    let keys: Vec<&[u8]> = input.chunks(9).take(12).collect();
    for a in &keys {
        for b in &keys {
            assert_eq!(order.compare(a, b), order.compare(b, a).reverse());
            for c in keys.iter().filter(|c| order.compare(a, b).is_le() && order.compare(b, c).is_le()) {
                assert!(order.compare(a, c).is_le(), "not transitive");
            }
        }
    }
    let (key, time) = split_timestamp(input, 8).map_err(|e| e.to_string())?;
    assert_eq!([key, time].concat(), input);
    let key = InternalKey::decode(input).map_err(|e| e.to_string())?;
    let stripped = strip_internal(key, 8).map_err(|e| e.to_string())?;
    assert_eq!(pad_boundary(stripped.as_key(), 8).as_key().encoded().len(), input.len());
    Ok(())
}

/// A key to go on at, and one file written; less of it; the name of a shared file.
pub(super) fn progress() -> Vec<Vec<u8>> {
    let mut file = vec![103, 0xff, 0xff, 0xff, 0xff, 0x0f, 12, 100];
    for key in [b'a', b'm'] {
        file.extend_from_slice(&[9, key, 1, 7, 0, 0, 0, 0, 0, 0]);
    }
    file.extend_from_slice(&[7, 7, 1]);
    let len = |bytes: &[u8]| u8::try_from(bytes.len()).expect("short");
    let files = [&[1, len(&file)], &file[..]].concat();
    let output = [&[2, len(&files)], &files[..], &[3, 1, 9, 1]].concat();
    let whole =
        [b"\x02\x0cnext\x01\x2c\x01\0\0\0\0\0\x03\x01\x05\x04", &[len(&output)][..], &output, &[1]].concat();
    let name = b"000009_sMZ8O4F4VMLL00LJ4TTBG_1008.sst".to_vec();
    vec![whole, vec![3, 1, 0, 4, 7, 2, 1, 0, 3, 1, 9, 1, 1], name]
}

pub(super) fn compaction_progress(input: &[u8]) -> Outcome {
    if let Some(name) = std::str::from_utf8(input).ok().and_then(SharedName::parse) {
        assert_eq!(SharedName::parse(&name.to_string()), Some(name));
    }
    let progress = CompactionProgress::decode(input).map_err(|e| e.to_string())?;
    let mut again = Vec::new();
    progress.encode(&mut again);
    assert_eq!(CompactionProgress::decode(&again).as_ref(), Ok(&progress), "encoded and decoded again");
    Ok(())
}
