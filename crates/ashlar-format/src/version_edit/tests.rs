use super::*;
use crate::log_record::parse_physical;
use ashlar_base::{FamilyId, FileNumber, InternalKeyBuf, Level, SeqNum, Trailer, ValueType};

fn hex(text: &str) -> Vec<u8> {
    text.split_whitespace().map(|b| u8::from_str_radix(b, 16).unwrap()).collect()
}

macro_rules! manifests {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_bytes!(concat!("../../../../golden/", $name)) as &[u8])),*]
    };
}

/// MANIFESTs written by RocksDB 7.8.3 and LevelDB 1.23; all shorter than a block.
const GOLDEN: [(&str, &[u8]); 17] = manifests![
    "rocksdb-7.8.3/atomic_flush/MANIFEST-000005",
    "rocksdb-7.8.3/backup/private/1/MANIFEST-000005",
    "rocksdb-7.8.3/backup/private/2/MANIFEST-000005",
    "rocksdb-7.8.3/blobs/MANIFEST-000005",
    "rocksdb-7.8.3/column_families/MANIFEST-000005",
    "rocksdb-7.8.3/compressions/MANIFEST-000005",
    "leveldb-1.23/plain/MANIFEST-000006",
    "leveldb-1.23/snappy/MANIFEST-000006",
    "rocksdb-7.8.3/manifest_history/MANIFEST-000005",
    "rocksdb-7.8.3/manifest_tags/MANIFEST-000020",
    "rocksdb-7.8.3/merge_flushed/MANIFEST-000005",
    "rocksdb-7.8.3/range_del/MANIFEST-000005",
    "rocksdb-7.8.3/ttl/MANIFEST-000005",
    "rocksdb-7.8.3/txn_2pc/MANIFEST-000005",
    "rocksdb-7.8.3/udt/MANIFEST-000005",
    "rocksdb-7.8.3/wal_frag/MANIFEST-000005",
    "rocksdb-7.8.3/wal_recycle/MANIFEST-000005",
];

fn records(mut file: &[u8]) -> Vec<&[u8]> {
    let mut found = Vec::new();
    while !file.is_empty() {
        let p = parse_physical(file, 0, false).unwrap();
        assert_eq!(p.type_byte, 1);
        found.push(p.payload);
        file = &file[p.len..];
    }
    found
}

#[test]
fn golden_edits_return_byte_for_byte() {
    let mut seen = 0;
    for (name, file) in GOLDEN {
        for record in records(file) {
            let edit = VersionEdit::decode(record).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert_eq!(edit.to_bytes(), record, "{name}: {edit:?}");
            seen += 1;
        }
    }
    assert_eq!(seen, EDITS);
}

/// Records in all of [`GOLDEN`].
const EDITS: usize = 123;

fn golden(name: &str) -> Vec<VersionEdit> {
    let (_, file) = GOLDEN.iter().find(|(n, _)| *n == name).unwrap();
    records(file).into_iter().map(|r| VersionEdit::decode(r).unwrap()).collect()
}

#[test]
fn fields_mean_what_rocksdb_says() {
    let edits = golden("rocksdb-7.8.3/manifest_tags/MANIFEST-000020");
    let flush = edits.iter().find(|e| e.log_number == Some(FileNumber(18))).unwrap();
    assert_eq!((flush.next_file, flush.last_seq), (Some(FileNumber(20)), SeqNum::new(16)));
    let (level, file) = &flush.added[0];
    let key = InternalKeyBuf::new(b"r9-0", Trailer::new(SeqNum::new(16).unwrap(), ValueType::Put));
    assert_eq!((*level, file.number.0, file.size), (Level(0), 19, 1016));
    assert_eq!((&file.smallest, &file.largest), (&key, &key));
    assert_eq!((file.smallest_seq.get(), file.largest_seq.get()), (16, 16));
    assert_eq!(file.oldest_ancestor_time, Some(1_795_236_261));
    assert_eq!(file.checksum.as_deref(), Some(&[0xfe, 0x80, 0x36, 0x44][..]));
    assert_eq!(file.checksum_function.as_deref(), Some(&b"FileChecksumCrc32c"[..]));
    assert_eq!(file.unique_id.unwrap()[..3], [0xb6, 0x39, 0x66]);
    let last = edits.last().unwrap();
    assert_eq!((last.min_log_to_keep, last.wal_deleted), (Some(FileNumber(18)), Some(FileNumber(18))));
    let snapshot = edits.iter().find(|e| e.added.len() > 1).unwrap();
    assert_eq!(snapshot.added[0].1.min_log_to_keep, Some(FileNumber(14)));

    let groups: Vec<_> =
        golden("rocksdb-7.8.3/atomic_flush/MANIFEST-000005").iter().filter_map(|e| e.atomic_group).collect();
    assert_eq!(groups, [3, 2, 1, 0]);
    let families = golden("rocksdb-7.8.3/column_families/MANIFEST-000005");
    assert!(families.iter().any(|e| e.family == FamilyId(1) && e.family_add.as_deref() == Some(b"one")));
    assert!(families.iter().any(|e| e.family_drop && e.max_family == Some(FamilyId(3))));
    let blob = golden("rocksdb-7.8.3/blobs/MANIFEST-000005")
        .into_iter()
        .find_map(|e| e.blob_added.first().cloned())
        .unwrap();
    assert_eq!((blob.number.0, blob.count, blob.bytes), (10, 2, 374));
    let leveldb = golden("leveldb-1.23/plain/MANIFEST-000006");
    let (level, file) = &leveldb[0].added[0];
    assert_eq!((*level, file.number.0, file.size, file.sequences_unknown), (Level(2), 5, 787, true));
    let ranges = golden("rocksdb-7.8.3/range_del/MANIFEST-000005");
    assert!(
        ranges.iter().flat_map(|e| &e.added).any(|(_, f)| f.largest.as_key().trailer() == Trailer::RANGE_END)
    );
}

#[test]
fn newer_edits_return_too() {
    for text in [
        "89 40 01 01",
        "8B 40 01 76",
        "88 40 01 08",
        "87 40 04 04 02 33 01",
        "87 40 02 04 01",
        "09 00 03 0B 0A 08 04 02 88 40 01 08 AC 02 00",
        "E7 47 03 61 62 63",
        "86 40 02 01 02",
        "8A 40 02 03 01",
        "",
    ] {
        let bytes = hex(text);
        assert_eq!(VersionEdit::decode(&bytes).unwrap().to_bytes(), bytes, "{text}");
    }
    let mut id = hex("81 40 24");
    id.extend(b"cf1fc798-3ec6-4a39-a1ea-b1eeea26a560");
    assert_eq!(VersionEdit::decode(&id).unwrap().to_bytes(), id);
    for (old, new) in [("84 40 04 02 33 01", "87 40 04 04 02 33 01"), ("85 40 08", "88 40 01 08")] {
        assert_eq!(VersionEdit::decode(&hex(old)).unwrap().to_bytes(), hex(new));
    }
}

fn every_field() -> NewFile {
    let key = |k: &[u8], t| InternalKeyBuf::new(k, Trailer::new(SeqNum::new(9).unwrap(), t));
    let keys = (key(b"a", ValueType::Put), key(b"b", ValueType::Delete));
    let mut file = NewFile::new(FileNumber(7), 1 << 40, keys, (SeqNum::ZERO, SeqNum::MAX));
    file.path_id = 3;
    file.epoch = 300;
    file.oldest_ancestor_time = Some(0);
    file.file_creation_time = Some(u64::MAX);
    file.checksum = Some(vec![1, 2, 3, 4]);
    file.checksum_function = Some(b"F".to_vec());
    file.temperature = 12;
    file.need_compaction = true;
    file.min_log_to_keep = Some(FileNumber(2));
    file.oldest_blob_file = FileNumber(5);
    file.unique_id = Some([7; 16]);
    file.range_deletion_size = 1000;
    file.tail_size = 1257;
    file.min_timestamp = vec![0; 8];
    file.max_timestamp = vec![9; 8];
    file.timestamps_persisted = false;
    file.open_metadata = b"meta".to_vec();
    file.ignored = vec![(33, b"future".to_vec())];
    file
}

fn every_tag() -> VersionEdit {
    let mut edit = VersionEdit::of(FamilyId(4));
    let file = every_field();
    edit.db_id = Some("id".to_owned());
    edit.comparator = Some("c".to_owned());
    edit.log_number = Some(FileNumber(1));
    edit.prev_log_number = Some(FileNumber(0));
    edit.next_file = Some(FileNumber(u64::MAX));
    edit.max_family = Some(FamilyId(u32::MAX));
    edit.min_log_to_keep = Some(FileNumber(3));
    edit.last_seq = Some(SeqNum::MAX);
    edit.compact_cursors.push((Level(1), file.smallest.clone()));
    edit.delete_file(Level(2), FileNumber(8));
    edit.add_file(Level(6), file);
    edit.blob_added.push(BlobAddition { ignored: vec![(1, vec![2])], ..BlobAddition::default() });
    edit.blob_garbage.push(BlobGarbage {
        number: FileNumber(2),
        count: 3,
        bytes: 4,
        ignored: vec![(63, vec![])],
    });
    edit.wal_added.push(WalAddition { number: FileNumber(4), synced_size: Some(51) });
    edit.wal_deleted = Some(FileNumber(4));
    edit.family_add = Some(b"\xffname".to_vec());
    edit.family_drop = true;
    edit.atomic_group = Some(2);
    edit.full_history_ts_low = Some(vec![1; 8]);
    edit.persist_udt = Some(false);
    edit.compaction_progress = Some(vec![1]);
    edit.last_manifest_size = Some(118);
    edit.ignored.push((9191, b"abc".to_vec()));
    edit
}

#[test]
fn every_tag_and_field_returns() {
    let edit = every_tag();
    assert_eq!(VersionEdit::decode(&edit.to_bytes()), Ok(edit.clone()));
    assert!(edit.changes_files() && !VersionEdit::default().changes_files());
}

#[test]
fn older_new_files() {
    let keys = "09 61 01 01 00 00 00 00 00 00 09 62 01 02 00 00 00 00 00 00";
    let two = VersionEdit::decode(&hex(&format!("64 01 05 64 {keys} 01 02"))).unwrap();
    let three = VersionEdit::decode(&hex(&format!("66 01 05 02 64 {keys} 01 02"))).unwrap();
    for (edit, path_id) in [(two, 0), (three, 2)] {
        let (level, file) = &edit.added[0];
        assert_eq!((*level, file.number.0, file.size, file.path_id), (Level(1), 5, 100, path_id));
        assert_eq!((file.smallest_seq.get(), file.largest_seq.get()), (1, 2));
        assert_eq!(VersionEdit::decode(&edit.to_bytes()), Ok(edit.clone()), "as tag 103");
    }
}

/// RocksDB 9.1 and later write this type where a file begins with a range tombstone.
#[test]
fn a_boundary_may_be_the_start_of_a_range_tombstone() {
    let file = |kind: &str| {
        let edit =
            format!("67 00 05 64 09 61 {kind} 07 00 00 00 00 00 00 09 62 01 02 00 00 00 00 00 00 01 02 01");
        VersionEdit::decode(&hex(&edit)).map(|edit| edit.added[0].1.smallest.clone())
    };
    assert_eq!(file("1A").unwrap(), InternalKeyBuf::new(b"a", Trailer::seek(SeqNum::new(7).unwrap())));
    assert!(file("19").is_err() && file("1B").is_err());
}

#[test]
fn damage_is_refused() {
    let what = |text: &str| VersionEdit::decode(&hex(text)).unwrap_err().what;
    assert_eq!(what("E7 07 03 61 62 63"), "unknown tag");
    assert_eq!(what("08"), "unknown tag");
    assert_eq!(what("05 01 03 61 62 63"), "shorter than eight bytes");
    assert_eq!(what("05 01 08 7F 01 00 00 00 00 00 00"), "unknown type of key");
    assert_eq!(what("06 80 02 01"), "no level has this number");
    assert_eq!(what("06 01 FF FF FF FF FF FF FF FF 7F"), "over 62 bits");
    assert_eq!(what("04 FF FF FF FF FF FF FF FF 7F"), "over 56 bits");
    assert_eq!(what("87 40 03 04 03 01"), "unknown tag");
    assert_eq!(what("87 40 03 04 01 00"), "trailing bytes");
    assert_eq!(what("89 40 02 01 01"), "not one byte");
    assert_eq!(what("86 40 00"), "empty");
    assert_eq!(what("90 03 0A 02 F6 02 00 00 40 00 00"), "unknown tag");
    let file = "67 00 05 64 09 61 01 01 00 00 00 00 00 00 09 62 01 02 00 00 00 00 00 00 01 02";
    assert!(VersionEdit::decode(&hex(&format!("{file} 01"))).is_ok());
    assert_eq!(what(&format!("{file} 42 00 01")), "unknown tag");
    assert_eq!(what(&format!("{file} 41 01 04 01")), "over 3");
    assert_eq!(what(&format!("{file} 0C 01 00 01")), "unexpected end");
    assert_eq!(what(&format!("{file} 0D 02 01 01 01")), "trailing bytes");
    assert_eq!(VersionEdit::decode(&hex("02 00 E7 07 00")).unwrap_err().at, 2);
}

#[test]
fn hostile_bytes_do_not_panic() {
    let bytes = every_tag().to_bytes();
    for end in 0..bytes.len() {
        if let Ok(edit) = VersionEdit::decode(&bytes[..end]) {
            assert_ne!(edit, every_tag());
        }
    }
    for (i, flip) in (0..bytes.len()).flat_map(|i| [1u8, 0x20, 0x40, 0x80, 0xff].map(|f| (i, f))) {
        let mut bad = bytes.clone();
        bad[i] ^= flip;
        if let Ok(edit) = VersionEdit::decode(&bad) {
            let again = VersionEdit::decode(&edit.to_bytes()).unwrap();
            assert_eq!(again, edit, "byte {i}");
        }
    }
}
