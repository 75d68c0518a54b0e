//! `ashlar wal`.

use super::{ashlar, good};
use std::path::{Path, PathBuf};

fn golden(name: &str) -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../golden/rocksdb-7.8.3")).join(name)
}

/// A copy of `wal_ops`' log, changed: records begin at 0, 24, 102, 121, 152 and 183, the end is 207.
fn changed(change: impl FnOnce(&mut Vec<u8>)) -> (tempfile::TempDir, String) {
    let dir = tempfile::tempdir().unwrap();
    let mut bytes = std::fs::read(golden("wal_ops/000004.log")).unwrap();
    change(&mut bytes);
    let path = dir.path().join("000004.log");
    std::fs::write(&path, bytes).unwrap();
    (dir, path.display().to_string())
}

#[test]
fn records_batches_and_operations() {
    let path = golden("wal_ops/000004.log");
    let expected = "\
: 207 bytes
at 0: Full, 17 bytes of payload
  batch: sequence 1, 1 operation, 17 bytes
    PUT(0) : 0x61 : 0x31
at 24: Full, 71 bytes of payload
  batch: sequence 2 to 10, 9 operations, 71 bytes
    PUT(0) : 0x62 : 0x32
    DELETE(0) : 0x61
    PUT(0) : 0x63 : 0x33
    SINGLE_DELETE(0) : 0x63
    MERGE(0) : 0x6E : 0x0500000000000000
    LOG_DATA : 0x6E6F7465
    PUT(0) : 0x6B31 : 0x78
    PUT(0) : 0x6B35 : 0x79
    PUT(0) : 0x6B39 : 0x7A
    DELETE_RANGE(0) : 0x6B30 0x6B36
at 102: Full, 12 bytes of payload
  batch: sequence 11, 0 operations, 12 bytes
at 121: Full, 24 bytes of payload
  batch: sequence 11, 1 operation, 24 bytes
    MERGE(0) : 0x6E : 0x0700000000000000
at 152: Full, 24 bytes of payload
  batch: sequence 12, 1 operation, 24 bytes
    PUT(0) : 0x : 0x656D707479206B6579
at 183: Full, 17 bytes of payload
  batch: sequence 13, 1 operation, 17 bytes
    PUT(0) : 0x6576 : 0x

6 batches, 13 operations
ends clean: behind a whole record
";
    let shown = good(&["wal", path.to_str().unwrap(), "--ops", "--values"], b"");
    assert_eq!(shown, format!("{}{expected}", path.display()));
    let short = good(&["wal", path.to_str().unwrap()], b"");
    assert!(!short.contains("PUT") && short.contains("9 operations, 71 bytes\nat 102"), "{short}");
}

#[test]
fn fragments_compression_and_transactions() {
    let shown = good(&["wal", golden("wal_frag/000004.log").to_str().unwrap()], b"");
    assert!(
        shown.contains(
            "at 28: First, 32733 bytes of payload\nat 32768: Middle, 32761 bytes of payload\n\
         at 65536: Last, 4526 bytes of payload\n  batch: sequence 2, 1 operation, 70020 bytes\nat 70069: Full"
        ),
        "{shown}"
    );
    let shown = good(&["wal", golden("wal_zstd/000004.log").to_str().unwrap(), "--ops"], b"");
    assert!(
        shown.contains("at 0: SetCompression, 4 bytes of payload\nat 11: Full, 34 bytes of payload\n"),
        "{shown}"
    );
    assert!(shown.contains("    PUT(0) : 0x6B31 : (200 bytes)\n"), "{shown}");
    let shown = good(&["wal", golden("txn_2pc/000004.log").to_str().unwrap(), "--ops"], b"");
    assert!(shown.contains("    END_PREPARE(0x74782D636F6D6D6974)\n"), "{shown}");
}

#[test]
fn ends_are_explained() {
    let (_dir, torn) = changed(|bytes| bytes.truncate(200));
    let tolerant = good(&["wal", &torn, "--mode=tolerate-tail"], b"");
    let end = "at 183: LENGTH WRONG: reaches past its block or the file, 17 bytes to the end of either\n\n5 batches, \
               12 operations\nends torn at 183: truncated record body; 17 bytes are dropped, as a crash in the middle of \
               a write leaves them\n";
    assert!(tolerant.ends_with(end), "{tolerant}");
    let strict = ashlar(&["wal", &torn, "--mode=absolute"], b"");
    assert_eq!(strict.status, 1);
    assert!(strict.out.ends_with("in this mode a database does not open with it\n"), "{strict:?}");
    assert!(
        strict.err.contains("truncated record body") && strict.err.contains("at offset 183"),
        "{strict:?}"
    );

    let (_dir, flipped) = changed(|bytes| bytes[110] ^= 1);
    let ran = ashlar(&["wal", &flipped], b"");
    assert_eq!(ran.status, 1);
    assert!(
        ran.out.contains(
            "at 102: CHECKSUM WRONG, 105 bytes to the end of the block\n\n2 batches, 10 operations\n"
        ),
        "{ran:?}"
    );
    assert!(ran.out.contains(
        "is cut at 102: checksum mismatch; 105 bytes known to be lost; what stands before is kept"
    ));
    assert!(ran.err.contains("000004.log at offset 102"), "{ran:?}");
    let skipping = ashlar(&["wal", &flipped, "--mode=skip-any"], b"");
    assert!(
        skipping.status == 1 && skipping.out.contains("passed over 1 damage with 105 bytes"),
        "{skipping:?}"
    );

    let recycled = golden("wal_recycle/000014.log");
    let shown = good(&["wal", recycled.to_str().unwrap()], b"");
    assert!(shown.contains("at 0: recyclable Full, 36 bytes of payload\n"), "{shown}");
    let former = good(&["wal", recycled.to_str().unwrap(), "--number=13"], b"");
    assert!(
        former.contains("at 0: recyclable Full of another log number, 47 bytes: the file's former life\n"),
        "{former}"
    );
    assert!(former.contains("ends at 0, where records of the file's former life begin"), "{former}");
}

#[test]
fn a_batch_that_does_not_decode_is_damage() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    std::fs::copy(golden("manifest_tags/MANIFEST-000020"), &path).unwrap();
    let path = path.display().to_string();
    let unnamed = ashlar(&["wal", &path], b"");
    assert!(unnamed.status == 2 && unnamed.err.contains("--number=N"), "{unnamed:?}");
    let ran = ashlar(&["wal", &path, "--number=20"], b"");
    assert!(ran.status == 1 && ran.err.contains("at offset 0"), "{ran:?}");
    assert!(ran.out.contains("at 441: Full, 12 bytes of payload\n"), "{ran:?}");
}

#[test]
fn every_cut_ends_in_an_answer() {
    for len in (0..207).step_by(11) {
        let (_dir, path) = changed(|bytes| bytes.truncate(len));
        for mode in ["0", "1", "2", "3"] {
            let ran = ashlar(&["wal", &path, "--ops", "--mode", mode], b"");
            assert!(ran.status <= 1 && ran.out.contains(" batch"), "{len} {mode}: {ran:?}");
        }
    }
}

/// The log of a database, and how long it is while the database is open.
fn log_of(dir: &Path) -> (PathBuf, usize) {
    let mut files = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let log = files.find(|path| path.extension().is_some_and(|end| end == "log")).unwrap();
    let len = std::fs::read(&log).unwrap().len();
    (log, len)
}

#[test]
fn a_log_whose_sequence_goes_back_is_not_clean() {
    use ashlardb::Write as _;
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    // The logs end with their records.
    let open = |dir: &Path| ashlardb::Db::builder(dir).mapped_wal(false).open().unwrap();
    let (first, second) = (open(one.path()), open(two.path()));
    for i in 0..9 {
        first.put(format!("a{i}"), "").unwrap();
    }
    second.put("b0", "").unwrap();
    let (_, begin) = log_of(two.path());
    second.put("b1", "").unwrap();
    let (log, len) = log_of(one.path());
    let mut bytes = std::fs::read(&log).unwrap();
    bytes.extend(std::fs::read(log_of(two.path()).0).unwrap().split_off(begin));
    let copy = one.path().join("copy").join(log.file_name().unwrap());
    std::fs::create_dir(copy.parent().unwrap()).unwrap();
    std::fs::write(&copy, bytes).unwrap();
    let ran = ashlar(&["wal", copy.to_str().unwrap()], b"");
    assert_eq!(ran.status, 1, "{}", ran.out);
    assert!(ran.err.contains("the sequence goes back: 10 was next, the batch has 2"), "{}", ran.err);
    assert!(ran.err.contains(&len.to_string()), "the place, {len}: {}", ran.err);
}

#[test]
fn a_directory_stands_for_its_logs_and_other_files_lead_to_their_command() {
    let dir = tempfile::tempdir().unwrap();
    let (db, at) =
        (dir.path().join("db"), |name: &str| dir.path().join("db").join(name).display().to_string());
    good(&["db", db.to_str().unwrap(), "put", "--create_if_missing", "k", "v"], b"");
    let shown = good(&["wal", db.to_str().unwrap(), "--ops"], b"");
    assert!(shown.contains(".log: ") && shown.contains("PUT(0) : 0x6B"), "{shown}");
    let manifest = ashlar(&["wal", &at("MANIFEST-000001")], b"");
    assert!(manifest.status == 2 && manifest.err.contains("ashlar manifest"), "{}", manifest.err);
    let empty = ashlar(&["wal", dir.path().to_str().unwrap()], b"");
    assert!(empty.status == 1 && empty.err.contains("no WAL file"), "{}", empty.err);
}
