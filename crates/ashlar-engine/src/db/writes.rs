//! What a write passes before it joins the queue of the committer, and syncs of the WAL on request.

use super::Db;
use super::core::Core;
use crate::batch::{WriteBatch, only_deletes};
use crate::column_family::Family;
use crate::health::Source;
use crate::pressure::Deadline;
use crate::pressure::Pace;
use crate::write::stalled;
use ashlar_base::memory::{MemoryCharge, MemoryUse};
use ashlar_base::stats::Distribution;
use ashlar_base::{Error, Result, SeqNum};
use ashlar_format::write_batch::{BatchOp, BatchReader};
use ashlar_options::{FormatLevel, WriteOptions};
use ashlar_read::merge::Merger;
use ashlar_sync::atomic::Ordering;
use std::sync::Arc;

/// The copy of a write is charged from this length on.
const CHARGED: usize = 64 << 10;

impl Db {
    /// Charges the copy of an operation that a caller's thread has made for [`Db::write`], if it is long. A batch that a user
    /// has filled is memory of the user.
    #[inline]
    pub fn charge_copy(&self, bytes: usize) -> Option<MemoryCharge> {
        let charge = || self.core().memory.account().charge(MemoryUse::Batches, bytes);
        (bytes >= CHARGED).then(charge)
    }

    /// Applies a batch: all of it, or nothing. Returns the sequence number of its last operation.
    ///
    /// # Errors
    /// `InvalidArgument`: a family that does not exist or was dropped, a merge in a family without a merge operator, a
    /// range deletion that ends before it begins, `sync` together with `disable_wal`. `Indeterminate`: the WAL failed
    /// during the write. `TimedOut`: see [`WriteOptions::timeout`]. `Shutdown`.
    pub fn write(&self, batch: &mut WriteBatch, options: WriteOptions) -> Result<SeqNum> {
        if options.timeout.is_some() {
            return self.write_checked(batch, options, &mut || Ok(()));
        }
        let core = self.core();
        let _time = core.statistics.time(Distribution::DbWriteMicros);
        if !core.check_write(batch, &options)? {
            return Ok(core.visible());
        }
        if options.no_slowdown || options.low_priority {
            core.admit(batch.byte_len(), (options, None))?;
        }
        let mut stamped = core.with_times(batch)?;
        core.committer.commit(stamped.as_mut().unwrap_or(batch).encoder(), options)
    }

    /// [`Db::write`] after `check`, which runs while no write is in progress: no other write comes between the check and the
    /// batch. For the validation of transactions. All writers wait while `check` runs, so it must not wait itself.
    ///
    /// # Errors
    /// Those of `check`: nothing was written. Those of [`Db::write`].
    pub fn write_checked(
        &self,
        batch: &mut WriteBatch,
        options: WriteOptions,
        check: &mut dyn FnMut() -> Result<()>,
    ) -> Result<SeqNum> {
        let core = self.core();
        let _time = core.statistics.time(Distribution::DbWriteMicros);
        let waits = (options, Deadline::of(options, &core.env));
        if !core.check_write(batch, &options)? {
            return Ok(core.visible());
        }
        core.admit(batch.byte_len(), waits)?;
        let mut stamped = core.with_times(batch)?;
        let encoder = stamped.as_mut().unwrap_or(batch).encoder();
        core.committer.commit_checked(encoder, waits, check, &mut || ())
    }

    /// Whether this thread may make a call that waits or changes something, such as the one named `call`.
    ///
    /// # Errors
    /// `Shutdown`. `InvalidArgument`: a callback of a write or of background work makes the call.
    pub fn check_caller(&self, call: &str) -> Result<()> {
        self.core().check_open()?;
        self.core().check_outside(call)
    }
}

impl Core {
    /// What a write passes before it joins the queue, apart from [`Core::admit`]. False: the batch has no operation.
    #[inline]
    pub(super) fn check_write(&self, batch: &mut WriteBatch, options: &WriteOptions) -> Result<bool> {
        self.check_open()?;
        self.check_outside("a write")?;
        if options.sync && options.disable_wal {
            return Err(Error::invalid("`sync` and `disable_wal` cannot be combined")
                .hint("Write it to the WAL, or flush afterwards instead of syncing"));
        }
        if let Err(refusal) = self.health.check_writable() {
            self.check_only_deletes(batch, refusal, *options)?;
        }
        if batch.is_empty() {
            return Ok(false);
        }
        if batch.needs_families() || self.some_disallow.load(Ordering::Relaxed) {
            self.check_operations(&batch.encoder().reader())?;
        }
        Ok(true)
    }

    /// The batch to write in place of `batch`, if it has values of a family whose values expire.
    #[inline]
    pub(super) fn with_times(&self, batch: &mut WriteBatch) -> Result<Option<WriteBatch>> {
        // Relaxed: a family is known to a caller only after the flag was set.
        if self.some_expire.load(Ordering::Relaxed) { self.stamped(batch) } else { Ok(None) }
    }

    /// On a full disk deletions are accepted, because they may free space.
    #[cold]
    fn check_only_deletes(
        &self,
        batch: &mut WriteBatch,
        refusal: Error,
        options: WriteOptions,
    ) -> Result<()> {
        self.health.check_working()?;
        if !only_deletes(&batch.encoder().reader())? {
            return Err(refusal);
        }
        // Checked before anything is prepared: preparing a batch uses memtable memory even if the batch is then
        // refused.
        if !options.disable_wal && self.health.is_failing(Source::LogRoom) {
            self.committer.check_room_for_deletions(batch.byte_len(), refusal)?;
        }
        Ok(())
    }

    /// Applies per-write options before the write joins the queue: `no_slowdown` fails with `Busy(Stalled)` instead of
    /// waiting, `low_priority` waits for its own rate limit, unless that wait passes the deadline.
    #[cold]
    pub(super) fn admit(
        &self,
        bytes: usize,
        (options, deadline): (WriteOptions, Option<Deadline>),
    ) -> Result<()> {
        let own = if options.low_priority { self.pressure.low_priority_pace() } else { Pace::Free };
        if options.no_slowdown && (own != Pace::Free || self.would_wait()) {
            return Err(stalled());
        }
        if own != Pace::Free {
            self.slow_down(own, (bytes, deadline), || self.pressure.low_priority_pace() == Pace::Free)?;
        }
        Ok(())
    }

    /// Refuses operations that readers could not handle later: merges without an operator, ranges that end before they
    /// begin, entities above the format level, a time to live where no value expires. Refuses writes to a family that has
    /// `disallow_memtable_writes`.
    #[cold]
    fn check_operations(&self, batch: &BatchReader<'_>) -> Result<()> {
        let _inside = self.database.enter();
        let mut last: Option<Arc<Family>> = None;
        for op in batch.iter() {
            let op = op.map_err(|e| e.into_error())?;
            let Some(id) = op.family() else { continue };
            if last.as_ref().is_none_or(|family| family.id() != id) {
                // The state lock ends here: a comparator is called below.
                last = self.state().families.get(id).map(|live| Arc::clone(&live.family));
            }
            let Some(family) = &last else { continue };
            let options = family.options();
            match op {
                _ if options.disallow_memtable_writes => {
                    let what = format!("family {:?} has disallow_memtable_writes=true", family.name());
                    return Err(Error::invalid(what).hint(
                        "Ingest a table, or open the family with disallow_memtable_writes=false, here and in RocksDB",
                    ));
                }
                BatchOp::DeleteRange { begin, end, .. } if options.order.compare(begin, end).is_gt() => {
                    let (begin, end) = (begin.escape_ascii(), end.escape_ascii());
                    return Err(Error::invalid(format!(
                        "range deletion from '{begin}' to '{end}' ends before it begins"
                    )));
                }
                BatchOp::Entity { .. } if self.options().format_level < FormatLevel::V7_8 => {
                    let level = self.options().format_level;
                    return Err(Error::invalid(format!("level {level} has no wide-column entities")).hint(
                        "Raise the format level to rocksdb-7.8, or store the columns under keys of their own",
                    ));
                }
                BatchOp::TimedPut { .. } if options.value_ttl_secs.is_none_or(|ttl| ttl == 0) => {
                    return Err(never_expire(family.name(), options.value_ttl_secs));
                }
                BatchOp::Merge { key, .. } if options.merge_operator.is_none() => {
                    return Err(Merger::new(family.name(), None).missing(key));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Makes all earlier writes durable.
    pub(crate) fn sync_wal(&self) -> Result<()> {
        self.check_open()?;
        self.health.check_working()?;
        self.committer.sync()
    }

    /// Hands the records buffered in the process to the operating system, and to the device if `sync`.
    pub(crate) fn flush_wal(&self, sync: bool) -> Result<()> {
        self.check_open()?;
        self.health.check_working()?;
        if sync { self.committer.sync() } else { self.committer.flush() }
    }
}

/// The error for a value with a time to live of its own where values never expire.
#[cold]
fn never_expire(family: &str, ttl_secs: Option<i32>) -> Error {
    let why = if ttl_secs.is_some() { "has the time to live 0" } else { "was opened without a time to live" };
    let text = format!(
        "a put with a time to live in family {family:?}, whose values never expire: the family {why}"
    );
    Error::invalid(text).hint("Open the family with ttl() of more than zero")
}
