//! The functions of a shim, looked up by name in a shared object. Their declarations are `shims/shim.h`.
//!
//! A function's type is its declaration in `shim.h`; [`ABI`] refuses an object of another one.

use crate::peer::Result;
use crate::peers::symbols;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::Path;

/// A pointer to one of the shim's objects.
pub type Opaque = *mut c_void;
type Bytes = *const u8;

/// `SHIM_ABI`.
const ABI: u32 = 4;

/// `shim_settings`.
#[repr(C)]
pub struct Settings {
    pub cache: u64,
    pub write_buffer: u64,
    pub block: u64,
    pub data: u64,
    pub write_buffers: u32,
    pub filter_bits: u32,
    pub codec: u32,
    pub sync: u32,
    pub no_log: u32,
    pub own: u32,
    pub variant: u32,
    pub clients: u32,
}

/// `shim_change`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Change {
    pub key: Bytes,
    pub key_len: usize,
    pub value: Bytes,
    pub value_len: usize,
    pub deletes: u32,
}

/// `shim_entry`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Entry {
    pub key: Bytes,
    pub key_len: usize,
    pub value: Bytes,
    pub value_len: usize,
}

symbols::functions! {
    abi = b"shim_abi\0": fn() -> u32;
    error = b"shim_error\0": fn() -> *const c_char;
    open = b"shim_open\0": fn(*const c_char, *const Settings) -> Opaque;
    close = b"shim_close\0": fn(Opaque) -> c_int;
    about = b"shim_about\0": fn() -> *const c_char;
    put = b"shim_put\0": fn(Opaque, Bytes, usize, Bytes, usize) -> c_int;
    put_all = b"shim_put_all\0": fn(Opaque, Bytes, usize, usize, usize) -> c_int;
    clients = b"shim_clients\0": fn(Opaque, u32) -> c_int;
    reader = b"shim_reader\0": fn(Opaque) -> Opaque;
    reader_close = b"shim_reader_close\0": fn(Opaque);
    get = b"shim_get\0": fn(Opaque, Bytes, usize, *mut Bytes, *mut usize) -> c_int;
    cursor = b"shim_cursor\0": fn(Opaque) -> Opaque;
    cursor_close = b"shim_cursor_close\0": fn(Opaque);
    first = b"shim_first\0": fn(Opaque, *mut Entry) -> c_int;
    seek = b"shim_seek\0": fn(Opaque, Bytes, usize, *mut Entry) -> c_int;
    next = b"shim_next\0": fn(Opaque, *mut Entry) -> c_int;
    apply = b"shim_apply\0": fn(Opaque, *const Change, usize) -> c_int;
    reader_cursor = b"shim_reader_cursor\0": fn(Opaque) -> Opaque;
    seek_before = b"shim_seek_before\0": fn(Opaque, Bytes, usize, *mut Entry) -> c_int;
    prev = b"shim_prev\0": fn(Opaque, *mut Entry) -> c_int;
    rest = b"shim_rest\0": fn(Opaque) -> Opaque;
    settle = b"shim_settle\0": fn(Opaque) -> c_int;
    levels = b"shim_levels\0": fn(Opaque, *mut u64, c_int) -> c_int;
    written = b"shim_written\0": fn(Opaque, *mut u64, *mut u64) -> c_int;
}

impl Functions {
    /// Loads a shim.
    pub fn load(library: &Path) -> Result<Functions> {
        let functions = Functions::look_up(symbols::load(library)?)
            .map_err(|why| format!("{}: {why}: run `cargo xtask peers`", library.display()))?;
        // SAFETY: takes nothing, answers a constant.
        let found = unsafe { (functions.abi)() };
        if found != ABI {
            return Err(format!("the shim has interface {found}, not {ABI}: run `cargo xtask peers`"));
        }
        Ok(functions)
    }

    /// The text of this thread's last failure.
    #[cold]
    pub fn failure(&self) -> String {
        // SAFETY: takes nothing; the text is NUL-terminated and lives as long as this thread.
        let text = unsafe { (self.error)() };
        self.text(text)
    }

    /// A copy of a text that the shim keeps.
    pub fn text(&self, text: *const c_char) -> String {
        // SAFETY: the shim's texts are NUL-terminated and stand until the next call on the same object or thread.
        unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
    }
}
