//! Plain writes that take the locks of their keys.

use crate::transaction::TransactionOptions;
use crate::write::{Writable, with_batch};
use crate::{Db, Family, Result, Write, WriteBatch};
use ashlar_base::{Error, FamilyId};
use ashlar_engine::batch::WriteBatch as EngineBatch;
use std::borrow::Borrow;
use std::sync::Arc;

/// A [`Write`] whose writes take the locks of their keys: see [`Db::locking`]. It borrows the database.
#[derive(Clone, Copy, Debug)]
#[must_use = "a writer does nothing until it is asked"]
pub struct LockingWriter<'a> {
    db: &'a Db,
    family: &'a Arc<ashlar_engine::column_family::Family>,
    options: TransactionOptions,
}

impl Db {
    /// Writes beside pessimistic transactions: each write waits for the locks of its keys, holds them while it writes, and
    /// releases them. So it does not overwrite a key that a transaction has locked or prepared, and it is no conflict for that
    /// transaction. (RocksDB: every plain write of a `TransactionDB` is such a write.)
    ///
    /// The options `lock_timeout`, `deadlock_detect`, `max_locks` and `write_options` count, no others.
    ///
    /// ```
    /// # use ashlardb::prelude::*;
    /// # use ashlardb::ErrorKind;
    /// # use std::time::Duration;
    /// # fn main() -> ashlardb::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = Db::open(dir.path().join("db"))?;
    /// let t = db.begin()?;
    /// t.put("stock", "6")?;
    /// let locking = db.locking(TransactionOptions::new().lock_timeout(Duration::from_millis(10)));
    /// assert_eq!(locking.put("stock", "0").unwrap_err().kind(), ErrorKind::TimedOut);
    /// t.commit()?;
    /// locking.put("stock", "0")?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn locking(&self, options: TransactionOptions) -> LockingWriter<'_> {
        LockingWriter { db: self, family: self.default(), options }
    }
}

impl<'a> LockingWriter<'a> {
    /// The same writer for `family`. The first write answers `InvalidArgument` if the family belongs to another database.
    pub fn family(self, family: &'a Family) -> LockingWriter<'a> {
        LockingWriter { family: &family.inner, ..self }
    }

    /// [`Db::write`] while all keys of the batch are locked, and the ranges of its range deletions. It takes the locks in the order
    /// of families and bytes.
    ///
    /// # Errors
    /// `TimedOut`: transactions hold the lock of a key; the text names one. `Busy(Deadlock)`, `Busy(LockLimit)`.
    /// `InvalidArgument`: options of an optimistic transaction. Those of [`Db::write`].
    pub fn write(&self, batch: impl Borrow<WriteBatch>) -> Result<()> {
        batch.borrow().written(self.db.default().database(), |batch| self.apply(batch))
    }

    fn apply(&self, batch: &mut EngineBatch) -> Result<()> {
        ashlar_txn::locked::write(self.db.engine(), batch, self.options.settings()).map(drop)
    }
}

impl Write for LockingWriter<'_> {}
impl Writable for LockingWriter<'_> {
    fn add(&self, op: impl FnOnce(&mut EngineBatch, FamilyId) -> Result<()>) -> Result<()> {
        if self.family.database() != self.db.default().database() {
            return Err(Error::invalid("the family belongs to another open database")
                .hint("Take the family of the database that is written to"));
        }
        with_batch(self.db.engine(), |batch| op(batch, self.family.id()), |batch| self.apply(batch))
    }
}
