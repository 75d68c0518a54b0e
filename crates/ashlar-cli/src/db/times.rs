//! The times of the writes in a database with times to live: shown before entries, as bounds, and in buckets.
//!
//! ```text
//! Dumping key-values from Fri May 10 00:40:02 2013 to Tue Jan 19 03:14:07 2038
//! Sat Nov 28 20:54:05 2026 key ==> value
//! Keys in range Fri May 10 00:40:02 2013 to Fri Jan 15 08:00:00 2027 : 1
//! ```
//! 1. Times are UTC. RocksDB's ldb prints them in the time zone of the machine.
//! 2. Reads of such a database return values without their times. A second view without times to live has both.
//!
//! Source: RocksDB `tools/ldb_cmd.cc`, `utilities/ttl/db_ttl_impl.h` (by their output).

use super::Target;
use crate::Done;
use crate::cli::Times;
use crate::outcome::Outcome;
use ashlar_format::value_suffix::{MIN_TIME, split_write_time};
use ashlardb::{Error, Family, Read as _};
use std::collections::BTreeMap;
use std::io::Write;

/// The times that a command asks for.
pub(super) struct WriteTimes {
    /// The values with their times.
    stored: Family,
    start: i32,
    /// The end of the range, itself excluded.
    end: i32,
    shown: bool,
    /// Seconds of a bucket; `None`: no buckets.
    bucket: Option<i64>,
    counts: BTreeMap<i64, u64>,
}

impl WriteTimes {
    /// `None`: the command asks for no times.
    pub(super) fn of(
        target: &Target,
        times: &Times,
        bucket: Option<i32>,
    ) -> Result<Option<WriteTimes>, Outcome> {
        let Times { timestamp, start_time, end_time } = *times;
        if !timestamp && start_time.is_none() && end_time.is_none() && bucket.is_none() {
            return Ok(None);
        }
        if !target.common.tuning.has_ttl() {
            let text =
                "--timestamp, --start_time, --end_time and --bucket are for databases with times: give --ttl";
            return Err(Outcome::Usage(text.to_owned()));
        }
        let (start, end) = (start_time.unwrap_or(MIN_TIME), end_time.unwrap_or(i32::MAX));
        if end < start {
            return Err(Outcome::Usage("--end_time is before --start_time".to_owned()));
        }
        let length = i64::from(end) - i64::from(start);
        let bucket = bucket.map(i64::from).filter(|bucket| (1..length).contains(bucket));
        let stored = target.family(&target.open_without_ttl()?)?;
        Ok(Some(WriteTimes { stored, start, end, shown: timestamp, bucket, counts: BTreeMap::new() }))
    }

    /// Prints the line with the bounds, if times are shown. `doing` is what the command does.
    pub(super) fn heading(&self, doing: &str, out: &mut dyn Write) -> Done {
        if self.shown {
            let (start, end) = (calendar(self.start.into()), calendar(self.end.into()));
            writeln!(out, "{doing} key-values from {start} to {end}")?;
        }
        Ok(())
    }

    /// The time of the entry of `key`; `None`: it is outside of the bounds.
    pub(super) fn find(&self, key: &[u8]) -> Result<Option<i32>, Outcome> {
        let Some(stored) = self.stored.get(key)? else {
            let text = "another process changed the database during the command; start it again";
            return Err(Outcome::Failed(text.to_owned()));
        };
        let (_, time) = split_write_time(&stored)
            .map_err(|e| Error::corruption(format!("key '{}': {e}", key.escape_ascii())))?;
        Ok((self.start..self.end).contains(&time).then_some(time))
    }

    /// Counts the entry, and prints its time if times are shown and `show` is true.
    pub(super) fn take(&mut self, time: i32, show: bool, out: &mut dyn Write) -> Done {
        if let Some(bucket) = self.bucket {
            *self.counts.entry((i64::from(time) - i64::from(self.start)) / bucket).or_default() += 1;
        }
        if self.shown && show {
            write!(out, "{} ", calendar(time.into()))?;
        }
        Ok(())
    }

    /// Prints a line for each bucket. False: there are no buckets.
    pub(super) fn print_buckets(&self, out: &mut dyn Write) -> Result<bool, Outcome> {
        let Some(bucket) = self.bucket else { return Ok(false) };
        let (mut from, end) = (i64::from(self.start), i64::from(self.end));
        for at in 0.. {
            let to = from.saturating_add(bucket).min(end);
            let count = self.counts.get(&at).copied().unwrap_or_default();
            writeln!(out, "Keys in range {} to {} : {count}", calendar(from), calendar(to))?;
            if to == end {
                break;
            }
            from = to;
        }
        Ok(true)
    }
}

/// `Sat Nov 28 20:54:05 2026`, in UTC.
fn calendar(unix_seconds: i64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let seconds = u64::try_from(unix_seconds).unwrap_or_default();
    let text = ashlar_observe::utc(seconds);
    let part = |from: usize, to: usize| text.get(from..to).unwrap_or_default();
    let name = |names: &[&'static str], at: usize| names.get(at).copied().unwrap_or_default();
    let weekday = usize::try_from(seconds / 86_400 % 7).unwrap_or_default();
    let month = part(5, 7).parse::<usize>().unwrap_or_default().wrapping_sub(1);
    let (month, weekday) = (name(&MONTHS, month), name(&DAYS, weekday));
    let day = part(8, 10).trim_start_matches('0');
    format!("{weekday} {month} {day:>2} {} {}", part(11, 19), part(0, 4))
}

#[cfg(test)]
mod tests {
    use super::calendar;

    #[test]
    fn times_read_as_in_ldb() {
        assert_eq!(calendar(0), "Thu Jan  1 00:00:00 1970");
        assert_eq!(calendar(1_368_146_402), "Fri May 10 00:40:02 2013");
        assert_eq!(calendar(2_147_483_647), "Tue Jan 19 03:14:07 2038");
        assert_eq!(calendar(1_795_899_245), "Sat Nov 28 20:54:05 2026");
    }
}
