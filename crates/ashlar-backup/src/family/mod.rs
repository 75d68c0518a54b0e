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
//! 4. Of several joined exports, each has a range of keys of its own. Else a tombstone of one could hide keys of another, because their
//!    sequence numbers come from different databases.
//!
//! Source: RocksDB `utilities/checkpoint/checkpoint_impl.cc` (`ExportColumnFamily`), `db/import_column_family_job.cc`,
//! `include/rocksdb/metadata.h` (`ExportImportFilesMetaData`), behaviour.

mod export;
mod import;
mod source;

pub use export::export_family;
pub use import::{ImportOptions, import_family};

use ashlar_base::{Error, Level, Result, SeqNum};
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
    /// The directories that are databases of one exported family each.
    pub(crate) homes: Vec<Home>,
}

/// A directory that is a database of one family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Home {
    /// The family's name there.
    pub family: String,
    /// The directory.
    pub dir: PathBuf,
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
    /// Which of several joined exports has the table.
    pub(crate) part: usize,
}

impl FamilyExport {
    /// The description of a family that another program exported, such as RocksDB's `ExportImportFilesMetaData`.
    pub fn described(
        family: impl Into<String>,
        comparator: impl Into<String>,
        files: Vec<ExportedFile>,
    ) -> FamilyExport {
        FamilyExport { family: family.into(), comparator: comparator.into(), files, homes: Vec::new() }
    }

    /// Several exports as one, for a family with the tables of all. Each has keys of its own: the import refuses exports whose ranges of
    /// keys overlap. The name is that of the first one.
    ///
    /// # Errors
    /// `InvalidArgument`: there is no export, or two have different comparators.
    pub fn joined(exports: &[&FamilyExport]) -> Result<FamilyExport> {
        let [first, others @ ..] = exports else { return Err(Error::invalid("an import of no export")) };
        let mut whole = (*first).clone();
        for other in others {
            if other.comparator != whole.comparator {
                let (one, two) = (&whole.comparator, &other.comparator);
                return Err(Error::invalid(format!("exports with the comparators {one:?} and {two:?}")));
            }
            let before = whole.files.iter().map(|file| file.part + 1).max().unwrap_or(0);
            let files = other.files.iter().cloned();
            whole.files.extend(files.map(|file| ExportedFile { part: before + file.part, ..file }));
            whole.homes.extend(other.homes.iter().cloned());
        }
        whole.files.sort_by_key(|file| file.level);
        Ok(whole)
    }

    /// The directory that [`export_family`] made or that was read; `None`: there is no such directory, or there are several.
    pub fn dir(&self) -> Option<&Path> {
        match self.homes.as_slice() {
            [only] => Some(&only.dir),
            _ => None,
        }
    }

    /// The bytes of all tables that a MANIFEST describes.
    pub fn bytes(&self) -> u64 {
        self.files.iter().filter_map(ExportedFile::bytes).fold(0, u64::saturating_add)
    }
}

impl ExportedFile {
    /// A table of which no MANIFEST tells.
    pub fn described(path: impl Into<PathBuf>, level: Level, sequences: (SeqNum, SeqNum)) -> ExportedFile {
        ExportedFile { path: path.into(), level, sequences, recorded: None, part: 0 }
    }

    fn recorded(path: PathBuf, level: Level, file: NewFile) -> ExportedFile {
        let sequences = (file.smallest_seq, file.largest_seq);
        ExportedFile { path, level, sequences, recorded: Some(file), part: 0 }
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
