//! Asks a user's partitioner where outputs end, and whether tables may move.
//!
//! Calls of the user's code are contained: after a panic a rewrite is cut as without a partitioner, and a table does not move.
//! Source: RocksDB `db/compaction/compaction_outputs.cc` (`ShouldStopBefore`), `db/compaction/compaction.cc` (`IsTrivialMove`):
//! behaviour. RocksDB does not ask about moves to the last level.

use ashlar_base::ext::sst_partitioner::{PartitionerContext, SstPartitioner, SstPartitionerFactory};
use ashlar_base::panics::contained;

/// The partitioner of one rewrite.
#[derive(Debug)]
pub struct Partitioning {
    /// `None`: it panicked, or the factory did.
    partitioner: Option<Box<dyn SstPartitioner>>,
    /// The last key that was passed.
    previous: Vec<u8>,
    has_previous: bool,
}

impl Partitioning {
    /// The partitioner that `factory` has for this rewrite; `None`: it has none.
    pub fn new(
        factory: &dyn SstPartitionerFactory,
        context: &PartitionerContext<'_>,
    ) -> Option<Box<Partitioning>> {
        let partitioner = match contained(|| factory.create(context)) {
            Some(None) => return None,
            Some(made) => made,
            None => None,
        };
        Some(Box::new(Partitioning { partitioner, previous: Vec::new(), has_previous: false }))
    }

    /// Whether a new table begins with `user_key`. Keys ascend; a table of about `table_bytes` holds the last one.
    #[cold]
    #[inline(never)]
    pub(super) fn cuts_before(&mut self, user_key: &[u8], table_bytes: u64) -> bool {
        let mut cuts = false;
        if let Some(partitioner) = self.partitioner.as_mut().filter(|_| self.has_previous) {
            match contained(|| partitioner.cuts_between(&self.previous, user_key, table_bytes)) {
                Some(answer) => cuts = answer,
                None => self.give_up(),
            }
        }
        if self.partitioner.is_some() {
            self.previous.clear();
            self.previous.extend_from_slice(user_key);
            self.has_previous = true;
        }
        cuts
    }

    /// Whether it panicked.
    pub(super) fn has_failed(&self) -> bool {
        self.partitioner.is_none()
    }

    fn give_up(&mut self) {
        let partitioner = self.partitioner.take();
        let _ = contained(|| drop(partitioner));
    }
}

impl Drop for Partitioning {
    fn drop(&mut self) {
        self.give_up();
    }
}

/// Whether a table of the keys from `smallest` to `largest` may move unread to the level of `context`.
pub(crate) fn may_move(
    factory: &dyn SstPartitionerFactory,
    context: &PartitionerContext<'_>,
    (smallest, largest): (&[u8], &[u8]),
) -> bool {
    let ask = || factory.create(context).is_none_or(|mut made| made.may_move(smallest, largest));
    contained(ask).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ashlar_base::Level;
    use ashlar_base::ext::sst_partitioner::FixedPrefixPartitioner;

    /// Panics where the key says so.
    #[derive(Clone, Copy, Debug)]
    struct Panicking;

    impl SstPartitioner for Panicking {
        fn cuts_between(&mut self, previous: &[u8], current: &[u8], _: u64) -> bool {
            assert_ne!(current, b"panic", "on purpose");
            previous != current
        }
    }

    #[derive(Debug)]
    struct PanicsAtDrop;

    impl Drop for PanicsAtDrop {
        fn drop(&mut self) {
            panic!("on purpose");
        }
    }

    impl SstPartitioner for PanicsAtDrop {
        fn cuts_between(&mut self, _: &[u8], _: &[u8], _: u64) -> bool {
            true
        }
    }

    impl SstPartitionerFactory for Panicking {
        fn name(&self) -> &str {
            "panicking"
        }

        fn create(&self, context: &PartitionerContext<'_>) -> Option<Box<dyn SstPartitioner>> {
            assert_ne!(context.level, Level(9), "on purpose");
            match context.level.0 {
                8 => None,
                7 => Some(Box::new(PanicsAtDrop)),
                _ => Some(Box::new(Panicking)),
            }
        }
    }

    fn context(level: u8) -> PartitionerContext<'static> {
        PartitionerContext::new(Level(level), b"a", b"z")
    }

    fn cuts(partitioning: &mut Partitioning, keys: &[&str]) -> Vec<bool> {
        keys.iter().map(|key| partitioning.cuts_before(key.as_bytes(), 1)).collect()
    }

    #[test]
    fn a_panicking_partitioner_is_asked_no_more() {
        let mut made = Partitioning::new(&Panicking, &context(1)).unwrap();
        assert_eq!(cuts(&mut made, &["a", "b", "panic", "q", "r"]), [false, true, false, false, false]);
        assert!(made.has_failed());
        let mut made = Partitioning::new(&Panicking, &context(9)).unwrap();
        assert!(made.has_failed());
        assert_eq!(cuts(&mut made, &["a", "b"]), [false, false]);
        assert!(Partitioning::new(&Panicking, &context(8)).is_none());
        let mut made = Partitioning::new(&Panicking, &context(7)).unwrap();
        assert_eq!(cuts(&mut made, &["a", "b"]), [false, true]);
        assert!(!made.has_failed());
        drop(made);
        for (level, last, expected) in
            [(1, "panic", false), (9, "b", false), (8, "b", true), (1, "a", true), (7, "a", false)]
        {
            assert_eq!(may_move(&Panicking, &context(level), (b"a", last.as_bytes())), expected, "{level}");
        }
    }

    #[test]
    fn every_change_of_the_prefix_cuts() {
        let mut made = Partitioning::new(&FixedPrefixPartitioner::new(1), &context(1)).unwrap();
        let keys = ["", "a", "a1", "a2", "b", "c", "c9"];
        assert_eq!(cuts(&mut made, &keys), [false, true, false, false, true, true, false]);
    }
}
