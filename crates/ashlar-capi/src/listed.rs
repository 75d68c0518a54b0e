//! Lists of files: live tables, tables that the caller describes, WAL files.

use crate::db::DbObject;
use ashlar_compat::status::not_found;
use ashlardb::{Family, LiveFile, Result, WalFile};
use std::ffi::{CStr, CString};

/// `rocksdb_livefile_t`: a table, as the library or the caller describes it.
#[derive(Clone, Debug, Default)]
pub struct TableObject {
    pub(crate) family: CString,
    /// Behind a slash.
    pub(crate) name: CString,
    pub(crate) directory: CString,
    pub(crate) level: i32,
    pub(crate) bytes: usize,
    pub(crate) smallest: Vec<u8>,
    pub(crate) largest: Vec<u8>,
    pub(crate) sequences: (u64, u64),
    pub(crate) entries: u64,
    pub(crate) deletions: u64,
}

/// A text as a string of C; empty if it has a zero.
pub(crate) fn c_text(text: &str) -> CString {
    CString::new(text).unwrap_or_default()
}

impl TableObject {
    fn live(family: &str, file: LiveFile) -> TableObject {
        TableObject {
            family: c_text(family),
            name: c_text(&format!("/{:06}.sst", file.number.0)),
            directory: c_text(&file.dir.to_string_lossy()),
            level: file.level.0.into(),
            bytes: usize::try_from(file.bytes).unwrap_or(usize::MAX),
            smallest: file.smallest,
            largest: file.largest,
            sequences: (file.sequences.0.get(), file.sequences.1.get()),
            entries: file.entries.unwrap_or(0),
            deletions: file.deletions.unwrap_or(0),
        }
    }
}

/// `rocksdb_livefiles_t`: tables at one moment.
#[derive(Clone, Debug, Default)]
pub struct LiveObject(pub(crate) Vec<TableObject>);

impl LiveObject {
    fn at(&self, index: i32) -> Option<&TableObject> {
        self.0.get(usize::try_from(index).ok()?)
    }
}

/// The live tables of all families.
pub fn livefiles(db: &DbObject) -> LiveObject {
    let of = |family: &Family| {
        let files = family.live_files().unwrap_or_default().into_iter();
        files.map(|file| TableObject::live(family.name(), file)).collect::<Vec<_>>()
    };
    LiveObject(db.0.db().families().iter().flat_map(of).collect())
}

/// No tables, for [`livefiles_add`].
pub fn livefiles_create() -> LiveObject {
    LiveObject::default()
}

/// Adds a table, which the list takes.
pub fn livefiles_add(files: &mut LiveObject, file: Option<Box<TableObject>>) {
    files.0.extend(file.map(|file| *file));
}

/// How many.
pub fn livefiles_count(files: &LiveObject) -> i32 {
    i32::try_from(files.0.len()).unwrap_or(i32::MAX)
}

/// The name of a table, behind a slash.
pub fn livefiles_name(files: &LiveObject, index: i32) -> Option<&CStr> {
    files.at(index).map(|file| file.name.as_c_str())
}

/// The directory of a table.
pub fn livefiles_directory(files: &LiveObject, index: i32) -> Option<&CStr> {
    files.at(index).map(|file| file.directory.as_c_str())
}

/// The family of a table.
pub fn livefiles_column_family_name(files: &LiveObject, index: i32) -> Option<&CStr> {
    files.at(index).map(|file| file.family.as_c_str())
}

/// The first key of a table.
pub fn livefiles_smallestkey(files: &LiveObject, index: i32) -> Option<&[u8]> {
    files.at(index).map(|file| file.smallest.as_slice())
}

/// The last key of a table.
pub fn livefiles_largestkey(files: &LiveObject, index: i32) -> Option<&[u8]> {
    files.at(index).map(|file| file.largest.as_slice())
}

macro_rules! numbers {
    ($($(#[$doc:meta])* $name:ident -> $of:ty = |$file:ident| $number:expr;)*) => { $(
        $(#[$doc])*
        pub fn $name(files: &LiveObject, index: i32) -> $of {
            files.at(index).map_or(0, |$file| $number)
        }
    )* };
}
numbers! {
    /// The level of a table.
    livefiles_level -> i32 = |file| file.level;
    /// The bytes of a table.
    livefiles_size -> usize = |file| file.bytes;
    /// The number of entries in a table.
    livefiles_entries -> u64 = |file| file.entries;
    /// The number of deletions in a table.
    livefiles_deletions -> u64 = |file| file.deletions;
    /// The lowest sequence number of a table.
    livefiles_smallest_seqno -> u64 = |file| file.sequences.0;
    /// The highest sequence number of a table.
    livefiles_largest_seqno -> u64 = |file| file.sequences.1;
}

/// A table that nothing is said about.
pub fn livefile_create() -> TableObject {
    TableObject::default()
}

macro_rules! described {
    ($($name:ident($value:ident: $of:ty) = |$file:ident| $place:expr => $what:expr;)*) => { $(
        /// Describes the table.
        pub fn $name($file: &mut TableObject, $value: $of) {
            $place = $what;
        }
    )* };
}
described! {
    livefile_set_column_family_name(name: &CStr) = |file| file.family => name.to_owned();
    livefile_set_name(name: &CStr) = |file| file.name => name.to_owned();
    livefile_set_directory(name: &CStr) = |file| file.directory => name.to_owned();
    livefile_set_level(level: i32) = |file| file.level => level;
    livefile_set_size(bytes: usize) = |file| file.bytes => bytes;
    livefile_set_smallest_key(key: &[u8]) = |file| file.smallest => key.to_vec();
    livefile_set_largest_key(key: &[u8]) = |file| file.largest => key.to_vec();
    livefile_set_smallest_seqno(number: u64) = |file| file.sequences.0 => number;
    livefile_set_largest_seqno(number: u64) = |file| file.sequences.1 => number;
    livefile_set_num_entries(count: u64) = |file| file.entries => count;
    livefile_set_num_deletions(count: u64) = |file| file.deletions => count;
}

/// `rocksdb_wal_file_t`: a WAL file at one moment.
#[derive(Clone, Debug)]
pub struct WalFileObject {
    path: CString,
    number: u64,
    archived: bool,
    first: u64,
    bytes: u64,
}

impl WalFileObject {
    fn new(file: &WalFile) -> WalFileObject {
        let (number, archived) = (file.number.0, file.archived);
        let dir = if archived { "/archive" } else { "" };
        let first = file.first.map_or(0, ashlardb::SeqNum::get);
        WalFileObject {
            path: c_text(&format!("{dir}/{number:06}.log")),
            number,
            archived,
            first,
            bytes: file.bytes,
        }
    }
}

/// `rocksdb_wal_files_t`.
#[derive(Clone, Debug)]
pub struct WalFilesObject(Vec<WalFileObject>);

/// The WAL files that have writes, those of the archive first.
///
/// # Errors
/// Those of [`ashlardb::Db::wal_files`].
pub fn get_sorted_wal_files(db: &DbObject) -> Result<WalFilesObject> {
    let files = db.0.db().wal_files()?;
    Ok(WalFilesObject(files.iter().filter(|file| file.first.is_some()).map(WalFileObject::new).collect()))
}

/// The WAL file that takes the next write. As in RocksDB, its first sequence number is left out.
///
/// # Errors
/// Those of [`ashlardb::Db::wal_files`].
pub fn get_current_wal_file(db: &DbObject) -> Result<WalFileObject> {
    let files = db.0.db().wal_files()?;
    let last = files.iter().rfind(|file| !file.archived).ok_or_else(|| not_found("a WAL file"))?;
    Ok(WalFileObject { first: 0, ..WalFileObject::new(last) })
}

/// How many.
pub fn wal_files_count(files: &WalFilesObject) -> usize {
    files.0.len()
}

/// A WAL file, valid as long as the list; null behind the last one.
pub fn wal_files_get_wal_file(files: &WalFilesObject, index: usize) -> Option<&WalFileObject> {
    files.0.get(index)
}

/// The path below the directory of the database, behind a slash.
pub fn wal_file_path_name(file: &WalFileObject) -> Option<&CStr> {
    Some(&file.path)
}

/// The number in the name.
pub fn wal_file_log_number(file: &WalFileObject) -> u64 {
    file.number
}

/// By RocksDB's numbers: 0 archived, 1 alive.
pub fn wal_file_type(file: &WalFileObject) -> i32 {
    i32::from(!file.archived)
}

/// The sequence number of the first write.
pub fn wal_file_start_sequence(file: &WalFileObject) -> u64 {
    file.first
}

/// The bytes up to the end of the last record.
pub fn wal_file_size_file_bytes(file: &WalFileObject) -> u64 {
    file.bytes
}
