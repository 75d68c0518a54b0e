//! Brings a file into the directory of the database, under a number of its own.
//!
//! 1. The number is pending from the moment it is drawn, so no purge takes the file.
//! 2. The bytes are durable before this ends; the name is not.
//! 3. A file that is not handed over with [`Brought::keep`] is removed.

use super::{Core, IngestMode, Part};
use crate::pressure::DiskClaim;
use ashlar_base::error::IoKind;
use ashlar_base::{ErrorKind, FileNumber, Level, Result};
use ashlar_compaction::output_numbers;
use ashlar_env::Fs;
use ashlar_format::filename::FileKind;
use ashlar_options::FamilyOptions;
use ashlar_tree::files::{CRC32C_FUNCTION, PendingFile, checksum_of_file, copy_file};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file in the directory of the database that no version names yet. Dropping it removes the file.
#[must_use = "dropping it removes the file"]
pub struct Brought {
    fs: Arc<dyn Fs>,
    path: PathBuf,
    path_id: u8,
    /// `None` once the file is handed over.
    pending: Option<PendingFile>,
    number: FileNumber,
    copied: bool,
    checksum: Option<[u8; 4]>,
    /// The disk space of the file.
    space: Option<DiskClaim>,
}

impl Brought {
    /// Where the file is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The index of the directory among those of the family.
    pub fn path_id(&self) -> u8 {
        self.path_id
    }

    /// The number in its name.
    pub fn number(&self) -> FileNumber {
        self.number
    }

    /// Whether the bytes were copied. Otherwise the file is a hard link to the source.
    pub fn copied(&self) -> bool {
        self.copied
    }

    /// The checksum of the file and its function, as the MANIFEST records them; both `None` where the database records none.
    pub fn checksum(&self) -> (Option<Vec<u8>>, Option<Vec<u8>>) {
        let sum = self.checksum.map(|sum| sum.to_vec());
        let function = sum.is_some().then(|| CRC32C_FUNCTION.to_vec());
        (sum, function)
    }

    /// Hands the file over to the caller. The caller drops the number and the claim once the edit that names the file is durable.
    pub(in crate::db) fn keep(mut self) -> (Option<PendingFile>, Option<DiskClaim>) {
        (self.pending.take(), self.space.take())
    }
}

impl Drop for Brought {
    fn drop(&mut self) {
        if self.pending.is_some() {
            // Best effort: the next purge removes a file that no version names.
            let _ = self.fs.remove(&self.path);
        }
    }
}

/// The directories of the files.
pub(super) fn folders(parts: &[Part]) -> BTreeSet<PathBuf> {
    let files = parts.iter().flat_map(|part| &part.files);
    files.filter_map(|file| file.brought.path.parent().map(Path::to_path_buf)).collect()
}

/// Links or copies the file, which goes to `level` of a family with these options.
///
/// # Errors
/// `Io`; there is no new file then. `Io(NoSpace)`: the limits on disk space have no room for the file.
pub(in crate::db) fn bring(
    core: &Arc<Core>,
    (options, level): (&FamilyOptions, Level),
    source: &Path,
    mode: IngestMode,
) -> Result<Brought> {
    let pending = output_numbers(&core.versions, &core.pending)();
    let number = pending.number();
    let (dir, path_id) = core.writer.place(&core.dir, options, level.0);
    let bytes = core.env.fs.metadata(source)?.map_or(0, |entry| entry.len);
    let mut brought = Brought {
        fs: Arc::clone(&core.env.fs),
        path: dir.join(FileKind::Table(number).name()),
        path_id,
        pending: Some(pending),
        number,
        copied: false,
        checksum: None,
        space: Some(core.claim_file(bytes)?),
    };
    let fs = &*core.env.fs;
    let linked = mode != IngestMode::Copy && link_durably(fs, source, &brought.path)?;
    if !linked {
        core.check_copy(bytes)?;
        copy_file(fs, source, &brought.path, u64::MAX)?;
        brought.copied = true;
    }
    if core.writer.file_checksums {
        brought.checksum = Some(checksum_of_file(fs, &brought.path)?);
    }
    Ok(brought)
}

/// Gives the file a second name and syncs its bytes and length, which its writer may not have done. The number of its names
/// is not among them: a sync of that would wait for the file system's journal, once for each file. False: it must be copied, because
/// there is no link between the two places, or this process may not write to the file.
fn link_durably(fs: &dyn Fs, source: &Path, path: &Path) -> Result<bool> {
    match fs.link(source, path) {
        Err(e) if matches!(e.kind(), ErrorKind::NotSupported | ErrorKind::Io(IoKind::Denied)) => {
            return Ok(false);
        }
        linked => linked?,
    }
    match fs.open_write(path).and_then(|file| file.sync_data()) {
        Err(e) if matches!(e.kind(), ErrorKind::Io(IoKind::Denied | IoKind::ReadOnly)) => {
            fs.remove(path)?;
            Ok(false)
        }
        synced => synced.map(|()| true),
    }
}
