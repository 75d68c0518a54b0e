//! Every option name of RocksDB 6.29 to 11.8, and our answer to it. One table; everything that speaks of options reads it:
//! option strings, OPTIONS files, changes while open, `ashlar options`, and the page `docs/options.md`.
//!
//! | file | what it is about |
//! |---|---|
//! | `row` | a name and its answer |
//! | `value` | values as text |
//! | `database`, `family`, `table`, `nested`, `operation` | the rows, group by group |
//! | `apply` | names and values onto settings |
//! | `pairs` | settings that RocksDB refuses together |
//! | `list` | the table as it is shown: lists, explanations, the page |
//!
//! 1. *Used* and *mapped* names change a setting of ours, and stand in the OPTIONS file we write. Other names stand there
//!    as the older file had them.
//! 2. *Ignored* names are taken with any value of their kind: they ask for what is always so, or for what the engine
//!    decides itself. Nothing a caller can see depends on them but speed.
//! 3. *Unserved* names are taken in the same way, though RocksDB acts on them: the report of an open names them.
//! 4. *Refused* names are taken with RocksDB's default only: any other value asks for answers, files or promises that are
//!    not there.
//!
//! Source: RocksDB `options/db_options.cc`, `options/cf_options.cc`, `table/block_based/block_based_table_factory.cc`,
//! `include/rocksdb/options.h`, and the OPTIONS files that 7.8.3 and 11.8.1 write.

mod apply;
mod database;
mod family;
mod list;
mod nested;
mod operation;
mod pairs;
mod row;
mod table;
#[cfg(test)]
mod tests;
mod value;

pub use apply::{Notice, Options};
pub(crate) use family::{operator_of, stored_built_in, stored_operator};
pub use list::{OptionName, explain, option_names, table};
pub use nested::id_of;
pub use pairs::Together;
pub use row::{AnswerKind, Group, Range};
pub(crate) use value::{Value, Wrong, integer};
