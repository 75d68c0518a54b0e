//! The loop of flush and compaction: merge, rule, sink; resumable after any entry.
//!
//! 1. Entries of the merge ascend: by user key in the order, then by trailer descending. An entry out of order is
//!    damage and stops the rewrite. If an internal key occurs twice (possible in a repaired database), the entry of the
//!    newest run counts.
//! 2. The sink gets only survivors, in the same order. A held-back tombstone comes before the older version that needs
//!    it. Merge operands are folded into one value where that value is known.
//! 3. A user's filter, if there is one, decides on what the rule keeps; see `filter`.
//! 4. After an error or `Done` the loop does nothing more.

use super::filter::Filtering;
use super::key_state::{KeyState, Relation};
use super::merge::Merge;
use super::operands::Operands;
use super::retention::{Retention, Rule, Verdict};
use super::sink::{EntrySink, RewriteCounters};
use ashlar_base::ext::comparator::{BytewiseOrder, CustomOrder, KeyOrder, ReverseBytewiseOrder};
use ashlar_base::planted::{Bug, planted};
use ashlar_base::{Error, Order, Result, RunCursor, Trailer, ValueType};

/// The state of a rewrite after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// More entries are left.
    More,
    /// All entries are written and the sink is finished.
    Done,
}

/// A rewrite in progress, for any key order; jobs hold this type.
pub trait Rewrite<S>: Send {
    /// Handles entries until about `budget_bytes` of input are done. The last step finishes the sink.
    ///
    /// # Errors
    /// Those of the runs and of the sink; `Corruption` when a run is out of order; `NotSupported` for a kind of entry
    /// that this engine must not rewrite; `Aborted`, `InvalidArgument` of a compaction filter.
    fn step(&mut self, budget_bytes: usize) -> Result<Progress>;
    /// The counts so far.
    fn counters(&self) -> RewriteCounters;
    /// The sink.
    fn sink(&mut self) -> &mut S;
}

/// Starts a rewrite of `runs` (newest first, positioned) in `order`; the concrete order type is chosen here, once per
/// job. `shared_prefix`: a length of a prefix that all user keys share; 0 is always correct.
///
/// # Errors
/// Those of the first windows of the runs.
pub fn start<S: EntrySink + 'static>(
    order: &Order,
    shared_prefix: usize,
    runs: Vec<Box<dyn RunCursor>>,
    retention: Retention,
    sink: S,
) -> Result<Box<dyn Rewrite<S>>> {
    start_filtered(order, shared_prefix, runs, retention, None, sink)
}

/// [`start`] with a compaction filter.
///
/// # Errors
/// As [`start`].
pub fn start_filtered<S: EntrySink + 'static>(
    order: &Order,
    shared_prefix: usize,
    runs: Vec<Box<dyn RunCursor>>,
    retention: Retention,
    filter: Option<Filtering>,
    sink: S,
) -> Result<Box<dyn Rewrite<S>>> {
    Ok(match order {
        Order::Bytewise => {
            let new = RewriteLoop::new(BytewiseOrder, shared_prefix, runs, retention, sink)?;
            Box::new(new.filtered_by(filter))
        }
        Order::ReverseBytewise => {
            let new = RewriteLoop::new(ReverseBytewiseOrder, shared_prefix, runs, retention, sink)?;
            Box::new(new.filtered_by(filter))
        }
        Order::Custom(c) => {
            let new = RewriteLoop::new(CustomOrder(c.clone()), 0, runs, retention, sink)?;
            Box::new(new.filtered_by(filter))
        }
    })
}

/// The length of the common prefix of two user keys. If these are the smallest and the largest key of all runs, every
/// key between them has that prefix, in both built-in orders.
pub fn shared_prefix(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(x, y)| x == y).count()
}

/// The loop for one order and one sink.
pub struct RewriteLoop<C: KeyOrder, S> {
    order: C,
    merge: Merge<C>,
    rule: Rule<C>,
    key: KeyState,
    sink: S,
    counters: RewriteCounters,
    finished: bool,
}

impl<C: KeyOrder, S: EntrySink> RewriteLoop<C, S> {
    /// See [`start`].
    ///
    /// # Errors
    /// Those of the first windows of the runs.
    pub fn new(
        order: C,
        shared_prefix: usize,
        runs: Vec<Box<dyn RunCursor>>,
        retention: Retention,
        sink: S,
    ) -> Result<Self> {
        let (operator, blobs) = (retention.operator.clone(), retention.blobs.clone());
        let key = KeyState::new(Operands::new(operator, blobs, sink.budget()));
        let rule = Rule::new(order.clone(), retention);
        let merge = Merge::new(order.clone(), shared_prefix, runs)?;
        Ok(RewriteLoop {
            order,
            merge,
            rule,
            key,
            sink,
            counters: RewriteCounters::default(),
            finished: false,
        })
    }

    /// Asks `filter` about the survivors.
    fn filtered_by(mut self, filter: Option<Filtering>) -> Self {
        self.rule.filter = filter.map(Box::new);
        self
    }

    /// Ends the last key and finishes the sink.
    fn end(&mut self) -> Result<Progress> {
        self.key.end_chain(&mut self.rule, &mut self.sink, &mut self.counters)?;
        self.counters.dropped_tombstones += self.key.held.len() as u64;
        self.key.held.clear();
        self.sink.finish()?;
        Ok(Progress::Done)
    }

    /// One step. Compiled twice, so that a loop without a filter has no trace of one.
    fn run<const FILTERED: bool>(&mut self, budget_bytes: usize) -> Result<Progress> {
        let mut left = budget_bytes;
        loop {
            let Some(mut entry) = self.merge.entry() else { return self.end() };
            let (user_key, trailer) = entry.key.split();
            let bytes = entry.key.encoded().len() + entry.value.len();
            self.counters.entries_in += 1;
            self.counters.bytes_in += bytes as u64;
            match self.key.relation(&self.order, user_key, trailer)? {
                Relation::NewKey => {
                    self.key.end_chain(&mut self.rule, &mut self.sink, &mut self.counters)?;
                    self.counters.dropped_tombstones += self.key.begin(entry.key);
                    self.rule.begin_key();
                }
                Relation::OlderVersion => {}
                Relation::Duplicate => {
                    self.counters.dropped_hidden += 1;
                    self.merge.advance()?;
                    continue;
                }
            }
            if matches!(trailer.value_type(), Some(ValueType::BlobIndex | ValueType::Entity)) {
                self.sink.note_read(entry.key, entry.value)?;
            }
            self.key.last = trailer;
            let mut verdict = self.rule.decide(user_key, trailer);
            let mut trailer = trailer;
            let new_value;
            if FILTERED && let Verdict::Keep(kept) = verdict {
                new_value = self.rule.pass_filter(entry, kept, &mut trailer, &mut verdict)?;
                entry.value = new_value.as_deref().unwrap_or(entry.value);
            }
            if self.key.operands.may_fold(trailer) && verdict != Verdict::Folded {
                verdict =
                    self.key.chain(&mut self.rule, &mut self.sink, entry, verdict, &mut self.counters)?;
            }
            match verdict {
                Verdict::Folded => {}
                Verdict::Keep(_) if planted(Bug::KeyLostInRewrite) && trailer.seq().get() % 64 == 9 => {}
                Verdict::Keep(kept) => {
                    let emitted = self.key.emit(&mut self.sink, entry.key, kept, entry.value)?;
                    self.counters.entries_out += emitted;
                }
                Verdict::Hold => self.key.held.push(trailer),
                Verdict::Drop => self.counters.dropped_hidden += 1,
                Verdict::Refuse => return Err(refused(trailer)),
            }
            self.merge.advance()?;
            left = left.saturating_sub(bytes);
            if left == 0 {
                return Ok(Progress::More);
            }
        }
    }
}

impl<C: KeyOrder, S: EntrySink> Rewrite<S> for RewriteLoop<C, S> {
    fn step(&mut self, budget_bytes: usize) -> Result<Progress> {
        if self.finished {
            return Ok(Progress::Done);
        }
        let outcome = match self.rule.filter {
            None => self.run::<false>(budget_bytes),
            Some(_) => self.run::<true>(budget_bytes),
        };
        self.finished = !matches!(outcome, Ok(Progress::More));
        outcome
    }

    fn counters(&self) -> RewriteCounters {
        let (filtered, filter_changed) = self.rule.filter.as_ref().map_or((0, 0), |filter| filter.counts());
        RewriteCounters { filtered, filter_changed, ..self.counters }
    }

    fn sink(&mut self) -> &mut S {
        &mut self.sink
    }
}

#[cold]
fn refused(trailer: Trailer) -> Error {
    match trailer.value_type() {
        Some(kind) => Error::not_supported(format!("{kind:?} entries in flush and compaction")),
        None => Error::not_supported(format!("value type {:#04x} in compaction", trailer.type_byte())),
    }
}

#[cfg(test)]
#[path = "drive_tests.rs"]
pub(super) mod tests;
