//! The trace of a search: the runs that the search asked, and their answers. Only an explained read keeps one.

use ashlar_base::stats::perf::Context;
use ashlar_base::{FileNumber, Level, SeqNum, Trailer};

/// A run that the search asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbedRun {
    /// The memtable that takes writes.
    Memtable,
    /// An immutable memtable; 0 is the newest.
    Immutable(usize),
    /// A table.
    Table(Level, FileNumber),
}

/// An entry of the key in a run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Met {
    /// The entry's sequence number and type.
    pub trailer: Trailer,
    /// The length of its value in bytes.
    pub bytes: usize,
}

/// The answer of one run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Probe {
    /// Which.
    pub run: ProbedRun,
    /// The entries that were met, newest first.
    pub met: Vec<Met>,
    /// The newest range tombstone over the key in this run and those before it.
    pub covered_at: Option<SeqNum>,
    /// The cost of the search in this run.
    pub cost: Context,
}

/// The runs that a search asked, in order.
#[derive(Debug)]
pub struct Trace {
    /// One per run.
    pub steps: Vec<Probe>,
    start: Context,
}

impl Trace {
    /// A trace without runs. The thread must count: see [`ashlar_base::stats::perf::Watch`].
    pub fn new() -> Trace {
        Trace { steps: Vec::new(), start: Context::now() }
    }

    /// The next run is asked.
    pub(super) fn begin(&mut self, run: ProbedRun) {
        self.end();
        let cost = Context::now().since(&self.start);
        self.steps.push(Probe { run, met: Vec::new(), covered_at: None, cost });
    }

    /// The current run has an entry of the key.
    pub(super) fn met(&mut self, trailer: Trailer, bytes: usize) {
        if let Some(step) = self.steps.last_mut() {
            step.met.push(Met { trailer, bytes });
        }
    }

    /// The current run, or one before it, has a range tombstone over the key.
    pub(super) fn covered(&mut self, at: Option<SeqNum>) {
        if let Some(step) = self.steps.last_mut() {
            step.covered_at = at;
        }
    }

    /// Ends the trace after the last run.
    pub(super) fn end(&mut self) {
        let now = Context::now();
        if let Some(step) = self.steps.last_mut() {
            step.cost = now.since(&self.start);
        }
        self.start = now;
    }
}

impl Default for Trace {
    fn default() -> Self {
        Self::new()
    }
}
