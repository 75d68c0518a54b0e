//! The directory of a case: the database and all directories beside it, saved, restored and compared as a whole.
//!
//! OPTIONS files contain absolute paths, so no work is done on a copy elsewhere. Work that must not change the directory is
//! done in place, and the directory is restored afterwards.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

pub(super) struct Folder {
    holder: TempDir,
}

/// Files with their lengths and hashes.
pub(super) type Listing = BTreeMap<PathBuf, (u64, u64)>;

impl Folder {
    pub(super) fn new() -> io::Result<Folder> {
        let folder = Folder { holder: tempfile::tempdir()? };
        std::fs::create_dir_all(folder.root())?;
        Ok(folder)
    }

    /// All that belongs to the case.
    pub(super) fn root(&self) -> PathBuf {
        self.holder.path().join("case")
    }

    pub(super) fn db(&self) -> PathBuf {
        self.root().join("db")
    }

    /// Keeps the folder as it is now.
    pub(super) fn keep(&self) -> io::Result<()> {
        let kept = self.holder.path().join("kept");
        if kept.exists() {
            std::fs::remove_dir_all(&kept)?;
        }
        copy(&self.root(), &kept)
    }

    /// Puts back what was kept, which is gone then.
    pub(super) fn restore(&self) -> io::Result<()> {
        std::fs::remove_dir_all(self.root())?;
        std::fs::rename(self.holder.path().join("kept"), self.root())
    }

    /// Keeps the folder as it is before a visit of ours.
    pub(super) fn keep_before(&self) -> io::Result<()> {
        let before = self.holder.path().join("before");
        if before.exists() {
            std::fs::remove_dir_all(&before)?;
        }
        copy(&self.root(), &before)
    }

    /// Does something to the folder as it was before our visit; behind it, the folder is as it is now.
    pub(super) fn as_before<T>(&self, work: impl FnOnce() -> T) -> io::Result<T> {
        let now = self.holder.path().join("now");
        std::fs::rename(self.root(), &now)?;
        copy(&self.holder.path().join("before"), &self.root())?;
        let done = work();
        std::fs::remove_dir_all(self.root())?;
        std::fs::rename(now, self.root())?;
        Ok(done)
    }

    /// Every file but info logs and LOCK, which an open may touch.
    pub(super) fn listing(&self) -> io::Result<Listing> {
        let mut listing = Listing::new();
        list(&self.root(), &mut listing)?;
        Ok(listing)
    }
}

/// The first difference of two listings, in words.
pub(super) fn changed(before: &Listing, after: &Listing) -> Option<String> {
    let name = |path: &PathBuf| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let gone =
        before.keys().find(|path| !after.contains_key(*path)).map(|path| format!("{} is gone", name(path)));
    let new =
        after.keys().find(|path| !before.contains_key(*path)).map(|path| format!("{} is new", name(path)));
    let other = before.iter().find(|(path, what)| after.get(*path).is_some_and(|now| now != *what));
    gone.or(new).or(other.map(|(path, _)| format!("{} has changed", name(path))))
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            std::fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

fn list(dir: &Path, listing: &mut Listing) -> io::Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type()?.is_dir() {
            list(&entry.path(), listing)?;
        } else if name != "LOCK"
            && !name.starts_with("LOG")
            && !name.ends_with("_LOG")
            && !name.contains("_LOG.old")
        {
            let bytes = std::fs::read(entry.path())?;
            let mut hasher = DefaultHasher::new();
            bytes.hash(&mut hasher);
            listing.insert(entry.path(), (bytes.len() as u64, hasher.finish()));
        }
    }
    Ok(())
}
