//! The directory of a copy: filled under a temporary name, and renamed when it is complete.

use ashlar_base::{Error, Result};
use ashlar_env::{EntryKind, Fs};
use ashlar_format::filename::FileKind;
use ashlar_tree::files::{check_named, make_directory};
use std::path::{Path, PathBuf};
use std::sync::Arc;

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
    finished: bool,
}

impl<'a> Target<'a> {
    /// The target `into` of a copy of the database in `dir`.
    ///
    /// # Errors
    /// `InvalidArgument`: something is in `into`, or it lies in `dir`.
    pub(super) fn new(fs: &'a dyn Fs, dir: &Path, into: &Path) -> Result<Target<'a>> {
        check_named(into)?;
        let into = std::path::absolute(into)
            .map_err(|e| Error::invalid("a path that the system cannot complete").at_path(into).because(e))?;
        let Some(name) = into.file_name() else {
            return Err(Error::invalid("a checkpoint needs a directory with a name").at_path(&into));
        };
        let source = std::path::absolute(dir).unwrap_or_else(|_| dir.to_path_buf());
        if into.starts_with(&source) {
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
    pub(super) fn begin(self) -> Result<Building<'a>> {
        self.clear_remains()?;
        make_directory(self.fs, &self.temp)?;
        let fs = self.fs.hold(&self.temp)?;
        Ok(Building { target: self, fs, finished: false })
    }

    /// Removes what an interrupted copy left: files with the names of database files, and no LOCK, which every database that
    /// was opened has.
    fn clear_remains(&self) -> Result<()> {
        if self.fs.metadata(&self.temp)?.is_none() {
            return Ok(());
        }
        let entries = self.fs.list(&self.temp)?;
        let ours = |name: &str| FileKind::parse_exact(name).is_some_and(|kind| kind != FileKind::Lock);
        if let Some(other) = entries.iter().find(|e| e.kind != EntryKind::File || !ours(&e.name)) {
            let what = format!("there is something in the temporary place of the copy: {:?}", other.name);
            let e = Error::invalid(what).at_path(&self.temp);
            return Err(e.hint("Move it away, or name another directory"));
        }
        self.remove(&entries.into_iter().map(|e| e.name).collect::<Vec<_>>())
    }

    fn remove(&self, names: &[String]) -> Result<()> {
        // CURRENT first: a directory that is half removed is no database.
        let current = FileKind::Current.name();
        let (first, rest): (Vec<_>, Vec<_>) = names.iter().partition(|name| **name == current);
        for name in first.into_iter().chain(rest) {
            self.fs.remove(&self.temp.join(name))?;
        }
        self.fs.remove_dir(&self.temp)
    }
}

impl Building<'_> {
    /// The directory under its temporary name.
    pub(super) fn dir(&self) -> &Path {
        &self.target.temp
    }

    /// A file system that reaches the directory, and all that the database's reaches.
    pub(super) fn fs(&self) -> &dyn Fs {
        &*self.fs
    }

    /// Gives the directory its name, durably. All in it is durable.
    pub(super) fn finish(mut self) -> Result<()> {
        let Target { fs, into, temp } = &self.target;
        self.target.check_free()?;
        match fs.remove_dir(into) {
            Err(e) if !e.is_not_found() => return Err(e),
            _ => {}
        }
        fs.rename(temp, into)?;
        if let Some(parent) = into.parent()
            && let Err(e) = fs.sync_dir(parent)
        {
            // A name that may vanish is no copy: the drop removes the files.
            let _ = fs.rename(into, temp);
            return Err(e);
        }
        self.finished = true;
        Ok(())
    }
}

impl Drop for Building<'_> {
    fn drop(&mut self) {
        if self.finished {
            return;
        }
        // Best effort: the next copy to this place removes what stays.
        if let Ok(entries) = self.fs.list(&self.target.temp) {
            let _ = self.target.remove(&entries.into_iter().map(|e| e.name).collect::<Vec<_>>());
        }
    }
}
