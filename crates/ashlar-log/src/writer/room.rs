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

/// When space is needed, the log reserves at least this much more.
const PIECE_MIN: u64 = 64 << 10;
/// The most that the log reserves at once beyond the need. Between the two limits it reserves as much as the log has.
const PIECE_MAX: u64 = 1 << 20;
/// The smallest reservation that is worth a call: a block of most file systems.
const BLOCK: u64 = 4 << 10;

impl LogWriter {
    /// Ensures that the file has space up to `end` and for `spare` bytes after it. The thread that lays records out
    /// calls it before the record that ends at `end` is filled. Mostly one load.
    ///
    /// # Errors
    /// `Io(NoSpace)`: the disk does not have the space; see [`LogWriter::reaches`]. Nothing was written and the log is
    /// sound. Later calls do not try again before [`LogWriter::ask_room`].
    pub fn make_room(&self, end: u64, spare: u64) -> Result<()> {
        if end.saturating_add(spare) <= self.room.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.ask(end, spare)
    }

    /// Whether the file has space up to `end`, or gets it now, without a spare: for records that free space. Any thread
    /// may call it; the call never reduces the known space.
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

    /// Tries [`LogWriter::make_room`] again for `bytes` after the last record and `spare` bytes after those, although
    /// the disk had no space before.
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

    /// Releases the space reserved after the records, for a log that gets few or no more records.
    pub fn give_back(&self) {
        let mut tail = self.tail.lock();
        let asked = !matches!(self.room.load(Ordering::Relaxed), 0 | u64::MAX);
        if asked && tail.base == tail.filled && self.poison.get().is_none() {
            // If that fails, the space is released with the file.
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
                    // The writes themselves will report the fault.
                    self.room.store(u64::MAX, Ordering::Relaxed);
                    return Ok(());
                }
                Err(e) if piece == 0 => break e,
                Err(_) => piece = if piece > BLOCK { piece / 4 } else { 0 },
            }
        };
        // Filled records that are not written yet have their space already, and must not lose it.
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

    /// Keeps `bytes`, or a part of them, of the space reserved after `end`, the end of the file.
    fn keep(&self, end: u64, bytes: u64) {
        for part in (0u32..).map(|halved| bytes >> halved) {
            // In each round, because a failed attempt may have taken space too.
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
