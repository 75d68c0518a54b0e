//! Objects that users supply: comparators, merge operators, prefix extractors, compaction filters, collectors of table
//! properties, SST partitioners.

pub mod compact_on_deletion;
pub mod compaction_filter;
pub mod comparator;
pub mod merge_operator;
pub mod prefix_extractor;
pub mod sort;
pub mod sst_partitioner;
pub mod table_properties_collector;
pub mod timestamp_order;
