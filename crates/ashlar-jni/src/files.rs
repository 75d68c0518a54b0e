//! SST files of the program, exported families, OPTIONS files.

use crate::classes::add_to_list;
use crate::db::{DbObject, FamilyObject, descriptor, utf8};
use crate::door::Result;
use crate::env::{Env, Local};
use crate::handles::{self, Object};
use crate::options::ConfigObject;
use crate::parts::EnvObject;
use crate::settings::{HasTexts, ImportObject, OptionsObject};
use ashlar_compat::options::Options;
use ashlar_compat::stored::{latest_name, load_file, load_latest};
use ashlardb::{Env as Files, Error, FamilyExport, ImportOptions, IngestMode, SstWriter};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// `SstFileWriter`.
#[derive(Debug)]
pub struct WriterObject(Mutex<Writer>);

#[derive(Debug)]
struct Writer {
    options: Options,
    open: Option<SstWriter>,
    /// The size of the finished file.
    finished: u64,
}

impl Object for WriterObject {
    const NAME: &'static str = "SstFileWriter";
}

impl WriterObject {
    fn lock(&self) -> MutexGuard<'_, Writer> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Writer {
    fn file(&mut self) -> Result<&mut SstWriter> {
        self.open.as_mut().ok_or_else(|| Error::invalid("File is not opened").into())
    }
}

/// `ExportImportFilesMetaData`: an exported family.
#[derive(Debug)]
pub struct ExportObject(FamilyExport);

impl Object for ExportObject {
    const NAME: &'static str = "ExportImportFilesMetaData";
}

// Each function below is the body of the natives that the description names.

/// A writer with the options of a family.
pub fn new_writer(options: &OptionsObject) -> Result<i64> {
    let writer = Writer { options: options.0.read().clone(), open: None, finished: 0 };
    Ok(handles::keep(WriterObject(Mutex::new(writer)))?)
}

/// Creates the file.
///
/// # Errors
/// Those of [`SstWriter::create_with`].
pub fn open(writer: &WriterObject, path: &str) -> Result<()> {
    let mut writer = writer.lock();
    writer.open = Some(SstWriter::create_with(path, |family| writer.options.on_family(family))?);
    Ok(())
}

/// Appends a value.
///
/// # Errors
/// Those of [`SstWriter::put`]. `InvalidArgument`: no file is open.
pub fn put(writer: &WriterObject, key: &[u8], value: &[u8]) -> Result<()> {
    Ok(writer.lock().file()?.put(key, value)?)
}

/// Appends a merge operand.
///
/// # Errors
/// As [`put`].
pub fn merge(writer: &WriterObject, key: &[u8], value: &[u8]) -> Result<()> {
    Ok(writer.lock().file()?.merge(key, value)?)
}

/// Appends a deletion.
///
/// # Errors
/// As [`put`].
pub fn delete(writer: &WriterObject, key: &[u8]) -> Result<()> {
    Ok(writer.lock().file()?.delete(key)?)
}

/// Completes the file.
///
/// # Errors
/// Those of [`SstWriter::finish`]. `InvalidArgument`: no file is open.
pub fn finish(writer: &WriterObject) -> Result<()> {
    let mut writer = writer.lock();
    writer.file()?;
    if let Some(open) = writer.open.take() {
        writer.finished = open.finish()?.size;
    }
    Ok(())
}

/// The size of the file so far.
pub fn file_size(writer: &WriterObject) -> Result<i64> {
    let writer = writer.lock();
    let bytes = writer.open.as_ref().map_or(writer.finished, SstWriter::file_size);
    Ok(i64::try_from(bytes).unwrap_or(i64::MAX))
}

/// Exports a family into a new directory.
///
/// # Errors
/// Those of [`ashlardb::Family::export`].
pub fn export(family: &FamilyObject, path: &str) -> Result<i64> {
    Ok(handles::keep(ExportObject(family.family.export(path)?))?)
}

/// Makes a family of an exported one.
///
/// # Errors
/// Those of [`ashlardb::Db::import_family_with`]. `NotSupported`: several exports.
pub fn import(
    db: &DbObject,
    name: &[u8],
    options: &OptionsObject,
    how: &ImportObject,
    exports: &[Arc<ExportObject>],
) -> Result<i64> {
    let [export] = exports else {
        return Err(Error::not_supported("an import of several exports into one family").into());
    };
    let moves = how.with(|texts| texts.get::<bool>("move_files"));
    let mode = if moves { IngestMode::Move } else { IngestMode::Copy };
    let options = options.0.read().clone();
    let how = ImportOptions::new().mode(mode);
    let set = |family| options.on_other_family(family);
    let family = db.database.db().import_family_with(utf8(name)?, &export.0, how, set)?;
    Ok(handles::keep(FamilyObject::new(family, options))?)
}

/// Fills in options that were stored.
fn fill(
    env: Env<'_>,
    (database, families): (Options, Vec<(String, Options)>),
    into: &OptionsObject,
    list: Local<'_>,
) -> Result<()> {
    *into.0.write() = database;
    for (name, options) in families {
        add_to_list(env, list, descriptor(env, &name, options)?)?;
    }
    Ok(())
}

/// The options of the newest OPTIONS file of a directory.
///
/// # Errors
/// Those of [`load_latest`].
pub fn load_latest_options(
    env: Env<'_>,
    config: &ConfigObject,
    path: &str,
    database: &OptionsObject,
    families: Local<'_>,
) -> Result<()> {
    let config = config.config();
    let stored = load_latest(config.env, Path::new(path), config.ignores_unknown)?;
    fill(env, stored, database, families)
}

/// The same for older jars.
///
/// # Errors
/// Those of [`load_latest`].
pub fn load_latest_options_of(
    env: Env<'_>,
    path: &str,
    files: &EnvObject,
    database: &OptionsObject,
    families: Local<'_>,
    ignore: bool,
) -> Result<()> {
    let stored = load_latest(Some(files.env.clone()), Path::new(path), ignore)?;
    fill(env, stored, database, families)
}

/// The options of an OPTIONS file.
///
/// # Errors
/// Those of [`load_file`].
pub fn load_options_from_file(
    env: Env<'_>,
    config: &ConfigObject,
    path: &str,
    database: &OptionsObject,
    families: Local<'_>,
) -> Result<()> {
    let config = config.config();
    let files = config.env.map_or_else(Files::os, Ok)?;
    fill(env, load_file(&files, Path::new(path), config.ignores_unknown)?, database, families)
}

/// The same for older jars.
///
/// # Errors
/// Those of [`load_file`].
pub fn load_options_from_file_of(
    env: Env<'_>,
    path: &str,
    files: &EnvObject,
    database: &OptionsObject,
    families: Local<'_>,
    ignore: bool,
) -> Result<()> {
    fill(env, load_file(&files.env, Path::new(path), ignore)?, database, families)
}

/// The name of the newest OPTIONS file of a directory.
///
/// # Errors
/// Those of [`latest_name`].
pub fn latest_options_file(path: &str, files: &EnvObject) -> Result<String> {
    Ok(latest_name(&files.env, Path::new(path))?)
}

/// No `TableFormatConfig`: the options of tables are in the options themselves, and an open uses them.
pub fn table_format(_: &OptionsObject) -> Result<Local<'static>> {
    Ok(Local::NULL)
}
