//! Copies of an open database.
//!
//! [`checkpoint()`] makes a second database directory with the state of one moment. [`BackupEngine`] keeps several states in a
//! backup directory, which share the files that they have in common. [`updates_since()`] reads the writes since a moment.
//! [`wal_files()`] lists the WAL files.
//! [`live_files()`] lists the files for another program that copies. [`export_family()`] and [`import_family()`] bring one family from a database to another.

mod checkpoint;
mod engine;
mod family;
mod live;
mod parts;
mod target;
mod updates;
mod wal_list;

pub use checkpoint::{Checkpoint, CheckpointOptions, Copied, checkpoint};
pub use engine::{
    BackupEngine, BackupEngineBuilder, BackupInfo, BackupOptions, BackupSource, CorruptBackup, CreatedBackup,
    RestoreOptions, Restored,
};
pub use family::{ExportedFile, FamilyExport, ImportOptions, export_family, import_family};
pub use live::{LiveFiles, StorageFile, StorageKind, live_files};
pub use updates::{Change, Update, Updates, updates_left, updates_since};
pub use wal_list::{WalFile, wal_files};
