//! Checkpoints and backups.

use crate::callbacks::LoggerObject;
use crate::classes::{Class, Method, array_list};
use crate::db::DbObject;
use crate::door::Result;
use crate::env::{Env, Local, int, long, object};
use crate::handles::{self, Object};
use crate::parts::{EnvObject, RateObject};
use crate::settings::{HasTexts, RestoreObject, Shared};
use ashlar_compat::copies::{check_backup, create_backup, open_backups, restore_backup};
use ashlar_compat::database::Database;
use ashlar_compat::options::Texts;
use ashlar_compat::status::not_found;
use ashlar_compat::values;
use ashlardb::{BackupEngine, BackupInfo, Env as Files};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// `Checkpoint`: the database of which copies are made.
#[derive(Debug)]
pub struct CheckpointObject(pub Database);

impl Object for CheckpointObject {
    const NAME: &'static str = "Checkpoint";
}

/// `BackupEngineOptions`.
#[derive(Debug)]
pub struct BackupOptionsObject(Shared<Settings>);

#[derive(Clone, Debug)]
struct Settings {
    dir: PathBuf,
    env: Option<Files>,
    /// The bytes per second of a limiter, which wins over the option.
    limit: Option<u64>,
    texts: Texts,
}

impl Object for BackupOptionsObject {
    const NAME: &'static str = "BackupEngineOptions";
}

impl HasTexts for BackupOptionsObject {
    fn with<R>(&self, read: impl FnOnce(&Texts) -> R) -> R {
        read(&self.0.read().texts)
    }
    fn change(&self, set: impl FnOnce(&mut Texts)) {
        set(&mut self.0.write().texts);
    }
}

/// `BackupEngine`: one call at a time.
#[derive(Debug)]
pub struct BackupObject(Mutex<BackupEngine>);

impl Object for BackupObject {
    const NAME: &'static str = "BackupEngine";
}

impl BackupObject {
    fn lock(&self) -> MutexGuard<'_, BackupEngine> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// Each function below is the body of the natives that the description names.

/// Copies of this database.
pub fn new_checkpoint(db: &DbObject) -> Result<i64> {
    Ok(handles::keep(CheckpointObject(db.database.clone()))?)
}

/// Makes a copy, after a flush of the memtables.
///
/// # Errors
/// Those of [`ashlar_compat::copies::checkpoint`].
pub fn create_checkpoint(checkpoint: &CheckpointObject, path: &str) -> Result<()> {
    Ok(ashlar_compat::copies::checkpoint(&checkpoint.0, Path::new(path), true)?)
}

/// Options for backups in a directory.
pub fn new_options(dir: &str) -> Result<i64> {
    let texts = Texts::listed(&values::BACKUPS);
    let settings = Settings { dir: dir.into(), env: None, limit: None, texts };
    Ok(handles::keep(BackupOptionsObject(Shared::new(settings)))?)
}

/// The directory.
pub fn dir(options: &BackupOptionsObject) -> Result<String> {
    Ok(options.0.read().dir.to_string_lossy().into_owned())
}

/// Where the files of backups are.
pub fn set_backup_env(options: &BackupOptionsObject, env: &EnvObject) -> Result<()> {
    options.0.write().env = Some(env.env.clone());
    Ok(())
}

/// Ignored: backups write no log.
pub fn set_info_log(_: &BackupOptionsObject, _: &LoggerObject) -> Result<()> {
    Ok(())
}

/// Limits backups in place of the option `backup_rate_limit`. Each engine has a limit of its own.
pub fn set_backup_rate_limiter(options: &BackupOptionsObject, limiter: &RateObject) -> Result<()> {
    options.0.write().limit = Some(limiter.rate());
    Ok(())
}

/// Ignored: a restore goes as fast as the disks.
pub fn set_restore_rate_limiter(_: &BackupOptionsObject, _: &RateObject) -> Result<()> {
    Ok(())
}

/// Opens a directory of backups, and creates it if it is missing.
///
/// # Errors
/// Those of [`open_backups`].
pub fn open(env: &EnvObject, options: &BackupOptionsObject) -> Result<i64> {
    let settings = options.0.read().clone();
    let env = settings.env.as_ref().unwrap_or(&env.env);
    let engine = open_backups(&settings.dir, Some(env), settings.limit, &settings.texts)?;
    Ok(handles::keep(BackupObject(Mutex::new(engine)))?)
}

/// Makes a backup, after a flush if `flush`.
///
/// # Errors
/// Those of [`create_backup`].
pub fn create_new_backup(engine: &BackupObject, db: &DbObject, flush: bool) -> Result<()> {
    create_new_backup_with(engine, db, "", flush)
}

/// Makes a backup with bytes of the program.
///
/// # Errors
/// Those of [`create_backup`].
pub fn create_new_backup_with(
    engine: &BackupObject,
    db: &DbObject,
    metadata: &str,
    flush: bool,
) -> Result<()> {
    create_backup(&mut engine.lock(), &db.database, flush, metadata.as_bytes(), |_| {})?;
    Ok(())
}

/// The backups, as a list of `BackupInfo`.
pub fn backup_info<'a>(env: Env<'a>, engine: &BackupObject) -> Result<Local<'a>> {
    static INFO: Class = Class::new("org/rocksdb/BackupInfo");
    static NEW: Method = Method::constructor("(IJJILjava/lang/String;)V");
    let one = |backup: &BackupInfo| {
        let metadata = env.new_text(&String::from_utf8_lossy(&backup.metadata))?;
        let size = i64::try_from(backup.bytes).unwrap_or(i64::MAX);
        let files = i32::try_from(backup.files).unwrap_or(i32::MAX);
        let id = i32::try_from(backup.id).unwrap_or(i32::MAX);
        let given = [int(id), long(backup.unix_seconds), long(size), int(files), object(metadata)];
        INFO.make(env, &NEW, &given)
    };
    let backups = engine.lock().backups();
    array_list(env, backups.iter().map(one))
}

/// The numbers of damaged backups.
pub fn corrupted(engine: &BackupObject) -> Result<Vec<i32>> {
    let damaged = engine.lock().corrupt_backups();
    Ok(damaged.iter().map(|backup| i32::try_from(backup.id).unwrap_or(i32::MAX)).collect())
}

/// Removes files that no backup has.
///
/// # Errors
/// Those of [`BackupEngine::collect_garbage`].
pub fn collect(engine: &BackupObject) -> Result<()> {
    Ok(engine.lock().collect_garbage()?)
}

/// Deletes all backups but the newest ones.
///
/// # Errors
/// Those of [`BackupEngine::purge_old`].
pub fn purge_old_backups(engine: &BackupObject, keep: i32) -> Result<()> {
    Ok(engine.lock().purge_old(usize::try_from(keep).unwrap_or(0)).map(drop)?)
}

fn number(id: i32) -> Result<u32> {
    u32::try_from(id).map_err(|_| not_found(format!("there is no backup {id}")).into())
}

/// Deletes a backup.
///
/// # Errors
/// Those of [`check_backup`] and [`BackupEngine::delete`].
pub fn delete_backup(engine: &BackupObject, id: i32) -> Result<()> {
    let (mut engine, id) = (engine.lock(), number(id)?);
    check_backup(&engine, id)?;
    Ok(engine.delete(id)?)
}

/// Restores a backup.
///
/// # Errors
/// Those of [`restore_backup`].
pub fn restore(
    engine: &BackupObject,
    id: i32,
    dir: &str,
    wal_dir: &str,
    options: &RestoreObject,
) -> Result<()> {
    let keep = options.with(|texts| texts.get("keep_log_files"));
    Ok(restore_backup(&engine.lock(), number(id)?, (Path::new(dir), Path::new(wal_dir)), keep)?)
}

/// Restores the newest backup.
///
/// # Errors
/// Those of [`restore_backup`]. `Io(NotFound)`: there is no backup.
pub fn restore_latest(
    engine: &BackupObject,
    dir: &str,
    wal_dir: &str,
    options: &RestoreObject,
) -> Result<()> {
    let latest = engine.lock().latest().map(|backup| backup.id).map_err(|e| not_found(e.message()))?;
    restore(engine, i32::try_from(latest).unwrap_or(i32::MAX), dir, wal_dir, options)
}
