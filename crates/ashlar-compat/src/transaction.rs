//! A transaction as RocksDB's objects have it: it goes on after a rollback, and may be begun again in its place.

use crate::calls::ReadOptions;
use crate::database::Database;
use crate::indexed::IndexedBatch;
use crate::iterator::Iterator;
use crate::status::not_found;
use crate::transactions::add_batch;
use ashlardb::{Error, Family, Read, Reader, Result, Transaction, TransactionOptions, View, WriteBatch};

/// A transaction of a database. One that could not begin answers its error to every call.
#[derive(Debug)]
pub struct Txn {
    db: Database,
    transaction: Result<Transaction>,
    /// With which a rolled back transaction begins again.
    options: Result<TransactionOptions>,
    /// A commit must be prepared.
    must_prepare: bool,
}

impl Txn {
    /// Begins a transaction. `must_prepare`: RocksDB's `skip_prepare` is off.
    pub fn begin(db: &Database, options: Result<TransactionOptions>, must_prepare: bool) -> Txn {
        let transaction = options.clone().and_then(|options| db.db().begin_with(options));
        // Begun again, it takes no snapshot of its own.
        let options = options.map(|options| options.snapshot(false));
        Txn { db: db.clone(), transaction, options, must_prepare }
    }

    /// A transaction that was prepared before.
    pub fn prepared(db: &Database, transaction: Transaction) -> Txn {
        let options = Ok(TransactionOptions::new());
        Txn { db: db.clone(), transaction: Ok(transaction), options, must_prepare: false }
    }

    /// The engine's transaction.
    ///
    /// # Errors
    /// That of its beginning.
    pub fn open(&self) -> Result<&Transaction> {
        self.transaction.as_ref().map_err(Error::clone)
    }

    /// Its database.
    pub fn database(&self) -> &Database {
        &self.db
    }

    /// The family; `None`: the family `default`.
    pub fn family<'a>(&'a self, family: Option<&'a Family>) -> &'a Family {
        family.unwrap_or(self.db.default_family())
    }

    /// A read: of the newest state, or of the snapshot that the options name.
    pub(crate) fn reader<'a>(&'a self, family: &'a Family, options: &'a ReadOptions) -> Result<Reader<'a>> {
        let (from, read) = (self.open()?, options.plain()?);
        Ok(match &options.snapshot {
            Some(snapshot) => from.over(snapshot).family(family).reading(read),
            None => from.reading(read).family(family),
        })
    }

    /// The value that the transaction sees.
    ///
    /// # Errors
    /// Those of [`Read::get`].
    pub fn get(&self, family: Option<&Family>, options: &ReadOptions, key: &[u8]) -> Result<Option<View>> {
        self.reader(self.family(family), options)?.get(key)
    }

    /// The value of a key that the transaction locks. As in RocksDB, the value is that of the snapshot of the options, if they have one.
    ///
    /// # Errors
    /// Those of [`Transaction::get_for_update`].
    pub fn get_for_update(
        &self,
        family: Option<&Family>,
        options: &ReadOptions,
        key: &[u8],
        exclusive: bool,
    ) -> Result<Option<View>> {
        options.plain().map(drop)?;
        let to = self.open()?.family(self.family(family));
        let newest = if exclusive { to.get_for_update(key) } else { to.get_for_share(key) }?;
        if options.snapshot.is_none() && !options.texts().differs("read_tier") {
            return Ok(newest);
        }
        self.get(family, options, key)
    }

    /// What the transaction sees of a family at this moment.
    pub fn iterator(&self, family: Option<&Family>, options: &ReadOptions) -> Iterator {
        let family = self.family(family);
        let reader = self.reader(family, options);
        Iterator::once(
            reader.and_then(|reader| options.filtered(reader.scan(options.bounds(family))).cursor()),
        )
    }

    /// Commits.
    ///
    /// # Errors
    /// Those of [`Transaction::commit`]. `InvalidArgument`: it must be prepared first.
    pub fn commit(&self) -> Result<()> {
        let transaction = self.open()?;
        if self.must_prepare && !transaction.is_prepared() {
            return Err(Error::invalid("the transaction is not prepared, and skip_prepare is off"));
        }
        transaction.commit()
    }

    /// Takes everything back. The transaction goes on, empty, and takes the snapshot that it was to take with its next operation. One
    /// that was prepared is decided, and refuses further calls.
    ///
    /// # Errors
    /// Those of [`Transaction::rollback`].
    pub fn rollback(&mut self) -> Result<()> {
        let (is_decided, awaits) = (self.open()?.is_prepared(), self.open()?.awaits_snapshot());
        self.open()?.rollback()?;
        if is_decided {
            return Ok(());
        }
        self.transaction = self.options.clone().and_then(|options| self.db.db().begin_with(options));
        if awaits { self.open()?.set_snapshot_on_next_operation() } else { Ok(()) }
    }

    /// Takes back the operations since the last savepoint.
    ///
    /// # Errors
    /// `Io(NotFound)`: there is no savepoint.
    pub fn rollback_to_savepoint(&self) -> Result<()> {
        self.open()?.rollback_to_savepoint().map_err(|e| not_found(e.message()))
    }

    /// Adds the operations of a batch.
    ///
    /// # Errors
    /// Those of [`add_batch`].
    pub fn add(&self, batch: &WriteBatch) -> Result<()> {
        add_batch(&self.db.db(), self.open()?, batch)
    }

    /// The operations, as a batch that is read; none once the transaction has ended.
    ///
    /// # Errors
    /// That of the beginning of the transaction.
    pub fn operations(&self) -> Result<IndexedBatch> {
        let transaction = self.open()?;
        let data = if transaction.is_active() { transaction.data()? } else { WriteBatch::new().data()? };
        IndexedBatch::from_data(&data, &self.db.db().families())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::Mode;
    use crate::options::Options;
    use ashlardb::{ErrorKind, Write as _};

    /// Regression: a rolled back transaction forgot the snapshot of its next operation.
    #[test]
    fn a_rollback_leaves_the_snapshot_of_the_next_operation() {
        let dir = tempfile::tempdir().unwrap();
        let mut options = Options::default();
        options.texts.set("create_if_missing", true);
        let (db, _) = Database::open(&options, &dir.path().join("db"), Mode::Write, &[]).unwrap();
        let mut txn = Txn::begin(&db, Ok(TransactionOptions::new()), false);
        txn.open().unwrap().set_snapshot_on_next_operation().unwrap();
        txn.rollback().unwrap();
        assert!(txn.open().unwrap().awaits_snapshot() && txn.open().unwrap().snapshot().is_none());
        txn.open().unwrap().put("key", "value").unwrap();
        assert!(!txn.open().unwrap().awaits_snapshot() && txn.open().unwrap().snapshot().is_some());
    }

    /// Regression: a commit after the rollback of a prepared transaction answered that the transaction was committed.
    #[test]
    fn a_prepared_transaction_is_decided_once() {
        let dir = tempfile::tempdir().unwrap();
        let mut options = Options::default();
        options.texts.set("create_if_missing", true);
        let (db, _) = Database::open(&options, &dir.path().join("db"), Mode::Write, &[]).unwrap();
        let begin = || Txn::begin(&db, Ok(TransactionOptions::new()), false);
        let mut plain = begin();
        plain.rollback().unwrap();
        plain.commit().unwrap();
        let mut prepared = begin();
        let transaction = prepared.open().unwrap();
        transaction.put("key", "value").unwrap();
        transaction.set_name("name").unwrap();
        transaction.prepare().unwrap();
        prepared.rollback().unwrap();
        let refused = prepared.commit().unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidArgument, "{refused}");
        assert!(refused.to_string().contains("rolled back"), "{refused}");
        assert!(prepared.rollback().is_err());
    }
}
