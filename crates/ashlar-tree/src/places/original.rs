//! To which database the WAL files in a stored `wal_dir` belong.
//!
//! The OPTIONS file of a copy, a checkpoint or a restored backup names the `wal_dir` of the original. An open that replayed, wrote
//! and removed WAL files there would take the original's writes. RocksDB leaves no mark in a `wal_dir`. So the WAL files
//! count as those of the opened directory only with a proof:
//! 1. `OWNER` in the `wal_dir` (see [`super::owner`]) names the directory, or one that is no database any more.
//! 2. The `wal_dir` is inside the directory.
//! 3. An info log of RocksDB, in the directory or in its `db_log_dir`, says that RocksDB opened this directory with this `wal_dir`.
//!    A log that came with a copy names the original's directory. If that one still is the same database, the opened
//!    directory is a copy. If it is another database that uses the same `wal_dir`, the WAL files may be those of that database. If it
//!    does not exist, the database was moved.
//!
//! A relative path means another directory in every working directory: there the info log proves nothing.

use super::info_log;
use super::namespace::{same_directory, whole};
use super::owner::{Owner, id_of};
use super::stored_places::names;
use ashlar_base::Result;
use ashlar_env::Fs;
use ashlar_format::filename::FileKind;
use ashlar_format::info_log::InfoLogHead;
use ashlar_options::StoredPlaces;
use std::path::{Path, PathBuf};

/// The database that uses a `wal_dir`.
#[derive(Debug)]
pub(super) enum User {
    /// The one that is opened.
    This,
    /// The one in this directory, of which the opened one is a copy.
    Original(PathBuf),
    /// Another one, in this directory.
    Other(PathBuf),
    /// Nothing proves that it is the opened one.
    Unknown,
}

/// The database that uses `wal_dir`, which the files of the database in `dir` name.
///
/// # Errors
/// `Io`.
pub(super) fn user_of(
    fs: &dyn Fs,
    dir: &Path,
    wal_dir: &Path,
    stored: Option<&StoredPlaces>,
) -> Result<User> {
    if let Some(owner) = Owner::read(fs, wal_dir)? {
        let owner = PathBuf::from(owner.dir);
        // A database that has left the directory: `Claimant` decides by the ids.
        return Ok(other_in(fs, dir, &owner, || Ok(false))?.unwrap_or(User::This));
    }
    if let Some(above) = wal_dir.parent() {
        if same_directory(fs, dir, above) {
            return Ok(User::This);
        }
        if let Some(other) = other_in(fs, dir, above, || Ok(true))? {
            return Ok(other);
        }
    }
    let named = stored.into_iter().flat_map(StoredPlaces::wal_dirs);
    if named.filter(|named| whole(named) == whole(wal_dir)).any(Path::is_relative) {
        return Ok(User::Unknown);
    }
    let is_here = |head: &InfoLogHead| {
        head.directory.is_some()
            && head.wal_dir.as_ref().is_some_and(|named| same_directory(fs, wal_dir, Path::new(named)))
    };
    let log_dir = stored.and_then(|stored| stored.db_log_dir.as_ref()).into_iter();
    let elsewhere = log_dir.flat_map(|log_dir| info_log::heads_elsewhere(fs, dir, Path::new(log_dir)));
    let mut heads = info_log::heads(fs, dir)?.chain(elsewhere);
    let Some(InfoLogHead { directory: Some(place), .. }) = heads.find(is_here) else {
        return Ok(User::Unknown);
    };
    Ok(other_in(fs, dir, &place, || names(fs, &place, wal_dir))?.unwrap_or(User::This))
}

/// The database in `place`, if there is one beside that in `dir`: the original of a copy, or another one for which `uses` holds.
fn other_in(
    fs: &dyn Fs,
    dir: &Path,
    place: &Path,
    uses: impl FnOnce() -> Result<bool>,
) -> Result<Option<User>> {
    if !is_database(fs, place) || same_directory(fs, dir, place) {
        return Ok(None);
    }
    let id = id_of(fs, dir)?;
    if id.is_some() && id_of(fs, place)? == id {
        return Ok(Some(User::Original(place.to_path_buf())));
    }
    Ok(uses()?.then(|| User::Other(place.to_path_buf())))
}

/// The database of which the one in `dir` is a copy by its info log, with the directories of that one's tables.
///
/// # Errors
/// `Io`.
pub(super) fn original_of(fs: &dyn Fs, dir: &Path) -> Result<Option<(PathBuf, Vec<PathBuf>)>> {
    for head in info_log::heads(fs, dir)? {
        let Some(place) = head.directory else { continue };
        if let Some(User::Original(original)) = other_in(fs, dir, &place, || Ok(false))? {
            return Ok(Some((original, head.tables)));
        }
    }
    Ok(None)
}

fn is_database(fs: &dyn Fs, place: &Path) -> bool {
    matches!(fs.metadata(&place.join(FileKind::Current.name())), Ok(Some(_)))
}
