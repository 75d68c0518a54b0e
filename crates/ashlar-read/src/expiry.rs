//! Values that end in the time of their write, as RocksDB's TTL wrapper stores them, and expire.
//!
//! 1. Each put value and each merge operand of such a family ends in its write time. Reads return the value without the time.
//! 2. A value is over when its time and the family's time to live lie before now. Reads hide it at once, whatever snapshot
//!    they use; a compaction removes it later.
//! 3. A merge renews its key: the combined value has the latest time of its parts. Parts that were over together when the next one
//!    was written count no more, so a merge never revives a value. One answer depends on compactions: a part that later
//!    operands renew is lost if a compaction meets the part without them after its own time. RocksDB gives a combined value the time of the combination.
//! 4. Entities have no time. They are not written to such a family.
//!
//! Source: RocksDB `utilities/ttl/db_ttl_impl.h` (format, names).

use ashlar_base::planted::{Bug, planted};
use ashlar_base::{Error, Malformed, MergeOperator, Result};
use ashlar_env::Clock;
use ashlar_format::value_suffix::{MIN_TIME, is_expired, put_write_time, split_write_time};
use ashlar_options::FamilyOptions;
use std::sync::Arc;

/// The time to live of a family's values, in seconds; 0: they are never over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expiry(i32);

/// [`Expiry`] at a moment.
#[derive(Clone, Copy, Debug)]
pub struct ExpiryNow {
    ttl: i32,
    now: i64,
}

/// Seconds since 1970.
pub fn unix_seconds(clock: &dyn Clock) -> i64 {
    i64::try_from(clock.unix_micros() / 1_000_000).unwrap_or(i64::MAX)
}

impl Expiry {
    /// That of a family; `None`: its values have no times.
    pub fn of(options: &FamilyOptions) -> Option<Expiry> {
        options.value_ttl_secs.map(Expiry)
    }

    /// The expiry at this moment.
    pub fn now(self, clock: &dyn Clock) -> ExpiryNow {
        ExpiryNow { ttl: self.0, now: unix_seconds(clock) }
    }
}

impl ExpiryNow {
    /// The value in the stored bytes; `None`: it is over.
    ///
    /// # Errors
    /// `Corruption`: the bytes do not end in a time.
    pub fn open<'a>(&self, key: &[u8], stored: &'a [u8]) -> Result<Option<&'a [u8]>> {
        let (value, time) = split_write_time(stored).map_err(|m| without_time(key, m))?;
        Ok((!is_expired(time, self.ttl, self.now)).then_some(value))
    }
}

/// The moment of a write, in seconds since 1970, which its values get as their time.
#[derive(Clone, Copy, Debug)]
pub struct WriteTime(i32);

impl WriteTime {
    /// The present moment.
    ///
    /// # Errors
    /// `InvalidArgument`: no value can have such a time.
    pub fn now(clock: &dyn Clock) -> Result<WriteTime> {
        let seconds = unix_seconds(clock);
        i32::try_from(seconds).ok().filter(|time| *time >= MIN_TIME).map(WriteTime).ok_or_else(|| {
            let text =
                format!("the clock shows {seconds} seconds since 1970, and times of values are {TIMES}");
            Error::invalid(text).hint("Set the clock of the machine")
        })
    }

    /// The moment in seconds.
    pub fn seconds(self) -> i32 {
        self.0
    }

    /// The time of a value that ends `own` seconds from now in a family with the time to live `ttl`.
    ///
    /// # Errors
    /// `InvalidArgument`: no value can have such a time, or such an end.
    pub fn that_ends_after(self, own: u64, ttl: i32, key: &[u8]) -> Result<i32> {
        if planted(Bug::OwnTtlForgotten) {
            return Ok(self.0);
        }
        let refused = |what: &str, hint| {
            let key = key.escape_ascii();
            let text = format!(
                "a time to live of {own} seconds for key '{key}': {what}; times of values are {TIMES}"
            );
            Err(Error::invalid(text).hint(hint))
        };
        let end = i64::from(self.0).saturating_add(i64::try_from(own).unwrap_or(i64::MAX));
        // RocksDB adds the time to live of the family to the stored time, in 32 bits.
        let Ok(end) = i32::try_from(end) else {
            return refused("the value would end later", "Give the value a shorter time to live, or none");
        };
        match end.saturating_sub(ttl) {
            time if time >= MIN_TIME => Ok(time),
            _ => refused(
                &format!(
                    "the family has {ttl} seconds, and the stored time, which is the end less that, would be earlier"
                ),
                "Give the family a time to live that is nearer to those of its values",
            ),
        }
    }
}

const TIMES: &str = "between May 2013 and January 2038";

#[cold]
fn without_time(key: &[u8], wrong: Malformed) -> Error {
    wrong.into_error().hint(format!(
        "The value of key '{}' has no write time: it was written without a time to live",
        key.escape_ascii()
    ))
}

/// The operator that combines the stored bytes of a family: the user's, which sees values without times.
pub fn operator_of(options: &FamilyOptions) -> Option<Arc<dyn MergeOperator>> {
    let operator = options.merge_operator.clone()?;
    Some(match options.value_ttl_secs {
        None => operator,
        Some(ttl) => Arc::new(TimedMerge { operator, ttl }),
    })
}

/// A user's operator over values and operands with times.
#[derive(Debug)]
struct TimedMerge {
    operator: Arc<dyn MergeOperator>,
    ttl: i32,
}

impl MergeOperator for TimedMerge {
    fn name(&self) -> &str {
        "TtlMergeOperator"
    }

    fn full_merge(&self, key: &[u8], existing: Option<&[u8]>, operands: &[&[u8]]) -> Result<Vec<u8>> {
        // Oldest first: what was over when the next part was written counts no more.
        let (mut until_now, mut base, mut plain) = (None, None, Vec::new());
        let stored = operands.iter().map(|operand| (*operand, false));
        for (stored, is_base) in existing.map(|existing| (existing, true)).into_iter().chain(stored) {
            let (part, time) = split_write_time(stored).map_err(|m| without_time(key, m))?;
            let is_over = until_now.is_some_and(|newest| is_expired(newest, self.ttl, time.into()));
            if is_over && !planted(Bug::MergeRevives) {
                (until_now, base) = (None, None);
                plain.clear();
            }
            until_now = match until_now {
                Some(newest) if planted(Bug::RenewalForgotten) => Some(newest),
                until_now => until_now.max(Some(time)),
            };
            if is_base { base = Some(part) } else { plain.push(part) }
        }
        let mut merged = self.operator.full_merge(key, base, &plain)?;
        put_write_time(&mut merged, until_now.unwrap_or_default());
        Ok(merged)
    }

    fn partial_merge(&self, key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        let (mut before, mut newest, mut plain) = (None, None, Vec::new());
        for stored in operands {
            let (operand, time) = split_write_time(stored).ok()?;
            // One operand has one time: the oldest decides on what lies below, the newest on the key.
            if self.ttl > 0 && before.is_some_and(|before| before != time) {
                return None;
            }
            (before, newest) = (Some(time), newest.max(Some(time)));
            plain.push(operand);
        }
        let mut combined = self.operator.partial_merge(key, &plain)?;
        put_write_time(&mut combined, newest?);
        Some(combined)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ashlar_base::ext::merge_operator::standard_operator;
    use ashlar_format::value_suffix::without_write_time;

    const START: i32 = 1_700_000_000;

    fn at(value: &str, seconds: i32) -> Vec<u8> {
        let mut stored = value.as_bytes().to_vec();
        put_write_time(&mut stored, START + seconds);
        stored
    }

    #[test]
    fn a_value_is_over_one_second_behind_its_time() {
        let now = |seconds: i32| ExpiryNow { ttl: 60, now: i64::from(START + seconds) };
        let stored = at("v", 0);
        assert_eq!(now(60).open(b"k", &stored).unwrap(), Some(&b"v"[..]));
        assert_eq!(now(61).open(b"k", &stored).unwrap(), None);
        let never = ExpiryNow { ttl: 0, now: i64::MAX };
        assert_eq!(never.open(b"k", &stored).unwrap(), Some(&b"v"[..]));
        let e = now(0).open(b"k", b"abc").unwrap_err();
        assert!(e.is_corruption() && e.to_string().contains("written without a time to live"), "{e}");
        assert_eq!((without_write_time(&stored), without_write_time(b"ab")), (&b"v"[..], &b""[..]));
    }

    #[test]
    fn a_merge_takes_what_was_alive_when_the_next_part_was_written() {
        let operator = standard_operator("stringappend").unwrap();
        let merge = TimedMerge { operator, ttl: 60 };
        let full = |existing: Option<&Vec<u8>>, operands: &[&Vec<u8>]| {
            let operands: Vec<&[u8]> = operands.iter().map(|operand| &operand[..]).collect();
            merge.full_merge(b"k", existing.map(|existing| &existing[..]), &operands).unwrap()
        };
        let (base, first, second, late) = (at("0", 0), at("1", 50), at("2", 100), at("3", 161));
        assert_eq!(full(Some(&base), &[&first, &second]), at("0,1,2", 100));
        assert_eq!(full(Some(&base), &[&second]), at("2", 100), "the base was over at 61");
        assert_eq!(full(Some(&base), &[&first, &second, &late]), at("3", 161));
        assert_eq!(full(None, &[&first, &second]), at("1,2", 100));
        let partial = |operands: &[&Vec<u8>]| {
            let operands: Vec<&[u8]> = operands.iter().map(|operand| &operand[..]).collect();
            merge.partial_merge(b"k", &operands)
        };
        assert_eq!(partial(&[&first, &at("4", 50)]), Some(at("1,4", 50)));
        assert_eq!(partial(&[&first, &second]), None, "two times");
        assert!(merge.full_merge(b"k", Some(b"x"), &[&first]).unwrap_err().is_corruption());
    }
}
