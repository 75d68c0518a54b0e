//! The directory of a copy: filled under a temporary name, and renamed when it is complete.
//!
//! 1. The lock of the temporary directory is held from its creation to the end of the rename. So two copies to one place
//!    exclude each other, also in two processes, and neither removes or completes the other's files. The file LOCK goes right before
//!    the rename, because programs that ship each file of a copy refuse empty ones. The lock of the directory stays. Where the file
//!    system has no locks of directories, two copies to one place exclude each other up to that moment only.
//! 2. A temporary directory whose LOCK is free is the remains of an interrupted copy, if it has files of a database only
//!    and no open has been there: an open writes IDENTITY and LOG.

use ashlar_base::error::BusyKind;
use ashlar_base::{Error, ErrorKind, Result};
use ashlar_env::{EntryKind, FileLock, Fs};
use ashlar_format::filename::FileKind;
use ashlar_tree::files::{check_named, make_directory};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// The most directories above a copy that are compared with the database's.
const DEPTH_MAX: usize = 4096;

/// Where a copy goes.
pub(super) struct Target<'a> {
    fs: &'a dyn Fs,
    into: PathBuf,
    temp: PathBuf,
}

/// A directory that is being filled. If it is dropped before [`Building::finish`], it is removed.
pub(super) struct Building<'a> {
    target: Target<'a>,
    // Holds the directory, so that a rename of one above does not lead elsewhere.
    fs: Arc<dyn Fs>,
    /// `None` once the directory has its name, or is removed.
    lock: Option<Box<dyn FileLock>>,
}

impl<'a> Target<'a> {
    /// The target `into` of a copy of the database in `dir`.
    ///
    /// # Errors
    /// `InvalidArgument`: something is in `into`, or it lies in `dir`.
    pub(super) fn new(fs: &'a dyn Fs, dir: &Path, into: &Path) -> Result<Target<'a>> {
        let into = whole(into)?;
        let Some(name) = into.file_name() else {
            return Err(Error::invalid("a copy needs a directory with a name").at_path(&into));
        };
        if is_inside(fs, &into, dir) {
            let e = Error::invalid("the copy would lie inside the database").at_path(&into);
            return Err(e.hint("Name a directory elsewhere"));
        }
        let mut temp = name.to_os_string();
        temp.push(".tmp");
        let target = Target { fs, temp: into.with_file_name(temp), into };
        target.check_free()?;
        Ok(target)
    }

    fn check_free(&self) -> Result<()> {
        match self.fs.metadata(&self.into)? {
            None => Ok(()),
            Some(entry) if entry.kind == EntryKind::Dir && self.fs.list(&self.into)?.is_empty() => Ok(()),
            Some(_) => Err(Error::invalid("there is something in the place of the copy")
                .at_path(&self.into)
                .hint("Name another directory")),
        }
    }

    /// Creates the directory under its temporary name. Removes the remains of an interrupted copy there.
    ///
    /// # Errors
    /// `Busy(Locked)`: another copy to this place is being made. `InvalidArgument`: other files are in the temporary place.
    pub(super) fn begin(self) -> Result<Building<'a>> {
        if self.fs.metadata(&self.temp)?.is_some() {
            self.check_remains()?;
        }
        make_directory(self.fs, &self.temp)?;
        // By its name: a copy that was completed meanwhile has another name, and is not reached.
        let lock = lock_directory(self.fs, &self.temp, "Another copy to this directory is being made")?;
        let fs = self.fs.hold(&self.temp)?;
        let building = Building { target: self, fs, lock: Some(lock) };
        building.target.check_remains()?;
        building.empty()?;
        Ok(building)
    }

    /// # Errors
    /// `InvalidArgument`: something is in the temporary directory that no interrupted copy left.
    fn check_remains(&self) -> Result<()> {
        let ours = |name: &str| {
            FileKind::parse_exact(name).is_some_and(|kind| {
                !matches!(kind, FileKind::Identity | FileKind::InfoLog | FileKind::OldInfoLog(_))
            })
        };
        let entries = self.fs.list(&self.temp)?;
        match entries.iter().find(|e| e.kind != EntryKind::File || !ours(&e.name)) {
            None => Ok(()),
            Some(other) => {
                let what = format!("there is something in the temporary place of the copy: {:?}", other.name);
                let e = Error::invalid(what).at_path(&self.temp);
                Err(e.hint("Move it away, or name another directory"))
            }
        }
    }
}

/// A path that the caller names, from the root.
///
/// # Errors
/// `InvalidArgument`: the path is empty, or has no meaning without a working directory.
pub(super) fn whole(path: &Path) -> Result<PathBuf> {
    check_named(path)?;
    std::path::absolute(path)
        .map_err(|e| Error::invalid("a path that the system cannot complete").at_path(path).because(e))
}

/// Locks the LOCK file of a directory. `hint`: what to do if another holds the lock.
pub(super) fn lock_directory(fs: &dyn Fs, dir: &Path, hint: &str) -> Result<Box<dyn FileLock>> {
    fs.lock(&dir.join(FileKind::Lock.name())).map_err(|e| match e.kind() {
        ErrorKind::Busy(BusyKind::Locked) => e.hint(hint),
        _ => e,
    })
}

/// Whether `into`, which need not exist, is `dir` or lies in it, by its path or behind symbolic links.
pub(super) fn is_inside(fs: &dyn Fs, into: &Path, dir: &Path) -> bool {
    let source = std::path::absolute(dir).unwrap_or_else(|_| dir.to_path_buf());
    if into.starts_with(&source) && !into.components().any(|part| part == Component::ParentDir) {
        return true;
    }
    let Some(home) = fs.directory_id(&source) else { return false };
    let Some(mut above) =
        into.ancestors().find(|path| fs.directory_id(path).is_some()).map(Path::to_path_buf)
    else {
        return false;
    };
    let mut id = fs.directory_id(&above);
    for _ in 0..DEPTH_MAX {
        if id == Some(home) {
            return true;
        }
        above.push("..");
        let parent = fs.directory_id(&above);
        if parent.is_none() || parent == id {
            break;
        }
        id = parent;
    }
    false
}

impl Building<'_> {
    /// The directory under its temporary name.
    pub(super) fn dir(&self) -> &Path {
        &self.target.temp
    }

    /// A file system that reaches the directory, and all that the database's reaches.
    pub(super) fn fs(&self) -> &Arc<dyn Fs> {
        &self.fs
    }

    /// The name that the directory gets.
    pub(super) fn final_dir(&self) -> &Path {
        &self.target.into
    }

    /// Gives the directory its name, durably. All in it is durable.
    pub(super) fn finish(mut self) -> Result<()> {
        let Target { fs, into, temp } = &self.target;
        self.target.check_free()?;
        match fs.remove_dir(into) {
            Err(e) if !e.is_not_found() => return Err(e),
            _ => {}
        }
        fs.remove(&temp.join(FileKind::Lock.name()))?;
        fs.rename(temp, into)?;
        if let Some(parent) = into.parent()
            && let Err(e) = fs.sync_dir(parent)
        {
            // A name that may vanish is no copy: the drop removes the files.
            let _ = fs.rename(into, temp);
            return Err(e);
        }
        self.lock = None;
        Ok(())
    }

    /// Removes all files but the LOCK. `CURRENT` goes first: a directory that is half removed is no database.
    fn empty(&self) -> Result<()> {
        let kinds = self.fs.list(self.dir())?.into_iter();
        let mut names: Vec<_> =
            kinds.map(|entry| entry.name).filter(|n| *n != FileKind::Lock.name()).collect();
        names.sort_by_key(|name| *name != FileKind::Current.name());
        names.iter().try_for_each(|name| self.fs.remove(&self.dir().join(name)))
    }
}

impl Drop for Building<'_> {
    fn drop(&mut self) {
        let Some(lock) = self.lock.take() else { return };
        // Best effort: the next copy to this place removes what stays.
        let emptied = self.empty().is_ok();
        drop(lock);
        if emptied {
            let Target { fs, temp, .. } = &self.target;
            let _ = fs.remove(&temp.join(FileKind::Lock.name()));
            let _ = fs.remove_dir(temp);
        }
    }
}
