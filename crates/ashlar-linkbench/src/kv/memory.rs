//! A client over a map, for tests: it is always right, unless a test asks it to lose one entry or one batch.

use ashlar_peers::client::{Bounds, Change, Changes, Client};
use ashlar_peers::peer::Result;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// The shared map.
#[derive(Debug)]
pub struct Memory {
    map: Mutex<Map>,
    /// The letter of the space of which one put is lost.
    pub loses: Option<u8>,
    /// How many puts of that space come before the lost one.
    pub after: AtomicU64,
    /// How many batches come before one that is lost whole; [`u64::MAX`]: none is lost.
    pub batches: AtomicU64,
}

impl Default for Memory {
    fn default() -> Memory {
        let never = AtomicU64::new(u64::MAX);
        Memory { map: Mutex::default(), loses: None, after: AtomicU64::default(), batches: never }
    }
}

impl Memory {
    /// A map that loses the batch number `after` as a whole, counted from 0.
    pub fn losing_a_batch(after: u64) -> Memory {
        Memory { batches: AtomicU64::new(after), ..Memory::default() }
    }

    /// A map that loses the put number `after` of the space `letter`, counted from 0.
    pub fn losing(letter: u8, after: u64) -> Memory {
        Memory { loses: Some(letter), after: AtomicU64::new(after), ..Memory::default() }
    }

    /// All entries.
    pub fn entries(&self) -> MutexGuard<'_, Map> {
        self.map.lock().unwrap()
    }

    fn is_lost(&self, key: &[u8]) -> bool {
        // The count wraps below zero, and no test puts 2^64 entries.
        self.loses == key.first().copied() && self.after.fetch_sub(1, Ordering::Relaxed) == 0
    }
}

impl Client for &Memory {
    fn get(&mut self, key: &[u8], see: impl FnOnce(&[u8])) -> Result<bool> {
        Ok(self.entries().get(key).map(|value| see(value)).is_some())
    }

    fn scan(&mut self, bounds: Bounds<'_>, mut see: impl FnMut(&[u8], &[u8]) -> bool) -> Result<()> {
        let map = self.entries();
        let range = map.range(bounds.from.to_vec()..bounds.to.to_vec());
        let mut entries: Box<dyn Iterator<Item = _>> =
            if bounds.reverse { Box::new(range.rev()) } else { Box::new(range) };
        let _ = entries.all(|(key, value)| see(key, value));
        Ok(())
    }

    fn apply(&mut self, changes: &Changes) -> Result<()> {
        let mut map = self.entries();
        // The count wraps below zero, and no test applies 2^64 batches.
        if self.batches.fetch_sub(1, Ordering::Relaxed) == 0 {
            return Ok(());
        }
        for change in changes.iter() {
            match change {
                Change::Put { key, .. } if self.is_lost(key) => {}
                Change::Put { key, value } => drop(map.insert(key.to_vec(), value.to_vec())),
                Change::Delete { key } => drop(map.remove(key)),
            }
        }
        Ok(())
    }
}
