//! Write batches: the atomic unit of writing, encoded once into the bytes that the WAL stores.
//!
//! 1. A batch that breaks a limit is refused before anything of it is written: sizes are checked when an operation is
//!    added, families when the batch is committed.
//! 2. The payload is encoded with sequence 0; the committer patches the sequence in. See `ashlar_format::write_batch`.

mod apply;
mod write_batch;

pub(crate) use apply::{each_op, memtable_op, only_deletes, sole_op};
pub(crate) use write_batch::own_ttl;
pub use write_batch::{MAX_BATCH_BYTES, MAX_VALUE_BYTES, Mark, WriteBatch, encode_entity};
