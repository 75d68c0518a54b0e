//! get, multi_get, get_entity, scan, dump, compact.

use super::counts::Counts;
use super::text::Form;
use super::times::WriteTimes;
use super::{Target, close, files, info};
use crate::Done;
use crate::cli::{Dump, Range};
use crate::outcome::Outcome;
use ashlardb::{CompactRangeOptions, Cursor, Family, Read as _};
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::ops::Bound;

const NOT_FOUND: &str = "Key not found";

pub(super) fn get(target: &Target, key: &OsStr, out: &mut dyn Write) -> Done {
    let form = target.form(false);
    let key = form.key(key).map_err(Outcome::Usage)?;
    let db = target.open_to_read()?;
    match target.family(&db)?.get(key)? {
        Some(value) => Ok(form.print_value(out, &value)?),
        None => missing(out),
    }
}

/// Says on standard output, as ldb does, that there is no such key.
fn missing(out: &mut dyn Write) -> Done {
    writeln!(out, "{NOT_FOUND}")?;
    Err(Outcome::Missing)
}

/// Prints the entries of the keys. A key that is not there has a line, too, and is no failure.
pub(super) fn multi_get(target: &Target, words: &[OsString], out: &mut dyn Write) -> Done {
    let form = target.form(false);
    let keys =
        words.iter().map(|word| form.key(word)).collect::<Result<Vec<_>, _>>().map_err(Outcome::Usage)?;
    let db = target.open_to_read()?;
    let values = target.family(&db)?.multi_get(&keys)?;
    for (key, value) in keys.iter().zip(values) {
        match value {
            Some(value) => form.print(out, key, &value)?,
            None => not_found(&form, key, out)?,
        }
    }
    Ok(())
}

pub(super) fn get_entity(target: &Target, key: &OsStr, out: &mut dyn Write) -> Done {
    let form = target.form(false);
    let key = form.key(key).map_err(Outcome::Usage)?;
    let db = target.open_to_read()?;
    match target.family(&db)?.get_entity(key)? {
        Some(columns) => Ok(form.print_row(out, &columns)?),
        None => missing(out),
    }
}

/// Prints the rows of the keys. A key that is not there has a line, too, and is no failure.
pub(super) fn multi_get_entity(target: &Target, words: &[OsString], out: &mut dyn Write) -> Done {
    let form = target.form(false);
    let keys =
        words.iter().map(|word| form.key(word)).collect::<Result<Vec<_>, _>>().map_err(Outcome::Usage)?;
    let db = target.open_to_read()?;
    let family = target.family(&db)?;
    for key in keys {
        match family.get_entity(&key)? {
            Some(columns) => form.print_entity(out, &key, &columns)?,
            None => not_found(&form, &key, out)?,
        }
    }
    Ok(())
}

fn not_found(form: &Form, key: &[u8], out: &mut dyn Write) -> std::io::Result<()> {
    write!(out, "{NOT_FOUND}: ")?;
    form.print_key(out, key)
}

pub(super) fn scan(target: &Target, range: &Range, no_value: bool, out: &mut dyn Write) -> Done {
    let form = target.form(range.tsv);
    let mut times = WriteTimes::of(target, &range.times, None)?;
    times.as_ref().map_or(Ok(()), |times| times.heading("Scanning", out))?;
    each(target, range, &mut times, |entry, times| {
        entry.time(times, true, out)?;
        match no_value {
            true => Ok(form.print_key(out, entry.key)?),
            false => entry.print(&form, out),
        }
    })
    .map(drop)
}

/// Prints the entries of a range, or one file.
pub(super) fn dump(target: &Target, dump: &Dump, out: &mut dyn Write) -> Done {
    if let Some(path) = &dump.path {
        return files::dump(target, path, dump, out);
    }
    if dump.stats {
        info::stats(target, out)?;
    }
    let form = target.form(dump.range.tsv);
    let mut counts = dump.count_delim.as_deref().map(|of| Counts::new(of, form)).transpose()?;
    let mut times = WriteTimes::of(target, &dump.range.times, dump.bucket)?;
    let shown = !dump.count_only && counts.is_none();
    if let Some(times) = times.as_ref().filter(|_| shown) {
        times.heading("Dumping", out)?;
    }
    let count = each(target, &dump.range, &mut times, |entry, times| {
        entry.time(times, shown, out)?;
        match &mut counts {
            Some(counts) => Ok(counts.add(entry.key, entry.value, out)?),
            None if dump.count_only => Ok(()),
            None => entry.print(&form, out),
        }
    })?;
    if let Some(times) = times
        && times.print_buckets(out)?
    {
        return Ok(());
    }
    match counts {
        Some(counts) => counts.finish(out),
        None => Ok(writeln!(out, "Keys in range: {count}")?),
    }
}

/// An entry of a range.
struct Entry<'a> {
    key: &'a [u8],
    value: &'a [u8],
    cursor: &'a Cursor,
    /// The time of the write, if the command asks for times.
    time: Option<i32>,
}

impl Entry<'_> {
    /// Counts the time of the entry, and prints it if `show` is true and the command shows times.
    fn time(&self, times: &mut Option<WriteTimes>, show: bool, out: &mut dyn Write) -> Done {
        match (times, self.time) {
            (Some(times), Some(time)) => times.take(time, show, out),
            _ => Ok(()),
        }
    }

    /// Prints the entry as a line: a row with its columns, if it has others than the default one.
    fn print(&self, form: &Form, out: &mut dyn Write) -> Done {
        match self.cursor.columns()? {
            Some(columns) if columns.len() > 1 || columns.default_column().is_none() => {
                Ok(form.print_entity(out, self.key, &columns)?)
            }
            _ => Ok(form.print(out, self.key, self.value)?),
        }
    }
}

/// Calls `see` with each entry of `range` that is within the bounds of `times`. Returns the number of entries.
fn each(
    target: &Target,
    range: &Range,
    times: &mut Option<WriteTimes>,
    mut see: impl FnMut(&Entry<'_>, &mut Option<WriteTimes>) -> Done,
) -> Result<u64, Outcome> {
    let (from, to) = bounds(target, range)?;
    let most = range.max_keys.and_then(|n| u64::try_from(n).ok()).unwrap_or(u64::MAX);
    let db = target.open_to_read()?;
    let family = target.family(&db)?;
    ascending(&family, &from, &to)?;
    let mut cursor = match prefix(target, range)? {
        Some(prefix) => family.prefix(prefix).cursor()?,
        None => family.scan((from, to)).cursor()?,
    };
    let mut count = 0;
    while count < most && cursor.next()?.is_some() {
        let Some((key, value)) = cursor.entry() else { break };
        let time = times.as_ref().map(|times| times.find(key)).transpose()?;
        if time == Some(None) {
            continue;
        }
        see(&Entry { key, value, cursor: &cursor, time: time.flatten() }, times)?;
        count += 1;
    }
    Ok(count)
}

/// The prefix of the keys, if the user gave one.
fn prefix(target: &Target, range: &Range) -> Result<Option<Vec<u8>>, Outcome> {
    let form = target.form(range.tsv);
    range.prefix.as_deref().map(|word| form.key(word)).transpose().map_err(Outcome::Usage)
}

/// The first key of a range, and its end, itself excluded.
type Bounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

fn bounds(target: &Target, range: &Range) -> Result<Bounds, Outcome> {
    let form = target.form(range.tsv);
    let key = |word: &Option<_>| word.as_deref().map(|w| form.key(w)).transpose().map_err(Outcome::Usage);
    let (from, to) = (key(&range.from)?, key(&range.to)?);
    Ok((from.map_or(Bound::Unbounded, Bound::Included), to.map_or(Bound::Unbounded, Bound::Excluded)))
}

/// Refuses a range that begins after its end in the order of the family.
fn ascending(family: &Family, from: &Bound<Vec<u8>>, to: &Bound<Vec<u8>>) -> Done {
    match (from, to) {
        (Bound::Included(from), Bound::Excluded(to)) if family.options().order.compare(from, to).is_gt() => {
            Err(Outcome::Usage(
                "--from is above --to in the order of the family: no key is in this range".to_owned(),
            ))
        }
        _ => Ok(()),
    }
}

/// Compacts the tables with keys of a range: its first key, its end, or the prefix of its keys.
pub(super) fn compact(
    target: &Target,
    (from, to, prefixed): (Option<OsString>, Option<OsString>, Option<OsString>),
    out: &mut dyn Write,
) -> Done {
    let range = Range { from, to, prefix: prefixed, ..Range::default() };
    let (mut from, mut to) = bounds(target, &range)?;
    if let Some(prefix) = prefix(target, &range)? {
        to = successor(&prefix).map_or(Bound::Unbounded, Bound::Excluded);
        from = Bound::Included(prefix);
    }
    let db = target.open()?;
    let family = target.family(&db)?;
    ascending(&family, &from, &to)?;
    family.compact_range((from, to), CompactRangeOptions::default())?;
    close(db, out, "the compaction was made")
}

/// The first key, in byte order, after all keys that begin with `prefix`. `None`: there is no such key.
fn successor(prefix: &[u8]) -> Option<Vec<u8>> {
    let kept = prefix.iter().rposition(|byte| *byte < u8::MAX)?;
    let mut key = prefix[..=kept].to_vec();
    key[kept] += 1;
    Some(key)
}

#[cfg(test)]
mod tests {
    use super::successor;

    #[test]
    fn a_successor_is_behind_every_key_of_the_prefix() {
        assert_eq!(successor(b"user:"), Some(b"user;".to_vec()));
        assert_eq!(successor(b"a\xff\xff"), Some(b"b".to_vec()));
        assert_eq!((successor(b""), successor(b"\xff")), (None, None));
    }
}
