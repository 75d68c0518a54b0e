//! What was measured, and how it is shown.
//!
//! [`record`] is the file: a line of JSON about the machine, then one per run. [`schema`] says whether a file is one.
//! Nothing here does I/O: texts come in, texts go out.

#![forbid(unsafe_code)]

pub mod history;
pub mod machine;
pub mod record;
pub mod schema;
pub mod theory;
