//! The files of one moment, for a program that copies them.
//!
//! While the list lives, no file of it is removed. RocksDB needs `rocksdb_disable_file_deletions` for that.
//!
//! Source: RocksDB `include/rocksdb/metadata.h` (`LiveFileStorageInfo`), `include/rocksdb/types.h` (`FileType`).

use crate::db::DbObject;
use crate::door::HasTexts;
use crate::listed::c_text;
use crate::objects::StorageOptionsObject;
use ashlar_compat::compactions::file_number;
use ashlardb::{LiveFiles, Result, StorageFile, StorageKind};
use std::ffi::{CStr, CString};
use std::path::Path;

/// `rocksdb_livefiles_storage_info_t`.
#[derive(Debug)]
pub struct StorageObject {
    files: LiveFiles,
    texts: Vec<Names>,
}

/// The names of one file.
#[derive(Debug)]
struct Names {
    name: CString,
    dir: CString,
    checksum: CString,
    function: CString,
}

/// The files of the database now. With 0 as `wal_size_for_flush`, RocksDB's default, the memtables are flushed first, because any
/// WAL is large enough.
///
/// # Errors
/// Those of a flush and of [`ashlardb::Db::live_files`].
pub fn get_livefiles_storage_info(
    db: &DbObject,
    options: Option<&StorageOptionsObject>,
) -> Result<StorageObject> {
    let limit: u64 = options.map_or(0, |options| options.texts().get("wal_size_for_flush"));
    let with_checksums = options.is_some_and(|options| options.texts().get("include_checksum_info"));
    let db = db.0.db();
    if limit == 0 {
        db.flush()?;
    }
    let files = db.live_files()?;
    let names = |file: &StorageFile| {
        let (function, sum) = file.checksum.clone().filter(|_| with_checksums).unwrap_or_default();
        Names {
            name: c_text(&file.name),
            dir: c_text(&file.dir.to_string_lossy()),
            checksum: up_to_zero(sum),
            function: c_text(&function),
        }
    };
    let texts = files.iter().map(names).collect();
    Ok(StorageObject { files, texts })
}

/// Bytes as a string of C, which ends before the first zero.
fn up_to_zero(mut bytes: Vec<u8>) -> CString {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    bytes.truncate(end);
    CString::new(bytes).unwrap_or_default()
}

/// How many.
pub fn livefiles_storage_info_count(info: &StorageObject) -> usize {
    info.files.len()
}

macro_rules! texts {
    ($($(#[$doc:meta])* $name:ident = $field:ident;)*) => { $(
        $(#[$doc])*
        pub fn $name(info: &StorageObject, index: usize) -> Option<&CStr> {
            info.texts.get(index).map(|names| names.$field.as_c_str())
        }
    )* };
}
texts! {
    /// The name of a file.
    livefiles_storage_info_relative_filename = name;
    /// The directory of a file.
    livefiles_storage_info_directory = dir;
    /// The checksum over a file; empty: the MANIFEST has none, or the options do not ask for checksums.
    livefiles_storage_info_file_checksum = checksum;
    /// The function of the checksum.
    livefiles_storage_info_file_checksum_func_name = function;
}

macro_rules! figures {
    ($($(#[$doc:meta])* $name:ident -> $of:ty = |$file:ident| $figure:expr;)*) => { $(
        $(#[$doc])*
        pub fn $name(info: &StorageObject, index: usize) -> $of {
            info.files.get(index).map_or_else(<$of>::default, |$file| $figure)
        }
    )* };
}
figures! {
    /// The number in the name of a file; 0: the name has none.
    livefiles_storage_info_file_number -> u64 = |file| file_number(Path::new(&file.name)).0;
    /// RocksDB's number of the kind of a file.
    livefiles_storage_info_file_type -> i32 = |file| kind(file.kind);
    /// The bytes that a copy needs.
    livefiles_storage_info_size -> u64 = |file| file.bytes;
    /// The temperature of a file: 0, unknown.
    livefiles_storage_info_temperature -> i32 = |_file| 0;
    /// Whether only the listed bytes of a file belong to the moment.
    livefiles_storage_info_trim_to_size -> bool = |file| matches!(file.kind, StorageKind::Wal | StorageKind::Manifest);
}

/// What to write in place of a copy; empty: copy the file.
pub fn livefiles_storage_info_replacement_contents(info: &StorageObject, index: usize) -> Option<&[u8]> {
    info.files.get(index).map(|file| file.content.as_deref().unwrap_or_default())
}

fn kind(kind: StorageKind) -> i32 {
    match kind {
        StorageKind::Wal => 0,
        StorageKind::Table => 2,
        StorageKind::Manifest => 3,
        StorageKind::Current => 4,
        StorageKind::Options => 9,
        StorageKind::Blob => 10,
        // RocksDB has no kind for a file of a kind that this library does not know: a temporary one.
        _ => 5,
    }
}
