//! Removes backups, and files that belong to none.

use super::BackupEngine;
use super::catalog::{Catalog, META, PRIVATE, SHARED, SHARED_CHECKSUM, id_of, list};
use ashlar_base::Result;
use ashlar_env::EntryKind;
use ashlar_format::backup_meta::SharedName;
use ashlar_format::filename::FileKind;
use std::path::Path;

impl BackupEngine {
    /// Deletes a backup, a corrupt one too, and the files that no other backup needs.
    ///
    /// # Errors
    /// `InvalidArgument`: there is no such backup. `NotSupported`: the engine is read-only. `Io`: [`BackupEngine::backups`] says
    /// whether the backup still exists. Files that could not be removed are removed by the next call that changes backups.
    pub fn delete(&mut self, id: u32) -> Result<()> {
        self.check_writable()?;
        self.refresh()?;
        if !self.catalog.corrupt.contains_key(&id) {
            self.backup(id)?;
        }
        self.remove(&[id])
    }

    /// Deletes all usable backups but the newest `keep` ones. Corrupt backups stay. Returns the ids of the deleted backups.
    ///
    /// # Errors
    /// Those of [`BackupEngine::delete`].
    pub fn purge_old(&mut self, keep: usize) -> Result<Vec<u32>> {
        self.check_writable()?;
        self.refresh()?;
        let count = self.catalog.backups.len().saturating_sub(keep);
        let old: Vec<u32> = self.catalog.backups.keys().take(count).copied().collect();
        self.remove(&old)?;
        Ok(old)
    }

    /// Deletes all backups, corrupt ones too.
    ///
    /// # Errors
    /// Those of [`BackupEngine::delete`].
    pub fn delete_all(&mut self) -> Result<()> {
        self.check_writable()?;
        self.refresh()?;
        let all: Vec<u32> = self.catalog.backups.keys().chain(self.catalog.corrupt.keys()).copied().collect();
        self.remove(&all)
    }

    /// Removes what interrupted calls left. Each call that changes backups does that too. Files with foreign names stay. While
    /// there is a corrupt backup, shared files stay, because that backup may need them.
    ///
    /// # Errors
    /// `NotSupported`: the engine is read-only. `Io`.
    pub fn collect_garbage(&mut self) -> Result<()> {
        self.check_writable()?;
        self.refresh()?;
        self.sweep()
    }

    /// Reads the meta files again: RocksDB may have added a backup.
    pub(super) fn refresh(&mut self) -> Result<()> {
        self.catalog = Catalog::load(&*self.fs, &self.dir)?;
        Ok(())
    }

    fn remove(&mut self, ids: &[u32]) -> Result<()> {
        if ids.is_empty() {
            return Ok(());
        }
        let meta = self.dir.join(META);
        for id in ids {
            self.fs.remove(&meta.join(id.to_string()))?;
            self.catalog.backups.remove(id);
            self.catalog.corrupt.remove(id);
        }
        self.sweep()
    }

    /// Removes the files that no backup of the catalog has. The catalog is that of the disk.
    pub(super) fn sweep(&self) -> Result<()> {
        let meta = self.dir.join(META);
        if self.fs.metadata(&meta)?.is_some() {
            // A meta file that comes back after a power cut would name files that are gone.
            self.fs.sync_dir(&meta)?;
        }
        self.sweep_folder(META, is_temporary)?;
        self.sweep_private()?;
        let paths = self.catalog.paths();
        let may_go = |folder: &str, name: &str| {
            self.catalog.corrupt.is_empty() && !paths.contains(format!("{folder}/{name}").as_str())
        };
        self.sweep_folder(SHARED_CHECKSUM, |name| {
            is_temporary(name) || SharedName::parse(name).is_some() && may_go(SHARED_CHECKSUM, name)
        })?;
        let is_shared =
            |name: &str| matches!(FileKind::parse_exact(name), Some(FileKind::Table(_) | FileKind::Blob(_)));
        self.sweep_folder(SHARED, |name| is_temporary(name) || is_shared(name) && may_go(SHARED, name))
    }

    fn sweep_private(&self) -> Result<()> {
        let private = self.dir.join(PRIVATE);
        for entry in list(&*self.fs, &private)?.iter().filter(|entry| entry.kind == EntryKind::Dir) {
            let is_left = match (id_of(&entry.name), entry.name.strip_suffix(".tmp")) {
                (Some(id), _) => {
                    !self.catalog.backups.contains_key(&id) && !self.catalog.corrupt.contains_key(&id)
                }
                // A name for unfinished backups in older releases.
                (None, Some(stem)) => id_of(stem).is_some(),
                (None, None) => false,
            };
            if is_left {
                self.remove_folder(&private.join(&entry.name))?;
            }
        }
        Ok(())
    }

    fn remove_folder(&self, folder: &Path) -> Result<()> {
        for entry in self.fs.files(folder)? {
            self.fs.remove(&folder.join(entry.name))?;
        }
        self.fs.remove_dir(folder)
    }

    fn sweep_folder(&self, folder: &str, goes: impl Fn(&str) -> bool) -> Result<()> {
        let path = self.dir.join(folder);
        for entry in list(&*self.fs, &path)? {
            if entry.kind == EntryKind::File && goes(&entry.name) {
                self.fs.remove(&path.join(entry.name))?;
            }
        }
        Ok(())
    }
}

/// The form of a name under which a file is written.
fn is_temporary(name: &str) -> bool {
    name.starts_with('.') && name.ends_with(".tmp")
}
