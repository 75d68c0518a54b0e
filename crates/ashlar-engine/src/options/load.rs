//! OPTIONS files read: the newest one of a directory, whoever wrote it.
//!
//! 1. What the file says never fails an open: a name that is unknown, a value that is wrong, out of our range or asks for
//!    what is not there is passed over, or drawn to the nearest value, and told.
//! 2. An open takes from it the names of comparators and merge operators only; the rest is taken when somebody asks.

use super::names::{STRING_APPEND, id_of, operator_of};
use super::{DbOptions, FamilyOptions, FormatLevel, Group, Options};
use ashlar_base::{Error, FileNumber, Result};
use ashlar_env::Fs;
use ashlar_format::filename::FileKind;
use ashlar_format::options_file::{OptionsFile, Section, SectionKind, unescape};
use std::path::{Path, PathBuf};

/// A longer file is no OPTIONS file: ten thousand families need a fifth of it.
const LONGEST_FILE: u64 = 256 << 20;

/// Settings as an OPTIONS file has them.
#[derive(Clone, Debug)]
pub struct LoadedOptions {
    /// The file.
    pub path: PathBuf,
    /// The release of RocksDB it was written for, as it says.
    pub release: String,
    /// The database's settings.
    pub db: DbOptions,
    /// The families' settings, in the order of the file: `default` first.
    pub families: Vec<(String, FamilyOptions)>,
    /// What was passed over or changed, and why.
    pub notices: Vec<String>,
}

/// The newest OPTIONS file of a directory; `None` when there is none.
///
/// # Errors
/// `Corruption`: it is no OPTIONS file, with the offset of the line. `Io`.
pub fn read_latest_options(fs: &dyn Fs, dir: &Path) -> Result<Option<(PathBuf, OptionsFile)>> {
    let number = |name: &str| match FileKind::parse(name) {
        Some(FileKind::Options(number)) => Some(number),
        _ => None,
    };
    let newest: Option<FileNumber> = fs.files(dir)?.iter().filter_map(|entry| number(&entry.name)).max();
    let Some(newest) = newest else { return Ok(None) };
    let path = dir.join(FileKind::Options(newest).name());
    let file = read_options_file(fs, &path)?;
    Ok(Some((path, file)))
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
    let text = String::from_utf8(bytes).map_err(|e| {
        Error::corruption("an OPTIONS file that is no text").at(path, e.utf8_error().valid_up_to() as u64)
    })?;
    OptionsFile::parse(&text).map_err(|e| e.in_file(path, 0))
}

/// The settings of the newest OPTIONS file of a directory, fit to open it at `level`; `None` when there is none.
///
/// # Errors
/// As [`read_latest_options`].
pub fn load_latest_options(fs: &dyn Fs, dir: &Path, level: FormatLevel) -> Result<Option<LoadedOptions>> {
    let found = read_latest_options(fs, dir)?;
    Ok(found.map(|(path, file)| LoadedOptions::from_file(path, &file, level)))
}

impl LoadedOptions {
    /// The settings of a file, fit to be used at `level`.
    pub fn from_file(path: PathBuf, file: &OptionsFile, level: FormatLevel) -> LoadedOptions {
        let start = || Options {
            db: DbOptions { format_level: level, ..DbOptions::default() },
            family: FamilyOptions::default(),
        };
        let mut release = String::new();
        let (mut notices, mut families) = (Vec::new(), Vec::<(String, FamilyOptions)>::new());
        let mut database = start();
        for section in &file.sections {
            let (scope, told) = match &section.kind {
                SectionKind::Version => {
                    release = section.get("rocksdb_version").unwrap_or_default().to_owned();
                    continue;
                }
                SectionKind::Db => ("database".to_owned(), database.load(Group::Database, &section.entries)),
                SectionKind::Family { name } => {
                    let mut family = start();
                    let told = family.load(Group::Family, &section.entries);
                    family.family.stored_merge_operator = stored_operator(section.get("merge_operator"));
                    families.push((name.clone(), family.family));
                    (format!("family {name:?}"), told)
                }
                SectionKind::Table { kind, family } => {
                    let Some((_, options)) = families.iter_mut().find(|(name, _)| name == family) else {
                        continue;
                    };
                    if kind != "BlockBasedTable" {
                        notices.push(format!("family {family:?}: tables of kind {kind} are not written"));
                        continue;
                    }
                    let mut table = Options { family: options.clone(), ..start() };
                    let told = table.load(Group::Table, &section.entries);
                    *options = table.family;
                    (format!("family {family:?}"), told)
                }
            };
            notices.extend(told.into_iter().map(|notice| format!("{scope}: {notice}")));
        }
        for (name, value) in &file.own {
            take_own(&mut database.db, name, value, &mut notices);
        }
        // The directory is there: a file that says "there must be none" would keep it shut.
        database.db.error_if_exists = false;
        let mut loaded = LoadedOptions { path, release, db: database.db, families, notices };
        loaded.fit(level);
        loaded
    }

    /// Whatever is still out of bounds gives way, so that an open with these settings is not refused for them.
    fn fit(&mut self, level: FormatLevel) {
        if let Err(e) = self.db.validate() {
            self.notices.push(format!("database: {e}; the defaults are taken"));
            self.db = DbOptions { format_level: level, ..DbOptions::default() };
        }
        for (name, family) in &mut self.families {
            let c = &mut family.compaction;
            if c.l0_slowdown < c.l0_trigger || c.l0_stop < c.l0_slowdown {
                c.l0_slowdown = c.l0_slowdown.max(c.l0_trigger);
                c.l0_stop = c.l0_stop.max(c.l0_slowdown);
                self.notices.push(format!(
                    "family {name:?}: the triggers of level 0 are out of order; the later ones are raised"
                ));
            }
            if family.table.format_version > level.max_table_version() {
                family.table.format_version = level.max_table_version();
                self.notices.push(format!(
                    "family {name:?}: format_version: format level {level} has {} at most",
                    level.max_table_version()
                ));
            }
            if let Err(e) = family.validate(level) {
                self.notices.push(format!("family {name:?}: {e}; the defaults are taken"));
                *family = FamilyOptions {
                    order: family.order.clone(),
                    merge_operator: family.merge_operator.clone(),
                    stored_merge_operator: family.stored_merge_operator.clone(),
                    ..FamilyOptions::default()
                };
            }
        }
    }
}

/// Settings of ours without a name of RocksDB's.
fn take_own(db: &mut DbOptions, name: &str, value: &str, notices: &mut Vec<String>) {
    match (name, value.parse()) {
        ("memory_bytes", Ok(bytes)) => db.memory_bytes = bytes,
        ("block_cache_bytes", Ok(bytes)) => db.block_cache_bytes = bytes,
        ("scrub_bytes_per_second", Ok(bytes)) => db.scrub_bytes_per_second = bytes,
        _ => notices.push(format!("database: {name}={value}: not known to this version")),
    }
}

/// A merge operator as an OPTIONS file names it; `None` for none.
fn stored_operator(value: Option<&str>) -> Option<String> {
    let text = unescape(value?);
    (!matches!(text.as_str(), "" | "nullptr")).then_some(text)
}

/// What a file says of a family that is no tuning.
#[derive(Clone, Debug)]
pub(crate) struct StoredFamily {
    /// Its name.
    pub(crate) name: String,
    /// The name of its comparator.
    pub(crate) comparator: Option<String>,
    /// Its merge operator, as it stands there.
    pub(crate) merge_operator: Option<String>,
}

/// The families of a file, in its order, which is that of their ids.
pub(crate) fn stored_families(file: &OptionsFile) -> Vec<StoredFamily> {
    let families = file.sections.iter().filter_map(|section| match &section.kind {
        SectionKind::Family { name } => Some((name.clone(), section)),
        _ => None,
    });
    let stored = |(name, section): (String, &Section)| StoredFamily {
        name,
        comparator: section.get("comparator").map(unescape),
        merge_operator: stored_operator(section.get("merge_operator")),
    };
    families.map(stored).collect()
}

impl FamilyOptions {
    /// Holds the settings against the merge operator a family had before: a different one is refused; where none is
    /// given, a built-in one is found by its name, and the name of any other is kept for the OPTIONS file.
    pub(crate) fn recall_operator(&mut self, family: &str, stored: &str) -> Result<()> {
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
            // The delimiter is told only where the operator is an object with members.
            None if name == STRING_APPEND && !stored.contains('=') => {}
            None => self.merge_operator = built_in,
        }
        self.stored_merge_operator = Some(stored.to_owned());
        self.table.merge_operator = Some(name);
        Ok(())
    }
}
