//! Named points: a process kills itself before, after or in the middle of a call of the file system.
//!
//! A point is a kind of call, a kind of file, and the number of the call: `sync-manifest-3-before`. A kill by the clock
//! hardly ever falls between two adjacent calls; a point always does.

use ashlar_base::Result;
use ashlar_env::{FileLock, Fs, FsEntry, PreparedPiece, ReadFile, WriteFile};
use ashlar_format::filename::FileKind;
use ashlar_testkit::Rng;
use rustix::process::Signal;
use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Calls and the files they may be on. What goes into `CURRENT` and `OPTIONS` is renamed; what a folder names is synced.
const PLACES: [(&str, &str); 20] = [
    ("create", "log"),
    ("write", "log"),
    ("sync", "log"),
    ("prepare", "log"),
    ("remove", "log"),
    ("create", "manifest"),
    ("write", "manifest"),
    ("sync", "manifest"),
    ("remove", "manifest"),
    ("create", "table"),
    ("write", "table"),
    ("sync", "table"),
    ("remove", "table"),
    ("create", "blob"),
    ("write", "blob"),
    ("sync", "blob"),
    ("write", "temp"),
    ("sync", "temp"),
    ("rename", "temp"),
    ("sync", "folder"),
];
const MOMENTS: [&str; 3] = ["before", "within", "behind"];

fn kind(path: &Path) -> &'static str {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    match FileKind::parse(&name) {
        Some(FileKind::Wal(_)) => "log",
        Some(FileKind::Manifest(_)) => "manifest",
        Some(FileKind::Table(_)) => "table",
        Some(FileKind::Blob(_)) => "blob",
        Some(FileKind::Temp(_) | FileKind::OptionsTemp(_)) => "temp",
        _ => "other",
    }
}

/// Where a process kills itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Point {
    call: &'static str,
    kind: &'static str,
    /// Which of these calls, from 1.
    at: u64,
    moment: &'static str,
}

impl Point {
    /// Any point; its call may never come.
    pub(super) fn draw(rng: &mut Rng) -> Point {
        let (call, kind) = *rng.pick(&PLACES).unwrap_or(&PLACES[0]);
        // Writes to logs are many, everything else is rare.
        let most = if (call, kind) == ("write", "log") { 300 } else { 8 };
        let moment = rng.pick(&MOMENTS).unwrap_or(&"before");
        Point { call, kind, at: rng.between(1, most) as u64, moment }
    }

    /// Call and kind, without the rest.
    pub(super) fn place(&self) -> String {
        format!("{} {}", self.call, self.kind)
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}-{}", self.call, self.kind, self.at, self.moment)
    }
}

impl FromStr for Point {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Point, String> {
        let wrong = || format!("no point: {text}");
        let words: Vec<&str> = text.split('-').collect();
        let [call, kind, at, moment] = words[..] else { return Err(wrong()) };
        let (call, kind) = *PLACES.iter().find(|place| **place == (call, kind)).ok_or_else(wrong)?;
        let moment = *MOMENTS.iter().find(|known| **known == moment).ok_or_else(wrong)?;
        Ok(Point { call, kind, at: at.parse().map_err(|_| wrong())?, moment })
    }
}

/// Counts the calls and kills.
#[derive(Debug)]
struct Trap {
    point: Point,
    seen: AtomicU64,
}

impl Trap {
    /// Makes the call, unless this is the point; `half` is done of a call that is stopped within.
    fn call<T>(
        &self,
        call: &str,
        kind: &str,
        half: impl FnOnce(),
        whole: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let Point { at, moment, .. } = self.point;
        let here = self.point.call == call && self.point.kind == kind;
        if !here || self.seen.fetch_add(1, Ordering::Relaxed) + 1 != at {
            return whole();
        }
        match moment {
            "within" => half(),
            "behind" => drop(whole()),
            _ => {}
        }
        die()
    }
}

fn die() -> ! {
    let _ = rustix::process::kill_process(rustix::process::getpid(), Signal::KILL);
    // Not reached.
    std::process::abort()
}

/// A file system with a point in it.
#[derive(Debug)]
pub(super) struct Trapped {
    fs: Arc<dyn Fs>,
    trap: Arc<Trap>,
}

impl Trapped {
    pub(super) fn new(fs: Arc<dyn Fs>, point: Point) -> Trapped {
        Trapped { fs, trap: Arc::new(Trap { point, seen: AtomicU64::new(0) }) }
    }

    fn call<T>(&self, call: &str, path: &Path, whole: impl FnOnce() -> Result<T>) -> Result<T> {
        self.trap.call(call, kind(path), || (), whole)
    }

    fn file(&self, file: Arc<dyn WriteFile>) -> Arc<dyn WriteFile> {
        Arc::new(TrappedFile { file, trap: Arc::clone(&self.trap) })
    }
}

impl Fs for Trapped {
    fn hold(&self, dir: &Path) -> Result<Arc<dyn Fs>> {
        Ok(Arc::new(Trapped { fs: self.fs.hold(dir)?, trap: Arc::clone(&self.trap) }))
    }

    fn open_read(&self, path: &Path) -> Result<Arc<dyn ReadFile>> {
        self.fs.open_read(path)
    }

    fn create(&self, path: &Path) -> Result<Arc<dyn WriteFile>> {
        self.call("create", path, || self.fs.create(path)).map(|file| self.file(file))
    }

    fn open_write(&self, path: &Path) -> Result<Arc<dyn WriteFile>> {
        self.fs.open_write(path).map(|file| self.file(file))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.call("rename", from, || self.fs.rename(from, to))
    }

    fn link(&self, from: &Path, to: &Path) -> Result<()> {
        self.fs.link(from, to)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.call("remove", path, || self.fs.remove(path))
    }

    fn directory_id(&self, dir: &Path) -> Option<(u64, u64)> {
        self.fs.directory_id(dir)
    }

    fn free_space(&self, dir: &Path) -> Result<Option<u64>> {
        self.fs.free_space(dir)
    }

    fn list(&self, dir: &Path) -> Result<Vec<FsEntry>> {
        self.fs.list(dir)
    }

    fn metadata(&self, path: &Path) -> Result<Option<FsEntry>> {
        self.fs.metadata(path)
    }

    fn create_dir_all(&self, path: &Path) -> Result<()> {
        self.fs.create_dir_all(path)
    }

    fn sync_dir(&self, path: &Path) -> Result<()> {
        self.trap.call("sync", "folder", || (), || self.fs.sync_dir(path))
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        self.fs.remove_dir(path)
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn FileLock>> {
        self.fs.lock(path)
    }

    fn check_unlocked(&self, path: &Path) -> Result<()> {
        self.fs.check_unlocked(path)
    }
}

#[derive(Debug)]
struct TrappedFile {
    file: Arc<dyn WriteFile>,
    trap: Arc<Trap>,
}

impl TrappedFile {
    fn sync(&self, whole: impl FnOnce() -> Result<()>) -> Result<()> {
        self.trap.call("sync", kind(self.file.path()), || (), whole)
    }
}

impl WriteFile for TrappedFile {
    fn write_at(&self, data: &[u8], offset: u64) -> Result<()> {
        let half = || drop(self.file.write_at(&data[..data.len() / 2], offset));
        self.trap.call("write", kind(self.file.path()), half, || self.file.write_at(data, offset))
    }

    fn begin_writeback(&self, offset: u64, len: u64) {
        self.file.begin_writeback(offset, len);
    }

    fn sync_data(&self) -> Result<()> {
        self.sync(|| self.file.sync_data())
    }

    fn sync_all(&self) -> Result<()> {
        self.sync(|| self.file.sync_all())
    }

    fn truncate(&self, len: u64) -> Result<()> {
        self.file.truncate(len)
    }

    fn allocate(&self, offset: u64, len: u64) -> Result<()> {
        self.file.allocate(offset, len)
    }

    fn prepare(&self, offset: u64, len: usize) -> Result<Option<Box<dyn PreparedPiece>>> {
        self.trap.call("prepare", kind(self.file.path()), || (), || self.file.prepare(offset, len))
    }

    fn path(&self) -> &Path {
        self.file.path()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_is_a_word() {
        let mut rng = Rng::new(1);
        for _ in 0..100 {
            let point = Point::draw(&mut rng);
            assert_eq!(point.to_string().parse(), Ok(point));
        }
        for wrong in ["", "sync-log", "sync-log-x-before", "sync-moon-1-before", "sync-log-1-never"] {
            assert!(wrong.parse::<Point>().is_err(), "{wrong}");
        }
    }
}
