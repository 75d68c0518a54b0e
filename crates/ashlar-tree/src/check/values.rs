//! Checks the entries of a table beyond their order: sequence numbers that readers can see, values that decode, and
//! blob references that lead to a record.
//!
//! A blob reference may lead to a place in a blob file of the version where no record is. Then either the reference or
//! the file is wrong. The check decides after it has read the whole blob file: if the file is sound, the reference is
//! wrong.

use super::family::{Family, Wrong, name};
use super::report::KeySpan;
use crate::version::FileMeta;
use ashlar_base::{Error, FileNumber, InternalKey, Result, SeqNum, ValueType};
use ashlar_blob::{BlobReader, blob_places};
use ashlar_format::blob::{BlobFooter, BlobHeader, BlobIndex, BlobPlace};
use ashlar_format::filename::FileKind;
use ashlar_format::value_suffix::split_preferred;
use ashlar_table::TableReader;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The check of the entries of one table.
pub(super) struct Values<'f> {
    family: &'f Family<'f>,
    file: &'f FileMeta,
    table: &'f TableReader,
    unseen: Option<Wrong>,
    undecoded: Option<Wrong>,
    readers: BTreeMap<FileNumber, Option<Arc<BlobReader>>>,
}

impl<'f> Values<'f> {
    pub(super) fn new(family: &'f Family<'f>, file: &'f FileMeta, table: &'f TableReader) -> Values<'f> {
        Values { family, file, table, unseen: None, undecoded: None, readers: BTreeMap::new() }
    }

    /// Checks the next entry.
    pub(super) fn entry(&mut self, key: InternalKey<'_>, value: &[u8]) {
        let (user_key, trailer) = key.split();
        self.sequence(user_key, trailer.seq());
        let Some(value_type) = trailer.value_type() else { return };
        if let Err(e) = self.value(user_key, value_type, value) {
            let (_, keys) = self.undecoded.get_or_insert_with(|| (e, Vec::new()));
            name(keys, user_key);
        }
    }

    /// For keys with timestamps, compactions of RocksDB 7.8 write sequence number 0 to the MANIFEST and keep the old
    /// one in the table.
    fn sequence(&mut self, user_key: &[u8], seq: SeqNum) {
        let known = self.file.file.largest_seq;
        let stamped = self.family.version.tables().order().timestamp_len() > 0;
        if seq > known && !stamped {
            let text =
                format!("an entry has sequence {seq}, above {known}, which the MANIFEST has for the table");
            let e = Error::corruption(text);
            let (_, keys) = self.unseen.get_or_insert_with(|| (e, Vec::new()));
            name(keys, user_key);
        }
    }

    fn value(&mut self, user_key: &[u8], value_type: ValueType, value: &[u8]) -> Result<()> {
        match value_type {
            ValueType::TimedPut => split_preferred(value).map(drop).map_err(|m| m.into_error()),
            ValueType::BlobIndex | ValueType::Entity => {
                if value_type == ValueType::BlobIndex
                    && !matches!(BlobIndex::decode(value), Ok(BlobIndex::Blob(_)) | Err(_))
                {
                    return Err(Error::not_supported("blob indexes with expirations, of a stacked BlobDB"));
                }
                let mut wrong = None;
                blob_places(value_type, value, |place| {
                    if wrong.is_none() {
                        wrong = self.place(user_key, &place).err();
                    }
                })?;
                wrong.map_or(Ok(()), Err)
            }
            _ => Ok(()),
        }
    }

    fn place(&mut self, user_key: &[u8], place: &BlobPlace) -> Result<()> {
        let blobs = self.family.version.blobs();
        let Some(file) = blobs.files().get(&place.file) else {
            // An open with such values is read-only.
            if let Some(reader) = blobs.open_unnamed(place.file)? {
                return reader.check_place(user_key, place);
            }
            let text =
                format!("a value is said to be in blob file {}, which is not in the MANIFEST", place.file);
            return Err(Error::corruption(text));
        };
        let len = file.added.bytes.saturating_add((BlobHeader::LEN + BlobFooter::LEN) as u64);
        if place.record_start(user_key.len(), len).is_none() {
            let text = format!(
                "a value is said to be at offset {} of blob file {}, with {} bytes, where no record can be",
                place.offset, place.file, place.size
            );
            return Err(Error::corruption(text));
        }
        let reader = self.readers.entry(place.file).or_insert_with(|| {
            let path = self.family.dir.join(FileKind::Blob(place.file).name());
            let opened = self.family.fs.open_read(&path);
            opened.and_then(|opened| BlobReader::open(opened, place.file, None, Some(file.added.bytes))).ok()
        });
        // A file that does not open is reported as a separate damage.
        if let Some(e) = reader.as_ref().and_then(|reader| reader.check_place(user_key, place).err())
            && e.is_corruption()
        {
            let table = self.table.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
            self.family.suspects.add(place.file, table, e, user_key);
        }
        Ok(())
    }

    /// What is wrong.
    pub(super) fn finish(mut self) -> Vec<Wrong> {
        let known = self.file.file.largest_seq;
        let over = |f: &ashlar_base::range_del::FragmentRef<'_>| f.newest(SeqNum::MAX) > Some(known);
        if let Some(f) = self.table.range_tombstones().fragments().find(over) {
            let e = Error::corruption(format!(
                "a range tombstone has a sequence above {known}, which the MANIFEST has for the table"
            ));
            let (_, keys) = self.unseen.get_or_insert_with(|| (e, Vec::new()));
            keys.push(KeySpan { from: f.begin.to_vec(), to: f.end.to_vec() });
        }
        self.unseen.into_iter().chain(self.undecoded).collect()
    }
}
