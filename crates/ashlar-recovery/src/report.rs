//! What an open found: whether all data is there.

use super::remains::Remains;
use ashlar_base::{Error, FamilyId, FileNumber, SeqNum};
use ashlar_format::write_batch::BatchReader;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// A family as it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FamilyReport {
    /// Its id.
    pub id: FamilyId,
    /// Its name.
    pub name: String,
    /// The number of tables in all levels.
    pub tables: usize,
    /// Bytes of those tables.
    pub bytes: u64,
    /// WAL files below this number hold no unflushed data of the family.
    pub log_number: FileNumber,
}

/// A WAL file that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WalReport {
    /// Its number.
    pub number: FileNumber,
    /// Batches replayed from the file.
    pub records: u64,
    /// Bytes of those batches.
    pub bytes: u64,
}

/// A transaction that is prepared, and neither committed nor rolled back.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UndecidedTransaction {
    /// Its name.
    pub name: Vec<u8>,
    /// The WAL file in which its operations were found.
    pub wal: FileNumber,
    /// The number of its operations.
    pub operations: u64,
    /// Bytes of the operations in the WAL.
    pub bytes: u64,
    /// The families to which it writes, by id.
    pub families: Vec<UndecidedFamily>,
}

/// A family to which an undecided transaction writes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UndecidedFamily {
    /// Its id.
    pub id: FamilyId,
    /// Its name; `None`: the family was dropped.
    pub name: Option<String>,
    /// The number of its keys that the transaction writes.
    pub keys: u64,
}

impl UndecidedTransaction {
    pub(crate) fn new(name: &[u8], wal: FileNumber, operations: u64, bytes: u64) -> Self {
        UndecidedTransaction { name: name.to_vec(), wal, operations, bytes, families: Vec::new() }
    }

    /// Sets the families from the operations. `known`: those of the database.
    pub(crate) fn count_keys(&mut self, data: &[BatchReader<'_>], known: &[FamilyReport]) {
        let mut keys: BTreeMap<FamilyId, BTreeSet<&[u8]>> = BTreeMap::new();
        for op in data.iter().flat_map(|batch| batch.iter()).flatten() {
            if let (Some(family), Some(key)) = (op.family(), op.key()) {
                keys.entry(family).or_default().insert(key);
            }
        }
        let name = |id| known.iter().find(|family| family.id == id).map(|family| family.name.clone());
        let family = |(id, keys): (FamilyId, BTreeSet<_>)| UndecidedFamily {
            id,
            name: name(id),
            keys: keys.len() as u64,
        };
        self.families = keys.into_iter().map(family).collect();
    }

    /// The number of keys that the transaction writes, in all families.
    pub fn keys(&self) -> u64 {
        self.families.iter().map(|family| family.keys).sum()
    }
}

impl fmt::Display for UndecidedTransaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let UndecidedTransaction { name, wal, operations, .. } = self;
        let name = name.escape_ascii();
        write!(
            f,
            "transaction '{name}' with {operations} writes in WAL file {wal} is prepared and not decided on"
        )
    }
}

/// A range of a file that was not used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DroppedRange {
    /// The file's name.
    pub file: String,
    /// The offset at which the range begins.
    pub offset: u64,
    /// The length of the range.
    pub bytes: u64,
    /// Why it was not used.
    pub reason: String,
    /// For a WAL file: the whole batches in the range, and behind it.
    pub remains: Option<Remains>,
}

impl fmt::Display for DroppedRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DroppedRange { file, offset, bytes, reason, remains } = self;
        write!(f, "dropped: {bytes} bytes of {file} from offset {offset}: {reason}")?;
        remains.as_ref().map_or(Ok(()), |remains| write!(f, "; {remains}"))
    }
}

/// A damaged file without which the open went on.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DamagedFile {
    /// The file's name.
    pub file: String,
    /// The error.
    pub cause: String,
}

impl DamagedFile {
    /// The file with this name, and the error that it gave.
    pub fn new(file: String, e: &Error) -> Self {
        DamagedFile { file, cause: e.to_string() }
    }
}

impl fmt::Display for DamagedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file, self.cause)
    }
}

/// What an open found, dropped and rebuilt. Prints as a few lines of text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecoveryReport {
    /// This open created the database.
    pub created: bool,
    /// The MANIFEST that was read.
    pub manifest: FileNumber,
    /// The number of its version edits.
    pub manifest_records: u64,
    /// The families.
    pub families: Vec<FamilyReport>,
    /// Tables whose existence and size were checked.
    pub files_checked: usize,
    /// The WAL files that were read, oldest first.
    pub wals: Vec<WalReport>,
    /// The newest sequence recovered.
    pub last_sequence: SeqNum,
    /// Everything that was dropped.
    pub dropped: Vec<DroppedRange>,
    /// Damaged OPTIONS files: the settings come from an older intact file, if there is one, and from the caller. Of a
    /// read-only open also the tables and blob files that it could not open: reads of their keys return the error.
    pub damaged: Vec<DamagedFile>,
    /// Replay stopped before damage: the last sequence before it. Later writes are lost.
    pub sequence_cut: Option<SeqNum>,
    /// Files that were wrong and were rewritten.
    pub regenerated: Vec<String>,
    /// Files that were missing and were written, and that hold nothing of the user's. RocksDB copies no IDENTITY into
    /// checkpoints and backups, for example. No anomaly.
    pub written: Vec<String>,
    /// Files moved to `lost/`, and copies of torn WAL tails there.
    pub lost: Vec<String>,
    /// Data of other programs that RocksDB at the format level, or this engine, does not serve. No anomaly.
    pub foreign: Vec<String>,
    /// Settings of the newest OPTIONS file that this engine ignores or changes although RocksDB acts on them. They are
    /// kept for RocksDB. Also the tables of this open that lack the properties of a collector. No anomaly.
    pub unserved: Vec<String>,
    /// Transactions that are prepared, and neither committed nor rolled back. No anomaly.
    pub undecided: Vec<UndecidedTransaction>,
    /// Why the database takes no writes; empty if it takes writes. No anomaly.
    pub read_only: Vec<String>,
    /// The linter's advice on the settings. No anomaly.
    pub advice: Vec<String>,
}

impl RecoveryReport {
    /// Batches replayed from all WAL files.
    pub fn wal_records(&self) -> u64 {
        self.wals.iter().map(|w| w.records).sum()
    }

    /// Bytes of those batches.
    pub fn wal_bytes(&self) -> u64 {
        self.wals.iter().map(|w| w.bytes).sum()
    }

    /// True if nothing was damaged, dropped, cut, lost or rebuilt.
    pub fn is_clean(&self) -> bool {
        self.dropped.is_empty()
            && self.damaged.is_empty()
            && self.sequence_cut.is_none()
            && self.regenerated.is_empty()
            && self.lost.is_empty()
    }

    /// True if the end of a MANIFEST or WAL file was dropped: the dropped edits may have named files that seem unknown.
    pub fn tail_dropped(&self) -> bool {
        !self.dropped.is_empty() || self.sequence_cut.is_some()
    }
}

impl fmt::Display for RecoveryReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = match (self.created, self.is_clean()) {
            (true, _) => "new database",
            (false, true) => "clean",
            (false, false) => "recovered with losses or repairs, listed below",
        };
        writeln!(
            f,
            "{verdict}: MANIFEST-{} with {} edits, {} tables, {} batches ({} bytes) from {} WAL files, last sequence {}",
            self.manifest,
            self.manifest_records,
            self.files_checked,
            self.wal_records(),
            self.wal_bytes(),
            self.wals.len(),
            self.last_sequence
        )?;
        for family in &self.families {
            let FamilyReport { id, name, tables, bytes, log_number } = family;
            writeln!(
                f,
                "family {} {name:?}: {tables} tables, {bytes} bytes, WAL files from {log_number}",
                id.0
            )?;
        }
        for wal in &self.wals {
            writeln!(f, "WAL file {}: {} batches, {} bytes", wal.number, wal.records, wal.bytes)?;
        }
        for range in &self.dropped {
            writeln!(f, "{range}")?;
        }
        for file in &self.damaged {
            writeln!(f, "damaged: {file}")?;
        }
        if let Some(seq) = self.sequence_cut {
            writeln!(f, "cut: writes behind sequence {seq} are gone")?;
        }
        for transaction in &self.undecided {
            writeln!(f, "undecided: {transaction}")?;
        }
        for (what, list) in [
            ("rebuilt", &self.regenerated),
            ("written", &self.written),
            ("moved to lost/", &self.lost),
            ("foreign", &self.foreign),
            ("stored setting not followed", &self.unserved),
            ("read-only", &self.read_only),
            ("advice", &self.advice),
        ] {
            for item in list {
                writeln!(f, "{what}: {item}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_was_lost() {
        let mut report = RecoveryReport { manifest: FileNumber(5), ..RecoveryReport::default() };
        assert!(report.is_clean());
        assert!(report.to_string().starts_with("clean: MANIFEST-000005 with 0 edits"), "{report}");
        report.foreign.push("a blob file".to_string());
        assert!(report.is_clean());
        report.dropped.push(DroppedRange {
            file: "000007.log".to_string(),
            offset: 40,
            bytes: 9,
            reason: "checksum mismatch".to_string(),
            remains: None,
        });
        report.sequence_cut = SeqNum::new(12);
        assert!(!report.is_clean() && report.tail_dropped());
        let text = report.to_string();
        assert!(
            text.contains("dropped: 9 bytes of 000007.log from offset 40: checksum mismatch\n"),
            "{text}"
        );
        assert!(text.contains("cut: writes behind sequence 12 are gone\n"), "{text}");
    }
}
