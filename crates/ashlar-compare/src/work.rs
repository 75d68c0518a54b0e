//! The loops around an engine: one generic function each, nothing in them but keys, values and the engine.
//!
//! What is read is summed up word by word, so that every byte is touched and engines can be held against each other.

use crate::peer::{Cursor, Peer, Read, Result};
use crate::settings::Settings;
use crate::task::Task;
use ashlar_bench::{KeyMaker, Random, Values};

/// What a loop did.
#[derive(Clone, Copy, Debug, Default)]
pub struct Done {
    /// Operations.
    pub ops: u64,
    /// Of them, reads that found something.
    pub found: u64,
    /// Bytes of the keys and values that were written, or found.
    pub bytes: u64,
    /// Sum of the words that were read; 0 for writes.
    pub digest: u64,
}

impl Done {
    #[inline]
    fn saw(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        self.digest = self.digest.wrapping_mul(3).wrapping_add(words(bytes));
    }
}

/// All of `bytes`, eight at a time.
#[inline]
fn words(bytes: &[u8]) -> u64 {
    let chunks = bytes.as_chunks::<8>();
    let sum = chunks.0.iter().fold(0_u64, |sum, word| sum.wrapping_add(u64::from_le_bytes(*word)));
    chunks.1.iter().fold(sum, |sum, &byte| sum.wrapping_add(u64::from(byte)))
}

/// Streams of random numbers: one per loop, so that reads do not repeat the order of the writes.
#[derive(Clone, Copy)]
pub enum Stream {
    /// The first load.
    Load = 1,
    /// Random gets.
    Reads = 2,
    /// Random seeks.
    Seeks = 3,
    /// Overwrites.
    Again = 4,
    /// Puts at a fixed rate.
    Paced = 5,
}

/// Puts `keys` entries, in order or drawn from `keys` numbers.
pub fn put<P: Peer>(peer: &P, s: &Settings, keys: u64, drawn: Option<Stream>) -> Result<Done> {
    let mut maker = KeyMaker::new(s.key_bytes);
    let mut values = Values::new(s.seed, s.compress_ratio, s.value_bytes);
    let mut random = drawn.map(|stream| Random::new(s.seed, stream as u64));
    for i in 0..keys {
        let number = random.as_mut().map_or(i, |random| random.below(keys));
        peer.put(maker.key(number), values.next(s.value_bytes))?;
    }
    let bytes = keys * (s.key_bytes + s.value_bytes) as u64;
    Ok(Done { ops: keys, bytes, ..Done::default() })
}

/// Gets `reads` drawn keys.
pub fn get<P: Peer>(peer: &P, task: &Task) -> Result<Done> {
    let s = &task.settings;
    let mut maker = KeyMaker::new(s.key_bytes);
    let mut random = Random::new(s.seed, Stream::Reads as u64);
    let mut done = Done::default();
    let mut reader = peer.reader()?;
    for _ in 0..task.reads {
        let key = maker.key(random.below(task.keys));
        let found = reader.get(key, |value| done.saw(value))?;
        done.found += u64::from(found);
        done.ops += 1;
    }
    Ok(done)
}

/// Seeks drawn keys and steps ten entries from each.
pub fn seek<P: Peer>(peer: &P, task: &Task) -> Result<Done> {
    const STEPS: usize = 10;
    let s = &task.settings;
    let mut maker = KeyMaker::new(s.key_bytes);
    let mut random = Random::new(s.seed, Stream::Seeks as u64);
    let mut done = Done::default();
    for _ in 0..task.reads {
        let key = maker.key(random.below(task.keys));
        let mut cursor = peer.cursor()?;
        cursor.seek(key)?;
        done.found += u64::from(cursor.entry().is_some_and(|(at, _)| at == key));
        for _ in 0..STEPS {
            let Some((key, value)) = cursor.entry() else { break };
            done.saw(key);
            done.saw(value);
            cursor.next()?;
        }
        cursor.check()?;
        done.ops += 1;
    }
    Ok(done)
}

/// Reads everything in order, as often as it takes to see `least` entries.
pub fn scan<P: Peer>(peer: &P, least: u64) -> Result<Done> {
    let mut done = Done::default();
    loop {
        let mut cursor = peer.cursor()?;
        cursor.first()?;
        while let Some((key, value)) = cursor.entry() {
            done.saw(key);
            done.saw(value);
            done.ops += 1;
            cursor.next()?;
        }
        cursor.check()?;
        done.found = done.ops;
        if done.ops >= least || done.ops == 0 {
            return Ok(done);
        }
    }
}

/// Brings every block into the cache: gets every fourth key, so that no block is left out.
pub fn warm<P: Peer>(peer: &P, task: &Task) -> Result<()> {
    let mut reader = peer.reader()?;
    let mut maker = KeyMaker::new(task.settings.key_bytes);
    for number in (0..task.keys).step_by(4) {
        reader.get(maker.key(number), |_| ())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_counts() {
        let sum = words(b"abcdefghXY");
        assert_eq!(sum, u64::from_le_bytes(*b"abcdefgh") + u64::from(b'X') + u64::from(b'Y'));
        assert_ne!(words(&[0; 100]), words(&[[0; 50], [1; 50]].concat()));
    }
}
