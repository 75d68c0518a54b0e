//! Objects that users supply: comparators, merge operators, prefix extractors and compaction filters.

pub mod compaction_filter;
pub mod comparator;
pub mod merge_operator;
pub mod prefix_extractor;
pub mod sort;
pub mod timestamp_order;
