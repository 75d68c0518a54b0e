//! Named transactions and two-phase commit, under the policy that writes committed data.
//!
//! ```text
//! active --prepare--> prepared --commit / rollback--> ended
//!                     prepared --drop of the handle--> parked --taken over by name--> prepared
//! ```
//! 1. The prepare checks the tracked keys as a commit does, and writes the operations to the WAL. Nothing changes for
//!    readers. From then on the transaction takes no further operations, and its locks stay until it is decided on.
//! 2. The commit of a prepared transaction checks nothing: other pessimistic transactions wait for its locks, and optimistic
//!    ones see that its keys are guarded. A plain write without locks between prepare and commit is overwritten by the
//!    commit.
//! 3. Whether a transaction is prepared, the engine decides: after an error the state follows its set of undecided
//!    transactions.

use crate::batch::IndexedBatch;
use crate::named::{Parked, Shared};
use crate::transaction::{Kind, Settings, State, Transaction, ends, validate};
use ashlar_base::FamilyId;
use ashlar_base::planted::{Bug, planted};
use ashlar_base::{Error, Result};
use ashlar_engine::Db;
use ashlar_engine::batch::WriteBatch;
use ashlar_engine::column_family::{DEFAULT_FAMILY, Family};
use ashlar_format::write_batch::{BatchEncoder, BatchOp};
use std::sync::Arc;

impl Transaction {
    /// Gives the transaction a name, which no other transaction of the database has. It needs one to be prepared.
    ///
    /// # Errors
    /// `InvalidArgument`: it has a name already; the name is empty, longer than 512 bytes, or in use; the transaction has
    /// ended or is prepared. `NotSupported`: the transaction is optimistic.
    pub fn set_name(&mut self, name: &[u8]) -> Result<()> {
        self.check_active()?;
        self.check_two_phase()?;
        if let Some(own) = &self.name {
            return Err(Error::invalid(format!("the transaction has the name '{}'", own.escape_ascii())));
        }
        self.shared.enter(name)?;
        self.name = Some(name.to_vec());
        Ok(())
    }

    /// The name of the transaction.
    pub fn name(&self) -> Option<&[u8]> {
        self.name.as_deref()
    }

    /// Whether the transaction is prepared, and neither committed nor rolled back.
    pub fn is_prepared(&self) -> bool {
        self.state == State::Prepared
    }

    fn check_two_phase(&self) -> Result<()> {
        match self.settings.kind {
            Kind::Pessimistic => Ok(()),
            Kind::Optimistic => Err(Error::not_supported("two-phase commit of an optimistic transaction")
                .hint("Begin a pessimistic transaction")),
        }
    }

    /// Writes the operations to the WAL, so that a later commit can only fail with the database. The transaction keeps its
    /// locks and takes no more operations.
    ///
    /// # Errors
    /// `InvalidArgument`: no name; `disable_wal`; the transaction has ended or is prepared. `NotSupported`: the transaction
    /// is optimistic. Those of [`Transaction::commit`]: the transaction goes on. After `Indeterminate`, and `Io` of a
    /// sync, [`Transaction::is_prepared`] says whether it is prepared; if it is not, it has ended.
    pub fn prepare(&mut self) -> Result<()> {
        self.check_active()?;
        self.check_two_phase()?;
        let Some(name) = self.name.clone() else {
            return Err(Error::invalid("the transaction has no name").hint("Give it one with set_name()"));
        };
        self.db.check_caller("prepare()")?;
        let outcome = self.write_prepared(&name);
        match &outcome {
            Ok(()) => self.has_prepared(),
            Err(_) if self.is_undecided(&name) => self.has_prepared(),
            Err(e) if ends(e.kind()) => self.end(State::Failed),
            Err(_) => {}
        }
        outcome
    }

    fn write_prepared(&mut self, name: &[u8]) -> Result<()> {
        let seen = self.db.visible();
        let (db, tracked, shared) = (&self.db, &self.tracked, &self.shared);
        validate(db, tracked, seen)?;
        let mut check = || match db.visible() {
            now if now == seen || planted(Bug::CheckedBeforeTheLead) => Ok(()),
            now => validate(db, tracked, now),
        };
        let mut done = || shared.guard(tracked);
        db.prepare(name, self.batch.operations(), self.settings.write, &mut check, &mut done)
    }

    fn has_prepared(&mut self) {
        self.state = State::Prepared;
        self.keeper = None;
        if planted(Bug::LockReleasedEarly) {
            self.tracked.keys().for_each(|key| self.shared.locks.release(self.id, key));
        }
        while self.batch.pop_savepoint().is_ok() {}
        self.savepoints.clear();
        self.taken.clear();
    }

    fn is_undecided(&self, name: &[u8]) -> bool {
        self.db.prepared().get(name).is_some()
    }

    /// Commits (`commit`) or rolls back a prepared transaction. After an error it stays prepared, unless the engine has
    /// decided on it.
    pub(crate) fn decide(&mut self, commit: bool) -> Result<()> {
        if !self.process.is_current() {
            return Err(Error::forked());
        }
        let name = self.name.clone().unwrap_or_default();
        let options = self.settings.write;
        let (decided, state) = match commit {
            true => (self.db.commit_prepared(&name, options).map(drop), State::Committed),
            false => (self.db.rollback_prepared(&name, options), State::RolledBack),
        };
        match &decided {
            Ok(()) => self.end(state),
            Err(_) if self.is_undecided(&name) => {}
            Err(_) => self.end(State::Failed),
        }
        decided
    }

    /// The handle of a prepared transaction is dropped: its locks stay.
    pub(crate) fn park(&mut self) {
        let Some(name) = self.name.take() else { return };
        let (tracked, ranges) = (std::mem::take(&mut self.tracked), std::mem::take(&mut self.ranges));
        self.shared.park(&name, Parked { id: self.id, write: self.settings.write, tracked, ranges });
    }

    /// The handle of a transaction that was parked.
    fn taken_over(db: &Db, shared: &Arc<Shared>, name: Vec<u8>, parked: Parked) -> Result<Transaction> {
        let Parked { id, write, .. } = parked;
        let mut held = Held { shared, name, parked: Some(parked) };
        let default = db.family(DEFAULT_FAMILY).ok_or_else(Error::closed)?;
        let mut batch = IndexedBatch::new(db, &default);
        let (prepared, families) = (db.prepared(), db.families());
        if let Some(data) = prepared.get(&held.name) {
            fill(&mut batch, data, &families);
        }
        let settings = Settings { write, ..Settings::default() };
        let mut transaction = Transaction::made(db, Arc::clone(shared), id, settings, batch);
        if let Some(parked) = held.parked.take() {
            (transaction.tracked, transaction.ranges) = (parked.tracked, parked.ranges);
        }
        transaction.name = Some(std::mem::take(&mut held.name));
        transaction.state = State::Prepared;
        Ok(transaction)
    }
}

/// A parked transaction on its way to a handle. Dropped before the handle is made, it is parked again.
struct Held<'a> {
    shared: &'a Shared,
    name: Vec<u8>,
    parked: Option<Parked>,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if let Some(parked) = self.parked.take() {
            self.shared.park(&self.name, parked);
        }
    }
}

/// Adds the operations of a prepared transaction to the batch that its reads ask. Operations on dropped families, and those
/// that an indexed batch refuses, are not read; they are in the data that the commit writes.
fn fill(batch: &mut IndexedBatch, data: &BatchEncoder, families: &[Arc<Family>]) {
    for op in data.reader().iter().flatten() {
        let family = op.family().and_then(|id| families.iter().find(|family| family.id() == id));
        if let Some(family) = family {
            let _ = batch.add(family, |batch, id| add(batch, id, &op));
        }
    }
}

fn add(batch: &mut WriteBatch, family: FamilyId, op: &BatchOp<'_>) -> Result<()> {
    match *op {
        BatchOp::Put { key, value, .. } | BatchOp::TimedPut { key, value, .. } => {
            batch.put(family, key, value)
        }
        BatchOp::Delete { key, .. } => batch.delete(family, key),
        BatchOp::SingleDelete { key, .. } => batch.single_delete(family, key),
        BatchOp::Merge { key, value, .. } => batch.merge(family, key, value),
        BatchOp::Entity { key, entity, .. } => batch.put_encoded_entity(family, key, entity),
        _ => Ok(()),
    }
}

/// The prepared transactions of `db` that no handle has, by name: after an open, all that the WAL left undecided.
///
/// # Errors
/// `NotSupported`: the database is open for reading only. `Shutdown`.
pub fn prepared_transactions(db: &Db) -> Result<Vec<Transaction>> {
    db.check_decides()?;
    let shared = Shared::of(db)?;
    let mut all = Vec::new();
    for name in shared.parked() {
        // Another thread may have taken it meanwhile.
        if let Ok(Some(parked)) = shared.take(&name) {
            all.push(Transaction::taken_over(db, shared, name, parked)?);
        }
    }
    Ok(all)
}

/// The prepared transaction of this name; `None`: no transaction has the name.
///
/// # Errors
/// `InvalidArgument`: a handle has the transaction. Those of [`prepared_transactions`].
pub fn transaction_by_name(db: &Db, name: &[u8]) -> Result<Option<Transaction>> {
    db.check_decides()?;
    let shared = Shared::of(db)?;
    let parked = shared.take(name)?;
    parked.map(|parked| Transaction::taken_over(db, shared, name.to_vec(), parked)).transpose()
}
