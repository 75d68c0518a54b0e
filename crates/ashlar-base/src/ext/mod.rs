//! What users plug in.

pub mod comparator;
pub mod merge_operator;
pub mod timestamp_order;
