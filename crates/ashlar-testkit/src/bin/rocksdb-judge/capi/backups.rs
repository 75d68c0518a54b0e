//! Backups by RocksDB's engine.

use super::{Database, Functions, Opaque};
use std::ffi::CStr;
use std::rc::Rc;

/// An engine on a backup directory. Invariant: `engine` and `options` are live until the drop.
pub struct Backups {
    functions: Rc<Functions>,
    engine: Opaque,
    options: Opaque,
}

impl Backups {
    /// Opens the directory.
    pub fn open(functions: &Rc<Functions>, dir: &CStr) -> Result<Backups, String> {
        let f = functions;
        let open = f.extra.backups_open()?;
        // SAFETY: a constructor without arguments.
        let options = unsafe { (f.options_create)() };
        // SAFETY: the options are live, the path is NUL-terminated and only read.
        let opened = f.checked(|e| unsafe { open(options, dir.as_ptr(), e) });
        opened.map(|engine| Backups { functions: f.clone(), engine, options }).inspect_err(|_| {
            // SAFETY: made above, destroyed once.
            unsafe { (f.options_destroy)(options) };
        })
    }

    /// Adds a backup of the open database, after a flush.
    pub fn create(&self, database: &Database) -> Result<(), String> {
        let create = self.functions.extra.backups_create()?;
        // SAFETY: engine and database are live.
        self.functions.checked(|e| unsafe { create(self.engine, database.db, 1, e) })
    }

    /// Restores the newest backup.
    pub fn restore(&self, into: &CStr) -> Result<(), String> {
        let extra = &self.functions.extra;
        let (restore, make, destroy) =
            (extra.backups_restore()?, extra.restore_options()?, extra.restore_options_destroy()?);
        // SAFETY: a constructor without arguments.
        let options = unsafe { make() };
        let path = into.as_ptr();
        // SAFETY: engine and options are live, the path is NUL-terminated and only read.
        let done = self.functions.checked(|e| unsafe { restore(self.engine, path, path, options, e) });
        // SAFETY: made above, destroyed once.
        unsafe { destroy(options) };
        done
    }

    /// Checks that the files of a backup are there.
    pub fn verify(&self, id: u32) -> Result<(), String> {
        let verify = self.functions.extra.backups_verify()?;
        // SAFETY: the engine is live.
        self.functions.checked(|e| unsafe { verify(self.engine, id, e) })
    }

    /// Deletes all but the newest backups.
    pub fn purge(&self, keep: u32) -> Result<(), String> {
        let purge = self.functions.extra.backups_purge()?;
        // SAFETY: the engine is live.
        self.functions.checked(|e| unsafe { purge(self.engine, keep, e) })
    }

    /// Id, time, bytes and number of files of each backup.
    pub fn list(&self) -> Result<Vec<(u32, i64, u64, u32)>, String> {
        let extra = &self.functions.extra;
        let (id, time) = (extra.backups_info_id()?, extra.backups_info_time()?);
        let (bytes, files) = (extra.backups_info_bytes()?, extra.backups_info_files()?);
        let (count, destroy) = (extra.backups_info_count()?, extra.backups_info_destroy()?);
        // SAFETY: the engine is live.
        let info = unsafe { (extra.backups_info()?)(self.engine) };
        // SAFETY: the list is live.
        let count = unsafe { count(info) };
        let one = |at| {
            // SAFETY: the list is live, and the index below its length.
            let (id, time) = (unsafe { id(info, at) }, unsafe { time(info, at) });
            // SAFETY: as above.
            (id, time, unsafe { bytes(info, at) }, unsafe { files(info, at) })
        };
        let all = (0..count).map(one).collect();
        // SAFETY: made above, destroyed once.
        unsafe { destroy(info) };
        Ok(all)
    }
}

impl Drop for Backups {
    fn drop(&mut self) {
        if let Ok(close) = self.functions.extra.backups_close() {
            // SAFETY: live until now, closed once.
            unsafe { close(self.engine) };
        }
        // SAFETY: as above; the engine that used them is closed.
        unsafe { (self.functions.options_destroy)(self.options) };
    }
}
