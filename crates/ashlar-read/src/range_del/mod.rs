//! Range tombstones of several sources: where a table's tombstones apply, and what they hide from a cursor.
//!
//! 1. A tombstone hides an entry if the entry's key is in its range, its sequence number is above the entry's, and the
//!    read sees the tombstone. The sources of the two do not matter.
//! 2. A table's tombstones apply only within the bounds that the MANIFEST gives the table. For keys outside, the
//!    tombstone may be out of date: compactions may have set the sequence numbers of older entries there to zero.
//!
//! Source: RocksDB `db/range_del_aggregator.cc`, `db/range_tombstone_fragmenter.cc` (behaviour).

mod bounds;
mod mask;

pub use bounds::{Bounds, CutTombstones};
pub use mask::{Mask, Stretch};
