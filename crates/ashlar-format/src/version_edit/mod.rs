//! Version edits: the records of a MANIFEST.
//!
//! ```text
//! edit: { tag: varint32, payload by tag }*            new file: fixed fields { custom tag: varint32, slice }* 01
//! ```
//! 1. A tag with bit 0x2000 has a slice as payload and may be skipped when unknown; any other unknown tag is damage.
//!    Custom tags of new files: bit 0x40 means "must be understood".
//! 2. What is skipped is kept and written again, so that an edit of a newer library passes through unharmed.
//! 3. An edit is written in the order in which RocksDB 7.8 to 11.9 write it; edits of theirs come out byte for byte.
//! 4. An edit of zero bytes is legal and does nothing.
//!
//! Source: RocksDB `db/version_edit.h`, `db/version_edit.cc`, `db/wal_edit.h`, `db/blob/blob_file_addition.cc`,
//! `db/blob/blob_file_garbage.cc`.

#![deny(clippy::indexing_slicing)]

mod decode;
mod edit;
mod encode;
mod fields;
mod new_file;
mod progress;
mod sub;

pub use edit::VersionEdit;
pub use fields::CustomFields;
pub use new_file::NewFile;
pub use progress::{CompactionProgress, OutputProgress};
pub use sub::{BlobAddition, BlobGarbage, WalAddition};

/// The tag numbers of edits.
mod tag {
    pub const COMPARATOR: u32 = 1;
    pub const LOG_NUMBER: u32 = 2;
    pub const NEXT_FILE: u32 = 3;
    pub const LAST_SEQUENCE: u32 = 4;
    pub const COMPACT_CURSOR: u32 = 5;
    pub const DELETED_FILE: u32 = 6;
    pub const NEW_FILE: u32 = 7;
    pub const PREV_LOG_NUMBER: u32 = 9;
    pub const MIN_LOG_TO_KEEP: u32 = 10;
    pub const NEW_FILE_2: u32 = 100;
    pub const NEW_FILE_3: u32 = 102;
    pub const NEW_FILE_4: u32 = 103;
    pub const FAMILY: u32 = 200;
    pub const FAMILY_ADD: u32 = 201;
    pub const FAMILY_DROP: u32 = 202;
    pub const MAX_FAMILY: u32 = 203;
    pub const ATOMIC_GROUP: u32 = 300;
    pub const BLOB_ADDITION: u32 = 400;
    pub const BLOB_GARBAGE: u32 = 401;
    pub const IGNORABLE: u32 = 0x2000;
    pub const DB_ID: u32 = 8193;
    pub const OLD_BLOB_ADDITION: u32 = 8194;
    pub const OLD_BLOB_GARBAGE: u32 = 8195;
    pub const OLD_WAL_ADDITION: u32 = 8196;
    pub const OLD_WAL_DELETION: u32 = 8197;
    pub const FULL_HISTORY_TS_LOW: u32 = 8198;
    pub const WAL_ADDITION: u32 = 8199;
    pub const WAL_DELETION: u32 = 8200;
    pub const PERSIST_TIMESTAMPS: u32 = 8201;
    pub const COMPACTION_PROGRESS: u32 = 8202;
    pub const LAST_MANIFEST_SIZE: u32 = 8203;
    pub const BEGINNING: u32 = IGNORABLE | 0x41_0000;
}

#[cfg(test)]
mod tests;
