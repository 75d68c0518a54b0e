//! Records stored into the log file through a mapping, instead of written.
//!
//! ```text
//! |        block         |
//! | records | zeros      |
//! 0        base          piece.end = the file's length
//! ```
//! 1. A piece reaches from the end of the records to the end of their block. The file's length is then the piece's end: the
//!    zeros behind the records are what a reader takes for the end of a log.
//! 2. A fragment lies in one block. One inside the piece is stored, its header last. So a killed process leaves whole
//!    fragments, in order, and zeros.
//! 3. Everything else is written, from the end of the piece on: so a torn write ends with the file, as in a log without
//!    a mapping. Then the piece is of no more use, and the next small publish prepares the next one.
//! 4. A piece lies within the reserved space (`room`), so preparing it takes no space that was not there. On a full disk,
//!    where there is no such space, the log writes.
//! 5. The piece is dropped before the file is cut within it.

use super::{LogWriter, Tail};
use ashlar_base::Result;
use ashlar_env::STORE_HEAD;
use ashlar_format::log_record::{BLOCK_SIZE, first_physical};

/// A piece is prepared when it has space for this many publishes like the present one. Preparing costs as much as some
/// ten writes.
const WORTH: u64 = 16;

impl LogWriter {
    /// Stores records into mapped pieces of the file where it can. Where the file system offers no mappings, the log
    /// writes as before.
    pub fn mapped(self, yes: bool) -> LogWriter {
        LogWriter { maps: yes, ..self }
    }

    /// Stores what it can of the first `len` bytes of the frames. Returns how many that were; the rest has to be written.
    ///
    /// # Errors
    /// `Io`: a page of the file was missing. The log is poisoned.
    #[inline]
    pub(super) fn store(&self, tail: &mut Tail, len: usize) -> Result<usize> {
        if !self.maps || (tail.piece.is_none() && !self.prepare(tail, len as u64)) {
            return Ok(0);
        }
        let Tail { piece: Some(piece), bytes, base, .. } = tail else { return Ok(0) };
        let (end, mut at, mut done) = (piece.range().end, *base, 0);
        let frames = bytes.get(..len).unwrap_or_default();
        let mut failed = None;
        while let Some(fragment) = first_physical(frames.get(done..).unwrap_or_default(), self.framing) {
            let next = at.saturating_add(fragment.len() as u64);
            if next > end || fragment.len() < STORE_HEAD {
                break;
            }
            failed = piece.store(at, fragment).err();
            if failed.is_some() {
                break;
            }
            (at, done) = (next, done + fragment.len());
        }
        if failed.is_some() || base.saturating_add(len as u64) >= end {
            tail.piece = None;
        }
        failed.map_or(Ok(done), |e| Err(self.poison(e)))
    }

    /// Prepares the rest of the block, if that is worth it for a publish of `len` bytes.
    #[cold]
    fn prepare(&self, tail: &mut Tail, len: u64) -> bool {
        let left = BLOCK_SIZE as u64 - tail.base % BLOCK_SIZE as u64;
        let end = tail.base.saturating_add(left);
        if tail.unmapped || end > tail.room || len.saturating_mul(WORTH) > left {
            return false;
        }
        let Ok(bytes) = usize::try_from(left) else { return false };
        if let Ok(Some(piece)) = self.file.prepare(tail.base, bytes) {
            tail.piece = Some(piece);
            return true;
        }
        // An error of the device also meets the next write, which reports it.
        tail.unmapped = true;
        match tail.room {
            u64::MAX => self.cut(tail),
            room => self.keep(tail, room.saturating_sub(tail.base)),
        }
        false
    }

    /// Cuts the zeros off, if there are any.
    pub(super) fn cut(&self, tail: &mut Tail) {
        tail.piece = None;
        // If that fails, the zeros stay, and a reader takes them for the end.
        let _ = self.file.truncate(tail.base);
    }
}

#[cfg(test)]
mod tests;
