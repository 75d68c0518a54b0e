//! C functions looked up by name in a shared object that is loaded at run time.
//!
//! 1. A function's type is its declaration in the header that the caller of [`functions`] names.
//! 2. A library is never unloaded: an engine may leave a thread behind when its last database is closed, as LevelDB does, and
//!    that thread runs in the library. So the pointers are good until the process ends.

use crate::peer::Result;
use libloading::os::unix::{RTLD_LOCAL, RTLD_NOW};
use std::path::Path;

pub use libloading::os::unix::Library;

/// Loads a shared object: bound at once, its symbols kept to itself.
pub fn load(library: &Path) -> Result<Library> {
    // SAFETY: loading runs the library's initialisers; it is an engine that a chore fetched or built from pinned sources, and
    // this process does nothing else. Checked by: the test `peers::conformance`.
    unsafe { Library::open(Some(library), RTLD_NOW | RTLD_LOCAL) }.map_err(|e| e.to_string())
}

/// A struct `Functions` of pointers, each by its field, its symbol and its type.
macro_rules! functions {
    ($($field:ident = $name:literal: fn($($arg:ty),*) $(-> $ret:ty)?;)*) => {
        /// The looked-up functions, and the library that keeps them in memory.
        pub struct Functions {
            $(pub $field: unsafe extern "C" fn($($arg),*) $(-> $ret)?,)*
        }

        impl Functions {
            fn look_up(library: $crate::peers::symbols::Library) -> $crate::peer::Result<Self> {
                $(
                    // SAFETY: the type is the function's declaration (invariant 1 of `peers::symbols`); the library stays
                    // loaded (invariant 2). Checked by: the test `peers::conformance`.
                    let $field = *unsafe {
                        library.get::<unsafe extern "C" fn($($arg),*) $(-> $ret)?>($name)
                    }
                    .map_err(|e| e.to_string())?;
                )*
                std::mem::forget(library);
                Ok(Functions { $($field,)* })
            }
        }
    };
}
pub(super) use functions;
