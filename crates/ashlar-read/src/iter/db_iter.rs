//! The cursor that a user gets. For each key it shows the value that a read at one sequence number sees, within bounds.
//! It skips deleted keys and combines merge operands.
//!
//! 1. Going forward, the merge stands on the shown entry, and key and value are borrowed from that entry. Two cases
//!    show copies instead: an entry with merge operands, because the merge has moved on to older operands, and an entry
//!    whose value is in a blob file or an entity.
//! 2. Going backward, the merge meets the versions of a key oldest first, so it has passed all entries of the shown
//!    key. Key and value are copies. After a change of direction, `next` first seeks behind the shown key, and `prev`
//!    seeks before it.
//! 3. After [`SKIPS_MAX`] steps over entries of one user key, a seek skips the remaining ones. After as many deleted
//!    keys, a seek skips the keys that a range tombstone covers in older runs.
//!    A seek that has met [`GONE_MANY`] deleted keys notes them as the memtable's gap, and the next seek into the gap goes
//!    to its end.
//! 4. Off the end, `next` and `prev` stay off the end. After an error the cursor is off the end until the next
//!    positioning call.
//! 5. The cursor keeps its memtables in memory and its files on disk. It pins only its current block. It borrows the
//!    table reader while moving to the next block; between moves the table cache may close the file.
//!
//! Source: RocksDB `db/db_iter.cc` (the rules and the skipping by seek).

use super::tally::{Call, IterTally};
use super::{CursorPins, KeyBounds, MergingIter, runs};
use crate::merge::Operands;
use crate::range_del::{Mask, Sources, Stretch};
use crate::super_version::SuperVersion;
use crate::visibility::{EntryKind, entry_kind, is_visible};
use ashlar_base::ext::sort::CHECK_THE_COMPARATOR;
use ashlar_base::stats::perf::{self, Metric};
use ashlar_base::stats::{Distribution, Statistics, Ticker};
use ashlar_base::{
    Direction, Entry, Error, InternalIterator, InternalKey, InternalKeyBuf, Order, Result, SeqNum, Trailer,
    ValueType,
};
use ashlar_env::Process;
use ashlar_options::{ReadOptions, ReadTier};
use ashlar_table::ReadHow;
use ashlar_tree::columns::Columns;
use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// The number of entries of one user key that the cursor steps over one by one.
const SKIPS_MAX: usize = 8;

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

/// The source of the shown entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    /// Nothing: off the end.
    Nothing,
    /// The merge's entry.
    Merge,
    /// `key` and `value`; the merge is before all entries of the key.
    Copies,
    /// `key` and `value`; the merge is on an older entry of the key, or after all its entries.
    Folded,
}

/// The entity with the shown value.
#[derive(Debug)]
struct Row {
    stored: Vec<u8>,
    /// Merge operands were applied to its default column; the result is the shown value.
    merged: bool,
}

/// A cursor over the keys and values of one family at one sequence number. It is on a key or off the end; there is no
/// third state.
///
/// Every moving call may fail. `Io`, `Corruption`: a table cannot be read. `NotSupported`: a key on the way needs a
/// feature that is not served; the message has key and file. `InvalidArgument`: a key has merge operands and the family
/// has no operator. Also the errors of the merge operator.
pub struct DbIter {
    merge: MergingIter,
    mask: Mask,
    order: Order,
    seq: SeqNum,
    range: KeyBounds,
    /// How values are fetched that their entry points to.
    how: ReadHow,
    tier: ReadTier,
    shown: Shown,
    /// The working key: going forward, the key whose entries are being skipped; going backward, the shown key.
    key: Vec<u8>,
    value: Vec<u8>,
    row: Option<Row>,
    /// The place of the last seek. While the cursor passes deleted keys, the gap that it may note begins here.
    target: InternalKeyBuf,
    passed: Passed,
    /// Whether the cursor reads every memtable and table, so that its seeks may use the gap.
    whole: bool,
    tally: IterTally,
    process: Process,
    /// The last field, so that the fields from which the merge borrows bytes are dropped after it.
    from: Arc<SuperVersion>,
}

impl DbIter {
    /// A cursor over the keys of `from` within `range` for a read at `seq`, off the end. The sequence number in `options`
    /// is ignored.
    ///
    /// # Errors
    /// As opening the tables of level 0. `InvalidArgument`: an option that no read can keep.
    pub fn new(
        from: Arc<SuperVersion>,
        seq: SeqNum,
        range: KeyBounds,
        options: ReadOptions,
    ) -> Result<DbIter> {
        let how = options.how(from.version.tables().clock())?;
        let tier = options.tier;
        let order = from.version.order.clone();
        let sources = Sources::new();
        let merge = MergingIter::new(order.clone(), runs(&from, &range, (&how, tier), &sources)?);
        if let Some(statistics) = from.version.tables().statistics() {
            statistics.tick(Ticker::NumIteratorCreated);
        }
        Ok(DbIter {
            merge,
            mask: Mask::new(order.clone(), seq, sources),
            order,
            seq,
            range,
            how,
            tier,
            shown: Shown::Nothing,
            key: Vec::new(),
            value: Vec::new(),
            row: None,
            target: InternalKeyBuf::with_room(KEY_ROOM),
            passed: Passed::default(),
            whole: tier == ReadTier::All,
            tally: IterTally::default(),
            process: Process::current(),
            from,
        })
    }

    /// Another cursor over the same state and tier, off the end, with its own bounds and handling of blocks.
    ///
    /// # Errors
    /// As [`DbIter::new`].
    pub fn beside(&self, range: KeyBounds, options: ReadOptions) -> Result<DbIter> {
        DbIter::new(Arc::clone(&self.from), self.seq, range, ReadOptions { tier: self.tier, ..options })
    }

    /// The memory and files that the cursor keeps alive and that its family no longer uses. `now`: the family's current
    /// state.
    pub fn pins(&self, now: &SuperVersion) -> CursorPins {
        CursorPins::new(&self.from, self.seq, self.merge.block_bytes(), now)
    }

    /// The key under the cursor; `None` off the end.
    #[inline]
    pub fn key(&self) -> Option<&[u8]> {
        self.entry().map(|(key, _)| key)
    }

    /// The value under the cursor; `None` off the end.
    #[inline]
    pub fn value(&self) -> Option<&[u8]> {
        self.entry().map(|(_, value)| value)
    }

    /// Key and value under the cursor; `None` off the end.
    #[inline]
    pub fn entry(&self) -> Option<(&[u8], &[u8])> {
        match self.shown {
            Shown::Nothing => None,
            Shown::Merge => self.merge.entry().map(|e| (e.key.user_key(), e.value)),
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
        let mut columns =
            self.from.version.blobs().columns(key, Some(ValueType::Entity), &row.stored, &self.how)?;
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

    /// Moves to the first key at or after `key`.
    pub fn seek(&mut self, key: &[u8]) -> Result<()> {
        self.position(|cursor| cursor.seek_to(key))
    }

    fn seek_to(&mut self, key: &[u8]) -> Result<()> {
        match self.range.begin(self.seq) {
            Some((lower, trailer)) if self.range.is_before(&self.order, key) => {
                self.target.set(lower, trailer)
            }
            _ => self.target.set(key, Trailer::seek(self.seq)),
        }
        self.seek_past_gap()
    }

    /// Moves to the first key at or after `self.target`, past the gap.
    fn seek_past_gap(&mut self) -> Result<()> {
        let (user_key, trailer) = self.target.as_key().split();
        // Behind the last entry of a key, the key itself may be visible.
        let gaps = self.whole && trailer != Trailer::LAST;
        if gaps && self.from.mem.gap().end_of(Some(user_key), self.state(), &mut self.key) {
            self.target.set(&self.key, Trailer::seek(self.seq));
        }
        let notes = gaps && self.may_note();
        if notes {
            // A seek that notes a gap must meet the entries of its first key that are newer than the read.
            self.target.set_trailer(Trailer::FIRST);
        }
        self.seek_on()?;
        self.show_first()?;
        if notes && self.passed.is_gap() {
            self.note_gap(Some(self.target.as_key().user_key()));
        }
        Ok(())
    }

    /// The state that the cursor reads, for the gap.
    fn state(&self) -> (u64, SeqNum) {
        (self.from.number, self.seq)
    }

    /// Whether the read sees all values of the memtable. Otherwise it cannot note a gap.
    fn may_note(&self) -> bool {
        self.from.mem.gap().newest_value() <= self.seq
    }

    /// Notes that there is no key from `from` up to the shown one.
    #[cold]
    fn note_gap(&self, from: Option<&[u8]>) {
        // Off the end, `self.key` is the last deleted key.
        self.from.mem.gap().note(from, self.key().unwrap_or(&self.key), self.state());
    }

    /// Moves to the last key at or before `key`.
    pub fn seek_for_prev(&mut self, key: &[u8]) -> Result<()> {
        self.position(|cursor| cursor.seek_back_to(key))
    }

    fn seek_back_to(&mut self, key: &[u8]) -> Result<()> {
        match self.range.end() {
            Some((upper, trailer)) if self.range.is_behind(&self.order, key) => {
                self.target.set(upper, trailer)
            }
            _ => self.target.set(key, Trailer::LAST),
        }
        self.seek_back()?;
        self.show_backward(false)
    }

    /// Moves to the first key.
    pub fn first(&mut self) -> Result<()> {
        self.position(Self::seek_first)
    }

    fn seek_first(&mut self) -> Result<()> {
        if let Some((lower, trailer)) = self.range.begin(self.seq) {
            self.target.set(lower, trailer);
            return self.seek_past_gap();
        }
        let notes = self.whole && self.may_note();
        if self.whole && self.from.mem.gap().end_of(None, self.state(), &mut self.key) {
            self.target.set(&self.key, Trailer::FIRST);
            self.seek_on()?;
        } else {
            self.merge.first()?;
        }
        self.show_first()?;
        if notes && self.passed.is_gap() {
            self.note_gap(None);
        }
        Ok(())
    }

    /// Moves to the last key.
    pub fn last(&mut self) -> Result<()> {
        self.position(Self::seek_last)
    }

    /// Runs a call that positions the cursor, and counts it and its time.
    fn position(&mut self, act: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        self.check_process()?;
        self.shown = Shown::Nothing;
        let start = self.statistics().and_then(Statistics::now);
        let outcome = act(self);
        if let Some(statistics) = self.statistics() {
            statistics.took(Distribution::DbSeekMicros, start);
        }
        self.tally.called(Call::Seek, self.is_valid());
        outcome
    }

    /// # Errors
    /// `Shutdown(Forked)`: the cursor belongs to the parent of this forked process.
    #[inline]
    fn check_process(&self) -> Result<()> {
        if self.process.is_current() { Ok(()) } else { Err(Error::forked()) }
    }

    fn statistics(&self) -> Option<&Statistics> {
        self.from.version.tables().statistics()
    }

    fn seek_last(&mut self) -> Result<()> {
        match self.range.end() {
            Some((upper, trailer)) => {
                self.target.set(upper, trailer);
                self.seek_back()?;
            }
            None => self.merge.last()?,
        }
        self.show_backward(false)
    }

    /// Moves to the next key.
    #[inline]
    #[allow(
        clippy::should_implement_trait,
        reason = "a cursor, not an Iterator: it lends its entries and may fail"
    )]
    pub fn next(&mut self) -> Result<()> {
        self.check_process()?;
        match std::mem::replace(&mut self.shown, Shown::Nothing) {
            Shown::Nothing => return Ok(()),
            Shown::Merge => {
                if let Some(key) = self.merge.key() {
                    replace(&mut self.key, key.user_key());
                }
                self.merge.next()?;
            }
            Shown::Copies => {
                self.target.set(&self.key, Trailer::LAST);
                self.seek_on()?;
            }
            Shown::Folded => {}
        }
        let outcome = self.show_forward(true);
        self.tally.called(Call::Next, self.is_valid());
        outcome
    }

    /// Moves to the preceding key.
    pub fn prev(&mut self) -> Result<()> {
        self.check_process()?;
        match std::mem::replace(&mut self.shown, Shown::Nothing) {
            Shown::Nothing => return Ok(()),
            Shown::Merge => {
                if let Some(key) = self.merge.key() {
                    replace(&mut self.key, key.user_key());
                }
                self.target.set(&self.key, Trailer::FIRST);
                self.seek_back()?;
            }
            Shown::Folded => {
                self.target.set(&self.key, Trailer::FIRST);
                self.seek_back()?;
            }
            Shown::Copies => {}
        }
        let outcome = self.show_backward(true);
        self.tally.called(Call::Prev, self.is_valid());
        outcome
    }

    /// Moves the merge to its first entry at or after `self.target`.
    fn seek_on(&mut self) -> Result<()> {
        self.merge.seek(self.target.as_key())?;
        self.check_behind(self.target.as_key())
    }

    /// # Errors
    /// `Corruption`: after a seek to `target`, the merge is before it.
    fn check_behind(&self, target: InternalKey<'_>) -> Result<()> {
        match self.merge.key() {
            Some(key) if self.order.compare_internal(key, target).is_lt() => Err(self.out_of_order()),
            _ => Ok(()),
        }
    }

    /// Moves the merge to its last entry at or before `self.target`.
    fn seek_back(&mut self) -> Result<()> {
        self.merge.seek_for_prev(self.target.as_key())?;
        match self.merge.key() {
            Some(key) if self.order.compare_internal(key, self.target.as_key()).is_gt() => {
                Err(self.out_of_order())
            }
            _ => Ok(()),
        }
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

    /// Goes forward from the place of a seek to the first entry to show.
    fn show_first(&mut self) -> Result<()> {
        self.passed = Passed::default();
        self.show_forward(false)
    }

    /// Goes forward to the first entry to show. `skip`: skips entries of `self.key`; no entry may come before that key.
    fn show_forward(&mut self, mut skip: bool) -> Result<()> {
        self.row = None;
        // Whether `self.key` is a skipped key, so that all following entries must be at or after it.
        let mut passed = skip;
        let (mut steps, mut gone) = (0, 0);
        // Entries after a hidden entry of the same key are skipped with it.
        let mut behind = Metric::InternalKeySkippedCount;
        while let Some(entry) = self.merge.entry() {
            let (user_key, trailer) = entry.key.split();
            let place = if passed { self.order.compare(user_key, &self.key) } else { Ordering::Greater };
            let same = place.is_eq() && user_key == self.key.as_slice();
            if same && skip {
                // Older than the shown or hidden entry.
                self.tally.passed(behind);
                steps = self.pass_one(steps + 1)?;
                continue;
            }
            if place.is_lt() {
                return Err(self.out_of_order());
            }
            if self.range.is_behind(&self.order, user_key) {
                return Ok(());
            }
            if is_visible(trailer, self.seq) {
                let hidden = self.mask.hides(user_key, trailer.seq());
                match if hidden { Ok(EntryKind::Deleted) } else { entry_kind(trailer, user_key) } {
                    Ok(EntryKind::Value) => {
                        self.tally.shown(user_key.len() + entry.value.len());
                        self.shown = Shown::Merge;
                        return Ok(());
                    }
                    Ok(indirect @ (EntryKind::Wrapped | EntryKind::Operand)) => {
                        replace(&mut self.key, user_key);
                        return self.show_made(indirect);
                    }
                    Ok(EntryKind::Deleted) => {
                        replace(&mut self.key, user_key);
                        (skip, passed, steps, gone) = (true, true, 0, gone + 1);
                        self.passed.gone = gone;
                        behind = Metric::InternalDeleteSkippedCount;
                        if gone % SKIPS_MAX == 0 {
                            self.pass_covered(Direction::Forward)?;
                        } else {
                            self.tally.passed(behind);
                            self.merge.next()?;
                        }
                    }
                    Err(e) => return Err(self.at_path(e)),
                }
                continue;
            }
            // Too new for this read, and perhaps one of many entries of its key.
            self.tally.passed(Metric::InternalRecentSkippedCount);
            self.passed.newer = true;
            if same {
                steps += 1;
            } else {
                replace(&mut self.key, user_key);
                (skip, passed, steps) = (false, true, 1);
            }
            steps = self.pass_newer(steps)?;
        }
        Ok(())
    }

    /// Skips an entry that is too new for this read, and, after `steps` of one key, all such entries of `self.key`.
    /// Returns the number of steps so far.
    fn pass_newer(&mut self, steps: usize) -> Result<usize> {
        if steps <= SKIPS_MAX {
            return self.merge.next().map(|()| steps);
        }
        self.tally.reseek();
        self.target.set(&self.key, Trailer::seek(self.seq));
        self.seek_on().map(|()| 0)
    }

    /// Shows `self.key` with the value to which the merge's entry refers.
    #[cold]
    fn show_made(&mut self, kind: EntryKind) -> Result<()> {
        if kind == EntryKind::Operand { self.fold_forward() } else { self.unwrap_forward() }?;
        self.tally.shown(self.key.len() + self.value.len());
        self.shown = Shown::Folded;
        Ok(())
    }

    /// Skips the keys that range tombstones cover around the deleted key `self.key`. The cursor meets and counts the
    /// remaining ones as before.
    #[cold]
    fn pass_covered(&mut self, direction: Direction) -> Result<()> {
        let Some(Stretch { run, forward, backward }) = self.mask.stretch(&self.key) else { return Ok(()) };
        perf::add(Metric::InternalRangeDelReseekCount, 1);
        match (direction, forward, backward) {
            (Direction::Forward, Some(to), _) => self.merge.pass_forward(run, to.as_key()),
            (Direction::Backward, _, Some(to)) => self.merge.pass_backward(run, to.as_key()),
            _ => Ok(()),
        }
    }

    /// Skips an entry of `self.key`, and, after `steps` of them, all remaining ones. Returns the number of steps so
    /// far.
    fn pass_one(&mut self, steps: usize) -> Result<usize> {
        if steps > SKIPS_MAX {
            return self.pass_versions().map(|()| 0);
        }
        self.merge.next().map(|()| steps)
    }

    /// Skips the remaining entries of `self.key`. A seek to the last possible trailer stops at an entry that has this
    /// trailer, a tombstone at sequence 0. From there the cursor steps, because a second seek would return to the first
    /// such entry.
    fn pass_versions(&mut self) -> Result<()> {
        if self.merge.key().is_some_and(|key| key.trailer() == Trailer::LAST) {
            return self.merge.next();
        }
        self.tally.reseek();
        let behind = InternalKeyBuf::new(&self.key, Trailer::LAST);
        self.merge.seek(behind.as_key())?;
        self.check_behind(behind.as_key())?;
        match self.merge.key() {
            Some(key) if key.user_key() == self.key.as_slice() => self.merge.next(),
            _ => Ok(()),
        }
    }

    /// Fetches the value to which the merge's entry refers.
    #[cold]
    fn unwrap_forward(&mut self) -> Result<()> {
        if let Some(entry) = self.merge.entry() {
            self.value = self.value_of(entry)?.into_owned();
            self.row = row_of(entry.key.trailer(), entry.value, false);
        }
        Ok(())
    }

    /// The value that an entry holds or refers to.
    fn value_of<'e>(&self, entry: Entry<'e>) -> Result<Cow<'e, [u8]>> {
        let (user_key, trailer) = entry.key.split();
        self.from.version.blobs().value(user_key, trailer.value_type(), entry.value, &self.how)
    }

    /// Starts at the newest visible entry of `self.key`, a merge operand, and goes on to the entries to which it
    /// applies. Leaves the combined value in `self.value`.
    #[cold]
    fn fold_forward(&mut self) -> Result<()> {
        let (mut operands, mut on_base) = (Operands::default(), false);
        while let Some(entry) = self.merge.entry() {
            let (user_key, trailer) = entry.key.split();
            if user_key != self.key.as_slice() || self.mask.hides(user_key, trailer.seq()) {
                break;
            }
            match entry_kind(trailer, user_key).map_err(|e| self.at_path(e))? {
                EntryKind::Operand => operands.push(entry.value),
                EntryKind::Value | EntryKind::Wrapped => {
                    on_base = true;
                    break;
                }
                EntryKind::Deleted => break,
            }
            self.merge.next()?;
        }
        let (mut base, mut row) = (None, None);
        if let Some(entry) = self.merge.entry().filter(|_| on_base) {
            base = Some(self.value_of(entry)?);
            row = row_of(entry.key.trailer(), entry.value, true);
        }
        perf::add(Metric::InternalMergeCount, operands.len() as u64);
        let _step = perf::time(Metric::MergeOperatorTimeNanos);
        self.value = self.from.merger.fold(&self.key, base.as_deref(), operands.iter().rev())?;
        self.row = row;
        Ok(())
    }

    /// Goes backward to before the entries of the first key to show, and copies that key. `passed`: all entries must be
    /// before `self.key`.
    fn show_backward(&mut self, mut passed: bool) -> Result<()> {
        let mut gone = 0;
        while let Some(entry) = self.merge.entry() {
            let user_key = entry.key.user_key();
            if self.range.is_before(&self.order, user_key) {
                return Ok(());
            }
            if passed {
                let place = self.order.compare(user_key, &self.key);
                if place.is_gt() || (place.is_eq() && user_key == self.key) {
                    return Err(self.out_of_order());
                }
            }
            passed = true;
            replace(&mut self.key, user_key);
            if self.newest_backward()? == EntryKind::Value {
                self.tally.shown(self.key.len() + self.value.len());
                self.shown = Shown::Copies;
                return Ok(());
            }
            gone += 1;
            self.tally.passed(Metric::InternalDeleteSkippedCount);
            if gone % SKIPS_MAX == 0 {
                self.pass_covered(Direction::Backward)?;
            }
        }
        Ok(())
    }

    /// Goes backward over all entries of `self.key`, oldest first, and leaves in `self.value` what the visible ones say.
    fn newest_backward(&mut self) -> Result<EntryKind> {
        let mut newest = Ok(EntryKind::Deleted);
        self.row = None;
        // The type of `self.value`, if it is not the value itself.
        let mut wrapped: Option<ValueType> = None;
        // The merge operands above the entry of `newest`, oldest first.
        let mut operands = Operands::default();
        let mut steps = 0;
        while let Some(entry) = self.merge.entry() {
            let (user_key, trailer) = entry.key.split();
            if user_key != self.key.as_slice() {
                break;
            }
            steps += 1;
            if steps > SKIPS_MAX {
                return self.newest_by_seek();
            }
            if is_visible(trailer, self.seq) {
                let hidden = self.mask.hides(user_key, trailer.seq());
                match if hidden { Ok(EntryKind::Deleted) } else { entry_kind(trailer, user_key) } {
                    Ok(EntryKind::Operand) => operands.push(entry.value),
                    decided => {
                        operands.clear();
                        newest = decided.map_err(|e| self.at_path(e));
                        if let Ok(kind @ (EntryKind::Value | EntryKind::Wrapped)) = newest {
                            replace(&mut self.value, entry.value);
                            wrapped = trailer.value_type().filter(|_| kind == EntryKind::Wrapped);
                        }
                    }
                }
            }
            self.merge.prev()?;
        }
        if let Ok(EntryKind::Wrapped) = newest {
            let blobs = self.from.version.blobs();
            let value = blobs.value(&self.key, wrapped, &self.value, &self.how)?.into_owned();
            let stored = std::mem::replace(&mut self.value, value);
            if wrapped == Some(ValueType::Entity) {
                self.row = Some(Row { stored, merged: !operands.is_empty() });
            }
            newest = Ok(EntryKind::Value);
        }
        if operands.is_empty() {
            return newest;
        }
        let base = (newest? == EntryKind::Value).then_some(&self.value[..]);
        self.value = self.from.merger.fold(&self.key, base, operands.iter())?;
        Ok(EntryKind::Value)
    }

    /// [`DbIter::newest_backward`] with two seeks instead of steps.
    #[cold]
    fn newest_by_seek(&mut self) -> Result<EntryKind> {
        let mut newest = EntryKind::Deleted;
        self.target.set(&self.key, Trailer::seek(self.seq));
        self.seek_on()?;
        if let Some(entry) = self.merge.entry()
            && entry.key.user_key() == self.key.as_slice()
            && !self.mask.hides(&self.key, entry.key.seq())
        {
            newest = entry_kind(entry.key.trailer(), &self.key).map_err(|e| self.at_path(e))?;
            replace(&mut self.value, entry.value);
        }
        if newest == EntryKind::Wrapped {
            self.unwrap_forward()?;
            newest = EntryKind::Value;
        }
        if newest == EntryKind::Operand {
            self.fold_forward()?;
            newest = EntryKind::Value;
        }
        self.target.set(&self.key, Trailer::FIRST);
        self.seek_back()?;
        Ok(newest)
    }

    #[cold]
    fn at_path(&self, e: Error) -> Error {
        match self.merge.path() {
            Some(path) => e.at_path(&path),
            None => e,
        }
    }
}

fn row_of(trailer: Trailer, stored: &[u8], merged: bool) -> Option<Row> {
    (trailer.value_type() == Some(ValueType::Entity)).then(|| Row { stored: stored.to_vec(), merged })
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
            let nothing = MergingIter::new(self.order.clone(), Vec::new());
            std::mem::forget(std::mem::replace(&mut self.merge, nothing));
            std::mem::forget(Arc::clone(&self.from));
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
