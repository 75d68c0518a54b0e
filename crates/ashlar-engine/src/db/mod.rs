//! The handle: open, close, and every operation of a database.
//!
//! A [`Db`] is an `Arc`: clones share. Iterators, snapshots and views hold what they need, so the order in which handles
//! go does not matter; after [`Db::close`] they answer `Shutdown`. Dropping the last handle closes.
//!
//! | file | what it is about |
//! |---|---|
//! | `core` | what all handles share, and waiting |
//! | `open`, `read_only`, `replay`, `direct_blobs`, `close` | the beginning and the end |
//! | `writes`, `reads` | what surrounds the committer and the readers |
//! | `schedule`, `flush_job`, `atomic_flush_job`, `compaction_job`, `purge_job` | background work: pick, run, install |
//! | `job`, `work` | the shell of all jobs, and which jobs there are |
//! | `l0_delay_job` | looking again at a level 0 that waits for a flush |
//! | `limited` | the pauses of background work under the limit on its writing |
//! | `scrub_job` | looking for damage all the time |
//! | `timer_job` | what is due by the clock alone |
//! | `resume_job`, `room_job` | the way back from a failed log or MANIFEST; from a disk without room for the log |
//! | `properties`, `stats`, `counters`, `tell`, `pins` | what it tells about itself |
//! | `families`, `maintenance`, `manual` | create and drop, flush and pause, compact on request |
//! | `repair` | a database of what is left of one, in its place or beside it |
//! | `change` | settings changed while open |

mod atomic_flush_job;
mod change;
mod claim;
mod close;
mod compaction_job;
mod core;
mod counters;
mod direct_blobs;
mod drop_files;
mod families;
mod flush_job;
mod install;
mod job;
mod l0_delay_job;
mod limited;
mod live_files;
mod maintenance;
mod manual;
mod open;
mod output;
mod pins;
mod properties;
mod purge_job;
mod read_only;
mod reads;
mod repair;
mod replay;
mod resume_job;
mod room_job;
mod schedule;
mod sizes;
mod verify;
mod session;
mod settings;
mod stats;
mod tell;
mod scrub_job;
mod timer_job;
mod unused_files;
mod work;
mod writes;

pub use counters::Scrubbed;
pub use live_files::LiveFile;
pub use pins::{Pins, SnapshotPins};
pub use repair::{RepairReport, Salvage};
pub use settings::OpenFamily;
pub use sizes::{MemtableStats, SizeOptions};

use crate::batch::WriteBatch;
use crate::column_family::Family;
use crate::health::{Severity, lacks_space};
use crate::open::RecoveryReport;
use crate::pressure::Forecast;
use crate::snapshot::Snapshot;
use ashlar_base::stats::Statistics;
use ashlar_base::{Error, Result, SeqNum};
use ashlar_env::Env;
use ashlar_options::{DbOptions, FamilyOptions, ReadOptions, WriteOptions};
use ashlar_read::iter::DbIter;
use ashlar_read::point::{MayExist, View};
use ashlar_tree::columns::Columns;
use core::Core;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// An open database.
#[derive(Clone)]
pub struct Db {
    handle: Arc<Handle>,
}

/// Closes when the last clone of a [`Db`] goes.
struct Handle {
    core: Arc<Core>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        if self.core.database.is_inherited() {
            return self.core.leave_to_parent();
        }
        if self.core.is_inside() {
            return self.core.close_elsewhere();
        }
        // No caller is left for an error: `Db::close` returns it.
        let _ = self.core.close();
    }
}

impl Db {
    /// Opens the database in `dir`. Families that exist and are not listed are opened with `others`.
    ///
    /// # Errors
    /// `Busy(Locked)`: somebody else has it open. `Corruption`: damaged, with file and offset; nothing was changed.
    /// `InvalidArgument`: an option out of range, another comparator, or no database there and `create_if_missing` off.
    /// `NotSupported`: it holds what this engine cannot serve, by name. `Io`: the operating system refused.
    ///
    /// A database that holds what could not be carried along (prepared transactions, families with user-defined
    /// timestamps) is opened read-only: [`RecoveryReport::read_only`] names the reasons, and so does what writes answer.
    pub fn open(
        env: Env,
        dir: &Path,
        options: DbOptions,
        families: Vec<OpenFamily>,
        others: FamilyOptions,
    ) -> Result<Db> {
        open::check_executor(&env)?;
        let core = open::open(env, dir, options, families, others).map_err(|e| match lacks_space(&e) {
            true => e.hint("Make room on the device, or open the database read-only"),
            false => e,
        })?;
        Ok(Db { handle: Arc::new(Handle { core }) })
    }

    /// Opens the database in `dir` for reading only: takes no LOCK, writes nothing, and replays the logs into memory, all
    /// they hold. Fine beside a live writer, ours or RocksDB's: shows the state of one moment during the open and holds on
    /// to the files of that state, each of them open. Writes, flushes and compactions are answered `NotSupported`.
    /// Families as in [`Db::open`]; one whose comparator is not known and that is not listed stays closed.
    ///
    /// # Errors
    /// `InvalidArgument`: no database there, a listed family that does not exist, an option out of range.
    /// `Corruption`, `Io`: damaged, or changed by others so fast that no moment of it could be seen (which the hint says).
    /// # Cost
    /// An open file for each table and blob file; memory for what the logs hold.
    pub fn open_read_only(
        env: Env,
        dir: &Path,
        options: DbOptions,
        families: Vec<OpenFamily>,
        others: FamilyOptions,
    ) -> Result<Db> {
        open::check_executor(&env)?;
        let core = read_only::open_read_only(env, dir, options, families, others)?;
        Ok(Db { handle: Arc::new(Handle { core }) })
    }

    fn core(&self) -> &Arc<Core> {
        &self.handle.core
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.core().dir
    }

    /// The environment it runs in.
    pub fn env(&self) -> &Env {
        &self.core().env
    }

    /// What the open found, dropped or rebuilt.
    pub fn recovery(&self) -> &RecoveryReport {
        &self.core().recovery
    }

    /// Applies a batch: all of it, or nothing. Returns the sequence number of its last operation.
    ///
    /// # Errors
    /// `InvalidArgument`: a family that does not exist (any more), a merge in a family without a merge operator, a range
    /// deletion that ends before it begins, `sync` together with `disable_wal`. `Indeterminate`: the log failed meanwhile. `Shutdown`.
    pub fn write(&self, batch: &mut WriteBatch, options: WriteOptions) -> Result<SeqNum> {
        self.core().write(batch, options)
    }

    /// The value of `key`, `None` when there is none.
    ///
    /// # Errors
    /// `Corruption`, `Io`: a table cannot be read. Never mistaken for absence. `InvalidArgument`: the family belongs to
    /// another database. A family that was dropped is read as it was then.
    pub fn get(&self, family: &Family, key: &[u8], options: &ReadOptions) -> Result<Option<View>> {
        self.core().get(family, key, options)
    }

    /// The columns of `key`, `None` when there is no such key. A plain value is the default column of a row of one.
    ///
    /// # Errors
    /// As [`Db::get`].
    pub fn get_entity(&self, family: &Family, key: &[u8], options: &ReadOptions) -> Result<Option<Columns>> {
        self.core().get_entity(family, key, options)
    }

    /// The values of `keys`, in the order of `keys`, all as of one moment.
    ///
    /// # Errors
    /// `Shutdown` for all; per key as [`Db::get`].
    /// # Cost
    /// Less than as many gets, the more of the keys are neighbours: each block is asked of the cache, or read, once.
    pub fn multi_get(
        &self,
        family: &Family,
        keys: &[&[u8]],
        options: &ReadOptions,
    ) -> Result<Vec<Result<Option<View>>>> {
        self.core().multi_get(family, keys, options)
    }

    /// Whether `key` can have a value, without reading data blocks.
    ///
    /// # Errors
    /// `Corruption`, `Io`: a table cannot be opened. `Shutdown`.
    pub fn key_may_exist(&self, family: &Family, key: &[u8], options: &ReadOptions) -> Result<MayExist> {
        self.core().key_may_exist(family, key, options)
    }

    /// A cursor over a family, not positioned.
    ///
    /// # Errors
    /// As [`Db::get`].
    pub fn iter(&self, family: &Family, options: ReadOptions) -> Result<DbIter> {
        self.core().iter(family, options)
    }

    /// Pins the present state of all families until the guard is dropped.
    ///
    /// # Errors
    /// `Shutdown`.
    pub fn snapshot(&self) -> Result<Snapshot> {
        self.core().snapshot()
    }

    /// The newest sequence that reads see.
    pub fn visible(&self) -> SeqNum {
        self.core().visible()
    }

    /// The newest sequence that survives a power cut.
    pub fn durable(&self) -> SeqNum {
        self.core().committer.durable()
    }

    /// Makes every write so far durable.
    ///
    /// # Errors
    /// `Io`, after which writes are refused.
    pub fn sync_wal(&self) -> Result<()> {
        self.core().sync_wal()
    }

    /// Hands what `manual_wal_flush` holds back in the process to the operating system, so that every write so far
    /// survives the process; with `sync`, to the device. (RocksDB: `FlushWAL`.)
    ///
    /// # Errors
    /// `Io`, after which writes are refused until the engine has resumed. Nothing that was written is lost meanwhile.
    /// # Cost
    /// Without `sync` one write call; nothing when the log holds nothing back.
    pub fn flush_wal(&self, sync: bool) -> Result<()> {
        self.core().flush_wal(sync)
    }

    /// What it counts: tickers, and what the level of the statistics says.
    pub fn statistics(&self) -> &Arc<Statistics> {
        &self.core().statistics
    }

    /// How far background work is behind, what it carries, and when writers will have to wait at this rate.
    pub fn pressure(&self) -> Forecast {
        let core = self.core();
        if core.database.is_inherited() { Forecast::default() } else { core.forecast() }
    }

    /// How well the database is, and the error that made it worse. In a child of a fork: `Fatal`.
    pub fn health(&self) -> (Severity, Option<Error>) {
        match self.core().database.check_process() {
            Ok(()) => self.core().health.state(),
            Err(forked) => (Severity::Fatal, Some(forked)),
        }
    }

    /// Waits for background work to pause, and closes. Later calls of any clone answer `Shutdown`; a second close is
    /// fine. Data written with `disable_wal` is flushed.
    ///
    /// # Errors
    /// What went wrong on the way; the database is closed all the same. `InvalidArgument`: a listener, merge operator or
    /// comparator of the database makes the call; the database stays open. `Shutdown(Forked)`: the parent has it open.
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
