//! fjall, an LSM tree in Rust. A put reaches the operating system's buffers; with sync each is followed by `persist`.

use crate::client::{Bounds, Change, Changes, Client};
use crate::engine::EngineName;
use crate::peer::{Cursor, Entries, Lent, NoWriter, Peer, Read, Result};
use crate::settings::{Class, Settings};
use fjall::config::{
    BlockSizePolicy, BloomConstructionPolicy, CompressionPolicy, FilterPolicy, FilterPolicyEntry,
};
use fjall::{
    CompressionType, Database, Iter, Keyspace, KeyspaceCreateOptions, KvPair, PersistMode, Readable,
};
use std::path::Path;
use std::time::Duration;

/// An open database.
pub struct Fjall {
    db: Database,
    items: Keyspace,
    sync: bool,
    codec: &'static str,
}

fn text(e: fjall::Error) -> String {
    e.to_string()
}

/// The matched settings as fjall has them. Its memtables are 1 MiB at least.
fn options(s: &Settings) -> Result<KeyspaceCreateOptions> {
    let filter = match s.filter_bits {
        0 => FilterPolicy::disabled(),
        // Far below 2^24: exact.
        #[allow(clippy::cast_precision_loss)]
        bits => FilterPolicy::all(FilterPolicyEntry::Bloom(BloomConstructionPolicy::BitsPerKey(bits as f32))),
    };
    let codec = if s.codec == "none" { CompressionType::None } else { CompressionType::Lz4 };
    let block = u32::try_from(s.block_bytes).map_err(|e| e.to_string())?;
    Ok(KeyspaceCreateOptions::default()
        .max_memtable_size(s.write_buffer_bytes.max(1 << 20))
        .data_block_size_policy(BlockSizePolicy::all(block))
        .data_block_compression_policy(CompressionPolicy::all(codec))
        .filter_policy(filter))
}

impl crate::operations::Operations for Fjall {
    type Transactions<'a> = NoWriter;
}

impl Peer for Fjall {
    type Cursor<'a> = Walk<'a>;
    type Reader<'a> = &'a Keyspace;
    type Writer<'a> = NoWriter;
    type Client<'a> = &'a Fjall;

    fn open(_: EngineName, dir: &Path, s: &Settings, _library: Option<&str>) -> Result<Self> {
        if s.no_log {
            return Err("not offered: fjall writes its journal always".into());
        }
        if !["none", "snappy", "lz4"].contains(&s.codec.as_str()) {
            return Err(format!("not offered: codec {}; fjall has none and lz4", s.codec));
        }
        let (builder, options, codec) = match s.class {
            Class::Own => {
                (Database::builder(dir), KeyspaceCreateOptions::default(), "lz4 below the first levels")
            }
            Class::Matched => {
                let codec = if s.codec == "none" { "none" } else { "lz4" };
                (Database::builder(dir).cache_size(s.cache_bytes), options(s)?, codec)
            }
        };
        let db = builder.open().map_err(text)?;
        let items = db.keyspace("peer", || options).map_err(text)?;
        Ok(Fjall { db, items, sync: s.sync, codec })
    }

    fn version(&self) -> String {
        format!("3 (crate, mimalloc); codec {}, memtable of 1 MiB at least", self.codec)
    }

    #[inline]
    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.items.insert(key, value).map_err(text)?;
        if self.sync { self.db.persist(PersistMode::SyncData).map_err(text) } else { Ok(()) }
    }

    fn put_all(&self, entries: &Entries) -> Result<()> {
        let mut batch = self.db.batch().durability(self.sync.then_some(PersistMode::SyncData));
        for (key, value) in entries.iter() {
            batch.insert(&self.items, key, value);
        }
        batch.commit().map_err(text)
    }

    fn reader(&self) -> Result<&Keyspace> {
        Ok(&self.items)
    }

    fn client(&self) -> Result<&Fjall> {
        Ok(self)
    }

    fn cursor(&self) -> Result<Walk<'_>> {
        Ok(Walk { of: &self.items, at: None, entry: None })
    }

    fn settle(&self) -> Result<()> {
        self.items.rotate_memtable_and_wait().map_err(text)?;
        while self.db.outstanding_flushes() > 0 || self.db.active_compactions() > 0 {
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }
}

impl Read for &Keyspace {
    #[inline]
    fn get(&mut self, key: &[u8], see: impl FnOnce(&[u8])) -> Result<bool> {
        let found = Keyspace::get(self, key).map_err(text)?;
        Ok(found.map(|value| see(&value)).is_some())
    }
}

impl Client for &Fjall {
    #[inline]
    fn get(&mut self, key: &[u8], see: impl FnOnce(&[u8])) -> Result<bool> {
        Read::get(&mut &self.items, key, see)
    }

    fn scan(&mut self, bounds: Bounds<'_>, mut see: impl FnMut(&[u8], &[u8]) -> bool) -> Result<()> {
        // Without a snapshot a range sees a batch that another client is applying.
        let mut range = self.db.snapshot().range(&self.items, bounds.from..bounds.to);
        while let Some(guard) = if bounds.reverse { range.next_back() } else { range.next() } {
            let (key, value) = guard.into_inner().map_err(text)?;
            if !see(&key, &value) {
                break;
            }
        }
        Ok(())
    }

    fn apply(&mut self, changes: &Changes) -> Result<()> {
        let mut batch = self.db.batch().durability(self.sync.then_some(PersistMode::SyncData));
        for change in changes.iter() {
            match change {
                Change::Put { key, value } => batch.insert(&self.items, key, value),
                Change::Delete { key } => batch.remove(&self.items, key),
            }
        }
        batch.commit().map_err(text)
    }
}

/// A cursor.
pub struct Walk<'a> {
    of: &'a Keyspace,
    at: Option<Iter>,
    entry: Option<KvPair>,
}

impl Walk<'_> {
    /// The current entry; `None` off the end.
    #[inline]
    fn entry(&self) -> Option<Lent<'_>> {
        self.entry.as_ref().map(|(key, value)| (&**key, &**value))
    }
}

impl Cursor for Walk<'_> {
    fn first(&mut self) -> Result<Option<Lent<'_>>> {
        self.at = Some(self.of.iter());
        self.next()
    }

    fn seek(&mut self, key: &[u8]) -> Result<Option<Lent<'_>>> {
        self.at = Some(self.of.range(key..));
        self.next()
    }

    #[inline]
    fn next(&mut self) -> Result<Option<Lent<'_>>> {
        let next = self.at.as_mut().and_then(Iterator::next);
        self.entry = next.map(|guard| guard.into_inner().map_err(text)).transpose()?;
        Ok(self.entry())
    }

    fn last(&mut self) -> Result<Option<Lent<'_>>> {
        self.at = Some(self.of.iter());
        self.prev()
    }

    fn prev(&mut self) -> Result<Option<Lent<'_>>> {
        let prev = self.at.as_mut().and_then(DoubleEndedIterator::next_back);
        self.entry = prev.map(|guard| guard.into_inner().map_err(text)).transpose()?;
        Ok(self.entry())
    }

    fn check(&self) -> Result<()> {
        Ok(())
    }
}
