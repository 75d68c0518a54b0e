//! Traces, which AshlarDB does not write.
//!
//! The options can be made and set, so that a program links. Calls that begin, end or read a trace answer `Not implemented`.
//!
//! Source: RocksDB `include/rocksdb/trace_reader_writer.h`, `utilities/replayer.h`.

use crate::db::{DbObject, FamilyObject};
use crate::door::call;
use crate::objects::{
    BlockTraceObject, BlockTraceWriterObject, EnvOptionsObject, ReplayOptionsObject, TraceOptionsObject,
};
use crate::options::EnvObject;
use ashlardb::{Error, Result};
use std::ffi::{CStr, c_char};

/// `rocksdb_replayer_t`: no program has one.
#[derive(Debug)]
pub enum ReplayerObject {}

/// `rocksdb_trace_reader_t`: no program has one.
#[derive(Debug)]
pub enum TraceReaderObject {}

fn refused() -> Error {
    Error::not_supported("traces")
        .hint("Use a listener, statistics or the perf context to see what a database does")
}

macro_rules! begins {
    ($($name:ident($($of:ty),*);)*) => { $(
        /// Answers `Not implemented`.
        ///
        /// # Errors
        /// `NotSupported`, always.
        pub fn $name(_: &DbObject, _: Option<&EnvObject>, _: Option<&EnvOptionsObject>, $(_: $of,)* _: &CStr) -> Result<()> {
            Err(refused())
        }
    )* };
}
begins! {
    start_trace(Option<&TraceOptionsObject>);
    start_io_trace(Option<&TraceOptionsObject>);
    start_block_cache_trace(Option<&TraceOptionsObject>);
    start_block_cache_trace_with_options(Option<&BlockTraceObject>, Option<&BlockTraceWriterObject>);
}

macro_rules! ends {
    ($($name:ident;)*) => { $(
        /// Answers `Not implemented`: no trace has begun.
        ///
        /// # Errors
        /// `NotSupported`, always.
        pub fn $name(_: &DbObject) -> Result<()> {
            Err(refused())
        }
    )* };
}
ends! {
    end_trace;
    end_io_trace;
    end_block_cache_trace;
}

/// Answers `Not implemented`.
///
/// # Safety
/// The place for the error is as the header says. The others are not used.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_new_default_replayer(
    _db: *mut DbObject,
    _column_families: *mut *mut FamilyObject,
    _num_column_families: usize,
    _env: *mut EnvObject,
    _env_options: *const EnvOptionsObject,
    _trace_path: *const c_char,
    errptr: *mut *mut c_char,
) -> *mut ReplayerObject {
    let _in = crate::checked::enter("rocksdb_new_default_replayer");
    call(errptr, || Err(refused()))
}

/// No program has a replayer.
///
/// # Errors
/// None.
pub fn replayer_prepare(replayer: &ReplayerObject) -> Result<()> {
    match *replayer {}
}

/// No program has a replayer.
///
/// # Errors
/// None.
pub fn replayer_replay(replayer: &ReplayerObject, _: Option<&ReplayOptionsObject>) -> Result<()> {
    match *replayer {}
}

/// No program has a replayer.
pub fn replayer_get_header_timestamp(replayer: &ReplayerObject) -> u64 {
    match *replayer {}
}

/// Answers `Not implemented`.
///
/// # Errors
/// `NotSupported`, always.
pub fn trace_reader_create(
    _: Option<&EnvObject>,
    _: Option<&EnvOptionsObject>,
    _: &CStr,
) -> Result<TraceReaderObject> {
    Err(refused())
}

/// No program has a reader.
///
/// # Errors
/// None.
pub fn trace_reader_read(reader: &TraceReaderObject) -> Result<Option<Vec<u8>>> {
    match *reader {}
}

/// No program has a reader.
///
/// # Errors
/// None.
pub fn trace_reader_reset(reader: &TraceReaderObject) -> Result<()> {
    match *reader {}
}

/// No program has a reader.
///
/// # Errors
/// None.
pub fn trace_reader_close(reader: &TraceReaderObject) -> Result<()> {
    match *reader {}
}
