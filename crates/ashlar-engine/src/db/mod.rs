//! The database handle: open, close, and every operation of a database.
//!
//! A [`Db`] is an `Arc`: clones share one database. Iterators, snapshots and views own what they need, so handles may
//! be dropped in any order; after [`Db::close`] they return `Shutdown`. Dropping the last handle closes the database.
//!
//! | file | subject |
//! |---|---|
//! | `core` | state that all handles share, and waiting |
//! | `open`, `read_only`, `parts`, `replay`, `close` | opening and closing |
//! | `writes`, `switch`, `reads` | code around the committer and the readers |
//! | `settings` | the settings of an open: stored ones, and those of the caller |
//! | `schedule`, `flush_job`, `atomic_flush_job`, `compaction_job`, `purge_job` | background work: pick, run, install |
//! | `install` | makes a change of the tree durable, and shows it to readers |
//! | `claim` | marks a change that a calling thread makes: a close waits for it |
//! | `candidate` | the copy of the state from which a compaction is chosen without the state lock |
//! | `job`, `work` | the shell of all jobs, and the list of single jobs |
//! | `l0_delay_job` | re-checks a level 0 that waits for a flush |
//! | `limited` | the pauses of background work under the limit on its writing |
//! | `disk` | the limits on disk space |
//! | `scrub_job` | continuous reading of all files to find damage |
//! | `timer_job` | work that only the clock makes due |
//! | `resume_job`, `room_job` | recovery from a failed WAL or MANIFEST, and from a disk without space for the WAL |
//! | `properties`, `stats`, `notify`, `pins` | properties, statistics and events |
//! | `families`, `maintenance`, `manual` | create and drop, flush and pause, compact on request |
//! | `drop_files` | deletes whole tables by key range |
//! | `live_files`, `table_properties`, `sizes`, `verify` | lists tables, shows their properties, estimates sizes, verifies checksums |
//! | `held_files` | keeps every file while a caller copies them |
//! | `replace` | replaces tables on the caller's thread |
//! | `ingest` | takes tables made outside the database into the tree |
//! | `import` | makes a family of the tables of another database |
//! | `change` | changes of settings while the database is open |

mod atomic_flush_job;
mod candidate;
mod change;
mod claim;
mod close;
mod compaction_job;
mod core;
mod disk;
mod drop_files;
mod families;
mod flush_job;
mod held_files;
mod import;
mod ingest;
mod install;
mod job;
mod l0_delay_job;
mod limited;
mod live_files;
mod maintenance;
mod manual;
mod open;
mod parts;
mod pins;
mod properties;
mod purge_job;
mod read_only;
mod reads;
mod replace;
mod replay;
mod resume_job;
mod room_job;
mod schedule;
mod sizes;
mod verify;
mod settings;
mod stamp;
mod stats;
mod switch;
mod table_properties;
mod notify;
mod scrub_job;
mod timer_job;
mod two_phase;
mod work;
mod writes;

pub use held_files::{HeldFiles, KeptFiles, Moment};
pub use import::NewFamily;
pub use ingest::{Brought, IngestMode, IngestOptions, Ingested, sst_writer};
pub use live_files::LiveFile;
pub use replace::{Claimed, Placed};
pub use replay::{HoldsOperand, OptionsOf, replay_past_damage};
pub use settings::{OpenFamily, Settings};
pub use sizes::{MemtableStats, SizeOptions};
pub use table_properties::HeldTables;

use crate::health::{Health, lacks_space};
use crate::pressure::{Resources, WritePressure};
use ashlar_base::stats::Statistics;
use ashlar_base::{Result, SeqNum};
use ashlar_env::Env;
use ashlar_options::{DbOptions, FamilyOptions};
use ashlar_recovery::RecoveryReport;
use core::Core;
use std::any::Any;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, OnceLock, Weak};

/// An open database.
#[derive(Clone)]
pub struct Db {
    handle: Arc<Handle>,
}

/// A database without keeping it open.
#[derive(Clone)]
pub struct WeakDb {
    handle: Weak<Handle>,
}

impl WeakDb {
    /// The database; `None`: the last [`Db`] is dropped.
    pub fn upgrade(&self) -> Option<Db> {
        self.handle.upgrade().map(|handle| Db { handle })
    }
}

/// Closes the database when the last clone of its [`Db`] is dropped.
struct Handle {
    core: Arc<Core>,
    /// What a feature above the engine keeps per open database: see [`Db::attached`].
    attached: OnceLock<Box<dyn Any + Send + Sync>>,
}

impl Handle {
    fn new(core: Arc<Core>) -> Arc<Handle> {
        Arc::new(Handle { core, attached: OnceLock::new() })
    }
}

/// The environment with the threads of the resources.
fn within(resources: Option<&Resources>, env: Env) -> Env {
    match resources {
        Some(resources) => resources.environment(env),
        None => env,
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if self.core.database.is_inherited() {
            return self.core.leave_to_parent();
        }
        if self.core.is_inside() {
            return self.core.close_elsewhere();
        }
        // A drop cannot return an error; `Db::close` does.
        let _ = self.core.close();
    }
}

impl Db {
    /// A handle that does not keep the database open.
    pub fn downgrade(&self) -> WeakDb {
        WeakDb { handle: Arc::downgrade(&self.handle) }
    }

    /// Opens the database in `dir`. Existing families that are not listed are opened with `others`.
    ///
    /// # Errors
    /// `Busy(Locked)`: another handle or process has it open. `Corruption`: damaged, with file and offset; nothing was
    /// changed.
    /// `InvalidArgument`: an option out of range, another comparator, or no database in `dir` and `create_if_missing`
    /// is off.
    /// `NotSupported`: the database has data that this engine cannot serve, by name. `Io`: an operating system call
    /// failed.
    ///
    /// A database with data that this engine could not preserve (such as families with user-defined timestamps) is opened
    /// read-only: [`RecoveryReport::read_only`] and the errors of writes name the reasons.
    pub fn open(
        env: Env,
        dir: &Path,
        options: DbOptions,
        families: Vec<OpenFamily>,
        others: FamilyOptions,
    ) -> Result<Db> {
        Db::open_within(None, env, dir, options, families, others)
    }

    /// [`Db::open`] with resources that databases of the process share, or with its own.
    ///
    /// # Errors
    /// Those of [`Db::open`]. `InvalidArgument`: the resources have less memory than a database needs. `Busy(Memory)`: no room
    /// for another database.
    pub fn open_within(
        resources: Option<&Resources>,
        env: Env,
        dir: &Path,
        options: DbOptions,
        families: Vec<OpenFamily>,
        others: FamilyOptions,
    ) -> Result<Db> {
        let env = within(resources, env);
        open::check_executor(&env)?;
        let core =
            open::open(env, dir, options, families, others, resources).map_err(|e| {
                match lacks_space(&e) {
                    true => e.hint("Make room on the device, or open the database read-only"),
                    false => e,
                }
            })?;
        Ok(Db { handle: Handle::new(core) })
    }

    /// Opens the database in `dir` for reading only: takes no LOCK, writes nothing, and replays all WAL files into
    /// memory. Safe beside a live writer, AshlarDB or RocksDB: shows the state of one moment during the open and keeps
    /// all files of that state open. Writes, flushes and compactions return `NotSupported`. Families as in
    /// [`Db::open`]; a family that is not listed and whose comparator is unknown stays closed.
    ///
    /// # Errors
    /// `InvalidArgument`: no database in `dir`, a listed family that does not exist, an option out of range.
    /// `Corruption`, `Io`: a file is damaged, or other processes changed the directory too fast for a consistent read; the
    /// hint says which. `Busy`: other processes deleted WAL files during each attempt.
    /// # Cost
    /// An open file for each table and blob file; memory for all records in the WAL.
    pub fn open_read_only(
        env: Env,
        dir: &Path,
        options: DbOptions,
        families: Vec<OpenFamily>,
        others: FamilyOptions,
    ) -> Result<Db> {
        Db::open_read_only_within(None, env, dir, options, families, others)
    }

    /// [`Db::open_read_only`] with resources that databases of the process share, or with its own.
    ///
    /// # Errors
    /// Those of [`Db::open_read_only`] and of [`Db::open_within`].
    pub fn open_read_only_within(
        resources: Option<&Resources>,
        env: Env,
        dir: &Path,
        options: DbOptions,
        families: Vec<OpenFamily>,
        others: FamilyOptions,
    ) -> Result<Db> {
        let env = within(resources, env);
        open::check_executor(&env)?;
        let core = read_only::open_read_only(env, dir, options, families, others, resources)?;
        Ok(Db { handle: Handle::new(core) })
    }

    fn core(&self) -> &Arc<Core> {
        &self.handle.core
    }

    /// The database directory.
    pub fn path(&self) -> &Path {
        &self.core().dir
    }

    /// # Errors
    /// `Shutdown`: the database is closed, or the handle belongs to the parent of this process.
    pub fn check_open(&self) -> Result<()> {
        self.core().check_open()
    }

    /// The value that a feature above the engine keeps for this open database, made by the first call. `None`: another
    /// feature has attached a value of another type.
    pub fn attached<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> Option<&T> {
        self.handle.attached.get_or_init(|| Box::new(make())).downcast_ref()
    }

    /// The value of [`Db::attached`], if a call has made it.
    pub fn attachment<T: Any + Send + Sync>(&self) -> Option<&T> {
        self.handle.attached.get()?.downcast_ref()
    }

    /// The id of this open, which the tables that it writes have in their properties.
    pub fn session_id(&self) -> &str {
        &self.core().writer.session_id
    }

    /// The environment of the database.
    pub fn env(&self) -> &Env {
        &self.core().env
    }

    /// What the open found, dropped or rebuilt.
    pub fn recovery(&self) -> &RecoveryReport {
        &self.core().recovery
    }

    /// The newest sequence that reads see.
    pub fn visible(&self) -> SeqNum {
        self.core().visible()
    }

    /// The sequence up to which every logged write survives a power cut.
    pub fn durable(&self) -> SeqNum {
        self.core().committer.durable()
    }

    /// Makes all earlier writes durable.
    ///
    /// # Errors
    /// `Io`, after which writes are refused.
    pub fn sync_wal(&self) -> Result<()> {
        self.core().check_outside("sync()")?;
        self.core().sync_wal()
    }

    /// Hands the records that `manual_wal_flush` keeps in the process to the operating system, so that all earlier
    /// writes survive the process; with `sync`, to the device. (RocksDB: `FlushWAL`.)
    ///
    /// # Errors
    /// `Io`, after which writes are refused until the engine has resumed. No accepted write is lost meanwhile.
    /// # Cost
    /// Without `sync` one write call; nothing when no records are buffered.
    pub fn flush_wal(&self, sync: bool) -> Result<()> {
        self.core().check_outside("flush_wal()")?;
        self.core().flush_wal(sync)
    }

    /// The statistics: tickers, and what the statistics level enables.
    pub fn statistics(&self) -> &Arc<Statistics> {
        &self.core().statistics
    }

    /// How far background work is behind, its rates, and when writers must wait at the current rate.
    pub fn pressure(&self) -> WritePressure {
        let core = self.core();
        if core.database.is_inherited() { WritePressure::default() } else { core.write_pressure() }
    }

    /// The health of the database, and the error behind it. In a forked child: `Fatal`.
    pub fn health(&self) -> Health {
        match self.core().database.check_process() {
            Ok(()) => self.core().health.state(),
            Err(forked) => Health::fatal(forked),
        }
    }

    /// Waits for background work to pause, and closes. Later calls on any clone return `Shutdown`; a second close
    /// succeeds. Data written with `disable_wal` is flushed.
    ///
    /// # Errors
    /// The error of a step; the database is closed all the same. `InvalidArgument`: a listener, merge operator or
    /// comparator of the database makes the call; the database stays open. `Shutdown(Forked)`: the parent process has
    /// it open.
    pub fn close(&self) -> Result<()> {
        self.core().check_outside("close()")?;
        self.core().close()
    }
}

impl fmt::Debug for Db {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Db({})", self.path().display())
    }
}
