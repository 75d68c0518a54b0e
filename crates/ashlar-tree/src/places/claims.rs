//! Which database a directory of WAL files or tables belongs to, if it is not the database directory.
//!
//! Two databases in one directory give out the same file numbers: each would replace and remove the other's files.
//! `LOCK` separates them only while both are open. So each open for writing leaves a file `OWNER` in such a directory.
//!
//! 1. If the owner's OPTIONS file still names the directory, the owner keeps it: the open is refused. That holds also
//!    for the original of a copied database directory, which has the same id.
//! 2. Otherwise an owner with the same id was moved, or its directory was copied with it: the directory is taken over.
//! 3. If the owner has another id and files are there, the open is refused, and the files are not touched. That
//!    database may have been moved.
//! 4. RocksDB leaves no `OWNER`. Without one, the MANIFEST decides. If it names some of the tables and blob files, the
//!    rest moves to `lost/` once, instead of being removed. If it names none, the tables decide, because each stores
//!    its database's id. A killed database leaves tables that the MANIFEST does not name, and unfinished tables, which
//!    prove nothing. Tables of an unsupported kind prove nothing either, if the OPTIONS file asks for such tables: the
//!    open then only reads.
//!    If the info log shows that the opened directory is a copy, the original keeps the directories of its tables.
//! 5. A new database takes no directory that holds WAL files, tables or blob files.

use super::namespace::{same_directory, whole};
use super::original::original_of;
use super::owner::{OWNER, Owner};
use super::stored_places::names;
use crate::unwritable::unread_factory;
use crate::version::{Replayed, read_identity};
use ashlar_base::{Error, ErrorKind, FileNumber, Result};
use ashlar_blob::BlobReader;
use ashlar_env::Fs;
use ashlar_format::filename::FileKind;
use ashlar_options::read_latest_options;
use ashlar_table::Anatomy;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The database that is being opened.
pub(super) struct Claimant {
    /// The database id; `None`: the database is new, or nothing stores its id.
    id: Option<String>,
    /// The absolute path of the database directory.
    dir: String,
    /// The tables and blob files that the MANIFEST names; `None`: the database is new.
    named: Option<BTreeSet<FileNumber>>,
    /// The database is being repaired: the MANIFEST may be lost.
    repairs: bool,
    /// The OPTIONS file asks for tables of an unsupported kind.
    has_unread_tables: bool,
    /// The database of which this one is a copy, and the directories of that one's tables.
    original: Option<(PathBuf, Vec<PathBuf>)>,
}

impl Claimant {
    pub(super) fn new(
        fs: &dyn Fs,
        dir: &Path,
        replayed: Option<&Replayed>,
        repairs: bool,
    ) -> Result<Claimant> {
        let told = replayed.and_then(|replayed| replayed.db.db_id.clone());
        let id = told.map_or_else(|| read_identity(fs, dir), |id| Ok(Some(id)))?;
        let named = replayed.map(|replayed| {
            let trees = || replayed.families.values().map(|family| &family.tree);
            trees().flat_map(|tree| tree.table_numbers().chain(tree.blob_numbers())).collect()
        });
        let options = read_latest_options(fs, dir).ok().flatten();
        let has_unread_tables =
            options.is_some_and(|(_, file)| file.sections.iter().any(|s| unread_factory(s).is_some()));
        let original = original_of(fs, dir)?;
        let dir = whole(dir).to_string_lossy().into_owned();
        Ok(Claimant { id, dir, named, repairs, has_unread_tables, original })
    }

    /// Checks that the directory may be used; `is_own` recognises the database directory by any of its names. True: the
    /// directory holds files that the MANIFEST does not name and that must not be removed.
    ///
    /// # Errors
    /// `InvalidArgument` naming the setting: the directory belongs to another database. `Io`.
    pub(super) fn check(
        &self,
        fs: &dyn Fs,
        (place, setting): (&Path, &str),
        is_own: &dyn Fn(&Path) -> bool,
    ) -> Result<bool> {
        let owner = Owner::read(fs, place)?;
        if let Some(owner) = &owner {
            let same = Some(&owner.id) == self.id.as_ref();
            if same && owner.dir == self.dir {
                return Ok(false);
            }
            let dir = Path::new(&owner.dir);
            if owner.dir != self.dir && uses(fs, owner, place)? && !is_own(dir) {
                return Err(foreign(place, setting, &format!("the database in {}", owner.dir)));
            }
            if same {
                return Ok(false);
            }
        }
        if let (None, Some((original, tables))) = (&owner, &self.original)
            && tables.iter().any(|named| same_directory(fs, place, named))
        {
            let whose = format!("the database in {}, of which this one is a copy", original.display());
            return Err(foreign(place, setting, &whose));
        }
        let files = self.files(fs, place)?;
        let known = |number: &FileNumber| self.named.as_ref().is_some_and(|named| named.contains(number));
        match owner.filter(|owner| owner.dir != self.dir && !files.is_empty()) {
            Some(owner) => Err(foreign(place, setting, &format!("a database that was in {}", owner.dir))),
            None if self.repairs || files.iter().all(known) => Ok(false),
            None if files.iter().any(known) || self.left_behind(fs, place)? => Ok(true),
            None => Err(foreign(place, setting, "another database, by the files in it")),
        }
    }

    /// The numbers of the files that identify the directory's database. Empty files are skipped, because a crash leaves
    /// such files.
    fn files(&self, fs: &dyn Fs, place: &Path) -> Result<BTreeSet<FileNumber>> {
        let is_new = self.named.is_none();
        let entries = fs.files(place)?.into_iter().filter(|entry| entry.len > 0);
        Ok(entries
            .filter_map(|entry| match FileKind::parse_exact(&entry.name)? {
                FileKind::Table(n) | FileKind::LevelDbTable(n) | FileKind::Blob(n) => Some(n),
                FileKind::Wal(n) if is_new => Some(n),
                _ => None,
            })
            .collect())
    }

    /// Whether this database left the tables of a directory when it was killed: every table with an id has this
    /// database's id. An unfinished table or blob file proves nothing.
    fn left_behind(&self, fs: &dyn Fs, place: &Path) -> Result<bool> {
        let (mut own, mut without_id) = (false, false);
        for entry in fs.files(place)?.into_iter().filter(|entry| entry.len > 0) {
            let path = place.join(&entry.name);
            match FileKind::parse_exact(&entry.name) {
                Some(FileKind::Table(_) | FileKind::LevelDbTable(_)) => match self.id_of_table(fs, &path)? {
                    Some(Some(id)) if Some(&id) == self.id.as_ref() => own = true,
                    Some(Some(_)) => return Ok(false),
                    Some(None) => without_id = true,
                    None => {}
                },
                Some(FileKind::Blob(number)) => without_id |= is_whole_blob_file(fs, &path, number)?,
                Some(FileKind::Wal(_)) if self.named.is_none() => without_id = true,
                _ => {}
            }
        }
        Ok(own || self.named.is_some() && !without_id)
    }

    /// The database id that a table stores, if it stores one. The outer `None`: the table proves nothing, because it is
    /// unfinished, damaged, or of an unsupported kind.
    fn id_of_table(&self, fs: &dyn Fs, path: &Path) -> Result<Option<Option<String>>> {
        match Anatomy::open(fs.open_read(path)?).and_then(|table| table.properties().cloned()) {
            Ok(properties) => Ok(Some(properties.db_id)),
            Err(e) if e.is_corruption() => Ok(None),
            Err(e) if e.kind() == ErrorKind::NotSupported => Ok((!self.has_unread_tables).then_some(None)),
            Err(e) => Err(e),
        }
    }

    fn owner(&self) -> Option<Owner> {
        self.id.clone().map(|id| Owner { id, dir: self.dir.clone() })
    }

    /// Writes `OWNER` into a directory that may be used.
    pub(super) fn claim(&self, claims: &mut Claims, place: &Path) -> Result<()> {
        let Some(owner) = self.owner() else { return Ok(()) };
        let before = Owner::read(&*claims.fs, place)?;
        if before.as_ref() == Some(&owner) {
            return Ok(());
        }
        claims.former.push((place.to_path_buf(), before));
        owner.write(&*claims.fs, place)
    }
}

/// Makes the open database in `dir` the owner of a directory that it begins to use. Tables and blob files in it go if the
/// database was the owner before: it did not know the directory, so none of them is needed. A crash in the middle of an
/// import can leave such files, and later files may have their numbers.
///
/// # Errors
/// `InvalidArgument`: the directory holds files of another database. `Io`.
pub fn claim_new_place(fs: &dyn Fs, dir: &Path, place: &Path) -> Result<()> {
    let claimant = Claimant::new(fs, dir, None, false)?;
    claimant.check(fs, (place, "cf_paths"), &|other| same_directory(fs, dir, other))?;
    let Some(owner) = claimant.owner() else { return Ok(()) };
    if Owner::read(fs, place)?.as_ref() != Some(&owner) {
        return owner.write(fs, place);
    }
    let left =
        |name: &str| matches!(FileKind::parse_exact(name), Some(FileKind::Table(_) | FileKind::Blob(_)));
    for file in fs.files(place)?.iter().filter(|file| left(&file.name)) {
        fs.remove(&place.join(&file.name))?;
    }
    fs.sync_dir(place)
}

/// Refuses a directory without a database of its own in which another database keeps WAL files or tables.
///
/// # Errors
/// `InvalidArgument` naming that database. `Io`.
pub fn refuse_of_another(fs: &dyn Fs, dir: &Path) -> Result<()> {
    let Some(owner) = Owner::read(fs, dir)? else { return Ok(()) };
    let has_manifest = || -> Result<bool> {
        let mut names = fs.files(dir)?.into_iter().map(|file| file.name);
        Ok(names.any(|name| matches!(FileKind::parse(&name), Some(FileKind::Manifest(_)))))
    };
    if same_directory(fs, dir, Path::new(&owner.dir)) || has_manifest()? || !uses(fs, &owner, dir)? {
        return Ok(());
    }
    let what =
        format!("this directory has files of the database in {}, and no database of its own", owner.dir);
    Err(Error::invalid(what).at_path(dir).hint("Name the directory of that database"))
}

/// The `OWNER` files that an open has written. An open that is refused or becomes read-only leaves the directories
/// unchanged: if dropped before [`Claims::stand`], each file is restored.
pub struct Claims {
    fs: Arc<dyn Fs>,
    /// The directories, with the previous content of their `OWNER`.
    former: Vec<(PathBuf, Option<Owner>)>,
    /// A directory holds files of unknown origin, which must not be removed.
    pub strays: bool,
}

impl Claims {
    pub(super) fn new(fs: &Arc<dyn Fs>) -> Claims {
        Claims { fs: Arc::clone(fs), former: Vec::new(), strays: false }
    }

    /// Keeps the `OWNER` files: the open writes to the directories from here on.
    pub fn stand(&mut self) {
        self.former.clear();
    }
}

impl Drop for Claims {
    /// A failed restore is ignored: `OWNER` then names the database that had the locks.
    fn drop(&mut self) {
        for (place, former) in self.former.drain(..) {
            let _ = match former {
                Some(owner) => owner.write(&*self.fs, &place),
                None => self.fs.remove(&place.join(OWNER)),
            };
        }
    }
}

fn is_whole_blob_file(fs: &dyn Fs, path: &Path, number: FileNumber) -> Result<bool> {
    match BlobReader::open(fs.open_read(path)?, number, None, None) {
        Ok(_) => Ok(true),
        Err(e) if e.is_corruption() => Ok(false),
        Err(e) => Err(e),
    }
}

/// Whether the database of `owner` is in the directory that `OWNER` names, and uses `place`.
fn uses(fs: &dyn Fs, owner: &Owner, place: &Path) -> Result<bool> {
    let dir = PathBuf::from(&owner.dir);
    let there = fs.metadata(&dir.join(FileKind::Current.name()));
    if !matches!(there, Ok(Some(_))) || read_identity(fs, &dir)?.as_ref() != Some(&owner.id) {
        return Ok(false);
    }
    names(fs, &dir, place)
}

fn foreign(place: &Path, setting: &str, whose: &str) -> Error {
    let what = format!("{setting} is {}, which belongs to {whose}", place.display());
    Error::invalid(what).hint(
        "Each database needs directories of its own. If that database is gone, move its files and OWNER away from there",
    )
}
