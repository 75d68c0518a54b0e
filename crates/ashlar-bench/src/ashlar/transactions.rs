//! The transactions of `randomtransaction`: AshlarDB's, or plain batches.

use crate::flags::Flags;
use crate::store::{Transaction, WriteHow};
use ashlar_base::Result;
use ashlardb::{Db, Read as _, TransactionOptions, Write as _, WriteBatch, WriteOptions};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The kind of transactions that the flags name.
#[derive(Debug)]
pub(super) enum Kind {
    /// A batch, without locks or checks.
    Plain,
    Optimistic,
    Pessimistic {
        lock_timeout: Duration,
    },
}

impl Kind {
    pub(super) fn of(flags: &Flags) -> Kind {
        let lock_timeout = Duration::from_millis(flags.transaction_lock_timeout);
        match (flags.transaction_db, flags.optimistic_transaction_db) {
            (true, _) => Kind::Pessimistic { lock_timeout },
            (_, true) => Kind::Optimistic,
            _ => Kind::Plain,
        }
    }

    pub(super) fn begin<'d>(&self, db: &'d Db, how: WriteHow) -> Result<Box<dyn Transaction + 'd>> {
        let write = write_options(how);
        let options = match self {
            Kind::Plain => {
                return Ok(Box::new(Plain { db, batch: WriteBatch::new(), options: write }));
            }
            Kind::Optimistic => TransactionOptions::optimistic(),
            Kind::Pessimistic { lock_timeout } => TransactionOptions::new().lock_timeout(*lock_timeout),
        };
        // Without a snapshot, a read that is not for update would miss a write before the put of the same key.
        let inner = db.begin_with(options.snapshot(true).write_options(write))?;
        Ok(Box::new(Begun { inner, prepares: matches!(self, Kind::Pessimistic { .. }) }))
    }
}

/// The options of writes.
pub(super) fn write_options(how: WriteHow) -> WriteOptions {
    WriteOptions::new().disable_wal(how.disable_wal).sync(how.sync && !how.disable_wal)
}

struct Begun {
    inner: ashlardb::Transaction,
    /// Optimistic transactions have no two phases.
    prepares: bool,
}

impl Transaction for Begun {
    fn get(&mut self, key: &[u8], for_update: bool) -> Result<Option<Vec<u8>>> {
        let found = if for_update { self.inner.get_for_update(key) } else { self.inner.get(key) };
        Ok(found?.map(|view| view.to_vec()))
    }

    fn replace(&mut self, key: &[u8], value: &[u8], single: bool) -> Result<()> {
        if single { self.inner.single_delete(key) } else { self.inner.delete(key) }?;
        self.inner.put(key, value)
    }

    fn prepare(&mut self) -> Result<()> {
        /// Names are unique among the open transactions of a database.
        static NEXT: AtomicU64 = AtomicU64::new(0);
        if !self.prepares {
            return Ok(());
        }
        // Relaxed: only the number itself has to be unique.
        self.inner.set_name(format!("bench {}", NEXT.fetch_add(1, Ordering::Relaxed)))?;
        self.inner.prepare()
    }

    fn commit(&mut self) -> Result<()> {
        self.inner.commit()
    }

    fn rollback(&mut self) -> Result<()> {
        self.inner.rollback()
    }
}

struct Plain<'d> {
    db: &'d Db,
    batch: WriteBatch,
    options: WriteOptions,
}

impl Transaction for Plain<'_> {
    fn get(&mut self, key: &[u8], _: bool) -> Result<Option<Vec<u8>>> {
        Ok(self.db.get(key)?.map(|view| view.to_vec()))
    }

    fn replace(&mut self, key: &[u8], value: &[u8], _: bool) -> Result<()> {
        self.batch.put(key, value)
    }

    fn prepare(&mut self) -> Result<()> {
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        self.db.writing(self.options).write(&self.batch)
    }

    fn rollback(&mut self) -> Result<()> {
        self.batch.clear();
        Ok(())
    }
}
