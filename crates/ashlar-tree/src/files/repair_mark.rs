//! The mark of an unfinished repair: `lost/REPAIRING`, an empty file.
//!
//! A repair's commit makes the damaged originals obsolete, and the repair moves them to `lost/` afterwards. A crash in
//! between leaves them to the next open, which would otherwise remove them as obsolete files.
//!
//! 1. If a repair has files to keep, the mark is durable before the repair's commit, and is removed after the last move
//!    is durable.
//! 2. While the mark exists, an open or another repair moves every obsolete file to `lost/` instead of removing it.

use super::{LOST, leave_in_lost};
use ashlar_base::Result;
use ashlar_env::Fs;
use std::path::{Path, PathBuf};

const NAME: &str = "REPAIRING";

/// The mark in one directory.
pub struct RepairMark<'a> {
    fs: &'a dyn Fs,
    dir: &'a Path,
}

impl<'a> RepairMark<'a> {
    /// The mark of the database in `dir`.
    pub fn of(fs: &'a dyn Fs, dir: &'a Path) -> Self {
        RepairMark { fs, dir }
    }

    fn path(&self) -> PathBuf {
        self.dir.join(LOST).join(NAME)
    }

    /// Whether a repair began to commit and did not end.
    pub fn stands(&self) -> Result<bool> {
        Ok(self.fs.metadata(&self.path())?.is_some())
    }

    /// Sets it, durably.
    pub fn set(&self) -> Result<()> {
        leave_in_lost(self.fs, self.dir, NAME, "")
    }

    /// Takes it away. A crash that brings it back does no harm.
    pub fn clear(&self) -> Result<()> {
        self.fs.remove(&self.path())
    }
}
