//! RocksDB's transactions, scans of a prefix, SST files, checkpoints and backups.
//!
//! A transactional database is opened through its own call; all else then goes through the database below it. A transaction
//! object is used again by the next transaction of its thread, which saves allocations.

use super::RocksDb;
use super::functions::Opaque;
use crate::operations::{Append, Operations, Transact, is_removed, plus_one};
use crate::peer::Result;
use crate::settings::{Settings, Transactions};
use std::ffi::{CStr, CString, c_char, c_int, c_uchar, c_void};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::ptr::null_mut;

/// The beginnings of the errors after which a transaction is tried again: a conflict, a lock that came too late, and a
/// memtable that no longer reaches back.
const AGAIN: [&str; 3] = ["Resource busy", "Operation timed out", "Operation failed. Try again"];

/// Whether a transaction that failed with this message can be tried again.
pub fn is_conflict(why: &str) -> bool {
    AGAIN.iter().any(|head| why.starts_with(head))
}

/// The part of the option string that only these operations need.
pub fn option_string(s: &Settings) -> String {
    let mut text = String::new();
    if s.universal {
        text.push_str("compaction_style=kCompactionStyleUniversal;");
    }
    if s.prefix_bytes > 0 {
        // Writing to a String cannot fail.
        let _ = write!(text, "prefix_extractor=fixed:{};", s.prefix_bytes);
    }
    text
}

/// As `rocksdb_compactionfilter_create` wants it: not 0 removes the entry.
extern "C" fn filter(
    _: *mut c_void,
    _: c_int,
    key: *const c_char,
    key_len: usize,
    value: *const c_char,
    value_len: usize,
    _: *mut *mut c_char,
    _: *mut usize,
    _: *mut c_uchar,
) -> c_uchar {
    // SAFETY: the library passes a key with its length; it stands until the call returns. Checked by: the test
    // `operations`.
    let key = unsafe { std::slice::from_raw_parts(key.cast::<u8>(), key_len) };
    // SAFETY: as for the key.
    let value = unsafe { std::slice::from_raw_parts(value.cast::<u8>(), value_len) };
    c_uchar::from(is_removed(key, value))
}

extern "C" fn filter_name(_: *mut c_void) -> *const c_char {
    c"compare.Tenth".as_ptr()
}

extern "C" fn nothing_to_destroy(_: *mut c_void) {}

fn c_path(path: &Path) -> Result<CString> {
    CString::new(path.as_os_str().as_encoded_bytes()).map_err(|e| e.to_string())
}

impl RocksDb {
    /// Gives the options a compaction filter, which `Drop` destroys.
    pub fn set_filter(&mut self) {
        let f = &self.f;
        // SAFETY: a constructor; the functions have the declared types and no state.
        self.filter = unsafe { (f.filter_create)(null_mut(), nothing_to_destroy, filter, filter_name) };
        // SAFETY: both are live; the filter outlives the options' database.
        unsafe { (f.options_set_filter)(self.options, self.filter) };
    }

    /// Opens the database at `path` with transactions.
    pub fn open_transactional(&mut self, path: &CStr, kind: Transactions) -> Result<()> {
        let f = &self.f;
        match kind {
            Transactions::Pessimistic => {
                // SAFETY: a constructor; destroyed below.
                let options = unsafe { (f.txn_db_options_create)() };
                // SAFETY: the options are live, the path is NUL-terminated.
                let opened =
                    f.checked(|e| unsafe { (f.txn_db_open)(self.options, options, path.as_ptr(), e) });
                // SAFETY: destroyed once; the database has a copy.
                unsafe { (f.txn_db_options_destroy)(options) };
                self.transactional = opened?;
                // SAFETY: the database is live; the handle of its base is given back in `Drop`.
                self.db = unsafe { (f.txn_db_base)(self.transactional) };
            }
            Transactions::Optimistic => {
                // SAFETY: the options are live, the path is NUL-terminated.
                self.transactional =
                    f.checked(|e| unsafe { (f.optimistic_open)(self.options, path.as_ptr(), e) })?;
                // SAFETY: as above.
                self.db = unsafe { (f.optimistic_base)(self.transactional) };
            }
        }
        self.kind = Some(kind);
        Ok(())
    }

    /// Closes the database, however it was opened.
    pub fn close_all(&mut self) {
        let f = &self.f;
        let (base, whole) = match self.kind {
            None => {
                // SAFETY: live, closed once; cursors and clients borrow it and are gone.
                return unsafe { (f.close)(self.db) };
            }
            Some(Transactions::Pessimistic) => (f.txn_db_close_base, f.txn_db_close),
            Some(Transactions::Optimistic) => (f.optimistic_close_base, f.optimistic_close),
        };
        // SAFETY: live, given back once, before the database that it belongs to.
        unsafe { base(self.db) };
        // SAFETY: live, closed once; cursors and clients borrow it and are gone.
        unsafe { whole(self.transactional) };
    }

    /// Runs `work` with the backup engine of `dir`.
    fn with_backups(&self, dir: &Path, work: impl FnOnce(Opaque) -> Result<()>) -> Result<()> {
        let (f, path) = (&self.f, c_path(dir)?);
        // SAFETY: the options are live, the path is NUL-terminated.
        let engine = f.checked(|e| unsafe { (f.backup_open)(self.options, path.as_ptr(), e) })?;
        let done = work(engine);
        // SAFETY: live, closed once.
        unsafe { (f.backup_close)(engine) };
        done
    }
}

impl Operations for RocksDb {
    type Transactions<'a> = Client<'a>;

    fn transactions(&self) -> Result<Client<'_>> {
        let f = &self.f;
        let options = match self.kind.ok_or("no kind of transactions was set")? {
            // SAFETY: a constructor; destroyed in the client's `Drop`.
            Transactions::Pessimistic => unsafe { (f.txn_options_create)() },
            // SAFETY: as above.
            Transactions::Optimistic => unsafe { (f.optimistic_options_create)() },
        };
        Ok(Client { of: self, options, transaction: null_mut(), value: Vec::new() })
    }

    /// The iterator ends behind the prefix by itself: no bound is set for each scan.
    fn scan_prefix(&self, prefix: &[u8], mut see: impl FnMut(&[u8], &[u8])) -> Result<()> {
        let mut walk = super::walk::Walk::over(self, self.prefixed);
        let mut entry = crate::peer::Cursor::seek(&mut walk, prefix)?;
        while let Some((key, value)) = entry {
            see(key, value);
            entry = crate::peer::Cursor::next(&mut walk)?;
        }
        crate::peer::Cursor::check(&walk)
    }

    fn write_sst(&self, path: &Path, fill: &mut dyn FnMut(Append<'_>) -> Result<()>) -> Result<()> {
        let (f, path) = (&self.f, c_path(path)?);
        // SAFETY: a constructor; destroyed below.
        let env = unsafe { (f.env_options_create)() };
        // SAFETY: both are live and outlive the writer.
        let writer = unsafe { (f.sst_create)(env, self.options) };
        // SAFETY: the writer is live, the path is NUL-terminated.
        let opened = f.checked(|e| unsafe { (f.sst_open)(writer, path.as_ptr(), e) });
        let filled = opened.and_then(|()| {
            fill(&mut |key, value| {
                let (k, v) = (key.as_ptr().cast(), value.as_ptr().cast());
                // SAFETY: the writer is live; pointers go with their lengths and are only read during the call.
                f.checked(|e| unsafe { (f.sst_put)(writer, k, key.len(), v, value.len(), e) })
            })
        });
        // SAFETY: the writer is live.
        let done = filled.and_then(|()| f.checked(|e| unsafe { (f.sst_finish)(writer, e) }));
        // SAFETY: live, destroyed once.
        unsafe { (f.sst_destroy)(writer) };
        // SAFETY: live, destroyed once, after the writer that used it.
        unsafe { (f.env_options_destroy)(env) };
        done
    }

    fn ingest(&self, files: &[PathBuf], verified: bool) -> Result<()> {
        let f = &self.f;
        let paths = files.iter().map(|file| c_path(file)).collect::<Result<Vec<_>>>()?;
        let names: Vec<*const c_char> = paths.iter().map(|name| name.as_ptr()).collect();
        // SAFETY: a constructor; destroyed below.
        let options = unsafe { (f.ingest_options_create)() };
        // SAFETY: the options are live.
        unsafe { (f.ingest_options_set_move)(options, 1) };
        // SAFETY: as above.
        unsafe { (f.ingest_options_set_verify)(options, verified.into()) };
        // SAFETY: database and options are live; the names are NUL-terminated and as many as said.
        let done = f.checked(|e| unsafe { (f.ingest)(self.db, names.as_ptr(), names.len(), options, e) });
        // SAFETY: live, destroyed once.
        unsafe { (f.ingest_options_destroy)(options) };
        done
    }

    fn checkpoint(&self, into: &Path) -> Result<()> {
        let (f, into) = (&self.f, c_path(into)?);
        // SAFETY: the database is live.
        let object = f.checked(|e| unsafe { (f.checkpoint_object)(self.db, e) })?;
        // SAFETY: the object is live, the path is NUL-terminated. 0: memtables are flushed.
        let done = f.checked(|e| unsafe { (f.checkpoint_create)(object, into.as_ptr(), 0, e) });
        // SAFETY: live, destroyed once.
        unsafe { (f.checkpoint_destroy)(object) };
        done
    }

    fn backup(&self, into: &Path) -> Result<()> {
        let f = &self.f;
        // SAFETY: engine and database are live.
        self.with_backups(into, |engine| f.checked(|e| unsafe { (f.backup_create)(engine, self.db, e) }))
    }

    fn restore(&self, from: &Path, into: &Path) -> Result<()> {
        let (f, into) = (&self.f, c_path(into)?);
        self.with_backups(from, |engine| {
            // SAFETY: a constructor; destroyed below.
            let options = unsafe { (f.restore_options_create)() };
            let path = into.as_ptr();
            // SAFETY: engine and options are live, the path is NUL-terminated; the WAL goes to the same place.
            let done = f.checked(|e| unsafe { (f.restore_latest)(engine, path, path, options, e) });
            // SAFETY: live, destroyed once.
            unsafe { (f.restore_options_destroy)(options) };
            done
        })
    }
}

/// The transactions of a thread.
pub struct Client<'a> {
    of: &'a RocksDb,
    options: Opaque,
    /// The object that the next transaction uses again; null before the first one.
    transaction: Opaque,
    value: Vec<u8>,
}

// SAFETY: the objects belong to the client alone, which is moved to one thread; the database may be used by any thread. Checked
// by: the test `operations`.
unsafe impl Send for Client<'_> {}

impl Client<'_> {
    /// Begins a transaction.
    pub(super) fn begin(&mut self) {
        let (f, of) = (&self.of.f, self.of);
        let begin = match of.kind {
            Some(Transactions::Optimistic) => f.optimistic_begin,
            _ => f.txn_begin,
        };
        // SAFETY: database and options are live; the object before, if there is one, is done and ours.
        self.transaction = unsafe { begin(of.transactional, of.write, self.options, self.transaction) };
    }

    /// Reads the value of `key` for update. `None`: there is no such key.
    pub(super) fn get_for_update(&mut self, key: &[u8]) -> Result<Option<&[u8]>> {
        let (f, k) = (&self.of.f, key.as_ptr().cast());
        // SAFETY: transaction and options are live; the key goes with its length. 1: exclusively.
        let pinned = f.checked(|e| unsafe {
            (f.txn_get_for_update)(self.transaction, self.of.read, k, key.len(), 1, e)
        })?;
        self.value.clear();
        if pinned.is_null() {
            return Ok(None);
        }
        let mut len = 0_usize;
        // SAFETY: the value is live; the length is a live integer.
        let bytes = unsafe { (f.pinned_value)(pinned, &raw mut len) };
        // SAFETY: pointer and length were returned together and stand until the value is destroyed.
        self.value.extend_from_slice(unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), len) });
        // SAFETY: live, destroyed once.
        unsafe { (f.pinned_destroy)(pinned) };
        Ok(Some(&self.value))
    }

    /// Puts a value in the transaction.
    pub(super) fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        let (f, k, v) = (&self.of.f, key.as_ptr().cast(), value.as_ptr().cast());
        // SAFETY: the transaction is live; pointers go with their lengths and are copied.
        f.checked(|e| unsafe { (f.txn_put)(self.transaction, k, key.len(), v, value.len(), e) })
    }

    /// Deletes a key in the transaction.
    pub(super) fn delete(&self, key: &[u8]) -> Result<()> {
        let (f, k) = (&self.of.f, key.as_ptr().cast());
        // SAFETY: the transaction is live; the key goes with its length and is copied.
        f.checked(|e| unsafe { (f.txn_delete)(self.transaction, k, key.len(), e) })
    }

    /// Commits the transaction.
    pub(super) fn commit(&self) -> Result<()> {
        let f = &self.of.f;
        // SAFETY: the transaction is live.
        f.checked(|e| unsafe { (f.txn_commit)(self.transaction, e) })
    }

    /// Ends the transaction without its changes.
    pub(super) fn rollback(&self) -> Result<()> {
        let f = &self.of.f;
        // SAFETY: the transaction is live.
        f.checked(|e| unsafe { (f.txn_rollback)(self.transaction, e) })
    }

    fn tried(&mut self, keys: [&[u8]; 2]) -> Result<()> {
        self.begin();
        for key in keys {
            self.get_for_update(key)?;
            plus_one(&mut self.value);
            self.put(key, &self.value)?;
        }
        self.commit()
    }
}

impl Transact for Client<'_> {
    fn increment(&mut self, keys: [&[u8]; 2]) -> Result<bool> {
        let Err(why) = self.tried(keys) else { return Ok(true) };
        self.rollback()?;
        if is_conflict(&why) { Ok(false) } else { Err(why) }
    }
}

impl Drop for Client<'_> {
    fn drop(&mut self) {
        let f = &self.of.f;
        if !self.transaction.is_null() {
            // SAFETY: live, destroyed once, before the database that the client borrows.
            unsafe { (f.txn_destroy)(self.transaction) };
        }
        let destroy = match self.of.kind {
            Some(Transactions::Optimistic) => f.optimistic_options_destroy,
            _ => f.txn_options_destroy,
        };
        // SAFETY: live, destroyed once.
        unsafe { destroy(self.options) };
    }
}
