//! Whether a database directory is a copy whose original still exists.
//!
//! The OPTIONS file of a copy names the `wal_dir` of the original. An open of the copy that replayed, wrote and removed
//! WAL files there would take the original's writes. RocksDB leaves no mark in a `wal_dir`, so the original is searched
//! for in three places:
//! 1. `OWNER` in the `wal_dir` (see [`super::owner`]). If it names the opened directory itself, the search ends.
//! 2. The directory above the `wal_dir`, where the `wal_dir` is inside the database directory.
//! 3. The info log, which is copied too: RocksDB writes the path of its directory into the first lines.
//!
//! A directory counts as the original if it holds a database with the same id. A moved database leaves no original.

use super::info_log;
use super::owner::{Owner, id_of};
use ashlar_base::Result;
use ashlar_env::Fs;
use ashlar_format::filename::FileKind;
use ashlar_tree::files::same_directory;
use std::path::{Path, PathBuf};

/// If the database in `dir` is a copy: the original's directory, to which `wal_dir` belongs.
///
/// # Errors
/// `Io`.
pub(super) fn original_of(fs: &dyn Fs, dir: &Path, wal_dir: &Path) -> Result<Option<PathBuf>> {
    let Some(id) = id_of(fs, dir)? else { return Ok(None) };
    let owner = Owner::read(fs, wal_dir)?.map(|owner| PathBuf::from(owner.dir));
    if owner.as_ref().is_some_and(|owner| same_directory(fs, dir, owner)) {
        return Ok(None);
    }
    let above = wal_dir.parent().map(Path::to_path_buf);
    for place in owner.into_iter().chain(above).chain(info_log::read(fs, dir)?.directory) {
        let is_database = matches!(fs.metadata(&place.join(FileKind::Current.name())), Ok(Some(_)));
        if is_database && !same_directory(fs, dir, &place) && id_of(fs, &place)?.as_ref() == Some(&id) {
            return Ok(Some(place));
        }
    }
    Ok(None)
}
