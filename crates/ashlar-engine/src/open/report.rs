//! What an open found: the answer to "is everything there?".

use super::remains::Remains;
use ashlar_base::{FamilyId, FileNumber, SeqNum};
use std::fmt;

/// A family as it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FamilyReport {
    /// Its id.
    pub id: FamilyId,
    /// Its name.
    pub name: String,
    /// Tables, all levels together.
    pub tables: usize,
    /// Their bytes.
    pub bytes: u64,
    /// WALs below held nothing unflushed of it.
    pub log_number: FileNumber,
}

/// A WAL that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WalReport {
    /// Its number.
    pub number: FileNumber,
    /// Batches replayed from it.
    pub records: u64,
    /// Bytes of those batches.
    pub bytes: u64,
}

/// Bytes of a file that were not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DroppedRange {
    /// The file's name.
    pub file: String,
    /// Where the range begins.
    pub offset: u64,
    /// Its length.
    pub bytes: u64,
    /// Why it was not used.
    pub reason: String,
    /// Of a log: the whole batches that stand in the range, and behind it.
    pub remains: Option<Remains>,
}

impl fmt::Display for DroppedRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DroppedRange { file, offset, bytes, reason, remains } = self;
        write!(f, "dropped: {bytes} bytes of {file} from offset {offset}: {reason}")?;
        remains.as_ref().map_or(Ok(()), |remains| write!(f, "; {remains}"))
    }
}

/// A file that is damaged, and that the open did without.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedFile {
    /// The file's name.
    pub file: String,
    /// What is wrong with it.
    pub cause: String,
}

impl fmt::Display for DamagedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file, self.cause)
    }
}

/// What an open found, dropped, rebuilt. Prints as a few lines of text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecoveryReport {
    /// The database was made by this open.
    pub created: bool,
    /// The MANIFEST that was read.
    pub manifest: FileNumber,
    /// Version edits in it.
    pub manifest_records: u64,
    /// The families.
    pub families: Vec<FamilyReport>,
    /// Tables whose existence and size were checked.
    pub files_checked: usize,
    /// The WALs that were read, oldest first.
    pub wals: Vec<WalReport>,
    /// The newest sequence recovered.
    pub last_sequence: SeqNum,
    /// Everything that was dropped.
    pub dropped: Vec<DroppedRange>,
    /// Damaged OPTIONS files. The settings are those of an older file, where one is sound, and of the caller.
    pub damaged: Vec<DamagedFile>,
    /// Replay stopped before damage: the last sequence before it. Writes behind it are gone.
    pub sequence_cut: Option<SeqNum>,
    /// Files that were missing or wrong and are written anew.
    pub regenerated: Vec<String>,
    /// Files moved to `lost/`, and copies there of torn tails of logs.
    pub lost: Vec<String>,
    /// What others left that RocksDB at the format level, or this engine, does not serve. No anomaly.
    pub foreign: Vec<String>,
    /// Settings of the newest OPTIONS file that are not followed, or not as they stand, though RocksDB acts on them. They are
    /// kept for RocksDB. No anomaly.
    pub unserved: Vec<String>,
    /// Why the database takes no writes; empty when it takes them. No anomaly.
    pub read_only: Vec<String>,
    /// What the linter advises on the settings. No anomaly.
    pub advice: Vec<String>,
}

impl RecoveryReport {
    /// Batches replayed from all WALs.
    pub fn wal_records(&self) -> u64 {
        self.wals.iter().map(|w| w.records).sum()
    }

    /// Bytes of those batches.
    pub fn wal_bytes(&self) -> u64 {
        self.wals.iter().map(|w| w.bytes).sum()
    }

    /// True when nothing was damaged, dropped, cut, lost or rebuilt.
    pub fn is_clean(&self) -> bool {
        self.dropped.is_empty()
            && self.damaged.is_empty()
            && self.sequence_cut.is_none()
            && self.regenerated.is_empty()
            && self.lost.is_empty()
    }

    /// True when the end of a MANIFEST or WAL was dropped: files nobody knows may be what it spoke of.
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
            "{verdict}: MANIFEST-{} with {} edits, {} tables, {} batches ({} bytes) from {} logs, last sequence {}",
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
            writeln!(f, "family {} {name:?}: {tables} tables, {bytes} bytes, logs from {log_number}", id.0)?;
        }
        for wal in &self.wals {
            writeln!(f, "log {}: {} batches, {} bytes", wal.number, wal.records, wal.bytes)?;
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
        for (what, list) in [
            ("rebuilt", &self.regenerated),
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
