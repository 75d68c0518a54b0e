//! RocksDB's object model in safe Rust: what its C and Java functions do, without a word of C or Java.
//!
//! | module | idea |
//! |---|---|
//! | [`status`] | errors in RocksDB's words |
//! | [`value`] | the value of an option, as another language passes it |
//! | [`values`] | defaults of options that are only values with names |
//! | [`copies`] | directories of backups |
//! | [`files`] | ingested files, and the updates of the WAL |
//! | [`numbers`] | numbers of tickers, histograms and sums of the perf context |
//! | [`options`] | options of a database, a family and tables, by RocksDB's names |
//! | [`clip`] | options in their range |
//! | [`presets`] | several options at once |
//! | [`calls`] | options of reads, writes and other calls |
//! | [`database`] | an open database and its families |
//! | [`many`] | reads of many keys, with the error of each |
//! | [`iterator`] | an iterator that is valid or not, and has a status |
//! | [`stored`] | options from texts |
//! | [`transactions`] | transaction databases |
//! | [`transaction`] | a transaction that goes on after a rollback |
//! | [`indexed`] | write batches that are read back |
//! | [`over`] | an iterator with such a batch over it |
//! | [`compactions`] | compactions of named tables |
//! | [`listener`] | listeners for events |
//! | [`logger`] | loggers of the caller |
//! | [`cache`] | block caches as objects |
//! | [`space`] | the space of the tables of several databases |
//! | [`sst_reader`] | an SST file that is read outside a database |
//! | [`sizes`] | approximate sizes of key ranges |
//! | [`batch`] | write batches, and the handlers that walk over them |
//! | [`turn`] | objects that take one call at a time |
//! | [`perf`] | the perf context of the calling thread |
//!
//! 1. An option has RocksDB's name, default and meaning. A getter answers what was set, or RocksDB's default. An option that was
//!    not set has AshlarDB's default in the engine. `docs/options.md` has both.
//! 2. An open uses the given options only, not the stored ones, as RocksDB does.
//! 3. Objects are values, or counted: a snapshot or iterator keeps what it needs, in whatever order a program destroys them.
//! 4. An error is the sentence of [`ashlardb::Error`], whose words before the first colon are those of RocksDB.
//!
//! Source: RocksDB `db/c.cc` and `include/rocksdb/c.h` (names, defaults, meaning).

pub mod batch;
pub mod cache;
pub mod calls;
pub mod clip;
pub mod compactions;
pub mod copies;
pub mod database;
pub mod files;
pub mod indexed;
pub mod iterator;
pub mod listener;
pub mod logger;
pub mod many;
pub mod numbers;
pub mod options;
pub mod over;
pub mod perf;
pub mod presets;
pub mod sizes;
pub mod space;
pub mod sst_reader;
pub mod status;
pub mod stored;
pub mod transaction;
pub mod transactions;
pub mod turn;
mod users;
pub mod value;
pub mod values;
