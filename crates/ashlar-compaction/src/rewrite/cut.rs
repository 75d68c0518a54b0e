//! Where one output ends and the next begins: a pure rule over file size and the level after the next.
//!
//! 1. Never between versions of one user key: the caller asks only at the first version of a key.
//! 2. At the target size. If there are grandparents, at twice the target, because then the ends of outputs matter more:
//!    each end lies in a table that a later compaction of the output must rewrite.
//! 3. At a border between two grandparents, once the output has half of the target size. For each border that the
//!    output has passed, a twentieth of the target more is required, up to nine tenths: after many borders the next one
//!    is near.
//! 4. Where the output would overlap more than `overlap_bytes_max` of the grandparents, so that the later compaction of
//!    the output stays bounded.
//! 5. Where grandparents of more than an eighth of the target lie between two keys: a later compaction need not rewrite
//!    them.
//! 6. Where the user's partitioner says so, whatever the size.
//!
//! Source: RocksDB `db/compaction/compaction_outputs.cc` (`ShouldStopBefore`, behaviour).

use super::partitions::Partitioning;
use ashlar_base::Order;

/// A table of the level below the output level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grandparent {
    /// The largest user key of the table.
    pub largest: Vec<u8>,
    /// The size of the table.
    pub size_bytes: u64,
}

/// The limits of one rewrite's outputs.
#[derive(Clone, Debug)]
pub struct CutLimits {
    /// An output of this many bytes is full.
    pub target_bytes: u64,
    /// The largest number of grandparent bytes that one output may overlap.
    pub overlap_bytes_max: u64,
    /// The grandparents in the rewrite's range, in key order.
    pub grandparents: Vec<Grandparent>,
}

impl CutLimits {
    /// For a flush: one output, whatever its size.
    pub fn none() -> Self {
        CutLimits { target_bytes: u64::MAX, overlap_bytes_max: u64::MAX, grandparents: Vec::new() }
    }
}

/// The rule, and its position among the grandparents.
#[derive(Debug)]
pub struct Cut {
    limits: CutLimits,
    order: Order,
    at: usize,
    /// Grandparents that the current output has passed, and their bytes.
    passed: u64,
    overlapped: u64,
    began: bool,
    partitioning: Option<Box<Partitioning>>,
}

/// Grandparents that end between two keys.
#[derive(Default)]
struct Crossed {
    tables: u64,
    /// Bytes of the grandparents that also begin there. Known for all except the first.
    skipped: u64,
}

impl Cut {
    /// The rule at the start of the first output.
    pub fn new(limits: CutLimits, order: Order) -> Self {
        Cut { limits, order, at: 0, passed: 0, overlapped: 0, began: false, partitioning: None }
    }

    /// Asks the user's partitioner too.
    pub(super) fn partition_by(&mut self, partitioning: Option<Box<Partitioning>>) {
        self.partitioning = partitioning;
    }

    /// Whether the user's partitioner panicked.
    pub(super) fn has_failed(&self) -> bool {
        self.partitioning.as_ref().is_some_and(|partitioning| partitioning.has_failed())
    }

    /// Whether the output of `size_bytes` ends before `user_key`, the first version of a new key. Keys ascend; after
    /// `true` this key begins the next output.
    #[inline]
    pub fn before(&mut self, user_key: &[u8], size_bytes: u64) -> bool {
        let has_grandparents = !self.limits.grandparents.is_empty();
        let crossed = if has_grandparents { self.cross(user_key) } else { Crossed::default() };
        let target = self.limits.target_bytes;
        let most = if has_grandparents { target.saturating_mul(2) } else { target };
        let at_border = || crossed.tables > 0 && self.ends_at_border(&crossed, size_bytes);
        let full = self.began && (size_bytes >= most || at_border());
        let cut = match &mut self.partitioning {
            None => full,
            Some(partitioning) => partitioning.cuts_before(user_key, size_bytes) || full,
        };
        if cut {
            self.restart();
        }
        self.began = true;
        cut
    }

    /// The next key begins another output, for a reason that is not in this rule.
    pub fn restart(&mut self) {
        (self.passed, self.overlapped) = (0, 0);
    }

    /// Rules 3 to 5.
    fn ends_at_border(&self, crossed: &Crossed, size_bytes: u64) -> bool {
        let target = self.limits.target_bytes;
        let before = self.passed.saturating_sub(crossed.tables);
        let enough = target / 20 * before.saturating_add(10).min(18);
        size_bytes >= enough
            || crossed.skipped > target / 8
            || self.overlapped > self.limits.overlap_bytes_max
    }

    /// Passes the grandparents that end before `user_key`.
    fn cross(&mut self, user_key: &[u8]) -> Crossed {
        let mut crossed = Crossed::default();
        while let Some(table) = self.limits.grandparents.get(self.at) {
            if self.order.compare(&table.largest, user_key).is_ge() {
                break;
            }
            if self.began {
                self.overlapped = self.overlapped.saturating_add(table.size_bytes);
                if crossed.tables > 0 {
                    crossed.skipped = crossed.skipped.saturating_add(table.size_bytes);
                }
                crossed.tables += 1;
                self.passed += 1;
            }
            self.at += 1;
        }
        crossed
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
    fn at_a_grandparent_border_when_half_full() {
        let cuts = |steps: &[(&str, u64)]| {
            let mut c = cut(100, 1000, &[("f", 10), ("m", 10), ("t", 10)]);
            steps.iter().map(|(key, size)| c.before(key.as_bytes(), *size)).collect::<Vec<_>>()
        };
        assert_eq!(cuts(&[("a", 0), ("c", 50), ("g", 50)]), [false, false, true]);
        assert_eq!(cuts(&[("a", 0), ("g", 49), ("h", 199), ("i", 200)]), [false, false, false, true]);
        // Each passed border raises the required size.
        assert_eq!(cuts(&[("a", 0), ("g", 49), ("n", 54), ("u", 59)]), [false, false, false, false]);
        assert_eq!(cuts(&[("a", 0), ("g", 49), ("n", 55), ("u", 49)]), [false, false, true, false]);
    }

    #[test]
    fn before_a_gap_in_which_a_large_grandparent_lies() {
        let mut c = cut(100, 1000, &[("f", 10), ("m", 10), ("t", 20), ("z", 10)]);
        assert_eq!(["a", "g", "n", "zz"].map(|k| c.before(k.as_bytes(), 1)), [false, false, false, false]);
        let mut c = cut(100, 1000, &[("f", 10), ("m", 20), ("t", 10)]);
        assert_eq!(["a", "n", "o"].map(|k| c.before(k.as_bytes(), 1)), [false, true, false]);
    }
}
