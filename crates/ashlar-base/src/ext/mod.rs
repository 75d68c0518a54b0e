//! What users plug in.

pub mod comparator;
