//! Makes a directory the database of a backup.

use super::catalog::{Backup, Stored};
use super::copy::{check, copy, each};
use super::{BackupEngine, BackupInfo};
use crate::Copied;
use crate::target::{is_inside, lock_directory, whole};
use ashlar_base::{Error, FamilyId, FileNumber, Result, SeqNum};
use ashlar_env::{EntryKind, Fs, FsEntry, ReadFile};
use ashlar_format::filename::{FileKind, current_content};
use ashlar_format::write_batch::BatchReader;
use ashlar_log::{LogReader, LogRecordKind, RecoveryMode};
use ashlar_tree::files::{copy_options, holds_remains, make_directory, wal_files};
use ashlar_tree::logs::first_sequence;
use ashlar_tree::version::{read_current, replay_manifest, write_small};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Options of a restore. Every option has a default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use = "options do nothing until a restore gets them"]
pub struct RestoreOptions {
    keep_log_files: bool,
}

impl RestoreOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether WAL files in the directory stay, so that the next open replays the writes after the backup from them. They must
    /// continue the backup without a gap, which is checked. Default: false, the state is that of the backup.
    pub fn keep_log_files(self, yes: bool) -> Self {
        RestoreOptions { keep_log_files: yes }
    }
}

/// A finished restore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Restored {
    /// The backup.
    pub id: u32,
    /// The newest write in it.
    pub sequence: SeqNum,
    /// The files that were copied.
    pub files: usize,
    /// Their bytes.
    pub bytes: u64,
}

impl BackupEngine {
    /// Makes the directory `into` the database of backup `id`. `into` is new, empty, or the directory of a database, which the
    /// backup replaces.
    ///
    /// Where there is a database, the whole backup is verified before a file of the database is removed. Info logs, `lost/` and
    /// files of other programs stay. All files are in the one directory, whatever `wal_dir` was.
    ///
    /// # Errors
    /// `Busy(Locked)`: the database is open. `InvalidArgument`: there is no such backup; `into` has files and no database, or lies
    /// in the backup directory; WAL files to keep do not continue the backup. `Corruption`: the backup is damaged. `Io`. After
    /// an error during the copying there is no `CURRENT` in `into`, and the call can be repeated.
    /// # Cost
    /// A copy of each file, with an fsync, and a read of all of them before if there is a database.
    pub fn restore(&self, id: u32, into: impl AsRef<Path>) -> Result<Restored> {
        self.restore_with(id, into, RestoreOptions::new(), |_| ())
    }

    /// [`BackupEngine::restore`] with options. `progress` is called after each file.
    ///
    /// # Errors
    /// Those of [`BackupEngine::restore`].
    pub fn restore_with(
        &self,
        id: u32,
        into: impl AsRef<Path>,
        options: RestoreOptions,
        mut progress: impl FnMut(&Copied),
    ) -> Result<Restored> {
        self.bring_back(id, into.as_ref(), options, &mut progress)
    }

    /// [`BackupEngine::restore`] of the newest usable backup.
    ///
    /// # Errors
    /// `InvalidArgument`: there is no usable backup. Others as [`BackupEngine::restore`].
    pub fn restore_latest(&self, into: impl AsRef<Path>) -> Result<Restored> {
        self.restore(self.latest()?.id, into)
    }

    /// The newest usable backup.
    ///
    /// # Errors
    /// `InvalidArgument`: no backup is usable.
    pub fn latest(&self) -> Result<&BackupInfo> {
        let newest = self.catalog.backups.values().next_back().map(|backup| &backup.info);
        newest.ok_or_else(|| Error::invalid("there is no usable backup").at_path(&self.dir))
    }

    fn bring_back(
        &self,
        id: u32,
        into: &Path,
        options: RestoreOptions,
        progress: &mut dyn FnMut(&Copied),
    ) -> Result<Restored> {
        let into = whole(into)?;
        let backup = self.backup(id)?;
        self.verify_sizes(id)?;
        if is_inside(&*self.fs, &into, &self.dir) {
            let e = Error::invalid("the database would lie inside the directory of backups").at_path(&into);
            return Err(e.hint("Name a directory elsewhere"));
        }
        check_replaceable(&*self.fs, &into)?;
        make_directory(&*self.fs, &into)?;
        let hint = "The database is open; close it, or restore to another directory";
        let _lock = lock_directory(&*self.fs, &into, hint)?;
        let fs = self.fs.hold(&into)?;
        check_replaceable(&*fs, &into)?;
        let mut keep = BTreeMap::new();
        if options.keep_log_files {
            keep = self.logs_to_keep(&*fs, &into, backup)?;
        }
        if fs.metadata(&into.join(FileKind::Current.name()))?.is_some() {
            self.verify_with(id, &mut *progress)?;
        }
        remove_database(&*fs, &into, &keep)?;
        self.fill(&*fs, &into, backup, &keep, progress)
    }

    /// Copies all files, and at the end writes `CURRENT`.
    fn fill(
        &self,
        fs: &dyn Fs,
        into: &Path,
        backup: &Backup,
        keep: &BTreeMap<FileNumber, u64>,
        progress: &mut dyn FnMut(&Copied),
    ) -> Result<Restored> {
        let is_kept = |kind| matches!(kind, FileKind::Wal(number) if keep.contains_key(&number));
        let files: Vec<_> = backup.files.iter().filter(|file| !is_kept(file.kind)).collect();
        let bytes_total = files.iter().map(|file| file.bytes).sum();
        let mut done = Copied { files_total: files.len(), bytes_total, ..Copied::default() };
        let (pace, own, dir) = (self.pace(), &self.fs, &self.dir);
        let manifest = self.manifest_of(backup)?;
        let bring = |file: &&Stored| {
            if file.kind != FileKind::Current {
                let from = dir.join(&file.path);
                let to = into.join(file.kind.name());
                let sum = copy(&*own.open_read(&from)?, Some((fs, &to)), u64::MAX, &pace)?;
                check(&from, sum, file.bytes, file.checksum)?;
                if matches!(file.kind, FileKind::Options(_)) {
                    forget_places(fs, &to)?;
                }
            }
            Ok(file.bytes)
        };
        each(&files, self.threads, bring, |_, bytes| {
            done.files += 1;
            done.bytes += bytes;
            progress(&done);
        })?;
        fs.sync_dir(into)?;
        let current = FileKind::Current.name();
        write_small(fs, into, &current, current_content(manifest).as_bytes()).inspect_err(|_| {
            // Best effort: the name may or may not be durable.
            let _ = fs.remove(&into.join(&current));
        })?;
        Ok(Restored {
            id: backup.info.id,
            sequence: backup.info.sequence,
            files: done.files,
            bytes: done.bytes,
        })
    }

    /// The MANIFEST that `CURRENT` of the backup names, and that the backup has.
    pub(super) fn manifest_of(&self, backup: &Backup) -> Result<FileNumber> {
        let private = self.private(backup.info.id);
        let named = read_current(&*self.fs, &private).map_err(|e| e.hint("Use another backup"))?;
        let has = |number: &FileNumber| backup.files.iter().any(|f| f.kind == FileKind::Manifest(*number));
        named.filter(has).ok_or_else(|| {
            Error::corruption("CURRENT names a MANIFEST that the backup does not have").at_path(&private)
        })
    }

    /// The newest column family that the backup knows, dropped ones included.
    fn newest_family(&self, backup: &Backup) -> Result<FamilyId> {
        let manifest = self.manifest_of(backup)?;
        let replayed = replay_manifest(&*self.fs, &self.private(backup.info.id), manifest)?;
        let listed = replayed.families.keys().next_back().copied().unwrap_or_default();
        Ok(listed.max(replayed.db.max_family))
    }

    /// The WAL files of the directory that continue the backup, with their lengths.
    ///
    /// # Errors
    /// `InvalidArgument`: writes between the backup and the files are missing, or a file is another one than in the backup.
    /// Or a file has data of a column family that the backup does not know.
    fn logs_to_keep(&self, fs: &dyn Fs, into: &Path, backup: &Backup) -> Result<BTreeMap<FileNumber, u64>> {
        let logs = wal_files(fs, into)?;
        let refuse = |number, what: &str| {
            let path = into.join(FileKind::Wal(number).name());
            let e =
                Error::invalid(format!("the WAL file does not continue the backup: {what}")).at_path(&path);
            Err(e.hint("Restore without keep_log_files, or move the WAL files away"))
        };
        let newest_family = self.newest_family(backup)?;
        for number in logs.keys() {
            let source = fs.open_read(&into.join(FileKind::Wal(*number).name()))?;
            if let Some(family) = newer_family(source, *number, newest_family)? {
                return refuse(
                    *number,
                    &format!("it has data of column family {family}, which was created later"),
                );
            }
        }
        let mut newest = FileNumber(0);
        for file in &backup.files {
            let FileKind::Wal(number) = file.kind else { continue };
            newest = newest.max(number);
            if logs.contains_key(&number) {
                let source = fs.open_read(&into.join(file.kind.name()))?;
                let sum = copy(&*source, None, file.bytes, &self.pace())?;
                if sum.bytes != file.bytes || file.checksum.is_some_and(|crc| crc != sum.crc) {
                    return refuse(number, "the backup has a file of this name with other bytes");
                }
            }
        }
        if logs.contains_key(&newest) {
            return Ok(logs);
        }
        for number in logs.keys().filter(|number| **number > newest) {
            let source = fs.open_read(&into.join(FileKind::Wal(*number).name()))?;
            let Some(first) = first_sequence(&source, *number)? else { continue };
            if first.get() > backup.info.sequence.get().saturating_add(1) {
                let what =
                    format!("it begins with write {first}, the backup ends at {}", backup.info.sequence);
                return refuse(*number, &what);
            }
            break;
        }
        Ok(logs)
    }
}

/// The family of a write in a WAL file, if it was created after the family `newest`.
fn newer_family(source: Arc<dyn ReadFile>, number: FileNumber, newest: FamilyId) -> Result<Option<u32>> {
    let mut reader = LogReader::open(source, number, RecoveryMode::PointInTime);
    while let Some(record) = reader.next()? {
        let batch = BatchReader::new(record.payload).ok().filter(|_| record.kind == LogRecordKind::Data);
        let families = batch.iter().flat_map(BatchReader::iter).filter_map(|op| op.ok()?.family());
        if let Some(newer) = families.into_iter().find(|family| *family > newest) {
            return Ok(Some(newer.0));
        }
    }
    Ok(None)
}

/// Removes the directories of the original from a restored OPTIONS file. Backups of RocksDB name them, and an open of the
/// restored database would read the WAL files of the original there.
fn forget_places(fs: &dyn Fs, path: &Path) -> Result<()> {
    match copy_options(fs, path, path) {
        // An open of the restored database reports the file.
        Err(e) if e.is_corruption() => Ok(()),
        copied => copied,
    }
}

/// # Errors
/// `InvalidArgument`: the directory has files, and no database.
fn check_replaceable(fs: &dyn Fs, into: &Path) -> Result<()> {
    match fs.metadata(into)? {
        None => return Ok(()),
        Some(entry) if entry.kind == EntryKind::File => {
            return Err(Error::invalid("a file is in the place of the database").at_path(into));
        }
        Some(_) => {}
    }
    let entries = fs.list(into)?;
    let is_own =
        |entry: &FsEntry| entry.kind == EntryKind::File && FileKind::parse_exact(&entry.name).is_some();
    if entries.iter().all(is_own) || holds_remains(fs, into)? {
        return Ok(());
    }
    let e = Error::invalid("the directory is not empty, and holds no database").at_path(into);
    Err(e.hint("Name a new directory, or that of a database"))
}

/// Removes the files of a database, `CURRENT` first and durably: what is half removed is no database.
fn remove_database(fs: &dyn Fs, into: &Path, keep: &BTreeMap<FileNumber, u64>) -> Result<()> {
    let entries = fs.files(into)?;
    if entries.iter().any(|entry| entry.name == FileKind::Current.name()) {
        fs.remove(&into.join(FileKind::Current.name()))?;
        fs.sync_dir(into)?;
    }
    for entry in entries {
        let goes = match FileKind::parse_exact(&entry.name) {
            Some(FileKind::Wal(number)) => !keep.contains_key(&number),
            Some(
                FileKind::Table(_)
                | FileKind::LevelDbTable(_)
                | FileKind::Blob(_)
                | FileKind::Manifest(_)
                | FileKind::Identity
                | FileKind::Options(_)
                | FileKind::OptionsTemp(_)
                | FileKind::Temp(_),
            ) => true,
            _ => false,
        };
        if goes {
            fs.remove(&into.join(&entry.name))?;
        }
    }
    Ok(())
}
