//! One namespace of file names over several directories: `wal_dir`, `db_paths`, `cf_paths`.
//!
//! The engine names every file as if it were in the database directory. [`Places`] is a file system that maps each name
//! to its directory: WAL files to `wal_dir`, tables and blob files to one of the table directories, and all other files
//! to the database directory.
//!
//! 1. A new WAL file goes to `wal_dir`. After a change of `wal_dir`, older WAL files are read in the former directory.
//!    They are removed only if that is the database directory, because another database may use a former `wal_dir` by
//!    now.
//! 2. The caller creates a table or blob file by its full path, whose directory is a setting. A later open finds the
//!    file by its name, in the first directory that has it.
//! 3. A listing of the database directory includes the WAL files, tables and blob files of the other directories.
//! 4. A sync of the database directory syncs each directory in which a name changed since its last sync.
//! 5. Errors name the real path.

use crate::files::read_pieces;
use ashlar_base::planted::{Bug, planted};
use ashlar_base::{Error, ErrorKind, Result};
use ashlar_env::{FileLock, Fs, FsEntry, ReadFile, WriteFile};
use ashlar_format::filename::FileKind;
use ashlar_sync::atomic::{AtomicU64, Ordering};
use ashlar_sync::{Mutex, Rank};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A directory beside the database directory.
#[derive(Debug)]
struct FileDir {
    dir: PathBuf,
    /// The setting that names the directory.
    setting: &'static str,
    /// The number of changes of names so far.
    changed: AtomicU64,
    /// The number of changes that are durable.
    synced: AtomicU64,
}

impl FileDir {
    fn new(dir: PathBuf, setting: &'static str) -> Arc<FileDir> {
        // A crash may have come before the sync of what an earlier session changed.
        Arc::new(FileDir { dir, setting, changed: AtomicU64::new(1), synced: AtomicU64::new(0) })
    }

    fn sync(&self, fs: &dyn Fs) -> Result<()> {
        let changed = self.changed.load(Ordering::Acquire);
        if self.synced.load(Ordering::Acquire) < changed {
            fs.sync_dir(&self.dir).map_err(|e| self.named(e))?;
            self.synced.fetch_max(changed, Ordering::AcqRel);
        }
        Ok(())
    }

    fn named(&self, e: Error) -> Error {
        let (setting, dir) = (self.setting, self.dir.display());
        e.hint(format!("{setting} is {dir}: is the directory there, and may this process use it?"))
    }
}

/// The directories added after the open.
#[derive(Debug, Default)]
struct Joined {
    dirs: Vec<PathBuf>,
    /// A file system that reaches these directories, and those of the open, through descriptors. `None`: no directory
    /// was added.
    fs: Option<Arc<dyn Fs>>,
}

/// See the module.
#[derive(Debug)]
pub struct Places {
    fs: Arc<dyn Fs>,
    joined: Arc<Mutex<Joined>>,
    dir: PathBuf,
    /// Where new logs go; `None`: the database directory.
    logs: Option<Arc<FileDir>>,
    /// Where logs were until this open, and are read.
    former: Arc<Mutex<Option<PathBuf>>>,
    /// The directories of tables and blob files, in the order in which they are searched. The database directory is one of
    /// them only where the settings name it. Empty: it is the only one.
    tables: Arc<Mutex<Vec<Arc<FileDir>>>>,
}

/// The kind of a name in the database directory.
enum Kind {
    Log,
    Table,
    Other,
}

fn kind(name: &str) -> Kind {
    match FileKind::parse(name) {
        Some(FileKind::Wal(_)) => Kind::Log,
        Some(FileKind::Table(_) | FileKind::LevelDbTable(_) | FileKind::Blob(_)) => Kind::Table,
        _ => Kind::Other,
    }
}

impl Places {
    /// WAL files are in `logs`, formerly in `former`; tables are in `tables`. `None` or no directory: the database
    /// directory.
    pub fn new(
        fs: Arc<dyn Fs>,
        dir: &Path,
        (logs, former): (Option<PathBuf>, Option<PathBuf>),
        tables: &[PathBuf],
    ) -> Arc<Places> {
        let places = Places {
            fs,
            joined: Arc::new(Mutex::new(Rank::Leaf, Joined::default())),
            dir: dir.to_path_buf(),
            logs: logs.map(|dir| FileDir::new(dir, "wal_dir")),
            former: Arc::new(Mutex::new(Rank::Leaf, former)),
            tables: Arc::new(Mutex::new(Rank::Leaf, Vec::new())),
        };
        places.add_tables(tables);
        Arc::new(places)
    }

    /// The same places, with a descriptor held of every existing directory beside the database directory.
    ///
    /// # Errors
    /// `Io`: a directory cannot be opened.
    pub fn held(&self) -> Result<Arc<Places>> {
        let mut fs = Arc::clone(&self.fs);
        let former = self.former.lock().clone();
        let beside =
            self.elsewhere().into_iter().map(|(dir, _)| dir).chain(former.filter(|dir| *dir != self.dir));
        for dir in beside {
            if fs.metadata(&dir)?.is_some() {
                fs = fs.hold(&dir)?;
            }
        }
        Ok(Arc::new(self.over(fs)))
    }

    /// The same places, with later changes of them, over another file system.
    fn over(&self, fs: Arc<dyn Fs>) -> Places {
        Places {
            fs,
            joined: Arc::clone(&self.joined),
            dir: self.dir.clone(),
            logs: self.logs.clone(),
            former: Arc::clone(&self.former),
            tables: Arc::clone(&self.tables),
        }
    }

    /// Adds `dir` after the open, and holds a descriptor of it from now on. One caller at a time.
    ///
    /// # Errors
    /// `Io`: the directory cannot be opened.
    pub fn join(&self, dir: &Path) -> Result<()> {
        let before = self.joined.lock().fs.clone();
        let held = before.as_ref().unwrap_or(&self.fs).hold(dir)?;
        let mut joined = self.joined.lock();
        joined.dirs.push(dir.to_path_buf());
        joined.fs = Some(held);
        Ok(())
    }

    /// The file system that holds the directory of this file or directory.
    fn fs_of(&self, real: &Path) -> Arc<dyn Fs> {
        let joined = self.joined.lock();
        let has_joined = joined.dirs.iter().any(|dir| real.starts_with(dir));
        Arc::clone(joined.fs.as_ref().filter(|_| has_joined).unwrap_or(&self.fs))
    }

    /// [`Places::fs_of`] two files.
    fn fs_of_both(&self, a: &Path, b: &Path) -> Arc<dyn Fs> {
        let joined = self.joined.lock();
        let has_joined = joined.dirs.iter().any(|dir| a.starts_with(dir) || b.starts_with(dir));
        Arc::clone(joined.fs.as_ref().filter(|_| has_joined).unwrap_or(&self.fs))
    }

    /// Adds directories of tables.
    pub fn add_tables(&self, dirs: &[PathBuf]) {
        let mut tables = self.tables.lock();
        if tables.is_empty() && dirs.iter().any(|dir| *dir != self.dir) {
            tables.push(FileDir::new(self.dir.clone(), "db_paths or cf_paths"));
        }
        for dir in dirs {
            if tables.iter().all(|place| place.dir != *dir) {
                tables.push(FileDir::new(dir.clone(), "db_paths or cf_paths"));
            }
        }
    }

    /// Forgets the former WAL directory: its files are no longer listed or read.
    pub fn leave_former(&self) {
        self.former.lock().take_if(|former| *former != self.dir);
    }

    /// The directories beside the database directory, each with its setting.
    pub fn elsewhere(&self) -> Vec<(PathBuf, &'static str)> {
        let mut all: Vec<Arc<FileDir>> = self.logs.iter().cloned().collect();
        for place in self.table_places() {
            if place.dir != self.dir && all.iter().all(|known| known.dir != place.dir) {
                all.push(place);
            }
        }
        all.iter().map(|place| (place.dir.clone(), place.setting)).collect()
    }

    /// The directories that have a table or blob file of this name.
    pub fn holders(&self, name: &str) -> Result<Vec<PathBuf>> {
        let mut found = Vec::new();
        for place in self.table_places() {
            let fs = self.fs_of(&place.dir);
            if fs.metadata(&place.dir.join(name)).map_err(|e| place.named(e))?.is_some() {
                found.push(place.dir.clone());
            }
        }
        Ok(found)
    }

    fn table_places(&self) -> Vec<Arc<FileDir>> {
        self.tables.lock().clone()
    }

    /// The kind and the name of a path in the database directory whose file may be in another directory.
    fn named<'p>(&self, path: &'p Path) -> (Kind, &'p str) {
        match (path.parent(), path.file_name().and_then(|name| name.to_str())) {
            (Some(parent), Some(name)) if parent == self.dir => (kind(name), name),
            _ => (Kind::Other, ""),
        }
    }

    /// The place of a file to read, remove or rename: the first directory that has it, or else the directory where a new one
    /// would go.
    fn find(&self, path: &Path) -> Result<PathBuf> {
        let (kind, name) = self.named(path);
        let dirs: Vec<PathBuf> = match (kind, &self.logs) {
            (Kind::Log, logs) => {
                let current = logs.as_ref().map_or(&self.dir, |logs| &logs.dir);
                // The current directory may have a file of the same number, left by an open that was to change to it.
                self.former.lock().iter().chain([current]).cloned().collect()
            }
            (Kind::Table, _) => self.table_places().iter().map(|place| place.dir.clone()).collect(),
            (Kind::Other, _) => Vec::new(),
        };
        if dirs.len() > 1 {
            for dir in &dirs {
                let here = dir.join(name);
                if self.fs_of(&here).metadata(&here)?.is_some() {
                    return Ok(here);
                }
            }
        }
        Ok(self.target(path))
    }

    /// The place of a new file.
    fn target(&self, path: &Path) -> PathBuf {
        match (self.named(path), &self.logs) {
            ((Kind::Log, name), Some(logs)) => logs.dir.join(name),
            ((Kind::Table, name), _) => {
                let first = self.table_places().first().map(|place| place.dir.join(name));
                first.unwrap_or_else(|| path.to_path_buf())
            }
            _ => path.to_path_buf(),
        }
    }

    /// Calls a function that changes the name `real`, and notes that its directory changed.
    fn changing<T>(&self, real: &Path, change: impl FnOnce() -> Result<T>) -> Result<T> {
        let done = change();
        let tables = self.table_places();
        for place in self.logs.iter().chain(&tables).filter(|place| real.parent() == Some(&*place.dir)) {
            // After the change, so that a sync that has read the count covers the change.
            place.changed.fetch_add(1, Ordering::AcqRel);
        }
        done
    }

    fn is_former_elsewhere(&self, real: &Path) -> bool {
        let former = self.former.lock().clone();
        former.is_some_and(|former| former != self.dir && real.parent() == Some(&*former))
    }

    fn list_place(&self, place: &FileDir, wanted: fn(&str) -> bool, all: &mut Vec<FsEntry>) -> Result<()> {
        let entries = self.fs_of(&place.dir).list(&place.dir).map_err(|e| place.named(e))?;
        all.extend(entries.into_iter().filter(|entry| wanted(&entry.name)));
        Ok(())
    }

    fn list_all(&self) -> Result<Vec<FsEntry>> {
        let is_log = |name: &str| matches!(kind(name), Kind::Log);
        let is_table = |name: &str| matches!(kind(name), Kind::Table);
        let (tables, former) = (self.table_places(), self.former.lock().clone());
        let logs_here = self.logs.is_none() || former.as_ref() == Some(&self.dir);
        let tables_here = tables.is_empty() || tables.iter().any(|place| place.dir == self.dir);
        let mut all = self.fs.list(&self.dir)?;
        all.retain(|entry| match kind(&entry.name) {
            Kind::Log => logs_here,
            Kind::Table => tables_here,
            Kind::Other => true,
        });
        // In the order in which a file is found: of two files with one name, the first is listed.
        if let Some(former) = former.filter(|former| *former != self.dir) {
            self.list_place(&FileDir::new(former, "wal_dir"), is_log, &mut all)?;
        }
        if let Some(logs) = &self.logs {
            self.list_place(logs, is_log, &mut all)?;
        }
        for place in tables.iter().filter(|place| place.dir != self.dir) {
            self.list_place(place, is_table, &mut all)?;
        }
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all.dedup_by(|a, b| a.name == b.name);
        Ok(all)
    }

    /// Moves a file between file systems: copies it, syncs the copy, and then removes the original.
    fn carry(&self, from: &Path, to: &Path) -> Result<()> {
        let fs = self.fs_of_both(from, to);
        let source = fs.open_read(from)?;
        let target = fs.create(to)?;
        read_pieces(&*source, u64::MAX, &mut |at, piece| target.write_at(piece, at))?;
        target.sync_all()?;
        if let Some(parent) = to.parent() {
            fs.sync_dir(parent)?;
        }
        fs.remove(from)
    }
}

impl Fs for Places {
    fn hold(&self, dir: &Path) -> Result<Arc<dyn Fs>> {
        Ok(Arc::new(self.over(self.fs.hold(dir)?)))
    }

    fn open_read(&self, path: &Path) -> Result<Arc<dyn ReadFile>> {
        let real = self.find(path)?;
        self.fs_of(&real).open_read(&real)
    }

    fn create(&self, path: &Path) -> Result<Arc<dyn WriteFile>> {
        let real = self.target(path);
        let made = self.changing(&real, || self.fs_of(&real).create(&real))?;
        if let (Kind::Log, Some(logs)) = (self.named(path).0, &self.logs) {
            // If OPTIONS names a wal_dir, an open takes a missing WAL file as a sign of a wrong wal_dir. So a WAL file
            // has a durable name before the MANIFEST can need it.
            logs.sync(&*self.fs)?;
        }
        Ok(made)
    }

    fn open_write(&self, path: &Path) -> Result<Arc<dyn WriteFile>> {
        let real = self.find(path)?;
        self.fs_of(&real).open_write(&real)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        let (from, to) = (self.find(from)?, self.target(to));
        let fs = self.fs_of_both(&from, &to);
        let renamed = self.changing(&from, || self.changing(&to, || fs.rename(&from, &to)));
        match renamed {
            Err(e)
                if from.parent() != to.parent()
                    && matches!(e.kind(), ErrorKind::Io(_))
                    && !e.is_not_found() =>
            {
                self.changing(&from, || self.changing(&to, || self.carry(&from, &to)))
            }
            renamed => renamed,
        }
    }

    fn link(&self, from: &Path, to: &Path) -> Result<()> {
        let (from, to) = (self.find(from)?, self.target(to));
        self.changing(&to, || self.fs_of_both(&from, &to).link(&from, &to))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        let real = self.find(path)?;
        if self.is_former_elsewhere(&real) {
            return Ok(());
        }
        self.changing(&real, || self.fs_of(&real).remove(&real))
    }

    fn directory_id(&self, dir: &Path) -> Option<(u64, u64)> {
        self.fs_of(dir).directory_id(dir)
    }

    /// For the database directory, the least free space of all directories.
    fn free_space(&self, dir: &Path) -> Result<Option<u64>> {
        let mut least = self.fs_of(dir).free_space(dir)?;
        if dir == self.dir {
            for (dir, _) in self.elsewhere() {
                least = least.into_iter().chain(self.fs_of(&dir).free_space(&dir)?).min();
            }
        }
        Ok(least)
    }

    fn list(&self, dir: &Path) -> Result<Vec<FsEntry>> {
        if dir == self.dir { self.list_all() } else { self.fs_of(dir).list(dir) }
    }

    fn real_path(&self, path: &Path) -> PathBuf {
        self.find(path).unwrap_or_else(|_| path.to_path_buf())
    }

    fn metadata(&self, path: &Path) -> Result<Option<FsEntry>> {
        let real = self.find(path)?;
        self.fs_of(&real).metadata(&real)
    }

    fn create_dir_all(&self, path: &Path) -> Result<()> {
        self.fs.create_dir_all(path)
    }

    fn sync_dir(&self, path: &Path) -> Result<()> {
        let tables = self.table_places();
        let places = || self.logs.iter().chain(&tables);
        let unsynced = planted(Bug::PlaceUnsynced);
        if path == self.dir {
            let elsewhere = |place: &&Arc<FileDir>| place.dir != self.dir && !unsynced;
            places().filter(elsewhere).try_for_each(|place| place.sync(&*self.fs_of(&place.dir)))?;
            return self.fs.sync_dir(path);
        }
        match places().find(|place| place.dir == path) {
            Some(_) if unsynced => Ok(()),
            Some(place) => place.sync(&*self.fs_of(path)),
            None => self.fs.sync_dir(path),
        }
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        self.fs.remove_dir(path)
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn FileLock>> {
        self.fs_of(path).lock(path)
    }

    fn check_unlocked(&self, path: &Path) -> Result<()> {
        self.fs_of(path).check_unlocked(path)
    }
}

/// Whether two paths lead to one directory. Equal contents prove nothing, because a fresh copy has them too.
pub fn same_directory(fs: &dyn Fs, a: &Path, b: &Path) -> bool {
    whole(a) == whole(b) || fs.directory_id(a).is_some_and(|id| fs.directory_id(b) == Some(id))
}

/// The absolute path, which stays valid after a change of the working directory.
pub(super) fn whole(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf())
}
