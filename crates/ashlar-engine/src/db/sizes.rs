//! Estimated sizes of key ranges.
//!
//! Source: RocksDB `db/version_set.cc` (`ApproximateSize`), `include/rocksdb/options.h` (`SizeApproximationOptions`).

use super::Db;
use crate::column_family::Family;
use ashlar_base::Result;
use ashlar_read::super_version::SuperVersion;
use ashlar_tree::version::{FileMeta, Version};

/// The places that an estimate of sizes counts: see [`Db::approximate_sizes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[must_use]
pub struct SizeOptions {
    /// Bytes in memtables (RocksDB's `include_memtables`). Default: off.
    pub memtables: bool,
    /// Bytes of tables (RocksDB's `include_files`). Default: on.
    pub files: bool,
}

impl Default for SizeOptions {
    fn default() -> Self {
        SizeOptions { memtables: false, files: true }
    }
}

impl SizeOptions {
    /// The defaults: counts tables, not memtables.
    pub fn new() -> Self {
        SizeOptions::default()
    }

    /// Sets [`SizeOptions::memtables`].
    pub fn memtables(self, memtables: bool) -> Self {
        SizeOptions { memtables, ..self }
    }

    /// Sets [`SizeOptions::files`].
    pub fn files(self, files: bool) -> Self {
        SizeOptions { files, ..self }
    }
}

/// An estimate of a family's data in memtables for a key range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemtableStats {
    /// Point entries, all versions.
    pub count: u64,
    /// Bytes of those entries.
    pub bytes: u64,
}

impl Db {
    /// Estimates the bytes of tables, and of memtables if requested, for each key range `from..to`. Table bytes are
    /// compressed bytes, accurate to one block at the ends of a range. Blob files are not counted, as in RocksDB.
    ///
    /// # Errors
    /// `Corruption`, `Io`: a table at the end of a range cannot be opened. `Shutdown`.
    /// # Cost
    /// Two index searches per table that an end of a range falls into.
    pub fn approximate_sizes(
        &self,
        family: &Family,
        ranges: &[(&[u8], &[u8])],
        options: SizeOptions,
    ) -> Result<Vec<u64>> {
        let from = family.super_version.get();
        self.core().check_open()?;
        self.core().check_own(family)?;
        let size = |(begin, end): &(&[u8], &[u8])| {
            let files = if options.files { in_files(&from.version, begin, end)? } else { 0 };
            let memory = if options.memtables { in_memory(&from, begin, end).bytes } else { 0 };
            Ok(files + memory)
        };
        ranges.iter().map(size).collect()
    }

    /// Estimates the entries and bytes of the keys `from..to` in the memtables of a family, immutable ones included.
    ///
    /// # Errors
    /// `Shutdown`.
    pub fn approximate_memtable_stats(
        &self,
        family: &Family,
        from: &[u8],
        to: &[u8],
    ) -> Result<MemtableStats> {
        let version = family.super_version.get();
        self.core().check_open()?;
        self.core().check_own(family)?;
        Ok(in_memory(&version, from, to))
    }
}

fn in_memory(from: &SuperVersion, begin: &[u8], end: &[u8]) -> MemtableStats {
    let mut sum = MemtableStats::default();
    if from.version.order.compare(begin, end).is_ge() {
        return sum;
    }
    for memtable in std::iter::once(&from.mem).chain(&from.imm) {
        let (count, all) = (memtable.approximate_count(Some(begin), Some(end)), memtable.len().max(1));
        let bytes = memtable.memory() as u128 * u128::from(count) / u128::from(all);
        sum.count += count;
        sum.bytes += u64::try_from(bytes).unwrap_or(u64::MAX);
    }
    sum
}

fn in_files(version: &Version, begin: &[u8], end: &[u8]) -> Result<u64> {
    let order = &version.order;
    if order.compare(begin, end).is_ge() {
        return Ok(0);
    }
    let outside =
        |f: &FileMeta| f.ends_before(order, begin) || order.compare(f.smallest().user_key(), end).is_ge();
    let mut sum = 0;
    for (_, file) in version.files().filter(|(_, f)| !outside(f)) {
        let within = order.compare(file.smallest().user_key(), begin).is_ge() && file.ends_before(order, end);
        sum += match within {
            true => file.size(),
            false => version.table(file)?.approximate_size(begin, end),
        };
    }
    Ok(sum)
}
