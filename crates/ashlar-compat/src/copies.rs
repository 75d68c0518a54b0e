//! Directories of backups, with RocksDB's options.

use crate::options::Texts;
use crate::status::not_found;
use ashlardb::{BackupEngine, Env, Error, RestoreOptions, Result};
use std::path::Path;

/// Opens a directory of backups, and creates it if it is missing. `limit`: bytes per second of a limiter, which win over the option
/// `backup_rate_limit`.
///
/// # Errors
/// Those of [`BackupEngine::open`]. `NotSupported`: tables that are not shared.
pub fn open_backups(
    dir: &Path,
    env: Option<&Env>,
    limit: Option<u64>,
    options: &Texts,
) -> Result<BackupEngine> {
    for name in ["share_table_files", "share_files_with_checksum"] {
        if !options.get::<bool>(name) {
            return Err(Error::not_supported(format!("the backup option {name}={}", options.text(name))));
        }
    }
    let limit = limit.unwrap_or_else(|| options.get("backup_rate_limit"));
    let threads = usize::try_from(options.get::<i32>("max_background_operations")).unwrap_or(1);
    let builder = BackupEngine::builder(dir).rate_limit(limit).threads(threads);
    let mut engine = env.into_iter().fold(builder, |builder, env| builder.env(env.clone())).open()?;
    if options.get("destroy_old_data") {
        engine.delete_all()?;
    }
    Ok(engine)
}

/// # Errors
/// `Io(NotFound)`: there is no such backup.
pub fn check_backup(engine: &BackupEngine, id: u32) -> Result<()> {
    let is_there = engine.backups().iter().any(|backup| backup.id == id);
    if is_there { Ok(()) } else { Err(not_found(format!("there is no backup {id}"))) }
}

/// Restores a backup to the directories of a database and of its WAL files.
///
/// # Errors
/// Those of [`check_backup`] and [`BackupEngine::restore_with`]. `NotSupported`: another directory for WAL files.
pub fn restore_backup(
    engine: &BackupEngine,
    id: u32,
    (dir, wal_dir): (&Path, &Path),
    keep_log_files: bool,
) -> Result<()> {
    if dir != wal_dir {
        return Err(
            Error::not_supported("a restore of WAL files to a directory of their own").at_path(wal_dir)
        );
    }
    check_backup(engine, id)?;
    let options = RestoreOptions::new().keep_log_files(keep_log_files);
    engine.restore_with(id, dir, options, |_| {}).map(drop)
}
