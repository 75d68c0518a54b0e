//! Transaction databases: what RocksDB's `TransactionDB` and `OptimisticTransactionDB` add to a database.
//!
//! 1. A plain write of a pessimistic database takes the locks of its keys: it waits for other transactions.
//! 2. A read sees the newest state unless its options name a snapshot. The transaction's own serves the check for conflicts.
//! 3. Options that would change what a commit promises, and are not served, refuse every call of the transaction.

use crate::options::Texts;
use ashlar_base::FamilyId;
use ashlar_format::write_batch::{BatchOp, BatchReader};
use ashlardb::{Db, Error, Family, Result, Transaction, TransactionOptions, Write, WriteBatch, WriteOptions};
use std::time::Duration;

/// RocksDB's defaults of `TransactionDBOptions`, where they are not zero.
pub const DATABASE_DEFAULTS: [(&str, &str); 7] = [
    ("max_num_locks", "-1"),
    ("max_num_deadlocks", "5"),
    ("num_stripes", "16"),
    ("transaction_lock_timeout", "1000"),
    ("default_lock_timeout", "1000"),
    ("enable_udt_validation", "true"),
    ("txn_commit_bypass_memtable_threshold", "4294967295"),
];
/// RocksDB's defaults of `TransactionOptions`, where they are not zero.
pub const TRANSACTION_DEFAULTS: [(&str, &str); 6] = [
    ("lock_timeout", "-1"),
    ("deadlock_timeout_us", "500"),
    ("expiration", "-1"),
    ("deadlock_detect_depth", "50"),
    ("write_batch_flush_threshold", "-1"),
    ("skip_prepare", "true"),
];

/// # Errors
/// `NotSupported`: transactions that write before the commit.
pub fn check_policy(database: &Texts) -> Result<()> {
    match database.get::<i32>("write_policy") {
        0 => Ok(()),
        _ => Err(Error::not_supported("a write policy other than write-committed")),
    }
}

/// Milliseconds of RocksDB: below zero stands for any time.
fn with_timeout(options: TransactionOptions, millis: i64) -> TransactionOptions {
    match u64::try_from(millis) {
        Ok(millis) => options.lock_timeout(Duration::from_millis(millis)),
        Err(_) => options.no_lock_timeout(),
    }
}

/// The options of a transaction of a pessimistic database.
///
/// # Errors
/// `NotSupported`: an expiration, no concurrency control.
pub fn pessimistic(database: &Texts, transaction: &Texts, write: WriteOptions) -> Result<TransactionOptions> {
    if transaction.get::<i64>("expiration") >= 0 {
        return Err(Error::not_supported("the transaction option expiration"));
    }
    if transaction.get("skip_concurrency_control") || database.get("skip_concurrency_control") {
        return Err(Error::not_supported("the transaction option skip_concurrency_control"));
    }
    let mut millis = transaction.get::<i64>("lock_timeout");
    if millis < 0 {
        millis = database.get("transaction_lock_timeout");
    }
    let options = TransactionOptions::new()
        .read_newest(true)
        .snapshot(transaction.get("set_snapshot"))
        .deadlock_detect(transaction.get("deadlock_detect"))
        .write_options(write);
    let locks = usize::try_from(database.get::<i64>("max_num_locks")).ok();
    Ok(with_timeout(locks.into_iter().fold(options, TransactionOptions::max_locks), millis))
}

/// The options of a transaction of an optimistic database.
pub fn optimistic(transaction: &Texts, write: WriteOptions) -> TransactionOptions {
    TransactionOptions::optimistic()
        .read_newest(true)
        .snapshot(transaction.get("set_snapshot"))
        .write_options(write)
}

/// The options of a plain write of a pessimistic database.
pub fn plain(database: &Texts, write: WriteOptions) -> TransactionOptions {
    with_timeout(TransactionOptions::new().write_options(write), database.get("default_lock_timeout"))
}

/// Adds the operations of a batch to a transaction.
///
/// # Errors
/// Those of each write. `NotSupported`: range deletions and entities. `InvalidArgument`: a family that the database does not
/// have.
pub fn add_batch(db: &Db, transaction: &Transaction, batch: &WriteBatch) -> Result<()> {
    let (data, families) = (batch.data()?, db.families());
    let find = |id: FamilyId| {
        let found: Option<&Family> = families.iter().find(|family| family.id() == id);
        found.ok_or_else(|| Error::invalid(format!("the database has no family {}", id.0)))
    };
    let wrong = |e: ashlar_base::Malformed| Error::corruption(e.to_string());
    for op in BatchReader::new(&data).map_err(wrong)?.iter() {
        match op.map_err(wrong)? {
            BatchOp::Put { family, key, value } => transaction.family(find(family)?).put(key, value)?,
            BatchOp::Delete { family, key } => transaction.family(find(family)?).delete(key)?,
            BatchOp::SingleDelete { family, key } => transaction.family(find(family)?).single_delete(key)?,
            BatchOp::Merge { family, key, value } => transaction.family(find(family)?).merge(key, value)?,
            BatchOp::LogData(_) | BatchOp::Noop => {}
            BatchOp::DeleteRange { .. } => {
                return Err(Error::invalid("a transaction takes no range deletion"));
            }
            _ => return Err(Error::not_supported("this kind of operation in a transaction")),
        }
    }
    Ok(())
}
