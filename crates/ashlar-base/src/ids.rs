//! Integers with a meaning: file numbers, family ids, levels.

use std::fmt;

/// The number in a file's name. One counter serves the WAL files, tables, MANIFESTs and OPTIONS files of a database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileNumber(pub u64);

impl FileNumber {
    /// File numbers fit 62 bits: RocksDB packs a path id above them.
    pub const MAX: FileNumber = FileNumber((1 << 62) - 1);
    /// The largest file number with which a database opens for writing. Above it fewer than 2^20 numbers would be left,
    /// and without numbers a database cannot create a WAL file.
    pub const HIGHEST: FileNumber = FileNumber(Self::MAX.0 - (1 << 20));
}

impl fmt::Display for FileNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:06}", self.0)
    }
}

/// The id of a column family; never reused. 0 is `default`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FamilyId(pub u32);

impl FamilyId {
    /// The family `default`, which always exists.
    pub const DEFAULT: FamilyId = FamilyId(0);
}

/// A level of the tree; 0 holds flushed tables, which may overlap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Level(pub u8);

impl Level {
    /// The level that flushes write to.
    pub const ZERO: Level = Level(0);

    /// The level as an index into an array of levels.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "L{}", self.0)
    }
}
