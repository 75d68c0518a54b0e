//! Backups: states of a database in one directory, in RocksDB's layout, incremental.
//!
//! ```text
//! LOCK                   ours; RocksDB ignores the file
//! meta/ID                the text file of a backup: its files with their checksums; written last
//! private/ID/            MANIFEST, CURRENT, OPTIONS and WAL files of one backup
//! shared_checksum/       tables and blob files of all backups
//! ```
//! 1. A backup exists from the moment that `meta/ID` has its name. All its files are durable before. So a creation that is cut
//!    off at any call leaves the earlier backups as they were, and files that no meta file names.
//! 2. A deletion removes `meta/ID` durably, then the files that no other backup names.
//! 3. What an interrupted call left is removed by the next call that changes the directory. A shared file is not removed while
//!    a backup cannot be read: that backup may need it.
//! 4. A shared file is never written under its final name. Its name says which table it is: the number, the session that wrote
//!    it, and its length. Tables that another session numbered, and blob files, have their checksum in the name.
//! 5. The LOCK excludes a second engine that writes. RocksDB does not look at it, so RocksDB and an engine that writes must not
//!    use one directory at the same time.
//!
//! Source: RocksDB `utilities/backup/backup_engine.cc`, `include/rocksdb/utilities/backup_engine.h`.

mod catalog;
mod clean;
mod copy;
mod create;
mod restore;

pub use create::{BackupOptions, BackupSource, CreatedBackup};
pub use restore::{RestoreOptions, Restored};

use crate::Copied;
use crate::target::{lock_directory, whole};
use ashlar_base::error::IoKind;
use ashlar_base::{Error, ErrorKind, Result, SeqNum};
use ashlar_env::{Clock, Env, FileLock, Fs};
use ashlar_format::filename::FileKind;
use ashlar_tree::files::make_directory;
use catalog::{Backup, Catalog, PRIVATE, Stored};
use copy::{Pace, check, copy, each};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A backup in the list of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackupInfo {
    /// Its number: 1, 2, 3 …
    pub id: u32,
    /// When it was made, in seconds since 1970.
    pub unix_seconds: i64,
    /// The newest write in it. RocksDB notes the number of a moment shortly before.
    pub sequence: SeqNum,
    /// The bytes of its files, shared ones included.
    pub bytes: u64,
    /// The number of its files, shared ones included.
    pub files: usize,
    /// What the application added.
    pub metadata: Vec<u8>,
}

/// A backup that cannot be used, with the reason.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CorruptBackup {
    /// Its number.
    pub id: u32,
    /// The file that is damaged or missing, and the line of the meta file.
    pub error: Error,
}

/// Settings of a [`BackupEngine`]. Every setting has a default.
#[derive(Clone, Debug)]
#[must_use = "a builder opens nothing until open is called"]
pub struct BackupEngineBuilder {
    dir: PathBuf,
    env: Option<Env>,
    read_only: bool,
    bytes_per_second: u64,
    threads: usize,
}

impl BackupEngineBuilder {
    /// Whether to list, verify and restore only. Such an engine takes no LOCK and creates no file in the backup directory. It
    /// may be open beside a writer, and shows the backups of the moment at which it was opened. Default: false.
    pub fn read_only(self, yes: bool) -> Self {
        BackupEngineBuilder { read_only: yes, ..self }
    }

    /// The most bytes per second that a call reads to copy or verify files. 0, the default: no limit.
    pub fn rate_limit(self, bytes_per_second: u64) -> Self {
        BackupEngineBuilder { bytes_per_second, ..self }
    }

    /// How many threads copy and verify files, each a file at a time. Default: one, the calling thread.
    pub fn threads(self, n: usize) -> Self {
        BackupEngineBuilder { threads: n, ..self }
    }

    /// The file system and clock to use. Default: those of the machine.
    pub fn env(self, env: Env) -> Self {
        BackupEngineBuilder { env: Some(env), ..self }
    }

    /// Opens the directory, and creates it unless the engine is read-only.
    ///
    /// # Errors
    /// `Busy(Locked)`: another engine writes to the directory. `InvalidArgument`: the directory is that of a database.
    /// `Io(NotFound)`: a read-only engine, and no directory. Other `Io`. A damaged backup is no error: see
    /// [`BackupEngine::corrupt_backups`].
    /// # Cost
    /// Reads all meta files, and lists the folders.
    pub fn open(self) -> Result<BackupEngine> {
        let dir = whole(&self.dir)?;
        let env = self.env.map_or_else(Env::os, Ok)?;
        if env.fs.metadata(&dir.join(FileKind::Current.name()))?.is_some() {
            let e = Error::invalid("the directory of backups is that of a database").at_path(&dir);
            return Err(e.hint("Name another directory"));
        }
        let mut lock = None;
        if self.read_only {
            if env.fs.metadata(&dir)?.is_none() {
                let e = Error::new(ErrorKind::Io(IoKind::NotFound), "there is no directory of backups");
                return Err(e.at_path(&dir));
            }
        } else {
            make_directory(&*env.fs, &dir)?;
            lock =
                Some(lock_directory(&*env.fs, &dir, "Another engine writes backups here; wait for its end")?);
        }
        let fs = env.fs.hold(&dir)?;
        let catalog = Catalog::load(&*fs, &dir)?;
        let (bytes_per_second, threads) = (self.bytes_per_second, self.threads);
        Ok(BackupEngine { fs, clock: env.clock, dir, lock, bytes_per_second, threads, catalog })
    }
}

/// A directory of backups. See the documentation of the module for its layout.
#[derive(Debug)]
pub struct BackupEngine {
    /// Reaches the directory by a descriptor.
    fs: Arc<dyn Fs>,
    clock: Arc<dyn Clock>,
    dir: PathBuf,
    /// `None`: the engine is read-only.
    lock: Option<Box<dyn FileLock>>,
    bytes_per_second: u64,
    threads: usize,
    catalog: Catalog,
}

impl BackupEngine {
    /// [`BackupEngineBuilder::open`] with default settings.
    ///
    /// # Errors
    /// Those of [`BackupEngineBuilder::open`].
    pub fn open(dir: impl AsRef<Path>) -> Result<BackupEngine> {
        BackupEngine::builder(dir).open()
    }

    /// Settings for the directory `dir`.
    pub fn builder(dir: impl AsRef<Path>) -> BackupEngineBuilder {
        BackupEngineBuilder {
            dir: dir.as_ref().to_path_buf(),
            env: None,
            read_only: false,
            bytes_per_second: 0,
            threads: 1,
        }
    }

    /// The usable backups, oldest first.
    pub fn backups(&self) -> Vec<BackupInfo> {
        self.catalog.backups.values().map(|backup| backup.info.clone()).collect()
    }

    /// The backups that cannot be used, oldest first. They keep their files until [`BackupEngine::delete`] is called.
    pub fn corrupt_backups(&self) -> Vec<CorruptBackup> {
        let all = self.catalog.corrupt.iter();
        all.map(|(id, error)| CorruptBackup { id: *id, error: error.clone() }).collect()
    }

    /// Reads all files of a backup, and compares their lengths and checksums with the meta file.
    ///
    /// # Errors
    /// `Corruption`: the first file that differs or is missing. `InvalidArgument`: there is no such backup. `Io`.
    /// # Cost
    /// Reads [`BackupInfo::bytes`] bytes.
    pub fn verify(&self, id: u32) -> Result<()> {
        self.verify_with(id, |_| ())
    }

    /// [`BackupEngine::verify`]. `progress` is called after each file.
    ///
    /// # Errors
    /// Those of [`BackupEngine::verify`].
    pub fn verify_with(&self, id: u32, mut progress: impl FnMut(&Copied)) -> Result<()> {
        self.verify_sizes(id)?;
        let (backup, pace, fs, dir) = (self.backup(id)?, self.pace(), &self.fs, &self.dir);
        let mut done =
            Copied { files_total: backup.info.files, bytes_total: backup.info.bytes, ..Copied::default() };
        let verify = |file: &Stored| {
            let path = dir.join(&file.path);
            let found = copy(&*fs.open_read(&path)?, None, u64::MAX, &pace)?;
            check(&path, found, file.bytes, file.checksum).map(|()| found.bytes)
        };
        each(&backup.files, self.threads, verify, |_, bytes| {
            done.files += 1;
            done.bytes += bytes;
            progress(&done);
        })
    }

    /// Checks that all files of a backup exist with their lengths, and that `CURRENT` names its MANIFEST.
    ///
    /// # Errors
    /// As [`BackupEngine::verify`].
    /// # Cost
    /// One call of the file system per file.
    pub fn verify_sizes(&self, id: u32) -> Result<()> {
        let backup = self.backup(id)?;
        for file in &backup.files {
            let path = self.dir.join(&file.path);
            let Some(entry) = self.fs.metadata(&path)? else {
                return Err(Error::corruption(format!("a file of backup {id} is missing")).at_path(&path));
            };
            if entry.len != file.bytes {
                let what = format!("a file of backup {id} has {} bytes, not {}", entry.len, file.bytes);
                return Err(Error::corruption(what).at_path(&path));
            }
        }
        self.manifest_of(backup).map(|_| ())
    }

    /// The directory of the files that only backup `id` has.
    fn private(&self, id: u32) -> PathBuf {
        self.dir.join(PRIVATE).join(id.to_string())
    }

    fn pace(&self) -> Pace {
        Pace::new(&self.clock, self.bytes_per_second)
    }

    /// # Errors
    /// `InvalidArgument`: there is no such backup. The reason for which a backup cannot be used.
    fn backup(&self, id: u32) -> Result<&Backup> {
        if let Some(e) = self.catalog.corrupt.get(&id) {
            return Err(e.clone().hint("Use another backup, and delete this one"));
        }
        self.catalog.backups.get(&id).ok_or_else(|| {
            Error::invalid(format!("there is no backup {id}")).at_path(&self.dir).hint("List the backups")
        })
    }

    /// # Errors
    /// `NotSupported`: the engine is read-only.
    fn check_writable(&self) -> Result<()> {
        match self.lock {
            Some(_) => Ok(()),
            None => Err(Error::not_supported("a change of backups by a read-only engine").at_path(&self.dir)),
        }
    }
}
