//! Two-phase commit: a transaction is prepared in one batch of the WAL, and committed or rolled back by a later one.
//!
//! ```text
//! prepare: the WAL gets  09 data 0A name   the memtables nothing, no sequence number is taken
//! commit:  the WAL gets  0B name           the memtables get the data
//! rollback: the WAL gets 0C name           the memtables nothing
//! ```
//! The set of undecided transactions changes under the lead, directly after the group that decides: a switch to another WAL
//! file, which copies them, sees the set as the WAL has it. See `ashlar_recovery::PreparedSet`.
//!
//! Source: RocksDB `utilities/transactions/pessimistic_transaction.cc` (`WriteCommittedTxn`).

use super::Db;
use super::core::Core;
use crate::batch::WriteBatch;
use crate::health::Severity;
use crate::write::unknown_family;
use ashlar_base::memory::MemoryUse;
use ashlar_base::planted::{Bug, planted};
use ashlar_base::{Error, FamilyId, Result, SeqNum};
use ashlar_format::write_batch::BatchEncoder;
use ashlar_options::WriteOptions;
use ashlar_recovery::{PreparedSet, Undecided, put_prepared};
use std::collections::BTreeSet;
use std::sync::Arc;

impl Db {
    /// Writes the operations of `batch` to the WAL as the prepared transaction `name`, after `check`, which runs while no write
    /// is in progress. `done` runs at the same point, once the transaction is prepared. With `sync` in the options the
    /// prepare is durable when the call returns.
    ///
    /// # Errors
    /// Those of `check`: nothing was written. Those of [`Db::write`]. `InvalidArgument`: the name is in use, empty or too
    /// long; `disable_wal`. `NotSupported`: writes to a family whose values expire. After `Indeterminate` ask
    /// [`Db::prepared`] whether the transaction is prepared.
    pub fn prepare(
        &self,
        name: &[u8],
        batch: &mut WriteBatch,
        options: WriteOptions,
        check: &mut dyn FnMut() -> Result<()>,
        done: &mut dyn FnMut(),
    ) -> Result<()> {
        let core = self.core();
        core.check_logged(options)?;
        core.check_write(batch, &options)?;
        core.admit(batch.byte_len(), (options, None))?;
        // A batch without operations has passed no check of the health.
        core.health.check_writable()?;
        if core.with_times(batch)?.is_some() {
            return Err(Error::not_supported(
                "a prepared transaction with writes to a family whose values expire",
            )
            .hint("Commit it without preparing it, or write to a family without a time to live"));
        }
        let charge = core.memory.account().charge(MemoryUse::Prepared, batch.byte_len());
        let data = Undecided::new(batch.encoder().clone(), charge);
        let mut record = BatchEncoder::new();
        put_prepared(&mut record, name, &data)?;
        record.split();
        let bytes = data.byte_len();
        let families = families_of(&data)?;
        let mut check = || {
            core.prepared().check(name, bytes)?;
            // No memtable gets the batch, so nothing later looks for the families before the commit.
            core.check_families(&families)?;
            check()
        };
        let mut done = || {
            core.change_prepared(|set| set.insert(name, Arc::clone(&data)));
            done();
        };
        core.committer.commit_checked(&mut record, (options, None), &mut check, &mut done).map(drop)
    }

    /// Commits the prepared transaction `name`: its operations become visible, and durable as those of [`Db::write`].
    /// Operations on families that were dropped since are left out. Returns the sequence number of the last operation.
    ///
    /// # Errors
    /// Those of [`Db::write`]; `InvalidArgument`: no transaction of this name is prepared; `disable_wal`. Unless
    /// [`Db::prepared`] lacks the name then, the transaction stays prepared.
    pub fn commit_prepared(&self, name: &[u8], options: WriteOptions) -> Result<SeqNum> {
        let data = self.core().undecided(name)?;
        let mut record = BatchEncoder::new();
        record.commit(name);
        record.split();
        if !planted(Bug::CommitWithoutData) {
            record.append_records(&data)?;
        }
        self.core().decide(name, &mut record, options)
    }

    /// Gives the prepared transaction `name` up.
    ///
    /// # Errors
    /// As [`Db::commit_prepared`].
    pub fn rollback_prepared(&self, name: &[u8], options: WriteOptions) -> Result<()> {
        self.core().undecided(name)?;
        let mut record = BatchEncoder::new();
        record.rollback(name);
        record.split();
        self.core().decide(name, &mut record, options).map(drop)
    }

    /// The transactions that are prepared and not decided on.
    pub fn prepared(&self) -> Arc<PreparedSet> {
        self.core().prepared()
    }

    /// Whether transactions that an open finds undecided may be decided on here.
    ///
    /// # Errors
    /// `NotSupported`: the database is open for reading only. `Shutdown`.
    pub fn check_decides(&self) -> Result<()> {
        let core = self.core();
        core.check_open()?;
        if core.health.is_read_only() { core.health.check_writable() } else { Ok(()) }
    }
}

impl Core {
    /// The transactions that are prepared and not decided on.
    pub(super) fn prepared(&self) -> Arc<PreparedSet> {
        Arc::clone(&self.prepared.lock())
    }

    fn change_prepared(&self, change: impl FnOnce(&mut PreparedSet)) {
        change(Arc::make_mut(&mut self.prepared.lock()));
    }

    /// Whether a close flushes for RocksDB's sake: transactions were prepared since the open, and all are decided on.
    pub(super) fn leaves_decided(&self) -> bool {
        let set = self.prepared();
        set.was_used() && set.is_empty() && self.health.severity() == Severity::Healthy
    }

    /// The data of the prepared transaction of this name.
    fn undecided(&self, name: &[u8]) -> Result<Arc<Undecided>> {
        self.check_open()?;
        self.prepared().get(name).cloned().ok_or_else(|| {
            Error::invalid(format!("no transaction '{}' is prepared", name.escape_ascii()))
                .hint("It was committed or rolled back before, or its name is wrong")
        })
    }

    /// # Errors
    /// `InvalidArgument`: a family does not exist.
    fn check_families(&self, families: &BTreeSet<FamilyId>) -> Result<()> {
        let state = self.state();
        match families.iter().find(|id| state.families.get(**id).is_none()) {
            None => Ok(()),
            Some(id) => Err(unknown_family(*id)),
        }
    }

    /// # Errors
    /// `InvalidArgument`: the options keep the write out of the WAL.
    fn check_logged(&self, options: WriteOptions) -> Result<()> {
        if options.disable_wal {
            return Err(Error::invalid("two-phase commit needs the WAL, and `disable_wal` is set")
                .hint("Give the transaction write options without disable_wal"));
        }
        Ok(())
    }

    /// Writes the decision on the transaction of this name, and takes it out of the set.
    fn decide(&self, name: &[u8], record: &mut BatchEncoder, options: WriteOptions) -> Result<SeqNum> {
        self.check_logged(options)?;
        self.check_outside("the end of a transaction")?;
        self.health.check_writable()?;
        self.admit(record.byte_len(), (options, None))?;
        let mut check = || self.undecided(name).map(drop);
        let mut done = || self.change_prepared(|set| set.remove(name));
        self.committer.commit_checked(record, (options, None), &mut check, &mut done)
    }
}

/// The families of a batch.
fn families_of(data: &BatchEncoder) -> Result<BTreeSet<FamilyId>> {
    let mut families = BTreeSet::new();
    for op in data.reader().iter() {
        families.extend(op.map_err(|e| e.into_error())?.family());
    }
    Ok(families)
}
