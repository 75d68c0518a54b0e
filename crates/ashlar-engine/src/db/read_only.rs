//! Opening for reading only: no LOCK, nothing written, and a consistent state beside a concurrent writer.
//!
//! ```text
//! MANIFEST -> open tables, blob files, logs -> MANIFEST again: are the logs still needed? -> replay into memory
//! ```
//! 1. Files of the state are opened before they are read: an open file stays readable when it is unlinked.
//! 2. A writer deletes a WAL file only after the MANIFEST records that it is not needed. If the MANIFEST's first needed
//!    WAL is the same at both looks, no needed WAL file can be missing. Otherwise the attempt starts again.
//! 3. A recycled WAL file is overwritten although it is open. Records carry the file's number, so reading stops at the
//!    first foreign record. An unclean end counts only while the WAL file is still needed, or, of a file that is kept for
//!    transactions, while it still has its name.
//! 4. Damage counts only if nothing in the directory changed meanwhile: a missing file, a torn MANIFEST or WAL may be a
//!    writer's unfinished work. Bytes of a MANIFEST or WAL are reported as dropped only if all attempts of
//!    [`RECORD_TIME`] drop the same ones, or after [`ATTEMPTS_MIN`] attempts. An attempt keeps its open tables for the next
//!    attempt, so that each has less to do.
//! 5. A damaged table or blob file does not fail the open. The report names the file, and reads of its keys return the
//!    error, as after an ordinary open.
//!
//! An ordinary open continues here too, with the LOCK held, when the directory has data that this engine could not
//! preserve.
//!
//! Source: RocksDB `db/db_impl/db_impl_readonly.cc` for the interface; the handling of concurrent writers is this
//! engine's own.

use super::core::{Core, Hold};
use super::parts::{Parts, statistics, take_memory};
use super::replay::Replayer;
use super::settings::{OpenFamily, Settings};
use crate::health::HealthState;
use crate::pressure::{Memory, Resources};
use crate::wal::Wal;
use ashlar_base::error::BusyKind;
use ashlar_base::planted::{Bug, planted};
use ashlar_base::stats::Statistics;
use ashlar_base::{Error, ErrorKind, FileNumber, Order, Result};
use ashlar_compaction::new_session_id;
use ashlar_env::{Env, FileLock, FsEntry};
use ashlar_format::filename::FileKind;
use ashlar_format::version_edit::NewFile;
use ashlar_options::{DbOptions, FamilyOptions};
use ashlar_recovery::{
    DamagedFile, DroppedRange, FoundWals, Policy, PreparedSet, Recovered, RecoveryReport, ReplayOutcome,
    logs_needed_from, recover_in, replay_found,
};
use ashlar_table::TableReader;
use ashlar_tree::files::{DirState, PendingOutputs, hold_directory, survey};
use ashlar_tree::places::{Entered, Purpose, enter};
use ashlar_tree::version::{OpenTables, VersionSet, read_current};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Attempts that changes of the directory interrupt are repeated for this long, and at least [`ATTEMPTS_MIN`] times. One
/// attempt mostly suffices; each is shorter than the first. Beside a writer that replaces tables faster than a slow
/// machine opens them, hundreds may be needed.
const PATIENCE: Duration = Duration::from_secs(10);
const ATTEMPTS_MIN: u32 = 64;
/// On a simulated clock no time may pass.
const ATTEMPTS_MAX: u32 = 1000;
/// The time that a writer gets to end its record: its thread may wait for a processor.
const RECORD_TIME: Duration = Duration::from_millis(50);

/// The bytes that the last attempts dropped, and the time of the first of these attempts.
#[derive(Default)]
struct Losses {
    dropped: Vec<DroppedRange>,
    since: Duration,
}

impl Losses {
    /// The pause between an attempt at `now`, which dropped `dropped`, and the next one. `None`: its result counts.
    fn pause_after(&mut self, dropped: &[DroppedRange], now: Duration) -> Option<Duration> {
        if dropped.is_empty() || planted(Bug::LogsLookedAtOnce) {
            return None;
        }
        if dropped != self.dropped {
            (self.dropped, self.since) = (dropped.to_vec(), now);
            return Some(Duration::ZERO);
        }
        let left = RECORD_TIME.saturating_sub(now.saturating_sub(self.since));
        (!left.is_zero()).then_some(left)
    }
}

/// See [`super::Db::open_read_only`].
pub(super) fn open_read_only(
    env: Env,
    dir: &Path,
    options: DbOptions,
    families: Vec<OpenFamily>,
    others: FamilyOptions,
    resources: Option<&Resources>,
) -> Result<Arc<Core>> {
    let mut settings = Settings::new(&options, families, others)?;
    let mut options = options;
    let env = hold_directory(&env, dir)?;
    if let DirState::Absent | DirState::Empty = survey(&*env.fs, dir)? {
        let e = Error::invalid("there is no database").at_path(dir);
        return Err(e.hint("Check the path; an open for reading only makes no database"));
    }
    let entered = enter(&env, dir, &settings.places(&options), Purpose::Read)?;
    settings.settle(&mut options, &entered);
    let memory = take_memory(&options, resources)?;
    let tables = memory.resources().open_tables();
    let statistics = statistics(&env, &options);
    let mut opening = Opening {
        entered,
        dir,
        options,
        settings,
        lock: None,
        tables,
        memory,
        statistics,
        kept: Kept::default(),
    };
    let (mut overtaken, mut losses) = (None, Losses::default());
    let (clock, mut attempts) = (Arc::clone(&opening.entered.env.clock), 0);
    let begun = clock.now();
    while attempts < ATTEMPTS_MIN || attempts < ATTEMPTS_MAX && clock.now().saturating_sub(begun) < PATIENCE {
        attempts += 1;
        let before = opening.sight()?;
        match opening.attempt(&before) {
            Ok(Some(core)) => match losses.pause_after(&core.recovery.dropped, clock.now()) {
                Some(time) if attempts < ATTEMPTS_MIN => clock.sleep(time),
                _ => return Ok(core),
            },
            Ok(None) => {}
            Err(e) if !e.is_corruption() && !e.is_not_found() => return Err(e),
            Err(e) if opening.sight()? == before => return Err(e),
            Err(e) => overtaken = Some(e),
        }
    }
    let e = overtaken.unwrap_or_else(|| {
        let kind = ErrorKind::Busy(BusyKind::Locked);
        Error::new(kind, "other processes deleted WAL files during the open").at_path(dir)
    });
    Err(e.hint(format!(
        "The directory changed under each of {attempts} attempts to read it. Open it again when it is idle"
    )))
}

/// Continues an ordinary open of a database with data that this engine cannot preserve; the report names that data. The
/// LOCK is kept, the directory stays as it is, reads are served.
pub(super) fn open_locked(
    entered: Entered,
    dir: &Path,
    options: DbOptions,
    settings: Settings,
    (lock, memory): (Box<dyn FileLock>, Arc<Memory>),
) -> Result<Arc<Core>> {
    let tables = memory.resources().open_tables();
    let statistics = statistics(&entered.env, &options);
    let (lock, kept) = (Some(lock), Kept::default());
    let mut opening = Opening { entered, dir, options, settings, lock, tables, memory, statistics, kept };
    let before = opening.sight()?;
    let opened = opening.attempt(&before)?;
    opened.ok_or_else(|| {
        Error::corruption("a WAL file disappeared while this process held the LOCK").at_path(dir)
    })
}

/// The observable state of a directory: it changes with every change that matters to a read-only open.
type Sight = (Option<FileNumber>, Vec<FsEntry>);

/// A read-only open in progress.
struct Opening<'a> {
    entered: Entered,
    dir: &'a Path,
    options: DbOptions,
    settings: Settings,
    lock: Option<Box<dyn FileLock>>,
    /// All tables stay open: a file that a writer deletes stays readable while it is open.
    tables: Arc<OpenTables>,
    memory: Arc<Memory>,
    statistics: Arc<Statistics>,
    kept: Kept,
}

impl Opening<'_> {
    fn sight(&self) -> Result<Sight> {
        let fs = &*self.entered.env.fs;
        Ok((read_current(fs, self.dir)?, fs.list(self.dir)?))
    }

    /// Whether a WAL file that was read may have been recycled meanwhile.
    fn may_be_recycled(&self, outcome: &ReplayOutcome) -> Result<bool> {
        let (fs, dir) = (&*self.entered.env.fs, self.dir);
        if let Some(unclean) = outcome.unclean
            && logs_needed_from(fs, dir)? > unclean
        {
            return Ok(true);
        }
        // RocksDB renames a WAL file before it overwrites it.
        let Some(kept) = outcome.unclean_kept else { return Ok(false) };
        Ok(fs.metadata(&dir.join(FileKind::Wal(kept).name()))?.is_none())
    }

    /// Opens every file of the state. The report names the damaged ones, if the directory is still as it was `before`.
    ///
    /// # Errors
    /// `Corruption`: a file is damaged, or the directory changed. `Io`.
    fn open_files(
        &mut self,
        versions: &VersionSet,
        before: &Sight,
        report: &mut RecoveryReport,
    ) -> Result<()> {
        let damaged = self.kept.open_all(versions)?;
        if let Some((_, e)) = damaged.first()
            && self.sight()? != *before
        {
            return Err(e.clone());
        }
        let named = damaged.into_iter().map(|(kind, e)| {
            let name = e.path().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
            DamagedFile::new(name.unwrap_or_else(|| kind.name()), &e)
        });
        report.damaged.extend(named);
        Ok(())
    }

    /// `None`: a WAL file that the state needs may have been deleted before it was opened. `before` is the sight of the
    /// directory at the start of the attempt.
    fn attempt(&mut self, before: &Sight) -> Result<Option<Arc<Core>>> {
        let (env, dir, level) = (&self.entered.env, self.dir, self.options.format_level);
        let families = match self.lock {
            None => self.settings.families_to_read(),
            Some(_) => self.settings.families(),
        };
        let Recovered { versions, missing, mut report, logs_from, .. } =
            recover_in(&self.entered, dir, level, &self.tables, &families)?;
        if let Some(spec) = missing.first() {
            let e = Error::invalid(format!("column family {:?} does not exist", spec.name));
            return Err(e.hint("It cannot be made: the database is opened read-only"));
        }
        for family in versions.families() {
            family.version.tables().count_into(&self.statistics);
        }
        self.settings.recall(env, dir, &mut self.options, &versions, &mut report)?;
        self.open_files(&versions, before, &mut report)?;
        let (env, dir) = (&self.entered.env, self.dir);
        let wals = FoundWals::open(env, dir, &versions)?;
        if logs_needed_from(&*env.fs, dir)? != logs_from && !planted(Bug::LogsLookedAtOnce) {
            return Ok(None);
        }
        let versions = Arc::new(versions);
        let pending = PendingOutputs::new();
        let session_id = new_session_id(&*env.rand);
        let options_of = |name: &str, order: &Order| self.settings.of(name, order);
        let replayer = || Replayer::new(env, dir, &versions, &pending, &session_id, &options_of).in_memory();
        let replay = |policy: Policy, to: &mut Replayer<'_>, report: &mut RecoveryReport| {
            replay_found(&wals, dir, &versions, (self.options.recovery_mode, policy), to, report)
        };
        let (mut replayed, recovered) = (replayer(), report.clone());
        let mut outcome = replay(Policy::AtCommit, &mut replayed, &mut report)?;
        if outcome.policy == Policy::BeforeCommit {
            (replayed, report) = (replayer(), recovered);
            outcome = replay(Policy::BeforeCommit, &mut replayed, &mut report)?;
        }
        if self.may_be_recycled(&outcome)? {
            return Ok(None);
        }
        report.read_only.extend(replayed.too_large().map(str::to_owned));
        let memtables = replayed.into_memtables();
        if self.lock.is_none() {
            report.read_only.insert(0, "as asked".to_owned());
        }
        let parts = Parts {
            env: env.clone(),
            places: Arc::clone(&self.entered.places),
            dir: dir.to_path_buf(),
            options: self.options.clone(),
            hold: Hold::new(self.lock.take()),
            tables: Arc::clone(&self.tables),
            memory: Arc::clone(&self.memory),
            statistics: Arc::clone(&self.statistics),
            health: HealthState::new(Some(refusal(&report))),
            wal: Arc::new(Wal::idle(dir)?),
            versions,
            report,
            pending,
            session_id,
            memtables,
            // Nothing can be decided on here.
            prepared: PreparedSet::default(),
            info_log: None,
        };
        Ok(Some(parts.assemble(&self.settings)))
    }
}

/// The error that writes return.
fn refusal(report: &RecoveryReport) -> Error {
    let reasons = report.read_only.join("; ");
    Error::not_supported(format!(
        "the database is open read-only ({reasons}): it takes no writes, flushes or compactions"
    ))
}

/// The tables opened so far.
#[derive(Default)]
struct Kept(BTreeMap<FileNumber, (NewFile, Arc<TableReader>)>);

impl Kept {
    /// Opens every table and blob file of the state and returns those that are damaged. Continues after failures, and
    /// returns the first failure that is no damage at the end. A table of an unsupported kind is neither: reads of its
    /// keys return the error.
    fn open_all(&mut self, versions: &VersionSet) -> Result<Vec<(FileKind, Error)>> {
        let (mut outcome, mut damaged) = (Ok(()), Vec::new());
        if planted(Bug::ViewLetsTablesGo) {
            return Ok(damaged);
        }
        let mut note = |kind: FileKind, e: Error| match e.kind() {
            ErrorKind::NotSupported => {}
            ErrorKind::Corruption => damaged.push((kind, e)),
            _ if outcome.is_ok() => outcome = Err(e),
            _ => {}
        };
        for family in versions.families() {
            for (_, file) in family.version.files() {
                let number = file.number();
                if let Some((known, table)) = self.0.get(&number)
                    && *known == file.file
                {
                    family.version.tables().keep(file, Arc::clone(table));
                    continue;
                }
                match family.version.table(file) {
                    Ok(table) => drop(self.0.insert(number, (file.file.clone(), table))),
                    Err(e) => note(FileKind::Table(number), e),
                }
            }
            for (number, e) in family.version.blobs().open_all() {
                note(FileKind::Blob(number), e);
            }
        }
        outcome.map(|()| damaged)
    }
}
