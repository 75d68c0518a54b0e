//! Finds the tables whose keys all lie in some ranges. A pure function of a version.
//!
//! 1. Level 0 is left out. Its tables overlap, and removing a newer table without an older one would bring old values
//!    back.
//! 2. In deeper levels, the versions of one user key may be in two neighbouring tables. Such neighbours are taken
//!    together or not at all.
//!
//! Source: RocksDB `db/db_impl/db_impl.cc` (`DeleteFilesInRanges`), `db/version_set.cc`
//! (`GetCleanInputsWithinInterval`).

use crate::version::{FileMeta, Version};
use ashlar_base::{Level, Order};
use std::sync::Arc;

/// User keys from the first on up to the second; `None`: without bound.
pub type KeyRange<'a> = (Option<&'a [u8]>, Option<&'a [u8]>);

/// The tables below level 0 that lie in one of `ranges` as a whole, ends included if `include_end` says so, and that no
/// compaction works on.
pub fn tables_within(
    version: &Version,
    ranges: &[KeyRange<'_>],
    include_end: bool,
) -> Vec<(Level, Arc<FileMeta>)> {
    let mut picked = Vec::new();
    for (level, files) in (0u8..).zip(&version.levels).skip(1) {
        let mut taken = vec![false; files.len()];
        for range in ranges {
            let (from, to) = clean(&version.order, files, *range, include_end);
            taken.iter_mut().take(to).skip(from).for_each(|t| *t = true);
        }
        let chosen = files.iter().zip(taken).filter(|(file, taken)| *taken && !file.is_compacting());
        picked.extend(chosen.map(|(file, _)| (Level(level), Arc::clone(file))));
    }
    picked
}

/// The stretch of a level's files that lie in the range and share no user key with their neighbours outside.
fn clean(order: &Order, files: &[Arc<FileMeta>], range: KeyRange<'_>, include_end: bool) -> (usize, usize) {
    let (begin, end) = range;
    let starts_in = |f: &FileMeta| begin.is_none_or(|b| order.compare(f.smallest().user_key(), b).is_ge());
    let ends_in = |f: &FileMeta| {
        end.is_none_or(|e| {
            f.ends_before(order, e) || include_end && order.compare(f.largest().user_key(), e).is_eq()
        })
    };
    let mut from = files.partition_point(|f| !starts_in(f));
    let mut to = files.partition_point(|f| ends_in(f)).max(from);
    let joined = |at: usize| match (files.get(at.wrapping_sub(1)), files.get(at)) {
        (Some(a), Some(b)) => {
            order.compare(a.largest().user_key(), b.smallest().user_key()).is_eq() && !a.ends_exclusive()
        }
        _ => false,
    };
    while from < to && joined(from) {
        from += 1;
    }
    while from < to && joined(to) {
        to -= 1;
    }
    (from, to)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::{OpenTables, Tables};
    use ashlar_base::{FileNumber, InternalKeyBuf, SeqNum, Trailer, ValueType};
    use ashlar_cache::FramePool;
    use ashlar_env::Env;
    use ashlar_format::version_edit::NewFile;
    use std::path::PathBuf;

    /// A version whose level 1 has tables with these first and last keys; level 0 has one over all.
    fn version(bounds: &[(&str, u64, &str, u64)]) -> Version {
        let seq = |n| SeqNum::new(n).unwrap();
        let key = |k: &str, n| InternalKeyBuf::new(k.as_bytes(), Trailer::new(seq(n), ValueType::Put));
        let file = |number, (a, s, b, l): &(&str, u64, &str, u64)| {
            FileMeta::new(NewFile::new(FileNumber(number), 1, (key(a, *s), key(b, *l)), (seq(0), seq(9))))
        };
        let tables = Tables::new(
            Env::mem(),
            PathBuf::from("/db"),
            OpenTables::new(FramePool::new(1 << 20)),
            Order::Bytewise,
        );
        let mut version = Version::empty(3, tables);
        version.levels[0].push(file(100, &("a", 9, "z", 1)));
        version.levels[1].extend((1u64..).zip(bounds).map(|(n, b)| file(n, b)));
        version
    }

    /// The numbers of the files found. An empty bound is no bound.
    fn numbers(version: &Version, ranges: &[(&'static str, &'static str)], include_end: bool) -> Vec<u64> {
        let bound = |s: &'_ str| !s.is_empty();
        let range = |(a, b): &(&'static str, &'static str)| -> KeyRange<'static> {
            (bound(a).then_some(a.as_bytes()), bound(b).then_some(b.as_bytes()))
        };
        let ranges: Vec<_> = ranges.iter().map(range).collect();
        tables_within(version, &ranges, include_end).iter().map(|(_, f)| f.number().0).collect()
    }

    #[test]
    fn whole_tables_only() {
        let v = version(&[("b", 1, "d", 1), ("e", 1, "g", 1), ("h", 1, "k", 1)]);
        assert_eq!(numbers(&v, &[("b", "g")], true), [1, 2]);
        assert_eq!(numbers(&v, &[("b", "g")], false), [1]);
        assert_eq!(numbers(&v, &[("c", "j")], true), [2]);
        assert_eq!(numbers(&v, &[("", "")], false), [1, 2, 3]);
        assert_eq!(numbers(&v, &[("", "d"), ("h", "")], true), [1, 3]);
        assert_eq!(numbers(&v, &[("x", "b"), ("f", "f")], true), Vec::<u64>::new());
        v.levels[1][1].set_compacting(true);
        assert_eq!(numbers(&v, &[("", "")], true), [1, 3]);
    }

    #[test]
    fn versions_of_one_key_stay_together() {
        let v = version(&[("b", 1, "d", 7), ("d", 5, "d", 3), ("d", 2, "g", 1), ("h", 1, "k", 1)]);
        assert_eq!(numbers(&v, &[("a", "d")], true), Vec::<u64>::new());
        assert_eq!(numbers(&v, &[("c", "z")], true), [4]);
        assert_eq!(numbers(&v, &[("a", "g")], true), [1, 2, 3]);
    }
}
