//! From `CURRENT` to trees: reads the MANIFEST, checks that its files exist, and creates the version set. Reads only.
//!
//! Source: RocksDB `db/version_set.cc` (`Recover`), `db/db_impl/db_impl_open.cc`.

use super::foreign::foreign;
use super::leveldb::{LEVELDB_UPGRADE_NOTICE, is_leveldb};
use super::report::{DroppedRange, FamilyReport, RecoveryReport};
use ashlar_base::ext::timestamp_order::timestamp_order;
use ashlar_base::{Error, FamilyId, FileNumber, Level, Order, Result};
use ashlar_env::{EntryKind, Env, Fs};
use ashlar_format::filename::FileKind;
use ashlar_format::version_edit::NewFile;
use ashlar_options::FormatLevel;
use ashlar_tree::files::{hold_directory, misnamed};
use ashlar_tree::places::{Entered, GIVE_PATHS, PlaceSettings, Purpose, enter};
use ashlar_tree::unwritable;
use ashlar_tree::version::{
    Beginning, FamilyState, OpenTables, Replayed, ReplayedFamily, Tables, VersionSet, new_db_id,
    out_of_numbers, read_identity, read_manifest, read_manifest_beside, was_current,
};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;

/// A family as the caller specifies it.
#[derive(Clone, Debug)]
pub struct FamilySpec {
    /// The family's name.
    pub name: String,
    /// The order of the keys.
    pub order: Order,
    /// The number of levels, if no table is deeper.
    pub levels: usize,
    /// If the family does not exist, it is not reported as missing.
    pub only_if_there: bool,
    /// The family is opened with a time to live.
    pub timed: bool,
}

/// The largest number of levels of a family.
const MAX_LEVELS: usize = 64;

/// How to treat families that the caller did not list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Others {
    /// The open fails and names them.
    Refuse,
    /// They stay closed. Only for an open that never commits.
    Skip,
    /// They are opened with this many levels and the built-in order that the MANIFEST names.
    Open {
        /// The number of levels.
        levels: usize,
    },
    /// As `Open`, but families with another order stay closed, and the report names them. Only for an open that never
    /// commits.
    OpenKnown {
        /// The number of levels.
        levels: usize,
    },
}

/// Which families to open.
#[derive(Clone, Debug)]
pub struct Families {
    /// The families that the caller lists. Those that do not exist are in [`Recovered::missing`].
    pub listed: Vec<FamilySpec>,
    /// How to treat the other families.
    pub others: Others,
}

/// A recovered MANIFEST.
#[derive(Debug)]
pub struct Recovered {
    /// The version set; its first commit writes a new MANIFEST.
    pub versions: VersionSet,
    /// Listed families that the database does not have.
    pub missing: Vec<FamilySpec>,
    /// What was found so far; replay adds to it.
    pub report: RecoveryReport,
    /// The result of `logs_needed_from` for the MANIFEST that was read.
    pub logs_from: FileNumber,
    /// Why the database cannot be opened for writing: too few file numbers are left.
    pub out_of_numbers: Option<Error>,
}

/// Reads the database in `dir`, with its files where the newest OPTIONS file says. Changes nothing.
///
/// # Errors
/// `Corruption`, `Io` naming file, offset and cause; `InvalidArgument`: there is no database, a family is not listed,
/// its comparator is another one, or files are in directories that are not known; `NotSupported`: a feature by name.
pub fn recover_manifest(
    env: &Env,
    dir: &Path,
    level: FormatLevel,
    tables: &Arc<OpenTables>,
    families: &Families,
) -> Result<Recovered> {
    let entered = enter(env, dir, &PlaceSettings::default(), Purpose::Read)?;
    recover_in(&entered, dir, level, tables, families)
}

/// [`recover_manifest`] of a database whose directories are known.
///
/// # Errors
/// As [`recover_manifest`].
pub fn recover_in(
    entered: &Entered,
    dir: &Path,
    level: FormatLevel,
    tables: &Arc<OpenTables>,
    families: &Families,
) -> Result<Recovered> {
    let env = &entered.env;
    let fs = &*env.fs;
    let (number, replayed) = match entered.purpose() {
        Purpose::Read => read_manifest_beside(fs, dir)?,
        // The caller holds the LOCK.
        Purpose::Write | Purpose::Repair => read_manifest(fs, dir)?,
    };
    let directory = Directory::read(fs, dir)?;
    directory.check_superseded(fs, dir, number)?;
    entered.check_paths(&replayed)?;

    let timed = families.listed.iter().filter(|spec| spec.timed).map(|spec| spec.name.clone()).collect();
    let Chosen { mut open, closed } = choose(&replayed, families)?;
    let mut states = Vec::new();
    for (&id, family) in &replayed.families {
        if let Some(spec) = open.remove(&id) {
            states.push(family_state(env, dir, tables, &replayed, id, family, &spec)?);
        }
    }
    let mut report = report(number, &replayed, level, &states);
    report.foreign.extend(closed);
    report.foreign.extend(entered.notes.iter().cloned());
    report.foreign.extend(misnamed(fs, dir)?);
    for state in &states {
        for (_, file) in state.version.files() {
            directory.check_table((fs, dir), (&replayed.path, entered.purpose()), &file.file)?;
            entered.check_place(&state.name, &file.file, &replayed.path)?;
        }
        directory.check_blobs(&replayed.path, state)?;
    }
    if is_leveldb(fs, dir, &replayed)? {
        report.foreign.insert(0, LEVELDB_UPGRADE_NOTICE.to_owned());
    }
    report.read_only = unwritable::reasons(fs, dir, &states, &timed);
    report.files_checked = states.iter().map(|s| s.version.file_count()).sum();

    let (next_file, out_of_numbers) = next_file(dir, &replayed, &directory);
    let mut db = replayed.db.clone();
    if db.db_id.is_none() {
        let identity = read_identity(fs, dir)?;
        db.db_id = Some(identity.unwrap_or_else(|| new_db_id(env)));
    }
    let there: BTreeSet<&str> = states.iter().map(|state| &*state.name).collect();
    let missing = families.listed.iter().filter(|s| !s.only_if_there && !there.contains(&*s.name));
    let missing = missing.cloned().collect();
    let beginning =
        Beginning { db, families: states, next_file, last_seq: replayed.last_seq, manifest: number };
    let versions = VersionSet::new(env.clone(), dir.to_path_buf(), level, Arc::clone(tables), beginning);
    Ok(Recovered { versions, missing, report, logs_from: replayed.logs_from(), out_of_numbers })
}

/// The smallest WAL file that the database in `dir` needs now, by the MANIFEST in use. A writer raises this number
/// before it deletes a WAL file that was needed. Takes no lock, changes nothing, opens no table.
///
/// # Errors
/// As [`recover_manifest`], as far as the MANIFEST is concerned.
pub fn logs_needed_from(fs: &dyn Fs, dir: &Path) -> Result<FileNumber> {
    read_manifest_beside(fs, dir).map(|(_, replayed)| replayed.logs_from())
}

/// The names of the families of the database in `dir`, in id order. Takes no lock, changes nothing, opens no table.
/// Another process may write to the database meanwhile.
///
/// # Errors
/// As [`recover_manifest`], as far as the MANIFEST is concerned.
pub fn list_families(env: &Env, dir: &Path) -> Result<Vec<String>> {
    let env = hold_directory(env, dir)?;
    let (_, replayed) = read_manifest_beside(&*env.fs, dir)?;
    Ok(replayed.families.into_values().map(|f| f.name).collect())
}

/// Which families are opened, and how; and the report lines about families that stay closed.
struct Chosen {
    open: BTreeMap<FamilyId, FamilySpec>,
    closed: Vec<String>,
}

fn choose(replayed: &Replayed, families: &Families) -> Result<Chosen> {
    let mut chosen = BTreeMap::new();
    let mut closed = Vec::new();
    let mut unlisted = Vec::new();
    let listed: HashMap<&str, &FamilySpec> = families.listed.iter().map(|s| (&*s.name, s)).collect();
    for (&id, family) in &replayed.families {
        if let Some(spec) = listed.get(&*family.name) {
            let mut spec = (*spec).clone();
            match family.comparator.as_deref().and_then(timestamp_order) {
                // Opened under its name only: the family is neither read nor written.
                Some(order) if !matches!(spec.order, Order::Custom(_)) => spec.order = order,
                // The caller gave no comparator: the family keeps its own, if that is built in.
                _ if matches!(spec.order, Order::Bytewise) => spec.order = built_in_order(family)?,
                _ => check_comparator(family, &spec.order)?,
            }
            chosen.insert(id, spec);
            continue;
        }
        match families.others {
            Others::Skip => {}
            Others::Refuse => unlisted.push(family.name.as_str()),
            Others::Open { levels } => {
                let order = built_in_order(family)?;
                chosen.insert(id, open_other(family, order, levels));
            }
            Others::OpenKnown { levels } => match built_in_order(family) {
                Ok(order) => {
                    chosen.insert(id, open_other(family, order, levels));
                }
                // The default family must be usable in every open.
                Err(e) if id == FamilyId::DEFAULT => return Err(e),
                Err(e) => closed.push(format!("{} and stays closed", e.message())),
            },
        }
    }
    if unlisted.is_empty() {
        Ok(Chosen { open: chosen, closed })
    } else {
        Err(Error::invalid(format!("Column families not opened: {}", unlisted.join(", ").escape_debug()))
            .hint("List every family of the database when you open it"))
    }
}

/// The settings of a family that the caller did not list.
fn open_other(family: &ReplayedFamily, order: Order, levels: usize) -> FamilySpec {
    FamilySpec { name: family.name.clone(), order, levels, only_if_there: true, timed: false }
}

fn check_comparator(family: &ReplayedFamily, order: &Order) -> Result<()> {
    match &family.comparator {
        Some(stored) if stored != order.name() => {
            Err(Error::other_comparator(&family.name, stored, Some(order.name())))
        }
        _ => Ok(()),
    }
}

fn built_in_order(family: &ReplayedFamily) -> Result<Order> {
    let Some(name) = &family.comparator else { return Ok(Order::Bytewise) };
    Order::by_name(name).or_else(|| timestamp_order(name)).ok_or_else(|| {
        Error::other_comparator(&family.name, name, None).hint(
            "Give it with FamilyBuilder::comparator; programs without it can only open the other families",
        )
    })
}

fn family_state(
    env: &Env,
    dir: &Path,
    tables: &Arc<OpenTables>,
    replayed: &Replayed,
    id: FamilyId,
    family: &ReplayedFamily,
    spec: &FamilySpec,
) -> Result<FamilyState> {
    let tables = Tables::new(env.clone(), dir.to_path_buf(), Arc::clone(tables), spec.order.clone());
    let mut tree = family.tree.clone();
    tree.learn_sequences(&tables)?;
    tree.complete(&spec.order, replayed.last_seq);
    // A tree that is deeper than the settings say is opened with its depth; the report says so.
    let levels = spec.levels.max((tree.deepest() + 1).min(MAX_LEVELS));
    let version = tree.finish(levels, &tables).map_err(|e| e.at_path(&replayed.path))?;
    Ok(FamilyState {
        id,
        name: family.name.clone(),
        comparator: spec.order.name().to_string(),
        log_number: family.log_number,
        version: Arc::new(version),
        carried: family.carried.clone(),
        next_epoch: tree.max_epoch().saturating_add(1),
    })
}

/// The file names of a directory, by kind.
struct Directory {
    tables: BTreeMap<FileNumber, u64>,
    blobs: BTreeSet<FileNumber>,
    manifests: Vec<FileNumber>,
    /// The largest number of any file, and the file's name.
    largest: (FileNumber, String),
    /// Tables that are not regular files: links, pipes or devices.
    irregular: BTreeSet<FileNumber>,
}

impl Directory {
    fn read(fs: &dyn Fs, dir: &Path) -> Result<Directory> {
        let mut found = Directory {
            tables: BTreeMap::new(),
            blobs: BTreeSet::new(),
            manifests: Vec::new(),
            largest: (FileNumber(0), String::new()),
            irregular: BTreeSet::new(),
        };
        for entry in fs.list(dir)? {
            let Some(kind) = FileKind::parse(&entry.name) else { continue };
            // Numbers above the maximum cannot collide with numbers that this engine gives out.
            if let Some(n) = kind.number().filter(|n| *n <= FileNumber::MAX) {
                found.largest = std::mem::take(&mut found.largest).max((n, entry.name));
            }
            if entry.kind == EntryKind::Dir {
                continue;
            }
            match kind {
                // `N.sst` sorts behind `N.ldb` and is tried first when a table is opened.
                FileKind::Table(n) | FileKind::LevelDbTable(n) => {
                    found.tables.insert(n, entry.len);
                    if entry.kind == EntryKind::Other {
                        found.irregular.insert(n);
                    }
                }
                FileKind::Blob(n) => drop(found.blobs.insert(n)),
                FileKind::Manifest(n) => found.manifests.push(n),
                _ => {}
            }
        }
        Ok(found)
    }

    /// Checks for a newer MANIFEST with more than its first commit: it was current once, so `CURRENT` is older than it
    /// should be.
    fn check_superseded(&self, fs: &dyn Fs, dir: &Path, current: FileNumber) -> Result<()> {
        for &newer in self.manifests.iter().filter(|n| **n > current) {
            if was_current(fs, dir, newer)? {
                return Err(Error::corruption(format!(
                    "CURRENT names MANIFEST-{current}, but MANIFEST-{newer} is newer and was in use"
                ))
                .at_path(&dir.join(FileKind::Current.name()))
                .hint(format!("Restore CURRENT to name MANIFEST-{newer}")));
            }
        }
        Ok(())
    }

    /// Checks that the table exists and has its length. An open that only reads goes on with a table of another length: reads of its
    /// keys fail.
    fn check_table(
        &self,
        (fs, dir): (&dyn Fs, &Path),
        (manifest, purpose): (&Path, Purpose),
        file: &NewFile,
    ) -> Result<()> {
        let number = file.number;
        let path = || fs.real_path(&dir.join(FileKind::Table(number).name()));
        if self.irregular.contains(&number) {
            // The error of opening the file says what it is.
            drop(fs.open_read(&path())?);
        }
        match self.tables.get(&number) {
            Some(&len) if len == file.size || purpose == Purpose::Read => Ok(()),
            Some(&len) => Err(Error::corruption(format!(
                "table {number} has {len} bytes, the MANIFEST says {}",
                file.size
            ))
            .at(&path(), len.min(file.size))),
            None => Err(Error::corruption(format!(
                "table {number} is missing, which {} names",
                manifest.file_name().unwrap_or_default().to_string_lossy()
            ))
            .at_path(&path())
            .hint(format!("Restore the file from a backup; if it is in another directory: {GIVE_PATHS}"))),
        }
    }

    fn check_blobs(&self, manifest: &Path, family: &FamilyState) -> Result<()> {
        match family.version.blobs().files().keys().find(|n| !self.blobs.contains(n)) {
            None => Ok(()),
            Some(number) => {
                let e = Error::corruption(format!("blob file {number} is missing")).at_path(manifest);
                Err(e.hint(format!("Restore the file; if it is in another directory: {GIVE_PATHS}")))
            }
        }
    }
}

/// The next number to give out, and, when [too few](FileNumber::HIGHEST) are left, the error of an open that writes.
fn next_file(dir: &Path, replayed: &Replayed, directory: &Directory) -> (FileNumber, Option<Error>) {
    let (found, name) = &directory.largest;
    let recorded = replayed.largest_recorded();
    let used = recorded.max(*found);
    let wrong = (used > FileNumber::HIGHEST).then(|| match recorded < used {
        true => out_of_numbers(&dir.join(name), used)
            .hint("Move the file away if the database does not need it, or run a repair"),
        false => out_of_numbers(&replayed.path, used).hint("Run a repair, which gives out lower numbers"),
    });
    (FileNumber(used.min(FileNumber::MAX).0 + 1), wrong)
}

fn report(
    number: FileNumber,
    replayed: &Replayed,
    level: FormatLevel,
    states: &[FamilyState],
) -> RecoveryReport {
    let family = |s: &FamilyState| FamilyReport {
        id: s.id,
        name: s.name.clone(),
        tables: s.version.file_count(),
        bytes: (0u8..).zip(&s.version.levels).map(|(n, _)| s.version.level_bytes(Level(n))).sum(),
        log_number: s.log_number,
    };
    let dropped = replayed.dropped.iter().map(|tail| DroppedRange {
        file: FileKind::Manifest(number).name(),
        offset: tail.offset,
        bytes: tail.bytes,
        reason: tail.reason.clone(),
        remains: None,
    });
    RecoveryReport {
        manifest: number,
        manifest_records: replayed.records,
        families: states.iter().map(family).collect(),
        last_sequence: replayed.last_seq,
        dropped: dropped.collect(),
        foreign: foreign(replayed, level, states),
        ..RecoveryReport::default()
    }
}
