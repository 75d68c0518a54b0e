//! Compactions of tables that the caller names, and what a compaction did.

use crate::db::{DbObject, FamilyObject, path};
use crate::door::{HasTexts, borrowed_if, call, changed, strings};
use crate::lists::target;
use crate::memory::new_texts;
use ashlar_compat::compactions::{Report, compact_files, file_number};
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

/// A flag that cancels compactions.
///
/// # Safety
/// None is needed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_compaction_options_canceled_create() -> *mut u8 {
    crate::door::made(AtomicU8::new(0)).cast()
}

/// Sets the flag. Other threads may read it meanwhile.
///
/// # Safety
/// The flag is null or one of [`rocksdb_compaction_options_canceled_create`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_compaction_options_canceled_set(canceled: *mut u8, value: u8) {
    // SAFETY: as for this function; the flag is an `AtomicU8`, which is shared by reference only.
    if let Some(flag) = unsafe { canceled.cast::<AtomicU8>().as_ref() } {
        flag.store(u8::from(value != 0), Ordering::Release);
    }
}

/// Frees the flag.
///
/// # Safety
/// As [`rocksdb_compaction_options_canceled_set`], and nothing uses the flag again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_compaction_options_canceled_destroy(canceled: *mut u8) {
    // SAFETY: as for this function.
    drop(unsafe { crate::door::taken(canceled.cast::<AtomicU8>(), "canceled") });
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
    if request.path > 0 {
        return Err(Error::not_supported("an output path of compact_files"));
    }
    let defaults = compaction_options_create();
    let texts = options.unwrap_or(&defaults).texts();
    let report = compact_files(&*db.family(family)?, db.0.path(), &numbers, request.level, texts)?;
    // SAFETY: null, or the caller's place.
    if let Some(count) = unsafe { request.names.1.as_mut() } {
        *count = report.outputs.len();
    }
    // SAFETY: null, or the caller's place.
    if let Some(list) = unsafe { request.names.0.as_mut() } {
        *list = new_texts(report.outputs.iter().map(|file| file.path.as_str()));
    }
    // SAFETY: null, or an object of the caller.
    if let Some(job) = unsafe { request.report.as_mut() } {
        *job = JobObject::new(report);
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
    // SAFETY: as for this function; the list is made as that of the other function is.
    unsafe {
        crate::families::rocksdb_list_column_families_destroy(output_file_names, num_output_file_names)
    };
}

/// `rocksdb_compaction_file_info_t`: a table of a compaction.
#[derive(Clone, Debug)]
pub struct FileInfoObject {
    number: u64,
    level: i32,
}

/// `rocksdb_compactionjobinfo_t`: what a compaction did.
#[derive(Debug, Default)]
pub struct JobObject {
    report: Report,
    inputs: Vec<FileInfoObject>,
    outputs: Vec<FileInfoObject>,
    stats: StatsObject,
}

/// `rocksdb_compaction_job_stats_t`: the sums of a compaction.
#[derive(Clone, Copy, Debug, Default)]
pub struct StatsObject {
    inputs: usize,
    inputs_at_output: usize,
    outputs: usize,
    input_bytes: u64,
    output_bytes: u64,
    input_records: u64,
    output_records: u64,
    micros: u64,
}

impl JobObject {
    fn new(report: Report) -> JobObject {
        let infos = |files: &[ashlar_compat::compactions::NamedFile]| {
            files.iter().map(|file| FileInfoObject { number: file.number.0, level: file.level }).collect()
        };
        let at_output = report.inputs.iter().filter(|file| file.level == report.output_level).count();
        let stats = StatsObject {
            inputs: report.inputs.len(),
            inputs_at_output: at_output,
            outputs: report.outputs.len() - report.blobs,
            input_bytes: report.input_bytes,
            output_bytes: report.output_bytes,
            input_records: report.input_records,
            output_records: report.output_records,
            micros: report.micros,
        };
        let tables = report.outputs.len() - report.blobs;
        let (inputs, outputs) =
            (infos(&report.inputs), infos(report.outputs.get(..tables).unwrap_or_default()));
        JobObject { report, inputs, outputs, stats }
    }
}

/// Nothing yet.
pub fn compactionjobinfo_create() -> JobObject {
    JobObject::default()
}

/// The error of the compaction: none, because the call that failed answers it.
///
/// # Errors
/// None.
pub fn compactionjobinfo_status(_: &JobObject) -> Result<()> {
    Ok(())
}

/// The name of the family.
pub fn compactionjobinfo_cf_name(info: &JobObject) -> Option<&[u8]> {
    Some(info.report.family.as_bytes())
}

/// The path of a table that the compaction read.
pub fn compactionjobinfo_input_file_at(info: &JobObject, pos: usize) -> Option<&[u8]> {
    info.report.inputs.get(pos).map(|file| file.path.as_bytes())
}

/// The path of a table that the compaction wrote.
pub fn compactionjobinfo_output_file_at(info: &JobObject, pos: usize) -> Option<&[u8]> {
    info.outputs.get(pos).and_then(|_| info.report.outputs.get(pos)).map(|file| file.path.as_bytes())
}

/// A table that the compaction read, valid as long as the object; null behind the last one.
pub fn compactionjobinfo_input_file_info_at(info: &JobObject, pos: usize) -> Option<&FileInfoObject> {
    info.inputs.get(pos)
}

/// A table that the compaction wrote, valid as long as the object; null behind the last one.
pub fn compactionjobinfo_output_file_info_at(info: &JobObject, pos: usize) -> Option<&FileInfoObject> {
    info.outputs.get(pos)
}

/// The sums of the compaction, valid as long as the object.
pub fn compactionjobinfo_stats(info: &JobObject) -> Option<&StatsObject> {
    Some(&info.stats)
}

macro_rules! figures {
    ($($(#[$doc:meta])* $name:ident($object:ty) -> $of:ty = |$info:ident| $figure:expr;)*) => { $(
        $(#[$doc])*
        pub fn $name($info: &$object) -> $of {
            $figure
        }
    )* };
}
figures! {
    /// The number of the family.
    compactionjobinfo_cf_id(JobObject) -> u32 = |info| info.report.family_id;
    /// The number of the compaction in this process.
    compactionjobinfo_job_id(JobObject) -> i32 = |info| info.report.job;
    /// The level of the first table that the compaction read.
    compactionjobinfo_base_input_level(JobObject) -> i32 = |info| info.report.inputs.first().map_or(0, |file| file.level);
    /// The level of the outputs.
    compactionjobinfo_output_level(JobObject) -> i32 = |info| info.report.output_level;
    /// RocksDB's number of the reason: the caller named the tables.
    compactionjobinfo_compaction_reason(JobObject) -> u32 = |_info| 9;
    /// The number of tables that the compaction read.
    compactionjobinfo_input_files_count(JobObject) -> usize = |info| info.inputs.len();
    /// The number of tables that the compaction read.
    compactionjobinfo_input_file_infos_count(JobObject) -> usize = |info| info.inputs.len();
    /// The number of tables that the compaction wrote.
    compactionjobinfo_output_files_count(JobObject) -> usize = |info| info.outputs.len();
    /// The number of tables that the compaction wrote.
    compactionjobinfo_output_file_infos_count(JobObject) -> usize = |info| info.outputs.len();
    /// The number of blob files that the compaction wrote.
    compactionjobinfo_blob_file_addition_infos_count(JobObject) -> usize = |info| info.report.blobs;
    /// The number of blob files in which the compaction left garbage.
    compactionjobinfo_blob_file_garbage_infos_count(JobObject) -> usize = |info| info.report.garbage_blobs;
    /// Microseconds.
    compactionjobinfo_elapsed_micros(JobObject) -> u64 = |info| info.stats.micros;
    /// The number of entries read.
    compactionjobinfo_input_records(JobObject) -> u64 = |info| info.stats.input_records;
    /// The number of entries written.
    compactionjobinfo_output_records(JobObject) -> u64 = |info| info.stats.output_records;
    /// The bytes of the tables read.
    compactionjobinfo_total_input_bytes(JobObject) -> u64 = |info| info.stats.input_bytes;
    /// The bytes written.
    compactionjobinfo_total_output_bytes(JobObject) -> u64 = |info| info.stats.output_bytes;
    /// The number of keys that could not be read: none, because such a table fails the compaction.
    compactionjobinfo_num_corrupt_keys(JobObject) -> u64 = |_info| 0;
    /// The number of tables that the compaction read.
    compactionjobinfo_num_input_files(JobObject) -> usize = |info| info.stats.inputs;
    /// The number of tables among them that were in the level of the outputs.
    compactionjobinfo_num_input_files_at_output_level(JobObject) -> usize = |info| info.stats.inputs_at_output;
    /// The number in the name.
    compaction_file_info_file_number(FileInfoObject) -> u64 = |info| info.number;
    /// The level.
    compaction_file_info_level(FileInfoObject) -> i32 = |info| info.level;
    /// The number of tables read.
    compaction_job_stats_num_input_files(StatsObject) -> usize = |stats| stats.inputs;
    /// The number of tables written.
    compaction_job_stats_num_output_files(StatsObject) -> usize = |stats| stats.outputs;
    /// The number of tables read in the level of the outputs.
    compaction_job_stats_num_input_files_at_output_level(StatsObject) -> usize = |stats| stats.inputs_at_output;
    /// The number of entries read.
    compaction_job_stats_num_input_records(StatsObject) -> u64 = |stats| stats.input_records;
    /// The number of entries written.
    compaction_job_stats_num_output_records(StatsObject) -> u64 = |stats| stats.output_records;
    /// The bytes of the tables read.
    compaction_job_stats_total_input_bytes(StatsObject) -> u64 = |stats| stats.input_bytes;
    /// The bytes written.
    compaction_job_stats_total_output_bytes(StatsObject) -> u64 = |stats| stats.output_bytes;
    /// Microseconds.
    compaction_job_stats_elapsed_micros(StatsObject) -> u64 = |stats| stats.micros;
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
