//! The batch that users fill.

use ashlar_base::{Error, FamilyId, Result};
use ashlar_format::write_batch::BatchEncoder;

/// Keys may have 8 MiB at most: larger ones make every index and boundary of the tree too large.
pub const MAX_KEY_BYTES: usize = 8 << 20;
/// Values may have 4 GiB - 1 at most: the format's length field.
pub const MAX_VALUE_BYTES: usize = u32::MAX as usize;
/// A batch may have 4 GiB at most, with its header.
pub const MAX_BATCH_BYTES: usize = 4 << 30;

/// Operations that are written together: all are visible and durable, or none.
#[derive(Clone, Debug, Default)]
pub struct WriteBatch {
    encoder: BatchEncoder,
}

impl WriteBatch {
    /// An empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets `key` to `value`.
    ///
    /// # Errors
    /// `InvalidArgument`: key, value or batch too large; the batch is unchanged.
    pub fn put(&mut self, family: FamilyId, key: &[u8], value: &[u8]) -> Result<()> {
        self.admit(key, value.len())?;
        self.encoder.put(family, key, value)
    }

    /// Removes `key`, whether it exists or not.
    ///
    /// # Errors
    /// As [`WriteBatch::put`].
    pub fn delete(&mut self, family: FamilyId, key: &[u8]) -> Result<()> {
        self.admit(key, 0)?;
        self.encoder.delete(family, key)
    }

    /// Number of operations.
    pub fn len(&self) -> u32 {
        self.encoder.count()
    }

    /// True without any operation.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of the encoded batch.
    pub fn byte_len(&self) -> usize {
        self.encoder.byte_len()
    }

    /// Removes all operations, keeps the memory.
    pub fn clear(&mut self) {
        self.encoder.clear();
    }

    /// The encoded form, for the committer.
    pub(crate) fn encoder(&mut self) -> &mut BatchEncoder {
        &mut self.encoder
    }

    fn admit(&self, key: &[u8], value_len: usize) -> Result<()> {
        // Tag, family id and two lengths: 21 bytes at most.
        const OVERHEAD: usize = 21;
        if key.len() > MAX_KEY_BYTES {
            return Err(Error::invalid(format!(
                "a key of {} bytes; keys may have {MAX_KEY_BYTES} at most",
                key.len()
            )));
        }
        if value_len > MAX_VALUE_BYTES {
            return Err(Error::invalid(format!(
                "a value of {value_len} bytes; values may have {MAX_VALUE_BYTES} at most"
            ))
            .hint("Split the value over several keys"));
        }
        let grown = self
            .encoder
            .byte_len()
            .saturating_add(key.len())
            .saturating_add(value_len)
            .saturating_add(OVERHEAD);
        if grown > MAX_BATCH_BYTES || self.len() == u32::MAX {
            return Err(Error::invalid(format!(
                "a batch of {grown} bytes; batches may have {MAX_BATCH_BYTES} at most"
            ))
            .hint("Write it in several batches"));
        }
        Ok(())
    }
}
