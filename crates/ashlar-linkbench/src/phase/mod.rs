//! The phases of a run: the load, the requests, and the check that counts and links agree.

pub mod check;
pub mod history;
pub mod kept;
pub mod load;
pub mod request;
#[cfg(test)]
mod tests;

/// The wall clock of every run, in milliseconds since 1970: 2026-01-01. It stands still during the load, and an operation of a
/// requester moves that requester's clock by a millisecond. So the same seed writes the same bytes on every engine.
pub const NOW: u64 = 1_767_225_600_000;

/// Work of one phase, by threads that were put together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Sum of the requested operations, the same in any order of the threads.
    pub asked: u64,
    /// Sum of everything read.
    pub read: u64,
}

impl Sums {
    /// Adds numbers to a running digest.
    pub fn fold(digest: u64, numbers: &[u64]) -> u64 {
        numbers.iter().fold(digest, |digest, number| {
            // A step of the splitmix generator mixes every bit of the number into every bit of the digest.
            let mixed = (digest ^ number).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            (mixed ^ (mixed >> 29)).wrapping_mul(0x94d0_49bb_1331_11eb)
        })
    }

    /// The sum of bytes: their length, and their first and last eight.
    pub fn of_bytes(bytes: &[u8]) -> u64 {
        let word = |part: &[u8]| part.iter().fold(0_u64, |word, byte| (word << 8) | u64::from(*byte));
        let tail = bytes.len().saturating_sub(8);
        Sums::fold(bytes.len() as u64, &[word(&bytes[..bytes.len().min(8)]), word(&bytes[tail..])])
    }
}
