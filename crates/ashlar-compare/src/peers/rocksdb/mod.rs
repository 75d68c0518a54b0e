//! RocksDB through its C API, in its fastest form: pipelined writes, the hyper clock cache, gets into one buffer.
//!
//! 1. Every pointer came from the library behind `f` and is given back once, in `Drop`, the database first.
//! 2. Readers and cursors borrow the database, so they are gone before it.

mod functions;

use crate::engine::EngineName;
use crate::peer::{Cursor, Entries, Lent, Peer, Read, Result, Written};
use crate::peers::stats_text;
use crate::settings::{Class, Settings};
use functions::{Functions, Opaque};
use std::ffi::{CStr, CString, c_uchar};
use std::path::Path;
use std::ptr::{null, null_mut};

/// More level-0 tables than a bulk load writes.
const BULK: u64 = 10_000_000;

/// An open database.
pub struct RocksDb {
    f: Functions,
    db: Opaque,
    options: Opaque,
    cache: Opaque,
    write: Opaque,
    read: Opaque,
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
    if s.class == Class::Own {
        return Ok("create_if_missing=true;".into());
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
        "create_if_missing=true;write_buffer_size={};max_write_buffer_number={};compression={codec};{numbers}{}{}",
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
        let value_bytes = settings.value_bytes.max(1);
        let bulk = settings.bulk;
        let mut opened = RocksDb { f, db: null_mut(), options, cache, write, read, value_bytes, bulk };
        let f = &opened.f;
        let text = CString::new(option_string(settings)?).map_err(|e| e.to_string())?;
        // SAFETY: the options are live, the text is NUL-terminated and only read.
        f.checked(|e| unsafe { (f.options_from_string)(options, text.as_ptr(), options, e) })?;
        // SAFETY: `write` is live.
        unsafe { (f.write_options_set_sync)(write, c_uchar::from(settings.sync)) };
        // SAFETY: as above.
        unsafe { (f.write_options_disable_wal)(write, settings.no_log.into()) };
        if settings.class == Class::Matched {
            opened.set_table(settings)?;
        }
        let path = CString::new(dir.as_os_str().as_encoded_bytes()).map_err(|e| e.to_string())?;
        // SAFETY: the options are live, the path is NUL-terminated.
        opened.db = f.checked(|e| unsafe { (f.open)(options, path.as_ptr(), e) })?;
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

    fn reader(&self) -> Result<Getter<'_>> {
        Ok(Getter { of: &self.f, db: self.db, read: self.read, value: vec![0; self.value_bytes] })
    }

    fn cursor(&self) -> Result<Walk<'_>> {
        // SAFETY: database and options are live; destroyed in the cursor's `Drop`, before them.
        let iter = unsafe { (self.f.iter_create)(self.db, self.read) };
        Ok(Walk { of: self, iter })
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
        let f = &self.f;
        if !self.db.is_null() {
            // SAFETY: live, closed once; cursors borrow it and are gone.
            unsafe { (f.close)(self.db) };
        }
        // SAFETY: live, destroyed once, after the database that used it; so for the three below.
        unsafe { (f.read_options_destroy)(self.read) };
        // SAFETY: as above.
        unsafe { (f.write_options_destroy)(self.write) };
        // SAFETY: as above.
        unsafe { (f.options_destroy)(self.options) };
        // SAFETY: as above.
        unsafe { (f.cache_destroy)(self.cache) };
    }
}

/// What gets go through: one buffer that values are copied into.
pub struct Getter<'a> {
    of: &'a Functions,
    db: Opaque,
    read: Opaque,
    value: Vec<u8>,
}

// SAFETY: RocksDB's handles of a database and of read options may be used by any thread, also at once (`include/rocksdb/db.h`);
// both outlive the reader, which borrows from their owner. Checked by: `peers::conformance`.
unsafe impl Send for Getter<'_> {}

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
}

/// A cursor.
pub struct Walk<'a> {
    of: &'a RocksDb,
    iter: Opaque,
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
