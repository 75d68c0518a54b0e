//! The head of a blob record; key and value follow it.

use ashlar_base::checksum::{crc32c, crc32c_append, mask_crc};
use ashlar_base::{Cursor, Malformed};

/// The fixed part in front of key and value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlobRecordHeader {
    /// Bytes of the user key.
    pub key_len: u64,
    /// Bytes of the value as stored.
    pub value_len: u64,
    /// When it expires, in seconds since 1970; 0 = never.
    pub expiration: u64,
    /// The masked checksum of key and value.
    pub blob_crc: u32,
}

impl BlobRecordHeader {
    /// Bytes it takes.
    pub const LEN: usize = 32;

    /// The head of a record that does not expire.
    pub fn new(key: &[u8], value: &[u8]) -> Self {
        BlobRecordHeader {
            key_len: key.len() as u64,
            value_len: value.len() as u64,
            expiration: 0,
            blob_crc: blob_crc(key, value),
        }
    }

    /// Reads a record header and compares its checksum. The caller, which knows where the records end, checks the lengths.
    ///
    /// # Errors
    /// `Malformed`: too short, or a wrong checksum.
    pub fn decode(c: &mut Cursor<'_>) -> Result<Self, Malformed> {
        let start = c.rest();
        let key_len = c.fixed64("blob record.key length")?;
        let value_len = c.fixed64("blob record.value length")?;
        let expiration = c.fixed64("blob record.expiration")?;
        let at_crc = *c;
        let header_crc = c.fixed32("blob record.header crc")?;
        if header_crc != mask_crc(crc32c(start.get(..24).unwrap_or_default())) {
            return Err(at_crc.malformed("blob record.header crc", "checksum mismatch"));
        }
        let blob_crc = c.fixed32("blob record.blob crc")?;
        Ok(BlobRecordHeader { key_len, value_len, expiration, blob_crc })
    }

    /// Appends it.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut head = Vec::with_capacity(Self::LEN);
        for field in [self.key_len, self.value_len, self.expiration] {
            head.extend_from_slice(&field.to_le_bytes());
        }
        let crc = mask_crc(crc32c(&head));
        head.extend_from_slice(&crc.to_le_bytes());
        head.extend_from_slice(&self.blob_crc.to_le_bytes());
        out.extend_from_slice(&head);
    }

    /// Bytes of the whole record; `None` beyond 64 bits.
    pub fn record_len(&self) -> Option<u64> {
        self.key_len.checked_add(self.value_len)?.checked_add(Self::LEN as u64)
    }

    /// Compares key and value, as stored, with lengths and checksum.
    ///
    /// # Errors
    /// `Malformed`, with offsets from the start of the record.
    pub fn verify(&self, key: &[u8], value: &[u8]) -> Result<(), Malformed> {
        let wrong = |what| Malformed { field: "blob record", at: Self::LEN, what };
        if (key.len() as u64, value.len() as u64) != (self.key_len, self.value_len) {
            return Err(wrong("lengths differ"));
        }
        if blob_crc(key, value) != self.blob_crc {
            return Err(wrong("checksum mismatch"));
        }
        Ok(())
    }
}

fn blob_crc(key: &[u8], value: &[u8]) -> u32 {
    mask_crc(crc32c_append(crc32c(key), value))
}
