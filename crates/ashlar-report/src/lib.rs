//! What was measured, and how it is shown.
//!
//! [`record`] is the file: a line of JSON about the machine, then one per run. [`schema`] says whether a file is one.
//! [`theory`] says what amplification should be, [`history`] what others once measured, [`summary`] takes medians, and
//! [`page()`] and [`markdown()`] show all of it; [`aggregate()`] is the same for programs. Nothing here does I/O: texts come
//! in, texts go out.

#![forbid(unsafe_code)]

mod aggregate;
pub mod history;
pub mod machine;
mod markdown;
mod page;
pub mod record;
#[cfg(test)]
mod sample;
pub mod schema;
pub mod summary;
pub mod theory;
mod words;

pub use aggregate::aggregate;
pub use markdown::{brief, markdown, rates};
pub use page::page;
