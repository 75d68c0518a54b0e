//! put, batchput, put_entity, delete, singledelete, deleterange.

use super::{Target, close};
use crate::Done;
use crate::outcome::Outcome;
use ashlardb::{Db, Error, Family, Write as _, WriteBatch};
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;

/// Message when the write succeeded and its output could not be written.
const WRITTEN: &str = "the write was made";

pub(super) fn put(target: &Target, key: &OsStr, value: &OsStr, out: &mut dyn Write) -> Done {
    let form = target.form(false);
    let (key, value) = (form.key(key).map_err(Outcome::Usage)?, form.value(value).map_err(Outcome::Usage)?);
    write(target, out, |_, family| family.put(key, value))
}

/// Sets the keys, each of which its value follows, in one batch.
pub(super) fn batch_put(target: &Target, words: &[OsString], out: &mut dyn Write) -> Done {
    let form = target.form(false);
    let (pairs, rest) = words.as_chunks::<2>();
    if let [key] = rest {
        return Err(Outcome::Usage(format!(
            "the key {key:?} has no value: batchput takes KEY VALUE [KEY VALUE]…"
        )));
    }
    let entry = |[key, value]: &[OsString; 2]| Ok((form.key(key)?, form.value(value)?));
    let entries = pairs.iter().map(entry).collect::<Result<Vec<_>, String>>().map_err(Outcome::Usage)?;
    write(target, out, |db, family| {
        let batch = WriteBatch::new();
        entries.iter().try_for_each(|(key, value)| batch.family(family).put(key, value))?;
        db.write(&batch)
    })
}

/// Sets a row. Each word is the name and the value of a column with a colon between them.
pub(super) fn put_entity(target: &Target, key: &OsStr, words: &[OsString], out: &mut dyn Write) -> Done {
    let form = target.form(false);
    let column = |word: &OsString| {
        let at = word.as_bytes().iter().position(|byte| *byte == b':').ok_or_else(|| {
            format!("{word:?} is no column: NAME:VALUE, or :VALUE for the default column. `put` sets a plain value")
        })?;
        let (name, value) = word.as_bytes().split_at(at);
        let name = if name.is_empty() { Vec::new() } else { form.value(OsStr::from_bytes(name))? };
        Ok((name, form.value(OsStr::from_bytes(&value[1..]))?))
    };
    let key = form.key(key).map_err(Outcome::Usage)?;
    let columns = words.iter().map(column).collect::<Result<Vec<_>, String>>().map_err(Outcome::Usage)?;
    write(target, out, |_, family| family.put_entity(key, &columns))
}

pub(super) fn delete(target: &Target, key: &OsStr, single: bool, out: &mut dyn Write) -> Done {
    let key = target.form(false).key(key).map_err(Outcome::Usage)?;
    write(target, out, |_, family| if single { family.single_delete(key) } else { family.delete(key) })
}

pub(super) fn delete_range(target: &Target, begin: &OsStr, end: &OsStr, out: &mut dyn Write) -> Done {
    let form = target.form(false);
    let (begin, end) = (form.key(begin).map_err(Outcome::Usage)?, form.key(end).map_err(Outcome::Usage)?);
    write(target, out, |_, family| family.delete_range(begin, end))
}

/// Opens the database, makes one write to the family, and prints OK.
fn write(target: &Target, out: &mut dyn Write, make: impl FnOnce(&Db, &Family) -> Result<(), Error>) -> Done {
    let db = target.open_to_write()?;
    make(&db, &target.family(&db)?)?;
    close(db, out, WRITTEN)
}
