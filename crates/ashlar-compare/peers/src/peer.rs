//! The interface of an engine under the driver. All calls are dispatched statically, so they add no cost.

use crate::client::Client;
use crate::engine::EngineName;
use crate::operations::Operations;
use crate::settings::Settings;
use std::path::Path;

/// The engine's message. It begins with "not offered:" if the engine lacks the feature.
pub type Result<T> = std::result::Result<T, String>;

/// The answer of a peer that the driver does not call for `what`.
pub fn not_driven<T>(what: &str) -> Result<T> {
    Err(format!("not offered: {what}; of the peers it is driven on RocksDB only"))
}

/// What an engine reports of its writes since the open. `None`: the engine has no such report.
#[derive(Clone, Copy, Debug, Default)]
pub struct Written {
    /// Bytes written by flushes.
    pub flush: Option<u64>,
    /// Bytes written by compactions.
    pub compaction: Option<u64>,
    /// Seconds that writers waited for flushes and compactions.
    pub stalled: Option<f64>,
}

/// Entries of one length for one batch, lying one after the other: a key, its value, the next key.
#[derive(Clone, Debug)]
pub struct Entries {
    bytes: Vec<u8>,
    key: usize,
    value: usize,
}

impl Entries {
    /// None yet.
    pub fn new(key: usize, value: usize) -> Entries {
        Entries { bytes: Vec::new(), key, value }
    }

    /// Appends one. Keys and values of other lengths are cut or filled up with zeros.
    pub fn push(&mut self, key: &[u8], value: &[u8]) {
        for (bytes, len) in [(key, self.key), (value, self.value)] {
            let end = self.bytes.len() + len;
            self.bytes.extend_from_slice(&bytes[..len.min(bytes.len())]);
            self.bytes.resize(end, 0);
        }
    }

    /// Forgets them; the memory stays.
    pub fn clear(&mut self) {
        self.bytes.clear();
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.bytes.len() / (self.key + self.value).max(1)
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Them all.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Length of a key, and of a value.
    pub fn lengths(&self) -> [usize; 2] {
        [self.key, self.value]
    }

    /// One after the other.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.bytes.chunks_exact((self.key + self.value).max(1)).map(|entry| entry.split_at(self.key))
    }
}

/// Keys of one length for one call.
#[derive(Clone, Debug)]
pub struct Keys(Entries);

impl Keys {
    /// None yet, of `length` bytes each.
    pub fn new(length: usize) -> Keys {
        Keys(Entries::new(length, 0))
    }

    /// Appends one.
    pub fn push(&mut self, key: &[u8]) {
        self.0.push(key, &[]);
    }

    /// Forgets them; the memory stays.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// In the order of their pushes.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.0.iter().map(|(key, _)| key)
    }
}

/// An open database.
pub trait Peer: Operations + Sized {
    /// Its cursors.
    type Cursor<'a>: Cursor
    where
        Self: 'a;
    /// The reader of a thread.
    type Reader<'a>: Read + Send
    where
        Self: 'a;
    /// The writer of a thread, beside other threads that write; [`NoWriter`] where the driver uses one writing thread only.
    type Writer<'a>: Write + Send
    where
        Self: 'a;

    /// The handle of a client thread; [`NoWriter`] where there are no clients.
    type Client<'a>: Client
    where
        Self: 'a;

    /// Opens the database in `dir`, or creates it.
    fn open(engine: EngineName, dir: &Path, settings: &Settings, library: Option<&str>) -> Result<Self>;

    /// The version, the way the driver calls the engine, and the settings without an equivalent.
    fn version(&self) -> String;

    /// Writes one entry.
    fn put(&self, key: &[u8], value: &[u8]) -> Result<()>;

    /// Writes all entries or none.
    fn put_all(&self, entries: &Entries) -> Result<()>;

    /// Removes `key`.
    fn delete(&self, _key: &[u8]) -> Result<()> {
        not_driven("deletes")
    }

    /// Removes every key from `begin` up to `end`, without `end`.
    fn delete_range(&self, _begin: &[u8], _end: &[u8]) -> Result<()> {
        not_driven("deletes of ranges")
    }

    /// Adds `operand`, 8 bytes little-endian, to the sum at `key`. Needs [`Settings::merges`].
    fn merge(&self, _key: &[u8], _operand: &[u8]) -> Result<()> {
        not_driven("merges")
    }

    /// Another writer.
    fn writer(&self) -> Result<Self::Writer<'_>> {
        not_driven("writes by several threads")
    }

    /// Another reader. Each of its gets sees all preceding writes.
    fn reader(&self) -> Result<Self::Reader<'_>>;

    /// Says how many clients the next phase has, before they are made. An engine that divides memory among its connections
    /// gives each of them its part of the whole.
    fn expect_clients(&self, _clients: u32) -> Result<()> {
        Ok(())
    }

    /// Another client. [`Settings::clients`] says how many there are at most.
    fn client(&self) -> Result<Self::Client<'_>> {
        not_driven("clients that read and write")
    }

    /// A new cursor over all entries.
    fn cursor(&self) -> Result<Self::Cursor<'_>>;

    /// Flushes the memtables and waits until no background work is left.
    fn settle(&self) -> Result<()>;

    /// Compacts everything, as far as the engine has a call for that, and settles.
    fn compact(&self) -> Result<()> {
        self.settle()
    }

    /// The bytes that the engine reports as written since the open.
    fn written(&self) -> Written {
        Written::default()
    }

    /// How many tables each level has, from level 0; empty for an engine without levels.
    fn levels(&self) -> Vec<u64> {
        Vec::new()
    }

    /// Closes.
    fn close(self) -> Result<()> {
        Ok(())
    }
}

/// A reader of one thread.
pub trait Read {
    /// Calls `see` with the value of `key`. False: there is no such key.
    fn get(&mut self, key: &[u8], see: impl FnOnce(&[u8])) -> Result<bool>;

    /// Calls `see` with the value of each of `keys` that exists, in their order. The values are from one moment. Returns how
    /// many exist. An engine without such a call gets one key after the other.
    fn multi_get(&mut self, keys: &Keys, mut see: impl FnMut(&[u8])) -> Result<u64> {
        let mut found = 0;
        for key in keys.iter() {
            found += u64::from(self.get(key, &mut see)?);
        }
        Ok(found)
    }
}

/// A writer of one thread.
pub trait Write {
    /// Writes one entry.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()>;
}

/// A writer that cannot exist, for peers that the driver does not call from several writing threads.
pub enum NoWriter {}

impl Write for NoWriter {
    fn put(&mut self, _: &[u8], _: &[u8]) -> Result<()> {
        match *self {}
    }
}

/// The key and value at a cursor's position, borrowed until the cursor moves.
pub type Lent<'a> = (&'a [u8], &'a [u8]);

/// A position among the entries. Each move returns the entry that it reached; `None` off the end.
pub trait Cursor {
    /// Moves to the first entry.
    fn first(&mut self) -> Result<Option<Lent<'_>>>;
    /// Moves to the first entry at or after `key`.
    fn seek(&mut self, key: &[u8]) -> Result<Option<Lent<'_>>>;
    /// Moves from an entry to the next one.
    fn next(&mut self) -> Result<Option<Lent<'_>>>;
    /// Moves to the last entry.
    fn last(&mut self) -> Result<Option<Lent<'_>>> {
        not_driven("scans in reverse order")
    }
    /// Moves from an entry to the one before it.
    fn prev(&mut self) -> Result<Option<Lent<'_>>> {
        not_driven("scans in reverse order")
    }
    /// The error of the last move, of an engine that does not return it from the move.
    fn check(&self) -> Result<()>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_lie_one_after_the_other() {
        let mut entries = Entries::new(2, 3);
        entries.push(b"k1", b"abc");
        entries.push(b"k2", b"d");
        assert_eq!(entries.len(), 2);
        assert_eq!(entries.iter().collect::<Vec<_>>(), [(&b"k1"[..], &b"abc"[..]), (b"k2", b"d\0\0")]);
        entries.clear();
        assert_eq!((entries.len(), entries.lengths()), (0, [2, 3]));
    }
}
