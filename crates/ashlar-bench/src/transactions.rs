//! `randomtransaction`: transactions that add one amount to one key of each set.
//!
//! A key is the number of its set, four digits from `0001`, and the number of the key; a value is a decimal number. A
//! transaction draws an amount from 1 to 100 and adds it to a random key of every set, so the sets always have equal sums.
//! [`verify`] compares the sums afterwards.
//!
//! Shape of a transaction: it has a snapshot; every second read is for update; a key is deleted before it is put (three of four
//! by a single delete); nine of ten pessimistic transactions have a name and are prepared before the decision; one of twenty is
//! rolled back. A transaction that meets a conflict or a timeout is an abort, and is not tried again. Operations count
//! attempts. Plain batches only put, and all of them are written.
//! Source of the shape: RocksDB `tools/db_bench_tool.cc`, `test_util/transaction_test_util.cc`.

use crate::keys::KeyStream;
use crate::random::Random;
use crate::stats::OpKind;
use crate::store::Store;
use crate::worker::Worker;
use ashlar_base::error::BusyKind;
use ashlar_base::{Error, ErrorKind, Result};

impl Worker<'_> {
    /// Runs transactions until the budget is spent.
    ///
    /// # Errors
    /// The engine's first that is neither a conflict nor a timeout. `Corruption`: a value is no number.
    pub(crate) fn transactions(&mut self) -> Result<()> {
        let mut order: Vec<u64> = (1..=self.plan.sets).collect();
        let mut numbers = self.numbers(self.plan.keys);
        let mut budget = self.budget();
        let (mut done, mut aborts) = (0_u64, 0_u64);
        while budget.take(1, self.clock) > 0 {
            shuffle(&mut order, &mut self.random);
            match self.one_transaction(&order, &mut numbers) {
                Ok(bytes) => self.meter.stats.bytes += bytes,
                Err(e) if is_abort(e.kind()) => aborts += 1,
                Err(e) => return Err(e),
            }
            done += 1;
            self.meter.finished(1, OpKind::Other);
        }
        self.meter.stats.message = Some(match self.store.has_transactions() {
            true => format!("( transactions:{done} aborts:{aborts})"),
            false => format!("( batches:{done} )"),
        });
        Ok(())
    }

    /// One transaction over the sets in `order`. Returns the bytes of the entries that it wrote.
    fn one_transaction(&mut self, order: &[u64], numbers: &mut KeyStream) -> Result<u64> {
        let mut transaction = self.store.transaction(self.plan.how)?;
        let amount = u128::from(self.random.below(100) + 1);
        let mut bytes = 0;
        for set in order {
            let key = format!("{set:04}{}", numbers.next(&mut self.random));
            let for_update = self.random.below(2) == 0;
            let before = match transaction.get(key.as_bytes(), for_update)? {
                Some(value) => number(key.as_bytes(), &value)?,
                None => 0,
            };
            let sum = before.saturating_add(amount).to_string();
            transaction.replace(key.as_bytes(), sum.as_bytes(), (set - 1) % 4 != 0)?;
            bytes += (key.len() + sum.len()) as u64;
        }
        if self.random.below(10) > 0 {
            transaction.prepare()?;
        }
        let commits = !self.store.has_transactions() || self.random.below(20) > 0;
        if commits { transaction.commit().map(|()| bytes) } else { transaction.rollback().map(|()| 0) }
    }
}

/// Whether a transaction may end with this error under normal conditions.
fn is_abort(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Busy(BusyKind::Conflict | BusyKind::Deadlock) | ErrorKind::TimedOut)
}

fn shuffle(order: &mut [u64], random: &mut Random) {
    for last in (1..order.len()).rev() {
        let other = random.below(last as u64 + 1);
        order.swap(last, usize::try_from(other).unwrap_or(last));
    }
}

/// Checks that the `sets` have equal sums.
///
/// # Errors
/// `Corruption` names two sets with different sums, or a key whose value is no number. The engine's.
pub(crate) fn verify(store: &dyn Store, sets: u64) -> Result<()> {
    let expected = sum(store, 1)?;
    for set in 2..=sets {
        let found = sum(store, set)?;
        if found != expected {
            let text = format!("the keys of set {set:04} have the sum {found}, those of set 0001 {expected}");
            return Err(Error::corruption(text));
        }
    }
    Ok(())
}

fn sum(store: &dyn Store, set: u64) -> Result<u128> {
    // The character after '9' ends the set.
    let (lower, upper) = (format!("{set:04}"), format!("{set:04}:"));
    let mut walk = store.cursor_within(Some(lower.as_bytes()), Some(upper.as_bytes()))?;
    let mut sum = 0_u128;
    walk.first()?;
    while let Some((key, value)) = walk.entry() {
        sum = sum.saturating_add(number(key, value)?);
        walk.next()?;
    }
    Ok(sum)
}

fn number(key: &[u8], value: &[u8]) -> Result<u128> {
    let text = std::str::from_utf8(value).ok();
    text.and_then(|text| text.parse().ok()).ok_or_else(|| {
        let (key, value) = (key.escape_ascii(), value.escape_ascii());
        Error::corruption(format!("the value of {key} is no number: {value}"))
    })
}
