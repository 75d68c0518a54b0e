//! The sums of the properties of several tables.

use ashlar_format::table::Properties;
use std::collections::BTreeMap;

/// Sums over tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableSums {
    /// The number of tables.
    pub tables: u64,
    /// Bytes of data blocks as stored.
    pub data_size: u64,
    /// Bytes of index blocks.
    pub index_size: u64,
    /// Bytes of filter blocks.
    pub filter_size: u64,
    /// Bytes of keys before compression.
    pub raw_key_size: u64,
    /// Bytes of values before compression.
    pub raw_value_size: u64,
    /// The number of data blocks.
    pub data_blocks: u64,
    /// The number of entries.
    pub entries: u64,
    /// Deletions among the entries, range deletions included.
    pub deletions: u64,
    /// Merge operands among the entries.
    pub merge_operands: u64,
    /// The number of range deletions.
    pub range_deletions: u64,
}

impl TableSums {
    /// Adds a table.
    pub fn add(&mut self, p: &Properties) {
        self.tables += 1;
        for (sum, value) in [
            (&mut self.data_size, p.data_size),
            (&mut self.index_size, p.index_size),
            (&mut self.filter_size, p.filter_size),
            (&mut self.raw_key_size, p.raw_key_size),
            (&mut self.raw_value_size, p.raw_value_size),
            (&mut self.data_blocks, p.num_data_blocks),
            (&mut self.entries, p.num_entries),
            (&mut self.deletions, p.num_deletions),
            (&mut self.merge_operands, p.num_merge_operands),
            (&mut self.range_deletions, p.num_range_deletions),
        ] {
            // Properties come from the file and may have any value.
            *sum = sum.saturating_add(value.unwrap_or(0));
        }
    }

    /// Bytes of keys and values per byte of data blocks; -1 without data.
    pub fn compression_ratio(&self) -> f64 {
        match self.data_size {
            0 => -1.0,
            stored => (self.raw_key_size.saturating_add(self.raw_value_size)) as f64 / stored as f64,
        }
    }

    /// Names and values, as in RocksDB's map.
    pub fn map(&self) -> BTreeMap<String, String> {
        let pairs = [
            ("data_size", self.data_size),
            ("index_size", self.index_size),
            ("filter_size", self.filter_size),
            ("raw_key_size", self.raw_key_size),
            ("raw_value_size", self.raw_value_size),
            ("num_data_blocks", self.data_blocks),
            ("num_entries", self.entries),
            ("num_deletions", self.deletions),
            ("num_merge_operands", self.merge_operands),
            ("num_range_deletions", self.range_deletions),
        ];
        pairs.into_iter().map(|(name, value)| (name.to_owned(), value.to_string())).collect()
    }

    /// One line in the format of RocksDB: `# data blocks=…; # entries=…; …`.
    pub fn text(&self) -> String {
        let average = |bytes: u64| if self.entries == 0 { 0.0 } else { bytes as f64 / self.entries as f64 };
        let size = self.data_size.saturating_add(self.index_size).saturating_add(self.filter_size);
        format!(
            "# data blocks={}; # entries={}; # deletions={}; # merge operands={}; # range deletions={}; \
             raw key size={}; raw average key size={:.6}; raw value size={}; raw average value size={:.6}; \
             data block size={}; index block size={}; filter block size={}; (estimated) table size={size};",
            self.data_blocks,
            self.entries,
            self.deletions,
            self.merge_operands,
            self.range_deletions,
            self.raw_key_size,
            average(self.raw_key_size),
            self.raw_value_size,
            average(self.raw_value_size),
            self.data_size,
            self.index_size,
            self.filter_size,
        )
    }
}
