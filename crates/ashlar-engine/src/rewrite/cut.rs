//! Where one output ends and the next begins: a pure rule over file size and the level after the next.
//!
//! 1. Never between versions of one user key: the caller asks only at the first version of a key.
//! 2. At the target size.
//! 3. Where the output would overlap more than `overlap_bytes_max` of the grandparent level, so that the compaction
//!    that later moves it down stays bounded.
//! 4. At a border between two grandparent tables, once three quarters of the target are full: a later compaction of
//!    the output then touches one table less.
//!
//! Source: RocksDB `db/compaction/compaction_outputs.cc` (behaviour).

use ashlar_base::Order;

/// A table of the level below the output level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grandparent {
    /// Its largest user key.
    pub largest: Vec<u8>,
    /// Its size.
    pub size_bytes: u64,
}

/// The limits of one rewrite's outputs.
#[derive(Clone, Debug)]
pub struct CutLimits {
    /// An output of this many bytes is full.
    pub target_bytes: u64,
    /// What one output may overlap of the grandparents at most.
    pub overlap_bytes_max: u64,
    /// The grandparents in the rewrite's range, in key order.
    pub grandparents: Vec<Grandparent>,
}

impl CutLimits {
    /// One output, whatever its size: flush.
    pub fn none() -> Self {
        CutLimits { target_bytes: u64::MAX, overlap_bytes_max: u64::MAX, grandparents: Vec::new() }
    }
}

/// The rule, with its place among the grandparents.
#[derive(Debug)]
pub struct Cut {
    limits: CutLimits,
    order: Order,
    at: usize,
    overlapped: u64,
    began: bool,
}

impl Cut {
    /// The rule at the start of the first output.
    pub fn new(limits: CutLimits, order: Order) -> Self {
        Cut { limits, order, at: 0, overlapped: 0, began: false }
    }

    /// Whether an output of `size_bytes` ends before `user_key`, the first version of a new key. Keys ascend; a
    /// `true` begins the next output with this key.
    #[inline]
    pub fn before(&mut self, user_key: &[u8], size_bytes: u64) -> bool {
        let crossed = !self.limits.grandparents.is_empty() && self.cross(user_key);
        let limits = &self.limits;
        let full = size_bytes >= limits.target_bytes;
        let nearly_full = crossed && size_bytes >= limits.target_bytes / 4 * 3;
        let cut = self.began && (full || nearly_full || self.overlapped > limits.overlap_bytes_max);
        if cut {
            self.overlapped = 0;
        }
        self.began = true;
        cut
    }

    /// Passes the grandparents that end before `user_key`; true if there were any.
    fn cross(&mut self, user_key: &[u8]) -> bool {
        let start = self.at;
        while let Some(table) = self.limits.grandparents.get(self.at) {
            if self.order.compare(&table.largest, user_key).is_ge() {
                break;
            }
            if self.began {
                self.overlapped = self.overlapped.saturating_add(table.size_bytes);
            }
            self.at += 1;
        }
        self.at > start
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(target: u64, overlap: u64, grandparents: &[(&str, u64)]) -> Cut {
        let grandparents = grandparents
            .iter()
            .map(|(largest, size_bytes)| Grandparent {
                largest: largest.as_bytes().to_vec(),
                size_bytes: *size_bytes,
            })
            .collect();
        let limits = CutLimits { target_bytes: target, overlap_bytes_max: overlap, grandparents };
        Cut::new(limits, Order::Bytewise)
    }

    #[test]
    fn at_the_target_size() {
        let mut c = cut(100, 1000, &[]);
        assert_eq!([0, 99, 100, 0, 100].map(|size| c.before(b"k", size)), [false, false, true, false, true]);
    }

    #[test]
    fn never_an_empty_output() {
        assert!(!cut(0, 0, &[("a", 50), ("b", 50)]).before(b"c", 0));
    }

    #[test]
    fn by_overlap_with_grandparents() {
        let mut c = cut(1000, 25, &[("b", 10), ("d", 10), ("f", 10), ("h", 10), ("j", 10)]);
        let cuts: Vec<bool> = "aceghik".bytes().map(|k| c.before(&[k], 1)).collect();
        // b, d and f are passed on the way to g: 30 > 25. h and j follow in the second output.
        assert_eq!(cuts, [false, false, false, true, false, false, false]);
    }

    #[test]
    fn at_a_grandparent_border_when_nearly_full() {
        let mut c = cut(100, 1000, &[("m", 10)]);
        assert_eq!([(b"a", 0), (b"c", 80), (b"n", 80)].map(|(k, s)| c.before(k, s)), [false, false, true]);
        let mut c = cut(100, 1000, &[("m", 10)]);
        assert_eq!([(b"a", 0), (b"n", 70), (b"o", 80)].map(|(k, s)| c.before(k, s)), [false, false, false]);
    }
}
