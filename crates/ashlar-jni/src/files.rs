//! SST files of the program, exported families, OPTIONS files.

use crate::classes::{Class, Method, add_to_list};
use crate::copies::CheckpointObject;
use crate::db::{DbObject, FamilyObject, descriptor, utf8};
use crate::door::Result;
use crate::env::{Env, Local, boolean, byte, double, int, long};
use crate::handles::{self, Lent, Object};
use crate::iterators::IterObject;
use crate::metadata::table_properties;
use crate::options::ConfigObject;
use crate::parts::{EnvObject, PolicyObject};
use crate::settings::{HasTexts, ImportObject, OptionsObject, ReadObject, Shared};
use ashlar_compat::options::Options;
use ashlar_compat::sst_reader::SstReader;
use ashlar_compat::stored::{latest_name, load_file, load_latest};
use ashlar_compat::turn::{Taken, Turn};
use ashlar_compat::value::{CHECKSUM, DATA_INDEX, INDEX, Names, SHORTENING};
use ashlardb::{Env as Files, Error, FamilyExport, ImportOptions, IngestMode, SstWriter};
use std::path::Path;
use std::sync::Arc;

/// `SstFileWriter`: one call at a time. A comparator of a call must not call it again.
#[derive(Debug)]
pub struct WriterObject(Turn<Writer>);

#[derive(Debug)]
struct Writer {
    options: Options,
    open: Option<SstWriter>,
    /// Whether the open file has an entry.
    has_entries: bool,
    /// The size of the finished file.
    finished: u64,
}

impl Object for WriterObject {
    const NAME: &'static str = "SstFileWriter";
}

impl WriterObject {
    /// For one call.
    ///
    /// # Errors
    /// `InvalidArgument`: a callback of a call on the writer makes this call.
    fn lock(&self) -> Result<Taken<'_, Writer>> {
        Ok(self.0.take()?)
    }
}

impl Writer {
    fn add(&mut self, entry: impl FnOnce(&mut SstWriter) -> ashlardb::Result<()>) -> Result<()> {
        entry(self.file()?)?;
        self.has_entries = true;
        Ok(())
    }

    fn file(&mut self) -> Result<&mut SstWriter> {
        Ok(self.open.as_mut().ok_or_else(not_opened)?)
    }
}

/// `SstFileReader`.
#[derive(Debug)]
pub struct ReaderObject {
    options: Options,
    open: Shared<Option<SstReader>>,
}

impl ReaderObject {
    /// The open file. A comparator that a call on it runs may call the reader again, so no lock is held meanwhile.
    ///
    /// # Errors
    /// `InvalidArgument`: no file is open.
    fn opened(&self) -> Result<SstReader> {
        let open = self.open.read().clone();
        Ok(open.ok_or_else(not_opened)?)
    }
}

#[cold]
fn not_opened() -> Error {
    Error::invalid("File is not opened")
}

impl Object for ReaderObject {
    const NAME: &'static str = "SstFileReader";
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
    let writer = Writer { options: options.0.read().clone(), open: None, has_entries: false, finished: 0 };
    Ok(handles::keep(WriterObject(Turn::new(writer)))?)
}

/// Creates the file.
///
/// # Errors
/// Those of [`SstWriter::create_with`].
pub fn open(writer: &WriterObject, path: &str) -> Result<()> {
    let mut writer = writer.lock()?;
    writer.open = Some(SstWriter::create_with(path, |family| writer.options.on_family(family))?);
    writer.has_entries = false;
    Ok(())
}

/// Appends a value.
///
/// # Errors
/// Those of [`SstWriter::put`]. `InvalidArgument`: no file is open.
pub fn put(writer: &WriterObject, key: &[u8], value: &[u8]) -> Result<()> {
    writer.lock()?.add(|file| file.put(key, value))
}

/// Appends a merge operand.
///
/// # Errors
/// As [`put`].
pub fn merge(writer: &WriterObject, key: &[u8], value: &[u8]) -> Result<()> {
    writer.lock()?.add(|file| file.merge(key, value))
}

/// Appends a deletion.
///
/// # Errors
/// As [`put`].
pub fn delete(writer: &WriterObject, key: &[u8]) -> Result<()> {
    writer.lock()?.add(|file| file.delete(key))
}

/// Completes the file.
///
/// # Errors
/// Those of [`SstWriter::finish`]. `InvalidArgument`: no file is open.
pub fn finish(writer: &WriterObject) -> Result<()> {
    let mut writer = writer.lock()?;
    writer.file()?;
    if let Some(open) = writer.open.take() {
        writer.finished = open.finish()?.size;
    }
    Ok(())
}

/// The size of the file so far. As in RocksDB, a file without entries has none.
pub fn file_size(writer: &WriterObject) -> Result<i64> {
    let writer = writer.lock()?;
    let so_far = |file: &SstWriter| if writer.has_entries { file.file_size() } else { 0 };
    let bytes = writer.open.as_ref().map_or(writer.finished, so_far);
    Ok(i64::try_from(bytes).unwrap_or(i64::MAX))
}

/// A reader with the options of a family.
pub fn new_reader(options: &OptionsObject) -> Result<i64> {
    let reader = ReaderObject { options: options.0.read().clone(), open: Shared::new(None) };
    Ok(handles::keep(reader)?)
}

/// Opens a file, in place of the one before.
///
/// # Errors
/// Those of [`SstReader::open`].
pub fn open_reader(reader: &ReaderObject, path: &str) -> Result<()> {
    let opened = SstReader::open(&reader.options, Path::new(path))?;
    *reader.open.write() = Some(opened);
    Ok(())
}

/// An iterator over the file.
///
/// # Errors
/// Those of [`SstReader::iterator`]. `InvalidArgument`: no file is open.
pub fn reader_iterator(reader: &ReaderObject, options: &ReadObject) -> Result<i64> {
    let options = options.0.read().clone();
    let iterator = reader.opened()?.iterator(&options)?;
    Ok(handles::keep(IterObject::new(iterator.into()))?)
}

/// Reads the whole file and verifies it.
///
/// # Errors
/// Those of [`SstReader::verify`]. `InvalidArgument`: no file is open.
pub fn verify(reader: &ReaderObject) -> Result<()> {
    Ok(reader.opened()?.verify()?)
}

/// A `TableProperties`.
///
/// # Errors
/// `InvalidArgument`: no file is open.
pub fn reader_properties<'a>(env: Env<'a>, reader: &ReaderObject) -> Result<Local<'a>> {
    let reader = reader.opened()?;
    let stored = reader.properties();
    table_properties(env, stored.column_family_name.as_deref().unwrap_or_default(), stored)
}

/// Exports a family into a new directory.
///
/// # Errors
/// Those of [`ashlar_compat::copies::export`].
pub fn export(checkpoint: &CheckpointObject, family: &FamilyObject, path: &str) -> Result<i64> {
    let export = ashlar_compat::copies::export(&checkpoint.0, &family.family, Path::new(path))?;
    Ok(handles::keep(ExportObject(export))?)
}

/// Makes a family of exported ones.
///
/// # Errors
/// Those of [`FamilyExport::joined`] and [`ashlar_compat::database::Database::import_family`].
pub fn import(
    db: &DbObject,
    name: &[u8],
    options: &OptionsObject,
    how: &ImportObject,
    exports: &[Arc<ExportObject>],
) -> Result<i64> {
    let export = FamilyExport::joined(&exports.iter().map(|export| &export.0).collect::<Vec<_>>())?;
    let moves = how.with(|texts| texts.get::<bool>("move_files"));
    let mode = if moves { IngestMode::Move } else { IngestMode::Copy };
    let options = options.0.read().clone();
    let how = ImportOptions::new().mode(mode);
    let family = db.database.import_family(&options, utf8(name)?, &export, how)?;
    Ok(handles::keep(FamilyObject::new(db, family, options))?)
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
        add_to_list(env, list, || descriptor(env, &name, options))?;
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

/// A `BlockBasedTableConfig` of the options of tables, without the cache; null under jars whose class takes other values.
pub fn table_format<'a>(env: Env<'a>, object: &OptionsObject) -> Result<Local<'a>> {
    static CONFIG: Class = Class::new("org/rocksdb/BlockBasedTableConfig");
    static NEW: Method = Method::constructor("(ZZZZBBDBZJIIIJZZZZZIIZDZZJJBBBJD)V");
    if NEW.of(env, &CONFIG).is_err() {
        // The exception of the search.
        let _ = env.take_exception();
        return Ok(Local::NULL);
    }
    let options = object.0.read();
    let table = options.table.clone().unwrap_or_default();
    let texts = &table.texts;
    let flag = |name: &str| boolean(texts.get(name));
    let whole = |name: &str| int(texts.get(name));
    let size = |name: &str| long(texts.get(name));
    let ratio = |name: &str| double(texts.get(name));
    let named = |name: &str, names: Names| byte(i8::try_from(texts.get_named(name, names)).unwrap_or(0));
    let (policy, filter, bits) = filter_policy(texts.text("filter_policy"))?;
    let given = [
        flag("cache_index_and_filter_blocks"),
        flag("cache_index_and_filter_blocks_with_high_priority"),
        flag("pin_l0_filter_and_index_blocks_in_cache"),
        flag("pin_top_level_index_and_filter"),
        named("index_type", INDEX),
        named("data_block_index_type", DATA_INDEX),
        ratio("data_block_hash_table_util_ratio"),
        named("checksum", CHECKSUM),
        flag("no_block_cache"),
        size("block_size"),
        whole("block_size_deviation"),
        whole("block_restart_interval"),
        whole("index_block_restart_interval"),
        size("metadata_block_size"),
        flag("partition_filters"),
        flag("optimize_filters_for_memory"),
        flag("use_delta_encoding"),
        flag("whole_key_filtering"),
        flag("verify_compression"),
        whole("read_amp_bytes_per_bit"),
        whole("format_version"),
        flag("separate_key_value_in_data_block"),
        ratio("uniform_cv_threshold"),
        flag("enable_index_compression"),
        flag("block_align"),
        size("super_block_alignment_size"),
        size("super_block_alignment_space_overhead_ratio"),
        named("index_shortening", SHORTENING),
        byte(0),
        byte(policy),
        long(filter.as_ref().map_or(0, Lent::handle)),
        double(bits),
    ];
    let made = CONFIG.make(env, &NEW, &given)?;
    // Java owns the filter now.
    filter.map(Lent::given);
    Ok(made)
}

/// Java's number of a kind of filter, the filter, and its bits per key.
fn filter_policy(text: &str) -> Result<(i8, Option<Lent>, f64)> {
    let Some(bits) = text.strip_prefix("bloomfilter:") else { return Ok((0, None, 0.0)) };
    let bits = bits.split(':').next().and_then(|bits| bits.parse().ok()).unwrap_or(10.0);
    Ok((1, Some(Lent::new(PolicyObject(text.to_owned()))?), bits))
}
