//! The cursor that a user gets. For each key it shows the value that a read at one sequence number sees, within bounds.
//! It skips deleted keys and combines merge operands.
//!
//! 1. Where the merge stands on the shown entry, key and value are borrowed from that entry. This is the common case. A move
//!    that must compare the entries that follow with the shown key copies the key first. Two cases show copies of key and value:
//!    merge operands, because the merge has moved on to older operands, and a value in a blob file or an entity.
//! 2. Going backward, the merge meets the versions of a key oldest first. An entry is shown in place only if the next one
//!    is known to be of another key. Otherwise the merge passes all entries of the key, and the value is a copy. Then `next`
//!    first seeks behind the shown key.
//! 3. After [`SKIPS_MAX`] steps over entries of one user key, a seek skips the remaining ones. After as many deleted
//!    keys, a seek skips the keys that a range tombstone covers in older runs. Going forward, the cursor then also passes the
//!    deletions of a table up to the next key of another run: it decodes them without their keys, and passes the rest of a
//!    table at once if the table holds nothing but deletions that the read sees.
//!    A seek that has met [`GONE_MANY`] deleted keys notes them as the memtable's gap, and the next seek into the gap goes
//!    to its end.
//! 4. The merge knows whether a step has stayed on a user key, except in a custom order. So most steps copy and compare no key.
//!    Over one run of files, a step is shorter still if the next entry is plain, which the block's shared lengths tell: a visible
//!    value whose key comes after the key before it.
//! 5. Off the end, `next` and `prev` stay off the end. After an error the cursor is off the end until the next
//!    positioning call.
//! 6. The cursor keeps its memtables in memory and its files on disk. It pins only its current block. It borrows the
//!    table reader while moving to the next block; between moves the table cache may close the file.
//!
//! Source: RocksDB `db/db_iter.cc` (the rules and the skipping by seek).

mod backward;
mod forward;
mod renew;
mod resolve;

use super::merging::Stepped;
use super::tally::{Call, IterTally};
use super::{CursorPins, KeyBounds, MergingIter, RunContext, TableFilter, runs};
use crate::CHARGED;
use crate::expiry::ExpiryNow;
use crate::range_del::Stretch;
use crate::super_version::SuperVersion;
use ashlar_base::ext::sort::CHECK_THE_COMPARATOR;
use ashlar_base::memory::{MemoryCharge, MemoryUse};
use ashlar_base::stats::perf::{self, Metric};
use ashlar_base::stats::{Distribution, Statistics, Ticker};
use ashlar_base::{Direction, Error, InternalKey, InternalKeyBuf, Order, Result, SeqNum, ValueType};
use ashlar_env::Process;
use ashlar_format::value_suffix::without_write_time;
use ashlar_options::{ReadOptions, ReadTier};
use ashlar_tree::columns::Columns;
use renew::Seen;
use resolve::Row;
use std::fmt;
use std::sync::Arc;

/// The number of entries of one user key that the cursor steps over one by one.
const SKIPS_MAX: usize = 8;

/// The most deleted keys between two tries to pass many of them at once.
const WAIT_MAX: usize = 1024;

/// The bytes of a key for which a cursor has room at once.
const KEY_ROOM: usize = 56;

/// The number of deleted keys that a seek passes before it notes them as a gap.
const GONE_MANY: usize = 16;

/// What a seek has passed on the way to the shown entry.
#[derive(Debug, Default)]
struct Passed {
    /// Deleted keys.
    gone: usize,
    /// Some entry was too new for the read.
    newer: bool,
}

impl Passed {
    /// Whether other seeks should not pass all of it again.
    fn is_gap(&self) -> bool {
        self.gone >= GONE_MANY && !self.newer
    }
}

/// The source of the shown key and value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    /// Nothing: off the end.
    Nothing,
    /// The merge's entry. If the last move of the merge was backward, it is the newest entry of its key.
    Merge,
    /// `key` and `value`; the last move of the merge was backward, and it is before all entries of the key.
    Copies,
    /// `key` and `value`; the merge is on an older entry of the key, or after all its entries.
    Folded,
}

/// A cursor over the keys and values of one family at one sequence number. It is on a key or off the end; there is no
/// third state.
///
/// Every moving call may fail. `Io`, `Corruption`: a table cannot be read. `NotSupported`: a key on the way needs a
/// feature that is not served; the message has key and file. `InvalidArgument`: a key has merge operands and the family
/// has no operator. Also the errors of the merge operator.
pub struct DbIter {
    merge: MergingIter,
    order: Order,
    seq: SeqNum,
    range: KeyBounds,
    tier: ReadTier,
    shown: Shown,
    /// The shown key unless it is the merge's, or the key whose entries are being skipped.
    key: Vec<u8>,
    value: Vec<u8>,
    /// The charge for the copies. `None`: all are short.
    charge: Option<MemoryCharge>,
    row: Option<Row>,
    /// The expiry of the values when the cursor was made; `None`: they have no times.
    expiry: Option<ExpiryNow>,
    /// The place of the last seek. While the cursor passes deleted keys, the gap that it may note begins here.
    target: InternalKeyBuf,
    passed: Passed,
    /// Whether the cursor reads every memtable and table, so that its seeks may use the gap.
    whole: bool,
    /// Whether the seek that is running will note the range that it passes.
    notes: bool,
    /// What the runs have of the memtable.
    seen: Seen,
    tally: IterTally,
    process: Process,
    /// The last field, so that the state from which the merge borrows bytes is dropped after it.
    cx: RunContext,
}

impl DbIter {
    /// A cursor over the keys of `from` within `range` for a read at `seq`, off the end. The sequence number in `options`
    /// is ignored.
    ///
    /// # Errors
    /// `InvalidArgument`: an option that no read can keep.
    pub fn new(
        from: Arc<SuperVersion>,
        seq: SeqNum,
        range: KeyBounds,
        options: ReadOptions,
    ) -> Result<DbIter> {
        let how = options.how(from.version.tables().clock())?;
        let tier = options.tier;
        let order = from.version.order.clone();
        let expiry = from.expiry.map(|expiry| expiry.now(&**from.version.tables().clock()));
        let seen = Seen::of(&from);
        let mut cx = RunContext::new(from, how, seq);
        let merge = MergingIter::new(order.clone(), runs(&mut cx, &range, tier));
        if let Some(statistics) = cx.state.from.version.tables().statistics() {
            statistics.tick(Ticker::NumIteratorCreated);
        }
        Ok(DbIter {
            merge,
            order,
            seq,
            range,
            tier,
            shown: Shown::Nothing,
            key: Vec::with_capacity(KEY_ROOM),
            value: Vec::new(),
            charge: None,
            row: None,
            expiry,
            target: InternalKeyBuf::with_room(KEY_ROOM),
            passed: Passed::default(),
            whole: tier == ReadTier::All,
            notes: false,
            seen,
            tally: IterTally::default(),
            process: Process::current(),
            cx,
        })
    }

    /// Another cursor over the same state and tier, off the end, with its own bounds and handling of blocks.
    ///
    /// # Errors
    /// As [`DbIter::new`].
    pub fn beside(&self, range: KeyBounds, options: ReadOptions) -> Result<DbIter> {
        let options = ReadOptions { tier: self.tier, ..options };
        let mut other = DbIter::new(Arc::clone(&self.cx.state.from), self.seq, range, options)?;
        if let Some(filter) = &self.cx.state.filter {
            other.filter_tables(Arc::clone(filter));
        }
        Ok(other)
    }

    /// From the next positioning call on, reads only the tables whose properties `filter` accepts. Range deletions of the other
    /// tables count all the same, and memtables are read. The filter is called when the cursor enters a
    /// table for the first time, without a lock.
    pub fn filter_tables(&mut self, filter: TableFilter) {
        self.cx.state.filter = Some(filter);
        self.whole = false;
    }

    /// Charges the cursor's own copies of a value and of keys, if any is long, and ends the charge of those before.
    #[inline]
    fn charge_copies(&mut self) {
        let longest = self.value.capacity().max(self.key.capacity()).max(self.target.memory());
        if longest >= CHARGED || self.charge.is_some() {
            self.charge_long_copies();
        }
    }

    #[cold]
    fn charge_long_copies(&mut self) {
        if self.value.capacity() > self.value.len() + self.value.len() / 4 {
            self.value.shrink_to_fit();
        }
        let bytes = self.copied_bytes();
        let budget = self.cx.state.from.version.tables().budget();
        let new = || budget.map(|budget| budget.charge(MemoryUse::Values, 0));
        self.charge = self.charge.take().or_else(new).filter(|_| bytes >= CHARGED);
        if let Some(charge) = &self.charge {
            charge.set(bytes);
        }
    }

    /// Bytes of the cursor's own copies of a value and of keys.
    fn copied_bytes(&self) -> usize {
        let row = self.row.as_ref().map_or(0, |row| row.stored.capacity());
        self.value.capacity() + row + self.key.capacity() + self.target.memory() + self.merge.key_bytes()
    }

    /// The memory and files that the cursor keeps alive and that its family no longer uses. `now`: the family's current
    /// state.
    pub fn pins(&self, now: &SuperVersion) -> CursorPins {
        let bytes = self.merge.block_bytes() + self.copied_bytes();
        CursorPins::new(&self.cx.state.from, self.seq, bytes, now)
    }

    /// The key under the cursor; `None` off the end.
    #[inline]
    pub fn key(&self) -> Option<&[u8]> {
        match self.shown {
            Shown::Nothing => None,
            Shown::Merge => self.merge.key().map(InternalKey::user_key),
            Shown::Copies | Shown::Folded => Some(&self.key),
        }
    }

    /// The value under the cursor; `None` off the end.
    #[inline]
    pub fn value(&self) -> Option<&[u8]> {
        self.entry().map(|(_, value)| value)
    }

    /// Key and value under the cursor; `None` off the end.
    #[inline]
    pub fn entry(&self) -> Option<(&[u8], &[u8])> {
        let stored = self.stored_entry()?;
        Some(if self.expiry.is_none() { stored } else { self.without_time(stored) })
    }

    /// The shown entry without its time, if it has one.
    #[cold]
    fn without_time<'a>(&self, (key, stored): (&'a [u8], &'a [u8])) -> (&'a [u8], &'a [u8]) {
        (key, if self.has_time() { without_write_time(stored) } else { stored })
    }

    /// Whether the shown value ends in its time, in a family whose values have times: all do, except entities.
    fn has_time(&self) -> bool {
        self.shown == Shown::Merge || self.row.is_none()
    }

    /// Passes the values that are over.
    #[cold]
    fn pass_expired(&mut self, direction: Direction) -> Result<()> {
        while let (Some(now), Some((key, stored))) = (self.expiry, self.stored_entry())
            && self.has_time()
        {
            match now.open(key, stored) {
                Ok(Some(_)) => break,
                Ok(None) => {}
                Err(e) => {
                    self.shown = Shown::Nothing;
                    return Err(e);
                }
            }
            match direction {
                Direction::Forward => self.next_any()?,
                Direction::Backward => self.prev_any()?,
            }
        }
        Ok(())
    }

    /// Key and stored value under the cursor; `None` off the end.
    #[inline]
    fn stored_entry(&self) -> Option<(&[u8], &[u8])> {
        match self.shown {
            Shown::Nothing => None,
            Shown::Merge => self.merge.entry().map(|entry| (entry.key.user_key(), entry.value)),
            Shown::Copies | Shown::Folded => Some((&self.key, &self.value)),
        }
    }

    /// The columns of the entity under the cursor; of a plain value the default column alone. `None` off the end.
    ///
    /// # Errors
    /// `Corruption`: the entity, or a blob file that it points to, is wrong.
    pub fn columns(&self) -> Result<Option<Columns>> {
        self.check_process()?;
        let Some((key, value)) = self.entry() else { return Ok(None) };
        let Some(row) = &self.row else { return Ok(Some(Columns::of_value(value))) };
        let mut columns = self.cx.state.from.version.blobs().columns(
            key,
            Some(ValueType::Entity),
            &row.stored,
            &self.cx.state.how,
        )?;
        if row.merged {
            columns.set_default(value);
        }
        Ok(Some(columns))
    }

    /// Whether the cursor is on a key.
    #[inline]
    pub fn is_valid(&self) -> bool {
        self.shown != Shown::Nothing
    }

    /// The sequence number at which the cursor reads.
    pub fn seq(&self) -> SeqNum {
        self.seq
    }

    /// Runs a call that positions the cursor, and counts it and its time.
    fn position(&mut self, direction: Direction, act: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        self.check_process()?;
        self.shown = Shown::Nothing;
        let start = self.statistics().and_then(Statistics::now);
        let mut outcome = act(self);
        if self.expiry.is_some() && outcome.is_ok() {
            outcome = self.pass_expired(direction);
        }
        if let Some(statistics) = self.statistics() {
            statistics.took(Distribution::DbSeekMicros, start);
        }
        self.charge_copies();
        self.tally.called(Call::Seek, self.is_valid());
        outcome
    }

    /// Begins a move: nothing is shown. If the merge's entry was, keeps its key.
    #[inline]
    fn leave(&mut self) -> Shown {
        let left = std::mem::replace(&mut self.shown, Shown::Nothing);
        if left == Shown::Merge
            && let Some(key) = self.merge.key()
        {
            replace(&mut self.key, key.user_key());
        }
        left
    }

    /// Ends a step to a plain entry, with `bytes` of key and value. `ends`: the entry is not within the bounds.
    #[inline]
    fn show_plain(&mut self, call: Call, bytes: usize, ends: bool) {
        if ends {
            self.shown = Shown::Nothing;
        } else {
            self.tally.shown(bytes);
        }
        self.tally.called(call, !ends);
    }

    /// Moves the merge to its next entry.
    #[inline]
    fn merge_next(&mut self) -> Result<Stepped> {
        let stepped = self.merge.next(&mut self.cx)?;
        if stepped == Stepped::Misplaced { Err(self.out_of_order()) } else { Ok(stepped) }
    }

    /// Moves the merge to its entry before.
    #[inline]
    fn merge_prev(&mut self) -> Result<()> {
        let stepped = self.merge.prev(&mut self.cx)?;
        if stepped == Stepped::Misplaced { Err(self.out_of_order()) } else { Ok(()) }
    }

    /// # Errors
    /// `Shutdown(Forked)`: the cursor belongs to the parent of this forked process.
    #[inline]
    fn check_process(&self) -> Result<()> {
        if self.process.is_current() { Ok(()) } else { Err(Error::forked()) }
    }

    fn statistics(&self) -> Option<&Statistics> {
        self.cx.state.from.version.tables().statistics()
    }

    /// The error for a file whose keys are in another order than its index says. A cursor that followed them could show
    /// a key twice, or never end.
    #[cold]
    fn out_of_order(&self) -> Error {
        let hint = match self.order {
            Order::Custom(_) => CHECK_THE_COMPARATOR,
            Order::Bytewise | Order::ReverseBytewise => "Run a check of the database to find the damage",
        };
        let e = Error::corruption("keys out of order").hint(hint);
        self.at_path(e)
    }

    /// Skips the keys that range tombstones cover around the deleted key `self.key`, and returns whether there were such keys in older
    /// runs. The cursor meets and counts the remaining keys as before.
    #[cold]
    fn pass_covered(&mut self, direction: Direction) -> Result<bool> {
        let Some(Stretch { run, forward, backward }) = self.cx.mask.stretch(&self.key) else {
            return Ok(false);
        };
        perf::add(Metric::InternalRangeDelReseekCount, 1);
        match (direction, forward, backward) {
            (Direction::Forward, Some(to), _) => self.merge.pass_forward(&mut self.cx, run, to.as_key()),
            (Direction::Backward, _, Some(to)) => self.merge.pass_backward(&mut self.cx, run, to.as_key()),
            _ => Ok(false),
        }
    }

    #[cold]
    fn at_path(&self, e: Error) -> Error {
        match self.merge.path(&self.cx.state) {
            Some(path) => e.at_path(&path),
            None => e,
        }
    }
}

#[inline]
fn replace(buffer: &mut Vec<u8>, with: &[u8]) {
    buffer.clear();
    buffer.extend_from_slice(with);
}

impl Drop for DbIter {
    fn drop(&mut self) {
        if !self.process.is_current() {
            // A thread that does not exist in this child may hold the locks of the cache.
            self.merge.forget();
            std::mem::forget(Arc::clone(&self.cx.state.from));
            return;
        }
        if let Some(statistics) = self.statistics() {
            self.tally.hand_over(statistics);
        }
    }
}

impl fmt::Debug for DbIter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = self.key().map(|key| key.escape_ascii().to_string());
        f.debug_struct("DbIter").field("seq", &self.seq).field("key", &key).finish_non_exhaustive()
    }
}
