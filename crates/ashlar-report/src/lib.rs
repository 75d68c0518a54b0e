//! Records of measurements, and their presentation.
//!
//! [`record`] is the file: a line of JSON about the machine, then one per run. [`schema`] checks such a file. [`theory`]
//! computes the expected amplification, [`history`] has published figures, and [`summary`] takes medians. [`page()`] and
//! [`markdown()`] show the results to people, and [`aggregate()`] to programs. The crate does no I/O: it takes texts and
//! returns texts.

#![forbid(unsafe_code)]

mod aggregate;
mod benchmark;
mod graph;
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
