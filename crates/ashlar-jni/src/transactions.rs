//! Transactions.
//!
//! 1. A transaction takes one call at a time; calls of several threads wait for each other.
//! 2. Handles that a transaction lends (its snapshot, its batch, its write options) end with it, or when another transaction begins in
//!    its place. The handle of a snapshot ends earlier with each change of the snapshot. Commit and rollback leave that handle as it is,
//!    but unlike in RocksDB the transaction has no snapshot then.
//! 3. A database knows the named transactions that a program holds: a search by name answers the same handle. What a search
//!    finds in the database itself has a handle that ends with the database, because Java does not own it. One search runs at a
//!    time, so that the second of two searches finds the handle of the first.

use crate::batch::{BatchObject, Kind};
use crate::db::{DbObject, FamilyObject};
use crate::door::{Result, Room, object};
use crate::env::{Env, Local};
use crate::handles::{self, Lent, Object};
use crate::indexed::IndexedObject;
use crate::iterators::IterObject;
use crate::options::copied_to;
use crate::reads::{families_of, values_or_null, with_families};
use crate::settings::{
    HasTexts, OptimisticOptionsObject, ReadObject, Shared, TxnDbOptionsObject, TxnOptionsObject, WriteObject,
};
use crate::snapshots::SnapshotObject;
use crate::txn_settings::{NotifierObject, check_commit_time_batch, check_write_options, tell_of_snapshot};
use ashlar_compat::batch::operations;
use ashlar_compat::database::Database;
use ashlar_compat::indexed::Operation;
use ashlar_compat::options::Texts;
use ashlar_compat::transaction::Txn;
use ashlar_compat::transactions::{TRANSACTION_DEFAULTS, optimistic, pessimistic};
use ashlar_compat::turn::{Taken, Turn};
use ashlardb::{Env as Files, Error, Family, View, Write};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// `Transaction`.
#[derive(Debug)]
pub struct TxnObject {
    content: Turn<Content>,
    state: AtomicI8,
    names: Arc<Names>,
}

/// What one call at a time uses.
#[derive(Debug)]
pub(crate) struct Content {
    pub txn: Txn,
    /// Whose clock counts.
    env: Files,
    /// Microseconds since 1970 at the begin.
    begun: u64,
    pub options: BeginOptions,
    pub lent: LentParts,
    /// Waits for the snapshot of the next operation.
    pub notifier: Option<NotifierObject>,
    /// The notifier at each savepoint.
    savepoints: Vec<Option<NotifierObject>>,
    /// Begun again, the transaction would lose nothing that it cannot show: a savepoint, bytes for readers of the WAL, a snapshot that
    /// was asked for with the next operation.
    pub is_fresh: bool,
    pub log_number: i64,
}

/// With what a transaction began.
#[derive(Debug)]
pub(crate) struct BeginOptions {
    /// Those of the database and of the transaction, if it takes locks.
    locking: Option<(Texts, Texts)>,
    /// Those of an optimistic transaction.
    free: Texts,
    pub write: Texts,
}

impl BeginOptions {
    /// Begins a transaction.
    ///
    /// # Errors
    /// Those of [`pessimistic`] and of the begin.
    pub fn begin(&self, database: &Database) -> Result<Txn> {
        let write = WriteObject::of(self.write.clone()).write();
        let txn = match &self.locking {
            None => Txn::begin(database, Ok(optimistic(&self.free, write)), false),
            Some((of_database, texts)) => {
                let must_prepare = !texts.get::<bool>("skip_prepare");
                Txn::begin(database, pessimistic(of_database, texts, write), must_prepare)
            }
        };
        // RocksDB's begin has no error either, but nothing would be done without one.
        txn.open()?;
        Ok(txn)
    }

    /// Sets another lock timeout, and answers the one before; `None`: the transaction takes no locks.
    pub fn set_lock_timeout(&mut self, millis: i64) -> Option<i64> {
        let (_, texts) = self.locking.as_mut()?;
        let before = texts.get("lock_timeout");
        texts.set("lock_timeout", millis);
        Some(before)
    }
}

/// What Java has of a transaction without owning it.
#[derive(Debug, Default)]
pub(crate) struct LentParts {
    /// With its sequence number.
    pub snapshot: Option<(u64, Lent)>,
    batch: Option<Lent>,
    pub write: Option<Lent>,
    pub at_commit: Option<Lent>,
}

/// The named transactions of a database that have a handle.
#[derive(Debug, Default)]
pub struct Names {
    known: Shared<Known>,
    /// Held from the look among the known names to the entry of what the database itself had. It is taken before `known`.
    search: Mutex<()>,
}

#[derive(Debug, Default)]
struct Known {
    handles: BTreeMap<Vec<u8>, i64>,
    /// Those that a search found, which end with the database.
    found: Vec<Lent>,
}

impl Names {
    /// Waits for other searches.
    fn search(&self) -> MutexGuard<'_, ()> {
        self.search.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The database ends.
    pub fn clear(&self) {
        let known = std::mem::take(&mut *self.known.write());
        // Outside the lock: the end of a transaction looks its name up.
        drop(known);
    }

    /// The handle of the transaction of a name, if it has one that is open.
    fn handle(&self, name: &[u8]) -> Option<i64> {
        let handle = *self.known.read().handles.get(name)?;
        handles::get::<TxnObject>(handle).ok().map(|_| handle)
    }

    /// The handles of the transactions that are prepared.
    fn prepared(&self) -> Vec<i64> {
        let all: Vec<i64> = self.known.read().handles.values().copied().collect();
        let is_prepared = |handle: &i64| {
            handles::get::<TxnObject>(*handle).is_ok_and(|txn| txn.state.load(Ordering::Acquire) == PREPARED)
        };
        all.into_iter().filter(is_prepared).collect()
    }

    fn add(&self, name: &[u8], handle: i64) {
        self.known.write().handles.insert(name.to_vec(), handle);
    }

    fn remove(&self, name: &[u8]) {
        self.known.write().handles.remove(name);
    }
}

/// Java's numbers of states.
const STARTED: i8 = 0;
const PREPARED: i8 = 2;
const COMMITTED: i8 = 4;
const ROLLED_BACK: i8 = 6;

impl Object for TxnObject {
    const NAME: &'static str = "Transaction";
}

impl Drop for TxnObject {
    fn drop(&mut self) {
        let name = self.content.get_mut().name();
        name.into_iter().for_each(|name| self.names.remove(&name));
    }
}

impl Content {
    /// Takes the snapshot with the next operation, and shows it to `notifier`.
    ///
    /// # Errors
    /// Those of [`ashlardb::Transaction::set_snapshot_on_next_operation`].
    pub fn await_snapshot(&mut self, notifier: Option<NotifierObject>) -> Result<()> {
        self.txn.open()?.set_snapshot_on_next_operation()?;
        (self.notifier, self.is_fresh) = (notifier, false);
        Ok(())
    }

    fn name(&self) -> Option<Vec<u8>> {
        self.txn.open().ok()?.name()
    }
}

impl TxnObject {
    fn new(db: &DbObject, content: Content, state: i8) -> TxnObject {
        TxnObject { content: Turn::new(content), state: state.into(), names: Arc::clone(&db.names) }
    }

    pub(crate) fn lock(&self) -> Result<Taken<'_, Content>> {
        Ok(self.content.take()?)
    }

    /// Whether no call on the transaction runs.
    pub fn is_idle(&self) -> bool {
        self.content.is_free()
    }

    /// Runs an operation. The engine takes the snapshot of the next operation behind the wait for a lock.
    ///
    /// # Errors
    /// Those of `work`.
    fn operate<R>(&self, work: impl FnOnce(&Content) -> ashlardb::Result<R>) -> Result<R> {
        let content = self.lock()?;
        let done = work(&content);
        let told = tell_of_snapshot(content);
        let done = done?;
        told.map(|()| done)
    }

    /// Runs an operation without a lock, for which the engine takes no snapshot.
    ///
    /// # Errors
    /// Those of `work` and [`ashlardb::Transaction::set_snapshot`].
    fn operate_untracked<R>(&self, work: impl FnOnce(&Content) -> ashlardb::Result<R>) -> Result<R> {
        self.operate(|content| {
            let transaction = content.txn.open()?;
            if transaction.awaits_snapshot() {
                transaction.set_snapshot()?;
            }
            work(content)
        })
    }

    /// Ends the transaction by `end`.
    fn ended(
        &self,
        mut content: Taken<'_, Content>,
        state: i8,
        end: impl FnOnce(&mut Txn) -> ashlardb::Result<()>,
    ) -> Result<()> {
        let name = content.name();
        end(&mut content.txn)?;
        content.savepoints.clear();
        // As in RocksDB the batch for the commit stays, without its operations.
        if let Some(Ok(batch)) =
            content.lent.at_commit.as_ref().map(|lent| handles::get::<BatchObject>(lent.handle()))
        {
            batch.lock().clear();
        }
        self.state.store(state, Ordering::Release);
        name.into_iter().for_each(|name| self.names.remove(&name));
        Ok(())
    }

    /// A copy of the operations.
    ///
    /// # Errors
    /// Those of [`Txn::operations`].
    pub fn operations(&self) -> Result<ashlar_compat::indexed::IndexedBatch> {
        Ok(self.lock()?.txn.operations()?)
    }

    /// Adds an operation without a check for conflicts.
    ///
    /// # Errors
    /// Those of the write to a transaction.
    pub fn add(&self, family: Option<&Family>, key: &[u8], operation: Operation<'_>) -> Result<()> {
        self.operate_untracked(|content| {
            let to = content.txn.open()?.family(content.txn.family(family)).untracked();
            match operation {
                Operation::Put(value) => to.put(key, value),
                Operation::Merge(operand) => to.merge(key, operand),
                Operation::Delete => to.delete(key),
                Operation::SingleDelete => to.single_delete(key),
            }
        })
    }
}

fn of(family: Option<&FamilyObject>) -> Option<&Family> {
    family.map(|family| &family.family)
}

fn content(db: &DbObject, txn: Txn, options: BeginOptions) -> Result<Content> {
    let env = db.files()?;
    let begun = env.clock.unix_micros();
    let lent = LentParts::default();
    let (notifier, savepoints) = (None, Vec::new());
    Ok(Content { txn, env, begun, options, lent, notifier, savepoints, is_fresh: true, log_number: 0 })
}

fn begun(
    db: &DbObject,
    write: &WriteObject,
    locking: Option<(Texts, Texts)>,
    free: Texts,
) -> Result<Content> {
    let options = BeginOptions { locking, free, write: write.with(Texts::clone) };
    content(db, options.begin(&db.database)?, options)
}

fn locked(db: &DbObject, write: &WriteObject, options: Option<&TxnOptionsObject>) -> Result<Content> {
    let texts =
        options.map_or_else(|| Texts::listed(&TRANSACTION_DEFAULTS), |options| options.with(Texts::clone));
    let database = db.locking.clone().unwrap_or_else(|| TxnDbOptionsObject::default().with(Texts::clone));
    begun(db, write, Some((database, texts)), Texts::listed(&[]))
}

fn free(db: &DbObject, write: &WriteObject, options: Option<&OptimisticOptionsObject>) -> Result<Content> {
    let texts = options.map_or_else(|| Texts::listed(&[]), |options| options.with(Texts::clone));
    begun(db, write, None, texts)
}

/// Puts a new transaction in the place of an old one.
fn placed(new: Content, old: i64) -> Result<i64> {
    let place = object::<TxnObject>(old)?;
    let mut content = place.lock()?;
    let name = content.name();
    *content = new;
    place.state.store(STARTED, Ordering::Release);
    name.into_iter().for_each(|name| place.names.remove(&name));
    Ok(old)
}

// Each function below is the body of the natives that the description names.

/// Begins a transaction.
///
/// # Errors
/// Those of [`pessimistic`] and of the begin.
pub fn begin(db: &DbObject, write: &WriteObject, options: Option<&TxnOptionsObject>) -> Result<i64> {
    Ok(handles::keep(TxnObject::new(db, locked(db, write, options)?, STARTED))?)
}

/// Begins a transaction in the place of one that has ended.
///
/// # Errors
/// As [`begin`].
pub fn begin_again(
    db: &DbObject,
    write: &WriteObject,
    options: Option<&TxnOptionsObject>,
    old: i64,
) -> Result<i64> {
    placed(locked(db, write, options)?, old)
}

/// Begins an optimistic transaction.
///
/// # Errors
/// Those of the begin.
pub fn begin_optimistic(
    db: &DbObject,
    write: &WriteObject,
    options: Option<&OptimisticOptionsObject>,
) -> Result<i64> {
    Ok(handles::keep(TxnObject::new(db, free(db, write, options)?, STARTED))?)
}

/// Begins an optimistic transaction in the place of one that has ended.
///
/// # Errors
/// As [`begin_optimistic`].
pub fn begin_optimistic_again(
    db: &DbObject,
    write: &WriteObject,
    options: Option<&OptimisticOptionsObject>,
    old: i64,
) -> Result<i64> {
    placed(free(db, write, options)?, old)
}

/// Keeps a transaction that the database has and no handle had.
fn found(db: &DbObject, transaction: ashlardb::Transaction) -> Result<i64> {
    let name = transaction.name().unwrap_or_default();
    let txn = Txn::prepared(&db.database, transaction);
    let options = BeginOptions {
        locking: Some((Texts::listed(&[]), Texts::listed(&TRANSACTION_DEFAULTS))),
        free: Texts::listed(&[]),
        write: WriteObject::default().with(Texts::clone),
    };
    let content = content(db, txn, options)?;
    let lent = Lent::new(TxnObject::new(db, content, PREPARED))?;
    let handle = lent.handle();
    db.names.add(&name, handle);
    db.names.known.write().found.push(lent);
    Ok(handle)
}

/// The transaction of a name, prepared or not; 0 without one.
///
/// # Errors
/// Those of [`ashlardb::Db::transaction_by_name`].
pub fn by_name(db: &DbObject, name: &str) -> Result<i64> {
    let _search = db.names.search();
    if let Some(handle) = db.names.handle(name.as_bytes()) {
        return Ok(handle);
    }
    let transaction = db.database.db().transaction_by_name(name)?;
    transaction.map_or(Ok(0), |transaction| found(db, transaction))
}

/// All prepared transactions.
///
/// # Errors
/// Those of [`ashlardb::Db::prepared_transactions`].
pub fn prepared(db: &DbObject) -> Result<Vec<i64>> {
    let _search = db.names.search();
    for transaction in db.database.db().prepared_transactions()? {
        found(db, transaction)?;
    }
    Ok(db.names.prepared())
}

/// Ignored: the engine keeps the last 16.
pub fn set_deadlocks(_: &DbObject, _: i32) -> Result<()> {
    Ok(())
}

/// Takes the snapshot with the next operation, and shows it to no notifier.
///
/// # Errors
/// Those of [`ashlardb::Transaction::set_snapshot_on_next_operation`].
pub fn set_snapshot_on_next_operation(txn: &TxnObject) -> Result<()> {
    txn.lock()?.await_snapshot(None)
}

/// Sets a savepoint.
///
/// # Errors
/// Those of [`ashlardb::Transaction::set_savepoint`].
pub fn set_savepoint(txn: &TxnObject) -> Result<()> {
    let mut content = txn.lock()?;
    content.txn.open()?.set_savepoint()?;
    content.is_fresh = false;
    let notifier = content.notifier.clone();
    content.savepoints.push(notifier);
    Ok(())
}

/// # Errors
/// `InvalidArgument`: it is an optimistic transaction, with this text.
fn check_locking(content: &Content, otherwise: &str) -> Result<()> {
    let is_locking = content.options.locking.is_some();
    if is_locking { Ok(()) } else { Err(Error::invalid(otherwise).into()) }
}

/// Takes a snapshot, which the check for conflicts uses.
///
/// # Errors
/// Those of [`ashlardb::Transaction::set_snapshot`].
pub fn set_snapshot(txn: &TxnObject) -> Result<()> {
    let mut content = txn.lock()?;
    content.txn.open()?.set_snapshot()?;
    (content.lent.snapshot, content.notifier) = (None, None);
    Ok(())
}

/// Forgets the snapshot.
///
/// # Errors
/// Those of [`ashlardb::Transaction::clear_snapshot`].
pub fn clear_snapshot(txn: &TxnObject) -> Result<()> {
    let mut content = txn.lock()?;
    content.txn.open()?.clear_snapshot()?;
    (content.lent.snapshot, content.notifier) = (None, None);
    Ok(())
}

/// The snapshot, by the same handle as long as it is the same; 0 without one.
pub fn snapshot(txn: &TxnObject) -> Result<i64> {
    let mut content = txn.lock()?;
    let Some(snapshot) = content.txn.open()?.snapshot() else { return Ok(0) };
    let number = snapshot.sequence().get();
    if let Some((_, lent)) = content.lent.snapshot.as_ref().filter(|(known, _)| *known == number) {
        return Ok(lent.handle());
    }
    let lent = Lent::new(SnapshotObject(snapshot))?;
    let handle = lent.handle();
    content.lent.snapshot = Some((number, lent));
    Ok(handle)
}

/// Makes the writes durable, and leaves the decision for later.
///
/// # Errors
/// Those of [`ashlardb::Transaction::prepare`]. `NotSupported`: the batch for the commit has operations, or the options that
/// `getWriteOptions` answers were changed.
pub fn prepare(txn: &TxnObject) -> Result<()> {
    let content = txn.lock()?;
    check_locking(&content, "Two phase commit not supported for optimistic transactions.")?;
    check_commit_time_batch(&content)?;
    check_write_options(&content)?;
    content.txn.open()?.prepare()?;
    drop(content);
    txn.state.store(PREPARED, Ordering::Release);
    Ok(())
}

/// Commits.
///
/// # Errors
/// Those of [`Txn::commit`]. `NotSupported`: the batch for the commit has operations, or the options that `getWriteOptions` answers were
/// changed.
pub fn commit(txn: &TxnObject) -> Result<()> {
    let content = txn.lock()?;
    check_commit_time_batch(&content)?;
    check_write_options(&content)?;
    txn.ended(content, COMMITTED, |txn| txn.commit())
}

/// Takes everything back, also the batch for the commit. As in RocksDB, a transaction that was not prepared goes on, empty.
///
/// # Errors
/// Those of [`Txn::rollback`].
pub fn rollback(txn: &TxnObject) -> Result<()> {
    let is_prepared = txn.state.load(Ordering::Acquire) == PREPARED;
    txn.ended(txn.lock()?, if is_prepared { ROLLED_BACK } else { STARTED }, Txn::rollback)
}

/// Takes back the operations since the last savepoint.
///
/// # Errors
/// Those of [`Txn::rollback_to_savepoint`].
pub fn rollback_to_savepoint(txn: &TxnObject) -> Result<()> {
    let mut content = txn.lock()?;
    content.txn.rollback_to_savepoint()?;
    content.notifier = content.savepoints.pop().flatten();
    Ok(())
}

/// The number of keys that the transaction tracks.
pub fn num_keys(txn: &TxnObject) -> Result<i64> {
    Ok(i64::try_from(txn.lock()?.txn.open()?.tracked_keys()).unwrap_or(i64::MAX))
}

/// The number of operations of a kind.
pub fn num_of(txn: &TxnObject, kind: Kind) -> Result<i64> {
    let content = txn.lock()?;
    let transaction = content.txn.open()?;
    let data = if transaction.is_active() { transaction.data()? } else { return Ok(0) };
    Ok(operations(&data)?.iter().map(|op| i64::from(op.kind == kind)).sum())
}

/// Milliseconds since the begin.
pub fn elapsed(txn: &TxnObject) -> Result<i64> {
    let content = txn.lock()?;
    let micros = content.env.clock.unix_micros().saturating_sub(content.begun);
    Ok(i64::try_from(micros / 1000).unwrap_or(i64::MAX))
}

/// The name; empty without one.
pub fn name(txn: &TxnObject) -> Result<String> {
    let name = txn.lock()?.txn.open()?.name().unwrap_or_default();
    Ok(String::from_utf8_lossy(&name).into_owned())
}

/// Gives it a name.
///
/// # Errors
/// Those of [`ashlardb::Transaction::set_name`].
pub fn set_name(handle: i64, name: &str) -> Result<()> {
    let txn = object::<TxnObject>(handle)?;
    let content = txn.lock()?;
    check_locking(&content, "Optimistic transactions cannot be named.")?;
    let _search = txn.names.search();
    content.txn.open()?.set_name(name)?;
    txn.names.add(name.as_bytes(), handle);
    Ok(())
}

/// The state, by Java's number.
pub fn state(txn: &TxnObject) -> Result<i8> {
    Ok(txn.state.load(Ordering::Acquire))
}

/// Its number.
pub fn id(txn: &TxnObject) -> Result<i64> {
    Ok(i64::try_from(txn.lock()?.txn.open()?.id()).unwrap_or(i64::MAX))
}

/// Whether it looks for deadlocks.
pub fn detects_deadlocks(txn: &TxnObject) -> Result<bool> {
    let content = txn.lock()?;
    Ok(content.options.locking.as_ref().is_some_and(|(_, texts)| texts.get("deadlock_detect")))
}

/// Adds bytes for readers of the WAL.
///
/// # Errors
/// Those of [`ashlardb::Transaction::put_log_data`].
pub fn put_log_data(txn: &TxnObject, blob: &[u8]) -> Result<()> {
    let mut content = txn.lock()?;
    content.txn.open()?.put_log_data(blob)?;
    content.is_fresh = false;
    Ok(())
}

/// Ignored: reads see the transaction's own writes always.
pub fn hint(_: &TxnObject) -> Result<()> {
    Ok(())
}

/// The operations, as a `WriteBatchWithIndex` that ends with the transaction. It shows the operations as they are at each call, and
/// operations that are added to it are added to the transaction, without a check for conflicts.
pub fn write_batch(handle: i64) -> Result<i64> {
    let txn = object::<TxnObject>(handle)?;
    let mut content = txn.lock()?;
    if let Some(lent) = &content.lent.batch {
        return Ok(lent.handle());
    }
    let batch = IndexedObject::of_transaction(content.txn.operations()?, Arc::downgrade(&txn));
    let lent = Lent::new(batch)?;
    Ok(content.lent.batch.insert(lent).handle())
}

/// Adds the operations of a batch.
///
/// # Errors
/// Those of [`Txn::add`].
pub fn rebuild(txn: &TxnObject, batch: &BatchObject) -> Result<()> {
    let copy = batch.lock().clone();
    txn.operate(|content| content.txn.add(&copy))
}

/// The options of its writes, by one handle, which shows later ones too.
pub fn write_options(txn: &TxnObject) -> Result<i64> {
    let mut content = txn.lock()?;
    if let Some(lent) = &content.lent.write {
        return Ok(lent.handle());
    }
    let lent = Lent::new(WriteObject::of(content.options.write.clone()))?;
    Ok(content.lent.write.insert(lent).handle())
}

/// Ignored: the lock stays until the end of the transaction.
pub fn undo(_: &TxnObject, _: &[u8]) -> Result<()> {
    Ok(())
}

/// The value that the transaction sees.
///
/// # Errors
/// Those of [`Txn::get`].
pub fn get(
    txn: &TxnObject,
    options: &ReadObject,
    family: Option<&FamilyObject>,
    key: &[u8],
) -> Result<Option<View>> {
    let options = options.0.read().clone();
    Ok(txn.lock()?.txn.get(of(family), &options, key)?)
}

/// Copies the value that the transaction sees into a place.
///
/// # Errors
/// Those of [`Txn::get`].
pub fn get_into(
    env: Env<'_>,
    txn: &TxnObject,
    options: &ReadObject,
    family: Option<&FamilyObject>,
    key: &[u8],
    value: &Room<'_>,
) -> Result<i32> {
    Ok(copied_to(env, value, get(txn, options, family, key)?.as_deref()))
}

/// The value of a key that the transaction locks.
///
/// # Errors
/// Those of [`Txn::get_for_update`].
pub fn get_for_update(
    txn: &TxnObject,
    options: &ReadObject,
    family: Option<&FamilyObject>,
    key: &[u8],
    exclusive: bool,
) -> Result<Option<View>> {
    let options = options.0.read().clone();
    txn.operate(|content| content.txn.get_for_update(of(family), &options, key, exclusive))
}

/// Copies the value of a key that the transaction locks into a place.
///
/// # Errors
/// Those of [`Txn::get_for_update`].
pub fn get_for_update_into(
    env: Env<'_>,
    txn: &TxnObject,
    options: &ReadObject,
    family: Option<&FamilyObject>,
    key: &[u8],
    exclusive: bool,
    value: &Room<'_>,
) -> Result<i32> {
    Ok(copied_to(env, value, get_for_update(txn, options, family, key, exclusive)?.as_deref()))
}

/// The same family for each key.
pub fn same(family: i64, keys: &[Vec<u8>]) -> Vec<i64> {
    vec![family; keys.len()]
}

/// The values that the transaction sees.
///
/// # Errors
/// Those of [`Txn::multi_get_each`].
pub fn multi_get<'a>(
    env: Env<'a>,
    txn: &TxnObject,
    options: &ReadObject,
    families: Option<&[i64]>,
    keys: &[Vec<u8>],
) -> Result<Local<'a>> {
    let families = families_of(families, keys.len())?;
    let options = options.0.read().clone();
    let found = txn.lock()?.txn.multi_get_each(&options, &with_families(&families, keys))?;
    values_or_null(env, found)
}

/// The values of keys that the transaction locks, one after the other.
///
/// # Errors
/// Those of [`Txn::multi_get_for_update_each`].
pub fn multi_get_for_update<'a>(
    env: Env<'a>,
    txn: &TxnObject,
    options: &ReadObject,
    families: Option<&[i64]>,
    keys: &[Vec<u8>],
) -> Result<Local<'a>> {
    let families = families_of(families, keys.len())?;
    let options = options.0.read().clone();
    let keys = with_families(&families, keys);
    let found = txn.operate(|content| content.txn.multi_get_for_update_each(&options, &keys))?;
    values_or_null(env, found)
}

/// What the transaction sees of a family at this moment.
pub fn iterator(txn: &TxnObject, options: &ReadObject, family: Option<&FamilyObject>) -> Result<i64> {
    let options = options.0.read().clone();
    let iterator = txn.lock()?.txn.iterator(of(family), &options);
    Ok(handles::keep(IterObject::new(iterator.into()))?)
}

macro_rules! writes {
    ($($name:ident($($arg:ident),*);)*) => { $(
        #[doc = concat!("Writes in the transaction: ", stringify!($name), ".")]
        ///
        /// # Errors
        /// Those of the write to a transaction.
        pub fn $name(txn: &TxnObject, family: Option<&FamilyObject>, $($arg: &[u8]),*) -> Result<()> {
            txn.operate(|content| {
                content.txn.open()?.family(content.txn.family(of(family))).$name($($arg),*)
            })
        }
    )* };
}
writes! {
    put(key, value);
    merge(key, value);
    delete(key);
    single_delete(key);
}

macro_rules! untracked {
    ($($name:ident($($arg:ident),*) = $call:ident;)*) => { $(
        #[doc = concat!("Writes in the transaction without a check for conflicts: ", stringify!($call), ".")]
        ///
        /// # Errors
        /// Those of the write to a transaction.
        pub fn $name(txn: &TxnObject, family: Option<&FamilyObject>, $($arg: &[u8]),*) -> Result<()> {
            txn.operate_untracked(|content| {
                content.txn.open()?.family(content.txn.family(of(family))).untracked().$call($($arg),*)
            })
        }
    )* };
}
untracked! {
    put_untracked(key, value) = put;
    merge_untracked(key, value) = merge;
    delete_untracked(key) = delete;
}
