//! The writers' queue: who leads, who waits.

use crate::options::WriteOptions;
use crate::wal::Wal;
use ashlar_base::planted::{Bug, planted};
use ashlar_base::{Error, Result, SeqNum};
use ashlar_format::write_batch::BatchEncoder;
use ashlar_memtable::WriterSlot;
use ashlar_sync::{Mutex, Rank, Signal};
use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

/// What a committed writer needs to know: its last sequence, and where its record ends in which log.
#[derive(Clone)]
pub(super) struct Receipt {
    pub(super) last: SeqNum,
    pub(super) log_end: Option<(Arc<Wal>, u64)>,
}

/// What comes of waiting.
pub(super) enum Turn {
    /// A leader did the work.
    Done(Result<Receipt>),
    /// The lead was handed over.
    Lead,
}

/// A writer in the queue.
pub(super) struct Waiter {
    /// `None`: it does not want to write but to lead alone.
    pub(super) work: Option<(Mutex<BatchEncoder>, WriteOptions)>,
    turn: OnceLock<Turn>,
    signal: Signal,
}

impl Waiter {
    pub(super) fn new(work: Option<(BatchEncoder, WriteOptions)>, signal: Signal) -> Arc<Waiter> {
        let work = work.map(|(batch, options)| (Mutex::new(Rank::Statistics, batch), options));
        Arc::new(Waiter { work, turn: OnceLock::new(), signal })
    }

    /// Takes the batch out, to commit it.
    pub(super) fn take_batch(&self) -> BatchEncoder {
        self.work.as_ref().map(|(batch, _)| std::mem::take(&mut *batch.lock())).unwrap_or_default()
    }

    pub(super) fn give(&self, turn: Turn) {
        let _ = self.turn.set(turn);
        self.signal.notify();
    }

    /// Waits for the turn.
    pub(super) fn wait(&self) -> &Turn {
        loop {
            let mut seen = self.signal.seen();
            if let Some(turn) = self.turn.get() {
                return turn;
            }
            if planted(Bug::WakeUpLost) {
                seen = self.signal.seen();
            }
            if let ashlar_sync::Waited::Stuck = self.signal.wait(seen, None) {
                self.give(Turn::Done(Err(Error::new(
                    ashlar_base::ErrorKind::Aborted,
                    "a writer waits for a leader that can never finish",
                ))));
            }
        }
    }
}

/// What a leader carries from group to group, so that it is allocated once.
#[derive(Default)]
pub(super) struct Scratch {
    /// Write hints, one per family of the set.
    pub(super) slots: Vec<WriterSlot>,
}

struct State {
    busy: bool,
    waiting: VecDeque<Arc<Waiter>>,
    scratch: Option<Box<Scratch>>,
}

/// The queue. Its lock is held for a few instructions only.
pub(super) struct Queue {
    state: Mutex<State>,
}

impl Queue {
    pub(super) fn new() -> Self {
        let state = State { busy: false, waiting: VecDeque::new(), scratch: Some(Box::default()) };
        Queue { state: Mutex::new(Rank::Switch, state) }
    }

    /// Takes the lead if nobody has it.
    pub(super) fn try_lead(&self) -> bool {
        let mut s = self.state.lock();
        !std::mem::replace(&mut s.busy, true)
    }

    /// Queues up. True when the lead became free meanwhile: then the waiter leads and is not queued.
    pub(super) fn enqueue(&self, waiter: &Arc<Waiter>) -> bool {
        let mut s = self.state.lock();
        if !std::mem::replace(&mut s.busy, true) {
            return true;
        }
        s.waiting.push_back(Arc::clone(waiter));
        false
    }

    /// The writers behind the leader, up to `limit_bytes` of payload and to the first that wants to lead alone.
    pub(super) fn take_group(&self, limit_bytes: usize) -> Vec<Arc<Waiter>> {
        let mut s = self.state.lock();
        let (mut group, mut bytes) = (Vec::new(), 0);
        while let Some(next) = s.waiting.front() {
            let Some((batch, _)) = &next.work else { break };
            bytes += batch.lock().byte_len();
            if bytes > limit_bytes {
                break;
            }
            group.extend(s.waiting.pop_front());
        }
        group
    }

    pub(super) fn take_scratch(&self) -> Box<Scratch> {
        self.state.lock().scratch.take().unwrap_or_default()
    }

    pub(super) fn return_scratch(&self, scratch: Box<Scratch>) {
        self.state.lock().scratch = Some(scratch);
    }

    /// Ends the lead: hands it to the next writer, if one waits.
    pub(super) fn hand_over(&self) {
        let next = {
            let mut s = self.state.lock();
            let next = s.waiting.pop_front();
            s.busy = next.is_some();
            next
        };
        if let Some(next) = next {
            next.give(Turn::Lead);
        }
    }
}
