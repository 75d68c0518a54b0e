//! Blob files of RocksDB read, ours written, and damage told.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "in a test a panic is the report")]
#![allow(clippy::cast_possible_truncation, reason = "test data is small")]

use ashlar_base::error::IoKind;
use ashlar_base::{ErrorKind, FamilyId, FileNumber};
use ashlar_blob::{BlobAmount, BlobOptions, BlobReader, BlobWriter};
use ashlar_env::sim::{CallClass, Repeat, SimEnv};
use ashlar_env::{Env, ReadFile};
use ashlar_format::blob::{BlobFooter, BlobHeader, BlobIndex, BlobPlace};
use ashlar_format::compress::Compression;
use ashlar_testkit::heap::untouched;
use std::path::Path;
use std::sync::Arc;

const N: FileNumber = FileNumber(10);

fn golden(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden").join(name);
    let file = Env::os().unwrap().fs.open_read(&path).unwrap();
    let mut bytes = vec![0; file.len() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

/// A file in memory with these bytes.
fn file(bytes: &[u8]) -> Arc<dyn ReadFile> {
    let env = Env::mem();
    env.fs.create_dir_all(Path::new("/db")).unwrap();
    let path = Path::new("/db/000010.blob");
    env.fs.create(path).unwrap().write_at(bytes, 0).unwrap();
    env.fs.open_read(path).unwrap()
}

fn open(bytes: &[u8], number: FileNumber) -> ashlar_base::Result<Arc<BlobReader>> {
    BlobReader::open(
        file(bytes),
        number,
        Some(FamilyId::DEFAULT),
        Some((bytes.len() as u64).saturating_sub(62)),
    )
}

fn place(index: &[u8]) -> BlobPlace {
    match BlobIndex::decode(index).unwrap() {
        BlobIndex::Blob(place) => place,
        other => panic!("{other:?}"),
    }
}

#[test]
fn golden_blob_files_answer_their_indexes() {
    let two = open(&golden("rocksdb-7.8.3/blobs/000010.blob"), N).unwrap();
    assert_eq!((two.count(), two.compression(), two.size()), (2, 0, 436));
    assert_eq!(two.verify().unwrap(), BlobAmount { count: 2, bytes: 374 });
    let one = open(&golden("rocksdb-7.8.3/blobs/000013.blob"), FileNumber(13)).unwrap();
    assert_eq!(one.verify().unwrap(), BlobAmount { count: 1, bytes: 101 });
    let zstd = open(&golden("sst/v7_db_blobindex_entities.blob"), N).unwrap();
    assert_eq!(zstd.verify().unwrap().count, 3);
    let bytes: Vec<u8> = (0..=255).collect();
    for verify in [false, true] {
        let get = |reader: &BlobReader, key: &str, index: &[u8]| {
            reader.get(key.as_bytes(), &place(index), verify).unwrap()
        };
        assert_eq!(get(&two, "blob1", &[1, 10, 0x43, 0x64, 0]), [b'1'; 100]);
        assert_eq!(get(&two, "blob2", &[1, 10, 0xcc, 1, 0xc8, 1, 0]), [b'2'; 200]);
        assert_eq!(get(&one, "blob1", &[1, 13, 0x43, 0x40, 0]), [b'n'; 64]);
        assert_eq!(get(&zstd, "b2", &[1, 10, 0x40, 0x1d, 7]), b"blob-value ".repeat(20));
        assert!(get(&zstd, "b3", &[1, 10, 0x7f, 0x8c, 2, 7]).starts_with(&bytes));
        assert_eq!(get(&zstd, "e2", &[1, 10, 0xad, 3, 0x12, 7]), [b'N'; 90]);
    }
}

fn write(compression: Compression, values: &[(Vec<u8>, Vec<u8>)]) -> (Vec<u8>, Vec<BlobPlace>) {
    let env = Env::mem();
    env.fs.create_dir_all(Path::new("/db")).unwrap();
    let path = Path::new("/db/000010.blob");
    let options = BlobOptions { enabled: true, compression, ..BlobOptions::default() };
    let mut writer = BlobWriter::new(env.fs.create(path).unwrap(), N, FamilyId::DEFAULT, &options).unwrap();
    let places: Vec<_> = values.iter().map(|(key, value)| writer.add(key, value).unwrap()).collect();
    let before_footer = writer.size();
    let summary = writer.finish().unwrap();
    assert_eq!(summary.size, before_footer + 32);
    assert_eq!(summary.amount.bytes, summary.size - 62);
    let addition = summary.addition();
    assert_eq!((addition.number, addition.count), (N, values.len() as u64));
    let file = env.fs.open_read(path).unwrap();
    let mut bytes = vec![0; file.len() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    assert_eq!(bytes.len() as u64, summary.size);
    (bytes, places)
}

fn values() -> Vec<(Vec<u8>, Vec<u8>)> {
    let value = |i: usize| (0..i * 37).map(|j| (j * j / (i + 1)) as u8).collect();
    (0..60).map(|i| (format!("key{i:03}").into_bytes(), value(i * i % 211))).collect()
}

#[test]
fn what_is_written_is_read_in_every_compression() {
    for compression in
        [Compression::None, Compression::Snappy, Compression::Zlib, Compression::Lz4, Compression::Zstd]
    {
        let values = values();
        let (bytes, places) = write(compression, &values);
        let reader = open(&bytes, N).unwrap();
        assert_eq!(reader.verify().unwrap().count, values.len() as u64);
        for ((key, value), place) in values.iter().zip(&places) {
            for verify in [true, false] {
                assert_eq!(&reader.get(key, place, verify).unwrap(), value, "{compression:?}");
            }
        }
        let mut records = reader.records();
        for ((key, _), place) in values.iter().zip(&places) {
            let record = records.next().unwrap().unwrap();
            assert_eq!((record.key, record.place, record.expiration), (&key[..], *place, 0));
        }
        assert_eq!(records.next().unwrap(), None);
        assert_eq!(records.next().unwrap(), None);
    }
}

#[test]
fn the_golden_file_is_written_again_byte_by_byte() {
    let values = [(b"blob1".to_vec(), vec![b'1'; 100]), (b"blob2".to_vec(), vec![b'2'; 200])];
    assert!(write(Compression::None, &values).0 == golden("rocksdb-7.8.3/blobs/000010.blob"));
}

#[test]
fn a_file_is_given_up_after_a_failed_write() {
    let sim = SimEnv::new(1);
    let env = sim.env();
    let path = Path::new("/000010.blob");
    let writer = || {
        let file = env.fs.create(path).unwrap();
        BlobWriter::new(file, N, FamilyId::DEFAULT, &BlobOptions::default()).unwrap()
    };
    let mut failed = writer();
    sim.fail_call(CallClass::Write, sim.calls_of(CallClass::Write) + 1, Repeat::Once, IoKind::NoSpace);
    let e = failed.add(b"key", &vec![b'v'; 1 << 20]).unwrap_err();
    assert_eq!((e.kind(), e.path()), (ErrorKind::Io(IoKind::NoSpace), Some(path)));
    for refused in [failed.add(b"later", b"value").map(drop), failed.finish().map(drop)] {
        let e = refused.unwrap_err();
        assert_eq!(e.kind(), ErrorKind::InvalidArgument);
        assert_eq!((e.message(), e.path()), ("the blob file was given up after a failed write", Some(path)));
    }
    let Some(huge) = untouched("a_file_is_given_up_after_a_failed_write, lengths", 1 << 32) else { return };
    let mut sound = writer();
    for (key, value) in [(&b"key"[..], &huge[..]), (&huge[..], &b"value"[..])] {
        let e = sound.add(key, value).unwrap_err();
        assert_eq!((e.kind(), e.message()), (ErrorKind::InvalidArgument, "a blob of 4 GiB or more"));
    }
    assert_eq!(sound.finish().unwrap().amount.count, 0, "a refused value is no failed write");
}

#[test]
fn indexes_that_lie_are_refused() {
    let (bytes, places) = write(Compression::None, &values()[3..6]);
    let reader = open(&bytes, N).unwrap();
    let good = places[1];
    let refused = |key: &[u8], place: BlobPlace, text: &str| {
        let e = reader.get(key, &place, true).unwrap_err();
        assert!(e.is_corruption() && e.to_string().contains(text), "{e}");
    };
    refused(b"key005", good, "the record of another key");
    refused(b"key04", good, "checksum");
    refused(b"key004", BlobPlace { file: FileNumber(9), ..good }, "asked of");
    refused(b"key004", BlobPlace { compression: 7, ..good }, "compression");
    refused(b"key004", BlobPlace { size: good.size - 1, ..good }, "lengths");
    refused(b"key004", BlobPlace { offset: good.offset + 1, ..good }, "checksum");
    refused(b"key004", BlobPlace { size: 1 << 50, ..good }, "outside its file");
    refused(b"key004", BlobPlace { offset: u64::MAX, ..good }, "outside its file");
    refused(b"key004", BlobPlace { offset: 3, size: 1, ..good }, "outside its file");
}

#[test]
fn a_file_must_be_what_the_manifest_says() {
    let (bytes, _) = write(Compression::None, &values()[..3]);
    let corrupt = |bytes: &[u8], family, known: Option<u64>, text: &str| {
        let e = BlobReader::open(file(bytes), N, Some(family), known).unwrap_err();
        assert!(e.is_corruption() && e.to_string().contains(text), "{e}");
    };
    let own = FamilyId::DEFAULT;
    corrupt(&bytes, own, Some(1), "are recorded");
    corrupt(&bytes, own, Some(u64::MAX), "are recorded");
    corrupt(&bytes, FamilyId(4), None, "of family 0, not 4");
    corrupt(&bytes[..bytes.len() - 32], own, None, "not a blob file");
    corrupt(&bytes[..40], own, None, "shorter");
    let mut expiring = bytes.clone();
    expiring[12] |= 1;
    corrupt(&expiring, own, None, "stacked BlobDB");
    let mut expiring = bytes.clone();
    expiring[20] = 7;
    corrupt(&expiring, own, None, "stacked BlobDB");
    let mut footer = Vec::new();
    BlobFooter { count: 4, ..BlobFooter::default() }.encode(&mut footer);
    let other_count = [&bytes[..bytes.len() - 32], &footer].concat();
    let e = open(&other_count, N).unwrap().verify().unwrap_err();
    assert!(e.to_string().contains("has 3 blobs, its footer says 4"), "{e}");
    let mut custom = Vec::new();
    BlobHeader { compression: 0x90, ..BlobHeader::default() }.encode(&mut custom);
    let custom = [&custom, &bytes[30..]].concat();
    assert_eq!(open(&custom, N).unwrap().verify().unwrap_err().kind(), ErrorKind::NotSupported);
}

#[test]
fn every_cut_and_flip_is_told_and_nothing_wrong_is_answered() {
    let values = &values()[4..8];
    for compression in [Compression::None, Compression::Lz4] {
        let (bytes, places) = write(compression, values);
        for cut in 0..bytes.len() {
            let whole = open(&bytes[..cut], N).and_then(|reader| reader.verify());
            assert!(whole.is_err(), "cut at {cut}");
        }
        let mut told = 0;
        for at in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 0x20;
            let Ok(reader) = open(&flipped, N) else {
                told += 1;
                continue;
            };
            let mut fine = reader.verify().is_ok();
            for ((key, value), place) in values.iter().zip(&places) {
                match reader.get(key, place, true) {
                    Ok(got) => assert_eq!(&got, value, "byte {at}"),
                    Err(_) => fine = false,
                }
                let _ = reader.get(key, place, false);
            }
            told += usize::from(!fine);
        }
        // One byte of flags has seven bits without a meaning.
        assert_eq!(told, bytes.len() - 1);
    }
}
