//! Disk space reserved past the end of a WAL file, so that the WAL notices a full disk before a write fails.
//!
//! ```text
//! 0 ───── written ───── filled ──────────────── room
//!   the file's length      spare, and a piece more
//! ```
//! 1. The log reserves space in pieces that grow with the file, and remembers where the space ends: a record that fits costs
//!    no call.
//! 2. The file's length is that of its records: readers see nothing of the reserved space. A log that maps its file is
//!    longer by the zeros of its piece, which lies in the reserved space (`mapped`).
//! 3. When the disk is full, the log stops reserving until the engine tells it to try again. It then keeps three quarters of
//!    the spare room, or as much of that as it can get. It releases the rest, with whatever the attempts had taken: the first
//!    table that makes room needs some space itself.
//! 4. On a file system that cannot reserve space, the log counts its room as endless, until a write fails; a log with a limit
//!    ([`RoomLimit`]) counts as if the space had been reserved.
//! 5. A limit refuses as a full disk does, also where the disk has the space. Records for deletions and the spare room are
//!    outside of the limit.

use super::{LogWriter, Tail};
use ashlar_base::error::IoKind;
use ashlar_base::{ErrorKind, Result};
use std::sync::Arc;

/// Says whether a log may reserve so many bytes. Called with the log's lock held.
///
/// # Errors
/// `Io(NoSpace)`: the log behaves as if the disk did not have the space.
pub type RoomLimit = Arc<dyn Fn(u64) -> Result<()> + Send + Sync>;

/// When space is needed, the log reserves at least this much more.
const PIECE_MIN: u64 = 64 << 10;
/// The most that the log reserves at once beyond the need. Between the two limits it reserves as much as the log has.
const PIECE_MAX: u64 = 1 << 20;
/// The smallest reservation that is worth a call: a block of most file systems.
const BLOCK: u64 = 4 << 10;

impl LogWriter {
    /// Asks `limit` before each reservation from now on, unless there is a limit already. Space for deletions is not asked for.
    pub fn limit_room(&self, limit: RoomLimit) {
        let _ = self.limit.set(limit);
    }

    /// Asks the limit of `other` from now on, if that log has one.
    pub fn limit_room_as(&self, other: &LogWriter) {
        if let Some(limit) = other.limit.get() {
            self.limit_room(Arc::clone(limit));
        }
    }

    /// Bytes that are reserved after the end of the file.
    pub fn reserved_ahead(&self) -> u64 {
        let tail = self.tail.lock();
        if tail.room == u64::MAX { 0 } else { tail.room.saturating_sub(tail.base) }
    }

    /// Ensures that the file has space up to `end` and for `spare` bytes after it, before the record that ends at `end`
    /// is filled. Mostly a comparison.
    ///
    /// # Errors
    /// `Io(NoSpace)`: the disk does not have the space. Nothing was written and the log is sound. Later calls do not try
    /// again before [`LogWriter::ask_room`].
    pub(super) fn make_room(&self, tail: &mut Tail, end: u64, spare: u64) -> Result<()> {
        if end.saturating_add(spare) <= tail.room { Ok(()) } else { self.ask(tail, end, spare) }
    }

    /// Ensures that the file has space up to `end`, without a spare: for records that free space. Never reduces the known
    /// space.
    ///
    /// # Errors
    /// Those of the environment: the disk does not have the space.
    pub(super) fn reach(&self, tail: &mut Tail, end: u64) -> Result<()> {
        if end <= tail.room {
            return Ok(());
        }
        let from = tail.room.max(tail.base);
        let to = end.next_multiple_of(BLOCK);
        self.file.allocate(from, to.saturating_sub(from))?;
        tail.room = to.max(from);
        Ok(())
    }

    /// Whether the file has space for one more record of `payload` bytes, without a spare, or gets it now. Any thread may
    /// call it. Other records may use the space first.
    pub fn fits(&self, payload: u64) -> bool {
        let mut tail = self.tail.lock();
        self.layout(tail.filled, payload).is_some_and(|range| self.reach(&mut tail, range.end).is_ok())
    }

    /// Tries again to reserve space for `bytes` after the last record and `spare` bytes after those, although the disk had
    /// no space before.
    ///
    /// # Errors
    /// `Io(NoSpace)`: the disk still does not have the space.
    pub fn ask_room(&self, bytes: u64, spare: u64) -> Result<()> {
        let mut tail = self.tail.lock();
        tail.lack = None;
        let end = tail.filled.saturating_add(bytes);
        self.make_room(&mut tail, end, spare)
    }

    /// Releases the space reserved after the records, for a log that gets few or no more records.
    pub fn give_back(&self) {
        let mut tail = self.tail.lock();
        let asked = !matches!(tail.room, 0 | u64::MAX) || tail.piece.is_some();
        if asked && tail.base == tail.filled && self.poison.get().is_none() {
            // If that fails, the space is released with the file.
            let _ = self.cut(&mut tail);
            tail.room = 0;
            tail.lack = None;
        }
    }

    #[cold]
    fn ask(&self, tail: &mut Tail, end: u64, spare: u64) -> Result<()> {
        if let Some(lack) = &tail.lack {
            return Err(lack.clone());
        }
        let wanted = end.saturating_add(spare);
        let from = tail.room.max(tail.base);
        let mut piece = end.clamp(PIECE_MIN, PIECE_MAX);
        let (lack, by_limit) = loop {
            let to = wanted.saturating_add(piece);
            let (limit, bytes) = (self.limit.get(), to.saturating_sub(from));
            let allowed = limit.map_or(Ok(()), |limit| limit(bytes));
            let refused = allowed.is_err();
            match allowed.and_then(|()| self.file.allocate(from, bytes)) {
                Ok(()) => {
                    tail.room = to;
                    return Ok(());
                }
                Err(e) if !refused && e.kind() != ErrorKind::Io(IoKind::NoSpace) => {
                    // The writes themselves will report the fault.
                    tail.room = if limit.is_some() { to } else { u64::MAX };
                    return Ok(());
                }
                Err(e) if piece == 0 => break (e, refused),
                Err(_) => piece = if piece > BLOCK { piece / 4 } else { 0 },
            }
        };
        // Filled records that are not written yet have their space already, and must not lose it. A limit has counted the
        // space that is reserved, and would count it again.
        if tail.base == tail.filled && (!by_limit || tail.room == 0) {
            let most = spare / 4 * 3;
            let kept = match tail.room {
                0 => most,
                room => most.min(room.saturating_sub(tail.base)),
            };
            // If that fails, the space is kept as it is.
            let _ = self.keep(tail, kept);
        }
        tail.lack = Some(lack.clone());
        Err(lack)
    }

    /// Cuts the file after its records, and keeps `bytes`, or a part of them, of the space reserved there.
    ///
    /// # Errors
    /// `Io`: the file was not cut.
    pub(super) fn keep(&self, tail: &mut Tail, bytes: u64) -> Result<()> {
        let end = tail.base;
        tail.piece = None;
        for part in (0u32..).map(|halved| bytes >> halved) {
            // In each round, because a failed attempt may have taken space too.
            self.file.truncate(end)?;
            if part < BLOCK {
                tail.room = end;
                break;
            }
            if self.file.allocate(end, part).is_ok() {
                tail.room = end + part;
                break;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
