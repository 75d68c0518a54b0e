//! What a program asks about its databases: metadata of families, memory, statistics; and the objects that only carry a number:
//! environments' threads, rate limiters, managers of write buffers.

use crate::compactions::MetadataOptionsObject;
use crate::db::{DbObject, FamilyObject, path};
use crate::door::{HasTexts, call};
use crate::iter::{IterObject, iter_key, iter_timestamp, iter_value};
use crate::options::{CacheObject, EnvObject, OptionsObject};
use ashlar_base::stats::{Distribution, Histogram, Ticker};
use ashlar_compat::cache::Cache;
use ashlar_compat::database::WeakDatabase;
use ashlar_compat::numbers::{HISTOGRAMS, PERF, TICKERS};
use ashlar_compat::perf::{self, Level};
use ashlardb::options::Order;
use ashlardb::{LiveFile, Result, WriteBuffers};
use std::ffi::{CStr, c_char, c_int};
use std::sync::Arc;
use std::sync::atomic::Ordering;

// Each function below is the body of the C function of its name.

/// Removes a database.
///
/// # Errors
/// Those of [`ashlardb::Builder::destroy`].
pub fn destroy_db(options: &OptionsObject, name: &CStr) -> Result<()> {
    ashlar_compat::database::destroy(&options.0, path(name))
}

/// The id in the file IDENTITY.
pub fn get_db_identity(db: &DbObject) -> Option<String> {
    db.0.db().identity().ok()?
}

/// `rocksdb_column_family_metadata_t`: the live tables of a family at one moment.
#[derive(Clone, Debug)]
pub struct MetadataObject {
    name: String,
    levels: Vec<LevelObject>,
}

/// `rocksdb_level_metadata_t`: the live tables of a level.
#[derive(Clone, Debug)]
pub struct LevelObject {
    level: i32,
    files: Vec<FileObject>,
}

/// `rocksdb_sst_file_metadata_t`: a live table.
#[derive(Clone, Debug)]
pub struct FileObject {
    file: LiveFile,
}

impl LevelObject {
    fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.file.bytes).sum()
    }

    /// Keeps the tables that have keys within the bounds. As in RocksDB, a table of level 0 that is kept widens the bounds by
    /// its keys.
    fn keep_overlapping(&mut self, order: &Order, (mut from, mut to): (Option<Vec<u8>>, Option<Vec<u8>>)) {
        loop {
            let overlaps = |file: &FileObject| {
                from.as_ref().is_none_or(|from| order.compare(&file.file.largest, from).is_ge())
                    && to.as_ref().is_none_or(|to| order.compare(&file.file.smallest, to).is_le())
            };
            let kept: Vec<FileObject> = self.files.iter().filter(|file| overlaps(file)).cloned().collect();
            let (mut wider_from, mut wider_to) = (from.clone(), to.clone());
            for file in kept.iter().filter(|_| self.level == 0) {
                wider_from = wider_from.filter(|from| order.compare(from, &file.file.smallest).is_le());
                wider_from = wider_from.or_else(|| from.as_ref().map(|_| file.file.smallest.clone()));
                wider_to = wider_to.filter(|to| order.compare(to, &file.file.largest).is_ge());
                wider_to = wider_to.or_else(|| to.as_ref().map(|_| file.file.largest.clone()));
            }
            if (&wider_from, &wider_to) == (&from, &to) {
                self.files = kept;
                return;
            }
            (from, to) = (wider_from, wider_to);
        }
    }
}

fn metadata(db: &DbObject, family: Option<&FamilyObject>) -> Result<MetadataObject> {
    let family = db.family(family)?;
    let levels = family.shape().levels.len();
    let level = |level| LevelObject { level, files: Vec::new() };
    let mut levels: Vec<LevelObject> = (0..i32::try_from(levels).unwrap_or(0)).map(level).collect();
    for file in family.live_files()? {
        if let Some(level) = levels.get_mut(usize::from(file.level.0)) {
            level.files.push(FileObject { file });
        }
    }
    Ok(MetadataObject { name: family.name().to_owned(), levels })
}

/// The live tables of the family `default`.
pub fn get_column_family_metadata(db: &DbObject) -> Option<MetadataObject> {
    metadata(db, None).ok()
}

/// The live tables of a family.
pub fn get_column_family_metadata_cf(db: &DbObject, family: &FamilyObject) -> Option<MetadataObject> {
    metadata(db, Some(family)).ok()
}

fn metadata_within(
    db: &DbObject,
    family: Option<&FamilyObject>,
    options: Option<&MetadataOptionsObject>,
) -> Result<MetadataObject> {
    let mut all = metadata(db, family)?;
    let order = db.family(family)?.options().order.clone();
    let of = options.map_or(-1, |options| options.texts().get::<i32>("level"));
    let bounds = options.map_or((None, None), |options| (options.start.clone(), options.end.clone()));
    for level in &mut all.levels {
        level.keep_overlapping(&order, bounds.clone());
    }
    // As in RocksDB, levels without a table are left out.
    all.levels.retain(|level| (of < 0 || level.level == of) && !level.files.is_empty());
    Ok(all)
}

/// The live tables of the family `default` that the options name.
pub fn get_column_family_metadata_with_options(
    db: &DbObject,
    options: Option<&MetadataOptionsObject>,
) -> Option<MetadataObject> {
    metadata_within(db, None, options).ok()
}

/// The live tables of a family that the options name.
pub fn get_column_family_metadata_cf_with_options(
    db: &DbObject,
    family: &FamilyObject,
    options: Option<&MetadataOptionsObject>,
) -> Option<MetadataObject> {
    metadata_within(db, Some(family), options).ok()
}

/// The bytes of the tables.
pub fn column_family_metadata_get_size(cf_meta: &MetadataObject) -> u64 {
    cf_meta.levels.iter().map(LevelObject::bytes).sum()
}

/// The number of tables.
pub fn column_family_metadata_get_file_count(cf_meta: &MetadataObject) -> usize {
    cf_meta.levels.iter().map(|level| level.files.len()).sum()
}

/// The name of the family.
pub fn column_family_metadata_get_name(cf_meta: &MetadataObject) -> Option<String> {
    Some(cf_meta.name.clone())
}

/// The number of levels.
pub fn column_family_metadata_get_level_count(cf_meta: &MetadataObject) -> usize {
    cf_meta.levels.len()
}

/// A level.
pub fn column_family_metadata_get_level_metadata(cf_meta: &MetadataObject, i: usize) -> Option<LevelObject> {
    cf_meta.levels.get(i).cloned()
}

/// The number of the level.
pub fn level_metadata_get_level(level_meta: &LevelObject) -> i32 {
    level_meta.level
}

/// The bytes of the level.
pub fn level_metadata_get_size(level_meta: &LevelObject) -> u64 {
    level_meta.bytes()
}

/// The number of tables in the level.
pub fn level_metadata_get_file_count(level_meta: &LevelObject) -> usize {
    level_meta.files.len()
}

/// A table of the level.
pub fn level_metadata_get_sst_file_metadata(level_meta: &LevelObject, i: usize) -> Option<FileObject> {
    level_meta.files.get(i).cloned()
}

/// The name of the table.
pub fn sst_file_metadata_get_relative_filename(file_meta: &FileObject) -> Option<String> {
    Some(format!("{:06}.sst", file_meta.file.number.0))
}

/// The directory of the table.
pub fn sst_file_metadata_get_directory(file_meta: &FileObject) -> Option<String> {
    Some(file_meta.file.dir.to_string_lossy().into_owned())
}

/// The bytes of the table.
pub fn sst_file_metadata_get_size(file_meta: &FileObject) -> u64 {
    file_meta.file.bytes
}

/// The first key.
pub fn sst_file_metadata_get_smallestkey(file_meta: &FileObject) -> Option<&[u8]> {
    Some(&file_meta.file.smallest)
}

/// The last key.
pub fn sst_file_metadata_get_largestkey(file_meta: &FileObject) -> Option<&[u8]> {
    Some(&file_meta.file.largest)
}

/// `rocksdb_memory_consumers_t`: databases and caches whose memory is asked. It keeps no memory of a closed database.
#[derive(Debug, Default)]
pub struct ConsumersObject {
    databases: Vec<WeakDatabase>,
    caches: Vec<Arc<Cache>>,
}

/// `rocksdb_memory_usage_t`.
#[derive(Clone, Copy, Debug, Default)]
pub struct UsageObject {
    memtables: u64,
    unflushed: u64,
    readers: u64,
    cache: u64,
}

/// Without any.
pub fn memory_consumers_create() -> ConsumersObject {
    ConsumersObject::default()
}

/// Adds a database.
pub fn memory_consumers_add_db(consumers: &mut ConsumersObject, db: &DbObject) {
    consumers.databases.push(db.0.downgrade());
}

/// Adds a cache. One that was added before counts once.
pub fn memory_consumers_add_cache(consumers: &mut ConsumersObject, cache: &CacheObject) {
    if !consumers.caches.contains(&cache.0) {
        consumers.caches.push(Arc::clone(&cache.0));
    }
}

/// The memory at this moment.
///
/// # Errors
/// None.
pub fn approximate_memory_usage_create(consumers: &ConsumersObject) -> Result<UsageObject> {
    let mut usage = UsageObject::default();
    usage.cache = consumers.caches.iter().map(|cache| cache.usage()).sum();
    for database in consumers.databases.iter().filter_map(WeakDatabase::upgrade) {
        let db = database.db();
        let sum = |name| db.aggregated_int_property(name).unwrap_or(0);
        usage.memtables += sum("rocksdb.size-all-mem-tables");
        usage.unflushed += sum("rocksdb.cur-size-all-mem-tables");
        usage.readers += sum("rocksdb.estimate-table-readers-mem");
    }
    Ok(usage)
}

/// The bytes of all memtables.
pub fn approximate_memory_usage_get_mem_table_total(memory_usage: &UsageObject) -> u64 {
    memory_usage.memtables
}

/// The bytes of memtables that no flush has written.
pub fn approximate_memory_usage_get_mem_table_unflushed(memory_usage: &UsageObject) -> u64 {
    memory_usage.unflushed
}

/// The bytes of indexes and filters.
pub fn approximate_memory_usage_get_mem_table_readers_total(memory_usage: &UsageObject) -> u64 {
    memory_usage.readers
}

/// The bytes of cached blocks.
pub fn approximate_memory_usage_get_cache_total(memory_usage: &UsageObject) -> u64 {
    memory_usage.cache
}

macro_rules! threads {
    ($($set:ident, $get:ident = $kind:literal;)*) => { $(
        /// Kept by the environment, and otherwise ignored: the engine has threads of its own.
        pub fn $set(env: &EnvObject, n: i32) {
            if let Some(threads) = env.1.get($kind) {
                threads.store(n.max(0), Ordering::Relaxed);
            }
        }
        /// What was set.
        pub fn $get(env: &EnvObject) -> i32 {
            env.1.get($kind).map_or(0, |threads| threads.load(Ordering::Relaxed))
        }
    )* };
}
threads! {
    env_set_background_threads, env_get_background_threads = 0;
    env_set_low_priority_background_threads, env_get_low_priority_background_threads = 0;
    env_set_high_priority_background_threads, env_get_high_priority_background_threads = 1;
    env_set_bottom_priority_background_threads, env_get_bottom_priority_background_threads = 2;
}

macro_rules! ignored {
    ($($name:ident($($arg:ident: $of:ty),*);)*) => { $(
        /// Ignored: the engine has threads of its own.
        pub fn $name($(_: $of),*) {}
    )* };
}
ignored! {
    env_join_all_threads(env: &EnvObject);
    env_lower_thread_pool_io_priority(env: &EnvObject);
    env_lower_high_priority_thread_pool_io_priority(env: &EnvObject);
    env_lower_thread_pool_cpu_priority(env: &EnvObject);
    env_lower_high_priority_thread_pool_cpu_priority(env: &EnvObject);
}

/// `rocksdb_ratelimiter_t`: bytes per second, and whether the rate tunes itself. Each database that is opened with it has a limit of
/// its own.
#[derive(Clone, Copy, Debug)]
pub struct RateObject {
    bytes_per_second: i64,
    auto_tuned: bool,
}

impl RateObject {
    /// The limit.
    pub(crate) fn bytes_per_second(&self) -> u64 {
        u64::try_from(self.bytes_per_second).unwrap_or(0)
    }
}

/// A limit.
pub fn ratelimiter_create(bytes_per_second: i64, _: i64, _: i32) -> RateObject {
    RateObject { bytes_per_second, auto_tuned: false }
}

/// A limit that tunes itself.
pub fn ratelimiter_create_auto_tuned(bytes_per_second: i64, _: i64, _: i32) -> RateObject {
    RateObject { bytes_per_second, auto_tuned: true }
}

/// A limit on flushes and compactions, whatever the mode.
pub fn ratelimiter_create_with_mode(
    bytes_per_second: i64,
    _: i64,
    _: i32,
    _: i32,
    auto_tuned: bool,
) -> RateObject {
    RateObject { bytes_per_second, auto_tuned }
}

/// Limits flushes and compactions.
pub fn options_set_ratelimiter(opt: &mut OptionsObject, limiter: Option<&RateObject>) {
    let rate = limiter.map_or(0, RateObject::bytes_per_second);
    opt.0.texts.set_text("rate_limiter_bytes_per_sec", rate.to_string());
    let auto_tuned = limiter.is_some_and(|limiter| limiter.auto_tuned);
    opt.0.texts.set_text("rate_limiter_auto_tuned", auto_tuned.to_string());
}

/// `rocksdb_write_buffer_manager_t`: a limit on the memtables of all databases that are opened with it.
#[derive(Debug)]
pub struct ManagerObject {
    buffers: Arc<WriteBuffers>,
    /// Made with a cache.
    cached: bool,
}

/// A limit.
pub fn write_buffer_manager_create(buffer_size: usize, _: bool) -> ManagerObject {
    ManagerObject { buffers: Cache::limit_of_memtables(buffer_size, None), cached: false }
}

/// A limit. Memtables take room of the cache.
pub fn write_buffer_manager_create_with_cache(
    buffer_size: usize,
    cache: &CacheObject,
    _: bool,
) -> ManagerObject {
    ManagerObject { buffers: Cache::limit_of_memtables(buffer_size, Some(&cache.0)), cached: true }
}

/// The limit.
pub fn write_buffer_manager_buffer_size(wbm: &ManagerObject) -> usize {
    wbm.buffers.limit()
}

/// Whether there is one.
pub fn write_buffer_manager_enabled(wbm: &ManagerObject) -> bool {
    write_buffer_manager_buffer_size(wbm) > 0
}

/// Changes the limit, also for open databases.
pub fn write_buffer_manager_set_buffer_size(wbm: &ManagerObject, new_size: usize) {
    wbm.buffers.set_limit(new_size);
}

/// The bytes of the memtables of all databases.
pub fn write_buffer_manager_memory_usage(wbm: &ManagerObject) -> usize {
    wbm.buffers.held()
}

/// As [`write_buffer_manager_memory_usage`]: memtables that wait for a flush are not counted apart.
pub fn write_buffer_manager_mutable_memtable_memory_usage(wbm: &ManagerObject) -> usize {
    wbm.buffers.held()
}

/// The bytes of the cache that memtables take.
pub fn write_buffer_manager_dummy_entries_in_cache_usage(wbm: &ManagerObject) -> usize {
    if wbm.cached { wbm.buffers.held() } else { 0 }
}

/// Whether the manager was made with a cache.
pub fn write_buffer_manager_cost_to_cache(wbm: &ManagerObject) -> bool {
    wbm.cached
}

/// Ignored: writers always wait for flushes at the limit.
pub fn write_buffer_manager_set_allow_stall(_: &ManagerObject, _: bool) {}

/// Limits the memtables of the database, together with those of the others that are opened with the manager.
pub fn options_set_write_buffer_manager(opt: &mut OptionsObject, wbm: Option<&ManagerObject>) {
    opt.0.write_buffers = wbm.map(|manager| Arc::clone(&manager.buffers));
}

/// `rocksdb_dbpath_t`: a directory of tables, and the bytes that it takes.
#[derive(Clone, Debug)]
pub struct PathObject {
    dir: String,
    bytes: u64,
}

/// A directory.
pub fn dbpath_create(dir: &CStr, target_size: u64) -> PathObject {
    PathObject { dir: dir.to_string_lossy().into_owned(), bytes: target_size }
}

/// # Safety
/// See the header.
unsafe fn set_paths(opt: *mut OptionsObject, name: &str, paths: *const *const PathObject, count: usize) {
    let text = |place: &*const PathObject| {
        // SAFETY: as for this function.
        let place = unsafe { crate::door::borrowed(*place, "a path") }?;
        Ok(format!("{{path={};target_size={}}}", place.dir, place.bytes))
    };
    // SAFETY: as for this function.
    unsafe { crate::lists::set_joined(opt, name, (paths, count), text) };
}

/// The directories of tables of the database.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_set_db_paths(
    opt: *mut OptionsObject,
    path_values: *mut *const PathObject,
    num_paths: usize,
) {
    let _in = crate::checked::enter("rocksdb_options_set_db_paths");
    // SAFETY: as for this function.
    unsafe { set_paths(opt, "db_paths", path_values.cast_const(), num_paths) };
}

/// The directories of tables of a family.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_set_cf_paths(
    opt: *mut OptionsObject,
    path_values: *mut *const PathObject,
    num_paths: usize,
) {
    let _in = crate::checked::enter("rocksdb_options_set_cf_paths");
    // SAFETY: as for this function.
    unsafe { set_paths(opt, "cf_paths", path_values.cast_const(), num_paths) };
}

/// `rocksdb_slice_t`: borrowed bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Slice {
    data: *const c_char,
    size: usize,
}

impl crate::door::Answer for Slice {
    fn zero() -> Self {
        Slice { data: std::ptr::null(), size: 0 }
    }
}

impl Slice {
    /// The bytes.
    ///
    /// # Errors
    /// `InvalidArgument`: null with a length.
    /// # Safety
    /// As [`crate::door::bytes`].
    pub(crate) unsafe fn bytes<'a>(&self, name: &str) -> Result<&'a [u8]> {
        // SAFETY: as for this function.
        unsafe { crate::door::bytes(self.data, self.size, name) }
    }

    fn of(bytes: Option<&[u8]>) -> Slice {
        bytes.map_or_else(crate::door::Answer::zero, |bytes| Slice {
            data: bytes.as_ptr().cast(),
            size: bytes.len(),
        })
    }
}

/// Bytes of an iterator, valid until it moves; null for null.
///
/// # Safety
/// See the header.
#[inline]
unsafe fn slice_of(
    iter: *const IterObject,
    part: impl for<'a> FnOnce(&'a IterObject) -> Option<&'a [u8]>,
) -> Slice {
    call(std::ptr::null_mut(), || {
        // SAFETY: as for this function.
        Ok(Slice::of(part(unsafe { crate::door::borrowed(iter, "iter") }?)))
    })
}

/// The key, valid until the iterator moves.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_iter_key_slice(iter: *const IterObject) -> Slice {
    let _in = crate::checked::enter("rocksdb_iter_key_slice");
    // SAFETY: as for this function.
    unsafe { slice_of(iter, iter_key) }
}

/// The value, valid until the iterator moves.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_iter_value_slice(iter: *const IterObject) -> Slice {
    let _in = crate::checked::enter("rocksdb_iter_value_slice");
    // SAFETY: as for this function.
    unsafe { slice_of(iter, iter_value) }
}

/// The timestamp of the key: keys here have none, so it is empty.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_iter_timestamp_slice(iter: *const IterObject) -> Slice {
    let _in = crate::checked::enter("rocksdb_iter_timestamp_slice");
    // SAFETY: as for this function.
    unsafe { slice_of(iter, iter_timestamp) }
}

/// What the statistics of these options have counted.
pub fn options_statistics_get_string(opt: &mut OptionsObject) -> Option<String> {
    opt.0.statistics.as_ref().map(ToString::to_string)
}

/// How much the statistics count, by RocksDB's number.
pub fn options_set_statistics_level(opt: &mut OptionsObject, level: c_int) {
    let level = u8::try_from(level).ok().and_then(ashlardb::StatsLevel::from_number);
    if let (Some(statistics), Some(level)) = (&opt.0.statistics, level) {
        statistics.set_level(level);
    }
}

/// How much the statistics count, by RocksDB's number; 0 without statistics.
pub fn options_get_statistics_level(opt: &mut OptionsObject) -> c_int {
    opt.0.statistics.as_ref().map_or(0, |statistics| c_int::from(statistics.level() as u8))
}

/// A counter of the statistics, by RocksDB's number; 0 for one that is not counted.
pub fn options_statistics_get_ticker_count(opt: &mut OptionsObject, ticker_type: u32) -> u64 {
    let name = usize::try_from(ticker_type).ok().and_then(|number| TICKERS.get(number));
    let ticker = name.and_then(|name| Ticker::named(name));
    opt.0.statistics.as_ref().zip(ticker).map_or(0, |(statistics, ticker)| statistics.ticker(ticker))
}

/// `rocksdb_statistics_histogram_data_t`.
#[derive(Clone, Debug, Default)]
pub struct HistogramObject(Histogram);

/// An empty one.
pub fn statistics_histogram_data_create() -> HistogramObject {
    HistogramObject::default()
}

/// Fills in a histogram of the statistics, by RocksDB's number; an empty one if it is not measured.
pub fn options_statistics_get_histogram_data(
    opt: &mut OptionsObject,
    number: u32,
    data: &mut HistogramObject,
) {
    let name = usize::try_from(number).ok().and_then(|number| HISTOGRAMS.get(number));
    let of = name.and_then(|name| Distribution::named(name));
    let found = opt.0.statistics.as_ref().zip(of).map(|(statistics, of)| statistics.distribution(of));
    data.0 = found.unwrap_or_default();
}

macro_rules! figures {
    ($($name:ident(data: &HistogramObject) -> $of:ty = |$histogram:ident| $figure:expr;)*) => { $(
        /// A figure of the histogram.
        pub fn $name(data: &HistogramObject) -> $of {
            let $histogram = &data.0;
            $figure
        }
    )* };
}
figures! {
    statistics_histogram_data_get_median(data: &HistogramObject) -> f64 = |h| h.percentile(50.0);
    statistics_histogram_data_get_p95(data: &HistogramObject) -> f64 = |h| h.percentile(95.0);
    statistics_histogram_data_get_p99(data: &HistogramObject) -> f64 = |h| h.percentile(99.0);
    statistics_histogram_data_get_average(data: &HistogramObject) -> f64 = |h| h.average();
    statistics_histogram_data_get_std_dev(data: &HistogramObject) -> f64 = |h| h.deviation();
    statistics_histogram_data_get_max(data: &HistogramObject) -> f64 = |h| approximate(h.max());
    statistics_histogram_data_get_min(data: &HistogramObject) -> f64 = |h| approximate(h.min());
    statistics_histogram_data_get_count(data: &HistogramObject) -> u64 = |h| h.count();
    statistics_histogram_data_get_sum(data: &HistogramObject) -> u64 = |h| h.sum();
}

#[allow(clippy::cast_precision_loss, reason = "C has the figure as a double")]
const fn approximate(number: u64) -> f64 {
    number as f64
}

/// `rocksdb_perfcontext_t`: the sums of the calling thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct PerfObject;

/// How much the calling thread counts. Times are not taken.
pub fn set_perf_level(v: i32) {
    let level = match v {
        2 => Level::EnableCount,
        3 => Level::EnableTimeExceptForMutex,
        4 => Level::EnableTime,
        _ => Level::Disable,
    };
    perf::set_level(level);
}

/// The sums of the calling thread. A thread that set no level counts from now on. In RocksDB it counts from its beginning.
pub fn perfcontext_create() -> PerfObject {
    perf::level();
    PerfObject
}

/// Sets the sums of the calling thread to zero.
pub fn perfcontext_reset(_: &PerfObject) {
    perf::reset();
}

/// A sum, by RocksDB's number; 0 for one that is not counted.
pub fn perfcontext_metric(_: &PerfObject, metric: i32) -> u64 {
    let name = usize::try_from(metric).ok().and_then(|number| PERF.get(number));
    name.map_or(0, |name| perf::sum(name))
}

/// All sums as a text, perhaps without those that are zero.
pub fn perfcontext_report(_: &PerfObject, exclude_zero_counters: bool) -> Option<String> {
    Some(perf::report(exclude_zero_counters))
}
