//! Compactions in other processes, which AshlarDB does not have.
//!
//! The objects can be made, set and freed, so that a program links. An open with a compaction service, and `open_and_compact`,
//! answer `Not implemented`.
//!
//! Source: RocksDB `include/rocksdb/options.h` (`CompactionService`, `OpenAndCompactOptions`).

use crate::callbacks::{
    ComparatorObject, Destructor, FactoryObject, FilterObject, LoggerObject, MergeObject, State,
    TransformObject,
};
use crate::compactions::{free_flag, new_flag, set_flag};
use crate::door::call;
use crate::listeners::ListenerObject;
use crate::objects::CuckooObject;
use crate::options::{EnvObject, OptionsObject, PartitionerObject, TableObject};
use crate::settings::{ChecksumFactoryObject, CollectorFactoryObject};
use ashlar_compat::options::Texts;
use ashlardb::{Error, Result};
use std::ffi::{CStr, c_char, c_int, c_void};

/// `rocksdb_compactionservice_t`: functions that nothing calls.
#[derive(Debug)]
pub struct ServiceObject(#[expect(dead_code, reason = "its destructor runs with it")] State);

/// `rocksdb_compactionservice_jobinfo_t`: a compaction for another process. No program has one.
#[derive(Debug)]
pub enum RemoteJobObject {}

/// `rocksdb_compactionservice_scheduleresponse_t`: what a service answers.
#[derive(Debug)]
pub struct ResponseObject {
    job: Vec<u8>,
    status: i32,
}

/// `rocksdb_compaction_service_options_override_t`: settings of such a compaction, which are not kept.
#[derive(Debug)]
pub struct OverrideObject;

/// `rocksdb_open_and_compact_options_t`.
#[derive(Debug)]
pub struct OpenAndCompactObject(Texts);

has_texts!(OpenAndCompactObject => 0);

/// A service, whose functions are not called.
///
/// # Safety
/// The destructor is that of the state.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_compactionservice_create(
    state: *mut c_void,
    destructor: Destructor,
    _schedule: Option<unsafe extern "C" fn()>,
    _name: *const c_char,
    _wait: Option<unsafe extern "C" fn()>,
    _cancel_awaiting_jobs: Option<unsafe extern "C" fn()>,
    _on_installation: Option<unsafe extern "C" fn()>,
) -> *mut ServiceObject {
    let _in = crate::checked::enter("rocksdb_compactionservice_create");
    // SAFETY: as for this function; there is no name.
    crate::door::made(ServiceObject(unsafe { State::new(state, destructor, None) }))
}

/// An open with these options answers `Not implemented`. The options take the service.
pub fn options_set_compaction_service(options: &mut OptionsObject, service: Option<Box<ServiceObject>>) {
    if service.is_some() {
        options.0.texts.set_text("compaction_service", "a service".to_owned());
    }
}

macro_rules! of_jobs {
    ($($name:ident -> $of:ty;)*) => { $(
        /// Nothing calls a service, so no program has such a job.
        pub fn $name(info: &RemoteJobObject) -> $of {
            match *info {}
        }
    )* };
}
of_jobs! {
    compactionservice_jobinfo_t_get_db_name -> Option<&[u8]>;
    compactionservice_jobinfo_t_get_db_id -> Option<&[u8]>;
    compactionservice_jobinfo_t_get_db_session_id -> Option<&[u8]>;
    compactionservice_jobinfo_t_get_cf_name -> Option<&[u8]>;
    compactionservice_jobinfo_t_get_cf_id -> u32;
    compactionservice_jobinfo_t_get_job_id -> u64;
    compactionservice_jobinfo_t_get_priority -> i32;
    compactionservice_jobinfo_t_get_compaction_reason -> i32;
    compactionservice_jobinfo_t_get_base_input_level -> i32;
    compactionservice_jobinfo_t_get_output_level -> i32;
    compactionservice_jobinfo_t_is_full_compaction -> bool;
    compactionservice_jobinfo_t_is_manual_compaction -> bool;
    compactionservice_jobinfo_t_is_bottommost_level -> bool;
}

/// # Errors
/// `InvalidArgument`: RocksDB has no such status.
fn response(job: Vec<u8>, status: i32) -> Result<ResponseObject> {
    match status {
        0..=3 => Ok(ResponseObject { job, status }),
        _ => Err(Error::invalid(format!("the status {status} of a compaction service: 0 to 3 are known"))),
    }
}

/// A response with the id of a job; null: without one.
///
/// # Safety
/// The id is null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_compactionservice_scheduleresponse_create(
    scheduled_job_id: *const c_char,
    status: c_int,
    errptr: *mut *mut c_char,
) -> *mut ResponseObject {
    let _in = crate::checked::enter("rocksdb_compactionservice_scheduleresponse_create");
    call(errptr, || {
        if scheduled_job_id.is_null() {
            return Ok(crate::door::made(response(Vec::new(), status)?));
        }
        // SAFETY: as for this function.
        let job = unsafe { crate::door::string(scheduled_job_id, "scheduled_job_id") }?.to_bytes().to_vec();
        Ok(crate::door::made(response(job, status)?))
    })
}

/// A response without the id of a job.
///
/// # Errors
/// `InvalidArgument`: RocksDB has no such status.
pub fn compactionservice_scheduleresponse_create_with_status(status: i32) -> Result<ResponseObject> {
    response(Vec::new(), status)
}

/// The status of the response.
pub fn compactionservice_scheduleresponse_getstatus(response: &ResponseObject) -> i32 {
    response.status
}

/// The id of the job.
pub fn compactionservice_scheduleresponse_get_scheduled_job_id(response: &ResponseObject) -> Option<&[u8]> {
    Some(&response.job)
}

/// Settings that are not kept.
pub fn compaction_service_options_override_create() -> OverrideObject {
    OverrideObject
}

/// Settings that are not kept; null: null.
pub fn compaction_service_options_override_create_from_options(
    option: Option<&OptionsObject>,
) -> Option<OverrideObject> {
    option.map(|_| OverrideObject)
}

macro_rules! settings {
    ($($name:ident($of:ty);)*) => { $(
        /// A setting that is not kept. What RocksDB takes is taken.
        pub fn $name(_: Option<&OverrideObject>, _: $of) {}
    )* };
}
settings! {
    compaction_service_options_override_set_env(Option<&EnvObject>);
    compaction_service_options_override_set_comparator(Option<&ComparatorObject>);
    compaction_service_options_override_set_merge_operator(Option<Box<MergeObject>>);
    compaction_service_options_override_set_compaction_filter(Option<&FilterObject>);
    compaction_service_options_override_set_compaction_filter_factory(Option<Box<FactoryObject>>);
    compaction_service_options_override_set_prefix_extractor(Option<Box<TransformObject>>);
    compaction_service_options_override_set_block_based_table_factory(Option<&TableObject>);
    compaction_service_options_override_set_cuckoo_table_factory(Option<&CuckooObject>);
    compaction_service_options_override_add_event_listener(Option<Box<ListenerObject>>);
    compaction_service_options_override_set_statistics(Option<&OptionsObject>);
    compaction_service_options_override_set_info_log(Option<&LoggerObject>);
    compaction_service_options_override_set_file_checksum_gen_factory(Option<&ChecksumFactoryObject>);
    compaction_service_options_override_set_sst_partitioner_factory(Option<&PartitionerObject>);
    compaction_service_options_override_add_table_properties_collector_factory(Option<&CollectorFactoryObject>);
}

/// A setting that is not kept.
pub fn compaction_service_options_override_set_option(_: Option<&OverrideObject>, _: &CStr, _: &CStr) {}

/// All defaults.
pub fn open_and_compact_options_create() -> OpenAndCompactObject {
    OpenAndCompactObject(Texts::listed(&[]))
}

/// A flag for [`rocksdb_open_and_compact_options_set_canceled`].
///
/// # Safety
/// None is needed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_open_and_compact_canceled_create() -> *mut u8 {
    let _in = crate::checked::enter("rocksdb_open_and_compact_canceled_create");
    new_flag()
}

/// Sets the flag.
///
/// # Safety
/// The flag is null or one of [`rocksdb_open_and_compact_canceled_create`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_open_and_compact_canceled_set(canceled: *mut u8, value: u8) {
    let _in = crate::checked::enter("rocksdb_open_and_compact_canceled_set");
    // SAFETY: as for this function.
    unsafe { set_flag(canceled, value) }
}

/// Frees the flag.
///
/// # Safety
/// As [`rocksdb_open_and_compact_canceled_set`], and nothing uses the flag again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_open_and_compact_canceled_destroy(canceled: *mut u8) {
    let _in = crate::checked::enter("rocksdb_open_and_compact_canceled_destroy");
    // SAFETY: as for this function.
    unsafe { free_flag(canceled) }
}

/// The flag that would cancel the compaction. It is not kept.
///
/// # Safety
/// None is needed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_open_and_compact_options_set_canceled(
    _options: *mut OpenAndCompactObject,
    _canceled: *mut u8,
) {
    let _in = crate::checked::enter("rocksdb_open_and_compact_options_set_canceled");
}

fn refused() -> Error {
    Error::not_supported("open_and_compact: AshlarDB runs no compactions for other processes")
}

/// Answers `Not implemented`.
///
/// # Errors
/// `NotSupported`, always.
pub fn open_and_compact(_: &CStr, _: &CStr, _: &[u8], _: Option<&OverrideObject>) -> Result<Option<Vec<u8>>> {
    Err(refused())
}

/// Answers `Not implemented`.
///
/// # Errors
/// `NotSupported`, always.
pub fn open_and_compact_with_options(
    _: Option<&OpenAndCompactObject>,
    _: &CStr,
    _: &CStr,
    _: &[u8],
    _: Option<&OverrideObject>,
) -> Result<Option<Vec<u8>>> {
    Err(refused())
}
