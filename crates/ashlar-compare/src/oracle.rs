//! Checks the content of a database: the same loops write into a map in memory, which is compared with the database.
//!
//! The map keeps a sum of each value instead of the value. Reads of the loops find nothing in the map, and the keys that they
//! draw do not depend on the results.

use ashlar_bench::words;
use ashlar_peers::engine::EngineName;
use ashlar_peers::operations::Operations;
use ashlar_peers::peer::{Cursor, Entries, Lent, NoWriter, Peer, Read, Result};
use ashlar_peers::settings::Settings;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path;

/// The expected content.
#[derive(Debug, Default)]
pub struct Oracle {
    sums: RefCell<BTreeMap<Box<[u8]>, u64>>,
    bytes: RefCell<u64>,
    /// Bytes of each value: the values of a database have one length.
    value_bytes: Cell<usize>,
}

impl Oracle {
    /// Bytes of the keys and values that are visible.
    pub fn live_bytes(&self) -> u64 {
        *self.bytes.borrow()
    }

    /// How many there are.
    pub fn entries(&self) -> u64 {
        self.sums.borrow().len() as u64
    }

    /// Bytes of memory of the map, computed from its entries, so that the figure is equal for every engine. Resident bytes
    /// would be too few beside an engine that has freed memory to the same allocator.
    pub fn memory_bytes(&self) -> u64 {
        // Keys and sums are in nodes that are about half full; the bytes of a key are a separate allocation.
        const IN_NODE: usize = 2 * size_of::<(Box<[u8]>, u64)>();
        let sums = self.sums.borrow();
        let key = sums.first_key_value().map_or(0, |(key, _)| key.len().next_multiple_of(16));
        (sums.len() * (IN_NODE + key)) as u64
    }

    /// Reads all entries of `peer` and returns their sum.
    ///
    /// # Errors
    /// The first entry that is missing, damaged or was never written.
    pub fn check<P: Peer>(&self, peer: &P) -> Result<u64> {
        let sums = self.sums.borrow();
        let mut wanted = sums.iter();
        let mut cursor = peer.cursor()?;
        let mut sum = 0_u64;
        let mut entry = cursor.first()?;
        while let Some((key, value)) = entry {
            let found = words(value);
            match wanted.next() {
                Some((next, kept)) if **next == *key && *kept == found => {}
                Some((next, _)) if **next == *key => {
                    return Err(wrong("has another value than was written", key));
                }
                Some((next, _)) if **next < *key => return Err(wrong("was written and is lost", next)),
                _ => return Err(wrong("is there and was never written", key)),
            }
            sum = sum.wrapping_mul(3).wrapping_add(words(key)).wrapping_mul(3).wrapping_add(found);
            entry = cursor.next()?;
        }
        cursor.check()?;
        match wanted.next() {
            None => Ok(sum),
            Some((key, _)) => Err(wrong("was written and is lost", key)),
        }
    }
}

fn wrong(what: &str, key: &[u8]) -> String {
    format!("wrong data: the key {} {what}", key.escape_ascii())
}

impl Operations for Oracle {
    type Transactions<'a> = NoWriter;
}

impl Peer for Oracle {
    type Cursor<'a> = Nothing;
    type Reader<'a> = Nothing;
    type Writer<'a> = NoWriter;
    type Client<'a> = NoWriter;

    fn open(_: EngineName, _: &Path, _: &Settings, _: Option<&str>) -> Result<Self> {
        Ok(Oracle::default())
    }

    fn version(&self) -> String {
        "a map in memory".into()
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        let mut sums = self.sums.borrow_mut();
        self.value_bytes.set(value.len());
        if sums.insert(key.into(), words(value)).is_none() {
            *self.bytes.borrow_mut() += (key.len() + value.len()) as u64;
        }
        Ok(())
    }

    fn put_all(&self, entries: &Entries) -> Result<()> {
        entries.iter().try_for_each(|(key, value)| self.put(key, value))
    }

    fn delete(&self, key: &[u8]) -> Result<()> {
        if self.sums.borrow_mut().remove(key).is_some() {
            let value = self.value_bytes.get();
            *self.bytes.borrow_mut() -= (key.len() + value) as u64;
        }
        Ok(())
    }

    fn delete_range(&self, begin: &[u8], end: &[u8]) -> Result<()> {
        let bounds = (Bound::Included(begin), Bound::Excluded(end));
        let covered: Vec<_> =
            self.sums.borrow().range::<[u8], _>(bounds).map(|(key, _)| key.clone()).collect();
        covered.iter().try_for_each(|key| self.delete(key))
    }

    /// The sum of a value of 8 bytes is the number that it holds.
    fn merge(&self, key: &[u8], operand: &[u8]) -> Result<()> {
        let before = self.sums.borrow().get(key).copied().unwrap_or(0);
        self.put(key, &before.wrapping_add(words(operand)).to_le_bytes())
    }

    fn reader(&self) -> Result<Nothing> {
        Ok(Nothing)
    }

    fn cursor(&self) -> Result<Nothing> {
        Ok(Nothing)
    }

    fn settle(&self) -> Result<()> {
        Ok(())
    }
}

/// Finds nothing.
pub struct Nothing;

impl Read for Nothing {
    fn get(&mut self, _: &[u8], _: impl FnOnce(&[u8])) -> Result<bool> {
        Ok(false)
    }
}

impl Cursor for Nothing {
    fn first(&mut self) -> Result<Option<Lent<'_>>> {
        Ok(None)
    }

    fn seek(&mut self, _: &[u8]) -> Result<Option<Lent<'_>>> {
        Ok(None)
    }

    fn next(&mut self) -> Result<Option<Lent<'_>>> {
        Ok(None)
    }

    fn check(&self) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ashlar_peers::peers::Ashlar;

    #[test]
    fn lost_damaged_and_foreign_entries_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let peer = Ashlar::open(EngineName::Ashlardb, dir.path(), &Settings::default(), None).unwrap();
        let oracle = Oracle::default();
        for key in [b"a", b"b", b"c"] {
            peer.put(key, b"12345678").unwrap();
            oracle.put(key, b"12345678").unwrap();
        }
        assert_eq!((oracle.live_bytes(), oracle.memory_bytes()), (27, 3 * (48 + 16)));
        let sum = oracle.check(&peer).unwrap();
        assert_eq!(oracle.check(&peer), Ok(sum));
        peer.put(b"b", b"12345679").unwrap();
        let of = |oracle: &Oracle| oracle.check(&peer).unwrap_err();
        assert_eq!(of(&oracle), "wrong data: the key b has another value than was written");
        oracle.put(b"b", b"12345679").unwrap();
        peer.put(b"aa", b"12345678").unwrap();
        assert_eq!(of(&oracle), "wrong data: the key aa is there and was never written");
        oracle.put(b"aa", b"12345678").unwrap();
        oracle.put(b"d", b"12345678").unwrap();
        assert_eq!(of(&oracle), "wrong data: the key d was written and is lost");
        oracle.put(b"ab", b"12345678").unwrap();
        assert_eq!(of(&oracle), "wrong data: the key ab was written and is lost");
        for key in [b"ab", b"d\0"] {
            oracle.delete(key).unwrap();
        }
        oracle.delete_range(b"b", b"e").unwrap();
        assert_eq!(oracle.live_bytes(), 9 + 10, "a and aa are left");
        assert!(of(&oracle).ends_with("the key b is there and was never written"));
        peer.delete_range(b"b", b"c").unwrap();
        peer.delete(b"c").unwrap();
        oracle.check(&peer).unwrap();
    }

    #[test]
    fn merges_add() {
        let dir = tempfile::tempdir().unwrap();
        let settings = Settings { merges: true, ..Settings::default() };
        let peer = Ashlar::open(EngineName::Ashlardb, dir.path(), &settings, None).unwrap();
        let oracle = Oracle::default();
        for operand in [3_u64, 1 << 40] {
            peer.merge(b"sum", &operand.to_le_bytes()).unwrap();
            oracle.merge(b"sum", &operand.to_le_bytes()).unwrap();
        }
        oracle.check(&peer).unwrap();
        oracle.merge(b"sum", &1_u64.to_le_bytes()).unwrap();
        assert!(oracle.check(&peer).unwrap_err().ends_with("the key sum has another value than was written"));
    }
}
