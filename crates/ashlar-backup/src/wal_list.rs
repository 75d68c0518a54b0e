//! The WAL files of a database, listed for operators and for programs that copy them.
//!
//! Source: RocksDB `include/rocksdb/transaction_log.h` (`WalFile`), behaviour of `GetSortedWalFiles`.

use super::updates::candidates;
use ashlar_base::{FileNumber, Result, SeqNum};
use ashlar_engine::Db;
use ashlar_tree::logs::first_sequence;

/// A WAL file at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WalFile {
    /// The number in the file's name.
    pub number: FileNumber,
    /// The file is in the directory `archive`, which keeps WAL files that the database no longer needs.
    pub archived: bool,
    /// The sequence number of its first write; `None`: the file has no write yet.
    pub first: Option<SeqNum>,
    /// The bytes up to the end of its last record.
    pub bytes: u64,
}

/// The WAL files of the archive and of this moment, ascending. The last one takes the next write.
///
/// # Errors
/// `NotSupported`: the database is open for reading only. `InvalidArgument`: a callback of the database makes the call.
/// `Corruption`, `Io`: a WAL file could not be read. `Shutdown`; the error that refuses writes.
/// # Cost
/// A read of the first record of each WAL file.
pub fn wal_files(db: &Db) -> Result<Vec<WalFile>> {
    let held = db.hold_files("wal_files()")?;
    let moment = held.moment_of_log()?;
    let each = candidates(db, &moment)?.into_iter().map(|candidate| {
        // A WAL file may begin with a record that writes nothing, and that has the number of the next write.
        let first = first_sequence(&candidate.file, candidate.number)?;
        Ok(WalFile {
            number: candidate.number,
            archived: candidate.end.is_none(),
            first: first.filter(|first| *first <= moment.sequence),
            bytes: candidate.end.unwrap_or_else(|| candidate.file.len()),
        })
    });
    each.collect()
}
