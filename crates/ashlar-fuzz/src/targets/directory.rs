//! Whole directories: golden ones with a few edits, opened, read, compacted, closed, opened again.
//!
//! ```text
//! input:  | put right: u8 | files: u8 | ( name length: u8 | name | length: u32 LE | bytes )* |
//! ```
//! Where checksums were put right behind the damage, the bytes may say anything and only survival counts. Otherwise all
//! ways to read must agree, now, after a compaction and after another open: damage is an error or nothing.

use super::Outcome;
use crate::corpus;
use crate::memory::{DIR, machine, put};
use crate::sst::fix_table;
use ashlar_base::Cursor;
use ashlar_engine::Db;
use ashlar_engine::column_family::Family;
use ashlar_env::Env;
use ashlar_options::{DbOptions, FamilyOptions, ReadOptions};
use ashlar_read::iter::{DbIter, KeyBounds};
use ashlar_testkit::Rng;
use ashlar_testkit::mutate::{Mutator, fix_log};
use std::collections::BTreeMap;
use std::path::Path;

/// Keys looked up in one family.
const LOOKED_UP: usize = 64;
/// Files of a directory; no golden one has more.
const MOST_FILES: usize = 64;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Archive {
    put_right: bool,
    files: Vec<(String, Vec<u8>)>,
}

impl Archive {
    fn encode(&self) -> Vec<u8> {
        let count = u8::try_from(self.files.len()).unwrap_or(u8::MAX);
        let mut out = vec![u8::from(self.put_right), count];
        for (name, bytes) in &self.files {
            out.push(u8::try_from(name.len()).unwrap_or(u8::MAX));
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(&u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes());
            out.extend_from_slice(bytes);
        }
        out
    }

    fn decode(input: &[u8]) -> Option<Archive> {
        let mut c = Cursor::new(input);
        let put_right = c.u8("put right").ok()? != 0;
        let count = usize::from(c.u8("files").ok()?).min(MOST_FILES);
        let mut files = Vec::new();
        for _ in 0..count {
            let len = usize::from(c.u8("name").ok()?);
            let name = String::from_utf8(c.bytes(len, "name").ok()?.to_vec()).ok()?;
            let len = c.fixed32("file").ok()? as usize;
            files.push((name, c.bytes(len, "file").ok()?.to_vec()));
        }
        Some(Archive { put_right, files })
    }
}

/// The golden directories without what an open does not read.
pub(super) fn archives() -> Vec<Vec<u8>> {
    let read = |name: &str| !name.starts_with("OPTIONS") && !["LOCK", "expected.txt"].contains(&name);
    let mut archives = Vec::new();
    for mut files in corpus::directories() {
        files.retain(|(name, bytes)| read(name) && bytes.len() <= 40_000);
        if files.iter().any(|(name, _)| name == "CURRENT") {
            archives.push(Archive { put_right: false, files }.encode());
        }
    }
    archives
}

/// A directory of the corpus with one to four edits.
pub(super) fn draw(corpus: &[Vec<u8>], seed: u64) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    let own = rng.pick(corpus).and_then(|bytes| Archive::decode(bytes));
    let other = rng.pick(corpus).and_then(|bytes| Archive::decode(bytes)).unwrap_or_default();
    let mut archive = own.unwrap_or_default();
    for _ in 0..rng.between(1, 4) {
        edit(&mut archive, &other, &mut rng);
    }
    archive.encode()
}

fn edit(archive: &mut Archive, other: &Archive, rng: &mut Rng) {
    let donor = rng.pick(&other.files).cloned().unwrap_or_default();
    let at = rng.below(archive.files.len());
    let what = rng.below(100);
    let Some((name, bytes)) = archive.files.get_mut(at) else { return };
    match what {
        0..4 => drop(archive.files.remove(at)),
        4..8 => *bytes = donor.1,
        8..10 => *name = donor.0,
        10..12 => archive.files.push(donor),
        12..15 => bytes.truncate(rng.below(bytes.len())),
        _ => {
            Mutator::new(rng.next_u64()).damage(bytes, &donor.1);
            if rng.below(4) != 0 {
                archive.put_right = true;
                match name {
                    name if name.ends_with(".log") || name.starts_with("MANIFEST-") => fix_log(bytes),
                    name if name.ends_with(".sst") || name.ends_with(".ldb") => fix_table(bytes),
                    _ => {}
                }
            }
        }
    }
}

/// Entries of all families, by name. `None` for a family that could not be read.
type Content = BTreeMap<String, Option<Vec<(Vec<u8>, Vec<u8>)>>>;

pub(super) fn open(input: &[u8]) -> Outcome {
    let archive = Archive::decode(input).ok_or("no archive")?;
    let env = machine();
    for (name, bytes) in &archive.files {
        put(&env, name, bytes);
    }
    let honest = !archive.put_right;
    let db = open_db(&env)?;
    let before = content(&db, honest);
    for family in db.families() {
        let _ = db.compact_range(&family, None, None);
    }
    compare(&before, &content(&db, honest), honest, "a compaction");
    let closed = db.close();
    drop(db);
    let db = match open_db(&env) {
        Ok(db) => db,
        Err(e) => {
            assert!(!honest || closed.is_err(), "opened, closed in order, refused: {e}");
            return Err(e);
        }
    };
    compare(&before, &content(&db, honest), honest, "another open");
    Ok(())
}

fn open_db(env: &Env) -> Result<Db, String> {
    let options = DbOptions { create_if_missing: false, block_cache_bytes: 1 << 20, ..DbOptions::default() };
    let others = FamilyOptions { write_buffer_bytes: 1 << 20, ..FamilyOptions::default() };
    Db::open(env.clone(), Path::new(DIR), options, Vec::new(), others).map_err(|e| e.to_string())
}

/// Reads everything, every way.
fn content(db: &Db, honest: bool) -> Content {
    let mut all = Content::new();
    for family in db.families() {
        let forwards = listing(db, &family, false);
        let backwards = listing(db, &family, true);
        let mut looked_up = true;
        for (key, value) in forwards.iter().flatten().take(LOOKED_UP) {
            let found = db.get(&family, key, ReadOptions::default()).map(|view| view.map(|v| v.into_vec()));
            match found {
                Ok(found) => {
                    assert!(!honest || found.as_ref() == Some(value), "get says otherwise than the scan")
                }
                Err(_) => looked_up = false,
            }
        }
        if let (Some(forwards), Some(backwards), true) = (&forwards, &backwards, honest) {
            assert!(forwards.iter().eq(backwards.iter().rev()), "entries forwards and backwards");
        }
        all.insert(family.name().to_owned(), forwards.filter(|_| backwards.is_some() && looked_up));
    }
    all
}

fn listing(db: &Db, family: &Family, reverse: bool) -> Option<Vec<(Vec<u8>, Vec<u8>)>> {
    let step = |iter: &mut DbIter| if reverse { iter.prev() } else { iter.next() };
    let mut iter = db.iter(family, KeyBounds::default(), ReadOptions::default()).ok()?;
    if reverse { iter.last() } else { iter.first() }.ok()?;
    let mut all = Vec::new();
    while let Some((key, value)) = iter.entry() {
        all.push((key.to_vec(), value.to_vec()));
        step(&mut iter).ok()?;
    }
    Some(all)
}

fn compare(before: &Content, after: &Content, honest: bool, what: &str) {
    for (name, listed) in before {
        if let (Some(listed), Some(Some(now)), true) = (listed, after.get(name), honest) {
            assert!(listed == now, "family {name} reads otherwise after {what}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archives_come_back_and_golden_directories_open() {
        let mut opened = 0;
        for bytes in archives() {
            let archive = Archive::decode(&bytes).unwrap();
            assert!(archive.encode() == bytes);
            opened += usize::from(open(&bytes).is_ok());
        }
        assert!(opened >= 10, "{opened} golden directories open");
    }
}
