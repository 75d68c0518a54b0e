//! Copies of an open database.
//!
//! [`checkpoint()`] makes a second database directory with the state of one moment. [`BackupEngine`] keeps several states in a
//! backup directory, which share the files that they have in common. [`updates_since()`] reads the writes since a moment.

mod checkpoint;
mod engine;
mod parts;
mod target;
mod updates;

pub use checkpoint::{Checkpoint, CheckpointOptions, Copied, checkpoint};
pub use engine::{
    BackupEngine, BackupEngineBuilder, BackupInfo, BackupOptions, BackupSource, CorruptBackup, CreatedBackup,
    RestoreOptions, Restored,
};
pub use updates::{Change, Update, Updates, updates_since};
