//! The engine: families of memtables and leveled tables behind one WAL.
//!
//! Each module may use only modules above it in the list below (`cargo xtask tidy` reads this order). All background
//! changes have one shape: *pick* (pure, under the state lock), *run* (no lock, all the I/O), *install* (one
//! [`ashlar_format`] version edit, then a new [`ashlar_read::super_version::SuperVersion`]).
//!
//! Locks of the engine (`ashlar_sync::Rank` has the order of all): `Lifecycle` guards open and close, `Options` the changes
//! of settings, `Manifest` the commit queue of the MANIFEST, `State` the families, their memtable lists and versions,
//! `Writers` the queue of writers. I/O happens only under `Lifecycle`, which a close holds until it has released the LOCK, and
//! under the log writer's own locks of rank `Log`.

pub mod column_family;
pub mod batch;
mod wal;
mod write;
mod db;
pub mod for_repair;

pub use ashlar_observe::{MemoryClass, MemoryReport, Pins, SnapshotPins};
pub use ashlar_pressure as pressure;
pub use ashlar_pressure::health;
pub use ashlar_table::{SstSummary, SstWriter};
pub use db::{
    Brought, Db, HeldFiles, HeldTables, IngestMode, IngestOptions, Ingested, KeptFiles, LiveFile,
    MemtableStats, Moment, NewFamily, OpenFamily, SizeOptions, WeakDb, sst_writer,
};
