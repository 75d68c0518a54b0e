//! What the threads of a case did and found. Its lock is the machine's: no step is made under it.

use ashlar_base::error::IoKind;
use ashlar_base::{Error, ErrorKind, SeqNum};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// An acknowledged batch.
#[derive(Clone, Copy, Debug)]
pub struct Ack {
    /// Whose.
    pub writer: usize,
    /// Which.
    pub number: u64,
    /// Its last operation.
    pub seq: SeqNum,
    /// Whether it was acknowledged as durable.
    pub synced: bool,
    /// Changing calls of the file system before that. None: `manual_wal_flush` may hold it back; what is acknowledged behind it
    /// and is not held back promises it too.
    pub calls: Option<u64>,
}

#[derive(Default)]
struct Entries {
    started: Vec<u64>,
    acks: Vec<Ack>,
    closing: bool,
    close_failed: bool,
    findings: Vec<String>,
}

/// The log.
pub struct Log {
    /// Whether a call is made to fail: then operations may fail.
    pub faulty: bool,
    entries: Mutex<Entries>,
}

impl Log {
    /// The log of a case with so many writers.
    pub fn new(writers: usize, faulty: bool) -> Log {
        let entries = Entries { started: vec![0; writers], ..Entries::default() };
        Log { faulty, entries: Mutex::new(entries) }
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A writer begins with its next batch.
    pub fn start(&self, writer: usize, number: u64) {
        self.entries().started[writer] = number;
    }

    /// A batch was acknowledged.
    pub fn ack(&self, ack: Ack) {
        self.entries().acks.push(ack);
    }

    /// The last batches that were begun.
    pub fn started(&self) -> Vec<u64> {
        self.entries().started.clone()
    }

    /// All that was acknowledged.
    pub fn acks(&self) -> Vec<Ack> {
        self.entries().acks.clone()
    }

    /// The last batches that were acknowledged.
    pub fn acknowledged(&self) -> Vec<u64> {
        let entries = self.entries();
        let mut last = vec![0; entries.started.len()];
        entries.acks.iter().for_each(|ack| last[ack.writer] = last[ack.writer].max(ack.number));
        last
    }

    /// From now on operations may find the database closed.
    pub fn close_begins(&self) {
        self.entries().closing = true;
    }

    /// A close said that it may have lost what was held back.
    pub fn close_failed(&self, e: &Error) {
        self.entries().close_failed = true;
        self.failed("close", e);
    }

    /// What must be there after the close.
    pub fn kept(&self) -> Vec<Ack> {
        let entries = self.entries();
        let durable = |ack: &&Ack| !entries.close_failed || ack.calls.is_some();
        let last = entries.acks.iter().filter(durable).map(|ack| ack.seq).max();
        entries.acks.iter().filter(|ack| Some(ack.seq) <= last).copied().collect()
    }

    /// Something that must not be.
    pub fn find(&self, what: String) {
        self.entries().findings.push(what);
    }

    /// All of that.
    pub fn findings(&self) -> Vec<String> {
        std::mem::take(&mut self.entries().findings)
    }

    /// An operation failed: that is found, unless it had this reason to.
    pub fn failed(&self, operation: &str, e: &Error) {
        let expected = match e.kind() {
            ErrorKind::Shutdown(_) => self.entries().closing,
            ErrorKind::Io(IoKind::Other) | ErrorKind::Indeterminate => self.faulty,
            _ => false,
        };
        if !expected {
            self.find(format!("{operation}: {e}"));
        }
    }
}
