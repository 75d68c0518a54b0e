//! The one loop of flush and compaction: merge, rule, sink; resumable after any entry.
//!
//! 1. Entries of the merge ascend: user key by the order, then trailer descending. What does not is damage and stops
//!    the rewrite; the same internal key twice (a repaired database may have it) counts once, from the newest run.
//! 2. The sink sees only survivors, in the same order, held-back tombstones before the older version that needs them, and
//!    merge operands as the value they fold into where that is known.
//! 3. After an error or `Done` the loop does nothing more.

use super::fold::Operands;
use super::merge::Merge;
use super::retention::{Retention, Rule, Verdict};
use ashlar_base::ext::comparator::{BytewiseOrder, CustomOrder, KeyOrder, ReverseBytewiseOrder};
use ashlar_base::planted::{Bug, planted};
use ashlar_base::{Error, InternalKey, InternalKeyBuf, Order, Result, RunCursor, Trailer, ValueType};
use std::cmp::Ordering;

/// Where survivors go.
pub trait EntrySink: Send {
    /// Takes the next survivor. `first`: no version of this user key was added before.
    ///
    /// # Errors
    /// Those of writing; the sink is of no use afterwards.
    fn add(&mut self, key: InternalKey<'_>, value: &[u8], first: bool) -> Result<()>;
    /// Looks at an entry of the input that may point to blobs, whatever becomes of it. One that is there twice comes once:
    /// the blob that the second points to is not garbage because the entry is dropped.
    ///
    /// # Errors
    /// `Corruption`: it does not decode.
    fn note_read(&mut self, _key: InternalKey<'_>, _value: &[u8]) -> Result<()> {
        Ok(())
    }
    /// All survivors were added.
    ///
    /// # Errors
    /// As [`EntrySink::add`].
    fn finish(&mut self) -> Result<()>;
}

/// Where a rewrite stands after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// There is more to do.
    More,
    /// All is written and the sink is finished.
    Done,
}

/// What a rewrite read and dropped. Bytes are those of encoded keys and values, uncompressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RewriteCounters {
    /// Entries read.
    pub entries_in: u64,
    /// Entries handed to the sink.
    pub entries_out: u64,
    /// Entries dropped because a newer version or a range tombstone hides them.
    pub dropped_hidden: u64,
    /// Merge operands, and what they were applied to, that were folded into a value: as many as that is less.
    pub folded: u64,
    /// Tombstones dropped because nothing older is left.
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

/// A rewrite in progress, whatever its order: what jobs hold.
pub trait Rewrite<S>: Send {
    /// Handles entries until about `budget_bytes` of input are done. The last step finishes the sink.
    ///
    /// # Errors
    /// Those of the runs and of the sink; `Corruption` when a run is out of order; `NotSupported` for a kind of
    /// entry that must not be rewritten by this engine.
    fn step(&mut self, budget_bytes: usize) -> Result<Progress>;
    /// What was done so far.
    fn counters(&self) -> RewriteCounters;
    /// The sink.
    fn sink(&mut self) -> &mut S;
}

/// Starts a rewrite of `runs` (newest first, positioned) in `order`; the order is matched here, once per job.
/// `shared_prefix`: a length that all user keys share; 0 is always right.
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

/// The length of the common prefix of two user keys; with the smallest and the largest key of all runs, a prefix
/// that every key between them has in both built-in orders.
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

/// The user key under work. What is held back is newer than the operands.
pub(super) struct KeyState {
    pub(super) user_key: Vec<u8>,
    begun: bool,
    last: Trailer,
    emitted: bool,
    held: Vec<Trailer>,
    pub(super) operands: Operands,
    scratch: InternalKeyBuf,
}

/// How an entry stands to the one before it.
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
            // Damage does not change what a comparator says of the same two keys.
            said if order.cmp(user_key, &self.user_key) != said.reverse() => {
                Err(contradiction(&self.user_key, user_key))
            }
            _ => Err(out_of_order(&self.user_key, user_key)),
        }
    }

    /// Returns how many tombstones of the former key were not needed.
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

    /// [`KeyState::emit`] of an entry that is not in the input like this.
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

    /// Hands a survivor, and before it the tombstones held back for it, to the sink; returns how many entries.
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
