//! Reads values that are not in their table entry as they are: values in blob files, in wide-column entities, or with
//! trailing data. Also holds the blob files of a version.
//!
//! 1. A plain read of an entity returns its default column, or an empty value if the entity has none.
//! 2. The first read of a value opens its blob file. The file is closed with the last version that contains it.
//! 3. Every read verifies the record's key, lengths and checksum. A read may leave this out, except in a file that no
//!    version contains.
//! 4. A version contains the blob files that its tables may point to. They follow from the oldest blob file that each
//!    table names, and from the known garbage of each blob file. No version edit removes a blob file.
//!
//! Source: RocksDB `db/blob/blob_source.cc`, `db/blob/blob_fetcher.cc`, `table/get_context.cc`,
//! `db/version_builder.cc`.

use crate::columns::Columns;
use ashlar_base::stats::perf::{self, Metric};
use ashlar_base::stats::{Statistics, Ticker};
use ashlar_base::{Error, FileNumber, Result, ValueType};
use ashlar_blob::{BlobAmount, BlobReader, LiveBlobFile, obsolete_files};
use ashlar_env::Fs;
use ashlar_format::blob::{BlobIndex, BlobPlace};
use ashlar_format::entity::{ColumnValue, Entity};
use ashlar_format::filename::FileKind;
use ashlar_format::value_suffix::split_preferred;
use ashlar_format::version_edit::{BlobAddition, BlobGarbage};
use ashlar_table::ReadHow;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

/// A blob file as the MANIFEST describes it. Clones share the open file.
#[derive(Clone, Debug)]
pub struct BlobFile {
    /// The MANIFEST record that added the file.
    pub added: BlobAddition,
    /// All garbage reported since then, as one record.
    pub garbage: Option<BlobGarbage>,
    opened: Arc<OnceLock<Arc<BlobReader>>>,
}

impl BlobFile {
    /// The file's contents, and its garbage.
    pub fn live(&self) -> LiveBlobFile {
        let amount = |count, bytes| BlobAmount { count, bytes };
        LiveBlobFile {
            number: self.added.number,
            total: amount(self.added.count, self.added.bytes),
            garbage: self.garbage.as_ref().map(|g| amount(g.count, g.bytes)).unwrap_or_default(),
        }
    }
}

/// The blob files of a version by number.
pub type BlobMap = BTreeMap<FileNumber, BlobFile>;

/// Adds a file to the map.
///
/// # Errors
/// `Corruption`: the file is in the map already.
pub fn add_blob_file(map: &mut BlobMap, added: &BlobAddition) -> Result<()> {
    let file = BlobFile { added: added.clone(), garbage: None, opened: Arc::default() };
    match map.insert(added.number, file) {
        None => Ok(()),
        Some(_) => {
            let text = format!("version edit adds blob file {}, which is there already", added.number);
            Err(Error::corruption(text))
        }
    }
}

/// Adds garbage to a file of the map.
///
/// # Errors
/// `Corruption`: the file is not in the map, or has fewer bytes than the garbage.
pub fn add_blob_garbage(map: &mut BlobMap, more: &BlobGarbage) -> Result<()> {
    let wrong = |what: &str| {
        Error::corruption(format!("version edit reports garbage in blob file {}, {what}", more.number))
    };
    let file = map.get_mut(&more.number).ok_or_else(|| wrong("which is not there"))?;
    let known = file.live();
    let sum = BlobAmount {
        count: known.garbage.count.saturating_add(more.count),
        bytes: known.garbage.bytes.saturating_add(more.bytes),
    };
    if sum.count > known.total.count || sum.bytes > known.total.bytes {
        return Err(wrong("more than is in it"));
    }
    let garbage = file.garbage.get_or_insert_with(|| more.clone());
    (garbage.count, garbage.bytes) = (sum.count, sum.bytes);
    Ok(())
}

/// Drops the files that no table can need, given the oldest file that each table names.
pub fn drop_obsolete(map: &mut BlobMap, linked: &BTreeSet<FileNumber>) {
    if map.is_empty() {
        return;
    }
    let live: Vec<LiveBlobFile> = map.values().map(BlobFile::live).collect();
    for number in obsolete_files(&live, linked) {
        map.remove(&number);
    }
}

/// The blob files of a version, opened as they are needed.
#[derive(Clone)]
pub struct BlobFiles {
    fs: Arc<dyn Fs>,
    dir: PathBuf,
    files: BlobMap,
    statistics: CountInto,
}

/// The statistics of a family's reads, once they are set.
pub type CountInto = Arc<OnceLock<Arc<Statistics>>>;

impl BlobFiles {
    /// These blob files in `dir`.
    pub fn new(fs: Arc<dyn Fs>, dir: PathBuf, files: BlobMap) -> BlobFiles {
        BlobFiles { fs, dir, files, statistics: CountInto::default() }
    }

    /// Sets the statistics of reads.
    pub fn counted_into(self, statistics: CountInto) -> BlobFiles {
        BlobFiles { statistics, ..self }
    }

    /// The files by number.
    pub fn files(&self) -> &BlobMap {
        &self.files
    }

    /// The result of a plain read of `user_key`, if the deciding entry has this type and holds `stored`.
    ///
    /// # Errors
    /// `Corruption`: the stored bytes or the blob file are damaged, or the blob file is missing. `Io`: the file cannot
    /// be read. `NotSupported`: blob indexes with expirations, blobs inside tables, entities of a newer version.
    /// `Busy(NotCached)`, `TimedOut`: a blob file is needed, and `how` forbids it.
    pub fn value<'a>(
        &self,
        user_key: &[u8],
        value_type: Option<ValueType>,
        stored: &'a [u8],
        how: &ReadHow,
    ) -> Result<Cow<'a, [u8]>> {
        let at_key = |e: Error| e.hint(format!("The value of key '{}' is affected", user_key.escape_ascii()));
        match value_type {
            Some(ValueType::BlobIndex) => match BlobIndex::decode(stored).map_err(|m| m.into_error())? {
                BlobIndex::Blob(place) => self.blob(user_key, &place, how).map(Cow::Owned).map_err(at_key),
                _ => Err(at_key(Error::not_supported("blob indexes with expirations, of a stacked BlobDB"))),
            },
            Some(ValueType::Entity) => {
                let entity = Entity::decode(stored).map_err(|e| at_key(e.into_error()))?;
                match entity.default_column() {
                    None => Ok(Cow::Borrowed(&[])),
                    Some(ColumnValue::Inline(value)) => Ok(Cow::Borrowed(value)),
                    Some(ColumnValue::Blob(place)) => {
                        self.blob(user_key, &place, how).map(Cow::Owned).map_err(at_key)
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

    /// The columns of `user_key` when the entry that counts has this type and holds `stored`: those of an entity; of any
    /// other value the default column alone.
    ///
    /// # Errors
    /// As [`BlobFiles::value`].
    pub fn columns(
        &self,
        user_key: &[u8],
        value_type: Option<ValueType>,
        stored: &[u8],
        how: &ReadHow,
    ) -> Result<Columns> {
        if value_type != Some(ValueType::Entity) {
            return Ok(Columns::of_value(&self.value(user_key, value_type, stored, how)?));
        }
        let at_key =
            |e: Error| e.hint(format!("The columns of key '{}' are affected", user_key.escape_ascii()));
        let entity = Entity::decode(stored).map_err(|e| at_key(e.into_error()))?;
        let columns = entity.columns().iter().map(|column| {
            let value = match &column.value {
                ColumnValue::Inline(value) => value.to_vec(),
                ColumnValue::Blob(place) => self.blob(user_key, place, how).map_err(at_key)?,
            };
            Ok((column.name.to_vec(), value))
        });
        columns.collect::<Result<_>>().map(Columns::new)
    }

    /// The value of `user_key` at this place in a blob file.
    ///
    /// # Errors
    /// As [`BlobFiles::value`].
    /// # Cost
    /// One read of the whole record.
    pub fn blob(&self, user_key: &[u8], place: &BlobPlace, how: &ReadHow) -> Result<Vec<u8>> {
        if place.file == FileNumber(0) {
            return Err(Error::not_supported("blobs inside tables"));
        }
        let path = || self.dir.join(FileKind::Blob(place.file).name());
        let value = how.in_file(path, || {
            let reader = self.reader(place.file, place.offset)?;
            let _step = perf::time(Metric::BlobReadTime);
            // A record of a file that may still be written is known by its checksum only.
            reader.get(user_key, place, how.verify || !self.files.contains_key(&place.file))
        })?;
        let bytes = place.record_len(user_key.len());
        perf::add(Metric::BlobReadCount, 1);
        perf::add(Metric::BlobReadByte, bytes);
        if let Some(statistics) = self.statistics.get() {
            statistics.add(Ticker::BlobdbBlobFileBytesRead, bytes);
        }
        Ok(value)
    }

    /// Opens every file now, so that the reads still work after another process unlinks the files. Returns the files that
    /// cannot be opened: `Io`, `Corruption`.
    pub fn open_all(&self) -> Vec<(FileNumber, Error)> {
        let failed = |n: &FileNumber| self.reader(*n, 0).err().map(|e| (*n, e));
        self.files.keys().filter_map(failed).collect()
    }

    /// Opens a file again and reads all of it: checksums, keys, footer. Returns the number of its blobs.
    ///
    /// # Errors
    /// `Corruption`, `Io`.
    pub fn verify(&self, number: FileNumber) -> Result<u64> {
        let file = self.fs.open_read(&self.dir.join(FileKind::Blob(number).name()))?;
        let bytes = self.files.get(&number).map(|known| known.added.bytes);
        Ok(BlobReader::open(file, number, None, bytes)?.verify()?.count)
    }

    /// A blob file in the directory that is not in the version and that another process may still write. `None`: there
    /// is no such file, or it does not begin as a blob file.
    ///
    /// # Errors
    /// `Io`.
    pub fn open_unnamed(&self, number: FileNumber) -> Result<Option<Arc<BlobReader>>> {
        let opened = match self.fs.open_read(&self.dir.join(FileKind::Blob(number).name())) {
            Err(e) if e.is_not_found() => return Ok(None),
            opened => opened?,
        };
        match BlobReader::open_unclosed(opened, number) {
            Err(e) if e.is_corruption() => Ok(None),
            reader => reader.map(Some),
        }
    }

    /// Has values of the file read through `reader`, for a file that does not open as the version describes it. Does nothing if the
    /// file is open, or not in the version.
    pub fn read_through(&self, reader: &Arc<BlobReader>) {
        if let Some(file) = self.files.get(&reader.number()) {
            let _ = file.opened.set(Arc::clone(reader));
        }
    }

    /// The open file, for the record at `offset`. Two threads may open it at the same time; one of the two stays.
    fn reader(&self, number: FileNumber, offset: u64) -> Result<Arc<BlobReader>> {
        let path = || self.dir.join(FileKind::Blob(number).name());
        let missing =
            |what: &str| Error::corruption(what).at(&self.fs.real_path(&path()), offset).damaged_file_hint();
        let Some(file) = self.files.get(&number) else {
            // After a crash, direct writes of RocksDB leave tables with such values.
            if let Some(reader) = self.open_unnamed(number)? {
                return Ok(reader);
            }
            return Err(missing("an entry points into a blob file that is not in the version"));
        };
        if let Some(reader) = file.opened.get() {
            return Ok(Arc::clone(reader));
        }
        let opened = self.fs.open_read(&path()).map_err(|e| match e.is_not_found() {
            true => missing("the blob file that an entry points into is missing").because(e),
            false => e,
        })?;
        let reader = BlobReader::open(opened, number, None, Some(file.added.bytes))?;
        Ok(Arc::clone(file.opened.get_or_init(|| reader)))
    }
}

impl fmt::Debug for BlobFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.files.keys()).finish()
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
        let summary = writer.finish().unwrap();
        let mut map = BlobMap::new();
        add_blob_file(&mut map, &summary.addition()).unwrap();
        let gone = BlobAddition { number: FileNumber(8), count: 1, bytes: 50, ..BlobAddition::default() };
        add_blob_file(&mut map, &gone).unwrap();
        let blobs = BlobFiles::new(Arc::clone(&env.fs), dir.to_path_buf(), map);
        let value = |value_type, stored: &[u8]| {
            blobs.value(b"k", Some(value_type), stored, ReadHow::plain()).map(|value| value.into_owned())
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
        let e = value(ValueType::BlobIndex, &blob(missing)).unwrap_err();
        assert!(e.is_corruption() && e.to_string().contains("000008.blob"), "{e}");
        let unknown = BlobPlace { file: FileNumber(9), ..place };
        let e = value(ValueType::BlobIndex, &blob(unknown)).unwrap_err();
        assert!(e.is_corruption() && e.to_string().contains("000009.blob"), "{e}");
        let other = blobs
            .value(b"other key", Some(ValueType::BlobIndex), &blob(place), ReadHow::plain())
            .unwrap_err();
        assert!(other.is_corruption() && other.to_string().contains("000007.blob"), "{other}");
    }

    #[test]
    fn the_map_takes_what_fits_and_forgets_what_is_garbage() {
        let added = |number, count| BlobAddition {
            number: FileNumber(number),
            count,
            bytes: count * 100,
            ..BlobAddition::default()
        };
        let garbage = |number, count| BlobGarbage {
            number: FileNumber(number),
            count,
            bytes: count * 100,
            ..BlobGarbage::default()
        };
        let mut map = BlobMap::new();
        for number in [3, 5, 7] {
            add_blob_file(&mut map, &added(number, 4)).unwrap();
        }
        assert!(add_blob_file(&mut map.clone(), &added(5, 1)).unwrap_err().is_corruption());
        assert!(add_blob_garbage(&mut map, &garbage(4, 1)).unwrap_err().is_corruption());
        for count in [1, 2] {
            add_blob_garbage(&mut map, &garbage(5, count)).unwrap();
        }
        assert!(add_blob_garbage(&mut map.clone(), &garbage(5, 2)).unwrap_err().is_corruption());
        assert_eq!(map[&FileNumber(5)].live().garbage, BlobAmount { count: 3, bytes: 300 });
        add_blob_garbage(&mut map, &garbage(5, 1)).unwrap();
        let kept = |linked: &[u64]| {
            let mut map = map.clone();
            drop_obsolete(&mut map, &linked.iter().copied().map(FileNumber).collect());
            map.into_keys().map(|n| n.0).collect::<Vec<_>>()
        };
        assert_eq!(kept(&[3]), [3, 7]);
        assert_eq!(kept(&[5]), [5, 7]);
        assert_eq!(kept(&[]), [] as [u64; 0]);
    }
}
