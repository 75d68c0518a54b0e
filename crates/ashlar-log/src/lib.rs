//! The log format on files: a writer and a reader for WAL files and MANIFESTs.

#![deny(clippy::indexing_slicing)]

mod reader;
mod writer;

pub use ashlar_format::log_record::Framing;
pub use reader::{
    CutReason, LogEnd, LogReader, LogRecord, LogRecordKind, PhysicalKind, PhysicalRecord, PhysicalRecords,
    RecoveryMode, Skipped, record_behind,
};
pub use writer::{LogGroup, LogRange, LogWriter, RoomLimit};
