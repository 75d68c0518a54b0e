//! The two small files that are replaced whole: `CURRENT`, which names the MANIFEST, and `IDENTITY`, the database id.
//!
//! A replacement is written under a temporary name, fsynced and renamed over the old file; then the directory is
//! fsynced. After any crash, a reader finds the whole old content or the whole new one.
//!
//! Source: RocksDB `file/filename.cc` (`SetCurrentFile`, `SetIdentityFile`).

use ashlar_base::planted::{Bug, planted};
use ashlar_base::{Error, FileNumber, Result};
use ashlar_env::{EntryKind, Env, Fs};
use ashlar_format::filename::{FileKind, current_content, parse_current};
use std::fmt::Write;
use std::path::Path;

/// What is larger than this, in bytes, is neither of the two files.
pub const SMALL: u64 = 4096;

/// The MANIFEST in use; `None` when there is no `CURRENT`, that is no database.
///
/// # Errors
/// `Corruption` when the content names no MANIFEST, with the candidates listed.
pub fn read_current(fs: &dyn Fs, dir: &Path) -> Result<Option<FileNumber>> {
    let path = dir.join(FileKind::Current.name());
    let Some(content) = read_small(fs, &path)? else { return Ok(None) };
    match parse_current(&content) {
        Ok(number) => Ok(Some(number)),
        Err(e) => Err(e.in_file(&path, 0).hint(candidates(fs, dir))),
    }
}

/// A hint that lists the MANIFESTs of a directory.
pub fn candidates(fs: &dyn Fs, dir: &Path) -> String {
    let names: Vec<String> = fs
        .list(dir)
        .unwrap_or_default()
        .into_iter()
        .filter(|e| matches!(FileKind::parse(&e.name), Some(FileKind::Manifest(_))))
        .map(|e| e.name)
        .collect();
    if names.is_empty() {
        "The directory holds no MANIFEST: restore it from a copy, or run \"ashlar db DIR repair --into=COPY\""
            .to_string()
    } else {
        format!(
            "Restore CURRENT to name one of the MANIFESTs there ({}), or run \"ashlar db DIR repair --into=COPY\"",
            names.join(", ")
        )
    }
}

/// How far a replacement got when it failed.
pub(super) enum SwitchFailure {
    /// The old content is in place, for sure.
    Before(Error),
    /// The new content may or may not be in place, now or after a crash.
    Unknown(Error),
}

impl SwitchFailure {
    pub(super) fn into_error(self) -> Error {
        match self {
            SwitchFailure::Before(e) | SwitchFailure::Unknown(e) => e,
        }
    }
}

/// Makes `CURRENT` name `manifest`, durably. The MANIFEST and its name must be durable already: the first sync of a log
/// syncs both. So no crash leaves a `CURRENT` that names a missing file.
pub(super) fn set_current(fs: &dyn Fs, dir: &Path, manifest: FileNumber) -> Result<(), SwitchFailure> {
    let temp = dir.join(FileKind::Temp(manifest).name());
    replace(fs, dir, &temp, &dir.join(FileKind::Current.name()), current_content(manifest).as_bytes())
}

fn replace(fs: &dyn Fs, dir: &Path, temp: &Path, target: &Path, content: &[u8]) -> Result<(), SwitchFailure> {
    let write = || {
        let file = fs.create(temp)?;
        file.write_at(content, 0)?;
        if planted(Bug::CurrentUnsynced) { Ok(()) } else { file.sync_all() }
    };
    if let Err(e) = write() {
        // Best effort: a temporary file that stays is removed by the next open.
        let _ = fs.remove(temp);
        return Err(SwitchFailure::Before(e));
    }
    let sync_dir = || if planted(Bug::CurrentDirUnsynced) { Ok(()) } else { fs.sync_dir(dir) };
    fs.rename(temp, target).and_then(|()| sync_dir()).map_err(SwitchFailure::Unknown)
}

/// The database id in `IDENTITY`, without a final newline; `None` when the file is missing, empty, or too large to be an id.
pub fn read_identity(fs: &dyn Fs, dir: &Path) -> Result<Option<String>> {
    let path = dir.join(FileKind::Identity.name());
    if oversized_identity(fs, dir)?.is_some() {
        return Ok(None);
    }
    let Some(content) = read_small(fs, &path)? else { return Ok(None) };
    let text = String::from_utf8_lossy(&content);
    let id = text.strip_suffix('\n').unwrap_or(&text);
    Ok((!id.is_empty()).then(|| id.to_string()))
}

/// The bytes of an `IDENTITY` that is too large to name a database; `None`: it is not too large, or is missing.
pub fn oversized_identity(fs: &dyn Fs, dir: &Path) -> Result<Option<u64>> {
    let there = fs.metadata(&dir.join(FileKind::Identity.name()))?;
    Ok(there.filter(|entry| entry.kind == EntryKind::File && entry.len > SMALL).map(|entry| entry.len))
}

/// Writes `IDENTITY`, durably.
pub fn write_identity(fs: &dyn Fs, dir: &Path, id: &str) -> Result<()> {
    write_small(fs, dir, &FileKind::Identity.name(), id.as_bytes())
}

/// Writes the whole of a small file of `dir`, durably.
pub fn write_small(fs: &dyn Fs, dir: &Path, name: &str, content: &[u8]) -> Result<()> {
    let temp = dir.join(FileKind::Temp(FileNumber(0)).name());
    replace(fs, dir, &temp, &dir.join(name), content).map_err(SwitchFailure::into_error)
}

/// A new database id: a random UUID in lower-case text.
pub fn new_db_id(env: &Env) -> String {
    let (high, low) = (env.rand.next_u64(), env.rand.next_u64());
    let bits = (u128::from(high) << 64) | u128::from(low);
    // Version 4 (random), variant 1, as RFC 9562 places them.
    let bits = bits & !(0xf << 76) | (0x4 << 76);
    let bits = bits & !(0x3 << 62) | (0x2 << 62);
    let digits = format!("{bits:032x}");
    let mut id = String::with_capacity(36);
    for (i, c) in digits.chars().enumerate() {
        if matches!(i, 8 | 12 | 16 | 20) {
            id.push('-');
        }
        let _ = id.write_char(c);
    }
    id
}

/// The whole of a small file; `None` when it is not there.
pub fn read_small(fs: &dyn Fs, path: &Path) -> Result<Option<Vec<u8>>> {
    let file = match fs.open_read(path) {
        Ok(file) => file,
        Err(e) if e.is_not_found() => return Ok(None),
        Err(e) => return Err(e),
    };
    if file.len() > SMALL {
        let what = format!("file has {} bytes, {SMALL} are the most it may have", file.len());
        return Err(Error::corruption(what).at(path, 0));
    }
    let mut content = vec![0; usize::try_from(file.len()).unwrap_or(0)];
    file.read_exact_at(&mut content, 0)?;
    Ok(Some(content))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn current_and_identity_come_back() {
        let env = Env::mem();
        let dir = Path::new("/db");
        env.fs.create_dir_all(dir).unwrap();
        assert_eq!(read_current(&*env.fs, dir).unwrap(), None);
        set_current(&*env.fs, dir, FileNumber(5)).map_err(SwitchFailure::into_error).unwrap();
        assert_eq!(read_current(&*env.fs, dir).unwrap(), Some(FileNumber(5)));
        assert_eq!(read_identity(&*env.fs, dir).unwrap(), None);
        write_identity(&*env.fs, dir, "some id").unwrap();
        assert_eq!(read_identity(&*env.fs, dir).unwrap().as_deref(), Some("some id"));
        let names: Vec<_> = env.fs.list(dir).unwrap().into_iter().map(|e| e.name).collect();
        assert_eq!(names, ["CURRENT", "IDENTITY"], "no temporary file stays");
    }

    #[test]
    fn an_identity_that_is_too_large_names_nothing() {
        let env = Env::mem();
        let dir = Path::new("/db");
        env.fs.create_dir_all(dir).unwrap();
        for (len, named) in [(SMALL, true), (SMALL + 1, false)] {
            let content = vec![b'x'; usize::try_from(len).unwrap()];
            env.fs.create(&dir.join("IDENTITY")).unwrap().write_at(&content, 0).unwrap();
            assert_eq!(read_identity(&*env.fs, dir).unwrap().is_some(), named);
        }
        assert_eq!(oversized_identity(&*env.fs, dir).unwrap(), Some(SMALL + 1));
        write_identity(&*env.fs, dir, "some id").unwrap();
        assert_eq!(read_identity(&*env.fs, dir).unwrap().as_deref(), Some("some id"));
    }

    #[test]
    fn a_damaged_current_lists_the_candidates() {
        let env = Env::mem();
        let dir = Path::new("/db");
        env.fs.create_dir_all(dir).unwrap();
        env.fs.create(&dir.join("MANIFEST-000007")).unwrap();
        for bad in [&b""[..], b"MANIFEST-000007", b"MANIFEST-x\n", &[b'x'; 5000]] {
            env.fs.create(&dir.join("CURRENT")).unwrap().write_at(bad, 0).unwrap();
            let e = read_current(&*env.fs, dir).unwrap_err();
            assert!(e.is_corruption(), "{e}");
            assert_eq!(e.path(), Some(&*dir.join("CURRENT")));
            if bad.len() < 100 {
                assert!(e.to_string().contains("MANIFEST-000007"), "{e}");
            }
        }
    }

    #[test]
    fn ids_are_random_uuids() {
        let env = Env::mem();
        let (a, b) = (new_db_id(&env), new_db_id(&env));
        assert_ne!(a, b);
        assert_eq!(a.len(), 36);
        assert_eq!(a.as_bytes()[14], b'4', "{a}");
        assert!(matches!(a.as_bytes()[19], b'8' | b'9' | b'a' | b'b'), "{a}");
    }
}
