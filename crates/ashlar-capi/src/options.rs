//! Option objects.
//!
//! Most setters and getters are generated: they reach an option by its name. Here are the objects, and the setters that take
//! other objects or several values.

use crate::callbacks::{
    ComparatorObject, FactoryObject, FilterObject, LoggerObject, MergeObject, State, TransformObject,
    built_in_operator,
};
use crate::door::HasTexts;
use crate::objects::{ClockObject, CuckooObject, LruObject};
use ashlar_compat::cache::Cache;
use ashlar_compat::calls::{CompactOptions, ReadOptions, WriteOptions, write_options};
use ashlar_compat::options::{Group, Options, TableOptions, Texts};
use ashlar_compat::presets;
use ashlar_compat::value::{Names, Scalar};
use ashlardb::{
    CompactOnDeletion, CompactionFilter, Env, Error, FixedPrefixPartitioner, PrefixExtractor, Result,
    Snapshot, SstPartitionerFactory, Statistics,
};
use std::ffi::CStr;
use std::sync::Arc;

/// `rocksdb_options_t`.
#[derive(Clone, Debug, Default)]
pub struct OptionsObject(pub(crate) Options);

/// `rocksdb_block_based_table_options_t`.
#[derive(Clone, Debug, Default)]
pub struct TableObject(pub(crate) TableOptions);

/// `rocksdb_readoptions_t`.
#[derive(Clone, Debug, Default)]
pub struct ReadObject(pub(crate) ReadOptions);

/// `rocksdb_writeoptions_t`.
#[derive(Clone, Debug)]
pub struct WriteObject {
    texts: Texts,
    /// What the texts say.
    pub(crate) write: WriteOptions,
}

/// `rocksdb_compactoptions_t`.
#[derive(Clone, Debug, Default)]
pub struct CompactObject(pub(crate) CompactOptions);

/// Options of styles, which an options object takes over: `rocksdb_universal_compaction_options_t` and
/// `rocksdb_fifo_compaction_options_t`.
#[derive(Clone, Debug)]
pub struct StyleObject(Texts);

/// `rocksdb_filterpolicy_t`.
#[derive(Clone, Debug)]
pub struct PolicyObject {
    text: String,
    /// The state of a policy of the caller, whose destructor runs with it.
    _state: Option<Arc<State>>,
}

impl PolicyObject {
    fn of(text: String) -> PolicyObject {
        PolicyObject { text, _state: None }
    }

    /// A policy of the caller, which makes no filters.
    pub(crate) fn unused(state: State) -> PolicyObject {
        PolicyObject { text: "nullptr".to_owned(), _state: Some(Arc::new(state)) }
    }
}

/// `rocksdb_cache_t`.
#[derive(Debug)]
pub struct CacheObject(pub(crate) Arc<Cache>);

/// `rocksdb_env_t`.
#[derive(Clone, Debug)]
pub struct EnvObject(pub(crate) Env, pub(crate) Arc<Threads>);

/// The numbers of threads of an environment: of low, high and bottom priority. Nothing follows them.
type Threads = [std::sync::atomic::AtomicI32; 3];

impl EnvObject {
    /// An environment whose numbers of threads were not set.
    pub(crate) fn new(env: Env) -> EnvObject {
        EnvObject(env, Arc::default())
    }
}

/// `rocksdb_sst_partitioner_factory_t`: a counted reference, as RocksDB's.
#[derive(Clone, Debug)]
pub struct PartitionerObject(Arc<dyn SstPartitionerFactory>);

/// `rocksdb_snapshot_t`.
#[derive(Clone, Debug)]
pub struct SnapshotObject(pub(crate) Snapshot);

has_texts!(
    OptionsObject => 0.texts,
    TableObject => 0.texts,
    CompactObject => 0.texts,
    StyleObject => 0,
);

impl HasTexts for ReadObject {
    fn texts(&self) -> &Texts {
        self.0.texts()
    }
    fn change(&mut self, set: impl FnOnce(&mut Texts)) {
        self.0.change(set);
    }
}

impl HasTexts for WriteObject {
    fn texts(&self) -> &Texts {
        &self.texts
    }
    fn change(&mut self, set: impl FnOnce(&mut Texts)) {
        set(&mut self.texts);
        self.write = write_options(&self.texts);
    }
}

// Each function below is the body of the C function of its name.

/// The base with the options of a string, in `new_options`.
///
/// # Errors
/// Those of [`ashlar_compat::stored::with_string`].
pub fn get_options_from_string(
    base: &OptionsObject,
    text: &CStr,
    new_options: &mut OptionsObject,
) -> Result<()> {
    let text = text.to_str().map_err(|_| Error::invalid("an option string that is not UTF-8"))?;
    new_options.0 = ashlar_compat::stored::with_string(&base.0, text, false)?;
    Ok(())
}

macro_rules! create {
    ($($(#[$doc:meta])* $name:ident -> $type:ty = $make:expr;)*) => { $(
        $(#[$doc])*
        pub fn $name() -> $type {
            $make
        }
    )* };
}
create! {
    /// All defaults.
    options_create -> OptionsObject = OptionsObject::default();
    /// All defaults.
    block_based_options_create -> TableObject = TableObject::default();
    /// All defaults.
    readoptions_create -> ReadObject = ReadObject::default();
    /// All defaults.
    writeoptions_create -> WriteObject = WriteObject { texts: Texts::of(Group::Write), write: WriteOptions::new() };
    /// All defaults.
    compactoptions_create -> CompactObject = CompactObject::default();
    /// All defaults.
    universal_compaction_options_create -> StyleObject = StyleObject(Texts::of(Group::Universal));
    /// All defaults.
    fifo_compaction_options_create -> StyleObject = StyleObject(Texts::of(Group::Fifo));
}

/// A copy.
pub fn options_create_copy(options: &OptionsObject) -> OptionsObject {
    options.clone()
}

/// Writes without the WAL.
#[allow(non_snake_case, reason = "the name of C")]
pub fn writeoptions_disable_WAL(opt: &mut WriteObject, v: i32) {
    opt.change(|texts| texts.set("disableWAL", v != 0));
}

/// RocksDB's number of an unknown activity.
const UNKNOWN_ACTIVITY: i32 = 255;

/// What a write is for. Kept for the getter, and otherwise ignored.
pub fn writeoptions_set_io_activity(opt: &mut WriteObject, v: i32) {
    opt.change(|texts| texts.set_text("io_activity", v.to_string()));
}

/// What was set.
pub fn writeoptions_get_io_activity(opt: &mut WriteObject) -> i32 {
    opt.texts.text("io_activity").parse().unwrap_or(UNKNOWN_ACTIVITY)
}

/// What the last level gets.
pub fn compactoptions_set_bottommost_level_compaction(opt: &mut CompactObject, v: u8) {
    opt.0.bottommost = Some(v);
}

/// What the last level gets.
pub fn compactoptions_get_bottommost_level_compaction(opt: &mut CompactObject) -> u8 {
    opt.0.bottommost.unwrap_or(1)
}

/// The order of keys.
pub fn options_set_comparator(opt: &mut OptionsObject, comparator: Option<&ComparatorObject>) {
    opt.0.comparator = comparator.map(|comparator| Arc::clone(&comparator.0));
}

/// The merge operator, which the options take.
pub fn options_set_merge_operator(opt: &mut OptionsObject, operator: Option<Box<MergeObject>>) {
    opt.0.merge_operator = operator.map(|operator| operator.0);
}

/// The operator that adds numbers of eight bytes.
pub fn options_set_uint64add_merge_operator(opt: &mut OptionsObject) {
    opt.0.merge_operator = built_in_operator("uint64add");
}

/// The compaction filter, which stays the caller's.
pub fn options_set_compaction_filter(opt: &mut OptionsObject, filter: Option<&FilterObject>) {
    opt.0.compaction_filter = filter.map(|filter| Arc::clone(&filter.0) as Arc<dyn CompactionFilter>);
}

/// The factory of compaction filters, which the options take.
pub fn options_set_compaction_filter_factory(opt: &mut OptionsObject, factory: Option<Box<FactoryObject>>) {
    opt.0.compaction_filter_factory = factory.map(|factory| factory.0);
}

/// The rule of prefixes, which the options take.
pub fn options_set_prefix_extractor(opt: &mut OptionsObject, transform: Option<Box<TransformObject>>) {
    // An extractor that a later text names wins.
    let (own, built_in): (Option<PrefixExtractor>, _) = match transform.map(|transform| transform.0) {
        Some(own @ PrefixExtractor::Custom(_)) => (Some(own), None),
        built_in => (None, built_in),
    };
    let text = built_in.map_or_else(|| "nullptr".to_owned(), |built_in| built_in.name());
    opt.0.texts.set_text("prefix_extractor", text);
    opt.0.prefix_extractor = own;
}

/// A partitioner that begins a new table for each prefix of so many bytes.
pub fn sst_partitioner_fixed_prefix_factory_create(length: usize) -> PartitionerObject {
    PartitionerObject(Arc::new(FixedPrefixPartitioner::new(length)))
}

/// The SST partitioner, which stays the caller's.
pub fn options_set_sst_partitioner_factory(opt: &mut OptionsObject, partitioner: &PartitionerObject) {
    opt.0.sst_partitioner = Some(Arc::clone(&partitioner.0));
}

/// Where files and clock come from.
pub fn options_set_env(opt: &mut OptionsObject, env: Option<&EnvObject>) {
    opt.0.env = env.map(|env| env.0.clone());
}

/// Block-based tables with these options.
pub fn options_set_block_based_table_factory(opt: &mut OptionsObject, table: Option<&TableObject>) {
    if let Some(table) = table {
        opt.0.table = Some(table.0.clone());
    }
}

/// `window bits, level, strategy, largest dictionary`.
pub fn options_set_compression_options(
    opt: &mut OptionsObject,
    bits: i32,
    level: i32,
    strategy: i32,
    dict: i32,
) {
    compression_options(opt, "compression_opts", [bits, level, strategy, dict]);
}

/// The same for the last level.
pub fn options_set_bottommost_compression_options(
    opt: &mut OptionsObject,
    bits: i32,
    level: i32,
    strategy: i32,
    dict: i32,
    enabled: bool,
) {
    compression_options(opt, "bottommost_compression_opts", [bits, level, strategy, dict]);
    opt.0.texts.set("bottommost_compression_opts.enabled", enabled);
}

fn compression_options(opt: &mut OptionsObject, of: &str, values: [i32; 4]) {
    let members = ["window_bits", "level", "strategy", "max_dict_bytes"];
    for (member, value) in members.into_iter().zip(values) {
        opt.0.texts.set_text(&format!("{of}.{member}"), value.to_string());
    }
}

/// Universal compaction, whose options stay the caller's.
pub fn options_set_universal_compaction_options(opt: &mut OptionsObject, style: Option<&StyleObject>) {
    if let Some(style) = style {
        opt.0.texts.set_members("compaction_options_universal", &style.0);
    }
}

/// FIFO compaction, whose options stay the caller's.
pub fn options_set_fifo_compaction_options(opt: &mut OptionsObject, style: Option<&StyleObject>) {
    if let Some(style) = style {
        opt.0.texts.set_members("compaction_options_fifo", &style.0);
    }
}

/// Where lines of the info log go besides the file LOG.
pub fn options_set_info_log(opt: &mut OptionsObject, logger: Option<&LoggerObject>) {
    opt.0.logger = logger.and_then(|logger| logger.0.clone());
}

/// The logger of the options, as an object of its own.
pub fn options_get_info_log(opt: &mut OptionsObject) -> LoggerObject {
    LoggerObject(opt.0.logger.clone())
}

/// How far compactions read ahead.
pub fn options_compaction_readahead_size(opt: &mut OptionsObject, bytes: usize) {
    opt.0.texts.set("compaction_readahead_size", bytes);
}

/// Loads without compactions and without delays, for a compaction on request that follows.
pub fn options_prepare_for_bulk_load(opt: &mut OptionsObject) {
    presets::bulk_load(&mut opt.0.texts);
}

/// The compression of the options from a level on, and none above; below zero: no change.
pub fn options_set_min_level_to_compress(opt: &mut OptionsObject, level: i32) {
    let Ok(least) = usize::try_from(level) else { return };
    let compression = opt.0.texts.text("compression").to_owned();
    let levels = opt.0.texts.get::<i32>("num_levels");
    let of = |level| if level < least { "kNoCompression" } else { compression.as_str() };
    let each = (0..usize::try_from(levels).unwrap_or(0)).map(of).collect::<Vec<_>>();
    opt.0.texts.set_text("compression_per_level", each.join(":"));
}

fn bottommost(opt: &mut OptionsObject, member: &str, value: impl Scalar, enabled: bool) {
    opt.0.texts.set(&format!("bottommost_compression_opts.{member}"), value);
    opt.0.texts.set("bottommost_compression_opts.enabled", enabled);
}

/// Bytes of samples for dictionaries of the last level.
pub fn options_set_bottommost_compression_options_zstd_max_train_bytes(
    opt: &mut OptionsObject,
    bytes: i32,
    enabled: bool,
) {
    bottommost(opt, "zstd_max_train_bytes", bytes, enabled);
}

/// Bytes of data that wait for a dictionary of the last level.
pub fn options_set_bottommost_compression_options_max_dict_buffer_bytes(
    opt: &mut OptionsObject,
    bytes: u64,
    enabled: bool,
) {
    bottommost(opt, "max_dict_buffer_bytes", bytes, enabled);
}

/// Whether zstd trains the dictionaries of the last level.
pub fn options_set_bottommost_compression_options_use_zstd_dict_trainer(
    opt: &mut OptionsObject,
    trains: bool,
    enabled: bool,
) {
    bottommost(opt, "use_zstd_dict_trainer", trains, enabled);
}

/// Whether zstd trains the dictionaries of the last level.
pub fn options_get_bottommost_compression_options_use_zstd_dict_trainer(opt: &mut OptionsObject) -> bool {
    opt.0.texts.get("bottommost_compression_opts.use_zstd_dict_trainer")
}

/// The directory of the log for people.
pub fn options_set_db_log_dir(opt: &mut OptionsObject, dir: &CStr) {
    opt.0.texts.set_text("db_log_dir", dir.to_string_lossy().into_owned());
}

/// The directory of the WAL.
pub fn options_set_wal_dir(opt: &mut OptionsObject, dir: &CStr) {
    opt.0.texts.set_text("wal_dir", dir.to_string_lossy().into_owned());
}

/// Background threads for flushes and compactions. The engine takes as many as there are processors by itself.
pub fn options_increase_parallelism(opt: &mut OptionsObject, total_threads: i32) {
    opt.0.texts.set("max_background_jobs", total_threads.max(2));
}

/// Memtables of a quarter of the budget, and levels in proportion.
pub fn options_optimize_level_style_compaction(opt: &mut OptionsObject, budget: u64) {
    presets::level_style(&mut opt.0.texts, budget);
}

/// Memtables of a quarter of the budget, in a universal tree.
pub fn options_optimize_universal_style_compaction(opt: &mut OptionsObject, budget: u64) {
    presets::universal_style(&mut opt.0.texts, budget);
}

/// Filters, and a cache of that many MiB.
pub fn options_optimize_for_point_lookup(opt: &mut OptionsObject, block_cache_size_mb: u64) {
    presets::point_lookup(&mut opt.0, block_cache_size_mb);
}

/// Counts what databases do.
pub fn options_enable_statistics(opt: &mut OptionsObject) {
    opt.0.statistics.get_or_insert_with(|| Arc::new(Statistics::new()));
}

/// Cuckoo tables: see [`ashlar_compat::options::Options::set_other_tables`].
pub fn options_set_cuckoo_table_factory(opt: &mut OptionsObject, _: Option<&CuckooObject>) {
    opt.0.set_other_tables();
}

/// Marks tables with so many deletions among so many entries for a compaction.
pub fn options_add_compact_on_deletion_collector_factory(
    opt: &mut OptionsObject,
    window: usize,
    trigger: usize,
) {
    opt.0.collectors.push(Arc::new(CompactOnDeletion::new(window, trigger)));
}

/// Marks tables by a window, and by their share of deletions.
pub fn options_add_compact_on_deletion_collector_factory_del_ratio(
    opt: &mut OptionsObject,
    window: usize,
    trigger: usize,
    ratio: f64,
) {
    opt.0.collectors.push(Arc::new(CompactOnDeletion::new(window, trigger).ratio(ratio)));
}

/// Marks tables of a least size by a window, and by their share of deletions.
pub fn options_add_compact_on_deletion_collector_factory_min_file_size(
    opt: &mut OptionsObject,
    window: usize,
    trigger: usize,
    ratio: f64,
    min_file_bytes: u64,
) {
    let collector = CompactOnDeletion::new(window, trigger).ratio(ratio).min_file_bytes(min_file_bytes);
    opt.0.collectors.push(Arc::new(collector));
}

/// Ignored: the memtable keeps its keys in order.
pub fn options_set_memtable_vector_rep(_: &mut OptionsObject) {}

/// Ignored: the memtable keeps its keys in order.
pub fn options_set_hash_skip_list_rep(_: &mut OptionsObject, _: usize, _: i32, _: i32) {}

/// Ignored: the memtable keeps its keys in order.
pub fn options_set_hash_link_list_rep(_: &mut OptionsObject, _: usize) {}

/// Ignored: values of blob files are not cached.
pub fn options_set_blob_cache(_: &mut OptionsObject, _: Option<&CacheObject>) {}

/// Ignored: the block cache is the only one.
pub fn options_set_row_cache(_: &mut OptionsObject, _: Option<&CacheObject>) {}

/// Which parts of indexes stay in memory.
const PINNING: Names = Names(&[(0, "kFallback"), (1, "kNone"), (2, "kFlushedAndSimilar"), (3, "kAll")]);

/// Which top levels of indexes stay in memory.
pub fn block_based_options_set_top_level_index_pinning_tier(options: &mut TableObject, v: i32) {
    options.0.texts.set_named("metadata_cache_options.top_level_index_pinning", PINNING, v);
}

/// Which partitions of indexes stay in memory.
pub fn block_based_options_set_partition_pinning_tier(options: &mut TableObject, v: i32) {
    options.0.texts.set_named("metadata_cache_options.partition_pinning", PINNING, v);
}

/// Which whole indexes stay in memory.
pub fn block_based_options_set_unpartitioned_pinning_tier(options: &mut TableObject, v: i32) {
    options.0.texts.set_named("metadata_cache_options.unpartitioned_pinning", PINNING, v);
}

/// A read at a timestamp is refused; null: none.
pub fn readoptions_set_timestamp(opt: &mut ReadObject, ts: Option<&[u8]>) {
    opt.0.refuse(ts.map(|_| "timestamp"));
}

/// A read from a timestamp on is refused; null: none.
pub fn readoptions_set_iter_start_ts(opt: &mut ReadObject, ts: Option<&[u8]>) {
    opt.0.refuse(ts.map(|_| "iter_start_ts"));
}

/// The filter, which the options take.
pub fn block_based_options_set_filter_policy(options: &mut TableObject, policy: Option<Box<PolicyObject>>) {
    let policy = policy.map_or("nullptr".to_owned(), |policy| policy.text);
    options.0.texts.set_text("filter_policy", policy);
}

/// The object for the block cache; null changes nothing.
pub fn block_based_options_set_block_cache(options: &mut TableObject, cache: Option<&CacheObject>) {
    if let Some(CacheObject(cache)) = cache {
        options.0.set_cache(cache);
    }
}

/// `checksum`, which C passes as a character.
pub fn block_based_options_set_checksum(options: &mut TableObject, v: i8) {
    options.0.texts.set_named("checksum", ashlar_compat::value::CHECKSUM, v.into());
}

/// A filter of so many bits per key.
pub fn filterpolicy_create_bloom(bits_per_key: f64) -> PolicyObject {
    PolicyObject::of(format!("bloomfilter:{bits_per_key}:false"))
}

/// A filter of so many bits per key.
pub fn filterpolicy_create_bloom_full(bits_per_key: f64) -> PolicyObject {
    filterpolicy_create_bloom(bits_per_key)
}

/// A ribbon filter as good as a Bloom filter of so many bits per key.
pub fn filterpolicy_create_ribbon(bloom_equivalent_bits_per_key: f64) -> PolicyObject {
    // -1: the tables of flushes have ribbon filters too.
    PolicyObject::of(format!("ribbonfilter:{bloom_equivalent_bits_per_key}:-1"))
}

/// The same, with Bloom filters above a level.
pub fn filterpolicy_create_ribbon_hybrid(bits: f64, bloom_before_level: i32) -> PolicyObject {
    PolicyObject::of(format!("ribbonfilter:{bits}:{bloom_before_level}"))
}

/// A cache of so many bytes.
pub fn cache_create_lru(capacity: usize) -> CacheObject {
    CacheObject(Arc::new(Cache::new(capacity)))
}

/// A cache of so many bytes.
pub fn cache_create_hyper_clock(capacity: usize, _: usize) -> CacheObject {
    cache_create_lru(capacity)
}

/// A cache of so many bytes.
pub fn cache_create_lru_opts(options: &LruObject) -> CacheObject {
    cache_create_lru(options.texts().get("capacity"))
}

/// A cache of so many bytes. No cache ever has more, so a block that does not fit is not cached, and its read succeeds.
pub fn cache_create_lru_with_strict_capacity_limit(capacity: usize) -> CacheObject {
    cache_create_lru(capacity)
}

/// Changes the capacity, also for open databases.
pub fn cache_set_capacity(cache: &CacheObject, capacity: usize) {
    cache.0.set_capacity(capacity);
}

/// The bytes of cached blocks of all databases that were opened with the object.
pub fn cache_get_usage(cache: &CacheObject) -> usize {
    usize::try_from(cache.0.usage()).unwrap_or(usize::MAX)
}

/// The bytes of blocks that readers hold.
pub fn cache_get_pinned_usage(cache: &CacheObject) -> usize {
    usize::try_from(cache.0.pinned_usage()).unwrap_or(usize::MAX)
}

/// A cache of so many bytes.
pub fn cache_create_hyper_clock_opts(options: &ClockObject) -> CacheObject {
    cache_create_lru(options.texts().get("capacity"))
}

/// Ignored: blocks leave the cache with their databases, which takes no time at the end of a program.
pub fn cache_disown_data(_: &CacheObject) {}

/// Options of a clock cache.
pub fn hyper_clock_cache_options_create(capacity: usize, estimated_entry_charge: usize) -> ClockObject {
    let mut options = ClockObject::default();
    crate::door::set(&mut options, "capacity", capacity);
    crate::door::set(&mut options, "estimated_entry_charge", estimated_entry_charge);
    options
}

/// `rocksdb_memory_allocator_t`. No call makes one.
#[derive(Clone, Copy, Debug)]
pub struct AllocatorObject;

/// Blocks are in mapped memory of their own, which no core dump needs to leave out.
///
/// # Errors
/// `NotSupported`.
pub fn jemalloc_nodump_allocator_create() -> Result<AllocatorObject> {
    Err(Error::not_supported("allocators for caches: blocks are in mapped memory of their own"))
}

/// Ignored: blocks are in mapped memory of their own.
pub fn lru_cache_options_set_memory_allocator(_: &mut LruObject, _: Option<&AllocatorObject>) {}

/// Ignored: blocks are in mapped memory of their own.
pub fn hyper_clock_cache_options_set_memory_allocator(_: &mut ClockObject, _: Option<&AllocatorObject>) {}

/// A name for the read, for those that trace it; null: none.
pub fn readoptions_set_request_id(opt: &mut ReadObject, id: Option<&[u8]>) {
    opt.0.request_id = id.map(<[u8]>::to_vec);
}

/// Takes the name away.
pub fn readoptions_clear_request_id(opt: &mut ReadObject) {
    opt.0.request_id = None;
}

/// The name of the read, valid until it changes; null: none.
pub fn readoptions_get_request_id(opt: &mut ReadObject) -> Option<&[u8]> {
    opt.0.request_id.as_deref()
}

/// The size.
pub fn cache_get_capacity(cache: &CacheObject) -> usize {
    cache.0.capacity()
}

/// The operating system.
///
/// # Errors
/// Those of [`Env::os`].
pub fn create_default_env() -> Option<EnvObject> {
    // The numbers are those of the process, as RocksDB's default environment is.
    static THREADS: std::sync::OnceLock<Arc<Threads>> = std::sync::OnceLock::new();
    let threads = Arc::clone(THREADS.get_or_init(Arc::default));
    Env::os().ok().map(|env| EnvObject(env, threads))
}

/// Files in memory.
pub fn create_mem_env() -> EnvObject {
    EnvObject::new(Env::mem())
}

/// The snapshot that reads see; null: the newest writes.
pub fn readoptions_set_snapshot(opt: &mut ReadObject, snapshot: Option<&SnapshotObject>) {
    opt.0.snapshot = snapshot.map(|snapshot| snapshot.0.clone());
}

/// The first key behind an iterator; null: none.
pub fn readoptions_set_iterate_upper_bound(opt: &mut ReadObject, key: Option<&[u8]>) {
    opt.0.upper = key.map(<[u8]>::to_vec);
}

/// The first key of an iterator; null: none.
pub fn readoptions_set_iterate_lower_bound(opt: &mut ReadObject, key: Option<&[u8]>) {
    opt.0.lower = key.map(<[u8]>::to_vec);
}
