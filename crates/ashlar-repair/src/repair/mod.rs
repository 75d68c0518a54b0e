//! Repair: builds a database that opens from the readable rest of a directory, and reports what is lost.
//!
//! ```text
//! LOCK -> OPTIONS, for names -> a readable MANIFEST, or none
//!      -> tables and blob files verified, damaged tables copied around their damage
//!      -> logs replayed past their damages, into tables -> the mark -> one commit: a new MANIFEST
//!      -> damaged files to lost/ -> the mark is removed
//! ```
//! 1. With a readable MANIFEST the tree stays as it is: intact tables are not touched, deleted keys stay deleted. A new
//!    table with the readable blocks of a damaged one takes its place.
//! 2. Without a MANIFEST, all tables of the directory are merged, by their own properties. Among them may be tables
//!    that a compaction had replaced, so deleted keys may reappear. The report says so.
//! 3. An entry whose value cannot be read from its blob file is left out. An older value of its key may show. The readable
//!    values of a damaged blob file move to another one.
//! 4. Until the commit the directory only gains files. Damaged files are never deleted: they move to `lost/`, with a
//!    note. A crash after the commit does not change that: the mark tells the next open (`files::RepairMark`).
//! 5. A failed read (`Io`) proves no damage: the repair ends and changes nothing.
//! 6. WAL files may have writes of families that only the lost end of the MANIFEST created. The repair creates those
//!    families again.
//! 7. The OPTIONS file provides the names of merge operators, as in an open, the names of families that only WAL files
//!    mention, and, without a MANIFEST, the names of comparators. The report names an unreadable OPTIONS file.
//!
//! Source: RocksDB `db/repair.cc` for the interface.
//!
//! | file | subject |
//! |---|---|
//! | `state` | what a repair knows |
//! | `found` | what the directory holds, and which MANIFEST counts |
//! | `tables` | one table: kept, copied around its damage, or lost |
//! | `blobs` | values in blob files: lost, moved, or kept |
//! | `names` | names for families whose names are lost; families that only the lost end of the MANIFEST created |
//! | `rebuild` | a tree without a MANIFEST |
//! | `covered` | which merge operands of the WAL are already in tables |
//! | `report` | what was kept and what is lost |
//! | `quarantine` | one file of a database that stays open |
//! | `salvage` | a repair into another directory; the source stays as it is |

mod blobs;
mod covered;
mod found;
mod names;
mod quarantine;
mod rebuild;
mod renumber;
mod report;
mod salvage;
mod state;
mod tables;

pub use quarantine::quarantine;
pub use report::RepairReport;
pub use salvage::{Salvage, salvage};

use crate::check::{LogsNeeded, check_logs};
use ashlar_base::error::IoKind;
use ashlar_base::{Error, ErrorKind, FamilyId, FileNumber, Order, Result, SeqNum};
use ashlar_cache::FramePool;
use ashlar_compaction::{Writer, new_session_id, output_numbers};
use ashlar_engine::OpenFamily;
use ashlar_engine::for_repair::{Settings, replay_past_damage};
use ashlar_env::{Env, Fs};
use ashlar_format::filename::FileKind;
use ashlar_format::options_file::OptionsFile;
use ashlar_format::version_edit::VersionEdit;
use ashlar_format::write_batch::BatchEncoder;
use ashlar_log::{Framing, LogWriter};
use ashlar_options::{
    DbOptions, FamilyOptions, LoadedOptions, StoredFamily, read_latest_options, stored_families,
};
use ashlar_recovery::PreparedSet;
use ashlar_tree::check::{CheckReport, Damage, Risk, Verified};
use ashlar_tree::files::{
    Action, Live, Obsolete, PendingOutputs, RepairMark, Spared, check_lost, hold_directory, holds_remains,
    leave_in_lost, remove_obsolete, settle_identity, unlink,
};
use ashlar_tree::places::{Entered, PlaceSettings, Purpose, enter, refuse_of_another};
use ashlar_tree::unwritable::by_settings;
use ashlar_tree::version::{
    Beginning, DbFacts, FamilyState, OpenTables, Replayed, VersionSet, new_db_id, read_identity,
};
use covered::Covered;
use found::Found;
use state::Repair;
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use tables::Kept;

/// The block cache during a repair, in bytes.
const POOL_BYTES: usize = 8 << 20;

/// Builds a database that opens from the readable rest of `dir`, and reports what is lost. No handle or process may
/// have `dir` open. Damaged files move to `lost/` in the directory. An undamaged database loses nothing: its WAL
/// records become tables.
/// Families, orders and merge operators as in [`Db::open`](ashlar_engine::Db::open). `progress` is called after each table.
///
/// # Errors
/// `Busy(Locked)`; `InvalidArgument`: no directory, files in unknown directories (`wal_dir`, `db_paths`), an
/// unlisted family with an unknown order, or a family listed with another merge operator than it has.
/// `NotSupported`: timestamps in its WAL files, or settings under which an open does not write.
/// `Io`: a read or write failed; no data was given up because of it, and before the commit nothing changed.
/// # Cost
/// One pass over all tables, blob files and WAL files; without a MANIFEST all tables are rewritten.
pub fn repair(
    env: Env,
    dir: &Path,
    options: DbOptions,
    families: Vec<OpenFamily>,
    others: FamilyOptions,
    progress: &mut dyn FnMut(&Verified),
) -> Result<RepairReport> {
    let settings = Settings::new(&options, families, others)?;
    repair_in(env, dir, (options, settings), None, progress)
}

/// [`repair`]; `source`: all files were copied into `dir` from its directories, whatever directories the MANIFEST names.
fn repair_in(
    env: Env,
    dir: &Path,
    (mut options, mut settings): (DbOptions, Settings),
    source: Option<&Entered>,
    progress: &mut dyn FnMut(&Verified),
) -> Result<RepairReport> {
    let env = hold_directory(&env, dir)?;
    if env.fs.metadata(dir)?.is_none() {
        return Err(Error::invalid("there is no such directory").at_path(dir));
    }
    check_lost(&*env.fs, dir)?;
    let given = source.map_or_else(|| settings.places(&options), |_| PlaceSettings::default());
    refuse_none(&env, dir, &given)?;
    let _lock = env.fs.lock(&dir.join(FileKind::Lock.name()))?;
    refuse_of_another(&*env.fs, dir)?;
    let mut entered = enter(&env, dir, &given, Purpose::Repair)?;
    let _locks = entered.occupy(&*env.fs)?;
    let env = entered.env.clone();
    settings.settle(&mut options, &entered);
    let mut found = Found::list(&*env.fs, dir)?;
    let mut report = RepairReport::default();
    report.remarks.extend(entered.notes.iter().cloned());
    let hinted = |e| unread(e, dir);
    let options_file = options_there(&*env.fs, dir, &mut report).map_err(hinted)?;
    let stored = options_file.as_ref().map(stored_families).unwrap_or_default();
    let mut replayed = found.manifest(&*env.fs, dir, &mut report).map_err(hinted)?;
    if let Some(replayed) = &mut replayed {
        // What is missing in a copy was missing in its source.
        source.unwrap_or(&entered).check_presence(replayed)?;
        if source.is_some() {
            replayed.families.values_mut().for_each(|family| family.tree.gather_in_one_directory());
        }
    }
    found.renumber(replayed.as_mut(), &mut report);
    if let Some(replayed) = &mut replayed {
        names::bring_back(&found.unnamed, replayed, (&stored, &settings), &mut report);
    }
    let there = there(replayed.as_ref(), &stored);
    if let Some(file) = &options_file {
        refuse_unserved(file, there.iter().map(|(name, _)| *name)).map_err(|e| e.at_path(dir))?;
    }
    settings.recall_operators(&stored, there.iter().map(|(name, order)| (*name, order)))?;
    if let Some(file) = &options_file {
        settings.recall_kept(&LoadedOptions::from_file(dir.to_path_buf(), file, options.format_level));
    }
    let session_id = new_session_id(&*env.rand);
    let repair =
        Repair { env, dir, options, settings, stored, found, has_several: OnceCell::new(), session_id };
    repair.run(replayed, &mut report, progress).map_err(hinted)?;
    entered.places.leave_former();
    Ok(report)
}

/// Refuses a directory without any file of a database: a repair creates no database, not even a LOCK.
///
/// # Errors
/// `InvalidArgument`: the known directories hold no file that a database leaves. `Io`.
fn refuse_none(env: &Env, dir: &Path, given: &PlaceSettings) -> Result<()> {
    if holds_remains(&*env.fs, dir)? || holds_remains(&*enter(env, dir, given, Purpose::Repair)?.env.fs, dir)?
    {
        return Ok(());
    }
    let e = Error::invalid("there is no database, and no file of one").at_path(dir);
    Err(e.hint("Name the directory of the database that is to be repaired"))
}

/// Adds to a read error what the operator can do if it persists.
fn unread(e: Error, dir: &Path) -> Error {
    if e.kind() != ErrorKind::Io(IoKind::Other) {
        return e;
    }
    let dir = dir.display();
    e.hint(format!(
        "Try again; if the device cannot read the file, make a copy without the unreadable parts: ashlar db --db={dir} repair \
         --into=COPY --around-unreadable"
    ))
}

/// The OPTIONS file, if there is one. An unreadable file is a line of the report.
fn options_there(fs: &dyn Fs, dir: &Path, report: &mut RepairReport) -> Result<Option<OptionsFile>> {
    match read_latest_options(fs, dir) {
        Ok(found) => Ok(found.map(|(_, file)| file)),
        Err(e) if e.is_corruption() => {
            let name = e.path().map(tables::file_name).unwrap_or_default();
            report.losses.push(Damage::of(&name, &e, Risk::Nothing));
            Ok(None)
        }
        Err(e) => Err(e),
    }
}

/// Refuses settings under which an open does not write, because a repair writes tables.
fn refuse_unserved<'a>(file: &OptionsFile, families: impl Iterator<Item = &'a str>) -> Result<()> {
    let mut reasons = Vec::new();
    for family in families {
        by_settings(file, family, false, &mut reasons);
    }
    match reasons.is_empty() {
        true => Ok(()),
        false => {
            let e = Error::not_supported(format!("a repair that writes tables: {}", reasons.join("; ")));
            Err(e.hint("No setting of the repair changes that. Open the directory for reading, and copy what can be read"))
        }
    }
}

/// The families that are known before tables are read, each with its order if that is built in.
fn there<'a>(replayed: Option<&'a Replayed>, stored: &'a [StoredFamily]) -> Vec<(&'a str, Order)> {
    let order = |name: &Option<String>| name.as_deref().and_then(Order::by_name).unwrap_or(Order::Bytewise);
    match replayed {
        Some(replayed) => {
            replayed.families.values().map(|family| (&*family.name, order(&family.comparator))).collect()
        }
        None => stored.iter().map(|family| (&*family.name, order(&family.comparator))).collect(),
    }
}

impl Repair<'_> {
    fn run(
        &self,
        replayed: Option<Replayed>,
        report: &mut RepairReport,
        progress: &mut dyn FnMut(&Verified),
    ) -> Result<()> {
        let pool = OpenTables::new(FramePool::new(POOL_BYTES));
        let numbered = self.numbered(replayed.as_ref(), &pool)?;
        let pending = PendingOutputs::new();
        // Numbers come from a version set without families; the one that commits is created when the trees are known.
        let writer = Writer::new(&self.env, &numbered, &self.session_id);
        let (file_checksums, db_paths) = (self.options.file_checksums, self.options.db_paths.clone());
        let writer = Writer { file_checksums, db_paths, ..writer };
        let outputs =
            tables::Outputs { writer: &writer, numbers: output_numbers(&numbered, &pending), dir: self.dir };
        let begun: Kept = match &replayed {
            Some(replayed) => self.keep(replayed, &pool, &outputs, report, progress)?,
            None => self.gather(&pool, &outputs, report, progress)?,
        };
        let last_seq = begun.last_seq.max(replayed.as_ref().map_or(SeqNum::ZERO, |r| r.last_seq));
        let next_file = numbered.new_file_number();
        let (edits, states): (Vec<_>, Vec<_>) =
            begun.families.into_iter().map(|f| ((f.state.id, f.edit), f.state)).unzip();
        let db = self.facts(replayed.as_ref(), &states)?;
        let manifest = self.found.newest_manifest();
        let beginning = Beginning { db, families: states, next_file, last_seq, manifest };
        let level = self.options.format_level;
        let (env, dir) = (self.env.clone(), self.dir.to_path_buf());
        let versions = Arc::new(VersionSet::new(env, dir, level, Arc::clone(&pool), beginning));
        let mut edits: BTreeMap<FamilyId, VersionEdit> = edits.into_iter().collect();
        let covered = replayed.is_none().then(|| Covered::by(&versions, &edits));
        let (replay, undecided) =
            self.replay(&versions, &pending, (replayed.as_ref(), covered.as_ref()), report)?;
        for edit in replay {
            let all = edits.entry(edit.family).or_insert_with(|| VersionEdit::of(edit.family));
            all.added.extend(edit.added);
            all.blob_added.extend(edit.blob_added);
        }
        let mut between = Vec::new();
        if replayed.is_none() {
            for edit in edits.values_mut() {
                between.extend(self.merge(&versions, &pending, &writer, edit)?);
            }
        }
        let edits = edits.into_values().filter(|e| !e.added.is_empty() || !e.blob_added.is_empty()).collect();
        self.settle(&versions, &pending, (edits, undecided), &between, report)
    }

    /// Commits `edits`, and only then moves the files that they replace.
    fn settle(
        &self,
        versions: &VersionSet,
        pending: &PendingOutputs,
        (edits, undecided): (Vec<VersionEdit>, PreparedSet),
        between: &[String],
        report: &mut RepairReport,
    ) -> Result<()> {
        let mark = RepairMark::of(&*self.env.fs, self.dir);
        let unended = mark.stands()?;
        let marked = unended
            || !report.to_move.is_empty()
            || !report.strange.is_empty()
            || self.leaves_any(versions, &edits);
        if marked {
            mark.set()?;
        }
        let wal = versions.new_file_number();
        // As every open does: a later open looks for a needed WAL file.
        let log = self.dir.join(FileKind::Wal(wal).name());
        let log = LogWriter::create(Arc::clone(&self.env.fs), &log, wal, Framing::Legacy)?;
        if !undecided.is_empty() {
            let (last, mut copies) = (versions.last_sequence(), BatchEncoder::new());
            undecided.copy_to(&mut copies)?;
            log.append(copies.finish(last.checked_add(1).unwrap_or(last)), false)?;
        }
        log.sync_to(log.position())?;
        versions.commit_replayed(edits, wal)?;
        settle_identity(&*self.env.fs, versions)?;
        let live = versions.live_files().1;
        let strange = std::mem::take(&mut report.strange).into_iter().filter(|n| !live.contains(n));
        report.to_move.extend(strange.map(|number| FileKind::Blob(number).name()));
        self.move_away(report)?;
        for name in between {
            self.env.fs.remove(&self.dir.join(name))?;
        }
        let spared = if unended { Spared::Everything } else { Spared::Orphans };
        let live = Live::now(versions, pending, spared);
        let done = remove_obsolete(&*self.env.fs, self.dir, versions, &live, None)?;
        report.moved.extend(done.lost);
        report.manifest = versions.manifest_number();
        self.leave_note(report)?;
        if marked { mark.clear() } else { Ok(()) }
    }

    /// Whether any table or blob file of the directory is in no tree once `edits` are committed.
    fn leaves_any(&self, versions: &VersionSet, edits: &[VersionEdit]) -> bool {
        let (mut tables, mut blobs) = versions.live_files();
        for edit in edits {
            tables.extend(edit.added.iter().map(|(_, file)| file.number));
            blobs.extend(edit.blob_added.iter().map(|blob| blob.number));
        }
        self.found.tables.iter().any(|(number, _, _)| !tables.contains(number))
            || self.found.blobs.iter().any(|number| !blobs.contains(number))
    }

    /// A version set that gives out numbers above those of all existing files.
    fn numbered(&self, replayed: Option<&Replayed>, pool: &Arc<OpenTables>) -> Result<Arc<VersionSet>> {
        let used = self.found.largest.max(replayed.map_or(FileNumber(0), Replayed::largest_recorded));
        let beginning = Beginning {
            db: self.facts(replayed, &[])?,
            families: Vec::new(),
            next_file: FileNumber(used.0 + 1),
            last_seq: SeqNum::ZERO,
            manifest: self.found.newest_manifest(),
        };
        let (env, dir) = (self.env.clone(), self.dir.to_path_buf());
        Ok(Arc::new(VersionSet::new(env, dir, self.options.format_level, Arc::clone(pool), beginning)))
    }

    fn facts(&self, replayed: Option<&Replayed>, families: &[FamilyState]) -> Result<DbFacts> {
        let mut db = replayed.map(|r| r.db.clone()).unwrap_or_default();
        // Tracked WAL files are replayed as far as they can be read; the report names gaps.
        db.tracked_wals.clear();
        db.max_family = families.iter().map(|f| f.id).max().unwrap_or_default().max(db.max_family);
        if db.db_id.is_none() {
            db.db_id = read_identity(&*self.env.fs, self.dir).ok().flatten();
            db.db_id.get_or_insert_with(|| new_db_id(&self.env));
        }
        Ok(db)
    }

    /// Replays all WAL files that count, past their damages, into tables of level 0.
    fn replay(
        &self,
        versions: &Arc<VersionSet>,
        pending: &Arc<PendingOutputs>,
        (replayed, covered): (Option<&Replayed>, Option<&Covered>),
        report: &mut RepairReport,
    ) -> Result<(Vec<VersionEdit>, PreparedSet)> {
        let mut checked = CheckReport::default();
        let (prev, tracked) =
            replayed.map_or_else(Default::default, |r| (r.db.prev_log, r.db.tracked_wals.clone()));
        let needed = LogsNeeded {
            from: replayed.map_or(FileNumber(0), Replayed::logs_from),
            prev,
            tracked: &tracked,
            last: replayed.map_or(SeqNum::ZERO, |r| r.last_seq),
            flushed: FileNumber(0),
            repairing: true,
            manifest: None,
        };
        check_logs(&*self.env.fs, self.dir, needed, &mut checked)?;
        report.take_logs(checked);
        let options_of = |name: &str, order: &Order| self.settings(name, order);
        let holds = |id: FamilyId, key: &[u8], at| covered.map_or(Ok(false), |c| c.holds(id, key, at));
        let (edits, undecided, recovery) = replay_past_damage(
            (&self.env, self.dir),
            (versions, pending),
            (&self.session_id, &self.options),
            &options_of,
            &holds,
        )?;
        report.keep_logs(&recovery);
        report.remarks.extend(covered.into_iter().flat_map(Covered::remarks));
        report.remarks.extend(
            recovery.undecided.iter().map(|line| {
                format!("{line}; where the WAL was damaged, the decision may be among the losses")
            }),
        );
        report.log_batches = recovery.wal_records();
        Ok((edits, undecided))
    }

    /// Moves damaged files to `lost/`.
    fn move_away(&self, report: &mut RepairReport) -> Result<()> {
        let list: Vec<Obsolete> = std::mem::take(&mut report.to_move)
            .into_iter()
            .filter_map(|name| {
                let kind = FileKind::parse(&name)?;
                let moves = kind.number().is_some() && !matches!(kind, FileKind::MetaDb(_));
                moves.then_some(Obsolete { kind, name, action: Action::Lose })
            })
            .collect();
        let mut done = unlink(&*self.env.fs, self.dir, &list);
        report.moved.extend(done.lost);
        // A file that was missing from the beginning is in the report as missing.
        done.failed.retain(|e| !e.is_not_found());
        done.failed.pop().map_or(Ok(()), Err)
    }

    /// Leaves a note in `lost/` that says why files were moved.
    fn leave_note(&self, report: &RepairReport) -> Result<()> {
        if report.moved.is_empty() {
            return Ok(());
        }
        let name = format!("REPAIR-{}.txt", report.manifest);
        leave_in_lost(&*self.env.fs, self.dir, &name, &report.to_string())
    }
}
