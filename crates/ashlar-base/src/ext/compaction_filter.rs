//! Compaction filters: a user's decision on values and merge operands that a compaction would keep.
//!
//! A compaction asks the filter about an entry only after its own rules have kept the entry. So the filter never sees hidden
//! versions, deletions or range deletions, and it cannot bring a deleted entry back.
//!
//! Source: RocksDB `include/rocksdb/compaction_filter.h`, `utilities/compaction_filters/` (behaviour, names).

use crate::ids::{FamilyId, Level};
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// What a compaction does with an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The entry stays.
    Keep,
    /// A value is deleted: reads of the key find nothing, as after a delete. Of several merge operands only this one goes.
    Remove,
    /// The entry stays with these bytes in place of its value or operand.
    Change(Vec<u8>),
    /// The entry goes, and so does every value and operand with a later key before this one, without being asked about. No
    /// deletion takes their place: an older version of such a key in a deeper level is visible again. For keys that are
    /// written once. A key that is not behind the entry's key means [`Decision::Keep`].
    RemoveAndSkipUntil(Vec<u8>),
}

/// Decides which values and merge operands stay in a compaction.
///
/// The filter is asked about the newest version of a key, unless a snapshot that was held when the compaction began sees
/// that version. It must not call the database it belongs to. Each decision should depend on the entry alone, and on the
/// time: which compaction reads an entry, and when, is not defined. After a panic the compaction fails, changes nothing, and
/// is tried again after a pause.
///
/// Several threads may call one filter at the same time. A filter of a [`CompactionFilterFactory`] serves one thread.
///
/// The last reference to a filter of the options may be dropped by any thread of the process, also under a lock of a
/// database: its `Drop` must call no database. A filter of a factory is dropped under no lock.
pub trait CompactionFilter: Any + Send + Sync + fmt::Debug {
    /// The name, which OPTIONS files store. It must not be empty or equal the name of a built-in filter.
    fn name(&self) -> &str;

    /// The decision on a value that was put, or that a compaction has made of merge operands.
    fn filter(&self, key: &[u8], value: &[u8]) -> Decision;

    /// The decision on a value in a blob file, from the key alone; `None`: the compaction reads the value and calls
    /// [`CompactionFilter::filter`]. For filters that need no value, because the read is the dearest part.
    fn filter_blob_by_key(&self, key: &[u8]) -> Option<Decision> {
        let _ = key;
        None
    }

    /// The decision on a merge operand. Removing it does not touch the older operands and the value below.
    fn filter_merge_operand(&self, key: &[u8], operand: &[u8]) -> Decision {
        let _ = (key, operand);
        Decision::Keep
    }

    /// Whether [`CompactionFilter::filter_entity`] is asked. Without it entities stay as they are, and none of their blobs is
    /// read.
    fn filters_entities(&self) -> bool {
        false
    }

    /// The decision on a wide-column entity, by its columns in the order of their names. [`Decision::Change`] makes the entity
    /// a plain value.
    fn filter_entity(&self, key: &[u8], columns: &[(&[u8], &[u8])]) -> Decision {
        let _ = (key, columns);
        Decision::Keep
    }
}

/// A compaction that asks for a filter.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct FilterContext<'a> {
    /// The family's id.
    pub family: FamilyId,
    /// The family's name.
    pub family_name: &'a str,
    /// The level of the output.
    pub level: Level,
    /// The compaction reads all tables of the family.
    pub is_full: bool,
    /// A caller requested the compaction.
    pub is_manual: bool,
    /// No deeper level has data in the range of the compaction.
    pub is_bottommost: bool,
}

impl<'a> FilterContext<'a> {
    /// A compaction of the family's tables into `level`; the flags are off.
    pub fn new(family: FamilyId, family_name: &'a str, level: Level) -> Self {
        FilterContext { family, family_name, level, is_full: false, is_manual: false, is_bottommost: false }
    }
}

/// Makes a filter for each compaction, and for each part of one that several threads share. The `Drop` of a factory must
/// call no database, as that of a [`CompactionFilter`] of the options.
pub trait CompactionFilterFactory: Send + Sync + fmt::Debug {
    /// The name, which OPTIONS files store. It must not be empty.
    fn name(&self) -> &str;

    /// The filter for a compaction; `None`: this one filters nothing.
    fn create(&self, context: &FilterContext<'_>) -> Option<Box<dyn CompactionFilter>>;
}

/// Where a family's filters come from.
#[derive(Clone, Debug)]
pub enum FilterSource {
    /// One filter for all compactions.
    Filter(Arc<dyn CompactionFilter>),
    /// A filter per compaction.
    Factory(Arc<dyn CompactionFilterFactory>),
}

impl FilterSource {
    /// The name of the filter or of the factory.
    pub fn name(&self) -> &str {
        match self {
            FilterSource::Filter(filter) => filter.name(),
            FilterSource::Factory(factory) => factory.name(),
        }
    }

    /// The option of RocksDB that holds the name.
    pub fn option(&self) -> &'static str {
        match self {
            FilterSource::Filter(_) => "compaction_filter",
            FilterSource::Factory(_) => "compaction_filter_factory",
        }
    }

    /// The filter for one part of a compaction.
    pub fn filter_for(&self, context: &FilterContext<'_>) -> Option<Arc<dyn CompactionFilter>> {
        match self {
            FilterSource::Filter(filter) => Some(Arc::clone(filter)),
            FilterSource::Factory(factory) => factory.create(context).map(Arc::from),
        }
    }

    /// Whether this is a user's filter with the name of a built-in one.
    pub fn borrows_built_in_name(&self) -> bool {
        match self {
            FilterSource::Factory(_) => false,
            FilterSource::Filter(filter) => {
                let any: &dyn Any = &**filter;
                !any.is::<RemoveEmptyValue>() && standard_filter(filter.name()).is_some()
            }
        }
    }
}

/// A built-in filter, by the name that OPTIONS files use.
pub fn standard_filter(name: &str) -> Option<Arc<dyn CompactionFilter>> {
    match name {
        "RemoveEmptyValueCompactionFilter" => Some(Arc::new(RemoveEmptyValue)),
        _ => None,
    }
}

/// Removes empty values, as RocksDB's filter of this name does.
#[derive(Clone, Copy, Debug, Default)]
pub struct RemoveEmptyValue;

impl CompactionFilter for RemoveEmptyValue {
    fn name(&self) -> &str {
        "RemoveEmptyValueCompactionFilter"
    }

    fn filter(&self, _: &[u8], value: &[u8]) -> Decision {
        if value.is_empty() { Decision::Remove } else { Decision::Keep }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Named(&'static str);

    impl CompactionFilter for Named {
        fn name(&self) -> &str {
            self.0
        }
        fn filter(&self, _: &[u8], _: &[u8]) -> Decision {
            Decision::Remove
        }
    }

    impl CompactionFilterFactory for Named {
        fn name(&self) -> &str {
            self.0
        }
        fn create(&self, context: &FilterContext<'_>) -> Option<Box<dyn CompactionFilter>> {
            context.is_manual.then(|| Box::new(Named("made")) as _)
        }
    }

    #[test]
    fn what_a_filter_does_not_say_is_kept() {
        let filter = Named("mine");
        assert_eq!(filter.filter_blob_by_key(b"k"), None);
        assert_eq!(filter.filter_merge_operand(b"k", b"1"), Decision::Keep);
        assert!(!filter.filters_entities());
        assert_eq!(filter.filter_entity(b"k", &[]), Decision::Keep);
        assert_eq!(RemoveEmptyValue.filter(b"k", b""), Decision::Remove);
        assert_eq!(RemoveEmptyValue.filter(b"k", b"v"), Decision::Keep);
    }

    #[test]
    fn sources_have_names_options_and_filters() {
        let context = FilterContext::new(FamilyId(3), "f", Level(6));
        let (one, each) =
            (FilterSource::Filter(Arc::new(Named("mine"))), FilterSource::Factory(Arc::new(Named("maker"))));
        assert_eq!((one.name(), one.option()), ("mine", "compaction_filter"));
        assert_eq!((each.name(), each.option()), ("maker", "compaction_filter_factory"));
        assert_eq!(one.filter_for(&context).unwrap().name(), "mine");
        assert!(each.filter_for(&context).is_none());
        assert_eq!(each.filter_for(&FilterContext { is_manual: true, ..context }).unwrap().name(), "made");
        let taken = "RemoveEmptyValueCompactionFilter";
        assert!(FilterSource::Filter(Arc::new(Named(taken))).borrows_built_in_name());
        assert!(!FilterSource::Filter(standard_filter(taken).unwrap()).borrows_built_in_name());
        assert!(!one.borrows_built_in_name() && standard_filter("mine").is_none());
    }
}
