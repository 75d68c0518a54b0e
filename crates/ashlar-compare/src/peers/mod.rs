//! The engines.

mod ashlar;
mod rocksdb;
mod stats_text;

pub use ashlar::Ashlar;
pub use rocksdb::RocksDb;
