//! put, get, delete, scan, dump.

use super::{Target, close};
use crate::Done;
use crate::cli::Range;
use crate::outcome::Outcome;
use ashlardb::{Read as _, Write as _};
use std::ffi::OsStr;
use std::io::Write;
use std::ops::Bound;

pub(super) fn put(target: &Target, key: &OsStr, value: &OsStr, out: &mut dyn Write) -> Done {
    let form = target.form(false);
    let (key, value) = (form.key(key).map_err(Outcome::Usage)?, form.value(value).map_err(Outcome::Usage)?);
    let db = target.open_to_write()?;
    target.family(&db)?.put(key, value)?;
    close(db, out)
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
    close(db, out)
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

/// Shows the entries of `range` to `see`; returns how many.
fn each(target: &Target, range: &Range, mut see: impl FnMut(&[u8], &[u8]) -> Done) -> Result<u64, Outcome> {
    let form = target.form(range.tsv);
    let key = |word: &Option<_>| word.as_deref().map(|w| form.key(w)).transpose().map_err(Outcome::Usage);
    let (from, to) = (key(&range.from)?, key(&range.to)?);
    let most = range.max_keys.and_then(|n| u64::try_from(n).ok()).unwrap_or(u64::MAX);
    let db = target.open_to_read()?;
    let from = from.map_or(Bound::Unbounded, Bound::Included);
    let to = to.map_or(Bound::Unbounded, Bound::Excluded);
    let mut cursor = target.family(&db)?.scan((from, to)).cursor()?;
    let mut count = 0;
    while count < most {
        let Some((key, value)) = cursor.next()? else { break };
        see(key, value)?;
        count += 1;
    }
    Ok(count)
}
