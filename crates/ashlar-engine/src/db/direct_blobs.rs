//! Values in blob files that no MANIFEST names yet.
//!
//! With `enable_blob_direct_write` RocksDB writes a large value into a blob file at once; its log holds only the place. The
//! MANIFEST names the file with the flush of the memtable. RocksDB does not recover such values behind a crash. A replay
//! here takes each value from the file and goes on with a plain one:
//!
//! 1. A file that the version has is left to the version.
//! 2. The record of the value is verified: its key, its lengths and its checksum. The file may have no footer yet.
//! 3. A place where no such record stands is kept as it is: a read of that key answers `Corruption` with the file's name.
//!    The file stays in `lost/` then.
//!
//! Source: RocksDB `db/blob/blob_file_partition_manager.h`, `include/rocksdb/advanced_options.h`.

use ashlar_base::{ErrorKind, FileNumber, Result, ValueType};
use ashlar_blob::BlobReader;
use ashlar_format::blob::{BlobIndex, BlobPlace};
use ashlar_format::entity::{Column, ColumnValue, Entity};
use ashlar_memtable::Op;
use ashlar_tree::blobs::BlobFiles;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

/// The blob files that a replay found beside the versions.
#[derive(Debug, Default)]
pub(super) struct DirectBlobs {
    /// Each by its number; `None`: there is none that can be read.
    files: BTreeMap<FileNumber, Option<Arc<BlobReader>>>,
    left: bool,
}

impl DirectBlobs {
    /// What `op` puts, when a part of that stands in a file that `blobs`, those of the family's version, does not have: its
    /// type and its value without places.
    ///
    /// # Errors
    /// `Io`: a file cannot be read. What is damaged is no error.
    pub(super) fn resolve(&mut self, blobs: &BlobFiles, op: &Op<'_>) -> Result<Option<(ValueType, Vec<u8>)>> {
        match op.value_type {
            ValueType::BlobIndex => {
                let Ok(BlobIndex::Blob(place)) = BlobIndex::decode(op.value) else { return Ok(None) };
                let value = self.value(blobs, op.key, &place)?;
                Ok(value.map(|value| (ValueType::Put, value)))
            }
            ValueType::Entity => match Entity::decode(op.value) {
                Ok(entity) => self.entity(blobs, op.key, &entity),
                Err(_) => Ok(None),
            },
            _ => Ok(None),
        }
    }

    /// Whether a file has to be kept: an entry points into it.
    pub(super) fn left(&self) -> bool {
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

    /// The value of `key` at `place`; `None`: its file is in the version, or no such record stands there.
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
