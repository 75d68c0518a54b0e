//! LevelDB with the same protocol: the commands that it has, on its one family, `default`.
//!
//! ```text
//! open create|existing 0xPATH [NAME=VALUE;…]        names: those of SETTINGS
//! close | families | bulk put|delete … | put … | delete … | batch … | compact default | get … | dump default | rdump default
//! ```
//! Every pointer came from the library that `functions` keeps loaded, and is given back once, in `Drop`, the database before
//! its options. Nothing is shared between threads. The library stays loaded to the end of the process: LevelDB's own thread
//! runs in it.
//!
//! Source: LevelDB `include/leveldb/c.h`.

use crate::capi::{ErrorOut, Opaque, checked, copy};
use ashlar_testkit::ops::Bulk;
use ashlar_testkit::text::{from_hex, to_hex};
use ashlar_testkit::{Change, KeyValue, Op};
use libloading::os::unix::Library;
use std::ffi::{CString, c_char, c_int, c_uchar, c_void};
use std::io::{self, Write};
use std::rc::Rc;

type Bytes = *const c_char;

functions! {
    /// LevelDB's functions.
    Functions {}
    options_create = b"leveldb_options_create\0": fn() -> Opaque;
    options_destroy = b"leveldb_options_destroy\0": fn(Opaque);
    set_create = b"leveldb_options_set_create_if_missing\0": fn(Opaque, c_uchar);
    set_paranoid = b"leveldb_options_set_paranoid_checks\0": fn(Opaque, c_uchar);
    set_write_buffer = b"leveldb_options_set_write_buffer_size\0": fn(Opaque, usize);
    set_open_files = b"leveldb_options_set_max_open_files\0": fn(Opaque, c_int);
    set_block_size = b"leveldb_options_set_block_size\0": fn(Opaque, usize);
    set_restart_interval = b"leveldb_options_set_block_restart_interval\0": fn(Opaque, c_int);
    set_file_size = b"leveldb_options_set_max_file_size\0": fn(Opaque, usize);
    set_compression = b"leveldb_options_set_compression\0": fn(Opaque, c_int);
    set_filter = b"leveldb_options_set_filter_policy\0": fn(Opaque, Opaque);
    filter_create = b"leveldb_filterpolicy_create_bloom\0": fn(c_int) -> Opaque;
    filter_destroy = b"leveldb_filterpolicy_destroy\0": fn(Opaque);
    write_options_create = b"leveldb_writeoptions_create\0": fn() -> Opaque;
    write_options_set_sync = b"leveldb_writeoptions_set_sync\0": fn(Opaque, c_uchar);
    write_options_destroy = b"leveldb_writeoptions_destroy\0": fn(Opaque);
    read_options_create = b"leveldb_readoptions_create\0": fn() -> Opaque;
    read_options_set_verify = b"leveldb_readoptions_set_verify_checksums\0": fn(Opaque, c_uchar);
    read_options_destroy = b"leveldb_readoptions_destroy\0": fn(Opaque);
    open = b"leveldb_open\0": fn(Opaque, Bytes, ErrorOut) -> Opaque;
    close = b"leveldb_close\0": fn(Opaque);
    batch_create = b"leveldb_writebatch_create\0": fn() -> Opaque;
    batch_put = b"leveldb_writebatch_put\0": fn(Opaque, Bytes, usize, Bytes, usize);
    batch_delete = b"leveldb_writebatch_delete\0": fn(Opaque, Bytes, usize);
    batch_destroy = b"leveldb_writebatch_destroy\0": fn(Opaque);
    write = b"leveldb_write\0": fn(Opaque, Opaque, Opaque, ErrorOut);
    get = b"leveldb_get\0": fn(Opaque, Opaque, Bytes, usize, *mut usize, ErrorOut) -> *mut c_char;
    compact = b"leveldb_compact_range\0": fn(Opaque, Bytes, usize, Bytes, usize);
    iter_create = b"leveldb_create_iterator\0": fn(Opaque, Opaque) -> Opaque;
    iter_first = b"leveldb_iter_seek_to_first\0": fn(Opaque);
    iter_last = b"leveldb_iter_seek_to_last\0": fn(Opaque);
    iter_valid = b"leveldb_iter_valid\0": fn(Opaque) -> c_uchar;
    iter_next = b"leveldb_iter_next\0": fn(Opaque);
    iter_prev = b"leveldb_iter_prev\0": fn(Opaque);
    iter_key = b"leveldb_iter_key\0": fn(Opaque, *mut usize) -> Bytes;
    iter_value = b"leveldb_iter_value\0": fn(Opaque, *mut usize) -> Bytes;
    iter_error = b"leveldb_iter_get_error\0": fn(Opaque, ErrorOut);
    iter_destroy = b"leveldb_iter_destroy\0": fn(Opaque);
    free = b"leveldb_free\0": fn(*mut c_void);
}

/// Options, one database, and what is read and written with.
struct Database {
    functions: Rc<Functions>,
    db: Opaque,
    options: Opaque,
    filter: Opaque,
    plain: Opaque,
    synced: Opaque,
    read: Opaque,
}

/// The state between two lines.
pub struct Session {
    functions: Rc<Functions>,
    database: Option<Database>,
}

/// Whether a library is LevelDB.
pub fn is_leveldb(library: &Library) -> bool {
    // SAFETY: the symbol is looked up and not called.
    unsafe { library.get::<*const c_void>(b"leveldb_open\0") }.is_ok()
}

impl Session {
    /// Nothing open yet.
    ///
    /// # Errors
    /// The library lacks a function.
    pub fn new(library: Library) -> Result<Session, String> {
        Ok(Session { functions: Rc::new(Functions::look_up(library)?), database: None })
    }

    /// Runs the command of one line. Returns the word after `ok`.
    ///
    /// # Errors
    /// LevelDB's words, or what of the line is not understood.
    pub fn answer(&mut self, line: &str, out: &mut impl Write) -> Result<String, String> {
        let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
        let said = |e: io::Error| e.to_string();
        match verb {
            "open" => {
                let mut words = rest.splitn(3, ' ');
                let create = words.next() == Some("create");
                let path = words.next().and_then(from_hex).ok_or("the path is not hex")?;
                let settings = words.next().unwrap_or("");
                self.database = Some(Database::open(&self.functions, path, create, settings)?);
            }
            "close" => drop(self.database.take().ok_or("nothing is open")?),
            "families" => {
                self.database()?;
                writeln!(out, "= default").map_err(said)?;
            }
            "bulk" => {
                let batches = line.parse::<Bulk>()?.batches().ok_or("LevelDB does not do this")?;
                batches.iter().try_for_each(|batch| self.database()?.write(batch, false))?;
            }
            "dump" | "rdump" => {
                let (mut entries, mut written) = (0_u64, Ok(()));
                self.database()?.scan(verb == "rdump", |(key, value)| {
                    written = std::mem::replace(&mut written, Ok(()))
                        .and_then(|()| writeln!(out, "= {} {}", to_hex(&key), to_hex(&value)));
                    entries += 1;
                })?;
                written.map_err(said)?;
                return Ok(entries.to_string());
            }
            _ => return self.operate(&line.parse()?),
        }
        Ok(String::new())
    }

    fn database(&self) -> Result<&Database, String> {
        self.database.as_ref().ok_or_else(|| "nothing is open".to_owned())
    }

    fn operate(&self, op: &Op) -> Result<String, String> {
        let database = self.database()?;
        match op {
            Op::Write { changes, sync } => database.write(changes, *sync)?,
            Op::Compact { .. } => database.compact(),
            Op::Get { key, at: None, .. } => {
                return Ok(database.get(key)?.map_or("none".to_owned(), |value| to_hex(&value)));
            }
            other => return Err(format!("LevelDB does not do this: {other}")),
        }
        Ok(String::new())
    }
}

impl Database {
    fn open(f: &Rc<Functions>, path: Vec<u8>, create: bool, settings: &str) -> Result<Database, String> {
        let functions = Rc::clone(f);
        // SAFETY: constructors without arguments; each object is destroyed once, in `Drop`. The same holds below.
        let options = unsafe { (f.options_create)() };
        // SAFETY: as above.
        let plain = unsafe { (f.write_options_create)() };
        // SAFETY: as above.
        let synced = unsafe { (f.write_options_create)() };
        // SAFETY: as above.
        let read = unsafe { (f.read_options_create)() };
        let nothing = std::ptr::null_mut();
        let mut database = Database { functions, db: nothing, options, filter: nothing, plain, synced, read };
        let f = &database.functions;
        let switches = [
            (f.write_options_set_sync, synced),
            (f.read_options_set_verify, read),
            (f.set_paranoid, options),
        ];
        for (set, object) in switches {
            // SAFETY: the object is live, and of the kind that the function takes. So in the next call.
            unsafe { set(object, 1) };
        }
        // SAFETY: as above.
        unsafe { (f.set_create)(options, c_uchar::from(create)) };
        for setting in settings.split(';').filter(|setting| !setting.is_empty()) {
            let (name, value) =
                setting.split_once('=').ok_or_else(|| format!("not NAME=VALUE: {setting}"))?;
            database.set(name, value.parse().map_err(|_| format!("not a number: {setting}"))?)?;
        }
        let path = CString::new(path).map_err(|e| e.to_string())?;
        let f = &database.functions;
        // SAFETY: options are live, the path is NUL-terminated.
        database.db = checked(f.free, |e| unsafe { (f.open)(options, path.as_ptr(), e) })?;
        Ok(database)
    }

    fn set(&mut self, name: &str, value: u32) -> Result<(), String> {
        let f = &self.functions;
        let size = usize::try_from(value).map_err(|e| e.to_string())?;
        let number = c_int::try_from(value).map_err(|e| e.to_string())?;
        let sizes = [
            ("write_buffer_size", f.set_write_buffer),
            ("block_size", f.set_block_size),
            ("max_file_size", f.set_file_size),
        ];
        let numbers = [
            ("max_open_files", f.set_open_files),
            ("block_restart_interval", f.set_restart_interval),
            ("compression", f.set_compression),
        ];
        if let Some((_, set)) = sizes.iter().find(|(own, _)| *own == name) {
            // SAFETY: the options are live; so in the next case.
            unsafe { set(self.options, size) };
        } else if let Some((_, set)) = numbers.iter().find(|(own, _)| *own == name) {
            // SAFETY: as above.
            unsafe { set(self.options, number) };
        } else if name == "bloom_bits" && self.filter.is_null() {
            // SAFETY: a constructor; the policy is destroyed in `Drop`, after the database.
            self.filter = unsafe { (f.filter_create)(number) };
            // SAFETY: both are live.
            unsafe { (f.set_filter)(self.options, self.filter) };
        } else {
            return Err(format!("no such setting: {name}"));
        }
        Ok(())
    }

    fn write(&self, changes: &[Change], sync: bool) -> Result<(), String> {
        let f = &self.functions;
        // SAFETY: a constructor; destroyed below on the only way out.
        let batch = unsafe { (f.batch_create)() };
        let mut known = Ok(());
        for change in changes {
            let (key, len) = (change.key().as_ptr().cast(), change.key().len());
            match change {
                // SAFETY: the batch is live; pointers go with their lengths and are copied by the call. So in the next case.
                Change::Put { value, .. } => unsafe {
                    (f.batch_put)(batch, key, len, value.as_ptr().cast(), value.len());
                },
                // SAFETY: as above.
                Change::Delete { .. } => unsafe { (f.batch_delete)(batch, key, len) },
                _ => known = Err("LevelDB has puts and deletes only".to_owned()),
            }
        }
        let options = if sync { self.synced } else { self.plain };
        // SAFETY: database, options and batch are live.
        let done = known.and_then(|()| checked(f.free, |e| unsafe { (f.write)(self.db, options, batch, e) }));
        // SAFETY: made above, destroyed once.
        unsafe { (f.batch_destroy)(batch) };
        done
    }

    fn compact(&self) {
        let none = std::ptr::null();
        // SAFETY: the database is live; null bounds mean "all".
        unsafe { (self.functions.compact)(self.db, none, 0, none, 0) };
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, String> {
        let f = &self.functions;
        let mut len = 0_usize;
        let out = &raw mut len;
        // SAFETY: database and options are live; the key goes with its length; `out` points to a live integer.
        let value = checked(f.free, |e| unsafe {
            (f.get)(self.db, self.read, key.as_ptr().cast(), key.len(), out, e)
        })?;
        if value.is_null() {
            return Ok(None);
        }
        let found = copy(value, len);
        // SAFETY: a returned value is ours; freed once, by the allocator that made it.
        unsafe { (f.free)(value.cast()) };
        Ok(Some(found))
    }

    fn scan(&self, backwards: bool, mut each: impl FnMut(KeyValue)) -> Result<(), String> {
        let f = &self.functions;
        // SAFETY: database and options are live; the iterator is destroyed below.
        let iter = unsafe { (f.iter_create)(self.db, self.read) };
        let (start, step) = if backwards { (f.iter_last, f.iter_prev) } else { (f.iter_first, f.iter_next) };
        // SAFETY: the iterator is live.
        unsafe { start(iter) };
        // SAFETY: the iterator is live.
        while unsafe { (f.iter_valid)(iter) } != 0 {
            let mut len = 0_usize;
            // SAFETY: the iterator is on an entry; the length is a live integer. So for the value.
            let key = unsafe { (f.iter_key)(iter, &raw mut len) };
            let key = copy(key, len);
            // SAFETY: as above.
            let value = unsafe { (f.iter_value)(iter, &raw mut len) };
            each((key, copy(value, len)));
            // SAFETY: the iterator is on an entry.
            unsafe { step(iter) };
        }
        // SAFETY: the iterator is live.
        let done = checked(f.free, |e| unsafe { (f.iter_error)(iter, e) });
        // SAFETY: destroyed once.
        unsafe { (f.iter_destroy)(iter) };
        done
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let f = &self.functions;
        let ends = [
            (f.close, self.db),
            (f.options_destroy, self.options),
            (f.write_options_destroy, self.plain),
            (f.write_options_destroy, self.synced),
            (f.read_options_destroy, self.read),
            (f.filter_destroy, self.filter),
        ];
        for (end, object) in ends.into_iter().filter(|(_, object)| !object.is_null()) {
            // SAFETY: the object is live, of the kind that the function takes, and destroyed once; the database before its
            // options, the filter last.
            unsafe { end(object) };
        }
    }
}
