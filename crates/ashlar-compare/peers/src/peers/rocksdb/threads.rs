//! The handles of RocksDB that threads use: a reader and a writer for each.

use super::RocksDb;
use super::functions::{Functions, Opaque, Slice};
use crate::peer::{Keys, Peer, Read, Result, Write};
use std::ffi::{c_char, c_uchar};
use std::ptr::null_mut;

/// A reader: one buffer that values are copied into, and the arrays of a call for many keys.
pub struct Getter<'a> {
    of: &'a Functions,
    db: Opaque,
    family: Opaque,
    read: Opaque,
    value: Vec<u8>,
    keys: Vec<Slice>,
    values: Vec<Opaque>,
    errors: Vec<*mut c_char>,
}

// SAFETY: RocksDB's handles of a database, of a family and of options may be used by any thread, also at once (`include/rocksdb/db.h`);
// both outlive the reader, which borrows from their owner. Checked by: `peers::conformance`.
unsafe impl Send for Getter<'_> {}

impl<'a> Getter<'a> {
    /// A reader of `db`.
    pub fn new(db: &'a RocksDb) -> Self {
        let value = vec![0; db.value_bytes];
        let (keys, values, errors) = (Vec::new(), Vec::new(), Vec::new());
        Getter { of: &db.f, db: db.db, family: db.family, read: db.read, value, keys, values, errors }
    }

    /// Calls `see` with a value that a call for many keys returned, and gives the value back. Null: there is no such key.
    fn seen(&self, value: Opaque, see: &mut impl FnMut(&[u8])) {
        if value.is_null() {
            return;
        }
        let mut len = 0_usize;
        // SAFETY: the value is live; the length is a live integer.
        let bytes = unsafe { (self.of.pinned_value)(value, &raw mut len) };
        // SAFETY: pointer and length were returned together and stand until the value is destroyed.
        see(unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), len) });
        // SAFETY: live, destroyed once.
        unsafe { (self.of.pinned_destroy)(value) };
    }
}

impl Read for Getter<'_> {
    #[inline]
    fn get(&mut self, key: &[u8], see: impl FnOnce(&[u8])) -> Result<bool> {
        let (f, k) = (self.of, key.as_ptr().cast());
        let (mut len, mut found) = (0_usize, 0 as c_uchar);
        let (out, room) = (self.value.as_mut_ptr().cast(), self.value.len());
        let (len_out, found_out) = (&raw mut len, &raw mut found);
        // SAFETY: database and options are live; the key goes with its length, the buffer with its room; the two out
        // pointers are live integers.
        let fits = f.checked(|e| unsafe {
            (f.get_into)(self.db, self.read, k, key.len(), out, room, len_out, found_out, e)
        })?;
        if found == 0 {
            return Ok(false);
        }
        match (fits, self.value.get(..len)) {
            (1, Some(value)) => see(value),
            _ => return Err(format!("a value of {len} bytes, where {room} were written")),
        }
        Ok(true)
    }

    fn multi_get(&mut self, keys: &Keys, mut see: impl FnMut(&[u8])) -> Result<u64> {
        let mut found = 0;
        self.get_many(keys, |_, value| {
            found += 1;
            see(value);
        })?;
        Ok(found)
    }
}

impl Getter<'_> {
    /// Gets a value of any length, which stays in the block cache while `see` looks at it.
    #[inline]
    pub fn get_pinned(&mut self, key: &[u8], see: impl FnOnce(&[u8])) -> Result<bool> {
        let (f, k) = (self.of, key.as_ptr().cast());
        // SAFETY: database, options and family are live; the key goes with its length and is only read during the call.
        let value =
            f.checked(|e| unsafe { (f.get_pinned)(self.db, self.read, self.family, k, key.len(), e) })?;
        let mut see = Some(see);
        self.seen(value, &mut |value| see.take().into_iter().for_each(|see| see(value)));
        Ok(!value.is_null())
    }

    /// Calls `see` with place and value of each key that exists. The batched form, with values that stay in the block cache:
    /// the fastest of the library.
    pub fn get_many(&mut self, keys: &Keys, mut see: impl FnMut(usize, &[u8])) -> Result<()> {
        self.keys.clear();
        self.keys.extend(keys.iter().map(|key| Slice { data: key.as_ptr().cast(), size: key.len() }));
        let count = self.keys.len();
        self.values.resize(count, null_mut());
        self.errors.resize(count, null_mut());
        let (slices, values, errors) =
            (self.keys.as_ptr(), self.values.as_mut_ptr(), self.errors.as_mut_ptr());
        // SAFETY: database, options and family are live; the three arrays have `count` places; the keys' bytes are only read
        // during the call.
        unsafe { (self.of.multi_get)(self.db, self.read, self.family, count, slices, values, errors, false) };
        for (place, &value) in self.values.iter().enumerate() {
            self.seen(value, &mut |bytes| see(place, bytes));
        }
        let failed = self.errors.iter_mut().filter(|error| !error.is_null());
        let failed: Vec<String> =
            failed.map(|error| self.of.take(std::mem::replace(error, null_mut()))).collect();
        failed.into_iter().next().map_or(Ok(()), Err)
    }
}

/// A writer.
pub struct Putter<'a>(pub &'a RocksDb);

// SAFETY: as for `Getter`; it is moved to a thread to put only. Checked by: `peers::conformance`.
unsafe impl Send for Putter<'_> {}

impl Write for Putter<'_> {
    #[inline]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        Peer::put(self.0, key, value)
    }
}
