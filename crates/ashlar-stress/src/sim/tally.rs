//! The counts of a suite, for its one line.

use super::features::Done;
use super::judged::Looked;
use ashlar_env::sim::{CrashMode, DataMode, DirMode, SyncFault};
use ashlar_testkit::suite::Report;
use std::collections::BTreeMap;

/// Counts.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    pub seeds: u64,
    pub operations: u64,
    pub crashes: BTreeMap<&'static str, u64>,
    /// Crashes in the middle of an operation or a background step.
    pub inside: u64,
    /// Crashes of a recovery.
    pub nested: u64,
    pub lost: u64,
    pub holes: u64,
    pub pairs: u64,
    /// Seeds whose writes were not logged.
    pub unlogged: u64,
    /// Seeds whose writes waited for a flush of the log.
    pub held_back: u64,
    /// Writes that came in by an ingestion.
    pub ingested: u64,
    /// Families that were made by an import.
    pub imported: u64,
    /// Blob files that were there at the ends.
    pub blob_files: u64,
    /// Seeds with files outside of the database directory.
    pub placed: u64,
    /// Logs, tables and blob files that were there at the ends.
    pub elsewhere: [u64; 3],
    /// Deletions that a full disk took: where a flush lacked room, and where the log did.
    pub deleted: [u64; 2],
    pub judged: Looked,
    /// Calls that were made to fail.
    pub failed: u64,
    /// Syncs of files among them, by what they did all the same.
    pub failed_syncs: BTreeMap<&'static str, u64>,
    /// Counts of the features, by name.
    pub features: BTreeMap<&'static str, u64>,
}

impl Tally {
    pub fn crashed(&mut self, mode: CrashMode) {
        *self.crashes.entry(name(mode)).or_default() += 1;
    }

    /// Adds what the features of a history have done.
    pub fn feature(&mut self, done: &Done) {
        for (what, n) in &done.counts {
            *self.features.entry(what).or_default() += n;
        }
    }

    pub fn all_crashes(&self) -> u64 {
        self.crashes.values().sum()
    }
}

impl Tally {
    /// Puts the counts into a report.
    pub fn tell(&self, report: &mut Report) {
        let Tally {
            seeds, operations, inside, nested, lost, holes, pairs, unlogged, held_back, judged, ..
        } = self;
        for (what, n) in [
            ("histories", seeds),
            ("unlogged histories", unlogged),
            ("histories with a log flushed by hand", held_back),
            ("operations", operations),
            ("crashes inside calls", inside),
            ("crashes in recoveries", nested),
            ("lost acknowledged writes", lost),
            ("holes", holes),
            ("determinism pairs", pairs),
            ("directories read by RocksDB 7.8.3", &judged.directories[0]),
            ("directories read by RocksDB 11.8.1", &judged.directories[1]),
            ("directories read unclosed", &judged.unclosed),
            ("undecided transactions found by RocksDB", &judged.undecided),
            ("stores that RocksDB cannot open", &judged.orphaned),
            ("deletions taken where a flush lacked room", &self.deleted[0]),
            ("deletions taken where the log lacked room", &self.deleted[1]),
            ("writes ingested", &self.ingested),
            ("families imported", &self.imported),
            ("blob files", &self.blob_files),
            ("calls that failed", &self.failed),
            ("histories with files in several directories", &self.placed),
            ("logs in other directories", &self.elsewhere[0]),
            ("tables in other directories", &self.elsewhere[1]),
            ("blob files in other directories", &self.elsewhere[2]),
        ] {
            report.count(what, *n);
        }
        report.count("crashes", self.all_crashes());
        for (what, n) in &self.features {
            report.count(what, *n);
        }
        for (fault, n) in &self.failed_syncs {
            report.count(&format!("syncs that failed, {fault}"), *n);
        }
        for (mode, n) in &self.crashes {
            report.count(&format!("crashes {mode}"), *n);
        }
    }
}

/// What a failed sync does, with its number in `--json`.
pub fn flavour(fault: SyncFault) -> &'static str {
    match fault {
        SyncFault::Kept => "F1 kept",
        SyncFault::Reverted => "F2 reverted",
        SyncFault::Late => "F3 late",
        SyncFault::Spurious => "F4 spurious",
    }
}

/// A mode in a word: data mode, directory mode.
pub fn name(mode: CrashMode) -> &'static str {
    use DataMode::{DropAll, KeepAll, Pages, Prefix, TornPage, ZeroTail};
    match (mode.data, mode.dirs) {
        (KeepAll, _) => "kill",
        (DropAll, DirMode::DropAll) => "M0D0",
        (DropAll, DirMode::Prefix) => "M0D1",
        (DropAll, DirMode::Subset) => "M0D2",
        (DropAll, DirMode::KeepAll) => "M0D+",
        (Prefix, DirMode::DropAll) => "M1D0",
        (Prefix, DirMode::Prefix) => "M1D1",
        (Prefix, DirMode::Subset) => "M1D2",
        (Prefix, DirMode::KeepAll) => "M1D+",
        (Pages, DirMode::DropAll) => "M2D0",
        (Pages, DirMode::Prefix) => "M2D1",
        (Pages, DirMode::Subset) => "M2D2",
        (Pages, DirMode::KeepAll) => "M2D+",
        (TornPage, DirMode::DropAll) => "M3D0",
        (TornPage, DirMode::Prefix) => "M3D1",
        (TornPage, DirMode::Subset) => "M3D2",
        (TornPage, DirMode::KeepAll) => "M3D+",
        (ZeroTail, DirMode::DropAll) => "M4D0",
        (ZeroTail, DirMode::Prefix) => "M4D1",
        (ZeroTail, DirMode::Subset) => "M4D2",
        (ZeroTail, DirMode::KeepAll) => "M4D+",
    }
}
