//! The engines.

mod ashlar;
#[cfg(test)]
mod conformance;
#[cfg(feature = "fjall")]
mod fjall;
mod flawed;
#[cfg(feature = "redb")]
mod redb;
mod rocksdb;
mod shim;
mod stats_text;
mod symbols;

pub use ashlar::Ashlar;
#[cfg(feature = "fjall")]
pub use fjall::Fjall;
pub use flawed::Flawed;
#[cfg(feature = "redb")]
pub use redb::Redb;
pub use rocksdb::RocksDb;
pub use shim::Shim;
