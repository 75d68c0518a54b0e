//! The order of a node's slots, in one word.
//!
//! ```text
//! | dead: 1 bit | 0: 3 bits | count: 4 bits | slot of position 13 … slot of position 0: 4 bits each |
//! ```
//! A slot is written before the word that has it is stored, and never again. So a loaded word is a snapshot of the node.

/// The most slots of a node.
pub(super) const SLOTS_MAX: usize = 14;

const BITS: usize = 4;
const COUNT: usize = SLOTS_MAX * BITS;
const ORDER: u64 = (1 << COUNT) - 1;
const DEAD: u64 = 1 << 63;

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slots(u64);

impl Slots {
    /// The slots 0 to `count`, in this order.
    pub(super) fn ascending(count: usize) -> Slots {
        (0..count).fold(Slots(0), |slots, at| slots.with(at))
    }

    #[inline]
    pub(super) fn of(word: u64) -> Slots {
        Slots(word)
    }

    #[inline]
    pub(super) fn word(self) -> u64 {
        self.0
    }

    #[inline]
    pub(super) fn count(self) -> usize {
        (self.0 >> COUNT & 0xf) as usize
    }

    /// Whether other nodes have replaced this one.
    #[inline]
    pub(super) fn is_dead(self) -> bool {
        self.0 & DEAD != 0
    }

    pub(super) fn dead(self) -> Slots {
        Slots(self.0 | DEAD)
    }

    /// The slot at a position.
    #[inline]
    pub(super) fn at(self, position: usize) -> usize {
        (self.0 >> (BITS * position) & 0xf) as usize
    }

    /// With the next unused slot at `position`; those from there on move by one.
    #[inline]
    pub(super) fn with(self, position: usize) -> Slots {
        let (count, low) = (self.count(), (1 << (BITS * position)) - 1);
        let order = self.0 & low | (count as u64) << (BITS * position) | (self.0 & ORDER & !low) << BITS;
        Slots(order | (count as u64 + 1) << COUNT)
    }

    /// The position of a slot that is in the order.
    #[inline]
    pub(super) fn position(self, slot: usize) -> Option<usize> {
        (0..self.count()).find(|position| self.at(*position) == slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_inserted_like_elements_of_a_vector() {
        for seed in 0..200_usize {
            let (mut slots, mut want) = (Slots::ascending(0), Vec::new());
            for slot in 0..SLOTS_MAX {
                let position = (seed * 31 + slot * 7919 + seed / 7) % (slot + 1);
                slots = slots.with(position);
                want.insert(position, slot);
                let found: Vec<usize> = (0..slots.count()).map(|at| slots.at(at)).collect();
                assert_eq!(found, want);
                assert!(want.iter().enumerate().all(|(at, slot)| slots.position(*slot) == Some(at)));
            }
            assert!(!slots.is_dead() && slots.dead().is_dead() && slots.dead().count() == SLOTS_MAX);
            assert_eq!(slots.position(SLOTS_MAX), None);
        }
    }
}
