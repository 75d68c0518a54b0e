//! Errors as Java exceptions.
//!
//! 1. A native that declares `RocksDBException` throws it, with RocksDB's code, sub-code and text, as RocksDB's natives do.
//! 2. Another native throws an exception that is unchecked, so a method need not declare it, with the same text:
//!
//! | error | exception |
//! |---|---|
//! | the use of a closed object | `IllegalStateException` |
//! | `NotSupported` | `UnsupportedOperationException` |
//! | `InvalidArgument` | `IllegalArgumentException` |
//! | any other | `IllegalStateException` |

use crate::classes::{EXCEPTION, ILLEGAL_ARGUMENT, ILLEGAL_STATE, Method, STATUS, UNSUPPORTED};
use crate::door::Result;
use crate::env::{Env, Local, byte, object};
use ashlar_compat::status::{self, Status};
use ashlardb::{Error, ErrorKind};

/// Makes the exception of an error pending. `throws`: the native declares `RocksDBException`; `is_misuse`: it is the use of a closed
/// object, or of one that is not in the state for the call.
pub fn throw(env: Env<'_>, throws: bool, is_misuse: bool, e: &Error) {
    if throws {
        // If the exception cannot be made, the JVM's own is pending: it has no memory, or the class is missing.
        if let Ok(exception) = made(env, e) {
            env.throw(exception);
        }
        return;
    }
    let class = match e.kind() {
        _ if is_misuse => &ILLEGAL_STATE,
        ErrorKind::NotSupported => &UNSUPPORTED,
        ErrorKind::InvalidArgument => &ILLEGAL_ARGUMENT,
        _ => &ILLEGAL_STATE,
    };
    if let Ok(class) = class.get(env) {
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
