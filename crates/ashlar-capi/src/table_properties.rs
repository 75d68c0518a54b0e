//! What a table says about itself.
//!
//! A listener reads these properties during its call. A property that the table does not have is 0 or empty, as in RocksDB.

use ashlardb::StoredProperties;

/// `rocksdb_table_properties_t`.
pub type PropertiesObject = ashlar_compat::listener::TableReport;

macro_rules! numbers {
    ($($(#[$doc:meta])* $name:ident = $field:ident or $default:expr;)*) => { $(
        $(#[$doc])*
        pub fn $name(props: &PropertiesObject) -> u64 {
            props.stored.$field.unwrap_or($default)
        }
    )* };
}
numbers! {
    /// The number of the family; 2147483647: the table belongs to none.
    table_properties_column_family_id = column_family_id or StoredProperties::UNKNOWN_FAMILY.0.into();
    /// When the oldest ancestor of the table was written, in seconds since 1970.
    table_properties_creation_time = creation_time or 0;
    /// Entries between restart points of data blocks.
    table_properties_data_block_restart_interval = data_block_restart_interval or 0;
    /// Bytes of data blocks.
    table_properties_data_size = data_size or 0;
    /// Estimated bytes with a fast compression.
    table_properties_fast_compression_estimated_data_size = fast_compression_estimated_data_size or 0;
    /// When the table was written, in seconds since 1970.
    table_properties_file_creation_time = file_creation_time or 0;
    /// Bytes of the filter.
    table_properties_filter_size = filter_size or 0;
    /// The length of all keys; 0: it varies.
    table_properties_fixed_key_len = fixed_key_len or 0;
    /// The format of the table.
    table_properties_format_version = format_version or 0;
    /// Entries between restart points of the index.
    table_properties_index_block_restart_interval = index_block_restart_interval or 0;
    /// 1: keys of the index have no sequence number.
    table_properties_index_key_is_user_key = index_key_is_user_key or 0;
    /// The number of parts of the index.
    table_properties_index_partitions = index_partitions or 0;
    /// Bytes of the index.
    table_properties_index_size = index_size or 0;
    /// 1: values of the index are differences.
    table_properties_index_value_is_delta_encoded = index_value_is_delta_encoded or 0;
    /// The largest sequence number; 2^64 - 1: the table does not say.
    table_properties_key_largest_seqno = key_largest_seqno or u64::MAX;
    /// The smallest sequence number; 2^64 - 1: the table does not say.
    table_properties_key_smallest_seqno = key_smallest_seqno or u64::MAX;
    /// When the newest key was written, in seconds since 1970.
    table_properties_newest_key_time = newest_key_time or 0;
    /// The number of data blocks.
    table_properties_num_data_blocks = num_data_blocks or 0;
    /// Data blocks that nothing tried to compress.
    table_properties_num_data_blocks_compression_bypassed = num_data_blocks_compression_bypassed or 0;
    /// Data blocks that are stored raw, because compression did not pay.
    table_properties_num_data_blocks_compression_rejected = num_data_blocks_compression_rejected or 0;
    /// The number of deletions.
    table_properties_num_deletions = num_deletions or 0;
    /// The number of entries.
    table_properties_num_entries = num_entries or 0;
    /// The number of keys in the filter.
    table_properties_num_filter_entries = num_filter_entries or 0;
    /// The number of merge operands.
    table_properties_num_merge_operands = num_merge_operands or 0;
    /// The number of range deletions.
    table_properties_num_range_deletions = num_range_deletions or 0;
    /// Index blocks whose keys lie evenly.
    table_properties_num_uniform_blocks = num_uniform_blocks or 0;
    /// When the oldest key was written, in seconds since 1970.
    table_properties_oldest_key_time = oldest_key_time or 0;
    /// The number of the file when it was written.
    table_properties_orig_file_number = original_file_number or 0;
    /// Bytes of all keys.
    table_properties_raw_key_size = raw_key_size or 0;
    /// Bytes of all values.
    table_properties_raw_value_size = raw_value_size or 0;
    /// 1: data blocks keep keys and values apart.
    table_properties_separate_key_value_in_data_block = separate_key_value_in_data_block or 0;
    /// Estimated bytes with a slow compression.
    table_properties_slow_compression_estimated_data_size = slow_compression_estimated_data_size or 0;
    /// The offset behind the data blocks.
    table_properties_tail_start_offset = tail_start_offset or 0;
    /// Bytes of the index over the parts of the index.
    table_properties_top_level_index_size = top_level_index_size or 0;
    /// 1: an index of the caller is the first one.
    table_properties_udi_is_primary_index = udi_is_primary_index or 0;
    /// 0: keys have lost their timestamps.
    table_properties_user_defined_timestamps_persisted = user_defined_timestamps_persisted or 1;
}

/// The offset of the sequence number of an ingested file: 0, because nothing writes there.
pub fn table_properties_external_sst_file_global_seqno_offset(_: &PropertiesObject) -> u64 {
    0
}

/// The bytes of data blocks before compression: 0, because no table says.
pub fn table_properties_uncompressed_data_size(_: &PropertiesObject) -> u64 {
    0
}

macro_rules! texts {
    ($($(#[$doc:meta])* $name:ident = $field:ident;)*) => { $(
        $(#[$doc])*
        pub fn $name(props: &PropertiesObject) -> Option<&[u8]> {
            Some(props.stored.$field.as_deref().unwrap_or_default().as_bytes())
        }
    )* };
}
texts! {
    /// The name of the family.
    table_properties_column_family_name = column_family_name;
    /// The name of the order of keys.
    table_properties_comparator_name = comparator;
    /// The name of the compression.
    table_properties_compression_name = compression;
    /// The settings of the compression.
    table_properties_compression_options = compression_options;
    /// The machine that wrote the table.
    table_properties_db_host_id = db_host_id;
    /// The database that wrote the table.
    table_properties_db_id = db_id;
    /// The open that wrote the table.
    table_properties_db_session_id = db_session_id;
    /// The name of the filter policy.
    table_properties_filter_policy_name = filter_policy;
    /// The name of the merge operator.
    table_properties_merge_operator_name = merge_operator;
    /// The name of the prefix extractor.
    table_properties_prefix_extractor_name = prefix_extractor_name;
    /// The names of the collectors.
    table_properties_property_collectors_names = property_collectors;
}

/// Samples of sequence numbers and times.
pub fn table_properties_seqno_to_time_mapping(props: &PropertiesObject) -> Option<&[u8]> {
    Some(props.stored.seqno_time_map.as_deref().unwrap_or_default())
}

/// Whether the table knows its largest sequence number.
pub fn table_properties_has_key_largest_seqno(props: &PropertiesObject) -> bool {
    props.stored.key_largest_seqno.is_some()
}

/// Whether the table knows its smallest sequence number.
pub fn table_properties_has_key_smallest_seqno(props: &PropertiesObject) -> bool {
    props.stored.key_smallest_seqno.is_some()
}

/// The number of properties that collectors gave.
pub fn table_properties_user_collected_properties_count(props: &PropertiesObject) -> usize {
    props.collected.len()
}

/// The name of a property that a collector gave, by name.
pub fn table_properties_user_collected_properties_key_at(
    props: &PropertiesObject,
    pos: usize,
) -> Option<&[u8]> {
    props.collected.keys().nth(pos).map(Vec::as_slice)
}

/// The value of that property.
pub fn table_properties_user_collected_properties_value_at(
    props: &PropertiesObject,
    pos: usize,
) -> Option<&[u8]> {
    props.collected.values().nth(pos).map(Vec::as_slice)
}

/// The number of properties for people: none, because no table stores them.
pub fn table_properties_readable_properties_count(_: &PropertiesObject) -> usize {
    0
}

/// The name of a property for people: null.
pub fn table_properties_readable_properties_key_at(_: &PropertiesObject, _pos: usize) -> Option<&[u8]> {
    None
}

/// The value of a property for people: null.
pub fn table_properties_readable_properties_value_at(_: &PropertiesObject, _pos: usize) -> Option<&[u8]> {
    None
}
