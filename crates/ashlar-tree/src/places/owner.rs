//! The file `OWNER`, which an open for writing leaves in a directory of WAL files or tables beside the database directory:
//! the database id, and in the next line the path of the database directory. RocksDB does not know the file and leaves
//! it alone. `claims` has the rules.

use crate::version::{Replayed, read_identity, read_manifest_beside, read_small, write_small};
use ashlar_base::{ErrorKind, Result};
use ashlar_env::Fs;
use std::path::Path;

/// The name of the file.
pub(super) const OWNER: &str = "OWNER";

/// A database, as `OWNER` names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) id: String,
    pub(super) dir: String,
}

impl Owner {
    /// The owner of `place`; `None`: the file is not there, or is not whole.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn read(fs: &dyn Fs, place: &Path) -> Result<Option<Owner>> {
        let Some(content) = read_small(fs, &place.join(OWNER))? else { return Ok(None) };
        let text = String::from_utf8_lossy(&content);
        let named = text.strip_suffix('\n').and_then(|text| text.split_once('\n'));
        Ok(named.map(|(id, dir)| Owner { id: id.to_owned(), dir: dir.to_owned() }))
    }

    /// Makes this database the owner of `place`.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn write(&self, fs: &dyn Fs, place: &Path) -> Result<()> {
        write_small(fs, place, OWNER, format!("{}\n{}\n", self.id, self.dir).as_bytes())
    }
}

/// The id of the database in `dir`, from its MANIFEST or its `IDENTITY` file; `None`: neither stores one.
///
/// # Errors
/// `Io`.
pub(super) fn id_of(fs: &dyn Fs, dir: &Path) -> Result<Option<String>> {
    match read_manifest_beside(fs, dir) {
        Ok((_, Replayed { db, .. })) if db.db_id.is_some() => Ok(db.db_id),
        Err(e) if matches!(e.kind(), ErrorKind::Io(_)) => Err(e),
        _ => read_identity(fs, dir),
    }
}
