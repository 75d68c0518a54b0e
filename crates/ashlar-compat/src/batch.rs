//! Write batches, and the handlers that walk over them.
//!
//! RocksDB's batches hold numbers of families. A batch here is that of `ashlardb`, which also refuses families of two databases.

use crate::status::not_found;
use ashlar_base::FamilyId;
use ashlar_format::write_batch::{BatchOp, BatchReader};
use ashlardb::{Error, Result, WriteBatch};

/// What a walk over a batch meets, in order.
pub trait Handler {
    /// Whether the walk ends before the operations of a family: the handler does not know it.
    fn ends_at(&self, family: FamilyId) -> bool {
        let _ = family;
        false
    }
    /// A value for a key.
    fn put(&mut self, family: FamilyId, key: &[u8], value: &[u8]);
    /// The deletion of a key.
    fn delete(&mut self, family: FamilyId, key: &[u8]);
    /// An operand for a key.
    fn merge(&mut self, family: FamilyId, key: &[u8], operand: &[u8]) {
        let _ = (family, key, operand);
    }
    /// Bytes for readers of the WAL.
    fn log_data(&mut self, blob: &[u8]) {
        let _ = blob;
    }
}

/// Walks over a batch, as RocksDB does for handlers that know puts, deletions and merges: single deletions of the default
/// family are passed over. Those of another family, range deletions and entities end the walk.
///
/// # Errors
/// `InvalidArgument`: the batch is being written. `Corruption`: its memory was changed.
pub fn walk(batch: &WriteBatch, handler: &mut impl Handler) -> Result<()> {
    let data = batch.data()?;
    let wrong = |e: ashlar_base::Malformed| Error::corruption(e.to_string());
    for op in BatchReader::new(&data).map_err(wrong)?.iter() {
        match op.map_err(wrong)? {
            BatchOp::Put { family, .. } | BatchOp::Delete { family, .. } | BatchOp::Merge { family, .. }
                if handler.ends_at(family) =>
            {
                break;
            }
            BatchOp::Put { family, key, value } => handler.put(family, key, value),
            BatchOp::Delete { family, key } => handler.delete(family, key),
            BatchOp::Merge { family, key, value } => handler.merge(family, key, value),
            BatchOp::LogData(blob) => handler.log_data(blob),
            BatchOp::SingleDelete { family, .. } if family == FamilyId::DEFAULT => {}
            BatchOp::SingleDelete { .. } | BatchOp::DeleteRange { .. } | BatchOp::Entity { .. } => break,
            _ => {}
        }
    }
    Ok(())
}

/// What a change of the timestamps of all keys of a batch answers. `data`: the stored form; `size_of`: the length of the timestamps
/// of a family, 0 without.
///
/// # Errors
/// `InvalidArgument`: a timestamp that is empty, or of another length than those of a family. `Io(NotFound)`: a family that
/// `size_of` does not know, for which it answers the largest number. `NotSupported`: a family with timestamps.
pub fn check_timestamps(data: &[u8], timestamp: &[u8], size_of: impl Fn(FamilyId) -> usize) -> Result<()> {
    let wrong = |e: ashlar_base::Malformed| Error::corruption(e.to_string());
    for op in BatchReader::new(data).map_err(wrong)?.iter() {
        let Some(family) = op.map_err(wrong)?.family() else { continue };
        if timestamp.is_empty() {
            return Err(Error::invalid("the timestamp is empty"));
        }
        match size_of(family) {
            0 => {}
            usize::MAX => return Err(not_found(format!("the timestamps of family {}", family.0))),
            length if length != timestamp.len() => {
                return Err(Error::invalid("a timestamp of another length than those of its family"));
            }
            _ => return Err(Error::not_supported("keys with timestamps")),
        }
    }
    Ok(())
}
