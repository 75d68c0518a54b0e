//! The filter of a family whose values expire: removes what is over, and asks the user's filter about the rest.
//!
//! 1. The user's filter sees values without their times. A changed value keeps its time.
//! 2. An operand is never removed for its age: the key lives as long as its newest part. See `ashlar_read::expiry`.
//! 3. A value without a time stays; its readers get the error.
//!
//! Source: RocksDB `utilities/ttl/db_ttl_impl.h` (behaviour, names).

use ashlar_base::ext::compaction_filter::{
    CompactionFilter, CompactionFilterFactory, Decision, FilterContext, FilterSource,
};
use ashlar_base::planted::{Bug, planted};
use ashlar_env::Clock;
use ashlar_format::value_suffix::{is_expired, put_write_time, split_write_time};
use ashlar_options::FamilyOptions;
use ashlar_read::expiry::unix_seconds;
use std::fmt;
use std::sync::Arc;

/// Where the filters of a family's compactions come from: the user's, and before it the expiry.
pub fn filter_of(options: &FamilyOptions, clock: &Arc<dyn Clock>) -> Option<FilterSource> {
    let user = options.compaction_filter.clone();
    let Some(ttl) = options.value_ttl_secs else { return user };
    Some(FilterSource::Factory(Arc::new(Expiries { ttl, clock: Arc::clone(clock), user })))
}

struct Expiries {
    ttl: i32,
    clock: Arc<dyn Clock>,
    user: Option<FilterSource>,
}

impl fmt::Debug for Expiries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Expiries").field("ttl", &self.ttl).field("user", &self.user).finish_non_exhaustive()
    }
}

impl CompactionFilterFactory for Expiries {
    /// The user's factory, which is the one that may panic; else RocksDB's name.
    fn name(&self) -> &str {
        self.user.as_ref().map_or("TtlCompactionFilterFactory", FilterSource::name)
    }

    fn create(&self, context: &FilterContext<'_>) -> Option<Box<dyn CompactionFilter>> {
        let user = self.user.as_ref().and_then(|source| source.filter_for(context));
        let early = if planted(Bug::ExpiredEarly) { 30 } else { 0 };
        Some(Box::new(Expires { ttl: self.ttl, now: unix_seconds(&*self.clock) + early, user }))
    }
}

#[derive(Debug)]
struct Expires {
    ttl: i32,
    now: i64,
    user: Option<Arc<dyn CompactionFilter>>,
}

/// A decision on a value without its time, as one on the stored bytes.
fn timed(decision: Decision, time: i32) -> Decision {
    match decision {
        Decision::Change(mut new) => {
            put_write_time(&mut new, time);
            Decision::Change(new)
        }
        other => other,
    }
}

impl CompactionFilter for Expires {
    fn name(&self) -> &str {
        self.user.as_ref().map_or("TtlCompactionFilter", |user| user.name())
    }

    fn filter(&self, key: &[u8], stored: &[u8]) -> Decision {
        match (split_write_time(stored), &self.user) {
            (Ok((_, time)), _) if is_expired(time, self.ttl, self.now) => Decision::Remove,
            (Ok((value, time)), Some(user)) => timed(user.filter(key, value), time),
            _ => Decision::Keep,
        }
    }

    /// Only a removal needs no time.
    fn filter_blob_by_key(&self, key: &[u8]) -> Option<Decision> {
        let decision = self.user.as_ref()?.filter_blob_by_key(key)?;
        matches!(decision, Decision::Remove | Decision::RemoveAndSkipUntil(_)).then_some(decision)
    }

    fn filter_merge_operand(&self, key: &[u8], stored: &[u8]) -> Decision {
        match (split_write_time(stored), &self.user) {
            (Ok((operand, time)), Some(user)) => timed(user.filter_merge_operand(key, operand), time),
            _ => Decision::Keep,
        }
    }

    fn filters_entities(&self) -> bool {
        self.user.as_ref().is_some_and(|user| user.filters_entities())
    }

    fn filter_entity(&self, key: &[u8], columns: &[(&[u8], &[u8])]) -> Decision {
        let decision = self.user.as_ref().map_or(Decision::Keep, |user| user.filter_entity(key, columns));
        timed(decision, i32::try_from(self.now).unwrap_or(i32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Removes `x`, changes `c`, and knows the key `gone` without its value.
    #[derive(Debug)]
    struct User;

    impl CompactionFilter for User {
        fn name(&self) -> &str {
            "user"
        }
        fn filter(&self, _: &[u8], value: &[u8]) -> Decision {
            match value {
                b"x" => Decision::Remove,
                b"c" => Decision::Change(b"changed".to_vec()),
                _ => Decision::Keep,
            }
        }
        fn filter_blob_by_key(&self, key: &[u8]) -> Option<Decision> {
            Some(if key == b"gone" { Decision::Remove } else { Decision::Keep })
        }
        fn filter_merge_operand(&self, key: &[u8], operand: &[u8]) -> Decision {
            self.filter(key, operand)
        }
    }

    #[test]
    fn age_decides_first_and_the_users_filter_sees_no_times() {
        let start = 1_700_000_000;
        let at = |value: &str, seconds: i32| {
            let mut stored = value.as_bytes().to_vec();
            put_write_time(&mut stored, start + seconds);
            stored
        };
        let now = i64::from(start + 100);
        let with = Expires { ttl: 60, now, user: Some(Arc::new(User)) };
        let alone = Expires { ttl: 60, now, user: None };
        for filter in [&with, &alone] {
            assert_eq!(filter.filter(b"k", &at("v", 39)), Decision::Remove);
            assert_eq!(filter.filter(b"k", &at("v", 40)), Decision::Keep);
            assert_eq!(filter.filter(b"k", b"v"), Decision::Keep, "no time");
            assert_eq!(filter.filter_merge_operand(b"k", &at("v", 0)), Decision::Keep);
        }
        assert_eq!(with.filter(b"k", &at("x", 90)), Decision::Remove);
        assert_eq!(with.filter(b"k", &at("c", 90)), Decision::Change(at("changed", 90)));
        assert_eq!(with.filter_merge_operand(b"k", &at("c", 1)), Decision::Change(at("changed", 1)));
        assert_eq!(alone.filter(b"k", &at("c", 90)), Decision::Keep);
        // A value that the user's filter keeps may be over.
        assert_eq!(with.filter_blob_by_key(b"k"), None);
        assert_eq!(with.filter_blob_by_key(b"gone"), Some(Decision::Remove));
        assert_eq!(alone.filter_blob_by_key(b"gone"), None);
    }
}
