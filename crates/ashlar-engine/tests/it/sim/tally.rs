//! What a suite did, for its one line.

use super::judged::Looked;
use ashlar_env::sim::{CrashMode, DataMode, DirMode};
use std::collections::BTreeMap;
use std::fmt;

/// Counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) seeds: u64,
    pub(crate) operations: u64,
    pub(crate) crashes: BTreeMap<&'static str, u64>,
    /// Crashes in the middle of an operation or a background step.
    pub(crate) inside: u64,
    /// Crashes of a recovery.
    pub(crate) nested: u64,
    pub(crate) lost: u64,
    pub(crate) holes: u64,
    pub(crate) hangs: u64,
    pub(crate) pairs: u64,
    /// Seeds whose writes were not logged.
    pub(crate) unlogged: u64,
    /// Blob files that were there at the ends.
    pub(crate) blob_files: u64,
    pub(crate) judged: Looked,
}

impl Tally {
    pub(crate) fn crashed(&mut self, mode: CrashMode) {
        *self.crashes.entry(name(mode)).or_default() += 1;
    }

    pub(crate) fn all_crashes(&self) -> u64 {
        self.crashes.values().sum()
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tally { seeds, operations, inside, nested, lost, holes, hangs, pairs, judged, .. } = self;
        let Tally { unlogged, blob_files, .. } = self;
        write!(
            f,
            "{seeds} seeds ({unlogged} unlogged, {blob_files} blob files left), {operations} operations, {} crashes (",
            self.all_crashes()
        )?;
        for (i, (mode, n)) in self.crashes.iter().enumerate() {
            write!(f, "{}{mode} {n}", if i == 0 { "" } else { ", " })?;
        }
        write!(
            f,
            "; {inside} inside a call sequence, {nested} in a recovery): {lost} lost acknowledged writes, {holes} holes, \
             {hangs} hangs; {pairs} determinism pairs equal; read by RocksDB at the end: 7.8.3 {} directories, 11.8.1 {}, \
             {} entries",
            judged.directories[0], judged.directories[1], judged.entries
        )
    }
}

/// A mode in a word: data mode, directory mode.
pub(crate) fn name(mode: CrashMode) -> &'static str {
    use DataMode::{DropAll, KeepAll, Pages, Prefix, TornPage, ZeroTail};
    match (mode.data, mode.dirs) {
        (KeepAll, _) => "kill",
        (DropAll, DirMode::DropAll) => "M0D0",
        (DropAll, DirMode::Prefix) => "M0D1",
        (DropAll, DirMode::KeepAll) => "M0D+",
        (Prefix, DirMode::DropAll) => "M1D0",
        (Prefix, DirMode::Prefix) => "M1D1",
        (Prefix, DirMode::KeepAll) => "M1D+",
        (Pages, DirMode::DropAll) => "M2D0",
        (Pages, DirMode::Prefix) => "M2D1",
        (Pages, DirMode::KeepAll) => "M2D+",
        (TornPage, DirMode::DropAll) => "M3D0",
        (TornPage, DirMode::Prefix) => "M3D1",
        (TornPage, DirMode::KeepAll) => "M3D+",
        (ZeroTail, DirMode::DropAll) => "M4D0",
        (ZeroTail, DirMode::Prefix) => "M4D1",
        (ZeroTail, DirMode::KeepAll) => "M4D+",
    }
}
