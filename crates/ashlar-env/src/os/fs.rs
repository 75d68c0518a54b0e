//! The file system of the machine.

use super::file::{OsReadFile, OsWriteFile};
use super::lock::OsLock;
use super::place::{Held, kind_at, not_regular};
use super::sync;
use crate::{EntryKind, FileLock, Fs, FsEntry, ReadFile, WriteFile};
use ashlar_base::{Error, Result};
use rustix::fs::{AtFlags, Dir, FileType, Stat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

/// The file system of the machine.
#[derive(Debug, Default)]
pub struct OsFs {
    held: Held,
}

impl OsFs {
    /// The file system of the machine, without a held directory.
    pub fn new() -> Self {
        OsFs::default()
    }
}

fn entry(name: String, stat: &Stat) -> FsEntry {
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => EntryKind::File,
        FileType::Directory => EntryKind::Dir,
        _ => EntryKind::Other,
    };
    let len = if kind == EntryKind::File { u64::try_from(stat.st_size).unwrap_or(0) } else { 0 };
    FsEntry { name, len, kind }
}

impl Fs for OsFs {
    fn hold(&self, dir: &Path) -> Result<Arc<dyn Fs>> {
        Ok(Arc::new(OsFs { held: self.held.with(dir)? }))
    }

    fn directory_id(&self, dir: &Path) -> Option<(u64, u64)> {
        let stat = rustix::fs::stat(dir).ok()?;
        Some((stat.st_dev, stat.st_ino))
    }

    fn free_space(&self, dir: &Path) -> Result<Option<u64>> {
        let failed = |e: Errno| Error::io("ask for the free space of", dir, &e.into());
        let opened = self.held.place("ask for the free space of", dir)?.open_dir().map_err(failed)?;
        let stat = rustix::fs::fstatvfs(&opened).map_err(failed)?;
        Ok(Some(stat.f_bavail.saturating_mul(stat.f_frsize)))
    }

    fn open_read(&self, path: &Path) -> Result<Arc<dyn ReadFile>> {
        Ok(Arc::new(OsReadFile::open(&self.held, path)?))
    }

    fn create(&self, path: &Path) -> Result<Arc<dyn WriteFile>> {
        Ok(Arc::new(OsWriteFile::create(&self.held, path)?))
    }

    fn open_write(&self, path: &Path) -> Result<Arc<dyn WriteFile>> {
        Ok(Arc::new(OsWriteFile::open(&self.held, path)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        let (old, new) = (self.held.named("rename", from)?, self.held.named("rename", to)?);
        if let Ok(FileType::CharacterDevice | FileType::BlockDevice | FileType::Fifo | FileType::Socket) =
            kind_at(&new)
        {
            return Err(not_regular("rename to", to, "it is no regular file"));
        }
        rustix::fs::renameat(&old, old.name, &new, new.name)
            .map_err(|e| Error::io(&format!("rename to {}", to.display()), from, &e.into()))
    }

    fn link(&self, from: &Path, to: &Path) -> Result<()> {
        let (old, new) = (self.held.named("link", from)?, self.held.named("link", to)?);
        let linked = rustix::fs::linkat(&old, old.name, &new, new.name, AtFlags::empty());
        linked.map_err(|e| match e {
            Errno::XDEV | Errno::PERM | Errno::MLINK | Errno::OPNOTSUPP | Errno::NOSYS => {
                Error::not_supported("a link to the file").at_path(from).because(e)
            }
            _ => Error::io(&format!("link from {}", from.display()), to, &e.into()),
        })
    }

    fn remove(&self, path: &Path) -> Result<()> {
        let place = self.held.named("remove", path)?;
        rustix::fs::unlinkat(&place, place.name, AtFlags::empty())
            .map_err(|e| Error::io("remove", path, &e.into()))
    }

    fn list(&self, dir: &Path) -> Result<Vec<FsEntry>> {
        let failed = |e: Errno| Error::io("list", dir, &e.into());
        let opened = self.held.place("list", dir)?.open_dir().map_err(failed)?;
        let mut entries = Vec::new();
        for item in Dir::read_from(&opened).map_err(failed)? {
            let item = item.map_err(failed)?;
            let name = OsStr::from_bytes(item.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            match rustix::fs::statat(&opened, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => entries.push(entry(name.to_string_lossy().into_owned(), &stat)),
                // The file was removed after its name was read.
                Err(Errno::NOENT) => {}
                Err(e) => return Err(Error::io("stat", &dir.join(name), &e.into())),
            }
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    fn metadata(&self, path: &Path) -> Result<Option<FsEntry>> {
        let place = match self.held.place("stat", path) {
            Ok(place) => place,
            Err(e) if e.is_not_found() => return Ok(None),
            Err(e) => return Err(e),
        };
        match rustix::fs::statat(&place, place.name, AtFlags::SYMLINK_NOFOLLOW) {
            // A held directory that was removed is still there for its descriptor.
            Ok(stat) if stat.st_nlink == 0 => Ok(None),
            Ok(stat) => {
                let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
                Ok(Some(entry(name, &stat)))
            }
            Err(Errno::NOENT) => Ok(None),
            Err(e) => Err(Error::io("stat", path, &e.into())),
        }
    }

    fn create_dir_all(&self, path: &Path) -> Result<()> {
        let system = || fs::create_dir_all(path).map_err(|e| Error::io("create the directory", path, &e));
        self.held.create_dirs(path).unwrap_or_else(system)
    }

    fn sync_dir(&self, path: &Path) -> Result<()> {
        let failed = |e: Errno| Error::io("open the directory", path, &e.into());
        let dir = self.held.place("open the directory", path)?.open_dir().map_err(failed)?;
        sync::sync_all(&dir).map_err(|e| Error::io("sync the directory", path, &e))
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        let place = self.held.named("remove the directory", path)?;
        rustix::fs::unlinkat(&place, place.name, AtFlags::REMOVEDIR)
            .map_err(|e| Error::io("remove the directory", path, &e.into()))
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn FileLock>> {
        Ok(Box::new(OsLock::take(&self.held, path)?))
    }

    fn check_unlocked(&self, path: &Path) -> Result<()> {
        OsLock::look(&self.held, path)
    }
}
