//! Options objects, and the setters that take other objects or several values.
//!
//! Most setters and getters are generated: they reach an option by its name.

use crate::callbacks::{ComparatorObject, ListenerObject, LoggerObject, WalFilterObject};
use crate::classes::{Class, Method};
use crate::door::{Result, Room, object_if};
use crate::env::{Env, Local, long};
use crate::handles::{self, Object};
use crate::parts::{
    CacheObject, CollectorObject, EnvObject, FilterFactoryObject, FilterObject, ManagerObject, MergeObject,
    PartitionerObject, RateObject, SpaceObject, StatisticsObject, Taken, TaskLimiterObject,
};
use crate::settings::{
    COMPRESSION, CompactObject, CompressionObject, FifoObject, HasTexts, IngestObject,
    OptimisticOptionsObject, OptionsObject, RestoreObject, Shared, UniversalObject, WriteObject,
};
pub use crate::settings::{
    CompactFilesObject, ComparatorOptionsObject, EnvOptionsObject, FlushObject, ImportObject,
    TxnDbOptionsObject, TxnOptionsObject,
};
use ashlar_compat::options::{Options, TableOptions};
use ashlar_compat::presets::{bulk_load, level_style, of_release, point_lookup, small_db, universal_style};
use ashlar_compat::stored::with_string;
use ashlar_compat::value::{CHECKSUM, DATA_INDEX, INDEX, Names, SHORTENING};
use ashlardb::{Env as Files, Error, standard_operator};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Options of tables, which a family takes over.
#[derive(Debug)]
pub struct TableObject(TableOptions);

impl Object for TableObject {
    const NAME: &'static str = "TableFormatConfig";
}

/// RocksDB's name of a memtable; the engine has its own.
#[derive(Debug)]
pub struct MemtableObject(&'static str);

impl Object for MemtableObject {
    const NAME: &'static str = "MemTableConfig";
}

/// `ConfigOptions`.
#[derive(Debug)]
pub struct ConfigObject(Shared<Config>);

/// How texts are read.
#[derive(Clone, Debug)]
pub struct Config {
    delimiter: String,
    /// Whether names that are not known are ignored.
    pub ignores_unknown: bool,
    /// Where files come from.
    pub env: Option<Files>,
}

impl ConfigObject {
    /// What was set.
    pub fn config(&self) -> Config {
        self.0.read().clone()
    }
}

impl Default for ConfigObject {
    fn default() -> Self {
        ConfigObject(Shared::new(Config::default()))
    }
}

impl Object for ConfigObject {
    const NAME: &'static str = "ConfigOptions";
}

// Each function below is the body of the natives that the description names.

/// A new object with all defaults.
pub fn new_object<T: Object + Default>() -> Result<i64> {
    Ok(handles::keep(T::default())?)
}

fn new_options(options: Options) -> Result<i64> {
    Ok(handles::keep(OptionsObject(Shared::new(options)))?)
}

/// The database's options of one object, and the family's of the other.
pub fn merged(database: &OptionsObject, family: &OptionsObject) -> Result<i64> {
    let merged = Options::merged(&database.0.read(), &family.0.read());
    new_options(merged)
}

/// A copy.
pub fn copied(from: &OptionsObject) -> Result<i64> {
    new_options(from.0.read().clone())
}

/// Options from a text; 0: the text has an option that is not known, or a value that does not fit.
pub fn from_text(config: Option<&ConfigObject>, text: &str) -> Result<i64> {
    let config = config.map(ConfigObject::config).unwrap_or_default();
    let text = if config.delimiter == ";" { text.to_owned() } else { text.replace(&config.delimiter, ";") };
    with_string(&Options::default(), &text, config.ignores_unknown).map_or(Ok(0), new_options)
}

impl Default for Config {
    fn default() -> Self {
        Config { delimiter: ";".into(), ignores_unknown: false, env: None }
    }
}

/// Loads without compactions, for a compaction on request that follows.
pub fn prepare_for_bulk_load(object: &OptionsObject) -> Result<()> {
    bulk_load(&mut object.0.write().texts);
    Ok(())
}

/// The factories of collectors of table properties.
pub fn set_collectors(object: &OptionsObject, factories: &[Arc<CollectorObject>]) -> Result<()> {
    object.0.write().collectors = factories.iter().map(|factory| Arc::clone(&factory.0)).collect();
    Ok(())
}

/// New handles of the factories of collectors.
pub fn collectors(object: &OptionsObject) -> Result<Vec<i64>> {
    let factories = object.0.read().collectors.clone();
    factories.into_iter().map(|factory| Ok(handles::keep(CollectorObject(factory))?)).collect()
}

/// Where files and clock come from.
pub fn set_env(object: &OptionsObject, env: Option<&EnvObject>) -> Result<()> {
    object.0.write().env = env.map(|env| env.env.clone());
    Ok(())
}

/// The limit on background writing. Each database has a limit of its own.
pub fn set_rate_limiter(object: &OptionsObject, limiter: Option<&RateObject>) -> Result<()> {
    let texts = &mut object.0.write().texts;
    texts.set_text("rate_limiter_bytes_per_sec", limiter.map_or(0, RateObject::rate).to_string());
    let tunes = limiter.is_some_and(|limiter| limiter.auto_tuned);
    texts.set_text("rate_limiter_auto_tuned", tunes.to_string());
    Ok(())
}

/// The manager of the space of tables.
pub fn set_sst_file_manager(object: &OptionsObject, manager: Option<&SpaceObject>) -> Result<()> {
    object.0.write().space = manager.map(|manager| Arc::clone(&manager.space));
    Ok(())
}

/// Counts what databases do.
pub fn set_statistics(object: &OptionsObject, statistics: Option<&StatisticsObject>) -> Result<()> {
    object.0.write().statistics = statistics.map(|statistics| Arc::clone(&statistics.0));
    Ok(())
}

/// A new handle of the statistics; 0: none.
pub fn statistics(object: &OptionsObject) -> Result<i64> {
    let statistics = object.0.read().statistics.clone();
    statistics.map_or(Ok(0), |statistics| Ok(handles::keep(StatisticsObject(statistics, Taken::default()))?))
}

/// The limit on memtables of all databases with the manager.
pub fn set_write_buffer_manager(object: &OptionsObject, manager: Option<&ManagerObject>) -> Result<()> {
    object.0.write().write_buffers = manager.map(|manager| Arc::clone(&manager.0));
    Ok(())
}

/// Ignored: the block cache is the only one.
pub fn set_row_cache(_: &OptionsObject, _: Option<&CacheObject>) -> Result<()> {
    Ok(())
}

/// Filters of WAL records are refused: a recovery that leaves records out would differ from the database's promise.
///
/// # Errors
/// `NotSupported`.
pub fn set_wal_filter(_: &OptionsObject, _: &WalFilterObject) -> Result<()> {
    Err(Error::not_supported("a WAL filter").into())
}

/// Where lines of the info log go besides the file LOG.
pub fn set_logger(object: &OptionsObject, logger: &LoggerObject) -> Result<()> {
    object.0.write().logger = Some(logger.logger());
    Ok(())
}

/// The listeners of events.
pub fn set_event_listeners(object: &OptionsObject, listeners: &[Arc<ListenerObject>]) -> Result<()> {
    object.0.write().listeners = listeners.iter().map(|listener| listener.listener()).collect();
    Ok(())
}

/// `path=DIR;target_size=BYTES` for each directory, in braces.
fn set_paths(object: &OptionsObject, name: &str, paths: &[String], sizes: &[i64]) {
    let each = paths.iter().zip(sizes).map(|(path, size)| format!("{{path={path};target_size={size}}}"));
    let joined = each.collect::<Vec<_>>().join(":");
    object.0.write().texts.set_text(name, joined);
}

/// The directories and sizes of a text of [`set_paths`].
fn paths(object: &OptionsObject, name: &str) -> Vec<(String, i64)> {
    let texts = &object.0.read().texts;
    let parts = texts.text(name).split("{path=").skip(1);
    let one = |part: &str| {
        let (path, size) = part.split_once(";target_size=")?;
        Some((path.to_owned(), size.split('}').next()?.parse().ok()?))
    };
    parts.filter_map(one).collect()
}

/// The directories of tables of the database.
pub fn set_db_paths(object: &OptionsObject, paths: &[String], sizes: &[i64]) -> Result<()> {
    set_paths(object, "db_paths", paths, sizes);
    Ok(())
}

/// The directories of tables of a family.
pub fn set_cf_paths(object: &OptionsObject, paths: &[String], sizes: &[i64]) -> Result<()> {
    set_paths(object, "cf_paths", paths, sizes);
    Ok(())
}

/// How many directories.
pub fn db_paths_len(object: &OptionsObject) -> Result<i64> {
    Ok(i64::try_from(paths(object, "db_paths").len()).unwrap_or(0))
}

/// How many directories.
pub fn cf_paths_len(object: &OptionsObject) -> Result<i64> {
    Ok(i64::try_from(paths(object, "cf_paths").len()).unwrap_or(0))
}

fn fill_paths(env: Env<'_>, all: &[(String, i64)], paths: Local<'_>, sizes: Local<'_>) -> Result<()> {
    if paths.is_null()
        || sizes.is_null()
        || env.array_len(paths) < all.len()
        || env.array_len(sizes) < all.len()
    {
        return Err(Error::invalid("paths: arrays of fewer elements than there are").into());
    }
    for (at, (path, _)) in all.iter().enumerate() {
        env.set_element(paths, at, env.new_text(path)?)?;
    }
    env.set_longs(sizes, &all.iter().map(|(_, size)| *size).collect::<Vec<_>>());
    Ok(())
}

/// Fills in the directories of tables of the database.
pub fn db_paths(env: Env<'_>, object: &OptionsObject, into: Local<'_>, sizes: Local<'_>) -> Result<()> {
    fill_paths(env, &paths(object, "db_paths"), into, sizes)
}

/// Fills in the directories of tables of a family.
pub fn cf_paths(env: Env<'_>, object: &OptionsObject, into: Local<'_>, sizes: Local<'_>) -> Result<()> {
    fill_paths(env, &paths(object, "cf_paths"), into, sizes)
}

macro_rules! texts {
    ($($set:ident, $get:ident = $name:literal;)*) => { $(
        #[doc = concat!("Sets `", $name, "`.")]
        pub fn $set(object: &OptionsObject, text: &str) -> Result<()> {
            object.0.write().texts.set_text($name, text.to_owned());
            Ok(())
        }
        #[doc = concat!("`", $name, "`.")]
        pub fn $get(object: &OptionsObject) -> Result<String> {
            Ok(object.0.read().texts.text($name).to_owned())
        }
    )* };
}
texts! {
    set_db_log_dir, db_log_dir = "db_log_dir";
    set_wal_dir, wal_dir = "wal_dir";
    set_daily_offpeak_time, daily_offpeak_time = "daily_offpeak_time_utc";
}

/// Background threads for flushes and compactions.
pub fn increase_parallelism(object: &OptionsObject, threads: i32) -> Result<()> {
    object.0.write().texts.set("max_background_jobs", threads.max(2));
    Ok(())
}

/// Small buffers and files.
pub fn optimize_for_small_db(object: &OptionsObject) -> Result<()> {
    small_db(&mut object.0.write());
    Ok(())
}

/// Filters, and a cache of that many MiB.
pub fn optimize_for_point_lookup(object: &OptionsObject, mebibytes: i64) -> Result<()> {
    point_lookup(&mut object.0.write(), u64::try_from(mebibytes).unwrap_or(0));
    Ok(())
}

/// Memtables of a quarter of the budget, and levels in proportion.
pub fn optimize_level_style_compaction(object: &OptionsObject, budget: i64) -> Result<()> {
    level_style(&mut object.0.write().texts, u64::try_from(budget).unwrap_or(0));
    Ok(())
}

/// Memtables of a quarter of the budget, in a universal tree.
pub fn optimize_universal_style_compaction(object: &OptionsObject, budget: i64) -> Result<()> {
    universal_style(&mut object.0.write().texts, u64::try_from(budget).unwrap_or(0));
    Ok(())
}

/// The defaults of an old release of RocksDB.
pub fn old_defaults(object: &OptionsObject, major: i32, minor: i32) -> Result<()> {
    of_release(&mut object.0.write().texts, (major, minor));
    Ok(())
}

/// The order of keys: 0 by bytes, 1 the other way round.
pub fn set_built_in_comparator(object: &OptionsObject, number: i32) -> Result<()> {
    let mut options = object.0.write();
    (options.comparator, options.descending) = (None, number == 1);
    Ok(())
}

/// The order of keys.
pub fn set_comparator(object: &OptionsObject, comparator: &ComparatorObject) -> Result<()> {
    object.0.write().comparator = Some(comparator.comparator());
    Ok(())
}

/// The built-in merge operator of that name; empty: none.
///
/// # Errors
/// `InvalidArgument`: there is no such operator.
pub fn set_merge_operator_name(object: &OptionsObject, name: &str) -> Result<()> {
    let operator = standard_operator(name);
    if operator.is_none() && !name.is_empty() {
        return Err(Error::invalid(format!("there is no merge operator {name}")).into());
    }
    object.0.write().merge_operator = operator;
    Ok(())
}

/// The merge operator.
pub fn set_merge_operator(object: &OptionsObject, operator: Option<&MergeObject>) -> Result<()> {
    object.0.write().merge_operator = operator.map(|operator| Arc::clone(&operator.0));
    Ok(())
}

/// The compaction filter.
pub fn set_compaction_filter(object: &OptionsObject, filter: Option<&FilterObject>) -> Result<()> {
    object.0.write().compaction_filter = filter.map(|filter| Arc::clone(&filter.0));
    Ok(())
}

/// The compaction filter factory.
pub fn set_compaction_filter_factory(
    object: &OptionsObject,
    factory: Option<&FilterFactoryObject>,
) -> Result<()> {
    object.0.write().compaction_filter_factory = factory.map(|factory| Arc::clone(&factory.0));
    Ok(())
}

/// The options of tables.
pub fn set_table_factory(object: &OptionsObject, factory: &TableObject) -> Result<()> {
    object.0.write().table = Some(factory.0.clone());
    Ok(())
}

/// Ignored, except that the getter answers the name: the memtable keeps its keys in order.
pub fn set_mem_table_factory(object: &OptionsObject, factory: &MemtableObject) -> Result<()> {
    object.0.write().memtable_name = Some(factory.0);
    Ok(())
}

/// The name of the memtable's kind.
pub fn mem_table_factory_name(object: &OptionsObject) -> Result<String> {
    Ok(object.0.read().memtable_name.unwrap_or("SkipListFactory").to_owned())
}

/// The name of the tables' kind.
pub fn table_factory_name(object: &OptionsObject) -> Result<String> {
    let name = object.0.read().texts.text("table_factory").to_owned();
    Ok(if name.is_empty() || name.contains('=') { "BlockBasedTable".into() } else { name })
}

/// The compression of each level, by Java's numbers.
///
/// # Errors
/// `InvalidArgument`: there is no such compression.
pub fn set_compression_per_level(object: &OptionsObject, levels: &[u8]) -> Result<()> {
    let name = |number: &u8| {
        let name = COMPRESSION.name(i64::from(*number));
        name.ok_or_else(|| Error::invalid(format!("there is no compression of number {number}")))
    };
    let names = levels.iter().map(name).collect::<std::result::Result<Vec<_>, _>>()?;
    object.0.write().texts.set_text("compression_per_level", names.join(":"));
    Ok(())
}

/// The compression of each level, by Java's numbers.
pub fn compression_per_level(object: &OptionsObject) -> Result<Vec<u8>> {
    let options = object.0.read();
    let names = options.texts.text("compression_per_level").split(':').filter(|name| !name.is_empty());
    let number = |name| COMPRESSION.number(name).and_then(|number| u8::try_from(number).ok());
    Ok(names.filter_map(number).collect())
}

/// The factors between levels.
pub fn set_additional_multipliers(object: &OptionsObject, factors: &[i32]) -> Result<()> {
    let joined = factors.iter().map(ToString::to_string).collect::<Vec<_>>().join(":");
    object.0.write().texts.set_text("max_bytes_for_level_multiplier_additional", joined);
    Ok(())
}

/// The factors between levels.
pub fn additional_multipliers(object: &OptionsObject) -> Result<Vec<i32>> {
    let options = object.0.read();
    let parts = options.texts.text("max_bytes_for_level_multiplier_additional").split(':');
    Ok(parts.filter_map(|part| part.parse().ok()).collect())
}

/// FIFO compaction.
pub fn set_fifo(object: &OptionsObject, fifo: &FifoObject) -> Result<()> {
    object.0.write().texts.set_members("compaction_options_fifo", &fifo.0.read());
    Ok(())
}

/// Universal compaction.
pub fn set_universal(object: &OptionsObject, universal: &UniversalObject) -> Result<()> {
    object.0.write().texts.set_members("compaction_options_universal", &universal.0.read());
    Ok(())
}

/// How blocks are compressed.
pub fn set_compression_options(object: &OptionsObject, compression: &CompressionObject) -> Result<()> {
    object.0.write().texts.set_members("compression_opts", &compression.0.read());
    Ok(())
}

/// How blocks of the last level are compressed.
pub fn set_bottommost_compression_options(
    object: &OptionsObject,
    compression: &CompressionObject,
) -> Result<()> {
    object.0.write().texts.set_members("bottommost_compression_opts", &compression.0.read());
    Ok(())
}

/// Ignored: the engine chooses how many compactions run.
pub fn set_compaction_thread_limiter(_: &OptionsObject, _: Option<&TaskLimiterObject>) -> Result<()> {
    Ok(())
}

/// The SST partitioner.
pub fn set_sst_partitioner_factory(
    object: &OptionsObject,
    factory: Option<&PartitionerObject>,
) -> Result<()> {
    object.0.write().sst_partitioner = factory.map(|factory| Arc::clone(&factory.0));
    Ok(())
}

/// Prefixes of so many bytes.
pub fn use_fixed_length_prefix_extractor(object: &OptionsObject, length: i32) -> Result<()> {
    object.0.write().texts.set_text("prefix_extractor", format!("rocksdb.FixedPrefix.{length}"));
    Ok(())
}

/// Prefixes of at most so many bytes.
pub fn use_capped_prefix_extractor(object: &OptionsObject, length: i32) -> Result<()> {
    object.0.write().texts.set_text("prefix_extractor", format!("rocksdb.CappedPrefix.{length}"));
    Ok(())
}

/// Options of tables: flags, handles and sizes, whole numbers, enumerations, and the rest, in the order of Java's parameters.
///
/// # Errors
/// `InvalidArgument`: an enumeration has no such value, or a handle is not one of its kind.
pub fn new_table(
    flags: [bool; 12],
    longs: [i64; 4],
    ints: [i32; 4],
    (index, data_index, checksum, shortening): (i8, i8, i8, i8),
    (hash_ratio, filter, format, cache_bytes): (f64, i64, i32, i64),
) -> Result<i64> {
    /// The newest table format of jar 11.8.1.
    const NEWEST_FORMAT: u32 = 7;
    const FLAGS: [&str; 12] = [
        "cache_index_and_filter_blocks",
        "cache_index_and_filter_blocks_with_high_priority",
        "pin_l0_filter_and_index_blocks_in_cache",
        "pin_top_level_index_and_filter",
        "no_block_cache",
        "partition_filters",
        "optimize_filters_for_memory",
        "use_delta_encoding",
        "whole_key_filtering",
        "verify_compression",
        "enable_index_compression",
        "block_align",
    ];
    let mut table = TableOptions::default();
    let texts = &mut table.texts;
    FLAGS.into_iter().zip(flags).for_each(|(name, yes)| texts.set(name, yes));
    let [cache, _, block_size, metadata_block_size] = longs;
    texts.set("block_size", block_size);
    texts.set("metadata_block_size", metadata_block_size);
    let [deviation, restart, index_restart, read_amp] = ints;
    texts.set("block_size_deviation", deviation);
    texts.set("block_restart_interval", restart);
    texts.set("index_block_restart_interval", index_restart);
    texts.set("read_amp_bytes_per_bit", read_amp);
    // What newer jars have as their default is above what the engine writes: then its own default counts. A number that no jar knows
    // fails the open.
    let newest = ashlar_compat::stored::newest_format();
    if u32::try_from(format).is_ok_and(|format| format <= newest || format > NEWEST_FORMAT) {
        texts.set("format_version", format);
    }
    texts.set("data_block_hash_table_util_ratio", hash_ratio);
    for (name, names, number) in [
        ("index_type", INDEX, index),
        ("data_block_index_type", DATA_INDEX, data_index),
        ("checksum", CHECKSUM, checksum),
        ("index_shortening", SHORTENING, shortening),
    ] {
        named(name, names, number)?;
        texts.set_named(name, names, number.into());
    }
    if let Some(policy) = object_if::<crate::parts::PolicyObject>(filter)? {
        texts.set_text("filter_policy", policy.0.clone());
    }
    match object_if::<CacheObject>(cache)? {
        Some(cache) => table.set_cache(&cache.0),
        None if cache_bytes > 0 => table.set_cache_bytes(usize::try_from(cache_bytes).unwrap_or(usize::MAX)),
        None => {}
    }
    Ok(handles::keep(TableObject(table))?)
}

fn named(name: &str, names: Names, number: i8) -> Result<()> {
    let known = names.name(number.into()).is_some();
    if known { Ok(()) } else { Err(Error::invalid(format!("{name} has no value of number {number}")).into()) }
}

/// A kind of memtable, of which only the name counts.
pub fn new_memtable(name: &'static str) -> Result<i64> {
    Ok(handles::keep(MemtableObject(name))?)
}

/// Plain tables: the program gets block-based ones, as [`ashlar_compat::options::Options::set_other_tables`] says.
pub fn new_plain_table() -> Result<i64> {
    Ok(handles::keep(TableObject(TableOptions::default()))?)
}

/// What stands between options of a text.
///
/// # Errors
/// `InvalidArgument`: it is empty.
pub fn set_delimiter(object: &ConfigObject, delimiter: &str) -> Result<()> {
    if delimiter.is_empty() {
        return Err(Error::invalid("the delimiter is empty").hint("Give a text, such as \";\"").into());
    }
    object.0.write().delimiter = delimiter.to_owned();
    Ok(())
}

/// Where files come from.
pub fn set_config_env(object: &ConfigObject, env: Option<&EnvObject>) -> Result<()> {
    object.0.write().env = env.map(|env| env.env.clone());
    Ok(())
}

/// Whether names that are not known are ignored.
pub fn set_ignore_unknown_options(object: &ConfigObject, yes: bool) -> Result<()> {
    object.0.write().ignores_unknown = yes;
    Ok(())
}

/// Ignored: texts with escapes and without are both read.
pub fn set_input_strings_escaped(_: &ConfigObject, _: bool) -> Result<()> {
    Ok(())
}

/// Ignored: loading an OPTIONS file always checks every option.
pub fn set_sanity_level(_: &ConfigObject, _: i8) -> Result<()> {
    Ok(())
}

/// A copy.
pub fn copy_write_options(from: &WriteObject) -> Result<i64> {
    Ok(handles::keep(WriteObject::of(from.0.read().0.clone()))?)
}

/// What the last level gets.
pub fn bottommost_level_compaction(object: &CompactObject) -> Result<i32> {
    Ok(object.options.read().bottommost.unwrap_or(1).into())
}

/// What the last level gets.
///
/// # Errors
/// `InvalidArgument`: there is no such value.
pub fn set_bottommost_level_compaction(object: &CompactObject, value: i32) -> Result<()> {
    let value = u8::try_from(value).ok().filter(|value| *value < 4);
    let value = value.ok_or_else(|| Error::invalid("bottommost_level_compaction has no such value"))?;
    object.options.write().bottommost = Some(value);
    Ok(())
}

/// Whether the compaction is cancelled.
pub fn canceled(object: &CompactObject) -> Result<bool> {
    Ok(object.is_cancelled.load(Ordering::Acquire))
}

/// Cancels a compaction that has not begun.
pub fn set_canceled(object: &CompactObject, yes: bool) -> Result<()> {
    object.is_cancelled.store(yes, Ordering::Release);
    Ok(())
}

/// A compaction that forgets timestamps is refused.
pub fn set_full_history(object: &CompactObject, start: i64, range: i64) -> Result<()> {
    object.options.write().timestamp = true;
    *object.history.write() = Some((start, range));
    Ok(())
}

/// The `Timestamp` that was set; null: none.
pub fn full_history<'a>(env: Env<'a>, object: &CompactObject) -> Result<Local<'a>> {
    static TIMESTAMP: Class = Class::new("org/rocksdb/CompactRangeOptions$Timestamp");
    static NEW: Method = Method::constructor("(JJ)V");
    let Some((start, range)) = *object.history.read() else { return Ok(Local::NULL) };
    TIMESTAMP.make(env, &NEW, &[long(start), long(range)])
}

/// Options of an ingestion with four of them set.
pub fn new_ingest_options(moves: bool, snapshots: bool, sequence: bool, flush: bool) -> Result<i64> {
    let object = IngestObject::default();
    object.change(|texts| {
        texts.set("move_files", moves);
        texts.set("snapshot_consistency", snapshots);
        texts.set("allow_global_seqno", sequence);
        texts.set("allow_blocking_flush", flush);
    });
    Ok(handles::keep(object)?)
}

/// Options of files with those that the options of a database say of files.
pub fn new_file_options(options: &OptionsObject) -> Result<i64> {
    const SAME: [&str; 7] = [
        "allow_mmap_reads",
        "allow_mmap_writes",
        "use_direct_reads",
        "allow_fallocate",
        "bytes_per_sync",
        "compaction_readahead_size",
        "writable_file_max_buffer_size",
    ];
    let object = EnvOptionsObject::default();
    let options = options.0.read();
    object.change(|texts| {
        let own = SAME.into_iter().filter(|name| options.texts.differs(name));
        own.for_each(|name| texts.set_text(name, options.texts.text(name).to_owned()));
    });
    Ok(handles::keep(object)?)
}

/// Ignored, as all options of files.
pub fn file_rate_limiter(_: &EnvOptionsObject, _: Option<&RateObject>) -> Result<()> {
    Ok(())
}

/// Ignored: the order of keys is that of the families.
pub fn hint_comparator(_: &OptimisticOptionsObject, _: &ComparatorObject) -> Result<()> {
    Ok(())
}

/// Options of a restore.
pub fn new_restore_options(keep: bool) -> Result<i64> {
    let object = RestoreObject::default();
    object.change(|texts| texts.set_text("keep_log_files", keep.to_string()));
    Ok(handles::keep(object)?)
}

/// How much of a value a place takes; the length of the whole value.
pub(crate) fn copied_to(env: Env<'_>, room: &Room<'_>, value: Option<&[u8]>) -> i32 {
    value.map_or(NOT_FOUND, |value| room.fill(env, value))
}

/// RocksDB's answer of a read into an array for a key that is not there.
const NOT_FOUND: i32 = -1;
