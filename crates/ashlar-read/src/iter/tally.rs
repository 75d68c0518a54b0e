//! The counts of a cursor: summed up in the cursor, added to the statistics when it is dropped.

use ashlar_base::stats::perf::{self, Metric};
use ashlar_base::stats::{Statistics, Ticker};

/// The direction of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    Seek,
    Next,
    Prev,
}

/// Calls of one kind.
#[derive(Clone, Copy, Debug, Default)]
struct Calls {
    made: u64,
    found: u64,
}

/// The counts of one cursor.
#[derive(Debug, Default)]
pub(super) struct IterTally {
    seek: Calls,
    next: Calls,
    prev: Calls,
    bytes: u64,
    skipped: u64,
    reseeks: u64,
}

impl IterTally {
    /// Counts a finished call, on an entry or off the end.
    #[inline]
    pub(super) fn called(&mut self, call: Call, found: bool) {
        let calls = match call {
            Call::Seek => &mut self.seek,
            Call::Next => &mut self.next,
            Call::Prev => &mut self.prev,
        };
        calls.made += 1;
        calls.found += u64::from(found);
        if perf::counts() {
            tell(call);
        }
    }

    /// Counts a shown entry with its length in bytes.
    #[inline]
    pub(super) fn shown(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
        perf::add(Metric::IterReadBytes, bytes as u64);
    }

    /// Counts a skipped entry, with the reason.
    #[inline]
    pub(super) fn passed(&mut self, why: Metric) {
        self.skipped += 1;
        perf::add(why, 1);
    }

    /// Counts `entries` skipped entries.
    pub(super) fn passed_many(&mut self, why: Metric, entries: u64) {
        self.skipped += entries;
        perf::add(why, entries);
    }

    /// Counts a seek that skipped entries.
    pub(super) fn reseek(&mut self) {
        self.reseeks += 1;
    }

    /// Adds the counts to the statistics.
    pub(super) fn hand_over(&self, to: &Statistics) {
        for (ticker, n) in [
            (Ticker::NumberDbSeek, self.seek.made),
            (Ticker::NumberDbSeekFound, self.seek.found),
            (Ticker::NumberDbNext, self.next.made),
            (Ticker::NumberDbNextFound, self.next.found),
            (Ticker::NumberDbPrev, self.prev.made),
            (Ticker::NumberDbPrevFound, self.prev.found),
            (Ticker::DbIterBytesRead, self.bytes),
            (Ticker::NumberIterSkip, self.skipped),
            (Ticker::NumberReseeksIteration, self.reseeks),
            (Ticker::NumIteratorDeleted, 1),
        ] {
            if n > 0 {
                to.add(ticker, n);
            }
        }
    }
}

#[cold]
fn tell(call: Call) {
    let metric = match call {
        Call::Seek => Metric::IterSeekCount,
        Call::Next => Metric::IterNextCount,
        Call::Prev => Metric::IterPrevCount,
    };
    perf::add(metric, 1);
}
