//! Values in blob files that no MANIFEST names.
//!
//! With `enable_blob_direct_write` RocksDB writes a large value directly into a blob file and logs only a reference.
//! The flush of the memtable adds the file to the MANIFEST. RocksDB does not recover such values after a crash. Replay
//! here reads each value from the blob file and stores it as a plain value:
//!
//! 1. References to a blob file of the version stay as they are.
//! 2. The record of the value is verified: its key, its lengths and its checksum. The file may lack a footer.
//! 3. A reference without a valid record is kept: a read of that key returns `Corruption` with the file's name. The
//!    file then stays in `lost/`.
//!
//! Source: RocksDB `db/blob/blob_file_partition_manager.h`, `include/rocksdb/advanced_options.h`.

use crate::blobs::BlobFiles;
use ashlar_base::{ErrorKind, FileNumber, Result, ValueType};
use ashlar_blob::BlobReader;
use ashlar_format::blob::{BlobIndex, BlobPlace};
use ashlar_format::entity::{Column, ColumnValue, Entity};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

/// The blob files that replay found and that no version has.
#[derive(Debug, Default)]
pub struct DirectBlobs {
    /// Blob files by number; `None`: no readable file exists.
    files: BTreeMap<FileNumber, Option<Arc<BlobReader>>>,
    left: bool,
}

impl DirectBlobs {
    /// Replaces the references in the entry `key` of type `kind` to blob files that are missing in `blobs`, the blob files of
    /// the family's version. Returns the resulting type and plain value; `None` if the entry has no such reference.
    ///
    /// # Errors
    /// `Io`: a file cannot be read. Damage is no error.
    pub fn resolve(
        &mut self,
        blobs: &BlobFiles,
        kind: ValueType,
        (key, value): (&[u8], &[u8]),
    ) -> Result<Option<(ValueType, Vec<u8>)>> {
        match kind {
            ValueType::BlobIndex => {
                let Ok(BlobIndex::Blob(place)) = BlobIndex::decode(value) else { return Ok(None) };
                let value = self.value(blobs, key, &place)?;
                Ok(value.map(|value| (ValueType::Put, value)))
            }
            ValueType::Entity => match Entity::decode(value) {
                Ok(entity) => self.entity(blobs, key, &entity),
                Err(_) => Ok(None),
            },
            _ => Ok(None),
        }
    }

    /// Whether a file must be kept because an entry still refers to it.
    pub fn left(&self) -> bool {
        self.left
    }

    fn entity(
        &mut self,
        blobs: &BlobFiles,
        key: &[u8],
        entity: &Entity<'_>,
    ) -> Result<Option<(ValueType, Vec<u8>)>> {
        let mut values = BTreeMap::new();
        for (at, column) in entity.columns().iter().enumerate() {
            if let ColumnValue::Blob(place) = &column.value
                && let Some(value) = self.value(blobs, key, place)?
            {
                values.insert(at, value);
            }
        }
        if values.is_empty() {
            return Ok(None);
        }
        let columns = entity.columns().iter().enumerate().map(|(at, column)| Column {
            name: column.name,
            value: values.get(&at).map_or(column.value, |value| ColumnValue::Inline(value)),
        });
        let Ok(plain) = Entity::new(columns.collect()) else { return Ok(None) };
        let mut bytes = Vec::new();
        plain.encode(&mut bytes);
        Ok(Some((ValueType::Entity, bytes)))
    }

    /// The value of `key` at `place`; `None` if the version has the file, or no valid record is at that place.
    fn value(&mut self, blobs: &BlobFiles, key: &[u8], place: &BlobPlace) -> Result<Option<Vec<u8>>> {
        if place.file == FileNumber(0) || blobs.files().contains_key(&place.file) {
            return Ok(None);
        }
        let file = match self.files.entry(place.file) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(blobs.open_unnamed(place.file)?),
        };
        let Some(reader) = file else {
            self.left = true;
            return Ok(None);
        };
        match reader.get(key, place, true) {
            Ok(value) => Ok(Some(value)),
            Err(e) if e.is_corruption() || e.kind() == ErrorKind::NotSupported => {
                self.left = true;
                Ok(None)
            }
            Err(e) => Err(e),
        }
    }
}
