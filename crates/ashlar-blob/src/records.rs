//! Reads the records of a blob file from front to back, for verification and listings.

use crate::garbage::BlobAmount;
use crate::reader::BlobReader;
use ashlar_base::bytes::{copied, resize};
use ashlar_base::{Cursor, Error, Result};
use ashlar_format::blob::{BlobFooter, BlobHeader, BlobPlace, BlobRecordHeader};

/// A record as stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlobRecord<'a> {
    /// The user key.
    pub key: &'a [u8],
    /// The index that leads to it.
    pub place: BlobPlace,
    /// The time of its expiry; 0: never.
    pub expiration: u64,
    /// The value as stored.
    pub stored: &'a [u8],
}

impl BlobReader {
    /// All records in order, each verified.
    pub fn records(&self) -> BlobRecords<'_> {
        BlobRecords::from(self, BlobHeader::LEN as u64)
    }

    /// Reads every record, compares its checksums and decompresses its value. Returns the number of records and bytes.
    ///
    /// # Errors
    /// The first that is wrong; `Corruption` too when the footer counts other blobs.
    pub fn verify(&self) -> Result<BlobAmount> {
        let mut done = BlobVerified::default();
        while !self.verify_some(&mut done, u64::MAX)? {}
        Ok(done.total)
    }

    /// [`BlobReader::verify`] in steps: continues from `done` until about `bytes` more are read. True: that was the
    /// last step.
    ///
    /// # Errors
    /// As [`BlobReader::verify`].
    pub fn verify_some(&self, done: &mut BlobVerified, bytes: u64) -> Result<bool> {
        let until = done.at.saturating_add(bytes);
        let mut records = BlobRecords::from(self, done.at);
        while done.at < until {
            let Some(record) = records.next()? else {
                if done.total.count == self.count() {
                    return Ok(true);
                }
                let text =
                    format!("blob file has {} blobs, its footer says {}", done.total.count, self.count());
                return Err(Error::corruption(text).at_path(self.path()));
            };
            let (place, key_len) = (record.place, record.key.len());
            self.uncompress(copied(record.stored)?, place.offset)?;
            done.total.add(&place, key_len);
            done.at = records.position();
        }
        Ok(false)
    }
}

/// The progress of a verification; see [`BlobReader::verify_some`].
#[derive(Clone, Copy, Debug)]
pub struct BlobVerified {
    /// The offset of the next record.
    at: u64,
    /// The verified records.
    total: BlobAmount,
}

impl BlobVerified {
    /// Bytes of the file so far.
    pub fn bytes(&self) -> u64 {
        self.at
    }
}

impl Default for BlobVerified {
    fn default() -> Self {
        BlobVerified { at: BlobHeader::LEN as u64, total: BlobAmount::default() }
    }
}

/// A walk over the records; see [`BlobReader::records`].
#[derive(Debug)]
pub struct BlobRecords<'r> {
    reader: &'r BlobReader,
    at: u64,
    /// Key and value of the last record.
    body: Vec<u8>,
}

impl<'r> BlobRecords<'r> {
    /// A walk from the record at `at`.
    fn from(reader: &'r BlobReader, at: u64) -> Self {
        BlobRecords { reader, at, body: Vec::new() }
    }

    /// The offset of the next record.
    fn position(&self) -> u64 {
        self.at
    }

    /// The next record, verified; `None` at the footer. After an error the walk is over.
    ///
    /// # Errors
    /// `Corruption`: the record is wrong, or reaches into the footer. `Io`: the read.
    /// # Cost
    /// Two reads and at most the memory of the record, which is no larger than the file.
    #[allow(clippy::should_implement_trait, reason = "a record borrows from the walk")]
    pub fn next(&mut self) -> Result<Option<BlobRecord<'_>>> {
        let reader = self.reader;
        let end = reader.size() - BlobFooter::LEN as u64;
        let start = std::mem::replace(&mut self.at, end);
        if start == end {
            return Ok(None);
        }
        let wrong = |what: &str| Error::corruption(what).at(reader.path(), start);
        let room = (end - start).checked_sub(BlobRecordHeader::LEN as u64);
        let room = room.ok_or_else(|| wrong("half a blob record before the footer"))?;
        let mut head = [0; BlobRecordHeader::LEN];
        reader.file().read_exact_at(&mut head, start)?;
        let head =
            BlobRecordHeader::decode(&mut Cursor::new(&head)).map_err(|m| m.in_file(reader.path(), start))?;
        let body_len = head.key_len.checked_add(head.value_len).filter(|len| *len <= room);
        let lens = body_len.and_then(|len| Some((len, usize::try_from(len).ok()?)));
        let (body_len, len) = lens.ok_or_else(|| wrong("blob record reaches into the footer"))?;
        resize(&mut self.body, len)?;
        let body_at = start + BlobRecordHeader::LEN as u64;
        reader.file().read_exact_at(&mut self.body, body_at)?;
        self.at = body_at + body_len;
        let key_len = usize::try_from(head.key_len).unwrap_or(usize::MAX);
        let split = self.body.split_at_checked(key_len);
        let (key, stored) = split.ok_or_else(|| wrong("blob record shorter than its key"))?;
        head.verify(key, stored).map_err(|m| m.in_file(reader.path(), start))?;
        let place = BlobPlace {
            file: reader.number(),
            offset: body_at + head.key_len,
            size: head.value_len,
            compression: reader.compression(),
        };
        Ok(Some(BlobRecord { key, place, expiration: head.expiration, stored }))
    }
}
