//! Decodes and encodes every kind of file of a database directory. No I/O.

pub mod backup_meta;
pub mod blob;
pub mod block;
pub mod compress;
pub mod entity;
pub mod filename;
pub mod filter;
pub mod info_log;
pub mod log_record;
pub mod options_file;
pub mod table;
pub mod unreadable;
pub mod value_suffix;
pub mod version_edit;
pub mod write_batch;

pub use unreadable::Unreadable;
