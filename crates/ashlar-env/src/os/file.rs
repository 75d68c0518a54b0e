//! Open files of the operating system. They are read and written by offset only (pread and pwrite), so threads may
//! share them. The calls go to the kernel without the C library, whose wrappers make each a point of thread cancellation
//! with two locked operations.

#[cfg(target_arch = "x86_64")]
use super::piece::OsPiece;
use super::place::{Held, Place, kind_at, not_regular};
use super::{Process, sync};
#[cfg(target_arch = "x86_64")]
use crate::PreparedPiece;
use crate::{ReadFile, WriteFile};
use ashlar_base::error::IoKind;
use ashlar_base::{Error, ErrorKind, Result};
use rustix::fs::{Advice, AtFlags, FallocateFlags, FileType, Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// Opens the file at `place`. Does not follow a link in its last part, and never waits for the other end of a pipe.
///
/// # Errors
/// `InvalidArgument`: a link, or no regular file. `Io`: the system refused.
pub(super) fn open(action: &str, place: &Place<'_>, path: &Path, flags: OFlags) -> Result<File> {
    let fd = open_at(place, flags).map_err(|e| match e {
        Errno::LOOP => {
            not_regular(action, path, "it is a symbolic link, which is not followed inside a database")
                .hint("Put the file itself in the place of the link")
        }
        Errno::NXIO => not_regular(action, path, "it is a pipe or a device"),
        Errno::ISDIR => not_regular(action, path, "it is a directory"),
        e => Error::io(action, path, &e.into()),
    })?;
    let file = File::from(fd);
    let meta = file.metadata().map_err(|e| Error::io("stat", path, &e))?;
    if meta.is_file() { Ok(file) } else { Err(not_regular(action, path, "it is no regular file")) }
}

fn open_at(place: &Place<'_>, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    loop {
        match rustix::fs::openat(place, place.name, flags, Mode::from_raw_mode(0o644)) {
            Err(Errno::INTR) => {}
            opened => return opened,
        }
    }
}

/// Creates a new file. A file or link of that name is removed first, so that no other name of the file, and no target
/// of the link, is written to.
///
/// # Errors
/// `InvalidArgument`: something else has the name, such as a directory. `Io`: the system refused.
fn create(place: &Place<'_>, path: &Path) -> Result<File> {
    const ACTION: &str = "create";
    loop {
        // For reading too: a file that is only written cannot be mapped.
        match open_at(place, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL) {
            Ok(fd) => return Ok(File::from(fd)),
            Err(Errno::EXIST) => {}
            Err(e) => return Err(Error::io(ACTION, path, &e.into())),
        }
        match kind_at(place) {
            Ok(FileType::RegularFile | FileType::Symlink) => {}
            Ok(FileType::Directory) => return Err(not_regular(ACTION, path, "it is a directory")),
            Ok(_) => return Err(not_regular(ACTION, path, "it is no regular file")),
            Err(Errno::NOENT) => continue,
            Err(e) => return Err(Error::io(ACTION, path, &e.into())),
        }
        match rustix::fs::unlinkat(place, place.name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(e) => return Err(Error::io(ACTION, path, &e.into())),
        }
    }
}

/// A file of the system open for reading.
#[derive(Debug)]
pub(super) struct OsReadFile {
    file: File,
    path: PathBuf,
    len: u64,
}

impl OsReadFile {
    pub(super) fn open(held: &Held, path: &Path) -> Result<Self> {
        let file = open("open", &held.place("open", path)?, path, OFlags::RDONLY)?;
        let len = file.metadata().map_err(|e| Error::io("stat", path, &e))?.len();
        Ok(OsReadFile { file, path: path.to_path_buf(), len })
    }
}

impl ReadFile for OsReadFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        let mut got = 0;
        while got < buf.len() {
            match rustix::io::pread(&self.file, &mut buf[got..], offset.saturating_add(got as u64)) {
                Ok(0) => break,
                Ok(n) => got += n,
                Err(Errno::INTR) => {}
                Err(e) => return Err(Error::io("read", &self.path, &e.into()).at(&self.path, offset)),
            }
        }
        Ok(got)
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn path(&self) -> &Path {
        &self.path
    }

    fn expect_random(&self) {
        // A system that does not take the advice reads ahead as it likes.
        let _ = rustix::fs::fadvise(&self.file, 0, None, Advice::Random);
    }

    fn will_read(&self, offset: u64, len: u64) {
        // A length of zero would mean all of the file.
        if let Some(len) = NonZeroU64::new(len) {
            let _ = rustix::fs::fadvise(&self.file, offset, Some(len), Advice::WillNeed);
        }
    }
}

/// A file of the system open for writing. A forked child shares the file and may not change it.
#[derive(Debug)]
pub(super) struct OsWriteFile {
    file: File,
    path: PathBuf,
    process: Process,
}

impl OsWriteFile {
    pub(super) fn create(held: &Held, path: &Path) -> Result<Self> {
        let file = create(&held.place("create", path)?, path)?;
        Ok(OsWriteFile::new(file, path))
    }

    fn new(file: File, path: &Path) -> Self {
        OsWriteFile { file, path: path.to_path_buf(), process: Process::current() }
    }

    /// # Errors
    /// `Shutdown(Forked)`: the file was opened before a fork, by the parent.
    fn check_process(&self) -> Result<()> {
        if self.process.is_current() { Ok(()) } else { Err(Error::forked().at_path(&self.path)) }
    }

    pub(super) fn open(held: &Held, path: &Path) -> Result<Self> {
        const ACTION: &str = "open for writing";
        let file = open(ACTION, &held.place(ACTION, path)?, path, OFlags::WRONLY)?;
        Ok(OsWriteFile::new(file, path))
    }

    #[track_caller]
    fn failed(&self, action: &str, e: &io::Error) -> Error {
        Error::io(action, &self.path, e)
    }
}

impl WriteFile for OsWriteFile {
    fn write_at(&self, data: &[u8], offset: u64) -> Result<()> {
        self.check_process()?;
        let mut done = 0;
        while done < data.len() {
            let at = offset.saturating_add(done as u64);
            match rustix::io::pwrite(&self.file, &data[done..], at) {
                Ok(0) => {
                    let e = io::Error::from(io::ErrorKind::WriteZero);
                    return Err(self.failed("write", &e).at(&self.path, at));
                }
                Ok(n) => done += n,
                Err(Errno::INTR) => {}
                Err(e) => return Err(self.failed("write", &e.into()).at(&self.path, at)),
            }
        }
        Ok(())
    }

    #[cfg(target_arch = "x86_64")]
    fn begin_writeback(&self, offset: u64, len: u64) {
        sync::begin_writeback(&self.file, offset, len);
    }

    fn sync_data(&self) -> Result<()> {
        sync::sync_data(&self.file).map_err(|e| self.failed("sync", &e))
    }

    fn sync_all(&self) -> Result<()> {
        sync::sync_all(&self.file).map_err(|e| self.failed("sync", &e))
    }

    fn truncate(&self, len: u64) -> Result<()> {
        self.check_process()?;
        self.file.set_len(len).map_err(|e| self.failed("truncate", &e))
    }

    fn allocate(&self, offset: u64, len: u64) -> Result<()> {
        self.check_process()?;
        if len == 0 {
            return Ok(());
        }
        loop {
            match rustix::fs::fallocate(&self.file, FallocateFlags::KEEP_SIZE, offset, len) {
                Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(e @ (Errno::NOSPC | Errno::DQUOT)) => {
                    let full = ErrorKind::Io(IoKind::NoSpace);
                    return Err(Error::new(full, "cannot allocate").at_path(&self.path).because(e));
                }
                Err(e) => return Err(self.failed("allocate", &e.into())),
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
    fn prepare(&self, offset: u64, len: usize) -> Result<Option<Box<dyn PreparedPiece>>> {
        self.check_process()?;
        let zero = || self.write_at(&vec![0; len], offset);
        let piece = OsPiece::prepare(&self.file, &self.path, self.process, (offset, len), zero)?;
        Ok(piece.map(|piece| Box::new(piece) as Box<dyn PreparedPiece>))
    }

    fn path(&self) -> &Path {
        &self.path
    }
}
