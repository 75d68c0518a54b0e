//! From an encoded batch to memtable operations, per family. Used by commit and by replay.

use ashlar_base::{Error, FamilyId, Result, ValueType};
use ashlar_format::write_batch::{BatchOp, BatchReader};
use ashlar_memtable::Op;

/// Replaces `families` by the families that a batch touches, each once, in order of appearance.
///
/// # Errors
/// `Corruption`: the batch does not decode. `NotSupported`: an operation that this engine does not serve, by name.
pub(crate) fn collect_families(batch: &BatchReader<'_>, families: &mut Vec<FamilyId>) -> Result<()> {
    families.clear();
    for op in batch.iter() {
        let op = op.map_err(|e| e.into_error())?;
        memtable_op(&op, 0)?;
        if let Some(family) = op.family()
            && families.last() != Some(&family)
            && !families.contains(&family)
        {
            families.push(family);
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

/// The operations of one family, each with its index in the batch. Call only after [`collect_families`] accepted the batch:
/// operations that it would refuse are left out.
pub(crate) fn family_ops<'a>(batch: &BatchReader<'a>, of: FamilyId) -> impl Iterator<Item = Op<'a>> {
    let mut next_delta = 0;
    batch.iter().filter_map(Result::ok).filter_map(move |op| {
        let family = op.family()?;
        let seq_delta = next_delta;
        next_delta += 1;
        if family == of { memtable_op(&op, seq_delta).ok()? } else { None }
    })
}

/// Converts a data operation to the form that memtables take; `None` for marks that memtables do not store.
///
/// # Errors
/// `NotSupported`: an operation that this engine does not serve, by name.
pub(crate) fn memtable_op<'a>(op: &BatchOp<'a>, seq_delta: u32) -> Result<Option<Op<'a>>> {
    let (value_type, key, value): (ValueType, &[u8], &[u8]) = match *op {
        BatchOp::Put { key, value, .. } => (ValueType::Put, key, value),
        BatchOp::Delete { key, .. } => (ValueType::Delete, key, &[]),
        BatchOp::SingleDelete { key, .. } => (ValueType::SingleDelete, key, &[]),
        BatchOp::Merge { key, value, .. } => (ValueType::Merge, key, value),
        BatchOp::BlobIndex { key, index, .. } => (ValueType::BlobIndex, key, index),
        BatchOp::Entity { key, entity, .. } => (ValueType::Entity, key, entity),
        BatchOp::DeleteRange { begin, end, .. } => (ValueType::RangeDelete, begin, end),
        // The write time only decides the storage tier of a value; this engine has one tier.
        BatchOp::TimedPut { key, value, .. } => (ValueType::Put, key, value),
        BatchOp::LogData(_) | BatchOp::Noop => return Ok(None),
        _ => return Err(Error::not_supported("records of two-phase commit")),
    };
    Ok(Some(Op { key, value, value_type, seq_delta }))
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
