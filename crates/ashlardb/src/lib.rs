//! AshlarDB: an embedded, ordered, persistent key-value store that reads and writes RocksDB's files.
//!
//! ```
//! use ashlardb::{Db, WriteBatch};
//!
//! # fn main() -> ashlardb::Result<()> {
//! # let dir = tempfile::tempdir().unwrap();
//! # let path = dir.path().join("data");
//! let db = Db::open(&path)?;                       // sensible in memory, disk and latency without a single option
//! db.put(b"user:1", b"Ada")?;
//! db.put(b"user:2", b"Grace")?;
//! assert_eq!(db.get(b"user:1")?.as_deref(), Some(&b"Ada"[..]));
//!
//! for entry in db.scan(b"user:"..) {
//!     let (key, value) = entry?;
//!     println!("{} = {}", key.escape_ascii(), value.escape_ascii());
//! }
//! db.write(WriteBatch::new().put(b"a", b"1").delete(b"user:2"))?;  // both or none
//! db.close()
//! # }
//! ```
//!
//! Five things to know: the path, the memory ([`Builder::memory`]), durability ([`Db::with_sync`], [`Db::sync`]),
//! column families ([`Builder::family`], [`Db::create_family`]), and that [`Db::close`] (or dropping the last handle) waits for
//! background work to pause. Everything else has a default that is meant to stay.
//!
//! What a returned write means: it survives a killed process at once, and a power cut once a synced write, a
//! [`Db::sync`] or a flush came after it; what survives is always a prefix of all writes, batches whole.

/// The examples of the manual, run with those of this crate.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/manual.md")]
struct Manual;

/// The program of the README, which must compile.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// A setting that is given to a handle and not kept is a mistake, and so is a batch that is not written.
///
/// ```compile_fail
/// #![deny(unused_must_use)]
/// fn lost(db: ashlardb::Db) {
///     db.with_sync(true);
/// }
/// ```
///
/// ```compile_fail
/// #![deny(unused_must_use)]
/// fn lost() {
///     ashlardb::WriteBatch::new().put("k", "v");
/// }
/// ```
#[cfg(doctest)]
struct MustUse;

mod adopt;
mod batch;
mod builder;
mod db;
mod family;
mod observe;
mod scan;
mod snapshot;
mod upkeep;

pub use ashlar_base::error::{BusyKind, IoKind, ShutdownKind};
pub use ashlar_base::ext::merge_operator::{
    BytesXor, LastPut, Max, StringAppend, UInt64Add, standard_operator,
};
pub use ashlar_base::{Comparator, Error, ErrorKind, MergeOperator, Result, SeqNum};
pub use ashlar_engine::columns::Columns;
pub use ashlar_engine::inspect::{CheckReport, Damage, KeySpan, Risk, check_database, check_database_in};
pub use ashlar_engine::iter::CursorPins;
pub use ashlar_engine::open::{ONE_WAY, PlaceSettings, RecoveryReport, left_by_leveldb, list_families};
pub use ashlar_engine::options::{DbPath, FormatLevel};
pub use ashlar_engine::read::{MayExist, View};
pub use ashlar_engine::{MemtableStats, RepairReport, Scrubbed, SizeOptions, Verified};
pub use ashlar_engine::{Pins, SnapshotPins};
pub use ashlar_env::Env;
pub use batch::WriteBatch;
pub use builder::{Builder, Compression, FamilyBuilder, RecoveryMode};
pub use db::{Db, Forecast, Severity};
pub use family::Family;
pub use observe::{
    CompactionEvent, Distribution, Event, EventListener, FileEvent, FlushEvent, GetExplained, Histogram,
    Metric, PerfContext, PerfLevel, ScanExplained, StallCondition, Statistics, StatsLevel, Ticker,
};
pub use scan::{Cursor, Entries, Scan, ScanRange};
pub use snapshot::Snapshot;
pub use upkeep::{CompactRangeOptions, LiveFile};
