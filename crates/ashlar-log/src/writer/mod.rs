//! Writing a log: reserve, fill, publish, sync.
//!
//! 1. `layout` is arithmetic: it turns a position and a payload's length into a range of the file. Ranges follow one
//!    another without gaps; the caller orders them.
//! 2. `fill` cannot fail: it puts frames where no reader sees them yet. `publish` makes whole records visible, in log
//!    order. `sync_to` makes published bytes durable.
//! 3. A compressed log stores frames: `stored` makes one of a payload, and lengths and bytes given to `layout` and `fill`
//!    are those of the frame.
//! 4. After one failed write or sync the log is poisoned for ever: what the file holds behind the last good
//!    publish is unknown, and after a failed sync the kernel may have dropped the bytes.

mod deflate;
mod plain;

pub use plain::PlainLog;

use ashlar_base::{FileNumber, Result};
use std::borrow::Cow;

/// The bytes of one record in its log: closing zeros of the block before it, headers and payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogRange {
    /// Where the former record ended.
    pub start: u64,
    /// Where this one ends.
    pub end: u64,
}

/// A log that is being written.
pub trait LogWriter: Send + Sync {
    /// What the log stores of `payload`: the payload itself, or a frame that is compressed.
    ///
    /// # Errors
    /// `Busy(Memory)`: the compressor has no memory. Nothing was written.
    fn stored<'a>(&self, payload: &'a [u8]) -> Result<Cow<'a, [u8]>>;

    /// The range of a record of `payload` bytes behind position `at`; `None` when the log has no room for it. Pure.
    fn layout(&self, at: u64, payload: u64) -> Option<LogRange>;

    /// Frames `payload` into `range`, which `layout` gave out for a payload of this length. Each range once.
    fn fill(&self, range: &LogRange, payload: &[u8]);

    /// Makes everything up to `range.end` visible to readers of the file, in a log that buffers to those after its flush. All
    /// ranges before must have been filled; several filled ranges are published by one call with the last.
    ///
    /// # Errors
    /// `Io`: the write failed, now or earlier; whether the records reached the file is unknown.
    fn publish(&self, range: &LogRange) -> Result<()>;

    /// Returns when everything before `end` is durable. Calls coalesce: one sync serves all threads that wait for it.
    ///
    /// # Errors
    /// `Io`: the sync failed, now or earlier. `InvalidArgument`: `end` is not published.
    fn sync_to(&self, end: u64) -> Result<()>;

    /// The end of what is published: where the next record starts when nothing is reserved.
    fn position(&self) -> u64;

    /// The file's number.
    fn number(&self) -> FileNumber;

    /// Writes what is published and makes it durable. Nothing can be published afterwards.
    ///
    /// # Errors
    /// `Io`: the sync failed, or the log was poisoned before. `InvalidArgument`: it is closed already.
    fn close(&self) -> Result<()>;
}

#[cfg(test)]
mod buffering_tests;
#[cfg(test)]
mod compressed_tests;
#[cfg(test)]
mod tests;
