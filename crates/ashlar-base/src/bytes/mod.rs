//! Reads and writes primitive encodings: fixed-width little-endian integers, varints, length-prefixed slices. Also
//! buffers whose size comes from data.

mod buffer;
mod cursor;
mod prefix;
mod put;

pub use buffer::{OutOfMemory, copied, resize, zeroed};
pub use cursor::{Cursor, Malformed};
pub use prefix::common_prefix;
pub use put::{put_slice, put_varint32, put_varint64, put_varsigned64, varint_len};
