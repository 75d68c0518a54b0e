//! The check: reads all files of a database, finds every damage, and names the keys at risk.
//!
//! 1. The check takes no lock and changes nothing. In a directory that is open elsewhere, files come and go meanwhile,
//!    so a missing file proves no damage: see `beside`.
//! 2. Damage never ends the check. If the MANIFEST is unreadable, every table is read on its own, and the whole
//!    database counts as at risk.
//!
//! [`ashlar_tree::check`] checks the tables and blob files of a version.
//!
//! | file | subject |
//! |---|---|
//! | `logs` | the WAL files that are needed |
//! | `gaps` | what is missing in WAL files: damages, holes, torn tails |

mod gaps;
mod logs;

pub(crate) use logs::LogsNeeded;

use crate::beside::beside_owner;
use crate::lost_end::{data_only_in_unknown, end_is_lost};
use ashlar_base::ext::timestamp_order::timestamp_order;
use ashlar_base::{Error, ErrorKind, FileNumber, Order, Result, SeqNum};
use ashlar_cache::FramePool;
use ashlar_env::{Env, Fs};
use ashlar_format::filename::FileKind;
use ashlar_options::find_latest_options;
use ashlar_table::Anatomy;
use ashlar_tree::check::{CheckReport, Damage, Progress, Risk, check_files};
use ashlar_tree::files::{
    DirState, RepairMark, hold_directory, in_place_of_wals, in_quarantine, lost_is_usable, misnamed, survey,
};
use ashlar_tree::places::{PlaceSettings, Purpose, enter};
use ashlar_tree::version::{
    OpenTables, Replayed, ReplayedFamily, Tables, Version, candidates, out_of_numbers, oversized_identity,
    read_identity, replay_manifest_beside, was_current,
};
use logs::Logs;
use std::collections::BTreeSet;
use std::path::Path;

/// The block cache during a check, in bytes; small, because no block is read twice.
const POOL_BYTES: usize = 1 << 20;

/// More levels than any family has.
const LEVELS: usize = 64;

/// The check adds a remark when fewer sequence numbers than this are left.
const SEQUENCES_FEW: u64 = 1 << 40;

/// Checks the database in `dir`. It takes no lock, and works on read-only media.
///
/// A handle or process may have the database open. A sound result is valid then. Damage is not reported, because files
/// that are removed or written meanwhile look like damage: the answer is `Busy(Locked)`.
///
/// # Errors
/// `InvalidArgument`: there is no database. `Busy(Locked)`: damage was found, or the check failed, and the database is
/// open elsewhere: close it, or check a checkpoint of it. `Io`: the directory, or a WAL file, cannot be read. Other damage
/// is in the report and is no error.
/// # Cost
/// One pass over all files that the database needs. A second pass over damaged files, and over the tables that refer to
/// a damaged blob file.
pub fn check_database(env: &Env, dir: &Path, progress: Progress<'_>) -> Result<CheckReport> {
    check_database_in(env, dir, &PlaceSettings::default(), progress)
}

/// [`check_database`] of a database whose files are in the directories of `given`. Settings that `given` leaves empty
/// are taken from the newest OPTIONS file.
///
/// # Errors
/// As [`check_database`]; `InvalidArgument` too when needed files are in directories that are not known.
pub fn check_database_in(
    env: &Env,
    dir: &Path,
    given: &PlaceSettings,
    progress: Progress<'_>,
) -> Result<CheckReport> {
    let env = &hold_directory(env, dir)?;
    let wrong = |report: &CheckReport| {
        let first = report.damages.iter().chain(&report.holes).next()?;
        Some(format!("{}: {}", first.file, first.cause))
    };
    beside_owner(&*env.fs, dir, || check_held(env, dir, given, progress), wrong)
}

/// [`check_database_in`] of a directory that is held.
fn check_held(env: &Env, dir: &Path, given: &PlaceSettings, progress: Progress<'_>) -> Result<CheckReport> {
    let mut report = CheckReport::default();
    let Some(replayed) = manifest(&*env.fs, dir, &mut report)? else {
        let entered = enter(env, dir, given, Purpose::Repair)?;
        every_table(&*entered.env.fs, dir, &mut report)?;
        return Ok(report);
    };
    let entered = enter(env, dir, given, Purpose::Read)?;
    entered.check_presence(&replayed)?;
    report.remarks.extend(entered.notes.iter().cloned());
    check_whole(&entered.env, dir, &replayed, report, progress)
}

/// Checks a database whose MANIFEST is readable.
fn check_whole(
    env: &Env,
    dir: &Path,
    replayed: &Replayed,
    mut report: CheckReport,
    progress: Progress<'_>,
) -> Result<CheckReport> {
    let fs = &*env.fs;
    if let Some(tail) = &replayed.dropped {
        let name = replayed.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        report.remarks.push(format!(
            "{name} has a torn tail at {} ({}), which an open drops",
            tail.offset, tail.reason
        ));
    }
    let mut families = Vec::new();
    for family in replayed.families.values() {
        match version_of(env, dir, replayed, family) {
            Ok(version) => families.push((family.name.clone(), version)),
            Err(e) if e.kind() == ErrorKind::InvalidArgument => report.unchecked.push(e.message().to_owned()),
            Err(e) => {
                let name = replayed.path.file_name().unwrap_or_default().to_string_lossy();
                report.tell(&e, Damage::of(&name, &e, Risk::Database).in_family(&family.name));
            }
        }
    }
    let named: Vec<_> = families.iter().map(|(name, version)| (name.as_str(), version)).collect();
    check_files(fs, dir, &named, &mut report, progress);
    let ahead = replayed.families.values().filter(|family| family.tree.table_numbers().next().is_some());
    let needed = LogsNeeded {
        from: replayed.logs_from(),
        prev: replayed.db.prev_log,
        tracked: &replayed.db.tracked_wals,
        last: replayed.last_seq,
        flushed: ahead.map(|family| family.log_number).max().unwrap_or_default(),
        repairing: false,
        manifest: Some(replayed),
    };
    let drops = check_logs(fs, dir, needed, &mut report)? || replayed.dropped.is_some();
    check_beside(fs, dir, replayed, &mut report)?;
    check_unknown(fs, dir, (replayed, &named), drops, &mut report)?;
    check_numbers(fs, dir, replayed, &mut report)?;
    check_sequences(replayed, &mut report);
    Ok(report)
}

/// The state that `CURRENT` leads to; `None` when it cannot be determined.
fn manifest(fs: &dyn Fs, dir: &Path, report: &mut CheckReport) -> Result<Option<Replayed>> {
    let number = match survey(fs, dir) {
        Ok(DirState::Database(number)) => number,
        Ok(DirState::Absent | DirState::Empty) => {
            return Err(Error::invalid("there is no database").at_path(dir));
        }
        Err(e) if e.is_corruption() => {
            let e = e.hint(candidates(fs, dir));
            report.damages.push(Damage::of(&FileKind::Current.name(), &e, Risk::Database));
            return Ok(None);
        }
        Err(e) => return Err(e),
    };
    let name = FileKind::Manifest(number).name();
    let replayed = match replay_manifest_beside(fs, dir, number) {
        Ok(replayed) => replayed,
        // Nothing can be checked without the MANIFEST, and an unsupported feature is no damage.
        Err(e) if matches!(e.kind(), ErrorKind::Busy(_) | ErrorKind::NotSupported) => return Err(e),
        Err(e) => {
            report.damages.push(Damage::of(&name, &e, Risk::Database));
            return Ok(None);
        }
    };
    for entry in fs.files(dir)? {
        let Some(FileKind::Manifest(newer)) = FileKind::parse(&entry.name) else { continue };
        if newer > number && was_current(fs, dir, newer)? {
            let cause = format!("CURRENT names {name}, but {} is newer and was in use", entry.name);
            let file = FileKind::Current.name();
            report.damages.push(Damage::new(file, None, cause, Risk::Database));
        }
    }
    Ok(Some(replayed))
}

fn version_of(env: &Env, dir: &Path, replayed: &Replayed, family: &ReplayedFamily) -> Result<Version> {
    let order = match &family.comparator {
        None => Order::Bytewise,
        Some(name) => Order::by_name(name).or_else(|| timestamp_order(name)).ok_or_else(|| {
            Error::invalid(format!(
                "family {:?}: its tables cannot be checked without the comparator {name}",
                family.name
            ))
        })?,
    };
    let open = OpenTables::new(FramePool::new(POOL_BYTES));
    let mut tree = family.tree.clone();
    tree.complete(&order, replayed.last_seq);
    let tables = Tables::new(env.clone(), dir.to_path_buf(), open, order);
    tree.finish(LEVELS, &tables)
}

/// Checks every table of a directory on its own, because the MANIFEST is unusable.
fn every_table(fs: &dyn Fs, dir: &Path, report: &mut CheckReport) -> Result<()> {
    let mut entries = fs.files(dir)?;
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    for entry in entries {
        let Some(FileKind::Table(_) | FileKind::LevelDbTable(_)) = FileKind::parse(&entry.name) else {
            continue;
        };
        (report.tables, report.bytes) = (report.tables + 1, report.bytes + entry.len);
        let read =
            fs.open_read(&dir.join(&entry.name)).and_then(Anatomy::open).and_then(|table| table.verify());
        match read {
            Ok(entries) => report.entries += entries.unwrap_or_default(),
            Err(e) => report.tell(&e, Damage::of(&entry.name, &e, Risk::Database)),
        }
    }
    Ok(())
}

/// Checks the WAL files that are needed. True if an open drops anything of them.
pub(crate) fn check_logs(
    fs: &dyn Fs,
    dir: &Path,
    needed: LogsNeeded<'_>,
    report: &mut CheckReport,
) -> Result<bool> {
    let mut found = Vec::new();
    for entry in fs.files(dir)? {
        let Some(FileKind::Wal(number)) = FileKind::parse(&entry.name) else { continue };
        if number >= needed.from || number == needed.prev {
            found.push((number, entry.name));
        }
    }
    found.sort();
    for (number, _) in in_place_of_wals(&fs.list(dir)?, needed.from) {
        let cause = "a directory is in the place of the WAL file, which the database may need".to_owned();
        report.damages.push(Damage::of_log(number, None, cause, needed.first()));
    }
    for number in needed.tracked.keys().filter(|number| **number >= needed.from) {
        if found.iter().all(|(there, _)| there != number) {
            let cause = "WAL file is missing, which the MANIFEST tracks".to_owned();
            report.damages.push(Damage::of_log(*number, None, cause, needed.first()));
        }
    }
    let mut logs = Logs::new(fs, dir, needed);
    for (number, name) in &found {
        logs.log(name, *number, report)?;
    }
    Ok(logs.tell(report))
}

/// Reports file numbers and sequences so near their maximum that nothing could be written.
fn check_numbers(fs: &dyn Fs, dir: &Path, replayed: &Replayed, report: &mut CheckReport) -> Result<()> {
    let recorded = replayed.largest_recorded();
    if recorded > FileNumber::HIGHEST {
        let e = out_of_numbers(&replayed.path, recorded);
        let name = replayed.path.file_name().unwrap_or_default().to_string_lossy();
        report.damages.push(Damage::of(&name, &e, Risk::Nothing));
    }
    for entry in fs.list(dir)? {
        let number = FileKind::parse(&entry.name).and_then(FileKind::number);
        if let Some(number) = number.filter(|n| (FileNumber::HIGHEST..=FileNumber::MAX).contains(n)) {
            let e = out_of_numbers(&dir.join(&entry.name), number);
            report.damages.push(Damage::of(&entry.name, &e, Risk::Nothing));
        }
    }
    let left = SeqNum::MAX.get() - replayed.last_seq.get();
    if left < SEQUENCES_FEW {
        let last = replayed.last_seq;
        report.remarks.push(format!(
            "the MANIFEST has the last sequence {last}: only {left} more writes are possible; a repair recounts the sequences"
        ));
    }
    Ok(())
}

/// Checks that no table has a sequence above the last one: readers would not see its entries.
fn check_sequences(replayed: &Replayed, report: &mut CheckReport) {
    let name = replayed.path.file_name().unwrap_or_default().to_string_lossy();
    for family in replayed.families.values() {
        let largest = family.tree.largest_seq(SeqNum::ZERO);
        let Some(largest) = largest.filter(|largest| *largest > replayed.last_seq) else { continue };
        let cause = format!(
            "a table has sequence {largest}, above {}, the last one of the database: readers do not see its entries",
            replayed.last_seq
        );
        let e = Error::corruption(cause);
        report.damages.push(Damage::of(&name, &e, Risk::UnknownKeys).in_family(&family.name));
    }
}

/// Checks OPTIONS and IDENTITY, and lists misnamed files.
fn check_beside(fs: &dyn Fs, dir: &Path, replayed: &Replayed, report: &mut CheckReport) -> Result<()> {
    let mut tell_options = |e: &Error| {
        let name = e.path().and_then(|p| p.file_name()).unwrap_or_default().to_string_lossy().into_owned();
        report.tell(e, Damage::of(&name, e, Risk::Nothing));
    };
    match find_latest_options(fs, dir) {
        Ok(latest) => latest.damaged.iter().for_each(|(_, e)| tell_options(e)),
        Err(e) => tell_options(&e),
    }
    let identity = read_identity(fs, dir)?;
    match (&replayed.db.db_id, identity) {
        (Some(id), Some(other)) if *id != other => report
            .remarks
            .push(format!("IDENTITY says {other:?} where the MANIFEST says {id:?}; an open rewrites it")),
        (Some(_), None) => report.remarks.push(match oversized_identity(fs, dir)? {
            Some(bytes) => {
                format!("IDENTITY has {bytes} bytes and names no database; an open rewrites it")
            }
            None => "IDENTITY is missing; an open rewrites it".to_owned(),
        }),
        _ => {}
    }
    report.remarks.extend(misnamed(fs, dir)?);
    Ok(())
}

/// Lists the tables and blob files that no record of the MANIFEST names. If the open `drops` the end of a MANIFEST or WAL
/// file, or a repair did not end, an open moves them to `lost/`, because they may hold data.
fn check_unknown(
    fs: &dyn Fs,
    dir: &Path,
    (replayed, families): (&Replayed, &[(&str, &Version)]),
    drops: bool,
    report: &mut CheckReport,
) -> Result<()> {
    if families.len() != replayed.families.len() {
        return Ok(());
    }
    let (repairing, quarantined) = match lost_is_usable(fs, dir)? {
        true => (RepairMark::of(fs, dir).stands()?, in_quarantine(fs, dir)?),
        false => (false, BTreeSet::new()),
    };
    let mut known: BTreeSet<FileNumber> = BTreeSet::new();
    for (_, version) in families {
        known.extend(version.files().map(|(_, file)| file.number()));
        known.extend(version.blobs().files().keys());
    }
    let (mut tables, mut logs) = (BTreeSet::new(), BTreeSet::new());
    for entry in fs.files(dir)? {
        let number = match FileKind::parse(&entry.name) {
            Some(FileKind::Table(n) | FileKind::LevelDbTable(n)) if !known.contains(&n) => {
                tables.insert(n);
                n
            }
            Some(FileKind::Blob(n)) if !known.contains(&n) => n,
            Some(FileKind::Wal(n)) => {
                logs.insert(n);
                continue;
            }
            _ => continue,
        };
        let name = entry.name;
        match drops || repairing || quarantined.contains(&number) {
            true => report.unknown.push(name),
            false => report.remarks.push(format!("{name} is not in the MANIFEST")),
        }
    }
    // A new database of RocksDB records no WAL number before its first flush, so it proves nothing.
    let numbered = replayed.logs_from().0 > 0;
    if numbered && data_only_in_unknown(replayed, tables.iter(), &logs, false) {
        let what = format!(
            "no record names tables that hold data of the WAL file {}, which is gone: {}",
            replayed.logs_from(),
            report.unknown.join(", ")
        );
        report.damages.push(end_is_lost(replayed, &what, Risk::UnknownKeys));
    }
    Ok(())
}
