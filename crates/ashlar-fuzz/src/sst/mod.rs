//! Tables for the fuzzer: taken apart, put together again without compression, their checksums put right.

mod blocks;
mod fix;
mod plain;
mod walk;

pub use blocks::{LIMIT, blocks, form_of};
pub use fix::fix_table;
pub use plain::uncompressed;
