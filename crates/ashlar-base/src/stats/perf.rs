//! The perf context: the cost of this thread's operations, by layer.
//!
//! It is a row of sums that belongs to the thread. Nothing is counted until the thread sets a [`Level`]. Until then
//! each place that counts only reads one thread-local byte. To measure one operation, reset before it, or take a
//! [`Context`] before and after.
//!
//! Source: RocksDB `include/rocksdb/perf_context.h`, `perf_level.h` (names, levels, text).

use super::ticks::Ticks;
use std::cell::{Cell, RefCell};
use std::fmt;

/// What a thread counts. The levels are RocksDB's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Level {
    /// Nothing.
    #[default]
    Disable = 1,
    /// Counts and bytes.
    EnableCount = 2,
    /// Also the times of waiting for the database itself.
    EnableWait = 3,
    /// Also the times of the steps of an operation.
    EnableTimeExceptForMutex = 4,
    /// The same as the level before, because all times are measured with one clock.
    EnableTimeAndCpuTimeExceptForMutex = 5,
    /// Everything.
    EnableTime = 6,
}

impl Level {
    /// The level with RocksDB's number, 1 to 6.
    pub fn from_number(number: u8) -> Option<Level> {
        Some(match number {
            1 => Level::Disable,
            2 => Level::EnableCount,
            3 => Level::EnableWait,
            4 => Level::EnableTimeExceptForMutex,
            5 => Level::EnableTimeAndCpuTimeExceptForMutex,
            6 => Level::EnableTime,
            _ => return None,
        })
    }
}

macro_rules! metrics {
    ($($(#[$doc:meta])+ $variant:ident $name:literal,)*) => {
        /// One sum of the perf context. Names that end in `time` or `nanos` are nanoseconds.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Metric {
            $($(#[$doc])+ $variant,)*
        }

        impl Metric {
            /// All of them, in RocksDB's order.
            pub const ALL: &'static [Metric] = &[$(Metric::$variant,)*];

            /// RocksDB's name.
            pub fn name(self) -> &'static str {
                match self {
                    $(Metric::$variant => $name,)*
                }
            }

            /// The one of that name.
            pub fn named(name: &str) -> Option<Metric> {
                Self::ALL.iter().copied().find(|metric| metric.name() == name)
            }
        }
    };
}

metrics! {
    /// Data blocks found in the cache.
    BlockCacheHitCount "block_cache_hit_count",
    /// Data blocks not found in the cache.
    BlockCacheMissCount "block_cache_miss_count",
    /// Blocks read from files, of every kind.
    BlockReadCount "block_read_count",
    /// Bytes of those blocks as stored.
    BlockReadByte "block_read_byte",
    /// Time of reading them.
    BlockReadTime "block_read_time",
    /// Index blocks among them.
    IndexBlockReadCount "index_block_read_count",
    /// Filter blocks among them.
    FilterBlockReadCount "filter_block_read_count",
    /// Time of comparing checksums.
    BlockChecksumTime "block_checksum_time",
    /// Time of uncompressing.
    BlockDecompressTime "block_decompress_time",
    /// Blocks uncompressed.
    BlockDecompressCount "block_decompress_count",
    /// Bytes of values that gets returned.
    GetReadBytes "get_read_bytes",
    /// Bytes of values that multi-gets returned.
    MultigetReadBytes "multiget_read_bytes",
    /// Bytes of keys and values that cursors showed.
    IterReadBytes "iter_read_bytes",
    /// Values read from blob files.
    BlobReadCount "blob_read_count",
    /// Bytes of their records.
    BlobReadByte "blob_read_byte",
    /// Time of reading them.
    BlobReadTime "blob_read_time",
    /// Entries a cursor passed because a newer one of their key had been shown.
    InternalKeySkippedCount "internal_key_skipped_count",
    /// Tombstones, and entries under them, that a cursor passed.
    InternalDeleteSkippedCount "internal_delete_skipped_count",
    /// Entries newer than the read that a cursor passed.
    InternalRecentSkippedCount "internal_recent_skipped_count",
    /// Merge operands that cursors folded.
    InternalMergeCount "internal_merge_count",
    /// Merge operands that gets folded.
    InternalMergePointLookupCount "internal_merge_point_lookup_count",
    /// Seeks past what a range tombstone covers.
    InternalRangeDelReseekCount "internal_range_del_reseek_count",
    /// Time of gets in memtables.
    GetFromMemtableTime "get_from_memtable_time",
    /// Memtables that gets asked.
    GetFromMemtableCount "get_from_memtable_count",
    /// Time of gets in tables.
    GetFromOutputFilesTime "get_from_output_files_time",
    /// Memtable cursors that were positioned.
    SeekOnMemtableCount "seek_on_memtable_count",
    /// Runs that seeks positioned.
    SeekChildSeekCount "seek_child_seek_count",
    /// Time of positioning the runs under a cursor.
    SeekInternalSeekTime "seek_internal_seek_time",
    /// Time of writing to the log.
    WriteWalTime "write_wal_time",
    /// Time of inserting into memtables.
    WriteMemtableTime "write_memtable_time",
    /// Time writes were held back.
    WriteDelayTime "write_delay_time",
    /// Time of waiting for another writer to commit the batch or to hand over.
    WriteThreadWaitNanos "write_thread_wait_nanos",
    /// Time in merge operators.
    MergeOperatorTimeNanos "merge_operator_time_nanos",
    /// Time of opening tables that a read needed.
    FindTableNanos "find_table_nanos",
    /// Filters that said a key may be there.
    BloomSstHitCount "bloom_sst_hit_count",
    /// Filters that said a key is not there.
    BloomSstMissCount "bloom_sst_miss_count",
    /// Calls of `next`.
    IterNextCount "iter_next_count",
    /// Calls of `prev`.
    IterPrevCount "iter_prev_count",
    /// Calls that position a cursor.
    IterSeekCount "iter_seek_count",
}

const METRICS: usize = Metric::ALL.len();

thread_local! {
    static LEVEL: Cell<u8> = const { Cell::new(Level::Disable as u8) };
    static SUMS: [Cell<u64>; METRICS] = const { [const { Cell::new(0) }; METRICS] };
    static TICKS: RefCell<Option<Ticks>> = const { RefCell::new(None) };
}

/// How much this thread counts.
pub fn level() -> Level {
    Level::from_number(LEVEL.get()).unwrap_or_default()
}

/// Changes how much this thread counts. Times need a clock; without one they stay zero.
pub fn set_level(level: Level, ticks: Option<Ticks>) {
    LEVEL.set(level as u8);
    // A thread that is being torn down has no clock any more, and no operations to time.
    let _ = TICKS.try_with(|slot| slot.replace(ticks));
}

/// Sets all sums of this thread to zero.
pub fn reset() {
    SUMS.with(|sums| sums.iter().for_each(|sum| sum.set(0)));
}

/// True when this thread counts.
#[inline]
pub fn counts() -> bool {
    LEVEL.get() >= Level::EnableCount as u8
}

/// Adds to a sum of this thread, if it counts.
#[inline]
pub fn add(metric: Metric, n: u64) {
    if counts() {
        add_now(metric, n);
    }
}

#[cold]
fn add_now(metric: Metric, n: u64) {
    SUMS.with(|sums| {
        if let Some(sum) = sums.get(metric as usize) {
            sum.set(sum.get().wrapping_add(n));
        }
    });
}

/// Begins to take the time of a step, if this thread takes times; it is added when the guard is dropped.
#[inline]
pub fn time(metric: Metric) -> Option<Timed> {
    if LEVEL.get() >= Level::EnableTimeExceptForMutex as u8 { begin(metric) } else { None }
}

/// [`time`] of being held up by the database: from a lower level on.
#[inline]
pub fn time_of_waiting(metric: Metric) -> Option<Timed> {
    if LEVEL.get() >= Level::EnableWait as u8 { begin(metric) } else { None }
}

#[cold]
fn begin(metric: Metric) -> Option<Timed> {
    let ticks = TICKS.try_with(|slot| slot.borrow().clone()).ok().flatten()?;
    let from = ticks.now();
    Some(Timed { metric, ticks, from })
}

/// A time being taken.
#[derive(Debug)]
pub struct Timed {
    metric: Metric,
    ticks: Ticks,
    from: u64,
}

impl Drop for Timed {
    fn drop(&mut self) {
        add(self.metric, self.ticks.now().saturating_sub(self.from));
    }
}

/// The sums of a thread at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Context([u64; METRICS]);

impl Context {
    /// The present sums of this thread.
    pub fn now() -> Context {
        SUMS.with(|sums| Context(std::array::from_fn(|at| sums.get(at).map_or(0, Cell::get))))
    }

    /// One sum.
    pub fn get(&self, metric: Metric) -> u64 {
        self.0.get(metric as usize).copied().unwrap_or(0)
    }

    /// What was added since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Context) -> Context {
        Context(std::array::from_fn(|at| {
            let of = |context: &Context| context.0.get(at).copied().unwrap_or(0);
            of(self).wrapping_sub(of(earlier))
        }))
    }
}

/// The text that RocksDB prints, without the zeros: `name = sum, name = sum`.
impl fmt::Display for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut first = true;
        for metric in Metric::ALL.iter().filter(|metric| self.get(**metric) > 0) {
            let gap = if first { "" } else { ", " };
            write!(f, "{gap}{} = {}", metric.name(), self.get(*metric))?;
            first = false;
        }
        Ok(())
    }
}

/// Counts everything until it is dropped; then the thread's level is what it was.
#[derive(Debug)]
pub struct Watch {
    before: (Level, Option<Ticks>),
    start: Context,
}

impl Watch {
    /// Begins to count at `level`.
    pub fn begin(level: Level, ticks: Ticks) -> Watch {
        let clock = TICKS.try_with(|slot| slot.borrow().clone()).ok().flatten();
        let before = (self::level(), clock);
        set_level(level, Some(ticks));
        Watch { before, start: Context::now() }
    }

    /// What was added since it began.
    pub fn seen(&self) -> Context {
        Context::now().since(&self.start)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        set_level(self.before.0, self.before.1.take());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn counts_what_the_level_says_and_only_on_its_thread() {
        let now = Arc::new(AtomicU64::new(0));
        let ticks = Ticks::new(move || now.fetch_add(5, Ordering::Relaxed));
        let work = || {
            add(Metric::BlockReadCount, 2);
            drop(time(Metric::BlockReadTime));
            drop(time_of_waiting(Metric::WriteDelayTime));
            Context::now()
        };
        assert_eq!(work().to_string(), "");
        set_level(Level::EnableCount, Some(ticks.clone()));
        assert_eq!(work().to_string(), "block_read_count = 2");
        set_level(Level::EnableWait, Some(ticks.clone()));
        assert_eq!(work().to_string(), "block_read_count = 4, write_delay_time = 5");
        let watch = Watch::begin(Level::EnableTime, ticks);
        work();
        assert_eq!(
            watch.seen().to_string(),
            "block_read_count = 2, block_read_time = 5, write_delay_time = 5"
        );
        drop(watch);
        assert_eq!(level(), Level::EnableWait);
        std::thread::scope(|scope| {
            scope.spawn(|| assert_eq!(Context::now().to_string(), ""));
        });
        reset();
        assert_eq!(Context::now().to_string(), "");
        set_level(Level::Disable, None);
    }

    #[test]
    fn names_and_numbers() {
        assert!(Metric::ALL.iter().all(|m| Metric::named(m.name()) == Some(*m)));
        assert!((1..=6).all(|n| Level::from_number(n).map(|l| l as u8) == Some(n)));
        assert_eq!((Level::from_number(0), Level::from_number(7)), (None, None));
    }
}
