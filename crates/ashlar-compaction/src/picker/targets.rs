//! How large each level may be: from the bottom up.
//!
//! The last level may hold all its data. The level above it may hold a `multiplier`-th of that, and so on up. The
//! *base* is the uppermost level in use below level 0: its target is at most `base_level_bytes`. With a multiplier of
//! 10, nine tenths of the data are in the last level, whatever the size of the database, and level 0 is compacted
//! directly into the base.
//!
//! Source: RocksDB `db/version_set.cc` (`CalculateBaseBytes`, dynamic level bytes).

use ashlar_options::CompactionOptions;

/// The base level and the target of each level.
#[derive(Clone, Debug, PartialEq)]
pub struct Targets {
    /// The level that level 0 is compacted into.
    pub base: usize,
    /// Bytes by level. Level 0 and levels above the base have no target: `u64::MAX`.
    pub bytes: Vec<u64>,
}

impl Targets {
    /// The targets for levels of these sizes, level 0 included.
    pub fn new(level_bytes: &[u64], options: &CompactionOptions) -> Targets {
        let last = level_bytes.len().saturating_sub(1);
        let mut bytes = vec![u64::MAX; level_bytes.len()];
        let first_used = level_bytes.iter().skip(1).position(|b| *b > 0).map(|at| at + 1);
        let Some(first_used) = first_used else {
            return Targets { base: last.max(1), bytes };
        };
        let most = options.base_level_bytes as f64;
        let largest = level_bytes.iter().skip(1).max().copied().unwrap_or(0) as f64;
        let multiplier = options.level_multiplier.max(1.1);
        let mut size = largest;
        for _ in first_used..last {
            size /= multiplier;
        }
        let mut base = first_used;
        if size <= most / multiplier {
            size = most / multiplier + 1.0;
        } else {
            while base > 1 && size > most {
                base -= 1;
                size /= multiplier;
            }
            size = size.min(most);
        }
        for target in bytes.iter_mut().skip(base) {
            *target = whole_bytes(size.max(most));
            size *= multiplier;
        }
        Targets { base, bytes }
    }

    /// The target of a level.
    pub fn of(&self, level: usize) -> u64 {
        self.bytes.get(level).copied().unwrap_or(u64::MAX)
    }
}

/// Rounds towards zero, and clamps to the range of the type, as `as` does for a float.
#[expect(clippy::cast_possible_truncation, reason = "saturating is what is meant")]
#[expect(clippy::cast_sign_loss, reason = "sizes are positive")]
fn whole_bytes(size: f64) -> u64 {
    size as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn targets(level_mib: &[u64]) -> (usize, Vec<u64>) {
        let bytes: Vec<u64> = level_mib.iter().map(|m| m << 20).collect();
        let t = Targets::new(&bytes, &CompactionOptions::default());
        let mib = t.bytes.iter().map(|b| if *b == u64::MAX { u64::MAX } else { b >> 20 }).collect();
        (t.base, mib)
    }

    #[test]
    fn an_empty_tree_fills_from_the_bottom() {
        assert_eq!(targets(&[500, 0, 0, 0, 0, 0, 0]), (6, vec![u64::MAX; 7]));
        assert_eq!(targets(&[0, 0]), (1, vec![u64::MAX; 2]));
    }

    #[test]
    fn the_base_moves_up_as_the_last_level_grows() {
        const NO: u64 = u64::MAX;
        assert_eq!(targets(&[0, 0, 0, 0, 0, 0, 200]), (6, vec![NO, NO, NO, NO, NO, NO, 256]));
        assert_eq!(targets(&[0, 0, 0, 0, 0, 0, 300]), (5, vec![NO, NO, NO, NO, NO, 256, 300]));
        assert_eq!(targets(&[0, 0, 0, 0, 0, 10, 2000]), (5, vec![NO, NO, NO, NO, NO, 256, 2000]));
        assert_eq!(targets(&[0, 0, 0, 0, 0, 300, 3000]), (4, vec![NO, NO, NO, NO, 256, 300, 3000]));
        // An upper level that is no longer used keeps a small target until it is empty.
        assert_eq!(targets(&[0, 0, 0, 0, 7, 0, 400]), (4, vec![NO, NO, NO, NO, 256, 256, 2560]));
    }

    #[test]
    fn the_first_level_never_exceeds_its_bound() {
        let (base, mib) = targets(&[0, 9000, 0, 0, 0, 0, 900_000_000]);
        assert_eq!((base, mib[1], mib[2]), (1, 256, 2560));
    }
}
