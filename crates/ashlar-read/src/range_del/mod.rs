//! Range tombstones above their sources: where a table's are in force, and what they hide from a cursor.
//!
//! 1. A tombstone hides an entry of a key in its range when its sequence is above the entry's and the read sees it.
//!    From which source either comes does not matter.
//! 2. A table's tombstones are in force within the bounds that the MANIFEST gives the table and nowhere else: what it
//!    says of other keys may be out of date there, where older entries have lost their sequences.
//!
//! Source: RocksDB `db/range_del_aggregator.cc`, `db/range_tombstone_fragmenter.cc` (behaviour).

mod bounds;
mod mask;

pub use bounds::Bounds;
pub use mask::{Mask, Sources, Stretch};
