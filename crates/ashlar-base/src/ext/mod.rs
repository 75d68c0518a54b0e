//! Objects that users supply: comparators and merge operators.

pub mod comparator;
pub mod merge_operator;
pub mod sort;
pub mod timestamp_order;
