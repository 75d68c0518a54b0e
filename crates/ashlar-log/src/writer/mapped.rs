//! Records stored into the log file through a mapping, instead of written.
//!
//! ```text
//! |        block         |
//! | records | zeros      |
//! 0        base          piece.end = the file's length
//! ```
//! 1. A piece reaches from the end of the records to the end of their block. The file's length is then the piece's end: the
//!    zeros behind the records are what a reader takes for the end of a log.
//! 2. A fragment lies in one block. One inside the piece that has a payload is stored, its header last. So a killed process leaves
//!    whole fragments, in order, and zeros.
//! 3. Everything else is written, from the end of the piece on: so a torn write ends with the file, as in a log without
//!    a mapping. Then the piece is of no more use, and the next small publish prepares the next one.
//! 4. A piece lies within the reserved space (`room`), so preparing it takes no space that was not there. On a full disk,
//!    where there is no such space, the log writes.
//! 5. The piece is dropped before the file is cut within it.
//! 6. A log that is synced often writes over the zeros instead of storing, because a sync of mapped pages takes some four times as long:
//!    what fits of a publish with zeros in the place of the headers, and then the same with the headers. If a header lies in two pages,
//!    the zeros are cut off and the publish is appended.

use super::{LogWriter, Tail};
use ashlar_base::Result;
use ashlar_env::{PreparedPiece, STORE_HEAD};
use ashlar_format::log_record::{BLOCK_SIZE, first_physical};
use ashlar_sync::atomic::Ordering;
use std::ops::Range;

/// A mapped piece is prepared when it has space for this many publishes like the present one. Preparing costs as much as some
/// ten writes.
const WORTH: u64 = 16;
/// The same for a log that is synced often: its publishes wait for the device anyway.
const WORTH_WRITING: u64 = 2;

/// A kill ends a write only at a multiple of this.
const PAGE: u64 = 4 << 10;

/// A log whose last sync was fewer publishes ago than this is synced often. A sync of mapped pages costs as much more as some hundred
/// publishes cost less.
const OFTEN: u32 = 64;

/// The zeros behind the records, up to the end of a block.
#[derive(Debug)]
pub(super) enum Piece {
    /// Records are stored into the mapping.
    Mapped(Box<dyn PreparedPiece>),
    /// Records are written over the zeros of this range.
    Written(Range<u64>),
}

impl Piece {
    fn end(&self) -> u64 {
        match self {
            Piece::Mapped(piece) => piece.range().end,
            Piece::Written(range) => range.end,
        }
    }
}

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
        if !self.maps {
            return Ok(0);
        }
        let often = self.is_synced_often(tail);
        if tail.piece.is_none() && !self.prepare(tail, len as u64, often) {
            return Ok(0);
        }
        if often && let Some(Piece::Mapped(piece)) = &tail.piece {
            tail.piece = Some(Piece::Written(piece.range()));
        }
        let Tail { piece: Some(piece), bytes, base, .. } = tail else { return Ok(0) };
        let (end, frames) = (piece.end(), bytes.get(..len).unwrap_or_default());
        let stored = match piece {
            Piece::Mapped(piece) => self.store_each(&mut **piece, *base, frames),
            Piece::Written(range) => match self.write_over(range, *base, frames) {
                // Appended instead.
                Ok(None) => return self.end_piece(tail).map(|()| 0).map_err(|e| self.poison(e)),
                written => written.map(Option::unwrap_or_default),
            },
        };
        if stored.is_err() || base.saturating_add(len as u64) >= end {
            tail.piece = None;
        }
        stored.map_err(|e| self.poison(self.given_back(e, tail)))
    }

    /// The fragments at the beginning of `frames` that fit before `end` when the first one is at `at`.
    fn fitting<'f>(&self, frames: &'f [u8], at: u64, end: u64) -> impl Iterator<Item = &'f [u8]> {
        let (mut rest, mut at, framing) = (frames, at, self.framing);
        std::iter::from_fn(move || {
            let fragment = first_physical(rest, framing)?;
            at = at.saturating_add(fragment.len() as u64);
            rest = rest.get(fragment.len()..)?;
            (at <= end && fragment.len() >= STORE_HEAD).then_some(fragment)
        })
    }

    /// Stores each fragment that fits into the mapping. Returns the number of bytes.
    #[inline]
    fn store_each(&self, piece: &mut dyn PreparedPiece, base: u64, frames: &[u8]) -> Result<usize> {
        let mut done = 0;
        for fragment in self.fitting(frames, base, piece.range().end) {
            piece.store(base.saturating_add(done as u64), fragment)?;
            done += fragment.len();
        }
        Ok(done)
    }

    /// Writes all fragments that fit over the zeros of `range`: without their first [`STORE_HEAD`] bytes, and then whole. A process that is
    /// killed in between, or in the second write, leaves whole fragments and zeros in the place of the next header. Returns the number
    /// of bytes. `None`, and nothing is written: a kill could leave half of a header, because a write ends early only between two pages.
    fn write_over(&self, range: &Range<u64>, base: u64, frames: &[u8]) -> Result<Option<usize>> {
        let room = usize::try_from(range.end.saturating_sub(base)).unwrap_or(usize::MAX);
        let mut headless = Vec::with_capacity(frames.len().min(room));
        for fragment in self.fitting(frames, base, range.end) {
            let in_page = base.saturating_add(headless.len() as u64) % PAGE;
            if in_page > PAGE - STORE_HEAD as u64 {
                return Ok(None);
            }
            headless.extend_from_slice(&[0; STORE_HEAD]);
            headless.extend_from_slice(fragment.get(STORE_HEAD..).unwrap_or_default());
        }
        let done = headless.len();
        if let Some(whole) = frames.get(..done).filter(|_| done > 0) {
            self.file.write_at(&headless, base)?;
            self.file.write_at(whole, base)?;
        }
        Ok(Some(done))
    }

    /// Whether the last sync was few publishes ago. Called once for each publish.
    #[inline]
    fn is_synced_often(&self, tail: &mut Tail) -> bool {
        // Orders nothing: a sync that is seen late is seen by the next publish.
        let syncs = self.syncs.load(Ordering::Relaxed);
        tail.unsynced = if syncs == tail.syncs { tail.unsynced.saturating_add(1) } else { 0 };
        tail.syncs = syncs;
        syncs > 0 && tail.unsynced < OFTEN
    }

    /// Prepares the rest of the block, if that is worth it for a publish of `len` bytes. `often`: the log is synced often.
    #[cold]
    fn prepare(&self, tail: &mut Tail, len: u64, often: bool) -> bool {
        let left = BLOCK_SIZE as u64 - tail.base % BLOCK_SIZE as u64;
        let end = tail.base.saturating_add(left);
        let worth = if often { WORTH_WRITING } else { WORTH };
        if tail.unmapped || end > tail.room || len.saturating_mul(worth) > left {
            return false;
        }
        let Ok(bytes) = usize::try_from(left) else { return false };
        if let Ok(Some(piece)) = self.file.prepare(tail.base, bytes) {
            tail.piece = Some(Piece::Mapped(piece));
            return true;
        }
        // An error of the device also meets the next write, which reports it.
        tail.unmapped = true;
        // If the zeros stay, a reader takes them for the end.
        let _ = self.end_piece(tail);
        false
    }

    /// Cuts the zeros off, and keeps the space that is reserved behind the records.
    ///
    /// # Errors
    /// `Io`: the zeros stay.
    fn end_piece(&self, tail: &mut Tail) -> Result<()> {
        match tail.room {
            u64::MAX => self.cut(tail),
            room => self.keep(tail, room.saturating_sub(tail.base)),
        }
    }

    /// Cuts the zeros off, if there are any, and releases the space that is reserved behind the records.
    ///
    /// # Errors
    /// `Io`: the zeros stay, and a reader takes them for the end.
    pub(super) fn cut(&self, tail: &mut Tail) -> Result<()> {
        tail.piece = None;
        self.file.truncate(tail.base)
    }
}

#[cfg(test)]
mod tests;
