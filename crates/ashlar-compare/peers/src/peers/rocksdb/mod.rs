//! RocksDB through its C API, in its fastest form: pipelined writes, the hyper clock cache, gets into one buffer.
//!
//! 1. Every pointer came from the library behind `f` and is given back once, in `Drop`, the database first.
//! 2. Readers and cursors borrow the database, so they are gone before it.

mod client;
mod functions;
mod operations;
mod threads;
mod walk;

use crate::engine::EngineName;
use crate::peer::{Entries, Peer, Result, Written};
use crate::peers::stats_text;
use crate::settings::{Class, Settings, Transactions};
use client::Handle;
use functions::{Functions, Opaque};
use std::ffi::{CStr, CString, c_uchar};
use std::path::Path;
use std::ptr::{null, null_mut};
use threads::{Getter, Putter};
use walk::Walk;

/// More level-0 tables than a bulk load writes.
const BULK: u64 = 10_000_000;

/// An open database.
pub struct RocksDb {
    f: Functions,
    db: Opaque,
    /// The database with transactions that `db` is the base of, and their kind.
    transactional: Opaque,
    kind: Option<Transactions>,
    /// The compaction filter, if there is one.
    filter: Opaque,
    family: Opaque,
    options: Opaque,
    cache: Opaque,
    write: Opaque,
    read: Opaque,
    /// For scans that end behind the prefix of their first key.
    prefixed: Opaque,
    value_bytes: usize,
    bulk: bool,
}

/// The settings as RocksDB's option string.
fn option_string(s: &Settings) -> Result<String> {
    let codec = match s.codec.as_str() {
        "none" => "kNoCompression",
        "snappy" => "kSnappyCompression",
        "lz4" => "kLZ4Compression",
        "zlib" => "kZlibCompression",
        "zstd" => "kZSTD",
        other => return Err(format!("codec {other}: there are none, snappy, lz4, zlib, zstd")),
    };
    let own = operations::option_string(s);
    if s.class == Class::Own {
        return Ok(format!("create_if_missing=true;{own}"));
    }
    let l0 = |which: usize| if s.bulk { Some(BULK) } else { s.l0_triggers.map(|t| u64::from(t[which])) };
    let numbers = [
        ("target_file_size_base", s.file_bytes),
        ("max_bytes_for_level_base", s.base_bytes),
        ("level0_file_num_compaction_trigger", l0(0)),
        ("level0_slowdown_writes_trigger", l0(1)),
        ("level0_stop_writes_trigger", l0(2)),
    ];
    let numbers: String =
        numbers.iter().filter_map(|(name, number)| Some(format!("{name}={};", (*number)?))).collect();
    // A vector is sorted once, when it is flushed; it takes one writer at a time, and pipelined writes want more.
    let bulk = "disable_auto_compactions=true;memtable=vector;allow_concurrent_memtable_write=false;";
    let direct = "use_direct_reads=true;use_direct_io_for_flush_and_compaction=true;";
    Ok(format!(
        "create_if_missing=true;write_buffer_size={};max_write_buffer_number={};compression={codec};{numbers}{own}{}{}",
        s.write_buffer_bytes,
        s.write_buffers,
        if s.bulk { bulk } else { "enable_pipelined_write=true;" },
        if s.direct_io { direct } else { "" },
    ))
}

impl RocksDb {
    /// Table options with cache and filter, given to the options.
    fn set_table(&self, s: &Settings) -> Result<()> {
        let f = &self.f;
        let block = usize::try_from(s.block_bytes).map_err(|e| e.to_string())?;
        // SAFETY: a constructor; destroyed below, after the options took their copy.
        let table = unsafe { (f.table_create)() };
        // SAFETY: `table` is live.
        unsafe { (f.table_set_block_size)(table, block) };
        // SAFETY: both are live; the table shares the cache.
        unsafe { (f.table_set_cache)(table, self.cache) };
        if s.filter_bits > 0 {
            // SAFETY: a constructor; the table takes the policy over.
            let bloom = unsafe { (f.bloom_create)(f64::from(s.filter_bits)) };
            // SAFETY: both are live.
            unsafe { (f.table_set_filter)(table, bloom) };
        }
        // SAFETY: both are live; the factory is made from a copy.
        unsafe { (f.options_set_table)(self.options, table) };
        // SAFETY: destroyed once.
        unsafe { (f.table_destroy)(table) };
        Ok(())
    }

    /// Compacts everything, and waits. The call reports no failure; the settling after it does.
    fn compact_range(&self) {
        // SAFETY: the database is live; no bounds, which is everything.
        unsafe { (self.f.compact_range)(self.db, null(), 0, null(), 0) };
    }

    fn property(&self, name: &CStr) -> Option<String> {
        // SAFETY: the database is live, the name NUL-terminated.
        let text = unsafe { (self.f.property)(self.db, name.as_ptr()) };
        (!text.is_null()).then(|| self.f.take(text))
    }
}

impl Peer for RocksDb {
    type Cursor<'a> = Walk<'a>;
    type Reader<'a> = Getter<'a>;
    type Writer<'a> = Putter<'a>;
    type Client<'a> = Handle<'a>;

    fn open(_: EngineName, dir: &Path, settings: &Settings, library: Option<&str>) -> Result<Self> {
        let f = Functions::load(Path::new(library.ok_or("no path of RocksDB's library")?))?;
        let cache = usize::try_from(settings.cache_bytes).map_err(|e| e.to_string())?;
        // SAFETY: constructors; each object is destroyed once, in `Drop`. The same holds for the three below.
        let options = unsafe { (f.options_create)() };
        // SAFETY: as above. 0: the cache guesses the size of its entries.
        let cache = unsafe { (f.cache_create)(cache, 0) };
        // SAFETY: as above.
        let write = unsafe { (f.write_options_create)() };
        // SAFETY: as above.
        let read = unsafe { (f.read_options_create)() };
        // SAFETY: as above.
        let prefixed = unsafe { (f.read_options_create)() };
        let mut opened = RocksDb {
            f,
            db: null_mut(),
            transactional: null_mut(),
            kind: None,
            filter: null_mut(),
            family: null_mut(),
            options,
            cache,
            write,
            read,
            prefixed,
            value_bytes: settings.value_bytes.max(1),
            bulk: settings.bulk,
        };
        let f = &opened.f;
        let text = CString::new(option_string(settings)?).map_err(|e| e.to_string())?;
        // SAFETY: the options are live, the text is NUL-terminated and only read.
        f.checked(|e| unsafe { (f.options_from_string)(options, text.as_ptr(), options, e) })?;
        // SAFETY: `write` is live.
        unsafe { (f.write_options_set_sync)(write, c_uchar::from(settings.sync)) };
        // SAFETY: as above.
        unsafe { (f.write_options_disable_wal)(write, settings.no_log.into()) };
        // SAFETY: `prefixed` is live.
        unsafe { (f.read_options_set_same_prefix)(prefixed, 1) };
        if settings.merges {
            // SAFETY: the options are live.
            unsafe { (f.options_set_sums)(options) };
        }
        if settings.class == Class::Matched {
            opened.set_table(settings)?;
        }
        if settings.filters {
            opened.set_filter();
        }
        let path = CString::new(dir.as_os_str().as_encoded_bytes()).map_err(|e| e.to_string())?;
        match settings.transactions {
            Some(kind) => opened.open_transactional(&path, kind)?,
            None => {
                let f = &opened.f;
                // SAFETY: the options are live, the path is NUL-terminated.
                opened.db = f.checked(|e| unsafe { (f.open)(options, path.as_ptr(), e) })?;
            }
        }
        // SAFETY: the database is live; the handle is destroyed in `Drop`, before it.
        opened.family = unsafe { (opened.f.family_default)(opened.db) };
        Ok(opened)
    }

    fn version(&self) -> String {
        let jemalloc = std::env::var("LD_PRELOAD").is_ok_and(|p| p.contains("jemalloc"));
        format!("11.8.1 (C API, {})", if jemalloc { "jemalloc" } else { "the system's allocator" })
    }

    #[inline]
    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        let (f, k, v) = (&self.f, key.as_ptr().cast(), value.as_ptr().cast());
        // SAFETY: database and options are live; pointers go with their lengths and are only read during the call.
        f.checked(|e| unsafe { (f.put)(self.db, self.write, k, key.len(), v, value.len(), e) })
    }

    fn put_all(&self, entries: &Entries) -> Result<()> {
        let f = &self.f;
        // SAFETY: a constructor; destroyed below.
        let batch = unsafe { (f.batch_create)() };
        for (key, value) in entries.iter() {
            let (k, v) = (key.as_ptr().cast(), value.as_ptr().cast());
            // SAFETY: the batch is live; pointers go with their lengths and are copied.
            unsafe { (f.batch_put)(batch, k, key.len(), v, value.len()) };
        }
        // SAFETY: database, options and batch are live.
        let done = f.checked(|e| unsafe { (f.write)(self.db, self.write, batch, e) });
        // SAFETY: destroyed once.
        unsafe { (f.batch_destroy)(batch) };
        done
    }

    #[inline]
    fn delete(&self, key: &[u8]) -> Result<()> {
        let (f, k) = (&self.f, key.as_ptr().cast());
        // SAFETY: database and options are live; the key goes with its length and is only read during the call.
        f.checked(|e| unsafe { (f.delete)(self.db, self.write, k, key.len(), e) })
    }

    fn delete_range(&self, begin: &[u8], end: &[u8]) -> Result<()> {
        let (f, b, until) = (&self.f, begin.as_ptr().cast(), end.as_ptr().cast());
        // SAFETY: database, options and family are live; pointers go with their lengths and are only read during the call.
        f.checked(|e| unsafe {
            (f.delete_range)(self.db, self.write, self.family, b, begin.len(), until, end.len(), e)
        })
    }

    #[inline]
    fn merge(&self, key: &[u8], operand: &[u8]) -> Result<()> {
        let (f, k, v) = (&self.f, key.as_ptr().cast(), operand.as_ptr().cast());
        // SAFETY: database and options are live; pointers go with their lengths and are only read during the call.
        f.checked(|e| unsafe { (f.merge)(self.db, self.write, k, key.len(), v, operand.len(), e) })
    }

    fn writer(&self) -> Result<Putter<'_>> {
        Ok(Putter(self))
    }

    fn reader(&self) -> Result<Getter<'_>> {
        Ok(Getter::new(self))
    }

    fn client(&self) -> Result<Handle<'_>> {
        Ok(Handle::new(self))
    }

    fn cursor(&self) -> Result<Walk<'_>> {
        Ok(Walk::new(self))
    }

    fn settle(&self) -> Result<()> {
        let f = &self.f;
        // SAFETY: constructors; destroyed below.
        let flush = unsafe { (f.flush_options_create)() };
        // SAFETY: as above.
        let wait = unsafe { (f.wait_options_create)() };
        // SAFETY: database and options are live.
        let flushed = f.checked(|e| unsafe { (f.flush)(self.db, flush, e) });
        if self.bulk {
            self.compact_range();
        }
        // SAFETY: as above.
        let waited = f.checked(|e| unsafe { (f.wait)(self.db, wait, e) });
        // SAFETY: destroyed once.
        unsafe { (f.flush_options_destroy)(flush) };
        // SAFETY: destroyed once.
        unsafe { (f.wait_options_destroy)(wait) };
        flushed.and(waited)
    }

    fn compact(&self) -> Result<()> {
        self.compact_range();
        self.settle()
    }

    fn written(&self) -> Written {
        stats_text::written(&self.property(c"rocksdb.stats").unwrap_or_default())
    }

    fn levels(&self) -> Vec<u64> {
        let name = |level| CString::new(format!("rocksdb.num-files-at-level{level}")).ok();
        (0..7_u32).map_while(|level| self.property(&name(level)?)?.parse().ok()).collect()
    }
}

impl Drop for RocksDb {
    fn drop(&mut self) {
        if !self.family.is_null() {
            // SAFETY: live, destroyed once, before the database; readers borrow it and are gone.
            unsafe { (self.f.family_destroy)(self.family) };
        }
        if !self.db.is_null() {
            self.close_all();
        }
        let f = &self.f;
        if !self.filter.is_null() {
            // SAFETY: live, destroyed once, after the database that used it.
            unsafe { (f.filter_destroy)(self.filter) };
        }
        // SAFETY: live, destroyed once, after the database that used it; so for the four below.
        unsafe { (f.read_options_destroy)(self.prefixed) };
        // SAFETY: as above.
        unsafe { (f.read_options_destroy)(self.read) };
        // SAFETY: as above.
        unsafe { (f.write_options_destroy)(self.write) };
        // SAFETY: as above.
        unsafe { (f.options_destroy)(self.options) };
        // SAFETY: as above.
        unsafe { (f.cache_destroy)(self.cache) };
    }
}
