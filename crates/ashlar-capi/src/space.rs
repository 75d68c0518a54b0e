//! Managers of the space of tables.
//!
//! 1. A manager knows the databases that were opened with it, and adds up the bytes of their tables.
//! 2. A limit is the quota of the one database of the manager: see [`ashlar_compat::space`]. It counts all files of the
//!    database, and refuses writes other than deletions with an `IOError` for lack of space. A second database is `Not implemented`.
//! 3. Files are removed at once: a rate of deletions is ignored, and there is no trash.
//!
//! Source: RocksDB `include/rocksdb/sst_file_manager.h`.

use crate::options::{EnvObject, OptionsObject};
use ashlar_compat::space::Space;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// `rocksdb_sst_file_manager_t`.
#[derive(Debug)]
pub struct ManagerOfFiles {
    space: Arc<Space>,
    delete_rate: AtomicI64,
    /// The bits of the ratio.
    trash_ratio: AtomicU64,
}

/// RocksDB's default ratio of trash to data.
const TRASH_RATIO: f64 = 0.25;

/// A manager that has no limit yet. It needs no environment.
pub fn sst_file_manager_create(_: Option<&EnvObject>) -> ManagerOfFiles {
    ManagerOfFiles {
        space: Arc::default(),
        delete_rate: AtomicI64::new(0),
        trash_ratio: AtomicU64::new(TRASH_RATIO.to_bits()),
    }
}

/// The manager of the databases that are opened with these options; null: none.
pub fn options_set_sst_file_manager(opt: &mut OptionsObject, sfm: Option<&ManagerOfFiles>) {
    opt.0.space = sfm.map(|manager| Arc::clone(&manager.space));
}

/// The most bytes of tables; 0: no limit. See the module.
pub fn sst_file_manager_set_max_allowed_space_usage(sfm: &ManagerOfFiles, max_allowed_space: u64) {
    sfm.space.set_limit(max_allowed_space);
}

/// Room for compactions beside the tables. Ignored: the inputs of running compactions count as their outputs.
pub fn sst_file_manager_set_compaction_buffer_size(_: &ManagerOfFiles, _: u64) {}

/// Whether the tables have as many bytes as the limit, or writes are refused for it.
pub fn sst_file_manager_is_max_allowed_space_reached(sfm: &ManagerOfFiles) -> bool {
    sfm.space.is_reached()
}

/// As [`sst_file_manager_is_max_allowed_space_reached`]: outputs of running compactions do not count.
pub fn sst_file_manager_is_max_allowed_space_reached_including_compactions(sfm: &ManagerOfFiles) -> bool {
    sfm.space.is_reached()
}

/// The bytes of the tables of all databases of the manager.
pub fn sst_file_manager_get_total_size(sfm: &ManagerOfFiles) -> u64 {
    sfm.space.total()
}

/// The rate that was set. Files are removed at once.
pub fn sst_file_manager_get_delete_rate_bytes_per_second(sfm: &ManagerOfFiles) -> i64 {
    sfm.delete_rate.load(Ordering::Relaxed)
}

/// Ignored.
pub fn sst_file_manager_set_delete_rate_bytes_per_second(sfm: &ManagerOfFiles, delete_rate: i64) {
    sfm.delete_rate.store(delete_rate, Ordering::Relaxed);
}

/// The ratio that was set. There is no trash.
pub fn sst_file_manager_get_max_trash_db_ratio(sfm: &ManagerOfFiles) -> f64 {
    f64::from_bits(sfm.trash_ratio.load(Ordering::Relaxed))
}

/// Ignored.
pub fn sst_file_manager_set_max_trash_db_ratio(sfm: &ManagerOfFiles, ratio: f64) {
    sfm.trash_ratio.store(ratio.to_bits(), Ordering::Relaxed);
}

/// The bytes of removed files that wait: 0.
pub fn sst_file_manager_get_total_trash_size(_: &ManagerOfFiles) -> u64 {
    0
}
