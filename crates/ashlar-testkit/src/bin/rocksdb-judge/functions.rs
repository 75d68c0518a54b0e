//! C functions of a shared object, looked up by name.

/// Declares a struct of looked-up functions, and the library that keeps them in memory:
/// `NAME { extra: TYPE = LOOK_UP } FIELD = b"SYMBOL\0": fn(…) -> …; …`. A symbol that is missing is an error.
macro_rules! functions {
    (
        $(#[$doc:meta])* $name:ident { $(extra: $extra:ty = $extra_of:path)? }
        $($field:ident = $symbol:literal: fn($($arg:ty),*) $(-> $ret:ty)?;)*
    ) => {
        $(#[$doc])*
        pub struct $name {
            $($field: unsafe extern "C" fn($($arg),*) $(-> $ret)?,)*
            $(extra: $extra,)?
            _library: Library,
        }

        impl $name {
            fn look_up(library: Library) -> Result<Self, String> {
                $(
                    // SAFETY: the type is the function's declaration in the library's c.h; the copied pointer lives in a
                    // struct that also owns the library. Checked by: tests/it/judge.rs against both versions of RocksDB,
                    // tests/it/leveldb.rs.
                    let $field = *unsafe {
                        library.get::<unsafe extern "C" fn($($arg),*) $(-> $ret)?>($symbol)
                    }
                    .map_err(|e| e.to_string())?;
                )*
                Ok($name { $($field,)* $(extra: $extra_of(&library),)? _library: library })
            }
        }
    };
}
