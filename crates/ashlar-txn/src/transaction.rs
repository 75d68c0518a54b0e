//! Transactions: an indexed batch, the keys that it tracks, and the check of these keys at the commit.
//!
//! 1. A tracked key has a sequence number: that of the transaction's snapshot, or of the moment at which the key was
//!    tracked. The commit fails with `Busy(Conflict)` if the key was written after it.
//! 2. A pessimistic transaction also locks the key before it is tracked, so of the pessimistic transactions that want a
//!    key, one goes on and the others wait. Optimistic transactions and plain writes without locks do not wait: for them, the
//!    check at the commit decides.
//! 3. The check runs twice. The first time no writer waits for it, and it may read tables. The second time it runs
//!    under the lead, and looks only at what was written since the first; mostly that is nothing, or in the memtable.
//! 4. From the first tracked key on, the transaction keeps a snapshot, so that compactions keep the newest write to each
//!    key. A compaction may still remove a deletion. So if tables were replaced meanwhile, a key that had a value when the
//!    transaction read it must still have one.
//! 5. A lock is entered into `tracked` right after it was taken, that of a range into `ranges`, and the drop releases everything
//!    in both. A range is not tracked: the check at the commit knows keys only.
//!
//! Source: RocksDB `utilities/transactions/pessimistic_transaction.cc`, `optimistic_transaction.cc`.

use crate::batch::{Below, IndexedBatch};
use crate::changes::View;
use crate::locks::{
    Acquired, Deadlock, LockKey, Mode, RangeId, RangeRequest, Request, Span, TransactionId, too_many_locks,
};
use crate::named::{Shared, Tracked, TrackedKeys, lock_key, user_key};
use ashlar_base::error::BusyKind;
use ashlar_base::planted::{Bug, planted};
use ashlar_base::{Error, ErrorKind, FamilyId, Result, SeqNum};
use ashlar_engine::Db;
use ashlar_engine::batch::WriteBatch;
use ashlar_engine::column_family::Family;
use ashlar_env::Process;
use ashlar_options::{ReadOptions, WriteOptions};
use ashlar_read::iter::KeyBounds;
use ashlar_read::point::{MayExist, View as Value};
use ashlar_read::snapshot::Snapshot;
use ashlar_tree::columns::Columns;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// How a transaction keeps others from its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It locks them.
    Pessimistic,
    /// It does not, and fails at the commit.
    Optimistic,
}

/// The settings of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How it keeps others from its keys.
    pub kind: Kind,
    /// It reads a snapshot, taken when it begins.
    pub snapshot: bool,
    /// Reads see the newest state: the snapshot serves the check for conflicts only.
    pub read_newest: bool,
    /// How long it waits for a lock; `None`: for ever.
    pub lock_timeout: Option<Duration>,
    /// Whether a wait that would close a circle is refused.
    pub deadlock_detect: bool,
    /// How many keys it may track.
    pub max_locks: usize,
    /// The options of the write at the commit.
    pub write: WriteOptions,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            kind: Kind::Pessimistic,
            snapshot: false,
            read_newest: false,
            lock_timeout: Some(Duration::from_secs(1)),
            deadlock_detect: true,
            max_locks: usize::MAX,
            write: WriteOptions::default(),
        }
    }
}

/// How far a transaction is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Active,
    /// It is in the WAL, and waits for a decision.
    Prepared,
    Committed,
    RolledBack,
    /// The commit failed after it may have reached the WAL.
    Failed,
}

/// What a savepoint may take back.
pub(crate) enum Taken {
    Key(LockKey),
    Upgrade(LockKey),
    Range(RangeId),
}

pub(crate) struct Savepoint {
    taken: usize,
    snapshot: Option<Snapshot>,
    snapshot_due: bool,
}

/// A transaction. Dropping it rolls it back, unless it is prepared: then it stays prepared.
pub struct Transaction {
    pub(crate) db: Db,
    pub(crate) shared: Arc<Shared>,
    pub(crate) id: TransactionId,
    pub(crate) name: Option<Vec<u8>>,
    pub(crate) settings: Settings,
    pub(crate) batch: IndexedBatch,
    pub(crate) tracked: TrackedKeys,
    /// The ranges that it has locked, in this order.
    pub(crate) ranges: Vec<RangeId>,
    /// The locks taken since the first savepoint.
    pub(crate) taken: Vec<Taken>,
    pub(crate) savepoints: Vec<Savepoint>,
    snapshot: Option<Snapshot>,
    /// The next tracked key takes a snapshot first.
    snapshot_due: bool,
    /// At or before `since` of every tracked key.
    pub(crate) keeper: Option<Snapshot>,
    pub(crate) state: State,
    pub(crate) process: Process,
}

/// The last deadlocks of a database, newest first.
///
/// # Errors
/// As [`Transaction::begin`].
pub fn deadlocks(db: &Db) -> Result<Vec<Deadlock>> {
    db.check_process()?;
    Shared::of(db).map(|shared| shared.locks.deadlocks())
}

impl Transaction {
    /// Begins a transaction on `db`, of which `family` is a family.
    ///
    /// # Errors
    /// `Shutdown`. `InvalidArgument`: a callback of a write or of background work makes the call.
    pub fn begin(db: &Db, family: &Family, settings: Settings) -> Result<Transaction> {
        db.check_caller("begin()")?;
        let shared = Arc::clone(Shared::of(db)?);
        let snapshot = if settings.snapshot { Some(db.snapshot()?) } else { None };
        let (id, batch) = (shared.locks.next_transaction(), IndexedBatch::new(db, family));
        let mut made = Transaction::made(db, shared, id, settings, batch);
        made.snapshot = snapshot;
        Ok(made)
    }

    pub(crate) fn made(
        db: &Db,
        shared: Arc<Shared>,
        id: TransactionId,
        settings: Settings,
        batch: IndexedBatch,
    ) -> Transaction {
        Transaction {
            db: db.clone(),
            shared,
            id,
            name: None,
            settings,
            batch,
            tracked: TrackedKeys::new(),
            ranges: Vec::new(),
            taken: Vec::new(),
            savepoints: Vec::new(),
            snapshot: None,
            snapshot_due: false,
            keeper: None,
            state: State::Active,
            process: Process::current(),
        }
    }

    /// The number of the transaction, which errors of locks name.
    pub fn id(&self) -> TransactionId {
        self.id
    }

    /// Whether the transaction was neither committed nor rolled back.
    pub fn is_active(&self) -> bool {
        matches!(self.state, State::Active | State::Prepared)
    }

    /// The number of operations that the commit will write.
    pub fn len(&self) -> usize {
        self.batch.len()
    }

    /// The encoded operations, with the sequence number 0.
    ///
    /// # Errors
    /// `InvalidArgument`: the transaction has ended.
    pub fn data(&mut self) -> Result<&[u8]> {
        self.check_readable()?;
        Ok(self.batch.operations().data())
    }

    /// Whether the commit will write nothing.
    pub fn is_empty(&self) -> bool {
        self.batch.is_empty()
    }

    /// The number of keys that the transaction tracks or has locked.
    pub fn tracked(&self) -> usize {
        self.tracked.len()
    }

    /// # Errors
    /// `InvalidArgument`: the transaction has ended or is prepared. `Shutdown(Forked)`: it belongs to the parent of this
    /// process.
    pub(crate) fn check_active(&self) -> Result<()> {
        self.check_readable()?;
        match self.state {
            State::Prepared => {
                Err(Error::invalid("the transaction is prepared").hint("Commit it or roll it back"))
            }
            _ => Ok(()),
        }
    }

    /// # Errors
    /// `InvalidArgument`: the transaction has ended. `Shutdown(Forked)`.
    fn check_readable(&self) -> Result<()> {
        let ended = match self.state {
            State::Active | State::Prepared if self.process.is_current() => return Ok(()),
            State::Active | State::Prepared => return Err(Error::forked()),
            State::Committed => "was committed",
            State::RolledBack => "was rolled back",
            State::Failed => "has ended: its commit failed",
        };
        Err(Error::invalid(format!("the transaction {ended}")).hint("Begin another transaction"))
    }

    /// Adds the operation that `op` adds to a batch, after its key was tracked unless `untracked`.
    ///
    /// # Errors
    /// Those of [`IndexedBatch::add`]. `TimedOut`, `Busy(Deadlock)`: the key is locked by others. `Busy(Conflict)`: it was
    /// written after the snapshot. `Busy(LockLimit)`.
    pub fn write(
        &mut self,
        family: &Arc<Family>,
        untracked: bool,
        op: impl FnOnce(&mut WriteBatch, FamilyId) -> Result<()>,
    ) -> Result<()> {
        self.check_active()?;
        self.batch.propose(family, op)?;
        if !untracked && let Some(key) = self.batch.proposed_key() {
            self.track(family, &key, Mode::Exclusive)?;
        }
        self.batch.accept(family)
    }

    /// Tracks `key`, and returns its value with the changes of the transaction.
    ///
    /// # Errors
    /// Those of [`Transaction::get`], and of a lock: see [`Transaction::write`].
    pub fn get_for_update(
        &mut self,
        family: &Arc<Family>,
        key: &[u8],
        mode: Mode,
        options: ReadOptions,
    ) -> Result<Option<Value>> {
        self.check_active()?;
        self.batch.check_own(family)?;
        self.track(family, key, mode)?;
        self.get(family, key, options)
    }

    /// Tracks all `keys`, in the order of their bytes, and returns their values with the changes of the transaction.
    ///
    /// # Errors
    /// As [`Transaction::get_for_update`], for the first key that cannot be locked; the earlier ones stay locked.
    pub fn multi_get_for_update(
        &mut self,
        family: &Arc<Family>,
        keys: &[&[u8]],
        mode: Mode,
        options: ReadOptions,
    ) -> Result<Vec<Result<Option<Value>>>> {
        self.check_active()?;
        self.batch.check_own(family)?;
        let mut ordered = keys.to_vec();
        ordered.sort_unstable();
        ordered.into_iter().try_for_each(|key| self.track(family, key, mode))?;
        self.multi_get(family, keys, options)
    }

    /// The value of `key` with the changes of the transaction.
    ///
    /// # Errors
    /// Those of [`Db::get`]. `InvalidArgument`: the transaction has ended.
    pub fn get(&self, family: &Family, key: &[u8], options: ReadOptions) -> Result<Option<Value>> {
        self.check_readable()?;
        let (value, below) = self.batch.get_noting(family, key, self.at(options))?;
        self.note_read(family, key, below);
        Ok(value)
    }

    /// Notes that a tracked key had a value in the database.
    fn note_read(&self, family: &Family, key: &[u8], below: Below) {
        if below == Below::Present
            && !self.tracked.is_empty()
            && let Some(tracked) = self.tracked.get(&lock_key(family.id(), key))
        {
            tracked.present.set(true);
        }
    }

    /// The columns of `key` with the changes of the transaction.
    ///
    /// # Errors
    /// As [`Transaction::get`].
    pub fn get_entity(&self, family: &Family, key: &[u8], options: ReadOptions) -> Result<Option<Columns>> {
        self.check_readable()?;
        let (columns, below) = self.batch.get_entity_noting(family, key, self.at(options))?;
        self.note_read(family, key, below);
        Ok(columns)
    }

    /// The values of `keys` with the changes of the transaction.
    ///
    /// # Errors
    /// As [`Transaction::get`].
    pub fn multi_get(
        &self,
        family: &Family,
        keys: &[&[u8]],
        options: ReadOptions,
    ) -> Result<Vec<Result<Option<Value>>>> {
        self.check_readable()?;
        let note = |key: &[u8], below| self.note_read(family, key, below);
        self.batch.multi_get_noting(family, keys, self.at(options), note)
    }

    /// Whether `key` can have a value, without reading data blocks.
    ///
    /// # Errors
    /// As [`Transaction::get`].
    pub fn key_may_exist(&self, family: &Family, key: &[u8], options: ReadOptions) -> Result<MayExist> {
        self.check_readable()?;
        self.batch.key_may_exist(family, key, self.at(options))
    }

    /// The changes of a family at this moment, and the snapshot that the transaction reads.
    ///
    /// # Errors
    /// As [`Transaction::get`].
    pub fn view(&self, family: &Arc<Family>) -> Result<(View, Option<Snapshot>)> {
        self.check_readable()?;
        Ok((self.batch.view(family)?, self.read_snapshot().cloned()))
    }

    /// The snapshot of reads that name none.
    fn read_snapshot(&self) -> Option<&Snapshot> {
        self.snapshot.as_ref().filter(|_| !self.settings.read_newest)
    }

    fn at(&self, options: ReadOptions) -> ReadOptions {
        ReadOptions { at: options.at.or(self.read_snapshot().map(Snapshot::seq)), ..options }
    }

    /// Reads a new snapshot from now on. Keys that are tracked from now on must not have been written after it.
    ///
    /// # Errors
    /// `Shutdown`. `InvalidArgument`: the transaction has ended.
    pub fn set_snapshot(&mut self) -> Result<()> {
        self.check_active()?;
        self.snapshot = Some(self.db.snapshot()?);
        self.snapshot_due = false;
        Ok(())
    }

    /// [`Transaction::set_snapshot`] when the next key is tracked, after the wait for its lock.
    ///
    /// # Errors
    /// `InvalidArgument`: the transaction has ended.
    pub fn set_snapshot_on_next_operation(&mut self) -> Result<()> {
        self.check_active()?;
        self.snapshot_due = true;
        Ok(())
    }

    /// Reads the newest state from now on.
    ///
    /// # Errors
    /// `InvalidArgument`: the transaction has ended.
    pub fn clear_snapshot(&mut self) -> Result<()> {
        self.check_active()?;
        (self.snapshot, self.snapshot_due) = (None, false);
        Ok(())
    }

    /// Whether the next key that is tracked takes a snapshot.
    pub fn awaits_snapshot(&self) -> bool {
        self.snapshot_due
    }

    /// The snapshot that the transaction reads.
    pub fn snapshot(&self) -> Option<&Snapshot> {
        self.snapshot.as_ref()
    }

    /// Adds bytes for readers of the WAL.
    ///
    /// # Errors
    /// `InvalidArgument`: the transaction has ended.
    pub fn put_log_data(&mut self, blob: &[u8]) -> Result<()> {
        self.check_active()?;
        self.batch.put_log_data(blob)
    }

    /// Sets a savepoint.
    ///
    /// # Errors
    /// `InvalidArgument`: the transaction has ended.
    pub fn set_savepoint(&mut self) -> Result<()> {
        self.check_active()?;
        self.batch.set_savepoint();
        self.savepoints.push(Savepoint {
            taken: self.taken.len(),
            snapshot: self.snapshot.clone(),
            snapshot_due: self.snapshot_due,
        });
        Ok(())
    }

    /// Takes back the operations since the last savepoint, releases the locks that were taken since, and removes the
    /// savepoint.
    ///
    /// # Errors
    /// `InvalidArgument`: there is no savepoint, or the transaction has ended.
    pub fn rollback_to_savepoint(&mut self) -> Result<()> {
        self.check_active()?;
        self.batch.rollback_to_savepoint()?;
        let Some(savepoint) = self.savepoints.pop() else { return Ok(()) };
        (self.snapshot, self.snapshot_due) = (savepoint.snapshot, savepoint.snapshot_due);
        while self.taken.len() > savepoint.taken {
            match self.taken.pop() {
                Some(Taken::Key(key)) => self.untrack(&key),
                Some(Taken::Range(id)) => {
                    self.ranges.retain(|own| *own != id);
                    self.shared.locks.release_range(id);
                }
                Some(Taken::Upgrade(key)) => {
                    if let Some(tracked) = self.tracked.get_mut(&key) {
                        tracked.mode = Mode::Shared;
                    }
                    if self.is_pessimistic() {
                        self.shared.locks.downgrade(self.id, &key);
                    }
                }
                None => break,
            }
        }
        Ok(())
    }

    /// Removes the last savepoint, and keeps the operations and locks since.
    ///
    /// # Errors
    /// As [`Transaction::rollback_to_savepoint`].
    pub fn pop_savepoint(&mut self) -> Result<()> {
        self.check_active()?;
        self.batch.pop_savepoint()?;
        self.savepoints.pop();
        if self.savepoints.is_empty() {
            self.taken.clear();
        }
        Ok(())
    }

    /// Writes the operations of the transaction as one batch, and ends it. For one that is prepared, only the decision is
    /// written; nothing is checked.
    ///
    /// # Errors
    /// For a prepared transaction those of [`Db::commit_prepared`]: it stays prepared unless the engine has decided on it.
    /// `Busy(Conflict)`: a tracked key was written by others. Those of [`Db::write`]. Nothing was written, and the
    /// transaction goes on: it keeps its locks until it is committed, rolled back or dropped. `Indeterminate`, `Aborted`,
    /// `Shutdown`: the transaction has ended.
    pub fn commit(&mut self) -> Result<()> {
        if self.state == State::Prepared {
            return self.decide(true);
        }
        self.check_active()?;
        let committed = self.write_all();
        match &committed {
            Ok(()) => self.end(State::Committed),
            Err(e) if ends(e.kind()) => self.end(State::Failed),
            Err(_) => {}
        }
        committed
    }

    fn write_all(&mut self) -> Result<()> {
        let options = self.settings.write;
        if self.tracked.is_empty() && self.batch.is_empty() {
            return self.db.check_open();
        }
        if self.tracked.is_empty() {
            return self.db.write(self.batch.operations(), options).map(drop);
        }
        self.db.check_caller("commit()")?;
        // Loaded before the check: what the check misses is newer.
        let seen = self.db.visible();
        let (db, tracked) = (&self.db, &self.tracked);
        validate(db, tracked, seen)?;
        let guards = (self.settings.kind == Kind::Optimistic).then_some(&self.shared);
        check_unguarded(guards, tracked)?;
        if self.batch.is_empty() {
            // All keys were as the transaction saw them at the moment of `seen`.
            return Ok(());
        }
        let mut check = || {
            check_unguarded(guards, tracked)?;
            match db.visible() {
                now if now == seen || planted(Bug::CheckedBeforeTheLead) => Ok(()),
                now => validate(db, tracked, now),
            }
        };
        db.write_checked(self.batch.operations(), options, &mut check).map(drop)
    }

    /// Ends the transaction without a change, and releases its locks.
    ///
    /// # Errors
    /// `InvalidArgument`: the transaction has ended. Of a prepared one, as [`Transaction::commit`].
    pub fn rollback(&mut self) -> Result<()> {
        if self.state == State::Prepared {
            return self.decide(false);
        }
        self.check_active()?;
        self.end(State::RolledBack);
        Ok(())
    }

    pub(crate) fn end(&mut self, state: State) {
        if self.state == State::Prepared {
            self.shared.unguard(&self.tracked);
        }
        self.state = state;
        self.release_all();
        self.batch.clear();
        self.savepoints.clear();
        self.taken.clear();
        (self.snapshot, self.keeper) = (None, None);
    }

    fn is_pessimistic(&self) -> bool {
        self.settings.kind == Kind::Pessimistic
    }

    fn release_all(&mut self) {
        // A forked child leaves the locks alone: a thread of the parent may have held one of the table at the fork.
        let release = self.is_pessimistic() && self.process.is_current();
        // The ranges first: a request that waits for a key of a range must not get the key while the range is held.
        for id in self.ranges.drain(..).filter(|_| release) {
            self.shared.locks.release_range(id);
        }
        let forgotten = usize::from(planted(Bug::RollbackLeavesALock) && self.state == State::RolledBack);
        for (key, _) in self.tracked.drain().filter(|_| release).skip(forgotten) {
            self.shared.locks.release(self.id, &key);
        }
        if release && let Some(name) = self.name.take() {
            self.shared.leave(&name);
        }
    }

    fn untrack(&mut self, key: &LockKey) {
        if self.tracked.remove(key).is_some() && self.is_pessimistic() && !planted(Bug::SavepointKeepsLocks) {
            self.shared.locks.release(self.id, key);
        }
    }

    /// Tracks a key, and locks it in a pessimistic transaction.
    fn track(&mut self, family: &Arc<Family>, user_key: &[u8], mode: Mode) -> Result<()> {
        let key = lock_key(family.id(), user_key);
        match self.tracked.get(&key) {
            Some(tracked) if tracked.mode >= mode => return self.take_due_snapshot(),
            None if self.locks() >= self.settings.max_locks => {
                return Err(too_many_locks(self.settings.max_locks));
            }
            _ => {}
        }
        if self.is_pessimistic() {
            self.db.check_caller("a lock")?;
            self.lock(family, user_key, &key, mode)?;
        }
        if let Some(tracked) = self.tracked.get_mut(&key) {
            tracked.mode = mode;
            self.note(Taken::Upgrade(key));
            return self.take_due_snapshot();
        }
        // From here on the lock is released with the transaction.
        self.tracked.insert(Arc::clone(&key), Tracked::new(family, mode));
        if let Err(e) = self.begin_tracking(&key) {
            self.untrack(&key);
            return Err(e);
        }
        self.note(Taken::Key(key));
        Ok(())
    }

    fn locks(&self) -> usize {
        self.tracked.len() + self.ranges.len()
    }

    /// Locks the keys of `family` within `bounds`, also those that do not exist. Neither their values nor writes to them are tracked.
    /// A range is one lock. The transaction keeps it as it keeps the lock of a key.
    ///
    /// # Errors
    /// Those of a lock: see [`Transaction::write`]. `NotSupported`: the transaction is optimistic. `InvalidArgument`: the
    /// transaction has ended or is prepared, a family of another database.
    pub fn lock_range(&mut self, family: &Arc<Family>, bounds: KeyBounds, mode: Mode) -> Result<()> {
        self.check_active()?;
        self.batch.check_own(family)?;
        if !self.is_pessimistic() {
            return Err(Error::not_supported("a range lock of an optimistic transaction")
                .hint("Begin a pessimistic transaction"));
        }
        if self.locks() >= self.settings.max_locks {
            return Err(too_many_locks(self.settings.max_locks));
        }
        self.db.check_caller("a lock")?;
        let request = RangeRequest {
            transaction: self.id,
            span: &Span::new(family.id(), family.options().order.clone(), bounds),
            family: family.name(),
            mode,
            timeout: self.settings.lock_timeout,
            detect: self.settings.deadlock_detect,
        };
        if let Some(id) = self.shared.locks.acquire_range(&request, self.db.env())? {
            self.ranges.push(id);
            self.note(Taken::Range(id));
        }
        self.take_due_snapshot()
    }

    /// Takes the snapshot that was requested for the next operation. A pessimistic transaction has the lock by now, so the
    /// snapshot shows what the former holder committed.
    fn take_due_snapshot(&mut self) -> Result<()> {
        if self.snapshot_due {
            self.snapshot = Some(self.db.snapshot()?);
            self.snapshot_due = false;
        }
        Ok(())
    }

    fn lock(&self, family: &Family, user_key: &[u8], key: &LockKey, mode: Mode) -> Result<Acquired> {
        let request = Request {
            transaction: self.id,
            key,
            shown: (user_key, family.name()),
            mode,
            timeout: self.settings.lock_timeout,
            detect: self.settings.deadlock_detect,
        };
        self.shared.locks.acquire(&request, self.db.env())
    }

    /// Sets the sequence number after which a write to the key is a conflict.
    fn begin_tracking(&mut self, key: &LockKey) -> Result<()> {
        self.take_due_snapshot()?;
        self.keep_a_snapshot()?;
        let Some(tracked) = self.tracked.get(key) else { return Ok(()) };
        tracked.installations.set(tracked.family.installations());
        let Some(snapshot) = self.snapshot.as_ref().filter(|_| !planted(Bug::SnapshotOfTheCheckTooNew))
        else {
            tracked.since.set(self.db.visible());
            return Ok(());
        };
        tracked.since.set(snapshot.seq());
        // The count of installations belongs to this moment, and the snapshot may be older.
        tracked.installations.set(0);
        if self.is_pessimistic() {
            check_unwritten(&self.db, key, tracked)?;
        }
        Ok(())
    }

    /// Keeps a snapshot that is not newer than what the next key is tracked at. A savepoint may have brought back an older
    /// snapshot than the one that is kept.
    fn keep_a_snapshot(&mut self) -> Result<()> {
        let kept = self.keeper.as_ref().map(Snapshot::seq);
        match &self.snapshot {
            _ if planted(Bug::NoSnapshotForTheCheck) => {}
            Some(snapshot) if kept.is_none_or(|kept| snapshot.seq() < kept) => {
                self.keeper = Some(snapshot.clone());
            }
            None if kept.is_none() => self.keeper = Some(self.db.snapshot()?),
            _ => {}
        }
        Ok(())
    }

    fn note(&mut self, taken: Taken) {
        if !self.savepoints.is_empty() {
            self.taken.push(taken);
        }
    }
}

/// Whether a commit that failed like this may have written something, or can never succeed.
pub(crate) fn ends(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Indeterminate | ErrorKind::Aborted | ErrorKind::Shutdown(_))
}

/// Compares the tracked keys with what was written up to `visible`.
///
/// # Errors
/// `Busy(Conflict)`: a key was written since it was tracked. `InvalidArgument`: its family was dropped. Those of a read.
pub(crate) fn validate(db: &Db, tracked: &TrackedKeys, visible: SeqNum) -> Result<()> {
    for (key, tracked) in tracked {
        if tracked.family.is_dropped() {
            return Err(family_dropped(key, &tracked.family));
        }
        if tracked.since.get() >= visible || planted(Bug::ConflictsIgnored) {
            continue;
        }
        // Loaded before the check: a table that is replaced meanwhile counts for the next one.
        let installations = tracked.family.installations();
        check_unwritten(db, key, tracked)?;
        if tracked.present.get()
            && tracked.installations.get() != installations
            && db.get(&tracked.family, user_key(key), ReadOptions::default())?.is_none()
        {
            return Err(conflict(key, tracked, "was deleted"));
        }
        tracked.since.set(visible);
        tracked.installations.set(installations);
    }
    Ok(())
}

/// # Errors
/// `Busy(Conflict)`: a prepared transaction holds a key of `tracked`. `None`: the locks have seen to that.
fn check_unguarded(guards: Option<&Arc<Shared>>, tracked: &TrackedKeys) -> Result<()> {
    match guards.and_then(|shared| shared.guarded(tracked)) {
        None => Ok(()),
        Some((key, tracked)) => Err(conflict(key, tracked, "belongs to a prepared transaction")),
    }
}

/// # Errors
/// `Busy(Conflict)`: the key was written since it was tracked. Those of a read.
fn check_unwritten(db: &Db, key: &LockKey, tracked: &Tracked) -> Result<()> {
    match db.newest_sequence(&tracked.family, user_key(key), tracked.since.get())? {
        None => Ok(()),
        Some(at) => Err(conflict(key, tracked, &format!("was written at sequence {at}"))),
    }
}

#[cold]
fn conflict(key: &LockKey, tracked: &Tracked, what: &str) -> Error {
    let (key, family) = (user_key(key).escape_ascii(), tracked.family.name());
    let since = tracked.since.get();
    let text =
        format!("conflict: key '{key}' of family {family:?} {what}, after the transaction saw it at {since}");
    Error::new(ErrorKind::Busy(BusyKind::Conflict), text).hint("Run the transaction again")
}

#[cold]
fn family_dropped(key: &LockKey, family: &Family) -> Error {
    let (key, name) = (user_key(key).escape_ascii(), family.name());
    Error::invalid(format!("column family {name:?} was dropped, and the transaction tracks its key '{key}'"))
        .hint("Roll the transaction back, at least to a savepoint before that key")
}

impl Drop for Transaction {
    fn drop(&mut self) {
        match self.state {
            State::Prepared if self.process.is_current() => self.park(),
            _ => self.release_all(),
        }
    }
}

impl fmt::Debug for Transaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transaction")
            .field("id", &self.id)
            .field("name", &self.name.as_ref().map(|name| name.escape_ascii().to_string()))
            .field("kind", &self.settings.kind)
            .field("state", &self.state)
            .field("batch", &self.batch)
            .field("tracked", &self.tracked.len())
            .finish()
    }
}
