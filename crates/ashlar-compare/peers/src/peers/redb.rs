//! redb, a copy-on-write B-tree in Rust: a transaction per write or batch.
//!
//! Without sync its transactions have `Durability::None`: not even the end of the process keeps them, before one with
//! `Immediate` or the close. That is less than the other engines' asynchronous class; the version line says so.

use crate::client::{Bounds, Change, Changes, Client};
use crate::engine::EngineName;
use crate::peer::{Cursor, Entries, Lent, NoWriter, Peer, Read, Result};
use crate::settings::{Class, Settings};
use redb::{Database, Durability, Range, ReadOnlyTable, ReadableDatabase, TableDefinition, WriteTransaction};
use std::path::Path;

const TABLE: TableDefinition<&[u8], &[u8]> = TableDefinition::new("peer");

/// An open database.
pub struct Redb {
    db: Database,
    sync: bool,
}

fn text(e: impl std::fmt::Display) -> String {
    e.to_string()
}

impl Redb {
    fn begin(&self) -> Result<WriteTransaction> {
        let mut write = self.db.begin_write().map_err(text)?;
        let how = if self.sync { Durability::Immediate } else { Durability::None };
        write.set_durability(how).map_err(text)?;
        Ok(write)
    }

    fn table(&self) -> Result<ReadOnlyTable<&'static [u8], &'static [u8]>> {
        self.db.begin_read().map_err(text)?.open_table(TABLE).map_err(text)
    }
}

impl crate::operations::Operations for Redb {
    type Transactions<'a> = NoWriter;
}

impl Peer for Redb {
    type Cursor<'a> = Walk;
    type Reader<'a> = &'a Redb;
    type Writer<'a> = NoWriter;
    type Client<'a> = &'a Redb;

    fn open(_: EngineName, dir: &Path, s: &Settings, _library: Option<&str>) -> Result<Self> {
        if s.no_log {
            return Err("not offered: redb has no log to go without".into());
        }
        std::fs::create_dir_all(dir).map_err(|e| format!("{}: {e}", dir.display()))?;
        let mut builder = Database::builder();
        if s.class == Class::Matched {
            builder.set_cache_size(usize::try_from(s.cache_bytes + s.write_buffer_bytes).map_err(text)?);
        }
        let db = builder.create(dir.join("peer.redb")).map_err(text)?;
        let write = db.begin_write().map_err(text)?;
        write.open_table(TABLE).map_err(text)?;
        write.commit().map_err(text)?;
        Ok(Redb { db, sync: s.sync })
    }

    fn version(&self) -> String {
        let kept =
            if self.sync { "Durability::Immediate" } else { "Durability::None, below the async class" };
        format!("4 (crate, mimalloc); no codec, {kept}")
    }

    #[inline]
    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        let write = self.begin()?;
        write.open_table(TABLE).map_err(text)?.insert(key, value).map_err(text)?;
        write.commit().map_err(text)
    }

    fn put_all(&self, entries: &Entries) -> Result<()> {
        let write = self.begin()?;
        {
            let mut table = write.open_table(TABLE).map_err(text)?;
            for (key, value) in entries.iter() {
                table.insert(key, value).map_err(text)?;
            }
        }
        write.commit().map_err(text)
    }

    fn reader(&self) -> Result<&Redb> {
        Ok(self)
    }

    fn client(&self) -> Result<&Redb> {
        Ok(self)
    }

    fn cursor(&self) -> Result<Walk> {
        Ok(Walk { table: self.table()?, at: None, entry: None })
    }

    /// A durable transaction, which makes all earlier commits durable too.
    fn settle(&self) -> Result<()> {
        self.db.begin_write().map_err(text)?.commit().map_err(text)
    }

    fn close(self) -> Result<()> {
        self.settle()
    }
}

impl Read for &Redb {
    #[inline]
    fn get(&mut self, key: &[u8], see: impl FnOnce(&[u8])) -> Result<bool> {
        let table = self.table()?;
        let found = redb::ReadableTable::get(&table, key).map_err(text)?;
        Ok(found.map(|value| see(value.value())).is_some())
    }
}

impl Client for &Redb {
    fn get(&mut self, key: &[u8], see: impl FnOnce(&[u8])) -> Result<bool> {
        Read::get(self, key, see)
    }

    fn scan(&mut self, bounds: Bounds<'_>, mut see: impl FnMut(&[u8], &[u8]) -> bool) -> Result<()> {
        let mut range = self.table()?.range(bounds.from..bounds.to).map_err(text)?;
        while let Some(entry) = if bounds.reverse { range.next_back() } else { range.next() } {
            let (key, value) = entry.map_err(text)?;
            if !see(key.value(), value.value()) {
                break;
            }
        }
        Ok(())
    }

    /// A transaction.
    fn apply(&mut self, changes: &Changes) -> Result<()> {
        let write = Redb::begin(self)?;
        {
            let mut table = write.open_table(TABLE).map_err(text)?;
            for change in changes.iter() {
                match change {
                    Change::Put { key, value } => table.insert(key, value).map(drop),
                    Change::Delete { key } => table.remove(key).map(drop),
                }
                .map_err(text)?;
            }
        }
        write.commit().map_err(text)
    }
}

type Guard = redb::AccessGuard<'static, &'static [u8]>;

/// A cursor.
pub struct Walk {
    table: ReadOnlyTable<&'static [u8], &'static [u8]>,
    at: Option<Range<'static, &'static [u8], &'static [u8]>>,
    entry: Option<(Guard, Guard)>,
}

impl Walk {
    /// The current entry; `None` off the end.
    #[inline]
    fn entry(&self) -> Option<Lent<'_>> {
        self.entry.as_ref().map(|(key, value)| (key.value(), value.value()))
    }
}

impl Cursor for Walk {
    fn first(&mut self) -> Result<Option<Lent<'_>>> {
        self.seek(&[])
    }

    fn seek(&mut self, key: &[u8]) -> Result<Option<Lent<'_>>> {
        self.at = Some(self.table.range(key..).map_err(text)?);
        self.next()
    }

    #[inline]
    fn next(&mut self) -> Result<Option<Lent<'_>>> {
        let next = self.at.as_mut().and_then(Iterator::next);
        self.entry = next.transpose().map_err(text)?;
        Ok(self.entry())
    }

    fn last(&mut self) -> Result<Option<Lent<'_>>> {
        self.at = Some(self.table.range::<&[u8]>(..).map_err(text)?);
        self.prev()
    }

    fn prev(&mut self) -> Result<Option<Lent<'_>>> {
        let prev = self.at.as_mut().and_then(DoubleEndedIterator::next_back);
        self.entry = prev.transpose().map_err(text)?;
        Ok(self.entry())
    }

    fn check(&self) -> Result<()> {
        Ok(())
    }
}
