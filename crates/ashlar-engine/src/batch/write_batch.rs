//! The batch that callers fill.

use ashlar_base::{Error, FamilyId, Malformed, Result, SeqNum};
use ashlar_format::entity::{Column, ColumnValue, Entity};
use ashlar_format::write_batch::{BatchEncoder, BatchMark, BatchOp, BatchReader};
use ashlar_table::{MAX_ENTRY_BYTES, MAX_KEY_BYTES};

/// Largest value: 4 GiB - 1, the limit of the format's length field.
pub const MAX_VALUE_BYTES: usize = u32::MAX as usize;
/// Largest batch: 4 GiB, header included.
pub const MAX_BATCH_BYTES: usize = 4 << 30;

/// Marks a time to live in the time of a timed put. No time in seconds since 1970 has this bit.
const OWN_TTL: u64 = 1 << 63;

/// The time to live, in seconds, of a timed put of [`WriteBatch::put_with_ttl`]; `None`: the record has another origin.
pub(crate) fn own_ttl(write_time: u64) -> Option<u64> {
    (write_time & OWN_TTL != 0).then_some(write_time & !OWN_TTL)
}

/// Operations that are written atomically: either all of them become visible and durable, or none.
#[derive(Clone, Debug, Default)]
pub struct WriteBatch {
    encoder: BatchEncoder,
    /// The batch has operations that a family may refuse: see [`WriteBatch::needs_families`].
    needs_families: bool,
}

/// A state of a batch to return to: see [`WriteBatch::mark`].
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    records: BatchMark,
    needs_families: bool,
}

impl WriteBatch {
    /// An empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty batch that keeps a checksum of each added operation. The write verifies the checksums before it logs
    /// anything, and fails with `Corruption` if the batch changed in memory. (RocksDB: `protection_bytes_per_key` of a
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

    /// Sets `key` to `value` for `seconds` from the write on, in place of the time to live of the family. Until the write, the batch
    /// has a timed put with the seconds in place of the time.
    ///
    /// # Errors
    /// As [`WriteBatch::put`]; `InvalidArgument` also for 0 seconds. The write checks that values of the family expire.
    pub fn put_with_ttl(&mut self, family: FamilyId, key: &[u8], value: &[u8], seconds: u64) -> Result<()> {
        if seconds == 0 || seconds >= OWN_TTL {
            return Err(Error::invalid("a time to live of 0, or of more than 292 billion years"));
        }
        self.admit(key, value.len().saturating_add(size_of::<u64>()))?;
        self.needs_families = true;
        self.encoder.timed_put(family, key, value, OWN_TTL | seconds)
    }

    /// Sets `key` to a row of named columns, in any order. A plain get of the key returns the column with the empty
    /// name, and merges apply to that column. RocksDB 7.8 reads such keys, but not after a merge into them.
    ///
    /// # Errors
    /// As [`WriteBatch::put`]; `InvalidArgument` also when a name occurs twice. The write checks that the format level
    /// allows entities.
    pub fn put_entity(&mut self, family: FamilyId, key: &[u8], columns: &[(&[u8], &[u8])]) -> Result<()> {
        let encoded = encode_entity(key, columns)?;
        self.put_encoded_entity(family, key, &encoded)
    }

    /// [`WriteBatch::put_entity`] with the stored form of the row.
    ///
    /// # Errors
    /// As [`WriteBatch::put_entity`].
    pub fn put_encoded_entity(&mut self, family: FamilyId, key: &[u8], encoded: &[u8]) -> Result<()> {
        self.admit(key, encoded.len())?;
        self.needs_families = true;
        self.encoder.entity(family, key, encoded)
    }

    /// Removes `key`, whether it exists or not.
    ///
    /// # Errors
    /// As [`WriteBatch::put`].
    pub fn delete(&mut self, family: FamilyId, key: &[u8]) -> Result<()> {
        self.admit(key, 0)?;
        self.encoder.delete(family, key)
    }

    /// Removes `key`, which must have been put at most once since its last removal and never merged. The put and the
    /// single deletion vanish in the first compaction that meets both. On any other key, an older value may reappear.
    ///
    /// # Errors
    /// As [`WriteBatch::put`].
    pub fn single_delete(&mut self, family: FamilyId, key: &[u8]) -> Result<()> {
        self.admit(key, 0)?;
        self.encoder.single_delete(family, key)
    }

    /// Adds a merge operand for `key`; the family's merge operator combines `operand` with the key's value.
    ///
    /// # Errors
    /// As [`WriteBatch::put`]. The write checks that the family has a merge operator.
    pub fn merge(&mut self, family: FamilyId, key: &[u8], operand: &[u8]) -> Result<()> {
        self.admit(key, operand.len())?;
        self.needs_families = true;
        self.encoder.merge(family, key, operand)
    }

    /// Removes every key in `begin..end`; removes nothing when `begin` equals `end`.
    ///
    /// # Errors
    /// As [`WriteBatch::put`]. The write checks that `begin` is not after `end` in the family's order.
    pub fn delete_range(&mut self, family: FamilyId, begin: &[u8], end: &[u8]) -> Result<()> {
        if begin == end {
            return Ok(());
        }
        self.admit(begin, end.len())?;
        self.admit(end, begin.len())?;
        self.needs_families = true;
        self.encoder.delete_range(family, begin, end)
    }

    /// Adds bytes for readers of the WAL. They are no operation, and no read answers them.
    ///
    /// # Errors
    /// `InvalidArgument`: 4 GiB or more, or the batch would be too large.
    pub fn put_log_data(&mut self, blob: &[u8]) -> Result<()> {
        self.admit(&[], blob.len())?;
        self.encoder.log_data(blob)
    }

    /// True if the batch has operations whose validity depends on the family or the database: merges, range deletions,
    /// entities, puts with a time to live.
    pub(crate) fn needs_families(&self) -> bool {
        self.needs_families
    }

    /// The number of operations.
    pub fn len(&self) -> u32 {
        self.encoder.count()
    }

    /// True if the batch has no operations.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The length of the encoded batch in bytes.
    pub fn byte_len(&self) -> usize {
        self.encoder.byte_len()
    }

    /// Removes all operations and keeps the allocated memory.
    pub fn clear(&mut self) {
        self.encoder.clear();
        self.needs_families = false;
    }

    /// The present state, for [`WriteBatch::rollback_to`].
    pub fn mark(&self) -> Mark {
        Mark { records: self.encoder.mark(), needs_families: self.needs_families }
    }

    /// Removes the operations that were added since `mark` was taken.
    pub fn rollback_to(&mut self, mark: Mark) {
        self.encoder.rollback_to(mark.records);
        self.needs_families = mark.needs_families;
    }

    /// The operations, to go over them.
    pub fn operations(&self) -> BatchReader<'_> {
        self.encoder.reader()
    }

    /// Adds the operations of `other` behind those of this batch.
    ///
    /// # Errors
    /// `InvalidArgument`: the batch would be too large; it is unchanged.
    pub fn append(&mut self, other: &WriteBatch) -> Result<()> {
        let grown = self.byte_len().saturating_add(other.byte_len());
        if grown > MAX_BATCH_BYTES {
            return Err(too_large(grown));
        }
        self.encoder.append_records(&other.encoder)?;
        self.needs_families |= other.needs_families;
        Ok(())
    }

    /// The batch in RocksDB's form, with the sequence number 0.
    pub fn data(&mut self) -> &[u8] {
        self.encoder.finish(SeqNum::ZERO)
    }

    /// The batch of such a form.
    ///
    /// # Errors
    /// `Corruption`: the form does not decode. `NotSupported`: it has a record that callers cannot add. `InvalidArgument`: a
    /// key or value is too large.
    pub fn from_data(data: &[u8]) -> Result<WriteBatch> {
        let damaged = |wrong: Malformed| wrong.into_error();
        let mut batch = WriteBatch::new();
        let reader = BatchReader::new(data).map_err(damaged)?;
        reader.validate().map_err(damaged)?;
        for op in reader.iter() {
            match op.map_err(damaged)? {
                BatchOp::Put { family, key, value } => batch.put(family, key, value)?,
                BatchOp::Delete { family, key } => batch.delete(family, key)?,
                BatchOp::SingleDelete { family, key } => batch.single_delete(family, key)?,
                BatchOp::Merge { family, key, value } => batch.merge(family, key, value)?,
                BatchOp::DeleteRange { family, begin, end } => batch.delete_range(family, begin, end)?,
                BatchOp::Entity { family, key, entity } => {
                    let columns = inline_columns(entity)
                        .ok_or_else(|| Error::not_supported("an entity with a column in a blob file"))?;
                    batch.put_entity(family, key, &columns)?;
                }
                BatchOp::TimedPut { family, key, value, write_time } if own_ttl(write_time).is_some() => {
                    batch.put_with_ttl(family, key, value, write_time & !OWN_TTL)?;
                }
                BatchOp::LogData(blob) => batch.put_log_data(blob)?,
                BatchOp::Noop => {}
                op => return Err(Error::not_supported(format!("a record of a batch: {op:?}"))),
            }
        }
        Ok(batch)
    }

    /// The encoded form, for the committer.
    pub(crate) fn encoder(&mut self) -> &mut BatchEncoder {
        &mut self.encoder
    }

    fn admit(&self, key: &[u8], value_len: usize) -> Result<()> {
        // Tag, family id and two lengths: at most 21 bytes.
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
        // A table stores the key with its eight-byte trailer. An entry that no table can hold is refused here: once in
        // the WAL, its flush could never succeed.
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
            return Err(too_large(grown));
        }
        Ok(())
    }
}

/// The columns of an encoded entity; `None`: it does not decode, or one of its columns is in a blob file.
fn inline_columns(entity: &[u8]) -> Option<Vec<(&[u8], &[u8])>> {
    let entity = Entity::decode(entity).ok()?;
    let columns = entity.columns().iter().map(|column| match column.value {
        ColumnValue::Inline(value) => Some((column.name, value)),
        ColumnValue::Blob(_) => None,
    });
    columns.collect()
}

/// The stored form of an entity with these columns, in any order.
///
/// # Errors
/// `InvalidArgument`: a name occurs twice.
pub fn encode_entity(key: &[u8], columns: &[(&[u8], &[u8])]) -> Result<Vec<u8>> {
    let column = |(name, value)| Column { name, value: ColumnValue::Inline(value) };
    let entity = Entity::new(columns.iter().copied().map(column).collect())
        .map_err(|e| Error::invalid(format!("entity of key '{}': {}", key.escape_ascii(), e.what)))?;
    let mut encoded = Vec::new();
    entity.encode(&mut encoded);
    Ok(encoded)
}

#[cold]
fn too_large(bytes: usize) -> Error {
    Error::invalid(format!("a batch of {bytes} bytes; batches may have {MAX_BATCH_BYTES} at most"))
        .hint("Write it in several batches")
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
