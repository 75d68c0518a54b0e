//! Transactions: reads and writes that take effect together, or not at all, and that no other write comes between.

use crate::overlay::{Overlay, changed};
use crate::range::{KeyRange, Keys};
use crate::read::{ReadOptions, Readable, Sealed};
use crate::write::Writable;
use crate::{Db, ErrorKind, Family, Read, Reader, Result, Snapshot, View, Write, WriteOptions};
use ashlar_base::FamilyId;
use ashlar_base::error::BusyKind;
use ashlar_engine::batch::WriteBatch as EngineBatch;
pub use ashlar_txn::{Deadlock, DeadlockWait, Mode as LockMode};
use ashlar_txn::{Kind, Mode, Settings};
use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

/// The first pause before a transaction is run again, and the longest one.
const PAUSES: (Duration, Duration) = (Duration::from_micros(100), Duration::from_millis(50));

/// Options of a transaction. Every option has a default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "options do nothing until a transaction gets them"]
pub struct TransactionOptions {
    settings: Settings,
    attempts: u32,
}

impl Default for TransactionOptions {
    fn default() -> Self {
        TransactionOptions { settings: Settings::default(), attempts: 16 }
    }
}

impl TransactionOptions {
    /// The defaults: a pessimistic transaction, which locks its keys.
    pub fn new() -> Self {
        Self::default()
    }

    /// An optimistic transaction. It takes no locks; its commit fails with `Busy(Conflict)` if one of its keys was written
    /// meanwhile.
    pub fn optimistic() -> Self {
        Self::default().set(|settings| settings.kind = Kind::Optimistic)
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    fn set(mut self, set: impl FnOnce(&mut Settings)) -> Self {
        set(&mut self.settings);
        self
    }

    /// Whether the transaction reads one snapshot, taken when it begins. A key that was written after the snapshot is then a
    /// conflict. Default: false; reads see the newest state. See [`Transaction::set_snapshot`].
    pub fn snapshot(self, yes: bool) -> Self {
        self.set(|settings| settings.snapshot = yes)
    }

    /// Whether reads see the newest state although the transaction has a snapshot, which then serves the check for conflicts
    /// only. Default: false. RocksDB's transactions read so unless a read names the snapshot; see [`Transaction::over`].
    pub fn read_newest(self, yes: bool) -> Self {
        self.set(|settings| settings.read_newest = yes)
    }

    /// How long the transaction waits for a lock before it answers `TimedOut`. Default: one second. Zero: it does not wait.
    pub fn lock_timeout(self, longest: Duration) -> Self {
        self.set(|settings| settings.lock_timeout = Some(longest))
    }

    /// The transaction waits for locks as long as it takes.
    pub fn no_lock_timeout(self) -> Self {
        self.set(|settings| settings.lock_timeout = None)
    }

    /// Whether a wait that would close a circle of waiting transactions answers `Busy(Deadlock)` at once. Default: true.
    pub fn deadlock_detect(self, yes: bool) -> Self {
        self.set(|settings| settings.deadlock_detect = yes)
    }

    /// How many keys the transaction may lock or track; more answer `Busy(LockLimit)`. Default: any number. A tracked key
    /// takes about 150 bytes and its length.
    pub fn max_locks(self, keys: usize) -> Self {
        self.set(|settings| settings.max_locks = keys)
    }

    /// The options of the write that the commit makes.
    pub fn write_options(self, options: WriteOptions) -> Self {
        self.set(|settings| settings.write = options.engine())
    }

    /// How often [`Db::transaction_with`] runs the transaction at most while it ends in a conflict or a deadlock. Default: 16.
    pub fn attempts(mut self, most: u32) -> Self {
        self.attempts = most.max(1);
        self
    }
}

/// Reads and writes that take effect together, or not at all. Made by [`Db::begin`] and [`Db::transaction`].
///
/// The methods of [`Read`] see the database with the transaction's own changes over it. Those of [`Write`] change nothing
/// in the database before [`Transaction::commit`]. A key that the transaction writes, or reads with
/// [`Transaction::get_for_update`], is *tracked*: if another write to the key came between, the commit fails with
/// `Busy(Conflict)` and writes nothing. That holds for writes of other transactions and for plain writes such as `db.put`.
/// Plain reads and scans are not tracked. [`Transaction::lock_range`] locks what a scan reads.
///
/// A pessimistic transaction also locks its keys, so other pessimistic transactions wait for it, and so does [`Db::locking`]. Plain
/// writes and optimistic transactions take no locks and do not wait. A write of a transaction needs the lock, so it may answer the errors of
/// [`Transaction::get_for_update`] too; the transaction then has neither the lock nor the operation.
///
/// ```
/// # use ashlardb::{Db, Read, Write};
/// # fn main() -> ashlardb::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = Db::open(dir.path().join("db"))?;
/// db.put("stock/apple", "7")?;
/// let t = db.begin()?;
/// let stock = t.get_for_update("stock/apple")?;     // locked until the transaction ends
/// t.put("stock/apple", "6")?;
/// assert_eq!(t.get("stock/apple")?.as_deref(), Some(&b"6"[..]));
/// assert_eq!(db.get("stock/apple")?, stock);        // not yet committed
/// t.commit()?;
/// assert_eq!(db.get("stock/apple")?.as_deref(), Some(&b"6"[..]));
/// # Ok(())
/// # }
/// ```
///
/// Dropping an active transaction rolls it back, unless it is prepared. After its end, every call answers `InvalidArgument`. A scan shows the
/// moment of the call that made it. [`Write::delete_range`] answers `NotSupported`, as in RocksDB. [`Read::explain_get`]
/// and [`crate::Scan::explain`] explain the read of the database alone.
///
/// A transaction with a name can be *prepared*, for a commit together with other databases: [`Transaction::prepare`] writes
/// it to the WAL, and the commit or the rollback comes later, also after another open ([`Db::prepared_transactions`]).
///
/// A transaction belongs to one thread at a time:
///
/// ```compile_fail
/// fn shared<T: Sync>(_: T) {}
/// fn misuse(db: ashlardb::Db) {
///     shared(db.begin().unwrap());
/// }
/// ```
#[derive(Debug)]
#[must_use = "dropping a transaction rolls it back"]
pub struct Transaction {
    db: Db,
    // A cell, so that the methods of `Write` take `&self` as those of a database do.
    inner: RefCell<ashlar_txn::Transaction>,
}

type EngineFamily = Arc<ashlar_engine::column_family::Family>;

impl Transaction {
    /// The transaction for reads and writes on `family`. Each call answers `InvalidArgument` for a family of another
    /// database.
    pub fn family<'a>(&'a self, family: &'a Family) -> TransactionFamily<'a> {
        TransactionFamily { transaction: self, family: &family.inner }
    }

    /// The state of a snapshot with the changes of the transaction over it. Each read answers `InvalidArgument` for a snapshot of
    /// another database.
    pub fn over<'a>(&'a self, snapshot: &'a Snapshot) -> Reader<'a> {
        let own = self.db.default().database() == snapshot.db.default().database();
        let overlay = if own { Overlay::Transaction(&self.inner) } else { Overlay::Foreign };
        let at = Some(&*snapshot.inner);
        Reader::new(Readable { at, overlay: Some(overlay), ..self.readable_of(self.db.default()) })
    }

    /// The value of `key`, which the transaction tracks and locks exclusively from now on: the value cannot change before the
    /// commit without a conflict.
    ///
    /// # Errors
    /// Those of [`Read::get`]. `TimedOut`: other transactions hold the lock. `Busy(Deadlock)`: waiting for it would never end;
    /// the text names the circle. `Busy(Conflict)`: the key was written after the transaction's snapshot. `Busy(LockLimit)`.
    pub fn get_for_update(&self, key: impl AsRef<[u8]>) -> Result<Option<View>> {
        self.tracked(self.db.default(), key.as_ref(), Mode::Exclusive)
    }

    /// The value of `key`, which the transaction tracks and locks shared from now on: other transactions may read it in
    /// the same way, and none of them may write it.
    ///
    /// # Errors
    /// As [`Transaction::get_for_update`].
    pub fn get_for_share(&self, key: impl AsRef<[u8]>) -> Result<Option<View>> {
        self.tracked(self.db.default(), key.as_ref(), Mode::Shared)
    }

    /// The values of `keys`, in their order. The transaction tracks the keys and locks them exclusively, in the order of their
    /// bytes. So transactions that lock all their keys in one such call do not wait for each other in a circle.
    ///
    /// # Errors
    /// As [`Transaction::get_for_update`], for the first key that cannot be locked. Keys before it stay locked.
    pub fn multi_get_for_update<K: AsRef<[u8]>>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<Option<View>>> {
        self.all_tracked(self.db.default(), keys)
    }

    /// Locks all keys of a range exclusively, also those that do not exist: no other pessimistic transaction locks one of them, so
    /// what a scan of the range shows stays until the transaction ends. Ranges are those of [`crate::KeyRange`].
    ///
    /// The keys are not tracked. A plain write or an optimistic transaction may write to the range, and the commit does not notice
    /// that; [`Db::locking`] waits. The range counts as one lock.
    ///
    /// ```
    /// # use ashlardb::prelude::*;
    /// # fn main() -> ashlardb::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = Db::open(dir.path().join("db"))?;
    /// let t = db.begin()?;
    /// t.lock_range("booking/".."booking0")?;           // nothing is booked meanwhile
    /// if t.prefix("booking/").count() < 100 {
    ///     t.put("booking/Ada", "")?;
    /// }
    /// t.commit()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of a lock: see [`Transaction::get_for_update`]. `InvalidArgument`: the range begins after its end; the transaction
    /// has ended or is prepared. `NotSupported`: the transaction is optimistic.
    /// # Cost
    /// A look at every lock of the database. While a range is locked, each lock of a key passes one mutex.
    pub fn lock_range(&self, range: impl KeyRange) -> Result<()> {
        self.range_locked(self.db.default(), &range, Mode::Exclusive)
    }

    /// [`Transaction::lock_range`], shared: other transactions may lock keys and ranges of it shared too, and none of them may
    /// write there.
    ///
    /// # Errors
    /// As there.
    pub fn lock_range_shared(&self, range: impl KeyRange) -> Result<()> {
        self.range_locked(self.db.default(), &range, Mode::Shared)
    }

    fn range_locked(&self, family: &EngineFamily, range: &impl KeyRange, mode: Mode) -> Result<()> {
        let keys = Keys::of(range);
        keys.check(&family.options().order)?;
        changed(&self.inner)?.lock_range(family, keys.0, mode)
    }

    fn tracked(&self, family: &EngineFamily, key: &[u8], mode: Mode) -> Result<Option<View>> {
        changed(&self.inner)?.get_for_update(family, key, mode, ashlar_options::ReadOptions::default())
    }

    fn all_tracked<K: AsRef<[u8]>>(
        &self,
        family: &EngineFamily,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<Option<View>>> {
        let keys: Vec<K> = keys.into_iter().collect();
        let keys: Vec<&[u8]> = keys.iter().map(AsRef::as_ref).collect();
        let (mode, options) = (Mode::Exclusive, ashlar_options::ReadOptions::default());
        let values = changed(&self.inner)?.multi_get_for_update(family, &keys, mode, options)?;
        values.into_iter().collect()
    }

    /// Writes that are neither tracked nor locked: for keys that no other writer writes, or whose last write may win.
    pub fn untracked(&self) -> Untracked<'_> {
        Untracked { transaction: self, family: self.db.default() }
    }

    /// Reads a new snapshot from now on. Keys that the transaction tracks from now on must not have been written after it.
    ///
    /// # Errors
    /// `Shutdown`. `InvalidArgument`: the transaction has ended.
    pub fn set_snapshot(&self) -> Result<()> {
        changed(&self.inner)?.set_snapshot()
    }

    /// Takes a new snapshot when the next key is tracked, after the wait for its lock.
    ///
    /// # Errors
    /// `InvalidArgument`: the transaction has ended.
    pub fn set_snapshot_on_next_operation(&self) -> Result<()> {
        changed(&self.inner)?.set_snapshot_on_next_operation()
    }

    /// Whether [`Transaction::set_snapshot_on_next_operation`] waits for its key.
    pub fn awaits_snapshot(&self) -> bool {
        self.inner.try_borrow().is_ok_and(|inner| inner.awaits_snapshot())
    }

    /// Reads the newest state from now on.
    ///
    /// # Errors
    /// `InvalidArgument`: the transaction has ended.
    pub fn clear_snapshot(&self) -> Result<()> {
        changed(&self.inner)?.clear_snapshot()
    }

    /// The snapshot that the transaction reads; `None`: it reads the newest state.
    pub fn snapshot(&self) -> Option<Snapshot> {
        let inner = self.inner.try_borrow().ok()?.snapshot()?.clone();
        Some(Snapshot { db: self.db.clone(), inner: inner.into() })
    }

    /// Adds bytes for readers of the WAL to the transaction. They are in the batch of the commit, and are no change.
    ///
    /// # Errors
    /// `InvalidArgument`: the transaction has ended.
    pub fn put_log_data(&self, blob: impl AsRef<[u8]>) -> Result<()> {
        changed(&self.inner)?.put_log_data(blob.as_ref())
    }

    /// Sets a savepoint, to which [`Transaction::rollback_to_savepoint`] returns. Savepoints nest.
    ///
    /// # Errors
    /// `InvalidArgument`: the transaction has ended.
    pub fn set_savepoint(&self) -> Result<()> {
        changed(&self.inner)?.set_savepoint()
    }

    /// Takes back the operations since the last savepoint, releases the locks taken since, and removes the savepoint.
    ///
    /// # Errors
    /// `InvalidArgument`: there is no savepoint, or the transaction has ended.
    pub fn rollback_to_savepoint(&self) -> Result<()> {
        changed(&self.inner)?.rollback_to_savepoint()
    }

    /// Removes the last savepoint, and keeps the operations and locks since.
    ///
    /// # Errors
    /// As [`Transaction::rollback_to_savepoint`].
    pub fn pop_savepoint(&self) -> Result<()> {
        changed(&self.inner)?.pop_savepoint()
    }

    /// Gives the transaction a name, which no other open transaction of the database has: 1 to 512 bytes.
    ///
    /// # Errors
    /// `InvalidArgument`: it has a name; the name is empty, too long or in use; the transaction is prepared or has ended.
    /// `NotSupported`: the transaction is optimistic.
    pub fn set_name(&self, name: impl AsRef<[u8]>) -> Result<()> {
        changed(&self.inner)?.set_name(name.as_ref())
    }

    /// The name; `None`: it has none, or the transaction has ended.
    pub fn name(&self) -> Option<Vec<u8>> {
        self.inner.try_borrow().ok()?.name().map(<[u8]>::to_vec)
    }

    /// The first phase of a two-phase commit: checks the tracked keys as a commit does, and writes the operations to the WAL.
    /// After `Ok`, readers see no change yet, and [`Transaction::commit`] can fail only with the database. Reads of the
    /// transaction go on; writes, locks, savepoints and snapshots answer `InvalidArgument`.
    ///
    /// With [`WriteOptions::sync`] in the transaction's options the prepare is durable when the call returns, else with the
    /// next sync. The transaction keeps its locks until it is committed or rolled back. Dropping the handle decides nothing:
    /// [`Db::transaction_by_name`] gives another one, also after the next open.
    ///
    /// Plain writes take no locks, unless they go through [`Db::locking`]. One to a key of the transaction, between prepare and
    /// commit, is overwritten by the commit.
    /// (RocksDB: `Transaction::Prepare` under the policy `WRITE_COMMITTED`; AshlarDB writes no other.)
    ///
    /// # Errors
    /// `InvalidArgument`: no name; `disable_wal`; it is prepared or has ended. `NotSupported`: it is optimistic, or writes to a
    /// family whose values expire. `Busy(Memory)`: undecided transactions have 1 GiB. Those of [`Transaction::commit`]. If the
    /// WAL failed, [`Transaction::is_prepared`] says whether the transaction is prepared or has ended.
    /// # Cost
    /// The operations go to the WAL once, and again at the beginning of each new WAL file until the decision.
    pub fn prepare(&self) -> Result<()> {
        changed(&self.inner)?.prepare()
    }

    /// Whether the transaction is prepared, and neither committed nor rolled back.
    pub fn is_prepared(&self) -> bool {
        self.inner.try_borrow().is_ok_and(|inner| inner.is_prepared())
    }

    /// Writes all operations of the transaction as one batch, and ends it.
    ///
    /// # Errors
    /// `Busy(Conflict)`: a tracked key was written meanwhile. Those of [`Db::write`]. Nothing was written then, and the
    /// transaction keeps its locks until it is committed, rolled back or dropped. After `Indeterminate`, `Aborted` and
    /// `Shutdown` it has ended.
    ///
    /// A prepared transaction has no conflict, and stays prepared after an error, unless the operations became visible and
    /// only their sync failed: then it has ended. Operations on families that were dropped since the prepare are left out.
    pub fn commit(&self) -> Result<()> {
        changed(&self.inner)?.commit()
    }

    /// Ends the transaction without a change, and releases its locks.
    ///
    /// # Errors
    /// `InvalidArgument`: the transaction has ended. Those of [`Db::write`] for a prepared transaction, whose rollback is
    /// written to the WAL: it stays prepared.
    pub fn rollback(&self) -> Result<()> {
        changed(&self.inner)?.rollback()
    }

    /// Whether the transaction was neither committed nor rolled back.
    pub fn is_active(&self) -> bool {
        self.inner.try_borrow().is_ok_and(|inner| inner.is_active())
    }

    /// The number of the transaction in this open of the database, which errors of locks name.
    pub fn id(&self) -> u64 {
        self.inner.try_borrow().map_or(0, |inner| inner.id())
    }

    /// The number of operations that the commit will write.
    pub fn len(&self) -> usize {
        self.inner.try_borrow().map_or(0, |inner| inner.len())
    }

    /// The operations in the form of [`crate::WriteBatch::data`].
    ///
    /// # Errors
    /// `InvalidArgument`: the transaction has ended.
    pub fn data(&self) -> Result<Vec<u8>> {
        Ok(changed(&self.inner)?.data()?.to_vec())
    }

    /// Whether the commit will write nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of keys that the transaction tracks.
    pub fn tracked_keys(&self) -> usize {
        self.inner.try_borrow().map_or(0, |inner| inner.tracked())
    }

    fn readable_of<'a>(&'a self, family: &'a EngineFamily) -> Readable<'a> {
        let overlay = Some(Overlay::Transaction(&self.inner));
        Readable { db: &self.db, family, at: None, options: ReadOptions::default(), overlay }
    }

    fn add_to(
        &self,
        family: &EngineFamily,
        untracked: bool,
        op: impl FnOnce(&mut EngineBatch, FamilyId) -> Result<()>,
    ) -> Result<()> {
        changed(&self.inner)?.write(family, untracked, op)
    }
}

/// A [`Transaction`] for reads and writes on one family: see [`Transaction::family`].
#[derive(Clone, Copy, Debug)]
#[must_use = "it does nothing until it is asked"]
pub struct TransactionFamily<'a> {
    transaction: &'a Transaction,
    family: &'a EngineFamily,
}

impl<'a> TransactionFamily<'a> {
    /// [`Transaction::get_for_update`] for a key of the family.
    ///
    /// # Errors
    /// As there. `InvalidArgument`: a family of another database.
    pub fn get_for_update(&self, key: impl AsRef<[u8]>) -> Result<Option<View>> {
        self.transaction.tracked(self.family, key.as_ref(), Mode::Exclusive)
    }

    /// [`Transaction::get_for_share`] for a key of the family.
    ///
    /// # Errors
    /// As there. `InvalidArgument`: a family of another database.
    pub fn get_for_share(&self, key: impl AsRef<[u8]>) -> Result<Option<View>> {
        self.transaction.tracked(self.family, key.as_ref(), Mode::Shared)
    }

    /// [`Transaction::multi_get_for_update`] for keys of the family.
    ///
    /// # Errors
    /// As there. `InvalidArgument`: a family of another database.
    pub fn multi_get_for_update<K: AsRef<[u8]>>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<Option<View>>> {
        self.transaction.all_tracked(self.family, keys)
    }

    /// [`Transaction::lock_range`] for keys of the family.
    ///
    /// # Errors
    /// As there. `InvalidArgument`: a family of another database.
    pub fn lock_range(&self, range: impl KeyRange) -> Result<()> {
        self.transaction.range_locked(self.family, &range, Mode::Exclusive)
    }

    /// [`Transaction::lock_range_shared`] for keys of the family.
    ///
    /// # Errors
    /// As there. `InvalidArgument`: a family of another database.
    pub fn lock_range_shared(&self, range: impl KeyRange) -> Result<()> {
        self.transaction.range_locked(self.family, &range, Mode::Shared)
    }

    /// [`Transaction::untracked`] for the family.
    pub fn untracked(&self) -> Untracked<'a> {
        Untracked { transaction: self.transaction, family: self.family }
    }
}

/// Writes of a [`Transaction`] that are neither tracked nor locked: see [`Transaction::untracked`].
#[derive(Clone, Copy, Debug)]
#[must_use = "it does nothing until it is asked"]
pub struct Untracked<'a> {
    transaction: &'a Transaction,
    family: &'a EngineFamily,
}

impl Read for Transaction {}
impl Sealed for Transaction {
    const OVERLAID: bool = true;

    fn readable(&self) -> Readable<'_> {
        self.readable_of(self.db.default())
    }
}

impl Read for TransactionFamily<'_> {}
impl Sealed for TransactionFamily<'_> {
    const OVERLAID: bool = true;

    fn readable(&self) -> Readable<'_> {
        self.transaction.readable_of(self.family)
    }
}

impl Write for Transaction {}
impl Writable for Transaction {
    fn add(&self, op: impl FnOnce(&mut EngineBatch, FamilyId) -> Result<()>) -> Result<()> {
        self.add_to(self.db.default(), false, op)
    }
}

impl Write for TransactionFamily<'_> {}
impl Writable for TransactionFamily<'_> {
    fn add(&self, op: impl FnOnce(&mut EngineBatch, FamilyId) -> Result<()>) -> Result<()> {
        self.transaction.add_to(self.family, false, op)
    }
}

impl Write for Untracked<'_> {}
impl Writable for Untracked<'_> {
    fn add(&self, op: impl FnOnce(&mut EngineBatch, FamilyId) -> Result<()>) -> Result<()> {
        self.transaction.add_to(self.family, true, op)
    }
}

impl Db {
    /// An empty [`crate::IndexedBatch`] for this database.
    pub fn indexed_batch(&self) -> crate::IndexedBatch {
        self.indexed_batch_with(crate::IndexedBatchOptions::new())
    }

    /// [`Db::indexed_batch`] with options.
    pub fn indexed_batch_with(&self, options: crate::IndexedBatchOptions) -> crate::IndexedBatch {
        crate::IndexedBatch::new(self, options)
    }

    /// Begins a pessimistic transaction.
    ///
    /// # Errors
    /// `Shutdown`. `InvalidArgument`: a callback of a write or of background work makes the call.
    pub fn begin(&self) -> Result<Transaction> {
        self.begin_with(TransactionOptions::default())
    }

    /// Begins a transaction with options.
    ///
    /// # Errors
    /// As [`Db::begin`].
    pub fn begin_with(&self, options: TransactionOptions) -> Result<Transaction> {
        let inner = ashlar_txn::Transaction::begin(self.engine(), self.default(), options.settings)?;
        Ok(Transaction { db: self.clone(), inner: RefCell::new(inner) })
    }

    /// Runs `work` in a pessimistic transaction and commits it. If `work` or the commit ends in a conflict or a deadlock, the
    /// transaction is rolled back and `work` runs again, after a random pause, up to 16 times.
    ///
    /// ```
    /// # use ashlardb::{Db, Read, Write};
    /// # fn main() -> ashlardb::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = Db::open(dir.path().join("db"))?;
    /// let next = db.transaction(|t| {
    ///     let last = t.get_for_update("last id")?.map_or(0, |v| v.first().copied().unwrap_or(0));
    ///     t.put("last id", [last + 1])?;
    ///     Ok(last + 1)
    /// })?;
    /// assert_eq!(next, 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of `work`: the transaction is rolled back. Those of [`Transaction::commit`].
    pub fn transaction<T>(&self, work: impl FnMut(&Transaction) -> Result<T>) -> Result<T> {
        self.transaction_with(TransactionOptions::default(), work)
    }

    /// [`Db::transaction`] with options.
    ///
    /// # Errors
    /// As [`Db::transaction`].
    pub fn transaction_with<T>(
        &self,
        options: TransactionOptions,
        mut work: impl FnMut(&Transaction) -> Result<T>,
    ) -> Result<T> {
        let mut pause = PAUSES.0;
        for _ in 1..options.attempts {
            match self.attempt(options, &mut work) {
                Err(e) if may_succeed_later(e.kind()) => {}
                done => return done,
            }
            let env = self.engine().env();
            // Between half the pause and all of it, so that transactions that met once do not meet again.
            let part = u32::try_from(env.rand.next_u64() % 512).unwrap_or_default();
            env.clock.sleep(pause * (512 + part) / 1024);
            pause = (pause * 2).min(PAUSES.1);
        }
        self.attempt(options, &mut work)
    }

    fn attempt<T>(
        &self,
        options: TransactionOptions,
        work: &mut impl FnMut(&Transaction) -> Result<T>,
    ) -> Result<T> {
        let transaction = self.begin_with(options)?;
        let value = work(&transaction)?;
        // The work may have ended the transaction by itself.
        if transaction.is_active() {
            transaction.commit()?;
        }
        Ok(value)
    }

    /// The prepared transactions that no handle has, ordered by name: after an open, all that are undecided. They hold their
    /// locks. Each can be committed or rolled back; a handle that is dropped leaves its transaction prepared.
    ///
    /// ```
    /// # use ashlardb::prelude::*;
    /// # fn main() -> ashlardb::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("db");
    /// let db = Db::open(&path)?;
    /// let t = db.begin_with(TransactionOptions::new().write_options(WriteOptions::synced()))?;
    /// t.set_name("transfer 17")?;
    /// t.put("account", "5")?;
    /// t.prepare()?;
    /// drop(t);
    /// db.close()?;
    /// # drop(db);
    ///
    /// let db = Db::open(&path)?;
    /// for t in db.prepared_transactions()? {
    ///     // Ask the coordinator what was decided on `t.name()`.
    ///     t.commit()?;
    /// }
    /// assert_eq!(db.get("account")?.as_deref(), Some(&b"5"[..]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `NotSupported`: the database is open for reading only. `Shutdown`.
    pub fn prepared_transactions(&self) -> Result<Vec<Transaction>> {
        let all = ashlar_txn::two_phase::prepared_transactions(self.engine())?;
        Ok(all
            .into_iter()
            .map(|inner| Transaction { db: self.clone(), inner: RefCell::new(inner) })
            .collect())
    }

    /// The prepared transaction of this name; `None`: no transaction has the name.
    ///
    /// # Errors
    /// `InvalidArgument`: a handle has the transaction. Those of [`Db::prepared_transactions`].
    pub fn transaction_by_name(&self, name: impl AsRef<[u8]>) -> Result<Option<Transaction>> {
        let found = ashlar_txn::two_phase::transaction_by_name(self.engine(), name.as_ref())?;
        Ok(found.map(|inner| Transaction { db: self.clone(), inner: RefCell::new(inner) }))
    }

    /// The last 16 deadlocks that transactions met, newest first.
    ///
    /// # Errors
    /// `Shutdown(Forked)`.
    pub fn deadlocks(&self) -> Result<Vec<Deadlock>> {
        ashlar_txn::transaction::deadlocks(self.engine())
    }
}

fn may_succeed_later(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Busy(BusyKind::Conflict | BusyKind::Deadlock))
}
