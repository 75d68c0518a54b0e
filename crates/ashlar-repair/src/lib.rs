//! What is damaged in a database, and a database of what is readable.
//!
//! | function | what it does | the database |
//! |---|---|---|
//! | [`check_database`] | lists every damage, with the keys at risk | stays as it is |
//! | [`check_level`] | lists the shapes that decide which RocksDB reads the files | stays as it is |
//! | [`repair()`] | replaces what is damaged by its readable part | is closed, and changes |
//! | [`salvage`] | does the same in another directory | is closed, and stays as it is |
//! | [`destroy()`] | removes it | is closed, and goes |
//! | [`quarantine`] | replaces one damaged file by its readable part | is open, and changes |
//!
//! The crate uses only those internals of the engine that [`ashlar_engine::for_repair`] names. Each module may use only modules
//! above it (`cargo xtask tidy` reads this order).

mod beside;
mod destroy;
mod level;
mod lost_end;
mod check;
mod repair;

pub use check::{check_database, check_database_in};
pub use destroy::destroy;
pub use level::{Found, LevelReport, Shape, check_level, check_level_in};
pub use repair::{RepairReport, Salvage, quarantine, repair, salvage};
