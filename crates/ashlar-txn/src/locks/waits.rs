//! Which transaction waits for which others, and the circles among them.
//!
//! A transaction waits for one key at a time, so each has at most one entry. An entry is added and changed under the lock
//! of the key's stripe. So the transaction whose entry closes a circle finds the circle.

use super::span::write_bounds;
use super::{Mode, TransactionId};
use ashlar_read::iter::KeyBounds;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;

/// How many deadlocks are kept for [`Waits::deadlocks`].
const KEPT: usize = 16;

/// A wait of a deadlock.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeadlockWait {
    /// The transaction that waits.
    pub transaction: TransactionId,
    /// The name of the family.
    pub family: String,
    /// The key that it waits for, or the lower end of the range.
    pub key: Vec<u8>,
    /// The range that it waits for; `None`: the key alone.
    pub range: Option<KeyBounds>,
    /// How it wants to lock the key.
    pub mode: Mode,
}

/// Transactions that wait for each other: each for the next one, and the last for the first. The first was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Deadlock {
    /// The waits, beginning with the one that was refused.
    pub waits: Vec<DeadlockWait>,
}

impl fmt::Display for Deadlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("deadlock: ")?;
        for (at, wait) in self.waits.iter().enumerate() {
            let next = self.waits.get(at + 1).or(self.waits.first()).map_or(0, |next| next.transaction);
            let DeadlockWait { transaction, family, key, range, .. } = wait;
            let separator = if at == 0 { "" } else { "; " };
            write!(f, "{separator}transaction {transaction} waits for ")?;
            match range {
                None => write!(f, "key '{}'", key.escape_ascii())?,
                Some(range) => {
                    f.write_str("keys ")?;
                    write_bounds(f, range)?;
                }
            }
            write!(f, " of family {family:?} behind transaction {next}")?;
        }
        Ok(())
    }
}

/// The wait of one transaction.
pub(super) struct Wait {
    pub(super) blockers: Vec<TransactionId>,
    pub(super) shown: DeadlockWait,
}

/// The waits of a database.
#[derive(Default)]
pub(super) struct Waits {
    waiting: BTreeMap<TransactionId, Wait>,
    found: VecDeque<Deadlock>,
}

impl Waits {
    /// Adds a wait.
    ///
    /// # Errors
    /// The circle that the wait would close; it is not added.
    pub(super) fn enter(&mut self, wait: Wait, detect: bool) -> Result<(), Deadlock> {
        let transaction = wait.shown.transaction;
        self.waiting.insert(transaction, wait);
        let Some(circle) = self.circle(transaction).filter(|_| detect) else { return Ok(()) };
        let waits = circle.iter().filter_map(|id| self.waiting.get(id)).map(|wait| wait.shown.clone());
        let deadlock = Deadlock { waits: waits.collect() };
        self.waiting.remove(&transaction);
        self.found.push_front(deadlock.clone());
        self.found.truncate(KEPT);
        Err(deadlock)
    }

    /// Removes the wait of a transaction.
    pub(super) fn leave(&mut self, transaction: TransactionId) {
        self.waiting.remove(&transaction);
    }

    /// Changes for which others a waiting transaction waits.
    pub(super) fn wait_for(&mut self, transaction: TransactionId, blockers: Vec<TransactionId>) {
        if let Some(wait) = self.waiting.get_mut(&transaction) {
            wait.blockers = blockers;
        }
    }

    /// The number of transactions that wait.
    #[cfg(all(test, not(loom)))]
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn deadlocks(&self) -> Vec<Deadlock> {
        self.found.iter().cloned().collect()
    }

    /// The shortest circle through `start`, beginning with it.
    fn circle(&self, start: TransactionId) -> Option<Vec<TransactionId>> {
        // From each transaction that was reached, the one before it.
        let mut before: BTreeMap<TransactionId, TransactionId> = BTreeMap::new();
        let mut next = VecDeque::from([start]);
        while let Some(at) = next.pop_front() {
            let Some(wait) = self.waiting.get(&at) else { continue };
            for blocker in wait.blockers.iter().copied() {
                if blocker == start {
                    let mut circle = vec![at];
                    let mut step = at;
                    while step != start
                        && let Some(earlier) = before.get(&step)
                    {
                        circle.push(*earlier);
                        step = *earlier;
                    }
                    circle.reverse();
                    return Some(circle);
                }
                if let std::collections::btree_map::Entry::Vacant(entry) = before.entry(blocker) {
                    entry.insert(at);
                    next.push_back(blocker);
                }
            }
        }
        None
    }
}
