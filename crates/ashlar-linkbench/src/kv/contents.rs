//! What a database must hold, as sums of the digests of its entries: one sum each for links, counts and nodes.
//!
//! 1. A put adds the digest of its entry; a rewrite or a delete subtracts the digest of the value that it read before.
//! 2. A batch that is lost whole leaves links, lists and counts consistent with each other. The sums still find it: they contain
//!    the lost entries, which a scan of the database does not.
//! 3. List entries have no sum. The check compares each of them with its link.

use crate::digest::of_entry;

/// Wrapping sums of digests. The difference of two states is a value of this type too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// Entries of `l`.
    pub links: u64,
    /// Entries of `c`.
    pub counts: u64,
    /// Entries of `n`.
    pub nodes: u64,
}

impl Contents {
    fn of(&mut self, key: &[u8]) -> Option<&mut u64> {
        match key.first() {
            Some(b'l') => Some(&mut self.links),
            Some(b'c') => Some(&mut self.counts),
            Some(b'n') => Some(&mut self.nodes),
            _ => None,
        }
    }

    /// Adds an entry. Keys of other spaces have no sum.
    pub fn add(&mut self, key: &[u8], value: &[u8]) {
        if let Some(sum) = self.of(key) {
            *sum = sum.wrapping_add(of_entry(key, value));
        }
    }

    /// Removes an entry that was added before.
    pub fn remove(&mut self, key: &[u8], value: &[u8]) {
        if let Some(sum) = self.of(key) {
            *sum = sum.wrapping_sub(of_entry(key, value));
        }
    }

    /// Both together.
    pub fn and(self, other: Contents) -> Contents {
        Contents {
            links: self.links.wrapping_add(other.links),
            counts: self.counts.wrapping_add(other.counts),
            nodes: self.nodes.wrapping_add(other.nodes),
        }
    }

    /// The three sums as numbers, for storing.
    pub fn numbers(self) -> [u64; 3] {
        [self.links, self.counts, self.nodes]
    }

    /// From [`Contents::numbers`].
    pub fn from_numbers([links, counts, nodes]: [u64; 3]) -> Contents {
        Contents { links, counts, nodes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_changes_does_not_matter_and_removing_undoes_adding() {
        let (mut one, mut two) = (Contents::default(), Contents::default());
        one.add(b"l1", b"a");
        one.add(b"n1", b"b");
        two.add(b"n1", b"b");
        two.add(b"l1", b"old");
        two.remove(b"l1", b"old");
        two.add(b"l1", b"a");
        two.add(b"i1", b"lists have no sum");
        assert_eq!(one, two);
        assert_ne!((one.links, one.nodes), (0, 0));
        assert_eq!((one.counts, Contents::from_numbers(one.numbers())), (0, one));
        assert_eq!(one.and(two).links, one.links.wrapping_mul(2));
    }
}
