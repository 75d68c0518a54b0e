//! Reads OPTIONS files: the newest one of a directory, from RocksDB or AshlarDB.
//!
//! 1. No content of the file fails an open. A name that is unknown, or a value that is wrong, out of range or not
//!    available, is skipped or replaced by the nearest valid value, and reported. The other values are used.
//! 2. Every text is kept for the next OPTIONS file; see `kept`.
//! 3. The places of files are not read as settings: an open calls [`stored_places`], and first checks whether the files
//!    are there. The next file's `wal_dir` is the directory that the open found, so the old text is not kept.

use super::family::BLOCK_BASED;
use super::kept::{KeptText, note_lines};
use super::names::{id_of, operator_of, stored_built_in, stored_collectors, stored_operator};
use super::paths::{own_line, own_lines};
use super::{DbOptions, DbPath, FamilyOptions, FormatLevel, Group, Options};
use ashlar_base::{Error, FileNumber, Result};
use ashlar_env::Fs;
use ashlar_format::filename::FileKind;
use ashlar_format::options_file::{OptionsFile, Section, SectionKind, unescape};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

/// The greatest length of an OPTIONS file that is read: ten thousand families need a fifth of it.
pub const LONGEST_FILE: u64 = 256 << 20;

/// The settings in an OPTIONS file.
#[derive(Clone, Debug)]
pub struct LoadedOptions {
    /// The file.
    pub path: PathBuf,
    /// The release of RocksDB in the head of the file.
    pub release: String,
    /// The database's settings.
    pub db: DbOptions,
    /// The families' settings, in the order of the file: `default` first.
    pub families: Vec<(String, FamilyOptions)>,
    /// Notices about settings of the database that were skipped or changed. [`family_notices`] has those of the
    /// families.
    pub notices: Vec<String>,
}

/// Notices about stored settings of families that are skipped or changed, as lines. The settings may have changed since
/// they were loaded: a comparator that the caller gave is not reported as missing. Adjacent families that share their
/// kept texts share a line. `release` is the one in the file's head.
pub fn family_notices<'f>(
    families: impl IntoIterator<Item = (&'f str, &'f FamilyOptions)>,
    level: FormatLevel,
    release: &str,
) -> Vec<String> {
    let mut groups: Vec<(Vec<&str>, Vec<String>)> = Vec::new();
    let mut before: Option<&FamilyOptions> = None;
    for (name, options) in families {
        let same = |b: &FamilyOptions| b.shares_kept_with(options) && b.order.name() == options.order.name();
        match groups.last_mut().filter(|_| before.is_some_and(same)) {
            Some((names, _)) => names.push(name),
            None => groups.push((vec![name], options.notes(level, release))),
        }
        before = Some(options);
    }
    note_lines(&groups)
}

/// The newest undamaged OPTIONS file of a directory. `None`: there is no OPTIONS file.
///
/// # Errors
/// `Corruption`: every OPTIONS file is damaged; the error is that of the newest, with the offset of the line. `Io`.
pub fn read_latest_options(fs: &dyn Fs, dir: &Path) -> Result<Option<(PathBuf, OptionsFile)>> {
    match find_latest_options(fs, dir)? {
        LatestOptions { found: None, damaged } => {
            damaged.into_iter().next().map_or(Ok(None), |(_, e)| Err(e))
        }
        LatestOptions { found, .. } => Ok(found),
    }
}

/// The OPTIONS files of a directory.
#[derive(Debug, Default)]
pub struct LatestOptions {
    /// The newest file that is sound, with its path.
    pub found: Option<(PathBuf, OptionsFile)>,
    /// The newer files that are damaged, newest first.
    pub damaged: Vec<(FileNumber, Error)>,
}

/// Reads the OPTIONS files from the newest back to the first sound one.
///
/// RocksDB before 8 opens a database even if it could not store the settings, and leaves them in `OPTIONS-N.dbtmp`. In
/// a directory without an OPTIONS file, the newest such file counts.
///
/// # Errors
/// `Io`.
pub fn find_latest_options(fs: &dyn Fs, dir: &Path) -> Result<LatestOptions> {
    let entries = fs.files(dir)?;
    let kinds = || entries.iter().filter_map(|entry| FileKind::parse(&entry.name));
    let mut stored: Vec<FileKind> = kinds().filter(|kind| matches!(kind, FileKind::Options(_))).collect();
    stored.sort_unstable_by_key(|kind| kind.number());
    if stored.is_empty() {
        stored.extend(unfinished_options(kinds()));
    }
    let mut latest = LatestOptions::default();
    for kind in stored.into_iter().rev() {
        let path = dir.join(kind.name());
        match read_options_file(fs, &path) {
            Ok(file) => {
                latest.found = Some((path, file));
                break;
            }
            Err(e) if e.is_corruption() => {
                // An unfinished file may be truncated.
                if let FileKind::Options(number) = kind {
                    latest.damaged.push((number, e));
                }
            }
            Err(e) => return Err(e),
        }
    }
    Ok(latest)
}

/// The newest unfinished OPTIONS file.
pub fn unfinished_options(kinds: impl Iterator<Item = FileKind>) -> Option<FileKind> {
    let unfinished = kinds.filter_map(|kind| match kind {
        FileKind::OptionsTemp(number) => Some(number),
        _ => None,
    });
    unfinished.max().map(FileKind::OptionsTemp)
}

/// An OPTIONS file by its path.
///
/// # Errors
/// As [`read_latest_options`].
pub fn read_options_file(fs: &dyn Fs, path: &Path) -> Result<OptionsFile> {
    let file = fs.open_read(path)?;
    if file.len() > LONGEST_FILE {
        return Err(Error::corruption("too long for an OPTIONS file").at_path(path));
    }
    let mut bytes = vec![0; usize::try_from(file.len()).unwrap_or(0)];
    file.read_exact_at(&mut bytes, 0)?;
    // A path may not be UTF-8. Such a value must not make the whole file unreadable.
    OptionsFile::parse(&String::from_utf8_lossy(&bytes)).map_err(|e| e.in_file(path, 0))
}

/// The settings of the newest OPTIONS file of a directory, adapted to `level`. `None`: there is no OPTIONS file.
///
/// # Errors
/// As [`read_latest_options`].
pub fn load_latest_options(fs: &dyn Fs, dir: &Path, level: FormatLevel) -> Result<Option<LoadedOptions>> {
    let found = read_latest_options(fs, dir)?;
    Ok(found.map(|(path, file)| LoadedOptions::from_file(path, &file, level)))
}

/// The contents of a file for one family.
#[derive(PartialEq)]
struct FamilySections<'f> {
    options: &'f [(String, String)],
    tables: Vec<(&'f str, &'f [(String, String)])>,
}

impl LoadedOptions {
    /// The settings of a file, adapted to `level`.
    pub fn from_file(path: PathBuf, file: &OptionsFile, level: FormatLevel) -> LoadedOptions {
        let mut release = String::new();
        let mut loaded =
            Options { db: DbOptions { format_level: level, ..DbOptions::default() }, ..Options::default() };
        let mut sections: Vec<(&str, FamilySections<'_>)> = Vec::new();
        let mut of_family = HashMap::new();
        let mut notices = Vec::new();
        for section in &file.sections {
            match &section.kind {
                SectionKind::Version => {
                    release = section.get("rocksdb_version").unwrap_or_default().to_owned();
                }
                SectionKind::Db => loaded.load_database(&section.entries),
                SectionKind::Family { name } => {
                    of_family.insert(name.as_str(), sections.len());
                    sections.push((name, FamilySections { options: &section.entries, tables: Vec::new() }));
                }
                SectionKind::Table { kind, family } => {
                    let at = of_family.get(family.as_str()).and_then(|at| sections.get_mut(*at));
                    if let Some((_, of)) = at {
                        of.tables.push((kind, &section.entries));
                    }
                }
            }
        }
        let is_place = |name: &str, value: &str| name == NEXT_WAL_DIR || own_line(name, value).is_some();
        for (name, value) in file.own.iter().filter(|(name, value)| !is_place(name, value)) {
            take_own(&mut loaded.db, name, value, &mut notices);
        }
        loaded.db.stored_release.clone_from(&release);
        notices.splice(0..0, note_lines(&[(Vec::new(), loaded.database_notes())]));
        // Most families have equal settings. These are read once and share their kept texts.
        let mut families: Vec<(String, FamilyOptions)> = Vec::new();
        let mut before = None;
        for (name, of) in &sections {
            let same = families.last().filter(|_| before == Some(of)).map(|(_, options)| options.clone());
            let options = same.unwrap_or_else(|| load_family(of, level, &release));
            families.push(((*name).to_owned(), options));
            before = Some(of);
        }
        LoadedOptions { path, release, db: loaded.db, families, notices }
    }
}

impl Options {
    fn load_database(&mut self, entries: &[(String, String)]) {
        let entries: Vec<_> =
            entries.iter().filter(|(name, _)| !PLACES.contains(&&**name)).cloned().collect();
        let mut texts = self.load(Group::Database, &entries);
        self.db.info_log.dir.clear();
        if self.fit(Group::Database, &mut texts, |o| o.db.validate()).is_err() {
            self.db = DbOptions { format_level: self.db.format_level, ..DbOptions::default() };
        }
        self.db.kept = self.remember(Group::Database, texts);
    }

    /// The notices about the database's kept texts.
    pub fn database_notes(&self) -> Vec<String> {
        self.notes(Group::Database, &self.db.kept)
    }
}

impl FamilyOptions {
    /// The notices about the family's kept texts, tables included, from a file of `release`.
    pub fn notes(&self, level: FormatLevel, release: &str) -> Vec<String> {
        let stored_release = release.to_owned();
        let db = DbOptions { format_level: level, stored_release, ..DbOptions::default() };
        let options = Options { db, family: self.clone() };
        let mut notes = options.notes(Group::Family, &self.kept);
        for (kind, texts) in &self.kept_tables {
            if kind == BLOCK_BASED {
                notes.extend(options.notes(Group::Table, texts));
            } else {
                notes.push(format!("tables of kind {kind} are not written"));
            }
        }
        notes
    }
}

/// The usable settings of a family. An unusable value affects no other value.
fn load_family(of: &FamilySections<'_>, level: FormatLevel, release: &str) -> FamilyOptions {
    let mut loaded =
        Options { db: DbOptions { format_level: level, ..DbOptions::default() }, ..Options::default() };
    let mut texts = loaded.load(Group::Family, of.options);
    loaded.family.cf_paths.clear();
    let operator = of.options.iter().rev().find(|(name, _)| name == "merge_operator");
    let operator = operator.and_then(|(_, value)| stored_operator(unescape(value), release));
    loaded.family.merge_operator = operator.as_deref().and_then(stored_built_in);
    loaded.family.stored_merge_operator = operator;
    // A name that is not built in leaves the other collectors of the list in use.
    if let Some((_, list)) = of.options.iter().rev().find(|(name, _)| name == "table_properties_collectors") {
        loaded.family.table.collectors = stored_collectors(&unescape(list));
    }
    let mut tables = Vec::new();
    for (kind, entries) in &of.tables {
        let texts = match *kind == BLOCK_BASED {
            true => loaded.load(Group::Table, entries),
            false => Options::default().load(Group::Table, entries),
        };
        tables.push(((*kind).to_owned(), texts));
    }
    loaded.order_triggers(&mut texts);
    let valid = |o: &Options| o.family.validate(level);
    for (_, texts) in tables.iter_mut().filter(|(kind, _)| kind == BLOCK_BASED) {
        loaded.bound_format_version(texts, level);
        // Errors of the family's own section are found here.
        let _ = loaded.fit(Group::Table, texts, valid);
    }
    if loaded.fit(Group::Family, &mut texts, valid).is_err() {
        let FamilyOptions { order, merge_operator, stored_merge_operator, .. } = loaded.family;
        loaded.family =
            FamilyOptions { order, merge_operator, stored_merge_operator, ..FamilyOptions::default() };
    }
    let kept = loaded.remember(Group::Family, texts);
    let tables =
        tables.into_iter().map(|(kind, texts)| (kind, loaded.remember(Group::Table, texts))).collect();
    let stored = FamilyOptions { kept, kept_tables: tables, ..FamilyOptions::default() };
    loaded.family.kept_over(&stored);
    loaded.family.only_if_there = true;
    loaded.family
}

impl Options {
    /// Makes the triggers of level 0 ascend, by raising the later ones.
    fn order_triggers(&mut self, texts: &mut [KeptText]) {
        let c = &mut self.family.compaction;
        if c.l0_slowdown < c.l0_trigger || c.l0_stop < c.l0_slowdown {
            c.l0_slowdown = c.l0_slowdown.max(c.l0_trigger);
            c.l0_stop = c.l0_stop.max(c.l0_slowdown);
            let raised =
                "the triggers of level 0 are out of order; the later ones are raised, as RocksDB does";
            note(texts, &["level0_slowdown_writes_trigger", "level0_stop_writes_trigger"], raised);
        }
    }

    fn bound_format_version(&mut self, texts: &mut [KeptText], level: FormatLevel) {
        let (version, most) = (&mut self.family.table.format_version, level.max_table_version());
        if *version > most {
            let told =
                format!("format_version={version}: format level {level} has {most} at most, which is used");
            *version = most;
            note(texts, &["format_version"], &told);
        }
    }
}

/// Adds a notice to the first of these names that exists.
fn note(texts: &mut [KeptText], names: &[&str], told: &str) {
    if let Some(kept) = texts.iter_mut().find(|kept| names.contains(&kept.name.as_str())) {
        kept.note = Some(told.to_owned());
    }
}

/// AshlarDB's settings that have no name in RocksDB.
fn take_own(db: &mut DbOptions, name: &str, value: &str, notices: &mut Vec<String>) {
    match (name, value.parse(), value.parse()) {
        ("memory_bytes", Ok(bytes), _) => db.memory_bytes = bytes,
        ("block_cache_bytes", Ok(bytes), _) => db.block_cache_bytes = bytes,
        ("disk_quota_bytes", Ok(bytes), _) => db.disk_quota_bytes = bytes,
        ("disk_reserve_bytes", Ok(bytes), _) => db.disk_reserve_bytes = bytes,
        ("scrub_bytes_per_second", Ok(bytes), _) => db.scrub_bytes_per_second = bytes,
        ("mapped_wal", _, Ok(yes)) => db.mapped_wal = yes,
        _ => notices.push(format!("database: {name}={value}: not known to this version")),
    }
}

/// The names of the options in the section of the database that are directories.
const PLACES: [&str; 2] = ["wal_dir", "db_paths"];

/// The name of the line for [`StoredPlaces::next_wal_dir`] in the comment block.
const NEXT_WAL_DIR: &str = "next_wal_dir";

/// The name of the line for [`StoredPlaces::announced`].
const ANNOUNCED: &str = "next_wal_dir_after";

/// The directories of files in an OPTIONS file.
#[derive(Clone, Debug, Default)]
pub struct StoredPlaces {
    /// `wal_dir`, as stored.
    pub wal_dir: Option<String>,
    /// The `wal_dir` to which an open was about to change; empty: the database directory.
    pub next_wal_dir: Option<String>,
    /// The WAL files of that directory have higher numbers. `None`: unknown.
    pub announced: Option<FileNumber>,
    /// `db_log_dir`, as stored.
    pub db_log_dir: Option<String>,
    /// `db_paths`; empty in a file of RocksDB.
    pub db_paths: Vec<DbPath>,
    /// `cf_paths` of the families that have any.
    pub cf_paths: BTreeMap<String, Vec<DbPath>>,
    /// The first number of the release that the file was written for.
    pub major: u32,
}

impl StoredPlaces {
    /// The directories of WAL files beside the database directory, the current one first.
    pub fn wal_dirs(&self) -> impl Iterator<Item = &Path> {
        self.wal_dir.iter().chain(self.next_beside()).map(Path::new)
    }

    /// The next directory of WAL files, unless that is the database directory.
    pub fn next_beside(&self) -> Option<&String> {
        self.next_wal_dir.as_ref().filter(|next| !next.is_empty())
    }

    /// [`StoredPlaces::wal_dirs`], without the next one if the change to it was not committed. `needed` is the smallest WAL
    /// file that the MANIFEST needs, 0 if unknown.
    pub fn wal_dirs_in_use(&self, needed: FileNumber) -> impl Iterator<Item = &Path> {
        let next = self.next_beside().filter(|_| self.uncommitted_after(needed).is_none());
        self.wal_dir.iter().chain(next).map(Path::new)
    }

    /// If the change to the next directory was not committed: the number after which its WAL files are those of opens that
    /// failed. The commit needs a WAL file that is newer than the announcement. `needed` as for [`StoredPlaces::wal_dirs_in_use`].
    pub fn uncommitted_after(&self, needed: FileNumber) -> Option<FileNumber> {
        self.announced.filter(|number| needed != FileNumber(0) && needed <= *number)
    }
}

/// Removes the directories from a file.
pub fn forget_places(file: &mut OptionsFile) {
    file.own.retain(|(name, value)| !is_of_next(name) && own_line(name, value).is_none());
    for section in file.sections.iter_mut().filter(|section| section.kind == SectionKind::Db) {
        section.entries.retain(|(name, _)| name != "wal_dir" && name != "db_log_dir");
    }
}

/// Replaces the directories of tables in the comment block of a file.
pub fn note_paths(file: &mut OptionsFile, db: &[DbPath], families: &BTreeMap<String, Vec<DbPath>>) {
    let families: Vec<_> = families.iter().map(|(name, paths)| (&**name, &**paths)).collect();
    file.own.retain(|(name, value)| own_line(name, value).is_none());
    file.own.extend(own_lines(db, &families));
}

fn is_of_next(name: &str) -> bool {
    [NEXT_WAL_DIR, ANNOUNCED].contains(&name)
}

/// Announces in the comment block of a file that `wal_dir` changes to `next`, whose WAL files have higher numbers than
/// `number`. A file that announces another change may be of one that was committed: then no number is noted.
pub fn note_next_wal_dir(file: &mut OptionsFile, next: &str, number: FileNumber) {
    let before = stored_places(file).next_wal_dir;
    if before.as_deref() == Some(next) {
        return;
    }
    file.own.retain(|(name, _)| !is_of_next(name));
    file.own.push((NEXT_WAL_DIR.to_owned(), next.to_owned()));
    if before.is_none() {
        file.own.push((ANNOUNCED.to_owned(), number.0.to_string()));
    }
}

/// The release that a file was written for; empty if the file does not contain it.
fn release_of(file: &OptionsFile) -> &str {
    let version = file.sections.iter().find(|s| s.kind == SectionKind::Version);
    version.and_then(|s| s.get("rocksdb_version")).unwrap_or_default()
}

/// The places that a file names.
pub fn stored_places(file: &OptionsFile) -> StoredPlaces {
    let text = |name| {
        let value = unescape(file.db()?.get(name)?);
        (!value.is_empty()).then_some(value)
    };
    let own = |line| file.own.iter().find(|(name, _)| name == line).map(|(_, value)| value.clone());
    let mut stored = StoredPlaces {
        wal_dir: text("wal_dir"),
        next_wal_dir: own(NEXT_WAL_DIR),
        announced: own(ANNOUNCED).and_then(|number| number.parse().ok()).map(FileNumber),
        db_log_dir: text("db_log_dir"),
        major: release_of(file).split('.').next().and_then(|n| n.parse().ok()).unwrap_or_default(),
        ..StoredPlaces::default()
    };
    for (family, path) in file.own.iter().filter_map(|(name, value)| own_line(name, value)) {
        match family {
            None => stored.db_paths.push(path),
            Some(family) => stored.cf_paths.entry(family).or_default().push(path),
        }
    }
    stored
}

/// The identity of a family in a file: its name, comparator and merge operator.
#[derive(Clone, Debug)]
pub struct StoredFamily {
    /// The name of the family.
    pub name: String,
    /// The name of its comparator.
    pub comparator: Option<String>,
    /// Its merge operator, as stored.
    pub merge_operator: Option<String>,
}

/// The families of a file, in its order, which is that of their ids.
pub fn stored_families(file: &OptionsFile) -> Vec<StoredFamily> {
    let families = file.sections.iter().filter_map(|section| match &section.kind {
        SectionKind::Family { name } => Some((name.clone(), section)),
        _ => None,
    });
    let release = release_of(file);
    let stored = |(name, section): (String, &Section)| StoredFamily {
        name,
        comparator: section.get("comparator").map(unescape),
        merge_operator: section
            .get("merge_operator")
            .and_then(|text| stored_operator(unescape(text), release)),
    };
    families.map(stored).collect()
}

impl FamilyOptions {
    /// Whether the merge operator is the one that an OPTIONS file names; `None`: it names none.
    pub fn has_operator(&self, stored: Option<&str>) -> bool {
        let named = |text: &str| operator_of(text).map_or_else(|| id_of(text), |o| o.name().to_owned());
        self.merge_operator_name() == stored.map(named)
    }

    /// Compares the settings with the merge operator that the family had before. A different one is refused. If none is
    /// given, a built-in one is found by its name, and the name of any other is kept for the OPTIONS file.
    pub fn recall_operator(&mut self, family: &str, stored: &str) -> Result<()> {
        let built_in = operator_of(stored);
        let name = built_in.as_ref().map_or_else(|| id_of(stored), |operator| operator.name().to_owned());
        match &self.merge_operator {
            Some(given) if given.name() != name => {
                let text = format!(
                    "family {family:?} has the merge operator {name:?}, it was opened with {:?}",
                    given.name()
                );
                return Err(Error::invalid(text)
                    .hint("Open it with the operator it has; without its OPTIONS files it takes any"));
            }
            Some(_) => {}
            None => self.merge_operator = stored_built_in(stored),
        }
        self.stored_merge_operator = Some(stored.to_owned());
        self.table.merge_operator = Some(name);
        Ok(())
    }
}
