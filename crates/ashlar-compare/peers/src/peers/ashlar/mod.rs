//! AshlarDB through the door that its users take.

mod client;
mod operations;

use crate::engine::EngineName;
use crate::peer::{Cursor, Entries, Keys, Lent, Peer, Read, Result, Write, Written};
use crate::peers::stats_text;
use crate::settings::{Class, Settings, Transactions};
use ashlardb::options::FilterPolicy;
use ashlardb::{Compression, Db, Read as _, UInt64Add, Write as _, WriteBatch, WriteOptions};
use client::Handle;
use std::path::Path;
use std::sync::Arc;

/// The engine refuses a smaller block cache.
const LEAST_CACHE: u64 = 1 << 20;

/// More level-0 tables than a bulk load writes.
const BULK: u32 = 10_000_000;

/// An open database.
pub struct Ashlar {
    db: Db,
    writes: WriteOptions,
    about: String,
    bulk: bool,
    transactions: Option<Transactions>,
}

fn text(e: ashlardb::Error) -> String {
    e.to_string()
}

impl Peer for Ashlar {
    type Cursor<'a> = ashlardb::Cursor;
    type Reader<'a> = &'a Db;
    type Writer<'a> = &'a Ashlar;
    type Client<'a> = Handle<'a>;

    fn open(_: EngineName, dir: &Path, settings: &Settings, _library: Option<&str>) -> Result<Self> {
        let codec = match settings.codec.as_str() {
            "none" => Compression::None,
            "snappy" => Compression::Snappy,
            "lz4" => Compression::Lz4,
            "zlib" => Compression::Zlib,
            "zstd" => Compression::Zstd,
            other => return Err(format!("codec {other}: there are none, snappy, lz4, zlib, zstd")),
        };
        let size = |n: u64| usize::try_from(n).map_err(|e| e.to_string());
        let (buffer, block) = (size(settings.write_buffer_bytes)?, size(settings.block_bytes)?);
        let bits_per_key = f64::from(settings.filter_bits);
        let own = settings.class == Class::Own;
        let l0 = if settings.bulk { Some([BULK; 3]) } else { settings.l0_triggers };
        let given = settings.clone();
        let builder = Db::builder(dir).fresh_options().tune(move |db, family| {
            if given.merges {
                family.merge_operator = Some(Arc::new(UInt64Add));
            }
            operations::set(family, &given);
            if own {
                return;
            }
            family.table.filter = (bits_per_key > 0.0).then_some(FilterPolicy::Bloom { bits_per_key });
            family.write_buffer_bytes = buffer;
            family.max_write_buffers = given.write_buffers as usize;
            family.table.compression = codec;
            family.table.block_size = block;
            db.block_cache_bytes = given.cache_bytes.max(LEAST_CACHE);
            if let Some(bytes) = given.file_bytes {
                family.compaction.target_file_bytes = bytes;
            }
            if let Some(bytes) = given.base_bytes {
                family.compaction.base_level_bytes = bytes;
            }
            if let Some(triggers) = l0 {
                let [trigger, slowdown, stop] = triggers.map(|tables| tables as usize);
                family.compaction.l0_trigger = trigger;
                family.compaction.l0_slowdown = slowdown;
                family.compaction.l0_stop = stop;
            }
            family.compaction.automatic = !given.bulk;
        });
        let db = builder.open().map_err(text)?;
        let writes = WriteOptions::new().disable_wal(settings.no_log).sync(settings.sync && !settings.no_log);
        let small = settings.class == Class::Matched && settings.cache_bytes < LEAST_CACHE;
        let floor = if small { ", cache at its floor of 1 MiB" } else { "" };
        let codec = if own { "its own" } else { settings.codec.as_str() };
        let about = format!("{} (crate, mimalloc); codec {codec}{floor}", env!("CARGO_PKG_VERSION"));
        Ok(Ashlar { db, writes, about, bulk: settings.bulk, transactions: settings.transactions })
    }

    fn version(&self) -> String {
        self.about.clone()
    }

    #[inline]
    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.db.writing(self.writes).put(key, value).map_err(text)
    }

    fn put_all(&self, entries: &Entries) -> Result<()> {
        let batch = WriteBatch::new();
        for (key, value) in entries.iter() {
            batch.put(key, value).map_err(text)?;
        }
        self.db.writing(self.writes).write(batch).map_err(text)
    }

    #[inline]
    fn delete(&self, key: &[u8]) -> Result<()> {
        self.db.writing(self.writes).delete(key).map_err(text)
    }

    #[inline]
    fn delete_range(&self, begin: &[u8], end: &[u8]) -> Result<()> {
        self.db.writing(self.writes).delete_range(begin, end).map_err(text)
    }

    #[inline]
    fn merge(&self, key: &[u8], operand: &[u8]) -> Result<()> {
        self.db.writing(self.writes).merge(key, operand).map_err(text)
    }

    fn writer(&self) -> Result<&Ashlar> {
        Ok(self)
    }

    fn reader(&self) -> Result<&Db> {
        Ok(&self.db)
    }

    fn client(&self) -> Result<Handle<'_>> {
        Handle::new(self)
    }

    fn cursor(&self) -> Result<ashlardb::Cursor> {
        self.db.scan(..).cursor().map_err(text)
    }

    fn settle(&self) -> Result<()> {
        self.db.flush().map_err(text)?;
        if self.bulk {
            self.db.compact().map_err(text)?;
        }
        self.db.wait_for_background().map_err(text)
    }

    fn compact(&self) -> Result<()> {
        self.db.compact().map_err(text)?;
        self.settle()
    }

    fn written(&self) -> Written {
        let text = self.db.property("rocksdb.stats").unwrap_or_default();
        stats_text::written(&text)
    }

    fn levels(&self) -> Vec<u64> {
        let files = |level| self.db.property(&format!("rocksdb.num-files-at-level{level}"));
        (0..).map_while(|level: u32| files(level)?.parse().ok()).collect()
    }

    fn close(self) -> Result<()> {
        self.db.close().map_err(text)
    }
}

impl Read for &Db {
    #[inline]
    fn get(&mut self, key: &[u8], see: impl FnOnce(&[u8])) -> Result<bool> {
        let found = ashlardb::Read::get(*self, key).map_err(text)?;
        Ok(found.map(|view| see(&view)).is_some())
    }

    fn multi_get(&mut self, keys: &Keys, mut see: impl FnMut(&[u8])) -> Result<u64> {
        let values = ashlardb::Read::multi_get(*self, keys.iter()).map_err(text)?;
        let found = values.iter().flatten().map(|view| see(view)).count();
        Ok(found as u64)
    }
}

impl Write for &Ashlar {
    #[inline]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        Peer::put(*self, key, value)
    }
}

impl Cursor for ashlardb::Cursor {
    fn first(&mut self) -> Result<Option<Lent<'_>>> {
        ashlardb::Cursor::first(self).map_err(text)
    }

    #[inline]
    fn seek(&mut self, key: &[u8]) -> Result<Option<Lent<'_>>> {
        ashlardb::Cursor::seek(self, key).map_err(text)
    }

    #[inline]
    fn next(&mut self) -> Result<Option<Lent<'_>>> {
        ashlardb::Cursor::next(self).map_err(text)
    }

    fn last(&mut self) -> Result<Option<Lent<'_>>> {
        ashlardb::Cursor::last(self).map_err(text)
    }

    #[inline]
    fn prev(&mut self) -> Result<Option<Lent<'_>>> {
        ashlardb::Cursor::prev(self).map_err(text)
    }

    #[inline]
    fn check(&self) -> Result<()> {
        Ok(())
    }
}
