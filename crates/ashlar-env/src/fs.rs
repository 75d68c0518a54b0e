//! The file system interface of the engine.
//!
//! 1. A file is read and written by offset. Handles keep no position, so threads may share them.
//! 2. `sync_data` and `sync_all` make a file's bytes durable, not its name: that takes [`Fs::sync_dir`].
//! 3. After a failed sync, a file's unsynced bytes are never trusted again; the caller abandons the file.
//! 4. Inside a database directory no symbolic link is followed: calls do not follow the last part of a path.

use ashlar_base::planted::{Bug, planted};
use ashlar_base::{Error, Result};
use std::fmt::Debug;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The kind of a directory entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Dir,
    /// Anything else: a link, a pipe, a device.
    Other,
}

/// A directory entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FsEntry {
    /// The name, without its directory. Bytes that are not UTF-8 show as the replacement character; no database file
    /// has such a name.
    pub name: String,
    /// The length of the file; 0 for other kinds of entries.
    pub len: u64,
    /// The kind of the entry.
    pub kind: EntryKind,
}

/// A file system.
pub trait Fs: Send + Sync + Debug {
    /// A file system that reaches every path below `dir`, and `dir` itself, through a descriptor of that directory, which
    /// is opened now. All else is as in this one, and directories that this one holds are held there too.
    ///
    /// A path is below `dir` when it begins with `dir` as written here, so hold the path from which file names are
    /// made. A rename of the directory, another working directory or another directory under the old name then change
    /// nothing: files are created, read and removed in the directory that was opened. Once that directory is removed,
    /// calls fail with `Io(NotFound)`. Symbolic links in `dir` itself are followed, links below it never. Only
    /// `rename`, `remove_dir` and `remove` of `dir` itself use its name.
    ///
    /// A file system that only this process can change may return itself.
    ///
    /// # Errors
    /// `Io`: the directory cannot be opened; `Io(NotFound)`: it does not exist.
    fn hold(&self, dir: &Path) -> Result<Arc<dyn Fs>>;

    /// Opens an existing regular file for reading.
    ///
    /// # Errors
    /// `Io(NotFound)`: the file does not exist. Other `Io` by cause. `InvalidArgument`: not a regular file.
    fn open_read(&self, path: &Path) -> Result<Arc<dyn ReadFile>>;

    /// Creates a file for writing. A file or symbolic link of that name is removed first, never written through: other
    /// names of that file, and open handles, keep its bytes.
    fn create(&self, path: &Path) -> Result<Arc<dyn WriteFile>>;

    /// Opens an existing file for writing, and keeps its bytes.
    fn open_write(&self, path: &Path) -> Result<Arc<dyn WriteFile>>;

    /// Gives a file or directory another name, atomically; a file under the new name is replaced, unless it is
    /// the same one (see [`Fs::link`]): then nothing happens.
    ///
    /// # Errors
    /// `InvalidArgument`: a device, a pipe or a socket has the new name, and keeps it. `Io`: the system refused.
    fn rename(&self, from: &Path, to: &Path) -> Result<()>;

    /// Gives a file a second name without a copy. The file lives as long as one of its names.
    ///
    /// # Errors
    /// `NotSupported`: not on this file system, or not between these two places: copy instead. `Io(AlreadyExists)`:
    /// something has that name.
    fn link(&self, from: &Path, to: &Path) -> Result<()>;

    /// Removes a file's name, and with its last name the file. Open handles keep working.
    fn remove(&self, path: &Path) -> Result<()>;

    /// The entries of a directory, sorted by name.
    fn list(&self, dir: &Path) -> Result<Vec<FsEntry>>;

    /// [`Fs::list`] without directories: a directory with the name of a file does not count as one.
    fn files(&self, dir: &Path) -> Result<Vec<FsEntry>> {
        let mut entries = self.list(dir)?;
        entries.retain(|entry| entry.kind != EntryKind::Dir);
        Ok(entries)
    }

    /// The identity of a directory: two paths with equal answers lead to the same directory. `None`: nothing is at the
    /// path, or each directory of this file system has only one path.
    fn directory_id(&self, _dir: &Path) -> Option<(u64, u64)> {
        None
    }

    /// Bytes that this process can still write to the file system of a directory. `None`: unknown, or without a limit.
    ///
    /// # Errors
    /// `Io`: the directory cannot be opened.
    fn free_space(&self, _dir: &Path) -> Result<Option<u64>> {
        Ok(None)
    }

    /// The path of the file that the other calls reach by `path`, for messages. It differs from `path` in a file system
    /// that keeps the files of one directory in several.
    fn real_path(&self, path: &Path) -> PathBuf {
        path.to_path_buf()
    }

    /// The entry at `path`; for a symbolic link, the link itself. `None` when nothing is there.
    fn metadata(&self, path: &Path) -> Result<Option<FsEntry>>;

    /// Creates a directory and its missing parents; no error if it exists.
    fn create_dir_all(&self, path: &Path) -> Result<()>;

    /// Makes the entries of a directory durable: creations, renames, links and removals done so far.
    fn sync_dir(&self, path: &Path) -> Result<()>;

    /// Removes an empty directory.
    fn remove_dir(&self, path: &Path) -> Result<()>;

    /// Locks the file at `path`, which is created if missing and never removed, against other holders in this and in
    /// other processes, in the way RocksDB does (`env/fs_posix.cc`): a whole-file record lock. The directory of the file is
    /// locked with it: a second lock in it is refused even when the file was removed and created again.
    ///
    /// # Errors
    /// `Busy(Locked)`, with the holder's process id if the system tells it.
    fn lock(&self, path: &Path) -> Result<Box<dyn FileLock>>;

    /// Looks whether [`Fs::lock`] has locked the file at `path`, in this or in another process. Creates nothing, takes no
    /// lock, and needs no permission to write; fine when the file is missing.
    ///
    /// # Errors
    /// `Busy(Locked)` as [`Fs::lock`]. `Io`: the file is there and cannot be opened.
    fn check_unlocked(&self, path: &Path) -> Result<()>;
}

/// A held lock; dropping it releases.
pub trait FileLock: Send + Sync + Debug {}

/// A file open for reading. All methods may be called from many threads at once.
pub trait ReadFile: Send + Sync + Debug {
    /// Fills `buf` from `offset` on; the count is less than `buf.len()` only at the end of the file.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize>;

    /// The file's length in bytes when it was opened, or now if the implementation tracks it; see `read_at` for truth.
    fn len(&self) -> u64;

    /// True when [`ReadFile::len`] is 0.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The path it was opened by.
    fn path(&self) -> &Path;

    /// Tells the system that reads come in no order, so that it reads nothing ahead by itself. Here: nothing.
    fn expect_random(&self) {}

    /// Asks the system to read these bytes in the background, because they will be read soon. Does not wait, and hides errors: the
    /// read meets them. Here: nothing.
    fn will_read(&self, _offset: u64, _len: u64) {}

    /// Fills all of `buf` from `offset` on.
    ///
    /// # Errors
    /// `Corruption`: the file ends before. `Io`: the read itself.
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> Result<()> {
        let got = self.read_at(buf, offset)?;
        if got == buf.len() {
            return Ok(());
        }
        let wanted = buf.len();
        Err(Error::corruption(format!("file is truncated: read {got} of {wanted} bytes"))
            .at(self.path(), offset))
    }
}

/// A file open for writing. Methods may be called from many threads; overlapping writes are the callers' concern.
pub trait WriteFile: Send + Sync + Debug {
    /// Writes all of `data` at `offset`; the file grows as needed, a gap reads as zeros.
    ///
    /// # Errors
    /// `Io`: some prefix of `data` may have been written.
    fn write_at(&self, data: &[u8], offset: u64) -> Result<()>;

    /// Tells the system to begin to write these bytes to the device, so that a later sync finds less to do. Makes nothing durable,
    /// and leaves errors to that sync. Here: nothing.
    fn begin_writeback(&self, _offset: u64, _len: u64) {}

    /// Makes the file's bytes and length durable (fdatasync).
    fn sync_data(&self) -> Result<()>;

    /// Makes bytes, length and attributes durable (fsync).
    fn sync_all(&self) -> Result<()>;

    /// Cuts or extends (with zeros) the file to `len` bytes.
    fn truncate(&self, len: u64) -> Result<()>;

    /// Reserves space for the `len` bytes from `offset` on, without changing the file's length. A file system that
    /// cannot reserve returns `Ok`. Space reserved after the end outlives the handle and a crash; `truncate`, also to
    /// the present length, releases it.
    ///
    /// # Errors
    /// `Io(NoSpace)`: the disk does not have the space; a part of it may be reserved now.
    fn allocate(&self, offset: u64, len: u64) -> Result<()>;

    /// Prepares the `len` bytes from `offset` on for stores without system calls: writes zeros there, which extend the
    /// file, and maps them. `None`: this file cannot be mapped.
    ///
    /// A store survives a killed process as a write does, and a sync of the file makes it durable. The caller drops the
    /// piece before it truncates the file within the piece.
    ///
    /// # Errors
    /// `Io`, for example `Io(NoSpace)`. After an error and after `None`, some of the zeros may be in the file.
    fn prepare(&self, _offset: u64, _len: usize) -> Result<Option<Box<dyn PreparedPiece>>> {
        Ok(None)
    }

    /// The path it was opened by.
    fn path(&self) -> &Path;
}

/// The bytes that a store publishes last, with one instruction.
pub const STORE_HEAD: usize = 8;

/// A mapped range of a file that holds zeros and what was stored, see [`WriteFile::prepare`].
pub trait PreparedPiece: Send + Sync + Debug {
    /// The range of the file.
    fn range(&self) -> Range<u64>;

    /// Copies `bytes` to `offset` in the file. Exactly [`STORE_HEAD`] bytes are one store: a killed process leaves all or
    /// none of them.
    ///
    /// # Errors
    /// As [`PreparedPiece::store`].
    fn put(&mut self, offset: u64, bytes: &[u8]) -> Result<()>;

    /// Stores a record of at least [`STORE_HEAD`] bytes at `offset` in the file, its first [`STORE_HEAD`] bytes last. So a
    /// killed process leaves either zeros in the place of those bytes, or the whole record.
    ///
    /// # Errors
    /// `Io`: the system could not provide a page of the file, now or in an earlier store, and what the file has in the
    /// range is unknown. `InvalidArgument`: the bytes are too few, or not within the range.
    fn store(&mut self, offset: u64, bytes: &[u8]) -> Result<()> {
        let parts = bytes.split_first_chunk::<STORE_HEAD>().filter(|_| offset >= self.range().start);
        let Some((head, rest)) = parts else {
            return Err(Error::invalid("a store of less than a header, or outside of the mapped piece"));
        };
        if planted(Bug::HeaderBeforePayload) {
            self.put(offset, head)?;
            return self.put(offset.saturating_add(STORE_HEAD as u64), rest);
        }
        self.put(offset.saturating_add(STORE_HEAD as u64), rest)?;
        self.put(offset, head)
    }
}

/// The directory that the file at `path` is in.
pub fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
