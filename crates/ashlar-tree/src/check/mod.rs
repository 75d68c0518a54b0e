//! Checks the files of a version: reads tables and blob files whole, finds all damage, and names the keys at risk for
//! each damage.
//!
//! 1. Damage never ends the check: it reads on behind the damage.
//! 2. Keys at risk come from the table's own index, exact to one block. If a table cannot be opened, its bounds in the
//!    MANIFEST are used; for a blob file, the keys of the entries that point into it.
//!
//! | file | contents |
//! |---|---|
//! | `report` | damages, keys at risk, totals |
//! | `family` | a family while it is checked |
//! | `tables` | tables and blob files |
//! | `values` | the entries of a table: sequence numbers, blob references, columns |
//! | `files` | one file of a version, or all of them |

mod family;
mod files;
mod report;
mod tables;
mod values;

pub use files::{Progress, check_file, check_files, to_read};
pub use report::{CheckReport, Damage, KEYS_NAMED, KeySpan, Risk, Verified};
pub use tables::span_of;
