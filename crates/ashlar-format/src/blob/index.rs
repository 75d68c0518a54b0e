//! The index that a table holds in place of a value: an entry of type `BlobIndex`.

use super::file::BlobFooter;
use super::{BlobHeader, BlobRecordHeader};
use ashlar_base::bytes::put_varint64;
use ashlar_base::{Cursor, FileNumber, Malformed};

const INLINED_TTL: u8 = 0;
const BLOB: u8 = 1;
const BLOB_TTL: u8 = 2;

/// The place of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlobPlace {
    /// The blob file; 0 = the table itself, in tables with embedded blobs.
    pub file: FileNumber,
    /// Where the value starts.
    pub offset: u64,
    /// Bytes of the value as stored.
    pub size: u64,
    /// The type byte of its compression.
    pub compression: u8,
}

impl BlobPlace {
    fn decode(c: &mut Cursor<'_>) -> Result<Self, Malformed> {
        let at_file = *c;
        let file = FileNumber(c.varint64("blob index.file")?);
        if file > FileNumber::MAX {
            return Err(at_file.malformed("blob index.file", "over 62 bits"));
        }
        let offset = c.varint64("blob index.offset")?;
        let size = c.varint64("blob index.size")?;
        let compression = c.u8("blob index.compression")?;
        c.finish("blob index")?;
        Ok(BlobPlace { file, offset, size, compression })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        put_varint64(out, self.file.0);
        put_varint64(out, self.offset);
        put_varint64(out, self.size);
        out.push(self.compression);
    }

    /// Where the record of a key of that length starts, if it lies between the header and the footer of a closed file of
    /// `file_len` bytes.
    pub fn record_start(&self, key_len: usize, file_len: u64) -> Option<u64> {
        let before = (key_len as u64).checked_add(BlobRecordHeader::LEN as u64)?;
        let start = self.offset.checked_sub(before)?;
        let end = self.offset.checked_add(self.size)?;
        let limit = file_len.checked_sub(BlobFooter::LEN as u64)?;
        (start >= BlobHeader::LEN as u64 && end <= limit).then_some(start)
    }

    /// Bytes that the record of a key of that length takes: what the MANIFEST counts.
    pub fn record_len(&self, key_len: usize) -> u64 {
        (BlobRecordHeader::LEN as u64).saturating_add(key_len as u64).saturating_add(self.size)
    }
}

/// The value of an entry of type `BlobIndex`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlobIndex<'a> {
    /// The value of a stacked BlobDB, too small for a blob file.
    InlinedTtl {
        /// When it expires, in seconds since 1970.
        expiration: u64,
        /// The value.
        value: &'a [u8],
    },
    /// A value in a blob file.
    Blob(BlobPlace),
    /// A value in a blob file of a stacked BlobDB.
    BlobTtl {
        /// When it expires, in seconds since 1970.
        expiration: u64,
        /// Where it is.
        place: BlobPlace,
    },
}

impl<'a> BlobIndex<'a> {
    /// Reads the whole value of an entry.
    ///
    /// # Errors
    /// `Malformed`: an unknown kind, fields that do not decode, or bytes after them.
    pub fn decode(value: &'a [u8]) -> Result<Self, Malformed> {
        let mut c = Cursor::new(value);
        match c.u8("blob index.kind")? {
            INLINED_TTL => {
                let expiration = c.varint64("blob index.expiration")?;
                Ok(BlobIndex::InlinedTtl { expiration, value: c.rest() })
            }
            BLOB => Ok(BlobIndex::Blob(BlobPlace::decode(&mut c)?)),
            BLOB_TTL => {
                let expiration = c.varint64("blob index.expiration")?;
                Ok(BlobIndex::BlobTtl { expiration, place: BlobPlace::decode(&mut c)? })
            }
            _ => Err(Malformed { field: "blob index.kind", at: 0, what: "unknown kind" }),
        }
    }

    /// Appends it.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            BlobIndex::InlinedTtl { expiration, value } => {
                out.push(INLINED_TTL);
                put_varint64(out, *expiration);
                out.extend_from_slice(value);
            }
            BlobIndex::Blob(place) => {
                out.push(BLOB);
                place.encode(out);
            }
            BlobIndex::BlobTtl { expiration, place } => {
                out.push(BLOB_TTL);
                put_varint64(out, *expiration);
                place.encode(out);
            }
        }
    }
}
