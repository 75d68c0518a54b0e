//! Forward moves.
//!
//! Entries that follow the shown one may be older versions of its key. Where the merge knows whether a step stayed on a user key,
//! the step skips them without a comparison. Elsewhere, and after the first entry that is not simply shown, `show_forward`
//! compares with a copy of the key.

use super::{DbIter, Passed, SKIPS_MAX, Shown, WAIT_MAX, replace};
use crate::iter::merging::Stepped;
use crate::iter::tally::Call;
use crate::visibility::{EntryKind, entry_kind, is_visible};
use ashlar_base::stats::perf::Metric;
use ashlar_base::{Direction, InternalKey, InternalKeyBuf, Order, Result, SeqNum, Trailer, ValueType};
use std::cmp::Ordering;

/// When a cursor tries to pass many deleted keys at once. A try has its price, so the cursor waits for twice as many keys after each try
/// that has passed nothing.
struct Tries {
    /// The number of deleted keys between the last try and the next one.
    wait: usize,
    /// The number of deleted keys after which the next try comes.
    next: usize,
}

impl Default for Tries {
    fn default() -> Self {
        Tries { wait: SKIPS_MAX, next: SKIPS_MAX }
    }
}

impl Tries {
    /// A try ended after `gone` deleted keys.
    fn tried(&mut self, gone: usize, success: bool) {
        self.wait = if success { 1 } else { (2 * self.wait).min(WAIT_MAX) };
        self.next = gone + self.wait;
    }
}

impl DbIter {
    /// Moves to the first key at or after `key`.
    pub fn seek(&mut self, key: &[u8]) -> Result<()> {
        self.position(Direction::Forward, |cursor| cursor.seek_to(key))
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
        if gaps && self.cx.state.from.mem.gap().end_of(Some(user_key), self.contents(), &mut self.key) {
            self.target.set(&self.key, Trailer::seek(self.seq));
        }
        let notes = gaps && self.may_note();
        if notes {
            // A seek that notes a gap must meet the entries of its first key that are newer than the read.
            self.target.set_trailer(Trailer::FIRST);
        }
        self.seek_on()?;
        self.show_first_noting(notes)?;
        if notes && self.passed.is_gap() {
            self.note_gap(Some(self.target.as_key().user_key()));
        }
        Ok(())
    }

    /// Shows the first key from here on. `notes`: the range that is passed will be noted.
    fn show_first_noting(&mut self, notes: bool) -> Result<()> {
        self.notes = notes && !matches!(self.order, Order::Custom(_));
        let shown = self.show_first();
        self.notes = false;
        shown
    }

    /// The contents that the cursor reads, for the gap.
    fn contents(&self) -> (u64, SeqNum) {
        (self.cx.state.from.contents, self.seq)
    }

    /// Whether the read sees all values of the memtable. Otherwise it cannot note a gap.
    fn may_note(&self) -> bool {
        self.cx.state.from.mem.gap().newest_value() <= self.seq
    }

    /// Notes that there is no key from `from` up to the shown one.
    #[cold]
    fn note_gap(&self, from: Option<&[u8]>) {
        // Off the end, `self.key` is the last deleted key.
        self.cx.state.from.mem.gap().note(from, self.key().unwrap_or(&self.key), self.contents());
    }

    /// Moves to the first key.
    pub fn first(&mut self) -> Result<()> {
        self.position(Direction::Forward, Self::seek_first)
    }

    fn seek_first(&mut self) -> Result<()> {
        if let Some((lower, trailer)) = self.range.begin(self.seq) {
            self.target.set(lower, trailer);
            return self.seek_past_gap();
        }
        let notes = self.whole && self.may_note();
        if self.whole && self.cx.state.from.mem.gap().end_of(None, self.contents(), &mut self.key) {
            self.target.set(&self.key, Trailer::FIRST);
            self.seek_on()?;
        } else {
            self.merge.first(&mut self.cx)?;
        }
        self.show_first_noting(notes)?;
        if notes && self.passed.is_gap() {
            self.note_gap(None);
        }
        Ok(())
    }

    /// Moves to the next key.
    #[inline]
    #[allow(
        clippy::should_implement_trait,
        reason = "a cursor, not an Iterator: it lends its entries and may fail"
    )]
    pub fn next(&mut self) -> Result<()> {
        self.next_any()?;
        if self.expiry.is_some() { self.pass_expired(Direction::Forward) } else { Ok(()) }
    }

    /// [`DbIter::next`], and the value may be over.
    #[inline]
    pub(super) fn next_any(&mut self) -> Result<()> {
        self.check_process()?;
        if self.shown != Shown::Merge {
            return self.step_forward();
        }
        if self.cx.mask.is_empty()
            && let Some(bytes) = self.merge.next_plain(self.seq)
        {
            let is_behind = |key: InternalKey<'_>| self.range.is_behind(&self.order, key.user_key());
            let ends = self.range.upper.is_some() && self.merge.key().is_none_or(is_behind);
            self.show_plain(Call::Next, bytes, ends);
            return Ok(());
        }
        self.step_known()
    }

    /// A step from the merge's entry: by what the merge knows of the keys, or with a copy of the shown key.
    #[inline]
    fn step_known(&mut self) -> Result<()> {
        if !self.merge.knows_keys() || self.merge.direction() == Direction::Backward {
            return self.step_forward();
        }
        let mut stepped = self.merge.next(&mut self.cx);
        for _ in 0..SKIPS_MAX {
            if !matches!(stepped, Ok(Stepped::Same)) {
                break;
            }
            // Older than the shown entry.
            self.tally.passed(Metric::InternalKeySkippedCount);
            stepped = self.merge.next(&mut self.cx);
        }
        if matches!(stepped, Ok(Stepped::Later)) && self.shows_as_is() {
            self.tally.called(Call::Next, true);
            return Ok(());
        }
        self.end_step(stepped)
    }

    /// On an entry of a later user key than the last shown one: whether the entry itself is shown. Counts it then.
    #[inline]
    fn shows_as_is(&mut self) -> bool {
        let Some(entry) = self.merge.entry() else { return false };
        let (user_key, trailer) = entry.key.split();
        let shows = trailer.value_type() == Some(ValueType::Put)
            && trailer.seq() <= self.seq
            && self.cx.mask.is_empty()
            && !self.range.is_behind(&self.order, user_key);
        if shows {
            self.tally.shown(user_key.len() + entry.value.len());
        }
        shows
    }

    /// Goes on from a step that did not meet an entry to show as it is.
    #[inline(never)]
    fn end_step(&mut self, stepped: Result<Stepped>) -> Result<()> {
        self.shown = Shown::Nothing;
        let outcome = match stepped? {
            Stepped::Off => Ok(()),
            Stepped::Misplaced => Err(self.out_of_order()),
            Stepped::Later | Stepped::Unknown => self.show_forward(false),
            Stepped::Same => {
                if let Some(key) = self.merge.key() {
                    replace(&mut self.key, key.user_key());
                }
                self.show_forward(true)
            }
        };
        self.tally.called(Call::Next, self.is_valid());
        outcome
    }

    #[inline(never)]
    fn step_forward(&mut self) -> Result<()> {
        match self.leave() {
            Shown::Nothing => return Ok(()),
            Shown::Merge => {
                self.merge_next()?;
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

    /// Moves the merge to its first entry at or after `self.target`.
    pub(super) fn seek_on(&mut self) -> Result<()> {
        self.merge.seek(&mut self.cx, self.target.as_key())?;
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

    /// Goes forward from the place of a seek to the first entry to show.
    fn show_first(&mut self) -> Result<()> {
        self.passed = Passed::default();
        self.show_forward(false)
    }

    /// The order of a user key beside `self.key`, and whether it is the same. `stepped`: how the merge came from there.
    #[inline]
    fn beside_key(&self, user_key: &[u8], stepped: Stepped) -> (Ordering, bool) {
        match stepped {
            Stepped::Later => (Ordering::Greater, false),
            Stepped::Same => (Ordering::Equal, true),
            _ => {
                let place = self.order.compare(user_key, &self.key);
                (place, place.is_eq() && user_key == self.key.as_slice())
            }
        }
    }

    /// Goes forward to the first entry to show. `skip`: skips entries of `self.key`; no entry may come before that key.
    fn show_forward(&mut self, mut skip: bool) -> Result<()> {
        self.row = None;
        let (mut steps, mut gone) = (0, 0);
        let mut tries = Tries::default();
        // How the merge came from the entry of `self.key` to its entry. At first, `self.key` counts only if it is skipped.
        let mut stepped = if skip { Stepped::Unknown } else { Stepped::Later };
        // Entries after a hidden entry of the same key are skipped with it.
        let mut behind = Metric::InternalKeySkippedCount;
        while let Some(entry) = self.merge.entry() {
            let (user_key, trailer) = entry.key.split();
            let (place, same) = self.beside_key(user_key, stepped);
            if same && skip {
                // Older than the shown or hidden entry.
                self.tally.passed(behind);
                (steps, stepped) = self.pass_one(steps + 1)?;
                continue;
            }
            if place.is_lt() {
                return Err(self.out_of_order());
            }
            if self.range.is_behind(&self.order, user_key) {
                return Ok(());
            }
            if is_visible(trailer, self.seq) {
                let hidden = self.cx.mask.hides(user_key, trailer.seq());
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
                        (skip, steps, gone) = (true, 0, gone + 1);
                        self.passed.gone = gone;
                        behind = Metric::InternalDeleteSkippedCount;
                        if gone >= tries.next {
                            let covered = self.pass_covered(Direction::Forward)?;
                            let passed = self.pass_many()?;
                            gone += passed;
                            tries.tried(gone, covered || passed > 0);
                            self.passed.gone = gone;
                            stepped = Stepped::Unknown;
                        } else {
                            (steps, stepped) = self.pass_deleted()?;
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
                (skip, steps) = (false, 1);
            }
            (steps, stepped) = self.pass_newer(steps)?;
        }
        Ok(())
    }

    /// Skips a deletion, and the first [`SKIPS_MAX`] older entries of its key as far as the merge knows them by their steps. Returns
    /// the number of those entries, and the last step.
    #[inline]
    fn pass_deleted(&mut self) -> Result<(usize, Stepped)> {
        let mut older = 0;
        let mut stepped = self.merge_next()?;
        while stepped == Stepped::Same && older < SKIPS_MAX {
            older += 1;
            stepped = self.merge_next()?;
        }
        self.tally.passed_many(Metric::InternalDeleteSkippedCount, 1 + older as u64);
        Ok((older, stepped))
    }

    /// Skips the deletions that follow `self.key`, whose own deletion is counted already. First choice: deletions with no entry of another
    /// run between them. Otherwise: deletions of the same run, with the entries that they hide. Returns the number of deleted keys that
    /// were passed one by one.
    #[cold]
    fn pass_many(&mut self) -> Result<usize> {
        let upper = self.range.upper.as_deref();
        if let Some(alone) = self.merge.pass_deletions(&mut self.cx, self.seq, upper)? {
            self.tally.passed_many(Metric::InternalDeleteSkippedCount, alone as u64);
            return Ok(alone);
        }
        // Later seeks skip a range that is noted, so its blocks would only take the place of others in the cache.
        let fills = self.cx.state.how.fill_cache;
        self.cx.state.how.fill_cache = fills && !self.notes;
        let passed = self.merge.pass_shadowed(&mut self.cx, self.seq, upper, &mut self.key);
        self.cx.state.how.fill_cache = fills;
        let passed = passed?;
        self.tally.passed_many(Metric::InternalDeleteSkippedCount, passed.entries as u64);
        if passed.misplaced { Err(self.out_of_order()) } else { Ok(passed.keys.saturating_sub(1)) }
    }

    /// Skips an entry that is too new for this read, and, after `steps` of one key, all such entries of `self.key`.
    /// Returns the number of steps so far, and the last one.
    fn pass_newer(&mut self, steps: usize) -> Result<(usize, Stepped)> {
        if steps <= SKIPS_MAX {
            return self.merge_next().map(|stepped| (steps, stepped));
        }
        self.tally.reseek();
        self.target.set(&self.key, Trailer::seek(self.seq));
        self.seek_on().map(|()| (0, Stepped::Unknown))
    }

    /// Shows `self.key` with the value to which the merge's entry refers.
    #[cold]
    fn show_made(&mut self, kind: EntryKind) -> Result<()> {
        if kind == EntryKind::Operand { self.fold_forward() } else { self.unwrap_forward() }?;
        self.tally.shown(self.key.len() + self.value.len());
        self.shown = Shown::Folded;
        Ok(())
    }

    /// Skips an entry of `self.key`, and, after `steps` of them, all remaining ones. Returns the number of steps so
    /// far, and the last one.
    fn pass_one(&mut self, steps: usize) -> Result<(usize, Stepped)> {
        if steps > SKIPS_MAX {
            return self.pass_versions().map(|stepped| (0, stepped));
        }
        self.merge_next().map(|stepped| (steps, stepped))
    }

    /// Skips the remaining entries of `self.key`. A seek to the last possible trailer stops at an entry that has this
    /// trailer, a tombstone at sequence 0. From there the cursor steps, because a second seek would return to the first
    /// such entry.
    fn pass_versions(&mut self) -> Result<Stepped> {
        if self.merge.key().is_some_and(|key| key.trailer() == Trailer::LAST) {
            return self.merge_next();
        }
        self.tally.reseek();
        let behind = InternalKeyBuf::new(&self.key, Trailer::LAST);
        self.merge.seek(&mut self.cx, behind.as_key())?;
        self.check_behind(behind.as_key())?;
        match self.merge.key() {
            Some(key) if key.user_key() == self.key.as_slice() => self.merge_next(),
            _ => Ok(Stepped::Unknown),
        }
    }
}
