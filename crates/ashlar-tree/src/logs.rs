//! The content of a WAL file, as far as it is known without a replay: writes, marks of transactions, a link to the file
//! before it.

use ashlar_base::{FileNumber, Malformed, Result, SeqNum};
use ashlar_env::ReadFile;
use ashlar_format::Unreadable;
use ashlar_format::log_record::LogLink;
use ashlar_format::write_batch::{BatchOp, BatchReader};
use ashlar_log::{LogReader, LogRecordKind, RecoveryMode};
use std::sync::Arc;

/// The marks of transactions in a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Marks {
    /// None, or only marks that every policy writes in front of its batches.
    #[default]
    None,
    /// Marks of two-phase transactions.
    TwoPhase,
    /// Marks of a policy that writes before the commit.
    BeforeCommit,
}

impl Marks {
    /// The marks of one operation.
    pub fn of(op: &BatchOp<'_>) -> Marks {
        match op {
            BatchOp::BeginPrepare
            | BatchOp::EndPrepare { .. }
            | BatchOp::Commit { .. }
            | BatchOp::CommitWithTimestamp { .. }
            | BatchOp::Rollback { .. } => Marks::TwoPhase,
            BatchOp::BeginPersistedPrepare | BatchOp::BeginUnprepare => Marks::BeforeCommit,
            _ => Marks::None,
        }
    }
}

/// Whether a WAL file may hold a write of its own: it holds one, or it has no readable record. Copies of undecided transactions
/// behind a link are not its own: an older file has their data until the file is committed.
///
/// # Errors
/// `Io`.
pub fn may_hold_writes(file: &Arc<dyn ReadFile>, number: FileNumber) -> Result<bool> {
    let mut reader = LogReader::open(Arc::clone(file), number, RecoveryMode::SkipAny);
    let Some(first) = reader.next()? else { return Ok(true) };
    let is_own = |op: &BatchOp<'_>| !matches!(op, BatchOp::LogData(_));
    match BatchReader::new(first.payload) {
        Ok(batch) if matches!(link_of(&batch), Ok(Some(_))) => any_op(&mut reader, is_own),
        _ => holds(file, number, is_own),
    }
}

/// Whether a WAL file has marks of transactions: its sequences may then differ from those of its batches.
///
/// # Errors
/// `Io`.
pub fn has_transactions(file: &Arc<dyn ReadFile>, number: FileNumber) -> Result<bool> {
    holds(file, number, |op| Marks::of(op) != Marks::None)
}

/// Whether an operation of the WAL file has these marks. Damage is skipped.
///
/// # Errors
/// `Io`.
pub fn has_marks(file: &Arc<dyn ReadFile>, number: FileNumber, marks: Marks) -> Result<bool> {
    holds(file, number, |op| Marks::of(op) == marks)
}

/// The sequence number of the first batch of a WAL file; `None`: it has none that is readable.
///
/// # Errors
/// `Corruption`: the batch is malformed. `Io`.
pub fn first_sequence(file: &Arc<dyn ReadFile>, number: FileNumber) -> Result<Option<SeqNum>> {
    let mut reader = LogReader::open(Arc::clone(file), number, RecoveryMode::TolerateTail);
    while let Some(record) = reader.next()? {
        if record.kind == LogRecordKind::Data {
            let (offset, batch) = (record.offset, BatchReader::new(record.payload));
            let batch = batch.map_err(|e| Unreadable::Malformed(e).in_file(file.path(), offset))?;
            return Ok(Some(batch.seq()));
        }
    }
    Ok(None)
}

/// Whether a record of the WAL file has an operation for which `such` is true. Damage is skipped.
fn holds(file: &Arc<dyn ReadFile>, number: FileNumber, such: impl Fn(&BatchOp<'_>) -> bool) -> Result<bool> {
    any_op(&mut LogReader::open(Arc::clone(file), number, RecoveryMode::SkipAny), such)
}

/// The same of the records that `reader` has left.
fn any_op(reader: &mut LogReader, such: impl Fn(&BatchOp<'_>) -> bool) -> Result<bool> {
    while let Some(record) = reader.next()? {
        let batch = BatchReader::new(record.payload);
        if batch.is_ok_and(|b| b.iter().any(|op| op.is_ok_and(|op| such(&op)))) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The link at the front of the first batch of a WAL file of this engine. Behind it, the batch has copies of undecided
/// transactions, or nothing.
///
/// # Errors
/// The batch is malformed.
pub fn link_of(batch: &BatchReader<'_>) -> Result<Option<LogLink>, Malformed> {
    match batch.iter().next().transpose()? {
        Some(BatchOp::LogData(data)) => LogLink::decode(data),
        _ => Ok(None),
    }
}

/// Whether a batch ends with a mark behind data. Write-prepared databases count parts by such marks, also in plain
/// writes.
pub fn ends_a_part(batch: &BatchReader<'_>) -> bool {
    let mut ops = batch.iter().filter_map(std::result::Result::ok).peekable();
    let begins_with_data = ops.peek().is_some_and(|op| !matches!(op, BatchOp::Noop));
    let (count, last) = ops.fold((0, None), |(count, _), op| (count + 1, Some(op)));
    matches!(last, Some(BatchOp::Noop)) && (begins_with_data || count > 1)
}

/// The words for a batch at `seq` where `next` was expected.
pub fn goes_back_to(next: SeqNum, seq: SeqNum) -> String {
    format!("the sequence goes back: {next} was next, the batch has {seq}")
}
