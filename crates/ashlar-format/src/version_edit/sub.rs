//! The smaller records inside an edit: blob files and WALs.

use super::fields::{CustomFields, file_number, put_custom};
use ashlar_base::bytes::{put_slice, put_varint32, put_varint64};
use ashlar_base::{Cursor, FileNumber, Malformed};

/// Ends the custom fields of blob records.
const BLOB_END: u32 = 0;
/// A custom field of a blob record with this bit must be understood.
const BLOB_MANDATORY: u32 = 0x40;
/// Ends a WAL addition.
const WAL_END: u32 = 1;
/// The synced size of a WAL.
const WAL_SYNCED_SIZE: u32 = 2;

/// Tag 400: a new blob file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlobAddition {
    /// Its number.
    pub number: FileNumber,
    /// Blobs in it.
    pub count: u64,
    /// Bytes of its blob records: the file without header (30) and footer (32).
    pub bytes: u64,
    /// The function of `checksum`; empty if there is no checksum.
    pub checksum_method: Vec<u8>,
    /// The checksum of the file.
    pub checksum: Vec<u8>,
    /// Unknown custom fields.
    pub ignored: CustomFields,
}

impl BlobAddition {
    pub(super) fn decode(c: &mut Cursor<'_>) -> Result<Self, Malformed> {
        Ok(BlobAddition {
            number: file_number(c, "blob.number")?,
            count: c.varint64("blob.count")?,
            bytes: c.varint64("blob.bytes")?,
            checksum_method: c.slice("blob.checksum method")?.to_vec(),
            checksum: c.slice("blob.checksum")?.to_vec(),
            ignored: blob_custom(c)?,
        })
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        put_varint64(out, self.number.0);
        put_varint64(out, self.count);
        put_varint64(out, self.bytes);
        put_slice(out, &self.checksum_method);
        put_slice(out, &self.checksum);
        put_custom(out, &self.ignored);
        put_varint32(out, BLOB_END);
    }
}

/// Tag 401: blobs of a file became garbage. Amounts are increments over all former edits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlobGarbage {
    /// The blob file.
    pub number: FileNumber,
    /// Blobs that became garbage.
    pub count: u64,
    /// Bytes of their records.
    pub bytes: u64,
    /// Unknown custom fields.
    pub ignored: CustomFields,
}

impl BlobGarbage {
    pub(super) fn decode(c: &mut Cursor<'_>) -> Result<Self, Malformed> {
        Ok(BlobGarbage {
            number: file_number(c, "blob garbage.number")?,
            count: c.varint64("blob garbage.count")?,
            bytes: c.varint64("blob garbage.bytes")?,
            ignored: blob_custom(c)?,
        })
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        put_varint64(out, self.number.0);
        put_varint64(out, self.count);
        put_varint64(out, self.bytes);
        put_custom(out, &self.ignored);
        put_varint32(out, BLOB_END);
    }
}

fn blob_custom(c: &mut Cursor<'_>) -> Result<CustomFields, Malformed> {
    let mut fields = CustomFields::new();
    loop {
        let start = *c;
        let tag = c.varint32("blob custom tag")?;
        if tag == BLOB_END {
            return Ok(fields);
        }
        if tag & BLOB_MANDATORY != 0 {
            return Err(start.malformed("blob custom tag", "unknown tag"));
        }
        fields.push((tag, c.slice("blob custom field")?.to_vec()));
    }
}

/// Tag 8199: a WAL was created, or closed and synced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WalAddition {
    /// Its number.
    pub number: FileNumber,
    /// Bytes known to be durable; `None` while it is open.
    pub synced_size: Option<u64>,
}

impl WalAddition {
    pub(super) fn decode(c: &mut Cursor<'_>) -> Result<Self, Malformed> {
        let mut wal =
            WalAddition { number: FileNumber(c.varint64("WAL addition.number")?), synced_size: None };
        loop {
            let start = *c;
            match c.varint32("WAL addition tag")? {
                WAL_END => return Ok(wal),
                WAL_SYNCED_SIZE => wal.synced_size = Some(c.varint64("WAL addition.synced size")?),
                _ => return Err(start.malformed("WAL addition tag", "unknown tag")),
            }
        }
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        put_varint64(out, self.number.0);
        if let Some(size) = self.synced_size {
            put_varint32(out, WAL_SYNCED_SIZE);
            put_varint64(out, size);
        }
        put_varint32(out, WAL_END);
    }
}
