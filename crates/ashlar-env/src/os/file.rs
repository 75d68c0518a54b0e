//! Open files of the system. No handle has a position: pread and pwrite only, so threads may share it.

use super::sync;
use crate::{ReadFile, WriteFile};
use ashlar_base::error::IoKind;
use ashlar_base::{Error, ErrorKind, Result};
use rustix::fs::{FallocateFlags, Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Opens `path` without following a link in its last part, and never waits for a pipe's other end.
///
/// # Errors
/// `InvalidArgument`: a link, or no regular file. `Io`: the system refused.
pub(super) fn open(action: &str, path: &Path, flags: OFlags) -> Result<File> {
    let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let fd = loop {
        match rustix::fs::open(path, flags, Mode::from_raw_mode(0o644)) {
            Ok(fd) => break fd,
            Err(Errno::INTR) => {}
            Err(Errno::LOOP) => return Err(not_regular(path, "it is a symbolic link")),
            Err(Errno::NXIO) => return Err(not_regular(path, "it is a pipe or a device")),
            Err(Errno::ISDIR) => return Err(not_regular(path, "it is a directory")),
            Err(e) => return Err(Error::io(action, path, &e.into())),
        }
    };
    let file = File::from(fd);
    let meta = file.metadata().map_err(|e| Error::io("stat", path, &e))?;
    if meta.is_file() { Ok(file) } else { Err(not_regular(path, "it is no regular file")) }
}

#[track_caller]
fn not_regular(path: &Path, what: &str) -> Error {
    Error::invalid("cannot open").at_path(path).because(what)
}

/// A file of the system open for reading.
#[derive(Debug)]
pub(super) struct OsReadFile {
    file: File,
    path: PathBuf,
    len: u64,
}

impl OsReadFile {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let file = open("open", path, OFlags::RDONLY)?;
        let len = file.metadata().map_err(|e| Error::io("stat", path, &e))?.len();
        Ok(OsReadFile { file, path: path.to_path_buf(), len })
    }
}

impl ReadFile for OsReadFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        let mut got = 0;
        while got < buf.len() {
            match self.file.read_at(&mut buf[got..], offset.saturating_add(got as u64)) {
                Ok(0) => break,
                Ok(n) => got += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(Error::io("read", &self.path, &e).at(&self.path, offset)),
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
}

/// A file of the system open for writing.
#[derive(Debug)]
pub(super) struct OsWriteFile {
    file: File,
    path: PathBuf,
}

impl OsWriteFile {
    pub(super) fn open(action: &str, path: &Path, flags: OFlags) -> Result<Self> {
        Ok(OsWriteFile { file: open(action, path, OFlags::WRONLY | flags)?, path: path.to_path_buf() })
    }

    #[track_caller]
    fn failed(&self, action: &str, e: &io::Error) -> Error {
        Error::io(action, &self.path, e)
    }
}

impl WriteFile for OsWriteFile {
    fn write_at(&self, data: &[u8], offset: u64) -> Result<()> {
        let mut done = 0;
        while done < data.len() {
            let at = offset.saturating_add(done as u64);
            match self.file.write_at(&data[done..], at) {
                Ok(0) => {
                    let e = io::Error::from(io::ErrorKind::WriteZero);
                    return Err(self.failed("write", &e).at(&self.path, at));
                }
                Ok(n) => done += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(self.failed("write", &e).at(&self.path, at)),
            }
        }
        Ok(())
    }

    fn sync_data(&self) -> Result<()> {
        sync::sync_data(&self.file).map_err(|e| self.failed("sync", &e))
    }

    fn sync_all(&self) -> Result<()> {
        sync::sync_all(&self.file).map_err(|e| self.failed("sync", &e))
    }

    fn truncate(&self, len: u64) -> Result<()> {
        self.file.set_len(len).map_err(|e| self.failed("truncate", &e))
    }

    fn allocate(&self, offset: u64, len: u64) -> Result<()> {
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

    fn path(&self) -> &Path {
        &self.path
    }
}
