//! Backward moves.
//!
//! The merge meets the versions of a key oldest first. If the next entry is known to be of another key, the entry is the
//! newest of its key and is shown in place. Otherwise the cursor passes all entries of the key, and shows copies.

use super::resolve::Row;
use super::{DbIter, SKIPS_MAX, Shown, replace};
use crate::iter::tally::Call;
use crate::merge::Operands;
use crate::visibility::{EntryKind, entry_kind, is_visible};
use ashlar_base::stats::perf::Metric;
use ashlar_base::{Direction, InternalKey, Result, Trailer, ValueType};

impl DbIter {
    /// Moves to the last key at or before `key`.
    pub fn seek_for_prev(&mut self, key: &[u8]) -> Result<()> {
        self.position(Direction::Backward, |cursor| cursor.seek_back_to(key))
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

    /// Moves to the last key.
    pub fn last(&mut self) -> Result<()> {
        self.position(Direction::Backward, Self::seek_last)
    }

    fn seek_last(&mut self) -> Result<()> {
        match self.range.end() {
            Some((upper, trailer)) => {
                self.target.set(upper, trailer);
                self.seek_back()?;
            }
            None => self.merge.last(&mut self.cx)?,
        }
        self.show_backward(false)
    }

    /// Moves to the preceding key.
    #[inline]
    pub fn prev(&mut self) -> Result<()> {
        self.prev_any()?;
        if self.expiry.is_some() { self.pass_expired(Direction::Backward) } else { Ok(()) }
    }

    /// [`DbIter::prev`], and the value may be over.
    #[inline]
    pub(super) fn prev_any(&mut self) -> Result<()> {
        self.check_process()?;
        if self.shown == Shown::Merge
            && self.cx.mask.is_empty()
            && let Some(bytes) = self.merge.prev_plain(self.seq)
        {
            let is_before = |key: InternalKey<'_>| self.range.is_before(&self.order, key.user_key());
            let ends = self.range.lower.is_some() && self.merge.key().is_none_or(is_before);
            self.show_plain(Call::Prev, bytes, ends);
            return Ok(());
        }
        self.step_backward()
    }

    #[inline(never)]
    fn step_backward(&mut self) -> Result<()> {
        // Whether every entry that follows must be checked to be before `self.key`.
        let mut after_key = true;
        match self.leave() {
            Shown::Nothing => return Ok(()),
            Shown::Merge if self.merge.direction() == Direction::Backward => {
                // The check that showed the entry in place has compared the entries before it with its key.
                after_key = false;
                self.merge_prev()?;
            }
            Shown::Merge | Shown::Folded => {
                self.target.set(&self.key, Trailer::FIRST);
                self.seek_back()?;
            }
            Shown::Copies => {}
        }
        let outcome = self.show_backward(after_key);
        self.tally.called(Call::Prev, self.is_valid());
        outcome
    }

    /// Moves the merge to its last entry at or before `self.target`.
    pub(super) fn seek_back(&mut self) -> Result<()> {
        self.merge.seek_for_prev(&mut self.cx, self.target.as_key())?;
        match self.merge.key() {
            Some(key) if self.order.compare_internal(key, self.target.as_key()).is_gt() => {
                Err(self.out_of_order())
            }
            _ => Ok(()),
        }
    }

    /// Goes backward to the first key to show. `passed`: all entries must be before `self.key`.
    fn show_backward(&mut self, mut passed: bool) -> Result<()> {
        self.row = None;
        let mut gone = 0;
        while let Some(entry) = self.merge.entry() {
            let (user_key, trailer) = entry.key.split();
            if self.range.is_before(&self.order, user_key) {
                return Ok(());
            }
            if passed {
                let place = self.order.compare(user_key, &self.key);
                if place.is_gt() || (place.is_eq() && user_key == self.key) {
                    return Err(self.out_of_order());
                }
            }
            if trailer.value_type() == Some(ValueType::Put)
                && is_visible(trailer, self.seq)
                && self.merge.is_newest()
                && !self.cx.mask.hides(user_key, trailer.seq())
            {
                self.tally.shown(user_key.len() + entry.value.len());
                self.shown = Shown::Merge;
                return Ok(());
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
                let hidden = self.cx.mask.hides(user_key, trailer.seq());
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
            self.merge_prev()?;
        }
        if let Ok(EntryKind::Wrapped) = newest {
            let blobs = self.cx.state.from.version.blobs();
            let value = blobs.value(&self.key, wrapped, &self.value, &self.cx.state.how)?.into_owned();
            let stored = std::mem::replace(&mut self.value, value);
            if wrapped == Some(ValueType::Entity) {
                self.row = Some(Row { stored, merged: !operands.is_empty() });
            }
            newest = Ok(EntryKind::Value);
        }
        self.charge_copies();
        if operands.is_empty() {
            return newest;
        }
        let base = (newest? == EntryKind::Value).then_some(&self.value[..]);
        let from = &self.cx.state.from;
        let _charge = operands.charge(from.version.tables().budget());
        self.value = from.merger.fold(&self.key, base, operands.iter())?;
        self.charge_copies();
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
            && !self.cx.mask.hides(&self.key, entry.key.seq())
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
}
