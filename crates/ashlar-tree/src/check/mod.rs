//! The check of the files of a version: reads tables and blob files whole, finds every damage, and names the keys that each
//! damage puts at risk.
//!
//! 1. A damage never ends the check: what lies behind it is read too.
//! 2. Keys that a table's own index gives are exact as far as blocks go. Where a table cannot be opened, its bounds in the
//!    MANIFEST stand in; for a blob file, the keys of the entries that point into it.
//!
//! | file | what it is about |
//! |---|---|
//! | `report` | damages, risks, sums |
//! | `tables` | tables and blob files |
//! | `values` | what the entries of a table say: sequences, blob references, columns |
//! | `files` | one file of a version, or all of them |

mod files;
mod report;
mod tables;
mod values;

pub use files::{Progress, check_file, check_files, to_read};
pub use report::{CheckReport, Damage, KEYS_NAMED, KeySpan, Risk, Verified};
pub use tables::span_of;
