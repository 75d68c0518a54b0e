//! The sizes of the tree.

use ashlar_base::Level;
use std::fmt::Write;

use ashlar_tree::version::Version;

/// Files and bytes of each level.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FamilyShape {
    /// Per level: tables and their bytes.
    pub levels: Vec<(usize, u64)>,
}

impl FamilyShape {
    /// The shape of a version.
    #[doc(hidden)]
    pub fn of(version: &Version) -> FamilyShape {
        let level = |n: usize| {
            let level = Level(u8::try_from(n).unwrap_or(u8::MAX));
            (version.level(level).len(), version.level_bytes(level))
        };
        FamilyShape { levels: (0..version.levels.len()).map(level).collect() }
    }

    /// The number of tables in all levels.
    pub fn tables(&self) -> usize {
        self.levels.iter().map(|l| l.0).sum()
    }

    /// Bytes of all tables.
    pub fn bytes(&self) -> u64 {
        self.levels.iter().map(|l| l.1).sum()
    }
}

/// RocksDB's `rocksdb.levelstats` text.
pub fn levelstats(shape: &FamilyShape) -> String {
    let mut out = String::from("Level Files Size(MB)\n--------------------\n");
    for (n, (files, bytes)) in shape.levels.iter().enumerate() {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{n:3} {files:8} {:8.0}", *bytes as f64 / 1_048_576.0);
    }
    out
}

/// RocksDB's `rocksdb.sstables` text: a line for each table, by level.
pub fn tables_text(version: &Version) -> String {
    let mut out = String::new();
    for (n, files) in version.levels.iter().enumerate() {
        let _ = writeln!(out, "--- level {n} ---");
        for file in files {
            let (number, size) = (file.number().0, file.size());
            let _ = writeln!(out, " {number}:{size}[{:?} .. {:?}]", file.smallest(), file.largest());
        }
    }
    out
}

/// Estimated bytes after a full compaction: the bytes of tables that no deeper table overlaps.
pub fn live_data_bytes(version: &Version) -> u64 {
    let deepest = version.levels.len();
    let alone = |level: Level, smallest: &[u8], largest: &[u8]| {
        (level.index() + 1..deepest).all(|deeper| {
            let deeper = Level(u8::try_from(deeper).unwrap_or(u8::MAX));
            version.overlapping(deeper, smallest, largest).is_empty()
        })
    };
    let files = version.files();
    let counted = files.filter(|(level, f)| alone(*level, f.smallest().user_key(), f.largest().user_key()));
    counted.map(|(_, f)| f.size()).fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levelstats_have_a_line_each() {
        let shape = FamilyShape { levels: vec![(2, 3 << 20), (0, 0)] };
        assert_eq!((shape.tables(), shape.bytes()), (2, 3 << 20));
        assert_eq!(
            levelstats(&shape),
            "Level Files Size(MB)\n--------------------\n  0        2        3\n  1        0        0\n"
        );
    }
}
