//! LevelDB's options, which are those of a database, a family and its tables at once, and what depends on them.

use ashlardb::Result;
use rocksdb::callbacks::{ComparatorObject, LoggerObject};
use rocksdb::db::DbObject;
use rocksdb::door::{Places, Ranges};
use rocksdb::options::{CacheObject, EnvObject, OptionsObject, PolicyObject, TableObject};
use rocksdb::{db, info, options};
use std::ffi::{CStr, CString};

/// `leveldb_options_t`. What is not set has AshlarDB's default.
#[derive(Clone, Debug, Default)]
pub struct LevelOptions {
    database: OptionsObject,
    table: TableObject,
}

/// A kind of object that no function makes: `leveldb_filelock_t` and others.
#[derive(Debug)]
pub enum Nothing {}

impl LevelOptions {
    /// The options with those of tables.
    fn whole(&self) -> OptionsObject {
        let mut whole = self.database.clone();
        options::options_set_block_based_table_factory(&mut whole, Some(&self.table));
        whole
    }
}

/// All defaults.
pub fn options_create() -> LevelOptions {
    LevelOptions::default()
}

/// Opens a database, or a directory of LevelDB, which is one of RocksDB's format afterwards.
///
/// # Errors
/// Those of [`db::open`].
pub fn open(options: &LevelOptions, name: &CStr) -> Result<DbObject> {
    db::open(&options.whole(), name)
}

/// Removes a database.
///
/// # Errors
/// Those of [`info::destroy_db`].
pub fn destroy_db(options: &LevelOptions, name: &CStr) -> Result<()> {
    info::destroy_db(&options.whole(), name)
}

/// Repairs a damaged directory.
///
/// # Errors
/// Those of [`db::repair_db`].
pub fn repair_db(options: &LevelOptions, name: &CStr) -> Result<()> {
    db::repair_db(&options.whole(), name)
}

/// A property by LevelDB's name, such as `leveldb.stats`; null: there is no such property.
pub fn property_value(db: &DbObject, propname: &CStr) -> Option<String> {
    let name = propname.to_str().ok()?.strip_prefix("leveldb.")?;
    let name = if name == "approximate-memory-usage" { "cur-size-all-mem-tables" } else { name };
    db::property_value(db, &CString::new(format!("rocksdb.{name}")).ok()?)
}

/// About how many bytes of files the keys of each range have; 0 where a table cannot be read.
pub fn approximate_sizes(db: &DbObject, ranges: Ranges<'_>, sizes: Places<u64>) {
    // The function has no place for the error.
    drop(rocksdb::gets::approximate_sizes(db, ranges, sizes));
}

/// The order of keys; null: that of bytes.
pub fn options_set_comparator(options: &mut LevelOptions, comparator: Option<&ComparatorObject>) {
    options::options_set_comparator(&mut options.database, comparator);
}

/// The filter; null: none. The policy stays the caller's.
pub fn options_set_filter_policy(options: &mut LevelOptions, policy: Option<&PolicyObject>) {
    options::block_based_options_set_filter_policy(&mut options.table, policy.cloned().map(Box::new));
}

/// About so many bits of a Bloom filter for each key.
pub fn filterpolicy_create_bloom(bits_per_key: i32) -> PolicyObject {
    options::filterpolicy_create_bloom_full(bits_per_key.into())
}

/// Where files and clock come from; null: the machine.
pub fn options_set_env(options: &mut LevelOptions, env: Option<&EnvObject>) {
    options::options_set_env(&mut options.database, env);
}

/// Where lines of the info log go; null: to the file.
pub fn options_set_info_log(options: &mut LevelOptions, log: Option<&LoggerObject>) {
    options::options_set_info_log(&mut options.database, log);
}

/// The cache; null: one of the database's own. The cache stays the caller's.
pub fn options_set_cache(options: &mut LevelOptions, cache: Option<&CacheObject>) {
    options::block_based_options_set_block_cache(&mut options.table, cache);
}

macro_rules! set {
    ($($(#[$doc:meta])* $name:ident($of:ty) = $part:ident, $option:literal;)*) => { $(
        $(#[$doc])*
        pub fn $name(options: &mut LevelOptions, value: $of) {
            rocksdb::door::set(&mut options.$part, $option, value);
        }
    )* };
}
set! {
    /// Whether the open makes a database.
    options_set_create_if_missing(bool) = database, "create_if_missing";
    /// Whether an open of a database that exists is refused.
    options_set_error_if_exists(bool) = database, "error_if_exists";
    /// As RocksDB's `paranoid_checks`.
    options_set_paranoid_checks(bool) = database, "paranoid_checks";
    /// The bytes of a memtable.
    options_set_write_buffer_size(usize) = database, "write_buffer_size";
    /// The number of tables that stay open.
    options_set_max_open_files(i32) = database, "max_open_files";
    /// About the bytes of a table.
    options_set_max_file_size(usize) = database, "target_file_size_base";
    /// About the bytes of a block.
    options_set_block_size(usize) = table, "block_size";
    /// The number of entries between keys that are stored whole.
    options_set_block_restart_interval(i32) = table, "block_restart_interval";
}

/// LevelDB's number of a compression: 0 none, 1 Snappy, 2 Zstandard. The open refuses another one.
pub fn options_set_compression(options: &mut LevelOptions, compression: i32) {
    // RocksDB's number of Zstandard is 7, which LevelDB does not have.
    let number = match compression {
        2 => 7,
        7 => 2,
        other => other,
    };
    rocksdb::door::set_named(&mut options.database, "compression", rocksdb::door::COMPRESSION, number);
}

/// A directory for tests: that for temporary files.
pub fn env_get_test_directory(_: &EnvObject) -> Option<String> {
    Some(std::env::temp_dir().to_string_lossy().into_owned())
}

/// The version of LevelDB whose interface this is: 1.
pub fn major_version() -> i32 {
    1
}

/// The second part of that version: 23.
pub fn minor_version() -> i32 {
    23
}
