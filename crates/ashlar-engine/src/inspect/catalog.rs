//! Every property name that RocksDB knows, each with what becomes of it here.
//!
//! A name that ends in `<N>` takes a number: a level, or a temperature.
//! Source: RocksDB 11 `db/internal_stats.cc`, `include/rocksdb/db.h` (`DB::Properties`).

/// What a property answers with, or why it does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A number, which is also the text.
    Number,
    /// A text.
    Text,
    /// A text, and the same as names and values.
    Map,
    /// Not answered.
    Refused(&'static str),
}

/// A property.
#[derive(Clone, Copy, Debug)]
pub struct Property {
    /// Its name behind `rocksdb.`, without the number.
    pub name: &'static str,
    /// Whether a number belongs to the name.
    pub numbered: bool,
    /// What it answers.
    pub answer: Answer,
    /// What it tells.
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
    "cfstats" => Map, "the levels of the family and what was done to them";
    "cfstats-no-file-histogram" => Text, "the same";
    "cf-file-histogram" => Refused("read times are kept for the whole database: rocksdb.sst.read.micros"), "read times per level";
    "cf-write-stall-stats" => Map, "how often writers were held";
    "dbstats" => Map, "writes, log and stalls of the database";
    "db-write-stall-stats" => Map, "how often writers were held by limits of the whole database";
    "levelstats" => Text, "tables and MB per level";
    "block-cache-entry-stats" => Map, "what memory is held for, by kind of cache entry";
    "fast-block-cache-entry-stats" => Map, "the same: it is counted as it changes";
    "num-immutable-mem-table" => Number, "memtables that wait for their flush";
    "num-immutable-mem-table-flushed" => Number, "flushed memtables that are still listed: none ever is";
    "mem-table-flush-pending" => Number, "1 when a memtable waits for its flush";
    "compaction-pending" => Number, "1 when a level wants to be compacted";
    "background-errors" => Number, "errors of background work since the open";
    "cur-size-active-mem-table" => Number, "bytes of the memtable that takes writes";
    "cur-size-all-mem-tables" => Number, "bytes of all memtables";
    "size-all-mem-tables" => Number, "bytes of all memtables";
    "num-entries-active-mem-table" => Number, "entries of the memtable that takes writes";
    "num-entries-imm-mem-tables" => Number, "entries of the memtables that wait for their flush";
    "num-deletes-active-mem-table" => Number, "deletions of single keys in the memtable that takes writes";
    "num-deletes-imm-mem-tables" => Number, "deletions of single keys in the memtables that wait for their flush";
    "estimate-num-keys" => Number, "about how many keys there are: entries less twice the deletions";
    "estimate-table-readers-mem" => Number, "bytes of indexes and filters of open tables";
    "is-file-deletions-enabled" => Number, "1: obsolete files are unlinked";
    "num-snapshots" => Number, "snapshots that somebody holds";
    "oldest-snapshot-time" => Number, "seconds since 1970 at which the oldest of them was taken; 0 without one";
    "oldest-snapshot-sequence" => Number, "its sequence number; 0 without one";
    "num-live-versions" => Number, "versions of the family that somebody still reads, the current one included";
    "current-super-version-number" => Number, "grows with every change that readers see";
    "estimate-live-data-size" => Number, "about how many bytes would be left if all was compacted";
    "min-log-number-to-keep" => Number, "the first log that is needed";
    "min-obsolete-sst-number-to-keep" => Number, "tables from this number on are being written and must stay";
    "base-level" => Number, "the level that level 0 is compacted to";
    "total-sst-files-size" => Number, "bytes of the tables of all live versions";
    "live-sst-files-size" => Number, "bytes of the tables of the current version";
    "obsolete-sst-files-size" => Number, "bytes of tables that nobody needs and that are still there; lists the directory";
    "live-sst-files-size-at-temperature" (N) => Text, "the same for tables of a temperature; 0 is the usual one";
    "estimate-pending-compaction-bytes" => Number, "bytes that compaction still has to move";
    "aggregated-table-properties" => Map, "the properties of all tables together";
    "aggregated-table-properties-at-level" (N) => Map, "the properties of the tables of a level together";
    "num-running-compactions" => Number, "compactions under way in all families";
    "num-running-compaction-sorted-runs" => Number, "runs that they merge: each table of level 0, each deeper level";
    "compaction-abort-count" => Number, "requests to abort compactions that were not taken back";
    "num-unscheduled-compactions" => Number, "compactions that wait in a queue: none, they are picked when they can run";
    "num-running-flushes" => Number, "flushes under way in all families";
    "actual-delayed-write-rate" => Number, "bytes per second that slowed writers get; 0: not slowed";
    "is-write-stopped" => Number, "1 when writers wait";
    "estimate-oldest-key-time" => Refused("RocksDB does not answer either but for FIFO compaction, which is not there"), "when the oldest key was written";
    "block-cache-capacity" => Number, "bytes the cache may hold";
    "block-cache-usage" => Number, "bytes it holds";
    "block-cache-pinned-usage" => Number, "bytes of them that readers hold after their table was closed";
    "options-statistics" => Text, "tickers and distributions";
    "num-blob-files" => Number, "blob files of the family";
    "blob-stats" => Text, "their number and bytes, and what of them is garbage";
    "total-blob-file-size" => Number, "bytes of the blob files";
    "live-blob-file-size" => Number, "bytes of the blob files of the current version";
    "live-blob-file-garbage-size" => Number, "bytes in them that nothing points to";
    "blob-cache-capacity" => NO_BLOB_CACHE, "bytes the cache of values may hold";
    "blob-cache-usage" => NO_BLOB_CACHE, "bytes it holds";
    "blob-cache-pinned-usage" => NO_BLOB_CACHE, "bytes of them in use";
}

/// The property of that full name, with the number in it.
pub fn find(name: &str) -> Option<(&'static Property, usize)> {
    let name = name.strip_prefix("rocksdb.")?;
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let digits = name.get(stem.len()..).unwrap_or_default();
    let property = PROPERTIES.iter().find(|p| p.name == stem && p.numbered != digits.is_empty())?;
    let number = if digits.is_empty() { 0 } else { digits.parse().ok()? };
    Some((property, number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_with_and_without_number() {
        let found = |name| find(name).map(|(p, n)| (p.name, n));
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

    /// The list is RocksDB 11's: 64 names. How many are answered is told, so that a change shows in the test.
    #[test]
    fn every_name_once() {
        let mut names: Vec<_> = PROPERTIES.iter().map(|p| p.name).collect();
        names.sort_unstable();
        names.dedup();
        let refused = PROPERTIES.iter().filter(|p| matches!(p.answer, Refused(_))).count();
        assert_eq!((names.len(), PROPERTIES.len(), refused), (64, 64, 5));
    }
}
