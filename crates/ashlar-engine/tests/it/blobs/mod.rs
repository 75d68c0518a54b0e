//! Values in blob files, written by RocksDB and by this engine, judged by RocksDB.

#![allow(clippy::cast_possible_truncation, reason = "small numbers of tests")]

mod damage;
mod foreign;
mod orphans;
mod ours;

use ashlar_base::Error;
use ashlar_engine::{Db, OpenFamily};
use ashlar_env::Env;
use ashlar_options::{DbOptions, FamilyOptions, FormatLevel, ReadOptions};
use ashlar_read::iter::KeyBounds;
use ashlar_testkit::judge::{JudgeError, Opening};
use ashlar_testkit::{Judge, JudgeVersion, KeyValue};
use std::path::Path;

type Result<T, E = Error> = std::result::Result<T, E>;

/// Opens a directory at the level of RocksDB 7.8, with this engine's default settings.
fn open(dir: &Path) -> Db {
    open_with(dir, FormatLevel::V7_8, FamilyOptions::default()).unwrap()
}

fn open_with(dir: &Path, format_level: FormatLevel, family: FamilyOptions) -> Result<Db> {
    let options = DbOptions { format_level, ..DbOptions::default() };
    let default = OpenFamily { name: "default".to_owned(), options: family.clone() };
    Db::open(Env::os().unwrap(), dir, options, vec![default], family)
}

/// Reads the default family by iterator in both directions and by gets: all must agree with `want`.
fn compare(db: &Db, want: &[KeyValue], what: &str) {
    let family = db.family("default").unwrap();
    let mut it = db.iter(&family, KeyBounds::default(), ReadOptions::default()).unwrap();
    let (mut forward, mut backward) = (vec![], vec![]);
    it.first().unwrap();
    while let Some((key, value)) = it.entry() {
        forward.push((key.to_vec(), value.to_vec()));
        it.next().unwrap();
    }
    it.last().unwrap();
    while let Some((key, value)) = it.entry() {
        backward.push((key.to_vec(), value.to_vec()));
        it.prev().unwrap();
    }
    backward.reverse();
    assert!(forward == want, "{what}: {} keys forward, {} wanted", forward.len(), want.len());
    assert!(backward == want, "{what}: backward");
    for (key, value) in want {
        let got = db.get(&family, key, ReadOptions::default()).unwrap();
        assert_eq!(got.as_deref(), Some(&value[..]), "{what}: {}", key.escape_ascii());
    }
}

fn blob_files(dir: &Path) -> usize {
    let names = Env::os().unwrap().fs.list(dir).unwrap();
    names.iter().filter(|entry| entry.name.ends_with(".blob")).count()
}

fn read_by(
    version: JudgeVersion,
    dir: &Path,
    options: &str,
    want: &[KeyValue],
    what: &str,
) -> Result<(), JudgeError> {
    let mut judge = Judge::spawn(version)?;
    judge.open(dir, Opening::ReadOnly, options)?;
    assert!(judge.dump("default")? == want, "{what}: {} reads other values", version.name());
    judge.close()
}
