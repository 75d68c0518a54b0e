//! Writes a MANIFEST: a log of version edits. Each edit is durable before the next one is written.
//!
//! 1. A MANIFEST begins with the whole state and is in use only once `CURRENT` names it. The records of that state
//!    become durable together, and the first one says how many they are.
//! 2. Apart from these, only the last record can be torn by a power cut. So a whole record behind damage proves that
//!    the damaged record was durable. No reader, RocksDB included, uses a record behind a hole.
//! 3. After a failed append or sync the file is never written again: the caller starts a new MANIFEST.

use super::current::{SwitchFailure, set_current};
use ashlar_base::planted::{Bug, planted};
use ashlar_base::{FileNumber, Result};
use ashlar_env::Fs;
use ashlar_format::filename::FileKind;
use ashlar_format::version_edit::VersionEdit;
use ashlar_log::{Framing, LogWriter};
use std::path::Path;
use std::sync::Arc;

/// The disk space that a MANIFEST reserves ahead. Dropping families and whole files frees space on a full disk, and
/// needs a record.
const ROOM_AHEAD: u64 = 16 << 10;

/// An open MANIFEST.
pub(super) struct Manifest {
    log: Arc<LogWriter>,
    number: FileNumber,
    /// The length of the file's beginning: the snapshot and the commit after it.
    first_bytes: u64,
}

/// Writes `MANIFEST-<number>` with `records` and makes `CURRENT` name it, for a new database.
pub fn start_manifest(
    fs: &Arc<dyn Fs>,
    dir: &Path,
    number: FileNumber,
    records: Vec<VersionEdit>,
) -> Result<()> {
    Manifest::start(fs, dir, number, records).map(drop).map_err(SwitchFailure::into_error)
}

impl Manifest {
    /// Writes a new MANIFEST with `records`, makes it durable and makes `CURRENT` name it.
    pub(super) fn start(
        fs: &Arc<dyn Fs>,
        dir: &Path,
        number: FileNumber,
        mut records: Vec<VersionEdit>,
    ) -> Result<Manifest, SwitchFailure> {
        let write = || {
            let path = dir.join(FileKind::Manifest(number).name());
            let log = LogWriter::create(Arc::clone(fs), &path, number, Framing::Legacy)?;
            let manifest = Manifest { log: Arc::new(log), number, first_bytes: 0 };
            let count = u32::try_from(records.len()).ok();
            if let Some(first) = records.first_mut() {
                first.beginning = count;
            }
            // Each record is freed once it is written.
            records.into_iter().try_for_each(|edit| manifest.write(&edit))?;
            manifest.sync()?;
            Ok(manifest)
        };
        let mut manifest = write().map_err(SwitchFailure::Before)?;
        manifest.first_bytes = manifest.log.position();
        set_current(&**fs, dir, number)?;
        Ok(manifest)
    }

    /// Appends the records and makes each durable before the next. After an error the file must not be used again.
    /// # Cost
    /// One fsync per record.
    pub(super) fn append(&self, records: &[VersionEdit]) -> Result<()> {
        records.iter().try_for_each(|edit| {
            // If there is no space, the write itself fails.
            let _ = self.log.ask_room(0, ROOM_AHEAD);
            self.write(edit).and_then(|()| self.sync())
        })
    }

    /// The file's writer, which a close asks to release the reserved disk space.
    pub(super) fn log(&self) -> &Arc<LogWriter> {
        &self.log
    }

    fn write(&self, edit: &VersionEdit) -> Result<()> {
        self.log.append(&edit.to_bytes(), false).map(drop)
    }

    fn sync(&self) -> Result<()> {
        if planted(Bug::ManifestUnsynced) { Ok(()) } else { self.log.sync_to(self.log.position()) }
    }

    /// The file's number.
    pub(super) fn number(&self) -> FileNumber {
        self.number
    }

    /// The length of the file's records. All are durable, except during [`Manifest::append`] and after its failure.
    pub(super) fn bytes(&self) -> u64 {
        self.log.position()
    }

    /// Whether the file is larger than `bound` and than four times its beginning.
    pub(super) fn is_large(&self, bound: u64) -> bool {
        self.log.position() > bound.max(self.first_bytes.saturating_mul(4))
    }
}
