//! The names that most programs need: `use ashlardb::prelude::*`.
//!
//! The methods of [`crate::Read`] and [`crate::Write`] are in scope without the traits' names, which would collide with
//! those of `std::io`.

pub use crate::{Db, Family, ReadOptions, ReadTier, Snapshot, WriteBatch, WriteOptions};
pub use crate::{Read as _, Write as _};
pub use crate::{Transaction, TransactionOptions};
