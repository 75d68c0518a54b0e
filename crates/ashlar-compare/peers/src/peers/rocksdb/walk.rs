//! RocksDB's iterator as a cursor.

use super::RocksDb;
use super::functions::Opaque;
use crate::peer::{Cursor, Lent, Result};

/// A cursor.
pub struct Walk<'a> {
    of: &'a RocksDb,
    iter: Opaque,
}

impl<'a> Walk<'a> {
    /// A cursor over all of `db`.
    pub fn new(db: &'a RocksDb) -> Self {
        Walk::over(db, db.read)
    }

    /// A cursor with the options `read` of `db`.
    pub fn over(db: &'a RocksDb, read: Opaque) -> Self {
        // SAFETY: database and options are live; destroyed in the cursor's `Drop`, before them.
        let iter = unsafe { (db.f.iter_create)(db.db, read) };
        Walk { of: db, iter }
    }
}

impl Walk<'_> {
    /// The current entry; `None` off the end.
    #[inline]
    fn entry(&self) -> Option<Lent<'_>> {
        let f = &self.of.f;
        // SAFETY: the iterator is live.
        if unsafe { (f.iter_valid)(self.iter) } == 0 {
            return None;
        }
        let mut len = 0_usize;
        // SAFETY: the iterator is on an entry; the length is a live integer.
        let key = unsafe { (f.iter_key)(self.iter, &raw mut len) };
        // SAFETY: pointer and length were returned together and stand until the next move, which needs `&mut self`.
        let key = unsafe { std::slice::from_raw_parts(key.cast::<u8>(), len) };
        // SAFETY: as for the key.
        let value = unsafe { (f.iter_value)(self.iter, &raw mut len) };
        // SAFETY: as for the key.
        let value = unsafe { std::slice::from_raw_parts(value.cast::<u8>(), len) };
        Some((key, value))
    }
}

impl Cursor for Walk<'_> {
    fn first(&mut self) -> Result<Option<Lent<'_>>> {
        // SAFETY: the iterator is live.
        unsafe { (self.of.f.iter_first)(self.iter) };
        Ok(self.entry())
    }

    #[inline]
    fn seek(&mut self, key: &[u8]) -> Result<Option<Lent<'_>>> {
        // SAFETY: the iterator is live; the key goes with its length and is copied.
        unsafe { (self.of.f.iter_seek)(self.iter, key.as_ptr().cast(), key.len()) };
        Ok(self.entry())
    }

    #[inline]
    fn next(&mut self) -> Result<Option<Lent<'_>>> {
        // SAFETY: the iterator is on an entry: the driver moves only after `entry` said so.
        unsafe { (self.of.f.iter_next)(self.iter) };
        Ok(self.entry())
    }

    fn last(&mut self) -> Result<Option<Lent<'_>>> {
        // SAFETY: the iterator is live.
        unsafe { (self.of.f.iter_last)(self.iter) };
        Ok(self.entry())
    }

    #[inline]
    fn prev(&mut self) -> Result<Option<Lent<'_>>> {
        // SAFETY: the iterator is on an entry: the driver moves only after `entry` said so.
        unsafe { (self.of.f.iter_prev)(self.iter) };
        Ok(self.entry())
    }

    fn check(&self) -> Result<()> {
        let f = &self.of.f;
        // SAFETY: the iterator is live.
        f.checked(|e| unsafe { (f.iter_error)(self.iter, e) })
    }
}

impl Drop for Walk<'_> {
    fn drop(&mut self) {
        // SAFETY: live, destroyed once, before the database it borrows.
        unsafe { (self.of.f.iter_destroy)(self.iter) };
    }
}
