//! From an encoded batch to memtable operations, per family. Used by commit and by replay.

use ashlar_base::{Error, FamilyId, Result};
use ashlar_format::write_batch::{BatchOp, BatchReader};
use ashlar_memtable::Op;

/// The operation of a batch that has one record. `None`: the batch has another number of records, or does not decode; see
/// [`each_op`].
///
/// # Errors
/// `NotSupported`: an operation that this engine does not serve, by name.
#[inline]
pub(crate) fn sole_op<'a>(batch: &BatchReader<'a>) -> Result<Option<(FamilyId, Op<'a>)>> {
    let mut records = batch.iter();
    let (Some(Ok(record)), None) = (records.next(), records.next()) else { return Ok(None) };
    let op = memtable_op(&record, 0)?;
    Ok(record.family().zip(op))
}

/// Decodes a batch once, and gives `take` the operations in order.
///
/// # Errors
/// `Corruption`: the batch does not decode. `NotSupported`: an operation that this engine does not serve, by name. Those
/// of `take`. In each case, `take` may have had the operations before.
pub(crate) fn each_op<'a>(
    batch: &BatchReader<'a>,
    mut take: impl FnMut(FamilyId, Op<'a>) -> Result<()>,
) -> Result<()> {
    let mut next_delta = 0;
    for record in batch.iter() {
        let record = record.map_err(|e| e.into_error())?;
        let op = memtable_op(&record, next_delta)?;
        let Some(family) = record.family() else { continue };
        next_delta += 1;
        if let Some(op) = op {
            take(family, op)?;
        }
    }
    Ok(())
}

/// Whether a batch has operations and all of them are deletions. Such batches are accepted on a full disk.
///
/// # Errors
/// `Corruption`: the batch does not decode.
pub(crate) fn only_deletes(batch: &BatchReader<'_>) -> Result<bool> {
    let mut deletes = false;
    for op in batch.iter() {
        match op.map_err(|e| e.into_error())? {
            BatchOp::Delete { .. } | BatchOp::SingleDelete { .. } | BatchOp::DeleteRange { .. } => {
                deletes = true;
            }
            BatchOp::LogData(_) => {}
            _ => return Ok(false),
        }
    }
    Ok(deletes)
}

/// Converts a data operation to the form that memtables take; `None` for marks that memtables do not store.
///
/// # Errors
/// `NotSupported`: an operation that this engine does not serve, by name.
pub(crate) fn memtable_op<'a>(op: &BatchOp<'a>, seq_delta: u32) -> Result<Option<Op<'a>>> {
    match (op.entry(), op) {
        (Some((value_type, key, value)), _) => Ok(Some(Op { key, value, value_type, seq_delta })),
        (None, BatchOp::LogData(_) | BatchOp::Noop) => Ok(None),
        (None, _) => Err(Error::not_supported("records of two-phase commit")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ashlar_base::ErrorKind;

    #[test]
    fn marks_of_two_phases_are_refused_by_name() {
        let xid = &b"x"[..];
        for mark in [
            BatchOp::BeginPrepare,
            BatchOp::EndPrepare { xid },
            BatchOp::Commit { xid },
            BatchOp::Rollback { xid },
            BatchOp::BeginPersistedPrepare,
            BatchOp::BeginUnprepare,
        ] {
            let e = memtable_op(&mark, 0).map(drop).unwrap_err();
            assert_eq!((e.kind(), e.message()), (ErrorKind::NotSupported, "records of two-phase commit"));
        }
        assert!(memtable_op(&BatchOp::Noop, 0).unwrap().is_none());
    }
}
