//! Objects that users supply: comparators, merge operators and prefix extractors.

pub mod comparator;
pub mod merge_operator;
pub mod prefix_extractor;
pub mod sort;
pub mod timestamp_order;
