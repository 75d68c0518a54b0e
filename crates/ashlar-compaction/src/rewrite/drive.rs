//! The loop of flush and compaction: merge, rule, sink; resumable after any entry.
//!
//! 1. Entries of the merge ascend: by user key in the order, then by trailer descending. An entry out of order is
//!    damage and stops the rewrite. If an internal key occurs twice (possible in a repaired database), the entry of the
//!    newest run counts.
//! 2. The sink gets only survivors, in the same order. A held-back tombstone comes before the older version that needs
//!    it. Merge operands are folded into one value where that value is known.
//! 3. After an error or `Done` the loop does nothing more.

use super::fold::Operands;
use super::merge::Merge;
use super::retention::{Retention, Rule, Verdict};
use ashlar_base::ext::comparator::{BytewiseOrder, CustomOrder, KeyOrder, ReverseBytewiseOrder};
use ashlar_base::planted::{Bug, planted};
use ashlar_base::{Error, InternalKey, InternalKeyBuf, Order, Result, RunCursor, Trailer, ValueType};
use std::cmp::Ordering;

/// The receiver of survivors.
pub trait EntrySink: Send {
    /// Takes the next survivor. `first`: no version of this user key was added before.
    ///
    /// # Errors
    /// Those of writing; the sink must not be used afterwards.
    fn add(&mut self, key: InternalKey<'_>, value: &[u8], first: bool) -> Result<()>;
    /// Reads an input entry that may refer to blobs, whether the entry survives or not. A duplicate entry is passed
    /// only once: dropping the duplicate makes no garbage.
    ///
    /// # Errors
    /// `Corruption`: the entry does not decode.
    fn note_read(&mut self, _key: InternalKey<'_>, _value: &[u8]) -> Result<()> {
        Ok(())
    }
    /// Finishes the sink after the last survivor.
    ///
    /// # Errors
    /// As [`EntrySink::add`].
    fn finish(&mut self) -> Result<()>;
}

/// The state of a rewrite after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// More entries are left.
    More,
    /// All entries are written and the sink is finished.
    Done,
}

/// The counts of a rewrite. Bytes are those of encoded keys and values, uncompressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RewriteCounters {
    /// Entries read.
    pub entries_in: u64,
    /// Entries passed to the sink.
    pub entries_out: u64,
    /// Entries dropped because a newer version or a range tombstone hides them.
    pub dropped_hidden: u64,
    /// The number of entries saved by folding merge operands, and the values they apply to, into one value.
    pub folded: u64,
    /// Tombstones dropped because no older version is left.
    pub dropped_tombstones: u64,
    /// Bytes of the entries read.
    pub bytes_in: u64,
}

impl std::ops::AddAssign for RewriteCounters {
    fn add_assign(&mut self, other: Self) {
        self.entries_in += other.entries_in;
        self.entries_out += other.entries_out;
        self.dropped_hidden += other.dropped_hidden;
        self.folded += other.folded;
        self.dropped_tombstones += other.dropped_tombstones;
        self.bytes_in += other.bytes_in;
    }
}

/// A rewrite in progress, for any key order; jobs hold this type.
pub trait Rewrite<S>: Send {
    /// Handles entries until about `budget_bytes` of input are done. The last step finishes the sink.
    ///
    /// # Errors
    /// Those of the runs and of the sink; `Corruption` when a run is out of order; `NotSupported` for a kind of entry
    /// that this engine must not rewrite.
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
    Ok(match order {
        Order::Bytewise => Box::new(RewriteLoop::new(BytewiseOrder, shared_prefix, runs, retention, sink)?),
        Order::ReverseBytewise => {
            Box::new(RewriteLoop::new(ReverseBytewiseOrder, shared_prefix, runs, retention, sink)?)
        }
        Order::Custom(c) => Box::new(RewriteLoop::new(CustomOrder(c.clone()), 0, runs, retention, sink)?),
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

/// The current user key. Held-back tombstones are newer than the operands.
pub(super) struct KeyState {
    pub(super) user_key: Vec<u8>,
    begun: bool,
    last: Trailer,
    emitted: bool,
    held: Vec<Trailer>,
    pub(super) operands: Operands,
    scratch: InternalKeyBuf,
}

/// The relation of an entry to the previous one.
enum Step {
    NewKey,
    OlderVersion,
    Duplicate,
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
        let key = KeyState {
            user_key: Vec::new(),
            begun: false,
            last: Trailer::FIRST,
            emitted: false,
            held: Vec::new(),
            operands: Operands::new(retention.operator.clone(), retention.blobs.clone()),
            scratch: InternalKeyBuf::new(&[], Trailer::LAST),
        };
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

    fn run(&mut self, budget_bytes: usize) -> Result<Progress> {
        let mut left = budget_bytes;
        loop {
            let Some(entry) = self.merge.entry() else {
                self.key.end_chain(&mut self.rule, &mut self.sink, &mut self.counters)?;
                self.counters.dropped_tombstones += self.key.held.len() as u64;
                self.key.held.clear();
                self.sink.finish()?;
                return Ok(Progress::Done);
            };
            let (user_key, trailer) = entry.key.split();
            let bytes = entry.key.encoded().len() + entry.value.len();
            self.counters.entries_in += 1;
            self.counters.bytes_in += bytes as u64;
            match self.key.place(&self.order, user_key, trailer)? {
                Step::NewKey => {
                    self.key.end_chain(&mut self.rule, &mut self.sink, &mut self.counters)?;
                    self.counters.dropped_tombstones += self.key.begin(user_key);
                    self.rule.begin_key();
                }
                Step::OlderVersion => {}
                Step::Duplicate => {
                    self.counters.dropped_hidden += 1;
                    self.merge.advance()?;
                    continue;
                }
            }
            if matches!(trailer.value_type(), Some(ValueType::BlobIndex | ValueType::Entity)) {
                self.sink.note_read(entry.key, entry.value)?;
            }
            self.key.last = trailer;
            let mut verdict = self.rule.judge(user_key, trailer);
            if self.key.operands.concern(trailer) {
                verdict =
                    self.key.chain(&mut self.rule, &mut self.sink, entry, verdict, &mut self.counters)?;
            }
            match verdict {
                Verdict::Taken => {}
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
        let outcome = self.run(budget_bytes);
        self.finished = !matches!(outcome, Ok(Progress::More));
        outcome
    }

    fn counters(&self) -> RewriteCounters {
        self.counters
    }

    fn sink(&mut self) -> &mut S {
        &mut self.sink
    }
}

impl KeyState {
    #[inline]
    fn place<C: KeyOrder>(&self, order: &C, user_key: &[u8], trailer: Trailer) -> Result<Step> {
        if !self.begun {
            return Ok(Step::NewKey);
        }
        match order.cmp(&self.user_key, user_key) {
            Ordering::Less => Ok(Step::NewKey),
            Ordering::Equal if trailer < self.last => Ok(Step::OlderVersion),
            Ordering::Equal if trailer == self.last => Ok(Step::Duplicate),
            // A damaged entry compares consistently in both directions; a comparator that contradicts itself does not.
            said if order.cmp(user_key, &self.user_key) != said.reverse() => {
                Err(contradiction(&self.user_key, user_key))
            }
            _ => Err(out_of_order(&self.user_key, user_key)),
        }
    }

    /// Begins the next key; returns how many held-back tombstones of the previous key were not needed.
    #[inline]
    fn begin(&mut self, user_key: &[u8]) -> u64 {
        let unneeded = self.held.len() as u64;
        self.held.clear();
        self.user_key.clear();
        self.user_key.extend_from_slice(user_key);
        self.begun = true;
        self.emitted = false;
        unneeded
    }

    /// [`KeyState::emit`] of an entry that is not in the input in this form.
    #[cold]
    pub(super) fn emit_parts<S: EntrySink>(
        &mut self,
        sink: &mut S,
        trailer: Trailer,
        value: &[u8],
    ) -> Result<u64> {
        let held = self.held.len() as u64;
        self.emit_held(sink)?;
        self.scratch.set(&self.user_key, trailer);
        sink.add(self.scratch.as_key(), value, !self.emitted)?;
        self.emitted = true;
        Ok(held + 1)
    }

    /// Passes a survivor to the sink, and before it the tombstones held back for it; returns the number of entries.
    #[inline]
    fn emit<S: EntrySink>(
        &mut self,
        sink: &mut S,
        key: InternalKey<'_>,
        kept: Trailer,
        value: &[u8],
    ) -> Result<u64> {
        let held = self.held.len() as u64;
        if held > 0 {
            self.emit_held(sink)?;
        }
        let first = !self.emitted;
        self.emitted = true;
        if kept == self.last {
            sink.add(key, value, first)?;
        } else {
            self.scratch.set(&self.user_key, kept);
            sink.add(self.scratch.as_key(), value, first)?;
        }
        Ok(held + 1)
    }

    #[cold]
    fn emit_held<S: EntrySink>(&mut self, sink: &mut S) -> Result<()> {
        for trailer in self.held.drain(..) {
            self.scratch.set(&self.user_key, trailer);
            sink.add(self.scratch.as_key(), &[], !self.emitted)?;
            self.emitted = true;
        }
        Ok(())
    }
}

#[cold]
fn out_of_order(last: &[u8], next: &[u8]) -> Error {
    Error::corruption(format!("keys out of order: {} after {}", next.escape_ascii(), last.escape_ascii()))
        .hint("Verify the tables with their checksums")
}

#[cold]
fn contradiction(last: &[u8], next: &[u8]) -> Error {
    let (last, next) = (last.escape_ascii(), next.escape_ascii());
    Error::invalid(format!("the comparator contradicts itself on the keys {last} and {next}"))
        .hint("Correct the comparator, and open the database again: the tables are not damaged")
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
