//! Compactions of tables that the caller names.

use crate::db::{DbObject, FamilyObject, path};
use crate::door::{HasTexts, borrowed_if, call, changed, strings};
use crate::jobs::JobObject;
use crate::lists::target;
use crate::memory::new_texts;
use ashlar_compat::compactions::{compact_files, file_number};
use ashlar_compat::options::Texts;
use ashlar_compat::status::paused;
use ashlardb::{Error, FileNumber, Result};
use std::ffi::{c_char, c_int};
use std::sync::atomic::{AtomicU8, Ordering};

/// `rocksdb_compaction_options_t`.
#[derive(Debug)]
pub struct CompactFilesObject {
    texts: Texts,
    /// The flag of the caller, which must outlive the options.
    canceled: *const AtomicU8,
}

has_texts!(CompactFilesObject => texts);

/// All defaults.
pub fn compaction_options_create() -> CompactFilesObject {
    CompactFilesObject {
        texts: Texts::listed(&ashlar_compat::compactions::DEFAULTS),
        canceled: std::ptr::null(),
    }
}

// Two headers have C functions for a flag that cancels compactions. The functions below do the work of both.

/// A flag that cancels compactions.
pub(crate) fn new_flag() -> *mut u8 {
    crate::door::made(AtomicU8::new(0)).cast()
}

/// # Safety
/// The flag is null or one of [`new_flag`].
pub(crate) unsafe fn set_flag(canceled: *mut u8, value: u8) {
    // SAFETY: as for this function; the flag is an `AtomicU8`, which is shared by reference only.
    if let Ok(Some(flag)) = unsafe { borrowed_if(canceled.cast::<AtomicU8>(), "canceled") } {
        flag.store(u8::from(value != 0), Ordering::Release);
    }
}

/// # Safety
/// As [`set_flag`], and nothing uses the flag again.
pub(crate) unsafe fn free_flag(canceled: *mut u8) {
    // SAFETY: as for this function.
    drop(unsafe { crate::door::taken(canceled.cast::<AtomicU8>(), "canceled") });
}

/// A flag that cancels compactions.
///
/// # Safety
/// None is needed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_compaction_options_canceled_create() -> *mut u8 {
    let _in = crate::checked::enter("rocksdb_compaction_options_canceled_create");
    new_flag()
}

/// Sets the flag. Other threads may read it meanwhile.
///
/// # Safety
/// The flag is null or one of [`rocksdb_compaction_options_canceled_create`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_compaction_options_canceled_set(canceled: *mut u8, value: u8) {
    let _in = crate::checked::enter("rocksdb_compaction_options_canceled_set");
    // SAFETY: as for this function.
    unsafe { set_flag(canceled, value) };
}

/// Frees the flag.
///
/// # Safety
/// As [`rocksdb_compaction_options_canceled_set`], and nothing uses the flag again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_compaction_options_canceled_destroy(canceled: *mut u8) {
    let _in = crate::checked::enter("rocksdb_compaction_options_canceled_destroy");
    // SAFETY: as for this function.
    unsafe { free_flag(canceled) };
}

/// The flag that cancels a compaction before its beginning; null: none.
///
/// # Safety
/// As [`rocksdb_compaction_options_canceled_set`]; the flag outlives the options.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_compaction_options_set_canceled(
    options: *mut CompactFilesObject,
    canceled: *mut u8,
) {
    let _in = crate::checked::enter("rocksdb_compaction_options_set_canceled");
    call(std::ptr::null_mut(), || {
        // SAFETY: as for this function.
        unsafe { changed(options, "options") }?.canceled = canceled.cast_const().cast();
        Ok(())
    });
}

/// The tables of a compaction, and where its outputs and its report go.
struct Request {
    files: (*const *const c_char, usize),
    level: c_int,
    path: c_int,
    names: (*mut *mut *mut c_char, *mut usize),
    report: *mut JobObject,
}

/// # Safety
/// See the header.
unsafe fn compact(
    db: *mut DbObject,
    family: *mut FamilyObject,
    options: *const CompactFilesObject,
    request: &Request,
) -> Result<()> {
    // SAFETY: as for this function.
    let (db, family) = unsafe { target(db, family) }?;
    // SAFETY: as for this function.
    let options = unsafe { borrowed_if(options, "options") }?;
    // SAFETY: as for this function.
    let names = unsafe { strings(request.files.0, request.files.1, "input_file_names", "a file") }?;
    let numbers = names.map(|name| name.map(|name| file_number(path(name))));
    let numbers = numbers.collect::<Result<Vec<FileNumber>>>()?;
    // SAFETY: null, or the flag that the options were given.
    let flag = options.and_then(|options| unsafe { options.canceled.as_ref() });
    if flag.is_some_and(|flag| flag.load(Ordering::Acquire) != 0) {
        return Err(paused());
    }
    db.0.check_requests()?;
    if request.path > 0 {
        return Err(Error::not_supported("an output path of compact_files"));
    }
    let defaults = compaction_options_create();
    let texts = options.unwrap_or(&defaults).texts();
    let report = compact_files(&*db.family(family)?, db.0.path(), &numbers, request.level, texts)?;
    let tables = report.outputs.iter().map(|file| file.path.as_str());
    let names: Vec<&str> = tables.chain(report.blobs.iter().map(|file| file.path.as_str())).collect();
    // SAFETY: null, or the caller's place.
    if let Some(count) = unsafe { request.names.1.as_mut() } {
        *count = names.len();
    }
    // SAFETY: null, or the caller's place.
    if let Some(list) = unsafe { request.names.0.as_mut() } {
        *list = new_texts(names.into_iter());
    }
    // SAFETY: null, or an object of the caller.
    if let Some(job) = unsafe { crate::door::changed_if(request.report, "compaction_job_info") } {
        *job = JobObject::new(Some(&db.0), report);
    }
    Ok(())
}

/// Compacts tables of the family `default` into a level.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_compact_files(
    db: *mut DbObject,
    options: *const CompactFilesObject,
    input_file_names: *const *const c_char,
    num_input_file_names: usize,
    output_level: c_int,
    output_path_id: c_int,
    output_file_names: *mut *mut *mut c_char,
    num_output_file_names: *mut usize,
    compaction_job_info: *mut JobObject,
    errptr: *mut *mut c_char,
) {
    let _in = crate::checked::enter("rocksdb_compact_files");
    let request = Request {
        files: (input_file_names, num_input_file_names),
        level: output_level,
        path: output_path_id,
        names: (output_file_names, num_output_file_names),
        report: compaction_job_info,
    };
    // SAFETY: as for this function.
    call(errptr, || unsafe { compact(db, std::ptr::null_mut(), options, &request) });
}

/// Compacts tables of a family into a level; null: the family `default`.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_compact_files_cf(
    db: *mut DbObject,
    column_family: *mut FamilyObject,
    options: *const CompactFilesObject,
    input_file_names: *const *const c_char,
    num_input_file_names: usize,
    output_level: c_int,
    output_path_id: c_int,
    output_file_names: *mut *mut *mut c_char,
    num_output_file_names: *mut usize,
    compaction_job_info: *mut JobObject,
    errptr: *mut *mut c_char,
) {
    let _in = crate::checked::enter("rocksdb_compact_files_cf");
    let request = Request {
        files: (input_file_names, num_input_file_names),
        level: output_level,
        path: output_path_id,
        names: (output_file_names, num_output_file_names),
        report: compaction_job_info,
    };
    // SAFETY: as for this function.
    call(errptr, || unsafe { compact(db, column_family, options, &request) });
}

/// Frees the names of outputs.
///
/// # Safety
/// The list is one of [`rocksdb_compact_files_cf`], and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_compact_files_output_file_names_destroy(
    output_file_names: *mut *mut c_char,
    num_output_file_names: usize,
) {
    let _in = crate::checked::enter("rocksdb_compact_files_output_file_names_destroy");
    // SAFETY: as for this function.
    unsafe { crate::memory::free_texts(output_file_names, num_output_file_names) };
}

/// `rocksdb_column_family_metadata_options_t`: the level and the keys whose tables are listed.
#[derive(Clone, Debug)]
pub struct MetadataOptionsObject {
    texts: Texts,
    pub(crate) start: Option<Vec<u8>>,
    pub(crate) end: Option<Vec<u8>>,
}

has_texts!(MetadataOptionsObject => texts);

/// All tables.
pub fn column_family_metadata_options_create() -> MetadataOptionsObject {
    MetadataOptionsObject { texts: Texts::listed(&[("level", "-1")]), start: None, end: None }
}

/// The first key; null: none.
pub fn column_family_metadata_options_set_start_key(options: &mut MetadataOptionsObject, key: Option<&[u8]>) {
    options.start = key.map(<[u8]>::to_vec);
}

/// The last key; null: none.
pub fn column_family_metadata_options_set_end_key(options: &mut MetadataOptionsObject, key: Option<&[u8]>) {
    options.end = key.map(<[u8]>::to_vec);
}

/// The first key, valid until it is set again.
pub fn column_family_metadata_options_get_start_key(options: &MetadataOptionsObject) -> Option<&[u8]> {
    options.start.as_deref()
}

/// The last key, valid until it is set again.
pub fn column_family_metadata_options_get_end_key(options: &MetadataOptionsObject) -> Option<&[u8]> {
    options.end.as_deref()
}
