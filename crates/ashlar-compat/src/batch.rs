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
    for op in each(&batch.data()?)? {
        let Op { kind, family, key, value } = op?;
        match kind {
            Kind::Put | Kind::Delete | Kind::Merge if handler.ends_at(family) => break,
            Kind::Put => handler.put(family, key, value),
            Kind::Delete => handler.delete(family, key),
            Kind::Merge => handler.merge(family, key, value),
            Kind::LogData => handler.log_data(key),
            Kind::SingleDelete if family == FamilyId::DEFAULT => {}
            Kind::SingleDelete | Kind::DeleteRange | Kind::Entity => break,
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
    /// The place of a key's value in a blob file.
    BlobIndex,
    /// Columns for a key.
    Entity,
    /// A value for a key, with the time of its write.
    TimedPut,
    /// Bytes for readers of the WAL.
    LogData,
    /// A prepared transaction begins.
    BeginPrepare,
    /// A prepared transaction ends.
    EndPrepare,
    /// A prepared transaction is committed.
    Commit,
    /// A prepared transaction is committed, and its keys get a timestamp.
    CommitWithTimestamp,
    /// A prepared transaction is rolled back.
    Rollback,
    /// Nothing: a place that a transaction has reserved.
    Noop,
    /// One that this version does not know.
    Other,
}

/// An operation of a batch, as any handler sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Op<'a> {
    /// Its kind.
    pub kind: Kind,
    /// The family; `default` for what has none.
    pub family: FamilyId,
    /// The key, the first key of a range, the bytes for readers of the WAL, or the name of a transaction.
    pub key: &'a [u8],
    /// The value, the operand, the key behind a range, or a timestamp.
    pub value: &'a [u8],
}

impl<'a> Op<'a> {
    fn of(op: &BatchOp<'a>) -> Op<'a> {
        let none: &[u8] = &[];
        let mark = |kind, name, value| (kind, FamilyId::DEFAULT, name, value);
        let (kind, family, key, value) = match *op {
            BatchOp::Put { family, key, value } => (Kind::Put, family, key, value),
            BatchOp::Merge { family, key, value } => (Kind::Merge, family, key, value),
            BatchOp::Delete { family, key } => (Kind::Delete, family, key, none),
            BatchOp::SingleDelete { family, key } => (Kind::SingleDelete, family, key, none),
            BatchOp::DeleteRange { family, begin, end } => (Kind::DeleteRange, family, begin, end),
            BatchOp::BlobIndex { family, key, index } => (Kind::BlobIndex, family, key, index),
            BatchOp::Entity { family, key, entity } => (Kind::Entity, family, key, entity),
            BatchOp::TimedPut { family, key, value, .. } => (Kind::TimedPut, family, key, value),
            BatchOp::LogData(blob) => mark(Kind::LogData, blob, none),
            BatchOp::BeginPrepare | BatchOp::BeginPersistedPrepare | BatchOp::BeginUnprepare => {
                mark(Kind::BeginPrepare, none, none)
            }
            BatchOp::EndPrepare { xid } => mark(Kind::EndPrepare, xid, none),
            BatchOp::Commit { xid } => mark(Kind::Commit, xid, none),
            BatchOp::CommitWithTimestamp { timestamp, xid } => {
                mark(Kind::CommitWithTimestamp, xid, timestamp)
            }
            BatchOp::Rollback { xid } => mark(Kind::Rollback, xid, none),
            BatchOp::Noop => mark(Kind::Noop, none, none),
            _ => mark(Kind::Other, none, none),
        };
        Op { kind, family, key, value }
    }
}

/// The operations of the stored form of a batch, in order.
///
/// # Errors
/// `Corruption`: the bytes do not decode.
fn each(data: &[u8]) -> Result<impl Iterator<Item = Result<Op<'_>>>> {
    let wrong = |e: ashlar_base::Malformed| Error::corruption(e.to_string());
    let reader = BatchReader::new(data).map_err(wrong)?;
    Ok(reader.iter().map(move |op| op.map(|op| Op::of(&op)).map_err(wrong)))
}

/// All operations of the stored form of a batch, in order.
///
/// # Errors
/// `Corruption`: the bytes do not decode.
pub fn operations(data: &[u8]) -> Result<Vec<Op<'_>>> {
    each(data)?.collect()
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

#[cfg(test)]
mod tests {
    use super::*;
    use ashlar_base::SeqNum;
    use ashlar_format::write_batch::BatchEncoder;

    #[test]
    fn a_mark_of_a_transaction_has_its_name() {
        let mut batch = BatchEncoder::new();
        batch.begin_prepare();
        batch.end_prepare(b"a");
        batch.rollback(b"b");
        let data = batch.finish(SeqNum::ZERO);
        let kinds: Vec<(Kind, &[u8])> =
            operations(data).unwrap().into_iter().map(|op| (op.kind, op.key)).collect();
        assert_eq!(kinds, [(Kind::BeginPrepare, &b""[..]), (Kind::EndPrepare, b"a"), (Kind::Rollback, b"b")]);
    }
}
