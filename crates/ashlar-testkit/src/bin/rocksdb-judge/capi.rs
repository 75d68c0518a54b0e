//! The functions of RocksDB's C API that the judge calls, looked up by name in a shared object, and a database handle
//! with a safe surface over them.
//!
//! 1. Every pointer in [`Database`] came from the library that `functions` keeps loaded, and is given back once, in
//!    `Drop`, families before the database, the database before its options.
//! 2. A function's type is the one in `include/rocksdb/c.h`; it has not changed between 7.8.3 and 11.8.1.
//! 3. Nothing here is shared between threads: the raw pointers make [`Database`] neither `Send` nor `Sync`.
//!
//! Source: RocksDB `include/rocksdb/c.h`.

mod backups;
mod bulk;
mod exports;
mod extra;
mod prepared;
mod undecided;

pub use backups::Backups;
pub use prepared::Prepared;

use ashlar_testkit::{Change, KeyValue};
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CStr, CString, c_char, c_int, c_uchar, c_void};
use std::path::Path;
use std::rc::Rc;

/// An object of the library.
pub type Opaque = *mut c_void;
/// Where a call leaves the text of its failure.
pub type ErrorOut = *mut *mut c_char;
type Bytes = *const c_char;

functions! {
    /// RocksDB's functions.
    Functions { extra: extra::Extra = extra::Extra::look_up }
    options_create = b"rocksdb_options_create\0": fn() -> Opaque;
    options_destroy = b"rocksdb_options_destroy\0": fn(Opaque);
    load_stored = b"rocksdb_load_latest_options\0":
        fn(Bytes, Opaque, bool, Opaque, *mut Opaque, *mut usize, *mut *mut *mut c_char, *mut *mut Opaque, ErrorOut);
    stored_destroy = b"rocksdb_load_latest_options_destroy\0": fn(Opaque, *mut *mut c_char, *mut Opaque, usize);
    env_create = b"rocksdb_create_default_env\0": fn() -> Opaque;
    env_destroy = b"rocksdb_env_destroy\0": fn(Opaque);
    cache_create = b"rocksdb_cache_create_lru\0": fn(usize) -> Opaque;
    cache_destroy = b"rocksdb_cache_destroy\0": fn(Opaque);
    options_from_string = b"rocksdb_get_options_from_string\0": fn(Opaque, Bytes, Opaque, ErrorOut);
    write_options_create = b"rocksdb_writeoptions_create\0": fn() -> Opaque;
    write_options_set_sync = b"rocksdb_writeoptions_set_sync\0": fn(Opaque, c_uchar);
    write_options_destroy = b"rocksdb_writeoptions_destroy\0": fn(Opaque);
    read_options_create = b"rocksdb_readoptions_create\0": fn() -> Opaque;
    read_options_set_verify = b"rocksdb_readoptions_set_verify_checksums\0": fn(Opaque, c_uchar);
    read_options_destroy = b"rocksdb_readoptions_destroy\0": fn(Opaque);
    flush_options_create = b"rocksdb_flushoptions_create\0": fn() -> Opaque;
    flush_options_destroy = b"rocksdb_flushoptions_destroy\0": fn(Opaque);
    list_families = b"rocksdb_list_column_families\0": fn(Opaque, Bytes, *mut usize, ErrorOut) -> *mut *mut c_char;
    list_families_destroy = b"rocksdb_list_column_families_destroy\0": fn(*mut *mut c_char, usize);
    open = b"rocksdb_open_column_families\0":
        fn(Opaque, Bytes, c_int, *const Bytes, *const Opaque, *mut Opaque, ErrorOut) -> Opaque;
    open_read_only = b"rocksdb_open_for_read_only_column_families\0":
        fn(Opaque, Bytes, c_int, *const Bytes, *const Opaque, *mut Opaque, c_uchar, ErrorOut) -> Opaque;
    close = b"rocksdb_close\0": fn(Opaque);
    family_create = b"rocksdb_create_column_family\0": fn(Opaque, Opaque, Bytes, ErrorOut) -> Opaque;
    family_drop = b"rocksdb_drop_column_family\0": fn(Opaque, Opaque, ErrorOut);
    family_destroy = b"rocksdb_column_family_handle_destroy\0": fn(Opaque);
    batch_create = b"rocksdb_writebatch_create\0": fn() -> Opaque;
    batch_put = b"rocksdb_writebatch_put_cf\0": fn(Opaque, Opaque, Bytes, usize, Bytes, usize);
    batch_delete = b"rocksdb_writebatch_delete_cf\0": fn(Opaque, Opaque, Bytes, usize);
    batch_single_delete = b"rocksdb_writebatch_singledelete_cf\0": fn(Opaque, Opaque, Bytes, usize);
    batch_merge = b"rocksdb_writebatch_merge_cf\0": fn(Opaque, Opaque, Bytes, usize, Bytes, usize);
    batch_delete_range = b"rocksdb_writebatch_delete_range_cf\0": fn(Opaque, Opaque, Bytes, usize, Bytes, usize);
    batch_destroy = b"rocksdb_writebatch_destroy\0": fn(Opaque);
    write = b"rocksdb_write\0": fn(Opaque, Opaque, Opaque, ErrorOut);
    get = b"rocksdb_get_cf\0": fn(Opaque, Opaque, Opaque, Bytes, usize, *mut usize, ErrorOut) -> *mut c_char;
    flush = b"rocksdb_flush_cf\0": fn(Opaque, Opaque, Opaque, ErrorOut);
    compact = b"rocksdb_compact_range_cf\0": fn(Opaque, Opaque, Bytes, usize, Bytes, usize);
    iter_create = b"rocksdb_create_iterator_cf\0": fn(Opaque, Opaque, Opaque) -> Opaque;
    iter_first = b"rocksdb_iter_seek_to_first\0": fn(Opaque);
    iter_last = b"rocksdb_iter_seek_to_last\0": fn(Opaque);
    iter_seek = b"rocksdb_iter_seek\0": fn(Opaque, Bytes, usize);
    iter_valid = b"rocksdb_iter_valid\0": fn(Opaque) -> c_uchar;
    iter_next = b"rocksdb_iter_next\0": fn(Opaque);
    iter_prev = b"rocksdb_iter_prev\0": fn(Opaque);
    iter_key = b"rocksdb_iter_key\0": fn(Opaque, *mut usize) -> Bytes;
    iter_value = b"rocksdb_iter_value\0": fn(Opaque, *mut usize) -> Bytes;
    iter_error = b"rocksdb_iter_get_error\0": fn(Opaque, ErrorOut);
    iter_destroy = b"rocksdb_iter_destroy\0": fn(Opaque);
    live_files = b"rocksdb_livefiles\0": fn(Opaque) -> Opaque;
    live_files_count = b"rocksdb_livefiles_count\0": fn(Opaque) -> c_int;
    live_files_destroy = b"rocksdb_livefiles_destroy\0": fn(Opaque);
    free = b"rocksdb_free\0": fn(Opaque);
}

impl Functions {
    /// The functions of a RocksDB.
    pub fn of(library: Library) -> Result<Rc<Functions>, String> {
        Ok(Rc::new(Functions::look_up(library)?))
    }

    fn checked<T>(&self, call: impl FnOnce(ErrorOut) -> T) -> Result<T, String> {
        checked(self.free, call)
    }
}

/// Loads a shared object: bound at once, its symbols kept to itself.
pub fn load(library: &Path) -> Result<Library, String> {
    // SAFETY: loading runs the library's initialisers; it is RocksDB or LevelDB, named by the parent process, and this process
    // does nothing else. Checked by: tests/it/judge.rs, tests/it/leveldb.rs.
    unsafe { Library::open(Some(library), RTLD_NOW | RTLD_LOCAL) }.map_err(|e| e.to_string())
}

/// Runs a call that reports failure through a `char**`, and takes the text over; `free` is the library's.
pub fn checked<T>(free: unsafe extern "C" fn(Opaque), call: impl FnOnce(ErrorOut) -> T) -> Result<T, String> {
    let mut error: *mut c_char = std::ptr::null_mut();
    let value = call(&raw mut error);
    if error.is_null() {
        return Ok(value);
    }
    // SAFETY: a set error is a NUL-terminated string allocated by the library, ours until freed below.
    let text = unsafe { CStr::from_ptr(error) }.to_string_lossy().into_owned();
    // SAFETY: as above; freed once, by the allocator that made it.
    unsafe { free(error.cast()) };
    Err(text)
}

/// Copies `len` bytes that a library lends.
pub fn copy(pointer: Bytes, len: usize) -> Vec<u8> {
    if pointer.is_null() || len == 0 {
        return Vec::new();
    }
    // SAFETY: the library returned pointer and length together; nothing of the library is called before the copy is made, so
    // the bytes stand.
    unsafe { std::slice::from_raw_parts(pointer.cast::<u8>(), len) }.to_vec()
}

/// How to open a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// Make it if it is not there.
    Create,
    /// It must be there.
    Existing,
    /// It must be there, and stays as it is.
    ReadOnly,
    /// It must be there, with an OPTIONS file.
    Stored,
}

/// Options and families of an OPTIONS file. Invariant: all four are as one call of `load_stored` returned them.
struct Stored {
    db: Opaque,
    names: *mut *mut c_char,
    families: *mut Opaque,
    count: usize,
}

/// An open database with all its families.
pub struct Database {
    functions: Rc<Functions>,
    db: Opaque,
    options: Opaque,
    plain: Opaque,
    synced: Opaque,
    read: Opaque,
    /// Reads at the newest timestamp, for families whose keys have some.
    read_newest: Opaque,
    /// Reads that may use the filters of prefixes.
    read_probe: Opaque,
    flush: Opaque,
    stored: Option<Stored>,
    families: BTreeMap<String, Opaque>,
    /// The options of each family in a prepared opening.
    family_options: BTreeMap<String, Opaque>,
    /// Families that are written with timestamps.
    stamped: BTreeSet<String>,
    /// The database for transactions around `db`, and the transactions that were begun.
    transactions: Option<Opaque>,
    /// The write policy of the transactions.
    policy: c_int,
    open_transactions: Vec<Opaque>,
    /// Those that the opening found prepared, once they were asked for. They are among `open_transactions`.
    undecided: Option<Vec<(Vec<u8>, Opaque)>>,
}

const CHECKS: &str = "paranoid_checks=true;paranoid_file_checks=true;force_consistency_checks=true;\
                      verify_sst_unique_id_in_manifest=true;";

impl Database {
    /// Opens `path` with every family its MANIFEST names, all under the same options: RocksDB's option string, on top of
    /// all of its own checks.
    pub fn open(
        functions: &Rc<Functions>,
        path: &CStr,
        mode: OpenMode,
        options: &str,
    ) -> Result<Database, String> {
        if mode == OpenMode::Stored {
            return Database::open_stored(functions, path);
        }
        let create = mode == OpenMode::Create;
        let text = CString::new(format!("create_if_missing={create};{CHECKS}{options}"))
            .map_err(|e| e.to_string())?;
        let mut database = Database::bare(functions.clone());
        let f = functions;
        // SAFETY: both options objects are live, the text is NUL-terminated and only read.
        f.checked(|e| unsafe {
            (f.options_from_string)(database.options, text.as_ptr(), database.options, e)
        })?;
        let names = database.names_at(path, create)?;
        let pointers: Vec<Bytes> = names.iter().map(|name| name.as_ptr()).collect();
        let same = vec![database.options; names.len()];
        let mut handles = vec![std::ptr::null_mut(); names.len()];
        let count = c_int::try_from(names.len()).map_err(|e| e.to_string())?;
        let out = handles.as_mut_ptr();
        database.db = if mode == OpenMode::ReadOnly {
            // SAFETY: three arrays of `count` live pointers each, the last one writable; strings are NUL-terminated.
            f.checked(|e| unsafe {
                (f.open_read_only)(
                    database.options,
                    path.as_ptr(),
                    count,
                    pointers.as_ptr(),
                    same.as_ptr(),
                    out,
                    0,
                    e,
                )
            })?
        } else {
            // SAFETY: as above.
            f.checked(|e| unsafe {
                (f.open)(database.options, path.as_ptr(), count, pointers.as_ptr(), same.as_ptr(), out, e)
            })?
        };
        let names = names.iter().map(|name| name.to_string_lossy().into_owned());
        database.families = names.zip(handles).collect();
        Ok(database)
    }

    /// Opens `path` with the families and options that its newest OPTIONS file names.
    fn open_stored(functions: &Rc<Functions>, path: &CStr) -> Result<Database, String> {
        const CACHE_BYTES: usize = 8 << 20;
        let mut database = Database::bare(functions.clone());
        let f = functions;
        let (mut db, mut count) = (std::ptr::null_mut(), 0_usize);
        let (mut names, mut families) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: a constructor; given back below. The same holds for the next one.
        let env = unsafe { (f.env_create)() };
        // SAFETY: as above.
        let cache = unsafe { (f.cache_create)(CACHE_BYTES) };
        let (db_out, names_out) = (&raw mut db, &raw mut names);
        let (families_out, count_out) = (&raw mut families, &raw mut count);
        // SAFETY: the path is NUL-terminated, env and cache are live, the four outputs point to live variables.
        let loaded = f.checked(|e| unsafe {
            (f.load_stored)(path.as_ptr(), env, false, cache, db_out, count_out, names_out, families_out, e)
        });
        // SAFETY: the options share the cache with us; our share is given back once. The default env is a global whose
        // handle alone goes.
        unsafe { (f.cache_destroy)(cache) };
        // SAFETY: as above.
        unsafe { (f.env_destroy)(env) };
        loaded?;
        database.stored = Some(Stored { db, names, families, count });
        let mut handles = vec![std::ptr::null_mut(); count];
        let length = c_int::try_from(count).map_err(|e| e.to_string())?;
        let out = handles.as_mut_ptr();
        let pointers: *const Bytes = names.cast_const().cast();
        // SAFETY: names, options and handles are arrays of `count` live pointers; names are NUL-terminated.
        database.db = f.checked(|e| unsafe {
            (f.open)(db, path.as_ptr(), length, pointers, families.cast_const(), out, e)
        })?;
        for (index, handle) in handles.into_iter().enumerate() {
            // SAFETY: `index` is below the length that came with the list.
            let slot = unsafe { names.add(index) };
            // SAFETY: the slot is initialised by the library.
            let name = unsafe { slot.read() };
            // SAFETY: each entry is a NUL-terminated string that lives until the list is destroyed.
            let name = unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned();
            database.families.insert(name, handle);
        }
        Ok(database)
    }

    fn bare(functions: Rc<Functions>) -> Database {
        let f = &functions;
        // SAFETY: constructors without arguments; each object is destroyed once, in `Drop`. The same holds below.
        let options = unsafe { (f.options_create)() };
        // SAFETY: as above.
        let plain = unsafe { (f.write_options_create)() };
        // SAFETY: as above.
        let synced = unsafe { (f.write_options_create)() };
        // SAFETY: `synced` is live.
        unsafe { (f.write_options_set_sync)(synced, 1) };
        // SAFETY: a constructor.
        let read = unsafe { (f.read_options_create)() };
        // SAFETY: `read` is live.
        unsafe { (f.read_options_set_verify)(read, 1) };
        // SAFETY: as above.
        let read_newest = unsafe { (f.read_options_create)() };
        // SAFETY: `read_newest` is live.
        unsafe { (f.read_options_set_verify)(read_newest, 1) };
        // SAFETY: a constructor.
        let read_probe = unsafe { (f.read_options_create)() };
        // SAFETY: `read_probe` is live.
        unsafe { (f.read_options_set_verify)(read_probe, 1) };
        for options in [read, read_newest] {
            if let Ok(set) = f.extra.total_order() {
                // SAFETY: the options are live.
                unsafe { set(options, 1) };
            }
        }
        if let Ok(set) = f.extra.set_timestamp() {
            // SAFETY: the options are live and keep the pointer, which is static.
            unsafe { set(read_newest, bulk::NEWEST.as_ptr().cast(), bulk::NEWEST.len()) };
        }
        // SAFETY: a constructor.
        let flush = unsafe { (f.flush_options_create)() };
        Database {
            db: std::ptr::null_mut(),
            options,
            plain,
            synced,
            read,
            read_newest,
            read_probe,
            flush,
            stored: None,
            families: BTreeMap::new(),
            family_options: BTreeMap::new(),
            stamped: BTreeSet::new(),
            transactions: None,
            policy: 0,
            open_transactions: Vec::new(),
            undecided: None,
            functions,
        }
    }

    fn names_at(&self, path: &CStr, create: bool) -> Result<Vec<CString>, String> {
        let f = &self.functions;
        let mut count = 0_usize;
        let out = &raw mut count;
        // SAFETY: options are live, the path is NUL-terminated, `out` points to a live integer.
        let list = f.checked(|e| unsafe { (f.list_families)(self.options, path.as_ptr(), out, e) });
        let list = match list {
            Ok(list) => list,
            Err(_) if create => return Ok(vec![c"default".to_owned()]),
            Err(text) => return Err(text),
        };
        let mut names = Vec::with_capacity(count);
        for index in 0..count {
            // SAFETY: `index` is below the length that came with the list.
            let slot = unsafe { list.add(index) };
            // SAFETY: the slot is initialised by the library.
            let name = unsafe { slot.read() };
            // SAFETY: each entry is a NUL-terminated string that lives until the list is destroyed.
            names.push(unsafe { CStr::from_ptr(name) }.to_owned());
        }
        // SAFETY: the list and its length are as returned; destroyed once.
        unsafe { (f.list_families_destroy)(list, count) };
        Ok(names)
    }

    fn family(&self, name: &str) -> Result<Opaque, String> {
        self.families.get(name).copied().ok_or_else(|| format!("no family {name}"))
    }

    /// Names of the open families.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.families.keys().map(String::as_str)
    }

    /// Adds a family.
    pub fn create_family(&mut self, name: &str) -> Result<(), String> {
        let f = &self.functions;
        let text = CString::new(name).map_err(|e| e.to_string())?;
        // SAFETY: database and options are live, the name is NUL-terminated.
        let handle = f.checked(|e| unsafe { (f.family_create)(self.db, self.options, text.as_ptr(), e) })?;
        self.families.insert(name.to_owned(), handle);
        Ok(())
    }

    /// Adds the families `prefix0`, `prefix1` … by one call.
    pub fn create_families(&mut self, prefix: &str, count: usize) -> Result<(), String> {
        let f = &self.functions;
        let (create, destroy) = (f.extra.families_create()?, f.extra.families_create_destroy()?);
        let names: Vec<String> = (0..count).map(|n| format!("{prefix}{n}")).collect();
        let texts: Result<Vec<CString>, _> = names.iter().map(|name| CString::new(name.as_str())).collect();
        let texts = texts.map_err(|e| e.to_string())?;
        let pointers: Vec<Bytes> = texts.iter().map(|text| text.as_ptr()).collect();
        let length = c_int::try_from(count).map_err(|e| e.to_string())?;
        let (list, mut made) = (pointers.as_ptr(), 0_usize);
        // SAFETY: database and options are live; the list has `length` NUL-terminated names; the output points to a live variable.
        // Checked by: tests/it/judge.rs.
        let handles =
            f.checked(|e| unsafe { create(self.db, self.options, length, list, &raw mut made, e) })?;
        for (index, name) in names.into_iter().enumerate().take(made) {
            // SAFETY: the list has `made` handles.
            let slot = unsafe { handles.add(index) };
            // SAFETY: the library has initialised the slot.
            let handle = unsafe { slot.read() };
            self.families.insert(name, handle);
        }
        // SAFETY: the list is destroyed once; the handles stay.
        unsafe { destroy(handles) };
        Ok(())
    }

    /// Drops a family.
    pub fn drop_family(&mut self, name: &str) -> Result<(), String> {
        let handle = self.family(name)?;
        let f = &self.functions;
        // SAFETY: database and handle are live.
        f.checked(|e| unsafe { (f.family_drop)(self.db, handle, e) })?;
        self.families.remove(name);
        // SAFETY: the handle left the map, so it is destroyed once.
        unsafe { (f.family_destroy)(handle) };
        Ok(())
    }

    /// Writes the changes as one batch.
    pub fn write(&self, changes: &[Change], sync: bool) -> Result<(), String> {
        self.write_with(changes, if sync { self.synced } else { self.plain })
    }

    fn write_with(&self, changes: &[Change], options: Opaque) -> Result<(), String> {
        let f = &self.functions;
        let handles = changes.iter().map(|c| self.family(c.family())).collect::<Result<Vec<_>, _>>()?;
        // SAFETY: a constructor; destroyed below on the only way out.
        let batch = unsafe { (f.batch_create)() };
        let mut stamped = Ok(());
        for (change, family) in changes.iter().zip(handles) {
            if self.stamped.contains(change.family()) {
                stamped = stamped.and(self.stamp(batch, change.family(), change));
                continue;
            }
            let (key, len) = (change.key().as_ptr().cast(), change.key().len());
            let two = match change {
                Change::Put { value, .. } => Some((f.batch_put, value)),
                Change::Merge { operand, .. } => Some((f.batch_merge, operand)),
                Change::DeleteRange { to, .. } => Some((f.batch_delete_range, to)),
                Change::Delete { .. } | Change::SingleDelete { .. } => None,
            };
            let one = if matches!(change, Change::SingleDelete { .. }) {
                f.batch_single_delete
            } else {
                f.batch_delete
            };
            match two {
                // SAFETY: batch and family are live; pointers go with their lengths and are only read during the call.
                Some((call, other)) => unsafe {
                    call(batch, family, key, len, other.as_ptr().cast(), other.len());
                },
                // SAFETY: as above.
                None => unsafe { one(batch, family, key, len) },
            }
        }
        let done = stamped.and_then(|()| self.write_batch(batch, options));
        // SAFETY: made above, destroyed once.
        unsafe { (f.batch_destroy)(batch) };
        done
    }

    /// Writes a batch; through the transactions where only they keep the order of their policy.
    fn write_batch(&self, batch: Opaque, options: Opaque) -> Result<(), String> {
        let f = &self.functions;
        if let Some(transactions) = self.transactions.filter(|_| self.policy > 0) {
            let write = f.extra.transactions_write()?;
            // SAFETY: database, options and batch are live.
            return f.checked(|e| unsafe { write(transactions, options, batch, e) });
        }
        // SAFETY: as above.
        f.checked(|e| unsafe { (f.write)(self.db, options, batch, e) })
    }

    /// Reads one key.
    pub fn get(&self, family: &str, key: &[u8]) -> Result<Option<Vec<u8>>, String> {
        self.get_with(self.read, self.family(family)?, key)
    }

    fn get_with(&self, read: Opaque, family: Opaque, key: &[u8]) -> Result<Option<Vec<u8>>, String> {
        let f = &self.functions;
        let (db, get) = match self.transactions {
            Some(transactions) => (transactions, f.extra.transactions_get()?),
            None => (self.db, f.get),
        };
        let mut len = 0_usize;
        let out = &raw mut len;
        // SAFETY: database, options and family are live; the key goes with its length; `out` points to a live integer.
        let value =
            f.checked(|e| unsafe { get(db, read, family, key.as_ptr().cast(), key.len(), out, e) })?;
        if value.is_null() {
            return Ok(None);
        }
        let copy = copy(value, len);
        // SAFETY: a returned value is ours; freed once, by the allocator that made it.
        unsafe { (f.free)(value.cast()) };
        Ok(Some(copy))
    }

    /// Writes a family's memtable to a table.
    pub fn flush(&self, family: &str) -> Result<(), String> {
        let family = self.family(family)?;
        let f = &self.functions;
        // SAFETY: database, options and family are live.
        f.checked(|e| unsafe { (f.flush)(self.db, self.flush, family, e) })
    }

    /// Compacts a family's whole range.
    pub fn compact(&self, family: &str) -> Result<(), String> {
        let family = self.family(family)?;
        let none = std::ptr::null();
        // SAFETY: database and family are live; null bounds mean "all".
        unsafe { (self.functions.compact)(self.db, family, none, 0, none, 0) };
        Ok(())
    }

    /// Number of live tables over all families.
    pub fn tables(&self) -> i64 {
        let f = &self.functions;
        // SAFETY: the database is live; the list is destroyed below.
        let list = unsafe { (f.live_files)(self.db) };
        // SAFETY: the list is live.
        let count = unsafe { (f.live_files_count)(list) };
        // SAFETY: destroyed once.
        unsafe { (f.live_files_destroy)(list) };
        i64::from(count)
    }

    /// Reads every block of every table with its checksum verified; false when this version cannot.
    pub fn verify(&self) -> Result<bool, String> {
        let f = &self.functions;
        let Ok(verify) = f.extra.verify() else { return Ok(false) };
        // SAFETY: the database is live.
        f.checked(|e| unsafe { verify(self.db, e) }).map(|()| true)
    }

    /// Hands every entry of a family to `each`, checksums verified, forwards or backwards.
    pub fn scan(&self, family: &str, backwards: bool, mut each: impl FnMut(KeyValue)) -> Result<(), String> {
        let family = self.family(family)?;
        match self.scan_with(self.read, family, backwards, &mut each) {
            Err(text) if text.contains("timestamp") => {
                self.scan_with(self.read_newest, family, backwards, &mut each)
            }
            done => done,
        }
    }

    /// Gets and seeks up to `MOST` keys of a family, so that filters and hash indexes are asked, and compares with a scan.
    ///
    /// # Errors
    /// The first key that a get or a seek does not find as the scan does.
    pub fn probe(&self, name: &str) -> Result<u64, String> {
        const MOST: usize = 200;
        if self.stamped.contains(name) {
            return Ok(0);
        }
        let mut entries = Vec::new();
        self.scan(name, false, |entry| entries.push(entry))?;
        let family = self.family(name)?;
        let mut probed = 0;
        for (key, value) in entries.iter().step_by(entries.len().div_ceil(MOST).max(1)) {
            let text = ashlar_testkit::text::to_hex(key);
            if self.get_with(self.read_probe, family, key)?.as_ref() != Some(value) {
                return Err(format!("family {name}: a get of {text} is not what a scan finds"));
            }
            if self.seek(family, key)? != Some((key.clone(), value.clone())) {
                return Err(format!("family {name}: a seek of {text} is not what a scan finds"));
            }
            probed += 1;
        }
        Ok(probed)
    }

    /// The entry at or after a key.
    fn seek(&self, family: Opaque, key: &[u8]) -> Result<Option<KeyValue>, String> {
        let f = &self.functions;
        let iter = self.iterator(self.read_probe, family)?;
        // SAFETY: the iterator is live, the key goes with its length.
        unsafe { (f.iter_seek)(iter, key.as_ptr().cast(), key.len()) };
        // SAFETY: the iterator is live.
        let valid = unsafe { (f.iter_valid)(iter) } != 0;
        let found = valid.then(|| self.entry(iter));
        // SAFETY: the iterator is live.
        let done = f.checked(|e| unsafe { (f.iter_error)(iter, e) });
        // SAFETY: destroyed once.
        unsafe { (f.iter_destroy)(iter) };
        done.map(|()| found)
    }

    /// An iterator, to be destroyed before the database. A database for transactions hides what is not committed.
    fn iterator(&self, read: Opaque, family: Opaque) -> Result<Opaque, String> {
        let f = &self.functions;
        let (db, create) = match self.transactions {
            Some(transactions) => (transactions, f.extra.transactions_iterator()?),
            None => (self.db, f.iter_create),
        };
        // SAFETY: database, options and family are live.
        Ok(unsafe { create(db, read, family) })
    }

    /// The entry on which a valid iterator is.
    fn entry(&self, iter: Opaque) -> KeyValue {
        let f = &self.functions;
        let mut len = 0_usize;
        // SAFETY: the iterator is on an entry; the length is a live integer.
        let key = unsafe { (f.iter_key)(iter, &raw mut len) };
        let key = copy(key, len);
        // SAFETY: as above.
        let value = unsafe { (f.iter_value)(iter, &raw mut len) };
        (key, copy(value, len))
    }

    fn scan_with(
        &self,
        read: Opaque,
        family: Opaque,
        backwards: bool,
        each: &mut impl FnMut(KeyValue),
    ) -> Result<(), String> {
        let f = &self.functions;
        let iter = self.iterator(read, family)?;
        let (start, step) = if backwards { (f.iter_last, f.iter_prev) } else { (f.iter_first, f.iter_next) };
        // SAFETY: the iterator is live.
        unsafe { start(iter) };
        // SAFETY: the iterator is live.
        while unsafe { (f.iter_valid)(iter) } != 0 {
            each(self.entry(iter));
            // SAFETY: the iterator is on an entry.
            unsafe { step(iter) };
        }
        // SAFETY: the iterator is live.
        let done = f.checked(|e| unsafe { (f.iter_error)(iter, e) });
        // SAFETY: destroyed once.
        unsafe { (f.iter_destroy)(iter) };
        done
    }
}

impl Database {
    /// Closes the database, once; with its transactions where it has some.
    fn close_database(&mut self) {
        let f = &self.functions;
        if let Some(transactions) = self.transactions.take() {
            let extra = &f.extra;
            for transaction in std::mem::take(&mut self.open_transactions) {
                if let Ok(destroy) = extra.transaction_destroy() {
                    // SAFETY: live, destroyed once, before its database. What was prepared stays so in the log.
                    unsafe { destroy(transaction) };
                }
            }
            if let Ok(base_close) = extra.base_close() {
                // SAFETY: the handle of the base, given back once; the database itself is the next one's.
                unsafe { base_close(self.db) };
            }
            if let Ok(close) = extra.transactions_close() {
                // SAFETY: live, closed once.
                unsafe { close(transactions) };
            }
        } else if !self.db.is_null() {
            // SAFETY: live, closed once; iterators never outlive `scan`.
            unsafe { (f.close)(self.db) };
        }
        self.db = std::ptr::null_mut();
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let f = Rc::clone(&self.functions);
        for &family in self.families.values() {
            // SAFETY: live, destroyed once, before its database.
            unsafe { (f.family_destroy)(family) };
        }
        self.close_database();
        if let Some(Stored { db, names, families, count }) = self.stored.take() {
            // SAFETY: all four as they were returned, destroyed once, after the database that used them.
            unsafe { (f.stored_destroy)(db, names, families, count) };
        }
        for &options in self.family_options.values() {
            // SAFETY: live, destroyed once, after the database that used it.
            unsafe { (f.options_destroy)(options) };
        }
        // SAFETY: as above; so for those below.
        unsafe { (f.read_options_destroy)(self.read_newest) };
        // SAFETY: as above.
        unsafe { (f.read_options_destroy)(self.read_probe) };
        // SAFETY: as above.
        unsafe { (f.flush_options_destroy)(self.flush) };
        // SAFETY: as above.
        unsafe { (f.read_options_destroy)(self.read) };
        // SAFETY: as above.
        unsafe { (f.write_options_destroy)(self.synced) };
        // SAFETY: as above.
        unsafe { (f.write_options_destroy)(self.plain) };
        // SAFETY: as above.
        unsafe { (f.options_destroy)(self.options) };
    }
}
