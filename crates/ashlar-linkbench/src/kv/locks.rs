//! Locks of link lists and nodes in the driver, the same for every engine in batch mode: an operation that reads and then writes
//! holds the lock of its list or node meanwhile.

use crate::model::Fan;
use std::sync::{Mutex, MutexGuard, PoisonError};

const STRIPE_BITS: u32 = 12;
const STRIPES: usize = 1 << STRIPE_BITS;

/// Striped locks over a hash of node and type.
#[derive(Debug)]
pub struct Locks(Vec<Mutex<()>>);

impl Default for Locks {
    fn default() -> Locks {
        Locks((0..STRIPES).map(|_| Mutex::new(())).collect())
    }
}

impl Locks {
    /// Waits for the lock of `fan`.
    pub fn fan(&self, fan: Fan) -> MutexGuard<'_, ()> {
        self.number(fan.id1 ^ fan.link_type.rotate_left(32))
    }

    /// Waits for the lock of node `id`.
    pub fn node(&self, id: u64) -> MutexGuard<'_, ()> {
        self.number(!id)
    }

    fn number(&self, of: u64) -> MutexGuard<'_, ()> {
        // The constant of Fibonacci hashing: only the highest bits of the product depend on every bit of the number.
        let highest = of.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - STRIPE_BITS);
        let place = usize::try_from(highest).unwrap_or(0);
        // The lock protects no data of its own, so a panic of another thread left nothing half done here.
        self.0[place].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bit_of_the_number_chooses_the_lock() {
        let locks = Locks::default();
        let address = |of: u64| std::ptr::from_ref(&*locks.number(of)) as usize;
        for bit in 0..64 {
            assert!((1..20).any(|of: u64| address(of) != address(of ^ (1 << bit))), "{bit}");
        }
    }

    #[test]
    fn a_fan_has_one_lock_and_neighbours_have_others() {
        let locks = Locks::default();
        let fan = |id1| Fan { id1, link_type: 123_456_789 };
        let held = locks.fan(fan(1));
        let _others =
            [locks.fan(fan(2)), locks.fan(fan(3)), locks.fan(Fan { link_type: 123_456_790, ..fan(1) })];
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| drop(locks.fan(fan(1))));
            std::thread::sleep(std::time::Duration::from_millis(20));
            assert!(!waits.is_finished());
            drop(held);
        });
    }
}
