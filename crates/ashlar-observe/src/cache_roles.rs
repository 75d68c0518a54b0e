//! `rocksdb.block-cache-entry-stats`: the memory of a database by RocksDB's roles of cache entries.
//!
//! The cache holds data blocks only. Other memory under the memory cap appears under the role to which RocksDB charges
//! it, each as one entry; the capacity is the memory cap.
//! Source: RocksDB `cache/cache_entry_roles.cc` (names), `db/internal_stats.cc` (shape).

use crate::human::bytes;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The names of the roles, in texts and in maps.
const ROLES: [(&str, &str); 14] = [
    ("DataBlock", "data-block"),
    ("FilterBlock", "filter-block"),
    ("FilterMetaBlock", "filter-meta-block"),
    ("DeprecatedFilterBlock", "deprecated-filter-block"),
    ("IndexBlock", "index-block"),
    ("OtherBlock", "other-block"),
    ("WriteBuffer", "write-buffer"),
    ("CompressionDictionaryBuildingBuffer", "compression-dictionary-building-buffer"),
    ("FilterConstruction", "filter-construction"),
    ("BlockBasedTableReader", "block-based-table-reader"),
    ("FileMetadata", "file-metadata"),
    ("BlobValue", "blob-value"),
    ("BlobCache", "blob-cache"),
    ("Misc", "misc"),
];

/// Memory by use, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheRoles {
    /// The memory cap.
    pub cap: u64,
    /// The number of data blocks in the cache.
    pub blocks: u64,
    /// Bytes of those data blocks.
    pub block_bytes: u64,
    /// Bytes of memtables.
    pub memtable_bytes: u64,
    /// Indexes, filters and dictionaries of open tables.
    pub table_bytes: u64,
    /// All other memory under the cap: buffers, batches, merge operands and values of cursors.
    pub other_bytes: u64,
}

impl CacheRoles {
    /// The number of entries and the bytes of a role.
    fn of(&self, role: &str) -> (u64, u64) {
        let one = |bytes| (u64::from(bytes > 0), bytes);
        match role {
            "data-block" => (self.blocks, self.block_bytes),
            "write-buffer" => one(self.memtable_bytes),
            "block-based-table-reader" => one(self.table_bytes),
            "misc" => one(self.other_bytes),
            _ => (0, 0),
        }
    }

    fn percent(&self, part: u64) -> f64 {
        if self.cap == 0 { 0.0 } else { part as f64 * 100.0 / self.cap as f64 }
    }

    /// The text of the property.
    pub fn text(&self) -> String {
        let used = self.block_bytes + self.memtable_bytes + self.table_bytes + self.other_bytes;
        let mut out = format!(
            "Block cache AshlarDB capacity: {} usage: {}\nBlock cache entry stats(count,size,portion):",
            bytes(self.cap),
            bytes(used)
        );
        for (name, role) in ROLES {
            let (count, size) = self.of(role);
            if count > 0 {
                // Writing to a String cannot fail.
                let _ = write!(out, " {name}({count},{},{:.6}%)", bytes(size), self.percent(size));
            }
        }
        out + "\n"
    }

    /// Names and values, computed at the call, so a collection is never outdated.
    pub fn map(&self) -> BTreeMap<String, String> {
        let fixed = [
            ("id", "AshlarDB".to_owned()),
            ("capacity", self.cap.to_string()),
            ("secs_for_last_collection", "0.000000".to_owned()),
            ("secs_since_last_collection", "0".to_owned()),
        ];
        let mut map: BTreeMap<String, String> = fixed.map(|(name, value)| (name.to_owned(), value)).into();
        for (_, role) in ROLES {
            let (count, size) = self.of(role);
            map.insert(format!("count.{role}"), count.to_string());
            map.insert(format!("bytes.{role}"), size.to_string());
            map.insert(format!("percent.{role}"), format!("{:.6}", self.percent(size)));
        }
        map
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_have_their_shares() {
        let held = CacheRoles {
            cap: 4 << 20,
            blocks: 3,
            block_bytes: 1 << 20,
            memtable_bytes: 2 << 20,
            ..CacheRoles::default()
        };
        assert_eq!(
            held.text(),
            "Block cache AshlarDB capacity: 4.00 MB usage: 3.00 MB\nBlock cache entry stats(count,size,portion): \
             DataBlock(3,1.00 MB,25.000000%) WriteBuffer(1,2.00 MB,50.000000%)\n"
        );
        let map = held.map();
        assert_eq!(map.len(), 4 + 3 * ROLES.len());
        assert_eq!(
            (map["count.data-block"].as_str(), map["percent.write-buffer"].as_str()),
            ("3", "50.000000")
        );
        assert_eq!((map["bytes.misc"].as_str(), map["count.index-block"].as_str()), ("0", "0"));
        assert_eq!(CacheRoles::default().percent(5), 0.0);
    }
}
