//! The SQL form: the tables and statements of the original program on MariaDB, with InnoDB or MyRocks.
//!
//! 1. [`server`] starts a server in the directory of the run and ends it. [`wire`] is the connection to it.
//! 2. [`tables`] has the schema, and maps rows to the entries that load and check know.
//! 3. [`peer`] is the engine for the driver: settling, counters, clients. [`graph`] has the ten operations as statements.

mod graph;
mod peer;
mod server;
mod tables;
mod wire;

pub use graph::Tables;
pub use peer::MariaDb;
