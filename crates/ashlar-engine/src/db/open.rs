//! Opening: lock, recover, replay, flush the replayed data, begin a new WAL file, report.
//!
//! Until recovery has succeeded the directory is only read, except for `LOCK` and the tables of a long replay, which
//! are removed if the open fails. Then one commit records the new tables and the new WAL file for all families. Files
//! are removed only after that commit.

use super::core::{Core, Hold};
use super::notify::log_header;
use super::parts::{Parts, archive_of, statistics, take_memory};
use super::read_only::open_locked;
use super::replay::{Replayed, Replayer};
use super::schedule::widen;
use super::settings::{OpenFamily, Settings};
use crate::health::HealthState;
use crate::pressure::{Memory, Resources};
use crate::wal::{Wal, WalShape};
use ashlar_base::stats::Statistics;
use ashlar_base::{Error, ErrorKind, FileNumber, Order, Result};
use ashlar_compaction::new_session_id;
use ashlar_env::{Env, FileLock};
use ashlar_format::compress::Compression;
use ashlar_format::filename::FileKind;
use ashlar_format::log_record::LogLink;
use ashlar_format::version_edit::VersionEdit;
use ashlar_log::RecoveryMode;
use ashlar_observe::InfoLog;
use ashlar_options::{DbOptions, FamilyOptions, log_lines, options_text, write_options_text};
use ashlar_recovery::{
    FamilySpec, PreparedSet, PurgedAtOpen, Recovered, RecoveryReport, ReplayOutcome, UnusedFiles,
    purge_at_open, recover_in, replay_wals,
};
use ashlar_tree::files::{
    DirState, PendingOutputs, Settled, check_lost, create_database, hold_directory, lost_is_usable,
    make_directory, settle_identity, survey,
};
use ashlar_tree::places::{Entered, Purpose, enter, refuse_of_another};
use ashlar_tree::version::{OpenTables, VersionSet};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// The families whose settings the log lists.
const LOGGED_FAMILIES: usize = 10;

pub(super) fn open(
    env: Env,
    dir: &Path,
    mut options: DbOptions,
    families: Vec<OpenFamily>,
    others: FamilyOptions,
    resources: Option<&Resources>,
) -> Result<Arc<Core>> {
    let mut settings = Settings::new(&options, families, others)?;
    let memory = take_memory(&options, resources)?;
    widen(&env, memory.resources(), options.max_background_jobs);
    let (entered, lock) = occupy(&env, dir, &mut options, &mut settings)?;
    let env = entered.env.clone();
    let (created, tables) = (create_if_empty(&env, dir, &settings)?, limited_tables(&options, &memory));
    let recovered = recover_in(&entered, dir, options.format_level, &tables, &settings.families())?;
    let (session_id, pending) = (new_session_id(&*env.rand), PendingOutputs::new());
    let Recovered { versions, missing, mut report, out_of_numbers, .. } = recovered;
    if !report.read_only.is_empty() {
        return open_locked(entered, dir, options, settings, (lock, memory));
    }
    out_of_numbers.map_or(Ok(()), Err)?;
    settings.recall(&env, dir, &mut options, &versions, &mut report)?;
    let (versions, statistics) = counted(&env, &options, versions);
    let (mut claims, options_of) = (entered.claim()?, |name: &str, order: &Order| settings.of(name, order));
    let mut replayer = Replayer::new(&env, dir, &versions, &pending, &session_id, &options_of)
        .under(&options, Some(&memory))
        .announcing(|| entered.announce(|| versions.new_file_number()));
    let outcome = replay_wals(&env, dir, &versions, options.recovery_mode, &mut replayer, &mut report);
    if replayer.too_large().is_some() || outcome.is_ok() && !report.read_only.is_empty() {
        drop((replayer, claims));
        return open_locked(entered, dir, options, settings, (lock, memory));
    }
    let ReplayOutcome { cut, newest_end: before, .. } = outcome?;
    check_lost_at_open(&env, dir, &mut report)?;
    claims.strays |= replayer.keeps_blob_files()?;
    let Replayed { edits, pending: replayed, undecided: prepared, uncollected } = replayer.finish()?;
    report.unserved.extend(uncollected);
    claims.stand();
    let unused = UnusedFiles::keep(&*env.fs, dir, &report)?;
    // First, because the new MANIFEST may be without the id.
    claims.strays |= note_identity(&env, &versions, &mut report)?;
    let first = First { cut, undecided: &prepared, before };
    let wal = begin_session(&entered, &versions, &options, edits, first)?;
    drop(replayed);
    create_missing(&versions, &options, &missing, wal.number())?;
    let kept = (&*versions, &*pending, archive_of(&options, dir));
    let purged = purge_at_open(&*env.fs, dir, kept, &mut report, &unused, claims.strays)?;
    (report.created, report.advice) = (created, settings.advice(&options, &versions));
    let env = InfoLog::hold_elsewhere(env, &options.info_log);
    let parts = Parts {
        info_log: InfoLog::open(&env, dir, &options.info_log, &log_header(&report)),
        env,
        places: entered.places,
        dir: dir.to_path_buf(),
        options,
        hold: Hold::new(Some(lock)),
        tables,
        memory,
        statistics,
        versions,
        report,
        pending,
        session_id,
        wal,
        memtables: BTreeMap::new(),
        prepared,
        health: HealthState::new(None),
    };
    begin(parts.assemble(&settings), purged)
}

/// The version set and the statistics of the open. The tables of all families count into these statistics.
fn counted(env: &Env, options: &DbOptions, mut versions: VersionSet) -> (Arc<VersionSet>, Arc<Statistics>) {
    if !options.id_in_manifest {
        versions.keep_id_apart();
    }
    let statistics = statistics(env, options);
    versions.families().iter().for_each(|family| family.version.tables().count_into(&statistics));
    (Arc::new(versions), statistics)
}

/// Checks that `lost` can take the files after a dropped tail, before anything is written.
///
/// # Errors
/// `InvalidArgument`: files must be moved to `lost`, and `lost` is not a directory.
fn check_lost_at_open(env: &Env, dir: &Path, report: &mut RecoveryReport) -> Result<()> {
    if report.tail_dropped() {
        return check_lost(&*env.fs, dir);
    }
    if !lost_is_usable(&*env.fs, dir)? {
        report.foreign.push("lost is not a directory: this open removes no file that is obsolete".to_owned());
    }
    Ok(())
}

/// Writes IDENTITY if it is missing or wrong, and notes that in the report. True: it was wrong, so the MANIFEST may be of another
/// database than the tables.
fn note_identity(env: &Env, versions: &VersionSet, report: &mut RecoveryReport) -> Result<bool> {
    match settle_identity(&*env.fs, versions)? {
        Settled::Agreed => {}
        Settled::Missing(what) => report.written.push(what),
        Settled::Wrong(what) => {
            report.regenerated.push(what);
            return Ok(true);
        }
    }
    Ok(false)
}

/// Writes the OPTIONS file, then starts automatic background work.
fn begin(core: Arc<Core>, purged: PurgedAtOpen) -> Result<Arc<Core>> {
    core.state().quarantined = purged.quarantined;
    core.begin_disk(purged.bytes);
    core.write_options()?;
    core.log_options();
    schedule_on_release(&core);
    let paced = Arc::downgrade(&core);
    core.memory.resources().tell_new_rate(paced);
    core.update_pressure();
    core.schedule();
    core.arm_timer();
    core.start_scrub();
    Ok(core)
}

/// Schedules compactions when a snapshot is released, because the release may allow tombstones to be dropped.
fn schedule_on_release(core: &Arc<Core>) {
    let scheduler = Arc::downgrade(core);
    core.snapshots.on_release(Box::new(move || {
        if let Some(core) = scheduler.upgrade() {
            core.schedule();
        }
    }));
}

/// Creates the requested families that do not exist, if the options allow it.
fn create_missing(
    versions: &VersionSet,
    options: &DbOptions,
    missing: &[FamilySpec],
    log: FileNumber,
) -> Result<()> {
    for spec in missing {
        if !options.create_missing_families {
            return Err(Error::invalid(format!("column family {:?} does not exist", spec.name)));
        }
        refuse_timestamps(&spec.order)?;
    }
    let new: Vec<_> = missing.iter().map(|spec| (&*spec.name, spec.order.clone(), spec.levels)).collect();
    versions.create_families(&new, log)
}

/// The table cache of a writable database: keeps as many tables open as the options say, fewer where file descriptors or
/// memory are short.
fn limited_tables(options: &DbOptions, memory: &Memory) -> Arc<OpenTables> {
    let tables = memory.resources().open_tables();
    tables.set_limit(options.max_open_files);
    memory.resources().heed_shortage(&tables);
    tables
}

/// Refuses to create a family with timestamps, because this engine could not write it.
pub(super) fn refuse_timestamps(order: &Order) -> Result<()> {
    match order.timestamp_len() {
        0 => Ok(()),
        _ => Err(Error::not_supported(format!("families with user-defined timestamps ({})", order.name()))),
    }
}

/// # Errors
/// `Shutdown(Forked)`: the threads for background work belong to the parent process of this fork.
pub(super) fn check_executor(env: &Env) -> Result<()> {
    if env.jobs.serves() {
        return Ok(());
    }
    Err(Error::forked().hint("The environment was made before the fork: make one in the child"))
}

/// The LOCK of the database directory, and those of the further directories.
#[derive(Debug)]
struct Locks(
    #[expect(dead_code, reason = "held")] Box<dyn FileLock>,
    #[expect(dead_code, reason = "held")] Vec<Box<dyn FileLock>>,
);

impl FileLock for Locks {}

/// Locks the database directory and the further directories, and takes over where the files are.
fn occupy(
    env: &Env,
    dir: &Path,
    options: &mut DbOptions,
    settings: &mut Settings,
) -> Result<(Entered, Box<dyn FileLock>)> {
    let mut env = hold_directory(env, dir)?;
    let lock = lock_directory(&mut env, dir, options)?;
    let mut entered = enter(&env, dir, &settings.places(options), Purpose::Write)?;
    let lock = Box::new(Locks(lock, entered.occupy(&*env.fs)?));
    settings.settle(options, &entered);
    Ok((entered, lock))
}

/// Locks the directory; creates it if it is missing and the options say so.
fn lock_directory(env: &mut Env, dir: &Path, options: &DbOptions) -> Result<Box<dyn FileLock>> {
    let state = survey(&*env.fs, dir);
    // The hint of an error would be to repair this directory, which is wrong for that of another database.
    if let Ok(DirState::Empty) | Err(_) = state
        && let Err(other) = refuse_of_another(&*env.fs, dir)
        && other.kind() == ErrorKind::InvalidArgument
    {
        return Err(other);
    }
    match state? {
        DirState::Database(_) if options.error_if_exists => {
            return Err(Error::invalid("there is a database already (error_if_exists is set)").at_path(dir));
        }
        DirState::Absent | DirState::Empty if !options.create_if_missing => {
            let e = Error::invalid("there is no database (create_if_missing is off)").at_path(dir);
            return Err(e.hint(
                "Check the path, or let the open make a database: Builder::create(true), create_if_missing in RocksDB's \
                 options, --create_if_missing for 'ashlar db'",
            ));
        }
        DirState::Absent => {
            make_directory(&*env.fs, dir)?;
            *env = hold_directory(env, dir)?;
        }
        _ => {}
    }
    env.fs.lock(&dir.join(FileKind::Lock.name()))
}

/// Creates a database in a locked, empty directory. False: a database exists, perhaps created by another process
/// between the first look and the lock.
fn create_if_empty(env: &Env, dir: &Path, settings: &Settings) -> Result<bool> {
    if let DirState::Database(_) = survey(&*env.fs, dir)? {
        return Ok(false);
    }
    refuse_timestamps(&settings.default_order())?;
    create_database(env, dir, &settings.default_order())?;
    Ok(true)
}

/// What the first batch of a session's WAL file says.
struct First<'a> {
    /// A tail was dropped.
    cut: bool,
    undecided: &'a PreparedSet,
    /// The end of what was replayed.
    before: Option<LogLink>,
}

/// Begins the WAL file of this session, and commits the tables that replay flushed. After the commit older WAL files
/// are not needed.
fn begin_session(
    entered: &Entered,
    versions: &VersionSet,
    options: &DbOptions,
    edits: Vec<VersionEdit>,
    first: First<'_>,
) -> Result<Arc<Wal>> {
    let wal = begin_log(&entered.env, versions.dir(), versions, options, first)?;
    // After the commit only this WAL file is needed, even if it is empty. If its directory entry were lost, the next open would
    // report a lost WAL file.
    entered.env.fs.sync_dir(versions.dir())?;
    versions.commit_replayed(edits, wal.number())?;
    entered.places.leave_former();
    Ok(wal)
}

/// Begins the WAL file of this session. If a tail was dropped (`cut`), or transactions are undecided, the file starts with a
/// synced batch. The sequence of that batch tells a later recovery that nothing is missing after the damage. The batch has
/// the undecided transactions, because the older WAL files go. Until they may go, the batch is linked to them: without their
/// last records, no transaction of those records is there either.
fn begin_log(
    env: &Env,
    dir: &Path,
    versions: &VersionSet,
    options: &DbOptions,
    First { cut, undecided, before }: First<'_>,
) -> Result<Arc<Wal>> {
    let compressed = options.wal_compression != Compression::None;
    // A kill in the middle of a store leaves a payload without a header, which the mode refuses.
    let mapped = options.mapped_wal && options.recovery_mode != RecoveryMode::Absolute;
    let buffered = options.manual_wal_flush;
    let shape = WalShape { compressed, buffered, mapped };
    let mut wal = Wal::create(env, dir, versions.new_file_number(), shape)?;
    if cut || !undecided.is_empty() {
        let next = versions.last_sequence().checked_add(1).unwrap_or(versions.last_sequence());
        wal.begin_at(next, before.filter(|_| !undecided.is_empty()), undecided)?;
        wal.sync_to(wal.log().position())?;
    }
    Ok(Arc::new(wal))
}

impl Core {
    /// Writes the OPTIONS file of the current families.
    pub(super) fn write_options(&self) -> Result<()> {
        self.write_options_noting(None)
    }

    /// [`Core::write_options`], with the directories of a family that is about to be created. Only lines that this
    /// engine alone reads name that family: RocksDB would report a listed family as missing.
    pub(super) fn write_options_noting(&self, coming: Option<(&str, &FamilyOptions)>) -> Result<()> {
        // The number is drawn before the settings are read: of two concurrent writes, the file with the higher number
        // has the later settings.
        let temp = self.pending.reserve(|| self.versions.new_file_number());
        let number = self.versions.new_file_number();
        let families: Vec<_> =
            self.state().families.iter().map(|f| (Arc::clone(&f.family), f.family.options())).collect();
        let listed = families.iter().map(|(f, options)| (f.name(), &**options));
        let listed: Vec<_> = listed.chain(coming).collect();
        let db = self.options();
        let texts: Vec<_> =
            families.iter().map(|(f, options)| f.stored_text(&db, options)).collect::<Result<_>>()?;
        let text = options_text(&db, &listed, &texts)?;
        write_options_text(&self.env, &self.dir, &text, temp.number(), number)
    }

    /// Lists the settings of the database and of its first families in the log.
    fn log_options(&self) {
        let (all, first): (usize, Vec<_>) = {
            let state = self.state();
            let families = state.families.iter().map(|f| (Arc::clone(&f.family), f.family.options()));
            (state.families.len(), families.take(LOGGED_FAMILIES).collect())
        };
        let listed: Vec<_> = first.iter().map(|(f, options)| (f.name(), &**options)).collect();
        let mut lines = log_lines(&self.options(), &listed);
        if all > listed.len() {
            lines.push(format!("The OPTIONS file has {} more column families", all - listed.len()));
        }
        self.events.note_lines(&lines);
    }
}
