//! Asks a user's compaction filter about the entries that the rule keeps.
//!
//! 1. Only values, entities and merge operands are asked about, and only those that no snapshot of the rewrite sees. What a
//!    snapshot sees stays, with everything that the snapshot needs beneath it.
//! 2. A value under merge operands that stay is not asked about, because no read returns it. If the operands fold into a
//!    value, that value is asked about.
//! 3. A removed value becomes a tombstone at its sequence, under the rule for tombstones: it stays while something older may
//!    lie beneath. So no older version comes back.
//! 4. A removed operand goes without a trace. So does everything that a skip removes, which is how RocksDB defines a skip;
//!    tombstones in a skipped range stay.
//! 5. A panic of the filter is an error of the rewrite. A blob that cannot be read is kept: its readers get the error.
//!
//! Source: RocksDB `db/compaction/compaction_iterator.cc` (`InvokeFilterIfNeeded`), `db/merge_helper.cc` (behaviour). RocksDB
//! asks the filter about entries that snapshots see, too.

use super::retention::{Rule, Verdict};
use ashlar_base::ext::compaction_filter::{CompactionFilter, Decision, FilterContext, FilterSource};
use ashlar_base::ext::comparator::KeyOrder;
use ashlar_base::panics::contained;
use ashlar_base::planted::{Bug, planted};
use ashlar_base::{Entry, Error, ErrorKind, Result, SeqNum, Trailer, ValueType};
use ashlar_format::value_suffix::{put_preferred, split_preferred};
use ashlar_table::{MAX_ENTRY_BYTES, ReadHow};
use ashlar_tree::blobs::BlobFiles;
use std::sync::Arc;

/// The filter of one rewrite.
#[derive(Debug)]
pub struct Filtering {
    filter: Option<Arc<dyn CompactionFilter>>,
    family: String,
    blobs: Arc<BlobFiles>,
    /// The last key with an operand that stays and that no snapshot sees.
    covered: Option<Vec<u8>>,
    /// Values and operands with a key before this one go.
    skip_until: Option<Vec<u8>>,
    removed: u64,
    changed: u64,
}

/// What becomes of an entry that the rule keeps.
pub(super) enum Judged {
    /// It stays.
    AsItIs,
    /// It stays with this trailer and value.
    Changed(Trailer, Vec<u8>),
    /// This tombstone takes its place, under this verdict.
    Removed(Trailer, Verdict),
    /// It goes.
    Gone,
}

impl Filtering {
    /// The filter that `source` has for this rewrite; `None`: it has none. `blobs`: the blob files that entries refer to.
    ///
    /// # Errors
    /// `Aborted`: the factory panicked.
    pub fn new(
        source: &FilterSource,
        context: &FilterContext<'_>,
        blobs: Arc<BlobFiles>,
    ) -> Result<Option<Filtering>> {
        let family = context.family_name.to_owned();
        let made = contained(|| source.filter_for(context)).ok_or_else(|| {
            let name = contained(|| source.name().to_owned()).unwrap_or_default();
            panicked(&format!("the compaction filter factory {name:?} of family {family:?} panicked"))
        })?;
        Ok(made.map(|filter| Filtering {
            filter: Some(filter),
            family,
            blobs,
            covered: None,
            skip_until: None,
            removed: 0,
            changed: 0,
        }))
    }

    /// How many values and operands were removed, and how many were changed.
    pub(super) fn counts(&self) -> (u64, u64) {
        (self.removed, self.changed)
    }

    fn judge<C: KeyOrder>(&mut self, rule: &mut Rule<C>, entry: Entry<'_>, kept: Trailer) -> Result<Judged> {
        let (key, trailer) = entry.key.split();
        let Some(kind) = trailer.value_type() else { return Ok(Judged::AsItIs) };
        let is_operand = kind == ValueType::Merge;
        if !rule.is_unseen(trailer.seq()) || !(is_operand || is_value(kind)) {
            return Ok(Judged::AsItIs);
        }
        let same = |covered: &Vec<u8>| rule.order().cmp(covered, key).is_eq();
        if !is_operand && self.covered.as_ref().is_some_and(same) {
            return Ok(Judged::AsItIs);
        }
        if self.skips(rule.order(), key) {
            self.removed += 1;
            return Ok(Judged::Gone);
        }
        let judged = self.judge_alone(rule, (key, trailer, kind), kept.seq(), entry.value)?;
        if is_operand && matches!(judged, Judged::AsItIs | Judged::Changed(..)) {
            let covered = self.covered.get_or_insert_default();
            covered.clear();
            covered.extend_from_slice(key);
        }
        Ok(judged)
    }

    /// The filter's decision on a value that operands were folded into, with the trailer and the bytes of its entry.
    fn judge_folded<C: KeyOrder>(
        &mut self,
        rule: &mut Rule<C>,
        key: &[u8],
        trailer: Trailer,
        stored: &[u8],
    ) -> Result<Judged> {
        match trailer.value_type().filter(|_| rule.is_unseen(trailer.seq())) {
            Some(kind) => self.judge_alone(rule, (key, trailer, kind), trailer.seq(), stored),
            None => Ok(Judged::AsItIs),
        }
    }

    /// The filter's decision on an entry, whatever else there is of its key. A changed entry gets the sequence number `seq`.
    fn judge_alone<C: KeyOrder>(
        &mut self,
        rule: &mut Rule<C>,
        (key, trailer, kind): (&[u8], Trailer, ValueType),
        seq: SeqNum,
        stored: &[u8],
    ) -> Result<Judged> {
        let judged = match self.decide(rule.order(), key, kind, stored)? {
            Decision::Keep => return Ok(Judged::AsItIs),
            Decision::Change(new) => {
                let (kind, new) = self.change(key, kind, stored, new)?;
                return Ok(Judged::Changed(Trailer::new(seq, kind), new));
            }
            Decision::Remove if kind != ValueType::Merge => {
                let (tombstone, verdict) = rule.removed(key, trailer);
                Judged::Removed(tombstone, verdict)
            }
            Decision::Remove | Decision::RemoveAndSkipUntil(_) => Judged::Gone,
        };
        self.removed += 1;
        Ok(judged)
    }

    /// Whether an earlier decision removes `key` too. Keys ascend.
    fn skips<C: KeyOrder>(&mut self, order: &C, key: &[u8]) -> bool {
        let Some(until) = &self.skip_until else { return false };
        let skips = order.cmp(key, until).is_lt();
        if !skips {
            self.skip_until = None;
        }
        skips
    }

    /// Asks the filter. Notes the end of a skip; a skip that reaches no further key is [`Decision::Keep`].
    fn decide<C: KeyOrder>(
        &mut self,
        order: &C,
        key: &[u8],
        kind: ValueType,
        stored: &[u8],
    ) -> Result<Decision> {
        let Some(filter) = &self.filter else { return Ok(Decision::Keep) };
        let asked = contained(|| ask(&**filter, &self.blobs, key, kind, stored));
        let decision = asked.ok_or_else(|| {
            panicked(&format!("{} panicked at key '{}'", self.subject(), key.escape_ascii()))
        })?;
        if let Decision::RemoveAndSkipUntil(until) = &decision {
            if order.cmp(until, key).is_le() {
                return Ok(Decision::Keep);
            }
            self.skip_until = Some(until.clone());
        }
        Ok(decision)
    }

    /// The kind and the stored bytes of an entry of `kind` with another value.
    fn change(
        &mut self,
        key: &[u8],
        kind: ValueType,
        old: &[u8],
        mut new: Vec<u8>,
    ) -> Result<(ValueType, Vec<u8>)> {
        let kind = match (kind, split_preferred(old)) {
            (ValueType::Merge, _) => ValueType::Merge,
            (ValueType::TimedPut, Ok((_, time))) => {
                put_preferred(&mut new, time);
                ValueType::TimedPut
            }
            _ => ValueType::Put,
        };
        if key.len() + size_of::<Trailer>() + new.len() > MAX_ENTRY_BYTES {
            let text = format!(
                "{} made a value of {} bytes at key '{}', and no table takes that",
                self.subject(),
                new.len(),
                key.escape_ascii()
            );
            return Err(Error::invalid(text).hint("Return smaller values; the compaction changed nothing"));
        }
        self.changed += 1;
        Ok((kind, new))
    }

    fn subject(&self) -> String {
        let name = self.filter.as_ref().and_then(|filter| contained(|| filter.name().to_owned()));
        format!("the compaction filter {:?} of family {:?}", name.unwrap_or_default(), self.family)
    }
}

impl Drop for Filtering {
    /// The last reference to a filter may be here, and its own drop may panic.
    fn drop(&mut self) {
        let filter = self.filter.take();
        let _ = contained(|| drop(filter));
    }
}

impl<C: KeyOrder> Rule<C> {
    /// What becomes of an entry that [`Rule::decide`] keeps with the trailer `kept`.
    ///
    /// # Errors
    /// `Aborted`: the filter panicked. `InvalidArgument`: it made a value that is too large.
    fn filtered(&mut self, entry: Entry<'_>, kept: Trailer) -> Result<Judged> {
        let Some(mut filter) = self.filter.take() else { return Ok(Judged::AsItIs) };
        let judged = filter.judge(self, entry, kept);
        self.filter = Some(filter);
        judged
    }

    /// Applies [`Rule::filtered`] to an entry: changes its trailer and verdict, and returns the new value if it has one.
    /// [`Verdict::Folded`]: the entry goes.
    ///
    /// # Errors
    /// As [`Rule::filtered`].
    #[cold]
    pub(super) fn pass_filter(
        &mut self,
        entry: Entry<'_>,
        kept: Trailer,
        trailer: &mut Trailer,
        verdict: &mut Verdict,
    ) -> Result<Option<Vec<u8>>> {
        Ok(match self.filtered(entry, kept)? {
            Judged::AsItIs => None,
            Judged::Changed(kept, value) => {
                *verdict = Verdict::Keep(kept);
                Some(value)
            }
            Judged::Removed(tombstone, left) => {
                (*trailer, *verdict) = (tombstone, left);
                Some(Vec::new())
            }
            Judged::Gone => {
                *verdict = Verdict::Folded;
                None
            }
        })
    }

    /// What becomes of a value that operands were folded into.
    ///
    /// # Errors
    /// As [`Rule::filtered`].
    pub(super) fn folded(&mut self, key: &[u8], trailer: Trailer, stored: &[u8]) -> Result<Judged> {
        let Some(mut filter) = self.filter.take() else { return Ok(Judged::AsItIs) };
        let judged = filter.judge_folded(self, key, trailer, stored);
        self.filter = Some(filter);
        judged
    }

    /// Whether no snapshot sees `seq`.
    fn is_unseen(&self, seq: SeqNum) -> bool {
        self.stripe(seq) == self.snapshot_count() || planted(Bug::FilterOverSnapshot)
    }
}

fn is_value(kind: ValueType) -> bool {
    matches!(kind, ValueType::Put | ValueType::BlobIndex | ValueType::TimedPut | ValueType::Entity)
}

fn ask(
    filter: &dyn CompactionFilter,
    blobs: &BlobFiles,
    key: &[u8],
    kind: ValueType,
    stored: &[u8],
) -> Decision {
    match kind {
        ValueType::Put => filter.filter(key, stored),
        ValueType::Merge => filter.filter_merge_operand(key, stored),
        ValueType::Entity if !filter.filters_entities() => Decision::Keep,
        ValueType::Entity => match blobs.columns(key, Some(kind), stored, ReadHow::plain()) {
            Ok(columns) => filter.filter_entity(key, &columns.iter().collect::<Vec<_>>()),
            Err(_) => Decision::Keep,
        },
        _ => {
            let by_key = if kind == ValueType::BlobIndex { filter.filter_blob_by_key(key) } else { None };
            by_key.unwrap_or_else(|| match blobs.value(key, Some(kind), stored, ReadHow::plain()) {
                Ok(value) => filter.filter(key, &value),
                Err(_) => Decision::Keep,
            })
        }
    }
}

#[cold]
fn panicked(what: &str) -> Error {
    Error::new(ErrorKind::Aborted, what)
        .hint("Correct the filter; the compaction changed nothing and is tried again")
}

#[cfg(test)]
#[path = "filter_tests.rs"]
mod tests;
