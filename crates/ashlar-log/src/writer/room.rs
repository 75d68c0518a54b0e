//! Disk space reserved past the end of a WAL file, so that the WAL notices a full disk before a write fails.
//!
//! ```text
//! 0 ───── written ───── filled ──────────────── room
//!   the file's length      spare, and a piece more
//! ```
//! 1. The log reserves space in pieces that grow with the file, and remembers where the space ends: a record that fits costs
//!    no call.
//! 2. The file's length is that of its records: readers see nothing of the reserved space.
//! 3. When the disk is full, the log stops reserving until the engine tells it to try again. It then keeps three quarters of
//!    the spare room, or as much of that as it can get. It releases the rest, with whatever the attempts had taken: the first
//!    table that makes room needs some space itself.
//! 4. On a file system that cannot reserve space, the log counts its room as endless, until a write fails.

use super::LogWriter;
use ashlar_base::error::IoKind;
use ashlar_base::{ErrorKind, Result};
use std::sync::atomic::Ordering;

/// More room than is wanted is asked for by so much at least …
const PIECE_MIN: u64 = 64 << 10;
/// … and at most. Between them by as much as the log has.
const PIECE_MAX: u64 = 1 << 20;
/// Less than this is not worth a call: a block of most file systems.
const BLOCK: u64 = 4 << 10;

impl LogWriter {
    /// Sees to it that the file has room up to `end` and for `spare` bytes behind it. The thread that lays records out calls it,
    /// before the one that ends at `end` is filled. One load, mostly.
    ///
    /// # Errors
    /// `Io(NoSpace)`: the disk has not so much; see [`LogWriter::reaches`]. Nothing was written and the log is sound. It is
    /// not asked for again before [`LogWriter::ask_room`].
    pub fn make_room(&self, end: u64, spare: u64) -> Result<()> {
        if end.saturating_add(spare) <= self.room.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.ask(end, spare)
    }

    /// Whether the file has room up to `end`, or gets it now, with none to spare: for records that are to make room. Anybody
    /// may ask: room that is known does not shrink by it.
    pub fn reaches(&self, end: u64) -> bool {
        if end <= self.room.load(Ordering::Relaxed) {
            return true;
        }
        let tail = self.tail.lock();
        let from = self.room.load(Ordering::Relaxed).max(tail.base);
        let to = end.next_multiple_of(BLOCK);
        let reached = self.file.allocate(from, to.saturating_sub(from)).is_ok();
        if reached {
            self.room.store(to.max(from), Ordering::Relaxed);
        }
        reached
    }

    /// [`LogWriter::make_room`] for `bytes` behind the last record and `spare` ones behind those, though the disk had no more
    /// when it was asked last.
    ///
    /// # Errors
    /// Those of [`LogWriter::make_room`].
    pub fn ask_room(&self, bytes: u64, spare: u64) -> Result<()> {
        let end = {
            let mut tail = self.tail.lock();
            tail.lack = None;
            tail.filled
        };
        self.make_room(end.saturating_add(bytes), spare)
    }

    /// Gives back what the file has behind its records: for a log that gets no more of them, or few.
    pub fn give_back(&self) {
        let mut tail = self.tail.lock();
        let asked = !matches!(self.room.load(Ordering::Relaxed), 0 | u64::MAX);
        if asked && tail.base == tail.filled && self.poison.get().is_none() {
            // If it cannot be, it is given back with the file.
            let _ = self.file.truncate(tail.base);
            self.room.store(0, Ordering::Relaxed);
            tail.lack = None;
        }
    }

    #[cold]
    fn ask(&self, end: u64, spare: u64) -> Result<()> {
        let mut tail = self.tail.lock();
        if let Some(lack) = &tail.lack {
            return Err(lack.clone());
        }
        let wanted = end.saturating_add(spare);
        let from = self.room.load(Ordering::Relaxed).max(tail.base);
        let mut piece = end.clamp(PIECE_MIN, PIECE_MAX);
        let lack = loop {
            let to = wanted.saturating_add(piece);
            match self.file.allocate(from, to.saturating_sub(from)) {
                Ok(()) => {
                    self.room.store(to, Ordering::Relaxed);
                    return Ok(());
                }
                Err(e) if e.kind() != ErrorKind::Io(IoKind::NoSpace) => {
                    // The writes themselves will tell what is wrong.
                    self.room.store(u64::MAX, Ordering::Relaxed);
                    return Ok(());
                }
                Err(e) if piece == 0 => break e,
                Err(_) => piece = if piece > BLOCK { piece / 4 } else { 0 },
            }
        };
        // What is filled and not written has its room already, and must not lose it.
        if tail.base == tail.filled {
            let most = spare / 4 * 3;
            let kept = match self.room.load(Ordering::Relaxed) {
                0 => most,
                room => most.min(room.saturating_sub(tail.base)),
            };
            self.keep(tail.base, kept);
        }
        tail.lack = Some(lack.clone());
        Err(lack)
    }

    /// Of all that was asked for behind `end`, where the file ends, keeps `bytes` or a part of them.
    fn keep(&self, end: u64, bytes: u64) {
        for part in (0u32..).map(|halved| bytes >> halved) {
            // Each time: an attempt that fails may have taken something too.
            if self.file.truncate(end).is_err() {
                return;
            }
            if part < BLOCK {
                return self.room.store(end, Ordering::Relaxed);
            }
            if self.file.allocate(end, part).is_ok() {
                return self.room.store(end + part, Ordering::Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests;
