//! RocksDB's two meta files, schema 2, and lines that lie.

use super::*;
use crate::unreadable::Unreadable;
use ashlar_base::FileNumber;
use ashlar_base::checksum::crc32c;

const META: [&str; 2] = [
    include_str!("../../../../golden/rocksdb-7.8.3/backup/meta/1"),
    include_str!("../../../../golden/rocksdb-7.8.3/backup/meta/2"),
];

#[test]
fn rocksdbs_meta_files_name_files_by_their_checksums() {
    for (text, sequence) in META.into_iter().zip([2, 3]) {
        let meta = BackupMeta::parse(text).unwrap();
        assert_eq!((meta.timestamp, meta.sequence, meta.files.len()), (1_795_236_262, sequence, 5));
        assert_eq!(meta.print(), text);
        for file in &meta.files {
            let stored = ashlar_testkit::golden::path(&format!("rocksdb-7.8.3/backup/{}", file.path));
            #[allow(clippy::disallowed_methods)]
            let bytes = std::fs::read(stored).unwrap();
            assert_eq!(file.checksum, Some(crc32c(&bytes)), "{}", file.path);
            let name = file.path.rsplit('/').next().unwrap();
            if let Some(SharedName::Session { size, .. }) = SharedName::parse(name) {
                assert_eq!(size, Some(bytes.len() as u64));
            } else {
                assert!(file.path.starts_with("private/"), "{}", file.path);
            }
        }
    }
}

const SECOND: &str = "schema_version 2.1\n1700000000\n42\nmetadata 00FF7A\ncolour blue and green\n3\n\
    shared_checksum/000009_1_2.blob crc32 7 size 2 temp 12\nprivate/1/CURRENT size 16\n\
    shared_checksum/000010_sABC.sst crc32 0 ni::excluded true weight heavy\n// FOOTER\nend true\n";

#[test]
fn schema_2_keeps_what_it_does_not_know() {
    let meta = BackupMeta::parse(SECOND).unwrap();
    assert_eq!(meta.schema.as_deref(), Some("2.1"));
    assert_eq!(meta.app_metadata, [0, 0xff, b'z']);
    let field = |name: &str, value: &str| Field { name: name.into(), value: value.into() };
    assert_eq!(meta.fields, [field("colour", "blue and green")]);
    assert_eq!((meta.files[0].size, meta.files[0].temperature), (Some(2), Some(12)));
    assert_eq!((meta.files[1].checksum, meta.files[1].excluded), (None, false));
    assert!(meta.files[2].excluded && meta.files[2].fields == [field("weight", "heavy")]);
    assert_eq!(meta.footer, Some(vec![field("end", "true")]));
    assert_eq!(meta.print(), SECOND);
    let plain = BackupMeta::parse("schema_version 1\n1\n2\nmetadata 6d\n0\n").unwrap();
    assert_eq!((plain.schema, plain.app_metadata), (None, b"m".to_vec()));
}

#[test]
fn lines_that_lie_are_refused_by_name() {
    let what = |text: &str| match BackupMeta::parse(text).unwrap_err() {
        Unreadable::Malformed(m) => format!("{} {}", m.field, m.what),
        Unreadable::NotSupported(feature) => feature.to_owned(),
        Unreadable::OutOfMemory => "memory".to_owned(),
    };
    assert_eq!(what(""), "backup.timestamp unexpected end");
    assert_eq!(what("x\n1\n0\n"), "backup.timestamp not a number");
    assert_eq!(what("1\n-1\n0\n"), "backup.sequence not a number");
    assert_eq!(what("1\n1\n18446744073709551615\n"), "backup.file unexpected end");
    assert_eq!(what("1\n1\ncolour blue\n0\n"), "backup.number of files not a number");
    assert_eq!(what("1\n1\nmetadata 6\n0\n"), "backup.metadata not hex");
    assert_eq!(what("1\n1\nmetadata 6é\n0\n"), "backup.metadata not hex");
    assert_eq!(what("1\n1\n0\na crc32 1\n"), "backup.footer more files than announced");
    assert_eq!(what("1\n1\n0\n// FOOTER\n"), "backup.footer more files than announced");
    assert_eq!(what("1\n1\n1\na crc32\n"), "backup.file a name without value");
    assert_eq!(what("1\n1\n1\na crc32 4294967296\n"), "backup.checksum not a number");
    assert_eq!(what("1\n1\n1\na crc32 42"), "backup.file unexpected end");
    assert_eq!(what("schema_version 3.0\n"), "backup meta files of an unknown schema");
    let must = "a field of a backup meta file that must be understood";
    assert_eq!(what("schema_version 2.0\n1\n1\nni::odd 1\n0\n"), must);
    assert_eq!(what("schema_version 2.0\n1\n1\n1\na ni::odd 1\n"), must);
    assert_eq!(what("schema_version 2.0\n1\n1\n1\n// FOOTER\n"), "backup.file fewer files than announced");
    let lone = "schema_version 2.0\n1\n1\n0\n// FOOTER\nend\n";
    assert_eq!(what(lone), "backup.footer a name without value");
    let neither = "schema_version 2.0\n1\n1\n1\na ni::excluded maybe\n";
    assert_eq!(what(neither), "backup.excluded neither true nor false");
    for path in ["/etc/passwd", "../x", "a/../../x", "a//b", "", ".", "a\\b"] {
        let refused = what(&format!("1\n1\n1\n{path} crc32 1\n"));
        assert_eq!(refused, "backup.file not a path within the backup directory", "{path}");
    }
    for cut in 0..META[0].len() {
        assert!(BackupMeta::parse(&META[0][..cut]).is_err(), "{cut}");
    }
}

#[test]
fn shared_names() {
    let session = SharedName::Session {
        number: FileNumber(9),
        session: "MZ8O4F4VMLL00LJ4TTBG".into(),
        size: Some(1008),
    };
    let checksum =
        SharedName::Checksum { number: FileNumber(10), checksum: u32::MAX, size: 0, extension: "blob" };
    for (text, want) in [
        ("000009_sMZ8O4F4VMLL00LJ4TTBG_1008.sst", Some(session)),
        ("000010_4294967295_0.blob", Some(checksum)),
        ("000009.sst", None),
        ("000009_s.sst", None),
        ("000009_sABC.blob", None),
        ("000009_4294967296_0.sst", None),
        ("000009_1_+1.sst", None),
        ("x_1_1.sst", None),
        ("000009_sABC_1008.txt", None),
    ] {
        assert_eq!(SharedName::parse(text), want, "{text}");
        if let Some(name) = want {
            assert_eq!(name.to_string(), text);
        }
    }
    assert_eq!(SharedName::parse("000009_sABC.sst").unwrap().to_string(), "000009_sABC.sst");
    assert_eq!(SharedName::original("000009_sABC_1008.sst").as_deref(), Some("000009.sst"));
    assert_eq!(SharedName::original("000009.sst").as_deref(), Some("000009.sst"));
    assert_eq!(SharedName::original("odd"), None);
}
