//! What transactions wait for.

use crate::classes::{Class, Method};
use crate::db::DbObject;
use crate::door::{Result, array_of};
use crate::env::{Env, Local, boolean, long, object};
use crate::transactions::TxnObject;
use ashlardb::{Deadlock, DeadlockWait, Error, LockMode};

// Each function below is the body of the natives that the description names.

/// A `WaitingTransactions` of a transaction that waits for none.
///
/// # Errors
/// `NotSupported`: a call of another thread on the transaction runs, which may wait.
pub fn waiting<'a>(env: Env<'a>, txn: &TxnObject) -> Result<Local<'a>> {
    static WAITING: Class = Class::new("org/rocksdb/Transaction$WaitingTransactions");
    static NEW: Method = Method::constructor("(JLjava/lang/String;[J)V");
    if !txn.is_idle() {
        return Err(Error::not_supported("what a running call of a transaction waits for").into());
    }
    let none = [long(0), object(env.new_text("")?), object(env.new_longs(&[])?)];
    WAITING.make(env, &NEW, &none)
}

/// The last deadlocks, newest first, as an array of `DeadlockPath`.
///
/// # Errors
/// Those of [`ashlardb::Db::deadlocks`].
pub fn deadlocks<'a>(env: Env<'a>, db: &DbObject) -> Result<Local<'a>> {
    static PATH: Class = Class::new("org/rocksdb/TransactionDB$DeadlockPath");
    static NEW: Method = Method::constructor("([Lorg/rocksdb/TransactionDB$DeadlockInfo;Z)V");
    static INFO: Class = Class::new("org/rocksdb/TransactionDB$DeadlockInfo");
    static NEW_INFO: Method = Method::constructor("(JJLjava/lang/String;Z)V");
    let own = db.database.db();
    let wait = |wait: &DeadlockWait| {
        let family = own.family(&wait.family).map_or(0, |family| i64::from(family.id().0));
        let key = env.new_text(&String::from_utf8_lossy(&wait.key))?;
        let id = long(wait.transaction.cast_signed());
        let given = [id, long(family), object(key), boolean(wait.mode == LockMode::Exclusive)];
        INFO.make(env, &NEW_INFO, &given)
    };
    array_of(env, PATH.get(env)?, &own.deadlocks()?, |deadlock: &Deadlock| {
        let waits = array_of(env, INFO.get(env)?, &deadlock.waits, wait)?;
        PATH.make(env, &NEW, &[object(waits), boolean(false)])
    })
}
