//! What one table says about itself.

use super::FileMeta;
use ashlar_base::ext::table_properties_collector::UserProperties;
use ashlar_base::{FileNumber, Level};
use ashlar_format::table::Properties;

/// The properties of one table.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableProperties {
    /// The file number in the table's name.
    pub number: FileNumber,
    /// The level of the table.
    pub level: Level,
    /// What the collectors of the family gave when the table was written, by name.
    pub collected: UserProperties,
    /// The names of the collectors' factories, as `[first,second]`; empty: the table does not say.
    pub collectors: String,
    /// A collector asked for a compaction of the table.
    pub marked_for_compaction: bool,
    /// The number of entries, range deletions included; `None`, here and below: the table does not say.
    pub entries: Option<u64>,
    /// The number of deletions among them.
    pub deletions: Option<u64>,
    /// The number of range deletions among them.
    pub range_deletions: Option<u64>,
    /// The number of merge operands among the entries.
    pub merge_operands: Option<u64>,
    /// Bytes of all keys before compression, with eight more per key.
    pub raw_key_bytes: Option<u64>,
    /// Bytes of all values before compression.
    pub raw_value_bytes: Option<u64>,
    /// Bytes of the data blocks as stored.
    pub data_bytes: Option<u64>,
    /// Everything that the table says about itself.
    pub stored: Properties,
}

impl TableProperties {
    /// The properties `said` of the table `file` in `level`.
    pub fn of(level: Level, file: &FileMeta, said: &Properties) -> TableProperties {
        TableProperties {
            number: file.number(),
            level,
            collected: said.collected(),
            collectors: said.property_collectors.clone().unwrap_or_default(),
            marked_for_compaction: file.file.need_compaction,
            entries: said.num_entries,
            deletions: said.num_deletions,
            range_deletions: said.num_range_deletions,
            merge_operands: said.num_merge_operands,
            raw_key_bytes: said.raw_key_size,
            raw_value_bytes: said.raw_value_size,
            data_bytes: said.data_size,
            stored: said.clone(),
        }
    }
}
