//! AshlarDB: an embedded, ordered, persistent key-value store. It reads and writes RocksDB's files.
//!
//! ```
//! use ashlardb::prelude::*;
//!
//! # fn main() -> ashlardb::Result<()> {
//! # let dir = tempfile::tempdir().unwrap();
//! # let path = dir.path().join("data");
//! let db = Db::open(&path)?;                       // every option has a default
//! db.put(b"user:1", b"Ada")?;
//! db.put(b"user:2", b"Grace")?;
//! assert_eq!(db.get(b"user:1")?.as_deref(), Some(&b"Ada"[..]));
//!
//! for entry in db.prefix("user:") {
//!     let (key, value) = entry?;
//!     println!("{} = {}", key.escape_ascii(), value.escape_ascii());
//! }
//! let batch = WriteBatch::new();
//! batch.put("a", "1")?;
//! batch.delete("user:2")?;
//! db.write(batch)?;                                // both or none
//! db.close()
//! # }
//! ```
//!
//! Two traits hold the methods that read and write. Databases, families and snapshots have those of [`Read`];
//! databases, families and batches have those of [`Write`]. A [`Transaction`] and an [`IndexedBatch`] have both.
//! [`prelude`] brings both into scope.
//!
//! Five things to know:
//!
//! - the path: one directory holds one database ([`Db::open`]);
//! - memory: one cap holds for everything ([`Builder::memory`]), or for several databases ([`Builder::resources`]);
//! - durability ([`crate::WriteOptions::sync`], [`Db::sync`]);
//! - column families ([`Builder::family`], [`Db::create_family`]);
//! - [`Db::close`], or dropping the last handle, waits for running background work.
//!
//! A returned write survives a killed process. It survives a power cut once a later synced write, [`Db::sync`] or flush
//! has returned. The surviving writes are always a prefix of all logged writes, with whole batches.

/// The examples of the manual, run with those of this crate.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/manual.md")]
struct Manual;

/// The program of the README, which must compile.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// The compiler warns about options that no write uses, a scan that is not iterated, and a method whose result is not
/// used.
///
/// ```compile_fail
/// #![deny(unused_must_use)]
/// fn lost(db: ashlardb::Db) {
///     db.writing(ashlardb::WriteOptions::synced());
/// }
/// ```
///
/// ```compile_fail
/// #![deny(unused_must_use)]
/// use ashlardb::prelude::*;
/// fn lost(db: Db) {
///     db.scan(..);
/// }
/// ```
///
/// ```compile_fail
/// #![deny(unused_must_use)]
/// use ashlardb::prelude::*;
/// fn lost(batch: WriteBatch) {
///     batch.put("k", "v");
/// }
/// ```
#[cfg(doctest)]
struct MustUse;

/// A batch belongs to one thread at a time.
///
/// ```compile_fail
/// fn shared<T: Sync>(_: T) {}
/// shared(ashlardb::WriteBatch::new());
/// ```
#[cfg(doctest)]
struct NotSync;

mod adopt;
mod batch;
mod builder;
mod copies;
mod cursor;
mod db;
mod family;
mod follower;
mod ingest;
mod indexed;
mod locking;
mod observe;
pub mod options;
mod overlay;
pub mod prelude;
mod range;
mod read;
mod resources;
mod scan;
mod secondary;
mod snapshot;
mod sst_writer;
mod transaction;
mod upkeep;
mod write;

pub use ashlar_backup::{
    BackupEngine, BackupEngineBuilder, BackupInfo, BackupOptions, CorruptBackup, CreatedBackup,
    RestoreOptions, Restored,
};
pub use ashlar_backup::{ExportedFile, FamilyExport, ImportOptions};
pub use ashlar_backup::{LiveFiles, StorageFile, StorageKind, WalFile};
pub use ashlar_base::error::{BusyKind, IoKind, Reason, ShutdownKind};
pub use ashlar_base::ext::compact_on_deletion::CompactOnDeletion;
pub use ashlar_base::ext::compaction_filter::{
    Decision, FilterContext, FilterSource, RemoveEmptyValue, standard_filter,
};
pub use ashlar_base::ext::merge_operator::{
    BytesXor, LastPut, Max, StringAppend, UInt64Add, standard_operator,
};
pub use ashlar_base::ext::prefix_extractor::{PrefixExtractor, PrefixTransform};
pub use ashlar_base::ext::sst_partitioner::{
    FixedPrefixPartitioner, PartitionerContext, SstPartitioner, SstPartitionerFactory,
};
pub use ashlar_base::ext::table_properties_collector::{
    CollectedEntry, CollectorContext, TablePropertiesCollector, TablePropertiesCollectorFactory,
    UserProperties,
};
pub use ashlar_base::memory::WriteBuffers;
pub use ashlar_base::{
    CompactionFilter, CompactionFilterFactory, Comparator, Error, ErrorKind, FamilyId, FileNumber, Level,
    MergeOperator, Result, SeqNum, Trailer, ValueType,
};
pub use ashlar_cache::BlockCache;
pub use ashlar_engine::{IngestMode, IngestOptions, Ingested};
pub use ashlar_engine::{MemoryClass, MemoryReport};
pub use ashlar_engine::{MemtableStats, SizeOptions};
pub use ashlar_engine::{Pins, SnapshotPins};
pub use ashlar_env::Env;
pub use ashlar_observe::{FamilyShape, Scrubbed};
pub use ashlar_options::{CompactionStyle, DbPath, FormatLevel};
pub use ashlar_read::iter::{CursorPins, KeyBounds};
pub use ashlar_read::point::{MayExist, Met, Probe, ProbedRun, View};
pub use ashlar_recovery::{
    DamagedFile, DroppedRange, FamilyReport, RecoveryReport, Remains, UndecidedFamily, UndecidedTransaction,
    WalReport,
};
pub use ashlar_recovery::{LEVELDB_UPGRADE_NOTICE, is_leveldb_directory, list_families};
pub use ashlar_repair::{RepairReport, check_database, check_database_in};
pub use ashlar_tree::check::{CheckReport, Damage, KeySpan, Risk, Verified};
pub use ashlar_tree::columns::Columns;
pub use ashlar_tree::places::PlaceSettings;
pub use batch::{BatchFamily, WriteBatch};
pub use builder::{Builder, Compression, FamilyBuilder, RecoveryMode};
pub use cursor::{Cursor, Lent};
pub use db::{Db, DiskLimits, DiskUse, Health, Severity, WeakDb, WritePressure};
pub use family::Family;
pub use follower::Follower;
pub use indexed::{
    IndexedBatch, IndexedBatchOptions, IndexedFamily, Operation, OperationCursor, Operations, Pending,
};
pub use locking::LockingWriter;
pub use observe::{
    BlobsEvent, CompactionEvent, Distribution, Event, EventListener, FileEvent, FlushEvent, GetExplained,
    Histogram, IngestEvent, Metric, PerfContext, PerfLevel, ScanExplained, StallCondition, Statistics,
    StatsLevel, Ticker,
};
pub use range::KeyRange;
pub use read::{Read, ReadOptions, ReadTier, Reader};
pub use resources::Resources;
pub use scan::Scan;
pub use secondary::Secondary;
pub use snapshot::Snapshot;
pub use sst_writer::{SstSummary, SstWriter};
pub use transaction::{
    Deadlock, DeadlockWait, LockMode, Transaction, TransactionFamily, TransactionOptions, Untracked,
};
pub use upkeep::{
    Change, Checkpoint, CheckpointOptions, CompactFilesOptions, CompactRangeOptions, Copied, HeldTables,
    LiveFile, StoredProperties, TableProperties, Update, Updates,
};
pub use write::{Write, WriteOptions, Writer};
