//! Errors as Java exceptions.
//!
//! 1. An error of the engine is a `RocksDBException` with RocksDB's code, sub-code and text, as RocksDB's natives throw it.
//! 2. The use of a closed object is a `RocksDBException` where the native declares it, and else an `IllegalStateException`, which
//!    Java's compiler lets programs catch everywhere.

use crate::classes::{EXCEPTION, ILLEGAL_STATE, Method, STATUS};
use crate::door::Result;
use crate::env::{Env, Local, byte, object};
use ashlar_compat::status::{self, Status};
use ashlardb::Error;

/// Makes the exception of an error pending.
pub fn throw(env: Env<'_>, e: &Error) {
    // If the exception cannot be made, the JVM's own is pending: it has no memory, or the class is missing.
    if let Ok(exception) = made(env, e) {
        env.throw(exception);
    }
}

/// Makes the exception of a wrong use pending. `throws`: the native declares `RocksDBException`.
pub fn throw_misuse(env: Env<'_>, throws: bool, e: &Error) {
    if throws {
        throw(env, e);
    } else if let Ok(class) = ILLEGAL_STATE.get(env) {
        env.throw_new(class, &status::text(e));
    }
}

/// The exception of an error.
fn made<'a>(env: Env<'a>, e: &Error) -> Result<Local<'a>> {
    static NEW: Method = Method::constructor("(Lorg/rocksdb/Status;)V");
    let status = status_object(env, &status::status(e))?;
    EXCEPTION.make(env, &NEW, &[object(status)])
}

/// An `org.rocksdb.Status`.
///
/// # Errors
/// `Thrown`: the JVM has no memory.
pub fn status_object<'a>(env: Env<'a>, status: &Status) -> Result<Local<'a>> {
    static NEW: Method = Method::constructor("(BBLjava/lang/String;)V");
    let state = match &status.state {
        Some(state) => env.new_text(state)?,
        None => Local::NULL,
    };
    STATUS.make(env, &NEW, &[byte(status.code), byte(status.sub_code), object(state)])
}
