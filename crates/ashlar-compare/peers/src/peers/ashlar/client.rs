//! AshlarDB's handle of a client thread.

use super::{Ashlar, operations, text};
use crate::client::{Bounds, CONFLICT, Change, Changes, Client};
use crate::peer::{Keys, Read, Result};
use ashlardb::{BusyKind, ErrorKind, Read as _, Transaction, TransactionOptions, Write, WriteBatch};

/// A client.
pub struct Handle<'a> {
    of: &'a Ashlar,
    /// How its transactions begin, if their kind was set.
    options: Option<TransactionOptions>,
    transaction: Option<Transaction>,
}

impl<'a> Handle<'a> {
    /// A client of `of`.
    pub fn new(of: &'a Ashlar) -> Result<Handle<'a>> {
        let options = of.transactions.is_some().then(|| operations::transaction_options(of)).transpose()?;
        Ok(Handle { of, options, transaction: None })
    }

    /// The transaction that was begun.
    fn open(&self) -> Result<&Transaction> {
        self.transaction.as_ref().ok_or_else(|| "no transaction was begun".to_owned())
    }
}

impl Client for Handle<'_> {
    #[inline]
    fn get(&mut self, key: &[u8], see: impl FnOnce(&[u8])) -> Result<bool> {
        Read::get(&mut &self.of.db, key, see)
    }

    fn multi_get(&mut self, keys: &Keys, mut see: impl FnMut(usize, &[u8])) -> Result<()> {
        let values = ashlardb::Read::multi_get(&self.of.db, keys.iter()).map_err(text)?;
        let found = values.iter().enumerate().filter_map(|(place, view)| Some((place, view.as_ref()?)));
        found.for_each(|(place, view)| see(place, view));
        Ok(())
    }

    fn scan(&mut self, bounds: Bounds<'_>, mut see: impl FnMut(&[u8], &[u8]) -> bool) -> Result<()> {
        let mut cursor = self.of.db.scan(bounds.from..bounds.to).cursor().map_err(text)?;
        let mut entry = if bounds.reverse { cursor.last() } else { cursor.first() }.map_err(text)?;
        while let Some((key, value)) = entry {
            if !see(key, value) {
                break;
            }
            entry = if bounds.reverse { cursor.prev() } else { cursor.next() }.map_err(text)?;
        }
        Ok(())
    }

    fn apply(&mut self, changes: &Changes) -> Result<()> {
        let batch = WriteBatch::new();
        make(&batch, changes).map_err(text)?;
        self.of.db.writing(self.of.writes).write(batch).map_err(text)
    }

    fn begin(&mut self) -> Result<()> {
        let options = self.options.ok_or("no kind of transactions was set")?;
        self.transaction = Some(self.of.db.begin_with(options).map_err(text)?);
        Ok(())
    }

    fn get_for_update(&mut self, key: &[u8], see: impl FnOnce(&[u8])) -> Result<bool> {
        let found = self.open()?.get_for_update(key).map_err(conflict)?;
        Ok(found.map(|view| see(&view)).is_some())
    }

    fn commit(&mut self, changes: &Changes) -> Result<()> {
        let transaction = self.open()?;
        make(transaction, changes).and_then(|()| transaction.commit()).map_err(conflict)?;
        self.transaction = None;
        Ok(())
    }

    fn rollback(&mut self) -> Result<()> {
        self.transaction.take().map_or(Ok(()), |transaction| transaction.rollback().map_err(text))
    }
}

/// Writes the changes into a batch or a transaction.
fn make(into: &impl Write, changes: &Changes) -> ashlardb::Result<()> {
    changes.iter().try_for_each(|change| match change {
        Change::Put { key, value } => into.put(key, value),
        Change::Delete { key } => into.delete(key),
    })
}

/// The message of an error, marked if the transaction can be tried again.
fn conflict(e: ashlardb::Error) -> String {
    let again = matches!(e.kind(), ErrorKind::Busy(BusyKind::Conflict) | ErrorKind::TimedOut);
    if again { format!("{CONFLICT}{e}") } else { text(e) }
}
