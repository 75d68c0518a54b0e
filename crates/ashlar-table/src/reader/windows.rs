//! Buffers of windows whose reader is gone, for the next readers. A compaction reads table after table through windows of up to 2 MiB;
//! fresh memory for each would be filled with zeros first, and allocators give such memory back late.

use ashlar_base::memory::MemoryCharge;
use ashlar_sync::{Mutex, Rank};

/// The most bytes that wait for a reader, however large the cap on memory is.
const MOST: usize = 8 << 20;

/// Idle buffers, with what they are charged to. The readers of compactions share one value, and all buffers go with the last reader.
#[derive(Debug)]
pub struct Windows {
    idle: Mutex<Vec<(Vec<u8>, MemoryCharge)>>,
    most: usize,
}

impl Windows {
    /// No buffers; at most `most` bytes will wait.
    pub fn new(most: usize) -> Windows {
        Windows { idle: Mutex::new(Rank::Inner, Vec::new()), most: most.min(MOST) }
    }

    /// Frees the buffers that wait.
    pub fn clear(&self) {
        let idle = std::mem::take(&mut *self.idle.lock());
        // Freed outside the lock, with their charges.
        drop(idle);
    }

    /// A buffer for `len` bytes, if there is one. Its content is that of an earlier reader.
    pub(super) fn take(&self, len: usize) -> Option<(Vec<u8>, MemoryCharge)> {
        let mut idle = self.idle.lock();
        let at = idle.iter().position(|(buffer, _)| buffer.capacity() >= len)?;
        Some(idle.swap_remove(at))
    }

    /// Takes a buffer back, unless too many bytes wait already.
    pub(super) fn give(&self, buffer: Vec<u8>, charge: MemoryCharge) {
        let mut idle = self.idle.lock();
        let waiting: usize = idle.iter().map(|(buffer, _)| buffer.capacity()).sum();
        if waiting + buffer.capacity() <= self.most {
            return idle.push((buffer, charge));
        }
        // Freed outside the lock.
        drop(idle);
        drop((buffer, charge));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ashlar_base::memory::{MemoryBudget, MemoryUse};

    #[test]
    fn buffers_come_back_with_their_charge_until_too_many_wait() {
        let budget = MemoryBudget::new(1 << 30);
        let windows = Windows::new(usize::MAX);
        let give = |len: usize| {
            let buffer = vec![7_u8; len];
            let charge = budget.charge(MemoryUse::Buffers, buffer.capacity());
            windows.give(buffer, charge);
        };
        give(1000);
        assert!(windows.take(1001).is_none(), "too short");
        assert_eq!(budget.held(MemoryUse::Buffers), 1000);
        let (buffer, charge) = windows.take(900).unwrap();
        assert_eq!(buffer, [7; 1000]);
        drop(charge);
        assert_eq!(budget.held(MemoryUse::Buffers), 0);
        (0..9).for_each(|_| give(1 << 20));
        assert_eq!(budget.held(MemoryUse::Buffers), MOST);
        windows.clear();
        assert_eq!(budget.held(MemoryUse::Buffers), 0);
        give(1 << 20);
        drop(windows);
        assert_eq!(budget.held(MemoryUse::Buffers), 0);
    }
}
