//! One live table file: its entry in the MANIFEST, and its state in the running engine.

use ashlar_base::memory::{MemoryBudget, MemoryCharge, MemoryUse};
use ashlar_base::{FileNumber, InternalKey, Order, SeqNum, Trailer};
use ashlar_format::table::Properties;
use ashlar_format::version_edit::NewFile;
use ashlar_sync::atomic::{AtomicBool, Ordering as Atomic};
use ashlar_sync::{Lease, LeaseSlot};
use ashlar_table::TableReader;
use std::cmp::Ordering;
use std::fmt;
use std::sync::{Arc, OnceLock, Weak};

/// The numbers of entries of a table, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableCounts {
    /// All entries, range tombstones included.
    pub entries: u64,
    /// Deletions among them, range tombstones included.
    pub deletions: u64,
    /// Range tombstones among them.
    pub range_deletions: u64,
    /// Bytes of all values.
    pub value_bytes: u64,
    /// Entries with a newer entry of the same key in the table. Known only for tables written since the open.
    pub older: u64,
    /// Largest sequence number of an entry that is no deletion; 0 if all are deletions. Known only for tables written
    /// since the open.
    pub newest_value: Option<SeqNum>,
    /// No deeper table could hold its keys and no snapshot was alive when the table was written, so a compaction could
    /// remove nothing from it.
    pub spent: bool,
}

impl TableCounts {
    /// The counts in the table's properties; `None` for a table without them (LevelDB's).
    pub fn of(said: &Properties) -> Option<TableCounts> {
        Some(TableCounts {
            entries: said.num_entries?,
            deletions: said.num_deletions.unwrap_or(0),
            range_deletions: said.num_range_deletions.unwrap_or(0),
            value_bytes: said.raw_value_size.unwrap_or(0),
            ..TableCounts::default()
        })
    }

    /// Whether the table has point deletions and nothing else. `verify` holds that against the entries.
    pub fn are_point_deletions(&self) -> bool {
        self.deletions == self.entries && self.range_deletions == 0
    }
}

/// A table file of a version. Shared by every version that holds it; a trivial move keeps the same value.
pub struct FileMeta {
    /// The MANIFEST's record of the file.
    pub file: NewFile,
    /// The table while it is open; see [`OpenTables`](super::OpenTables).
    pub table: LeaseSlot<TableReader>,
    /// The table was read since the clock hand passed. Relaxed, because it is only a hint.
    touched: AtomicBool,
    /// A reference to this value, for the ring of open tables.
    pub(super) me: Weak<FileMeta>,
    /// The numbers of its entries; known since the first use of the table, or since it was written.
    pub counts: OnceLock<TableCounts>,
    /// True while a compaction has the file as an input. Set and read under the state lock.
    pub compacting: AtomicBool,
    /// The memory of this value; set when the first version has the file.
    charge: OnceLock<MemoryCharge>,
}

impl FileMeta {
    /// A file that is not open yet.
    pub fn new(file: NewFile) -> Arc<FileMeta> {
        Arc::new_cyclic(|me| FileMeta {
            file,
            table: LeaseSlot::new(),
            touched: AtomicBool::new(false),
            me: Weak::clone(me),
            counts: OnceLock::new(),
            compacting: AtomicBool::new(false),
            charge: OnceLock::new(),
        })
    }

    /// Charges the memory of this value to `budget`, once.
    pub(super) fn charge_to(&self, budget: &Arc<MemoryBudget>) {
        let keys = self.smallest().encoded().len() + self.largest().encoded().len();
        self.charge.get_or_init(|| budget.charge(MemoryUse::Files, size_of::<FileMeta>() + keys));
    }

    /// The file's number.
    pub fn number(&self) -> FileNumber {
        self.file.number
    }

    /// The file's size in bytes, as the MANIFEST says.
    pub fn size(&self) -> u64 {
        self.file.size
    }

    /// About the memory of index and filter while the table is open: twice their bytes in the file. The estimate is the same whether
    /// the table is open, so that the form of new tables does not depend on that.
    pub fn index_bytes(&self) -> u64 {
        // The MANIFEST of an older release does not say the size of the tail.
        2 * if self.file.tail_size > 0 { self.file.tail_size } else { self.size() / 40 }
    }

    /// The first internal key.
    pub fn smallest(&self) -> InternalKey<'_> {
        self.file.smallest.as_key()
    }

    /// The last internal key. For a file that ends in a range tombstone, the exclusive end of the tombstone.
    pub fn largest(&self) -> InternalKey<'_> {
        self.file.largest.as_key()
    }

    /// Whether the largest key is exclusive: the end of a range tombstone.
    #[inline]
    pub fn ends_exclusive(&self) -> bool {
        self.largest().trailer() == Trailer::RANGE_END
    }

    /// Whether every key of the file is before `user_key`.
    #[inline]
    pub fn ends_before(&self, order: &Order, user_key: &[u8]) -> bool {
        match order.compare(self.largest().user_key(), user_key) {
            Ordering::Less => true,
            Ordering::Equal => self.ends_exclusive(),
            Ordering::Greater => false,
        }
    }

    /// Whether `user_key` is within the bounds of the file.
    #[inline]
    pub fn holds(&self, order: &Order, user_key: &[u8]) -> bool {
        order.compare(self.smallest().user_key(), user_key) != Ordering::Greater
            && !self.ends_before(order, user_key)
    }

    /// The table, if it is open. It stays open until the lease ends.
    #[inline]
    pub fn open_table(&self) -> Option<Lease<'_, TableReader>> {
        let open = self.table.lease()?;
        // Stores only when the value changes, so that hot cache lines stay shared between cores.
        if !self.touched.load(Atomic::Relaxed) {
            self.touched.store(true, Atomic::Relaxed);
        }
        Some(open)
    }

    /// Whether the table was read since the last call.
    pub(super) fn take_touch(&self) -> bool {
        self.touched.swap(false, Atomic::Relaxed)
    }

    /// Whether a range tombstone at `seq` is newer than every value in the file that it covers. False when the file's
    /// newest value is not known.
    #[inline]
    pub fn is_older_than(&self, seq: SeqNum) -> bool {
        self.counts.get().and_then(|counts| counts.newest_value).is_some_and(|newest| newest < seq)
    }

    /// Sets the numbers of its entries, if they are not known yet.
    pub fn note_counts(&self, counts: Option<TableCounts>) {
        if let Some(counts) = counts {
            self.counts.get_or_init(|| counts);
        }
    }

    /// Whether a compaction has the file as an input.
    pub fn is_compacting(&self) -> bool {
        // Relaxed: the flag is written and read under the state lock, which orders it.
        self.compacting.load(Atomic::Relaxed)
    }

    /// Marks the file as taken by a compaction, or as free again.
    pub fn set_compacting(&self, taken: bool) {
        self.compacting.store(taken, Atomic::Relaxed);
    }
}

impl fmt::Debug for FileMeta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[{:?} .. {:?}]", self.number().0, self.smallest(), self.largest())
    }
}
