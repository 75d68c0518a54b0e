//! An engine in C or C++ behind the shim that `cargo xtask peers` compiled around it (`shims/shim.h`).
//!
//! 1. Every pointer came from the library behind `f` and is given back once, in `Drop`, the database last.
//! 2. Readers and cursors borrow the database, so they are closed before it.
//! 3. Bytes of a get are used before the reader's next call, bytes of a cursor before its next move.

mod client;
mod functions;

use crate::engine::EngineName;
use crate::peer::{Cursor, Entries, Lent, NoWriter, Peer, Read, Result, Written};
use crate::settings::{Class, Settings};
use client::Handle;
use functions::{Entry, Functions, Opaque};
use std::ffi::{CString, c_int};
use std::path::Path;
use std::ptr::null;

/// An open database.
pub struct Shim {
    f: Functions,
    db: Opaque,
}

/// A key behind every key that the driver writes.
const LAST: [u8; 64] = [0xff; 64];

const NOTHING: Entry = Entry { key: null(), key_len: 0, value: null(), value_len: 0 };

impl Shim {
    /// An answer of a shim: -1 is a failure.
    #[inline]
    fn checked(&self, answer: c_int) -> Result<c_int> {
        if answer < 0 { Err(self.f.failure()) } else { Ok(answer) }
    }
}

/// The settings in the shim's form.
fn settings(engine: EngineName, s: &Settings) -> Result<functions::Settings> {
    let codec = match s.codec.as_str() {
        "none" => 0,
        "snappy" | "lz4" => 1,
        other => {
            return Err(format!(
                "not offered: codec {other}; engines behind a shim have none and a light one"
            ));
        }
    };
    Ok(functions::Settings {
        cache: s.cache_bytes,
        write_buffer: s.write_buffer_bytes,
        block: s.block_bytes,
        data: s.data_bytes,
        write_buffers: s.write_buffers,
        filter_bits: s.filter_bits,
        codec,
        sync: s.sync.into(),
        no_log: s.no_log.into(),
        own: (s.class == Class::Own).into(),
        variant: engine.variant(),
        clients: s.clients,
    })
}

impl crate::operations::Operations for Shim {
    type Transactions<'a> = NoWriter;
}

impl Peer for Shim {
    type Cursor<'a> = Walk<'a>;
    type Reader<'a> = Getter<'a>;
    type Writer<'a> = NoWriter;
    type Client<'a> = Handle<'a>;

    fn open(engine: EngineName, dir: &Path, s: &Settings, library: Option<&str>) -> Result<Self> {
        let f = Functions::load(Path::new(library.ok_or("no path of the engine's shim")?))?;
        std::fs::create_dir_all(dir).map_err(|e| format!("{}: {e}", dir.display()))?;
        let path = CString::new(dir.as_os_str().as_encoded_bytes()).map_err(|e| e.to_string())?;
        let settings = settings(engine, s)?;
        // SAFETY: the path is NUL-terminated; both are only read during the call.
        let db = unsafe { (f.open)(path.as_ptr(), &raw const settings) };
        if db.is_null() { Err(f.failure()) } else { Ok(Shim { f, db }) }
    }

    fn version(&self) -> String {
        // SAFETY: takes nothing; a database was opened, which wrote the text.
        let text = unsafe { (self.f.about)() };
        self.f.text(text)
    }

    #[inline]
    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        // SAFETY: the database is live; pointers go with their lengths and are only read during the call.
        let done = unsafe { (self.f.put)(self.db, key.as_ptr(), key.len(), value.as_ptr(), value.len()) };
        self.checked(done).map(|_| ())
    }

    fn put_all(&self, entries: &Entries) -> Result<()> {
        let (bytes, [key, value], count) = (entries.bytes(), entries.lengths(), entries.len());
        // SAFETY: the database is live; `bytes` holds `count` times `key` + `value` bytes (`Entries`), only read.
        let done = unsafe { (self.f.put_all)(self.db, bytes.as_ptr(), key, value, count) };
        self.checked(done).map(|_| ())
    }

    fn reader(&self) -> Result<Getter<'_>> {
        // SAFETY: the database is live; closed in the reader's `Drop`, before it.
        let reader = unsafe { (self.f.reader)(self.db) };
        if reader.is_null() { Err(self.f.failure()) } else { Ok(Getter { f: &self.f, reader }) }
    }

    fn expect_clients(&self, clients: u32) -> Result<()> {
        // SAFETY: the database is live.
        let done = unsafe { (self.f.clients)(self.db, clients) };
        self.checked(done).map(|_| ())
    }

    fn client(&self) -> Result<Handle<'_>> {
        Ok(Handle::new(self.reader()?))
    }

    fn cursor(&self) -> Result<Walk<'_>> {
        // SAFETY: the database is live; closed in the cursor's `Drop`, before it.
        let cursor = unsafe { (self.f.cursor)(self.db) };
        if cursor.is_null() { Err(self.f.failure()) } else { Ok(Walk { of: self, cursor, entry: None }) }
    }

    fn settle(&self) -> Result<()> {
        // SAFETY: the database is live.
        let done = unsafe { (self.f.settle)(self.db) };
        self.checked(done).map(|_| ())
    }

    fn written(&self) -> Written {
        let (mut flush, mut compaction) = (0_u64, 0_u64);
        // SAFETY: the database is live, the two numbers are ours.
        let known = unsafe { (self.f.written)(self.db, &raw mut flush, &raw mut compaction) };
        let of = |bytes| (known == 1).then_some(bytes);
        Written { flush: of(flush), compaction: of(compaction), stalled: None }
    }

    fn levels(&self) -> Vec<u64> {
        let mut levels = [0_u64; 16];
        // SAFETY: the database is live, the array has 16 places.
        let count = unsafe { (self.f.levels)(self.db, levels.as_mut_ptr(), 16) };
        levels[..usize::try_from(count).unwrap_or(0).min(16)].to_vec()
    }

    fn close(mut self) -> Result<()> {
        let db = std::mem::replace(&mut self.db, std::ptr::null_mut());
        // SAFETY: live until now, and `Drop` sees null; readers and cursors borrow it and are gone.
        let done = unsafe { (self.f.close)(db) };
        self.checked(done).map(|_| ())
    }
}

impl Drop for Shim {
    fn drop(&mut self) {
        if !self.db.is_null() {
            // SAFETY: live, closed once; readers and cursors borrow it and are gone.
            unsafe { (self.f.close)(self.db) };
        }
    }
}

/// A reader.
pub struct Getter<'a> {
    f: &'a Functions,
    reader: Opaque,
}

// SAFETY: a reader may move to another thread and is used by one at a time (`shim.h`, 3); an engine for which that is not so
// hands out one reader only and serialises its connection. Checked by: `peers::conformance`.
unsafe impl Send for Getter<'_> {}

impl Read for Getter<'_> {
    #[inline]
    fn get(&mut self, key: &[u8], see: impl FnOnce(&[u8])) -> Result<bool> {
        let (mut value, mut len) = (null(), 0_usize);
        // SAFETY: the reader is live; the key goes with its length, the other two are ours.
        let found =
            unsafe { (self.f.get)(self.reader, key.as_ptr(), key.len(), &raw mut value, &raw mut len) };
        match found {
            0 => return Ok(false),
            1 => {}
            _ => return Err(self.f.failure()),
        }
        // SAFETY: pointer and length were handed out together and stand until this reader's next call (invariant 3).
        see(unsafe { slice(value, len) });
        Ok(true)
    }
}

impl Drop for Getter<'_> {
    fn drop(&mut self) {
        // SAFETY: live, closed once, before the database that it borrows.
        unsafe { (self.f.reader_close)(self.reader) };
    }
}

/// A cursor.
pub struct Walk<'a> {
    of: &'a Shim,
    cursor: Opaque,
    entry: Option<Entry>,
}

impl Walk<'_> {
    #[inline]
    fn moved(&mut self, answer: c_int, entry: Entry) -> Result<()> {
        self.entry = None;
        self.entry = (self.of.checked(answer)? == 1).then_some(entry);
        Ok(())
    }
}

impl Walk<'_> {
    /// The current entry; `None` off the end.
    #[inline]
    fn entry(&self) -> Option<Lent<'_>> {
        let entry = self.entry.as_ref()?;
        // SAFETY: pointer and length were handed out together and stand until the next move, which needs `&mut self`.
        let key = unsafe { slice(entry.key, entry.key_len) };
        // SAFETY: as for the key.
        let value = unsafe { slice(entry.value, entry.value_len) };
        Some((key, value))
    }
}

impl Cursor for Walk<'_> {
    fn first(&mut self) -> Result<Option<Lent<'_>>> {
        let mut entry = NOTHING;
        // SAFETY: the cursor is live, the entry is ours.
        let answer = unsafe { (self.of.f.first)(self.cursor, &raw mut entry) };
        self.moved(answer, entry)?;
        Ok(self.entry())
    }

    #[inline]
    fn seek(&mut self, key: &[u8]) -> Result<Option<Lent<'_>>> {
        let mut entry = NOTHING;
        // SAFETY: the cursor is live, the key goes with its length, the entry is ours.
        let answer = unsafe { (self.of.f.seek)(self.cursor, key.as_ptr(), key.len(), &raw mut entry) };
        self.moved(answer, entry)?;
        Ok(self.entry())
    }

    #[inline]
    fn next(&mut self) -> Result<Option<Lent<'_>>> {
        let mut entry = NOTHING;
        // SAFETY: the cursor is live and on an entry: the driver moves only after `entry` said so.
        let answer = unsafe { (self.of.f.next)(self.cursor, &raw mut entry) };
        self.moved(answer, entry)?;
        Ok(self.entry())
    }

    fn last(&mut self) -> Result<Option<Lent<'_>>> {
        let mut entry = NOTHING;
        // SAFETY: the cursor is live, the key goes with its length, the entry is ours.
        let answer =
            unsafe { (self.of.f.seek_before)(self.cursor, LAST.as_ptr(), LAST.len(), &raw mut entry) };
        self.moved(answer, entry)?;
        Ok(self.entry())
    }

    fn prev(&mut self) -> Result<Option<Lent<'_>>> {
        let mut entry = NOTHING;
        // SAFETY: the cursor is live and on an entry: the driver moves only after `entry` said so.
        let answer = unsafe { (self.of.f.prev)(self.cursor, &raw mut entry) };
        self.moved(answer, entry)?;
        Ok(self.entry())
    }

    fn check(&self) -> Result<()> {
        Ok(())
    }
}

impl Drop for Walk<'_> {
    fn drop(&mut self) {
        // SAFETY: live, closed once, before the database that it borrows.
        unsafe { (self.of.f.cursor_close)(self.cursor) };
    }
}

/// Lent bytes; an empty value may come as null.
///
/// # Safety
/// A pointer that is not null has `len` bytes behind it, for as long as the slice is used.
unsafe fn slice<'a>(at: *const u8, len: usize) -> &'a [u8] {
    if at.is_null() || len == 0 {
        return &[];
    }
    // SAFETY: what the caller vouches for.
    unsafe { std::slice::from_raw_parts(at, len) }
}
