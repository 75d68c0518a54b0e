//! Values that their entry does not hold as they are: in blob files, in entities, with something behind them.
//!
//! 1. A plain read of an entity answers its default column; without one, the empty value.
//! 2. A blob file is opened with the first value that is asked of it, and stays open as long as the family's tables may
//!    be read: whoever holds those may still need it.
//! 3. Every record is verified: its key, its lengths and its checksum.
//!
//! Source: RocksDB `db/blob/blob_source.cc`, `db/blob/blob_fetcher.cc`, `table/get_context.cc`.

use ashlar_base::{Error, FileNumber, Result, ValueType};
use ashlar_blob::BlobReader;
use ashlar_env::Fs;
use ashlar_format::blob::{BlobIndex, BlobPlace};
use ashlar_format::entity::{ColumnValue, Entity};
use ashlar_format::filename::FileKind;
use ashlar_format::value_suffix::split_preferred;
use ashlar_sync::{Rank, RwLock};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// The blob files of a family, opened as they are needed.
#[derive(Debug)]
pub struct BlobFiles {
    fs: Arc<dyn Fs>,
    dir: PathBuf,
    open: RwLock<BTreeMap<FileNumber, Arc<BlobReader>>>,
}

impl BlobFiles {
    /// Blob files in `dir`; none is opened yet.
    pub fn new(fs: Arc<dyn Fs>, dir: PathBuf) -> BlobFiles {
        BlobFiles { fs, dir, open: RwLock::new(Rank::Cache, BTreeMap::new()) }
    }

    /// What a plain read of `user_key` answers when the entry that counts has this type and holds `stored`.
    ///
    /// # Errors
    /// `Corruption`: the stored bytes, or the blob file they point to, are wrong. `Io`: the file cannot be read.
    /// `NotSupported`: blob indexes with expirations, blobs inside tables, entities of a newer version.
    pub fn value<'a>(
        &self,
        user_key: &[u8],
        value_type: Option<ValueType>,
        stored: &'a [u8],
    ) -> Result<Cow<'a, [u8]>> {
        let at_key = |e: Error| e.hint(format!("The value of key '{}' is affected", user_key.escape_ascii()));
        match value_type {
            Some(ValueType::BlobIndex) => match BlobIndex::decode(stored).map_err(|m| m.into_error())? {
                BlobIndex::Blob(place) => self.blob(user_key, &place).map(Cow::Owned).map_err(at_key),
                _ => Err(at_key(Error::not_supported("blob indexes with expirations, of a stacked BlobDB"))),
            },
            Some(ValueType::Entity) => {
                let entity = Entity::decode(stored).map_err(|e| at_key(e.into_error()))?;
                match entity.default_column() {
                    None => Ok(Cow::Borrowed(&[])),
                    Some(ColumnValue::Inline(value)) => Ok(Cow::Borrowed(value)),
                    Some(ColumnValue::Blob(place)) => {
                        self.blob(user_key, &place).map(Cow::Owned).map_err(at_key)
                    }
                }
            }
            Some(ValueType::TimedPut) => match split_preferred(stored) {
                Ok((value, _)) => Ok(Cow::Borrowed(value)),
                Err(m) => Err(at_key(m.into_error())),
            },
            _ => Ok(Cow::Borrowed(stored)),
        }
    }

    fn blob(&self, user_key: &[u8], place: &BlobPlace) -> Result<Vec<u8>> {
        if place.file == FileNumber(0) {
            return Err(Error::not_supported("blobs inside tables"));
        }
        self.reader(place.file)?.get(user_key, place, true)
    }

    /// The opened file. Concurrent first uses may open it twice; one stays.
    fn reader(&self, number: FileNumber) -> Result<Arc<BlobReader>> {
        if let Some(reader) = self.open.read().get(&number) {
            return Ok(Arc::clone(reader));
        }
        let file = self.fs.open_read(&self.dir.join(FileKind::Blob(number).name()))?;
        let opened = BlobReader::open(file, number, None, None)?;
        Ok(Arc::clone(self.open.write().entry(number).or_insert(opened)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ashlar_base::{ErrorKind, FamilyId};
    use ashlar_blob::{BlobOptions, BlobWriter};
    use ashlar_env::Env;
    use std::path::Path;

    fn blob(place: BlobPlace) -> Vec<u8> {
        let mut index = Vec::new();
        BlobIndex::Blob(place).encode(&mut index);
        index
    }

    #[test]
    fn every_wrapping_is_taken_off() {
        let env = Env::mem();
        let dir = Path::new("/db");
        env.fs.create_dir_all(dir).unwrap();
        let file = env.fs.create(&dir.join("000007.blob")).unwrap();
        let mut writer =
            BlobWriter::new(file, FileNumber(7), FamilyId::DEFAULT, &BlobOptions::default()).unwrap();
        let place = writer.add(b"k", b"far away").unwrap();
        writer.finish().unwrap();
        let blobs = BlobFiles::new(Arc::clone(&env.fs), dir.to_path_buf());
        let value = |value_type, stored: &[u8]| {
            blobs.value(b"k", Some(value_type), stored).map(|value| value.into_owned())
        };
        for _ in 0..2 {
            assert_eq!(value(ValueType::BlobIndex, &blob(place)).unwrap(), b"far away");
        }
        assert_eq!(value(ValueType::Put, b"plain").unwrap(), b"plain");
        assert_eq!(value(ValueType::TimedPut, b"timed\0\0\0\0\0\0\0\x01").unwrap(), b"timed");
        assert_eq!(value(ValueType::Entity, b"\x01\x02\x00\x01\x01a\x01dv").unwrap(), b"d");
        assert_eq!(value(ValueType::Entity, b"\x01\x01\x01a\x01v").unwrap(), b"");
        let mut entity = Vec::new();
        let columns = vec![ashlar_format::entity::Column { name: b"", value: ColumnValue::Blob(place) }];
        Entity::new(columns).unwrap().encode(&mut entity);
        assert_eq!(value(ValueType::Entity, &entity).unwrap(), b"far away");

        let kind = |value_type, stored: &[u8]| value(value_type, stored).unwrap_err().kind();
        assert_eq!(kind(ValueType::TimedPut, b"short"), ErrorKind::Corruption);
        assert_eq!(kind(ValueType::BlobIndex, b""), ErrorKind::Corruption);
        assert_eq!(kind(ValueType::BlobIndex, b"\0\0inline"), ErrorKind::NotSupported);
        assert_eq!(kind(ValueType::Entity, b"\x03\x00"), ErrorKind::NotSupported);
        let inside = BlobPlace { file: FileNumber(0), ..place };
        assert_eq!(kind(ValueType::BlobIndex, &blob(inside)), ErrorKind::NotSupported);
        let missing = BlobPlace { file: FileNumber(8), ..place };
        assert!(value(ValueType::BlobIndex, &blob(missing)).unwrap_err().is_not_found());
        let other = blobs.value(b"other key", Some(ValueType::BlobIndex), &blob(place)).unwrap_err();
        assert!(other.is_corruption() && other.to_string().contains("000007.blob"), "{other}");
    }
}
