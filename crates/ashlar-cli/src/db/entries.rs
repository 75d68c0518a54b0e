//! put, get, delete, scan, dump, compact.

use super::{Target, close};
use crate::Done;
use crate::cli::Range;
use crate::outcome::Outcome;
use ashlardb::{CompactRangeOptions, Family, Read as _, Write as _};
use std::ffi::OsStr;
use std::io::Write;
use std::ops::Bound;

/// Message when the write succeeded and its output could not be written.
const WRITTEN: &str = "the write was made";

pub(super) fn put(target: &Target, key: &OsStr, value: &OsStr, out: &mut dyn Write) -> Done {
    let form = target.form(false);
    let (key, value) = (form.key(key).map_err(Outcome::Usage)?, form.value(value).map_err(Outcome::Usage)?);
    let db = target.open_to_write()?;
    target.family(&db)?.put(key, value)?;
    close(db, out, WRITTEN)
}

pub(super) fn get(target: &Target, key: &OsStr, out: &mut dyn Write) -> Done {
    let form = target.form(false);
    let key = form.key(key).map_err(Outcome::Usage)?;
    let db = target.open_to_read()?;
    match target.family(&db)?.get(key)? {
        Some(value) => Ok(form.print_value(out, &value)?),
        None => Err(Outcome::Failed("Key not found".to_owned())),
    }
}

pub(super) fn delete(target: &Target, key: &OsStr, out: &mut dyn Write) -> Done {
    let key = target.form(false).key(key).map_err(Outcome::Usage)?;
    let db = target.open_to_write()?;
    target.family(&db)?.delete(key)?;
    close(db, out, WRITTEN)
}

pub(super) fn scan(target: &Target, range: &Range, no_value: bool, out: &mut dyn Write) -> Done {
    let form = target.form(range.tsv);
    each(target, range, |key, value| match no_value {
        true => Ok(form.print_key(out, key)?),
        false => Ok(form.print(out, key, value)?),
    })
    .map(drop)
}

pub(super) fn dump(target: &Target, range: &Range, count_only: bool, out: &mut dyn Write) -> Done {
    let form = target.form(range.tsv);
    let count = each(target, range, |key, value| match count_only {
        true => Ok(()),
        false => Ok(form.print(out, key, value)?),
    })?;
    writeln!(out, "Keys in range: {count}")?;
    Ok(())
}

/// Calls `see` with each entry of `range`. Returns the number of entries.
fn each(target: &Target, range: &Range, mut see: impl FnMut(&[u8], &[u8]) -> Done) -> Result<u64, Outcome> {
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
    while count < most {
        let Some((key, value)) = cursor.next()? else { break };
        see(key, value)?;
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

pub(super) fn compact(target: &Target, range: &Range, out: &mut dyn Write) -> Done {
    let (from, mut to) = bounds(target, range)?;
    let mut from = from;
    if let Some(prefix) = prefix(target, range)? {
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
