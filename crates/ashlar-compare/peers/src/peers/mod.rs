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

use crate::engine::EngineName;
use crate::peer::Peer;

/// Work that is compiled for the type of each engine.
pub trait Work {
    /// What it returns.
    type Output;

    /// Does the work on engines of type `P`.
    fn on<P: Peer>(self) -> Self::Output;
}

/// Does `work` on the type of `engine`. An engine that was left out of this build is driven as a shim, whose library is missing:
/// [`crate::place::library`] refuses it before.
pub fn with<W: Work>(engine: EngineName, work: W) -> W::Output {
    match engine {
        EngineName::Ashlardb => work.on::<Ashlar>(),
        EngineName::Rocksdb => work.on::<RocksDb>(),
        #[cfg(feature = "fjall")]
        EngineName::Fjall => work.on::<Fjall>(),
        #[cfg(feature = "redb")]
        EngineName::Redb => work.on::<Redb>(),
        spoilt if spoilt.spoilt().is_some() => work.on::<Flawed>(),
        _ => work.on::<Shim>(),
    }
}
