//! The names that most programs need: `use ashlardb::prelude::*`.
//!
//! The verbs are in scope without their traits' names, which would collide with those of `std::io`.

pub use crate::{Db, Family, ReadOptions, Snapshot, WriteBatch, WriteOptions};
pub use crate::{Read as _, Write as _};
