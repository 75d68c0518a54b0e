use super::*;
use ashlar_base::{InternalKeyBuf, SeqNum, Trailer, ValueType};
use ashlar_env::Env;
use ashlar_format::log_record::{Framing, RecordType};
use ashlar_format::write_batch::BatchEncoder;
use ashlar_log::LogWriter;
use ashlar_testkit::golden::golden;
use std::sync::Arc;

fn check(dir: &Path) -> LevelReport {
    check_level(&*Env::os().unwrap().fs, dir).unwrap()
}

fn shapes(report: &LevelReport) -> Vec<Shape> {
    let mut shapes: Vec<Shape> = report.found.iter().map(|found| found.shape).collect();
    shapes.sort_unstable();
    shapes.dedup();
    shapes
}

#[test]
fn what_7_8_wrote_fits_7_8() {
    let recycled = [Shape::RecycledLog];
    let compressed = [Shape::CompressedLog];
    let cases: [(&str, &[Shape]); 12] = [
        ("atomic_flush", &[Shape::TableFormat(5)]),
        ("blobs", &[Shape::TableFormat(5)]),
        ("column_families", &[Shape::TableFormat(5)]),
        ("compressions", &[Shape::TableFormat(5)]),
        ("manifest_tags", &[Shape::TableFormat(5)]),
        ("merge_flushed", &[Shape::TableFormat(5)]),
        ("range_del", &[Shape::TableFormat(5)]),
        ("txn_2pc", &[]),
        ("udt", &[Shape::TableFormat(5)]),
        ("wal_ops", &[]),
        ("wal_recycle", &recycled),
        ("wal_zstd", &compressed),
    ];
    for (name, expected) in cases {
        let report = check(golden(&format!("rocksdb-7.8.3/{name}")).unwrap().path());
        let mut found = shapes(&report);
        if expected == recycled {
            found.retain(|shape| !matches!(shape, Shape::TableFormat(5)));
        }
        assert_eq!(found, expected, "{name}: {report:?}");
        let above = report.above(FormatLevel::V7_8);
        assert_eq!(above.is_empty(), expected != recycled, "{name}: {above:?}");
        assert!(report.entries > 0, "{name}");
    }
    let zstd = check(golden("rocksdb-7.8.3/wal_zstd").unwrap().path());
    assert_eq!(zstd.above(FormatLevel::V6_29).len(), 1);
    assert_eq!(zstd.lowest(), Some(FormatLevel::V7_8));
}

#[test]
fn a_table_that_a_kill_left_half_written_says_nothing() {
    let files = [("000005.sst", table("v5_lz4hc_ribbon.sst")), ("000009.sst", b"half a table".to_vec())];
    let env = directory(&[names_table_5()], &files);
    assert_eq!(check_level(&*env.fs, Path::new("/db")).unwrap().tables, 1);
}

#[test]
fn leveldb_tables_end_below_11() {
    let report = check(golden("leveldb-1.23/snappy").unwrap().path());
    assert_eq!(shapes(&report), [Shape::LevelDbTable]);
    assert!(report.above(FormatLevel::V6_29).is_empty());
    assert_eq!(report.above(FormatLevel::V11).len(), 1);
    assert_eq!(report.lowest(), Some(FormatLevel::V6_29));
}

/// A directory with one MANIFEST of `edits` and these files.
fn directory(edits: &[VersionEdit], files: &[(&str, Vec<u8>)]) -> Env {
    let env = Env::mem();
    let dir = Path::new("/db");
    env.fs.create_dir_all(dir).unwrap();
    let put = |name: &str, bytes: &[u8]| env.fs.create(&dir.join(name)).unwrap().write_at(bytes, 0).unwrap();
    put("CURRENT", b"MANIFEST-000001\n");
    let path = dir.join("MANIFEST-000001");
    let log = LogWriter::create(Arc::clone(&env.fs), &path, FileNumber(1), Framing::Legacy).unwrap();
    for edit in edits {
        log.append(&edit.to_bytes(), false).unwrap();
    }
    log.close().unwrap();
    files.iter().for_each(|(name, bytes)| put(name, bytes));
    env
}

/// An edit that names table 5.
fn names_table_5() -> VersionEdit {
    let key = || InternalKeyBuf::new(b"k", Trailer::new(SeqNum::ZERO, ValueType::Put));
    let file = NewFile::new(FileNumber(5), 1, (key(), key()), (SeqNum::ZERO, SeqNum::ZERO));
    VersionEdit { added: vec![(Level(1), file)], ..VersionEdit::default() }
}

fn table(name: &str) -> Vec<u8> {
    let path = format!("{}/../../golden/sst/{name}", env!("CARGO_MANIFEST_DIR"));
    let file = Env::os().unwrap().fs.open_read(Path::new(&path)).unwrap();
    let mut bytes = vec![0; usize::try_from(file.len()).unwrap()];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

#[test]
fn tables_of_newer_releases_are_above() {
    use Shape::{EmbeddedBlobs, EntityWithBlobs, SeparatedBlocks, TableFormat};
    let cases: [(&str, &[Shape], FormatLevel); 4] = [
        ("v6_crc32c_datablockhash.sst", &[TableFormat(6)], FormatLevel::V9_11),
        ("v7_zstd_separated_kv.sst", &[TableFormat(7), SeparatedBlocks], FormatLevel::V11),
        ("v7_embedded_blob.sst", &[TableFormat(7), EmbeddedBlobs], FormatLevel::V11),
        ("v7_db_blobindex_entities.sst", &[EntityWithBlobs, TableFormat(7)], FormatLevel::V11),
    ];
    for (name, expected, level) in cases {
        let env = directory(&[names_table_5()], &[("000005.sst", table(name))]);
        let report = check_level(&*env.fs, Path::new("/db")).unwrap();
        let found = shapes(&report);
        assert!(expected.iter().all(|shape| found.contains(shape)), "{name}: {found:?}");
        assert_eq!(report.lowest(), Some(level), "{name}");
        assert_eq!(report.found[0].file, "000005.sst");
    }
}

#[test]
fn logs_and_edits_are_looked_into() {
    let mut batch = BatchEncoder::new();
    batch.put(FamilyId::DEFAULT, b"k", b"v").unwrap();
    let seq = SeqNum::new(1).unwrap();
    let mut bytes = batch.finish(seq).to_vec();
    // A timed put is appended: tag, key, value with its time.
    bytes.extend_from_slice(&[0x18, 1, b'k', 8, 0, 0, 0, 0, 0, 0, 0, 0]);
    bytes[8] = 2;
    let env = directory(&[VersionEdit { last_manifest_size: Some(7), ..VersionEdit::default() }], &[]);
    let path = Path::new("/db/000009.log");
    let log = LogWriter::create(Arc::clone(&env.fs), path, FileNumber(9), Framing::Recyclable).unwrap();
    log.append(&bytes, false).unwrap();
    log.close().unwrap();
    let report = check_level(&*env.fs, Path::new("/db")).unwrap();
    assert_eq!(shapes(&report), [Shape::RecycledLog, Shape::TimedPut, Shape::NewestManifestTag]);
    assert_eq!(report.lowest(), Some(FormatLevel::V11));
    assert_eq!((report.logs, report.entries), (1, 2));
}

#[test]
fn what_cannot_be_read_is_not_proved() {
    let good = table("v5_lz4hc_ribbon.sst");
    for at in [100, good.len() - 60] {
        let mut bytes = good.clone();
        bytes[at] ^= 1;
        let env = directory(&[names_table_5()], &[("000005.sst", bytes)]);
        let e = check_level(&*env.fs, Path::new("/db")).unwrap_err();
        assert!(e.to_string().contains("000005.sst"), "{e}");
    }
    let env = directory(&[], &[("000007.log", vec![1; 40_000])]);
    assert!(check_level(&*env.fs, Path::new("/db")).unwrap_err().is_corruption());
    let none = Env::mem();
    none.fs.create_dir_all(Path::new("/db")).unwrap();
    assert!(check_level(&*none.fs, Path::new("/db")).unwrap_err().to_string().contains("no database"));
}

#[test]
fn every_type_byte_has_its_answer() {
    for byte in 0..=255 {
        let shape = Shape::of_log_record(byte);
        match RecordType::from_u8(byte) {
            Some(_) if byte <= 4 => assert_eq!(shape, None),
            Some(_) => assert!(shape.is_some(), "{byte}"),
            None => assert_eq!(shape.is_some(), byte >= 0x80, "{byte}"),
        }
    }
}
