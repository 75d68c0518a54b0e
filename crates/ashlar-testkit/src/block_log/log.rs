//! The log: what reached a device, in the order it came.
//!
//! ```text
//! | kind: u32 LE | len: u32 LE | offset: u64 LE | data: len, of writes only |
//! ```
//! 1. A record is in the file before the kernel learns that its call is done. So a caller that reads the file's length after
//!    its call returned knows that the records of that call stand before this place in the log.
//! 2. A write that failed leaves a mark, and before it, as writes like others, those of its sectors that the device took.

use ashlar_base::bytes::{Cursor, Malformed};
use std::fs::File;
use std::io::{self, Write};
use std::ops::Range;

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Bytes were written; they lie in the log there.
    Write {
        /// Where to.
        offset: u64,
        /// Where the log has them.
        data: Range<usize>,
    },
    /// All writes before are on the device.
    Flush,
    /// A write was answered with an error.
    FailedWrite,
    /// A flush was answered with an error, and did nothing.
    FailedFlush,
}

const WRITE: u32 = 1;
const FLUSH: u32 = 2;
const FAILED_WRITE: u32 = 3;
const FAILED_FLUSH: u32 = 4;

/// A log under construction.
pub(super) struct Recorder {
    file: File,
}

impl Recorder {
    pub(super) fn new(file: File) -> Recorder {
        Recorder { file }
    }

    pub(super) fn write(&mut self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.append(WRITE, offset, data)
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.append(FLUSH, 0, &[])
    }

    pub(super) fn failed_write(&mut self, offset: u64) -> io::Result<()> {
        self.append(FAILED_WRITE, offset, &[])
    }

    pub(super) fn failed_flush(&mut self) -> io::Result<()> {
        self.append(FAILED_FLUSH, 0, &[])
    }

    fn append(&mut self, kind: u32, offset: u64, data: &[u8]) -> io::Result<()> {
        let len = u32::try_from(data.len()).map_err(|_| io::Error::other("a write over 4 GiB"))?;
        let mut record = Vec::with_capacity(16 + data.len());
        record.extend(kind.to_le_bytes());
        record.extend(len.to_le_bytes());
        record.extend(offset.to_le_bytes());
        record.extend(data);
        self.file.write_all(&record)
    }
}

/// A log that is over.
#[derive(Debug)]
pub struct Log {
    bytes: Vec<u8>,
    /// With the log's length when it had happened.
    events: Vec<(u64, Event)>,
}

impl Log {
    /// Reads a log's bytes; a record that is not whole at the end was never answered, and is left out.
    ///
    /// # Errors
    /// A record of an unknown kind, or one that reaches past the device's end.
    pub fn parse(bytes: Vec<u8>, device_bytes: u64) -> Result<Log, Malformed> {
        let mut events = vec![];
        let mut c = Cursor::new(&bytes);
        while let Some(event) = next(&mut c, device_bytes)? {
            events.push((c.position() as u64, event));
        }
        Ok(Log { bytes, events })
    }

    /// How many events there are.
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// True when nothing happened.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// The events, in their order.
    pub fn events(&self) -> impl DoubleEndedIterator<Item = &Event> + ExactSizeIterator {
        self.events.iter().map(|(_, event)| event)
    }

    /// The log's length when it had `cut` events: what was known at a shorter length or this one, was known at the cut.
    pub fn position(&self, cut: usize) -> u64 {
        cut.checked_sub(1).and_then(|last| self.events.get(last)).map_or(0, |(at, _)| *at)
    }

    /// The bytes of a write.
    pub fn data(&self, data: &Range<usize>) -> &[u8] {
        self.bytes.get(data.clone()).unwrap_or_default()
    }
}

fn next(c: &mut Cursor<'_>, device_bytes: u64) -> Result<Option<Event>, Malformed> {
    let mut ahead = *c;
    let head = (ahead.fixed32("kind"), ahead.fixed32("len"), ahead.fixed64("offset"));
    let (Ok(kind), Ok(len), Ok(offset)) = head else { return Ok(None) };
    let event = match kind {
        WRITE => {
            let len = usize::try_from(len).map_err(|_| c.malformed("len", "too large"))?;
            if offset.checked_add(len as u64).is_none_or(|end| end > device_bytes) {
                return Err(c.malformed("offset", "a write behind the end of the device"));
            }
            let start = ahead.position();
            if ahead.bytes(len, "data").is_err() {
                return Ok(None);
            }
            Event::Write { offset, data: start..start + len }
        }
        FLUSH => Event::Flush,
        FAILED_WRITE => Event::FailedWrite,
        FAILED_FLUSH => Event::FailedFlush,
        _ => return Err(c.malformed("kind", "no such kind of record")),
    };
    *c = ahead;
    Ok(Some(event))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Seek};

    #[test]
    fn what_was_recorded_is_read_again_up_to_a_torn_end() {
        let mut file = tempfile::tempfile().unwrap();
        let mut recorder = Recorder::new(file.try_clone().unwrap());
        recorder.write(512, b"bytes").unwrap();
        recorder.flush().unwrap();
        recorder.failed_write(0).unwrap();
        recorder.failed_flush().unwrap();
        recorder.write(0, b"torn").unwrap();
        let mut bytes = vec![];
        file.rewind().unwrap();
        file.read_to_end(&mut bytes).unwrap();
        let whole = Log::parse(bytes.clone(), 1024).unwrap();
        assert_eq!((whole.len(), whole.position(0), whole.position(5)), (5, 0, bytes.len() as u64));
        bytes.pop();
        let log = Log::parse(bytes.clone(), 1024).unwrap();
        let events: Vec<Event> = log.events().cloned().collect();
        let [Event::Write { offset: 512, data }, rest @ ..] = &events[..] else { panic!("{events:?}") };
        assert_eq!((log.data(data), log.position(1)), (&b"bytes"[..], 21));
        assert_eq!(rest, [Event::Flush, Event::FailedWrite, Event::FailedFlush]);
        assert!(Log::parse(bytes.clone(), 516).is_err(), "behind the end");
        bytes[0] = 9;
        assert!(Log::parse(bytes, 1024).is_err(), "no such kind");
    }
}
