//! Transactions that an opening found prepared, and the decision on them.

use super::{Database, Opaque, copy};
use std::slice;

impl Database {
    /// The names of the transactions that the opening found undecided. Asked first after an opening: transactions that are
    /// prepared later are not asked for.
    pub fn undecided(&mut self) -> Result<Vec<Vec<u8>>, String> {
        let f = self.functions.clone();
        let Some(transactions) = self.transactions else { return Err("not opened for transactions".into()) };
        if self.undecided.is_none() {
            if !self.open_transactions.is_empty() {
                return Err("transactions were begun before".into());
            }
            let (all, name) = (f.extra.transactions_prepared()?, f.extra.transaction_name_of()?);
            let mut count = 0_usize;
            // SAFETY: the database is live, the count a live integer.
            let found = unsafe { all(transactions, &raw mut count) };
            let mut named = Vec::new();
            if !found.is_null() && count > 0 {
                // SAFETY: the call returned an array of that many pointers.
                let handles: &[Opaque] = unsafe { slice::from_raw_parts(found, count) };
                for &transaction in handles {
                    let mut len = 0_usize;
                    // SAFETY: the transaction is live, the length a live integer.
                    let text = unsafe { name(transaction, &raw mut len) };
                    named.push((copy(text, len), transaction));
                    // SAFETY: the name is a copy for the caller, freed once.
                    unsafe { (f.free)(text.cast()) };
                    // Destroyed with those that were begun, before the database.
                    self.open_transactions.push(transaction);
                }
                // SAFETY: the array is the caller's, freed once.
                unsafe { (f.free)(found.cast()) };
            }
            self.undecided = Some(named);
        }
        let mut names: Vec<_> = self.undecided.iter().flatten().map(|(name, _)| name.clone()).collect();
        names.sort();
        Ok(names)
    }

    /// Commits or rolls back a transaction that the opening found.
    pub fn decide(&mut self, commit: bool, name: &[u8]) -> Result<(), String> {
        self.undecided()?;
        let f = self.functions.clone();
        let list = self.undecided.as_mut().ok_or("nothing is undecided")?;
        let at = list.iter().position(|(known, _)| known == name).ok_or("no such transaction")?;
        let (_, transaction) = list.swap_remove(at);
        let decide = if commit { f.extra.transaction_commit()? } else { f.extra.transaction_rollback()? };
        // SAFETY: the transaction is live until the database closes.
        f.checked(|e| unsafe { decide(transaction, e) })
    }
}
