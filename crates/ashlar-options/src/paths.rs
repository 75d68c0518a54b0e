//! Directories of tables: `db_paths` and `cf_paths` as settings, and the choice of a directory for a level's tables.
//!
//! 1. A family's list is its `cf_paths`; without those the database's `db_paths`; without those the database directory.
//! 2. The MANIFEST names a table's directory by its index in that list, so the order of a list must not change.
//! 3. RocksDB's OPTIONS files do not hold these lists. Ours hold them in the comment block that RocksDB skips.
//!
//! Source: RocksDB `include/rocksdb/options.h` (`DbPath`), `db/compaction/compaction_picker_level.cc` (`GetPathId`).

use super::CompactionOptions;
use super::names::{Value, Wrong};
use ashlar_base::{Error, Result};
use ashlar_format::options_file::split_object;
use std::path::{Path, PathBuf};

/// The greatest number of directories that RocksDB accepts.
const PATHS_MAX: usize = 4;

/// A directory for tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DbPath {
    /// The directory.
    pub path: PathBuf,
    /// The target size of the tables there, in bytes. Levels that do not fit go to the next directory; the last directory
    /// takes the rest.
    pub target_bytes: u64,
}

impl DbPath {
    /// A directory with a target size of `target_bytes` bytes.
    pub fn new(path: impl Into<PathBuf>, target_bytes: u64) -> DbPath {
        DbPath { path: path.into(), target_bytes }
    }
}

/// # Errors
/// `InvalidArgument`: there are too many paths, a path is empty, or a line of a file cannot hold it.
pub(super) fn validate(option: &str, paths: &[DbPath]) -> Result<()> {
    if paths.len() > PATHS_MAX {
        return Err(Error::invalid(format!(
            "{option} lists {} directories, the most is {PATHS_MAX}",
            paths.len()
        )));
    }
    for path in paths {
        validate_path(option, &path.path.to_string_lossy())?;
        if path.path.as_os_str().is_empty() {
            return Err(Error::invalid(format!("{option} has an empty path")));
        }
    }
    Ok(())
}

/// Whether a line of an OPTIONS file gives the text back as it is.
pub(super) fn fits_a_line(text: &str) -> bool {
    text.trim() == text && !text.contains(['\n', '\r'])
}

/// # Errors
/// `InvalidArgument`: the path does not come back from a line of an OPTIONS file.
pub(super) fn validate_path(option: &str, path: &str) -> Result<()> {
    if fits_a_line(path) && !path.contains(char::REPLACEMENT_CHARACTER) {
        return Ok(());
    }
    let what =
        format!("{option}={path:?}: a path with line breaks, blanks at its ends, or bytes that are no UTF-8");
    Err(Error::invalid(what).hint("Name a directory that an OPTIONS file can hold"))
}

/// The directory of a list for the tables of `level`: levels fill the directories in order, by their target sizes.
/// Level 0 counts as large as level 1.
#[expect(clippy::cast_possible_truncation, reason = "a size is at most what is left")]
pub fn path_of_level(paths: &[DbPath], level: u8, shape: &CompactionOptions) -> usize {
    let last = paths.len().saturating_sub(1);
    let (mut at, mut left) = (0, paths.first().map_or(u64::MAX, |p| p.target_bytes));
    let (mut filled, mut size) = (0_u8, shape.base_level_bytes as f64);
    while at < last {
        if size > left as f64 {
            at += 1;
            left = paths.get(at).map_or(u64::MAX, |p| p.target_bytes);
            continue;
        }
        if filled == level {
            break;
        }
        left -= size as u64;
        if filled > 0 {
            size *= shape.level_multiplier;
        }
        filled += 1;
    }
    at
}

/// `{{path=/fast;target_size=10G}:{path=/slow;target_size=1T}}`, with or without the outer braces: how RocksDB writes a list
/// of structs.
impl Value for Vec<DbPath> {
    fn parse(text: &str) -> std::result::Result<Self, Wrong> {
        let text = text.trim();
        let list = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
        let list = list.filter(|inner| inner.trim_start().starts_with('{') || inner.trim().is_empty());
        list.unwrap_or(text).split_inclusive('}').filter(|part| !part.trim().is_empty()).map(one).collect()
    }

    fn show(&self) -> String {
        let one = |p: &DbPath| format!("{{path={};target_size={}}}", p.path.display(), p.target_bytes);
        self.iter().map(one).collect::<Vec<_>>().join(":")
    }
}

fn one(text: &str) -> std::result::Result<DbPath, Wrong> {
    let wrong = || format!("{text:?} is no {{path=DIRECTORY;target_size=BYTES}}");
    let object = text.trim().trim_start_matches(':').trim_start();
    if !object.starts_with('{') {
        return Err(wrong());
    }
    let members = split_object(object).map_err(|_| wrong())?;
    let (mut path, mut target_bytes) = (None, u64::MAX);
    for (name, value) in members {
        match name.as_str() {
            "path" => path = Some(PathBuf::from(value)),
            "target_size" => target_bytes = u64::parse(&value)?,
            _ => return Err(wrong()),
        }
    }
    Ok(DbPath { path: path.ok_or_else(wrong)?, target_bytes })
}

/// The lines of the engine's comment block in an OPTIONS file: `db_path=BYTES DIRECTORY`, `cf_path=FAMILY BYTES
/// DIRECTORY`.
pub(super) fn own_lines(db: &[DbPath], families: &[(&str, &[DbPath])]) -> Vec<(String, String)> {
    let line = |p: &DbPath| format!("{} {}", p.target_bytes, p.path.display());
    let mut lines: Vec<_> = db.iter().map(|p| ("db_path".to_owned(), line(p))).collect();
    for (name, paths) in families {
        let word = encoded(name);
        lines.extend(paths.iter().map(|p| ("cf_path".to_owned(), format!("{word} {}", line(p)))));
    }
    lines
}

/// Reads a line of [`own_lines`]: the family, `None` for the database, and the path. `None`: not such a line.
pub(super) fn own_line(name: &str, value: &str) -> Option<(Option<String>, DbPath)> {
    let (family, rest) = match name {
        "db_path" => (None, value),
        "cf_path" => {
            let (family, rest) = value.split_once(' ')?;
            (Some(decoded(family)?), rest)
        }
        _ => return None,
    };
    let (bytes, path) = rest.split_once(' ')?;
    Some((family, DbPath::new(Path::new(path), bytes.parse().ok()?)))
}

/// A family's name as one word: `%` and two digits for all bytes except letters, digits, `_`, `-` and `.`; `%` alone is the empty name.
fn encoded(name: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
    let word: String = name
        .bytes()
        .map(|b| if plain(b) { char::from(b).to_string() } else { format!("%{b:02x}") })
        .collect();
    if word.is_empty() { "%".to_owned() } else { word }
}

fn decoded(word: &str) -> Option<String> {
    if word == "%" {
        return Some(String::new());
    }
    let mut parts = word.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(part.get(..2)?, 16).ok()?);
        bytes.extend_from_slice(part.get(2..)?.as_bytes());
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_return() {
        let parse = Vec::<DbPath>::parse;
        let two = vec![DbPath::new("/fast:1", 10 << 30), DbPath::new("/slow", u64::MAX)];
        assert_eq!(parse("{{path=/fast:1;target_size=10G}:{path=/slow}}"), Ok(two.clone()));
        assert_eq!(parse(&two.show()), Ok(two));
        assert_eq!(parse(""), Ok(Vec::new()));
        for wrong in ["/fast", "{path=/a;size=3}", "{target_size=3}", "{path=/a;target_size=x}"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn lines_of_our_block_return() {
        let (db, family) = ([DbPath::new("/a b", 7)], [DbPath::new("/c=d", u64::MAX)]);
        let lines = own_lines(&db, &[("", &family), ("x %y\n", &family)]);
        let read: Vec<_> = lines.iter().map(|(name, value)| own_line(name, value).unwrap()).collect();
        assert_eq!(read[0], (None, db[0].clone()));
        assert_eq!(read[1], (Some(String::new()), family[0].clone()));
        assert_eq!(read[2], (Some("x %y\n".to_owned()), family[0].clone()));
    }

    #[test]
    fn levels_fill_the_directories_in_order() {
        let shape = CompactionOptions {
            base_level_bytes: 100,
            level_multiplier: 10.0,
            ..CompactionOptions::default()
        };
        let of = |sizes: &[u64]| -> Vec<usize> {
            let paths: Vec<_> = sizes.iter().map(|n| DbPath::new("/p", *n)).collect();
            (0..5).map(|level| path_of_level(&paths, level, &shape)).collect()
        };
        assert_eq!(of(&[5]), [0; 5]);
        assert_eq!(of(&[250, 1]), [0, 0, 1, 1, 1], "levels 0 and 1 are 100 bytes each, level 2 is 1000");
        assert_eq!(of(&[99, 1100, 1]), [1, 1, 2, 2, 2]);
        assert_eq!(of(&[0, 0, 0]), [2; 5]);
    }
}
