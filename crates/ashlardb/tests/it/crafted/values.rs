//! Entries that are whole and say what cannot be.

use super::judge;
use super::kit::{Directory, TableFile, block, index, key, put};
use ashlar_base::bytes::{put_varint32, put_varint64};
use ashlar_base::{FileNumber, InternalKeyBuf, ValueType};
use ashlar_format::blob::{BlobFooter, BlobHeader, BlobRecordHeader};
use ashlar_format::filename::FileKind;
use ashlar_format::version_edit::BlobAddition;

const BLOB: u64 = 8;

/// A table whose only entry is `k`, and a blob file with one record, of key `other`.
fn directory(entry: &InternalKeyBuf, value: &[u8]) -> Directory {
    let mut file = TableFile::new();
    let handle = file.raw(&block(&[(entry.clone(), value)]));
    let root = file.raw(&index(&[(put("k", 1), handle)]));
    let mut dir = Directory::new();
    dir.table(7, 1, &file.finish(root), (put("k", 5), put("k", 1)), (1, 5));
    let (_, table) = dir.edit.added.first_mut().unwrap();
    table.oldest_blob_file = FileNumber(BLOB);
    let mut bytes = Vec::new();
    BlobHeader::default().encode(&mut bytes);
    let before = bytes.len();
    BlobRecordHeader::new(b"other", b"value").encode(&mut bytes);
    bytes.extend_from_slice(b"othervalue");
    let len = (bytes.len() - before) as u64;
    BlobFooter { count: 1, ..BlobFooter::default() }.encode(&mut bytes);
    dir.file(FileKind::Blob(FileNumber(BLOB)), &bytes);
    dir.edit.blob_added.push(BlobAddition {
        number: FileNumber(BLOB),
        count: 1,
        bytes: len,
        ..BlobAddition::default()
    });
    dir
}

fn blob_index(file: u64, offset: u64, size: u64) -> Vec<u8> {
    let mut value = vec![1];
    [file, offset, size].into_iter().for_each(|field| put_varint64(&mut value, field));
    value.push(0);
    value
}

fn is_damage(what: &str, entry: &InternalKeyBuf, value: &[u8]) {
    let verdict = judge(directory(entry, value).finish().path());
    assert!(verdict.of("check").starts_with("damage: 000007.sst"), "{what}: {verdict:#?}");
    assert!(verdict.of("check").contains("'k'"), "{what}: {verdict:#?}");
}

#[test]
fn a_blob_index_that_leads_nowhere_is_damage() {
    let entry = key(b"k", 1, ValueType::BlobIndex);
    let record = (BlobHeader::LEN + BlobRecordHeader::LEN + 5) as u64;
    let whole = blob_index(BLOB, record, 5);
    is_damage("cut short", &entry, &whole[..whole.len() - 2]);
    is_damage("of 2^63 bytes", &entry, &blob_index(BLOB, record, 1 << 63));
    is_damage("at offset 0", &entry, &blob_index(BLOB, 0, 5));
    is_damage("at the last offset", &entry, &blob_index(BLOB, u64::MAX, 5));
    is_damage("into a file that is not there", &entry, &blob_index(99, record, 5));
    is_damage("to the record of another key", &entry, &whole);
}

#[test]
fn an_entity_of_more_columns_than_bytes_is_damage() {
    let mut value = Vec::new();
    put_varint32(&mut value, 1);
    put_varint32(&mut value, 1 << 30);
    is_damage("columns", &key(b"k", 1, ValueType::Entity), &value);
}

/// Readers do not see such an entry: the newest version would be missing without a word.
#[test]
fn a_sequence_above_those_of_its_table_is_damage_and_a_repair_brings_the_entry_back() {
    let verdict = judge(directory(&put("k", 5000), b"v").finish().path());
    assert!(verdict.of("check").contains("an entry has sequence 5000, above 5"), "{verdict:#?}");
    assert_eq!((verdict.of("repair"), verdict.of("check after")), ("fine", "sound"), "{verdict:#?}");
    assert_eq!(verdict.of("after"), "2 entries", "{verdict:#?}");
}
