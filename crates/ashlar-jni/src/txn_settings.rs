//! Settings of a transaction after its begin: options, a notifier of its snapshot, a batch for its commit.
//!
//! The engine takes the options of a transaction at its begin. Options that change before the first operation begin the transaction
//! again; later they are refused.

use crate::batch::BatchObject;
use crate::callbacks::contained;
use crate::classes::{Class, Method};
use crate::door::Result;
use crate::env::{Env, Global, Local, long};
use crate::handles::{self, Lent, Object};
use crate::settings::{HasTexts, WriteObject};
use crate::snapshots::SnapshotObject;
use crate::transactions::{Content, TxnObject};
use ashlar_compat::options::Texts;
use ashlar_compat::turn::Taken;
use ashlardb::Error;
use std::sync::Arc;

/// `AbstractTransactionNotifier`.
#[derive(Clone, Debug)]
pub struct NotifierObject(Arc<Global>);

impl Object for NotifierObject {
    const NAME: &'static str = "AbstractTransactionNotifier";
}

impl NotifierObject {
    /// Shows a snapshot. An exception of the notifier is ignored, as RocksDB ignores it.
    fn tell(&self, snapshot: i64) {
        static NOTIFIER: Class = Class::new("org/rocksdb/AbstractTransactionNotifier");
        static CREATED: Method = Method::new("snapshotCreated", "(J)V");
        let _ =
            contained(|env| env.call_void(self.0.local(env), CREATED.of(env, &NOTIFIER)?, &[long(snapshot)]));
    }
}

// Each function below is the body of the natives that the description names.

/// A notifier of Java.
pub fn new_notifier(env: Env<'_>, this: Local<'_>) -> Result<i64> {
    Ok(handles::keep(NotifierObject(Arc::new(env.global(this)?)))?)
}

/// Takes the snapshot with the next operation, and shows it to the notifier.
///
/// # Errors
/// Those of the begin of the transaction.
pub fn set_snapshot_with_notifier(txn: &TxnObject, notifier: &NotifierObject) -> Result<()> {
    txn.lock()?.await_snapshot(Some(notifier.clone()))
}

/// After an operation: shows its snapshot to the notifier that waits for it. The notifier is called outside the turn of the
/// transaction, so that it may use the transaction.
///
/// # Errors
/// That of the begin of the transaction, and those of a new handle.
pub(crate) fn tell_of_snapshot(mut content: Taken<'_, Content>) -> Result<()> {
    if content.notifier.is_none() || content.txn.open()?.awaits_snapshot() {
        return Ok(());
    }
    let Some(notifier) = content.notifier.take() else { return Ok(()) };
    let Some(snapshot) = content.txn.open()?.snapshot() else { return Ok(()) };
    let number = snapshot.sequence().get();
    let lent = Lent::new(SnapshotObject(snapshot))?;
    let handle = lent.handle();
    content.lent.snapshot = Some((number, lent));
    drop(content);
    notifier.tell(handle);
    Ok(())
}

/// Begins the transaction again with other options.
///
/// # Errors
/// `NotSupported`: the transaction has operations, locks, a name or a snapshot.
fn begin_again(content: &mut Content, what: &str) -> Result<()> {
    let now = content.txn.open()?;
    let is_new = now.is_active() && now.is_empty() && now.tracked_keys() == 0;
    if !is_new || !content.is_fresh || now.name().is_some() || now.snapshot().is_some() {
        let e = Error::not_supported(format!("{what} of a transaction after its first operation"));
        return Err(e.hint("Begin the transaction with them, or set them right after the begin").into());
    }
    content.txn = content.options.begin(content.txn.database())?;
    Ok(())
}

/// Other options of the writes, before the first operation.
///
/// # Errors
/// `NotSupported`: they differ, and the transaction has operations.
pub fn set_write_options(txn: &TxnObject, write: &WriteObject) -> Result<()> {
    let mut content = txn.lock()?;
    let texts = write.with(Texts::clone);
    if content.options.write != texts {
        let before = std::mem::replace(&mut content.options.write, texts);
        if let Err(e) = begin_again(&mut content, "other write options") {
            content.options.write = before;
            return Err(e);
        }
    }
    if let Some(lent) = &content.lent.write {
        handles::get::<WriteObject>(lent.handle())?.change(|shown| shown.clone_from(&content.options.write));
    }
    Ok(())
}

/// # Errors
/// `NotSupported`: the program has changed the options that `getWriteOptions` shows. The engine has taken those of the begin.
pub(crate) fn check_write_options(content: &Content) -> Result<()> {
    let Some(lent) = &content.lent.write else { return Ok(()) };
    let shown = handles::get::<WriteObject>(lent.handle())?;
    if shown.with(|texts| texts.say_the_same(&content.options.write)) {
        return Ok(());
    }
    let e = Error::not_supported("a change of the write options that a transaction shows");
    let hint = "Undo the change. Give a transaction other options with setWriteOptions right after its begin";
    Err(e.hint(hint).into())
}

/// Another lock timeout in milliseconds, before the first operation. An optimistic transaction takes no locks.
///
/// # Errors
/// `NotSupported`: the transaction has operations.
pub fn set_lock_timeout(txn: &TxnObject, millis: i64) -> Result<()> {
    let mut content = txn.lock()?;
    let Some(before) = content.options.set_lock_timeout(millis) else { return Ok(()) };
    let begun = begin_again(&mut content, "another lock timeout");
    if begun.is_err() {
        content.options.set_lock_timeout(before);
    }
    begun
}

/// The number that [`set_log_number`] set. The engine does not say in which WAL file a prepared transaction is.
pub fn log_number(txn: &TxnObject) -> Result<i64> {
    Ok(txn.lock()?.log_number)
}

/// Kept for [`log_number`], and otherwise ignored.
pub fn set_log_number(txn: &TxnObject, number: i64) -> Result<()> {
    txn.lock()?.log_number = number;
    Ok(())
}

/// A batch that ends with the transaction. The commit refuses operations in it.
pub fn commit_time_batch(txn: &TxnObject) -> Result<i64> {
    let mut content = txn.lock()?;
    if let Some(lent) = &content.lent.at_commit {
        return Ok(lent.handle());
    }
    let lent = Lent::new(BatchObject::default())?;
    Ok(content.lent.at_commit.insert(lent).handle())
}

/// # Errors
/// `NotSupported`: the batch for the commit has operations.
pub(crate) fn check_commit_time_batch(content: &Content) -> Result<()> {
    let Some(lent) = &content.lent.at_commit else { return Ok(()) };
    if handles::get::<BatchObject>(lent.handle()).is_ok_and(|batch| !batch.lock().is_empty()) {
        return Err(Error::not_supported("operations of getCommitTimeWriteBatch")
            .hint("Clear the batch, and add its operations to the transaction before prepare()")
            .into());
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests fail by panicking")]
mod tests {
    use super::*;
    use crate::db::DbObject;
    use crate::door::Fail;
    use crate::transactions::{begin, commit, put, put_log_data, write_options};
    use ashlar_compat::database::{Database, Mode};
    use ashlardb::ErrorKind;

    fn refused(answer: Result<()>) -> bool {
        match answer {
            Err(Fail::Error(e) | Fail::Misuse(e)) => e.kind() == ErrorKind::NotSupported,
            _ => false,
        }
    }

    fn with_transaction(work: impl FnOnce(&TxnObject, &WriteObject)) {
        let dir = tempfile::tempdir().unwrap();
        let mut options = ashlar_compat::options::Options::default();
        options.texts.set("create_if_missing", true);
        let (database, _) = Database::open(&options, &dir.path().join("db"), Mode::Write, &[]).unwrap();
        let db = DbObject::lent(&database);
        let handle = begin(&db, &WriteObject::default(), None).ok().unwrap();
        let synced = WriteObject::default();
        synced.change(|texts| texts.set("sync", true));
        work(&handles::get::<TxnObject>(handle).unwrap(), &synced);
        handles::close(handle);
    }

    /// Regression: other options began the transaction again, without the bytes for readers of the WAL.
    #[test]
    fn other_options_lose_no_bytes_for_readers_of_the_wal() {
        with_transaction(|txn, synced| {
            assert!(set_write_options(txn, synced).is_ok(), "nothing is lost yet");
            assert!(put_log_data(txn, b"blob").is_ok());
            assert!(refused(set_write_options(txn, &WriteObject::default())));
            assert!(refused(set_lock_timeout(txn, 7)));
        });
    }

    /// Regression: other options after a rollback began the transaction again, with a lock timeout that had been refused.
    #[test]
    fn a_refused_lock_timeout_is_not_kept() {
        with_transaction(|txn, _| {
            let timeout = || txn.lock().ok().unwrap().options.set_lock_timeout(5);
            assert!(set_lock_timeout(txn, 5).is_ok());
            assert!(put(txn, None, b"key", b"value").is_ok());
            assert!(refused(set_lock_timeout(txn, 9)));
            assert_eq!(timeout(), Some(5));
        });
    }

    /// Regression: a handle of the write options showed those of the begin for ever, and changes there did nothing.
    #[test]
    fn shown_write_options_are_the_present_ones_and_their_change_is_refused() {
        with_transaction(|txn, synced| {
            let handle = write_options(txn).ok().unwrap();
            let shown = handles::get::<WriteObject>(handle).unwrap();
            let sync = || shown.with(|texts| texts.get::<bool>("sync"));
            assert!(!sync());
            assert!(set_write_options(txn, synced).is_ok());
            assert!(sync() && write_options(txn).ok() == Some(handle));
            assert!(put(txn, None, b"key", b"value").is_ok());
            shown.change(|texts| texts.set("sync", false));
            assert!(refused(commit(txn)));
            shown.change(|texts| texts.set("sync", true));
            assert!(commit(txn).is_ok());
        });
    }
}
