//! Copies of databases: checkpoints, exported families, directories of backups with RocksDB's options.

use crate::database::{Database, check_around};
use crate::options::Texts;
use crate::status::not_found;
use ashlardb::{
    BackupEngine, BackupOptions, CheckpointOptions, Copied, Env, Error, Family, FamilyExport, RestoreOptions,
    Result,
};
use std::path::Path;

/// Makes a copy, after a flush of the memtables if `flush`. As in RocksDB, the directory around it must exist.
///
/// # Errors
/// Those of [`ashlardb::Db::checkpoint_with`], and with `flush` those of [`Database::check_cancelled`]. `Io`: the directory around it
/// is missing.
pub fn checkpoint(db: &Database, dir: &Path, flush: bool) -> Result<()> {
    if flush {
        db.check_cancelled()?;
    }
    check_around(&db.env()?, dir)?;
    db.db().checkpoint_with(dir, CheckpointOptions::new().flush(flush), |_| {}).map(drop)
}

/// Exports a family into a new directory. As in RocksDB, the directory around it must exist.
///
/// # Errors
/// Those of [`Family::export`], [`Database::family`] and [`Database::check_cancelled`]. `Io`: the directory around it is missing.
pub fn export(db: &Database, family: &Family, dir: &Path) -> Result<FamilyExport> {
    db.check_cancelled()?;
    check_around(&db.env()?, dir)?;
    db.family(Some(family))?.export(dir)
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

/// Makes a backup, and answers its number.
///
/// # Errors
/// Those of [`BackupEngine::create_backup_with`], and with a flush those of [`Database::check_cancelled`].
pub fn create_backup(
    engine: &mut BackupEngine,
    db: &Database,
    flush: bool,
    metadata: &[u8],
    progress: impl FnMut(&Copied),
) -> Result<u32> {
    if flush {
        db.check_cancelled()?;
    }
    let options = BackupOptions::new().flush(flush).metadata(metadata);
    Ok(engine.create_backup_with(&*db.db(), &options, progress)?.info.id)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::{Mode, Named};
    use crate::options::Options;
    use ashlardb::{ErrorKind, ImportOptions, Read as _, Write as _};

    fn creating() -> Options {
        let mut options = Options::default();
        options.texts.set("create_if_missing", true);
        options
    }

    fn database(dir: &Path) -> Database {
        Database::open(&creating(), dir, Mode::Write, &[]).unwrap().0
    }

    fn exported(db: &Database, ttl: Option<i32>, keys: [&str; 2], dir: &Path) -> FamilyExport {
        let family = db.create_family(&Options::default(), "part", ttl).unwrap();
        for key in keys {
            family.put(key, key).unwrap();
        }
        let made = export(db, &family, dir).unwrap();
        db.db().drop_family(&family).unwrap();
        made
    }

    /// Regression: tombstones and values of one export hid those of another with the same keys.
    #[test]
    fn exports_with_overlapping_keys_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let db = database(&dir.path().join("db"));
        let parts = [["a", "m"], ["n", "z"], ["m", "n"]];
        let made = |at: usize| exported(&db, None, parts[at], &dir.path().join(at.to_string()));
        let exports = [0, 1, 2].map(made);
        let import = |parts: &[usize]| {
            let joined =
                FamilyExport::joined(&parts.iter().map(|at| &exports[*at]).collect::<Vec<_>>()).unwrap();
            db.import_family(&Options::default(), "whole", &joined, ImportOptions::new())
        };
        for parts in [&[0, 2][..], &[2, 1], &[1, 0, 2], &[1, 1]] {
            let refused = import(parts).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::InvalidArgument, "{refused}");
        }
        let refused = import(&[2, 0]).unwrap_err().to_string();
        assert!(refused.contains("the keys of two exports overlap: a to m"), "{refused}");
        assert!(db.db().family("whole").is_err());
        assert_eq!(import(&[1, 0]).unwrap().scan(..).count(), 4);
        assert!(FamilyExport::joined(&[]).is_err());
    }

    /// Regression: only the first of several exports was compared with the options of the new family.
    #[test]
    fn every_joined_export_is_compared_with_the_options() {
        let dir = tempfile::tempdir().unwrap();
        let db = database(&dir.path().join("db"));
        let plain = exported(&db, None, ["a", "b"], &dir.path().join("plain"));
        let timed = exported(&db, Some(0), ["c", "d"], &dir.path().join("timed"));
        for exports in [[&plain, &timed], [&timed, &plain]] {
            let joined = FamilyExport::joined(&exports).unwrap();
            let refused = db.import_family(&Options::default(), "whole", &joined, ImportOptions::new());
            let refused = refused.unwrap_err().to_string();
            assert!(refused.contains("write times"), "{refused}");
        }
    }

    /// Regression: a family that was imported into a database with times to live had none, and values without times were taken.
    #[test]
    fn an_import_into_a_database_with_times_to_live_takes_values_with_times_only() {
        let dir = tempfile::tempdir().unwrap();
        let from = database(&dir.path().join("from"));
        let plain = exported(&from, None, ["a", "b"], &dir.path().join("plain"));
        let timed = exported(&from, Some(0), ["a", "b"], &dir.path().join("timed"));
        let options = creating();
        let named = [Named { name: "default", options: &options, ttl: Some(0) }];
        let (db, _) = Database::open(&options, &dir.path().join("db"), Mode::Write, &named).unwrap();
        let import = |export| db.import_family(&Options::default(), "new", export, ImportOptions::new());
        let refused = import(&plain).unwrap_err().to_string();
        assert!(refused.contains("no write times"), "{refused}");
        assert_eq!(import(&timed).unwrap().get("a").unwrap().as_deref(), Some(&b"a"[..]));
    }

    #[test]
    fn a_family_of_another_database_is_not_exported() {
        let dir = tempfile::tempdir().unwrap();
        let [one, other] = ["one", "other"].map(|name| database(&dir.path().join(name)));
        let refused = export(&one, other.default_family(), &dir.path().join("copy")).unwrap_err();
        assert!(refused.to_string().contains("belongs to another open database"), "{refused}");
        assert!(!dir.path().join("copy").exists());
    }

    /// Programs that ship each file of a copy refuse empty ones.
    #[test]
    fn a_copy_has_no_empty_file_and_opens() {
        let dir = tempfile::tempdir().unwrap();
        let db = database(&dir.path().join("db"));
        db.db().put("a", "1").unwrap();
        let [flushed, logged, family] = ["flushed", "logged", "family"].map(|name| dir.path().join(name));
        checkpoint(&db, &logged, false).unwrap();
        checkpoint(&db, &flushed, true).unwrap();
        export(&db, db.default_family(), &family).unwrap();
        for copy in [&flushed, &logged, &family] {
            let files = db.env().unwrap().fs.files(copy).unwrap();
            let empty: Vec<_> = files.iter().filter(|file| file.len == 0).collect();
            assert!(empty.is_empty() && !files.is_empty(), "{empty:?}");
            assert_eq!(database(copy).db().get("a").unwrap().as_deref(), Some(&b"1"[..]));
        }
        assert!(checkpoint(&db, &dir.path().join("no/such"), true).is_err());
    }

    #[test]
    fn a_database_whose_background_work_was_cancelled_flushes_for_no_caller() {
        let dir = tempfile::tempdir().unwrap();
        let db = database(&dir.path().join("db"));
        db.db().put("a", "1").unwrap();
        db.cancel_background_work(true);
        let copy = dir.path().join("copy");
        let mut engine = BackupEngine::open(dir.path().join("backups")).unwrap();
        let refused = [
            db.flush(std::slice::from_ref(db.default_family())),
            db.check_requests(),
            checkpoint(&db, &copy, true),
            export(&db, db.default_family(), &copy).map(drop),
            crate::clip::clip_family(&db, db.default_family(), b"a", b"b"),
            create_backup(&mut engine, &db, true, &[], |_| {}).map(drop),
        ];
        for answer in refused {
            assert!(matches!(answer.unwrap_err().kind(), ErrorKind::Shutdown(_)));
        }
        checkpoint(&db, &copy, false).unwrap();
        create_backup(&mut engine, &db, false, &[], |_| {}).unwrap();
    }
}
