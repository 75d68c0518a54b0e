//! explain: a read in words.

use super::Target;
use crate::Done;
use crate::outcome::Outcome;
use ashlar_engine::options::ReadOptions;
use std::ffi::OsStr;
use std::io::Write;

pub(super) fn run(target: &Target, what: &OsStr, is_key: bool, max_keys: u64, out: &mut dyn Write) -> Done {
    let form = target.form(false);
    let key = |word: &OsStr| form.key(word).map_err(Outcome::Usage);
    let range = ends(what).filter(|_| !is_key);
    let db = target.open_to_read()?;
    let engine = db.engine();
    let family = engine
        .family(target.family(&db)?.name())
        .ok_or_else(|| Outcome::Failed("the column family was dropped".to_owned()))?;
    match range {
        None => write!(out, "{}", engine.explain_get(&family, &key(what)?, &ReadOptions::default())?)?,
        Some((from, to)) => {
            let end = |word: &OsStr| (!word.is_empty()).then(|| key(word)).transpose();
            let options = ReadOptions { lower: end(from)?, upper: end(to)?, ..ReadOptions::default() };
            write!(out, "{}", engine.explain_scan(&family, options, max_keys)?)?;
        }
    }
    Ok(())
}

/// The ends of a range, if it is one: what stands before and behind the first two dots.
fn ends(what: &OsStr) -> Option<(&OsStr, &OsStr)> {
    let (from, to) = what.to_str()?.split_once("..")?;
    Some((OsStr::new(from), OsStr::new(to)))
}
