//! What the JVM calls when it loads the library.

use crate::classes;
use crate::env::{Env, loaded_by};
use jni_sys::{JNI_ERR, JNI_OK, JNI_VERSION_1_6, JavaVM, jint};
use std::ffi::c_void;

/// Notes the JVM and the class loader. The library sets no signal handler: the JVM's stay.
///
/// # Safety
/// The JVM calls it, with itself.
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "the JVM's name")]
pub unsafe extern "system" fn JNI_OnLoad(machine: *mut JavaVM, _: *mut c_void) -> jint {
    // SAFETY: as for this function.
    let table = unsafe { *machine };
    // SAFETY: the JVM's table of functions lives as long as the JVM.
    let table = unsafe { &*table };
    // SAFETY: every JVM has the functions of 1.4.
    let functions = unsafe { &table.v1_4 };
    let mut env: *mut c_void = std::ptr::null_mut();
    // SAFETY: the JVM of this call, and a place for its answer.
    let answer = unsafe { (functions.GetEnv)(machine, &raw mut env, JNI_VERSION_1_6) };
    if answer != JNI_OK {
        return JNI_ERR;
    }
    loaded_by(machine);
    // SAFETY: the JVM answered it for this thread.
    let env = unsafe { Env::new(env.cast()) };
    match classes::loaded(env) {
        Ok(()) => JNI_VERSION_1_6,
        // The exception that is pending says what is missing.
        Err(_) => JNI_ERR,
    }
}
