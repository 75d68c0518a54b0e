//! Memory of blocks that were evicted, for the blocks that are read next.
//!
//! The thread that reads a block is seldom the one that evicts it, and memory that goes back by way of an allocator has to be
//! handed over there. Here what an evicted block stood in is what the next one is read into.
//!
//! What is kept here is charged to nobody, and little: [`MOST`] buffers of [`LARGEST`] bytes at most. Nobody waits for it: who
//! finds it locked asks the allocator.

use ashlar_base::{Result, bytes};
use ashlar_sync::{Mutex, Rank};

/// Buffers that are kept.
const MOST: usize = 64;
/// Longer ones are not: blocks are 4 to 16 KiB.
const LARGEST: usize = 32 << 10;

/// The buffers.
pub(crate) struct Spare(Mutex<Vec<Vec<u8>>>);

impl Spare {
    pub(crate) fn new() -> Spare {
        Spare(Mutex::new(Rank::Cache, Vec::new()))
    }

    /// A buffer of `len` bytes, which mean nothing.
    ///
    /// # Errors
    /// `Busy(Memory)`: there is none left.
    pub(crate) fn take(&self, len: usize) -> Result<Vec<u8>> {
        let last = if len <= LARGEST { self.0.try_lock().and_then(|mut kept| kept.pop()) } else { None };
        match last {
            Some(mut buffer) if (len..=len + len / 4).contains(&buffer.capacity()) => {
                buffer.resize(len, 0);
                Ok(buffer)
            }
            _ => Ok(bytes::zeroed(len)?),
        }
    }

    /// Keeps `buffer`, if there are not enough.
    pub(crate) fn give(&self, buffer: Vec<u8>) {
        if buffer.capacity() == 0 || buffer.capacity() > LARGEST {
            return;
        }
        if let Some(mut kept) = self.0.try_lock()
            && kept.len() < MOST
        {
            kept.push(buffer);
        }
    }

    /// Lets go of all.
    pub(crate) fn clear(&self) {
        let kept = self.0.try_lock().map(|mut kept| std::mem::take(&mut *kept));
        drop(kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_is_taken_again_if_it_fits() {
        let spare = Spare::new();
        let buffer = vec![7; 4000];
        let place = buffer.as_ptr();
        spare.give(buffer);
        let taken = spare.take(3500).unwrap();
        assert_eq!((taken.as_ptr(), taken.len()), (place, 3500));
        spare.give(taken);
        let longer = spare.take(4001).unwrap();
        assert_eq!(longer, vec![0; 4001], "too short a one is not grown");
        spare.give(vec![7; 4000]);
        assert!(spare.take(100).unwrap().capacity() < 4000, "too long a one is not wasted");
        spare.give(vec![7; LARGEST + 1]);
        (0..2 * MOST).for_each(|_| spare.give(vec![7; 10]));
        assert_eq!(spare.0.lock().len(), MOST);
        spare.clear();
        assert!(spare.0.lock().is_empty());
    }
}
