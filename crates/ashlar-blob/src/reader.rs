//! Reads values of a blob file.

use ashlar_base::bytes::zeroed;
use ashlar_base::error::BusyKind;
use ashlar_base::{Cursor, Error, ErrorKind, FamilyId, FileNumber, Malformed, Result};
use ashlar_env::{ReadFile, uncompressed_max};
use ashlar_format::blob::{BlobFooter, BlobHeader, BlobPlace, BlobRecordHeader, Expiration};
use ashlar_format::compress::{Compression, decompress, raw_len};
use std::path::Path;
use std::sync::Arc;

/// The greatest length of a value: RocksDB keeps lengths of values in 32 bits.
const MAX_VALUE: usize = u32::MAX as usize;

/// An open blob file. May be read from many threads at once.
#[derive(Debug)]
pub struct BlobReader {
    file: Arc<dyn ReadFile>,
    number: FileNumber,
    len: u64,
    compression: u8,
    count: u64,
}

impl BlobReader {
    /// Opens a closed blob file. Its family and `blob_bytes`, what the MANIFEST counts of it (all but header and footer), are
    /// compared where they are known.
    ///
    /// # Errors
    /// `Corruption`: a different length than the MANIFEST says, no footer, a header of another family, or a header with
    /// expirations, as the old stacked BlobDB wrote. `Io`: the read.
    pub fn open(
        file: Arc<dyn ReadFile>,
        number: FileNumber,
        family: Option<FamilyId>,
        blob_bytes: Option<u64>,
    ) -> Result<Arc<BlobReader>> {
        let len = file.len();
        let ends = (BlobHeader::LEN + BlobFooter::LEN) as u64;
        let Some(records) = len.checked_sub(ends) else {
            return Err(
                Error::corruption("blob file is shorter than its header and footer").at_path(file.path())
            );
        };
        if let Some(known) = blob_bytes.filter(|known| *known != records) {
            let text = format!("blob file of {len} bytes, where {} are recorded", known.saturating_add(ends));
            return Err(Error::corruption(text).at_path(file.path()).damaged_file_hint());
        }
        let compression = read_header(&*file, family)?.compression;
        let footer_at = len - BlobFooter::LEN as u64;
        let mut tail = [0; BlobFooter::LEN];
        file.read_exact_at(&mut tail, footer_at)?;
        let footer = BlobFooter::decode(&tail).map_err(|m| m.in_file(file.path(), footer_at))?;
        Ok(Arc::new(BlobReader { file, number, len, compression, count: footer.count }))
    }

    /// Opens a blob file that may have no footer yet, for [`BlobReader::get`] with `verify`: a record is known by its checksum.
    ///
    /// # Errors
    /// `Corruption`: no header of a blob file. `Io`: the read.
    pub fn open_unclosed(file: Arc<dyn ReadFile>, number: FileNumber) -> Result<Arc<BlobReader>> {
        if file.len() < BlobHeader::LEN as u64 {
            return Err(Error::corruption("blob file is shorter than its header").at_path(file.path()));
        }
        let compression = read_header(&*file, None)?.compression;
        // The place of a record is compared with the end of a closed file.
        let len = file.len().saturating_add(BlobFooter::LEN as u64);
        Ok(Arc::new(BlobReader { file, number, len, compression, count: 0 }))
    }

    /// The value of `key` at `place`, uncompressed. With `verify`, the whole record is read, and its key, lengths and
    /// checksum are compared; without, the value only.
    ///
    /// # Errors
    /// `Corruption`: the index points elsewhere, or the record is wrong. `NotSupported`: a compression not known here.
    /// `Io`: the read.
    /// # Cost
    /// One read; memory for the stored and for the uncompressed value.
    pub fn get(&self, key: &[u8], place: &BlobPlace, verify: bool) -> Result<Vec<u8>> {
        let wrong = |what: String| Err(Error::corruption(what).at(self.path(), place.offset));
        if place.file != self.number {
            return wrong(format!("index of blob file {} asked of {}", place.file, self.number));
        }
        if place.compression != self.compression {
            let (said, own) = (place.compression, self.compression);
            return wrong(format!("blob index says compression {said:#04x}, its file {own:#04x}"));
        }
        let Some(start) = place.record_start(key.len(), self.len) else {
            return wrong(format!("blob of {} bytes lies outside its file", place.size));
        };
        let from = if verify { start } else { place.offset };
        let Ok(len) = usize::try_from(place.offset + place.size - from) else {
            return wrong("blob larger than memory".into());
        };
        let mut stored = zeroed(len)?;
        self.file.read_exact_at(&mut stored, from)?;
        if verify {
            let value_at = check_record(&stored, key, place).map_err(|m| m.in_file(self.path(), start))?;
            stored.drain(..value_at);
        }
        self.uncompress(stored, place.offset)
    }

    /// Whether `place` is that of a record of `key`: reads its head and its key, and compares key, lengths and the head's
    /// checksum. The value is left to [`BlobReader::verify`].
    ///
    /// # Errors
    /// As [`BlobReader::get`].
    pub fn check_place(&self, key: &[u8], place: &BlobPlace) -> Result<()> {
        let wrong = |what: &str| Err(Error::corruption(what).at(self.path(), place.offset));
        if place.compression != self.compression {
            return wrong("blob index says another compression than its file");
        }
        let Some(start) = place.record_start(key.len(), self.len) else {
            return wrong("blob lies outside its file");
        };
        let mut head = zeroed(BlobRecordHeader::LEN + key.len())?;
        self.file.read_exact_at(&mut head, start)?;
        check_head(&mut Cursor::new(&head), key, place).map_err(|m| m.in_file(self.path(), start))?;
        Ok(())
    }

    pub(crate) fn uncompress(&self, stored: Vec<u8>, offset: u64) -> Result<Vec<u8>> {
        match Compression::from_byte(self.compression) {
            Some(Compression::None) => Ok(stored),
            Some(kind) => {
                let machine = uncompressed_max();
                if let Some(len) =
                    raw_len(kind, &stored).filter(|len| *len > machine as u64 && *len <= MAX_VALUE as u64)
                {
                    let text = format!(
                        "value of {len} bytes uncompressed, more than half of the memory of this process ({machine} bytes)"
                    );
                    let e = Error::new(ErrorKind::Busy(BusyKind::Memory), text).at(self.path(), offset);
                    return Err(e.hint("Give the process more memory"));
                }
                decompress(kind, &stored, MAX_VALUE).map_err(|e| e.in_file(self.path(), offset))
            }
            None => {
                let text = format!("blob compression type {:#04x}", self.compression);
                Err(Error::not_supported(text).at(self.path(), offset))
            }
        }
    }

    /// The file's number.
    pub fn number(&self) -> FileNumber {
        self.number
    }

    /// Blobs in the file, as its footer says.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The type byte of the compression of its values.
    pub fn compression(&self) -> u8 {
        self.compression
    }

    /// Bytes of the file.
    pub fn size(&self) -> u64 {
        self.len
    }

    /// The file's path.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    pub(crate) fn file(&self) -> &dyn ReadFile {
        &*self.file
    }
}

fn read_header(file: &dyn ReadFile, family: Option<FamilyId>) -> Result<BlobHeader> {
    let mut head = [0; BlobHeader::LEN];
    file.read_exact_at(&mut head, 0)?;
    let header = BlobHeader::decode(&head).map_err(|m| m.in_file(file.path(), 0))?;
    check_header(&header, family).map_err(|what| Error::corruption(what).at(file.path(), 0))?;
    Ok(header)
}

fn check_header(header: &BlobHeader, family: Option<FamilyId>) -> Result<(), String> {
    if header.has_ttl || header.expiration != Expiration::default() {
        return Err("blob file with expirations, of a stacked BlobDB".into());
    }
    match family {
        Some(family) if header.family != family => {
            Err(format!("blob file of family {}, not {}", header.family.0, family.0))
        }
        _ => Ok(()),
    }
}

/// Compares the head of a record and its key with the index and the user key.
fn check_head(c: &mut Cursor<'_>, key: &[u8], place: &BlobPlace) -> Result<BlobRecordHeader, Malformed> {
    let head = BlobRecordHeader::decode(c)?;
    if head.key_len != key.len() as u64 || head.value_len != place.size {
        return Err(c.malformed("blob record", "other lengths than its index"));
    }
    if c.bytes(key.len(), "blob record.key")? != key {
        return Err(c.malformed("blob record.key", "the record of another key"));
    }
    Ok(head)
}

/// Compares a whole record with its index and its user key; returns the offset of the value in the record.
fn check_record(record: &[u8], key: &[u8], place: &BlobPlace) -> Result<usize, Malformed> {
    let mut c = Cursor::new(record);
    let head = check_head(&mut c, key, place)?;
    let value_at = c.position();
    head.verify(key, c.rest())?;
    Ok(value_at)
}
