//! Every property name of RocksDB, with the type of its value here or the reason why it has none.
//!
//! A name that ends in `<N>` takes a number: a level, or a temperature.
//! Source: RocksDB 11 `db/internal_stats.cc`, `include/rocksdb/db.h` (`DB::Properties`).

use ashlar_options::MOST_LEVELS;

/// The type of a property's value, or why it has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A number, which is also the text.
    Number,
    /// A text.
    Text,
    /// A text, also available as names and values.
    Map,
    /// Not supported, with the reason.
    Refused(&'static str),
}

/// A property.
#[derive(Clone, Copy, Debug)]
pub struct Property {
    /// The name after `rocksdb.`, without the number.
    pub name: &'static str,
    /// Whether the name takes a number.
    pub numbered: bool,
    /// The type of the value.
    pub answer: Answer,
    /// A description of the value.
    pub about: &'static str,
}

const NO_BLOB_CACHE: Answer =
    Refused("values of blob files are kept in no cache, and without one RocksDB does not answer either");

macro_rules! properties {
    ($($name:literal $(($n:ident))? => $answer:expr, $about:literal;)*) => {
        /// The properties.
        pub const PROPERTIES: &[Property] = &[
            $(Property {
                name: $name,
                numbered: properties!(@numbered $($n)?),
                answer: $answer,
                about: $about,
            },)*
        ];
    };
    (@numbered) => { false };
    (@numbered $n:ident) => { true };
}

use Answer::{Map, Number, Refused, Text};

properties! {
    "num-files-at-level" (N) => Text, "tables in a level";
    "compression-ratio-at-level" (N) => Text, "bytes of keys and values per stored byte in a level; -1 of an empty one";
    "stats" => Text, "cfstats and dbstats";
    "sstables" => Text, "every table with its level, size and bounds";
    "cfstats" => Map, "the levels of the family and the work of flushes and compactions in them";
    "cfstats-no-file-histogram" => Text, "the same text as cfstats";
    "cf-file-histogram" => Refused("read times are kept for the whole database: rocksdb.sst.read.micros"), "read times per level";
    "cf-write-stall-stats" => Map, "how often writers were held";
    "dbstats" => Map, "writes, WAL and stalls of the database";
    "db-write-stall-stats" => Map, "how often writers were held by limits of the whole database";
    "levelstats" => Text, "tables and MB per level";
    "block-cache-entry-stats" => Map, "the memory by role of cache entry";
    "fast-block-cache-entry-stats" => Map, "the same values as block-cache-entry-stats, which are always current";
    "space-amplification" => Text, "AshlarDB's own: bytes of the family's tables and blob files for each byte of its live data";
    "memory-report" => Map, "AshlarDB's own: the memory under the cap by class, with the owner of each";
    "disk-use" => Map, "AshlarDB's own: the disk space of the database, its quota and its reserve";
    "num-immutable-mem-table" => Number, "memtables that wait for their flush";
    "num-immutable-mem-table-flushed" => Number, "flushed memtables that are still listed: always 0";
    "mem-table-flush-pending" => Number, "1 when a memtable waits for its flush";
    "compaction-pending" => Number, "1 when a level is due for compaction";
    "background-errors" => Number, "errors of background work since the open";
    "cur-size-active-mem-table" => Number, "bytes of the memtable that takes writes";
    "cur-size-all-mem-tables" => Number, "bytes of all memtables";
    "size-all-mem-tables" => Number, "bytes of all memtables";
    "num-entries-active-mem-table" => Number, "entries of the memtable that takes writes";
    "num-entries-imm-mem-tables" => Number, "entries of the memtables that wait for their flush";
    "num-deletes-active-mem-table" => Number, "deletions of single keys in the memtable that takes writes";
    "num-deletes-imm-mem-tables" => Number, "deletions of single keys in the memtables that wait for their flush";
    "estimate-num-keys" => Number, "estimated number of keys: entries minus twice the deletions";
    "estimate-table-readers-mem" => Number, "bytes of indexes and filters of open tables";
    "is-file-deletions-enabled" => Number, "1: obsolete files are unlinked";
    "num-snapshots" => Number, "live snapshots";
    "oldest-snapshot-time" => Number, "seconds since 1970 at which the oldest snapshot was taken; 0 without one";
    "oldest-snapshot-sequence" => Number, "the sequence number of the oldest snapshot; 0 without one";
    "num-live-versions" => Number, "versions of the family that readers use, the current one included";
    "current-super-version-number" => Number, "grows with every change that readers see";
    "estimate-live-data-size" => Number, "estimated bytes after a full compaction";
    "min-log-number-to-keep" => Number, "the first WAL file that is needed";
    "min-obsolete-sst-number-to-keep" => Number, "tables from this number on are being written and must stay";
    "base-level" => Number, "the level that level 0 is compacted to";
    "total-sst-files-size" => Number, "bytes of the tables of all live versions";
    "live-sst-files-size" => Number, "bytes of the tables of the current version";
    "obsolete-sst-files-size" => Number, "bytes of obsolete tables that are not removed yet; lists the directory";
    "live-sst-files-size-at-temperature" (N) => Text, "bytes of the current version's tables of a temperature; 0 is the usual temperature";
    "estimate-pending-compaction-bytes" => Number, "bytes that compaction still has to move";
    "aggregated-table-properties" => Map, "the properties of all tables together";
    "aggregated-table-properties-at-level" (N) => Map, "the properties of the tables of a level together";
    "num-running-compactions" => Number, "running compactions of all families";
    "num-running-compaction-sorted-runs" => Number, "runs that running compactions merge: each table of level 0, each deeper level";
    "compaction-abort-count" => Number, "requests to abort compactions that were not taken back";
    "num-unscheduled-compactions" => Number, "queued compactions: always 0, because a compaction is picked when it can run";
    "num-running-flushes" => Number, "running flushes of all families";
    "actual-delayed-write-rate" => Number, "bytes per second that slowed writers get; 0: not slowed";
    "is-write-stopped" => Number, "1 when writers wait";
    "estimate-oldest-key-time" => Refused("the tables do not record when their oldest key was written"), "when the oldest key was written";
    "block-cache-capacity" => Number, "bytes the cache may hold";
    "block-cache-usage" => Number, "bytes the cache holds";
    "block-cache-pinned-usage" => Number, "bytes of cached blocks that readers hold, a part of block-cache-usage";
    "options-statistics" => Text, "tickers and distributions";
    "num-blob-files" => Number, "blob files of the family";
    "blob-stats" => Text, "number and bytes of the blob files, and their garbage";
    "total-blob-file-size" => Number, "bytes of the blob files";
    "live-blob-file-size" => Number, "bytes of the blob files of the current version";
    "live-blob-file-garbage-size" => Number, "bytes of garbage in the blob files of the current version";
    "blob-cache-capacity" => NO_BLOB_CACHE, "bytes the cache of values may hold";
    "blob-cache-usage" => NO_BLOB_CACHE, "bytes the cache of values holds";
    "blob-cache-pinned-usage" => NO_BLOB_CACHE, "bytes of cached values in use";
}

/// The property of that full name, and the number in the name. `None`: no property has this name, or no family can have so many levels.
pub fn find_property(name: &str) -> Option<(&'static Property, usize)> {
    let name = name.strip_prefix("rocksdb.")?;
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let digits = name.get(stem.len()..).unwrap_or_default();
    let property = PROPERTIES.iter().find(|p| p.name == stem && p.numbered != digits.is_empty())?;
    let number = if digits.is_empty() { 0 } else { digits.parse().ok()? };
    let is_there = !stem.ends_with("-at-level") || number < MOST_LEVELS;
    is_there.then_some((property, number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_with_and_without_number() {
        let found = |name| find_property(name).map(|(p, n)| (p.name, n));
        assert_eq!(found("rocksdb.stats"), Some(("stats", 0)));
        assert_eq!(found("rocksdb.num-files-at-level12"), Some(("num-files-at-level", 12)));
        assert_eq!(found("rocksdb.aggregated-table-properties"), Some(("aggregated-table-properties", 0)));
        let at_level = "aggregated-table-properties-at-level";
        assert_eq!(found("rocksdb.aggregated-table-properties-at-level3"), Some((at_level, 3)));
        for none in ["stats", "rocksdb.", "rocksdb.stats1", "rocksdb.num-files-at-level", "rocksdb.nothing"] {
            assert_eq!(found(none), None, "{none}");
        }
        assert_eq!(found("rocksdb.num-files-at-level99999999999999999999999"), None);
    }

    /// The list is RocksDB 11's, 64 names, and three of our own. The number of supported properties is asserted too, so that a change shows
    /// in the test.
    #[test]
    fn every_name_once() {
        let mut names: Vec<_> = PROPERTIES.iter().map(|p| p.name).collect();
        names.sort_unstable();
        names.dedup();
        let refused = PROPERTIES.iter().filter(|p| matches!(p.answer, Refused(_))).count();
        assert_eq!((names.len(), PROPERTIES.len(), refused), (67, 67, 5));
    }
}
