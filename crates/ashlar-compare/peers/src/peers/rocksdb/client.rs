//! RocksDB's handle of a client thread: pinned gets, iterators with bounds, and one write batch that is used again.

use super::RocksDb;
use super::functions::Opaque;
use super::operations::{self, is_conflict};
use super::threads::Getter;
use super::walk::Walk;
use crate::client::{Bounds, CONFLICT, Change, Changes, Client};
use crate::operations::Operations as _;
use crate::peer::{Cursor, Keys, Result};

/// A client.
pub struct Handle<'a> {
    of: &'a RocksDb,
    getter: Getter<'a>,
    batch: Opaque,
    /// The transactions, if their kind was set.
    transactions: Option<operations::Client<'a>>,
}

// SAFETY: the batch belongs to the client alone, which is moved to one thread; the database may be used by any thread. Checked
// by: `peers::conformance`.
unsafe impl Send for Handle<'_> {}

impl<'a> Handle<'a> {
    /// A client of `db`.
    pub fn new(db: &'a RocksDb) -> Handle<'a> {
        // SAFETY: a constructor; destroyed in `Drop`.
        let batch = unsafe { (db.f.batch_create)() };
        // No kind of transactions was set: the calls for them say so.
        let transactions = db.transactions().ok();
        Handle { of: db, getter: Getter::new(db), batch, transactions }
    }

    fn transactions(&mut self) -> Result<&mut operations::Client<'a>> {
        self.transactions.as_mut().ok_or_else(|| "no kind of transactions was set".to_owned())
    }
}

impl Client for Handle<'_> {
    #[inline]
    fn get(&mut self, key: &[u8], see: impl FnOnce(&[u8])) -> Result<bool> {
        self.getter.get_pinned(key, see)
    }

    fn multi_get(&mut self, keys: &Keys, see: impl FnMut(usize, &[u8])) -> Result<()> {
        self.getter.get_many(keys, see)
    }

    fn scan(&mut self, bounds: Bounds<'_>, mut see: impl FnMut(&[u8], &[u8]) -> bool) -> Result<()> {
        let f = &self.of.f;
        // SAFETY: a constructor; destroyed below, after the iterator that reads it.
        let read = unsafe { (f.read_options_create)() };
        // SAFETY: the options are live; they keep the pointer, whose bytes outlive them.
        unsafe { (f.read_options_set_lower)(read, bounds.from.as_ptr().cast(), bounds.from.len()) };
        // SAFETY: as above.
        unsafe { (f.read_options_set_upper)(read, bounds.to.as_ptr().cast(), bounds.to.len()) };
        let mut walk = Walk::over(self.of, read);
        let mut scanned = || -> Result<()> {
            let mut entry = if bounds.reverse { walk.last() } else { walk.seek(bounds.from) }?;
            while let Some((key, value)) = entry {
                if !see(key, value) {
                    break;
                }
                entry = if bounds.reverse { walk.prev() } else { walk.next() }?;
            }
            walk.check()
        };
        let done = scanned();
        drop(walk);
        // SAFETY: live, destroyed once.
        unsafe { (f.read_options_destroy)(read) };
        done
    }

    fn apply(&mut self, changes: &Changes) -> Result<()> {
        let f = &self.of.f;
        // SAFETY: the batch is live.
        unsafe { (f.batch_clear)(self.batch) };
        for change in changes.iter() {
            match change {
                Change::Put { key, value } => {
                    let (k, v) = (key.as_ptr().cast(), value.as_ptr().cast());
                    // SAFETY: the batch is live; pointers go with their lengths and are copied.
                    unsafe { (f.batch_put)(self.batch, k, key.len(), v, value.len()) };
                }
                // SAFETY: the batch is live; the key goes with its length and is copied.
                Change::Delete { key } => unsafe {
                    (f.batch_delete)(self.batch, key.as_ptr().cast(), key.len());
                },
            }
        }
        // SAFETY: database, options and batch are live.
        f.checked(|e| unsafe { (f.write)(self.of.db, self.of.write, self.batch, e) })
    }

    fn begin(&mut self) -> Result<()> {
        self.transactions()?.begin();
        Ok(())
    }

    fn get_for_update(&mut self, key: &[u8], see: impl FnOnce(&[u8])) -> Result<bool> {
        let found = self.transactions()?.get_for_update(key).map_err(conflict)?;
        Ok(found.map(see).is_some())
    }

    fn commit(&mut self, changes: &Changes) -> Result<()> {
        let transaction = self.transactions()?;
        for change in changes.iter() {
            match change {
                Change::Put { key, value } => transaction.put(key, value),
                Change::Delete { key } => transaction.delete(key),
            }
            .map_err(conflict)?;
        }
        transaction.commit().map_err(conflict)
    }

    fn rollback(&mut self) -> Result<()> {
        self.transactions()?.rollback()
    }
}

/// The message of an error, marked if the transaction can be tried again.
fn conflict(why: String) -> String {
    if is_conflict(&why) { format!("{CONFLICT}{why}") } else { why }
}

impl Drop for Handle<'_> {
    fn drop(&mut self) {
        // SAFETY: live, destroyed once, before the database that the client borrows.
        unsafe { (self.of.f.batch_destroy)(self.batch) };
    }
}
