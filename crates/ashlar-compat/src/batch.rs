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
/// family are skipped. Those of another family, range deletions and entities end the walk.
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

/// A kind of operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A value for a key.
    Put,
    /// The deletion of a key.
    Delete,
    /// The deletion of a key that was put once.
    SingleDelete,
    /// The deletion of the keys from one on, up to another.
    DeleteRange,
    /// An operand for a key.
    Merge,
    /// Bytes for readers of the WAL.
    LogData,
    /// The marks of a prepared transaction.
    BeginPrepare,
    /// See [`Kind::BeginPrepare`].
    EndPrepare,
    /// See [`Kind::BeginPrepare`].
    Commit,
    /// See [`Kind::BeginPrepare`].
    Rollback,
    /// Any other one.
    Other,
}

/// An operation of a batch, as any handler sees it.
#[derive(Clone, Copy, Debug)]
pub struct Op<'a> {
    /// Its kind.
    pub kind: Kind,
    /// The family; `default` for what has none.
    pub family: FamilyId,
    /// The key, the first key of a range, or the bytes for readers of the WAL.
    pub key: &'a [u8],
    /// The value, the operand, or the key behind a range.
    pub value: &'a [u8],
}

impl<'a> Op<'a> {
    fn of(op: &BatchOp<'a>) -> Op<'a> {
        let none: &[u8] = &[];
        let plain = |kind| (kind, FamilyId::DEFAULT, none, none);
        let (kind, family, key, value) = match *op {
            BatchOp::Put { family, key, value } => (Kind::Put, family, key, value),
            BatchOp::Merge { family, key, value } => (Kind::Merge, family, key, value),
            BatchOp::Delete { family, key } => (Kind::Delete, family, key, none),
            BatchOp::SingleDelete { family, key } => (Kind::SingleDelete, family, key, none),
            BatchOp::DeleteRange { family, begin, end } => (Kind::DeleteRange, family, begin, end),
            BatchOp::LogData(blob) => (Kind::LogData, FamilyId::DEFAULT, blob, none),
            BatchOp::BeginPrepare { .. } => plain(Kind::BeginPrepare),
            BatchOp::EndPrepare { .. } => plain(Kind::EndPrepare),
            BatchOp::Commit { .. } => plain(Kind::Commit),
            BatchOp::Rollback { .. } => plain(Kind::Rollback),
            _ => plain(Kind::Other),
        };
        Op { kind, family, key, value }
    }
}

/// All operations of the stored form of a batch, in order.
///
/// # Errors
/// `Corruption`: the bytes do not decode.
pub fn operations(data: &[u8]) -> Result<Vec<Op<'_>>> {
    let wrong = |e: ashlar_base::Malformed| Error::corruption(e.to_string());
    let reader = BatchReader::new(data).map_err(wrong)?;
    reader.iter().map(|op| op.map(|op| Op::of(&op)).map_err(wrong)).collect()
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
