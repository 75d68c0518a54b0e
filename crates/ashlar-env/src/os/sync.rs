//! Syncs that detect a failed journal: ext4 may report success for a sync that is not durable.
//!
//! A sync waits for the pages and then for the journal transaction that has the file's length and blocks. If that
//! transaction's commit fails meanwhile, ext4 takes it for an old, finished one and returns `Ok`. When a device fails a
//! write of the journal, this happens to the last sync of a file in a tenth of the cases (docs/design/0009; `rel
//! power`, rig `journal`). Another sync, `statvfs` or a sync of the directory do not detect it. Only a call that begins
//! a transaction checks the journal.
//!
//! So after each sync on such a file system, the file's times are set twice. If the journal failed before the sync
//! returned, the first call makes the kernel notice, and the second fails. If both succeed, the sync is durable. The
//! two calls cost a microsecond or two, and no write of their own.

use ashlar_base::planted::{Bug, planted};
use rustix::fs::{FsWord, Timespec, Timestamps, UTIME_NOW, fstatfs, futimens};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
#[cfg(target_arch = "x86_64")]
use std::os::fd::AsRawFd;

/// Ext2, ext3 and ext4, which share one number.
const EXT: FsWord = 0xef53;
/// Layers over another file system, which containers have: it may be ext4.
const OVERLAY: FsWord = 0x794c_7630;

const NOW: Timespec = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };

/// Tells the kernel to begin to write these bytes of a file to the device. An error is left to the next sync, which reports it.
#[cfg(target_arch = "x86_64")]
pub(super) fn begin_writeback(file: &File, offset: u64, len: u64) {
    let (Ok(offset), Ok(len)) = (i64::try_from(offset), i64::try_from(len)) else { return };
    // SAFETY: the call takes a descriptor, which `file` keeps open, and numbers; it touches no memory of the process.
    let _ = unsafe { libc::sync_file_range(file.as_raw_fd(), offset, len, libc::SYNC_FILE_RANGE_WRITE) };
}

/// Makes a file's bytes and length durable.
pub(super) fn sync_data(file: &File) -> io::Result<()> {
    file.sync_data()?;
    confirm(file)
}

/// Makes the bytes and attributes of a file durable, or the entries of a directory.
pub(super) fn sync_all(file: &File) -> io::Result<()> {
    file.sync_all()?;
    confirm(file)
}

/// Checks that the preceding sync is durable.
///
/// # Errors
/// The file system accepts no more changes.
fn confirm(file: &File) -> io::Result<()> {
    let journals = fstatfs(file).is_ok_and(|about| [EXT, OVERLAY].contains(&about.f_type));
    if journals && !planted(Bug::SyncUnconfirmed) {
        (0..2).try_for_each(|_| touch(file)).map_err(not_durable)?;
    }
    Ok(())
}

fn touch(file: impl AsFd) -> rustix::io::Result<()> {
    match futimens(file, &Timestamps { last_access: NOW, last_modification: NOW }) {
        // Another user owns the file, so its times may not be set.
        Ok(()) | Err(Errno::PERM | Errno::ACCESS) => Ok(()),
        refused => refused,
    }
}

fn not_durable(e: Errno) -> io::Error {
    let e = io::Error::from(e);
    let what =
        "the file system's journal has failed, and what was synced last may be lost: see the kernel's log";
    io::Error::new(e.kind(), format!("{e}; {what}"))
}
