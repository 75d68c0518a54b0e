//! SST files of the caller, and the updates of the WAL.

use crate::batch::BatchObject;
use crate::callbacks::ComparatorObject;
use crate::db::{DbObject, FamilyObject, path};
use crate::door::{HasTexts, borrowed, call, strings};
use crate::info::RateObject;
use crate::lists::target;
use crate::objects::{EnvOptionsObject, IngestObject, WalReadObject};
use crate::options::OptionsObject;
use crate::timestamps;
use ashlar_compat::files::{UpdatesIterator, ingest_options};
use ashlar_compat::options::Options;
use ashlardb::{Error, Result, SstWriter};
use std::ffi::{CStr, c_char};
use std::path::PathBuf;

/// `rocksdb_sstfilewriter_t`.
#[derive(Debug)]
pub struct WriterObject {
    options: Options,
    writer: Option<SstWriter>,
    /// The size of the finished file.
    finished: u64,
}

impl WriterObject {
    fn open(&mut self) -> Result<&mut SstWriter> {
        self.writer.as_mut().ok_or_else(|| Error::invalid("File is not opened"))
    }
}

// Each function below is the body of the C function of its name.

/// A writer with the options of a family. The file is opened by a call of its own.
pub fn sstfilewriter_create(_: &EnvOptionsObject, options: &OptionsObject) -> WriterObject {
    WriterObject { options: options.0.clone(), writer: None, finished: 0 }
}

/// A writer with the options of a family. As in RocksDB, the order of keys is that of the options.
pub fn sstfilewriter_create_with_comparator(
    env: &EnvOptionsObject,
    options: &OptionsObject,
    _: Option<&ComparatorObject>,
) -> WriterObject {
    sstfilewriter_create(env, options)
}

/// Ignored, as all options of files.
pub fn envoptions_set_rate_limiter(_: &mut EnvOptionsObject, _: Option<&RateObject>) {}

/// Creates the file.
///
/// # Errors
/// Those of [`SstWriter::create_with`].
pub fn sstfilewriter_open(writer: &mut WriterObject, name: &CStr) -> Result<()> {
    writer.writer = Some(SstWriter::create_with(path(name), |family| writer.options.on_family(family))?);
    Ok(())
}

/// Appends a value.
///
/// # Errors
/// Those of [`SstWriter::put`]; `InvalidArgument`: no file is open.
pub fn sstfilewriter_put(writer: &mut WriterObject, key: &[u8], val: &[u8]) -> Result<()> {
    writer.open()?.put(key, val)
}

/// Appends a value.
///
/// # Errors
/// Those of [`sstfilewriter_put`].
pub fn sstfilewriter_add(writer: &mut WriterObject, key: &[u8], val: &[u8]) -> Result<()> {
    sstfilewriter_put(writer, key, val)
}

/// Appends a merge operand.
///
/// # Errors
/// Those of [`sstfilewriter_put`].
pub fn sstfilewriter_merge(writer: &mut WriterObject, key: &[u8], val: &[u8]) -> Result<()> {
    writer.open()?.merge(key, val)
}

/// Appends a deletion.
///
/// # Errors
/// Those of [`sstfilewriter_put`].
pub fn sstfilewriter_delete(writer: &mut WriterObject, key: &[u8]) -> Result<()> {
    writer.open()?.delete(key)
}

/// Adds the deletion of a range.
///
/// # Errors
/// Those of [`sstfilewriter_put`].
pub fn sstfilewriter_delete_range(writer: &mut WriterObject, begin: &[u8], end: &[u8]) -> Result<()> {
    writer.open()?.delete_range(begin, end)
}

/// Keys with timestamps are refused.
///
/// # Errors
/// `NotSupported`.
pub fn sstfilewriter_put_with_ts(_: &mut WriterObject, _: &[u8], _: &[u8], _: &[u8]) -> Result<()> {
    Err(timestamps::refused())
}

/// Keys with timestamps are refused.
///
/// # Errors
/// `NotSupported`.
pub fn sstfilewriter_delete_with_ts(_: &mut WriterObject, _: &[u8], _: &[u8]) -> Result<()> {
    Err(timestamps::refused())
}

/// Completes the file.
///
/// # Errors
/// Those of [`SstWriter::finish`]; `InvalidArgument`: no file is open.
pub fn sstfilewriter_finish(writer: &mut WriterObject) -> Result<()> {
    writer.open()?;
    if let Some(open) = writer.writer.take() {
        writer.finished = open.finish()?.size;
    }
    Ok(())
}

/// The size of the file so far.
pub fn sstfilewriter_file_size(writer: &mut WriterObject, file_size: &mut u64) {
    *file_size = writer.writer.as_ref().map_or(writer.finished, SstWriter::file_size);
}

/// # Safety
/// See the header.
unsafe fn ingest(
    db: *mut DbObject,
    family: *mut FamilyObject,
    files: (*const *const c_char, usize),
    opt: *const IngestObject,
    errptr: *mut *mut c_char,
) {
    call(errptr, || {
        // SAFETY: as for this function.
        let (db, family) = unsafe { target(db, family) }?;
        // SAFETY: as for this function.
        let options = ingest_options(unsafe { borrowed(opt, "opt") }?.texts())?;
        // SAFETY: as for this function.
        let names = unsafe { strings(files.0, files.1, "file_list", "a file") }?;
        let paths = names.map(|name| name.map(|name| path(name).to_owned()));
        let paths = paths.collect::<Result<Vec<PathBuf>>>()?;
        db.family(family)?.ingest(&paths, options).map(drop)
    });
}

/// Takes files into the family `default`.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_ingest_external_file(
    db: *mut DbObject,
    file_list: *const *const c_char,
    list_len: usize,
    opt: *const IngestObject,
    errptr: *mut *mut c_char,
) {
    let _in = crate::checked::enter("rocksdb_ingest_external_file");
    // SAFETY: as for this function.
    unsafe { ingest(db, std::ptr::null_mut(), (file_list, list_len), opt, errptr) };
}

/// Takes files into a family.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_ingest_external_file_cf(
    db: *mut DbObject,
    handle: *mut FamilyObject,
    file_list: *const *const c_char,
    list_len: usize,
    opt: *const IngestObject,
    errptr: *mut *mut c_char,
) {
    let _in = crate::checked::enter("rocksdb_ingest_external_file_cf");
    // SAFETY: as for this function.
    unsafe { ingest(db, handle, (file_list, list_len), opt, errptr) };
}

/// `rocksdb_wal_iterator_t`: the batches of the WAL since a sequence number.
#[derive(Debug)]
pub struct UpdatesObject(UpdatesIterator);

/// The batches since a sequence number, or since the first one that is left in the WAL files.
///
/// # Errors
/// Those of [`UpdatesIterator::since`].
pub fn get_updates_since(db: &DbObject, seq_number: u64, _: Option<&WalReadObject>) -> Result<UpdatesObject> {
    UpdatesIterator::since(&db.0, seq_number).map(UpdatesObject)
}

/// Whether there is a batch.
pub fn wal_iter_valid(iter: &UpdatesObject) -> bool {
    iter.0.is_valid()
}

/// To the next batch. Off the end, to the first batch that was written since.
pub fn wal_iter_next(iter: &mut UpdatesObject) {
    iter.0.next();
}

/// The error that ended the batches.
///
/// # Errors
/// That error.
pub fn wal_iter_status(iter: &UpdatesObject) -> Result<()> {
    iter.0.status()
}

/// The batch, and the sequence number of its first change.
pub fn wal_iter_get_batch(iter: &UpdatesObject, seq: &mut u64) -> Option<BatchObject> {
    let update = iter.0.update()?;
    *seq = update.sequence().get();
    Some(BatchObject::of(update.data()))
}
