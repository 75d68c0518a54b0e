//! A directory of RocksDB 11.8.1 with values in a blob file and wide-column entities of both versions: this engine
//! merges into it, flushes and compacts it, and RocksDB reads the same data.

use ashlar_base::ext::merge_operator::standard_operator;
use ashlar_base::{FamilyId, FileNumber, InternalKeyBuf, Level, SeqNum, Trailer, ValueType};
use ashlar_engine::Db;
use ashlar_engine::batch::WriteBatch;
use ashlar_env::Env;
use ashlar_format::version_edit::{BlobAddition, NewFile, VersionEdit};
use ashlar_log::{Framing, LogWriter};
use ashlar_options::{DbOptions, FamilyOptions, FormatLevel, ReadOptions, WriteOptions};
use ashlar_read::iter::KeyBounds;
use ashlar_testkit::judge::{JudgeError, Opening, copy_flat};
use ashlar_testkit::{Judge, JudgeVersion, KeyValue, Op, golden, report};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

type Row = BTreeMap<Vec<u8>, Vec<u8>>;
type State = BTreeMap<Vec<u8>, Row>;

const TABLE: FileNumber = FileNumber(9);
const BLOBS: FileNumber = FileNumber(10);

/// The golden table and its blob file, named by a MANIFEST as after RocksDB's flush.
fn directory(dir: &Path) {
    let source = |extension| golden::path(&format!("sst/v7_db_blobindex_entities.{extension}"));
    for (from, to) in [(source("sst"), "000009.sst"), (source("blob"), "000010.blob")] {
        copy(&from, &dir.join(to));
    }
    let seq = |n| SeqNum::new(n).unwrap();
    let key = |name: &[u8], n, value_type| InternalKeyBuf::new(name, Trailer::new(seq(n), value_type));
    let bounds = (key(b"b1", 1, ValueType::Put), key(b"gone", 6, ValueType::Delete));
    let mut table = NewFile::new(TABLE, 1594, bounds, (seq(1), seq(6)));
    table.oldest_blob_file = BLOBS;
    table.epoch = 1;
    let fs = Env::os().unwrap().fs;
    let manifest = dir.join("MANIFEST-000005");
    let log = LogWriter::create(Arc::clone(&fs), &manifest, FileNumber(5), Framing::Legacy).unwrap();
    let edits = [
        VersionEdit { comparator: Some("leveldb.BytewiseComparator".into()), ..VersionEdit::default() },
        VersionEdit {
            log_number: Some(FileNumber(8)),
            prev_log_number: Some(FileNumber(0)),
            next_file: Some(FileNumber(11)),
            last_seq: Some(seq(6)),
            added: vec![(Level(0), table)],
            // Three records: each has 32 bytes and a two-byte key in addition to its value.
            blob_added: vec![BlobAddition { number: BLOBS, count: 3, bytes: 417, ..BlobAddition::default() }],
            ..VersionEdit::default()
        },
    ];
    for edit in edits {
        log.append(&edit.to_bytes(), true).unwrap();
    }
    fs.create(&dir.join("CURRENT")).unwrap().write_at(b"MANIFEST-000005\n", 0).unwrap();
    // The WAL file that the database needs.
    fs.create(&dir.join("000008.log")).unwrap();
}

fn copy(from: &Path, to: &Path) {
    let fs = Env::os().unwrap().fs;
    let file = fs.open_read(from).unwrap();
    let mut bytes = vec![0; usize::try_from(file.len()).unwrap()];
    file.read_exact_at(&mut bytes, 0).unwrap();
    fs.create(to).unwrap().write_at(&bytes, 0).unwrap();
}

fn open(dir: &Path) -> Db {
    let family =
        FamilyOptions { merge_operator: standard_operator("stringappend"), ..FamilyOptions::default() };
    let options = DbOptions { format_level: FormatLevel::V11, ..DbOptions::default() };
    Db::open(Env::os().unwrap(), dir, options, vec![], family).unwrap()
}

fn contents(db: &Db) -> State {
    let family = db.family("default").unwrap();
    let mut it = db.iter(&family, KeyBounds::default(), ReadOptions::default()).unwrap();
    let mut state = State::new();
    it.first().unwrap();
    while let Some((key, value)) = it.entry() {
        let columns = it.columns().unwrap().unwrap();
        assert_eq!(columns.default_column().unwrap_or_default(), value);
        let how = ReadOptions::default();
        assert_eq!(db.get(&family, key, how).unwrap().as_deref(), Some(value));
        assert_eq!(db.get_entity(&family, key, how).unwrap().as_ref(), Some(&columns));
        let row = columns.iter().map(|(name, value)| (name.to_vec(), value.to_vec())).collect();
        state.insert(key.to_vec(), row);
        it.next().unwrap();
    }
    state
}

fn row(columns: &[(&str, &[u8])]) -> Row {
    columns.iter().map(|(name, value)| (name.as_bytes().to_vec(), value.to_vec())).collect()
}

/// The state that the table's listing shows.
fn listed() -> State {
    let numbers: Vec<u8> = (0..=255).collect();
    State::from([
        (b"b1".to_vec(), row(&[("", &[b'x'; 30])])),
        (b"b2".to_vec(), row(&[("", &b"blob-value ".repeat(20))])),
        (b"b3".to_vec(), row(&[("", &numbers)])),
        (b"e1".to_vec(), row(&[("", b"default-col"), ("attr1", b"v1"), ("attr2", b"")])),
        (b"e2".to_vec(), row(&[("city", b"Oslo"), ("note", &[b'N'; 90])])),
    ])
}

/// RocksDB reads a copy before and after its own compaction; then this engine reads it again.
fn judged(dir: &Path, state: &State, what: &str) -> Result<(), JudgeError> {
    let other = tempfile::tempdir().unwrap();
    copy_flat(dir, other.path()).unwrap();
    let default = |row: &Row| row.get(&b""[..]).cloned().unwrap_or_default();
    let want: Vec<KeyValue> = state.iter().map(|(key, row)| (key.clone(), default(row))).collect();
    let mut judge = Judge::spawn(JudgeVersion::V11)?;
    let options = "merge_operator=stringappend;disable_auto_compactions=true";
    judge.open(other.path(), Opening::Existing, options)?;
    assert_eq!(judge.dump("default")?, want, "{what}");
    judge.apply(&[Op::Compact { family: "default".into() }])?;
    assert_eq!(judge.dump("default")?, want, "{what}, compacted by RocksDB");
    judge.close()?;
    assert_eq!(contents(&open(other.path())), *state, "{what}, compacted by RocksDB, read by us");
    Ok(())
}

#[test]
fn blobs_and_entities_of_rocksdb_are_merged_into_and_compacted() {
    let _readers = crate::beside_others();
    let dir = tempfile::tempdir().unwrap();
    directory(dir.path());
    let mut state = listed();
    let db = open(dir.path());
    assert_eq!(contents(&db), state);
    let mut batch = WriteBatch::new();
    for key in [&b"b1"[..], b"b2", b"e1", b"e2", b"gone", b"new"] {
        batch.merge(FamilyId::DEFAULT, key, b"more").unwrap();
        let default = state.entry(key.to_vec()).or_default();
        // A merge into an entity without the default column finds the empty value; a merge into a deleted key finds
        // none.
        let merged = match default.get(&b""[..]) {
            Some(value) => [value, &b",more"[..]].concat(),
            None if default.is_empty() => b"more".to_vec(),
            None => b",more".to_vec(),
        };
        default.insert(vec![], merged);
    }
    db.write(&mut batch, WriteOptions::default()).unwrap();
    assert_eq!(contents(&db), state, "over the memtable");
    let family = db.family("default").unwrap();
    db.flush(std::slice::from_ref(&family)).unwrap();
    assert_eq!(contents(&db), state, "flushed");
    let flushed = tempfile::tempdir().unwrap();
    // No file is removed during the copy.
    db.wait_for_background().unwrap();
    copy_flat(dir.path(), flushed.path()).unwrap();
    db.compact_range(&family, None, None).unwrap();
    assert_eq!(contents(&db), state, "compacted");
    db.close().unwrap();
    assert_eq!(contents(&open(dir.path())), state, "opened again");
    let judge = || {
        judged(flushed.path(), &state, "flushed by us")?;
        judged(dir.path(), &state, "compacted by us")
    };
    match judge() {
        Err(JudgeError::Skip(skip)) => {
            skip.announce("blobs_and_entities_of_rocksdb_are_merged_into_and_compacted");
        }
        Err(e) => panic!("{e}"),
        Ok(()) => report::figure(&format!(
            "blobs, entities and operands of RocksDB 11.8.1: {} keys, {} columns, flushed and compacted by us, read and \
             compacted by RocksDB, 0 differences",
            state.len(),
            state.values().map(BTreeMap::len).sum::<usize>()
        )),
    }
}
