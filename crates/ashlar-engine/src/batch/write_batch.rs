//! The batch that users fill.

use ashlar_base::{Error, FamilyId, Result};
use ashlar_format::entity::{Column, ColumnValue, Entity};
use ashlar_format::write_batch::BatchEncoder;
use ashlar_table::MAX_ENTRY_BYTES;

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
    /// It has operations that a family may refuse: see [`WriteBatch::needs_families`].
    needs_families: bool,
}

impl WriteBatch {
    /// An empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty batch that remembers a checksum of each operation, made of what it is given. The write compares them before
    /// it logs anything: `Corruption` if the batch has changed in memory since. (RocksDB: `protection_bytes_per_key` of a
    /// batch, 8.)
    pub fn protected() -> Self {
        WriteBatch { encoder: BatchEncoder::protected(), needs_families: false }
    }

    /// Sets `key` to `value`.
    ///
    /// # Errors
    /// `InvalidArgument`: key, value or batch too large; the batch is unchanged.
    pub fn put(&mut self, family: FamilyId, key: &[u8], value: &[u8]) -> Result<()> {
        self.admit(key, value.len())?;
        self.encoder.put(family, key, value)
    }

    /// Sets `key` to a row of named columns, in any order. The column with the empty name is what a plain get of the key
    /// answers, and what merges are applied to. RocksDB 7.8 reads such keys, but not when they are merged into.
    ///
    /// # Errors
    /// As [`WriteBatch::put`]; `InvalidArgument` also when a name occurs twice. That the format level has entities is
    /// checked by the write.
    pub fn put_entity(&mut self, family: FamilyId, key: &[u8], columns: &[(&[u8], &[u8])]) -> Result<()> {
        let column = |(name, value)| Column { name, value: ColumnValue::Inline(value) };
        let entity = Entity::new(columns.iter().copied().map(column).collect())
            .map_err(|e| Error::invalid(format!("entity of key '{}': {}", key.escape_ascii(), e.what)))?;
        let mut encoded = Vec::new();
        entity.encode(&mut encoded);
        self.admit(key, encoded.len())?;
        self.needs_families = true;
        self.encoder.entity(family, key, &encoded)
    }

    /// Removes `key`, whether it exists or not.
    ///
    /// # Errors
    /// As [`WriteBatch::put`].
    pub fn delete(&mut self, family: FamilyId, key: &[u8]) -> Result<()> {
        self.admit(key, 0)?;
        self.encoder.delete(family, key)
    }

    /// Removes `key`, which was put once at most since it was last removed and never merged. Two of them, the put and this,
    /// vanish in the first compaction where they meet; used on any other key, an older value may come back.
    ///
    /// # Errors
    /// As [`WriteBatch::put`].
    pub fn single_delete(&mut self, family: FamilyId, key: &[u8]) -> Result<()> {
        self.admit(key, 0)?;
        self.encoder.single_delete(family, key)
    }

    /// Adds `operand` to what the family's merge operator makes of `key`.
    ///
    /// # Errors
    /// As [`WriteBatch::put`]. That the family has a merge operator is checked by the write.
    pub fn merge(&mut self, family: FamilyId, key: &[u8], operand: &[u8]) -> Result<()> {
        self.admit(key, operand.len())?;
        self.needs_families = true;
        self.encoder.merge(family, key, operand)
    }

    /// Removes every key from `begin` on, `end` excluded. Nothing when they are equal.
    ///
    /// # Errors
    /// As [`WriteBatch::put`]. That `begin` is not behind `end` in the family's order is checked by the write.
    pub fn delete_range(&mut self, family: FamilyId, begin: &[u8], end: &[u8]) -> Result<()> {
        if begin == end {
            return Ok(());
        }
        self.admit(begin, end.len())?;
        self.admit(end, begin.len())?;
        self.needs_families = true;
        self.encoder.delete_range(family, begin, end)
    }

    /// True with operations that only the family, or the database, can judge: merges, range deletions, entities.
    pub(crate) fn needs_families(&self) -> bool {
        self.needs_families
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
        self.needs_families = false;
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
        // A table stores the key with its eight-byte trailer. What it cannot hold is refused by name, before it reaches a
        // log whose flush could never end.
        if key.len() + 8 + value_len > MAX_ENTRY_BYTES {
            return Err(Error::not_supported(format!(
                "a value of {value_len} bytes: entries of 2 GiB and more"
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

#[cfg(test)]
mod tests {
    use super::*;
    use ashlar_base::ErrorKind;

    #[test]
    fn sizes_that_no_table_holds_are_refused_at_the_door() {
        let batch = WriteBatch::new();
        let kind = |key: &[u8], value_len| batch.admit(key, value_len).map_err(|e| e.kind());
        assert_eq!(kind(b"key", MAX_ENTRY_BYTES - 11), Ok(()));
        assert_eq!(kind(b"key", MAX_ENTRY_BYTES - 10), Err(ErrorKind::NotSupported));
        assert_eq!(kind(b"key", MAX_VALUE_BYTES), Err(ErrorKind::NotSupported));
        assert_eq!(kind(b"key", MAX_VALUE_BYTES + 1), Err(ErrorKind::InvalidArgument));
        assert_eq!(kind(&vec![0; MAX_KEY_BYTES], 0), Ok(()));
        assert_eq!(kind(&vec![0; MAX_KEY_BYTES + 1], 0), Err(ErrorKind::InvalidArgument));
    }
}
