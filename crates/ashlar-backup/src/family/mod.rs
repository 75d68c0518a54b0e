//! One family copied out of a database, and into another one: its tables with their levels and sequence numbers.
//!
//! ```text
//! export: flush the family -> hold all files -> link or copy its tables -> OPTIONS, MANIFEST, CURRENT -> the directory gets its name
//! import: link or copy the tables -> build and check their tree -> [lead] sync the WAL, one commit: the family with its tables
//! ```
//! 1. The directory of an export is a database with that one family. Its MANIFEST has what the tables do not say: levels,
//!    sequence numbers, bounds, and the order of level 0. Its OPTIONS file has the merge operator, and whether values have
//!    times. [`FamilyExport::read`] reads both in a later process, and any program of RocksDB opens the directory.
//! 2. RocksDB keeps that description in a value of the program only. [`FamilyExport::described`] takes it as such a value.
//! 3. An import checks the description: the comparator, the tree that the tables make, each table against its description.
//!    Until its one commit, the database and the sources are as before.
//!
//! Source: RocksDB `utilities/checkpoint/checkpoint_impl.cc` (`ExportColumnFamily`), `db/import_column_family_job.cc`,
//! `include/rocksdb/metadata.h` (`ExportImportFilesMetaData`), behaviour.

mod export;
mod import;
mod source;

pub use export::export_family;
pub use import::{ImportOptions, import_family};

use ashlar_base::{Level, SeqNum};
use ashlar_format::version_edit::NewFile;
use std::path::{Path, PathBuf};

/// The description of an exported family: what an import makes a family of.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FamilyExport {
    /// The family's name in its database.
    pub family: String,
    /// The name of its comparator.
    pub comparator: String,
    /// Its tables, by level; in a level by number.
    pub files: Vec<ExportedFile>,
    /// The directory, if it is a database of this one family.
    pub(crate) dir: Option<PathBuf>,
}

/// One table of an exported family.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExportedFile {
    /// Where the table is.
    pub path: PathBuf,
    /// Its level in the tree.
    pub level: Level,
    /// The sequence numbers of the oldest and the newest change in it.
    pub sequences: (SeqNum, SeqNum),
    /// What a MANIFEST says of the table.
    pub(crate) recorded: Option<NewFile>,
}

impl FamilyExport {
    /// The description of a family that another program exported, such as RocksDB's `ExportImportFilesMetaData`.
    pub fn described(
        family: impl Into<String>,
        comparator: impl Into<String>,
        files: Vec<ExportedFile>,
    ) -> FamilyExport {
        FamilyExport { family: family.into(), comparator: comparator.into(), files, dir: None }
    }

    /// The directory that [`export_family`] made or that was read.
    pub fn dir(&self) -> Option<&Path> {
        self.dir.as_deref()
    }

    /// The bytes of all tables that a MANIFEST describes.
    pub fn bytes(&self) -> u64 {
        self.files.iter().filter_map(ExportedFile::bytes).fold(0, u64::saturating_add)
    }
}

impl ExportedFile {
    /// A table of which no MANIFEST tells.
    pub fn described(path: impl Into<PathBuf>, level: Level, sequences: (SeqNum, SeqNum)) -> ExportedFile {
        ExportedFile { path: path.into(), level, sequences, recorded: None }
    }

    fn recorded(path: PathBuf, level: Level, file: NewFile) -> ExportedFile {
        let sequences = (file.smallest_seq, file.largest_seq);
        ExportedFile { path, level, sequences, recorded: Some(file) }
    }

    /// The bytes of the table; `None`: no MANIFEST describes it.
    pub fn bytes(&self) -> Option<u64> {
        self.recorded.as_ref().map(|file| file.size)
    }

    /// The smallest and the largest user key; `None`: no MANIFEST describes the table.
    pub fn keys(&self) -> Option<(&[u8], &[u8])> {
        let file = self.recorded.as_ref()?;
        Some((file.smallest.as_key().user_key(), file.largest.as_key().user_key()))
    }
}
