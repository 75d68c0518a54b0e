//! Directories held by a descriptor, and the resolution of paths below them.
//!
//! 1. A path below a held directory is resolved from that directory's descriptor. A rename, another working directory,
//!    or another directory under the old name change nothing.
//! 2. Below a held directory no symbolic link is followed, in no part of the path: a subdirectory that is one is
//!    refused.
//! 3. The system resolves any other path, from the working directory.

use ashlar_base::{Error, Result};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// The directories that a file system holds.
#[derive(Clone, Debug, Default)]
pub(super) struct Held {
    dirs: Vec<Arc<HeldDir>>,
}

#[derive(Debug)]
struct HeldDir {
    /// The path as the caller wrote it: later paths begin with it.
    path: PathBuf,
    fd: OwnedFd,
}

/// A directory, and a path from there.
#[derive(Debug)]
pub(super) struct Place<'a> {
    dir: Start<'a>,
    /// One name or `.` when the place is held; any path otherwise.
    pub(super) name: &'a Path,
}

#[derive(Debug)]
enum Start<'a> {
    Working,
    Held(BorrowedFd<'a>),
    Below(OwnedFd),
}

impl AsFd for Place<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.dir {
            Start::Working => CWD,
            Start::Held(fd) => *fd,
            Start::Below(fd) => fd.as_fd(),
        }
    }
}

impl<'a> Place<'a> {
    /// A place that the system resolves.
    pub(super) fn working(path: &'a Path) -> Place<'a> {
        Place { dir: Start::Working, name: path }
    }

    fn is_held(&self) -> bool {
        !matches!(self.dir, Start::Working)
    }

    /// Opens the directory at the place. A link there is followed only where the system resolves the path.
    ///
    /// # Errors
    /// `NOENT` also when the directory was removed since it is held.
    pub(super) fn open_dir(&self) -> rustix::io::Result<File> {
        let link = if self.is_held() { OFlags::NOFOLLOW } else { OFlags::empty() };
        let fd = open_dir_at(self.as_fd(), self.name, OFlags::RDONLY | link)?;
        match rustix::fs::fstat(&fd)?.st_nlink {
            0 => Err(Errno::NOENT),
            _ => Ok(File::from(fd)),
        }
    }
}

impl Held {
    /// The held directories and `dir`, which is opened now; its links are followed. A directory that is held already
    /// stays as it is.
    pub(super) fn with(&self, dir: &Path) -> Result<Held> {
        let mut held = self.clone();
        if held.dirs.iter().any(|known| known.path == dir) {
            return Ok(held);
        }
        let failed = |e: Errno| Error::io("open the directory", dir, &e.into());
        let fd = {
            let place = self.place("open the directory", dir)?;
            open_dir_at(place.as_fd(), place.name, OFlags::RDONLY).map_err(failed)?
        };
        held.dirs.push(Arc::new(HeldDir { path: dir.to_path_buf(), fd }));
        Ok(held)
    }

    /// The place of `path`.
    ///
    /// # Errors
    /// `InvalidArgument`: a symbolic link below a held directory. `Io`: a directory on the way cannot be opened.
    pub(super) fn place<'a>(&'a self, action: &str, path: &'a Path) -> Result<Place<'a>> {
        let Some((dir, rest)) = self.innermost(path) else { return Ok(Place::working(path)) };
        let Some(name) = rest.file_name() else {
            return Ok(Place { dir: Start::Held(dir.fd.as_fd()), name: Path::new(".") });
        };
        let mut start = Start::Held(dir.fd.as_fd());
        let mut way = dir.path.clone();
        for part in rest.parent().into_iter().flat_map(Path::components) {
            let place = Place { dir: start, name: Path::new(part.as_os_str()) };
            way.push(part);
            let fd = open_dir_at(place.as_fd(), place.name, OFlags::PATH | OFlags::NOFOLLOW);
            start = Start::Below(fd.map_err(|e| no_directory(action, path, &way, &place, e))?);
        }
        Ok(Place { dir: start, name: Path::new(name) })
    }

    /// [`Held::place`] for calls that change a name: a held directory's own name is in its parent directory.
    pub(super) fn named<'a>(&'a self, action: &str, path: &'a Path) -> Result<Place<'a>> {
        let place = self.place(action, path)?;
        Ok(if place.name == Path::new(".") { Place::working(path) } else { place })
    }

    /// Creates the directories of `path` below a held one; `None` when it is not below any.
    pub(super) fn create_dirs(&self, path: &Path) -> Option<Result<()>> {
        let (dir, rest) = self.innermost(path)?;
        let mut way = dir.path.clone();
        if rest.as_os_str().is_empty() {
            return Some(self.place("stat", path).and_then(|place| {
                let opened = place.open_dir();
                opened.map(drop).map_err(|e| Error::io("create the directory", path, &e.into()))
            }));
        }
        Some(rest.components().try_for_each(|part| {
            way.push(part);
            self.create_dir(&way)
        }))
    }

    fn create_dir(&self, path: &Path) -> Result<()> {
        let action = "create the directory";
        let place = self.place(action, path)?;
        match rustix::fs::mkdirat(&place, place.name, Mode::from_raw_mode(0o777)) {
            Ok(()) => return Ok(()),
            Err(Errno::EXIST) => {}
            Err(e) => return Err(Error::io(action, path, &e.into())),
        }
        match kind_at(&place) {
            Ok(FileType::Directory) => Ok(()),
            Ok(FileType::Symlink) => Err(linked(action, path)),
            Ok(_) => Err(Error::io(action, path, &Errno::EXIST.into())),
            Err(e) => Err(Error::io(action, path, &e.into())),
        }
    }

    /// The innermost held directory above `path`, or `path` itself, and the way from there, which has names only.
    fn innermost<'p>(&self, path: &'p Path) -> Option<(&HeldDir, &'p Path)> {
        let found = self.dirs.iter().filter_map(|dir| Some((&**dir, path.strip_prefix(&dir.path).ok()?)));
        found
            .filter(|(_, rest)| rest.components().all(|part| matches!(part, Component::Normal(_))))
            .min_by_key(|(_, rest)| rest.components().count())
    }
}

/// The entry at a place; for a symbolic link, the link itself.
pub(super) fn kind_at(place: &Place<'_>) -> rustix::io::Result<FileType> {
    let stat = rustix::fs::statat(place, place.name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(FileType::from_raw_mode(stat.st_mode))
}

fn open_dir_at(dir: BorrowedFd<'_>, name: &Path, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    let flags = flags | OFlags::DIRECTORY | OFlags::CLOEXEC;
    loop {
        match rustix::fs::openat(dir, name, flags, Mode::empty()) {
            Err(Errno::INTR) => {}
            opened => return opened,
        }
    }
}

/// The error for `way`, a part of `path` that could not be entered.
#[track_caller]
fn no_directory(action: &str, path: &Path, way: &Path, place: &Place<'_>, e: Errno) -> Error {
    match (e, kind_at(place)) {
        (Errno::LOOP | Errno::NOTDIR, Ok(FileType::Symlink)) => linked(action, way),
        _ => Error::io(action, path, &e.into()),
    }
}

/// The error for an entry that is not what was to be opened.
#[track_caller]
pub(super) fn not_regular(action: &str, path: &Path, what: &str) -> Error {
    Error::invalid(format!("cannot {action}")).at_path(path).because(what)
}

/// The error for a symbolic link in place of a directory.
#[track_caller]
pub(super) fn linked(action: &str, path: &Path) -> Error {
    let e = not_regular(action, path, "it is a symbolic link, which is not followed inside a database");
    e.hint("Move the link away, or put a directory in its place")
}
