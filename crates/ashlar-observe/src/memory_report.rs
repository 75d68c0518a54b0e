//! The memory of a database by class, with the owner that can give each class back.

use crate::human::bytes;
use std::collections::BTreeMap;
use std::fmt;

/// What memory is held for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum MemoryClass {
    /// Blocks in the cache that no reader holds.
    CachedBlocks,
    /// Blocks that cursors and views hold, in the cache or outside it.
    HeldBlocks,
    /// Copies of 16 KiB and more that readers hold: values of memtables and blob files, folded values, keys of cursors.
    HeldValues,
    /// The cursors of this database themselves, about: some KiB each. Estimated from their number, and not charged to the cap.
    Cursors,
    /// Memtables that take writes.
    WritableMemtables,
    /// Memtables that wait for their flush.
    ImmutableMemtables,
    /// Memtables that are flushed and that readers still hold.
    HeldMemtables,
    /// Indexes, filters, dictionaries and block slots of open tables.
    Tables,
    /// What versions know of each table (number, size, first and last key), and what each family takes beside its data.
    Files,
    /// Buffers of the WAL.
    Wal,
    /// Batches on their way through the WAL into the memtables, and copies of long values that wait for their write.
    Batches,
    /// Buffers of flushes and compactions, the range tombstones that they write, and large blocks while they are read.
    Buffers,
    /// Merge operands that a flush, a compaction or a read folds.
    Operands,
    /// Operations of transactions that are prepared and not decided on.
    Prepared,
}

impl MemoryClass {
    /// All classes, in the order of the report.
    pub const ALL: [MemoryClass; 14] = [
        MemoryClass::CachedBlocks,
        MemoryClass::HeldBlocks,
        MemoryClass::HeldValues,
        MemoryClass::Cursors,
        MemoryClass::WritableMemtables,
        MemoryClass::ImmutableMemtables,
        MemoryClass::HeldMemtables,
        MemoryClass::Tables,
        MemoryClass::Files,
        MemoryClass::Wal,
        MemoryClass::Batches,
        MemoryClass::Buffers,
        MemoryClass::Operands,
        MemoryClass::Prepared,
    ];

    /// The name in texts and maps.
    pub fn name(self) -> &'static str {
        match self {
            MemoryClass::CachedBlocks => "cached-blocks",
            MemoryClass::HeldBlocks => "held-blocks",
            MemoryClass::HeldValues => "held-values",
            MemoryClass::Cursors => "cursors",
            MemoryClass::WritableMemtables => "writable-memtables",
            MemoryClass::ImmutableMemtables => "immutable-memtables",
            MemoryClass::HeldMemtables => "held-memtables",
            MemoryClass::Tables => "tables",
            MemoryClass::Files => "files",
            MemoryClass::Wal => "wal",
            MemoryClass::Batches => "batches",
            MemoryClass::Buffers => "buffers",
            MemoryClass::Operands => "merge-operands",
            MemoryClass::Prepared => "prepared-transactions",
        }
    }

    /// What holds the memory, and gives it back.
    pub fn owner(self) -> &'static str {
        match self {
            MemoryClass::CachedBlocks => "the block cache",
            MemoryClass::HeldBlocks => "cursors and views",
            MemoryClass::HeldValues => "cursors and views",
            MemoryClass::Cursors => "cursors",
            MemoryClass::WritableMemtables => "writers",
            MemoryClass::ImmutableMemtables => "flushes",
            MemoryClass::HeldMemtables => "cursors, views and snapshots with a filter",
            MemoryClass::Tables => "open tables",
            MemoryClass::Files => "versions and families",
            MemoryClass::Wal => "the WAL",
            MemoryClass::Batches => "writers",
            MemoryClass::Buffers => "flushes, compactions and reads",
            MemoryClass::Operands => "flushes, compactions and reads",
            MemoryClass::Prepared => "prepared transactions",
        }
    }
}

/// The memory of a database, or of all databases under one cap, at one moment. The classes are read one after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryReport {
    /// The cap in bytes.
    pub cap: u64,
    /// Bytes in use within the writable and the immutable memtables; the rest of them is reserved, and may have no pages yet.
    pub used_in_memtables: u64,
    /// Free bytes in the heap of glibc 2.33 and later, whatever code freed them: under no cap and in no class. An upper bound of what is
    /// resident, because the system has some of these pages back. 0 without that library, and of little use in a program with
    /// another allocator.
    pub kept_by_allocator: u64,
    held: BTreeMap<MemoryClass, u64>,
}

impl MemoryReport {
    /// A report of these classes.
    pub fn new(cap: u64, used_in_memtables: u64, held: impl IntoIterator<Item = (MemoryClass, u64)>) -> Self {
        MemoryReport { cap, used_in_memtables, held: held.into_iter().collect(), kept_by_allocator: 0 }
    }

    /// Bytes of a class.
    pub fn of(&self, class: MemoryClass) -> u64 {
        self.held.get(&class).copied().unwrap_or_default()
    }

    /// Bytes of all classes.
    pub fn total(&self) -> u64 {
        self.held.values().sum()
    }

    /// [`total`](Self::total) without what memtables have reserved and not used. The anonymous pages of the classes lie between the two:
    /// many small memtables have pages for all that they reserve, and one large memtable for what it uses.
    pub fn in_use(&self) -> u64 {
        let memtables = self.of(MemoryClass::WritableMemtables) + self.of(MemoryClass::ImmutableMemtables);
        self.total() - memtables.saturating_sub(self.used_in_memtables)
    }

    /// Bytes that only cursors, views and snapshots keep.
    pub fn held_by_readers(&self) -> u64 {
        let held = [
            MemoryClass::HeldBlocks,
            MemoryClass::HeldValues,
            MemoryClass::Cursors,
            MemoryClass::HeldMemtables,
        ];
        held.map(|class| self.of(class)).iter().sum()
    }

    /// Bytes by name: `cap`, `total`, `used-in-memtables`, `kept-by-allocator` and every class.
    pub fn map(&self) -> BTreeMap<String, String> {
        let sums = [
            ("cap", self.cap),
            ("total", self.total()),
            ("used-in-memtables", self.used_in_memtables),
            ("kept-by-allocator", self.kept_by_allocator),
        ];
        let classes = MemoryClass::ALL.map(|class| (class.name(), self.of(class)));
        sums.into_iter().chain(classes).map(|(name, n)| (name.to_owned(), n.to_string())).collect()
    }

    /// A line for each class, its bytes and its owner, and a line for what the allocator keeps.
    pub fn text(&self) -> String {
        let mut text = format!("memory: {} of a cap of {}\n", bytes(self.total()), bytes(self.cap));
        for class in MemoryClass::ALL {
            let (name, held, owner) = (class.name(), bytes(self.of(class)), class.owner());
            text += &format!("  {name:<20} {held:>12}  {owner}\n");
        }
        let kept = bytes(self.kept_by_allocator);
        text + &format!("beside it, freed but kept by the allocator of the process: {kept}\n")
    }
}

/// One line, without what has no bytes.
impl fmt::Display for MemoryReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "memory {} of {}", bytes(self.total()), bytes(self.cap))?;
        for class in MemoryClass::ALL.into_iter().filter(|class| self.of(*class) > 0) {
            write!(f, ", {} {}", class.name(), bytes(self.of(class)))?;
        }
        match self.kept_by_allocator {
            0 => Ok(()),
            kept => write!(f, ", and {} kept by the allocator", bytes(kept)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_add_up_and_have_owners() {
        let held = [(MemoryClass::CachedBlocks, 3 << 20), (MemoryClass::HeldBlocks, 1 << 20)];
        let mut report = MemoryReport::new(16 << 20, 0, held);
        assert_eq!((report.total(), report.held_by_readers()), (4 << 20, 1 << 20));
        assert_eq!(
            report.to_string(),
            "memory 4.00 MB of 16.00 MB, cached-blocks 3.00 MB, held-blocks 1.00 MB"
        );
        report.kept_by_allocator = 5 << 20;
        assert!(report.to_string().ends_with("held-blocks 1.00 MB, and 5.00 MB kept by the allocator"));
        assert_eq!((report.map()["kept-by-allocator"].as_str(), report.total()), ("5242880", 4 << 20));
        assert_eq!(report.map().len(), 4 + MemoryClass::ALL.len());
        assert_eq!(report.map()["held-blocks"], "1048576");
        let text = report.text();
        let reserved = [(MemoryClass::CachedBlocks, 1000), (MemoryClass::ImmutableMemtables, 500)];
        assert_eq!(MemoryReport::new(16 << 20, 300, reserved).in_use(), 1300);
        assert!(text.contains("cursors and views") && text.lines().count() == 2 + MemoryClass::ALL.len());
        assert!(text.ends_with("of the process: 5.00 MB\n"));
        let names: std::collections::BTreeSet<_> = MemoryClass::ALL.map(MemoryClass::name).into();
        assert_eq!(names.len(), MemoryClass::ALL.len());
    }
}
