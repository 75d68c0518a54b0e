//! SST partitioners: a user's decision on where a compaction begins a new table.
//!
//! 1. A compaction asks between two keys, in ascending order, whether the second begins a new table. The answer *yes* always
//!    holds; after *no*, the engine's own limits of size and overlap may still cut.
//! 2. No cut parts the versions of a key. A flush and a compaction within level 0 ask nothing, because each makes one table.
//! 3. A table that a partition ends within does not move to another level unread. It is rewritten, and so cut.
//! 4. After a panic a partitioner is asked no more: the rest of its compaction is cut as without it, and events and `LOG` say
//!    so. A panic about a move means that the table is rewritten.
//!
//! Source: RocksDB `include/rocksdb/sst_partitioner.h` (behaviour, names).

use crate::ids::Level;
use std::any::Any;
use std::fmt;

/// Decides for one thread of one compaction. It must call no database: some calls are made under a lock of the database.
pub trait SstPartitioner: Send + fmt::Debug {
    /// Whether a new table begins before the key `current`, which follows `previous` in the compaction. `table_bytes`: about
    /// the size of the table with `previous`.
    fn cuts_between(&mut self, previous: &[u8], current: &[u8], table_bytes: u64) -> bool;

    /// Whether a table of the keys from `smallest` to `largest` may move to another level unread. If a range deletion ends the
    /// table, `largest` is its end. The default: unless a new table would begin between the two keys.
    fn may_move(&mut self, smallest: &[u8], largest: &[u8]) -> bool {
        !self.cuts_between(smallest, largest, 0)
    }
}

/// A compaction that asks for a partitioner.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct PartitionerContext<'a> {
    /// The level of the output.
    pub level: Level,
    /// The compaction reads all tables of the family.
    pub is_full: bool,
    /// A caller requested the compaction.
    pub is_manual: bool,
    /// The smallest key of the inputs.
    pub smallest: &'a [u8],
    /// The largest key of the inputs.
    pub largest: &'a [u8],
}

impl<'a> PartitionerContext<'a> {
    /// A compaction of the keys from `smallest` to `largest` into `level`; the flags are off.
    pub fn new(level: Level, smallest: &'a [u8], largest: &'a [u8]) -> Self {
        PartitionerContext { level, is_full: false, is_manual: false, smallest, largest }
    }
}

/// Makes a partitioner for each compaction, for each part of one that several threads share, and for each question about a
/// move. It must call no database, and neither must its `Drop`, which any thread of the process may run.
pub trait SstPartitionerFactory: Any + Send + Sync + fmt::Debug {
    /// The name, which OPTIONS files store. It must not be empty or equal the name of the built-in factory.
    fn name(&self) -> &str;

    /// The partitioner for a compaction; `None`: this one is cut as without.
    fn create(&self, context: &PartitionerContext<'_>) -> Option<Box<dyn SstPartitioner>>;
}

/// Begins a new table where the first bytes of the keys change, as RocksDB's factory of this name does. A shorter key is its own
/// prefix. It keeps, for example, the tables of different customers apart, so that the tables of one can be deleted whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FixedPrefixPartitioner {
    /// The number of bytes. 0: all keys have the same prefix.
    pub length: usize,
}

impl FixedPrefixPartitioner {
    /// The name, which OPTIONS files store.
    pub const NAME: &'static str = "SstPartitionerFixedPrefixFactory";

    /// A new table for each prefix of `length` bytes.
    pub fn new(length: usize) -> Self {
        FixedPrefixPartitioner { length }
    }
}

impl SstPartitioner for FixedPrefixPartitioner {
    fn cuts_between(&mut self, previous: &[u8], current: &[u8], _: u64) -> bool {
        let prefix = |key: &[u8]| key.len().min(self.length);
        previous.get(..prefix(previous)) != current.get(..prefix(current))
    }
}

impl SstPartitionerFactory for FixedPrefixPartitioner {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn create(&self, _: &PartitionerContext<'_>) -> Option<Box<dyn SstPartitioner>> {
        Some(Box::new(*self))
    }
}

/// The built-in factory behind this one; `None`: it is a user's.
pub fn built_in(factory: &dyn SstPartitionerFactory) -> Option<&FixedPrefixPartitioner> {
    let any: &dyn Any = factory;
    any.downcast_ref()
}

/// Whether this is a user's factory with the name of the built-in one.
pub fn borrows_built_in_name(factory: &dyn SstPartitionerFactory) -> bool {
    factory.name() == FixedPrefixPartitioner::NAME && built_in(factory).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_ends_where_its_bytes_change() {
        let mut two = FixedPrefixPartitioner::new(2);
        let pairs = [("ab1", "ab2"), ("ab", "ab2"), ("ab9", "ac"), ("a", "ab"), ("", "a"), ("b", "b")];
        let asked = pairs.map(|(a, b)| two.cuts_between(a.as_bytes(), b.as_bytes(), 1 << 40));
        assert_eq!(asked, [false, false, true, true, true, false]);
        assert!(two.may_move(b"ab", b"abz") && !two.may_move(b"ab", b"ac"));
        assert!(FixedPrefixPartitioner::new(0).may_move(b"", b"z"));
    }

    #[test]
    fn only_a_users_factory_borrows_the_name() {
        #[derive(Debug)]
        struct Named(&'static str);
        impl SstPartitionerFactory for Named {
            fn name(&self) -> &str {
                self.0
            }
            fn create(&self, _: &PartitionerContext<'_>) -> Option<Box<dyn SstPartitioner>> {
                None
            }
        }
        assert!(borrows_built_in_name(&Named(FixedPrefixPartitioner::NAME)));
        assert!(
            !borrows_built_in_name(&Named("mine")) && !borrows_built_in_name(&FixedPrefixPartitioner::new(3))
        );
        assert_eq!(built_in(&FixedPrefixPartitioner::new(3)), Some(&FixedPrefixPartitioner::new(3)));
    }
}
