//! A group of records: framed one by one, published with one write.

use super::{LogRange, LogWriter, Tail};
use ashlar_base::bytes::OutOfMemory;
use ashlar_base::{Error, Result};
use ashlar_format::log_record::{encode_frame, encode_record};
use ashlar_sync::MutexGuard;
use std::borrow::Cow;

/// The tail of a log, for a thread that adds records to it. It holds the log's lock of rank `Log`, so that no lock of that
/// or an earlier rank may be taken before it ends.
///
/// Records that are added stay in the log's memory when the group is dropped; the next publish includes them.
#[derive(Debug)]
#[must_use = "records are published by `publish`"]
pub struct LogGroup<'a> {
    log: &'a LogWriter,
    tail: MutexGuard<'a, Tail>,
}

impl LogWriter {
    /// Begins a group of records. Waits for the group or the write of another thread.
    pub fn begin(&self) -> LogGroup<'_> {
        LogGroup { log: self, tail: self.tail.lock() }
    }
}

impl LogGroup<'_> {
    /// Frames a record. The return value is its range in the file.
    ///
    /// # Errors
    /// `InvalidArgument`: the record is too large for the log. `Busy(Memory)`: the record or the compressor has no memory.
    /// The log is as it was.
    pub fn add(&mut self, payload: &[u8]) -> Result<LogRange> {
        self.add_if(payload, |_, _, _| Ok(()))
    }

    /// [`LogGroup::add`], but first ensures that the file has space for the record and, after it, for `spare` bytes.
    ///
    /// # Errors
    /// Those of [`LogGroup::add`]. `Io(NoSpace)`: the disk does not have the space. Later calls do not ask the disk again
    /// before [`LogWriter::ask_room`].
    #[inline]
    pub fn add_with_spare(&mut self, payload: &[u8], spare: u64) -> Result<LogRange> {
        self.add_if(payload, |log, tail, end| log.make_room(tail, end, spare))
    }

    /// [`LogGroup::add_with_spare`] without a spare, and asks the disk in any case: for records that free space.
    ///
    /// # Errors
    /// Those of [`LogGroup::add_with_spare`].
    pub fn add_into_spare(&mut self, payload: &[u8]) -> Result<LogRange> {
        self.add_if(payload, LogWriter::reach)
    }

    #[inline]
    fn add_if(
        &mut self,
        payload: &[u8],
        admit: impl FnOnce(&LogWriter, &mut Tail, u64) -> Result<()>,
    ) -> Result<LogRange> {
        let (log, tail) = (self.log, &mut *self.tail);
        let payload = match &mut tail.deflater {
            None => Cow::Borrowed(payload),
            Some(deflater) => Cow::Owned(deflater.frame(payload)?),
        };
        let range = log.layout(tail.filled, payload.len() as u64).ok_or_else(|| log.too_large())?;
        admit(log, tail, range.end)?;
        let log_number = (log.number.0 & 0xffff_ffff) as u32;
        // A long record needs one allocation: growth piece by piece would copy the record, and the allocator may keep the pieces.
        let bytes = usize::try_from(range.end - tail.filled).unwrap_or(usize::MAX);
        tail.bytes.try_reserve(bytes).map_err(OutOfMemory::from)?;
        let encode = if log.compressed { encode_frame } else { encode_record };
        encode(&mut tail.bytes, log.framing, log_number, range.start, &payload);
        tail.filled = range.end;
        debug_assert_eq!(tail.filled - tail.base, tail.bytes.len() as u64);
        Ok(range)
    }

    /// The bytes for which the log has memory.
    #[cfg(test)]
    pub(super) fn frames_capacity(&self) -> usize {
        self.tail.bytes.capacity()
    }

    /// Makes all framed records visible to readers of the file; in a log that buffers, its next flush does.
    ///
    /// # Errors
    /// `Io`: the write failed, now or earlier; whether the records reached the file is unknown.
    pub fn publish(mut self) -> Result<()> {
        let end = self.tail.filled;
        if end <= self.tail.published {
            return Ok(());
        }
        self.log.alive()?;
        self.log.publish_to(&mut self.tail, end)
    }
}

impl LogWriter {
    #[cold]
    fn too_large(&self) -> Error {
        Error::invalid("the record is too large for the log").at_path(self.path())
    }
}
