//! The objects that options take: caches, filters, environments, limits, statistics, operators.
//!
//! 1. Options copy what they need of an object, or count it. A program may close the object at once.
//! 2. Databases that have one cache share its capacity, and those that have one manager of write buffers share its limit. Limits of
//!    rates are not shared: each database has its own, of the size that the object has.

use crate::classes::{Class, Method, boxed_long, hash_map};
use crate::door::Result;
use crate::env::{Env, Local, byte, double, long};
use crate::handles::{self, Object};
use ashlar_compat::cache::Cache;
use ashlar_compat::numbers::{HISTOGRAMS, TICKERS};
use ashlar_compat::space::Space;
use ashlardb::{
    CompactOnDeletion, CompactionFilter, CompactionFilterFactory, Distribution, Env as Files, Error,
    FixedPrefixPartitioner, Histogram, MergeOperator, RemoveEmptyValue, SstPartitionerFactory, Statistics,
    StatsLevel, StringAppend, TablePropertiesCollectorFactory, Ticker, UInt64Add, WriteBuffers,
};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI32, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What [`take_ticker_count`] took of each ticker.
pub type Taken = Arc<Mutex<BTreeMap<u64, u64>>>;

macro_rules! objects {
    ($($(#[$doc:meta])* $name:ident($($of:ty),*) = $java:literal;)*) => { $(
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name($(pub $of),*);

        impl Object for $name {
            const NAME: &'static str = $java;
        }
    )* };
}
objects! {
    /// `Cache`.
    CacheObject(Arc<Cache>) = "Cache";
    /// `Filter`: RocksDB's text of a filter policy.
    PolicyObject(String) = "Filter";
    /// `Statistics`, and for each ticker what was taken of it.
    StatisticsObject(Arc<Statistics>, Taken) = "Statistics";
    /// `MergeOperator`.
    MergeObject(Arc<dyn MergeOperator>) = "MergeOperator";
    /// `AbstractCompactionFilter`.
    FilterObject(Arc<dyn CompactionFilter>) = "AbstractCompactionFilter";
    /// `AbstractCompactionFilterFactory`.
    FilterFactoryObject(Arc<dyn CompactionFilterFactory>) = "AbstractCompactionFilterFactory";
    /// `TablePropertiesCollectorFactory`.
    CollectorObject(Arc<dyn TablePropertiesCollectorFactory>) = "TablePropertiesCollectorFactory";
    /// `SstPartitionerFactory`.
    PartitionerObject(Arc<dyn SstPartitionerFactory>) = "SstPartitionerFactory";
    /// `WriteBufferManager`: a limit on the memtables of all databases that are opened with it.
    ManagerObject(Arc<WriteBuffers>) = "WriteBufferManager";
    /// `ConcurrentTaskLimiter`: its name and its most.
    TaskLimiterObject(String, AtomicI32) = "ConcurrentTaskLimiter";
}

/// `Env`: files and clock, and the numbers of threads by priority, which nothing follows.
#[derive(Debug)]
pub struct EnvObject {
    /// Files and clock.
    pub env: Files,
    /// As in RocksDB, all environments of a process share their threads.
    threads: &'static [AtomicI32; 4],
}

impl EnvObject {
    /// These files and clock.
    pub fn new(env: Files) -> EnvObject {
        // Java's order of priorities: bottom, low, high.
        static THREADS: [AtomicI32; 4] =
            [AtomicI32::new(0), AtomicI32::new(1), AtomicI32::new(1), AtomicI32::new(0)];
        EnvObject { env, threads: &THREADS }
    }
}

impl Object for EnvObject {
    const NAME: &'static str = "Env";
}

/// `RateLimiter`: bytes per second.
#[derive(Debug)]
pub struct RateObject {
    rate: AtomicI64,
    /// Whether the rate tunes itself.
    pub auto_tuned: bool,
    bytes: AtomicI64,
    requests: AtomicI64,
}

impl RateObject {
    /// Bytes per second.
    pub fn rate(&self) -> u64 {
        u64::try_from(self.rate.load(Ordering::Relaxed)).unwrap_or(0)
    }
}

impl Object for RateObject {
    const NAME: &'static str = "RateLimiter";
}

/// `SstFileManager`.
#[derive(Debug)]
pub struct SpaceObject {
    /// The databases of the manager.
    pub space: Arc<Space>,
    rate: AtomicI64,
    /// The bits of the ratio.
    ratio: AtomicU64,
}

impl Object for SpaceObject {
    const NAME: &'static str = "SstFileManager";
}

// Each function below is the body of the natives that the description names.

/// A cache of so many bytes; below zero: RocksDB's 32 MiB.
pub fn new_cache(capacity: i64) -> Result<i64> {
    let cache = Cache::new(usize::try_from(capacity).unwrap_or(32 << 20));
    Ok(handles::keep(CacheObject(Arc::new(cache)))?)
}

/// The bytes of cached blocks, of all open databases that have the object.
pub fn usage(cache: &CacheObject) -> Result<i64> {
    Ok(i64::try_from(cache.0.usage()).unwrap_or(i64::MAX))
}

/// The bytes among them that readers hold.
pub fn pinned_usage(cache: &CacheObject) -> Result<i64> {
    Ok(i64::try_from(cache.0.pinned_usage()).unwrap_or(i64::MAX))
}

/// Caches on a disk are refused.
///
/// # Errors
/// `NotSupported`.
pub fn new_persistent_cache() -> Result<i64> {
    Err(Error::not_supported("a persistent cache").into())
}

/// A filter of so many bits per key.
pub fn new_bloom(bits: f64) -> Result<i64> {
    Ok(handles::keep(PolicyObject(format!("bloomfilter:{bits}:false")))?)
}

/// A partitioner that begins a new table for each prefix of so many bytes.
pub fn new_fixed_prefix_partitioner(length: i64) -> Result<i64> {
    let length = usize::try_from(length).map_err(|_| Error::invalid("a prefix length below zero"))?;
    Ok(handles::keep(PartitionerObject(Arc::new(FixedPrefixPartitioner::new(length))))?)
}

/// Marks tables with so many deletions among so many entries, or with such a share of them, for a compaction.
pub fn new_compact_on_deletion(window: i64, trigger: i64, ratio: f64) -> Result<i64> {
    let size = |number| usize::try_from(number).unwrap_or(0);
    let collector = CompactOnDeletion::new(size(window), size(trigger)).ratio(ratio);
    Ok(handles::keep(CollectorObject(Arc::new(collector)))?)
}

/// Appends operands behind a character.
pub fn new_append_char(delimiter: u16) -> Result<i64> {
    new_append(&String::from_utf16_lossy(&[delimiter]))
}

/// Appends operands behind a text.
pub fn new_append(delimiter: &str) -> Result<i64> {
    Ok(handles::keep(MergeObject(Arc::new(StringAppend::new(delimiter))))?)
}

/// Adds numbers of eight bytes.
pub fn new_add() -> Result<i64> {
    Ok(handles::keep(MergeObject(Arc::new(UInt64Add)))?)
}

/// Removes empty values.
pub fn new_remove_empty() -> Result<i64> {
    Ok(handles::keep(FilterObject(Arc::new(RemoveEmptyValue)))?)
}

/// A limit on compactions, which is ignored: the engine chooses how many run.
pub fn new_task_limiter(name: &str, most: i32) -> Result<i64> {
    Ok(handles::keep(TaskLimiterObject(name.to_owned(), most.into()))?)
}

/// Its name.
pub fn task_limiter_name(limiter: &TaskLimiterObject) -> Result<String> {
    Ok(limiter.0.clone())
}

/// Always 0: the engine does not use this limiter, so nothing waits for it.
pub fn outstanding(_: &TaskLimiterObject) -> Result<i32> {
    Ok(0)
}

/// Changes the number, which the engine ignores.
pub fn set_most(limiter: &TaskLimiterObject, most: i32) -> Result<()> {
    limiter.1.store(most, Ordering::Relaxed);
    Ok(())
}

/// Takes the number back.
pub fn reset_most(limiter: &TaskLimiterObject) -> Result<()> {
    set_most(limiter, -1)
}

/// The operating system. Every call answers the same object, which no Java object owns.
pub fn default_env() -> Result<i64> {
    static DEFAULT: Mutex<Option<i64>> = Mutex::new(None);
    let mut default = DEFAULT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(handle) = *default {
        return Ok(handle);
    }
    let handle = handles::keep(EnvObject::new(Files::os()?))?;
    *default = Some(handle);
    Ok(handle)
}

/// Files in memory.
pub fn new_mem_env(_: Option<&EnvObject>) -> Result<i64> {
    Ok(handles::keep(EnvObject::new(Files::mem()))?)
}

/// The same files: the engine measures by itself what its calls take.
pub fn new_timed_env(base: &EnvObject) -> Result<i64> {
    Ok(handles::keep(EnvObject::new(base.env.clone()))?)
}

fn threads(env: &EnvObject, priority: i8) -> Result<&AtomicI32> {
    let threads = usize::try_from(priority).ok().and_then(|at| env.threads.get(at));
    threads.ok_or_else(|| Error::invalid(format!("there is no priority {priority}")).into())
}

/// The number of threads of a priority that was set.
pub fn background_threads(env: &EnvObject, priority: i8) -> Result<i32> {
    Ok(threads(env, priority)?.load(Ordering::Relaxed))
}

/// Ignored: the engine has threads of its own.
pub fn set_background_threads(env: &EnvObject, count: i32, priority: i8) -> Result<()> {
    threads(env, priority)?.store(count, Ordering::Relaxed);
    Ok(())
}

/// Ignored: the engine has threads of its own.
pub fn more_background_threads(env: &EnvObject, count: i32, priority: i8) -> Result<()> {
    threads(env, priority)?.fetch_max(count, Ordering::Relaxed);
    Ok(())
}

/// Always 0: the engine does not use these numbers of threads, so nothing waits for them.
pub fn queue_len(_: &EnvObject, _: i8) -> Result<i32> {
    Ok(0)
}

/// Ignored.
pub fn hint(_: &EnvObject, _: i8) -> Result<()> {
    Ok(())
}

/// A limit on flushes and compactions.
pub fn new_rate_limiter(rate: i64, _: i64, auto_tuned: bool) -> Result<i64> {
    let (bytes, requests) = (AtomicI64::new(0), AtomicI64::new(0));
    Ok(handles::keep(RateObject { rate: rate.into(), auto_tuned, bytes, requests })?)
}

/// The limit.
pub fn bytes_per_second(limiter: &RateObject) -> Result<i64> {
    Ok(limiter.rate.load(Ordering::Relaxed))
}

/// Changes the limit, for databases that are opened later.
pub fn set_bytes_per_second(limiter: &RateObject, rate: i64) -> Result<()> {
    limiter.rate.store(rate, Ordering::Relaxed);
    Ok(())
}

/// Counts bytes of the program: each database has a limit of its own.
pub fn request(limiter: &RateObject, bytes: i64) -> Result<()> {
    limiter.bytes.fetch_add(bytes, Ordering::Relaxed);
    limiter.requests.fetch_add(1, Ordering::Relaxed);
    Ok(())
}

/// The bytes of a tenth of a second.
pub fn single_burst(limiter: &RateObject) -> Result<i64> {
    Ok(limiter.rate.load(Ordering::Relaxed) / 10)
}

/// The bytes of [`request`].
pub fn total_bytes(limiter: &RateObject) -> Result<i64> {
    Ok(limiter.bytes.load(Ordering::Relaxed))
}

/// The calls of [`request`].
pub fn total_requests(limiter: &RateObject) -> Result<i64> {
    Ok(limiter.requests.load(Ordering::Relaxed))
}

/// A limit on memtables; 0 and less: none. The memtables take room of the cache.
pub fn new_write_buffer_manager(bytes: i64, cache: Option<&CacheObject>) -> Result<i64> {
    let bytes = usize::try_from(bytes).unwrap_or(0);
    let limit = Cache::limit_of_memtables(bytes, cache.map(|cache| &*cache.0));
    Ok(handles::keep(ManagerObject(limit))?)
}

/// A manager of the space of tables, without a limit.
pub fn new_space(rate: i64, ratio: f64) -> Result<i64> {
    let (rate, ratio) = (AtomicI64::new(rate), AtomicU64::new(ratio.to_bits()));
    Ok(handles::keep(SpaceObject { space: Arc::default(), rate, ratio })?)
}

/// The most bytes of tables; 0: no limit. An open with a limit is refused.
pub fn set_max_allowed_space_usage(manager: &SpaceObject, bytes: i64) -> Result<()> {
    manager.space.set_limit(u64::try_from(bytes).unwrap_or(0));
    Ok(())
}

/// Ignored: the engine keeps no limit.
pub fn set_compaction_buffer_size(_: &SpaceObject, _: i64) -> Result<()> {
    Ok(())
}

/// Whether the tables have as many bytes as the limit.
pub fn is_reached(manager: &SpaceObject) -> Result<bool> {
    Ok(manager.space.is_reached())
}

/// The bytes of all live tables.
pub fn total_size(manager: &SpaceObject) -> Result<i64> {
    Ok(i64::try_from(manager.space.total()).unwrap_or(i64::MAX))
}

/// The live tables and their sizes.
pub fn tracked_files<'a>(env: Env<'a>, manager: &SpaceObject) -> Result<Local<'a>> {
    let files = manager.space.files();
    hash_map(
        env,
        files.iter().map(|(path, bytes)| {
            let bytes = i64::try_from(*bytes).unwrap_or(i64::MAX);
            Ok((env.new_text(path)?, boxed_long(env, bytes)?))
        }),
    )
}

/// The rate that was set. Files are removed at once.
pub fn delete_rate(manager: &SpaceObject) -> Result<i64> {
    Ok(manager.rate.load(Ordering::Relaxed))
}

/// Ignored, except that its getter answers it.
pub fn set_delete_rate(manager: &SpaceObject, rate: i64) -> Result<()> {
    manager.rate.store(rate, Ordering::Relaxed);
    Ok(())
}

/// The ratio that was set. There is no trash.
pub fn trash_ratio(manager: &SpaceObject) -> Result<f64> {
    Ok(f64::from_bits(manager.ratio.load(Ordering::Relaxed)))
}

/// Ignored, except that its getter answers it.
pub fn set_trash_ratio(manager: &SpaceObject, ratio: f64) -> Result<()> {
    manager.ratio.store(ratio.to_bits(), Ordering::Relaxed);
    Ok(())
}

/// New counters.
pub fn new_statistics() -> Result<i64> {
    Ok(handles::keep(StatisticsObject(Arc::new(Statistics::new()), Taken::default()))?)
}

/// The counters of another object.
pub fn same_statistics(other: &StatisticsObject) -> Result<i64> {
    Ok(handles::keep(StatisticsObject(Arc::clone(&other.0), Arc::clone(&other.1)))?)
}

/// Java's numbers of the levels begin with 0 at this one; Java has no names for those below.
const LOWEST_LEVEL: u8 = StatsLevel::ExceptDetailedTimers as u8;

/// How much is counted, by Java's number.
pub fn stats_level(statistics: &StatisticsObject) -> Result<i8> {
    Ok(i8::try_from((statistics.0.level() as u8).saturating_sub(LOWEST_LEVEL)).unwrap_or(0))
}

/// How much is counted, by Java's number.
///
/// # Errors
/// `InvalidArgument`: there is no such level.
pub fn set_stats_level(statistics: &StatisticsObject, level: i8) -> Result<()> {
    let known = u8::try_from(level).ok().and_then(|level| StatsLevel::from_number(level + LOWEST_LEVEL));
    statistics.0.set_level(known.ok_or_else(|| Error::invalid(format!("there is no level {level}")))?);
    Ok(())
}

/// Java's names of counters that differ from RocksDB's.
const DIFFERENT_NAMES: [(&str, &str); 36] = [
    ("COMPACTION_KEY_DROP_NEWER_ENTRY", "rocksdb.compaction.key.drop.new"),
    ("COMPACT_READ_BYTES_MARKED", "rocksdb.compact.read.marked.bytes"),
    ("COMPACT_READ_BYTES_PERIODIC", "rocksdb.compact.read.periodic.bytes"),
    ("COMPACT_READ_BYTES_TTL", "rocksdb.compact.read.ttl.bytes"),
    ("COMPACT_WRITE_BYTES_MARKED", "rocksdb.compact.write.marked.bytes"),
    ("COMPACT_WRITE_BYTES_PERIODIC", "rocksdb.compact.write.periodic.bytes"),
    ("COMPACT_WRITE_BYTES_TTL", "rocksdb.compact.write.ttl.bytes"),
    ("COMPACTION_CPU_TOTAL_TIME", "rocksdb.compaction.total.time.cpu_micros"),
    ("FILTER_OPERATION_TOTAL_TIME", "rocksdb.filter.operation.time.nanos"),
    ("GET_HIT_L0", "rocksdb.l0.hit"),
    ("GET_HIT_L1", "rocksdb.l1.hit"),
    ("GET_HIT_L2_AND_UP", "rocksdb.l2andup.hit"),
    ("ITER_BYTES_READ", "rocksdb.db.iter.bytes.read"),
    ("MERGE_OPERATION_TOTAL_TIME", "rocksdb.merge.operation.time.nanos"),
    ("NO_ITERATOR_CREATED", "rocksdb.num.iterator.created"),
    ("NO_ITERATOR_DELETED", "rocksdb.num.iterator.deleted"),
    ("NUMBER_MULTIGET_CALLS", "rocksdb.number.multiget.get"),
    ("NUMBER_OF_RESEEKS_IN_ITERATION", "rocksdb.number.reseeks.iteration"),
    ("SST_FOOTER_CORRUPTION_COUNT", "rocksdb.footer.corruption.count"),
    ("TXN_DUPLICATE_KEY_OVERHEAD", "rocksdb.txn.overhead.duplicate.key"),
    ("TXN_SNAPSHOT_MUTEX_OVERHEAD", "rocksdb.txn.overhead.mutex.snapshot"),
    ("WAL_FILE_BYTES", "rocksdb.wal.bytes"),
    ("WAL_FILE_SYNCED", "rocksdb.wal.synced"),
    ("WRITE_DONE_BY_OTHER", "rocksdb.write.other"),
    ("WRITE_DONE_BY_SELF", "rocksdb.write.self"),
    ("WRITE_WITH_WAL", "rocksdb.write.wal"),
    ("COMPACTION_CPU_TIME", "rocksdb.compaction.times.cpu_micros"),
    ("COMPACTION_TIME", "rocksdb.compaction.times.micros"),
    ("DB_GET", "rocksdb.db.get.micros"),
    ("DB_MULTIGET", "rocksdb.db.multiget.micros"),
    ("DB_SEEK", "rocksdb.db.seek.micros"),
    ("DB_WRITE", "rocksdb.db.write.micros"),
    ("FLUSH_TIME", "rocksdb.db.flush.micros"),
    ("SUBCOMPACTION_SETUP_TIME", "rocksdb.subcompaction.setup.times.micros"),
    ("FLUSH_MEMTABLE_TOTAL_DATA_SIZE", "rocksdb.flush.memtable.total.data.size.bytes"),
    ("WRITE_STALL", "rocksdb.db.write.stall"),
];

/// Letters and digits of a name, without the prefix that all have.
fn letters(name: &str) -> String {
    let plain = name.strip_prefix("rocksdb.").unwrap_or(name);
    plain.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_uppercase()).collect()
}

/// RocksDB's name for a constant of Java.
fn counter_name(java: &str, names: &[&'static str]) -> Option<&'static str> {
    let different = DIFFERENT_NAMES.iter().find(|(known, _)| *known == java).map(|(_, name)| *name);
    let wanted = letters(java);
    different.or_else(|| names.iter().find(|name| letters(name) == wanted).copied())
}

/// The name of an enumeration's constant of that number. Numbers differ between jars, so the class itself is asked, once for
/// each number.
fn constant(env: Env<'_>, class: &'static Class, by_number: &Method, number: i8) -> Result<String> {
    static ENUM: Class = Class::new("java/lang/Enum");
    static NAME: Method = Method::new("name", "()Ljava/lang/String;");
    let found = env.call_static_object(class.get(env)?, by_number.of(env, class)?, &[byte(number)])?;
    let name = env.call_object(found, NAME.of(env, &ENUM)?, &[])?;
    Ok(env.text(name))
}

type Known = Mutex<BTreeMap<i8, Option<&'static str>>>;

fn name_of(
    known: &Known,
    number: i8,
    find: impl FnOnce() -> Result<String>,
    names: &[&'static str],
) -> Result<Option<&'static str>> {
    if let Some(name) = known.lock().unwrap_or_else(PoisonError::into_inner).get(&number) {
        return Ok(*name);
    }
    let name = counter_name(&find()?, names);
    known.lock().unwrap_or_else(PoisonError::into_inner).insert(number, name);
    Ok(name)
}

fn ticker(env: Env<'_>, number: i8) -> Result<Option<Ticker>> {
    static KNOWN: Known = Mutex::new(BTreeMap::new());
    static TICKER: Class = Class::new("org/rocksdb/TickerType");
    static GET: Method = Method::fixed("getTickerType", "(B)Lorg/rocksdb/TickerType;");
    let name = name_of(&KNOWN, number, || constant(env, &TICKER, &GET, number), &TICKERS)?;
    Ok(name.and_then(Ticker::named))
}

fn distribution(env: Env<'_>, number: i8) -> Result<Option<Distribution>> {
    static KNOWN: Known = Mutex::new(BTreeMap::new());
    static HISTOGRAM: Class = Class::new("org/rocksdb/HistogramType");
    static GET: Method = Method::fixed("getHistogramType", "(B)Lorg/rocksdb/HistogramType;");
    let name = name_of(&KNOWN, number, || constant(env, &HISTOGRAM, &GET, number), &HISTOGRAMS)?;
    Ok(name.and_then(Distribution::named))
}

/// A counter, by Java's number; 0 for one that is not counted.
pub fn ticker_count(env: Env<'_>, statistics: &StatisticsObject, number: i8) -> Result<i64> {
    let Some(ticker) = ticker(env, number)? else { return Ok(0) };
    let taken = statistics.1.lock().unwrap_or_else(PoisonError::into_inner);
    let taken = taken.get(&(ticker as u64)).copied().unwrap_or(0);
    Ok(i64::try_from(statistics.0.ticker(ticker).saturating_sub(taken)).unwrap_or(i64::MAX))
}

/// A counter, which begins again with 0.
pub fn take_ticker_count(env: Env<'_>, statistics: &StatisticsObject, number: i8) -> Result<i64> {
    let count = ticker_count(env, statistics, number)?;
    if let Some(ticker) = ticker(env, number)? {
        let mut taken = statistics.1.lock().unwrap_or_else(PoisonError::into_inner);
        *taken.entry(ticker as u64).or_default() += u64::try_from(count).unwrap_or(0);
    }
    Ok(count)
}

#[allow(clippy::cast_precision_loss, reason = "figures for people")]
fn figures(histogram: &Histogram) -> [f64; 6] {
    [
        histogram.percentile(50.0),
        histogram.percentile(95.0),
        histogram.percentile(99.0),
        histogram.average(),
        histogram.deviation(),
        histogram.max() as f64,
    ]
}

/// A histogram, by Java's number; an empty one if it is not measured.
pub fn histogram_data<'a>(env: Env<'a>, statistics: &StatisticsObject, number: i8) -> Result<Local<'a>> {
    static DATA: Class = Class::new("org/rocksdb/HistogramData");
    static NEW: Method = Method::constructor("(DDDDDDJJD)V");
    let found = distribution(env, number)?;
    let histogram = found.map(|of| statistics.0.distribution(of)).unwrap_or_default();
    let number = |n: u64| long(i64::try_from(n).unwrap_or(i64::MAX));
    let [median, p95, p99, average, deviation, max] = figures(&histogram).map(double);
    #[allow(clippy::cast_precision_loss, reason = "figures for people")]
    let min = double(histogram.min() as f64);
    let (count, sum) = (number(histogram.count()), number(histogram.sum()));
    DATA.make(env, &NEW, &[median, p95, p99, average, deviation, max, count, sum, min])
}

/// A histogram as text.
pub fn histogram_string(env: Env<'_>, statistics: &StatisticsObject, number: i8) -> Result<String> {
    let found = distribution(env, number)?;
    let histogram = found.map(|of| statistics.0.distribution(of)).unwrap_or_default();
    let [median, p95, p99, average, deviation, max] = figures(&histogram);
    let (count, sum) = (histogram.count(), histogram.sum());
    Ok(format!(
        "Count: {count} Average: {average:.4} StdDev: {deviation:.2}\nMin: {} Median: {median:.4} Max: {max}\n\
         Percentiles: P50: {median:.2} P95: {p95:.2} P99: {p99:.2}\nSum: {sum}\n",
        histogram.min()
    ))
}

/// All counters begin again with 0.
pub fn reset_statistics(statistics: &StatisticsObject) -> Result<()> {
    statistics.0.reset();
    statistics.1.lock().unwrap_or_else(PoisonError::into_inner).clear();
    Ok(())
}

/// All counters as text.
pub fn statistics_text(statistics: &StatisticsObject) -> Result<String> {
    Ok(statistics.0.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_of_java_are_rocksdbs_counters() {
        assert_eq!(counter_name("BLOCK_CACHE_MISS", &TICKERS), Some("rocksdb.block.cache.miss"));
        assert_eq!(counter_name("GET_HIT_L2_AND_UP", &TICKERS), Some("rocksdb.l2andup.hit"));
        assert_eq!(counter_name("DB_GET", &HISTOGRAMS), Some("rocksdb.db.get.micros"));
        assert_eq!(counter_name("BLOCK_CACHE_COMPRESSED_HIT", &TICKERS), None);
        let known = |name: &str| TICKERS.contains(&name) || HISTOGRAMS.contains(&name);
        let unknown: Vec<_> = DIFFERENT_NAMES.iter().filter(|(_, name)| !known(name)).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }
}
