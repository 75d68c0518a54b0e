//! explain: a read in words.

use super::Target;
use crate::Done;
use crate::outcome::Outcome;
use ashlardb::Read as _;
use std::ffi::OsStr;
use std::io::Write;
use std::ops::Bound;

pub(super) fn run(target: &Target, what: &OsStr, is_key: bool, max_keys: u64, out: &mut dyn Write) -> Done {
    let form = target.form(false);
    let key = |word: &OsStr| form.key(word).map_err(Outcome::Usage);
    let range = ends(what).filter(|_| !is_key);
    let db = target.open_to_read()?;
    let family = target.family(&db)?;
    match range {
        None => write!(out, "{}", family.explain_get(key(what)?)?)?,
        Some((from, to)) => {
            let end = |word: &OsStr| (!word.is_empty()).then(|| key(word)).transpose();
            let from = end(from)?.map_or(Bound::Unbounded, Bound::Included);
            let to = end(to)?.map_or(Bound::Unbounded, Bound::Excluded);
            write!(out, "{}", family.scan((from, to)).explain(max_keys)?)?;
        }
    }
    Ok(())
}

/// The ends of a range: the text before and after the first two dots. `None`: the word has no two dots.
fn ends(what: &OsStr) -> Option<(&OsStr, &OsStr)> {
    let (from, to) = what.to_str()?.split_once("..")?;
    Some((OsStr::new(from), OsStr::new(to)))
}
