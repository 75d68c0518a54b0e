//! The measurements of a thread, and the line of a benchmark.
//!
//! 1. micros/op is the sum of the threads' times over all operations; ops/sec and MB/s are over the time from the first start
//!    to the last end. MB are 1048576 bytes.
//! 2. Only the first of several messages is shown: `found` and `read` are those of one thread, as in db_bench.

use ashlar_base::stats::Histogram;
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::time::Duration;

/// The kind of an operation, for the histograms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OpKind {
    /// A get, or a step of a scan.
    Read,
    /// A put, or a batch of them.
    Write,
    /// A delete.
    Delete,
    /// A seek with its steps.
    Seek,
    /// A merge.
    Merge,
    /// A get and a put of the same key.
    Update,
    /// Anything else.
    Other,
}

impl OpKind {
    /// The heading of the histogram.
    pub fn name(self) -> &'static str {
        match self {
            OpKind::Read => "read",
            OpKind::Write => "write",
            OpKind::Delete => "delete",
            OpKind::Seek => "seek",
            OpKind::Merge => "merge",
            OpKind::Update => "update",
            OpKind::Other => "op",
        }
    }
}

/// The work of one thread, or of several together. Times are those of the clock.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ThreadStats {
    /// The start of the work.
    pub start: Duration,
    /// The end of the work.
    pub finish: Duration,
    /// Operations.
    pub done: u64,
    /// Bytes of keys and values read or written; 0 if they are not counted.
    pub bytes: u64,
    /// Sum of the threads' times.
    pub busy: Duration,
    /// Shown at the end of the line.
    pub message: Option<String>,
    /// Latencies in microseconds, if requested.
    pub histograms: BTreeMap<OpKind, Histogram>,
}

impl ThreadStats {
    /// The statistics of a thread that begins at `now`.
    pub fn begin(now: Duration) -> Self {
        ThreadStats { start: now, finish: now, ..Self::default() }
    }

    /// Records the end of the thread.
    pub fn end(&mut self, now: Duration) {
        self.finish = now;
        self.busy = now.saturating_sub(self.start);
    }

    /// The sum over all threads. `None`: there are no threads.
    pub fn together(threads: Vec<ThreadStats>) -> ThreadStats {
        threads.into_iter().reduce(ThreadStats::and).unwrap_or_default()
    }

    fn and(mut self, other: ThreadStats) -> ThreadStats {
        self.start = self.start.min(other.start);
        self.finish = self.finish.max(other.finish);
        self.done += other.done;
        self.bytes += other.bytes;
        self.busy += other.busy;
        self.message = self.message.or(other.message);
        for (kind, histogram) in &other.histograms {
            self.histograms.entry(*kind).or_default().merge(histogram);
        }
        self
    }
}

/// The figures of a finished benchmark.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The name.
    pub name: String,
    /// Thread time per operation.
    pub micros_per_op: f64,
    /// Operations per second of wall time.
    pub ops_per_sec: f64,
    /// Wall time.
    pub seconds: f64,
    /// Operations.
    pub operations: u64,
    /// Bytes per second of wall time over 1048576; `None` where bytes are not counted.
    pub mb_per_sec: Option<f64>,
    /// Shown at the end of the line.
    pub message: Option<String>,
    /// Latencies, if requested.
    pub histograms: BTreeMap<OpKind, Histogram>,
    /// Operations in each whole second, if requested.
    pub per_second: Vec<u64>,
}

impl Measured {
    /// The figures of all threads together.
    pub fn new(name: &str, all: ThreadStats) -> Self {
        // A benchmark without operations still prints a line, which says so.
        let operations = all.done;
        let seconds = all.finish.saturating_sub(all.start).as_secs_f64();
        let per_second = |amount: f64| if seconds > 0.0 { amount / seconds } else { 0.0 };
        Measured {
            name: name.to_owned(),
            micros_per_op: all.busy.as_secs_f64() * 1e6 / operations.max(1) as f64,
            ops_per_sec: per_second(operations as f64),
            seconds,
            operations,
            mb_per_sec: (all.bytes > 0).then(|| per_second(all.bytes as f64 / 1_048_576.0)),
            message: all.message,
            histograms: all.histograms,
            per_second: Vec::new(),
        }
    }
}

/// The line, then the histograms. Ends with a newline.
impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Measured { name, micros_per_op, seconds, operations, .. } = self;
        let mut extra = String::new();
        if let Some(rate) = self.mb_per_sec {
            write!(extra, " {rate:6.1} MB/s")?;
        }
        if let Some(message) = &self.message {
            write!(extra, " {message}")?;
        }
        let whole = self.ops_per_sec.trunc();
        writeln!(
            f,
            "{name:<12} : {micros_per_op:11.3} micros/op {whole:.0} ops/sec {seconds:.3} seconds {operations} operations;{extra}"
        )?;
        for (kind, histogram) in &self.histograms {
            writeln!(f, "Microseconds per {}:\n{histogram}", kind.name())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(start_ms: u64, end_ms: u64, done: u64, bytes: u64) -> ThreadStats {
        let mut s = ThreadStats::begin(Duration::from_millis(start_ms));
        (s.done, s.bytes) = (done, bytes);
        s.end(Duration::from_millis(end_ms));
        s
    }

    /// The sample line of RocksDB 7.8.3, from its own figures.
    #[test]
    fn prints_the_sample() {
        let measured = Measured {
            name: "readrandom".into(),
            micros_per_op: 20.984,
            ops_per_sec: 94410.4,
            seconds: 2.023,
            operations: 190_998,
            mb_per_sec: Some(10.44),
            message: Some("(86999 of 86999 found)".into()),
            histograms: BTreeMap::new(),
            per_second: Vec::new(),
        };
        assert_eq!(
            measured.to_string(),
            "readrandom   :      20.984 micros/op 94410 ops/sec 2.023 seconds 190998 operations;   10.4 MB/s (86999 of 86999 found)\n"
        );
    }

    /// The fields by which the scripts find the numbers.
    #[test]
    fn scripts_find_their_fields() {
        let line = Measured::new("fillseq", thread(0, 500, 1000, 116_000)).to_string();
        let fields: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(
            (fields[2], fields[4], fields[7], fields[10]),
            ("500.000", "2000", "seconds", "0.2"),
            "{line}"
        );
        let no_bytes = Measured::new("deleteseq", thread(0, 500, 1000, 0)).to_string();
        assert_eq!(
            no_bytes,
            "deleteseq    :     500.000 micros/op 2000 ops/sec 0.500 seconds 1000 operations;\n"
        );
        let long = Measured::new("readwhilewriting", thread(0, 1, 1, 0)).to_string();
        assert!(long.starts_with("readwhilewriting :    1000.000 micros/op 1000 ops/sec"), "{long}");
    }

    #[test]
    fn threads_add_up() {
        let mut second = thread(100, 1100, 30, 5 << 20);
        second.message = Some("(2 of 3 found)".into());
        let all = ThreadStats::together(vec![thread(0, 500, 10, 5 << 20), second]);
        let m = Measured::new("x", all);
        assert_eq!((m.operations, m.seconds, m.micros_per_op), (40, 1.1, 1.5e6 / 40.0));
        assert_eq!(m.ops_per_sec.trunc(), 36.0);
        assert!((m.mb_per_sec.unwrap() - 10.0 / 1.1).abs() < 1e-9);
        assert_eq!(m.message.as_deref(), Some("(2 of 3 found)"));
    }

    #[test]
    fn nothing_done_is_no_division_by_zero() {
        let line = Measured::new("readseq", thread(5, 5, 0, 0)).to_string();
        assert_eq!(line, "readseq      :       0.000 micros/op 0 ops/sec 0.000 seconds 0 operations;\n");
    }

    #[test]
    fn histograms_follow_the_line() {
        let mut s = thread(0, 1, 1, 0);
        s.histograms.entry(OpKind::Write).or_default().add(3);
        let text = Measured::new("fillseq", s).to_string();
        assert!(text.contains("operations;\nMicroseconds per write:\nCount: 1 Average: 3.0000"), "{text}");
        assert!(
            text.ends_with("(       2,       3 ]        1 100.000% 100.000% ####################\n\n"),
            "{text}"
        );
    }
}
