//! An explained read: the runs it asked, their answers, and the cost.

use super::get::get_traced;
use super::trace::{Probe, ProbedRun, Trace};
use crate::iter::{DbIter, KeyBounds};
use crate::super_version::SuperVersion;
use ashlar_base::stats::Ticks;
use ashlar_base::stats::perf::{Context, Level as PerfLevel, Metric, Watch};
use ashlar_base::{FileNumber, Level, LookupKey, Result, SeqNum, Trailer, ValueType};
use ashlar_options::ReadOptions;
use std::fmt;
use std::sync::Arc;

/// An explained get: the memtables and tables it asked, their answers, and the cost. Prints as text.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct GetExplained {
    key: Vec<u8>,
    seq: SeqNum,
    steps: Vec<Probe>,
    /// Tables whose bounds leave the key out, by level.
    out_of_bounds: Vec<(Level, usize)>,
    value: Option<usize>,
    cost: Context,
}

/// Gets `key` and explains the read.
///
/// # Errors
/// Those of the get.
pub fn explain_get(
    from: &SuperVersion,
    key: &LookupKey<'_>,
    options: &ReadOptions,
    ticks: Ticks,
) -> Result<GetExplained> {
    let watch = Watch::begin(PerfLevel::EnableTime, ticks);
    let mut trace = Trace::new();
    let value = get_traced(from, key, options, &mut trace)?;
    let asked = |number: FileNumber| {
        trace.steps.iter().any(|step| matches!(step.run, ProbedRun::Table(_, asked) if asked == number))
    };
    let version = &from.version;
    let mut out_of_bounds = Vec::new();
    for (level, files) in (0u8..).zip(&version.levels).filter(|(_, files)| !files.is_empty()) {
        let outside = |f: &&Arc<ashlar_tree::version::FileMeta>| {
            !f.holds(&version.order, key.user_key) && !asked(f.number())
        };
        let count = files.iter().filter(outside).count();
        if count > 0 {
            out_of_bounds.push((Level(level), count));
        }
    }
    Ok(GetExplained {
        key: key.user_key.to_vec(),
        seq: key.seq,
        steps: trace.steps,
        out_of_bounds,
        value: value.map(|v| v.len()),
        cost: watch.seen(),
    })
}

impl GetExplained {
    /// The runs that were asked, in order.
    pub fn steps(&self) -> &[Probe] {
        &self.steps
    }

    /// The length of the value in bytes; `None`: the key has no value.
    pub fn value_bytes(&self) -> Option<usize> {
        self.value
    }

    /// The cost of the whole get.
    pub fn cost(&self) -> &Context {
        &self.cost
    }
}

impl fmt::Display for GetExplained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "get '{}' at sequence {}", self.key.escape_ascii(), self.seq)?;
        for step in &self.steps {
            writeln!(f, "  {:<18} {}", run_text(&step.run), step_text(step))?;
        }
        for (level, tables) in &self.out_of_bounds {
            writeln!(
                f,
                "  {:<18} {} not asked: the key is outside of their bounds",
                format!("level {}", level.0),
                tables_text(*tables)
            )?;
        }
        match self.value {
            Some(bytes) => writeln!(f, "found: a value of {bytes} bytes")?,
            None => writeln!(f, "not found")?,
        }
        cost_lines(f, &self.cost, Metric::GetFromMemtableTime, Metric::GetFromOutputFilesTime)
    }
}

fn run_text(run: &ProbedRun) -> String {
    match run {
        ProbedRun::Memtable => "memtable".to_owned(),
        ProbedRun::Immutable(at) => format!("immutable memtable {at}"),
        ProbedRun::Table(level, number) => format!("level {} table {}", level.0, number.0),
    }
}

fn tables_text(n: usize) -> String {
    if n == 1 { "1 table".to_owned() } else { format!("{n} tables") }
}

/// What a run answered, and by what.
fn step_text(step: &Probe) -> String {
    let mut parts = Vec::new();
    let of = |metric| step.cost.get(metric);
    if of(Metric::BloomSstMissCount) > 0 {
        parts.push("filter: it is not there".to_owned());
    }
    if of(Metric::BloomSstHitCount) > 0 {
        let vain =
            if step.met.is_empty() { "filter: it may be there (in vain)" } else { "filter: it may be there" };
        parts.push(vain.to_owned());
    }
    let (hits, misses) = (of(Metric::BlockCacheHitCount), of(Metric::BlockCacheMissCount));
    if hits + misses > 0 {
        parts.push(format!("blocks: {hits} from the cache, {misses} read"));
    }
    for met in &step.met {
        parts.push(entry_text(met.trailer, met.bytes));
    }
    if step.met.is_empty() && parts.is_empty() {
        parts.push("no entry".to_owned());
    }
    if let Some(seq) = step.covered_at {
        parts.push(format!("under a range tombstone at sequence {seq}"));
    }
    parts.join("; ")
}

fn entry_text(trailer: Trailer, bytes: usize) -> String {
    let seq = trailer.seq();
    match trailer.value_type() {
        Some(ValueType::Put | ValueType::TimedPut) => format!("value of {bytes} bytes at sequence {seq}"),
        Some(ValueType::Merge) => format!("merge operand of {bytes} bytes at sequence {seq}"),
        Some(ValueType::BlobIndex) => format!("value in a blob file at sequence {seq}"),
        Some(ValueType::Entity) => format!("entity of {bytes} bytes at sequence {seq}"),
        _ => format!("tombstone at sequence {seq}"),
    }
}

/// The cost of a read. The times come last, so that a comparison can leave them out.
fn cost_lines(f: &mut fmt::Formatter<'_>, cost: &Context, first: Metric, second: Metric) -> fmt::Result {
    let of = |metric| cost.get(metric);
    let (hits, misses) = (of(Metric::BlockCacheHitCount), of(Metric::BlockCacheMissCount));
    writeln!(
        f,
        "cost: {} blocks touched, {hits} from the cache; {} reads of {} bytes; filters: {} no, {} maybe",
        hits + misses,
        of(Metric::BlockReadCount),
        of(Metric::BlockReadByte),
        of(Metric::BloomSstMissCount),
        of(Metric::BloomSstHitCount)
    )?;
    let micros = |metric| of(metric) as f64 / 1000.0;
    writeln!(
        f,
        "time: {:.1} us {}, {:.1} us {}; of it {:.1} us opening tables, {:.1} us reading, {:.1} us checking, {:.1} us uncompressing",
        micros(first),
        name_of(first),
        micros(second),
        name_of(second),
        micros(Metric::FindTableNanos),
        micros(Metric::BlockReadTime),
        micros(Metric::BlockChecksumTime),
        micros(Metric::BlockDecompressTime)
    )
}

fn name_of(metric: Metric) -> &'static str {
    match metric {
        Metric::GetFromMemtableTime => "in memtables",
        Metric::GetFromOutputFilesTime => "in tables",
        Metric::SeekInternalSeekTime => "positioning runs",
        Metric::MergeOperatorTimeNanos => "merging operands",
        _ => "elsewhere",
    }
}

/// An explained scan: the tables within its bounds, the entries it skipped, and the cost. Prints as text.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ScanExplained {
    range: KeyBounds,
    seq: SeqNum,
    memtables: usize,
    /// The number of tables within the bounds, and of all tables, by level.
    levels: Vec<(Level, usize, usize)>,
    keys: u64,
    bytes: u64,
    ended: bool,
    cost: Context,
}

/// Scans forward over `range`, over at most `keys_max` keys, and explains the scan.
///
/// # Errors
/// Those of the scan.
pub fn explain_scan(
    from: Arc<SuperVersion>,
    seq: SeqNum,
    range: KeyBounds,
    options: ReadOptions,
    keys_max: u64,
    ticks: Ticks,
) -> Result<ScanExplained> {
    let watch = Watch::begin(PerfLevel::EnableTime, ticks);
    let order = &from.version.order;
    let within = |f: &&Arc<ashlar_tree::version::FileMeta>| {
        range.meets(order, f.smallest().user_key(), f.largest().user_key())
    };
    let levels = (0u8..).zip(&from.version.levels).filter(|(_, files)| !files.is_empty());
    let levels =
        levels.map(|(n, files)| (Level(n), files.iter().filter(within).count(), files.len())).collect();
    let memtables = std::iter::once(&from.mem).chain(&from.imm).filter(|m| !m.is_empty()).count();
    let (mut keys, mut bytes) = (0, 0);
    let mut cursor = DbIter::new(Arc::clone(&from), seq, range.clone(), options)?;
    cursor.first()?;
    while keys < keys_max
        && let Some((key, value)) = cursor.entry()
    {
        (keys, bytes) = (keys + 1, bytes + (key.len() + value.len()) as u64);
        cursor.next()?;
    }
    let ended = !cursor.is_valid();
    Ok(ScanExplained { range, seq, memtables, levels, keys, bytes, ended, cost: watch.seen() })
}

impl ScanExplained {
    /// The number of keys that the scan returned.
    pub fn keys(&self) -> u64 {
        self.keys
    }

    /// The cost of the whole scan.
    pub fn cost(&self) -> &Context {
        &self.cost
    }
}

impl fmt::Display for ScanExplained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bound = |key: Option<&[u8]>| key.map_or_else(String::new, |k| format!("'{}'", k.escape_ascii()));
        let (lower, upper) = self.range.keys();
        writeln!(f, "scan {}..{} at sequence {}", bound(lower), bound(upper), self.seq)?;
        writeln!(f, "  {:<18} {} with entries", "memtables", self.memtables)?;
        for (level, within, all) in &self.levels {
            writeln!(
                f,
                "  {:<18} {within} of {} within the bounds",
                format!("level {}", level.0),
                tables_text(*all)
            )?;
        }
        let end = if self.ended { "to the end of the range" } else { "and there is more" };
        writeln!(f, "shown: {} keys, {} bytes, {end}", self.keys, self.bytes)?;
        let of = |metric| self.cost.get(metric);
        writeln!(
            f,
            "passed: {} older versions, {} deleted, {} newer than the read; {} operands folded; {} jumps over deleted ranges",
            of(Metric::InternalKeySkippedCount),
            of(Metric::InternalDeleteSkippedCount),
            of(Metric::InternalRecentSkippedCount),
            of(Metric::InternalMergeCount),
            of(Metric::InternalRangeDelReseekCount)
        )?;
        cost_lines(f, &self.cost, Metric::SeekInternalSeekTime, Metric::MergeOperatorTimeNanos)
    }
}
