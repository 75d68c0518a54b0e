//! Transactions.
//!
//! A transaction takes one call at a time; calls of several threads wait for each other.

use crate::batch::{BatchObject, Kind};
use crate::classes::BYTES;
use crate::db::{DbObject, FamilyObject};
use crate::door::{Result, Room, array_of};
use crate::env::{Env, Local};
use crate::handles::{self, Object};
use crate::indexed::IndexedObject;
use crate::iterators::IterObject;
use crate::options::copied_to;
use crate::settings::{
    HasTexts, OptimisticOptionsObject, ReadObject, TxnDbOptionsObject, TxnOptionsObject, WriteObject,
};
use crate::snapshots::SnapshotObject;
use ashlar_compat::batch::operations;
use ashlar_compat::options::Texts;
use ashlar_compat::transaction::Txn;
use ashlar_compat::transactions::{TRANSACTION_DEFAULTS, optimistic, pessimistic};
use ashlardb::{Error, Family, View, Write};
use std::sync::atomic::{AtomicI8, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// `Transaction`.
#[derive(Debug)]
pub struct TxnObject {
    content: Mutex<Content>,
    state: AtomicI8,
    /// Handles that Java does not own: they end with the transaction.
    lent: Mutex<Vec<i64>>,
}

#[derive(Debug)]
struct Content {
    txn: Txn,
    /// Microseconds since 1970 at the begin.
    begun: u64,
    detects: bool,
    write: Texts,
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
        let lent = self.lent.get_mut().unwrap_or_else(PoisonError::into_inner);
        lent.drain(..).for_each(handles::close);
    }
}

impl TxnObject {
    fn new(content: Content, state: i8) -> TxnObject {
        TxnObject { content: Mutex::new(content), state: state.into(), lent: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Content> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a handle until the end of the transaction.
    fn lend(&self, handle: i64) -> i64 {
        self.lent.lock().unwrap_or_else(PoisonError::into_inner).push(handle);
        handle
    }
}

fn of(family: Option<&FamilyObject>) -> Option<&Family> {
    family.map(|family| &family.family)
}

/// Microseconds since 1970.
fn now() -> u64 {
    ashlardb::Env::os().map_or(0, |env| env.clock.unix_micros())
}

fn content(txn: Txn, detects: bool, write: &WriteObject) -> Content {
    Content { txn, begun: now(), detects, write: write.with(Texts::clone) }
}

fn locked(db: &DbObject, write: &WriteObject, options: Option<&TxnOptionsObject>) -> Result<Content> {
    let texts =
        options.map_or_else(|| Texts::listed(&TRANSACTION_DEFAULTS), |options| options.with(Texts::clone));
    let database = db.locking.clone().unwrap_or_else(|| TxnDbOptionsObject::default().with(Texts::clone));
    let settings = pessimistic(&database, &texts, write.write());
    let txn = Txn::begin(&db.database, settings, !texts.get::<bool>("skip_prepare"));
    // RocksDB's begin has no error either, but nothing would be done without one.
    txn.open()?;
    Ok(content(txn, texts.get("deadlock_detect"), write))
}

fn free(db: &DbObject, write: &WriteObject, options: Option<&OptimisticOptionsObject>) -> Result<Content> {
    let texts = options.map_or_else(|| Texts::listed(&[]), |options| options.with(Texts::clone));
    let txn = Txn::begin(&db.database, Ok(optimistic(&texts, write.write())), false);
    txn.open()?;
    Ok(content(txn, false, write))
}

/// Puts a new transaction in the place of an old one.
fn placed(new: Content, old: i64) -> Result<i64> {
    let place = handles::get::<TxnObject>(old)?;
    *place.lock() = new;
    place.state.store(STARTED, Ordering::Release);
    Ok(old)
}

// Each function below is the body of the natives that the description names.

/// Begins a transaction.
///
/// # Errors
/// Those of [`pessimistic`] and of the begin.
pub fn begin(db: &DbObject, write: &WriteObject, options: Option<&TxnOptionsObject>) -> Result<i64> {
    Ok(handles::keep(TxnObject::new(locked(db, write, options)?, STARTED))?)
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
    Ok(handles::keep(TxnObject::new(free(db, write, options)?, STARTED))?)
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

fn found(db: &DbObject, transaction: ashlardb::Transaction) -> Result<i64> {
    let txn = Txn::prepared(&db.database, transaction);
    Ok(handles::keep(TxnObject::new(content(txn, false, &WriteObject::default()), PREPARED))?)
}

/// The prepared transaction of a name; 0 without one.
///
/// # Errors
/// Those of [`ashlardb::Db::transaction_by_name`].
pub fn by_name(db: &DbObject, name: &str) -> Result<i64> {
    let transaction = db.database.db().transaction_by_name(name)?;
    transaction.map_or(Ok(0), |transaction| found(db, transaction))
}

/// The prepared transactions that no object has.
///
/// # Errors
/// Those of [`ashlardb::Db::prepared_transactions`].
pub fn prepared(db: &DbObject) -> Result<Vec<i64>> {
    let all = db.database.db().prepared_transactions()?;
    all.into_iter().map(|transaction| found(db, transaction)).collect()
}

/// A hint: the engine keeps as many as it does.
pub fn set_deadlocks(_: &DbObject, _: i32) -> Result<()> {
    Ok(())
}

macro_rules! calls {
    ($($(#[$doc:meta])* $name:ident;)*) => { $(
        $(#[$doc])*
        ///
        /// # Errors
        /// Those of the call of the same name of [`ashlardb::Transaction`].
        pub fn $name(txn: &TxnObject) -> Result<()> {
            Ok(txn.lock().txn.open()?.$name()?)
        }
    )* };
}
calls! {
    /// Takes a snapshot, which the check for conflicts uses.
    set_snapshot;
    /// Takes the snapshot with the next operation.
    set_snapshot_on_next_operation;
    /// Forgets the snapshot.
    clear_snapshot;
    /// Sets a savepoint.
    set_savepoint;
}

/// The snapshot; 0 without one.
pub fn snapshot(txn: &TxnObject) -> Result<i64> {
    let snapshot = txn.lock().txn.open()?.snapshot();
    snapshot.map_or(Ok(0), |snapshot| Ok(txn.lend(handles::keep(SnapshotObject(snapshot))?)))
}

/// Makes the writes durable, and leaves the decision for later.
///
/// # Errors
/// Those of [`ashlardb::Transaction::prepare`].
pub fn prepare(txn: &TxnObject) -> Result<()> {
    txn.lock().txn.open()?.prepare()?;
    txn.state.store(PREPARED, Ordering::Release);
    Ok(())
}

/// Commits.
///
/// # Errors
/// Those of [`Txn::commit`].
pub fn commit(txn: &TxnObject) -> Result<()> {
    txn.lock().txn.commit()?;
    txn.state.store(COMMITTED, Ordering::Release);
    Ok(())
}

/// Takes everything back.
///
/// # Errors
/// Those of [`Txn::rollback`].
pub fn rollback(txn: &TxnObject) -> Result<()> {
    txn.lock().txn.rollback()?;
    txn.state.store(ROLLED_BACK, Ordering::Release);
    Ok(())
}

/// Takes back the operations since the last savepoint.
///
/// # Errors
/// Those of [`Txn::rollback_to_savepoint`].
pub fn rollback_to_savepoint(txn: &TxnObject) -> Result<()> {
    Ok(txn.lock().txn.rollback_to_savepoint()?)
}

/// The number of keys that the transaction tracks.
pub fn num_keys(txn: &TxnObject) -> Result<i64> {
    Ok(i64::try_from(txn.lock().txn.open()?.tracked_keys()).unwrap_or(i64::MAX))
}

/// The number of operations of a kind.
pub fn num_of(txn: &TxnObject, kind: Kind) -> Result<i64> {
    let content = txn.lock();
    let transaction = content.txn.open()?;
    let data = if transaction.is_active() { transaction.data()? } else { return Ok(0) };
    Ok(operations(&data)?.iter().map(|op| i64::from(op.kind == kind)).sum())
}

/// Milliseconds since the begin.
pub fn elapsed(txn: &TxnObject) -> Result<i64> {
    let begun = txn.lock().begun;
    Ok(i64::try_from(now().saturating_sub(begun) / 1000).unwrap_or(i64::MAX))
}

/// The name; empty without one.
pub fn name(txn: &TxnObject) -> Result<String> {
    let name = txn.lock().txn.open()?.name().unwrap_or_default();
    Ok(String::from_utf8_lossy(&name).into_owned())
}

/// Gives it a name.
///
/// # Errors
/// Those of [`ashlardb::Transaction::set_name`].
pub fn set_name(txn: &TxnObject, name: &str) -> Result<()> {
    Ok(txn.lock().txn.open()?.set_name(name)?)
}

/// The state, by Java's number.
pub fn state(txn: &TxnObject) -> Result<i8> {
    Ok(txn.state.load(Ordering::Acquire))
}

/// Its number.
pub fn id(txn: &TxnObject) -> Result<i64> {
    Ok(i64::try_from(txn.lock().txn.open()?.id()).unwrap_or(i64::MAX))
}

/// Whether it looks for deadlocks.
pub fn detects_deadlocks(txn: &TxnObject) -> Result<bool> {
    Ok(txn.lock().detects)
}

/// The engine does not say in which WAL file a prepared transaction is.
pub fn log_number(_: &TxnObject) -> Result<i64> {
    Ok(0)
}

/// A hint.
pub fn set_log_number(_: &TxnObject, _: i64) -> Result<()> {
    Ok(())
}

/// Adds bytes for readers of the WAL.
///
/// # Errors
/// Those of [`ashlardb::Transaction::put_log_data`].
pub fn put_log_data(txn: &TxnObject, blob: &[u8]) -> Result<()> {
    Ok(txn.lock().txn.open()?.put_log_data(blob)?)
}

/// A hint: reads see the transaction's own writes always.
pub fn hint(_: &TxnObject) -> Result<()> {
    Ok(())
}

/// A copy of the operations, as a `WriteBatchWithIndex` that ends with the transaction.
///
/// # Errors
/// Those of [`Txn::operations`].
pub fn write_batch(txn: &TxnObject) -> Result<i64> {
    let operations = txn.lock().txn.operations()?;
    Ok(txn.lend(handles::keep(IndexedObject::new(operations, true))?))
}

/// A batch of the commit is refused.
///
/// # Errors
/// `NotSupported`.
pub fn commit_time_batch(_: &TxnObject) -> Result<i64> {
    Err(Error::not_supported("a write batch of the time of the commit").into())
}

/// Adds the operations of a batch.
///
/// # Errors
/// Those of [`Txn::add`].
pub fn rebuild(txn: &TxnObject, batch: &BatchObject) -> Result<()> {
    let copy = batch.lock().clone();
    Ok(txn.lock().txn.add(&copy)?)
}

/// The options of its writes.
pub fn write_options(txn: &TxnObject) -> Result<i64> {
    let write = txn.lock().write.clone();
    Ok(txn.lend(handles::keep(WriteObject::of(write))?))
}

/// Options of the writes of a transaction that has begun are refused, unless they are the same.
///
/// # Errors
/// `NotSupported`.
pub fn set_write_options(txn: &TxnObject, write: &WriteObject) -> Result<()> {
    if txn.lock().write == write.with(Texts::clone) {
        return Ok(());
    }
    Err(Error::not_supported("other write options of a transaction that has begun")
        .hint("Begin the transaction with them")
        .into())
}

/// The time that a lock is waited for cannot change.
///
/// # Errors
/// `NotSupported`.
pub fn set_lock_timeout(_: &TxnObject, _: i64) -> Result<()> {
    Err(Error::not_supported("another lock timeout of a transaction that has begun")
        .hint("Begin the transaction with TransactionOptions.setLockTimeout")
        .into())
}

/// A hint: the lock stays until the end of the transaction.
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
    Ok(txn.lock().txn.get(of(family), &options, key)?)
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
    Ok(txn.lock().txn.get_for_update(of(family), &options, key, exclusive)?)
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

/// Each value of the keys, by a read of one key.
fn each<'a>(
    env: Env<'a>,
    families: Option<&[i64]>,
    keys: &[Vec<u8>],
    read: impl Fn(Option<&FamilyObject>, &[u8]) -> Result<Option<View>>,
) -> Result<Local<'a>> {
    let mut found = Vec::with_capacity(keys.len());
    for (at, key) in keys.iter().enumerate() {
        let handle = families.map_or(0, |families| families.get(at).copied().unwrap_or(0));
        let family = handles::get_if::<FamilyObject>(handle)?;
        found.push(read(family.as_deref(), key)?);
    }
    array_of(env, BYTES.get(env)?, &found, |value| match value {
        Some(value) => env.new_bytes(value),
        None => Ok(Local::NULL),
    })
}

/// The same family for each key.
pub fn same(family: i64, keys: &[Vec<u8>]) -> Vec<i64> {
    vec![family; keys.len()]
}

/// The values that the transaction sees.
///
/// # Errors
/// Those of [`Txn::get`].
pub fn multi_get<'a>(
    env: Env<'a>,
    txn: &TxnObject,
    options: &ReadObject,
    families: Option<&[i64]>,
    keys: &[Vec<u8>],
) -> Result<Local<'a>> {
    each(env, families, keys, |family, key| get(txn, options, family, key))
}

/// The values of keys that the transaction locks, one after the other.
///
/// # Errors
/// Those of [`Txn::get_for_update`].
pub fn multi_get_for_update<'a>(
    env: Env<'a>,
    txn: &TxnObject,
    options: &ReadObject,
    families: Option<&[i64]>,
    keys: &[Vec<u8>],
) -> Result<Local<'a>> {
    each(env, families, keys, |family, key| get_for_update(txn, options, family, key, true))
}

/// What the transaction sees of a family at this moment.
pub fn iterator(txn: &TxnObject, options: &ReadObject, family: Option<&FamilyObject>) -> Result<i64> {
    let options = options.0.read().clone();
    let iterator = txn.lock().txn.iterator(of(family), &options);
    Ok(handles::keep(IterObject::new(iterator.into()))?)
}

macro_rules! writes {
    ($($name:ident($($arg:ident),*);)*) => { $(
        #[doc = concat!("Writes in the transaction: ", stringify!($name), ".")]
        ///
        /// # Errors
        /// Those of the write to a transaction.
        pub fn $name(txn: &TxnObject, family: Option<&FamilyObject>, $($arg: &[u8]),*) -> Result<()> {
            let content = txn.lock();
            let to = content.txn.open()?.family(content.txn.family(of(family)));
            Ok(to.$name($($arg),*)?)
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
            let content = txn.lock();
            let to = content.txn.open()?.family(content.txn.family(of(family)));
            Ok(to.untracked().$call($($arg),*)?)
        }
    )* };
}
untracked! {
    put_untracked(key, value) = put;
    merge_untracked(key, value) = merge;
    delete_untracked(key) = delete;
}

/// Notifiers of snapshots are refused.
///
/// # Errors
/// `NotSupported`.
pub fn new_notifier() -> Result<i64> {
    Err(Error::not_supported("a notifier of a transaction's snapshot").into())
}
