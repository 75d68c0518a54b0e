//! Checkpoints and backups.

use crate::db::{DbObject, path};
use crate::door::{HasTexts, call, changed};
use crate::info::RateObject;
use crate::objects::RestoreObject;
use crate::options::{EnvObject, OptionsObject};
use ashlar_compat::copies::{check_backup, create_backup, open_backups, restore_backup};
use ashlar_compat::database::Database;
use ashlar_compat::options::Texts;
use ashlar_compat::status::{not_found, stopped};
use ashlar_compat::values;
use ashlardb::{BackupEngine, BackupInfo, Error, Result};
use std::cell::RefCell;
use std::ffi::{CStr, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// `rocksdb_checkpoint_t`: the database of which copies are made.
#[derive(Clone, Debug)]
pub struct CheckpointObject(pub(crate) Database);

/// Copies of this database.
///
/// # Errors
/// None.
pub fn checkpoint_object_create(db: &DbObject) -> Result<CheckpointObject> {
    Ok(CheckpointObject(db.0.clone()))
}

/// Makes a copy. With 0 as `log_size_for_flush` the memtables are flushed first; otherwise the copy has the WAL.
///
/// # Errors
/// Those of [`ashlar_compat::copies::checkpoint`].
pub fn checkpoint_create(checkpoint: &CheckpointObject, dir: &CStr, log_size_for_flush: u64) -> Result<()> {
    ashlar_compat::copies::checkpoint(&checkpoint.0, path(dir), log_size_for_flush == 0)
}

/// `rocksdb_backup_engine_options_t`.
#[derive(Clone, Debug)]
pub struct BackupOptionsObject {
    dir: PathBuf,
    env: Option<EnvObject>,
    /// The bytes per second of a limiter, which wins over the option.
    limit: Option<u64>,
    texts: Texts,
}

impl BackupOptionsObject {
    fn new(dir: &Path) -> BackupOptionsObject {
        BackupOptionsObject {
            dir: dir.to_owned(),
            env: None,
            limit: None,
            texts: Texts::listed(&values::BACKUPS),
        }
    }
}

has_texts!(BackupOptionsObject => texts);

/// `rocksdb_backup_engine_t`: used by one thread, which another one may stop by the flag.
#[derive(Debug)]
pub struct BackupObject(RefCell<BackupEngine>, AtomicBool);

impl BackupObject {
    /// # Errors
    /// RocksDB's `Incomplete`: backups are stopped.
    fn going(&self) -> Result<()> {
        if self.1.load(Ordering::Acquire) { Err(stopped()) } else { Ok(()) }
    }
}

/// `rocksdb_backup_engine_info_t`: the backups at one moment.
#[derive(Clone, Debug)]
pub struct BackupInfoObject(Vec<BackupInfo>);

impl BackupInfoObject {
    fn at(&self, index: i32) -> Option<&BackupInfo> {
        self.0.get(usize::try_from(index).ok()?)
    }
}

// Each function below is the body of the C function of its name.

/// The directory of the backups.
pub fn backup_engine_options_get_backup_dir(opt: &BackupOptionsObject) -> Option<&[u8]> {
    Some(opt.dir.as_os_str().as_bytes())
}

/// Options for backups in a directory.
pub fn backup_engine_options_create(dir: &CStr) -> BackupOptionsObject {
    BackupOptionsObject::new(path(dir))
}

/// Where files and clock come from.
pub fn backup_engine_options_set_env(options: &mut BackupOptionsObject, env: Option<&EnvObject>) {
    options.env = env.cloned();
}

/// Names the directory.
pub fn backup_engine_options_set_backup_dir(options: &mut BackupOptionsObject, dir: &CStr) {
    options.dir = path(dir).to_owned();
}

/// Limits backups in place of the option `backup_rate_limit`. Each engine has a limit of its own.
pub fn backup_engine_options_set_backup_rate_limiter(
    options: &mut BackupOptionsObject,
    limiter: Option<&RateObject>,
) {
    options.limit = limiter.map(RateObject::bytes_per_second).or(options.limit);
}

/// Ignored: a restore goes as fast as the disks.
pub fn backup_engine_options_set_restore_rate_limiter(_: &mut BackupOptionsObject, _: Option<&RateObject>) {}

/// Opens a directory of backups, and creates it if it is missing.
///
/// # Errors
/// Those of [`BackupEngine::open`].
pub fn backup_engine_open(options: &OptionsObject, dir: &CStr) -> Result<BackupObject> {
    let mut own = BackupOptionsObject::new(path(dir));
    own.env = options.0.env.clone().map(EnvObject::new);
    opened(&own)
}

/// Opens a directory of backups with options.
///
/// # Errors
/// Those of [`BackupEngine::open`]. `NotSupported`: tables that are not shared.
pub fn backup_engine_open_opts(
    options: &BackupOptionsObject,
    env: Option<&EnvObject>,
) -> Result<BackupObject> {
    let mut options = options.clone();
    options.env = options.env.or_else(|| env.cloned());
    opened(&options)
}

fn opened(options: &BackupOptionsObject) -> Result<BackupObject> {
    let env = options.env.as_ref().map(|env| &env.0);
    let engine = open_backups(&options.dir, env, options.limit, &options.texts)?;
    Ok(BackupObject(engine.into(), AtomicBool::new(false)))
}

/// Refuses backups and restores with this object from now on. One that runs is completed. Another thread may call it.
pub fn backup_engine_stop_backup(be: &BackupObject) {
    be.1.store(true, Ordering::Release);
}

/// Makes a backup; what is in memtables comes from the WAL.
///
/// # Errors
/// Those of [`BackupEngine::create_backup`].
pub fn backup_engine_create_new_backup(be: &BackupObject, db: &DbObject) -> Result<()> {
    backup_engine_create_new_backup_flush(be, db, false)
}

/// Makes a backup, after a flush if `flush_before_backup`.
///
/// # Errors
/// Those of [`BackupEngine::create_backup`].
pub fn backup_engine_create_new_backup_flush(
    be: &BackupObject,
    db: &DbObject,
    flush_before_backup: bool,
) -> Result<()> {
    made(be, db, flush_before_backup, &[], None).map(drop)
}

fn made(
    be: &BackupObject,
    db: &DbObject,
    flush: bool,
    metadata: &[u8],
    progress: Option<Progress>,
) -> Result<u32> {
    be.going()?;
    let tell = |_: &ashlardb::Copied| progress.iter().for_each(|progress| progress.tell());
    create_backup(&mut be.0.borrow_mut(), &db.0, flush, metadata, tell)
}

/// A function of the caller that hears of each copied file.
#[derive(Clone, Copy, Debug)]
struct Progress {
    state: *mut c_void,
    function: unsafe extern "C" fn(*mut c_void),
}

impl Progress {
    fn tell(self) {
        // SAFETY: the contract of the header: the state is that of the function, and outlives the options.
        unsafe { (self.function)(self.state) };
    }
}

/// `rocksdb_create_backup_options_t`.
#[derive(Clone, Debug)]
pub struct CreateBackupObject {
    texts: Texts,
    progress: Option<Progress>,
    excludes: bool,
}

has_texts!(CreateBackupObject => texts);

/// All defaults.
pub fn create_backup_options_create() -> CreateBackupObject {
    let texts = Texts::listed(&[("background_thread_cpu_priority", "2")]);
    CreateBackupObject { texts, progress: None, excludes: false }
}

/// The function that hears of each copied file; null: none.
///
/// # Safety
/// The options are null or of this library, and the function is that of the state, which outlives the options.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_create_backup_options_set_progress_callback(
    options: *mut CreateBackupObject,
    state: *mut c_void,
    callback: Option<unsafe extern "C" fn(*mut c_void)>,
) {
    let _in = crate::checked::enter("rocksdb_create_backup_options_set_progress_callback");
    call(std::ptr::null_mut(), || {
        // SAFETY: as for this function.
        let options = unsafe { changed(options, "options") }?;
        options.progress = callback.map(|function| Progress { state, function });
        Ok(())
    });
}

/// The function that may leave files out of a backup. A backup with one is refused; null: none.
///
/// # Safety
/// The options are null or of this library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_create_backup_options_set_exclude_files_callback(
    options: *mut CreateBackupObject,
    _state: *mut c_void,
    callback: Option<unsafe extern "C" fn()>,
) {
    let _in = crate::checked::enter("rocksdb_create_backup_options_set_exclude_files_callback");
    call(std::ptr::null_mut(), || {
        // SAFETY: as for this function.
        unsafe { changed(options, "options") }?.excludes = callback.is_some();
        Ok(())
    });
}

/// Whether the options of one backup ask for a flush.
///
/// # Errors
/// `NotSupported`: files are to be left out.
fn flushes(options: &CreateBackupObject) -> Result<bool> {
    if options.excludes {
        return Err(Error::not_supported("a backup that leaves files out"));
    }
    Ok(options.texts().get("flush_before_backup"))
}

/// Makes a backup with options, and answers its number.
///
/// # Errors
/// Those of [`BackupEngine::create_backup`].
pub fn backup_engine_create_new_backup_with_options(
    be: &BackupObject,
    db: &DbObject,
    options: &CreateBackupObject,
    backup_id: &mut u32,
) -> Result<()> {
    *backup_id = made(be, db, flushes(options)?, &[], options.progress)?;
    Ok(())
}

/// Makes a backup with options and bytes of the caller, and answers its number.
///
/// # Errors
/// Those of [`BackupEngine::create_backup`].
pub fn backup_engine_create_new_backup_with_metadata(
    be: &BackupObject,
    db: &DbObject,
    options: &CreateBackupObject,
    metadata: &[u8],
    backup_id: &mut u32,
) -> Result<()> {
    *backup_id = made(be, db, flushes(options)?, metadata, options.progress)?;
    Ok(())
}

/// Deletes all backups but the newest ones.
///
/// # Errors
/// Those of [`BackupEngine::purge_old`].
pub fn backup_engine_purge_old_backups(be: &BackupObject, keep: u32) -> Result<()> {
    be.0.borrow_mut().purge_old(usize::try_from(keep).unwrap_or(usize::MAX)).map(drop)
}

/// Reads every file of a backup.
///
/// # Errors
/// Those of [`BackupEngine::verify`].
pub fn backup_engine_verify_backup(be: &BackupObject, backup_id: u32) -> Result<()> {
    let engine = be.0.borrow();
    check_backup(&engine, backup_id)?;
    engine.verify(backup_id)
}

/// Restores the newest backup.
///
/// # Errors
/// Those of [`BackupEngine::restore_with`]. `NotSupported`: another directory for WAL files.
pub fn backup_engine_restore_db_from_latest_backup(
    be: &BackupObject,
    db_dir: &CStr,
    wal_dir: &CStr,
    options: &RestoreObject,
) -> Result<()> {
    let id = be.0.borrow().latest().map_err(|e| not_found(e.message()))?.id;
    backup_engine_restore_db_from_backup(be, db_dir, wal_dir, options, id)
}

/// Restores a backup.
///
/// # Errors
/// Those of [`BackupEngine::restore_with`]. `NotSupported`: another directory for WAL files.
pub fn backup_engine_restore_db_from_backup(
    be: &BackupObject,
    db_dir: &CStr,
    wal_dir: &CStr,
    options: &RestoreObject,
    backup_id: u32,
) -> Result<()> {
    be.going()?;
    let keep = options.texts().get("keep_log_files");
    restore_backup(&be.0.borrow(), backup_id, (path(db_dir), path(wal_dir)), keep)
}

/// The backups.
pub fn backup_engine_get_backup_info(be: &BackupObject) -> BackupInfoObject {
    BackupInfoObject(be.0.borrow().backups())
}

/// How many.
pub fn backup_engine_info_count(info: &BackupInfoObject) -> i32 {
    i32::try_from(info.0.len()).unwrap_or(i32::MAX)
}

/// The number of a backup.
pub fn backup_engine_info_backup_id(info: &BackupInfoObject, index: i32) -> u32 {
    info.at(index).map_or(0, |backup| backup.id)
}

/// The bytes of a backup.
pub fn backup_engine_info_size(info: &BackupInfoObject, index: i32) -> u64 {
    info.at(index).map_or(0, |backup| backup.bytes)
}

/// The files of a backup.
pub fn backup_engine_info_number_files(info: &BackupInfoObject, index: i32) -> u32 {
    info.at(index).map_or(0, |backup| u32::try_from(backup.files).unwrap_or(u32::MAX))
}

/// The time of a backup, in seconds since 1970.
pub fn backup_engine_info_timestamp(info: &BackupInfoObject, index: i32) -> i64 {
    info.at(index).map_or(0, |backup| backup.unix_seconds)
}

/// The caller's bytes of a backup.
pub fn backup_engine_info_app_metadata(info: &BackupInfoObject, index: i32) -> Option<&[u8]> {
    info.at(index).map(|backup| backup.metadata.as_slice())
}
