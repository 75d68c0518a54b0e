//! The archive: WAL files that the database no longer needs, kept for readers of its older writes.
//!
//! 1. A purge moves a WAL file to the directory `archive` beside the WAL files, instead of removing it. The file keeps its
//!    name. A crash leaves it in one of the two places, and the next purge moves it again.
//! 2. After each purge the archive is trimmed: files that were archived longer ago than the limit go, and the oldest files
//!    while all of them together are too large.
//! 3. The time of a file counts from its arrival, or from the open that found it in the archive.
//!
//! Source: RocksDB `db/wal_manager.cc` (`PurgeObsoleteWALFiles`), behaviour.

use ashlar_base::{FileNumber, Result};
use ashlar_env::Fs;
use ashlar_format::filename::FileKind;
use ashlar_sync::{Mutex, Rank};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The name of the directory.
const ARCHIVE: &str = "archive";

/// The archive beside the WAL files in `wal_dir`.
pub fn archive_beside(wal_dir: &Path) -> PathBuf {
    wal_dir.join(ARCHIVE)
}

/// The WAL files in the directory `dir`, ascending, with their lengths. Empty without the directory.
///
/// # Errors
/// `Io`.
pub fn wal_files(fs: &dyn Fs, dir: &Path) -> Result<BTreeMap<FileNumber, u64>> {
    let entries = match fs.files(dir) {
        Err(e) if e.is_not_found() => return Ok(BTreeMap::new()),
        entries => entries?,
    };
    let wal = |name: &str| match FileKind::parse_exact(name) {
        Some(FileKind::Wal(number)) => Some(number),
        _ => None,
    };
    Ok(entries.iter().filter_map(|entry| Some((wal(&entry.name)?, entry.len))).collect())
}

/// What an archive keeps. 0 sets no bound; with both at 0 there is no archive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArchiveLimits {
    /// Seconds from the arrival of a WAL file on.
    pub secs: u64,
    /// Bytes of all WAL files.
    pub bytes: u64,
}

/// The archive of an open database.
#[derive(Debug)]
pub struct Archive {
    dir: PathBuf,
    limits: ArchiveLimits,
    /// When each file came, in seconds.
    arrivals: Mutex<BTreeMap<FileNumber, u64>>,
}

impl Archive {
    /// The archive beside the WAL files in `wal_dir`; `None` if the limits ask for none.
    pub fn new(wal_dir: &Path, limits: ArchiveLimits) -> Option<Archive> {
        let dir = archive_beside(wal_dir);
        let arrivals = Mutex::new(Rank::Leaf, BTreeMap::new());
        (limits != ArchiveLimits::default()).then_some(Archive { dir, limits, arrivals })
    }

    /// Moves the WAL file at `path` here.
    pub(super) fn take(&self, fs: &dyn Fs, path: &Path, name: &str) -> Result<()> {
        fs.create_dir_all(&self.dir)?;
        fs.rename(path, &self.dir.join(name))
    }

    /// Removes what is beyond the limits at `now`, in seconds.
    ///
    /// # Errors
    /// `Io`: a file could not be removed; the next call tries again.
    pub fn trim(&self, fs: &dyn Fs, now: u64) -> Result<()> {
        let files = wal_files(fs, &self.dir)?;
        let arrivals = {
            let mut arrivals = self.arrivals.lock();
            arrivals.retain(|number, _| files.contains_key(number));
            for number in files.keys() {
                arrivals.entry(*number).or_insert(now);
            }
            arrivals.clone()
        };
        let mut bytes: u64 = files.values().fold(0, |sum, len| sum.saturating_add(*len));
        for (number, len) in files {
            let came = arrivals.get(&number).copied().unwrap_or(now);
            let old = self.limits.secs > 0 && came.saturating_add(self.limits.secs) < now;
            let over = self.limits.bytes > 0 && bytes > self.limits.bytes;
            if old || over {
                match fs.remove(&self.dir.join(FileKind::Wal(number).name())) {
                    Err(e) if !e.is_not_found() => return Err(e),
                    _ => bytes = bytes.saturating_sub(len),
                }
            }
        }
        Ok(())
    }
}
