//! The settings behind [`crate::Builder::tune`] and [`crate::FamilyBuilder::tune`], and what they are made of.
//!
//! ```
//! # use ashlardb::prelude::*;
//! use ashlardb::options::FilterPolicy;
//!
//! # fn main() -> ashlardb::Result<()> {
//! # let dir = tempfile::tempdir().unwrap();
//! let db = Db::builder(dir.path().join("db"))
//!     .tune(|db, family| {
//!         db.max_background_jobs = 4;
//!         family.table.filter = Some(FilterPolicy::Bloom { bits_per_key: 10.0 });
//!     })
//!     .open()?;
//! assert!(db.default_family().options().table.filter.is_some());
//! # Ok(())
//! # }
//! ```

pub use ashlar_base::Order;
pub use ashlar_format::filter::FilterPolicy;
pub use ashlar_format::table::{ChecksumKind, IndexKind};
pub use ashlar_options::{BlobOptions, CompactionOptions, DbOptions, DbPath, FamilyOptions, TableOptions};
pub use ashlar_options::{FifoOptions, StopStyle, UniversalOptions};
