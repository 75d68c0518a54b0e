//! Some of the synced writes of a history come in by an ingestion: each change in a file of its own, so that the order of the
//! changes and the number of sequences are those of a batch.

use super::expiring::TIMED;
use super::store::Store;
use ashlar_base::{Error, ValueType};
use ashlar_engine::column_family::Family;
use ashlar_engine::health::Severity;
use ashlar_engine::{Db, IngestMode, IngestOptions};
use ashlar_testkit::ops::Change;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where the files are written.
const FILES: &str = "/data/files";

/// The most changes of one ingestion.
const MOST: usize = 6;

/// The files of one family, in the order in which they count.
pub(crate) type Part = (Arc<Family>, Vec<PathBuf>);

impl Store {
    /// Whether a write is one of those.
    pub(super) fn ingests(&self, changes: &[Change], sync: bool) -> bool {
        may_be_ingested(changes, sync)
            && changes.iter().all(|change| change.family() != TIMED)
            && self.db.health().severity == Severity::Healthy
    }

    /// Does write `number`, which the model has already.
    pub(super) fn ingest(&mut self, changes: &[Change], number: usize) -> Result<(), String> {
        let mode = [IngestMode::Link, IngestMode::Copy, IngestMode::Move][number % 3];
        let known = |change: &&Change| self.promise.names.contains_key(change.family());
        let known: Vec<Change> = changes.iter().filter(known).cloned().collect();
        let written = write_files(&self.db, Path::new(FILES), number, &known);
        let Some(parts) = self.passed("an SST writer", written)? else {
            self.model.truncate(number - 1);
            return Ok(());
        };
        let done = self.db.ingest(&parts, IngestOptions::new().mode(mode).verify(number.is_multiple_of(2)));
        let fs = self.sim.env().fs;
        // Those of a move are gone.
        parts.iter().flat_map(|(_, files)| files).for_each(|path| drop(fs.remove(path)));
        if self.passed("ingest", done)?.is_some() {
            self.ingested += 1;
            self.promise.power = number;
            (self.promise.kill, self.promise.logged) = (number, number);
        } else {
            // A crash between the failure and the next MANIFEST may show it.
            self.doubt = Some(self.model.cut(number - 1));
        }
        Ok(())
    }
}

/// Whether a write may come in by an ingestion. Decided without a draw: known seeds draw what they drew.
pub(crate) fn may_be_ingested(changes: &[Change], sync: bool) -> bool {
    let sum: usize = changes.iter().map(|change| change.key().len()).sum();
    let served = |change: &Change| !matches!(change, Change::SingleDelete { .. });
    sync && !changes.is_empty()
        && changes.len() <= MOST
        && sum.is_multiple_of(2)
        && changes.iter().all(served)
}

/// Writes each change to a file of its own in `folder`; changes of families that are not there are left out.
///
/// # Errors
/// Those of the writer.
pub(crate) fn write_files(
    db: &Db,
    folder: &Path,
    number: usize,
    changes: &[Change],
) -> Result<Vec<Part>, Error> {
    db.env().fs.create_dir_all(folder)?;
    let mut parts: Vec<Part> = Vec::new();
    for (at, change) in changes.iter().enumerate() {
        let Some(family) = db.family(change.family()) else { continue };
        let path = folder.join(format!("{number}-{at}.sst"));
        let mut writer = db.sst_writer(&family, &path)?;
        match change {
            Change::Put { key, value, .. } => writer.add(ValueType::Put, key, value)?,
            Change::Merge { key, operand, .. } => writer.add(ValueType::Merge, key, operand)?,
            Change::DeleteRange { from, to, .. } => writer.delete_range(from, to)?,
            Change::Delete { key, .. } | Change::SingleDelete { key, .. } => {
                writer.add(ValueType::Delete, key, b"")?;
            }
        }
        writer.finish()?;
        match parts.iter_mut().find(|(known, _)| known.id() == family.id()) {
            Some((_, files)) => files.push(path),
            None => parts.push((family, vec![path])),
        }
    }
    Ok(parts)
}
