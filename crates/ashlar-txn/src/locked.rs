//! Plain writes that take the locks of their keys.
//!
//! 1. The writer locks every key of its batch exclusively, writes the batch, and releases the locks. It takes them in the order of
//!    families and bytes, so writers of batches do not wait for each other in a circle.
//! 2. The write itself is a plain one: it has no snapshot and no check, and shares a group of the WAL with other writes. No
//!    pessimistic transaction holds its keys meanwhile, prepared ones included, and the commit of an optimistic one checks.
//! 3. The batch is visible before the locks are released. So the next holder of a key sees the write.
//!
//! Source: RocksDB `utilities/transactions/pessimistic_transaction_db.cc` (a `Put` of a `TransactionDB` is such a write).

use crate::locks::{LockKey, LockTable, Mode, Request, TransactionId};
use crate::named::{Shared, lock_key};
use crate::transaction::{Kind, Settings, too_many_locks};
use ashlar_base::{Error, FamilyId, Result, SeqNum};
use ashlar_engine::Db;
use ashlar_engine::batch::WriteBatch;
use ashlar_engine::column_family::Family;
use ashlar_format::write_batch::BatchOp;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Locks taken for one write. They are released when this is dropped.
struct Held<'a> {
    locks: &'a LockTable,
    id: TransactionId,
    keys: Vec<LockKey>,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.keys.iter().for_each(|key| self.locks.release(self.id, key));
    }
}

/// Applies a batch while all its keys are locked: all of it, or nothing. Of the settings, those of locks and of the write count.
///
/// # Errors
/// `TimedOut`: transactions hold a lock. `Busy(Deadlock)`. `Busy(LockLimit)`: the batch has more keys than `max_locks`.
/// `InvalidArgument`: settings of an optimistic transaction; a callback makes the call. `NotSupported`: a range deletion. Those of
/// [`Db::write`]. In each case nothing was written, unless the error is one of a write that says otherwise.
pub fn write(db: &Db, batch: &mut WriteBatch, settings: &Settings) -> Result<SeqNum> {
    if settings.kind == Kind::Optimistic {
        return Err(Error::invalid("a locking write with the options of an optimistic transaction")
            .hint("Use TransactionOptions::new(), which locks keys"));
    }
    db.check_caller("a locking write")?;
    let keys = keys_of(batch)?;
    if keys.len() > settings.max_locks {
        return Err(too_many_locks(settings.max_locks));
    }
    let shared = Shared::of(db)?;
    let mut held = Held { locks: &shared.locks, id: shared.locks.next_transaction(), keys: Vec::new() };
    let families = db.families();
    for (family, user_key) in &keys {
        // The write refuses a family that does not exist.
        let Some(family) = families.iter().find(|known| known.id() == *family) else { continue };
        lock(db, &mut held, family, user_key, settings)?;
    }
    db.write(batch, settings.write)
}

fn lock(
    db: &Db,
    held: &mut Held<'_>,
    family: &Arc<Family>,
    user_key: &[u8],
    settings: &Settings,
) -> Result<()> {
    let key = lock_key(family.id(), user_key);
    let request = Request {
        transaction: held.id,
        key: &key,
        shown: (user_key, family.name()),
        mode: Mode::Exclusive,
        timeout: settings.lock_timeout,
        detect: settings.deadlock_detect,
    };
    held.locks.acquire(&request, db.env())?;
    held.keys.push(key);
    Ok(())
}

/// The keys of the batch, each once.
fn keys_of(batch: &WriteBatch) -> Result<BTreeSet<(FamilyId, Vec<u8>)>> {
    let mut keys = BTreeSet::new();
    for op in batch.operations().iter() {
        let op = op.map_err(ashlar_base::Malformed::into_error)?;
        if matches!(op, BatchOp::DeleteRange { .. }) {
            return Err(Error::not_supported("a range deletion in a locking write")
                .hint("Delete the keys one by one, or write the batch without locks"));
        }
        if let (Some(family), Some(key)) = (op.family(), op.key()) {
            keys.insert((family, key.to_vec()));
        }
    }
    Ok(keys)
}
