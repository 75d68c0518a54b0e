//! What a directory holds, and which MANIFEST counts.

use super::report::RepairReport;
use crate::lost_end::{Writes, data_only_in_unknown};
use ashlar_base::{FileNumber, Result};
use ashlar_blob::BlobReader;
use ashlar_env::{EntryKind, Fs};
use ashlar_format::blob::{BlobFooter, BlobHeader};
use ashlar_format::filename::FileKind;
use ashlar_format::write_batch::BatchReader;
use ashlar_log::{LogReader, LogRecordKind, RecoveryMode};
use ashlar_tree::check::{Damage, Risk};
use ashlar_tree::version::{Replayed, read_current, replay_manifest};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The database files of a directory.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Tables with their names and lengths, ascending.
    pub(super) tables: Vec<(FileNumber, String, u64)>,
    /// Blob files, ascending.
    pub(super) blobs: Vec<FileNumber>,
    /// WAL files by number, with their names.
    logs: BTreeMap<FileNumber, String>,
    /// MANIFESTs, ascending.
    manifests: Vec<FileNumber>,
    /// The largest number of any file up to [`FileNumber::HIGHEST`].
    pub(super) largest: FileNumber,
    /// Names of files with higher numbers.
    pub(super) beyond: Vec<String>,
    /// Writes in WAL files to families that no record of the MANIFEST in use creates.
    pub(super) unnamed: Writes,
}

impl Found {
    pub(super) fn list(fs: &dyn Fs, dir: &Path) -> Result<Found> {
        let mut found = Found::default();
        for entry in fs.list(dir)? {
            let Some(kind) = FileKind::parse(&entry.name) else { continue };
            match kind.number() {
                Some(n) if n > FileNumber::HIGHEST => found.beyond.push(entry.name.clone()),
                Some(n) => found.largest = found.largest.max(n),
                None => {}
            }
            if entry.kind == EntryKind::Dir {
                continue;
            }
            match kind {
                FileKind::Table(n) | FileKind::LevelDbTable(n) => {
                    found.tables.push((n, entry.name, entry.len))
                }
                FileKind::Blob(n) => found.blobs.push(n),
                FileKind::Wal(n) => found.logs.extend([(n, entry.name)]),
                FileKind::Manifest(n) => found.manifests.push(n),
                _ => {}
            }
        }
        found.tables.sort();
        found.blobs.sort_unstable();
        found.manifests.sort_unstable();
        Ok(found)
    }

    /// The names of the WAL files before `needed`.
    pub(super) fn logs_before(&self, needed: FileNumber) -> impl Iterator<Item = &String> {
        self.logs.range(..needed).map(|(_, name)| name)
    }

    /// The number of blobs in a file and the bytes of their records, from its footer and length; `None`: no such file,
    /// or not a blob file.
    ///
    /// # Errors
    /// `Io`: the failed read proves neither.
    pub(super) fn blob_amount(
        &self,
        fs: &dyn Fs,
        dir: &Path,
        number: FileNumber,
    ) -> Result<Option<(u64, u64)>> {
        let file = fs.open_read(&dir.join(FileKind::Blob(number).name()));
        match file.and_then(|file| BlobReader::open(file, number, None, None)) {
            Ok(reader) => {
                let ends = (BlobHeader::LEN + BlobFooter::LEN) as u64;
                Ok(Some((reader.count(), reader.size().saturating_sub(ends))))
            }
            Err(e) if e.is_not_found() || e.is_corruption() => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// The writes of the WAL files, as far as the files can be read. With `replayed`: only those of the needed files, to
    /// families that no record creates. Dropped families have ids that the MANIFEST gave.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn writes_in_logs(
        &self,
        fs: &dyn Fs,
        dir: &Path,
        replayed: Option<&Replayed>,
    ) -> Result<Writes> {
        let mut writes = Writes::default();
        let (from, prev) = replayed.map_or_else(Default::default, |r| (r.logs_from(), r.db.prev_log));
        for (number, name) in self.logs.iter().filter(|(number, _)| **number >= from || **number == prev) {
            let file = fs.open_read(&dir.join(name))?;
            let mut reader = LogReader::open(file, *number, RecoveryMode::SkipAny);
            while let Some(record) = reader.next()? {
                if record.kind == LogRecordKind::Data
                    && let Ok(batch) = BatchReader::new(record.payload)
                {
                    writes.take(&batch, replayed.map(|r| r.db.max_family));
                }
            }
        }
        Ok(writes)
    }

    /// Whether a MANIFEST that lost its end is older than the directory: a table that it names is gone, or unknown tables
    /// exist and the WAL file with their data is gone.
    fn is_outdated(&self, replayed: &Replayed) -> bool {
        let there: BTreeSet<FileNumber> = self.tables.iter().map(|(number, _, _)| *number).collect();
        let named: BTreeSet<FileNumber> =
            replayed.families.values().flat_map(|family| family.tree.table_numbers()).collect();
        let logs = self.logs.keys().copied().collect();
        let in_use = !self.unnamed.0.is_empty();
        (replayed.dropped.is_some() || in_use) && !named.is_subset(&there)
            || data_only_in_unknown(replayed, there.difference(&named), &logs, in_use)
    }

    /// The newest MANIFEST, intact or not; 0: there is no MANIFEST.
    pub(super) fn newest_manifest(&self) -> FileNumber {
        self.manifests.last().copied().unwrap_or_default()
    }

    /// The state to begin with: from the MANIFEST that `CURRENT` names or, without a readable `CURRENT`, from the
    /// newest. An older MANIFEST would name tables that are gone and miss newer ones, so the result is `None` then, as
    /// when no MANIFEST can be read.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn manifest(
        &mut self,
        fs: &dyn Fs,
        dir: &Path,
        report: &mut RepairReport,
    ) -> Result<Option<Replayed>> {
        let named = match read_current(fs, dir) {
            Ok(named) => named,
            Err(e) if e.is_corruption() => {
                report.losses.push(Damage::of(&FileKind::Current.name(), &e, Risk::Nothing));
                None
            }
            Err(e) => return Err(e),
        };
        // A newer MANIFEST that was in use outranks the one that `CURRENT` names: a crash or another program may have
        // left the old name.
        for number in self.manifests.clone().into_iter().rev() {
            let replayed = replay_manifest(fs, dir, number);
            match replayed {
                Ok(replayed) if named == Some(number) || replayed.was_current || named.is_none() => {
                    if named != Some(number) {
                        report
                            .remarks
                            .push(format!("CURRENT did not name MANIFEST-{number}, which was in use"));
                    }
                    self.unnamed = self.writes_in_logs(fs, dir, Some(&replayed))?;
                    if self.is_outdated(&replayed) {
                        report.remarks.push(format!("MANIFEST-{number} has lost its end, which was in use"));
                        report.to_move.insert(FileKind::Manifest(number).name());
                        break;
                    }
                    if let Some(tail) = &replayed.dropped {
                        let (bytes, offset) = (tail.bytes, tail.offset);
                        report.remarks.push(format!(
                            "MANIFEST-{number} has a torn tail of {bytes} bytes at {offset} ({})",
                            tail.reason
                        ));
                    }
                    return Ok(Some(replayed));
                }
                // This MANIFEST was written but `CURRENT` never named it.
                Ok(_) => {}
                Err(e) if e.is_corruption() => {
                    report.lose(Damage::of(&FileKind::Manifest(number).name(), &e, Risk::Nothing));
                    if named.is_none_or(|named| named == number) {
                        break;
                    }
                }
                Err(e) => return Err(e),
            }
        }
        report.remarks.push(
            "no MANIFEST says which tables are live: all tables of the directory were merged; deleted keys and replaced \
             values may be back where a compaction's inputs were still there, and merge operands of a table that a compaction had replaced may count twice; a table is in the family for which \
             it was written, which is not the family that had it if the table was imported"
                .to_owned(),
        );
        report.rebuilt = true;
        Ok(None)
    }
}
