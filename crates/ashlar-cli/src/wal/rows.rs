//! A WAL file as ldb's dump_wal prints it: a line for each batch.
//!
//! ```text
//! Sequence,Count,ByteSize,Physical Offset,Key(s) : value
//! 7,1,18,0,PUT(1) : 0x61 : 0x62
//! ```
//! The name of an operation is followed by its family, key and value, and each operation by a space. Data for readers of the WAL
//! (`LogData`) is not printed.
//!
//! Source: RocksDB `tools/ldb_cmd.cc` (`dump_wal`, by its output).

use super::{digits, files_of, number_of, ops, what_instead};
use crate::Done;
use crate::outcome::Outcome;
use ashlar_base::Error;
use ashlar_env::Env;
use ashlar_format::entity::{Column, ColumnValue, Entity};
use ashlar_format::write_batch::{BatchOp, BatchReader};
use ashlar_log::{LogReader, LogRecordKind, RecoveryMode};
use std::io::Write;
use std::path::Path;

/// What is printed beside the keys.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rows {
    /// A first line with the names of the columns.
    pub(crate) header: bool,
    pub(crate) values: bool,
}

impl Rows {
    /// Prints a WAL file, or the WAL files of a directory in the order of their numbers.
    pub(crate) fn print(self, path: &Path, out: &mut dyn Write) -> Done {
        if !path.is_dir() {
            return self.print_file(path, out);
        }
        files_of(path)?.iter().try_for_each(|file| {
            writeln!(out, "Checking wal file: {}", file.display())?;
            self.print_file(file, out)
        })
    }

    /// Prints the batches of the WAL file, up to its end or the first damage.
    fn print_file(self, path: &Path, out: &mut dyn Write) -> Done {
        let Some(number) = number_of(path) else {
            let hint = what_instead(path);
            return Err(Outcome::Usage(format!("{}: not the name of a WAL file. {hint}", path.display())));
        };
        let file = Env::os()?.fs.open_read(path)?;
        if self.header {
            let value = if self.values { " : value " } else { "" };
            writeln!(out, "Sequence,Count,ByteSize,Physical Offset,Key(s){value}")?;
        }
        let mut reader = LogReader::open(file, number, RecoveryMode::PointInTime);
        while let Some(record) = reader.next()? {
            if record.kind == LogRecordKind::Data {
                let offset = record.offset;
                let row = self.row(offset, record.payload).map_err(|e| e.at(path, offset))?;
                writeln!(out, "{row}")?;
            }
        }
        reader.cut_error().map_or(Ok(()), |e| Err(e.at_path(path).into()))
    }

    fn row(self, offset: u64, payload: &[u8]) -> Result<String, Error> {
        let batch = BatchReader::new(payload).map_err(|e| e.into_error())?;
        let mut row = format!("{},{},{},{offset},", batch.seq(), batch.count(), payload.len());
        for op in batch.iter() {
            row.push_str(&self.operation(&op.map_err(|e| e.into_error())?));
        }
        Ok(row)
    }

    fn operation(self, op: &BatchOp<'_>) -> String {
        let family = op.family().map_or(0, |family| family.0);
        let bare = |name: &str, key: &[u8]| format!("{name}({family}) : {} ", digits(key));
        let with = |name: &str, key: &[u8], value: &[u8]| match self.values {
            true => format!("{}: {} ", bare(name, key), digits(value)),
            false => bare(name, key),
        };
        match *op {
            BatchOp::Put { key, value, .. } => with("PUT", key, value),
            BatchOp::Merge { key, value, .. } => with("MERGE", key, value),
            BatchOp::BlobIndex { key, index, .. } => with("PUT_BLOB_INDEX", key, index),
            BatchOp::Entity { key, entity, .. } if self.values => {
                format!("{}: {} ", bare("PUT_ENTITY", key), columns(entity))
            }
            BatchOp::Entity { key, .. } => bare("PUT_ENTITY", key),
            BatchOp::TimedPut { key, value, .. } => with("TIMED_PUT", key, value),
            BatchOp::Delete { key, .. } => bare("DELETE", key),
            BatchOp::SingleDelete { key, .. } => bare("SINGLE_DELETE", key),
            BatchOp::DeleteRange { begin, end, .. } => {
                format!("{}{} ", bare("DELETE_RANGE", begin), digits(end))
            }
            BatchOp::BeginPrepare | BatchOp::BeginPersistedPrepare => "BEGIN_PREPARE(false) ".to_owned(),
            BatchOp::BeginUnprepare => "BEGIN_PREPARE(true) ".to_owned(),
            BatchOp::CommitWithTimestamp { timestamp, xid } => {
                format!("COMMIT_WITH_TIMESTAMP({}, {}) ", digits(xid), digits(timestamp))
            }
            // As ldb, which leaves them out.
            BatchOp::LogData(_) => String::new(),
            ref other => format!("{} ", ops::mark(other)),
        }
    }
}

/// The columns of an entity, `NAME:VALUE` each.
fn columns(entity: &[u8]) -> String {
    let Ok(decoded) = Entity::decode(entity) else { return digits(entity) };
    let name = |name: &[u8]| if name.is_empty() { String::new() } else { digits(name) };
    let column = |column: &Column<'_>| match column.value {
        ColumnValue::Inline(value) => format!("{}:{}", name(column.name), digits(value)),
        ColumnValue::Blob(_) => format!("{}:[blob ref]", name(column.name)),
    };
    decoded.columns().iter().map(column).collect::<Vec<_>>().join(" ")
}
