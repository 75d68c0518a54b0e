//! Plain writes that take the locks of their keys.
//!
//! 1. The writer locks every key and every range of its batch exclusively, writes the batch, and releases the locks. It takes them
//!    in the order of families and bytes, so writers of batches do not wait for each other in a circle.
//! 2. The write itself is a plain one: it has no snapshot and no check, and shares a group of the WAL with other writes. No
//!    pessimistic transaction holds its keys meanwhile, prepared ones included, and the commit of an optimistic one checks.
//! 3. The batch is visible before the locks are released. So the next holder of a key sees the write.
//!
//! Source: RocksDB `utilities/transactions/pessimistic_transaction_db.cc` (a `Put` of a `TransactionDB` is such a write).

use crate::locks::{
    LockKey, LockTable, Mode, RangeId, RangeRequest, Request, Span, TransactionId, too_many_locks,
};
use crate::named::{Shared, lock_key};
use crate::transaction::{Kind, Settings};
use ashlar_base::{Error, FamilyId, Result, SeqNum};
use ashlar_engine::Db;
use ashlar_engine::batch::WriteBatch;
use ashlar_engine::column_family::Family;
use ashlar_format::write_batch::BatchOp;
use ashlar_read::iter::KeyBounds;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Locks taken for one write. They are released when this is dropped.
struct Held<'a> {
    locks: &'a LockTable,
    id: TransactionId,
    keys: Vec<LockKey>,
    ranges: Vec<RangeId>,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.ranges.iter().for_each(|range| self.locks.release_range(*range));
        self.keys.iter().for_each(|key| self.locks.release(self.id, key));
    }
}

/// Applies a batch while all its keys are locked: all of it, or nothing. Of the settings, those of locks and of the write count.
///
/// # Errors
/// `TimedOut`: transactions hold a lock. `Busy(Deadlock)`. `Busy(LockLimit)`: the batch has more keys than `max_locks`.
/// `InvalidArgument`: settings of an optimistic transaction; a callback makes the call. Those of [`Db::write`]. In each case
/// nothing was written, unless the error is one of a write that says otherwise.
pub fn write(db: &Db, batch: &mut WriteBatch, settings: &Settings) -> Result<SeqNum> {
    if settings.kind == Kind::Optimistic {
        return Err(Error::invalid("a locking write with the options of an optimistic transaction")
            .hint("Use TransactionOptions::new(), which locks keys"));
    }
    db.check_caller("a locking write")?;
    let wanted = wanted_by(batch)?;
    if wanted.len() > settings.max_locks {
        return Err(too_many_locks(settings.max_locks));
    }
    let shared = Shared::of(db)?;
    let id = shared.locks.next_transaction();
    let mut held = Held { locks: &shared.locks, id, keys: Vec::new(), ranges: Vec::new() };
    let families = db.families();
    for Wanted { family, key, end } in wanted {
        // The write refuses a family that does not exist.
        let Some(family) = families.iter().find(|known| known.id() == family) else { continue };
        match end {
            None => lock(db, &mut held, family, &key, settings)?,
            Some(end) => lock_range(db, &mut held, family, (key, end), settings)?,
        }
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

/// A key of a batch, or a range from the key on.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Wanted {
    family: FamilyId,
    key: Vec<u8>,
    end: Option<Vec<u8>>,
}

fn lock_range(
    db: &Db,
    held: &mut Held<'_>,
    family: &Arc<Family>,
    (begin, end): (Vec<u8>, Vec<u8>),
    settings: &Settings,
) -> Result<()> {
    let bounds = KeyBounds { lower: Some(begin), upper: Some(end), ..KeyBounds::default() };
    let request = RangeRequest {
        transaction: held.id,
        // The write refuses a range that ends before it begins; as a lock it is empty.
        span: &Span::new(family.id(), family.options().order.clone(), bounds),
        family: family.name(),
        mode: Mode::Exclusive,
        timeout: settings.lock_timeout,
        detect: settings.deadlock_detect,
    };
    held.ranges.extend(held.locks.acquire_range(&request, db.env())?);
    Ok(())
}

/// The keys and ranges of the batch, each once.
fn wanted_by(batch: &WriteBatch) -> Result<BTreeSet<Wanted>> {
    let mut wanted = BTreeSet::new();
    for op in batch.operations().iter() {
        let op = op.map_err(ashlar_base::Malformed::into_error)?;
        let end = match &op {
            BatchOp::DeleteRange { end, .. } => Some(end.to_vec()),
            _ => None,
        };
        if let (Some(family), Some(key)) = (op.family(), op.key()) {
            wanted.insert(Wanted { family, key: key.to_vec(), end });
        }
    }
    Ok(wanted)
}
