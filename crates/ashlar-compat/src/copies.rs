//! Copies of databases: checkpoints, exported families, directories of backups with RocksDB's options.

use crate::database::{Database, check_around};
use crate::options::Texts;
use crate::status::not_found;
use ashlar_format::filename::FileKind;
use ashlardb::{BackupEngine, CheckpointOptions, Env, Error, Family, FamilyExport, RestoreOptions, Result};
use std::path::Path;

/// Makes a copy, after a flush of the memtables. As in RocksDB, the directory around it must exist.
///
/// # Errors
/// Those of [`ashlardb::Db::checkpoint_with`]. `Io`: the directory around it is missing.
pub fn checkpoint(db: &Database, dir: &Path) -> Result<()> {
    let env = db.env()?;
    check_around(&env, dir)?;
    db.db().checkpoint_with(dir, CheckpointOptions::new().flush(true), |_| {})?;
    remove_empty(&env, dir);
    Ok(())
}

/// Removes the empty files of a new copy, which RocksDB's copies do not have: LOCK, and WAL files without a record. Flink ships each
/// file of a checkpoint, and fails at an empty one.
fn remove_empty(env: &Env, dir: &Path) {
    let lock = dir.join(FileKind::Lock.name());
    // A process that has opened the copy since keeps the files. An open locks the directory of the LOCK too, so none gets between.
    let Ok(held) = env.fs.lock(&lock) else { return };
    for file in env.fs.files(dir).unwrap_or_default() {
        if file.len == 0 && matches!(FileKind::parse_exact(&file.name), Some(FileKind::Wal(_))) {
            let _ = env.fs.remove(&dir.join(&file.name));
        }
    }
    let _ = env.fs.remove(&lock);
    drop(held);
}

/// Exports a family into a new directory. As in RocksDB, the directory around it must exist.
///
/// # Errors
/// Those of [`Family::export`]. `Io`: the directory around it is missing.
pub fn export(db: &Database, family: &Family, dir: &Path) -> Result<FamilyExport> {
    let env = db.env()?;
    check_around(&env, dir)?;
    let export = family.export(dir)?;
    remove_empty(&env, dir);
    Ok(export)
}

/// Several exports as one, for a family with the tables of all.
///
/// # Errors
/// `InvalidArgument`: no export, or exports with different comparators.
pub fn joined(exports: &[&FamilyExport]) -> Result<FamilyExport> {
    let [first, others @ ..] = exports else { return Err(Error::invalid("an import of no export")) };
    if others.is_empty() {
        return Ok((*first).clone());
    }
    if let Some(other) = others.iter().find(|other| other.comparator != first.comparator) {
        let what = format!("exports with the comparators {} and {}", first.comparator, other.comparator);
        return Err(Error::invalid(what));
    }
    let mut files: Vec<_> = exports.iter().flat_map(|export| export.files.iter().cloned()).collect();
    files.sort_by_key(|file| file.level);
    Ok(FamilyExport::described(first.family.clone(), first.comparator.clone(), files))
}

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
