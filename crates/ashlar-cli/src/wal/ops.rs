//! Prints batches and operations in a form like that of ldb's dump_wal: `PUT(family) : key : value`.

use super::digits;
use crate::bytes_text::counted;
use ashlar_format::log_record::LogLink;
use ashlar_format::write_batch::{BatchOp, BatchReader};

/// The line of a batch.
pub(super) fn head(batch: &BatchReader<'_>, bytes: usize) -> String {
    let count = batch.count();
    let last = match u64::from(count) {
        0 | 1 => String::new(),
        n => format!(" to {}", batch.seq().get().saturating_add(n - 1)),
    };
    let operations = counted(u64::from(count), "operation");
    format!("  batch: sequence {}{last}, {operations}, {}\n", batch.seq(), counted(bytes as u64, "byte"))
}

/// Whether it is a mark of a transaction, or of a plain write of a write-prepared database.
pub(super) fn is_mark(op: &BatchOp<'_>) -> bool {
    matches!(
        op,
        BatchOp::BeginPrepare
            | BatchOp::BeginPersistedPrepare
            | BatchOp::BeginUnprepare
            | BatchOp::EndPrepare { .. }
            | BatchOp::Commit { .. }
            | BatchOp::CommitWithTimestamp { .. }
            | BatchOp::Rollback { .. }
            | BatchOp::Noop
    )
}

/// The line of an operation. Without `values`, it has only the length of the value.
pub(super) fn line(op: &BatchOp<'_>, values: bool) -> String {
    let value = |bytes: &[u8]| {
        if values { digits(bytes) } else { format!("({})", counted(bytes.len() as u64, "byte")) }
    };
    let with = |name: &str, key: &[u8], bytes: &[u8]| {
        format!("{name}({}) : {} : {}", op.family().map_or(0, |f| f.0), digits(key), value(bytes))
    };
    let bare =
        |name: &str, key: &[u8]| format!("{name}({}) : {}", op.family().map_or(0, |f| f.0), digits(key));
    let text = match *op {
        BatchOp::Put { key, value, .. } => with("PUT", key, value),
        BatchOp::Merge { key, value, .. } => with("MERGE", key, value),
        BatchOp::BlobIndex { key, index, .. } => with("PUT_BLOB_INDEX", key, index),
        BatchOp::Entity { key, entity, .. } => with("PUT_ENTITY", key, entity),
        BatchOp::TimedPut { key, value, write_time, .. } => {
            format!("{} : written at {write_time}", with("TIMED_PUT", key, value))
        }
        BatchOp::Delete { key, .. } => bare("DELETE", key),
        BatchOp::SingleDelete { key, .. } => bare("SINGLE_DELETE", key),
        BatchOp::DeleteRange { begin, end, .. } => format!("{} {}", bare("DELETE_RANGE", begin), digits(end)),
        BatchOp::LogData(bytes) => match LogLink::decode(bytes) {
            Ok(Some(link)) => {
                format!("LOG_DATA : continues WAL file {}, which ends at {}", link.number, link.end)
            }
            _ => format!("LOG_DATA : {}", value(bytes)),
        },
        BatchOp::BeginPrepare => "BEGIN_PREPARE(false)".to_owned(),
        BatchOp::BeginPersistedPrepare => "BEGIN_PREPARE(true)".to_owned(),
        BatchOp::BeginUnprepare => "BEGIN_UNPREPARE".to_owned(),
        BatchOp::CommitWithTimestamp { timestamp, xid } => {
            format!("COMMIT_WITH_TIMESTAMP({}) : {}", digits(xid), digits(timestamp))
        }
        ref other => mark(other),
    };
    format!("    {text}\n")
}

/// The text of a mark, as ldb words it.
pub(super) fn mark(op: &BatchOp<'_>) -> String {
    match *op {
        BatchOp::EndPrepare { xid } => format!("END_PREPARE({})", digits(xid)),
        BatchOp::Commit { xid } => format!("COMMIT({})", digits(xid)),
        BatchOp::Rollback { xid } => format!("ROLLBACK({})", digits(xid)),
        BatchOp::Noop => "NOOP".to_owned(),
        ref other => format!("{other:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ashlar_base::{FamilyId, FileNumber};

    #[test]
    fn lines_are_ldbs() {
        let family = FamilyId(3);
        let put = BatchOp::Put { family, key: b"a", value: b"1" };
        assert_eq!(line(&put, true), "    PUT(3) : 0x61 : 0x31\n");
        assert_eq!(line(&put, false), "    PUT(3) : 0x61 : (1 byte)\n");
        let range = BatchOp::DeleteRange { family, begin: b"a", end: b"b" };
        assert_eq!(line(&range, true), "    DELETE_RANGE(3) : 0x61 0x62\n");
        assert_eq!(line(&BatchOp::Commit { xid: b"t" }, true), "    COMMIT(0x74)\n");
        let link = LogLink { number: FileNumber(4), end: 90 }.encode();
        assert_eq!(
            line(&BatchOp::LogData(&link), true),
            "    LOG_DATA : continues WAL file 000004, which ends at 90\n"
        );
    }
}
