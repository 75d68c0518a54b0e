//! Every option name of RocksDB 6.29 to 11.8, and how the engine treats it. All code that deals with options reads this
//! one table: option strings, OPTIONS files, changes while open, `ashlar options`, and the page `docs/options.md`.
//!
//! | file | contents |
//! |---|---|
//! | `row` | a name and its treatment |
//! | `value`, `object` | values as text |
//! | `database`, `family`, `table`, `nested`, `operation` | the rows, group by group |
//! | `collectors`, `partitioner` | values that are objects with members |
//! | `apply` | applies names and values to settings |
//! | `pairs` | settings that RocksDB refuses together |
//! | `list` | prints the table: lists, explanations, the page |
//!
//! 1. *Used* and *mapped* names change a setting of the engine, and the OPTIONS file that it writes has them. The file
//!    repeats all other names as the older file had them.
//! 2. *Ignored* names accept any value of their kind. They request something that always holds, or that the engine
//!    decides itself. They affect only speed.
//! 3. *Unserved* names accept any value too, although RocksDB acts on them. The report of an open names them.
//! 4. *Refused* names accept only RocksDB's default. Any other value requests answers, files or promises that the
//!    engine does not have.
//!
//! Source: RocksDB `options/db_options.cc`, `options/cf_options.cc`, `table/block_based/block_based_table_factory.cc`,
//! `include/rocksdb/options.h`, and the OPTIONS files that 7.8.3 and 11.8.1 write.

mod apply;
mod collectors;
mod database;
mod family;
mod list;
mod nested;
mod object;
mod operation;
mod pairs;
mod partitioner;
mod row;
mod table;
#[cfg(test)]
mod tests;
mod value;

pub use apply::Notice;
pub use collectors::built_in_collectors;
pub(crate) use collectors::stored_collectors;
pub(crate) use family::{operator_of, stored_built_in, stored_operator};
pub use list::{OptionName, explain, option_names, table};
pub use object::id_of;
pub use pairs::Together;
pub use row::{AnswerKind, Group, Range};
pub(crate) use value::{Value, Wrong, integer};
