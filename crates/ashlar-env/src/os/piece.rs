//! A piece of a file, mapped for stores: a copy into the kernel's page cache without a system call.
//!
//! ```text
//! | page | page | … |      the mapping, whole pages
//!     | zeros     |        the piece
//! ```
//! 1. The piece is written with zeros before it is used, so that its blocks are the file's own: a store meets no full disk.
//! 2. Its pages are faulted in for writing, so that a page which the kernel cannot provide is an error of the call. After a
//!    write-back the next store to the page faults again; what fails then is the guard's (`guard`).
//! 3. Only raw copies touch the mapping, and no reference to it exists: other processes may change the file's bytes.
//! 4. A file system is used only where stores to written blocks never need new ones: ext4 and XFS.

use super::Process;
use super::guard::{Guarded, PAGE};
use crate::fs::{PreparedPiece, STORE_HEAD};
use ashlar_base::error::IoKind;
use ashlar_base::planted::{Bug, planted};
use ashlar_base::{Error, ErrorKind, Result};
use rustix::fs::{FsWord, fstatfs};
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};
use std::arch::asm;
use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::ptr;

const EXT: FsWord = 0xef53;
const XFS: FsWord = 0x5846_5342;

/// Pages of a file, mapped shared, for writing. Unmapped with the value.
#[derive(Debug)]
struct Mapping {
    start: *mut c_void,
    bytes: usize,
}

// SAFETY: the mapping belongs to this value alone, is not tied to a thread, and is written only through `&mut`. Checked by:
// `piece::tests`.
unsafe impl Send for Mapping {}
// SAFETY: as above; through `&` only its bounds are read. Checked by: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps whole pages of the file.
    fn new(file: &File, offset: u64, bytes: usize) -> rustix::io::Result<Mapping> {
        let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: a new mapping at an address that the kernel chooses: no memory of the process is touched. Checked by:
        // `piece::tests`.
        let start = unsafe { mmap(ptr::null_mut(), bytes, access, flags, file, offset) }?;
        Ok(Mapping { start, bytes })
    }

    /// Faults all pages in, for writing.
    fn populate(&self) -> rustix::io::Result<()> {
        // SAFETY: the range is the mapping, and the advice changes none of its bytes. Checked by: `piece::tests`.
        unsafe { madvise(self.start, self.bytes, Advice::LinuxPopulateWrite) }
    }

    fn addresses(&self) -> Range<usize> {
        let start = self.start as usize;
        start..start.saturating_add(self.bytes)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range is the mapping, which nothing else refers to. Checked by: `piece::tests`.
        let _ = unsafe { munmap(self.start, self.bytes) };
    }
}

/// A piece of a file, ready for stores. Fields are dropped in order: unmapped, then not guarded.
#[derive(Debug)]
pub(super) struct OsPiece {
    mapping: Mapping,
    guarded: Guarded,
    /// The piece in the file.
    range: Range<u64>,
    /// Where the mapping begins in the file.
    mapped_from: u64,
    process: Process,
    path: PathBuf,
}

impl OsPiece {
    /// Maps the range of the file, which is written with zeros by `zero` in between. `None`: this file cannot be mapped.
    pub(super) fn prepare(
        file: &File,
        path: &Path,
        process: Process,
        (offset, len): (u64, usize),
        zero: impl FnOnce() -> Result<()>,
    ) -> Result<Option<OsPiece>> {
        if cfg!(miri) || !fstatfs(file).is_ok_and(|about| [EXT, XFS].contains(&about.f_type)) {
            return Ok(None);
        }
        let inside = usize::try_from(offset % PAGE as u64).unwrap_or(0);
        let mapped_from = offset - inside as u64;
        let bytes = inside.checked_add(len).and_then(|bytes| bytes.checked_next_multiple_of(PAGE));
        let (Some(bytes), Some(end)) = (bytes, offset.checked_add(len as u64)) else { return Ok(None) };
        // A file that was not opened for reading cannot be mapped.
        let Ok(mapping) = Mapping::new(file, mapped_from, bytes) else { return Ok(None) };
        let Some(guarded) = Guarded::new(mapping.addresses()) else { return Ok(None) };
        zero()?;
        match mapping.populate() {
            Ok(()) => {}
            // Linux before 5.14.
            Err(Errno::INVAL) => return Ok(None),
            Err(e) => return Err(Error::io("map", path, &e.into()).at(path, offset)),
        }
        let path = path.to_path_buf();
        Ok(Some(OsPiece { mapping, guarded, range: offset..end, mapped_from, process, path }))
    }

    #[cold]
    fn missing(&self, offset: u64) -> Error {
        Error::new(
            ErrorKind::Io(IoKind::Other),
            "cannot store: the system could not provide a page of the mapped file",
        )
        .at(&self.path, offset)
        .because(io::Error::from(Errno::IO))
        .hint("See the kernel's log for a failed device, and check that no other program truncates the file")
    }

    #[cold]
    fn refused(&self, offset: u64) -> Error {
        if self.process.is_current() {
            Error::invalid("a store outside of the mapped piece").at(&self.path, offset)
        } else {
            Error::forked().at_path(&self.path)
        }
    }
}

impl PreparedPiece for OsPiece {
    fn range(&self) -> Range<u64> {
        self.range.clone()
    }

    #[inline]
    fn put(&mut self, offset: u64, bytes: &[u8]) -> Result<()> {
        let end = offset.checked_add(bytes.len() as u64);
        let inside = offset >= self.range.start && end.is_some_and(|end| end <= self.range.end);
        if !inside || !self.process.is_current() {
            return Err(self.refused(offset));
        }
        let at = usize::try_from(offset - self.mapped_from).map_err(|_| self.refused(offset))?;
        // SAFETY: `at` and the bytes after it are in the piece, which is in the mapping. Checked by: `piece::tests`.
        let to = unsafe { self.mapping.start.cast::<u8>().add(at) };
        match <[u8; STORE_HEAD]>::try_from(bytes) {
            Ok(head) => {
                let head = u64::from_ne_bytes(head);
                // SAFETY: eight bytes at any alignment, in bounds as above; no reference to the mapping exists, and `&mut self`
                // keeps other stores of this process out. Without `nomem` the compiler keeps the copies before it before it,
                // and the processor makes stores visible in order. Checked by: `piece::tests`.
                unsafe {
                    asm!("mov qword ptr [{to}], {head}", to = in(reg) to, head = in(reg) head, options(nostack, preserves_flags))
                };
            }
            // SAFETY: both ranges are in bounds and do not overlap: `bytes` is memory of the process, and no reference to
            // the mapping exists. `&mut self` keeps other stores of this process out. Checked by: as above.
            Err(_) => unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) },
        }
        if self.guarded.tripped() && !planted(Bug::GuardUnread) {
            return Err(self.missing(offset));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
