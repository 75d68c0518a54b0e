//! Counts blobs that no table refers to any more, and finds the files that hold only such blobs.
//!
//! 1. For each blob file, a compaction counts the references that it reads and those that it writes. The difference
//!    became garbage. Blobs that the compaction itself wrote to new files count in no file.
//! 2. A file is *linked* when it is the oldest one that some table refers to. A table may refer to newer files too, so
//!    files above the smallest linked one stay until all their blobs are garbage.
//!
//! Source: RocksDB `db/blob/blob_garbage_meter.cc`, `db/version_builder.cc`.

use ashlar_base::{FileNumber, Result, ValueType};
use ashlar_format::blob::{BlobIndex, BlobPlace};
use ashlar_format::entity::{ColumnValue, Entity};
use ashlar_format::version_edit::BlobGarbage;
use std::collections::{BTreeMap, BTreeSet};

/// A number of blobs, and bytes of their records: header, key and stored value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlobAmount {
    /// The number of blobs.
    pub count: u64,
    /// The bytes of their records.
    pub bytes: u64,
}

impl BlobAmount {
    /// Adds the blob of a key of that length.
    pub fn add(&mut self, place: &BlobPlace, key_len: usize) {
        self.count = self.count.saturating_add(1);
        self.bytes = self.bytes.saturating_add(place.record_len(key_len));
    }

    fn less(self, other: BlobAmount) -> BlobAmount {
        BlobAmount {
            count: self.count.saturating_sub(other.count),
            bytes: self.bytes.saturating_sub(other.bytes),
        }
    }

    /// The MANIFEST record of this garbage; `None`: there is no garbage.
    fn of_file(self, number: FileNumber) -> Option<BlobGarbage> {
        let BlobAmount { count, bytes } = self;
        (count > 0).then(|| BlobGarbage { number, count, bytes, ..BlobGarbage::default() })
    }
}

/// Calls `each` with every place that an entry refers to.
///
/// # Errors
/// `Corruption`: a blob index or entity that does not decode. `NotSupported`: a version of entities not known here.
pub fn blob_places(value_type: ValueType, value: &[u8], mut each: impl FnMut(BlobPlace)) -> Result<()> {
    match value_type {
        ValueType::BlobIndex => {
            if let BlobIndex::Blob(place) = BlobIndex::decode(value).map_err(|m| m.into_error())? {
                each(place);
            }
        }
        ValueType::Entity => {
            let entity = Entity::decode(value).map_err(|e| e.into_error())?;
            for column in entity.columns() {
                if let ColumnValue::Blob(place) = column.value {
                    each(place);
                }
            }
        }
        _ => {}
    }
    Ok(())
}

/// Counts the blob references that a compaction reads and writes.
#[derive(Clone, Debug, Default)]
pub struct GarbageMeter {
    flows: BTreeMap<FileNumber, (BlobAmount, BlobAmount)>,
}

impl GarbageMeter {
    /// Counts an entry that the compaction read.
    ///
    /// # Errors
    /// `Corruption`: a blob index or entity that does not decode. `NotSupported`: a version of entities not known here.
    pub fn flow_in(&mut self, value_type: ValueType, user_key: &[u8], value: &[u8]) -> Result<()> {
        blob_places(value_type, value, |place| {
            self.flows.entry(place.file).or_default().0.add(&place, user_key.len());
        })
    }

    /// Counts an entry that the compaction wrote.
    ///
    /// # Errors
    /// As [`GarbageMeter::flow_in`].
    pub fn flow_out(&mut self, value_type: ValueType, user_key: &[u8], value: &[u8]) -> Result<()> {
        blob_places(value_type, value, |place| {
            if let Some((_, out)) = self.flows.get_mut(&place.file) {
                out.add(&place, user_key.len());
            }
        })
    }

    /// The garbage to add to each file in the MANIFEST.
    pub fn garbage(&self) -> Vec<BlobGarbage> {
        let each = self.flows.iter().map(|(number, (inflow, outflow))| (*number, inflow.less(*outflow)));
        each.filter_map(|(number, garbage)| garbage.of_file(number)).collect()
    }

    /// The blobs of a file that no output refers to, whatever the compaction read of the file.
    pub fn unreferenced(&self, file: &LiveBlobFile) -> Option<BlobGarbage> {
        let outflow = self.flows.get(&file.number).map(|(_, outflow)| *outflow).unwrap_or_default();
        file.total.less(file.garbage).less(outflow).of_file(file.number)
    }
}

/// The smallest blob file that the entries of a table refer to: what the MANIFEST records for the table.
#[derive(Clone, Copy, Debug, Default)]
pub struct OldestBlobFile(Option<FileNumber>);

impl OldestBlobFile {
    /// Adds an entry of the table.
    ///
    /// # Errors
    /// As [`GarbageMeter::flow_in`].
    #[inline]
    pub fn see(&mut self, value_type: ValueType, value: &[u8]) -> Result<()> {
        if matches!(value_type, ValueType::BlobIndex | ValueType::Entity) {
            return blob_places(value_type, value, |place| {
                // 0 is the table itself.
                let oldest = self.0.filter(|oldest| *oldest <= place.file);
                self.0 = oldest.or((place.file.0 != 0).then_some(place.file)).or(self.0);
            });
        }
        Ok(())
    }

    /// The smallest number; `FileNumber(0)` when the table refers to none.
    pub fn number(self) -> FileNumber {
        self.0.unwrap_or_default()
    }
}

/// A blob file of the current version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveBlobFile {
    /// The file's number.
    pub number: FileNumber,
    /// The blobs in the file.
    pub total: BlobAmount,
    /// The garbage in the file.
    pub garbage: BlobAmount,
}

/// The files without a reference. `linked`: the files that a table of the version names as its oldest.
pub fn obsolete_files(files: &[LiveBlobFile], linked: &BTreeSet<FileNumber>) -> Vec<FileNumber> {
    let smallest = linked.first();
    let gone = files.iter().filter(|file| match smallest {
        None => true,
        Some(smallest) => {
            file.number < *smallest
                || (!linked.contains(&file.number) && file.garbage.count >= file.total.count)
        }
    });
    gone.map(|file| file.number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(file: u64, size: u64) -> Vec<u8> {
        let mut value = Vec::new();
        let place = BlobPlace { file: FileNumber(file), offset: 100, size, compression: 0 };
        BlobIndex::Blob(place).encode(&mut value);
        value
    }

    #[test]
    fn garbage_is_what_came_in_and_did_not_go_out() {
        let mut meter = GarbageMeter::default();
        for (key, file) in [(&b"a"[..], 4), (b"b", 4), (b"c", 5), (b"d", 6)] {
            meter.flow_in(ValueType::BlobIndex, key, &index(file, 100)).unwrap();
        }
        meter.flow_in(ValueType::Put, b"e", b"plain").unwrap();
        meter.flow_out(ValueType::BlobIndex, b"a", &index(4, 100)).unwrap();
        meter.flow_out(ValueType::BlobIndex, b"d", &index(6, 100)).unwrap();
        meter.flow_out(ValueType::BlobIndex, b"c", &index(9, 100)).unwrap();
        let garbage = |number| BlobGarbage {
            number: FileNumber(number),
            count: 1,
            bytes: 133,
            ..BlobGarbage::default()
        };
        assert_eq!(meter.garbage(), [garbage(4), garbage(5)]);
        assert!(meter.flow_in(ValueType::BlobIndex, b"k", b"\x09").unwrap_err().is_corruption());
        assert!(meter.flow_out(ValueType::Entity, b"k", b"\x01\x09").unwrap_err().is_corruption());
    }

    #[test]
    fn entities_refer_to_blobs_too() {
        let entity = b"\x02\x02\x02\x02\x08\x01\x11\x04\x04\x04\x06citynoteOslo\x01\x0a\xad\x03\x12\x07";
        let mut meter = GarbageMeter::default();
        meter.flow_in(ValueType::Entity, b"e2", entity).unwrap();
        assert_eq!((meter.garbage()[0].number, meter.garbage()[0].bytes), (FileNumber(10), 32 + 2 + 18));
        let mut oldest = OldestBlobFile::default();
        assert_eq!(oldest.number(), FileNumber(0));
        oldest.see(ValueType::BlobIndex, &index(12, 1)).unwrap();
        oldest.see(ValueType::Entity, entity).unwrap();
        oldest.see(ValueType::BlobIndex, &index(0, 1)).unwrap();
        oldest.see(ValueType::BlobIndex, &index(11, 1)).unwrap();
        oldest.see(ValueType::Put, b"\x09").unwrap();
        assert_eq!(oldest.number(), FileNumber(10));
    }

    #[test]
    fn files_go_when_no_table_can_need_them() {
        let file = |number, total, garbage| LiveBlobFile {
            number: FileNumber(number),
            total: BlobAmount { count: total, bytes: 0 },
            garbage: BlobAmount { count: garbage, bytes: 0 },
        };
        let files = [file(3, 5, 0), file(5, 5, 5), file(7, 5, 4), file(9, 5, 5)];
        let gone = |linked: &[u64]| {
            let linked = linked.iter().map(|n| FileNumber(*n)).collect();
            obsolete_files(&files, &linked).into_iter().map(|n| n.0).collect::<Vec<_>>()
        };
        assert_eq!(gone(&[]), [3, 5, 7, 9]);
        assert_eq!(gone(&[3]), [5, 9]);
        assert_eq!(gone(&[5, 9]), [3]);
        assert_eq!(gone(&[7]), [3, 5, 9]);
    }
}
