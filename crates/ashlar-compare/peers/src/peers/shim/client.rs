//! The handle of a client thread on an engine behind a shim: its reader, a batch, and a cursor that rests between scans.
//!
//! 1. The cursor belongs to the reader's session and is closed before it.
//! 2. A resting cursor has no snapshot, so it keeps no old version of the data alive, and the next scan sees every write before.

use super::functions::{self, Entry, Opaque};
use super::{Getter, NOTHING, slice};
use crate::client::{Bounds, Change, Changes, Client};
use crate::peer::{Read, Result};
use std::ffi::c_int;
use std::ptr::{null, null_mut};

/// A client.
pub struct Handle<'a> {
    reader: Getter<'a>,
    /// Null before the first scan, and after a scan of an engine whose cursors do not rest.
    cursor: Opaque,
}

// SAFETY: reader and cursor belong to the client alone, which is moved to one thread and used by it only. Checked by:
// `peers::conformance`.
unsafe impl Send for Handle<'_> {}

impl<'a> Handle<'a> {
    /// A client that reads through `reader`.
    pub fn new(reader: Getter<'a>) -> Handle<'a> {
        Handle { reader, cursor: null_mut() }
    }

    /// An answer of a move: an entry, none, or a failure.
    fn moved(&self, answer: c_int, entry: Entry) -> Result<Option<Entry>> {
        match answer {
            0 => Ok(None),
            1 => Ok(Some(entry)),
            _ => Err(self.reader.f.failure()),
        }
    }

    /// The first entry of a scan; it may lie outside the bounds.
    fn begin(&mut self, bounds: Bounds<'_>) -> Result<Option<Entry>> {
        let f = self.reader.f;
        if self.cursor.is_null() {
            // SAFETY: the reader is live; the cursor is closed before it.
            self.cursor = unsafe { (f.reader_cursor)(self.reader.reader) };
        }
        if self.cursor.is_null() {
            return Err(f.failure());
        }
        let (seek, key) = if bounds.reverse { (f.seek_before, bounds.to) } else { (f.seek, bounds.from) };
        let mut entry = NOTHING;
        // SAFETY: the cursor is live, the key goes with its length, the entry is ours.
        let answer = unsafe { seek(self.cursor, key.as_ptr(), key.len(), &raw mut entry) };
        self.moved(answer, entry)
    }

    fn step(&mut self, reverse: bool) -> Result<Option<Entry>> {
        let f = self.reader.f;
        let step = if reverse { f.prev } else { f.next };
        let mut entry = NOTHING;
        // SAFETY: the cursor is live and on an entry: the loop steps only after an entry.
        let answer = unsafe { step(self.cursor, &raw mut entry) };
        self.moved(answer, entry)
    }

    fn scanned(&mut self, bounds: Bounds<'_>, mut see: impl FnMut(&[u8], &[u8]) -> bool) -> Result<()> {
        let mut at = self.begin(bounds)?;
        while let Some(entry) = at {
            // SAFETY: pointer and length were handed out together and stand until the next move, below.
            let key = unsafe { slice(entry.key, entry.key_len) };
            // SAFETY: as for the key.
            let value = unsafe { slice(entry.value, entry.value_len) };
            if !bounds.has(key) || !see(key, value) {
                break;
            }
            at = self.step(bounds.reverse)?;
        }
        Ok(())
    }
}

impl Client for Handle<'_> {
    #[inline]
    fn get(&mut self, key: &[u8], see: impl FnOnce(&[u8])) -> Result<bool> {
        self.reader.get(key, see)
    }

    fn scan(&mut self, bounds: Bounds<'_>, see: impl FnMut(&[u8], &[u8]) -> bool) -> Result<()> {
        let done = self.scanned(bounds, see);
        if !self.cursor.is_null() {
            // SAFETY: the cursor is live; what the call answers takes its place.
            self.cursor = unsafe { (self.reader.f.rest)(self.cursor) };
        }
        done
    }

    fn apply(&mut self, changes: &Changes) -> Result<()> {
        let all: Vec<functions::Change> = changes.iter().map(change).collect();
        // SAFETY: the reader is live; the changes point into `changes`, which is only read during the call.
        let done = unsafe { (self.reader.f.apply)(self.reader.reader, all.as_ptr(), all.len()) };
        if done < 0 { Err(self.reader.f.failure()) } else { Ok(()) }
    }
}

fn change(of: Change<'_>) -> functions::Change {
    match of {
        Change::Put { key, value } => functions::Change {
            key: key.as_ptr(),
            key_len: key.len(),
            value: value.as_ptr(),
            value_len: value.len(),
            deletes: 0,
        },
        Change::Delete { key } => functions::Change {
            key: key.as_ptr(),
            key_len: key.len(),
            value: null(),
            value_len: 0,
            deletes: 1,
        },
    }
}

impl Drop for Handle<'_> {
    fn drop(&mut self) {
        if !self.cursor.is_null() {
            // SAFETY: live, closed once, before the reader.
            unsafe { (self.reader.f.cursor_close)(self.cursor) };
        }
    }
}
