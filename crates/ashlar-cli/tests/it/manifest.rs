//! `ashlar manifest`.

use super::{ashlar, good};
use std::path::{Path, PathBuf};

fn golden(name: &str) -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../golden/rocksdb-7.8.3")).join(name)
}

/// A copy of `manifest_tags`' MANIFEST, changed: record 3 begins at 334, record 4 at 441, the end is 460.
fn changed(change: impl FnOnce(&mut Vec<u8>)) -> (tempfile::TempDir, String) {
    let dir = tempfile::tempdir().unwrap();
    let mut bytes = std::fs::read(golden("manifest_tags/MANIFEST-000020")).unwrap();
    change(&mut bytes);
    let path = dir.path().join("MANIFEST-000020");
    std::fs::write(&path, bytes).unwrap();
    (dir, path.display().to_string())
}

#[test]
fn a_history_in_words() {
    let path = golden("manifest_tags");
    let expected = "\
/MANIFEST-000020: 460 bytes

record 1 at 0, 28 bytes
  comparator leveldb.BytewiseComparator

record 2 at 35, 292 bytes
  WAL files below 000014 hold nothing unflushed of the family
  WAL files below 000014 are obsolete
  last sequence 15
  add table 000009 to L1: 1068 bytes, 'r0-0' seq 1 put .. 'r0-4' seq 5 put, sequences 1 to 5
    oldest entry of 1795236261, made at 1795236261, checksum BAAA8F0E (FileChecksumCrc32c), WAL files below 000014 are \
obsolete, unique id B639664D7FDD47E9BA3A1BF598DEC825
  add table 000012 to L1: 1068 bytes, 'r1-0' seq 6 put .. 'r1-4' seq 10 put, sequences 6 to 10
    oldest entry of 1795236261, made at 1795236261, checksum 7A39FF62 (FileChecksumCrc32c), unique id \
B639664D7FDD47E9BF3A1BF598DEC825
  add table 000015 to L1: 1068 bytes, 'r2-0' seq 11 put .. 'r2-4' seq 15 put, sequences 11 to 15
    oldest entry of 1795236261, made at 1795236261, checksum C9CB01B2 (FileChecksumCrc32c), unique id \
B639664D7FDD47E9BC3A1BF598DEC825

record 3 at 334, 100 bytes
  WAL files below 000018 hold nothing unflushed of the family
  no previous WAL file
  next file 000020
  last sequence 16
  add table 000019 to L0: 1016 bytes, 'r9-0' seq 16 put .. 'r9-0' seq 16 put, sequences 16 to 16
    oldest entry of 1795236261, made at 1795236261, checksum FE803644 (FileChecksumCrc32c), unique id \
B639664D7FDD47E9A03A1BF598DEC825

record 4 at 441, 12 bytes
  no previous WAL file
  next file 000021
  WAL files below 000018 are obsolete
  last sequence 16
  WAL files below 000018 are deleted

summary: 4 records, last sequence 16, next file 000021, WAL files from 000018
family 0 'default': comparator leveldb.BytewiseComparator, WAL files from 000018
  L0: 1 table, 1016 bytes
  L1: 3 tables, 3204 bytes
";
    let shown = good(&["manifest", path.to_str().unwrap()], b"");
    assert_eq!(shown, format!("{}{expected}", path.display()));
    let hex = good(&["manifest", path.join("MANIFEST-000020").to_str().unwrap(), "--hex"], b"");
    assert!(hex.contains("1016 bytes, 0x72392D30 seq 16 put .. 0x72392D30 seq 16 put"), "{hex}");
}

#[test]
fn groups_families_and_leveldb() {
    let shown = good(&["manifest", golden("atomic_flush").to_str().unwrap()], b"");
    for part in [
        "  create family 1 'one'\n",
        "  part of an atomic group, 1 more to come\n  of family 2\n",
        "family 2 'two': comparator leveldb.BytewiseComparator, WAL files from 000012\n  L0: 1 table, 1005 bytes\n",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let leveldb = good(&["manifest", golden("../leveldb-1.23/plain").to_str().unwrap()], b"");
    assert!(leveldb.contains("sequences not recorded\n"), "{leveldb}");
}

#[test]
fn damage_names_place_and_cause_and_keeps_what_was_good() {
    let (_dir, flipped) = changed(|bytes| bytes[400] ^= 1);
    let ran = ashlar(&["manifest", &flipped], b"");
    assert_eq!(ran.status, 1);
    assert!(ran.out.contains("record 2 at 35") && !ran.out.contains("record 3"), "{ran:?}");
    assert!(ran.out.ends_with("  L1: 3 tables, 3204 bytes\n"), "{ran:?}");
    assert!(
        ran.err.contains("checksum mismatch") && ran.err.contains("MANIFEST-000020 at offset 334"),
        "{ran:?}"
    );

    let (_dir, torn) = changed(|bytes| bytes.truncate(450));
    let ran = ashlar(&["manifest", &torn], b"");
    assert_eq!(ran.status, 1);
    assert!(ran.out.contains("record 3 at 334") && ran.out.contains("summary: 3 records"), "{ran:?}");
    assert!(
        ran.err.contains("is torn (truncated record body)") && ran.err.contains("at offset 441"),
        "{ran:?}"
    );
}

#[test]
fn every_cut_ends_in_an_answer() {
    for len in (0..460).step_by(23) {
        let (_dir, path) = changed(|bytes| bytes.truncate(len));
        let ran = ashlar(&["manifest", &path], b"");
        assert!(ran.status <= 1 && ran.out.contains("summary: "), "{len}: {ran:?}");
    }
}

#[test]
fn what_is_no_database() {
    let empty = tempfile::tempdir().unwrap();
    let ran = ashlar(&["manifest", empty.path().to_str().unwrap()], b"");
    assert_eq!((ran.status, ran.out.as_str()), (1, ""));
    assert!(ran.err.starts_with("Invalid argument: there is no database"), "{ran:?}");
    assert_eq!(ashlar(&["manifest"], b"").status, 2);
    assert_eq!(ashlar(&["manifest", "/nowhere/MANIFEST-000001"], b"").status, 1);
}

#[test]
fn a_sound_file_of_another_kind_is_not_called_damaged() {
    let dir = tempfile::tempdir().unwrap();
    for (name, instead) in
        [("000007.log", "ashlar wal"), ("000008.sst", "ashlar sst"), ("CURRENT", "give the directory")]
    {
        let path = dir.path().join(name);
        std::fs::write(&path, "MANIFEST-000020\n").unwrap();
        let ran = ashlar(&["manifest", &path.display().to_string()], b"");
        assert!(ran.err.contains("not a MANIFEST") && ran.err.contains(instead), "{ran:?}");
        assert!(ran.status == 1 && !ran.err.contains("Corruption"), "{ran:?}");
    }
}
