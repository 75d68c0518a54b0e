//! Determines the directories of a database: see [`enter`].
//!
//! [`super::log_places`] determines which WAL files count, and from which directory.
//!
//! Rules for tables. RocksDB's OPTIONS files do not name `db_paths` and `cf_paths`.
//! 1. RocksDB writes `wal_dir` as the database directory itself only if the first of `db_paths` is another directory,
//!    or if the user spelled the two differently. Its info log names the directories of `db_paths`, but not those of
//!    `cf_paths`. Tables in the database directory prove that there are no others. Without a table there, a database with
//!    either sign of `db_paths` is not opened for writing.
//! 2. A table must be in the directory that the MANIFEST says, by its index in the family's list.
//! 3. A relative path of the caller is resolved against the working directory at the open, before anything uses or
//!    stores it. A stored relative table path has no known base and is refused.

use super::claims::{Claimant, Claims};
use super::given::{PlaceSettings, Purpose};
use super::info_log;
use super::log_places::{Choice, Logs};
use super::namespace::{Places, same_directory, whole};
use super::original::{User, user_of};
use super::stored_places::newest_places;
use crate::files::make_directory;
use crate::version::{Replayed, read_manifest_beside};
use ashlar_base::{Error, ErrorKind, FileNumber, Result};
use ashlar_env::{Env, FileLock, Fs, FsEntry};
use ashlar_format::filename::FileKind;
use ashlar_format::version_edit::NewFile;
use ashlar_options::{
    DbPath, StoredPlaces, note_next_wal_dir, note_paths, read_latest_options, write_options_file,
};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A database whose directories are known.
#[derive(Debug)]
pub struct Entered {
    /// The environment whose file system finds each file in its directory.
    pub env: Env,
    /// That file system.
    pub places: Arc<Places>,
    /// The effective directories: the given settings, completed by the stored ones.
    pub settings: PlaceSettings,
    /// `db_log_dir` of the OPTIONS file, if that directory exists.
    pub db_log_dir: Option<String>,
    /// Notes for the recovery report.
    pub notes: Vec<String>,
    /// The settings that the caller gave: their directories may be created.
    given: PlaceSettings,
    stored: StoredPlaces,
    /// Why there must be `db_paths`, if none are known.
    hidden: Option<String>,
    purpose: Purpose,
    dir: PathBuf,
    /// The file system without [`Entered::places`]: each directory shows only its own files.
    plain: Arc<dyn Fs>,
    /// The further directories, each with its setting, once they are occupied.
    beside: Vec<(PathBuf, &'static str)>,
}

/// Determines the directories of the database in `dir`. Reads only.
///
/// # Errors
/// `InvalidArgument` naming `wal_dir` or `db_paths`: see the module. `Io`.
pub fn enter(env: &Env, dir: &Path, given: &PlaceSettings, purpose: Purpose) -> Result<Entered> {
    let fs = &*env.fs;
    let mut notes = Vec::new();
    let stored = match fs.metadata(dir)? {
        Some(_) => newest_places(fs, dir, purpose, &mut notes)?,
        None => Some(StoredPlaces::default()),
    };
    let is_told = stored.is_some();
    let stored = stored.unwrap_or_default();
    let given = &given.clone().absolute()?;
    let mut settings = given.clone();
    if settings.db_paths.is_empty() {
        settings.db_paths.clone_from(&stored.db_paths);
    }
    for (family, paths) in &stored.cf_paths {
        settings.cf_paths.entry(family.clone()).or_insert_with(|| paths.clone());
    }
    settings.cf_paths.retain(|_, paths| !paths.is_empty());
    refuse_relative("db_paths", &settings.db_paths).map_err(|e| e.at_path(dir))?;
    let own = || settings.cf_paths.values();
    own().try_for_each(|paths| refuse_relative("cf_paths", paths)).map_err(|e| e.at_path(dir))?;
    let of_logs = log_directories(fs, dir, &given.wal_dir, is_told.then_some(&stored), purpose);
    let Choice { write, former, notes: of_logs } = of_logs.map_err(|e| e.at_path(dir))?;
    notes.extend(of_logs);
    settings.wal_dir = write.as_ref().map(|dir| whole(dir).display().to_string()).unwrap_or_default();
    let mut hidden = match settings.db_paths.is_empty() {
        true => hidden_paths(fs, dir, &stored)?,
        false => None,
    };
    if hidden.is_some() && all_tables_are_in(fs, dir)? {
        hidden = None;
    }
    if let (Purpose::Write, Some(why)) = (purpose, &hidden) {
        return Err(unknown_paths(why).at_path(dir));
    }
    let tables = settings.table_dirs(dir);
    let places = Places::new(Arc::clone(&env.fs), dir, (write, former), &tables);
    let db_log_dir = stored.db_log_dir.clone().filter(|d| matches!(fs.metadata(Path::new(d)), Ok(Some(_))));
    let places = places.held()?;
    let (plain, beside) = (Arc::clone(&env.fs), Vec::new());
    let env = Env { fs: Arc::clone(&places) as Arc<dyn Fs>, ..env.clone() };
    let (given, dir) = (given.clone(), dir.to_path_buf());
    Ok(Entered {
        env,
        places,
        settings,
        db_log_dir,
        notes,
        given,
        stored,
        hidden,
        purpose,
        dir,
        plain,
        beside,
    })
}

/// The directories of WAL files. `given` is the caller's `wal_dir`; `stored`: what the database's files name, `None`:
/// nothing.
///
/// # Errors
/// `InvalidArgument` naming `wal_dir`: see the module. `Io`.
fn log_directories(
    fs: &dyn Fs,
    dir: &Path,
    given: &str,
    stored: Option<&StoredPlaces>,
    purpose: Purpose,
) -> Result<Choice> {
    let mut choice = Logs::look(fs, dir, given, stored, purpose)?.choose(purpose)?;
    let given = (!given.is_empty()).then(|| Path::new(given));
    for place in [choice.write.clone(), choice.former.clone()].into_iter().flatten() {
        let is_given = given.is_some_and(|given| whole(&place) == whole(given));
        if is_given || same_directory(fs, dir, &place) {
            continue;
        }
        let user = user_of(fs, dir, &place, stored)?;
        let e = match &user {
            User::This => continue,
            User::Original(original) => copied(original, &place),
            User::Other(other) => of_another(other, &place),
            User::Unknown => unproven(&place),
        };
        // The caller of an open of a copy names the copy itself.
        let is_for_a_copy = given.is_some_and(|given| same_directory(fs, dir, given));
        if given.is_none() || matches!(user, User::Unknown) && !is_for_a_copy {
            return Err(e);
        }
        // The caller gave the directory of the copy's WAL files.
        choice.former = None;
        choice.notes = vec![format!("{}; its WAL files were not read", e.message())];
    }
    Ok(choice)
}

impl Entered {
    /// Creates missing directories that the caller requested, and locks each against other databases of this engine:
    /// two databases in one directory would mistake each other's files for their own.
    ///
    /// # Errors
    /// `Busy(Locked)`; `InvalidArgument`: the directory is that of another database, or the OPTIONS file names it and
    /// it is missing. `Io`.
    pub fn occupy(&mut self, fs: &dyn Fs) -> Result<Vec<Box<dyn FileLock>>> {
        let (mut locks, claimant) = (Vec::new(), self.claimant()?);
        for (place, setting) in self.places.elsewhere() {
            if self.is_own_directory(fs, &place) {
                continue;
            }
            if fs.metadata(&place)?.is_none() {
                if self.is_stored(&place) {
                    let what = format!("{setting} is {}, which is missing", place.display());
                    let hint = "Mount or restore the directory, or give the setting with the directory where the \
                                files are";
                    return Err(Error::invalid(what).at_path(&self.dir).hint(hint));
                }
                make_directory(fs, &place)?;
            }
            if let Some(claimant) = &claimant {
                claimant.check(fs, (&place, setting), &|dir| self.is_own_directory(fs, dir))?;
            }
            locks.push(take_place(fs, &place, setting)?);
            self.beside.push((place, setting));
        }
        // Newly created directories are held as well.
        self.places = self.places.held()?;
        self.env.fs = Arc::clone(&self.places) as Arc<dyn Fs>;
        Ok(locks)
    }

    /// What the directories were determined for.
    pub fn purpose(&self) -> Purpose {
        self.purpose
    }

    /// The database as the owner of directories; `None`: it uses only the database directory.
    fn claimant(&self) -> Result<Option<Claimant>> {
        if self.places.elsewhere().is_empty() {
            return Ok(None);
        }
        let fs = &*self.plain;
        let replayed = match read_manifest_beside(fs, &self.dir) {
            Ok((_, replayed)) => Some(replayed),
            // There is no database yet, or recovery reports the error in more detail.
            Err(e) if e.kind() == ErrorKind::InvalidArgument || e.is_corruption() => None,
            Err(e) => return Err(e),
        };
        let repairs = self.purpose == Purpose::Repair;
        Claimant::new(fs, &self.dir, replayed.as_ref(), repairs).map(Some)
    }

    /// Makes this database the owner of its further directories: see `claims`. Call with the locks held, before
    /// a file is created or removed there.
    ///
    /// # Errors
    /// `InvalidArgument`: a directory belongs to another database. `Io`.
    pub fn claim(&self) -> Result<Claims> {
        let mut claims = Claims::new(&self.env.fs);
        let Some(claimant) = self.claimant()? else { return Ok(claims) };
        for (place, setting) in &self.beside {
            claims.strays |= claimant
                .check(&*self.plain, (place, setting), &|dir| self.is_own_directory(&*self.plain, dir))?;
            claimant.claim(&mut claims, place)?;
        }
        Ok(claims)
    }

    /// Whether `place` is the database directory, perhaps under another name.
    fn is_own_directory(&self, fs: &dyn Fs, place: &Path) -> bool {
        same_directory(fs, &self.dir, place)
    }

    /// Adds to the newest OPTIONS file what it does not name: the directory of new WAL files, and the table
    /// directories. The former WAL directory counts until the caller has committed. RocksDB ignores these lines.
    ///
    /// The tables that the caller is about to commit may be in a new directory. A crash after the commit must not leave
    /// an OPTIONS file without it.
    ///
    /// # Errors
    /// `Io`.
    pub fn announce(&self, numbers: impl Fn() -> FileNumber) -> Result<()> {
        let PlaceSettings { wal_dir: next, db_paths, cf_paths } = &self.settings;
        let stored = self.stored.wal_dir.as_deref().map(|named| whole(Path::new(named)));
        let logs_stay = match next.is_empty() {
            false => stored == Some(whole(Path::new(next))),
            // The caller may name the database directory, which the WAL files leave another one for.
            true => {
                self.given.wal_dir.is_empty()
                    || stored.is_none_or(|stored| self.is_own_directory(&*self.plain, &stored))
            }
        };
        if logs_stay && *db_paths == self.stored.db_paths && *cf_paths == self.stored.cf_paths {
            return Ok(());
        }
        let Some((_, mut file)) = read_latest_options(&*self.env.fs, &self.dir).unwrap_or(None) else {
            return Ok(());
        };
        note_paths(&mut file, db_paths, cf_paths);
        let temp = numbers();
        if !logs_stay {
            note_next_wal_dir(&mut file, next, temp);
        }
        write_options_file(&self.env, &self.dir, &file, temp, numbers())
    }

    fn is_stored(&self, place: &Path) -> bool {
        let paths = self.stored.db_paths.iter().chain(self.stored.cf_paths.values().flatten());
        let logs = self.stored.wal_dir.iter().map(Path::new);
        let given = !self.given.wal_dir.is_empty() && whole(Path::new(&self.given.wal_dir)) == whole(place);
        !given && (paths.map(|p| &*p.path).chain(logs).any(|stored| whole(stored) == whole(place)))
    }

    /// # Errors
    /// `InvalidArgument` naming `db_paths`: the MANIFEST has tables in unknown directories, or all tables are missing
    /// while the OPTIONS file shows that there are `db_paths`.
    pub fn check_paths(&self, replayed: &Replayed) -> Result<()> {
        for family in replayed.families.values() {
            let paths = self.settings.of(&family.name, &self.dir);
            if let Some((number, id)) = family.tree.beyond_path(paths.len()) {
                return Err(unlisted(number, id, &family.name, &self.settings).at_path(&replayed.path));
            }
        }
        self.check_hidden(replayed)
    }

    /// # Errors
    /// `InvalidArgument` naming `db_paths`: a table is not in the directory that the MANIFEST says, or in two
    /// directories.
    pub fn check_place(&self, family: &str, file: &NewFile, manifest: &Path) -> Result<()> {
        let paths = self.settings.of(family, &self.dir);
        let Some(place) = paths.get(usize::from(file.path_id)) else { return Ok(()) };
        let mut holders = self.places.holders(&FileKind::Table(file.number).name())?;
        if holders.is_empty() {
            holders = self.places.holders(&FileKind::LevelDbTable(file.number).name())?;
        }
        if holders.is_empty() || *holders == [place.clone()] {
            return Ok(());
        }
        let found: Vec<_> = holders.iter().map(|dir| dir.display().to_string()).collect();
        let what = format!(
            "table {} is in {}; by the settings and the MANIFEST it should be in {} alone",
            file.number,
            found.join(" and in "),
            place.display()
        );
        Err(Error::invalid(what)
            .at_path(manifest)
            .hint("List the same directories in db_paths and cf_paths, in the same order, as when the table was written"))
    }

    /// # Errors
    /// `InvalidArgument` naming `db_paths`: the OPTIONS file shows that there are `db_paths`, and no table is in the
    /// directory it would have without them.
    fn check_hidden(&self, replayed: &Replayed) -> Result<()> {
        let Some(why) = &self.hidden else { return Ok(()) };
        let tables = || replayed.families.values().flat_map(|family| family.tree.table_numbers());
        if tables().next().is_none() || self.has_any(tables())? {
            return Ok(());
        }
        Err(unknown_paths(why).at_path(&self.dir))
    }

    /// [`Entered::check_paths`] for a check or a repair, which would report a missing table as lost. It also refuses a
    /// family that misses all its tables while its directories are unknown. Not for a reader beside a writer, which may
    /// remove all tables.
    ///
    /// # Errors
    /// As [`Entered::check_paths`].
    pub fn check_presence(&self, replayed: &Replayed) -> Result<()> {
        self.check_paths(replayed)?;
        if !self.settings.db_paths.is_empty() {
            return Ok(());
        }
        for family in replayed.families.values().filter(|f| !self.settings.cf_paths.contains_key(&f.name)) {
            let count = family.tree.table_numbers().count();
            // A check changes nothing, and for a single table its report is more useful than a refusal.
            let enough = if self.purpose == Purpose::Repair { 1 } else { 2 };
            if count >= enough && !self.has_any(family.tree.table_numbers())? {
                let what = format!(
                    "none of the {count} tables of family {:?} is in the database directory",
                    family.name
                );
                let hint =
                    format!("{GIVE_PATHS}. If the tables are lost, give the database directory as db_paths");
                return Err(Error::invalid(what).at_path(&self.dir).hint(hint));
            }
        }
        Ok(())
    }

    fn has_any(&self, mut tables: impl Iterator<Item = FileNumber>) -> Result<bool> {
        let there =
            |kind: FileKind| Ok::<_, Error>(self.env.fs.metadata(&self.dir.join(kind.name()))?.is_some());
        tables.try_fold(false, |any, number| {
            Ok(any || there(FileKind::Table(number))? || there(FileKind::LevelDbTable(number))?)
        })
    }
}

/// Locks an existing directory against other databases of this engine.
///
/// # Errors
/// `Busy(Locked)`; `InvalidArgument`: the directory is that of another database. `Io`.
pub fn take_place(fs: &dyn Fs, place: &Path, setting: &str) -> Result<Box<dyn FileLock>> {
    if fs.metadata(&place.join(FileKind::Current.name()))?.is_some() {
        let what = format!("{setting} is {}, which is the directory of another database", place.display());
        return Err(Error::invalid(what).hint("Each database needs directories of its own"));
    }
    let lock = fs.lock(&place.join(FileKind::Lock.name()));
    lock.map_err(|e| e.hint(format!("{setting} is a directory that another database uses")))
}

/// The error for a table whose directory index is beyond the list.
fn unlisted(number: FileNumber, id: u8, family: &str, settings: &PlaceSettings) -> Error {
    let known = match (settings.cf_paths.get(family), settings.db_paths.len()) {
        (Some(paths), _) => format!("cf_paths of family {family:?} lists {}", paths.len()),
        (None, 0) => format!("neither db_paths nor cf_paths of family {family:?} is known"),
        (None, count) => format!("db_paths lists {count}"),
    };
    let what =
        format!("table {number} is in directory {id} of the family's list (counted from 0), but {known}");
    Error::invalid(what).hint(GIVE_PATHS)
}

/// The hint for unknown table directories.
pub const GIVE_PATHS: &str = "Give db_paths (or cf_paths) as RocksDB was given them: Builder::db_path, the option \
                                     db_paths={{path=DIRECTORY;target_size=BYTES}:...}, or ashlar db --db_path=DIRECTORY";

fn unknown_paths(why: &str) -> Error {
    let what = format!("{why}: the database has db_paths, which no OPTIONS file of RocksDB names");
    Error::invalid(what)
        .hint(format!("{GIVE_PATHS}. If all tables are in the database directory, give that one as db_paths"))
}

fn copied(original: &Path, wal_dir: &Path) -> Error {
    let what = format!(
        "the OPTIONS file says wal_dir={}, which belongs to the database in {}: this directory is a copy of that one",
        wal_dir.display(),
        original.display()
    );
    Error::invalid(what).hint(
        "Give wal_dir as the directory of the logs that were copied, or as the database directory itself if there are none. If \
         the other directory is the copy, give this wal_dir explicitly, or remove the other",
    )
}

fn of_another(other: &Path, wal_dir: &Path) -> Error {
    let what = format!(
        "the OPTIONS file says wal_dir={}, which the database in {} uses: this database was there before",
        wal_dir.display(),
        other.display()
    );
    Error::invalid(what).hint(
        "Give wal_dir as the directory where the logs of this database are now, or as the database directory itself if there \
         are none",
    )
}

fn unproven(wal_dir: &Path) -> Error {
    let what = format!(
        "the OPTIONS file says wal_dir={}, and no info log of RocksDB proves that the logs there belong to this directory: it may \
         be a copy, a checkpoint or a restored backup",
        wal_dir.display()
    );
    Error::invalid(what).hint(
        "Give wal_dir explicitly: as that directory if the logs there are those of this database, or as the database directory \
         itself for a copy",
    )
}

/// Why the database must have unknown `db_paths`; `None`: nothing shows that.
///
/// # Errors
/// `Io`: the directory cannot be listed.
fn hidden_paths(fs: &dyn Fs, dir: &Path, stored: &StoredPlaces) -> Result<Option<String>> {
    /// Older releases always wrote the database directory as `wal_dir`.
    const TELLING_SINCE: u32 = 7;
    let is_here = |place: &Path| same_directory(fs, dir, place);
    if let Some(named) = stored.wal_dir.as_deref().filter(|named| is_here(Path::new(named)))
        && stored.major >= TELLING_SINCE
    {
        return Ok(Some(format!(
            "the OPTIONS file says wal_dir={named}, which is the database directory itself"
        )));
    }
    // A log that came with a copy names the directories of another database.
    let own = info_log::heads(fs, dir)?.find(|head| head.directory.as_deref().is_some_and(is_here));
    let other = own.and_then(|head| head.tables.into_iter().find(|place| !is_here(place)));
    Ok(other.map(|place| format!("RocksDB's info log names {} as a directory of tables", place.display())))
}

/// Whether there are tables, and all are in the database directory.
///
/// # Errors
/// `Io`.
fn all_tables_are_in(fs: &dyn Fs, dir: &Path) -> Result<bool> {
    let replayed = match read_manifest_beside(fs, dir) {
        Ok((_, replayed)) => replayed,
        Err(e) if matches!(e.kind(), ErrorKind::Io(_)) => return Err(e),
        // Recovery reports the error in more detail.
        Err(_) => return Ok(false),
    };
    let numbers = |list: Vec<FsEntry>| -> BTreeSet<FileNumber> {
        let kinds = list.into_iter().filter_map(|entry| FileKind::parse(&entry.name));
        let tables = kinds.filter(|kind| matches!(kind, FileKind::Table(_) | FileKind::LevelDbTable(_)));
        tables.filter_map(|kind| kind.number()).collect()
    };
    let there = numbers(fs.files(dir)?);
    let mut named = replayed.families.values().flat_map(|family| family.tree.table_numbers()).peekable();
    Ok(named.peek().is_some() && named.all(|number| there.contains(&number)))
}

/// # Errors
/// `InvalidArgument` naming the setting: a stored path is relative, and its working directory is not known.
fn refuse_relative(setting: &str, paths: &[DbPath]) -> Result<()> {
    let Some(path) = paths.iter().find(|path| !path.path.is_absolute()) else { return Ok(()) };
    let what = format!(
        "the OPTIONS file names {} in {setting}, a relative path, and not the working directory it began from",
        path.path.display()
    );
    Err(Error::invalid(what).hint(GIVE_PATHS))
}
