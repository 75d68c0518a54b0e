//! A file system that runs a function before each reading call, such as a writer's changes at the worst moments. It
//! refuses writes, unless a test asks for them.

use crate::{Env, FileLock, Fs, FsEntry, ReadFile, WriteFile};
use ashlar_base::Result;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The function that runs before a call. Its arguments are the call's number, from 1, and the file or directory.
type Meanwhile = dyn Fn(u64, &Path) + Send + Sync;

/// The file system of a process that reads a directory beside its writer. A call that would change something panics.
#[derive(Clone)]
pub struct Watched {
    fs: Arc<dyn Fs>,
    calls: Arc<AtomicU64>,
    meanwhile: Arc<Meanwhile>,
    writes: bool,
}

impl Watched {
    /// A file system that refuses writes and runs no function.
    pub fn over(env: &Env) -> Arc<dyn Fs> {
        Watched::with(env, |_, _| {}).0
    }

    /// `meanwhile` runs before every reading call. Also returns the counter of those calls.
    pub fn with(
        env: &Env,
        meanwhile: impl Fn(u64, &Path) + Send + Sync + 'static,
    ) -> (Arc<dyn Fs>, Arc<AtomicU64>) {
        let calls = Arc::new(AtomicU64::new(0));
        let meanwhile = Arc::new(meanwhile);
        let watched =
            Watched { fs: Arc::clone(&env.fs), calls: Arc::clone(&calls), meanwhile, writes: false };
        (Arc::new(watched), calls)
    }

    /// A file system that also writes.
    pub fn writing(env: &Env, meanwhile: impl Fn(u64, &Path) + Send + Sync + 'static) -> Arc<dyn Fs> {
        let (fs, meanwhile) = (Arc::clone(&env.fs), Arc::new(meanwhile));
        Arc::new(Watched { fs, calls: Arc::default(), meanwhile, writes: true })
    }

    /// The file system for a call that writes.
    fn writer(&self, what: &str, path: &Path) -> &dyn Fs {
        assert!(self.writes, "a read-only open calls {what} on {}", path.display());
        &*self.fs
    }

    fn call(&self, path: &Path) {
        (self.meanwhile)(self.calls.fetch_add(1, Ordering::Relaxed) + 1, path);
    }
}

impl std::fmt::Debug for Watched {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Watched")
    }
}

impl Fs for Watched {
    fn hold(&self, dir: &Path) -> Result<Arc<dyn Fs>> {
        Ok(Arc::new(Watched { fs: self.fs.hold(dir)?, ..self.clone() }))
    }

    fn open_read(&self, path: &Path) -> Result<Arc<dyn ReadFile>> {
        self.call(path);
        Ok(Arc::new(WatchedFile { file: self.fs.open_read(path)?, watched: self.clone() }))
    }

    fn directory_id(&self, dir: &Path) -> Option<(u64, u64)> {
        self.fs.directory_id(dir)
    }

    fn free_space(&self, dir: &Path) -> Result<Option<u64>> {
        self.fs.free_space(dir)
    }

    fn list(&self, dir: &Path) -> Result<Vec<FsEntry>> {
        self.call(dir);
        self.fs.list(dir)
    }

    fn metadata(&self, path: &Path) -> Result<Option<FsEntry>> {
        self.call(path);
        self.fs.metadata(path)
    }

    fn create(&self, path: &Path) -> Result<Arc<dyn WriteFile>> {
        self.writer("create", path).create(path)
    }

    fn open_write(&self, path: &Path) -> Result<Arc<dyn WriteFile>> {
        self.writer("open_write", path).open_write(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.writer("rename", from).rename(from, to)
    }

    fn link(&self, from: &Path, to: &Path) -> Result<()> {
        self.writer("link", from).link(from, to)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.writer("remove", path).remove(path)
    }

    fn create_dir_all(&self, path: &Path) -> Result<()> {
        self.writer("create_dir_all", path).create_dir_all(path)
    }

    fn sync_dir(&self, path: &Path) -> Result<()> {
        self.writer("sync_dir", path).sync_dir(path)
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        self.writer("remove_dir", path).remove_dir(path)
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn FileLock>> {
        self.writer("lock", path).lock(path)
    }

    fn check_unlocked(&self, path: &Path) -> Result<()> {
        self.fs.check_unlocked(path)
    }
}

#[derive(Debug)]
struct WatchedFile {
    file: Arc<dyn ReadFile>,
    watched: Watched,
}

impl ReadFile for WatchedFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        self.watched.call(self.file.path());
        self.file.read_at(buf, offset)
    }

    fn len(&self) -> u64 {
        self.file.len()
    }

    fn path(&self) -> &Path {
        self.file.path()
    }

    fn expect_random(&self) {
        self.file.expect_random();
    }

    fn will_read(&self, offset: u64, len: u64) {
        self.file.will_read(offset, len);
    }
}
