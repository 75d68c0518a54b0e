//! The file system of the machine.

use super::file::{OsReadFile, OsWriteFile};
use super::lock::OsLock;
use super::sync;
use crate::{EntryKind, FileLock, Fs, FsEntry, ReadFile, WriteFile};
use ashlar_base::{Error, Result};
use rustix::fs::{AtFlags, CWD, OFlags};
use rustix::io::Errno;
use std::fs::{self, File, Metadata};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// The file system of the machine.
#[derive(Debug, Default)]
pub struct OsFs {}

impl OsFs {
    /// The file system of the machine.
    pub fn new() -> Self {
        OsFs {}
    }
}

fn entry(name: String, meta: &Metadata) -> FsEntry {
    let kind = match meta.file_type() {
        t if t.is_file() => EntryKind::File,
        t if t.is_dir() => EntryKind::Dir,
        _ => EntryKind::Other,
    };
    FsEntry { name, len: if kind == EntryKind::File { meta.len() } else { 0 }, kind }
}

impl Fs for OsFs {
    fn open_read(&self, path: &Path) -> Result<Arc<dyn ReadFile>> {
        Ok(Arc::new(OsReadFile::open(path)?))
    }

    fn create(&self, path: &Path) -> Result<Arc<dyn WriteFile>> {
        Ok(Arc::new(OsWriteFile::open("create", path, OFlags::CREATE | OFlags::TRUNC)?))
    }

    fn open_write(&self, path: &Path) -> Result<Arc<dyn WriteFile>> {
        Ok(Arc::new(OsWriteFile::open("open for writing", path, OFlags::empty())?))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        fs::rename(from, to).map_err(|e| Error::io(&format!("rename to {}", to.display()), from, &e))
    }

    fn link(&self, from: &Path, to: &Path) -> Result<()> {
        let linked = rustix::fs::linkat(CWD, from, CWD, to, AtFlags::empty());
        linked.map_err(|e| match e {
            Errno::XDEV | Errno::PERM | Errno::MLINK | Errno::OPNOTSUPP | Errno::NOSYS => {
                Error::not_supported("a link to the file").at_path(from).because(e)
            }
            _ => Error::io(&format!("link from {}", from.display()), to, &e.into()),
        })
    }

    fn remove(&self, path: &Path) -> Result<()> {
        fs::remove_file(path).map_err(|e| Error::io("remove", path, &e))
    }

    fn list(&self, dir: &Path) -> Result<Vec<FsEntry>> {
        let failed = |e: io::Error| Error::io("list", dir, &e);
        let mut entries = Vec::new();
        for item in fs::read_dir(dir).map_err(failed)? {
            let item = item.map_err(failed)?;
            let name = item.file_name().to_string_lossy().into_owned();
            match item.metadata() {
                Ok(meta) => entries.push(entry(name, &meta)),
                // Removed by somebody since the directory was read.
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(e) => return Err(Error::io("stat", &item.path(), &e)),
            }
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    fn metadata(&self, path: &Path) -> Result<Option<FsEntry>> {
        match fs::symlink_metadata(path) {
            Ok(meta) => {
                let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
                Ok(Some(entry(name, &meta)))
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(Error::io("stat", path, &e)),
        }
    }

    fn create_dir_all(&self, path: &Path) -> Result<()> {
        fs::create_dir_all(path).map_err(|e| Error::io("create the directory", path, &e))
    }

    fn sync_dir(&self, path: &Path) -> Result<()> {
        let dir = File::open(path).map_err(|e| Error::io("open the directory", path, &e))?;
        sync::sync_all(&dir).map_err(|e| Error::io("sync the directory", path, &e))
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        fs::remove_dir(path).map_err(|e| Error::io("remove the directory", path, &e))
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn FileLock>> {
        Ok(Box::new(OsLock::take(path)?))
    }
}
